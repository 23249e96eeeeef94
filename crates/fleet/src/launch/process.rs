//! A program that starts agents, in a process group of its own: what it says, line by line, and its end.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Time between two signs of life to what the program started; it takes a silence of [`SILENCE_MAX`] for our end.
const PULSE: Duration = Duration::from_secs(1);

/// Longest silence of its controller after which an agent that was launched ends.
pub const SILENCE_MAX: Duration = Duration::from_secs(20);

/// Longest time in which a program ends after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// Bytes that are written at once of what a program is given, each a proof that it goes on.
const CHUNK_BYTES: usize = 64 << 10;

/// Longest line that is handed out in one piece.
const LINE_BYTES_MAX: u64 = 16 << 10;

/// An event of a program that is running.
#[derive(Debug, PartialEq, Eq)]
pub enum ProcessEvent {
    /// A line of the program's standard output, without its end.
    StdoutLine(String),
    /// A line of the program's standard error, without its end.
    StderrLine(String),
    /// The program took some of what it was given on standard input.
    StdinTaken,
    /// The program's standard output has ended.
    StdoutEnded,
}

/// Standard input of a program.
enum StdinData {
    Bytes(Arc<[u8]>),
    /// From now on, a sign of life now and then.
    Pulse,
}

/// A program that is running. Dropping this value ends the program and all that it started on this machine.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    events: Receiver<ProcessEvent>,
    stdin_data: Option<Sender<StdinData>>,
    /// Processes that it started watch its standard input, and end by themselves when that does.
    is_watched: bool,
}

impl ChildProcess {
    /// Starts a program whose standard input stays open until [`ChildProcess::release`].
    ///
    /// The process is in a process group of its own: Ctrl-C at the terminal is for the controller, which then ends its agents in
    /// good order.
    ///
    /// # Errors
    /// Returns the error of the system when the program cannot be started.
    pub fn start(argv: &[impl AsRef<OsStr>]) -> io::Result<ChildProcess> {
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (sender, events) = channel();
        let (stdin_data, given) = channel();
        if let Some(stdin) = child.stdin.take() {
            let sender = sender.clone();
            thread::spawn(move || hand_over(stdin, &given, &sender));
        }
        if let Some(stderr) = child.stderr.take() {
            let sender = sender.clone();
            thread::spawn(move || {
                read_lines(stderr, |line| sender.send(ProcessEvent::StderrLine(line)).is_ok())
            });
        }
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                read_lines(stdout, |line| sender.send(ProcessEvent::StdoutLine(line)).is_ok());
                // The receiver may be gone already.
                let _ = sender.send(ProcessEvent::StdoutEnded);
            });
        }
        Ok(ChildProcess { child, events, stdin_data: Some(stdin_data), is_watched: false })
    }

    /// Writes these bytes to the program's standard input, in the background; [`ProcessEvent::StdinTaken`] is their progress.
    pub fn give(&self, bytes: Arc<[u8]>) {
        self.hand(StdinData::Bytes(bytes));
    }

    /// Gives signs of life on the program's standard input from now on.
    pub fn pulse(&mut self) {
        self.is_watched = true;
        self.hand(StdinData::Pulse);
    }

    fn hand(&self, data: StdinData) {
        if let Some(stdin_data) = &self.stdin_data {
            // The input may be closed already; that the program has ended is an event.
            let _ = stdin_data.send(data);
        }
    }

    /// The next event, if one comes before `end`. After the last event it is [`ProcessEvent::StdoutEnded`] again and again.
    pub fn next(&self, end: Instant) -> Option<ProcessEvent> {
        match self.events.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(ProcessEvent::StdoutEnded),
        }
    }

    /// The lines of standard error that were not read yet, the newest last. Waits a moment for those that are on their way.
    pub fn last_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let end = Instant::now() + Duration::from_millis(200);
        while let Ok(event) = self.events.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if let ProcessEvent::StderrLine(line) = event {
                words.push(line);
            }
        }
        words
    }

    /// Waits for the program's end, which has to come before `end`.
    pub fn ended(&mut self, end: Instant) -> Option<ExitStatus> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(5)),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// Closes the program's standard input, by which all that it started learns that it is no longer needed.
    pub fn release(&mut self) {
        self.stdin_data = None;
    }

    /// Hands out the events from now on, which [`ChildProcess::next`] does not see any more.
    pub fn take_events(&mut self) -> Receiver<ProcessEvent> {
        std::mem::replace(&mut self.events, channel().1)
    }

    fn signal(&self, signal: Signal) {
        // A process that has ended needs none.
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }
}

impl Drop for ChildProcess {
    /// Ends the program: by the end of its input, else by SIGTERM, else by SIGKILL. Nothing of it is left on this machine.
    fn drop(&mut self) {
        self.release();
        let grace = if self.is_watched { GRACE } else { Duration::ZERO };
        if self.ended(Instant::now() + grace).is_some() {
            return;
        }
        self.signal(Signal::TERM);
        if self.ended(Instant::now() + GRACE).is_some() {
            return;
        }
        self.signal(Signal::KILL);
        // It has no choice, and what cannot be waited for is not ours any more.
        let _ = self.child.wait();
    }
}

fn hand_over(mut stdin: ChildStdin, stdin_data: &Receiver<StdinData>, sender: &Sender<ProcessEvent>) {
    let mut is_pulsing = false;
    loop {
        let data = if is_pulsing {
            match stdin_data.recv_timeout(PULSE) {
                Ok(data) => data,
                Err(RecvTimeoutError::Timeout) => StdinData::Pulse,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        } else {
            match stdin_data.recv() {
                Ok(data) => data,
                Err(_) => return,
            }
        };
        let written = match data {
            StdinData::Bytes(bytes) => bytes.chunks(CHUNK_BYTES).try_for_each(|chunk| {
                stdin.write_all(chunk)?;
                // The receiver may be gone already.
                let _ = sender.send(ProcessEvent::StdinTaken);
                Ok::<(), io::Error>(())
            }),
            StdinData::Pulse => {
                is_pulsing = true;
                stdin.write_all(b"\n")
            }
        };
        // It has closed its input; that it has ended is seen elsewhere.
        if written.is_err() {
            return;
        }
    }
}

/// Hands each line to `tell`, cut at [`LINE_BYTES_MAX`] and with what is no UTF-8 replaced, until `tell` returns false. Reads
/// on to the end all the same: a pipe that is not read would hold its writer up.
fn read_lines(from: impl Read, mut tell: impl FnMut(String) -> bool) {
    let mut from = BufReader::new(from);
    let mut is_wanted = true;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let line = String::from_utf8_lossy(&bytes);
                is_wanted = is_wanted && tell(line.trim_end_matches(['\n', '\r']).to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> ChildProcess {
        ChildProcess::start(&["sh", "-c", script]).expect("there is a shell")
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    fn lines(process: &ChildProcess) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            match process.next(soon()).expect("in time") {
                ProcessEvent::StdoutLine(line) => lines.push(line),
                ProcessEvent::StdoutEnded => return lines,
                ProcessEvent::StderrLine(_) | ProcessEvent::StdinTaken => {}
            }
        }
    }

    #[test]
    fn what_is_said_comes_line_by_line_and_what_is_given_goes_in() {
        let mut process = shell("echo first; head -c 200000 | wc -c; read pulse; echo alive");
        process.give(vec![b'x'; 200_000].into());
        process.pulse();
        assert_eq!(lines(&process), ["first", "200000", "alive"]);
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let process = shell("head -c 40000 /dev/zero | tr '\\0' x");
        assert_eq!(lines(&process).iter().map(String::len).collect::<Vec<_>>(), [16_384, 16_384, 7_232]);
    }

    #[test]
    fn the_last_words_of_a_program_are_kept() {
        let mut process = shell("echo why >&2; exit 3");
        assert_eq!(process.ended(soon()).and_then(|status| status.code()), Some(3));
        assert_eq!(process.last_words(), ["why"]);
    }

    #[test]
    fn the_end_of_the_input_ends_a_program_that_waits_for_it() {
        let mut process = shell("cat >/dev/null");
        process.release();
        assert!(process.ended(soon()).is_some_and(|status| status.success()));
    }

    #[test]
    fn nothing_is_left_of_a_program_that_does_not_want_to_end() {
        let process =
            shell("trap '' TERM; sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & wait");
        let Some(ProcessEvent::StdoutLine(inner)) = process.next(soon()) else {
            panic!("the inner one says its number")
        };
        let inner = Pid::from_raw(inner.parse().expect("a number")).expect("not 0");
        drop(process);
        let end = soon();
        while rustix::process::test_kill_process(inner).is_ok() && !is_zombie(inner) {
            assert!(Instant::now() < end, "the inner process is left");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether a process is dead, but not yet fetched by the process that adopted it.
    fn is_zombie(pid: Pid) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        status.is_ok_and(|text| text.contains(") Z "))
    }
}
