//! How the program ends, in the numbers of the native front.

use std::io::ErrorKind;
use std::process::ExitCode;

use pummel_engine::sys;

use crate::stderr::say;

/// The exit statuses of a command that makes no run, as its help lists them.
pub const STATUSES_WITHOUT_RUN: &str = "\
Exit status:
  0    done
  1    failed; standard error says why
  2    wrong usage";

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

/// Says what the command-line parser has to say: help and versions on standard output, errors on standard error.
pub fn answer(error: &clap::Error) -> Exit {
    let print =
        || if error.use_stderr() { error.print() } else { sys::check_stdout().and_then(|()| error.print()) };
    match (print(), error.use_stderr()) {
        // When the terminal or pipe is gone, the error cannot be reported.
        (_, true) => Exit::Usage,
        // A reader may close the pipe when it has read enough.
        (Err(unwritten), false) if unwritten.kind() != ErrorKind::BrokenPipe => {
            say(format_args!("error: cannot write to standard output: {unwritten}"));
            Exit::Failed
        }
        (_, false) => Exit::Complete,
    }
}
