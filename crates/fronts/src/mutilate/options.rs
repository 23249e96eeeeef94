//! mutilate's options: the table, what a command line gives, and what it is told when it is wrong.

use std::fmt;

use pummel_logic::secrets::Secret;

use crate::c_numbers::{strtod, strtol};
use crate::getopt::{Choice, Event, Getopt, Takes};
use crate::launch_spec::LaunchSpec;
use crate::outputs::ResultPaths;

/// Most connections that one thread opens to one server.
const CONNECTIONS_MAX: i64 = 512;

/// Everything that a command line can give, in the order of the help; what pummel adds comes last.
#[rustfmt::skip]
pub const TABLE: &[Choice] = &[
    Choice::both('h', "help", Takes::Nothing),
    Choice::long("version", Takes::Nothing),
    Choice::both('v', "verbose", Takes::Nothing),
    Choice::long("quiet", Takes::Nothing),
    Choice::both('s', "server", Takes::Value),
    Choice::long("unix_socket", Takes::Nothing),
    Choice::long("binary", Takes::Nothing),
    Choice::long("redis", Takes::Nothing),
    Choice::long("getset", Takes::Nothing),
    Choice::long("getsetorset", Takes::Nothing),
    Choice::long("successful", Takes::Nothing),
    Choice::long("prefix", Takes::Value),
    Choice::long("delete90", Takes::Nothing),
    Choice::long("assoc", Takes::Value),
    Choice::both('q', "qps", Takes::Value),
    Choice::both('t', "time", Takes::Value),
    Choice::long("read_file", Takes::Value),
    Choice::long("twitter_trace", Takes::Value),
    Choice::both('K', "keysize", Takes::Value),
    Choice::both('V', "valuesize", Takes::Value),
    Choice::both('r', "records", Takes::Value),
    Choice::both('m', "misswindow", Takes::Value),
    Choice::both('N', "queries", Takes::Value),
    Choice::both('u', "update", Takes::Value),
    Choice::both('U', "username", Takes::Value),
    Choice::both('P', "password", Takes::Value),
    Choice::both('T', "threads", Takes::Value),
    Choice::long("affinity", Takes::Nothing),
    Choice::both('c', "connections", Takes::Value),
    Choice::both('d', "depth", Takes::Value),
    Choice::both('R', "roundrobin", Takes::Nothing),
    Choice::both('i', "iadist", Takes::Value),
    Choice::both('S', "skip", Takes::Nothing),
    Choice::long("moderate", Takes::Nothing),
    Choice::long("noload", Takes::Nothing),
    Choice::long("loadonly", Takes::Nothing),
    Choice::both('B', "blocking", Takes::Nothing),
    Choice::long("no_nodelay", Takes::Nothing),
    Choice::both('w', "warmup", Takes::Value),
    Choice::both('W', "wait", Takes::Value),
    Choice::long("save", Takes::Value),
    Choice::long("search", Takes::Value),
    Choice::long("scan", Takes::Value),
    Choice::both('A', "agentmode", Takes::Nothing),
    Choice::both('a', "agent", Takes::Value),
    Choice::both('p', "agent_port", Takes::Value),
    Choice::both('l', "lambda_mul", Takes::Value),
    Choice::both('C', "measure_connections", Takes::Value),
    Choice::both('Q', "measure_qps", Takes::Value),
    Choice::both('D', "measure_depth", Takes::Value),
    Choice::added("response", Takes::Nothing),
    Choice::added("p50", Takes::Nothing),
    Choice::added("no-evidence", Takes::Nothing),
    Choice::added("anonymous", Takes::Nothing),
    Choice::added("all_rows", Takes::Nothing),
    Choice::added("save_all", Takes::Nothing),
    Choice::added("json", Takes::Value),
    Choice::added("csv", Takes::Value),
    Choice::added("hdr", Takes::Value),
    Choice::added("samples", Takes::Value),
    Choice::added("clock", Takes::Value),
    Choice::added("seed", Takes::Value),
];

/// Options that may be given more than once.
const REPEATABLE: [&str; 3] = ["verbose", "server", "agent"];

/// Why a command line is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The words themselves are wrong: status 1.
    Words(String),
    /// What they ask for cannot be: status 255.
    Fatal(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Words(text) | Refusal::Fatal(text) => out.write_str(text),
        }
    }
}

impl std::error::Error for Refusal {}

pub(super) fn fatal(text: impl Into<String>) -> Refusal {
    Refusal::Fatal(text.into())
}

/// What a command line asks for before anything else.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// `--help`.
    Help,
    /// `--version`.
    Version,
    /// A run.
    Options(Box<Options>),
}

/// The options of a run, as they were given.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // Each is named after its option.
pub struct Options {
    pub verbose: u32,
    pub quiet: bool,
    pub servers: Vec<String>,
    pub unix_socket: bool,
    pub binary: bool,
    pub redis: bool,
    pub getset: bool,
    pub getsetorset: bool,
    pub successful: bool,
    pub prefix: String,
    pub delete90: bool,
    pub assoc: Option<i64>,
    pub qps: i64,
    pub time: Option<i64>,
    pub read_file: String,
    pub twitter_trace: i64,
    pub keysize: String,
    pub valuesize: String,
    pub records: i64,
    pub misswindow: i64,
    pub queries: i64,
    pub update: f64,
    pub username: Option<String>,
    pub password: Option<Secret>,
    pub threads: i64,
    pub affinity: bool,
    pub connections: i64,
    pub depth: i64,
    pub roundrobin: bool,
    pub iadist: String,
    pub skip: bool,
    pub moderate: bool,
    pub noload: bool,
    pub loadonly: bool,
    pub blocking: bool,
    pub no_nodelay: bool,
    pub warmup: i64,
    pub wait: i64,
    pub save: Option<String>,
    pub search: Option<String>,
    pub scan: Option<String>,
    pub agentmode: bool,
    pub agents: Vec<String>,
    pub agent_port: Option<String>,
    pub lambda_mul: Option<i64>,
    pub measure_connections: Option<i64>,
    pub measure_qps: Option<i64>,
    pub measure_depth: Option<i64>,
    pub response: bool,
    pub p50: bool,
    pub no_evidence: bool,
    pub anonymous: bool,
    pub all_rows: bool,
    pub save_all: bool,
    pub files: ResultPaths,
    pub clock: Option<String>,
    pub seed: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            verbose: 0,
            quiet: false,
            servers: Vec::new(),
            unix_socket: false,
            binary: false,
            redis: false,
            getset: false,
            getsetorset: false,
            successful: false,
            prefix: String::new(),
            delete90: false,
            assoc: None,
            qps: 0,
            time: None,
            read_file: String::new(),
            twitter_trace: 0,
            keysize: "30".to_owned(),
            valuesize: "200".to_owned(),
            records: 10_000,
            misswindow: 0,
            queries: 0,
            update: 0.0,
            username: None,
            password: None,
            threads: 1,
            affinity: false,
            connections: 1,
            depth: 1,
            roundrobin: false,
            iadist: "exponential".to_owned(),
            skip: false,
            moderate: false,
            noload: false,
            loadonly: false,
            blocking: false,
            no_nodelay: false,
            warmup: 0,
            wait: 0,
            save: None,
            search: None,
            scan: None,
            agentmode: false,
            agents: Vec::new(),
            agent_port: None,
            lambda_mul: None,
            measure_connections: None,
            measure_qps: None,
            measure_depth: None,
            response: false,
            p50: false,
            no_evidence: false,
            anonymous: false,
            all_rows: false,
            save_all: false,
            files: ResultPaths::default(),
            clock: None,
            seed: None,
        }
    }
}

/// Reads the words behind the program's name.
///
/// # Errors
/// [`Refusal::Words`] where a word is none that mutilate knows, or a value none that its option takes.
pub fn parse(words: impl Iterator<Item = String>) -> Result<Given, Refusal> {
    let mut options = Options::default();
    let mut seen = vec![false; TABLE.len()];
    for event in Getopt::new(TABLE, words) {
        let event = event.map_err(|wrong| Refusal::Words(wrong.to_string()))?;
        let Event::Option { choice, value } = event else { continue };
        let name = TABLE[choice].long.unwrap_or_default();
        match name {
            "help" => return Ok(Given::Help),
            "version" => return Ok(Given::Version),
            _ if REPEATABLE.contains(&name) => {}
            _ if std::mem::replace(&mut seen[choice], true) => return Err(twice(&TABLE[choice])),
            _ => {}
        }
        options.set(name, value.unwrap_or_default())?;
    }
    Ok(Given::Options(Box::new(options)))
}

fn twice(choice: &Choice) -> Refusal {
    let name = choice.long.unwrap_or_default();
    let short = choice.short.map_or(String::new(), |short| format!(" (`-{short}')"));
    Refusal::Words(format!("`--{name}'{short} option given more than once"))
}

fn not_a_number(text: &str) -> Refusal {
    Refusal::Words(format!("invalid numeric value: {text}"))
}

/// A whole number of 32 bits, in the notation of C.
fn int(text: &str) -> Result<i64, Refusal> {
    let (number, rest) = strtol(text, 0);
    let fits = i32::try_from(number).is_ok();
    if rest.is_empty() && fits { Ok(number) } else { Err(not_a_number(text)) }
}

fn float(text: &str) -> Result<f64, Refusal> {
    let (number, rest) = strtod(text);
    if rest.is_empty() { Ok(number) } else { Err(not_a_number(text)) }
}

/// Parts between commas that are not empty; a comma behind a backslash belongs to its part.
fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&',') => {
                letters.next();
                parts.last_mut().expect("there is always a part").push(',');
            }
            ',' => parts.push(String::new()),
            _ => parts.last_mut().expect("there is always a part").push(letter),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The agents of a value of `--agent`. A list of hosts to start agents on is one item, as `pummel run --agents` has it.
fn agents(text: &str) -> Vec<String> {
    if LaunchSpec::is_meant(text) { vec![text.to_owned()] } else { parts(text) }
}

impl Options {
    fn set(&mut self, name: &str, value: String) -> Result<(), Refusal> {
        match name {
            "verbose" => self.verbose += 1,
            "quiet" => self.quiet = true,
            "server" => self.servers.extend(parts(&value)),
            "unix_socket" => self.unix_socket = true,
            "binary" => self.binary = true,
            "redis" => self.redis = true,
            "getset" => self.getset = true,
            "getsetorset" => self.getsetorset = true,
            "successful" => self.successful = true,
            "prefix" => self.prefix = value,
            "delete90" => self.delete90 = true,
            "assoc" => self.assoc = Some(int(&value)?),
            "qps" => self.qps = int(&value)?,
            "time" => self.time = Some(int(&value)?),
            "read_file" => self.read_file = value,
            "twitter_trace" => self.twitter_trace = int(&value)?,
            "keysize" => self.keysize = value,
            "valuesize" => self.valuesize = value,
            "records" => self.records = int(&value)?,
            "misswindow" => self.misswindow = int(&value)?,
            "queries" => self.queries = int(&value)?,
            "update" => self.update = float(&value)?,
            "username" => self.username = Some(value),
            "password" => self.password = Some(Secret::new(value)),
            "threads" => self.threads = int(&value)?,
            "affinity" => self.affinity = true,
            "connections" => self.connections = int(&value)?,
            "depth" => self.depth = int(&value)?,
            "roundrobin" => self.roundrobin = true,
            "iadist" => self.iadist = value,
            "skip" => self.skip = true,
            _ => return self.set_more(name, value),
        }
        Ok(())
    }

    fn set_more(&mut self, name: &str, value: String) -> Result<(), Refusal> {
        match name {
            "moderate" => self.moderate = true,
            "noload" => self.noload = true,
            "loadonly" => self.loadonly = true,
            "blocking" => self.blocking = true,
            "no_nodelay" => self.no_nodelay = true,
            "warmup" => self.warmup = int(&value)?,
            "wait" => self.wait = int(&value)?,
            "save" => self.save = Some(value),
            "search" => self.search = Some(value),
            "scan" => self.scan = Some(value),
            "agentmode" => self.agentmode = true,
            "agent" => self.agents.extend(agents(&value)),
            "agent_port" => self.agent_port = Some(value),
            "lambda_mul" => self.lambda_mul = Some(int(&value)?),
            "measure_connections" => self.measure_connections = Some(int(&value)?),
            "measure_qps" => self.measure_qps = Some(int(&value)?),
            "measure_depth" => self.measure_depth = Some(int(&value)?),
            "response" => self.response = true,
            "p50" => self.p50 = true,
            "no-evidence" => self.no_evidence = true,
            "anonymous" => self.anonymous = true,
            "all_rows" => self.all_rows = true,
            "save_all" => self.save_all = true,
            "json" | "csv" | "hdr" | "samples" => self.files.set(name, value),
            "clock" => self.clock = Some(value),
            "seed" => self.seed = Some(value),
            _ => unreachable!("every option of the table is set somewhere"),
        }
        Ok(())
    }

    /// What the original checks, in its order, then what it should have checked.
    ///
    /// # Errors
    /// [`Refusal::Fatal`] with the first thing that is wrong.
    pub fn validate(&self) -> Result<(), Refusal> {
        let within = CONNECTIONS_MAX >= self.connections && self.connections >= 1;
        let checks = [
            (self.depth >= 1, "--depth must be >= 1"),
            (self.qps >= 0, "--qps must be >= 0"),
            ((0.0..=1.0).contains(&self.update), "--update must be >= 0.0 and <= 1.0"),
            (self.time.is_none_or(|time| time >= 1), "--time must be >= 1"),
            (within, "--connections must be between [1,512]"),
            (!self.servers.is_empty() || self.agentmode, "--server or --agentmode must be specified."),
            (self.threads >= 1 || self.is_coordinator(), "--threads must be >= 1"),
            (self.records >= 0, "--records must be >= 0"),
            (self.queries >= 0, "--queries must be >= 0"),
            (self.misswindow >= 0, "--misswindow must be >= 0"),
            (self.warmup >= 0, "--warmup must be >= 0"),
            (self.wait >= 0, "--wait must be >= 0"),
            (self.lambda_mul.is_none_or(|weight| weight >= 1), "--lambda_mul must be >= 1"),
            (self.measure_connections.is_none_or(|count| count >= 1), "--measure_connections must be >= 1"),
            (self.measure_depth.is_none_or(|depth| depth >= 1), "--measure_depth must be >= 1"),
            (self.measure_qps.is_none_or(|qps| qps >= 1), "--measure_qps must be >= 1"),
            (
                self.measure_qps.is_none_or(|qps| self.qps == 0 || qps <= self.qps),
                "--measure_qps must be <= --qps",
            ),
            ((0..=2).contains(&self.twitter_trace), "--twitter_trace must be 0, 1 or 2"),
            (
                !self.delete90 || ((self.getset || self.getsetorset) && self.queries > 0),
                "delete90 must be used with getset or getsetorset, and with queries",
            ),
            (
                self.queries == 0 || self.queries >= self.servers.len() as i64,
                "--queries must be at least the number of servers",
            ),
            (
                (self.username.is_none() && self.password.is_none()) || self.binary,
                "username and password must be used with binary",
            ),
            (self.password.is_none() || self.username.is_some(), "password must be used with username"),
            (self.search.is_none() || self.scan.is_none(), "search and scan cannot be used together"),
            (
                self.search.is_none() || self.threads >= 1,
                "search judges the requests of the master, which --threads 0 leaves without any",
            ),
            (self.save.is_some() || !self.save_all, "save_all must be used with save"),
            (
                self.files.get("samples").is_none() || (self.search.is_none() && self.scan.is_none()),
                "samples cannot be used with search or scan",
            ),
            (self.assoc.is_none() || (self.redis && !self.binary), "assoc must be used with redis"),
            (self.assoc.is_none_or(|bytes| bytes >= 1), "--assoc must be >= 1"),
        ];
        match checks.into_iter().find(|(good, _)| !good) {
            Some((_, text)) => Err(fatal(text)),
            None => Ok(()),
        }
    }

    /// A master that leaves all load to its agents.
    fn is_coordinator(&self) -> bool {
        self.threads == 0 && !self.agents.is_empty()
    }

    /// The goal of `--search`, where it is given: an order statistic in per cent, and a limit in microseconds.
    ///
    /// # Errors
    /// The original's words where a part is missing, or is not one that can be.
    pub fn search_goal(&self) -> Result<Option<(i64, i64)>, Refusal> {
        let Some(text) = &self.search else { return Ok(None) };
        match numbers(text)[..] {
            [nth, limit_us, ..] if (0..=100).contains(&nth) && limit_us >= 0 => Ok(Some((nth, limit_us))),
            _ => Err(fatal("Invalid --search argument")),
        }
    }

    /// The rates of `--scan`, where it is given: the first, the last that may be, and the step.
    ///
    /// # Errors
    /// The original's words where a part is missing, or is not one that can be.
    pub fn scan_rates(&self) -> Result<Option<(i64, i64, i64)>, Refusal> {
        let Some(text) = &self.scan else { return Ok(None) };
        match numbers(text)[..] {
            [min, max, step, ..] if min >= 0 && max >= min && step >= 1 => Ok(Some((min, max, step))),
            _ => Err(fatal("Invalid --scan argument")),
        }
    }
}

/// Whole numbers between colons; what is not one, or has more than 32 bits, is -1, which no goal and no rate is.
fn numbers(text: &str) -> Vec<i64> {
    let number = |part: &str| match strtol(part, 10) {
        (number, "") => i32::try_from(number).map_or(-1, i64::from),
        _ => -1,
    };
    text.split(':').filter(|part| !part.is_empty()).map(number).collect()
}
