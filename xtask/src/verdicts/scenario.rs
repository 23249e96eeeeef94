//! What a scenario consists of: a server, the way to it, what disturbs the run, and the verdict that is right.

use super::stage::Said;
use super::witness::Witness;
use crate::network::Way;

/// The server of a scenario, with its own options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// memcached.
    Memcached(&'static str),
    /// redis-server.
    Redis(&'static str),
    /// The built-in server, which misbehaves as it is told to.
    BuiltIn(&'static str),
}

/// A side of the exchange, and its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The generator.
    Client,
    /// The server.
    Server,
}

/// What is done to a run, beside its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// A process that computes on the CPU of a side.
    Busy(Side),
    /// A control group that leaves a side so many percent of a CPU.
    Quota(Side, u32),
    /// A side is stopped for the first time of each sum of both, in milliseconds.
    Bursts(Side, u32, u32),
    /// Another client of the server with these words, beside the server.
    SecondClient(&'static str),
    /// A side is stopped (SIGSTOP) once: so many milliseconds after the run was started, for so many milliseconds.
    Pause(Side, u32, u32),
    /// A line is sent to the server so many milliseconds after the run was started, such as `DEBUG SLEEP 0.5`.
    Line(u32, &'static str),
    /// The server is killed so many milliseconds after the run was started, and started anew after so many more.
    Restart(u32, u32),
    /// Another program on the machine of the server has a full queue of its listening socket, so that the machine's counters
    /// of such queues rise.
    FullListenQueue,
}

/// The CPUs on which the two sides run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cpus {
    /// Each side has one of its own.
    Apart,
    /// Both sides have the one of the server.
    One,
    /// Both sides have both.
    Both,
}

/// A load, and what it is made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Words of `pummel run` beside those of its scenario.
    pub words: &'static str,
    /// Number of agents that make it; 0 where the run itself does.
    pub agents: usize,
}

/// A load of one process.
pub const fn one(words: &'static str) -> Load {
    Load { words, agents: 0 }
}

/// A load of two agents.
pub const fn two_agents(words: &'static str) -> Load {
    Load { words, agents: 2 }
}

impl Load {
    /// The load as words of a table.
    pub fn name(&self) -> String {
        let is_open = self.words.contains("--rate");
        let by = match (self.agents, self.words.contains("-T 2")) {
            (0, true) => "2 threads".to_owned(),
            (0, false) => "1 thread".to_owned(),
            (agents, _) => format!("{agents} agents"),
        };
        format!("{}, {by}: {}", if is_open { "open" } else { "closed" }, self.words)
    }
}

/// A staged row of the table of limits, or a neighbour of one: a situation that looks alike and has another cause.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The row that has to hold; empty where any row is right that is not in `must_not`.
    pub row: &'static str,
    /// The limit that it names; empty where any is right.
    pub limit: &'static str,
    /// The rows that must not hold.
    pub must_not: &'static [&'static str],
    /// Words that the sentences of the verdict and of the trust must have, all of them.
    pub says: &'static [&'static str],
    /// Words that neither the sentence of the verdict nor that of the trust may have.
    pub never_says: &'static [&'static str],
    /// What has to be seen from outside of pummel for the staging to count, all of it.
    pub witnesses: &'static [Witness],
    /// How it is staged, as words of a table.
    pub staged: &'static str,
    /// The way to the server.
    pub way: Way,
    /// The server.
    pub server: Server,
    /// What is done beside the load.
    pub disturbances: &'static [Disturbance],
    /// The CPUs of both sides.
    pub cpus: Cpus,
    /// Seconds that a run lasts at least, whatever `--seconds` says.
    pub seconds_min: f64,
    /// Words of `pummel run` that all of its loads have.
    pub words: &'static str,
    /// The loads.
    pub loads: &'static [Load],
}

impl Scenario {
    /// Whether it is a neighbour of a row: a situation that must not be taken for the one of the row.
    pub fn is_neighbour(&self) -> bool {
        !self.must_not.is_empty() || !self.never_says.is_empty()
    }

    /// The verdict that is right, as words of a table.
    pub fn name(&self) -> String {
        let not = self.must_not.iter().map(|row| format!("not {row}"));
        let not = not.chain(self.never_says.iter().map(|words| format!("never \"{words}\"")));
        let row = Some(self.row.to_owned()).filter(|row| !row.is_empty());
        row.into_iter().chain(not).collect::<Vec<String>>().join(", ")
    }

    /// Whether a verdict is right.
    pub fn accepts(&self, said: &Said) -> bool {
        let is_row = self.row.is_empty() || said.row == self.row;
        let is_limit = self.limit.is_empty() || said.limit == self.limit;
        let has = |words: &&str| said.says.contains(words) || said.trust.contains(words);
        let is_other = !self.must_not.contains(&said.row.as_str()) && !self.never_says.iter().any(has);
        is_row && is_limit && is_other && self.says.iter().all(has)
    }
}

/// A row that is not staged, and why.
pub struct Unstaged {
    /// The row, and what of it.
    pub row: &'static str,
    /// Why it is not staged.
    pub why: &'static str,
}

/// A scenario with nothing in it: every other one is made from it.
pub const PLAIN: Scenario = Scenario {
    row: "",
    limit: "",
    must_not: &[],
    says: &[],
    never_says: &[],
    witnesses: &[],
    staged: "",
    way: Way::Loopback,
    server: Server::Memcached("-t 1 -m 256"),
    disturbances: &[],
    cpus: Cpus::Apart,
    seconds_min: 0.0,
    words: "--records 1k",
    loads: &[],
};

#[cfg(test)]
mod tests {
    use super::*;

    fn said(row: &str, limit: &str, says: &str, trust: &str) -> Said {
        let [row, limit, says, trust] = [row, limit, says, trust].map(str::to_owned);
        Said { row, limit, says, trust, ..Said::default() }
    }

    #[test]
    fn a_row_accepts_its_own_name_and_limit_only() {
        let row = Scenario { row: "slots", limit: "connections", says: &["2 connections"], ..PLAIN };
        assert!(row.accepts(&said("slots", "connections", "Of 2 connections.", "")));
        assert!(!row.accepts(&said("slots", "connections", "Of 3 connections.", "")));
        assert!(!row.accepts(&said("slots", "server", "Of 2 connections.", "")));
        assert!(!row.accepts(&said("in-flight", "connections", "Of 2 connections.", "")));
        assert_eq!((row.name().as_str(), row.is_neighbour()), ("slots", false));
    }

    #[test]
    fn a_neighbour_accepts_every_other_row() {
        let near = Scenario { must_not: &["slots", "in-flight"], never_says: &["not known"], ..PLAIN };
        assert!(near.accepts(&said("server-cpu", "server", "The CPU.", "")));
        assert!(!near.accepts(&said("in-flight", "connections", "In flight.", "")));
        assert!(!near.accepts(&said("server-cpu", "server", "The CPU.", "Its cause is not known.")));
        assert_eq!(near.name(), "not slots, not in-flight, never \"not known\"");
        assert!(near.is_neighbour());
        let named = Scenario { row: "server-cpu", limit: "server", ..near };
        assert!(!named.accepts(&said("way", "network", "The way.", "")));
    }

    #[test]
    fn a_load_is_named_by_its_loop_and_what_makes_it() {
        let name = |words, agents| Load { words, agents }.name();
        assert_eq!(name("-c 4", 0), "closed, 1 thread: -c 4");
        assert_eq!(name("-c 4 -T 2 --rate 5", 0), "open, 2 threads: -c 4 -T 2 --rate 5");
        assert_eq!(name("-c 4", 3), "closed, 3 agents: -c 4");
    }
}
