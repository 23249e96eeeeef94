//! Agents that are started for one run, by ssh or Slurm, and that end with it.

mod launched;
mod process;
mod program;
mod slurm;
mod ssh;
mod wait;
mod watchdog;

use std::collections::BTreeSet;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pummel_fronts::launch_spec::LaunchSpec;

pub use launched::{LaunchError, LaunchedAgent, LaunchedAgents};
use wait::{LaunchOptions, POLL_INTERVAL};
pub use watchdog::{Watchdog, first_line};

/// The agents that are wanted.
#[derive(Clone, Copy, Debug)]
pub struct LaunchRequest<'a> {
    /// Place where they are started.
    pub spec: &'a LaunchSpec,
    /// The only files of their machines that they read for a plan.
    pub files: &'a BTreeSet<String>,
    /// Longest time of a host without a sign of progress.
    pub patience: Duration,
}

impl LaunchedAgents {
    /// Starts the agents, and returns when each of them can be reached. `say` says a sentence about what takes time or changes a host.
    ///
    /// # Errors
    /// Returns [`LaunchError`] when an agent cannot be started, or `is_unwanted` returns true first; all agents are ended
    /// then.
    pub fn start(
        request: LaunchRequest<'_>,
        is_unwanted: &dyn Fn() -> bool,
        say: fn(fmt::Arguments<'_>),
    ) -> Result<LaunchedAgents, LaunchError> {
        let flag = AtomicBool::new(false);
        let LaunchRequest { spec, files, patience } = request;
        let tell = |words: &str| say(format_args!("{words}"));
        let options = LaunchOptions { patience, files, is_unwanted: &flag, tell: &tell };
        let result = thread::scope(|scope| {
            let work = scope.spawn(move || launch(spec, options));
            while !work.is_finished() {
                flag.fetch_or(is_unwanted(), Ordering::Relaxed);
                thread::sleep(POLL_INTERVAL);
            }
            work.join()
        });
        let mut launched = result.unwrap_or_else(|panic| resume_unwind(panic))?;
        launched.follow(say);
        Ok(launched)
    }
}

fn launch(spec: &LaunchSpec, options: LaunchOptions<'_>) -> Result<LaunchedAgents, LaunchError> {
    let mut launched = match spec {
        LaunchSpec::Ssh(hosts) => ssh::launch(hosts, options)?,
        LaunchSpec::Slurm(nodes) => slurm::launch(*nodes, options)?,
    };
    let names = names(launched.agents.iter().map(|agent| agent.name.clone()).collect());
    for (agent, name) in launched.agents.iter_mut().zip(names) {
        agent.name = name;
    }
    Ok(launched)
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
