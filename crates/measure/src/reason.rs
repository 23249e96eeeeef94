//! Why a run is not complete: its sentence, and what others do because of it.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// Why a run is not complete. It is saved as its sentence, without the full stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Reason {
    /// No request was due and nothing went wrong: chance did so, where the run was short and its rate low.
    NothingDue,
    /// A server took fewer connections than the run asked it for.
    NotTaken(String),
    /// A server went away or fell silent before the end, so that the run is one until then.
    ServerGone(String),
    /// Any other reason.
    Other(String),
}

/// Kind of the reason why a run is not complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReasonKind {
    /// No request was due and nothing went wrong.
    NothingDue,
    /// A server took fewer connections than the run asked it for.
    NotTaken,
    /// A server went away or fell silent before the end.
    ServerGone,
    /// Any other reason, which its words say.
    #[default]
    #[serde(other)]
    Other,
}

impl Reason {
    /// Kind of the reason.
    pub fn kind(&self) -> ReasonKind {
        match self {
            Reason::NothingDue => ReasonKind::NothingDue,
            Reason::NotTaken(_) => ReasonKind::NotTaken,
            Reason::ServerGone(_) => ReasonKind::ServerGone,
            Reason::Other(_) => ReasonKind::Other,
        }
    }
}

impl Deref for Reason {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Reason::NothingDue => "nothing completed: no request was due",
            Reason::NotTaken(words) | Reason::ServerGone(words) | Reason::Other(words) => words,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self)
    }
}

impl From<String> for Reason {
    fn from(words: String) -> Reason {
        Reason::Other(words)
    }
}

impl From<&str> for Reason {
    fn from(words: &str) -> Reason {
        Reason::Other(words.to_owned())
    }
}

impl From<Reason> for String {
    fn from(reason: Reason) -> String {
        reason.to_string()
    }
}
