//! The real binary and servers for it: what is started here listens on free ports of loopback, and ends with its guard.

pub mod agent;
pub mod counts;
pub mod hosts;
pub mod littles_law;
pub mod mcperf;
pub mod redis;
pub mod schema;
pub mod secured;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pummel_engine::backend::uring::Uring;
use pummel_report::document::Document;
use pummel_report::screen::Paper;
use pummel_report::text::{Detail, run};
use pummel_tool::commands::schema::SchemaName;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// No test waits longer for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Seconds after which a built-in server ends whatever became of the test.
const SERVE_SECONDS_MAX: &str = "300";

/// Held by tests that look at times: they would see each other's load.
pub fn quiet() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // A test that failed has done no harm to the others.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until `condition` gives something.
#[track_caller]
pub fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < end, "{what} did not happen in {PATIENCE:?}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Runs `attempt` until the first, or two of six in a row, find nothing to say against what they saw: at least six times, and for two
/// minutes. Noise of a machine that is busy with other things comes and goes, sometimes only after a minute; a wrong definition stays, and
/// where it is right by chance now and then, it is seldom so twice in a short time. Returns what the last attempt saw.
#[track_caller]
pub fn in_some_quiet_moment<T>(mut attempt: impl FnMut() -> Result<T, String>) -> T {
    const ATTEMPTS_MIN: usize = 6;
    let end = Instant::now() + 2 * PATIENCE;
    let mut attempts: Vec<Result<(), String>> = Vec::new();
    while attempts.len() < ATTEMPTS_MIN || Instant::now() < end {
        let seen = attempt();
        attempts.push(seen.as_ref().map(drop).map_err(String::clone));
        let latest = attempts.iter().rev().take(ATTEMPTS_MIN);
        let is_enough = latest.filter(|attempt| attempt.is_ok()).count() >= attempts.len().min(2);
        if let (Ok(seen), true) = (seen, is_enough) {
            return seen;
        }
    }
    panic!("{} attempts, and never two of six in a row that held: {attempts:#?}", attempts.len());
}

/// Runs in whose midst something happens. `begin` starts a run that measures for as long as the words say that it is given,
/// and does what has to be done meanwhile. On a machine so busy that this took longer than three quarters of that time, it
/// is tried again with more.
#[track_caller]
pub fn in_the_midst<T>(time: Duration, mut begin: impl FnMut(&str) -> (Running, T)) -> (Ended, T) {
    in_the_midst_of(time, |time| begin(&format!("-t {}ms", time.as_millis())))
}

/// [`in_the_midst`] for fronts with words of their own: `begin` is given the time.
#[track_caller]
pub fn in_the_midst_of<T>(mut time: Duration, mut begin: impl FnMut(Duration) -> (Running, T)) -> (Ended, T) {
    loop {
        let (running, done) = begin(time);
        // The measuring began later than the process did.
        if running.started.elapsed() < time / 4 * 3 || time > PATIENCE / 4 {
            return (running.end(), done);
        }
        time *= 4;
    }
}

/// An address of this machine where nothing listens as long as this is held: its port is reserved, and no server is told it. A
/// client that takes a free port for its own end is not given that one either, so that it never meets itself there.
pub struct Nobody {
    pub address: SocketAddr,
    _reserved: Reserved,
}

impl Nobody {
    pub fn new() -> Nobody {
        let reserved = Reserved::new();
        Nobody { address: reserved.address(), _reserved: reserved }
    }
}

/// A TCP port of 127.0.0.1 that the system gives to no process that asks for any port, as long as this is held, while a server
/// that is told its number can listen there, also several times.
pub struct Reserved {
    /// The address, as `--server` takes it.
    pub name: String,
    /// Bound, and never listening.
    _holder: OwnedFd,
}

impl Reserved {
    pub fn new() -> Reserved {
        let flags = SocketFlags::CLOEXEC;
        let holder = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
            .expect("there are sockets");
        rustix::net::sockopt::set_socket_reuseaddr(&holder, true).expect("it is an option of every socket");
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        rustix::net::bind(&holder, &any).expect("a free port");
        let name = rustix::net::getsockname(&holder).expect("it is bound");
        let name = SocketAddr::try_from(name).expect("it is IPv4").to_string();
        Reserved { name, _holder: holder }
    }

    pub fn port(&self) -> u16 {
        self.address().port()
    }

    fn address(&self) -> SocketAddr {
        self.name.parse().expect("an address")
    }
}

/// A UDP socket of loopback at whose port no server listens over TCP as long as both are held. A run over UDP loads over TCP
/// where a server listens at the same number, so that a test must keep the servers of other tests away from there.
pub fn datagrams_alone() -> (UdpSocket, Reserved) {
    until("a port that is free for TCP and UDP", || {
        let reserved = Reserved::new();
        UdpSocket::bind(&reserved.name).ok().map(|socket| (socket, reserved))
    })
}

/// The status that a shell shows: that of the program, or 128 and the signal that ended it.
pub fn shell_status(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| 128 + signal)).expect("it ended by itself or by a signal")
}

/// A process that is killed when its guard is dropped.
pub struct Process(pub Child);

impl Process {
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Stops the process, and lets it go on after `pause`. Returns how long it stood still, at least and at most.
    pub fn pause(&self, pause: Duration) -> (f64, f64) {
        let before = Instant::now();
        self.stop();
        let stopped = Instant::now();
        thread::sleep(pause);
        let least = stopped.elapsed();
        self.go_on();
        (least.as_secs_f64(), before.elapsed().as_secs_f64())
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it runs");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Address where a server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Ipv4,
    Ipv6,
    Unix,
    /// IPv4, by TCP and UDP on the same port.
    Udp,
    /// IPv4, first with TLS and then without.
    Tls,
}

/// Whether this machine has IPv6; containers often do not.
pub fn has_ipv6() -> bool {
    let has = TcpListener::bind("[::1]:0").is_ok();
    if !has {
        eprintln!("there is no IPv6 here: the part of this test that needs it is left out");
    }
    has
}

/// A port of loopback that is free for TCP and for UDP.
fn free_port_twice() -> u16 {
    until("a port that is free for TCP and UDP", || {
        let listener = TcpListener::bind("127.0.0.1:0").ok()?;
        let address = listener.local_addr().ok()?;
        UdpSocket::bind(address).ok().map(|_| address.port())
    })
}

/// A memcached of its own.
pub struct Memcached {
    pub process: Process,
    /// Address as `--server` takes it.
    pub name: String,
    folder: TempDir,
}

impl Memcached {
    /// With one thread, so that what it counted is complete when it has answered.
    pub fn start() -> Memcached {
        Memcached::start_on(Place::Ipv4)
    }

    pub fn start_on(place: Place) -> Memcached {
        Memcached::start_with(place, &[])
    }

    /// That lets so many in.
    pub fn start_for(connections: u32) -> Memcached {
        Memcached::start_with(Place::Ipv4, &["-c", &connections.to_string()])
    }

    /// That keeps items in so many megabytes, and evicts what does not fit.
    pub fn start_of_megabytes(megabytes: u32) -> Memcached {
        Memcached::start_with(Place::Ipv4, &["-m", &megabytes.to_string()])
    }

    /// That keeps no CAS uniques.
    pub fn start_without_cas() -> Memcached {
        Memcached::start_with(Place::Ipv4, &["-C"])
    }

    /// Without the threads that move and remove items at times of their own.
    pub fn start_without_maintenance() -> Memcached {
        Memcached::start_with(Place::Ipv4, &["-o", "no_lru_maintainer,no_lru_crawler"])
    }

    /// With two doors: its name is that of a plain one, and the name beside it is that of one behind TLS, which shows
    /// this certificate.
    pub fn start_tls(cert: &str, key: &str) -> (Memcached, String) {
        let files = format!("ssl_chain_cert={cert},ssl_key={key}");
        let memcached = Memcached::start_with(Place::Tls, &["-Z", "-o", &files]);
        let ports = fs::read_to_string(memcached.folder.path().join("ports")).expect("it was there already");
        let secured = ports.split_whitespace().find(|word| word.parse::<u16>().is_ok()).expect("a port");
        let name = format!("127.0.0.1:{secured}");
        (memcached, name)
    }

    /// With SASL, and this account alone. It answers no client that has not logged in, and answers only in the binary
    /// protocol.
    pub fn start_sasl(user: &str, password: &str) -> Memcached {
        let folder = TempDir::new().expect("a temporary folder");
        let accounts = folder.path().join("accounts");
        let settings = [
            "mech_list: plain",
            "pwcheck_method: auxprop",
            "auxprop_plugin: sasldb",
            &format!("sasldb_path: {}", accounts.display()),
        ];
        fs::write(folder.path().join("memcached.conf"), settings.join("\n") + "\n").expect("it is writable");
        let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("this machine has a name");
        let mut command = Command::new("saslpasswd2");
        command.args(["-p", "-a", "memcached", "-c", "-u", host.trim(), "-f"]).arg(&accounts).arg(user);
        let mut process = command
            .stdin(Stdio::piped())
            .spawn()
            .expect("saslpasswd2 is installed (apt-get install sasl2-bin)");
        let mut stdin = process.stdin.take().expect("it is piped");
        stdin.write_all(password.as_bytes()).expect("it reads the password");
        drop(stdin);
        assert!(process.wait().expect("it ends").success(), "saslpasswd2 makes the account");
        Memcached::start_in(folder, Place::Ipv4, &["-S"]).expect("memcached takes its options")
    }

    /// With a file of users for the text and meta protocols, in which only this one stands.
    pub fn start_with_users(user: &str, password: &str) -> Memcached {
        let folder = TempDir::new().expect("a temporary folder");
        let users = folder.path().join("users");
        fs::write(&users, format!("{user}:{password}\n")).expect("it is writable");
        let file = users.to_str().expect("UTF-8").to_owned();
        Memcached::start_in(folder, Place::Ipv4, &["-Y", &file]).expect("memcached takes its options")
    }

    fn start_with(place: Place, options: &[&str]) -> Memcached {
        // The port for TCP and UDP may be taken by another process before the server has it; then another one is tried.
        let mut starts =
            (0..10).map(|_| Memcached::start_in(TempDir::new().expect("a temporary folder"), place, options));
        starts.find_map(|started| started).expect("memcached takes its options, and one of ten ports")
    }

    /// `None` when it ends before it listens.
    fn start_in(folder: TempDir, place: Place, options: &[&str]) -> Option<Memcached> {
        let ports = folder.path().join("ports");
        let socket = folder.path().join("socket");
        // setpriv lets the server end even when the test is killed. Root has to be told that root is meant.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "memcached", "-U", "0", "-t", "1", "-m", "512", "-c", "2048"]);
        command.args(options);
        if rustix::process::geteuid().is_root() {
            command.args(["-u", "root"]);
        }
        match place {
            Place::Ipv4 => command.args(["-l", "127.0.0.1", "-p", "-1"]),
            Place::Ipv6 => command.args(["-l", "::1", "-p", "-1"]),
            Place::Udp => {
                let port = free_port_twice().to_string();
                command.args(["-l", "127.0.0.1", "-p", &port, "-U", &port])
            }
            Place::Tls => command.args(["-l", "127.0.0.1,notls:127.0.0.1", "-p", "-1"]),
            Place::Unix => command.arg("-s").arg(&socket),
        };
        command.env("SASL_CONF_PATH", folder.path());
        command.env("MEMCACHED_PORT_FILENAME", &ports).stderr(Stdio::inherit());
        let mut process = Process(command.spawn().expect("setpriv and memcached are installed"));
        let port = || fs::read_to_string(&ports).ok()?.rsplit(' ').next()?.trim().parse::<u16>().ok();
        let name = || match place {
            Place::Ipv4 | Place::Udp | Place::Tls => Some(format!("127.0.0.1:{}", port()?)),
            Place::Ipv6 => Some(format!("[::1]:{}", port()?)),
            Place::Unix => {
                UnixStream::connect(&socket).ok()?;
                Some(socket.to_str().expect("UTF-8").to_owned())
            }
        };
        let name = until("memcached", || {
            let ended = process.0.try_wait().expect("it was started").is_some();
            if ended { Some(None) } else { name().map(Some) }
        })?;
        Some(Memcached { process, name, folder })
    }

    pub fn connect(&self) -> Talk {
        Talk::to(&self.name)
    }
}

/// A running `pummel serve` with a truth file.
pub struct Serve {
    pub process: Process,
    /// Address as `--server` takes it.
    pub name: String,
    folder: TempDir,
}

/// A line of the truth file about a request.
#[derive(Clone, Debug)]
pub struct TrueRequest {
    pub verb: String,
    /// Time that it really took; `None` where there was no reply.
    pub held_ns: Option<u64>,
}

/// A truth file.
pub struct Truth {
    pub requests: Vec<TrueRequest>,
    /// Keys by kind of fault.
    pub faults: Vec<(String, String)>,
}

impl Serve {
    pub fn start(args: &str) -> Serve {
        Serve::start_at("127.0.0.1:0", args)
    }

    /// At this address.
    pub fn start_at(address: &str, args: &str) -> Serve {
        let folder = TempDir::new().expect("a temporary folder");
        let mut child = Command::new(env!("CARGO_BIN_EXE_pummel"))
            .args(["serve", "--listen", address, "--max-seconds", SERVE_SECONDS_MAX, "--truth"])
            .arg(folder.path().join("truth"))
            .args(args.split_whitespace())
            .stdout(Stdio::piped())
            .spawn()
            .expect("pummel starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("it is piped");
        let process = Process(child);
        BufReader::new(out).read_line(&mut line).expect("it says where it listens");
        let name = line.trim().strip_prefix("listening on ").expect("the words of pummel serve").to_owned();
        Serve { process, name, folder }
    }

    pub fn connect(&self) -> Talk {
        Talk::to(&self.name)
    }

    /// Ends the server and reads what it did.
    pub fn truth(mut self) -> Truth {
        self.process.interrupt();
        let status = self.process.0.wait().expect("it ends");
        assert!(status.success(), "pummel serve ended with {status}");
        let text = fs::read_to_string(self.folder.path().join("truth")).expect("the truth is written");
        Truth::of(&text)
    }
}

impl Truth {
    fn of(text: &str) -> Truth {
        let mut truth = Truth { requests: Vec::new(), faults: Vec::new() };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            match words[0] {
                "request" => truth
                    .requests
                    .push(TrueRequest { verb: words[3].to_owned(), held_ns: words[6].parse().ok() }),
                "fault" => {
                    let key = words.iter().find_map(|word| word.strip_prefix("key=")).unwrap_or_default();
                    truth.faults.push((words[1].to_owned(), key.to_owned()));
                }
                other => panic!("the truth file has a line of an unknown kind: {other}"),
            }
        }
        truth
    }

    /// Keys that a fault of this kind was about, with repetitions.
    pub fn keys(&self, kind: &str) -> Vec<&str> {
        self.faults.iter().filter(|(fault, _)| fault == kind).map(|(_, key)| key.as_str()).collect()
    }

    /// Times for which replies to this verb were held in truth, in microseconds, in order of size.
    pub fn held_us(&self, verb: &str) -> Vec<f64> {
        let held = self.requests.iter().filter(|request| request.verb == verb).filter_map(|one| one.held_ns);
        let mut held: Vec<f64> = held.map(|ns| ns as f64 / 1000.0).collect();
        held.sort_by(f64::total_cmp);
        held
    }
}

/// The value at a quantile of values in order of size: the least that at least this share does not exceed.
pub fn quantile(sorted: &[f64], quantile: f64) -> f64 {
    let rank = (quantile * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted[rank - 1]
}

trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// A second client of a server, which knows nothing of pummel.
pub struct Talk(BufReader<Box<dyn Stream>>);

/// Counts of a server, and the length of the reply that said so.
pub struct Stats {
    numbers: BTreeMap<String, u64>,
    pub reply_bytes: u64,
}

impl Stats {
    #[track_caller]
    pub fn get(&self, name: &str) -> u64 {
        *self.numbers.get(name).unwrap_or_else(|| panic!("the server has no {name}"))
    }
}

impl Talk {
    fn to(name: &str) -> Talk {
        let stream: Box<dyn Stream> = if name.starts_with('/') {
            let stream = UnixStream::connect(name).expect("it listens");
            stream.set_read_timeout(Some(PATIENCE)).expect("a time above 0");
            Box::new(stream)
        } else {
            let stream = TcpStream::connect(name).expect("it listens");
            stream.set_read_timeout(Some(PATIENCE)).expect("a time above 0");
            stream.set_nodelay(true).expect("it is a TCP socket");
            Box::new(stream)
        };
        Talk(BufReader::new(stream))
    }

    fn say(&mut self, words: &[u8]) {
        self.0.get_mut().write_all(words).expect("it listens");
    }

    /// Logs in with SASL's PLAIN and asks for the counters, in the binary protocol.
    pub fn sasl_stats(&mut self, user: &str, password: &str) -> Stats {
        const AUTH: u8 = 0x21;
        const STAT: u8 = 0x10;
        let (status, words) = self.exchange(AUTH, b"PLAIN", format!("\0{user}\0{password}").as_bytes());
        assert_eq!(status, 0, "{}", String::from_utf8_lossy(&words[1]));
        let mut stats = Stats { numbers: BTreeMap::new(), reply_bytes: 0 };
        let (mut name, mut value) = (self.exchange(STAT, b"", b"").1).into();
        while !name.is_empty() {
            if let Ok(number) = String::from_utf8_lossy(&value).parse() {
                stats.numbers.insert(String::from_utf8_lossy(&name).into_owned(), number);
            }
            (name, value) = self.packet().1.into();
        }
        stats
    }

    /// Sends a request of the binary protocol and reads one reply.
    fn exchange(&mut self, opcode: u8, key: &[u8], value: &[u8]) -> (u16, [Vec<u8>; 2]) {
        let mut head = [0; 24];
        (head[0], head[1], head[3], head[11]) =
            (0x80, opcode, key.len() as u8, (key.len() + value.len()) as u8);
        self.say(&[&head[..], key, value].concat());
        self.packet()
    }

    /// Reads a reply of the binary protocol: its status, its key and its value.
    fn packet(&mut self) -> (u16, [Vec<u8>; 2]) {
        let mut head = [0; 24];
        self.0.read_exact(&mut head).expect("it answers");
        let mut body = vec![0; u32::from_be_bytes([head[8], head[9], head[10], head[11]]) as usize];
        self.0.read_exact(&mut body).expect("the body follows");
        let value = body.split_off(usize::from(u16::from_be_bytes([head[2], head[3]])));
        (u16::from_be_bytes([head[6], head[7]]), [body, value])
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("it answers");
        assert!(line.ends_with("\r\n"), "half a line: {line:?}");
        line
    }

    pub fn stats(&mut self) -> Stats {
        self.say(b"stats\r\n");
        self.read_stats()
    }

    /// Logs in at a server with a file of users.
    pub fn log_in(&mut self, user: &str, password: &str) {
        self.store("auth", format!("{user} {password}").as_bytes());
    }

    fn read_stats(&mut self) -> Stats {
        let mut stats = Stats { numbers: BTreeMap::new(), reply_bytes: 0 };
        loop {
            let line = self.line();
            stats.reply_bytes += line.len() as u64;
            let mut words = line.split_whitespace().skip(1);
            let (Some(name), Some(value)) = (words.next(), words.next()) else { return stats };
            if let Ok(number) = value.parse() {
                stats.numbers.insert(name.to_owned(), number);
            }
        }
    }

    /// All keys that memcached has, sorted. Its own housekeeping may be in the way, for a moment.
    pub fn keys(&mut self) -> Vec<String> {
        until("a list of keys", || self.list_keys())
    }

    fn list_keys(&mut self) -> Option<Vec<String>> {
        // Not `all`: it goes from list to list while memcached moves items between them.
        self.say(b"lru_crawler metadump hash\r\n");
        let mut keys = Vec::new();
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("it answers");
            match line.strip_prefix("key=") {
                Some(rest) => keys.push(rest.split(' ').next().expect("a first word").to_owned()),
                None if line.starts_with("BUSY") => return None,
                None => {
                    assert_eq!(line.trim_end(), "END");
                    keys.sort();
                    return Some(keys);
                }
            }
        }
    }

    pub fn value(&mut self, key: &str) -> Vec<u8> {
        self.say(format!("get {key}\r\n").as_bytes());
        let line = self.line();
        let len = line.split_whitespace().nth(3).unwrap_or_else(|| panic!("{key} is there: {line}"));
        let mut value = vec![0; len.parse::<usize>().expect("a length") + 2];
        self.0.read_exact(&mut value).expect("the value follows");
        value.truncate(value.len() - 2);
        assert_eq!(self.line(), "END\r\n");
        value
    }

    /// The seconds that a key has to live; `None` if it does not expire.
    pub fn ttl_s(&mut self, key: &str) -> Option<u64> {
        self.say(format!("mg {key} t\r\n").as_bytes());
        let line = self.line();
        let left = line.trim_end().strip_prefix("HD t").unwrap_or_else(|| panic!("{key} is there: {line}"));
        left.parse().ok()
    }

    pub fn store(&mut self, key: &str, value: &[u8]) {
        self.say(format!("set {key} 0 0 {}\r\n", value.len()).as_bytes());
        self.say(value);
        self.say(b"\r\n");
        assert_eq!(self.line(), "STORED\r\n");
    }
}

/// A pummel that runs, in a folder of its own.
pub struct Running {
    pub process: Process,
    /// A moment just before the process was started.
    pub started: Instant,
    folder: TempDir,
    text: Option<JoinHandle<String>>,
    errors: Receiver<String>,
    said: Vec<String>,
}

/// The words of a report in one line, whichever lines they are on.
pub fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// A pummel that has ended.
pub struct Ended {
    pub status: i32,
    /// Text on standard output.
    pub text: String,
    /// Text on standard error, but for its doubts.
    pub errors: String,
    /// The lines that say that the times may not be believed.
    pub doubts: Vec<String>,
    folder: TempDir,
}

/// The kernel interfaces that this machine gives, as `--backend` has them; with a word of why where one is missing.
pub fn backends() -> &'static [&'static str] {
    match Uring::why_unusable() {
        None => &["epoll", "uring"],
        Some(why) => {
            eprintln!("io_uring is not tested: {why}");
            &["epoll"]
        }
    }
}

/// Runs `pummel` with these words, and with the JSON result in a file.
#[track_caller]
pub fn pummel(words: &str) -> Ended {
    Running::start(words).end()
}

/// The options that let a command line wait for its server for long, where it says nothing of that itself: a test that is about
/// something else must not end because a busy machine was slow once.
pub fn patience_of(words: &[&str]) -> &'static [&'static str] {
    let sends = words
        .first()
        .is_some_and(|word| ["run", "load", "search", "scan", "curve", "ab", "suite"].contains(word));
    let says_all = ["--timeout", "--plan"].iter().any(|option| words.contains(option));
    if sends && !says_all { &["--timeout", "10s"] } else { &[] }
}

impl Running {
    /// Files that are named in `words` without a folder are written to the one that [`Ended::file`] reads from.
    pub fn start(words: &str) -> Running {
        Running::start_with(words, None)
    }

    /// `servers` stands in the environment.
    pub fn start_with(words: &str, servers: Option<&str>) -> Running {
        Running::start_in(&words.split_whitespace().collect::<Vec<&str>>(), servers)
    }

    /// Starts pummel with these words, which may have blanks in them.
    pub fn start_words(words: &[&str]) -> Running {
        Running::start_in(words, None)
    }

    /// Another program that starts pummel, with all its words.
    pub fn start_program(program: &str, words: &[&str]) -> Running {
        Running::start_as(Command::new(program), words, None)
    }

    fn start_in(words: &[&str], servers: Option<&str>) -> Running {
        Running::start_as(Command::new(env!("CARGO_BIN_EXE_pummel")), words, servers)
    }

    /// Starts a command with these words, and with the environment that the command has.
    pub fn start_as(mut command: Command, words: &[&str], servers: Option<&str>) -> Running {
        let folder = TempDir::new().expect("a temporary folder");
        command.env_remove("MEMCACHED_SERVERS");
        if let Some(servers) = servers {
            command.env("MEMCACHED_SERVERS", servers);
        }
        command.args(words).args(patience_of(words));
        // A server that a test has scripted is not asked for its protocol first.
        let can_ask = words.first().is_some_and(|word| ["run", "load", "search", "scan"].contains(word));
        if can_ask && !["--protocol", "--plan"].iter().any(|option| words.contains(option)) {
            command.args(["--protocol", "text"]);
        }
        let started = Instant::now();
        let mut child = command
            .args(["--json", "result.json"])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("pummel starts");
        let out = child.stdout.take().expect("it is piped");
        let err = child.stderr.take().expect("it is piped");
        let (say, errors) = channel();
        thread::spawn(move || {
            for line in BufReader::new(err).lines().map_while(Result::ok) {
                if say.send(line).is_err() {
                    return;
                }
            }
        });
        let text = thread::spawn(move || all_of(out));
        Running { process: Process(child), started, folder, text: Some(text), errors, said: Vec::new() }
    }

    /// A file of the run.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Waits for the line of progress that ends the first interval of the measured phase.
    #[track_caller]
    pub fn wait_for_progress(&mut self) {
        self.wait_for("req/s");
    }

    /// Waits for a line on standard error that has these words.
    #[track_caller]
    pub fn wait_for(&mut self, words: &str) {
        loop {
            let line = self.errors.recv_timeout(PATIENCE).unwrap_or_else(|why| {
                panic!("no {words:?} ({why}): {:?}", self.said);
            });
            let found = line.contains(words);
            self.said.push(line);
            if found {
                return;
            }
        }
    }

    pub fn has_ended(&mut self) -> bool {
        self.process.0.try_wait().expect("it was started").is_some()
    }

    /// Ends it without a chance to clean up.
    pub fn kill(self) {
        drop(self.process);
    }

    /// Waits for its end.
    #[track_caller]
    pub fn end(self) -> Ended {
        self.end_within(PATIENCE)
    }

    /// Waits for its end, for so long.
    #[track_caller]
    pub fn end_within(mut self, patience: Duration) -> Ended {
        let end = Instant::now() + patience;
        while let Ok(line) = self.errors.recv_timeout(end.saturating_duration_since(Instant::now())) {
            self.said.push(line);
        }
        assert!(Instant::now() < end, "pummel did not end in {patience:?}: {:?}", self.said);
        // It has closed its standard error, so it ends, and standard output has come to its end too.
        let status = shell_status(self.process.0.wait().expect("it was started"));
        let text = self.text.take().expect("taken once").join().expect("it only reads");
        // How late the generator was depends on what else the machine does.
        let (doubts, said): (Vec<String>, Vec<String>) =
            self.said.into_iter().partition(|line| is_doubt(line));
        let errors = said.join("\n");
        assert_agrees_with_itself(&self.folder.path().join("result.json"));
        Ended { status, text, errors, doubts, folder: self.folder }
    }
}

/// Whether a line says that a figure of a report is partly the generator's own.
fn is_doubt(line: &str) -> bool {
    [
        "the times are partly the generator's own",
        "the rate was limited by pummel itself",
        "added by pummel itself",
    ]
    .iter()
    .any(|words| line.contains(words))
}

/// Fails where the accounts of a result do not agree, whatever a test reads of it. A run that was refused wrote none.
#[track_caller]
fn assert_agrees_with_itself(file: &Path) {
    let Some(result) = fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()) else {
        return;
    };
    let wrongs = littles_law::wrongs(&result);
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
}

fn all_of(mut out: ChildStdout) -> String {
    let mut text = String::new();
    out.read_to_string(&mut text).expect("pummel writes UTF-8");
    text
}

/// Fails unless a result has the form of the schema that the program prints.
#[track_caller]
pub fn has_its_schema(result: &Value) {
    if result["plan"].is_object() {
        fits(SchemaName::Plan, &result["plan"]);
    }
    let name = match result["command"].as_str() {
        None => SchemaName::Result,
        Some("search" | "scan" | "curve") => SchemaName::Curve,
        Some("repeat") => SchemaName::Repeat,
        Some("ab" | "compare") => SchemaName::Comparison,
        Some("suite") => SchemaName::Suite,
        Some(other) => panic!("no schema of what `pummel {other}` writes"),
    };
    for run in result["runs"].as_array().into_iter().flatten().filter(|_| name == SchemaName::Suite) {
        run["results"].as_array().into_iter().flatten().for_each(has_its_schema);
    }
    for side in result["sides"].as_array().into_iter().flatten() {
        fits(SchemaName::Plan, &side["plan"]);
    }
    fits(name, result);
}

/// Fails unless a value has the form of a schema.
#[track_caller]
pub fn fits(name: SchemaName, value: &Value) {
    let schema = serde_json::from_str(name.text()).expect("a schema is JSON");
    let wrongs = schema::wrongs(&schema, value);
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
}

/// The JSON of a file, which has its schema and agrees with itself.
#[track_caller]
pub fn value_of(text: &str) -> Value {
    let value: Value = serde_json::from_str(text).expect("the result is JSON");
    has_its_schema(&value);
    let wrongs = littles_law::wrongs(&value);
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
    value
}

/// A line of `--samples`; times are nanoseconds since the beginning of the measured phase.
#[derive(Clone, Debug)]
pub struct Sample {
    pub due: u64,
    pub ready: u64,
    pub sent: Option<u64>,
    pub arrived: Option<u64>,
    pub read: Option<u64>,
    pub op: String,
    pub outcome: String,
    pub key: u64,
    pub client: u64,
}

impl Ended {
    /// Fails unless it ended with this status.
    #[track_caller]
    pub fn expect(self, status: i32) -> Ended {
        assert_eq!(self.status, status, "{}\n{}", self.errors, self.text);
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        Path::new(self.folder.path()).join(name)
    }

    #[track_caller]
    pub fn file(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}\n{}", self.errors))
    }

    #[track_caller]
    pub fn json(&self) -> Json {
        let text = self.file("result.json");
        let value = value_of(&text);
        let is_of_one_run = value.get("plan").is_some() && value.get("command").is_none();
        if let Some(exit) = value.get("exit").filter(|_| is_of_one_run) {
            assert_eq!(*exit, self.status, "{}", self.errors);
        }
        if self.text.starts_with("pummel ") && is_of_one_run {
            let document = Document::read(text.as_bytes()).expect("the result of a run");
            let details = [Detail::Line, Detail::Screen, Detail::Times, Detail::Everything];
            let is_shown =
                details.iter().any(|detail| run(&document, *detail, Paper::default()) == self.text);
            let screen = || run(&document, Detail::Screen, Paper::default());
            assert!(
                is_shown,
                "what is shown of the result is not what the run printed:\n{}\n{}",
                self.text,
                screen()
            );
        }
        Json(value)
    }

    /// The requests in the file `samples`.
    #[track_caller]
    pub fn samples(&self) -> Vec<Sample> {
        let text = self.file("samples");
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("due,ready,sent,arrived,read,op,outcome,key,client,group"));
        lines.map(Sample::of).collect()
    }
}

impl Sample {
    fn of(line: &str) -> Sample {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |at: usize| cells[at].parse::<u64>().expect("a number");
        let time = |at: usize| (!cells[at].is_empty()).then(|| number(at));
        Sample {
            due: number(0),
            ready: number(1),
            sent: time(2),
            arrived: time(3),
            read: time(4),
            op: cells[5].to_owned(),
            outcome: cells[6].to_owned(),
            key: number(7),
            client: number(8),
        }
    }

    /// arrived - due, in seconds; `None` without an answer.
    pub fn response_s(&self) -> Option<f64> {
        Some((self.arrived? as f64 - self.due as f64) / 1e9)
    }
}

/// A JSON result, or a part of it.
#[derive(Clone, Debug)]
pub struct Json(pub Value);

impl Json {
    /// The value at a path such as `totals/response_us/p99` or `evidence/servers/0`; null where there is none.
    pub fn at(&self, path: &str) -> &Value {
        path.split('/').fold(&self.0, |value, name| match name.parse::<usize>() {
            Ok(place) if value.is_array() => &value[place],
            _ => &value[name],
        })
    }

    #[track_caller]
    pub fn number(&self, path: &str) -> f64 {
        self.at(path).as_f64().unwrap_or_else(|| panic!("{path} is {}", self.at(path)))
    }

    #[track_caller]
    pub fn count(&self, path: &str) -> u64 {
        self.at(path).as_u64().unwrap_or_else(|| panic!("{path} is {}", self.at(path)))
    }

    /// Like [`Json::count`], and 0 where there is nothing.
    pub fn count_or_none(&self, path: &str) -> u64 {
        self.at(path).as_u64().unwrap_or(0)
    }

    #[track_caller]
    /// `None` where it is absent or null.
    pub fn text_or_none(&self, path: &str) -> Option<&str> {
        self.at(path).as_str()
    }

    pub fn text(&self, path: &str) -> &str {
        self.text_or_none(path).unwrap_or_else(|| panic!("{path} is {}", self.at(path)))
    }
}
