//! The command lines of other tools: what they ask for is done here.

use std::ffi::OsString;
use std::{fs, io};

use pummel_engine::{clock, sys};
use pummel_fronts::exit_status::Exit;
use pummel_fronts::front::{Front, Machine, OneRun, Request, RunsInTurn, Text};
use pummel_fronts::job::FrontInputs;
use pummel_logic::plan::{Plan, memory};

use crate::commands::mutilate;
#[cfg(feature = "agents")]
use crate::commands::mutilate_agent;
use crate::job::driver::{Extras, drive};
use crate::job::outlets::FrontFiles;
use crate::output::print;
use crate::stderr;

/// Follows a command line of a front; `words` stand behind `program`, which is how the errors of some tools begin.
pub fn follow(front: &Front, program: &str, words: &[OsString], inputs: &FrontInputs) -> Exit {
    let started = clock::now();
    let cpus = sys::allowed_cpus().unwrap_or_default();
    match request(front, program, words, inputs, &cpus) {
        Request::Text(_, text) => put(front, text).unwrap_or(Exit::Complete),
        Request::Refused { texts, exit, .. } => {
            texts.into_iter().fold(exit, |exit, text| put(front, text).unwrap_or(exit))
        }
        Request::Run(run) => one_run(front, run.as_ref()),
        Request::InTurn(runs) => in_turn(front, runs),
        Request::Runs(runs) => mutilate::follow_runs(&runs, started),
        #[cfg(feature = "agents")]
        Request::Agent(asked) => mutilate_agent::agent(&asked, &cpus),
        #[cfg(not(feature = "agents"))]
        Request::Agent(_) => failed(front, "--agentmode (-A): this pummel was built without agents"),
    }
}

/// What a command line of a front asks for on this machine.
pub fn request(
    front: &Front,
    program: &str,
    words: &[OsString],
    inputs: &FrontInputs,
    cpus: &[usize],
) -> Request {
    let words = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let machine = Machine { inputs, home: std::env::home_dir(), cpus, open: &|path| fs::read(path) };
    (front.read)(program, words, &machine)
}

fn one_run(front: &Front, run: &dyn OneRun) -> Exit {
    if let Err(words) = run.check_memory(&memory_for) {
        return failed(front, &words);
    }
    let files = FrontFiles { log: run.log().map(ToOwned::to_owned), own: run.own_files() };
    let extras = Extras { files, password: run.password(), ..Extras::default() };
    drive(run.job(), &extras, run.style(sys::first_signal).as_mut())
}

/// Makes runs one after the other, up to the first that is not complete.
fn in_turn(front: &Front, asked: RunsInTurn) -> Exit {
    let RunsInTurn { before, runs, repeats, after, interrupted } = asked;
    if let Some(exit) = before.into_iter().find_map(|text| put(front, text)) {
        return exit;
    }
    loop {
        for run in &runs {
            match one_run(front, run.as_ref()) {
                Exit::Complete => {}
                Exit::Interrupted => return interrupted,
                exit => return exit,
            }
        }
        if !repeats || runs.is_empty() {
            break;
        }
    }
    after.and_then(|text| put(front, text)).unwrap_or(Exit::Complete)
}

/// Prints a text; a reader that has read enough is no error. Returns the exit status where it cannot be printed.
fn put(front: &Front, text: Text) -> Option<Exit> {
    match text {
        Text::Error(text) => stderr::write(text),
        Text::Output(text) => match print(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                return Some(failed(front, &error.to_string()));
            }
            _ => {}
        },
    }
    None
}

fn failed(front: &Front, words: &str) -> Exit {
    let (text, exit) = (front.failure)(words);
    stderr::write(text);
    exit
}

/// Asks this machine for the memory that a plan needs, before anything is sent.
///
/// # Errors
/// Returns a clause that says how much is needed, where this machine does not have so much, or does not give it to this process.
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
    Err(format!("this run needs {} and {why}", gigabytes(need_bytes)))
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
