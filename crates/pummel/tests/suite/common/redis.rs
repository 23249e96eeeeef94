//! A redis-server of a test's own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::secured::Certificates;
use super::until;

/// A redis-server that ends with this value, and with the test. It listens on a unix socket, so that no two can want the
/// same port.
pub struct Redis {
    process: Child,
    folder: TempDir,
}

impl Redis {
    pub fn start(options: &[&str]) -> Redis {
        Redis::try_start(options).expect("redis-server takes its options")
    }

    /// With a second door behind TLS, whose name stands beside it. Its port may be taken by another process before the
    /// server has it; then another one is tried.
    pub fn start_tls(certificates: &Certificates) -> (Redis, String) {
        let (ca, cert, key) = (certificates.ca(), certificates.cert(), certificates.key());
        for _ in 0..10 {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let port = listener.local_addr().expect("it is bound").port().to_string();
            drop(listener);
            let files = ["--tls-ca-cert-file", &ca, "--tls-cert-file", &cert, "--tls-key-file", &key];
            let options = ["--tls-port", &port, "--tls-auth-clients", "no"];
            if let Some(redis) = Redis::try_start(&[&options[..], &files].concat()) {
                return (redis, format!("127.0.0.1:{port}"));
            }
        }
        panic!("redis-server listens with TLS on none of ten ports; one that is built with TLS is needed");
    }

    /// Starts it; `None` when it ends before it listens.
    fn try_start(options: &[&str]) -> Option<Redis> {
        let folder = TempDir::new().expect("a temporary folder");
        let socket = folder.path().join("socket");
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "redis-server", "--port", "0", "--save", "", "--appendonly", "no"])
            .args(["--bind", "127.0.0.1", "--unixsocket"])
            .arg(&socket)
            .arg("--dir")
            .arg(folder.path())
            .args(options)
            .stdout(Stdio::null())
            .spawn()
            .expect("setpriv and redis-server are installed (apt-get install util-linux redis-server)");
        let mut redis = Redis { process, folder };
        let listens = until("redis-server", || {
            let ended = redis.process.try_wait().expect("it was started").is_some();
            if ended { Some(false) } else { UnixStream::connect(&socket).ok().map(|_| true) }
        });
        listens.then_some(redis)
    }

    /// Address as `--server` takes it.
    pub fn name(&self) -> String {
        self.folder.path().join("socket").display().to_string()
    }

    /// All that it answers to these lines, after which it closes.
    pub fn say(&self, lines: &str) -> String {
        let mut stream = UnixStream::connect(self.name()).expect("it listens");
        stream.write_all(format!("{lines}\r\nQUIT\r\n").as_bytes()).expect("it reads");
        let mut text = Vec::new();
        stream.read_to_end(&mut text).expect("it answers and closes");
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Number of times that it carried out each command, as `INFO commandstats` says.
    pub fn counted(&self) -> BTreeMap<String, u64> {
        let line = |line: &str| {
            let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            Some((name.to_owned(), rest.split_once(',')?.0.parse().ok()?))
        };
        self.say("INFO commandstats").lines().filter_map(line).collect()
    }
}

/// A client of a server that hears of all commands.
pub struct Monitor(BufReader<UnixStream>);

impl Monitor {
    pub fn of(redis: &Redis) -> Monitor {
        let mut stream = UnixStream::connect(redis.name()).expect("it listens");
        stream.write_all(b"MONITOR\r\n").expect("it reads");
        let mut lines = BufReader::new(stream);
        let mut ok = String::new();
        lines.read_line(&mut ok).expect("it answers");
        assert_eq!(ok, "+OK\r\n");
        Monitor(lines)
    }

    /// The words of the next command, with its name.
    fn next(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("it goes on") > 0, "the server is there");
            if let Some((_, words)) = line.trim_end().split_once("] ") {
                return words.to_owned();
            }
        }
    }

    /// The words of the commands up to one with this text in it.
    pub fn until(mut self, mark: &str) -> Vec<String> {
        std::iter::from_fn(|| Some(self.next()).filter(|words| !words.contains(mark))).collect()
    }

    /// The words of the next `count` commands with this name, without it.
    pub fn commands(&mut self, name: &str, count: usize) -> Vec<String> {
        let mut found = Vec::new();
        while found.len() < count {
            if let Some(words) = self.next().strip_prefix(&format!("\"{name}\" ")) {
                found.push(words.to_owned());
            }
        }
        found
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
