//! pummel's own command line: `run` and `load`, from their options to a [`Job`].

mod args;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, FromArgMatches, Parser};
use pummel_logic::plan::{
    Arrivals, Backend, Clock, Data, Depth, Engine, Group, Load, Login, Mix, Phase, Plan, Protocol, SCHEMA,
    Socket, Stop, TlsOptions, Wait, Work,
};
use pummel_logic::time::SECOND;
use pummel_logic::wire::Verb;

pub use self::args::{
    ArrivalsName, BackendName, ClockName, DataArgs, EngineArgs, List, LoadArgs, LoadPaceArgs, MixArgs,
    OutputArgs, PaceArgs, ProtocolName, RunArgs, SavedArgs, SocketArgs, TargetArgs, WaitName,
};
use super::check::{self, Wrong};
use super::{Edge, Format, Front, Job, Outputs, UsageError, values};

/// How many requests are outstanding on one connection while a run stores its records.
const LOAD_DEPTH: u32 = 64;

/// How long a run measures that is told neither a time nor a number of requests.
const TIME_DEFAULT_NS: u64 = 10 * SECOND;

/// Parsed options together with the words that they were typed in, so that an error can name those.
#[derive(Clone, Debug)]
pub struct Typed<A> {
    /// The options.
    pub args: A,
    /// The last word of each option, by the option's name with underscores.
    words: BTreeMap<String, String>,
}

impl<A> Typed<A> {
    /// What was typed for a flag such as `--key-size`.
    fn word(&self, flag: &str) -> Option<&str> {
        self.words.get(&flag.trim_start_matches('-').replace('-', "_")).map(String::as_str)
    }

    /// The error of a plan that these options made.
    fn usage(&self, wrong: Wrong) -> UsageError {
        let value = self.word(wrong.flag).map_or(wrong.value, str::to_string);
        UsageError::Value { flag: wrong.flag.to_string(), value, accepted: wrong.accepted }
    }
}

impl<A: FromArgMatches> FromArgMatches for Typed<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let word = |id: &clap::Id| {
            let last = matches.try_get_raw(id.as_str()).ok()??.next_back()?;
            Some((id.to_string(), last.to_string_lossy().into_owned()))
        };
        Ok(Typed { args: A::from_arg_matches(matches)?, words: matches.ids().filter_map(word).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Typed::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<A: Args> Args for Typed<A> {
    fn augment_args(command: clap::Command) -> clap::Command {
        A::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        A::augment_args_for_update(command)
    }
}

/// A command line of this front, behind the program's name.
#[derive(Parser)]
#[command(name = "pummel")]
enum Line {
    /// `run ...`
    Run(Box<Typed<RunArgs>>),
    /// `load ...`
    Load(Box<Typed<LoadArgs>>),
}

/// What a command line means that begins with `run` or `load`. The error may also be an answer to `--help`.
pub fn job(words: impl IntoIterator<Item = OsString>, edge: &Edge) -> Result<Job, clap::Error> {
    let program = std::iter::once(OsString::from("pummel"));
    match Line::try_parse_from(program.chain(words))? {
        Line::Run(typed) => Ok(run(&typed, edge)?),
        Line::Load(typed) => Ok(load(&typed, edge)?),
    }
}

/// What `pummel run` with these options does.
pub fn run(typed: &Typed<RunArgs>, edge: &Edge) -> Result<Job, UsageError> {
    let args = &typed.args;
    let outputs = outputs(&args.output)?;
    if let Some(saved) = &args.saved.plan {
        let plan = saved_plan(typed, saved)?;
        return Ok(Job { front: Front::Native, plan, outputs });
    }
    not_yet(&args.target, &args.engine)?;
    let plan = Plan {
        seed: args.pace.seed.unwrap_or(edge.seed),
        interval_ns: args.pace.interval,
        verify: args.mix.verify.unwrap_or(0.0),
        goals: args.pace.goal.iter().flat_map(|goals| goals.0.clone()).collect(),
        groups: vec![group(&args.pace)],
        phases: phases(args),
        ..base(&args.target, &args.engine, &args.socket, &args.data, edge, args.pace.threads)?
    };
    check::check(&plan).map_err(|wrong| typed.usage(wrong))?;
    Ok(Job { front: Front::Native, plan, outputs })
}

/// What `pummel load` with these options does: one phase, which is recorded.
pub fn load(typed: &Typed<LoadArgs>, edge: &Edge) -> Result<Job, UsageError> {
    let args = &typed.args;
    let outputs = outputs(&args.output)?;
    not_yet(&args.target, &args.engine)?;
    let pace = &args.pace;
    let group = Group {
        name: "clients".to_string(),
        clients: pace.connections,
        depth: Depth::Limit(pace.depth),
        arrivals: Arrivals::Closed,
        rate: None,
    };
    let plan = Plan {
        interval_ns: pace.interval,
        groups: vec![group],
        phases: vec![load_phase(&pace.mix.0, pace.depth, true)],
        ..base(&args.target, &args.engine, &args.socket, &args.data, edge, pace.threads)?
    };
    check::check(&plan).map_err(|wrong| typed.usage(wrong))?;
    Ok(Job { front: Front::Native, plan, outputs })
}

/// A saved plan, with the servers of the command line if it names any.
fn saved_plan(typed: &Typed<RunArgs>, saved: &Plan) -> Result<Plan, UsageError> {
    let mut plan = saved.clone();
    let servers = typed_servers(&typed.args.target);
    if !servers.is_empty() {
        plan.servers = servers;
    }
    check::check(&plan).map_err(|wrong| UsageError::Value {
        flag: "--plan".to_string(),
        value: typed.word("--plan").unwrap_or_default().to_string(),
        accepted: format!("{} is '{}', but {}", wrong.field, wrong.value, wrong.accepted),
    })?;
    Ok(plan)
}

/// The parts of a plan that `run` and `load` share; groups and phases are still to come.
fn base(
    target: &TargetArgs,
    engine: &EngineArgs,
    socket: &SocketArgs,
    data: &DataArgs,
    edge: &Edge,
    threads: u32,
) -> Result<Plan, UsageError> {
    Ok(Plan {
        schema: SCHEMA,
        servers: servers(target, edge)?,
        protocol: protocol(target.protocol),
        seed: edge.seed,
        interval_ns: SECOND,
        timeout_ns: target.timeout,
        reconnect: target.reconnect,
        verify: 0.0,
        goals: Vec::new(),
        engine: self::engine(engine, threads),
        socket: self::socket(socket),
        login: login(target)?,
        tls: tls(target)?,
        data: self::data(data),
        groups: Vec::new(),
        phases: Vec::new(),
    })
}

/// Answers what the parser knows and this version cannot do.
fn not_yet(target: &TargetArgs, engine: &EngineArgs) -> Result<(), UsageError> {
    let text = "this version speaks TCP and unix sockets";
    let missing = [
        (target.udp, "--udp", text),
        (
            engine.backend == BackendName::Uring,
            "--backend uring",
            "--backend auto and --backend epoll are accepted",
        ),
    ];
    let Some((_, flag, instead)) = missing.into_iter().find(|(given, _, _)| *given) else { return Ok(()) };
    Err(UsageError::NotYet { flag: flag.to_string(), instead: instead.to_string() })
}

fn protocol(name: ProtocolName) -> Protocol {
    match name {
        ProtocolName::Text => Protocol::Text,
        ProtocolName::Meta => Protocol::Meta,
        ProtocolName::Binary => Protocol::Binary,
        ProtocolName::Resp2 => Protocol::Resp2,
        ProtocolName::Resp3 => Protocol::Resp3,
    }
}

/// Who logs in. The password is read where the run takes place, so that it is in no Plan and no result.
fn login(target: &TargetArgs) -> Result<Option<Login>, UsageError> {
    match (&target.user, &target.password_file) {
        (None, None) => Ok(None),
        (None, Some(file)) => Err(UsageError::Value {
            flag: "--password-file".to_string(),
            value: file.display().to_string(),
            accepted: "it is accepted only beside --user".to_string(),
        }),
        (Some(user), file) => Ok(Some(Login {
            user: user.clone(),
            password_file: file.as_ref().map(|file| file.display().to_string()),
        })),
    }
}

fn typed_servers(target: &TargetArgs) -> Vec<String> {
    target.server.iter().flat_map(|servers| servers.0.clone()).collect()
}

fn servers(target: &TargetArgs, edge: &Edge) -> Result<Vec<String>, UsageError> {
    let servers = typed_servers(target);
    match &edge.servers {
        _ if !servers.is_empty() => Ok(servers),
        Some(text) => values::servers(text).map_err(|error| UsageError::Value {
            flag: "MEMCACHED_SERVERS".to_string(),
            value: text.clone(),
            accepted: error.to_string(),
        }),
        None => Err(UsageError::Missing(
            "no server: '--server' (-s) is required, with HOST, HOST:PORT, [IPV6]:PORT or /unix/path; \
             or set MEMCACHED_SERVERS"
                .to_string(),
        )),
    }
}

fn engine(args: &EngineArgs, threads: u32) -> Engine {
    Engine {
        threads,
        cpus: args.cpus.as_ref().map_or_else(Vec::new, |cpus| cpus.0.clone()),
        backend: match args.backend {
            BackendName::Auto | BackendName::Uring => Backend::Auto,
            BackendName::Epoll => Backend::Epoll,
        },
        wait: match args.wait {
            WaitName::Auto => Wait::Auto,
            WaitName::Spin => Wait::Spin,
            WaitName::Block => Wait::Block,
        },
        clock: match args.clock {
            ClockName::Kernel => Clock::Kernel,
            ClockName::User => Clock::User,
        },
    }
}

fn socket(args: &SocketArgs) -> Socket {
    Socket {
        nodelay: !args.no_nodelay,
        linger_s: args.linger,
        send_buffer: args.send_buffer,
        recv_buffer: args.recv_buffer,
        source: args.source.as_ref().map_or_else(Vec::new, |source| source.0.clone()),
    }
}

/// Encryption, where `--tls` asks for it; what refines it means nothing alone.
fn tls(target: &TargetArgs) -> Result<Option<TlsOptions>, UsageError> {
    let refined = [
        (target.tls_ca.is_some(), "--tls-ca"),
        (target.tls_cert.is_some(), "--tls-cert"),
        (target.tls_key.is_some(), "--tls-key"),
        (target.tls_server_name.is_some(), "--tls-server-name"),
        (target.tls_insecure, "--tls-insecure"),
    ];
    match refined.into_iter().find(|(given, _)| *given) {
        Some((_, flag)) if !target.tls => {
            Err(UsageError::Missing(format!("'{flag}' is accepted only with '--tls', which is not there")))
        }
        _ if !target.tls => Ok(None),
        _ => Ok(Some(TlsOptions {
            ca: target.tls_ca.clone(),
            cert: target.tls_cert.clone(),
            key: target.tls_key.clone(),
            server_name: target.tls_server_name.clone(),
            insecure: target.tls_insecure,
        })),
    }
}

fn data(args: &DataArgs) -> Data {
    Data {
        records: args.records,
        seed: args.data_seed,
        key_prefix: args.key_prefix.clone(),
        key_size: args.key_size.clone(),
        value_size: args.value_size.clone(),
        expiry_s: args.ttl.clone(),
    }
}

fn group(pace: &PaceArgs) -> Group {
    Group {
        name: "clients".to_string(),
        clients: pace.connections,
        depth: pace.depth,
        arrivals: match (&pace.arrivals, pace.rate) {
            (None, None) => Arrivals::Closed,
            (None | Some(ArrivalsName::Poisson), _) => Arrivals::Poisson,
            (Some(ArrivalsName::Constant), _) => Arrivals::Constant,
            (Some(ArrivalsName::Shape(dist)), _) => Arrivals::Shape(dist.clone()),
        },
        rate: pace.rate,
    }
}

/// Loading, warm-up, measuring: the first two where they are wanted.
fn phases(args: &RunArgs) -> Vec<Phase> {
    let pace = &args.pace;
    let mix = Work::Mix(Mix {
        ops: args.mix.mix.0.clone(),
        popularity: args.mix.popularity.clone(),
        multiget: args.mix.multiget,
        read_through_ns: args.mix.read_through,
        noreply: args.mix.noreply,
    });
    let mut phases = Vec::new();
    if !args.mix.no_load {
        phases.push(load_phase(&args.mix.mix.0, LOAD_DEPTH, false));
    }
    if pace.warmup > 0 {
        let stop = Stop { time_ns: Some(pace.warmup), requests: None };
        phases.push(Phase { name: "warmup".to_string(), work: mix.clone(), stop, recorded: false });
    }
    let time_ns = pace.time.or_else(|| pace.requests.is_none().then_some(TIME_DEFAULT_NS));
    let stop = Stop { time_ns, requests: pace.requests };
    phases.push(Phase { name: "measure".to_string(), work: mix, stop, recorded: true });
    phases
}

fn load_phase(ops: &[(Verb, f64)], depth: u32, recorded: bool) -> Phase {
    let asks = |verbs: [Verb; 2]| ops.iter().any(|(verb, _)| verbs.contains(verb));
    let load =
        Load { depth, pieces: asks([Verb::Append, Verb::Prepend]), counters: asks([Verb::Incr, Verb::Decr]) };
    Phase { name: "load".to_string(), work: Work::Load(load), stop: Stop::default(), recorded }
}

/// Where everything is written; refuses what would write two things to one place.
fn outputs(args: &OutputArgs) -> Result<Outputs, UsageError> {
    let wrong = |flag: &str, value: &Path, accepted: &str| {
        let value = value.display().to_string();
        Err(UsageError::Value { flag: flag.to_string(), value, accepted: accepted.to_string() })
    };
    let stdout = Path::new("-");
    let to_stdout = args.json.as_deref() == Some(stdout);
    if to_stdout && args.format == Some(Format::Text) {
        return wrong(
            "--json",
            stdout,
            "a file is accepted beside --format text: only one of them can have standard output",
        );
    }
    let files =
        [("--json", &args.json), ("--csv", &args.csv), ("--hdr", &args.hdr), ("--samples", &args.samples)];
    let named: Vec<(&str, &PathBuf)> =
        files.iter().filter_map(|(flag, file)| Some((*flag, file.as_ref()?))).collect();
    for (index, (flag, file)) in named.iter().enumerate() {
        if file.as_os_str().is_empty() {
            return wrong(flag, file, "the name of a file is accepted");
        }
        if *flag != "--json" && file.as_path() == stdout {
            return wrong(flag, file, "the name of a file is accepted; only --json takes -");
        }
        if let Some((other, _)) = named[..index].iter().find(|(_, seen)| seen == file) {
            return wrong(flag, file, &format!("a file of its own is accepted, and {other} has this one"));
        }
    }
    Ok(Outputs {
        format: if to_stdout { Format::Json } else { args.format.unwrap_or_default() },
        quiet: args.quiet,
        json: args.json.clone().filter(|_| !to_stdout),
        csv: args.csv.clone(),
        hdr: args.hdr.clone(),
        samples: args.samples.clone(),
    })
}

#[cfg(test)]
mod tests;
