//! Waiting for what a program says on its way to an agent, each thing within its time.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::launch::process::{ChildProcess, ProcessEvent};

/// The first words of every line that our scripts say to the launch; lines before the first are a greeting of the machine.
pub(super) const MARK: &str = "pummel: ";

/// Words before the address that an agent says on standard output when it can be reached.
const READY: &str = "listening on ";

/// Longest time of a program from its last word to its end.
const WINDING_UP: Duration = Duration::from_secs(1);

/// Pause between two looks of a wait whether it is still wanted.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Options of a launch: how it waits, and what it tells.
#[derive(Clone, Copy)]
pub(super) struct LaunchOptions<'a> {
    /// Longest time of a host without a sign of progress.
    pub(super) patience: Duration,
    /// The only files of their machines that the agents read for a plan.
    pub(super) files: &'a BTreeSet<String>,
    /// Set when the launch is not wanted any more.
    pub(super) is_unwanted: &'a AtomicBool,
    /// Receives a sentence about what takes time or changes a host.
    pub(super) tell: &'a (dyn Fn(&str) + Sync),
}

/// Why a wait ended without what was waited for.
pub(super) enum Stopped {
    Unwanted,
    Because(String),
}

/// Waits for one thing after another of a process, each within its time.
pub(super) struct Wait<'a> {
    pub(super) process: &'a mut ChildProcess,
    options: LaunchOptions<'a>,
    end: Instant,
    stderr_lines: Vec<String>,
}

impl<'a> Wait<'a> {
    pub(super) fn new(process: &'a mut ChildProcess, options: LaunchOptions<'a>) -> Wait<'a> {
        Wait { process, options, end: Instant::now() + options.patience, stderr_lines: Vec::new() }
    }

    /// A sign of progress: the time begins anew.
    pub(super) fn renew(&mut self) {
        self.end = Instant::now() + self.options.patience;
    }

    /// The next line; none when there will be no more.
    pub(super) fn line(&mut self) -> Result<Option<String>, Stopped> {
        loop {
            if self.options.is_unwanted.load(Ordering::Relaxed) {
                return Err(Stopped::Unwanted);
            }
            let now = Instant::now();
            match self.process.next(self.end.min(now + POLL_INTERVAL)) {
                Some(ProcessEvent::StdoutLine(line)) => return Ok(Some(line)),
                Some(ProcessEvent::StdoutEnded) => return Ok(None),
                Some(ProcessEvent::StderrLine(line)) => self.stderr_lines.push(line),
                Some(ProcessEvent::StdinTaken) => self.renew(),
                None if now < self.end => {}
                None => return Err(Stopped::Because(self.too_late())),
            }
        }
    }

    fn too_late(&mut self) -> String {
        self.with_last_words(format!("did not answer within {} s", self.options.patience.as_secs_f64()))
    }

    /// End of the process, which has just fallen silent.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.ended(Instant::now() + WINDING_UP)
    }

    /// End of the process that was not to end, with its last words.
    pub(super) fn unexpected_end(&mut self, program: &str) -> Stopped {
        let how = match self.ended() {
            Some(status) => format!("{program} ended with {status}"),
            None => format!("{program} fell silent"),
        };
        Stopped::Because(self.with_last_words(how))
    }

    /// A reason, and the last that was said on standard error.
    pub(super) fn with_last_words(&mut self, reason: String) -> String {
        self.stderr_lines.extend(self.process.last_words());
        self.stderr_lines.retain(|line| !line.trim().is_empty());
        let from = self.stderr_lines.len().saturating_sub(3);
        match &self.stderr_lines[from..] {
            [] => reason,
            words => format!("{reason}: {}", words.join(" / ")),
        }
    }
}

/// The lines that a program says, when it ends well and in time.
pub(super) fn lines_of(argv: &[&str], options: LaunchOptions<'_>) -> Result<Vec<String>, Stopped> {
    let cannot = |error| Stopped::Because(format!("cannot run {}: {error}", argv[0]));
    let mut process = ChildProcess::start(argv).map_err(cannot)?;
    process.release();
    let mut wait = Wait::new(&mut process, options);
    let mut lines = Vec::new();
    while let Some(line) = wait.line()? {
        lines.push(line);
    }
    if wait.ended().is_some_and(|status| status.success()) {
        return Ok(lines);
    }
    Err(wait.unexpected_end(&argv.join(" ")))
}

/// The address in a line that an agent says when it is ready.
pub(super) fn address_of(line: &str) -> Option<SocketAddr> {
    line.strip_prefix(READY)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_is_where_an_agent_listens() {
        assert_eq!(address_of("listening on 127.0.0.1:5556"), "127.0.0.1:5556".parse().ok());
        assert_eq!(address_of("listening on [::1]:1"), "[::1]:1".parse().ok());
        for other in ["listening on somewhere", "listening on 127.0.0.1", "now listening on 127.0.0.1:1", ""]
        {
            assert_eq!(address_of(other), None);
        }
    }

    #[test]
    fn a_program_that_fails_or_hangs_or_is_not_there_is_named_with_its_reason() {
        let (wanted, unwanted) = (AtomicBool::new(false), AtomicBool::new(true));
        let files = BTreeSet::new();
        let options = |millis| LaunchOptions {
            patience: Duration::from_millis(millis),
            files: &files,
            is_unwanted: &wanted,
            tell: &|_| {},
        };
        let why = |argv: &[&str], millis| match lines_of(argv, options(millis)) {
            Err(Stopped::Because(why)) => why,
            Err(Stopped::Unwanted) => "unwanted".to_owned(),
            Ok(lines) => format!("{lines:?}"),
        };
        assert_eq!(why(&["sh", "-c", "echo a; echo b"], 60_000), "[\"a\", \"b\"]");
        assert_eq!(
            why(&["sh", "-c", "echo dear me >&2; exit 3"], 60_000),
            "sh -c echo dear me >&2; exit 3 ended with exit status: 3: dear me"
        );
        assert_eq!(why(&["sh", "-c", "sleep 60"], 100), "did not answer within 0.1 s");
        assert!(why(&["/no/such/program"], 100).starts_with("cannot run /no/such/program: "));
        let unwanted = LaunchOptions { is_unwanted: &unwanted, ..options(60_000) };
        assert!(matches!(lines_of(&["sleep", "60"], unwanted), Err(Stopped::Unwanted)));
    }
}
