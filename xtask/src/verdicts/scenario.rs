//! The parts of a scenario: a server, the way to it, what disturbs the run, and the verdict that is right; `scenes.toml` has all.

use std::io;

use serde::Deserialize;
use serde_json::Value;

use crate::network::Way;

/// The scenarios, the runs against idle servers, and the rows of the table that no scenario stages.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenes {
    /// Scenarios, in groups by the rows that they name.
    #[serde(rename = "scene")]
    pub scenarios: Vec<Scenario>,
    /// Runs in which the verdict must name no limit.
    pub idle: Vec<Idle>,
    /// Rows of the table that no scenario stages, and parts of rows.
    pub unstaged: Vec<Unstaged>,
}

impl Scenes {
    /// Reads the scenes that this program was built with.
    pub fn read() -> io::Result<Scenes> {
        toml::from_str(include_str!("scenes.toml"))
            .map_err(|error| io::Error::other(format!("scenes.toml: {error}")))
    }
}

/// The server of a scenario, with its own options.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Server {
    /// memcached with these options.
    Memcached(String),
    /// redis-server with these options.
    Redis(String),
    /// The built-in server, which misbehaves as it is told to.
    BuiltIn(String),
}

/// A side of the exchange, and its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Side of the generator.
    Client,
    /// Side of the server.
    Server,
}

/// A disturbance of a run, beside its load.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disturbance {
    /// A process that computes on the CPU of a side.
    Busy(Side),
    /// A control group that leaves a side so many percent of a CPU.
    Quota(Side, u32),
    /// A side is stopped for the first time of each sum of both, in milliseconds.
    Bursts(Side, u32, u32),
    /// Another client of the server with these words, beside the server.
    SecondClient(String),
    /// A side is stopped (SIGSTOP) once: so many milliseconds after the run was started, for so many milliseconds.
    Pause(Side, u32, u32),
    /// A line is sent to the server so many milliseconds after the run was started, such as `DEBUG SLEEP 0.5`.
    Line(u32, String),
    /// The server is killed so many milliseconds after the run was started, and started anew after so many more.
    Restart(u32, u32),
    /// Another program on the machine of the server has a full queue of its listening socket, so that the machine's counters
    /// of such queues rise.
    FullListenQueue,
}

/// The CPUs on which the two sides run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cpus {
    /// Each side has one of its own.
    #[default]
    Apart,
    /// Both sides have the one of the server.
    One,
    /// Both sides have both.
    Both,
}

/// A figure that a witness reads before and after a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sees {
    /// A counter of the kernel of a side, as `nstat -as` names it, such as `TcpRetransSegs`: how much it rose.
    Kernel(Side, String),
    /// The rise of the first of two counters of the kernel of a side beyond that of the second, such as
    /// `TcpRetransSegs` and `TcpExtTCPDSACKRecv`.
    KernelBeyond(Side, String, String),
    /// A number in the statistics of the server (`stats` of memcached, `INFO everything` of Redis): how much it rose.
    Counter(String),
    /// Share of the time that Redis spent inside commands, by the `usec` of its commandstats.
    InCommands,
    /// Share of a CPU that the process of the server used.
    ServerCpu,
    /// The greatest share of its time for which a thread of the server wanted a CPU and had none (schedstat).
    ServerWaited,
    /// Share of the time for which a control group held its processes back.
    Throttled,
    /// Connections that the listening socket of the server turned away (`d` of `ss --memory`).
    ListenDrops,
    /// Sockets to the server's port in this state after the run, as `ss` names it, such as `time-wait`.
    Sockets(Side, String),
}

/// A figure, and the bounds between which it has to be for a staging to count.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Witness {
    /// The figure that is read.
    pub sees: Sees,
    /// Least value that counts.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// Greatest value that counts.
    #[serde(default)]
    pub at_most: Option<f64>,
}

impl Witness {
    /// The witness as words.
    pub fn words(&self) -> String {
        let least = self.at_least.map(|least| format!("{least} or more"));
        let most = self.at_most.map(|most| format!("{most} or less"));
        let bounds: Vec<String> = least.into_iter().chain(most).collect();
        format!("{:?} is {}", self.sees, bounds.join(" and "))
    }

    /// Whether this figure is as the witness demands it.
    pub fn accepts(&self, value: f64) -> bool {
        self.at_least.is_none_or(|least| value >= least) && self.at_most.is_none_or(|most| value <= most)
    }
}

/// A load, and what it is made by.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Words of `pummel run` beside those of its scenario.
    pub words: String,
    /// Number of agents that make it; 0 where the run itself does.
    #[serde(default)]
    pub agents: usize,
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
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// The row that has to hold; empty where any row is right that is not in `must_not`.
    pub row: String,
    /// The limit that it names; empty where any is right.
    pub limit: String,
    /// The rows that must not hold.
    pub must_not: Vec<String>,
    /// Words that the sentences of the verdict and of the trust must have, all of them.
    pub says: Vec<String>,
    /// Words that neither the sentence of the verdict nor that of the trust may have.
    pub never_says: Vec<String>,
    /// Figures that have to be seen from outside of pummel for the staging to count, all of them.
    pub witnesses: Vec<Witness>,
    /// The staging as words of a table.
    pub staged: String,
    /// The way to the server.
    pub way: Way,
    /// The server and its options.
    pub server: Server,
    /// Disturbances beside the load.
    pub disturbances: Vec<Disturbance>,
    /// The CPUs of both sides.
    pub cpus: Cpus,
    /// Seconds that a run lasts at least, whatever `--seconds` says.
    pub seconds_min: f64,
    /// Words of `pummel run` that all of its loads have.
    pub words: String,
    /// The loads that are tried.
    pub loads: Vec<Load>,
}

impl Default for Scenario {
    /// Memcached with one thread over loopback, and nothing else.
    fn default() -> Scenario {
        Scenario {
            row: String::new(),
            limit: String::new(),
            must_not: Vec::new(),
            says: Vec::new(),
            never_says: Vec::new(),
            witnesses: Vec::new(),
            staged: String::new(),
            way: Way::Loopback,
            server: Server::Memcached("-t 1 -m 256".to_owned()),
            disturbances: Vec::new(),
            cpus: Cpus::Apart,
            seconds_min: 0.0,
            words: "--records 1k".to_owned(),
            loads: Vec::new(),
        }
    }
}

impl Scenario {
    /// A scenario without disturbances, with these words of `pummel run`.
    pub fn quiet(words: &str) -> Scenario {
        Scenario { words: words.to_owned(), ..Scenario::default() }
    }

    /// Whether it is a neighbour of a row: a situation that must not be taken for the one of the row.
    pub fn is_neighbour(&self) -> bool {
        !self.must_not.is_empty() || !self.never_says.is_empty()
    }

    /// The verdict that is right, as words of a table.
    pub fn name(&self) -> String {
        let not = self.must_not.iter().map(|row| format!("not {row}"));
        let not = not.chain(self.never_says.iter().map(|words| format!("never \"{words}\"")));
        let row = Some(self.row.clone()).filter(|row| !row.is_empty());
        row.into_iter().chain(not).collect::<Vec<String>>().join(", ")
    }

    /// Whether a verdict is right.
    pub fn accepts(&self, said: &Said) -> bool {
        let is_row = self.row.is_empty() || said.row == self.row;
        let is_limit = self.limit.is_empty() || said.limit == self.limit;
        let has = |words: &String| said.says.contains(words) || said.trust.contains(words);
        let is_other = !self.must_not.contains(&said.row) && !self.never_says.iter().any(has);
        is_row && is_limit && is_other && self.says.iter().all(has)
    }
}

/// A run against a server that has nothing to do.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idle {
    /// The server and its options.
    pub server: Server,
    /// Words of `pummel run`.
    pub words: String,
}

/// A row that is not staged, and why.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unstaged {
    /// The row, and the part of it that is meant.
    pub row: String,
    /// Reason for not staging it.
    pub why: String,
}

/// Words of a run about its limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Name of the limit.
    pub limit: String,
    /// The row that held.
    pub row: String,
    /// The sentence about the limit.
    pub says: String,
    /// The sentence about how far the times may be believed; empty where there is none.
    pub trust: String,
    /// All figures that the rows are judged by, as words; for a run that is not complete the reason stands first.
    pub evidence: Vec<String>,
}

impl Said {
    /// Reads what a result says.
    ///
    /// # Errors
    /// Returns an error when the result has no verdict.
    pub fn of(result: &Value) -> io::Result<Said> {
        Said::found(result).ok_or_else(|| io::Error::other("the result has no verdict"))
    }

    fn found(result: &Value) -> Option<Said> {
        let text = |path: &str| Some(result.pointer(path)?.as_str()?.to_owned());
        let all = result.pointer("/verdict/evidence")?.as_array()?;
        let seen = all.iter().filter_map(|seen| Some(seen["says"].as_str()?.to_owned()));
        let evidence = text("/reason").into_iter().chain(seen).collect();
        Some(Said {
            limit: text("/verdict/limit")?,
            row: text("/verdict/row")?,
            says: text("/verdict/says")?,
            trust: text("/trust/says").unwrap_or_default(),
            evidence,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The table of limits, as it is written.
    const TABLE: &str =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/measure/src/limit/table.rs"));

    fn rows_of_table() -> Vec<&'static str> {
        let rows = TABLE.lines().filter_map(|line| line.trim().strip_prefix("Row { name: \""));
        rows.filter_map(|rest| rest.split('"').next()).collect()
    }

    fn said(row: &str, limit: &str, says: &str, trust: &str) -> Said {
        let [row, limit, says, trust] = [row, limit, says, trust].map(str::to_owned);
        Said { row, limit, says, trust, ..Said::default() }
    }

    fn scenario(text: &str) -> Scenario {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn every_row_of_the_table_is_staged_or_listed_as_unstaged() {
        let rows = rows_of_table();
        let scenes = Scenes::read().unwrap();
        assert!(rows.len() > 20, "{rows:?}");
        let is_unstaged =
            |row: &str| scenes.unstaged.iter().any(|unstaged| unstaged.row.split(',').next() == Some(row));
        for row in &rows {
            // The idle runs are the scenes of the last row.
            let is_staged = *row == "none" || scenes.scenarios.iter().any(|scenario| scenario.row == *row);
            assert!(is_staged || is_unstaged(row), "{row} has neither a scene nor a reason");
        }
        for unstaged in &scenes.unstaged {
            let row = unstaged.row.split(',').next().unwrap_or_default();
            assert!(rows.contains(&row), "{row} is no row of the table");
        }
    }

    #[test]
    fn scenes_name_rows_of_the_table_and_have_loads() {
        let rows = rows_of_table();
        for scenario in Scenes::read().unwrap().scenarios {
            let Scenario { row, must_not, staged, .. } = &scenario;
            for name in [row].into_iter().filter(|row| !row.is_empty()).chain(must_not) {
                assert!(rows.contains(&name.as_str()), "{staged}: {name} is no row of the table");
            }
            assert_eq!(row.is_empty(), scenario.limit.is_empty(), "{staged}");
            assert!(!row.is_empty() || scenario.is_neighbour(), "{staged}: every verdict would be right");
            assert!(!scenario.loads.is_empty(), "{staged}");
            let has_bound = |witness: &Witness| witness.at_least.or(witness.at_most).is_some();
            assert!(scenario.witnesses.iter().all(has_bound), "{staged}");
        }
    }

    #[test]
    fn a_row_accepts_its_own_name_and_limit_only() {
        let row = scenario("row = \"slots\"\nlimit = \"connections\"\nsays = [\"2 connections\"]");
        assert!(row.accepts(&said("slots", "connections", "Of 2 connections.", "")));
        assert!(!row.accepts(&said("slots", "connections", "Of 3 connections.", "")));
        assert!(!row.accepts(&said("slots", "server", "Of 2 connections.", "")));
        assert!(!row.accepts(&said("in-flight", "connections", "Of 2 connections.", "")));
        assert_eq!((row.name().as_str(), row.is_neighbour()), ("slots", false));
    }

    #[test]
    fn a_neighbour_accepts_every_other_row() {
        let near = scenario("must_not = [\"slots\", \"in-flight\"]\nnever_says = [\"not known\"]");
        assert!(near.accepts(&said("server-cpu", "server", "The CPU.", "")));
        assert!(!near.accepts(&said("in-flight", "connections", "In flight.", "")));
        assert!(!near.accepts(&said("server-cpu", "server", "The CPU.", "Its cause is not known.")));
        assert_eq!(near.name(), "not slots, not in-flight, never \"not known\"");
        assert!(near.is_neighbour());
        let named = Scenario { row: "server-cpu".to_owned(), limit: "server".to_owned(), ..near };
        assert!(!named.accepts(&said("way", "network", "The way.", "")));
    }

    #[test]
    fn a_load_is_named_by_its_loop_and_what_makes_it() {
        let name = |words: &str, agents| Load { words: words.to_owned(), agents }.name();
        assert_eq!(name("-c 4", 0), "closed, 1 thread: -c 4");
        assert_eq!(name("-c 4 -T 2 --rate 5", 0), "open, 2 threads: -c 4 -T 2 --rate 5");
        assert_eq!(name("-c 4", 3), "closed, 3 agents: -c 4");
    }

    #[test]
    fn a_verdict_is_read_from_a_result() {
        let result = json!({"verdict": {
            "limit": "server", "row": "server-cpu", "says": "The CPU.", "evidence": [{"says": "busy 3 %"}]
        }});
        let found = Said::of(&result).unwrap();
        assert_eq!(
            found,
            Said { evidence: vec!["busy 3 %".to_owned()], ..said("server-cpu", "server", "The CPU.", "") }
        );
        assert!(Said::of(&json!({"verdict": {"limit": "server"}})).is_err());
    }
}
