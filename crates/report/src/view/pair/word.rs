//! The words in capitals that a comparison begins with.

use crate::view::Tone;

/// A word in capitals, in the order in which the words stand where several hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    /// A signal ended the runs.
    Interrupted,
    /// Fewer pairs were measured than asked.
    Partial,
    /// Whether the sides differ, or a claim holds, is not known.
    NotDecided,
    /// Runs that were made for the comparison found wrong values.
    WrongValues,
    /// A side is shown to be worse by more than is allowed.
    Worse,
    /// A side is not shown to be as little worse as it has to be.
    NotSure,
}

impl Word {
    /// The word.
    pub fn text(self) -> &'static str {
        match self {
            Word::Interrupted => "INTERRUPTED",
            Word::Partial => "PARTIAL",
            Word::NotDecided => "NOT DECIDED",
            Word::WrongValues => "WRONG VALUES",
            Word::Worse => "WORSE",
            Word::NotSure => "NOT SURE",
        }
    }

    /// The tone: a failure, or a doubt.
    pub fn tone(self) -> Tone {
        match self {
            Word::Partial | Word::WrongValues | Word::Worse => Tone::Alarm,
            Word::Interrupted | Word::NotDecided | Word::NotSure => Tone::Warning,
        }
    }
}
