//! `pummel memaslap`: follows its command line.

use std::ffi::OsString;
use std::fmt::Display;
use std::io;

use pummel_engine::sys;

use crate::compat::memaslap::style::MemaslapStyle;
use crate::compat::memaslap::{Asked, Ground, HELP, Refusal, VERSION, read};
use crate::exit_status::Exit;
use crate::job::Edge;
use crate::job::driver::{Extras, drive};
use crate::report::output::print;
use crate::stderr::say;

/// Follows the words behind `program`, which is how the parser's errors begin.
pub fn memaslap(program: &str, words: &[OsString], edge: &Edge) -> Exit {
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    match read_here(words, edge, &sys::allowed_cpus().unwrap_or_default()) {
        Ok(Asked::Help) => printed(HELP),
        Ok(Asked::Version) => printed(VERSION),
        Ok(Asked::Run(slap)) => drive(&slap.job, &Extras::default(), &mut MemaslapStyle::new(&slap)),
        Err(Refusal::Words(text)) => failed(format_args!("{program}: {text}")),
        Err(Refusal::Choice(text)) => failed(text),
        Err(Refusal::WithHelp(text)) => {
            say(text);
            printed(HELP);
            Exit::Failed
        }
    }
}

/// Reads a command line with the files of this machine.
///
/// # Errors
/// Returns [`Refusal`] with memaslap's words for an option, a value or a configuration file that is refused, and
/// where no server is named.
pub fn read_here(words: impl Iterator<Item = String>, edge: &Edge, cpus: &[usize]) -> Result<Asked, Refusal> {
    read(words, &Ground { edge, home: std::env::home_dir(), cpus, open: &|path| std::fs::read(path) })
}

fn failed(text: impl Display) -> Exit {
    say(text);
    Exit::Failed
}

/// Prints at once; a reader that has read enough is no error.
fn printed(text: &str) -> Exit {
    match print(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => failed(error),
        _ => Exit::Complete,
    }
}
