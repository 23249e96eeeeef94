//! The lines on what ran: the servers, how many runs were made, and their load.

use pummel_measure::words::counted;

use crate::repetition::Repetition;
use crate::view::pair::sides::run_length;
use crate::view::run::ran::{load, servers};

/// The runs that were made, of those that were asked for where some are missing.
pub(super) fn runs_made(repetition: &Repetition) -> String {
    let made = repetition.runs.len();
    match made < repetition.asked as usize {
        true => format!("{made} of {}", counted(u64::from(repetition.asked), "run")),
        false => counted(made as u64, "run"),
    }
}

/// The lines on what ran.
pub(super) fn ran(repetition: &Repetition) -> Vec<Vec<String>> {
    let plan = &repetition.plan;
    let programs = repetition.source.servers.iter();
    let programs = programs.map(|server| (server.software.as_str(), server.version.as_str()));
    let title = format!("pummel {}", repetition.tool.version);
    let runs = format!("{}{}", runs_made(repetition), run_length(plan, repetition.runs.iter()));
    vec![vec![title, servers(plan, None, programs), runs], vec![load(plan, 0)]]
}
