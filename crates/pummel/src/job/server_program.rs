//! Servers that a series of runs starts or restarts: waited for before a run, and ended after it.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pummel_engine::sys;
use pummel_fronts::job::UsageError;
use pummel_logic::plan::{Plan, Transport};
use pummel_logic::secrets::{masked_text, masked_words};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::job::runner::NotRun;

/// How long a server may take until it accepts connections.
const START_LIMIT: Duration = Duration::from_secs(30);

/// How long the address of a server may go on to answer after the server has ended.
const FREE_LIMIT: Duration = Duration::from_secs(5);

/// How long a server may take to end after SIGTERM.
const END_LIMIT: Duration = Duration::from_secs(5);

/// How long the command of `--restart` may take.
const RESTART_LIMIT: Duration = Duration::from_secs(300);

/// How long one attempt to connect may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// Time between two looks at a condition.
const LOOK: Duration = Duration::from_millis(10);

/// How much of what a program wrote to standard error last is kept, in bytes.
const LAST_WORDS_BYTES_MAX: usize = 2048;

/// The end of a series whose server is not there, for this reason.
fn absent(why: String) -> NotRun {
    NotRun::Server(why.into())
}

/// A server that was started for one run. It ends when this value is dropped.
#[derive(Debug)]
pub struct ServerProgram {
    process: Child,
    last_words: Option<JoinHandle<Vec<u8>>>,
}

impl ServerProgram {
    /// Starts a program by its words, without a shell, and waits until all `servers` of a Plan accept connections.
    ///
    /// # Errors
    /// Returns [`NotRun::Server`] when something answers at one of the addresses already, when the program cannot be started,
    /// ends, or does not accept connections within 30 s.
    pub fn start(words: &[String], servers: &[String]) -> Result<ServerProgram, NotRun> {
        let is_free = |server: &String| !accepts(server);
        if !until(FREE_LIMIT, || servers.iter().all(is_free))? {
            let taken = servers.iter().find(|server| accepts(server)).map_or("", String::as_str);
            return Err(absent(format!(
                "something answers at {taken} before '{}' is started there: end that server, or name another address",
                told(words)
            )));
        }
        let mut program = ServerProgram::spawn(words)
            .map_err(|error| absent(format!("'{}' cannot be started: {error}", told(words))))?;
        let mut ended = None;
        let is_up = until(START_LIMIT, || {
            ended = program.process.try_wait().ok().flatten();
            ended.is_some() || servers.iter().all(|server| accepts(server))
        })?;
        match (ended, is_up) {
            (Some(status), _) => Err(absent(program.end_words(words, status))),
            (None, false) => Err(absent(format!(
                "'{}' does not accept connections at {} within {} s",
                told(words),
                servers.join(", "),
                START_LIMIT.as_secs()
            ))),
            (None, true) => Ok(program),
        }
    }

    fn spawn(words: &[String]) -> io::Result<ServerProgram> {
        let (name, rest) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut process = Command::new(name)
            .args(rest)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let last_words = process.stderr.take().map(|stderr| thread::spawn(move || tail(stderr)));
        Ok(ServerProgram { process, last_words })
    }

    /// How the program ended by itself, with the last line that it wrote.
    fn end_words(&mut self, words: &[String], status: ExitStatus) -> String {
        let hint = match status.success() {
            true => "; a program that goes to the background cannot be ended after its run",
            false => "",
        };
        let said = self.last_words.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        let last = last.map_or(String::new(), |line| {
            format!(": {}", pummel_report::visible::foreign(&masked_text(line)))
        });
        format!("'{}' ended ({status}) before it accepted connections{hint}{last}", told(words))
    }

    /// How the program ended, where it has ended by itself.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().ok().flatten()
    }

    fn signal(&self, signal: Signal) {
        // A process that has ended needs none.
        let _ = kill_process_group(Pid::from_child(&self.process), signal);
    }

    fn has_ended(&mut self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        loop {
            match self.process.try_wait() {
                Ok(None) if Instant::now() < end => thread::sleep(LOOK),
                Ok(None) => return false,
                // What cannot be waited for is not ours any more.
                Ok(Some(_)) | Err(_) => return true,
            }
        }
    }
}

impl Drop for ServerProgram {
    /// Ends the program and what it started: by SIGTERM, else by SIGKILL.
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(Some(_))) {
            return;
        }
        self.signal(Signal::TERM);
        if !self.has_ended(END_LIMIT) {
            self.signal(Signal::KILL);
            let _ = self.process.wait();
        }
    }
}

/// The words of the command line of a program, which `flag` gave.
///
/// # Errors
/// Returns [`UsageError::Value`] for a command line without a word or with a quote that is not closed.
pub fn words_of(program: &str, flag: &str) -> Result<Vec<String>, UsageError> {
    let words = shell_words::split(program).ok().filter(|words| !words.is_empty());
    words.ok_or_else(|| UsageError::Value {
        flag: flag.to_owned(),
        value: masked_text(program),
        accepted: "expected the words of a command line, with all quotes closed".to_owned(),
    })
}

/// Refuses a program whose plan is served by datagrams; `what` names it.
///
/// # Errors
/// Returns [`UsageError::Missing`] for such a plan.
pub fn refuse_datagrams(plan: &Plan, what: &str) -> Result<(), UsageError> {
    match plan.transport {
        Transport::Udp => Err(UsageError::Missing(format!(
            "{what} is accepted without --udp only: pummel tells by a connection whether the server listens"
        ))),
        Transport::Stream => Ok(()),
    }
}

/// The words of a program, as messages tell them.
fn told(words: &[String]) -> String {
    masked_words(words).join(" ")
}

/// Runs the command of `--restart` by the shell, to its end, and waits until all `servers` accept connections.
///
/// # Errors
/// Returns [`NotRun::Server`] when the command cannot be run, fails, or takes longer than five minutes, and when a server
/// does not accept connections within 30 s.
pub fn restart(command: &str, servers: &[String]) -> Result<(), NotRun> {
    let failed = |why: String| absent(format!("--restart '{}': {why}", masked_text(command)));
    let words = ["sh", "-c", command].map(str::to_owned);
    let mut shell = ServerProgram::spawn(&words).map_err(|error| failed(error.to_string()))?;
    let mut ended = None;
    until(RESTART_LIMIT, || {
        ended = shell.process.try_wait().ok().flatten();
        ended.is_some()
    })?;
    let Some(status) = ended else {
        return Err(failed(format!("it did not end within {} s", RESTART_LIMIT.as_secs())));
    };
    // A server that the command left behind may hold standard error open: what is said there is not waited for.
    shell.last_words = None;
    if !status.success() {
        return Err(failed(format!("it ended with {status}")));
    }
    match until(START_LIMIT, || servers.iter().all(|server| accepts(server)))? {
        true => Ok(()),
        false => Err(failed(format!(
            "{} does not accept connections within {} s after it",
            servers.join(", "),
            START_LIMIT.as_secs()
        ))),
    }
}

/// Whether a server of a Plan accepts connections by TCP or by its unix socket.
fn accepts(server: &str) -> bool {
    if server.starts_with('/') {
        return UnixStream::connect(server).is_ok();
    }
    let reaches = |address: SocketAddr| TcpStream::connect_timeout(&address, CONNECT_LIMIT).is_ok();
    server.to_socket_addrs().is_ok_and(|mut addresses| addresses.any(reaches))
}

/// Waits until a condition holds. Returns whether it did within `limit`.
///
/// # Errors
/// Returns [`NotRun::Interrupted`] when a signal comes first.
fn until(limit: Duration, mut holds: impl FnMut() -> bool) -> Result<bool, NotRun> {
    let end = Instant::now() + limit;
    loop {
        if holds() {
            return Ok(true);
        }
        if sys::interrupts() > 0 {
            return Err(NotRun::Interrupted);
        }
        if Instant::now() >= end {
            return Ok(false);
        }
        thread::sleep(LOOK);
    }
}

/// Reads to the end, and keeps the last bytes.
fn tail(mut from: ChildStderr) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut chunk = [0; LAST_WORDS_BYTES_MAX];
    while let Ok(count) = from.read(&mut chunk) {
        if count == 0 {
            break;
        }
        kept.extend_from_slice(&chunk[..count]);
        let surplus = kept.len().saturating_sub(LAST_WORDS_BYTES_MAX);
        kept.drain(..surplus);
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn words(text: &[&str]) -> Vec<String> {
        text.iter().map(|word| (*word).to_owned()).collect()
    }

    fn failure<T: std::fmt::Debug>(result: Result<T, NotRun>) -> String {
        match result {
            Err(NotRun::Server(why)) => why.reason,
            other => panic!("no failure: {other:?}"),
        }
    }

    #[test]
    fn an_address_that_is_taken_is_not_measured_as_the_new_server() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let server = listener.local_addr().expect("it is bound").to_string();
        // A server takes its connections: one that does not has room for few.
        thread::spawn(move || listener.incoming().for_each(drop));
        let why = failure(ServerProgram::start(&words(&["sleep", "60"]), std::slice::from_ref(&server)));
        assert!(why.contains("something answers at") && why.contains(&server), "{why}");
    }

    #[test]
    fn a_program_that_ends_at_once_is_told_with_its_last_words() {
        let program = words(&["sh", "-c", "echo no memory >&2; exit 7"]);
        let why = failure(ServerProgram::start(&program, &["127.0.0.1:1".to_owned()]));
        assert!(why.contains("exit status: 7") && why.ends_with(": no memory"), "{why}");
        let gone = words(&["true"]);
        let why = failure(ServerProgram::start(&gone, &["127.0.0.1:1".to_owned()]));
        assert!(why.contains("goes to the background"), "{why}");
        let why = failure(ServerProgram::start(&words(&["/nowhere/server"]), &["127.0.0.1:1".to_owned()]));
        assert!(why.contains("cannot be started"), "{why}");
    }

    #[test]
    fn nothing_is_left_of_a_program_that_is_dropped() {
        let mut program =
            ServerProgram::spawn(&words(&["sh", "-c", "sleep 60 & wait"])).expect("there is a shell");
        // It reads until the last process is gone that has the other end.
        let reader = program.last_words.take().expect("standard error is read");
        drop(program);
        assert!(until(Duration::from_secs(20), || reader.is_finished()).expect("no signal came"));
    }

    #[test]
    fn a_restart_that_fails_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let server = listener.local_addr().expect("it is bound").to_string();
        assert!(restart("true", std::slice::from_ref(&server)).is_ok());
        let why = failure(restart("exit 4", &[server]));
        assert!(why.starts_with("--restart 'exit 4': it ended with") && why.contains('4'), "{why}");
        let why = failure(restart("exit 4; redis-cli -a SECRET", &[]));
        assert!(why.starts_with("--restart 'exit 4; redis-cli -a ***': it ended with"), "{why}");
    }
}
