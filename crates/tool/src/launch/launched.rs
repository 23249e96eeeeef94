//! Agents that were started for one run, what ends them, and why some could not be started.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::mpsc::Receiver;
use std::thread;

use crate::launch::process::{Errand, News};
use crate::stderr::say;

/// An agent that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The host or node as the user knows it; no two of a placement are the same.
    pub name: String,
    /// Where this machine reaches it.
    pub address: SocketAddr,
    /// The word that it wants to hear, which nobody else knows.
    pub token: String,
}

/// Agents that were started, for as long as this value lives: dropped, it ends all of them. They end by themselves when
/// this process does, in whatever way.
#[derive(Debug)]
pub struct Placement {
    pub(super) placed: Vec<Placed>,
    pub(super) errands: Vec<Errand>,
}

/// Why agents were not placed. Nothing is left of those that were.
#[derive(Debug, PartialEq, Eq)]
pub enum PlaceError {
    /// The user did not want to wait any longer.
    Interrupted,
    /// This machine is in no state to place anything.
    Here(String),
    /// These could not be placed: name and reason of each.
    There(Vec<(String, String)>),
}

impl fmt::Display for PlaceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceError::Interrupted => out.write_str("interrupted while the agents were started"),
            PlaceError::Here(why) => out.write_str(why),
            PlaceError::There(failures) => {
                let named: Vec<_> =
                    failures.iter().map(|(name, why)| format!("agent {name}: {why}")).collect();
                out.write_str(&named.join("; "))
            }
        }
    }
}

impl std::error::Error for PlaceError {}

impl Placement {
    /// The agents, in the order in which they were asked for.
    pub fn placed(&self) -> &[Placed] {
        &self.placed
    }

    /// Passes on what the agents say from now on.
    pub(super) fn follow(&mut self) {
        // One errand may serve several agents, which then tell their names themselves.
        let is_one_each = self.errands.len() == self.placed.len();
        for (index, errand) in self.errands.iter_mut().enumerate() {
            let name = is_one_each.then(|| self.placed[index].name.clone());
            let news = errand.take_news();
            thread::spawn(move || pass_on(name.as_deref(), &news));
        }
    }
}

impl Drop for Placement {
    fn drop(&mut self) {
        for errand in &mut self.errands {
            errand.release();
        }
        // Each may take its time to end, and none waits for another.
        thread::scope(|scope| {
            for errand in self.errands.drain(..) {
                scope.spawn(move || drop(errand));
            }
        });
    }
}

fn pass_on(name: Option<&str>, news: &Receiver<News>) {
    for news in news {
        match (name, news) {
            (Some(name), News::Aside(line)) => say(format_args!("agent {name}: {line}")),
            (None, News::Aside(line)) => say(format_args!("agent {line}")),
            (_, News::Line(_) | News::Taken | News::Silent) => {}
        }
    }
}

/// What nobody can guess: 128 bits, in hexadecimal.
pub(super) fn chance() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_never_the_same() {
        let (one, other) = (chance().expect("chance"), chance().expect("chance"));
        assert_eq!(one.len(), 32);
        assert_ne!(one, other);
    }
}
