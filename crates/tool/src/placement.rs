//! Agents that are started for one run, by ssh or Slurm, and that end with it.

mod errand;
mod leash;
mod program;
mod slurm;
mod ssh;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use crate::aside::say;
use crate::front::placing::Placing;
use errand::{Errand, News};
pub use leash::{Leash, first_line};

/// The first words of every line that our scripts say to the placement; what stands before the first is a greeting of the
/// machine's.
const MARK: &str = "pummel: ";

/// What an agent says on standard output when it can be reached, before the address.
const READY: &str = "listening on ";

/// How long a program may take from its last word to its end.
const WINDING_UP: Duration = Duration::from_secs(1);

/// How often a wait looks whether it is still wanted.
const GLANCE: Duration = Duration::from_millis(20);

/// An agent that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The host or node as the user knows it; no two of a placement are the same.
    pub name: String,
    /// Where this machine reaches it.
    pub address: SocketAddr,
    /// The word that it wants to hear, which nobody else knows.
    pub token: String,
}

/// Agents that were started, for as long as this value lives: dropped, it ends all of them. They end by themselves when
/// this process does, in whatever way.
#[derive(Debug)]
pub struct Placement {
    placed: Vec<Placed>,
    errands: Vec<Errand>,
}

/// Why agents were not placed. Nothing is left of those that were.
#[derive(Debug, PartialEq, Eq)]
pub enum PlaceError {
    /// The user did not want to wait any longer.
    Interrupted,
    /// This machine is in no state to place anything.
    Here(String),
    /// These could not be placed: name and reason of each.
    There(Vec<(String, String)>),
}

impl fmt::Display for PlaceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceError::Interrupted => out.write_str("interrupted while the agents were started"),
            PlaceError::Here(why) => out.write_str(why),
            PlaceError::There(failures) => {
                let named: Vec<_> =
                    failures.iter().map(|(name, why)| format!("agent {name}: {why}")).collect();
                out.write_str(&named.join("; "))
            }
        }
    }
}

impl std::error::Error for PlaceError {}

/// How a placement goes about it.
#[derive(Clone, Copy)]
struct Manner<'a> {
    /// How long a host may take to show a sign of progress.
    patience: Duration,
    /// Nobody wants it any more.
    is_unwanted: &'a AtomicBool,
    /// Hears of what takes time or changes a host.
    tell: &'a (dyn Fn(&str) + Sync),
}

impl Placement {
    /// Starts the agents, and returns when each of them can be reached. A host may take `patience` to show a sign of
    /// progress; `tell` hears of what takes time or changes a host.
    ///
    /// # Errors
    /// When one of them cannot be started, or `is_unwanted` says so first: all are ended then.
    pub fn start(
        placing: &Placing,
        patience: Duration,
        is_unwanted: &dyn Fn() -> bool,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<Placement, PlaceError> {
        let flag = AtomicBool::new(false);
        let manner = Manner { patience, is_unwanted: &flag, tell };
        let placed = thread::scope(|scope| {
            let work = scope.spawn(move || place(placing, manner));
            while !work.is_finished() {
                flag.fetch_or(is_unwanted(), Ordering::Relaxed);
                thread::sleep(GLANCE);
            }
            work.join()
        });
        let mut placement = placed.unwrap_or_else(|panic| resume_unwind(panic))?;
        placement.follow();
        Ok(placement)
    }

    /// The agents, in the order in which they were asked for.
    pub fn placed(&self) -> &[Placed] {
        &self.placed
    }

    /// Passes on what the agents say from now on.
    fn follow(&mut self) {
        // One errand may serve several agents, which then tell their names themselves.
        let is_one_each = self.errands.len() == self.placed.len();
        for (index, errand) in self.errands.iter_mut().enumerate() {
            let name = is_one_each.then(|| self.placed[index].name.clone());
            let news = errand.take_news();
            thread::spawn(move || pass_on(name.as_deref(), &news));
        }
    }
}

impl Drop for Placement {
    fn drop(&mut self) {
        for errand in &mut self.errands {
            errand.release();
        }
        // Each may take its time to end, and none waits for another.
        thread::scope(|scope| {
            for errand in self.errands.drain(..) {
                scope.spawn(move || drop(errand));
            }
        });
    }
}

fn place(placing: &Placing, manner: Manner<'_>) -> Result<Placement, PlaceError> {
    let mut placement = match placing {
        Placing::Ssh(hosts) => ssh::place(hosts, manner)?,
        Placing::Slurm(nodes) => slurm::place(*nodes, manner)?,
    };
    let names = names(placement.placed.iter().map(|placed| placed.name.clone()).collect());
    for (placed, name) in placement.placed.iter_mut().zip(names) {
        placed.name = name;
    }
    Ok(placement)
}

fn pass_on(name: Option<&str>, news: &Receiver<News>) {
    for news in news {
        match (name, news) {
            (Some(name), News::Aside(line)) => say(format_args!("agent {name}: {line}")),
            (None, News::Aside(line)) => say(format_args!("agent {line}")),
            (_, News::Line(_) | News::Taken | News::Silent) => {}
        }
    }
}

/// Names as given, with a number behind those that were given before.
fn names(given: Vec<String>) -> Vec<String> {
    let is_again = |at: usize| given[..at].iter().filter(|before| **before == given[at]).count();
    let numbered = (0..given.len()).map(|at| match is_again(at) {
        0 => given[at].clone(),
        before => format!("{}#{}", given[at], before + 1),
    });
    numbered.collect()
}

/// The address in a line that an agent says when it is ready.
fn address_of(line: &str) -> Option<SocketAddr> {
    line.strip_prefix(READY)?.parse().ok()
}

/// What nobody can guess: 128 bits, in hexadecimal.
fn chance() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Why a wait ended without what was waited for.
enum Stopped {
    Unwanted,
    Because(String),
}

/// Waits for one thing after another of an errand, each within its time.
struct Wait<'a> {
    errand: &'a mut Errand,
    manner: Manner<'a>,
    end: Instant,
    asides: Vec<String>,
}

impl<'a> Wait<'a> {
    fn new(errand: &'a mut Errand, manner: Manner<'a>) -> Wait<'a> {
        Wait { errand, manner, end: Instant::now() + manner.patience, asides: Vec::new() }
    }

    /// A sign of progress: the time begins anew.
    fn renew(&mut self) {
        self.end = Instant::now() + self.manner.patience;
    }

    /// The next line; none when there will be no more.
    fn line(&mut self) -> Result<Option<String>, Stopped> {
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
    fn ended(&mut self) -> Option<ExitStatus> {
        self.errand.ended(Instant::now() + WINDING_UP)
    }

    /// How the errand ended that was not to end, with its last words.
    fn epitaph(&mut self, program: &str) -> Stopped {
        let how = match self.ended() {
            Some(status) => format!("{program} ended with {status}"),
            None => format!("{program} fell silent"),
        };
        Stopped::Because(self.with_last_words(how))
    }

    /// A reason, and the last that was said on standard error.
    fn with_last_words(&mut self, reason: String) -> String {
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
fn lines_of(argv: &[&str], manner: Manner<'_>) -> Result<Vec<String>, Stopped> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_given_before_gets_a_number() {
        let given = ["a", "b", "a", "a"].map(str::to_owned).to_vec();
        assert_eq!(names(given), ["a", "b", "a#2", "a#3"]);
    }

    #[test]
    fn chance_is_never_the_same() {
        let (one, other) = (chance().expect("chance"), chance().expect("chance"));
        assert_eq!(one.len(), 32);
        assert_ne!(one, other);
    }

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
