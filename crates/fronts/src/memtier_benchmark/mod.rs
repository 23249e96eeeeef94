//! The command line of memtier_benchmark: its options, its words for what is wrong, and the Plan that it means.

pub mod client_stats;
mod commands;
pub mod display;
pub mod figures;
pub mod front;
pub mod help;
mod json;
mod keys;
mod options;
pub mod report;
pub mod style;
mod turns;

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use pummel_logic::plan::validate::{Field, Invalid, ValidPlan};
use pummel_logic::plan::{
    Arrivals, Changes, ChurningClients, ClientPolicy, Command, Depth, Engine, Group, Login, Mix, PARTS_MAX,
    Part, Phase, Plan, Protocol, Route, Spawns, Stop, TlsOptions, Work,
};
use pummel_logic::protocol::{COMMANDS_MAX, Verb};
use pummel_logic::secrets::Secret;
use pummel_logic::time::{SECOND, from_seconds};

use self::commands::{AskedCommand, AskedCommands, asked, monitor_lines, row_name};
use self::display::{Display, Row, RowKind};
use self::figures::RunFigures;
use self::options::{Given, Options, Requests, parse};
pub use self::options::{NAME, Refusal};
use crate::job::{FrontInputs, Job};
use crate::outputs::{Outputs, ReportFormat};
use crate::values::server_uri::address_and_facts;
use crate::values::{named_backend, named_clock};

/// Requests of each client where neither `-n` nor `--test-time` stands.
const REQUESTS: u64 = 10_000;

/// Greatest offset of `--data-offset`, and of what the two options say together, in bytes.
const OFFSET_END: u64 = 1 << 29;

/// Most intervals of the rate limit in a second: a connection gets its requests in as many portions.
const PORTIONS: u32 = 50;

/// Most runs of a command line, whose figures are kept until the last one.
const RUNS_MAX: u32 = 1_000;

/// What a command line asks for.
#[derive(Debug)]
pub enum MemtierCommand {
    /// The version.
    Version,
    /// Runs, one after the other, and what is printed before them.
    Runs {
        /// The runs.
        runs: Vec<MemtierRun>,
        /// Text of standard output in front of all runs.
        head: String,
        /// Text of standard error in front of all runs.
        warnings: String,
    },
}

/// A run, and what is said about it.
#[derive(Clone, Debug)]
pub struct MemtierRun {
    /// The plan, and places for results that pummel adds.
    pub job: Job,
    /// The words about all runs of the command line.
    pub display: Rc<Display>,
    /// Number of the run, from 1.
    pub number: u32,
    /// The password, which is in no plan.
    pub password: Option<Secret>,
    /// The figures of the runs so far.
    pub figures: Rc<RefCell<Vec<RunFigures>>>,
}

/// The operations of a command line: the commands of their plan, the order in which clients ask, and the rows of the report.
#[derive(Clone, Debug)]
struct Operations {
    commands: Vec<Command>,
    mix: Mix,
    rows: Vec<Row>,
    request_bytes: Vec<f64>,
}

/// What the words behind the program's name mean. `open` reads a file.
///
/// # Errors
/// Returns the [`Refusal`] of the first thing that is wrong.
pub fn read(
    words: impl Iterator<Item = String>,
    inputs: &FrontInputs,
    open: &dyn Fn(&Path) -> std::io::Result<Vec<u8>>,
) -> Result<MemtierCommand, Refusal> {
    match parse(words)? {
        Given::Version => Ok(MemtierCommand::Version),
        Given::Options(options) => options.runs(inputs, open),
    }
}

fn configuration<T>(words: &str) -> Result<T, Refusal> {
    Err(Refusal::Configuration(format!("error: {words}")))
}

fn usage<T>(words: &str) -> Result<T, Refusal> {
    Err(Refusal::Usage(format!("error: {words}")))
}

impl Options {
    fn runs(
        mut self,
        inputs: &FrontInputs,
        open: &dyn Fn(&Path) -> std::io::Result<Vec<u8>>,
    ) -> Result<MemtierCommand, Refusal> {
        let mut head = String::new();
        if self.requests == Some(Requests::AllKeys) {
            head = format!("setting requests to {}\n", self.all_keys());
        }
        let mut warnings = self.adopt_uri()?;
        self.check_values()?;
        let monitored = self.monitored(open, &mut warnings)?;
        let lines = monitored.as_deref().map(monitor_lines).unwrap_or_default();
        let asked = asked(&self.commands, &lines, self.monitor_is_random)?;
        let operations = self.operations(asked)?;
        let Operations { commands, mix, rows, request_bytes } = operations;
        self.remark();
        if self.show_config {
            warnings.push_str("============== Configuration values: ==============\n");
            head.push_str(&json::configuration_lines(&self));
            warnings.push_str("===================================================\n");
        }
        for remark in &self.remarks {
            warnings.push_str(&format!("warning: {remark}\n"));
        }
        let plan = self.plan(commands, mix, inputs)?;
        let outputs = |number: u32| Outputs {
            quiet: true,
            format: ReportFormat::Text,
            files: if self.run_count > 1 {
                self.files.of_part(&number.to_string())
            } else {
                self.files.clone()
            },
            ..Outputs::default()
        };
        let password = self.password();
        let display = Rc::new(Display {
            address: self.address(),
            requests: (self.test_time_s == 0).then(|| self.requests_each()),
            rows,
            request_bytes,
            options: self.clone(),
        });
        let figures = Rc::new(RefCell::new(Vec::new()));
        let run = |number: u32| MemtierRun {
            job: Job { front: NAME, plan: plan.clone(), outputs: outputs(number), fleet: None },
            display: Rc::clone(&display),
            number,
            password: password.clone(),
            figures: Rc::clone(&figures),
        };
        Ok(MemtierCommand::Runs { runs: (1..=self.run_count).map(run).collect(), head, warnings })
    }

    /// Refuses values that do not fit each other, in the original's order.
    fn check_values(&self) -> Result<(), Refusal> {
        if self.run_count > RUNS_MAX {
            return configuration(&format!(
                "--run-count {}: expected at most {RUNS_MAX} runs",
                self.run_count
            ));
        }
        if self.cluster && self.database > 0 {
            return configuration(
                "database selection not supported in cluster mode. Redis Cluster only supports database 0.",
            );
        }
        if self.clients_start > 0 {
            if self.clients_start >= self.clients {
                let (start, clients) = (self.clients_start, self.clients);
                return configuration(&format!(
                    "--clients-start ({start}) must be less than --clients ({clients})."
                ));
            }
            if self.test_time_s == 0 {
                return configuration("--test-time is required when using client staircase mode.");
            }
        }
        let (least, most) = self.jitter_us;
        if least > most {
            return configuration(&format!(
                "thread-conn-start-min-jitter-micros ({least}) cannot be greater than thread-conn-start-max-jitter-micros ({most})."
            ));
        }
        if self.socket.is_some() && (self.server.is_some() || self.port.is_some()) {
            return configuration("UNIX domain socket and TCP cannot be used together.");
        }
        if !self.commands.is_empty() && !self.protocol.is_resp() {
            return configuration(
                "arbitrary commands are only supported with Redis protocols (redis, resp2, resp3).",
            );
        }
        if let Some(credentials) = &self.credentials {
            match self.protocol {
                options::GivenProtocol::Text => {
                    return usage("authenticate can only be used with redis or memcache_binary.");
                }
                options::GivenProtocol::Binary if !credentials.reveal().contains(':') => {
                    return usage("binary_memcache credentials must be in the form of USER:PASSWORD.");
                }
                _ => {}
            }
        }
        if self.client_stats.is_some() && (!self.commands.is_empty() || self.multi_key_get > 1) {
            return configuration("--client-stats: expected SETs and GETs of one key each");
        }
        if self.database > 0 && !self.protocol.is_resp() {
            return usage("select-db can only be used with redis protocol.");
        }
        self.check_data()
    }

    fn check_data(&self) -> Result<(), Refusal> {
        if self.data_offset > 0 {
            let longest = self.size_range.map_or(self.data_size, |(_, high)| high);
            if u64::from(self.data_offset) + u64::from(longest) >= OFFSET_END {
                return usage("data-offset too long");
            }
            if self.expiry_range.is_some() || !self.protocol.is_resp() {
                return usage(
                    "data-offset can only be used with redis protocol, and cannot be used with expiry",
                );
            }
        }
        let given = [self.data_size > 0, self.size_range.is_some(), !self.size_list.is_empty()];
        if given[0] && (given[1] || given[2]) {
            return usage("data-size cannot be used with data-size-list or data-size-range.");
        }
        if given[1] && given[2] {
            return usage("data-size-list cannot be used with data-size-range.");
        }
        if self.key_minimum > self.key_maximum {
            return usage("key-minimum must not be greater than key-maximum.");
        }
        let is_normal = self.patterns().contains(&options::Pattern::Normal);
        if (self.key_deviation > 0.0 || self.key_median > 0.0) && !is_normal {
            return usage("key-stddev and key-median are only allowed together with key-pattern set to G.");
        }
        let is_between =
            self.key_median > self.key_minimum as f64 && self.key_median < self.key_maximum as f64;
        if self.key_median > 0.0 && !is_between {
            return usage("key-median must be between key-minimum and key-maximum.");
        }
        Ok(())
    }

    /// The patterns of all operations.
    fn patterns(&self) -> Vec<options::Pattern> {
        if self.commands.is_empty() {
            let (set, get) = self.key_pattern();
            return vec![set, get];
        }
        self.commands.iter().map(|command| command.pattern).collect()
    }

    /// Whether a pattern is Zipf's law.
    fn has_zipf(&self) -> bool {
        self.patterns().contains(&options::Pattern::Zipf)
    }

    fn key_pattern(&self) -> (options::Pattern, options::Pattern) {
        self.key_pattern.unwrap_or((options::Pattern::Random, options::Pattern::Random))
    }

    /// The text of the MONITOR file, where there is one. `warnings` get the line that says how much of it is there.
    fn monitored(
        &self,
        open: &dyn Fn(&Path) -> std::io::Result<Vec<u8>>,
        warnings: &mut String,
    ) -> Result<Option<String>, Refusal> {
        let Some(path) = &self.monitor_input else { return Ok(None) };
        if !self.protocol.is_resp() {
            return configuration(
                "--monitor-input is only supported with Redis protocols (redis, resp2, resp3).",
            );
        }
        if self.cluster {
            return configuration("--monitor-input is not supported in cluster mode.");
        }
        let bytes = open(Path::new(path))
            .or_else(|error| configuration(&format!("failed to open monitor input file: {path}: {error}")))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let count = monitor_lines(&text).len();
        if count == 0 {
            return configuration(&format!("no commands found in monitor input file: {path}"));
        }
        let all = text.lines().count();
        warnings.push_str(&format!("Loaded {count} monitor commands from {all} total lines\n"));
        Ok(Some(text))
    }

    /// Takes over what a URI says, which goes before the options. Returns warnings about options that it replaces.
    fn adopt_uri(&mut self) -> Result<String, Refusal> {
        let mut warnings = String::new();
        let Some(uri) = self.uri.as_ref().map(|uri| uri.reveal().to_owned()) else { return Ok(warnings) };
        let Some((scheme, rest)) = uri.split_once("://") else {
            return configuration("invalid URI format, missing scheme.");
        };
        if scheme != "redis" && scheme != "rediss" {
            return configuration(&format!("unsupported URI scheme '{scheme}'. Use 'redis' or 'rediss'."));
        }
        let (login, place) =
            rest.rsplit_once('@').map_or((None, rest), |(login, place)| (Some(login), place));
        let read = address_and_facts(&format!("{scheme}://{place}"));
        let (address, facts) = read.or_else(|error| configuration(&format!("invalid URI: {error}")))?;
        let replaced = [
            (self.server.is_some(), "--host/--server"),
            (self.port.is_some(), "--port"),
            (self.credentials.is_some() && login.is_some(), "--authenticate"),
            (self.database > 0 && facts.database.is_some(), "--select-db"),
        ];
        for (_, option) in replaced.iter().filter(|(is_given, _)| *is_given) {
            warnings.push_str(&format!("warning: both URI and {option} specified, URI takes precedence.\n"));
        }
        let (host, port) = address.rsplit_once(':').unwrap_or((&address, "6379"));
        self.server = Some(host.trim_matches(['[', ']']).to_owned());
        self.port = port.parse().ok();
        self.tls |= facts.is_encrypted;
        self.database = facts.database.unwrap_or(self.database);
        self.credentials = login.map(Secret::new).or(self.credentials.take());
        Ok(warnings)
    }

    /// Notes what is done otherwise than it was asked for.
    fn remark(&mut self) {
        let mut remark = |words: &str| self.remarks.push(words.to_owned());
        if self.debug > 0 {
            remark("--debug changes nothing: nothing is printed for each event");
        }
        if self.connection_timeout_s > 0 {
            remark("--connection-timeout changes nothing: a connection is given up with --timeout");
        }
        if self.jitter_us != (0, 0) {
            remark(
                "--thread-conn-start-*-jitter-micros change nothing: connections are opened before the time begins",
            );
        }
        if let Some(family) = self.family.filter(|_| self.host() != "localhost") {
            self.remarks.push(format!("-{family} changes nothing: names are resolved as this machine does"));
        }
    }

    fn host(&self) -> &str {
        self.server.as_deref().unwrap_or("localhost")
    }

    fn address(&self) -> String {
        if let Some(path) = &self.socket {
            return path.clone();
        }
        let host = match (self.host(), self.family) {
            ("localhost", Some('4')) => "127.0.0.1",
            ("localhost", Some('6')) => "::1",
            (host, _) => host,
        };
        let port = self.port.unwrap_or(pummel_logic::plan::address::RESP_PORT);
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// User and password. The user of a text without a colon is the default one; a text that begins with a colon is a password.
    fn login(&self) -> Option<(String, Secret)> {
        let credentials = self.credentials.as_ref()?.reveal();
        let (user, password) = credentials.split_once(':').unwrap_or(("", credentials));
        Some((user.to_owned(), Secret::new(password.to_owned())))
    }

    fn password(&self) -> Option<Secret> {
        self.login().map(|(_, password)| password)
    }

    fn all_clients(&self) -> u64 {
        u64::from(self.clients) * u64::from(self.threads)
    }

    /// The number of requests of each client that `allkeys` stands for.
    fn all_keys(&self) -> u64 {
        let range = self.key_maximum.saturating_sub(self.key_minimum);
        let is_parallel = self.key_pattern() == (options::Pattern::Parallel, options::Pattern::Parallel);
        if is_parallel { range / self.all_clients().max(1) + 1 } else { range.max(1) }
    }

    pub(super) fn requests_each(&self) -> u64 {
        match self.requests {
            Some(Requests::Each(requests)) => requests,
            Some(Requests::AllKeys) => self.all_keys(),
            None => REQUESTS,
        }
    }

    /// The operations: those of `--command`, or SETs, GETs and WAITs.
    fn operations(&mut self, asked: AskedCommands) -> Result<Operations, Refusal> {
        if asked.commands.is_empty() { self.sets_and_gets() } else { self.of_commands(asked) }
    }

    fn of_commands(&self, asked: AskedCommands) -> Result<Operations, Refusal> {
        let mut ops = Vec::new();
        let mut rows: Vec<Row> = Vec::new();
        let mut popularity_of = Vec::new();
        for (at, AskedCommand { ratio, pattern, title, .. }) in asked.commands.iter().enumerate() {
            let Some(verb) = Verb::of_command(at) else {
                return configuration(&format!(
                    "at most {COMMANDS_MAX} commands can be told apart, lines of MONITOR among them; pummel run --trace FILE replays any number"
                ));
            };
            ops.push((verb, f64::from(*ratio)));
            popularity_of.push((verb, self.popularity(*pattern)));
            match rows.iter_mut().find(|row| row.title == *title && !self.rows_by_line) {
                Some(row) => row.verbs.push(verb),
                None => rows.push(Row {
                    name: row_name(title),
                    title: title.clone(),
                    verbs: vec![verb],
                    kind: RowKind::Command,
                }),
            }
        }
        let popularity = popularity_of.first().map(|(_, first)| first.clone()).unwrap_or_default();
        popularity_of.retain(|(_, other)| *other != popularity);
        let mix = Mix { popularity, popularity_of, in_turns: !asked.are_drawn, ..Mix::of(&ops) };
        let commands = asked.commands.into_iter().map(|asked| asked.command).collect();
        // Only one row is known to have all that was sent.
        let request_bytes = if rows.len() == 1 { vec![1.0] } else { Vec::new() };
        Ok(Operations { commands, mix, rows, request_bytes })
    }

    fn plan(&self, commands: Vec<Command>, mix: Mix, inputs: &FrontInputs) -> Result<ValidPlan, Refusal> {
        let each = (self.test_time_s == 0).then(|| self.requests_each());
        let stop = Stop {
            time_ns: (self.test_time_s > 0).then(|| u64::from(self.test_time_s) * SECOND),
            requests: each.map(|each| each.saturating_mul(self.all_clients())),
        };
        let plan = Plan {
            servers: vec![self.address()],
            protocol: match self.protocol {
                options::GivenProtocol::Redis | options::GivenProtocol::Resp2 => Protocol::Resp2,
                options::GivenProtocol::Resp3 => Protocol::Resp3,
                options::GivenProtocol::Text => Protocol::Text,
                options::GivenProtocol::Binary => Protocol::Binary,
            },
            seed: if self.randomize { inputs.seed } else { 0 },
            interval_ns: SECOND,
            timeout_ns: from_seconds(self.timeout_s),
            reconnect: self.reconnects || self.cluster,
            evidence: self.evidence,
            anonymous: self.anonymous,
            engine: self.engine()?,
            login: self.login().map(|(user, _)| Login { user, password_file: None }),
            tls: self.tls.then(|| TlsOptions {
                ca: self.authorities.clone(),
                cert: self.certificate.clone(),
                key: self.private_key.clone().or_else(|| self.certificate.clone()),
                server_name: self.server_name.clone(),
                insecure: self.skips_verification,
            }),
            database: self.database,
            route: if self.cluster { Route::Cluster } else { Route::All },
            commands,
            data: self.data(),
            changes: self.staircase(),
            groups: vec![self.group()?],
            phases: vec![Phase { name: "measure".to_owned(), work: Work::Mix(mix), stop, recorded: true }],
            ..Plan::default()
        };
        plan.validate().map_err(|invalid| self.unfit(&invalid))
    }

    fn group(&self) -> Result<Group, Refusal> {
        let clients = u32::try_from(self.all_clients())
            .or_else(|_| configuration("--clients and --threads: expected fewer clients"))?;
        // A connection gets the requests of each portion at once.
        let portion = self.rate_limit.div_ceil(PORTIONS);
        Ok(Group {
            name: "clients".to_owned(),
            clients,
            depth: Depth::Limit(self.pipeline),
            arrivals: match portion {
                0 => Arrivals::Closed,
                1 => Arrivals::Constant,
                portion => Arrivals::Bursts(portion),
            },
            rate: (self.rate_limit > 0).then(|| f64::from(self.rate_limit) * f64::from(clients)),
            churn: (self.reconnect_interval > 0).then(|| ChurningClients {
                spawns: Spawns::Closed,
                calls: self.reconnect_interval.into(),
                sequence: None,
            }),
            policy: ClientPolicy {
                same_draws: !self.distinct_seed,
                ends_on_time: self.test_time_s > 0 && self.rate_limit > 0,
                ..ClientPolicy::default()
            },
        })
    }

    /// The steps of the number of clients, where it rises.
    fn staircase(&self) -> Changes {
        if self.clients_start == 0 {
            return Changes::default();
        }
        let step = |number: u32| self.clients_start.saturating_add(number.saturating_mul(self.clients_step));
        let is_begun = |number: &u32| number.saturating_mul(self.step_duration_s) < self.test_time_s;
        let is_needed = |number: &u32| *number == 0 || step(*number - 1) < self.clients;
        let part = |number: u32| Part {
            connections: Some(step(number).min(self.clients).saturating_mul(self.threads)),
            ..Part::plain(
                format!("step {}", number + 1),
                u64::from(number) * u64::from(self.step_duration_s) * SECOND,
            )
        };
        // One more than a plan may have is refused with it.
        let steps = (0..).take_while(|number| is_begun(number) && is_needed(number)).take(PARTS_MAX + 1);
        let parts = steps.map(part).collect();
        Changes { parts, ..Changes::default() }
    }

    fn engine(&self) -> Result<Engine, Refusal> {
        let wrong = |words: String| Refusal::Usage(format!("error: {words}"));
        let clock = named_clock(self.clock.as_deref()).map_err(wrong)?;
        let backend = named_backend(self.backend.as_deref()).map_err(wrong)?;
        let threads = u64::from(self.threads).min(self.all_clients()) as u32;
        Ok(Engine { threads, clock, backend, ..Engine::default() })
    }

    /// The words about a plan that cannot be run: those of the option that decides the field.
    fn unfit(&self, invalid: &Invalid) -> Refusal {
        let name = match invalid.path.field() {
            Field::Servers | Field::Server if self.socket.is_some() => "--unix-socket",
            Field::Servers | Field::Server => "--server",
            Field::Timeout => "--timeout",
            Field::Threads => "--threads",
            Field::User => "--authenticate",
            Field::Database => "--select-db",
            Field::KeyPrefix => "--key-prefix",
            Field::Records => "--key-maximum",
            Field::ValueSize => "--data-size",
            Field::Expiry => "--expiry-range",
            Field::TotalClients | Field::Clients => "--clients",
            Field::Depth => "--pipeline",
            Field::Calls => "--reconnect-interval",
            Field::Rate => "--rate-limiting",
            Field::MultiGet => "--multi-key-get",
            Field::Popularity => "--key-pattern",
            Field::Operations => "--ratio",
            Field::Stop | Field::StopRequests => "--requests",
            Field::StopTime => "--test-time",
            Field::Parts | Field::PartConnections => "--clients-step",
            Field::TlsCert | Field::TlsKey => "--cert",
            Field::CommandTemplate => "--command",
            _ => return Refusal::Configuration(format!("error: {invalid}")),
        };
        let value: String = invalid.value.chars().take(VALUE_SHOWN_MAX).collect();
        Refusal::Configuration(format!("error: {name} '{}': {}", value.escape_debug(), invalid.expected))
    }
}

/// Most letters of a refused value that are shown.
const VALUE_SHOWN_MAX: usize = 200;
