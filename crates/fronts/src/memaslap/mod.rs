//! memaslap's command line: from its options and its configuration file to a Plan, and to what is written about the run.

mod config;
pub mod front;
mod help;
mod options;
pub mod outages;
pub mod report;
pub mod style;

#[cfg(test)]
mod tests;

use std::path::Path;

use pummel_logic::client::route::LANES_MAX;
use pummel_logic::dist::Dist;
use pummel_logic::plan::validate::{Field, Invalid};
use pummel_logic::plan::{
    Adaptive, Arrivals, Backend, Changes, ClientPolicy, Clock, ClusterOptions, Data, Depth, Engine, Group,
    Labels, Lengths, Phase, Plan, Pool, Protocol, Replication, Route, SCHEMA, Socket, Stop, Style, Transport,
    Wait, Window, Work,
};
use pummel_logic::protocol::udp::DATAGRAM_MAX_BYTES;
use pummel_logic::time::{Nanos, SECOND};

pub use self::options::TABLE as OPTIONS;
use crate::c_numbers::strtol;
use crate::front::Machine;
use crate::job::Job;
use crate::memaslap::config::{Config, NoConfiguration};
pub use crate::memaslap::help::{HELP, VERSION};
use crate::memaslap::options::{Options, ParsedLine};
pub use crate::memaslap::options::{Refusal, TABLE};
use crate::outputs::{Outputs, ReportFormat};
use crate::values;

/// The name of the front in results, metrics and subcommands.
pub const NAME: &str = "memaslap";

/// Where memcached listens unless it is told otherwise.
const PORT: u16 = 11_211;

/// Lengths that keys may have: what memcached takes, and what leaves room behind the part that tells keys apart.
const KEY_BYTES: (u32, u32) = (16, 250);

/// The longest value.
const VALUE_MAX_BYTES: u32 = 1 << 20;

/// How long a request over TCP, or opening a connection, may take.
const TIMEOUT_NS: Nanos = 10 * SECOND;

/// How long a request over UDP may take, where a lost datagram never comes.
const UDP_TIMEOUT_NS: Nanos = 30 * SECOND;

/// Sets of a smaller share are none.
const LEAST_SHARE: f64 = 0.001;

/// Configuration files that are looked for in the home directory: the one that the manual names, and the one that the
/// original made.
const HOME_FILES: [&str; 2] = [".memaslap.cnf", ".memslap.cnf"];

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum MemaslapCommand {
    /// `--help`.
    Help,
    /// `--version`.
    Version,
    /// A run.
    Run(Box<MemaslapRun>),
}

/// What a command line that asks for load means.
#[derive(Clone, Debug, PartialEq)]
pub struct MemaslapRun {
    /// The run.
    pub job: Job,
    /// What is printed before it.
    pub banner: String,
    /// What is printed of it.
    pub display: MemaslapDisplay,
    /// What is to be said before it on standard error.
    pub remarks: Vec<String>,
}

/// What is printed of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemaslapDisplay {
    /// Seconds between two reports; 0: there are none.
    pub stat_freq_s: u64,
    /// Counters of verification.
    pub verify: bool,
    /// Counters of expiry.
    pub expire: bool,
    /// Counters of datagrams.
    pub datagrams: bool,
    /// The servers are taken to replicate.
    pub replicates: bool,
    /// Lost servers, failed checks and unexpected misses end with status 1.
    pub strict: bool,
}

/// Follows the words behind the program's name.
///
/// # Errors
/// Returns [`Refusal`] with memaslap's words for an option, a value or a configuration file that is refused, and
/// where no server is named.
pub fn read(words: impl Iterator<Item = String>, machine: &Machine<'_>) -> Result<MemaslapCommand, Refusal> {
    match options::read(words)? {
        ParsedLine::Help => Ok(MemaslapCommand::Help),
        ParsedLine::Version => Ok(MemaslapCommand::Version),
        ParsedLine::Options(options) => {
            run_of_options(&options, machine).map(|run| MemaslapCommand::Run(Box::new(run)))
        }
    }
}

/// Checks everything in the original's order.
fn run_of_options(options: &Options, machine: &Machine<'_>) -> Result<MemaslapRun, Refusal> {
    let list = options.servers.clone().or_else(|| machine.inputs.servers.clone()).unwrap_or_default();
    let typed: Vec<&str> = items(&list).collect();
    if typed.is_empty() {
        return Err(Refusal::WithHelp("No servers provided\n".to_owned()));
    }
    if !options.concurrency.is_multiple_of(options.threads) {
        return Err(Refusal::WithHelp("Concurrency must be the multiples of threads count.".to_owned()));
    }
    let refuse = |text: String| Err(Refusal::Choice(text));
    let mut servers =
        typed.into_iter().map(server).collect::<Result<Vec<_>, _>>().map_err(Refusal::Choice)?;
    let mut config = configuration(options, machine).map_err(Refusal::Choice)?;
    conflicts(options, servers.len()).or_else(|words| refuse(words.to_owned()))?;
    if let Some(size) = options.fixed_size {
        config.values = vec![Lengths { start: size, end: size, share: 1.0 }];
    }
    limits(&config).or_else(|words| refuse(words.to_owned()))?;
    let mut remarks = std::mem::take(&mut config.remarks);
    let reached = options.threads as usize;
    if options.rep_write.is_none() && servers.len() > reached {
        remarks.push(format!(
            "only the first {reached} of {} servers are used: one for each thread",
            servers.len()
        ));
        servers.truncate(reached);
    }
    let banner = banner(options, &list, &config);
    let mut plan = plan(options, machine, servers, &config);
    if options.udp || options.facebook {
        remarks.extend(shorten_gets(&mut plan));
    }
    datagrams_fit(options, &plan).or_else(refuse)?;
    if plan.lanes() > LANES_MAX {
        let words = format!("Number of socks of each concurrency must not be greater than {LANES_MAX}.");
        return Err(Refusal::Choice(words));
    }
    let plan = plan.validate().map_err(|invalid| Refusal::Choice(unfit(&invalid)))?;
    let display = MemaslapDisplay {
        stat_freq_s: options.stat_freq_s,
        verify: options.verify > 0.0,
        expire: options.expire > 0.0,
        datagrams: options.udp || options.facebook,
        replicates: options.rep_write.is_some(),
        strict: options.strict,
    };
    Ok(MemaslapRun {
        job: Job { front: NAME, plan, outputs: outputs(options), fleet: None },
        banner,
        display,
        remarks,
    })
}

/// The items of a list of servers: after a comma one blank may stand.
fn items(list: &str) -> impl Iterator<Item = &str> {
    let unblanked = |item: &'_ str| -> usize { usize::from(item.starts_with([' ', '\t'])) };
    list.split(',').map(move |item| &item[unblanked(item)..]).filter(|item| !item.is_empty())
}

/// One server as the Plan names it. Without a port, or with port 0, it is memcached's; what follows the port is a weight
/// for other programs.
fn server(item: &str) -> Result<String, String> {
    let (host, rest) = match item.strip_prefix('[').and_then(|_| item.split_once(']')) {
        Some((host, rest)) => (format!("{host}]"), rest),
        None if item.starts_with('/') => return Ok(item.to_owned()),
        None => match item.find([':', ' ']) {
            Some(end) => (item[..end].to_owned(), &item[end..]),
            None => (item.to_owned(), ""),
        },
    };
    let port = rest.strip_prefix(':').map_or(0, |port| strtol(port, 10).0);
    let port = if port == 0 { i64::from(PORT) } else { port };
    let name = format!("{host}:{port}");
    values::server(&name).map_err(|error| format!("'{item}' is no server: {error}"))
}

/// The configuration file that is named, or one of those at home, or none.
fn configuration(options: &Options, machine: &Machine<'_>) -> Result<Config, String> {
    let (name, bytes) = match &options.config {
        Some(path) => match (machine.open)(Path::new(path)) {
            Ok(bytes) => (path.clone(), bytes),
            Err(_) => return Err(format!("Can not open file: '{path}'.")),
        },
        None => {
            let paths = HOME_FILES.iter().filter_map(|name| Some(machine.home.as_ref()?.join(name)));
            let found = paths.filter_map(|path| Some(((machine.open)(&path).ok()?, path))).next();
            let Some((bytes, path)) = found else { return Ok(Config::default()) };
            (path.display().to_string(), bytes)
        }
    };
    let config = config::parse(&String::from_utf8_lossy(&bytes))
        .map_err(|NoConfiguration| "Bad configuration file, no configuration find.".to_owned())?;
    let remarks = config.remarks.iter().map(|remark| format!("{name}: {remark}")).collect();
    Ok(Config { remarks, ..config })
}

/// Choices that exclude each other, in the original's order.
fn conflicts(options: &Options, servers: usize) -> Result<(), &'static str> {
    let replicates = options.rep_write.is_some();
    let too_many = options.rep_write.is_some_and(|writers| writers as usize > servers);
    let rules = [
        (
            options.facebook && options.division < 2,
            "facebook test must work with multi-get, please specify multi-get key number with '--division' option.",
        ),
        (options.facebook && options.udp, "facebook test couldn't work with UDP."),
        (options.udp && options.sockets > 1, "UDP doesn't support multi-socks in one connection structure."),
        (replicates && servers < 2, "Please specify 2 servers at least for replication"),
        (too_many, "Servers to do replication writing is larger than the total servers"),
        (options.udp && replicates, "UDP doesn't support replication."),
        (options.facebook && replicates, "facebook test couldn't work with replication."),
        (options.udp && options.binary, "UDP doesn't support the binary protocol."),
        (options.facebook && options.binary, "facebook test couldn't work with the binary protocol."),
    ];
    rules.into_iter().find(|(broken, _)| *broken).map_or(Ok(()), |(_, words)| Err(words))
}

/// What lengths and shares may be.
fn limits(config: &Config) -> Result<(), &'static str> {
    let ends = |list: &[Lengths]| list.iter().flat_map(|range| [range.start, range.end]).collect::<Vec<_>>();
    let (keys, values) = (ends(&config.keys), ends(&config.values));
    let shares = || config.keys.iter().chain(&config.values).map(|range| range.share);
    let is_bad = |share: f64| !share.is_finite() || share < 0.0;
    let rules = [
        (keys.iter().any(|&key| key < KEY_BYTES.0), "key length must be greater than 16 bytes."),
        (keys.iter().any(|&key| key > KEY_BYTES.1), "key length must be less than 250 bytes."),
        (values.contains(&0), "value length must be greater than 0 bytes."),
        (values.iter().any(|&value| value > VALUE_MAX_BYTES), "key length must be less than or equal to 1M."),
        (
            config.keys.iter().chain(&config.values).any(|range| range.start > range.end),
            "start length must be less than or equal to end length.",
        ),
        (
            shares().any(is_bad) || is_bad(config.set) || is_bad(config.get),
            "proportion must not be less than 0.",
        ),
    ];
    rules.into_iter().find(|(broken, _)| *broken).map_or(Ok(()), |(_, words)| Err(words))
}

/// Gives the gets of a plan no more keys than a datagram holds, and returns a remark where they had more. The original drops
/// each get that is longer, with the first sentence of the remark, and goes on; its manual's own example has such gets.
fn shorten_gets(plan: &mut Plan) -> Option<String> {
    let windows = plan.phases.iter_mut().filter_map(|phase| match &mut phase.work {
        Work::Window(window) => Some(window),
        _ => None,
    });
    let mut remark = None;
    for window in windows {
        let (asked, longest) = (window.multiget, window.longest_get_bytes());
        while window.multiget > 1 && window.longest_get_bytes() > DATAGRAM_MAX_BYTES {
            window.multiget -= 1;
        }
        let keys = window.multiget;
        if keys < asked {
            remark = Some(format!(
                "multi-packet request for UDP not supported: a get of {asked} keys takes up to {longest} bytes and a datagram \
                 has {DATAGRAM_MAX_BYTES}, so that gets have {keys} keys"
            ));
        }
    }
    remark
}

/// Whether every set fits into the datagram that has to carry it.
fn datagrams_fit(options: &Options, plan: &Plan) -> Result<(), String> {
    let Some(window) = plan.window().filter(|_| options.udp) else { return Ok(()) };
    let longest = window.longest_set_bytes();
    if longest <= DATAGRAM_MAX_BYTES {
        return Ok(());
    }
    Err(format!(
        "multi-packet request for UDP not supported.\nThe longest set takes {longest} bytes, and a datagram has \
         {DATAGRAM_MAX_BYTES}: shorter keys or values fit."
    ))
}

/// The words for a plan that cannot be run where the original says nothing of its own: the option that decides the field.
fn unfit(invalid: &Invalid) -> String {
    let option = match invalid.path.field() {
        // The words of the Plan end with what it calls these options.
        Field::Depth => return unallocated(invalid.expected.split(':').next().unwrap_or_default()),
        Field::Servers | Field::Server => "--servers",
        Field::Threads => "--threads",
        Field::TotalClients | Field::Clients | Field::Block => "--concurrency",
        Field::Rate => "--tps",
        Field::Stop | Field::StopTime => "--time",
        Field::StopRequests => "--execute_number",
        Field::Seed => "--seed",
        _ => "--cfg_cmd",
    };
    format!("{option}: '{}' is not accepted: {}.", invalid.value, invalid.expected)
}

/// The original's words where memory is short, with how much is needed and how much there is.
pub fn unallocated(why: &str) -> String {
    format!(
        "Can't allocate distribution array.\nMemory: {why}. A smaller --win_size or --concurrency needs less."
    )
}

fn banner(options: &Options, list: &str, config: &Config) -> String {
    let length = match options.execute {
        Some(number) => format!("execute number: {number}"),
        None => format!("run time: {}s", options.time_s),
    };
    format!(
        "servers: {list}\nthreads count: {}\nconcurrency: {}\n{length}\nwindows size: {}k\n\
         set proportion: set_prop={:.2}\nget proportion: get_prop={:.2}\n",
        options.threads,
        options.concurrency,
        options.window / 1_024,
        config.set,
        config.get
    )
}

fn plan(options: &Options, machine: &Machine<'_>, servers: Vec<String>, config: &Config) -> Plan {
    let seed = options.seed.unwrap_or(machine.inputs.seed);
    let rate = (options.tps > 0).then_some(options.tps as f64);
    Plan {
        schema: SCHEMA,
        servers,
        route: Route::All,
        cluster: ClusterOptions::default(),
        protocol: if options.binary { Protocol::Binary } else { Protocol::Text },
        transport: if options.udp { Transport::Udp } else { Transport::Stream },
        seed,
        interval_ns: SECOND,
        timeout_ns: if options.udp || options.facebook { UDP_TIMEOUT_NS } else { TIMEOUT_NS },
        reconnect: options.reconnect || options.rep_write.is_some(),
        retry: None,
        failed_keys: false,
        verify: 0.0,
        evidence: !options.no_evidence,
        baseline: false,
        probe: false,
        server_stats_ns: None,
        server_stats_at: Vec::new(),
        adaptive: Adaptive::default(),
        anonymous: options.anonymous,
        fail_on: Vec::new(),
        labels: Labels::new(),
        changes: Changes::default(),
        goals: Vec::new(),
        engine: Engine {
            threads: options.threads,
            // One thread is bound as well, as in the original.
            cpus: machine.cpus.to_vec(),
            backend: Backend::Auto,
            wait: Wait::Auto,
            clock: Clock::Kernel,
            stamps: None,
        },
        socket: Socket {
            nodelay: true,
            linger_s: None,
            send_buffer: None,
            recv_buffer: None,
            source: Vec::new(),
        },
        login: None,
        tls: None,
        database: 0,
        tracking: None,
        commands: Vec::new(),
        load_command: None,
        dataset: None,
        script: None,
        data: no_records(),
        allow_partial_load: false,
        groups: vec![Group {
            name: "concurrencies".to_owned(),
            clients: options.concurrency,
            depth: Depth::Limit(1),
            arrivals: if rate.is_some() { Arrivals::Constant } else { Arrivals::Closed },
            rate,
            policy: ClientPolicy::default(),
            churn: None,
        }],
        phases: phases(options, config, seed),
    }
}

/// The records of a Plan whose clients have windows: they ask for none.
fn no_records() -> Data {
    Data {
        records: 1,
        seed: 0,
        key_prefix: String::new(),
        key_size: Dist::Fixed(30.0),
        value_size: Dist::Fixed(200.0),
        expiry_s: Dist::Fixed(0.0),
        value_classes: Vec::new(),
        value_compress: 1.0,
        value_filler: None,
        key_tag: None,
        slots: Vec::new(),
        first_key: 0,
        style: Style::default(),
    }
}

fn phases(options: &Options, config: &Config, seed: u64) -> Vec<Phase> {
    let window = Window {
        seed,
        objects: options.window,
        keys: config.keys.clone(),
        values: config.values.clone(),
        set: config.set,
        get: config.get,
        multiget: options.division,
        overwrite: options.overwrite,
        verify: options.verify,
        expire: options.expire,
        verbose: options.verbose,
        preset: false,
        pool: Pool {
            sockets: options.sockets,
            block: options.concurrency / options.threads,
            datagrams: options.facebook,
            replication: options.rep_write.map(|writers| Replication { writers }),
        },
    };
    let mut phases = Vec::new();
    if config.set < LEAST_SHARE {
        phases.push(Phase {
            name: "preset".to_owned(),
            work: Work::Window(Window { preset: true, ..window.clone() }),
            stop: Stop::default(),
            recorded: false,
        });
    }
    let stop = match options.execute {
        Some(requests) => Stop { time_ns: None, requests: Some(requests) },
        None => Stop { time_ns: Some(options.time_s * SECOND), requests: None },
    };
    phases.push(Phase { name: "measure".to_owned(), work: Work::Window(window), stop, recorded: true });
    phases
}

fn outputs(options: &Options) -> Outputs {
    Outputs { format: ReportFormat::Text, quiet: true, files: options.files.clone(), ..Outputs::default() }
}
