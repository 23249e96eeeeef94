//! How the program ends, in the numbers of the native front.

use std::process::ExitCode;

/// The exit statuses of a command that makes no run, as its help lists them.
pub const STATUSES_WITHOUT_RUN: &str = "\
Exit status:
  0    done
  1    failed; standard error says why
  2    wrong usage, or a file that is no result";

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All that was asked for was done.
    Complete,
    /// The run failed or is partial; the report is written, with the reason.
    Failed,
    /// The command line cannot be followed; nothing was sent.
    Usage,
    /// A verification failed or a goal was missed.
    Missed,
    /// The user ended it; the report is written.
    Interrupted,
    /// Otherwise, in the numbers of the program whose command line it was.
    Other(u8),
}

impl Exit {
    /// The end with this exit status.
    pub fn of_status(status: u8) -> Exit {
        match status {
            0 => Exit::Complete,
            1 => Exit::Failed,
            2 => Exit::Usage,
            3 => Exit::Missed,
            // A process that was interrupted ends by the signal that it got.
            129 | 130 | 143 => Exit::Interrupted,
            other => Exit::Other(other),
        }
    }

    /// The exit status.
    pub fn status(self) -> u8 {
        match self {
            Exit::Complete => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Missed => 3,
            Exit::Interrupted => 130,
            Exit::Other(status) => status,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.status())
    }
}
