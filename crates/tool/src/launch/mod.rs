//! Agents that are started for one run, by ssh or Slurm, and that end with it.

mod launched;
mod process;
mod program;
mod slurm;
mod ssh;
mod wait;
mod watchdog;

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::job::launch_spec::Placing;
pub use launched::{PlaceError, Placed, Placement};
use wait::{GLANCE, Manner};
pub use watchdog::{Watchdog, first_line};

impl Placement {
    /// Starts the agents, and returns when each of them can be reached. A host may take `patience` to show a sign of
    /// progress; `tell` hears of what takes time or changes a host.
    ///
    /// # Errors
    /// When one of them cannot be started, or `is_unwanted` says so first: all are ended then.
    pub fn start(
        placing: &Placing,
        patience: Duration,
        is_unwanted: &dyn Fn() -> bool,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<Placement, PlaceError> {
        let flag = AtomicBool::new(false);
        let manner = Manner { patience, is_unwanted: &flag, tell };
        let placed = thread::scope(|scope| {
            let work = scope.spawn(move || place(placing, manner));
            while !work.is_finished() {
                flag.fetch_or(is_unwanted(), Ordering::Relaxed);
                thread::sleep(GLANCE);
            }
            work.join()
        });
        let mut placement = placed.unwrap_or_else(|panic| resume_unwind(panic))?;
        placement.follow();
        Ok(placement)
    }
}

fn place(placing: &Placing, manner: Manner<'_>) -> Result<Placement, PlaceError> {
    let mut placement = match placing {
        Placing::Ssh(hosts) => ssh::place(hosts, manner)?,
        Placing::Slurm(nodes) => slurm::place(*nodes, manner)?,
    };
    let names = names(placement.placed.iter().map(|placed| placed.name.clone()).collect());
    for (placed, name) in placement.placed.iter_mut().zip(names) {
        placed.name = name;
    }
    Ok(placement)
}

/// Names as given, with a number behind those that were given before.
fn names(given: Vec<String>) -> Vec<String> {
    let is_again = |at: usize| given[..at].iter().filter(|before| **before == given[at]).count();
    let numbered = (0..given.len()).map(|at| match is_again(at) {
        0 => given[at].clone(),
        before => format!("{}#{}", given[at], before + 1),
    });
    numbered.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_given_before_gets_a_number() {
        let given = ["a", "b", "a", "a"].map(str::to_owned).to_vec();
        assert_eq!(names(given), ["a", "b", "a#2", "a#3"]);
    }
}
