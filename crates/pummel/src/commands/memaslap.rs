//! `pummel memaslap`: follows its command line.

use std::ffi::OsString;
use std::fmt::Display;
use std::{fs, io};

use pummel_engine::sys;
use pummel_logic::plan::{Plan, memory};

use crate::job::driver::{Extras, drive};
use crate::output::print;
use crate::stderr::say;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::FrontInputs;
use pummel_fronts::memaslap::style::MemaslapStyle;
use pummel_fronts::memaslap::{HELP, MemaslapCommand, MemaslapInputs, Refusal, VERSION, read, unallocated};

/// Follows the words behind `program`, which is how the parser's errors begin.
pub fn memaslap(program: &str, words: &[OsString], front: &FrontInputs) -> Exit {
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    match read_here(words, front, &sys::allowed_cpus().unwrap_or_default()) {
        Ok(MemaslapCommand::Help) => printed(HELP),
        Ok(MemaslapCommand::Version) => printed(VERSION),
        Ok(MemaslapCommand::Run(run)) => match memory_for(&run.job.plan) {
            Ok(()) => drive(&run.job, &Extras::default(), &mut MemaslapStyle::new(&run, sys::first_signal)),
            Err(text) => failed(text),
        },
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
pub fn read_here(
    words: impl Iterator<Item = String>,
    front: &FrontInputs,
    cpus: &[usize],
) -> Result<MemaslapCommand, Refusal> {
    read(words, &MemaslapInputs { front, home: std::env::home_dir(), cpus, open: &|path| fs::read(path) })
}

/// Asks this machine for the memory that a plan needs, before anything is sent.
///
/// # Errors
/// Returns memaslap's words where this machine does not have so much, or does not give it to this process.
fn memory_for(plan: &Plan) -> Result<(), String> {
    let need_bytes = memory::need_bytes(plan);
    let free_bytes = fs::read_to_string("/proc/meminfo").ok().and_then(|text| free_bytes(&text));
    let given =
        usize::try_from(need_bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
    let is_there = free_bytes.is_none_or(|free_bytes| need_bytes <= free_bytes);
    if given && is_there {
        return Ok(());
    }
    let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
    let why = match free_bytes.filter(|_| !is_there) {
        Some(free_bytes) => format!("this machine has {} left", gigabytes(free_bytes)),
        None => "this process may not have so much".to_owned(),
    };
    Err(unallocated(&format!("this run needs {} and {why}", gigabytes(need_bytes))))
}

/// The bytes of memory and swap that processes can still have, from the text of `/proc/meminfo`; `None` where they do not
/// stand there.
fn free_bytes(text: &str) -> Option<u64> {
    let kilobytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    Some(1_024 * (kilobytes("MemAvailable")? + kilobytes("SwapFree").unwrap_or(0)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_what_is_available_and_the_swap_that_is_not_used() {
        let text = "MemTotal:  16000 kB\nMemFree:  100 kB\nMemAvailable:    9000 kB\nSwapTotal: 0 kB\nSwapFree: 24 kB\n";
        assert_eq!(free_bytes(text), Some(9_024 * 1_024));
        assert_eq!(free_bytes("MemAvailable: 3 kB\n"), Some(3 * 1_024));
        assert_eq!(free_bytes("MemTotal: 3 kB\n"), None);
    }
}
