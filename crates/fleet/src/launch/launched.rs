//! Agents that were started for one run, what ends them, and why some could not be started.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::mpsc::Receiver;
use std::thread;

use pummel_logic::secrets::Secret;
use pummel_report::visible::foreign;

use crate::launch::process::{ChildProcess, ProcessEvent};

/// An agent that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchedAgent {
    /// The host or node as the user knows it; no two agents of one launch have the same name.
    pub name: String,
    /// The address where this machine reaches the agent.
    pub address: SocketAddr,
    /// The token that the agent asks for. Only this process and the agent know it.
    pub token: Secret,
}

/// The agents of one launch. Dropping this value ends all of them; they end by themselves when this process ends in
/// another way.
#[derive(Debug)]
pub struct LaunchedAgents {
    pub(super) agents: Vec<LaunchedAgent>,
    pub(super) processes: Vec<ChildProcess>,
}

/// Why agents were not started. Those that were started have been ended.
#[derive(Debug, PartialEq, Eq)]
pub enum LaunchError {
    /// The user ended the wait.
    Interrupted,
    /// This machine cannot start agents, for this reason.
    Here(String),
    /// The agents that could not be started: name and reason of each.
    There(Vec<(String, String)>),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::Interrupted => out.write_str("interrupted while the agents were started"),
            LaunchError::Here(why) => out.write_str(why),
            LaunchError::There(failures) => {
                let named: Vec<_> =
                    failures.iter().map(|(name, why)| format!("agent {name}: {why}")).collect();
                out.write_str(&named.join("; "))
            }
        }
    }
}

impl std::error::Error for LaunchError {}

impl LaunchedAgents {
    /// The agents, in the order in which they were asked for.
    pub fn agents(&self) -> &[LaunchedAgent] {
        &self.agents
    }

    /// Passes on what the agents say from now on.
    pub(super) fn follow(&mut self, say: fn(fmt::Arguments<'_>)) {
        // One process may serve several agents, which then tell their names themselves.
        let is_one_each = self.processes.len() == self.agents.len();
        for (index, process) in self.processes.iter_mut().enumerate() {
            let name = is_one_each.then(|| self.agents[index].name.clone());
            let events = process.take_events();
            thread::spawn(move || pass_on(name.as_deref(), &events, say));
        }
    }
}

impl Drop for LaunchedAgents {
    fn drop(&mut self) {
        for process in &mut self.processes {
            process.release();
        }
        // Each may take its time to end, and none waits for another.
        thread::scope(|scope| {
            for process in self.processes.drain(..) {
                scope.spawn(move || drop(process));
            }
        });
    }
}

fn pass_on(name: Option<&str>, events: &Receiver<ProcessEvent>, say: fn(fmt::Arguments<'_>)) {
    for events in events {
        match (name, events) {
            (Some(name), ProcessEvent::StderrLine(line)) => {
                say(format_args!("agent {name}: {}", foreign(&line)))
            }
            (None, ProcessEvent::StderrLine(line)) => say(format_args!("agent {}", foreign(&line))),
            (_, ProcessEvent::StdoutLine(_) | ProcessEvent::StdinTaken | ProcessEvent::StdoutEnded) => {}
        }
    }
}

/// A token that cannot be guessed: 128 bits from the operating system, in hexadecimal.
pub(super) fn random_token() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tokens_are_the_same() {
        let (one, other) = (random_token().expect("random bytes"), random_token().expect("random bytes"));
        assert_eq!(one.len(), 32);
        assert_ne!(one, other);
    }
}
