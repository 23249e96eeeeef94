//! The command line of redis-benchmark and valkey-benchmark: its options, its words for what is wrong, and the Plans of its tests.

pub mod front;
pub mod help;
mod options;
pub mod report;
pub mod style;
pub mod suite;

#[cfg(test)]
mod tests;

use std::cell::Cell;

use pummel_logic::dist::Dist;
use pummel_logic::plan::validate::{Field, Invalid, ValidPlan};
use pummel_logic::plan::{
    Arrivals, ChurningClients, ClientPolicy, ClusterOptions, Command, Data, Dataset, DatasetOrder, Depth,
    Engine, Group, Login, Mix, Pause, Phase, Plan, Protocol, ReadFrom, Route, Spawns, Stop, TlsOptions,
    Tracking, Work,
};
use pummel_logic::protocol::Verb;
use pummel_logic::secrets::Secret;
use pummel_logic::time::{MILLISECOND, SECOND, from_seconds};

pub use self::options::Refusal;
use self::options::{Given, Options, parse};
use self::suite::{Fillings, Program, Test, chosen};
pub use self::suite::{NAME, VALKEY_NAME};
use crate::job::{FrontInputs, Job};
use crate::outputs::{Outputs, ReportFormat};
use crate::user_commands::named;
use crate::values::{named_backend, named_clock};

/// Requests of a test where neither `-n` nor `--duration` stands.
const REQUESTS: i64 = 100_000;

/// Time between two lines of progress.
const PROGRESS_NS: u64 = 250 * MILLISECOND;

/// Number of tags of keys in a cluster, as many as there are slots.
const TAGS: u64 = 16_384;

/// Length of a tag in bytes: the digits of its number.
const TAG_BYTES: f64 = 5.0;

/// Time for which `-I` waits: the longest that a pause may have, a year.
const IDLE_NS: u64 = 8_760 * 3_600 * SECOND;

/// What a command line asks for.
#[derive(Debug)]
pub enum BenchmarkCommand {
    /// The help.
    Help,
    /// The version.
    Version,
    /// Tests, one after the other.
    Tests {
        /// The tests; none where `-t` names none that there is.
        runs: Vec<BenchmarkRun>,
        /// Whether the tests are repeated until they are interrupted.
        repeats: bool,
        /// Warnings before the tests, in sentences without their full stop.
        remarks: Vec<String>,
        /// What stands behind all tests.
        epilogue: Option<&'static str>,
    },
}

/// A test, and what is said about it.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchmarkRun {
    /// The plan, and places for results.
    pub job: Job,
    /// The words about it.
    pub display: Display,
    /// The password, which is in no plan.
    pub password: Option<Secret>,
    /// Whether no test has been begun of which this is the first one.
    is_first: Cell<bool>,
}

impl BenchmarkRun {
    /// Whether the test is the first one of all that are run; asked when it begins, and false from then on.
    fn is_first(&self) -> bool {
        self.is_first.take()
    }
}

/// What is said about a test beside its figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Display {
    /// The program whose words these are.
    pub program: Program,
    /// The server as the words name it.
    pub server: String,
    /// The title of the test.
    pub title: String,
    /// Length of the value or of the command, in bytes.
    pub payload_bytes: u64,
    /// `--threads`.
    pub threads: u32,
    /// `--rps`.
    pub target_rate: u64,
    /// The form of the report.
    pub form: Form,
    /// Whether nothing is sent.
    pub is_idle: bool,
}

/// The form of the report of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// All lines.
    Full,
    /// One line.
    Quiet,
    /// One line of comma-separated values.
    Csv,
}

/// What the words behind the program's name mean.
///
/// # Errors
/// Returns the [`Refusal`] of the first thing that is wrong.
pub fn read(program: Program, words: Vec<String>, inputs: &FrontInputs) -> Result<BenchmarkCommand, Refusal> {
    match parse(words.into_iter())? {
        Given::Help => Ok(BenchmarkCommand::Help),
        Given::Version => Ok(BenchmarkCommand::Version),
        Given::Options(options) => options.tests(program, inputs),
    }
}

impl Options {
    fn tests(mut self, program: Program, inputs: &FrontInputs) -> Result<BenchmarkCommand, Refusal> {
        if self.requests.is_some() && self.duration.is_some() {
            return Err(Refusal::Words("Options -n and --duration are mutually exclusive.".to_owned()));
        }
        if self.keyspace.is_none()
            && program == Program::Redis
            && self.command.iter().any(|word| word.contains("__rand_int__"))
        {
            self.remarks.push("without -r, __rand_int__ stands for itself".to_owned());
        }
        if self.tracking && !self.resp3 {
            self.resp3 = true;
            self.remarks.push(
                "--enable-tracking: RESP3 is spoken, in which the server can tell what it tracks".to_owned(),
            );
        }
        let fillings = Fillings::new(self.keyspace, self.size as usize, program, self.cluster);
        if self.read_from != ReadFrom::Primary && !self.cluster {
            return Err(Refusal::Words("--rfr: expected --cluster with it".to_owned()));
        }
        if self.cluster && self.database != 0 {
            self.database = 0;
            self.remarks
                .push("--dbnum changes nothing with --cluster, whose nodes have one database".to_owned());
        }
        let is_command = !self.command.is_empty();
        if is_command && self.tests.is_some() {
            self.remarks.push("Option -t is ignored.".to_owned());
        }
        let tests = match (self.idle, is_command) {
            (true, _) => vec![Test {
                name: "ping".to_owned(),
                title: "PING".to_owned(),
                commands: ping(),
                payload_bytes: 0,
            }],
            (false, true) => vec![self.command_test(&fillings, inputs)?],
            (false, false) => {
                let (tests, unknown) = chosen(self.tests.as_deref(), self.size as u64, &fillings, program);
                let unknown = unknown.iter().map(|name| format!("-t {name}: there is no such test"));
                self.remarks.extend(unknown);
                tests
            }
        };
        let count = tests.len();
        let to_output = self.files.iter().any(|(_, path)| path.as_os_str() == "-");
        if count > 1 && to_output {
            let why = "standard output takes the result of one test: choose it with -t, or name a file";
            return Err(Refusal::Words(why.to_owned()));
        }
        let runs = tests.into_iter().enumerate();
        let runs = runs.map(|(at, test)| self.run(program, test, at == 0, count > 1, inputs));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        let is_suite = !is_command && !self.idle && !self.csv;
        Ok(BenchmarkCommand::Tests {
            runs,
            repeats: self.repeats,
            remarks: self.remarks,
            epilogue: is_suite.then_some("\n"),
        })
    }

    /// The test of the user's command.
    fn command_test(&self, fillings: &Fillings, inputs: &FrontInputs) -> Result<Test, Refusal> {
        let mut words = self.command.clone();
        if self.last_from_input {
            let read = (inputs.read_text)("/dev/stdin");
            words.push(
                read.map_err(|error| Refusal::Words(format!("-x: standard input cannot be read: {error}")))?,
            );
        }
        let title = words.join(" ");
        let read = fillings.of_user(&words).map_err(Refusal::Words)?;
        let mut commands = Vec::with_capacity(read.len());
        for (count, command) in read {
            let named = named(command, commands.iter().map(|(_, other)| other));
            commands.push((count, named));
        }
        Ok(Test { name: "command".to_owned(), title, payload_bytes: encoded_bytes(&words), commands })
    }

    fn run(
        &self,
        program: Program,
        test: Test,
        is_first: bool,
        is_one_of_several: bool,
        inputs: &FrontInputs,
    ) -> Result<BenchmarkRun, Refusal> {
        let files = if is_one_of_several { self.files.of_part(&test.name) } else { self.files.clone() };
        let display = Display {
            program,
            server: self.socket.clone().unwrap_or_else(|| format!("{}:{}", self.host, self.port)),
            title: test.title.clone(),
            payload_bytes: test.payload_bytes,
            threads: self.threads as u32,
            target_rate: self.rate as u64,
            form: match (self.csv, self.quiet) {
                (true, _) => Form::Csv,
                (false, true) => Form::Quiet,
                (false, false) => Form::Full,
            },
            is_idle: self.idle,
        };
        let outputs = Outputs { quiet: true, format: ReportFormat::Text, files, ..Outputs::default() };
        let plan = self.plan(test, inputs)?;
        let job = Job { front: NAME, plan, outputs, fleet: None };
        Ok(BenchmarkRun { job, display, password: self.password.clone(), is_first: Cell::new(is_first) })
    }

    fn plan(&self, test: Test, inputs: &FrontInputs) -> Result<ValidPlan, Refusal> {
        let requests = match (self.duration, self.requests.unwrap_or(REQUESTS)) {
            (Some(_), _) => None,
            (None, requests @ 1..) => Some(requests as u64),
            (None, requests) => {
                return Err(Refusal::Words(format!("-n {requests}: expected a number of requests above 0")));
            }
        };
        let seconds_above_0 = |name: &str, seconds: f64| match seconds > 0.0 {
            true => Ok(from_seconds(seconds)),
            false => Err(Refusal::Words(format!("{name} {seconds}: expected a number of seconds above 0"))),
        };
        let time_ns = self.duration.map(|duration| seconds_above_0("--duration", duration)).transpose()?;
        // Commands of a sequence are a part of the batch each.
        let turn: u64 = test.commands.iter().map(|(count, _)| u64::from(*count)).sum();
        let batch = (self.pipeline as u64).saturating_mul(turn).min(u32::MAX.into()) as u32;
        let phases = self.phases(&test.commands, Stop { time_ns, requests })?;
        let commands: Vec<Command> = test.commands.into_iter().map(|(_, command)| command).collect();
        let plan = Plan {
            servers: vec![self.server()],
            protocol: if self.resp3 { Protocol::Resp3 } else { Protocol::Resp2 },
            seed: self.seed.unwrap_or(inputs.seed),
            interval_ns: PROGRESS_NS,
            timeout_ns: from_seconds(self.timeout),
            evidence: self.evidence && !self.idle,
            anonymous: self.anonymous,
            engine: self.engine()?,
            login: self
                .password
                .as_ref()
                .map(|_| Login { user: self.user.clone().unwrap_or_default(), password_file: None }),
            tls: self.tls.then(|| TlsOptions {
                ca: self.authorities.clone(),
                cert: self.certificate.clone(),
                key: self.key.clone(),
                server_name: self.server_name.clone(),
                insecure: self.insecure,
            }),
            database: u32::try_from(self.database).map_err(|_| {
                Refusal::Words(format!("--dbnum {}: expected a database from 0 on", self.database))
            })?,
            tracking: self.tracking.then_some(Tracking::Keys),
            commands,
            dataset: self.dataset.clone().map(|path| Dataset { path, order: DatasetOrder::default() }),
            reconnect: self.cluster,
            route: if self.cluster { Route::Cluster } else { Route::All },
            cluster: ClusterOptions { read_from: self.read_from, ..ClusterOptions::default() },
            data: Data {
                records: if self.cluster { TAGS } else { 1 },
                key_size: Dist::Fixed(TAG_BYTES),
                value_size: Dist::Fixed(f64::from(self.size)),
                ..Data::default()
            },
            groups: vec![self.group(batch)],
            phases,
            ..Plan::default()
        };
        plan.validate().map_err(|invalid| self.unfit(&invalid))
    }

    /// The phases of a test whose clients ask these commands in turns, the measured one up to `stop`.
    fn phases(&self, commands: &[(u32, Command)], stop: Stop) -> Result<Vec<Phase>, Refusal> {
        let weights = commands.iter().enumerate();
        let ops = weights.map(|(at, (count, _))| Verb::of_command(at).map(|verb| (verb, f64::from(*count))));
        let ops = ops
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Refusal::Words("the command has more parts than can be told apart".to_owned()))?;
        let mix = Mix { in_turns: ops.len() > 1, ..Mix::of(&ops) };
        let phase = |name: &str, work, stop, recorded| Phase { name: name.to_owned(), work, stop, recorded };
        let mut phases = Vec::new();
        if self.idle {
            let work = Work::Pause(Pause { until_ns: 0, for_ns: IDLE_NS });
            phases.push(phase("idle", work, Stop::default(), false));
        }
        if self.warm_up > 0.0 {
            let stop = Stop { time_ns: Some(from_seconds(self.warm_up)), requests: None };
            phases.push(phase("warm-up", Work::Mix(mix.clone()), stop, false));
        }
        phases.push(phase("measure", Work::Mix(mix), stop, true));
        Ok(phases)
    }

    /// The clients, which send so many requests together.
    fn group(&self, batch: u32) -> Group {
        Group {
            name: "clients".to_owned(),
            clients: self.clients as u32,
            depth: if batch > 1 { Depth::Batch(batch) } else { Depth::Limit(1) },
            arrivals: if self.rate > 0 { Arrivals::Constant } else { Arrivals::Closed },
            rate: (self.rate > 0).then_some(self.rate as f64),
            churn: (!self.keep_alive).then(|| ChurningClients {
                spawns: Spawns::Closed,
                calls: batch.into(),
                sequence: None,
            }),
            // A connection that is lost ends the tests.
            policy: ClientPolicy { whole: !self.cluster && self.keep_alive, ..ClientPolicy::default() },
        }
    }

    fn server(&self) -> String {
        match &self.socket {
            Some(path) => path.clone(),
            None if self.host.contains(':') => format!("[{}]:{}", self.host, self.port),
            None => format!("{}:{}", self.host, self.port),
        }
    }

    fn engine(&self) -> Result<Engine, Refusal> {
        let clock = named_clock(self.clock.as_deref()).map_err(Refusal::Words)?;
        let backend = named_backend(self.backend.as_deref()).map_err(Refusal::Words)?;
        Ok(Engine {
            // A thread without a client would do nothing.
            threads: (self.threads.max(1) as u32).min(self.clients as u32),
            clock,
            backend,
            ..Engine::default()
        })
    }

    /// The words about a plan that cannot be run: those of the option that decides the field.
    fn unfit(&self, invalid: &Invalid) -> Refusal {
        let name = match invalid.path.field() {
            Field::Servers | Field::Server if self.socket.is_some() => "-s",
            Field::Servers | Field::Server => "-h",
            Field::Timeout => "--timeout",
            Field::Threads => "--threads",
            Field::User => "--user",
            Field::Database => "--dbnum",
            Field::Tracking => "--enable-tracking",
            Field::Dataset => "--dataset",
            Field::ValueSize => "-d",
            Field::TotalClients | Field::Clients => "-c",
            Field::Depth | Field::Calls => "-P",
            Field::Rate => "--rps",
            Field::Stop | Field::StopRequests => "-n",
            Field::StopTime => "--duration",
            Field::TlsCert | Field::TlsKey => "--cert",
            Field::CommandTemplate if self.cluster && !invalid.value.contains("{__key__}") => {
                let why = "its keys need {tag} in them, which with --cluster decides on the node";
                return Refusal::Words(format!("the command: {why}"));
            }
            Field::CommandTemplate => "the command",
            _ => return Refusal::Words(invalid.to_string()),
        };
        let value: String = invalid.value.chars().take(VALUE_SHOWN_MAX).collect();
        Refusal::Words(format!("{name} '{}': {}", value.escape_debug(), invalid.expected))
    }
}

/// Most letters of a refused value that are shown.
const VALUE_SHOWN_MAX: usize = 200;

fn ping() -> Vec<(u32, Command)> {
    vec![(1, Command::unnamed("PING"))]
}

/// Length of a command of these words on the wire, as the original counts it before anything is replaced.
fn encoded_bytes(words: &[String]) -> u64 {
    let digits = |number: usize| number.checked_ilog10().unwrap_or(0) as usize + 1;
    let head = 1 + digits(words.len()) + 2;
    let of_word = |word: &String| 1 + digits(word.len()) + 2 + word.len() + 2;
    (head + words.iter().map(of_word).sum::<usize>()) as u64
}
