//! The memcached that the clients are measured against.

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::child::Child;

/// How long a server may take until it accepts.
const START_LIMIT: Duration = Duration::from_secs(10);

/// Attempts to find a port that nobody takes before the server does.
const ATTEMPTS: usize = 5;

/// A memcached with one thread on a loopback port; dropping it ends it.
pub struct Server {
    _child: Child,
    /// Its port on 127.0.0.1.
    pub port: u16,
}

impl Server {
    /// Starts a server on one CPU that takes `connections` and a few more.
    pub fn start(cpu: usize, connections: u32, scratch: &Path) -> io::Result<Server> {
        // memcached refuses to run as root.
        let identity: &[&str] =
            if is_root()? { &["--reuid=nobody", "--regid=nogroup", "--clear-groups"] } else { &[] };
        for _ in 0..ATTEMPTS {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let arguments = format!("-l 127.0.0.1 -p {port} -U 0 -t 1 -m 1024 -c {}", connections + 64);
            let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
            let log = scratch.join(format!("memcached-{port}"));
            let mut child = Child::start(Path::new("memcached"), &arguments, cpu, identity, &log)?;
            if accepts(&mut child, port)? {
                return Ok(Server { _child: child, port });
            }
            eprint!("{}", fs::read_to_string(log.with_extension("err"))?);
        }
        Err(io::Error::other("memcached does not start; its words are above"))
    }

    /// What the installed server calls itself.
    pub fn version() -> io::Result<String> {
        let output = Command::new("memcached").arg("-V").output().map_err(|error| {
            io::Error::new(error.kind(), format!("memcached is needed (apt-get install memcached): {error}"))
        })?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// Waits until the server accepts; false when it ended instead.
fn accepts(child: &mut Child, port: u16) -> io::Result<bool> {
    let begin = Instant::now();
    while child.is_running()? {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(true);
        }
        if begin.elapsed() > START_LIMIT {
            return Err(io::Error::other("memcached does not accept connections"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(false)
}

fn is_root() -> io::Result<bool> {
    let status = fs::read_to_string("/proc/self/status")?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    Ok(ids.split_whitespace().nth(1) == Some("0"))
}
