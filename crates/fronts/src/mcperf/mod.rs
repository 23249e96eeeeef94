//! mcperf's command line: its options, its words for what is wrong, and the Plan that it means.

pub mod front;
pub mod help;
pub mod options;
pub mod report;
pub mod style;

use std::path::PathBuf;

use pummel_logic::dist::Dist;
use pummel_logic::plan::address::is_of_ip;
use pummel_logic::plan::validate::{Field, Invalid, NO_TIMEOUT_NS};
use pummel_logic::plan::{
    self, Adaptive, Arrivals, Backend, Changes, ChurningClients, Clock, ClusterOptions, Data, Depth, Engine,
    Fill, Gap, Group, Labels, Mix, Phase, Plan, Popularity, Protocol, Route, SCHEMA, Sequence, Socket,
    Spawns, Stop, Style, Transport, Wait, Work,
};
use pummel_logic::protocol::{MetaAsk, Verb};
use pummel_logic::time::{Nanos, SECOND, from_seconds};
use pummel_logic::workload::sequence::{SIZE_MAX_BYTES, largest};

use crate::c_numbers::{percent_g, strtod, strtol};
use crate::getopt::{Choice, Event, Getopt, Wrong};
use crate::job::Job;
use crate::mcperf::options::{CHOICES, METHODS, NAMES, Name};
use crate::outputs::{Outputs, ReportFormat};

/// The name of the front in results, metrics and subcommands.
pub const NAME: &str = "mcperf";

/// Most clients that are there at one time, whatever the command line asks for.
const ALIVE_MAX: u32 = 1_000_000;

/// Longest prefix of keys.
const PREFIX_MAX: usize = 16;

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum McperfCommand {
    /// A run.
    Run(Box<McperfRun>),
    /// The help.
    Help,
    /// The version.
    Version,
}

/// A run, and what is said about it.
#[derive(Clone, Debug, PartialEq)]
pub struct McperfRun {
    /// The plan, and places for results that pummel adds.
    pub job: Job,
    /// What the text report has.
    pub display: McperfDisplay,
}

/// What is said about a run beside its results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McperfDisplay {
    /// Warnings before the run, in sentences without their full stop.
    pub remarks: Vec<String>,
    /// What the log tells, from 0 to 11.
    pub verbosity: u32,
    /// Where the log goes; standard error where nothing is said.
    pub log: Option<PathBuf>,
    /// The report has the histogram.
    pub histogram: bool,
    /// The report has times from the due time on.
    pub response: bool,
    /// Failures have an exit status.
    pub strict: bool,
}

/// Time without `-t` after which a connection or a response is given up, in nanoseconds. The original waits forever, so that a server
/// that stops answering keeps it from ending.
const DEFAULT_TIMEOUT_NS: Nanos = 60 * SECOND;

/// A command line that cannot be followed, in the original's words without the program's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

/// What the options say, as they are read.
#[derive(Clone, Debug)]
struct OptionValues {
    help: bool,
    version: bool,
    server: String,
    port: u32,
    timeout_ns: Nanos,
    socket: Socket,
    evidence: bool,
    anonymous: bool,
    verb: Verb,
    bogus: bool,
    expiry_s: u32,
    noreply: bool,
    prefix: String,
    client: (u32, u32),
    conns: u32,
    calls: u32,
    conn_rate: Option<Gap>,
    call_rate: Option<Gap>,
    sizes: Gap,
    shard: bool,
    clock: Clock,
    outputs: Outputs,
    /// What `-v` says, where it stands.
    verbosity: Option<u32>,
    display: McperfDisplay,
}

/// Reads a command line; `words` stand behind the program's name.
///
/// # Errors
/// At the first option that is wrong, in the original's words.
pub fn read(words: impl Iterator<Item = String>) -> Result<McperfCommand, Refusal> {
    let mut values = OptionValues::new();
    for event in Getopt::new(&CHOICES, words) {
        match event.map_err(refuse)? {
            Event::Word(_) => {}
            Event::Option { choice, value } => values.take(NAMES[choice], &value.unwrap_or_default())?,
        }
    }
    if values.help {
        return Ok(McperfCommand::Help);
    }
    if values.version {
        return Ok(McperfCommand::Version);
    }
    values.run().map(|run| McperfCommand::Run(Box::new(run)))
}

/// What the original says of an option that it does not know, or whose value is missing.
fn refuse(wrong: Wrong) -> Refusal {
    let needs = |place: Option<usize>| match place {
        Some(place) => missing(NAMES[place], &CHOICES[place]),
        None => Refusal("an option requires a value".to_owned()),
    };
    match wrong {
        Wrong::Invalid(letter) => Refusal(format!("invalid option -- '{letter}'")),
        Wrong::Unrecognized(typed) | Wrong::Ambiguous { typed, .. } => {
            Refusal(format!("invalid option -- '{typed}'"))
        }
        Wrong::TakesNone(name) => {
            let short =
                CHOICES.iter().find(|choice| choice.long == Some(name)).and_then(|choice| choice.short);
            Refusal(format!("invalid option -- '{}'", short.map_or(name.to_owned(), String::from)))
        }
        Wrong::Needs(name) => needs(CHOICES.iter().position(|choice| choice.long == Some(name))),
        Wrong::NeedsShort(letter) => needs(CHOICES.iter().position(|choice| choice.short == Some(letter))),
    }
}

/// What is said of an option without a value, or with one that is not of its kind.
fn missing(name: Name, choice: &Choice) -> Refusal {
    let kind = match name {
        Name::Output | Name::Json | Name::Csv | Name::Hdr | Name::Samples => "a file name",
        Name::Server | Name::Method | Name::Prefix | Name::Client | Name::Source | Name::Clock => "a string",
        Name::Timeout => "a real number",
        Name::ConnRate | Name::CallRate | Name::Sizes => "a distribution",
        _ => "a number",
    };
    match (choice.short, choice.long) {
        (Some(short), _) => Refusal(format!("option -{short} requires {kind}")),
        (None, long) => Refusal(format!("option --{} requires {kind}", long.unwrap_or_default())),
    }
}

impl OptionValues {
    fn new() -> OptionValues {
        OptionValues {
            help: false,
            version: false,
            server: "localhost".to_owned(),
            port: 11211,
            timeout_ns: DEFAULT_TIMEOUT_NS,
            socket: Socket {
                nodelay: true,
                linger_s: None,
                send_buffer: Some(4096),
                recv_buffer: Some(16384),
                source: Vec::new(),
            },
            // One connection more would be part of what is tested here.
            evidence: false,
            anonymous: false,
            verb: Verb::Set,
            bogus: false,
            expiry_s: 0,
            noreply: false,
            prefix: "mcp:".to_owned(),
            client: (0, 1),
            conns: 1,
            calls: 1,
            conn_rate: None,
            call_rate: None,
            sizes: Gap::Fixed(1.0),
            shard: false,
            clock: Clock::Kernel,
            outputs: Outputs { quiet: true, format: ReportFormat::Text, ..Outputs::default() },
            verbosity: None,
            display: McperfDisplay {
                remarks: Vec::new(),
                verbosity: 0,
                log: None,
                histogram: false,
                response: false,
                strict: false,
            },
        }
    }

    /// Follows one option.
    fn take(&mut self, name: Name, value: &str) -> Result<(), Refusal> {
        let file = || Some(PathBuf::from(value));
        match name {
            Name::Help => self.help = true,
            Name::Version => self.version = true,
            Name::Verbosity => self.verbosity = Some(number(name, value)?.min(11)),
            Name::Output => self.display.log = file(),
            Name::Server => self.server = value.to_owned(),
            Name::Port => self.port = port(value)?,
            Name::Histogram => self.display.histogram = true,
            Name::Timeout => self.timeout_ns = timeout(value)?,
            // A linger above 0 would only block this process while it closes: the kernel sends what is left anyway.
            Name::Linger => self.socket.linger_s = Some(number(name, value)?).filter(|&seconds| seconds == 0),
            // The kernel takes 0 and 1 alike, for the smallest buffer that it has.
            Name::SendBuffer => self.socket.send_buffer = Some(number(name, value)?.max(1)),
            Name::RecvBuffer => self.socket.recv_buffer = Some(number(name, value)?.max(1)),
            Name::NoDelay => self.socket.nodelay = false,
            Name::Method => (self.verb, self.bogus) = method(value)?,
            Name::Expiry => self.expiry_s = number(name, value)?,
            Name::NoReply => self.noreply = true,
            Name::Prefix => self.prefix = prefix(value)?,
            Name::Client => self.client = client(value)?,
            Name::Conns => self.conns = above_zero(name, value, "connections")?,
            Name::Calls => self.calls = above_zero(name, value, "calls")?,
            Name::ConnRate => self.conn_rate = distribution(value, Meaning::Rate)?,
            Name::CallRate => self.call_rate = distribution(value, Meaning::Rate)?,
            Name::Sizes => self.sizes = sizes(value)?,
            Name::Response => self.display.response = true,
            Name::Strict => self.display.strict = true,
            Name::Shard => self.shard = true,
            Name::Source => self.socket.source = value.split(',').map(str::to_owned).collect(),
            Name::Clock => self.clock = clock(value)?,
            Name::Json => self.outputs.files.set("json", value),
            Name::Csv => self.outputs.files.set("csv", value),
            Name::Hdr => self.outputs.files.set("hdr", value),
            Name::Samples => self.outputs.files.set("samples", value),
            Name::Evidence => self.evidence = true,
            Name::Anonymous => self.anonymous = true,
        }
        Ok(())
    }

    /// The run that they mean.
    fn run(self) -> Result<McperfRun, Refusal> {
        let requests = u64::from(self.conns) * u64::from(self.calls);
        if self.verb.stores() && largest(self.sizes, requests) >= SIZE_MAX_BYTES {
            return Err(Refusal(format!("sizes above {} bytes cannot be sent", SIZE_MAX_BYTES - 1)));
        }
        let (instance, instances) = self.client;
        if self.shard && instance > instances {
            return Err(Refusal(format!("client {instance} of {instances} cannot be told apart by --shard")));
        }
        if !is_without_port(&self.server) {
            return Err(Refusal(format!(
                "option -s value '{}' is not valid: expected a host alone; -p gives the port",
                self.server.escape_debug()
            )));
        }
        if self.server.starts_with('/') && !self.socket.source.is_empty() {
            return Err(Refusal(format!(
                "option --source has no meaning for the unix socket '{}'",
                self.server
            )));
        }
        let sequence = Sequence {
            instance,
            calls: self.call_rate,
            sizes: self.sizes,
            stride: if self.shard { instances } else { 1 },
            // Scripts count their instances from 0 or from 1 on.
            offset: if self.shard { instance % instances } else { 0 },
            bogus: self.bogus,
        };
        let display = McperfDisplay {
            // The original's level is 5 and says nothing of a good run in its usual build.
            verbosity: self.verbosity.unwrap_or(if self.display.log.is_some() { 5 } else { 4 }),
            remarks: self.long_run().into_iter().collect(),
            ..self.display.clone()
        };
        let outputs = self.outputs.clone();
        let plan = self.plan(sequence, requests).validate().map_err(unfit)?;
        Ok(McperfRun { job: Job { front: NAME, plan, outputs, fleet: None }, display })
    }

    /// The warning about a run that takes hours by its gaps alone.
    fn long_run(&self) -> Option<String> {
        const HOUR_S: f64 = 3_600.0;
        let calls_s = self.call_rate.map_or(0.0, |gap| sum_of_gaps_s(gap, self.calls - 1));
        let whole_s = match self.conn_rate {
            Some(gap) => sum_of_gaps_s(gap, self.conns - 1) + calls_s,
            None => f64::from(self.conns) * calls_s,
        };
        let hours = match whole_s / HOUR_S {
            short if short < 1.0 => return None,
            hours if hours < 1e6 => format!("about {hours:.1} hours"),
            _ => "more than a hundred years".to_owned(),
        };
        Some(format!("the intervals of -r and -R add up to {hours}"))
    }

    fn plan(self, sequence: Sequence, requests: u64) -> Plan {
        // More from the key with the number 2^32 on.
        let key_bytes = self.prefix.len() + 8;
        let spawns = self.conn_rate.map_or(Spawns::Closed, Spawns::Drawn);
        let alive = if spawns == Spawns::Closed { 1 } else { self.conns.min(ALIVE_MAX) };
        let alone = spawns == Spawns::Closed && self.call_rate.is_none();
        let arrivals = Arrivals::Closed;
        let depth = if self.call_rate.is_some() { Depth::Unlimited } else { Depth::Limit(1) };
        let churn =
            ChurningClients { spawns, calls: u64::from(self.calls), sequence: Some(sequence.clone()) };
        let mix = Mix {
            ops: vec![(self.verb, 1.0)],
            popularity: Popularity::Sequential,
            popularity_of: Vec::new(),
            multiget: 1,
            read_through_ns: None,
            fill: Fill::default(),
            churn: None,
            fill_delay_s: None,
            // Reads are answered in any case.
            noreply: self.noreply && !self.verb.reads(),
            read_modify_write: 0.0,
            inserts: false,
            scans: false,
            in_turns: false,
            multiset: 1,
            fresh: 0.0,
            absent: 0.0,
            meta: MetaAsk::default(),
        };
        Plan {
            schema: SCHEMA,
            servers: vec![server(&self.server, self.port)],
            route: Route::All,
            cluster: ClusterOptions::default(),
            protocol: Protocol::Text,
            transport: Transport::Stream,
            seed: u64::from(sequence.instance),
            interval_ns: SECOND,
            timeout_ns: self.timeout_ns,
            reconnect: false,
            retry: None,
            failed_keys: false,
            evidence: self.evidence,
            baseline: false,
            probe: false,
            server_stats_ns: None,
            server_stats_at: Vec::new(),
            adaptive: Adaptive::default(),
            anonymous: self.anonymous,
            fail_on: Vec::new(),
            labels: Labels::new(),
            changes: Changes::default(),
            verify: 0.0,
            goals: Vec::new(),
            engine: Engine {
                threads: 1,
                cpus: Vec::new(),
                backend: Backend::Epoll,
                // One call at a time, and nothing else to do: its reply is waited for awake, as by the original.
                wait: if alone { Wait::Brief } else { Wait::Block },
                clock: self.clock,
                stamps: None,
            },
            socket: self.socket,
            login: None,
            tls: None,
            database: 0,
            tracking: None,
            commands: Vec::new(),
            load_command: None,
            dataset: None,
            script: None,
            data: Data {
                records: 1,
                seed: 0,
                key_prefix: self.prefix,
                key_size: Dist::Fixed(key_bytes as f64),
                value_size: Dist::Fixed(1.0),
                expiry_s: Dist::Fixed(f64::from(self.expiry_s)),
                value_classes: Vec::new(),
                value_compress: 1.0,
                value_filler: None,
                key_tag: None,
                slots: Vec::new(),
                first_key: 0,
                style: Style::default(),
            },
            allow_partial_load: false,
            groups: vec![Group {
                name: "connections".to_owned(),
                clients: alive,
                depth,
                arrivals,
                rate: None,
                churn: Some(churn),
                policy: plan::ClientPolicy::default(),
            }],
            phases: vec![Phase {
                name: "measure".to_owned(),
                work: Work::Mix(mix),
                stop: Stop { time_ns: None, requests: Some(requests) },
                recorded: true,
            }],
        }
    }
}

/// What is said of a plan that cannot be run, where the original says nothing of its own: the option that decides the field.
fn unfit(invalid: Invalid) -> Refusal {
    let name = match invalid.path.field() {
        Field::Servers | Field::Server => Some(Name::Server),
        Field::Timeout => Some(Name::Timeout),
        Field::Linger => Some(Name::Linger),
        Field::SendBuffer => Some(Name::SendBuffer),
        Field::RecvBuffer => Some(Name::RecvBuffer),
        Field::Sources | Field::Source => Some(Name::Source),
        Field::KeyPrefix => Some(Name::Prefix),
        Field::Expiry => Some(Name::Expiry),
        Field::TotalClients | Field::Clients | Field::StopRequests => Some(Name::Conns),
        Field::Calls => Some(Name::Calls),
        Field::Spawns | Field::SpawnsRate => Some(Name::ConnRate),
        Field::Depth => Some(Name::CallRate),
        Field::Operations => Some(Name::Method),
        Field::Noreply => Some(Name::NoReply),
        _ => None,
    };
    let Some(name) = name else { return Refusal(invalid.to_string()) };
    let option = match (choice_of(name).short, choice_of(name).long) {
        (Some(short), _) => format!("-{short}"),
        (None, long) => format!("--{}", long.unwrap_or_default()),
    };
    Refusal(format!("option {option} value '{}' is not valid: {}", invalid.value, invalid.expected))
}

/// The server as a Plan names it.
fn server(host: &str, port: u32) -> String {
    match host {
        path if path.starts_with('/') => path.to_owned(),
        v6 if is_v6(v6) => format!("[{v6}]:{port}"),
        host => format!("{host}:{port}"),
    }
}

/// Whether the value of `-s` is a path, or a host without a port behind it. An IPv6 address may have brackets.
fn is_without_port(server: &str) -> bool {
    server.starts_with('/') || !server.contains(':') || is_v6(server) || server.ends_with(']')
}

/// Whether a host is an IPv6 address without brackets; a zone such as `%eth0` may follow the address.
fn is_v6(host: &str) -> bool {
    let address = host.split('%').next().unwrap_or_default();
    // With one colon it would be an address of IPv4 with its port.
    !address.starts_with('[') && address.matches(':').count() > 1 && is_of_ip(address)
}

/// The mean of the sum of so many gaps, in seconds.
fn sum_of_gaps_s(gap: Gap, gaps: u32) -> f64 {
    let gaps = f64::from(gaps);
    match gap {
        Gap::Fixed(length_s) | Gap::Exponential(length_s) => gaps * length_s,
        Gap::Uniform(least_s, most_s) => gaps * (least_s / 2.0 + most_s / 2.0),
        Gap::Rising(first_s) => gaps * first_s + gaps * (gaps - 1.0).max(0.0) / 2.0,
    }
}

fn choice_of(name: Name) -> &'static Choice {
    let place = NAMES.iter().position(|other| *other == name).unwrap_or_default();
    &CHOICES[place]
}

/// A whole number as the original takes it: base 10, the whole text, cut to 32 bits, not negative then.
fn whole(text: &str) -> Option<u32> {
    let (number, rest) = strtol(text, 10);
    u32::try_from(number as i32).ok().filter(|_| rest.is_empty() && !text.is_empty())
}

fn number(name: Name, value: &str) -> Result<u32, Refusal> {
    whole(value).ok_or_else(|| missing(name, choice_of(name)))
}

fn above_zero(name: Name, value: &str, what: &str) -> Result<u32, Refusal> {
    match number(name, value)? {
        0 => {
            let letter = choice_of(name).short.unwrap_or_default();
            Err(Refusal(format!("option -{letter} value {value} is not a valid number of {what}")))
        }
        number => Ok(number),
    }
}

fn port(value: &str) -> Result<u32, Refusal> {
    let port = number(Name::Port, value)?;
    match port {
        1..=65535 => Ok(port),
        _ => Err(Refusal(format!("option -p value {value} is not a valid port"))),
    }
}

/// A real number as the original takes it: the whole text and not negative; and finite.
fn real(text: &str) -> Option<f64> {
    let (number, rest) = strtod(text);
    (rest.is_empty() && !text.is_empty() && number.is_finite() && number >= 0.0).then_some(number)
}

fn timeout(value: &str) -> Result<Nanos, Refusal> {
    match real(value) {
        None => Err(missing(Name::Timeout, choice_of(Name::Timeout))),
        Some(0.0) => Ok(NO_TIMEOUT_NS),
        Some(seconds) => Ok(from_seconds(seconds).clamp(1, NO_TIMEOUT_NS)),
    }
}

/// What a method asks; the hidden one is a store by a word that no server knows.
fn method(value: &str) -> Result<(Verb, bool), Refusal> {
    if value == "xxx" {
        return Ok((Verb::Set, true));
    }
    let known = METHODS.iter().find(|(name, _)| *name == value);
    known.map(|(_, verb)| (*verb, false)).ok_or_else(|| {
        Refusal(format!(
            "'{value}' is an invalid method; valid methods are get, gets, delete, cas, set, add, replace, append, \
             prepend, incr and decr"
        ))
    })
}

fn prefix(value: &str) -> Result<String, Refusal> {
    if value.len() > PREFIX_MAX {
        return Err(Refusal(format!("key prefix cannot exceed {PREFIX_MAX} in length")));
    }
    // A blank would make two words of a key, and a line end two commands of a request.
    if value.bytes().any(|byte| byte <= b' ' || byte == 0x7F) {
        return Err(Refusal(format!(
            "key prefix '{}' has blanks or control characters",
            value.escape_debug()
        )));
    }
    Ok(value.to_owned())
}

fn client(value: &str) -> Result<(u32, u32), Refusal> {
    let Some((instance, instances)) = value.split_once('/') else {
        return Err(Refusal(format!("invalid client id format '{value}'")));
    };
    let instance =
        whole(instance).ok_or_else(|| Refusal(format!("client id is not a number '{instance}'")))?;
    let number = whole(instances).filter(|&instances| instances > 0);
    let number = number.ok_or_else(|| Refusal(format!("number of clients is not a number '{instances}'")))?;
    Ok((instance, number))
}

fn clock(value: &str) -> Result<Clock, Refusal> {
    let refused = || Refusal(format!("option --clock value '{value}' is neither kernel nor user"));
    Clock::from_name(value).ok_or_else(refused)
}

/// What a plain number in a distribution means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// Rate per second.
    Rate,
    /// The value itself.
    Value,
}

fn sizes(value: &str) -> Result<Gap, Refusal> {
    distribution(value, Meaning::Value)?
        .ok_or_else(|| Refusal("invalid distribution type 0 for item sizes".to_owned()))
}

/// A distribution; `None`: one after the other.
fn distribution(text: &str, plain: Meaning) -> Result<Option<Gap>, Refusal> {
    let above_zero = |text: &str| real(text).filter(|&number| number > 0.0);
    let mean = |text: &str| above_zero(text).ok_or_else(|| Refusal(format!("invalid mean value '{text}'")));
    let (letter, rest) = (text.chars().next(), text.get(1..).unwrap_or_default());
    match letter {
        Some('d') => mean(rest).map(|value| Some(Gap::Fixed(value))),
        Some('e') => mean(rest).map(|value| Some(Gap::Exponential(value))),
        Some('s') => mean(rest).map(|value| Some(Gap::Rising(value))),
        Some('u') => uniform(rest).map(Some),
        _ => match (real(text), plain) {
            (None, _) => Err(Refusal(format!("invalid distribution value '{text}'"))),
            (Some(0.0), _) => Ok(None),
            (Some(rate), Meaning::Rate) => Ok(Some(Gap::Fixed(1.0 / rate))),
            (Some(value), Meaning::Value) => Ok(Some(Gap::Fixed(value))),
        },
    }
}

fn uniform(text: &str) -> Result<Gap, Refusal> {
    let above_zero = |text: &str| real(text).filter(|&number| number > 0.0);
    let Some((low, high)) = text.split_once(',') else {
        return Err(Refusal(format!("invalid uniform distribution value '{text}'")));
    };
    let least = above_zero(low).ok_or_else(|| Refusal(format!("invalid minimum value '{low}'")))?;
    let most = above_zero(high).ok_or_else(|| Refusal(format!("invalid maximum value '{high}'")))?;
    if most < least {
        return Err(Refusal(format!(
            "maximum value '{}' should be greater than or equal to minimum value '{}'",
            percent_g(most),
            percent_g(least)
        )));
    }
    Ok(Gap::Uniform(least, most))
}

#[cfg(test)]
mod tests;
