//! Agents for tests: real processes on free ports of loopback.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use super::{PATIENCE, Process};

/// A running `pummel agent`.
pub struct Agent {
    pub process: Process,
    /// Address as `--agents` takes it.
    pub name: String,
    errors: Receiver<String>,
}

impl Agent {
    pub fn start() -> Agent {
        Agent::start_with(&[])
    }

    pub fn start_with(args: &[&str]) -> Agent {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
        command.args(["agent", "--listen", "127.0.0.1:0"]).args(args);
        Agent::of(command)
    }

    /// The agent that this command starts.
    pub fn of(mut command: Command) -> Agent {
        let mut child: Child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the agent starts");
        let out = child.stdout.take().expect("it is piped");
        let err = child.stderr.take().expect("it is piped");
        let process = Process(child);
        let (say, errors) = channel();
        thread::spawn(move || {
            for line in BufReader::new(err).lines().map_while(Result::ok) {
                if say.send(line).is_err() {
                    return;
                }
            }
        });
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).expect("the agent says where it listens");
        let name = line.strip_prefix("listening on ").unwrap_or_else(|| {
            panic!("{line:?}: {:?}", errors.iter().collect::<Vec<String>>());
        });
        Agent { process, name: name.trim_end().to_owned(), errors }
    }

    pub fn many(count: usize) -> Vec<Agent> {
        (0..count).map(|_| Agent::start()).collect()
    }

    /// Waits until it says something on standard error that has these words.
    #[track_caller]
    pub fn wait_for(&self, words: &str) -> String {
        let end = Instant::now() + PATIENCE;
        let mut said = Vec::new();
        loop {
            let line = self.errors.recv_timeout(end.saturating_duration_since(Instant::now()));
            let line =
                line.unwrap_or_else(|why| panic!("the agent did not say {words:?} ({why}), but {said:?}"));
            if line.contains(words) {
                return line;
            }
            said.push(line);
        }
    }
}

/// Several agents, as `--agents` takes them.
pub fn list(agents: &[Agent]) -> String {
    agents.iter().map(|agent| agent.name.as_str()).collect::<Vec<&str>>().join(",")
}
