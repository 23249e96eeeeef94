//! The words in capitals that a result begins with, and the exit status that follows from them.

use pummel_measure::measurement::Status;
use pummel_measure::outcome::RunOutcome;
use pummel_measure::uncertainty::quantile_name;

use super::counts::{asked_rate, failed_share};
use crate::Ending;
use crate::document::{Document, GoalOutcome};
use crate::view::Tone;
use crate::view::cells::{rate, time};
use crate::words::trust::UNRELIABLE;

/// A word in capitals, in the order in which the words stand where several hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    /// A signal ended the run.
    Interrupted,
    /// More than half of the requests that ended were errors or timeouts.
    Failed,
    /// Less was measured than asked.
    Partial,
    /// A goal was missed.
    GoalMissed,
    /// A goal was met on one side of a change only.
    GoalUndecided,
    /// Values were wrong, or older than they may be.
    WrongValues,
    /// The precision that was asked for was not reached.
    NotSure,
    /// The backlog grew to the end.
    Overloaded,
}

impl Word {
    /// The word.
    pub fn text(self) -> &'static str {
        match self {
            Word::Interrupted => "INTERRUPTED",
            Word::Failed => "FAILED",
            Word::Partial => "PARTIAL",
            Word::GoalMissed => "GOAL MISSED",
            Word::GoalUndecided => "GOAL UNDECIDED",
            Word::WrongValues => "WRONG VALUES",
            Word::NotSure => "NOT SURE",
            Word::Overloaded => "OVERLOADED",
        }
    }

    /// The tone: a failure, or a doubt.
    pub fn tone(self) -> Tone {
        match self {
            Word::Failed | Word::Partial | Word::GoalMissed | Word::GoalUndecided | Word::WrongValues => {
                Tone::Alarm
            }
            Word::Interrupted | Word::NotSure | Word::Overloaded => Tone::Warning,
        }
    }
}

/// The exit status of the process that made a run, from its result and from what else ended it; `None` where it is not known.
pub(crate) fn exit_status(document: &Document, ending: Ending) -> Option<u8> {
    let headline = Headline::of(document);
    match ending {
        Ending::Open => None,
        Ending::Usage => Some(USAGE),
        // A shell shows the number of the signal that a process ended by, and this much more.
        Ending::Signal(number) if headline.has(Word::Interrupted) => Some(SIGNALLED + number),
        Ending::Signal(_) | Ending::OfResult => Some(headline.status),
    }
}

/// The exit status of a command line that cannot be followed.
const USAGE: u8 = 2;

/// The exit status of a process that a signal ended, without the number of the signal.
const SIGNALLED: u8 = 128;

/// The most words that a result begins with.
const WORDS_MAX: usize = 2;

/// The words that a result begins with; none where all is as it was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headline {
    /// The first words, the most important one first.
    pub words: Vec<Word>,
    /// The exit status that these words lead to.
    pub status: u8,
}

impl Headline {
    /// The words of a run.
    pub fn of(document: &Document) -> Headline {
        let has_goal = |met: Option<bool>| document.goals.iter().any(|goal| goal.met == met);
        let verify = &document.verify;
        let holds = |word: Word| match word {
            Word::Interrupted => document.status == Status::Interrupted,
            Word::Failed => document.outcome == RunOutcome::Failed,
            Word::Partial => document.status == Status::Partial,
            Word::GoalMissed => has_goal(Some(false)),
            Word::GoalUndecided => has_goal(None) && !has_goal(Some(false)),
            Word::WrongValues => verify.failed > 0 || verify.stale > 0,
            Word::NotSure => document.until.as_ref().is_some_and(|until| !until.reached),
            Word::Overloaded => document.outcome == RunOutcome::Overloaded,
        };
        let all = [
            Word::Interrupted,
            Word::Failed,
            Word::Partial,
            Word::GoalMissed,
            Word::GoalUndecided,
            Word::WrongValues,
            Word::NotSure,
            Word::Overloaded,
        ];
        // A run that failed is no part of a good one.
        let is_said = |word: &Word| holds(*word) && !(*word == Word::Partial && holds(Word::Failed));
        let words: Vec<Word> = all.into_iter().filter(is_said).take(WORDS_MAX).collect();
        let status = match words.first() {
            Some(Word::Interrupted) => 130,
            Some(Word::Failed | Word::Partial) => 1,
            Some(Word::GoalMissed | Word::GoalUndecided | Word::WrongValues | Word::NotSure) => 3,
            Some(Word::Overloaded) | None if !document.failures().is_empty() => 3,
            Some(Word::Overloaded) | None => 0,
        };
        Headline { words, status }
    }

    /// Whether a word is among them.
    pub fn has(&self, word: Word) -> bool {
        self.words.contains(&word)
    }

    /// Whether the result begins with a word in capitals.
    pub fn is_in_capitals(&self) -> bool {
        !self.words.is_empty()
    }

    /// The words and their figures, for one line; empty where all is well and the median is reliable.
    pub(super) fn brief(&self, document: &Document) -> String {
        let Some(first) = self.words.first() else {
            return if document.is_unreliable() { UNRELIABLE.to_owned() } else { String::new() };
        };
        let totals = &document.totals;
        let figures = match first {
            Word::Interrupted => format!("after {}", crate::view::cells::seconds(document.seconds)),
            Word::Failed => {
                let (share, is_late) = failed_share(document);
                format!("{share} {}", if is_late { "timeouts" } else { "errors" })
            }
            Word::Partial => document.reason.clone().unwrap_or_default(),
            Word::GoalMissed => {
                document.goals.iter().find(|goal| goal.met == Some(false)).map(goal).unwrap_or_default()
            }
            Word::GoalUndecided => {
                document.goals.iter().find(|goal| goal.met.is_none()).map(goal).unwrap_or_default()
            }
            Word::WrongValues => {
                format!(
                    "{} of {}",
                    document.verify.failed.saturating_add(document.verify.stale),
                    document.verify.checked
                )
            }
            Word::NotSure => {
                document.until.as_ref().map(|until| quantile_name(until.quantile)).unwrap_or_default()
            }
            Word::Overloaded => match asked_rate(document) {
                Some(asked) => format!("{}/s of {} asked", rate(totals.rate), rate(asked)),
                None => format!("{}/s", rate(totals.rate)),
            },
        };
        let words: Vec<&str> = self.words.iter().map(|word| word.text()).collect();
        format!("{} {figures}", words.join(", ")).trim_end().to_owned()
    }
}

/// A goal with what was reached, such as `p99 176 us > 50.0 us`.
fn goal(goal: &GoalOutcome) -> String {
    let reached = match (goal.reached_us, goal.above_us) {
        (Some(us), _) => time(us),
        (None, Some(us)) => format!("> {}", time(us)),
        (None, None) => "unknown".to_owned(),
    };
    let sign = if goal.met == Some(false) { ">" } else { "?" };
    format!("{} {reached} {sign} {}", quantile_name(goal.quantile), time(goal.limit_us))
}
