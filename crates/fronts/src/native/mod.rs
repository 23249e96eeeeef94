//! pummel's own command line: `run` and `load`, from their options to a [`Job`].

mod adaptive;
#[cfg(feature = "agents")]
mod agent_options;
mod changes;
pub mod cluster_options;
pub mod connection_steps;
mod field_options;
pub mod options;
pub mod phase_file;
pub mod places;
mod result_options;
pub mod saved;
mod server_uri;
pub mod steering;
pub mod style;
pub mod suite;
mod trace_args;
mod trace_options;
pub mod typed_rate;
pub mod workloads;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser};
use pummel_logic::dist::Dist;
use pummel_logic::plan::validate::{Field, ValidPlan};
use pummel_logic::plan::{
    Adaptive, Arrivals, Audit, Backend, Changes, ChurningClients, ClientPolicy, Clock, Command, Data,
    Dataset, DatasetOrder, Depth, Engine, FailOn, Group, Labels, Load, LoadCommand, Login, Mix, Pause, Phase,
    Plan, Popularity, Protocol, SCHEMA, Script, Socket, Spawns, Stop, Style, TlsOptions, Transport, Wait,
    Work,
};
use pummel_logic::protocol::{MetaAsk, Verb};
use pummel_logic::time::{MICROSECOND, Nanos, SECOND, from_seconds, seconds};
use pummel_logic::workload::key::Space;
use pummel_logic::workload::mix::space_of;

use crate::fleet::Fleet;
use crate::job::{FrontInputs, Job, UsageError};
#[cfg(feature = "agents")]
pub use crate::native::agent_options::{AgentsArgs, MeasuringArgs, OnLoss};
pub use crate::native::options::{
    BackendName, ClockName, DataArgs, DatasetOrderName, EngineArgs, List, LoadArgs, LoadPaceArgs, MixArgs,
    MixOrder, OutputArgs, PaceArgs, RouteName, RunArgs, SavedArgs, SocketArgs, TargetArgs, TypedArrivals,
    TypedProtocol, WaitName,
};
use crate::native::options::{Targeted, shape_refusal};
pub use crate::native::result_options::ResultArgs;
use crate::native::trace_args::TraceArgs;
use crate::outputs::{Outputs, ReportFormat};
use crate::values::server_uri::is_in;
use crate::values::{self, Operation, UnreadDist, UnreadPopularity, ValueError};

/// The front of pummel's own command line in results and metrics.
pub const FRONT: &str = "native";

/// Options of a load that decide which records are stored.
const LOAD_OPTIONS: &[&str] = &[
    "--workload",
    "--mix",
    "--records",
    "--key-size",
    "--key-prefix",
    "--key-tag",
    "--slots",
    "--value-size",
    "--value-compress",
    "--ttl",
    "--load-command",
    "--load-per-record",
    "--dataset",
    "--dataset-order",
    "--script",
    "--allow-partial-load",
];

/// Options that are accepted only with another one, which comes first.
const ONLY_WITH: &[(&str, &[&str])] = &[
    ("--audit", &["--settle"]),
    ("--load-command", &["--load-per-record"]),
    ("--dataset", &["--dataset-order"]),
    ("--until", &["--min-time", "--max-time"]),
    ("--tls", &["--tls-ca", "--tls-cert", "--tls-key", "--tls-server-name", "--tls-insecure"]),
    (
        "--agents",
        &[
            "--agents-timeout",
            "--on-agent-loss",
            "--agent-token-file",
            "--agent-tls-ca",
            "--agent-tls-cert",
            "--agent-tls-key",
            "--allow-version-mismatch",
            "--measure-connections",
        ],
    ),
    ("--measure-connections", &["--measure-rate", "--measure-depth"]),
];

/// The options that stand without a value, or may, with the word that the parser keeps for them then.
const WITHOUT_VALUE: [(&str, &str); 10] = [
    ("--audit", "count"),
    ("--cluster", "true"),
    ("--cluster-ip", "true"),
    ("--insert", "true"),
    ("--loop", "0"),
    ("--meta-details", "true"),
    ("--noreply", "true"),
    ("--read-through", "0"),
    ("--udp", "true"),
    ("--verify", "1"),
];

/// How many requests are outstanding on one connection while a run stores its records.
const LOAD_DEPTH: u32 = 64;

/// The word for an audit after which lost writes make the exit status 3.
const AUDIT_STRICT: &str = "strict";

/// Requests that are outstanding on one connection while records are read back.
const AUDIT_DEPTH: u32 = 16;

/// Most time for reading records back: that of a slow server for each of them, and of one that is gone in any case.
const AUDIT_RECORD_NS: Nanos = 100 * MICROSECOND;
const AUDIT_LEAST_NS: Nanos = 60 * SECOND;

/// Parsed options together with the words that they were typed in, so that an error can name those.
#[derive(Clone, Debug)]
pub struct Typed<A> {
    /// The options.
    pub args: A,
    /// The last word of each option, by the option's name with underscores.
    words: BTreeMap<String, String>,
    /// The options that stood on the command line, by the same names.
    given: BTreeSet<String>,
}

impl<A> Typed<A> {
    /// What was typed for a flag such as `--key-size`.
    fn word(&self, flag: &str) -> Option<&str> {
        self.words.get(&id_of(flag)).map(String::as_str)
    }

    /// Whether a flag such as `--interval` was typed.
    pub fn has(&self, flag: &str) -> bool {
        self.given.contains(&id_of(flag))
    }

    /// Refuses the first option that is given without the one that it belongs to.
    fn check_companions(&self) -> Result<(), UsageError> {
        let missing = ONLY_WITH.iter().filter(|(needed, _)| !self.has(needed));
        let mut alone = missing.flat_map(|(needed, flags)| flags.iter().map(move |flag| (flag, needed)));
        match alone.find(|(flag, _)| self.has(flag)) {
            Some((flag, needed)) => Err(UsageError::Missing(format!(
                "'{flag}' is accepted only with '{needed}', which is missing"
            ))),
            None => Ok(()),
        }
    }

    /// The error of a plan that these options made: the option that decides what is wrong, with what was typed for it.
    fn usage(&self, flag: &str, value: String, accepted: String) -> UsageError {
        let typed = self.word(flag).filter(|_| self.has(flag));
        if typed.is_some_and(|word| WITHOUT_VALUE.contains(&(flag, word))) {
            return UsageError::Missing(match accepted.strip_prefix("it is accepted only") {
                Some(rest) => format!("'{flag}' is accepted only{rest}"),
                None => format!("'{flag}' is not accepted: {accepted}"),
            });
        }
        let value = typed.map_or(value, str::to_string);
        UsageError::Value { flag: flag.to_string(), value, accepted }
    }

    /// The option that decides what `flag` decides: that one itself where it is given, else one that is given in its place.
    fn given_of(&self, flag: &'static str) -> &'static str {
        if self.has(flag) {
            return flag;
        }
        let mut instead = field_options::in_place_of(flag).iter().copied();
        instead.find(|other| self.has(other)).unwrap_or(flag)
    }

    /// The plan that these options made, when it can be run.
    fn valid(&self, plan: Plan) -> Result<ValidPlan, UsageError> {
        let recorded: Vec<bool> = plan.phases.iter().map(|phase| phase.recorded).collect();
        let plan = plan.validate().map_err(|invalid| {
            let is_recorded = recorded.get(invalid.path.index()) == Some(&true);
            let flag = self.given_of(field_options::flag_of(invalid.path, is_recorded));
            // What a Plan calls a part is a phase of the file.
            let expected = match invalid.expected.strip_prefix("in part ") {
                Some(rest) if flag == "--phases" => format!("in phase {rest}"),
                _ => invalid.expected,
            };
            let more = match (flag, invalid.path.field()) {
                ("--stage" | "--stage-connections" | "--phases", Field::StopTime) => {
                    " for all of them together"
                }
                ("--churn", _) if !self.has(flag) => ", or '--churn none', with which keys stay",
                _ => "",
            };
            self.usage(flag, invalid.value, format!("{expected}{more}"))
        })?;
        if field_options::sends_expiry(&plan) {
            return Ok(plan);
        }
        let why = "expected an expiry where something is stored or touched, and here no request has one";
        Err(self.usage("--ttl", plan.data.expiry_s.to_string(), why.to_owned()))
    }
}

impl<A> Typed<A> {
    /// The distribution of an option such as `--ttl <DIST>`.
    fn dist(&self, option: &str, dist: &UnreadDist, inputs: &FrontInputs) -> Result<Dist, UsageError> {
        dist.read(inputs.read_text).map_err(|error| self.unread(option, &error))
    }

    /// The error of an option such as `--ttl <DIST>`, in the words of the parser, where the file that it names is refused.
    fn unread(&self, option: &str, error: &ValueError) -> UsageError {
        let flag = option.split(' ').next().unwrap_or(option);
        let value = self.word(flag).unwrap_or_default().to_owned();
        UsageError::Value { flag: option.to_owned(), value, accepted: error.to_string() }
    }

    /// The script that commands call, read from its file.
    fn script(&self, args: &DataArgs, inputs: &FrontInputs) -> Result<Option<Script>, UsageError> {
        let Some(path) = args.script.clone() else { return Ok(None) };
        match (inputs.read_text)(&path) {
            Ok(text) => Ok(Some(Script { path, text })),
            Err(error) => {
                let why = ValueError(format!("expected a file with a script: {error}"));
                Err(self.unread("--script <FILE>", &why))
            }
        }
    }

    /// The records that options describe.
    fn data(&self, args: &DataArgs, inputs: &FrontInputs) -> Result<Data, UsageError> {
        Ok(Data {
            records: args.records,
            seed: args.data_seed,
            key_prefix: args.key_prefix.clone(),
            key_size: self.dist(KEY_SIZE, &args.key_size, inputs)?,
            value_size: self.dist(VALUE_SIZE, &args.value_size, inputs)?,
            expiry_s: self.dist(TTL, &args.ttl, inputs)?,
            value_classes: args.value_classes.clone(),
            value_compress: args.value_compress,
            value_filler: None,
            key_tag: args.key_tag,
            slots: args.slots.iter().flat_map(|list| list.0.clone()).collect(),
            first_key: 0,
            style: Style { expiry_jitter_percent: args.ttl_jitter, ..Style::default() },
        })
    }
}

impl Typed<RunArgs> {
    /// These options with the files read that hold distributions, so that several runs read each file once.
    ///
    /// # Errors
    /// Returns [`UsageError`] for the first file that cannot be read or holds no distribution.
    pub fn with_files(&self, inputs: &FrontInputs) -> Result<Typed<RunArgs>, UsageError> {
        let mut typed = self.clone();
        let data = self.data(&self.args.data, inputs)?;
        typed.args.data.keep(data);
        if let Some(size) = &mut typed.args.trace.missing_size {
            size.keep(
                size.read(inputs.read_text).map_err(|error| self.unread("--missing-size <DIST>", &error))?,
            );
        }
        typed.args.mix.popularity = UnreadPopularity::Ready(self.popularity(inputs)?);
        if let (Some(delay), Some(read)) = (&mut typed.args.mix.read_through, self.fill_delay(inputs)?) {
            delay.keep(read);
        }
        if let (Some(TypedArrivals::Shape(dist)), Some(Arrivals::Shape(read))) =
            (&mut typed.args.pace.arrivals, self.arrivals(inputs)?)
        {
            dist.keep(read);
        }
        Ok(typed)
    }

    /// These options with the share of fresh or absent keys that gives the hits of `--hit-ratio`.
    fn with_hit_ratio(&self, inputs: &FrontInputs) -> Result<Typed<RunArgs>, UsageError> {
        let mut typed = self.clone();
        let Some(ratio) = self.args.mix.hit_ratio else { return Ok(typed) };
        if let Some(flag) = ["--fresh", "--absent"].into_iter().find(|flag| self.has(flag)) {
            let why = "it is accepted without --hit-ratio only, which decides it";
            return Err(self.usage(flag, String::new(), why.to_owned()));
        }
        let ttl = self.dist(TTL, &self.args.data.ttl, inputs)?;
        let time_ns = adaptive::measured_ns(&self.args.pace).unwrap_or(Nanos::MAX);
        let run_s = seconds(adaptive::warm_up_ns(&self.args.pace).unwrap_or(0).saturating_add(time_ns));
        let shortest = 1.0 - f64::from(self.args.data.ttl_jitter) / 100.0;
        if ttl != Dist::Fixed(0.0) && ttl.support().0 * shortest < run_s {
            let why = "with --hit-ratio, expected 0 or a time at least as long as the run: expired records would be misses";
            return Err(self.usage("--ttl", ttl.to_string(), why.to_owned()));
        }
        let mix = &mut typed.args.mix;
        let missed = 1.0 - ratio;
        (mix.fresh, mix.absent) = if mix.read_through.is_some() { (missed, 0.0) } else { (0.0, missed) };
        Ok(typed)
    }

    /// How requests spread over the records.
    fn popularity(&self, inputs: &FrontInputs) -> Result<Popularity, UsageError> {
        let read = self.args.mix.popularity.read(inputs.read_text);
        read.map_err(|error| self.unread("--popularity <POPULARITY>", &error))
    }

    /// How long after a miss the key is stored, in seconds; `None` where it is not.
    fn fill_delay(&self, inputs: &FrontInputs) -> Result<Option<Dist>, UsageError> {
        let delay = self.args.mix.read_through.as_ref();
        delay.map(|delay| self.dist("--read-through [=<DELAY>]", delay, inputs)).transpose()
    }

    /// When requests are due, where `--arrivals` says it.
    fn arrivals(&self, inputs: &FrontInputs) -> Result<Option<Arrivals>, UsageError> {
        Ok(match &self.args.pace.arrivals {
            None => None,
            Some(TypedArrivals::Named(arrivals)) => Some(arrivals.clone()),
            Some(TypedArrivals::Shape(dist)) => {
                let shape = dist.read(inputs.read_text).map(Arrivals::Shape);
                Some(shape.map_err(|error| self.unread("--arrivals <ARRIVALS>", &shape_refusal(&error)))?)
            }
        })
    }
}

impl DataArgs {
    /// Keeps the distributions that were read from files.
    fn keep(&mut self, data: Data) {
        self.key_size.keep(data.key_size);
        self.value_size.keep(data.value_size);
        self.ttl.keep(data.expiry_s);
    }
}

/// The options whose value is a distribution of the records, as the parser's errors name them.
const KEY_SIZE: &str = "--key-size <DIST>";
const VALUE_SIZE: &str = "--value-size <DIST>";
const TTL: &str = "--ttl <DIST>";

/// What a flag is called where its words are kept.
fn id_of(flag: &str) -> String {
    flag.trim_start_matches('-').replace('-', "_")
}

impl<A: FromArgMatches + Targeted> FromArgMatches for Typed<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let word = |id: &clap::Id| {
            let last = matches.try_get_raw(id.as_str()).ok()??.next_back()?;
            Some((id.to_string(), last.to_string_lossy().into_owned()))
        };
        let is_given = |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        let mut args = A::from_arg_matches(matches)?;
        let mut words: BTreeMap<String, String> = matches.ids().filter_map(word).collect();
        let mut given: BTreeSet<String> = matches.ids().filter(is_given).map(ToString::to_string).collect();
        if given.remove("bare_server") {
            given.insert("server".to_owned());
            let word = words.remove("bare_server");
            words.extend(word.map(|word| ("server".to_owned(), word)));
        }
        given.extend(args.target_mut().settle_servers()?.into_iter().map(id_of));
        Ok(Typed { args, words, given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Typed::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<A: Args + Targeted> Args for Typed<A> {
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
///
/// # Errors
/// Returns the parser's error for words that are no command line, for values that are refused, and as the answer to
/// `--help`.
pub fn job(words: impl IntoIterator<Item = OsString>, inputs: &FrontInputs) -> Result<Job, clap::Error> {
    let program = std::iter::once(OsString::from("pummel"));
    let matches = Line::command().try_get_matches_from(program.chain(words))?;
    match Line::from_arg_matches(&matches)? {
        Line::Run(typed) => Ok(run(&typed, inputs)?),
        Line::Load(typed) => Ok(load(&typed, inputs)?),
    }
}

impl Typed<LoadArgs> {
    /// These options with the files read that hold distributions, so that several jobs read each file once.
    ///
    /// # Errors
    /// Returns [`UsageError`] for the first file that cannot be read or holds no distribution.
    pub fn with_files(&self, inputs: &FrontInputs) -> Result<Typed<LoadArgs>, UsageError> {
        let mut typed = self.clone();
        let data = self.data(&self.args.data, inputs)?;
        typed.args.data.keep(data);
        Ok(typed)
    }
}

/// What `pummel run` with these options does.
///
/// # Errors
/// Returns [`UsageError`] for the first value that is refused, and for an option or a server that is missing.
pub fn run(typed: &Typed<RunArgs>, inputs: &FrontInputs) -> Result<Job, UsageError> {
    refuse_beside_plan(typed)?;
    typed.check_companions()?;
    let typed = &typed.with_workload(inputs)?.with_phases(inputs)?.with_hit_ratio(inputs)?;
    let args = &typed.args;
    let outputs = outputs(&args.output, inputs)?;
    if let Some(saved) = &args.saved.plan {
        let plan = saved_plan(typed, saved, inputs)?;
        typed.check_places(&outputs, &plan, inputs.paths)?;
        let fleet = fleet_of(fleet(args)?, &plan)?;
        return Ok(Job { front: FRONT, plan, outputs, fleet });
    }
    let data = typed.data(&args.data, inputs)?;
    let replays = typed.replays_trace()?;
    let (rate, changes) = typed.changes(inputs)?;
    let mut groups = groups(args, typed.arrivals(inputs)?, rate)?;
    if replays {
        let (arrivals, depth) = typed.trace_arrivals();
        groups[0].depth = depth;
        groups[0].arrivals = arrivals.unwrap_or(groups[0].arrivals.clone());
    }
    let commands = expecting(&args.mix, commands(&args.mix))?;
    let load_command = load_command(&args.data);
    if load_command.is_some() && args.mix.no_load {
        let why = "'--load-command' is not accepted with '--no-load': it says how records are stored";
        return Err(UsageError::Missing(why.to_owned()));
    }
    let plan = Plan {
        commands: commands.clone(),
        load_command,
        dataset: dataset(&args.data),
        script: typed.script(&args.data, inputs)?,
        seed: args.pace.seed.unwrap_or(inputs.seed),
        interval_ns: args.pace.interval,
        verify: args.mix.verify.unwrap_or(0.0),
        goals: args.pace.goal.iter().flat_map(|goals| goals.0.clone()).collect(),
        data,
        allow_partial_load: args.data.allow_partial_load,
        adaptive: adaptive::of(&args.pace),
        changes,
        fail_on: fail_on(args),
        failed_keys: args.output.files.0.get("failed-keys").is_some(),
        labels: labels(args)?,
        groups,
        phases: if replays {
            typed.trace_phases(typed.fill_delay(inputs)?, inputs)?
        } else {
            let ops = ops(&args.mix, &commands)?;
            let drawn = phases(args, ops, typed.popularity(inputs)?, typed.fill_delay(inputs)?);
            [drawn, audit_phases(args)].concat()
        },
        ..base(&args.target, &args.engine, &args.socket, inputs, args.pace.threads)?
    };
    let plan = typed.valid(plan)?;
    typed.check_places(&outputs, &plan, inputs.paths)?;
    if plan.allow_partial_load && !plan.phases.iter().any(|phase| matches!(phase.work, Work::Load(_))) {
        return Err(UsageError::Missing(
            "'--allow-partial-load' is accepted only with a load of records".to_string(),
        ));
    }
    let fleet = fleet_of(fleet(args)?, &plan)?;
    Ok(Job { front: FRONT, plan, outputs, fleet })
}

/// The fleet of a plan, of which no audit can be made: one process knows what was acknowledged.
fn fleet_of(fleet: Option<Fleet>, plan: &Plan) -> Result<Option<Fleet>, UsageError> {
    if fleet.is_some() && plan.audits() {
        let why = "'--audit' is accepted without '--agents' only: one process knows what was acknowledged";
        return Err(UsageError::Missing(why.to_owned()));
    }
    Ok(fleet)
}

/// What `pummel load` with these options does: one phase, which is recorded.
///
/// # Errors
/// Returns [`UsageError`] for the first value that is refused, and for an option or a server that is missing.
pub fn load(typed: &Typed<LoadArgs>, inputs: &FrontInputs) -> Result<Job, UsageError> {
    typed.check_companions()?;
    let typed = &typed.with_workload(inputs)?;
    let args = &typed.args;
    let outputs = outputs(&args.output, inputs)?;
    let pace = &args.pace;
    if let Some(flag) = LOAD_OPTIONS.iter().find(|flag| !pace.fill.is_empty() && typed.has(flag)) {
        return Err(UsageError::Missing(format!(
            "'{flag}' is not accepted with '--fill': the file says what is stored"
        )));
    }
    let group = Group {
        name: "clients".to_string(),
        clients: pace.connections,
        depth: Depth::Limit(pace.depth),
        arrivals: Arrivals::Closed,
        rate: None,
        churn: None,
        policy: ClientPolicy::default(),
    };
    let load_command = load_command(&args.data);
    let of_commands = load_command.as_ref().map(|_| (Verb::Command, 1.0));
    // The plain records are stored beside those of the commands where operations on them are named.
    let named = pace.mix.0.iter().copied().filter(|_| of_commands.is_none() || typed.has("--mix"));
    let ops: Vec<(Verb, f64)> = named.chain(of_commands).collect();
    let plan = Plan {
        load_command,
        dataset: dataset(&args.data),
        script: typed.script(&args.data, inputs)?,
        interval_ns: pace.interval,
        data: typed.data(&args.data, inputs)?,
        allow_partial_load: args.data.allow_partial_load,
        fail_on: args.output.result.fail_on(),
        failed_keys: args.output.files.0.get("failed-keys").is_some(),
        labels: args.output.result.labels()?,
        groups: vec![group],
        phases: match pace.fill.is_empty() {
            true => vec![load_phase(&ops, pace.depth, true)],
            false => vec![typed.fill_phase()],
        },
        ..base(&args.target, &args.engine, &args.socket, inputs, pace.threads)?
    };
    let plan = typed.valid(plan)?;
    typed.check_places(&outputs, &plan, inputs.paths)?;
    let fleet = load_fleet(args)?;
    Ok(Job { front: FRONT, plan, outputs, fleet })
}

/// The agents of a run; also checks that nothing is asked of agents where there are none.
#[cfg(feature = "agents")]
fn fleet(args: &RunArgs) -> Result<Option<Fleet>, UsageError> {
    agent_options::fleet(&args.agents)
}

#[cfg(feature = "agents")]
fn load_fleet(args: &LoadArgs) -> Result<Option<Fleet>, UsageError> {
    agent_options::fleet(&args.agents)
}

#[cfg(not(feature = "agents"))]
fn fleet(_args: &RunArgs) -> Result<Option<Fleet>, UsageError> {
    Ok(None)
}

#[cfg(not(feature = "agents"))]
fn load_fleet(_args: &LoadArgs) -> Result<Option<Fleet>, UsageError> {
    Ok(None)
}

/// The clients of a run: those that load, and those that measure beside them.
fn groups(args: &RunArgs, arrivals: Option<Arrivals>, rate: Option<f64>) -> Result<Vec<Group>, UsageError> {
    let loading = group(&args.pace, arrivals, rate);
    #[cfg(feature = "agents")]
    if let Some(measuring) = agent_options::measuring(&args.measuring, args.pace.requests, &loading)? {
        return Ok(vec![loading, measuring]);
    }
    Ok(vec![loading])
}

/// Refuses the first option beside a saved plan that the plan has a field for; servers may stand beside it.
fn refuse_beside_plan(typed: &Typed<RunArgs>) -> Result<(), UsageError> {
    if typed.args.saved.plan.is_none() {
        return Ok(());
    }
    let is_refused = |id: &str| id != "server" && typed.given.contains(id);
    if typed.word("--server").is_some_and(is_in) {
        let accepted = "expected HOST:PORT with --plan, which says everything else".to_owned();
        return Err(typed.usage("--server", String::new(), accepted));
    }
    let fields = plan_options();
    let refused = fields.get_arguments().find(|option| is_refused(option.get_id().as_str()));
    match refused.and_then(clap::Arg::get_long) {
        Some(long) => Err(UsageError::Missing(format!(
            "'--{long}' is not accepted with '--plan', which says everything"
        ))),
        None => Ok(()),
    }
}

/// The options of `run` that decide fields of a plan.
fn plan_options() -> clap::Command {
    let options = TargetArgs::augment_args(clap::Command::new("plan"));
    let options = TraceArgs::augment_args(MixArgs::augment_args(PaceArgs::augment_args(options)));
    let options = SocketArgs::augment_args(EngineArgs::augment_args(DataArgs::augment_args(options)));
    #[cfg(feature = "agents")]
    let options = MeasuringArgs::augment_args(options);
    options
}

/// A saved plan, with the servers of the command line if it names any.
fn saved_plan(typed: &Typed<RunArgs>, path: &str, inputs: &FrontInputs) -> Result<ValidPlan, UsageError> {
    let plan = saved::read(path, inputs.read_text);
    let mut plan = plan.map_err(|error| typed.unread("--plan <FILE>", &error))?;
    if !typed.args.target.server.is_empty() {
        plan.servers = typed_servers(&typed.args.target, plan.protocol)?;
    }
    if !typed.args.output.result.labels.is_empty() {
        plan.labels = typed.args.output.result.labels()?;
    }
    if !typed.args.output.result.fail_on.is_empty() {
        plan.fail_on = typed.args.output.result.fail_on();
    }
    plan.failed_keys |= typed.args.output.files.0.get("failed-keys").is_some();
    let refused = |accepted: String| UsageError::Value {
        flag: "--plan".to_string(),
        value: typed.word("--plan").unwrap_or_default().to_string(),
        accepted,
    };
    let plan = plan.validate().map_err(|invalid| refused(invalid.to_string()))?;
    let asks = plan.phases.iter().any(|phase| matches!(phase.work, Work::Mix(_)));
    if asks && !plan.phases.iter().any(|phase| phase.recorded) {
        let accepted =
            "expected a measured phase (recorded = true): this plan makes requests and measures none";
        return Err(refused(accepted.to_string()));
    }
    Ok(plan)
}

/// The parts of a plan that `run` and `load` share; records, groups and phases are still to come.
fn base(
    target: &TargetArgs,
    engine: &EngineArgs,
    socket: &SocketArgs,
    inputs: &FrontInputs,
    threads: u32,
) -> Result<Plan, UsageError> {
    let protocol = target.assumed_protocol();
    Ok(Plan {
        schema: SCHEMA,
        servers: servers(target, inputs)?,
        route: target.cluster.route(target.route.route()),
        cluster: target.cluster.options(),
        protocol,
        transport: if target.udp { Transport::Udp } else { Transport::Stream },
        seed: inputs.seed,
        interval_ns: SECOND,
        timeout_ns: target.timeout,
        reconnect: target.reconnects(),
        retry: target.retry(),
        failed_keys: false,
        verify: 0.0,
        goals: Vec::new(),
        engine: self::engine(engine, threads),
        socket: self::socket(socket),
        login: login(target)?,
        tls: tls(target),
        database: target.database,
        tracking: target.tracking,
        commands: Vec::new(),
        load_command: None,
        dataset: None,
        script: None,
        data: Data::default(),
        allow_partial_load: false,
        evidence: !engine.no_evidence,
        baseline: !engine.no_baseline,
        probe: engine.probe,
        anonymous: engine.anonymous,
        fail_on: Vec::new(),
        labels: Labels::new(),
        server_stats_ns: engine.server_stats,
        server_stats_at: listed_servers(&engine.server_stats_at, "--server-stats-at", protocol)?,
        adaptive: Adaptive::default(),
        changes: Changes::default(),
        groups: Vec::new(),
        phases: Vec::new(),
    })
}

/// Who logs in. The password is read where the run takes place, so that it is in no Plan and no result.
fn login(target: &TargetArgs) -> Result<Option<Login>, UsageError> {
    match (&target.user, &target.password_file) {
        (None, None) => Ok(None),
        (None, Some(file)) => Err(UsageError::Value {
            flag: "--password-file".to_string(),
            value: file.display().to_string(),
            accepted: "it is accepted only with --user".to_string(),
        }),
        (Some(user), file) => Ok(Some(Login {
            user: user.clone(),
            password_file: file.as_ref().map(|file| file.display().to_string()),
        })),
    }
}

fn typed_servers(target: &TargetArgs, protocol: Protocol) -> Result<Vec<String>, UsageError> {
    listed_servers(&target.server, "--server", protocol)
}

/// The servers of all lists that were given for an option.
fn listed_servers(lists: &[List<String>], flag: &str, protocol: Protocol) -> Result<Vec<String>, UsageError> {
    let lists = lists.iter().flat_map(|list| &list.0);
    let parsed: Result<Vec<_>, _> = lists.map(|list| servers_in(list, flag, protocol)).collect();
    parsed.map(|lists| lists.concat())
}

/// A list of servers, with the protocol's port where one lacks it.
fn servers_in(text: &str, from: &str, protocol: Protocol) -> Result<Vec<String>, UsageError> {
    let port = protocol.row().default_port;
    values::servers_at(text, port).map_err(|error| UsageError::Value {
        flag: from.to_string(),
        value: text.to_string(),
        accepted: error.to_string(),
    })
}

/// The servers of a command line, or of the environment where it names none.
///
/// # Errors
/// Returns [`UsageError`] for text that is no list of servers, and where no server is named.
pub fn servers(target: &TargetArgs, inputs: &FrontInputs) -> Result<Vec<String>, UsageError> {
    let protocol = target.assumed_protocol();
    match &inputs.servers {
        _ if !target.server.is_empty() => typed_servers(target, protocol),
        Some(text) => servers_in(text, "MEMCACHED_SERVERS", protocol),
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
            BackendName::Auto => Backend::Auto,
            BackendName::Epoll => Backend::Epoll,
            BackendName::Uring => Backend::Uring,
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
        stamps: args.stamps,
    }
}

/// How sockets are opened.
pub fn socket(args: &SocketArgs) -> Socket {
    Socket {
        nodelay: !args.no_nodelay,
        linger_s: args.linger,
        send_buffer: args.send_buffer,
        recv_buffer: args.recv_buffer,
        source: args.source.as_ref().map_or_else(Vec::new, |source| source.0.clone()),
    }
}

/// Encryption, where `--tls` asks for it.
pub fn tls(target: &TargetArgs) -> Option<TlsOptions> {
    target.tls.then(|| TlsOptions {
        ca: target.tls_ca.clone(),
        cert: target.tls_cert.clone(),
        key: target.tls_key.clone(),
        server_name: target.tls_server_name.clone(),
        insecure: target.tls_insecure,
    })
}

fn group(pace: &PaceArgs, arrivals: Option<Arrivals>, rate: Option<f64>) -> Group {
    let churn = churn(pace, arrivals.as_ref());
    Group {
        name: "clients".to_string(),
        clients: pace.connections_max(),
        depth: pace.depth(),
        arrivals: match (arrivals, rate) {
            // They say when clients come.
            (_, None) if pace.conn_rate.is_some() => Arrivals::Closed,
            (None, None) => Arrivals::Closed,
            (arrivals, _) => arrivals.unwrap_or(Arrivals::Poisson),
        },
        rate,
        churn,
        policy: ClientPolicy::default(),
    }
}

/// Clients that come and go, where they are asked for.
fn churn(pace: &PaceArgs, arrivals: Option<&Arrivals>) -> Option<ChurningClients> {
    let spawns = match (pace.conn_rate, arrivals) {
        (None, _) if pace.calls_per_connection.is_none() => return None,
        (None, _) => Spawns::Closed,
        (Some(rate), arrivals) => {
            Spawns::Open { arrivals: arrivals.cloned().unwrap_or(Arrivals::Poisson), rate }
        }
    };
    Some(ChurningClients { spawns, calls: pace.calls_per_connection.unwrap_or(1), sequence: None })
}

/// The mean of a distribution of seconds; what no time can be is left for the check of the plan.
fn mean_ns(dist: &Dist) -> Nanos {
    from_seconds(dist.mean().clamp(0.0, MEAN_MAX_S))
}

/// More seconds than a plan accepts anywhere.
const MEAN_MAX_S: f64 = 1e9;

/// Loading, warm-up, measuring: the first two where they are wanted.
fn phases(
    args: &RunArgs,
    ops: Vec<(Verb, f64)>,
    popularity: Popularity,
    fill_delay: Option<Dist>,
) -> Vec<Phase> {
    let pace = &args.pace;
    let adds = ops.iter().any(|(verb, _)| *verb == Verb::Add);
    let mix = Work::Mix(Mix {
        ops: ops.clone(),
        churn: args.mix.churn.as_ref().and_then(|typed| typed.0.clone()),
        read_modify_write: args.mix.read_modify_write,
        inserts: args.mix.insert || adds && matches!(popularity, Popularity::Latest { .. }),
        scans: args.mix.scan.is_some(),
        in_turns: args.mix.mix_order == Some(MixOrder::Turns),
        popularity,
        popularity_of: Vec::new(),
        multiget: args.mix.scan.unwrap_or(args.mix.multiget),
        fresh: args.mix.fresh,
        absent: args.mix.absent,
        read_through_ns: fill_delay.as_ref().map(mean_ns),
        fill: args.mix.fill,
        fill_delay_s: fill_delay.filter(|delay| !matches!(delay, Dist::Fixed(_))),
        noreply: args.mix.noreply,
        multiset: args.mix.multiset,
        meta: MetaAsk {
            vivify_s: args.mix.vivify,
            recache_s: args.mix.recache,
            details: args.mix.meta_details,
            stale_s: args.mix.stale,
        },
    });
    let mut phases = Vec::new();
    // The keys of a command are whatever it makes of them, unless they are to be stored.
    let stores_for_commands = args.mix.load || args.data.load_command.is_some();
    let loaded = |(verb, _): &&(Verb, f64)| !verb.is_command() || stores_for_commands;
    let loaded: Vec<(Verb, f64)> = ops.iter().filter(loaded).copied().collect();
    if !args.mix.no_load && !loaded.is_empty() {
        phases.push(load_phase(&loaded, LOAD_DEPTH, false));
    }
    if let Some(longest_ns) = adaptive::warm_up_ns(pace) {
        let stop = Stop { time_ns: Some(longest_ns), requests: None };
        phases.push(Phase { name: "warmup".to_string(), work: mix.clone(), stop, recorded: false });
    }
    let time_ns = adaptive::measured_ns(pace);
    let stop = Stop { time_ns, requests: pace.requests };
    phases.push(Phase { name: "measure".to_string(), work: mix, stop, recorded: true });
    phases
}

/// The labels that were typed, and a label for a workload whose scans became reads of several keys.
fn labels(args: &RunArgs) -> Result<Labels, UsageError> {
    let mut labels = args.output.result.labels()?;
    if let (Some(name), Some(_)) = (&args.data.workload, args.mix.scan) {
        labels.entry("workload".to_owned()).or_insert_with(|| format!("{name}-multiget"));
    }
    Ok(labels)
}

/// The faults that make the run count as failed. A strict audit adds lost writes.
fn fail_on(args: &RunArgs) -> Vec<FailOn> {
    let mut fail_on = args.output.result.fail_on();
    if args.mix.audit.as_deref() == Some(AUDIT_STRICT) && !fail_on.contains(&FailOn::Lost) {
        fail_on.push(FailOn::Lost);
        fail_on.sort();
    }
    fail_on
}

/// The phases behind the measured one, in which what was stored is read back.
fn audit_phases(args: &RunArgs) -> Vec<Phase> {
    let settle_ns = args.mix.settle;
    let settle = || Phase {
        name: "settle".to_string(),
        work: Work::Pause(Pause { until_ns: 0, for_ns: settle_ns }),
        stop: Stop::default(),
        recorded: false,
    };
    let time_ns = AUDIT_LEAST_NS.saturating_add(args.data.records.saturating_mul(AUDIT_RECORD_NS));
    let audit = || Phase {
        name: "audit".to_string(),
        work: Work::Audit(Audit { depth: AUDIT_DEPTH }),
        stop: Stop { time_ns: Some(time_ns), requests: None },
        recorded: false,
    };
    match &args.mix.audit {
        None => Vec::new(),
        Some(_) if settle_ns == 0 => vec![audit()],
        Some(_) => vec![settle(), audit()],
    }
}

/// The commands of the user with their names. Of those without a name that begin with the same word, the second is called `word-2`.
pub(crate) fn commands(args: &MixArgs) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    for text in &args.command {
        let text = &values::with_plain_sizes(text);
        let named = text.split_once('=').filter(|(name, _)| Command::is_name(name));
        let mut command = match named {
            Some((name, template)) => Command { name: name.to_owned(), ..Command::unnamed(template) },
            None => Command::unnamed(text),
        };
        let name = command.name.clone();
        let mut number = 1;
        while named.is_none() && commands.iter().any(|other| other.name == command.name) {
            number += 1;
            command.name = format!("{name}-{number}");
        }
        commands.push(command);
    }
    commands
}

/// The commands with the shapes that their replies are to have.
fn expecting(args: &MixArgs, mut commands: Vec<Command>) -> Result<Vec<Command>, UsageError> {
    for (operation, shape) in &args.command_expect {
        let verb = values::verb_of(operation, &commands).ok();
        let Some(command) = verb.and_then(Verb::command).and_then(|place| commands.get_mut(place)) else {
            let names: Vec<&str> = commands.iter().map(|command| command.name.as_str()).collect();
            return Err(UsageError::Value {
                flag: "--command-expect".to_owned(),
                value: format!("{}={}", operation.name(), shape.name()),
                accepted: match names.is_empty() {
                    true => "it is accepted only with --command, which says what is asked".to_owned(),
                    false => format!("expected the name of a command: {}", names.join(", ")),
                },
            });
        };
        command.expect = Some(*shape);
    }
    Ok(commands)
}

/// The operations and their weights, or what stands for them where none are named. Commands that a mix of other operations does not
/// name have weight 1.
fn ops(args: &MixArgs, commands: &[Command]) -> Result<Vec<(Verb, f64)>, UsageError> {
    let all_commands = || (0..commands.len()).filter_map(Verb::of_command).map(|verb| (verb, 1.0));
    let mut ops = match &args.mix {
        Some(ops) => {
            let verb =
                |(operation, weight): &(Operation, f64)| Ok((values::verb_of(operation, commands)?, *weight));
            let wrong = |error: ValueError| UsageError::Value {
                flag: "--mix".to_owned(),
                value: ops
                    .0
                    .iter()
                    .map(|(operation, weight)| format!("{}:{weight}", operation.name()))
                    .collect::<Vec<_>>()
                    .join(","),
                accepted: error.0,
            };
            ops.0.iter().map(verb).collect::<Result<Vec<_>, _>>().map_err(wrong)?
        }
        None if commands.is_empty() => vec![(Verb::Get, 9.0), (Verb::Set, 1.0)],
        None => Vec::new(),
    };
    if !ops.iter().any(|(verb, _)| verb.is_command()) {
        ops.extend(all_commands());
    }
    Ok(ops)
}

/// The command that loads store with.
fn load_command(args: &DataArgs) -> Option<LoadCommand> {
    let template = values::with_plain_sizes(args.load_command.as_ref()?);
    Some(LoadCommand { template, per_record: args.load_per_record.unwrap_or(1) })
}

/// The file whose rows fill places of commands.
fn dataset(args: &DataArgs) -> Option<Dataset> {
    let path = args.dataset.clone()?;
    let order = args.dataset_order.map_or(DatasetOrder::File, DatasetOrderName::order);
    Some(Dataset { path, order })
}

/// Loading for these operations: the plain records, unless all of them have records of another kind that only they use.
fn load_phase(ops: &[(Verb, f64)], depth: u32, recorded: bool) -> Phase {
    let asks = |space: Space| ops.iter().any(|&(verb, _)| space_of(verb) == space);
    let load = Load {
        depth,
        pieces: asks(Space::Pieces),
        counters: asks(Space::Counters),
        hashes: asks(Space::Hashes),
        commands: asks(Space::Commands),
        no_plain: !asks(Space::Plain) && !asks(Space::Pieces) && !asks(Space::Counters),
    };
    Phase { name: "load".to_string(), work: Work::Load(load), stop: Stop::default(), recorded }
}

/// Where everything is written; refuses two reports for standard output.
fn outputs(args: &OutputArgs, inputs: &FrontInputs) -> Result<Outputs, UsageError> {
    let wrong = |flag: &str, value: &Path, accepted: &str| {
        let value = value.display().to_string();
        Err(UsageError::Value { flag: flag.to_string(), value, accepted: accepted.to_string() })
    };
    if let Some(folder) = args.files.0.parquet().filter(|_| !cfg!(feature = "parquet")) {
        return wrong(
            "--parquet",
            folder,
            "this build has no Parquet; `cargo build --release --features parquet` makes one that has",
        );
    }
    let mut files = args.files.0.clone();
    // JSON on standard output is a format of the report.
    let to_stdout = args.files.0.get("json").filter(|path| (inputs.paths.is_standard_output)(path));
    if let Some(path) = to_stdout {
        if matches!(args.format, Some(ReportFormat::Text | ReportFormat::Markdown)) {
            return wrong(
                "--json",
                path,
                "expected a file with --format text and markdown: only one of them can have standard output",
            );
        }
        files.remove("json");
    }
    let format = if to_stdout.is_some() { ReportFormat::Json } else { args.format.unwrap_or_default() };
    Ok(Outputs {
        format,
        quiet: args.quiet,
        screen: args.screen,
        files,
        metrics: args.metrics.clone(),
        block: !args.quiet,
        #[cfg(feature = "live")]
        live: args.live,
        #[cfg(not(feature = "live"))]
        live: false,
        steer: false,
    })
}

#[cfg(test)]
mod tests;
