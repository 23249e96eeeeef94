//! mutilate's command line: from its options to a Plan, and to what is written about the run.

mod dists;
pub mod front;
mod help;
mod options;
pub mod report;
mod saved_report;
mod sharing;
pub mod style;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use pummel_logic::dist::Dist;
use pummel_logic::plan::validate::{Field, Invalid, ValidPlan};
use pummel_logic::plan::{
    Adaptive, Backend, Changes, Clock, ClusterOptions, Data, Delete, Engine, Fill, KeyStyle, Labels, Load,
    Login, Mix, Pause, Phase, Plan, Popularity, Protocol, Replay, Route, SCHEMA, Socket, Stop, Style,
    Transport, ValueStyle, Wait, Work,
};
use pummel_logic::protocol::{MetaAsk, Verb};
use pummel_logic::secrets::Secret;
use pummel_logic::time::{Nanos, SECOND};

pub use self::options::TABLE as OPTIONS;
use crate::c_numbers::strtol;
use crate::fleet::AgentAddress;
use crate::job::{FrontInputs, Job};
use crate::mutilate::dists::Form;
pub use crate::mutilate::help::{HELP, VERSION};
use crate::mutilate::options::{Given, Options, fatal};
pub use crate::mutilate::options::{Refusal, TABLE};
pub use crate::mutilate::saved_report::{ReportReader, header as table_header};
pub use crate::mutilate::sharing::{AgentOptions, ProcessSettings, SharedPlan};
use crate::outputs::{Outputs, ReportFormat};
use crate::values;

/// The name of the front in results, metrics and subcommands.
pub const NAME: &str = "mutilate";

/// Where memcached listens unless it is told otherwise.
const PORT: u16 = 11_211;

/// Most requests outstanding on one connection while records are stored or deleted.
const CHORE_DEPTH: u32 = 64;

/// How long a request, or opening a connection, may take. The original waits for ever, and hangs when nothing comes.
const TIMEOUT_NS: Nanos = 10 * SECOND;

/// How long a run measures that is told neither a time nor a number of requests.
const TIME_DEFAULT_S: i64 = 5;

/// Share of the keys that `--delete90` deletes.
const DELETED: f64 = 0.9;

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum MutilateCommand {
    /// `--help`.
    Help,
    /// `--version`.
    Version,
    /// `--agentmode`.
    Agent(AgentOptions),
    /// One run or several.
    Runs(Box<Runs>),
}

/// What a command line that asks for load means.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    /// The first run: that of a command line without `--search` and `--scan`.
    pub job: Job,
    /// What is written about it.
    pub display: DisplayOptions,
    /// Whether there are more, and at which rates.
    pub series: Series,
    /// Where its agents are.
    pub agents: Vec<AgentAddress>,
    options: Options,
    inputs: FrontInputs,
    cpus: Vec<usize>,
}

/// At which rates there are runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// At one, that of the options.
    Single,
    /// `--search`: at those that lead to the greatest at which this quantile stays below a limit.
    Search {
        /// Order statistic in per cent, 0 to 100.
        nth: u32,
        /// Limit in microseconds.
        limit_us: u32,
    },
    /// `--scan`: at all of them.
    Scan {
        /// The first, in requests per second.
        min: u32,
        /// None is above.
        max: u32,
        /// From one to the next, 1 or more.
        step: u32,
    },
}

/// What is written about a run, beside the outputs that all fronts have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisplayOptions {
    /// How much is said on standard error, from 0 on.
    pub verbose: u32,
    /// Nothing is said there but notices, failures, and what ends the program.
    pub quiet: bool,
    /// Rows of the response time, from the due time on.
    pub response: bool,
    /// Columns for the 50th and the 99.9th percentile.
    pub p50: bool,
    /// Rows of the requests of all machines.
    pub all_rows: bool,
    /// File for the samples of reads.
    pub save: Option<PathBuf>,
    /// The samples are those of all requests of all machines, with their times and machines.
    pub save_all: bool,
    /// Number of reads after which the share of misses is printed; 0 for never.
    pub miss_window: u64,
    /// Nothing but storing is wanted, and nothing is reported of it.
    pub load_only: bool,
}

/// What the words behind the program's name mean. `cpus` are those that this process may run on.
///
/// # Errors
/// With the original's words, or in its manner where it has none.
pub fn read(
    words: impl Iterator<Item = String>,
    inputs: &FrontInputs,
    cpus: &[usize],
) -> Result<MutilateCommand, Refusal> {
    match options::parse(words)? {
        Given::Help => Ok(MutilateCommand::Help),
        Given::Version => Ok(MutilateCommand::Version),
        Given::Options(options) if options.agentmode => {
            options.validate()?;
            Ok(MutilateCommand::Agent(sharing::agent(&options)?))
        }
        Given::Options(options) => {
            Runs::new(*options, inputs, cpus).map(|runs| MutilateCommand::Runs(Box::new(runs)))
        }
    }
}

impl Runs {
    fn new(options: Options, inputs: &FrontInputs, cpus: &[usize]) -> Result<Runs, Refusal> {
        options.validate()?;
        let series = match (options.search_goal()?, options.scan_rates()?) {
            (Some((nth, limit_us)), _) => Series::Search { nth: nth as u32, limit_us: limit_us as u32 },
            (_, Some((min, max, step))) => {
                Series::Scan { min: min as u32, max: max as u32, step: step as u32 }
            }
            (None, None) => Series::Single,
        };
        let qps = match series {
            Series::Scan { min, .. } => f64::from(min),
            _ => options.qps as f64,
        };
        if series != Series::Single {
            // Every rate but 0 needs gaps that can be fitted to it: say so before the first run, not after it.
            sharing::arrivals(&options, 1.0)?;
        }
        let agents = sharing::agent_addresses(&options)?;
        // What agents say of themselves is not known yet: one thread each stands for it.
        let agent_settings =
            vec![ProcessSettings { threads: 1, weight: 1, measure_connections: 0 }; agents.len()];
        let plan = plan(&options, inputs, cpus, qps, &agent_settings)?.plan;
        let job = Job { front: NAME, plan, outputs: outputs(&options), fleet: None };
        Ok(Runs {
            display: display_options(&options),
            job,
            agents,
            series,
            options,
            inputs: inputs.clone(),
            cpus: cpus.to_vec(),
        })
    }

    /// The plan of this run at another rate in requests per second; 0 is closed loop.
    ///
    /// # Errors
    /// When gaps cannot be fitted to that rate.
    pub fn plan_at(&self, qps: u32) -> Result<ValidPlan, Refusal> {
        self.shared_plan_at(qps, &[]).map(|shared| shared.plan)
    }

    /// The plan of this run at a rate, shared with agents of these settings.
    ///
    /// # Errors
    /// As for [`Runs::plan_at`].
    pub fn shared_plan_at(
        &self,
        qps: u32,
        agent_settings: &[ProcessSettings],
    ) -> Result<SharedPlan, Refusal> {
        plan(&self.options, &self.inputs, &self.cpus, f64::from(qps), agent_settings)
    }

    /// Whether reads are to be written to a file: not where nothing, or more than one rate, is measured.
    pub fn saves(&self) -> bool {
        !self.display.load_only && !matches!(self.series, Series::Scan { .. })
    }

    /// How many threads spin, where they are more than the CPUs that this process may run on.
    pub fn threads_too_many(&self) -> Option<(u32, usize)> {
        let threads = self.options.threads as u32;
        let spins = !self.options.blocking && !self.options.loadonly;
        (spins && threads as usize > self.cpus.len() && !self.cpus.is_empty())
            .then_some((threads, self.cpus.len()))
    }

    /// `--threads`, and 1 where the master only leads.
    pub fn threads(&self) -> u32 {
        self.options.threads.max(1) as u32
    }

    /// `--qps`; 0 is closed loop.
    pub fn qps(&self) -> u32 {
        self.options.qps as u32
    }

    /// A server as it was typed.
    pub fn typed_server<'a>(&'a self, name: &'a str) -> &'a str {
        let place = self.job.plan.servers.iter().position(|server| server == name);
        place.and_then(|place| self.options.servers.get(place)).map_or(name, String::as_str)
    }

    /// The password, which is in no Plan.
    pub fn password(&self) -> Option<Secret> {
        self.options.username.as_ref()?;
        Some(self.options.password.clone().unwrap_or_default())
    }
}

/// The run of these options at a rate, beside these agents.
fn plan(
    options: &Options,
    inputs: &FrontInputs,
    cpus: &[usize],
    qps: f64,
    agent_settings: &[ProcessSettings],
) -> Result<SharedPlan, Refusal> {
    let servers = servers(options)?;
    let count = servers.len() as u32;
    let groups = sharing::groups(options, count, qps, agent_settings)?;
    let plan = Plan {
        schema: SCHEMA,
        protocol: match (options.binary, options.redis) {
            (true, _) => Protocol::Binary,
            (false, true) => Protocol::Resp2,
            (false, false) => Protocol::Text,
        },
        seed: seed(options, inputs)?,
        interval_ns: SECOND,
        timeout_ns: TIMEOUT_NS,
        reconnect: false,
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
        engine: engine(options, cpus)?,
        socket: Socket {
            nodelay: !options.no_nodelay,
            linger_s: None,
            send_buffer: None,
            recv_buffer: None,
            source: Vec::new(),
        },
        login: options.username.clone().map(|user| Login { user, password_file: None }),
        tls: None,
        data: data(options, count)?,
        allow_partial_load: false,
        groups: groups.groups,
        phases: phases(options, count),
        commands: Vec::new(),
        load_command: None,
        dataset: None,
        script: None,
        route: Route::All,
        cluster: ClusterOptions::default(),
        transport: Transport::Stream,
        database: 0,
        tracking: None,
        servers,
    };
    let plan = plan.validate().map_err(|invalid| unfit(options, &invalid))?;
    Ok(SharedPlan { plan, own: groups.own, agents: groups.agents })
}

/// What is said of a plan that cannot be run: the option that decides the field.
fn unfit(options: &Options, invalid: &Invalid) -> Refusal {
    let is_masters = invalid.path.index() == 0 && !options.agents.is_empty();
    let name = match invalid.path.field() {
        Field::Servers | Field::Server => "--server",
        Field::Threads => "--threads",
        Field::User => "--username",
        Field::Records => "--records",
        Field::KeyPrefix => "--prefix",
        Field::KeySize => "--keysize",
        Field::ValueSize => "--valuesize",
        Field::FieldBytes => "--assoc",
        Field::Clients | Field::TotalClients => "--connections",
        Field::Depth if is_masters && options.measure_depth.is_some() => "--measure_depth",
        Field::Depth => "--depth",
        Field::Arrivals => "--iadist",
        Field::Rate => "--qps",
        Field::Block => "--roundrobin",
        Field::Stop | Field::StopTime => "--time",
        Field::StopRequests => "--queries",
        Field::PauseUntil => "--wait",
        Field::Operations => "--update",
        Field::ReplayFormat => "--twitter_trace",
        Field::DeleteShare => "--delete90",
        _ => return fatal(invalid.to_string()),
    };
    fatal(format!("{name} cannot be '{}': {}", invalid.value, invalid.expected))
}

/// Servers in the form of the Plan. A name is cut at its first colon, as the original does, unless it stands in brackets.
fn servers(options: &Options) -> Result<Vec<String>, Refusal> {
    options.servers.iter().map(|text| server(text, options.unix_socket)).collect()
}

fn server(text: &str, unix_socket: bool) -> Result<String, Refusal> {
    let wrong = |why: String| fatal(format!("Error while resolving '{text}': {why}"));
    if unix_socket {
        let path = std::path::absolute(text).map_err(|error| wrong(error.to_string()))?;
        let path = path.to_str().ok_or_else(|| wrong("the path is not UTF-8".to_owned()))?;
        return values::server(path).map_err(|error| wrong(error.to_string()));
    }
    let whole = match text.split_once(':') {
        _ if text.starts_with('[') => text.strip_suffix(':').unwrap_or(text).to_owned(),
        Some((host, "")) => format!("{host}:{PORT}"),
        _ => text.to_owned(),
    };
    if whole.starts_with('/') {
        return Err(wrong("expected the path of a unix socket with --unix_socket".to_owned()));
    }
    values::server(&whole).map_err(|error| wrong(error.to_string()))
}

fn seed(options: &Options, inputs: &FrontInputs) -> Result<u64, Refusal> {
    let Some(text) = &options.seed else { return Ok(inputs.seed) };
    match strtol(text, 0) {
        (seed, "") if seed >= 0 && !text.is_empty() => Ok(seed as u64),
        _ => Err(fatal(format!("--seed must be a whole number, 0 or more, not '{text}'"))),
    }
}

fn engine(options: &Options, cpus: &[usize]) -> Result<Engine, Refusal> {
    let refused = |typed: &str| fatal(format!("--clock must be kernel or user, not '{typed}'"));
    let clock = options.clock.as_deref().map(|typed| Clock::from_name(typed).ok_or_else(|| refused(typed)));
    let pinned = options.affinity && options.threads > 1;
    Ok(Engine {
        threads: options.threads.max(1) as u32,
        cpus: if pinned { cpus.to_vec() } else { Vec::new() },
        backend: Backend::Auto,
        wait: if options.blocking { Wait::Block } else { Wait::Spin },
        clock: clock.transpose()?.unwrap_or_default(),
        stamps: None,
    })
}

/// Every server has the records 0 to n - 1.
fn data(options: &Options, servers: u32) -> Result<Data, Refusal> {
    let value_form = Form::parse(&options.valuesize).map_err(fatal)?;
    let value_size = value_form.sizes(&options.valuesize).map_err(fatal)?;
    let key_form = Form::parse(&options.keysize).map_err(fatal)?;
    let key_size = key_form.sizes(&options.keysize).map_err(fatal)?;
    Ok(Data {
        records: (options.records as u64 / u64::from(servers)).max(1),
        seed: 0,
        key_prefix: options.prefix.clone(),
        // A length is what remains of a number: the nearest for keys, without its fraction for values.
        key_size: whole(key_size, f64::round),
        value_size: whole(value_size, f64::trunc),
        expiry_s: Dist::Fixed(0.0),
        value_classes: Vec::new(),
        value_compress: 1.0,
        value_filler: None,
        key_tag: None,
        slots: Vec::new(),
        first_key: 0,
        style: Style {
            keys: KeyStyle::Fnv,
            values: ValueStyle::Fresh,
            field_bytes: options.assoc.map(|bytes| bytes as u32),
            ..Style::default()
        },
    })
}

/// A length that is always the same, as the whole number that it stands for.
fn whole(size: Dist, round: fn(f64) -> f64) -> Dist {
    match size {
        Dist::Fixed(value) => Dist::Fixed(round(value).max(0.0)),
        drawn => drawn,
    }
}

fn phases(options: &Options, servers: u32) -> Vec<Phase> {
    let unrecorded =
        |name: &str, work: Work, stop: Stop| Phase { name: name.to_owned(), work, stop, recorded: false };
    let for_seconds = |seconds: i64| Some(seconds as u64 * SECOND);
    let mut phases = Vec::new();
    if !options.noload {
        let load = Load {
            depth: CHORE_DEPTH,
            pieces: false,
            counters: false,
            hashes: false,
            commands: false,
            no_plain: false,
        };
        phases.push(unrecorded("load", Work::Load(load), Stop::default()));
    }
    if options.loadonly {
        if phases.is_empty() {
            // Connections are opened, and that is all.
            phases.push(unrecorded(
                "nothing",
                Work::Pause(Pause { until_ns: 0, for_ns: 0 }),
                Stop::default(),
            ));
        }
        return phases;
    }
    if options.warmup > 0 {
        let stop = Stop { time_ns: for_seconds(options.warmup), requests: None };
        phases.push(unrecorded("warmup", work(options), stop));
    }
    if options.wait > 0 {
        let until_ns = options.wait as u64 * SECOND;
        phases.push(unrecorded("wait", Work::Pause(Pause { until_ns, for_ns: 0 }), Stop::default()));
    }
    let servers = u64::from(servers);
    let requests = Some(options.queries as u64 / servers * servers).filter(|&requests| requests > 0);
    let endless = requests.is_none() && options.read_file.is_empty();
    let time_s = options.time.or(endless.then_some(TIME_DEFAULT_S));
    let time_ns = time_s.and_then(for_seconds);
    let measure = |requests| Phase {
        name: "measure".to_owned(),
        work: work(options),
        stop: Stop { time_ns, requests },
        recorded: true,
    };
    match requests.filter(|&requests| options.delete90 && requests > 1) {
        Some(requests) => {
            let half = requests / 2;
            let delete = Work::Delete(Delete { share: DELETED, depth: CHORE_DEPTH });
            phases.push(measure(Some(half)));
            phases.push(unrecorded("delete", delete, Stop::default()));
            phases.push(measure(Some(requests - half)));
        }
        None => phases.push(measure(requests)),
    }
    phases
}

/// What connections ask.
fn work(options: &Options) -> Work {
    let reads_through = options.getset || options.getsetorset;
    let read_through_ns = reads_through.then_some(0);
    if !options.read_file.is_empty() {
        let (path, format) = (options.read_file.clone(), options.twitter_trace as u32);
        // With --getset alone everything is a read to begin with, here too.
        let reads_only = options.getset && !options.getsetorset;
        return Work::Replay(Replay { path, format, read_through_ns, reads_only });
    }
    // With --getset alone everything is a read to begin with.
    let update = if options.getset && !options.getsetorset { 0.0 } else { options.update };
    let ops = [(Verb::Get, 1.0 - update), (Verb::Set, update)];
    Work::Mix(Mix {
        ops: ops.into_iter().filter(|(_, weight)| *weight > 0.0).collect(),
        popularity: Popularity::Uniform,
        popularity_of: Vec::new(),
        multiget: 1,
        read_through_ns: read_through_ns.filter(|_| update < 1.0),
        fill: Fill::default(),
        churn: None,
        fill_delay_s: None,
        noreply: false,
        read_modify_write: 0.0,
        inserts: false,
        scans: false,
        in_turns: false,
        multiset: 1,
        fresh: 0.0,
        absent: 0.0,
        meta: MetaAsk::default(),
    })
}

fn display_options(options: &Options) -> DisplayOptions {
    DisplayOptions {
        verbose: options.verbose,
        quiet: options.quiet,
        response: options.response,
        p50: options.p50,
        all_rows: options.all_rows,
        save: options.save.as_ref().map(PathBuf::from),
        save_all: options.save_all,
        miss_window: options.misswindow as u64,
        load_only: options.loadonly,
    }
}

fn outputs(options: &Options) -> Outputs {
    Outputs { format: ReportFormat::Text, quiet: true, files: options.files.clone(), ..Outputs::default() }
}
