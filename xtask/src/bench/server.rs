//! The servers that the clients are measured against.

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::child::Child;
use super::rows::Dialect;
use crate::network::{Network, Way};
use crate::programs::said_by;

/// Time that a server may take until it accepts.
const START_LIMIT: Duration = Duration::from_secs(10);

/// Time that a server may take to close the connections of a client that ended.
const PARTING_LIMIT: Duration = Duration::from_secs(30);

/// Attempts to find a port that stays free until the server takes it.
const ATTEMPTS: usize = 5;

/// Connections beside those of the row that a server has to take, and descriptors for its own affairs.
pub const SPARE_CONNECTIONS: u32 = 64;

/// A server program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// memcached with one worker thread.
    Memcached,
    /// redis-server without persistence.
    Redis,
}

impl Kind {
    /// The program that speaks a dialect.
    pub fn of(dialect: Dialect) -> Kind {
        match dialect {
            Dialect::Text | Dialect::Meta | Dialect::Binary => Kind::Memcached,
            Dialect::Resp2 => Kind::Redis,
        }
    }

    /// The name of the program.
    pub fn program(self) -> &'static str {
        match self {
            Kind::Memcached => "memcached",
            Kind::Redis => "redis-server",
        }
    }

    fn arguments(self, address: &str, port: u16, connections: u32, scratch: &Path) -> Vec<String> {
        let line = match self {
            Kind::Memcached => format!("-l {address} -p {port} -U 0 -t 1 -m 1024 -c {connections}"),
            Kind::Redis => format!(
                "--bind {address} --port {port} --appendonly no --daemonize no --io-threads 1 --maxclients {connections}"
            ),
        };
        let mut arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        if self == Kind::Redis {
            let directory = scratch.to_string_lossy().into_owned();
            arguments.extend(["--save".to_owned(), String::new(), "--dir".to_owned(), directory]);
        }
        arguments
    }

    /// Arguments of setpriv, and how the program is called: memcached refuses to be root, and only root enters a namespace.
    fn words(self, network: &Network) -> io::Result<(&'static [&'static str], Vec<String>)> {
        let mut program: Vec<String> = Vec::new();
        if let Some(name) = network.server() {
            program.extend(["ip", "netns", "exec", name].map(str::to_owned));
        }
        program.push(self.program().to_owned());
        let identity: &[&str] = match (self, network.server()) {
            (Kind::Memcached, None) if is_root()? => &["--reuid=nobody", "--regid=nogroup", "--clear-groups"],
            (Kind::Memcached, Some(_)) => {
                program.extend(["-u", "nobody"].map(str::to_owned));
                &[]
            }
            (Kind::Memcached | Kind::Redis, _) => &[],
        };
        Ok((identity, program))
    }

    /// Name and version by which the installed server calls itself.
    pub fn version(self) -> io::Result<String> {
        let said = said_by(Command::new(self.program()).arg("--version"))?;
        // redis-server goes on with how it was built.
        Ok(said.lines().next().unwrap_or_default().split(" sha=").next().unwrap_or_default().to_owned())
    }
}

/// A server with one thread; dropping it ends it.
pub struct Server {
    child: Child,
    /// The server's port.
    pub port: u16,
    /// Open descriptors of the server when no client is connected.
    idle_descriptors: usize,
}

impl Server {
    /// Starts a server on one CPU and on loopback that takes `connections` and a few more.
    pub fn start(kind: Kind, cpu: usize, connections: u32, scratch: &Path) -> io::Result<Server> {
        Server::start_with(kind, "", cpu, connections, scratch)
    }

    /// Starts a server with further options behind its own, of which the last one counts.
    pub fn start_with(
        kind: Kind,
        words: &str,
        cpu: usize,
        connections: u32,
        scratch: &Path,
    ) -> io::Result<Server> {
        Server::start_in(&Network::make(Way::Loopback)?, (kind, words), cpu, connections, scratch)
    }

    /// Starts a server on one CPU and in the server's place of a network; it takes `connections` and a few more.
    pub fn start_in(
        network: &Network,
        (kind, options): (Kind, &str),
        cpu: usize,
        connections: u32,
        scratch: &Path,
    ) -> io::Result<Server> {
        let (identity, program) = kind.words(network)?;
        for _ in 0..ATTEMPTS {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let arguments = kind.arguments(network.address(), port, connections + SPARE_CONNECTIONS, scratch);
            let log = scratch.join(format!("{}-{port}", kind.program()));
            let words = program[1..].iter().chain(&arguments).map(String::as_str);
            let words = words.chain(options.split_whitespace());
            let mut child = Child::start(Path::new(&program[0]), words, cpu, identity, &log)?;
            let connect = || Ok(TcpStream::connect((network.address(), port)).ok());
            if child.until(START_LIMIT, connect)?.is_some() {
                let idle_descriptors = child.descriptors()?;
                return Ok(Server { child, port, idle_descriptors });
            }
            eprint!("{}", fs::read_to_string(log.with_extension("err"))?);
        }
        Err(io::Error::other(format!("{} does not start; its words are above", kind.program())))
    }
}

impl Server {
    /// Waits until it has closed what earlier clients left: it counts their connections until then, and takes so many
    /// fewer new ones.
    pub fn wait_until_left(&self) -> io::Result<()> {
        let begin = Instant::now();
        while self.child.descriptors()? > self.idle_descriptors + SPARE_CONNECTIONS as usize / 2 {
            if begin.elapsed() > PARTING_LIMIT {
                return Err(io::Error::other(
                    "the server does not close the connections of a client that ended",
                ));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// CPU time that it has taken so far, in seconds.
    pub fn cpu_s(&self) -> io::Result<f64> {
        self.child.cpu_s()
    }
}

fn is_root() -> io::Result<bool> {
    let status = fs::read_to_string("/proc/self/status")?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    Ok(ids.split_whitespace().nth(1) == Some("0"))
}
