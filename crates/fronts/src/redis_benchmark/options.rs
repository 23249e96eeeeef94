//! The options of redis-benchmark's command line, and the original's own way of reading them: whole words from left to right, up to the
//! first that is none.

use pummel_logic::plan::ReadFrom;
use pummel_logic::secrets::Secret;

use crate::c_numbers::{strtod, strtol};
use crate::getopt::{Choice, Takes};
use crate::outputs::ResultPaths;
use crate::values::server_uri::{address_and_facts, percent_decoded};

/// Most threads of the original.
const THREADS_MAX: i32 = 500;

/// Longest value of `-d`, in bytes.
const SIZE_MAX_BYTES: i32 = 1 << 30;

/// The options, for completions. The original has no getopt: no value stands in the word of its option.
pub const CHOICES: [Choice; 48] = {
    const VALUE: Takes = Takes::Value;
    const NONE: Takes = Takes::Nothing;
    [
        Choice::short('h', VALUE),
        Choice::short('p', VALUE),
        Choice::short('s', VALUE),
        Choice::short('a', VALUE),
        Choice::long("user", VALUE),
        Choice::short('u', VALUE),
        Choice::short('c', VALUE),
        Choice::short('n', VALUE),
        Choice::short('d', VALUE),
        Choice::long("dbnum", VALUE),
        Choice::short('3', NONE),
        Choice::short('k', VALUE),
        Choice::short('r', VALUE),
        Choice::short('P', VALUE),
        Choice::long("threads", VALUE),
        Choice::long("cluster", NONE),
        Choice::long("rfr", VALUE),
        Choice::long("enable-tracking", NONE),
        Choice::short('t', VALUE),
        Choice::short('q', NONE),
        Choice::long("csv", NONE),
        Choice::long("precision", VALUE),
        Choice::short('l', NONE),
        Choice::short('I', NONE),
        Choice::short('x', NONE),
        Choice::short('e', NONE),
        Choice::long("seed", VALUE),
        Choice::long("duration", VALUE),
        Choice::long("warmup", VALUE),
        Choice::long("rps", VALUE),
        Choice::long("dataset", VALUE),
        Choice::long("tls", NONE),
        Choice::long("sni", VALUE),
        Choice::long("cacert", VALUE),
        Choice::long("insecure", NONE),
        Choice::long("cert", VALUE),
        Choice::long("key", VALUE),
        Choice::long("help", NONE),
        Choice::short('v', NONE),
        Choice::long("version", NONE),
        Choice::added("json", VALUE),
        Choice::added("hdr", VALUE),
        Choice::added("report", VALUE),
        Choice::added("timeout", VALUE),
        Choice::added("no-evidence", NONE),
        Choice::added("anonymous", NONE),
        Choice::added("clock", VALUE),
        Choice::added("backend", VALUE),
    ]
};

/// Options of the original that cannot be had, with the reason.
const REFUSED: [(&str, &str); 12] = [
    ("--sequential", "pummel run has --popularity sequential"),
    ("--cacertdir", "--cacert FILE names the authorities; without it those of the system are trusted"),
    ("--tls-ciphers", "the ciphers of TLS 1.2 cannot be chosen"),
    ("--tls-ciphersuites", "the ciphers of TLS 1.3 cannot be chosen"),
    ("--num-functions", "the tests of functions are not here: give FUNCTION LOAD or FCALL as the command"),
    (
        "--num-keys-in-fcall",
        "the tests of functions are not here: give FUNCTION LOAD or FCALL as the command",
    ),
    ("--maxdocs", "all rows of --dataset are read"),
    ("--mptcp", "TCP over several paths is not here"),
    ("--rdma", "RDMA is not here"),
    ("--fuzz", "requests are not fuzzed"),
    ("--fuzz-mode", "requests are not fuzzed"),
    ("--fuzz-loglevel", "requests are not fuzzed"),
];

/// A command line that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An option that is not known, or whose value is missing.
    Unknown(String),
    /// Anything else, in a line of words.
    Words(String),
}

/// Schemes of the URI of a server.
const URI_SCHEMES: [&str; 4] = ["redis", "rediss", "valkey", "valkeys"];

/// What a command line asks for.
#[derive(Debug)]
pub(super) enum Given {
    /// `--help`.
    Help,
    /// `--version`.
    Version,
    /// Load.
    Options(Box<Options>),
}

/// The values of the options.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    pub host: String,
    pub port: i32,
    pub socket: Option<String>,
    pub user: Option<String>,
    pub password: Option<Secret>,
    pub clients: i32,
    /// `-n`; absent where it is not given.
    pub requests: Option<i64>,
    /// `-d`, in bytes.
    pub size: i32,
    pub database: i32,
    pub resp3: bool,
    pub keep_alive: bool,
    /// `-r`; absent where nothing is replaced.
    pub keyspace: Option<i64>,
    pub pipeline: i32,
    pub threads: i32,
    pub cluster: bool,
    /// `--rfr`: the nodes that reads are sent to.
    pub read_from: ReadFrom,
    pub tracking: bool,
    /// `-t`, in small letters.
    pub tests: Option<String>,
    pub quiet: bool,
    pub csv: bool,
    pub repeats: bool,
    pub idle: bool,
    pub last_from_input: bool,
    pub seed: Option<u64>,
    /// `--duration`, in seconds.
    pub duration: Option<f64>,
    /// `--warmup`, in seconds.
    pub warm_up: f64,
    /// `--rps`; 0 is a closed loop.
    pub rate: i64,
    pub dataset: Option<String>,
    pub tls: bool,
    pub server_name: Option<String>,
    pub authorities: Option<String>,
    pub insecure: bool,
    pub certificate: Option<String>,
    pub key: Option<String>,
    /// The command, word by word; empty without one.
    pub command: Vec<String>,
    pub files: ResultPaths,
    /// `--timeout`, in seconds.
    pub timeout: f64,
    pub evidence: bool,
    pub anonymous: bool,
    pub clock: Option<String>,
    pub backend: Option<String>,
    /// Warnings, in sentences without their full stop.
    pub remarks: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            host: "127.0.0.1".to_owned(),
            port: 6379,
            socket: None,
            user: None,
            password: None,
            clients: 50,
            requests: None,
            size: 3,
            database: 0,
            resp3: false,
            keep_alive: true,
            keyspace: None,
            pipeline: 1,
            threads: 0,
            cluster: false,
            read_from: ReadFrom::Primary,
            tracking: false,
            tests: None,
            quiet: false,
            csv: false,
            repeats: false,
            idle: false,
            last_from_input: false,
            seed: None,
            duration: None,
            warm_up: 0.0,
            rate: 0,
            dataset: None,
            tls: false,
            server_name: None,
            authorities: None,
            insecure: false,
            certificate: None,
            key: None,
            command: Vec::new(),
            files: ResultPaths::default(),
            timeout: 60.0,
            evidence: true,
            anonymous: false,
            clock: None,
            backend: None,
            remarks: Vec::new(),
        }
    }
}

/// Reads the words behind the program's name.
///
/// # Errors
/// Returns the [`Refusal`] of the first word that is wrong.
pub(super) fn parse(mut words: std::vec::IntoIter<String>) -> Result<Given, Refusal> {
    let mut options = Options::default();
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            options.command = std::iter::once(word).chain(words.by_ref()).collect();
            break;
        }
        match word.as_str() {
            "--help" => return Ok(Given::Help),
            "-v" | "--version" => return Ok(Given::Version),
            "--" => options.command = words.by_ref().collect(),
            name => options.take(name, &mut words)?,
        }
    }
    Ok(Given::Options(Box::new(options)))
}

impl Options {
    /// Follows one option; its value is the next of the words.
    fn take(&mut self, name: &str, words: &mut std::vec::IntoIter<String>) -> Result<(), Refusal> {
        if self.switch(name) {
            return Ok(());
        }
        if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            return Err(Refusal::Words(format!("{name}: {why}")));
        }
        let unknown = || Refusal::Unknown(name.to_owned());
        let is_known = CHOICES.iter().any(|choice| match (choice.short, choice.long) {
            (Some(short), _) => name.strip_prefix('-').is_some_and(|letter| letter.chars().eq([short])),
            (None, long) => long.is_some_and(|long| name.strip_prefix("--") == Some(long)),
        });
        let value = words.next().filter(|_| is_known).ok_or_else(unknown)?;
        match name {
            "-h" => self.host = value,
            "-p" => self.port = port(&value)?,
            "-s" => self.socket = Some(value),
            "-a" => self.password = Some(Secret::new(value)),
            "--user" => self.user = Some(value),
            "-u" => self.adopt_uri(&value)?,
            "-c" => self.clients = atoi(&value).max(1),
            "-n" => self.requests = Some(atoi(&value).into()),
            "-d" => self.size = atoi(&value).clamp(1, SIZE_MAX_BYTES),
            "--dbnum" => self.database = atoi(&value),
            "-k" => self.keep_alive = atoi(&value) != 0,
            "-r" if value.starts_with('-') => return Err(unknown()),
            "-r" => self.keyspace = Some(atoi(&value).into()),
            "-P" => self.pipeline = atoi(&value).max(1),
            "--threads" => self.threads = self.threads_of(&value),
            "--rfr" => self.read_from = read_from(&value)?,
            "-t" => self.tests = Some(value.to_lowercase()),
            "--precision" => self.remarks.push(format!(
                "--precision {value} changes nothing: times are kept to a part in a thousand and printed with three decimals"
            )),
            "--seed" => self.seed = Some(strtol(&value, 10).0 as u64 >> 11),
            "--duration" => self.duration = Some(f64::from(atoi(&value))),
            "--warmup" => self.warm_up = f64::from(atoi(&value).max(0)),
            "--rps" => self.rate = atoi(&value).max(0).into(),
            "--dataset" => self.dataset = Some(value),
            "--sni" => self.server_name = Some(value),
            "--cacert" => self.authorities = Some(value),
            "--cert" => self.certificate = Some(value),
            "--key" => self.key = Some(value),
            "--timeout" => self.timeout = seconds(name, &value)?,
            "--clock" => self.clock = Some(value),
            "--backend" => self.backend = Some(value),
            "--json" | "--hdr" | "--report" => self.files.set(&name[2..], value),
            _ => return Err(unknown()),
        }
        Ok(())
    }

    /// Follows an option without a value. Returns whether the name is that of one.
    fn switch(&mut self, name: &str) -> bool {
        match name {
            "-3" => self.resp3 = true,
            "--cluster" => self.cluster = true,
            "--enable-tracking" => self.tracking = true,
            "-q" => self.quiet = true,
            "--csv" => self.csv = true,
            "-l" => self.repeats = true,
            "-I" => self.idle = true,
            "-x" => self.last_from_input = true,
            "-e" => {
                self.remarks.push("-e changes nothing: error replies end the tests in any case".to_owned())
            }
            "--tls" => self.tls = true,
            "--insecure" => self.insecure = true,
            "--no-evidence" => self.evidence = false,
            "--anonymous" => self.anonymous = true,
            _ => return false,
        }
        true
    }

    fn threads_of(&mut self, value: &str) -> i32 {
        let threads = atoi(value).max(0);
        if threads > THREADS_MAX {
            self.remarks.push(format!("--threads {threads}: {THREADS_MAX} threads are the most"));
        }
        threads.min(THREADS_MAX)
    }

    /// Takes over what a URI says. A password in it is accepted here, as by the original.
    fn adopt_uri(&mut self, uri: &str) -> Result<(), Refusal> {
        let wrong = |why: &str| Refusal::Words(format!("Invalid URI: {why}"));
        let unknown = || Refusal::Words("Invalid URI scheme".to_owned());
        let (scheme, rest) = uri.split_once("://").ok_or_else(unknown)?;
        if !URI_SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            return Err(unknown());
        }
        let (login, place) =
            rest.rsplit_once('@').map_or((None, rest), |(login, place)| (Some(login), place));
        let read = address_and_facts(&format!("{scheme}://{place}"));
        let (address, facts) = read.map_err(|error| wrong(&error.to_string()))?;
        let (host, number) = address.rsplit_once(':').unwrap_or((&address, ""));
        self.host = host.trim_matches(['[', ']']).to_owned();
        self.port = port(number)?;
        self.tls |= facts.is_encrypted;
        if let Some(database) = facts.database {
            self.database = i32::try_from(database).map_err(|_| wrong("no server has so many databases"))?;
        }
        if let Some(login) = login {
            let (user, password) =
                login.split_once(':').map_or((None, login), |(user, word)| (Some(user), word));
            let decoded =
                |text: &str| percent_decoded(text).ok_or_else(|| wrong("a % needs two hexadecimal digits"));
            self.user = user.filter(|user| !user.is_empty()).map(decoded).transpose()?;
            self.password = Some(Secret::new(decoded(password)?));
        }
        Ok(())
    }
}

/// A number in the manner of `atoi`, kept within its range.
fn atoi(text: &str) -> i32 {
    strtol(text, 10).0.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

fn read_from(text: &str) -> Result<ReadFrom, Refusal> {
    match text {
        "no" => Ok(ReadFrom::Primary),
        "yes" => Ok(ReadFrom::Replica),
        "all" => Ok(ReadFrom::Any),
        _ => Err(Refusal::Words(format!("--rfr: expected no, yes or all, not '{}'", text.escape_debug()))),
    }
}

fn port(text: &str) -> Result<i32, Refusal> {
    let port = atoi(text);
    if (0..=i32::from(u16::MAX)).contains(&port) {
        return Ok(port);
    }
    Err(Refusal::Words("Invalid server port.".to_owned()))
}

fn seconds(name: &str, text: &str) -> Result<f64, Refusal> {
    let (seconds, rest) = strtod(text);
    if rest.is_empty() && seconds.is_finite() && seconds > 0.0 {
        return Ok(seconds);
    }
    Err(Refusal::Words(format!(
        "{name}: expected a number of seconds above 0, not '{}'",
        text.escape_debug()
    )))
}
