//! Servers that are unkind, runs against them, and what must be true of every result.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Running, Serve, flat, until};

/// Time beyond what was asked that a run may take before it is said to hang. A busy machine starts and ends programs slowly;
/// what a run would hang on here lasts for longer, or for ever.
pub const OVER: Duration = Duration::from_secs(10);

/// The longest run that is tried to have something happen in its midst.
const RUN_MAX: Duration = Duration::from_secs(20);

/// The program that is tested.
pub const PUMMEL: &str = env!("CARGO_BIN_EXE_pummel");

/// A server at an address that no other has, so that no process takes its port when it is gone.
pub fn serve_alone() -> Serve {
    static STARTED: AtomicU8 = AtomicU8::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    Serve::start_at(&format!("127.0.7.{number}:0"), "")
}

impl Serve {
    /// Ends it at once, so that its port is free again.
    pub fn kill(&mut self) {
        self.process.0.kill().expect("it runs");
        self.process.0.wait().expect("it is our child");
    }

    /// Waits until a counter of the server is as great as this.
    pub fn wait_for(&self, counter: &str, least: u64) {
        until(counter, || (self.connect().stats().get(counter) >= least).then_some(()));
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

/// Starts `pummel run` with these words against a server, with the usual timeout.
pub fn start(server: &str, words: &str) -> Running {
    let timeout = if words.contains("--timeout") { "" } else { "--timeout 1s" };
    Running::start(&format!("run -s {server} {timeout} {words}"))
}

/// Runs `pummel run` with these words against a server to its end.
pub fn run(server: &str, words: &str) -> Ended {
    end(start(server, words))
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
pub fn upset(mut time: Duration, moment: Moment, words: &str, deed: impl Fn(&mut Serve)) -> Upset {
    loop {
        let mut server = serve_alone();
        let millis = time.as_millis();
        let times = match moment {
            Moment::WarmUp => format!("-t 1s --warmup {millis}ms"),
            Moment::Measuring => format!("-t {millis}ms --interval 50ms"),
        };
        let running = start(&server.name, &format!("{times} --records 50 {words}"));
        match moment {
            Moment::WarmUp => server.wait_for("cmd_get", 1),
            Moment::Measuring => wait_until_measuring(&running),
        }
        deed(&mut server);
        // This part of the run began later than the process did.
        if running.started.elapsed() < time / 4 * 3 || time > RUN_MAX {
            return Upset { time, ended: end(running), address: server.name.clone() };
        }
        time *= 4;
    }
}

/// The result in a file; `None` where there is none.
fn result_of(path: &std::path::Path) -> Option<Value> {
    Some(serde_json::from_slice(&fs::read(path).ok()?).expect("a valid result at every moment"))
}

/// Waits until something has been measured.
pub fn wait_until_measuring(running: &Running) {
    let completed = || result_of(&running.path("result.json"))?["totals"]["completed"].as_u64();
    until("a measured request", || completed().filter(|completed| *completed > 0));
}

/// Waits for the end of a run, and checks what is true of every run.
pub fn end(running: Running) -> Ended {
    let started = running.started;
    let ended = running.end();
    let took = started.elapsed();
    let result = result_of(&ended.path("result.json"));
    let err = format!("{}\n{}", ended.doubts.join("\n"), ended.errors);
    let ended = Ended { status: ended.status, took, result, out: ended.text, err };
    ended.check();
    ended
}

/// A run that is over.
#[derive(Debug)]
pub struct Ended {
    pub status: i32,
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
        assert_eq!(self.status, 1, "{self:?}");
        assert!(self.reason().contains(reason), "{:?} is not {reason:?}: {self:?}", self.reason());
        // The report breaks lines.
        let (said, why) = (flat(&format!("{} {}", self.out, self.err)), flat(self.reason()));
        // A run that could not begin has no report: standard error has its reason, in one sentence where many connections had it.
        let is_said = said.contains(&why) || self.out.is_empty() && self.err.contains("error: ");
        assert!(is_said, "nothing says why: {self:?}");
        self.assert_in_time(time);
    }

    pub fn assert_complete(&self, time: Duration) {
        assert_eq!(self.status, 0, "{self:?}");
        self.assert_in_time(time);
    }

    pub fn assert_in_time(&self, time: Duration) {
        assert!(self.took < time + OVER, "it took too long: {self:?}");
    }

    /// Asserts what is true of every run that got as far as a result: status and reason fit, and every request is accounted for.
    fn check(&self) {
        assert!(!self.err.contains("panicked"), "{self:?}");
        let Some(result) = &self.result else { return };
        let status = result["status"].as_str().expect("a status");
        let fitting = match self.status {
            0 | 3 => "complete",
            129.. => "interrupted",
            _ => "partial",
        };
        assert_eq!(status, fitting, "{self:?}");
        assert_eq!(result["reason"].is_null(), status == "complete", "{self:?}");
        let count = |value: &Value, what: &str| value[what].as_u64().expect("a count");
        let totals = &result["totals"];
        let parts = ["completed", "errors", "unfinished", "unsent"].map(|what| count(totals, what));
        assert_eq!(count(totals, "requests"), parts.iter().sum::<u64>(), "{totals}: {self:?}");
        let mut all = 0;
        for ops in [&result["whole_run"]["ops"], &result["ops"]] {
            all = 0;
            for (verb, op) in ops.as_object().expect("ops") {
                let errors: u64 =
                    op["errors"].as_object().expect("errors").values().filter_map(Value::as_u64).sum();
                let parts: u64 =
                    ["completed", "unfinished", "unsent"].map(|what| count(op, what)).iter().sum();
                assert_eq!(count(op, "requests"), parts + errors, "{verb}: {self:?}");
                all += count(op, "requests");
            }
        }
        assert_eq!(all, count(totals, "requests"), "{self:?}");
    }
}
