//! Why a run over agents did not begin.

use std::fmt;

/// Why a run over agents did not begin. Nothing was sent to any server then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartError {
    /// The command line asks for what cannot be run.
    Usage(String),
    /// An agent does not answer, or refuses the run.
    Agents(String),
    /// The user ended the run.
    Interrupted,
}

impl fmt::Display for StartError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Usage(why) | StartError::Agents(why) => to.write_str(why),
            StartError::Interrupted => to.write_str("interrupted"),
        }
    }
}
