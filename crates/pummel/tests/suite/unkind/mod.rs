//! Servers that are unkind, runs against them, and what must be true of every result.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{self, flat};

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time beyond what was asked that a run may take before it is said to hang. A busy machine starts and ends programs slowly;
/// what a run would hang on here lasts for longer, or for ever.
pub const OVER: Duration = Duration::from_secs(10);

/// The longest run that is tried to have something happen in its midst.
const RUN_MAX: Duration = Duration::from_secs(20);

/// Time between two looks at a condition.
const LOOK: Duration = Duration::from_millis(5);

/// The program that is tested.
pub const PUMMEL: &str = env!("CARGO_BIN_EXE_pummel");

/// Waits until something is true.
pub fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_true() {
        assert!(started.elapsed() < PATIENCE, "waited in vain until {what}");
        thread::sleep(LOOK);
    }
}

/// A running `pummel serve`. Killed with the value.
pub struct Victim {
    process: Child,
    pub address: String,
}

impl Victim {
    pub fn start(words: &str) -> Victim {
        Victim::start_at("127.0.0.1:0", words)
    }

    /// At an address that no other has, so that no process takes its port when it is gone.
    pub fn start_alone() -> Victim {
        static STARTED: AtomicU8 = AtomicU8::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        Victim::start_at(&format!("127.0.7.{number}:0"), "")
    }

    pub fn start_at(place: &str, words: &str) -> Victim {
        let mut process = Command::new(PUMMEL)
            .args(["serve", "--max-seconds", "300", "--listen", place])
            .args(words.split_whitespace())
            .stdout(Stdio::piped())
            .spawn()
            .expect("pummel starts");
        let mut line = String::new();
        let out = process.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut line).expect("it says where it listens");
        let address = line.trim().strip_prefix("listening on ").expect("the first words").to_owned();
        Victim { process, address }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it runs");
    }

    /// Ends it at once, so that its port is free again.
    pub fn kill(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it is our child");
    }

    /// One of the counters that memcached calls statistics.
    pub fn counter(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
        stream.write_all(b"stats\r\n").expect("it reads");
        for line in BufReader::new(stream).lines() {
            let line = line.expect("it answers");
            if let Some(value) = line.strip_prefix(&format!("STAT {name} ")) {
                return value.parse().expect("a number");
            }
            assert_ne!(line, "END", "no counter is called {name}");
        }
        panic!("the statistics end too early");
    }

    pub fn wait_for(&self, counter: &str, least: u64) {
        wait_until(counter, || self.counter(counter) >= least);
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Treatment of a connection by a server.
pub type Host = fn(TcpStream);

/// A listener that lets connections in and treats each as `host` says, on threads that end with the test process.
pub fn peer(host: Host) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || host(stream));
        }
    });
    address
}

/// Says something after the first request, and then listens until the client is gone.
pub fn say(mut stream: TcpStream, words: &[u8]) {
    let mut heard = [0; 4096];
    // Errors mean that the client has gone, which it may.
    if stream.read(&mut heard).is_ok() && stream.write_all(words).is_ok() {
        while matches!(stream.read(&mut heard), Ok(1..)) {}
    }
}

/// Says something again and again.
pub fn say_for_ever(mut stream: TcpStream, words: &[u8]) {
    let mut heard = [0; 4096];
    if stream.read(&mut heard).is_ok() {
        while stream.write_all(words).is_ok() {}
    }
}

/// An address of this machine where nothing listens as long as this is held, written out.
pub struct Nobody {
    pub address: String,
    _held: common::Nobody,
}

impl Nobody {
    pub fn new() -> Nobody {
        let held = common::Nobody::new();
        Nobody { address: held.address.to_string(), _held: held }
    }
}

/// A run under way.
pub struct Running {
    pub process: Child,
    folder: TempDir,
    /// A moment just before the process was started.
    pub started: Instant,
    words: String,
}

/// Starts `pummel run` with these words against a server.
pub fn start(server: &str, words: &str) -> Running {
    let folder = TempDir::new().expect("a temporary folder");
    let started = Instant::now();
    let process = Command::new(PUMMEL)
        // Its server is scripted from the first connection on, and is not asked for its protocol.
        .args(["run", "--protocol", "text", "-s", server, "--json"])
        .arg(folder.path().join("r.json"))
        .args(words.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pummel starts");
    Running { process, folder, started, words: words.to_owned() }
}

/// Runs `pummel run` with these words against a server to its end.
pub fn run(server: &str, words: &str) -> Ended {
    start(server, words).end()
}

/// Part of a run in which something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// In the warm-up before a measured second.
    WarmUp,
    /// While it is measured.
    Measuring,
}

/// A run in whose midst something happened to its server.
pub struct Upset {
    /// Length that the part of the run was to have in which it happened.
    pub time: Duration,
    pub ended: Ended,
    /// Of the server.
    pub address: String,
}

/// Runs against a server of its own, and does something to it at this moment of the run. That part of the run lasts for
/// `time`; on a machine so busy that the deed was not done before its last quarter, it is tried again with more.
pub fn upset(mut time: Duration, moment: Moment, words: &str, deed: impl Fn(&Running, &mut Victim)) -> Upset {
    loop {
        let mut victim = Victim::start_alone();
        let millis = time.as_millis();
        let times = match moment {
            Moment::WarmUp => format!("-t 1s --warmup {millis}ms"),
            Moment::Measuring => format!("-t {millis}ms --interval 50ms"),
        };
        let running = start(&victim.address, &format!("{times} --records 50 {words}"));
        match moment {
            Moment::WarmUp => victim.wait_for("cmd_get", 1),
            Moment::Measuring => running.wait_until_measuring(),
        }
        deed(&running, &mut victim);
        // This part of the run began later than the process did.
        if running.started.elapsed() < time / 4 * 3 || time > RUN_MAX {
            return Upset { time, ended: running.end(), address: victim.address.clone() };
        }
        time *= 4;
    }
}

impl Running {
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it runs");
    }

    /// The result that it has written so far.
    pub fn so_far(&self) -> Option<Value> {
        let bytes = fs::read(self.folder.path().join("r.json")).ok()?;
        Some(serde_json::from_slice(&bytes).expect("a valid result at every moment"))
    }

    /// Waits until something has been measured.
    pub fn wait_until_measuring(&self) {
        wait_until("something is measured", || {
            self.so_far().is_some_and(|result| result["totals"]["completed"].as_u64() > Some(0))
        });
    }

    /// Waits for its end, and checks what is true of every run.
    pub fn end(mut self) -> Ended {
        let name = self.words.clone();
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.process.try_wait().expect("it is our child") {
                break status;
            }
            if started.elapsed() > PATIENCE {
                self.process.kill().expect("it runs");
                panic!("{name}: it does not end");
            }
            thread::sleep(LOOK);
        };
        let took = self.started.elapsed();
        let result = self.so_far();
        let read = |pipe: Option<&mut dyn Read>| {
            let mut text = String::new();
            pipe.expect("it is piped").read_to_string(&mut text).expect("UTF-8");
            text
        };
        let out = read(self.process.stdout.as_mut().map(|pipe| pipe as &mut dyn Read));
        let err = read(self.process.stderr.as_mut().map(|pipe| pipe as &mut dyn Read));
        let ended = Ended {
            name,
            status: status.code().or(status.signal().map(|signal| 128 + signal)),
            took,
            result,
            out,
            err,
        };
        ended.check();
        ended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A run that is over.
#[derive(Debug)]
pub struct Ended {
    name: String,
    pub status: Option<i32>,
    pub took: Duration,
    pub result: Option<Value>,
    pub out: String,
    pub err: String,
}

impl Ended {
    pub fn number(&self, path: &str) -> u64 {
        let result = self.result.as_ref().unwrap_or_else(|| panic!("no result: {self:?}"));
        result.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {path}: {self:?}"))
    }

    pub fn errors(&self, verb: &str, kind: &str) -> u64 {
        self.number(&format!("/ops/{verb}/errors/{kind}"))
    }

    pub fn reason(&self) -> &str {
        let result = self.result.as_ref().unwrap_or_else(|| panic!("no result: {self:?}"));
        result["reason"].as_str().unwrap_or("")
    }

    /// Asserts that it ended in time, as partial, and says why.
    pub fn assert_partial(&self, time: Duration, reason: &str) {
        assert_eq!(self.status, Some(1), "{self:?}");
        assert!(self.reason().contains(reason), "{}: {:?} is not {reason:?}", self.name, self.reason());
        // The report breaks lines.
        let (said, why) = (flat(&format!("{} {}", self.out, self.err)), flat(self.reason()));
        // A run that could not begin has no report: standard error has its reason, in one sentence where many connections had it.
        let is_said = said.contains(&why) || self.out.is_empty() && self.err.contains("error: ");
        assert!(is_said, "{}: nothing says why: {} {}", self.name, self.out, self.err);
        self.assert_in_time(time);
    }

    pub fn assert_complete(&self, time: Duration) {
        assert_eq!(self.status, Some(0), "{self:?}");
        self.assert_in_time(time);
    }

    pub fn assert_in_time(&self, time: Duration) {
        assert!(self.took < time + OVER, "{} took {:?}", self.name, self.took);
    }

    /// Asserts what is true of every run that got as far as a result: status and reason fit, and every request is accounted for.
    fn check(&self) {
        let name = &self.name;
        assert!(!self.err.contains("panicked"), "{name}: {}", self.err);
        let Some(result) = &self.result else { return };
        let status = result["status"].as_str().expect("a status");
        let fitting = match self.status {
            Some(0 | 3) => "complete",
            Some(129..) => "interrupted",
            _ => "partial",
        };
        assert_eq!(status, fitting, "{name}: {:?} {}", self.status, self.err);
        assert_eq!(result["reason"].is_null(), status == "complete", "{name}: {}", result["reason"]);
        let count = |value: &Value, what: &str| value[what].as_u64().expect("a count");
        let totals = &result["totals"];
        let parts = ["completed", "errors", "unfinished", "unsent"].map(|what| count(totals, what));
        assert_eq!(count(totals, "requests"), parts.iter().sum::<u64>(), "{name}: {totals}");
        let mut all = 0;
        for ops in [&result["whole_run"]["ops"], &result["ops"]] {
            all = 0;
            for (verb, op) in ops.as_object().expect("ops") {
                let errors: u64 =
                    op["errors"].as_object().expect("errors").values().filter_map(Value::as_u64).sum();
                let parts: u64 =
                    ["completed", "unfinished", "unsent"].map(|what| count(op, what)).iter().sum();
                assert_eq!(count(op, "requests"), parts + errors, "{name}: {verb}");
                all += count(op, "requests");
            }
        }
        assert_eq!(all, count(totals, "requests"), "{name}");
    }
}
