//! Waiting for what a program says on its way to an agent, each thing within its time.

use std::net::SocketAddr;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::launch::process::{Errand, News};

/// The first words of every line that our scripts say to the placement; what stands before the first is a greeting of the
/// machine's.
pub(super) const MARK: &str = "pummel: ";

/// What an agent says on standard output when it can be reached, before the address.
const READY: &str = "listening on ";

/// How long a program may take from its last word to its end.
const WINDING_UP: Duration = Duration::from_secs(1);

/// How often a wait looks whether it is still wanted.
pub(super) const GLANCE: Duration = Duration::from_millis(20);

/// How a placement goes about it.
#[derive(Clone, Copy)]
pub(super) struct Manner<'a> {
    /// How long a host may take to show a sign of progress.
    pub(super) patience: Duration,
    /// Nobody wants it any more.
    pub(super) is_unwanted: &'a AtomicBool,
    /// Hears of what takes time or changes a host.
    pub(super) tell: &'a (dyn Fn(&str) + Sync),
}

/// Why a wait ended without what was waited for.
pub(super) enum Stopped {
    Unwanted,
    Because(String),
}

/// Waits for one thing after another of an errand, each within its time.
pub(super) struct Wait<'a> {
    pub(super) errand: &'a mut Errand,
    manner: Manner<'a>,
    end: Instant,
    asides: Vec<String>,
}

impl<'a> Wait<'a> {
    pub(super) fn new(errand: &'a mut Errand, manner: Manner<'a>) -> Wait<'a> {
        Wait { errand, manner, end: Instant::now() + manner.patience, asides: Vec::new() }
    }

    /// A sign of progress: the time begins anew.
    pub(super) fn renew(&mut self) {
        self.end = Instant::now() + self.manner.patience;
    }

    /// The next line; none when there will be no more.
    pub(super) fn line(&mut self) -> Result<Option<String>, Stopped> {
        loop {
            if self.manner.is_unwanted.load(Ordering::Relaxed) {
                return Err(Stopped::Unwanted);
            }
            let now = Instant::now();
            match self.errand.next(self.end.min(now + GLANCE)) {
                Some(News::Line(line)) => return Ok(Some(line)),
                Some(News::Silent) => return Ok(None),
                Some(News::Aside(line)) => self.asides.push(line),
                Some(News::Taken) => self.renew(),
                None if now < self.end => {}
                None => return Err(Stopped::Because(self.too_late())),
            }
        }
    }

    fn too_late(&mut self) -> String {
        self.with_last_words(format!("did not answer within {} s", self.manner.patience.as_secs_f64()))
    }

    /// How the errand ended, which has just fallen silent.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.errand.ended(Instant::now() + WINDING_UP)
    }

    /// How the errand ended that was not to end, with its last words.
    pub(super) fn epitaph(&mut self, program: &str) -> Stopped {
        let how = match self.ended() {
            Some(status) => format!("{program} ended with {status}"),
            None => format!("{program} fell silent"),
        };
        Stopped::Because(self.with_last_words(how))
    }

    /// A reason, and the last that was said on standard error.
    pub(super) fn with_last_words(&mut self, reason: String) -> String {
        self.asides.extend(self.errand.last_words());
        self.asides.retain(|line| !line.trim().is_empty());
        let from = self.asides.len().saturating_sub(3);
        match &self.asides[from..] {
            [] => reason,
            words => format!("{reason}: {}", words.join(" / ")),
        }
    }
}

/// The lines that a program says, when it ends well and in time.
pub(super) fn lines_of(argv: &[&str], manner: Manner<'_>) -> Result<Vec<String>, Stopped> {
    let cannot = |error| Stopped::Because(format!("cannot run {}: {error}", argv[0]));
    let mut errand = Errand::start(argv).map_err(cannot)?;
    errand.release();
    let mut wait = Wait::new(&mut errand, manner);
    let mut lines = Vec::new();
    while let Some(line) = wait.line()? {
        lines.push(line);
    }
    if wait.ended().is_some_and(|status| status.success()) {
        return Ok(lines);
    }
    Err(wait.epitaph(&argv.join(" ")))
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
        let manner =
            |millis| Manner { patience: Duration::from_millis(millis), is_unwanted: &wanted, tell: &|_| {} };
        let why = |argv: &[&str], millis| match lines_of(argv, manner(millis)) {
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
        let unwanted = Manner { is_unwanted: &unwanted, ..manner(60_000) };
        assert!(matches!(lines_of(&["sleep", "60"], unwanted), Err(Stopped::Unwanted)));
    }
}
