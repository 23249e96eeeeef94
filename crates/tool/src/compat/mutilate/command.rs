//! What a command line of mutilate's leads to: its runs, what it says meanwhile, its report and its exit status.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::net::ToSocketAddrs;
#[cfg(feature = "agents")]
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use pummel_engine::clock;
use pummel_engine::resolve::ConnectError;
use pummel_engine::run::{Inputs, Run, RunError, Wants, Watch};
use pummel_engine::sys;
use pummel_engine::worker::messages::Row;
use pummel_logic::measure::completion::load_shortfall;
use pummel_logic::measure::measurement::{Keep, Measurement, Status};
use pummel_logic::measure::summary::Summary;
use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::plan::{Phase, Plan, Work};
use pummel_logic::protocol::Outcome;
#[cfg(feature = "agents")]
use pummel_logic::time::SECOND;
use pummel_logic::time::{MICROSECOND, Nanos, seconds};

#[cfg(feature = "agents")]
use crate::agent::listener;
#[cfg(feature = "agents")]
use crate::agent::proto::v1::HelloReply;
#[cfg(feature = "agents")]
use crate::agent::service::{Guard, Own, serve};
#[cfg(feature = "agents")]
use crate::commands::agent::guarded as guarded_post;
use crate::compat::mutilate::report::{Layout, order_statistic_us, rate, render, scan_header, scan_row};
use crate::compat::mutilate::{
    AgentAsked, Asked, Crewed, HELP, Look, Refusal, Runs, Seat, Series, VERSION, read,
};
#[cfg(feature = "agents")]
use crate::controller::run;
use crate::exit_status::Exit;
use crate::job::background_writer::{BackgroundText, Patience};
#[cfg(feature = "agents")]
use crate::job::fleet::{Fleet, FleetTls};
use crate::job::inputs::supplies_of;
use crate::job::output_file::OutputFile;
use crate::job::rate_search::{Tried, halving, steps};
use crate::job::result_files::Places;
use crate::job::runner::NotRun;
use crate::job::{Edge, Front};
use crate::report::Report;
use crate::report::output::{patiently, print};
use crate::stderr::say;

/// Variables of the environment with the files that masters and agents need to know each other.
#[cfg(feature = "agents")]
const TOKEN_FILE: &str = "PUMMEL_TOKEN_FILE";
#[cfg(feature = "agents")]
const TLS_CA: &str = "PUMMEL_TLS_CA";
#[cfg(feature = "agents")]
const TLS_CERT: &str = "PUMMEL_TLS_CERT";
#[cfg(feature = "agents")]
const TLS_KEY: &str = "PUMMEL_TLS_KEY";

/// How long to wait for agents.
#[cfg(feature = "agents")]
const AGENT_PATIENCE_NS: Nanos = 10 * SECOND;

/// The status of everything that is wrong but the words of the command line.
const FATAL: Exit = Exit::Other(255);

/// Follows the words behind `program`, which is how the parser's errors begin.
pub fn mutilate(program: &str, words: &[OsString], edge: &Edge) -> Exit {
    let started = clock::now();
    let cpus = sys::allowed_cpus().unwrap_or_default();
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    match read(words, edge, &cpus) {
        Ok(Asked::Help) => printed(HELP),
        Ok(Asked::Version) => printed(VERSION),
        Ok(Asked::Agent(asked)) => agent(&asked, &cpus),
        Ok(Asked::Runs(runs)) => match sys::on_interrupt() {
            Ok(interrupts) => match Crew::gather(&runs, interrupts) {
                Ok(crew) => Station::new(&runs, crew, interrupts, started).follow(),
                Err(exit) => exit,
            },
            Err(error) => fatal(format_args!("signals cannot be handled: {error}")),
        },
        Err(Refusal::Words(text)) => {
            say(format_args!("{program}: {text}"));
            Exit::Other(1)
        }
        Err(Refusal::Fatal(text)) => fatal(text),
    }
}

/// The agents of a command line; nobody where it names none.
#[cfg(feature = "agents")]
struct Crew(Option<run::Crew>);

#[cfg(feature = "agents")]
impl Crew {
    fn gather(runs: &Runs, interrupts: &AtomicU32) -> Result<Crew, Exit> {
        if runs.agents.is_empty() {
            return Ok(Crew(None));
        }
        let file = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let tls = match [TLS_CA, TLS_CERT, TLS_KEY].map(file) {
            [Some(ca), Some(cert), Some(key)] => Some(FleetTls { ca, cert, key }),
            [None, None, None] => None,
            _ => {
                return Err(fatal(format_args!(
                    "{TLS_CA}, {TLS_CERT} and {TLS_KEY} are of use only together"
                )));
            }
        };
        let fleet = Fleet {
            places: runs.agents.clone(),
            patience_ns: AGENT_PATIENCE_NS,
            tls,
            token_file: file(TOKEN_FILE),
            stop_on_loss: false,
        };
        match run::Crew::gather(&fleet, &|| interrupts.load(Ordering::Relaxed) > 0) {
            Ok(crew) => Ok(Crew(Some(crew))),
            Err(run::Refusal::Interrupted) => Err(Exit::Interrupted),
            Err(refusal) => Err(fatal(refusal)),
        }
    }

    /// What the agents said of themselves.
    fn seats(&self) -> Vec<Seat> {
        let seat = |hello: &HelloReply| Seat {
            threads: hello.threads.max(1),
            weight: hello.weight.max(1),
            measure_connections: hello.measure_connections,
        };
        self.0.iter().flat_map(run::Crew::hellos).map(seat).collect()
    }

    /// Runs a plan, here or on the agents; what went wrong is in words.
    fn run(
        &self,
        crewed: &Crewed,
        supplies: &Inputs,
        watch: &mut dyn Watch,
        stop: &dyn Fn() -> bool,
    ) -> Result<Measurement, NotRun> {
        let Some(crew) = &self.0 else {
            return Run::new(&crewed.plan).with_inputs(supplies).start(watch, stop).map_err(NotRun::Here);
        };
        let parts = run::Parts::of_groups(&crewed.plan, &crewed.agents, crewed.own);
        Ok(crew.run(&crewed.plan, parts, supplies, watch, stop)?)
    }
}

/// Nobody: this build has no agents.
#[cfg(not(feature = "agents"))]
struct Crew;

#[cfg(not(feature = "agents"))]
impl Crew {
    fn gather(runs: &Runs, _interrupts: &AtomicU32) -> Result<Crew, Exit> {
        match runs.agents.is_empty() {
            true => Ok(Crew),
            false => Err(fatal("--agent (-a): this pummel was built without agents")),
        }
    }

    fn seats(&self) -> Vec<Seat> {
        Vec::new()
    }

    fn run(
        &self,
        crewed: &Crewed,
        supplies: &Inputs,
        watch: &mut dyn Watch,
        stop: &dyn Fn() -> bool,
    ) -> Result<Measurement, NotRun> {
        Run::new(&crewed.plan).with_inputs(supplies).start(watch, stop).map_err(NotRun::Here)
    }
}

#[cfg(not(feature = "agents"))]
fn agent(_asked: &AgentAsked, _cpus: &[usize]) -> Exit {
    fatal("--agentmode (-A): this pummel was built without agents")
}

/// `-A`: waits for a master. It listens to all the world only where it knows who speaks.
#[cfg(feature = "agents")]
fn agent(asked: &AgentAsked, cpus: &[usize]) -> Exit {
    let file = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let tls = match [TLS_CERT, TLS_KEY, TLS_CA].map(file) {
        [Some(cert), Some(key), Some(ca)] => match listener::secure(&cert, &key, &ca) {
            Ok(tls) => Some(tls),
            Err(error) => return fatal(error),
        },
        [None, None, None] => None,
        _ => return fatal(format_args!("{TLS_CA}, {TLS_CERT} and {TLS_KEY} are of use only together")),
    };
    let token = match file(TOKEN_FILE).map(|path| listener::Token::read(&path)).transpose() {
        Ok(token) => token,
        Err(error) => return fatal(format_args!("{TOKEN_FILE}: {error}")),
    };
    let guarded = tls.is_some() || token.is_some();
    let address: IpAddr = if guarded { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST }.into();
    if !guarded {
        log(format_args!(
            "listening on the loopback address only; to listen on all, set {TOKEN_FILE} to a file with a word that master \
             and agents share"
        ));
    }
    let own = Own {
        threads: asked.seat.threads,
        weight: asked.seat.weight,
        measure_connections: asked.seat.measure_connections,
        blocking: asked.blocking,
        cpus: if asked.pinned { cpus.to_vec() } else { Vec::new() },
    };
    let guard = Guard { tls, token, targets: Vec::new() };
    let interrupts = match sys::on_interrupt() {
        Ok(interrupts) => interrupts,
        Err(error) => return fatal(format_args!("signals cannot be handled: {error}")),
    };
    let post = guarded_post(SocketAddr::new(address, asked.port), guard, own);
    match post
        .map_err(|error| error.to_string())
        .and_then(|post| serve(post, interrupts).map_err(|e| e.to_string()))
    {
        Ok(()) => Exit::Complete,
        Err(error) => fatal(error),
    }
}

/// Says a line in the original's form; its line numbers are nobody's business.
fn log(text: impl Display) {
    say(format_args!("mutilate.cc(0): {text}"));
}

fn fatal(text: impl Display) -> Exit {
    log(text);
    FATAL
}

fn printed(text: &str) -> Exit {
    match print(text.as_bytes()) {
        Ok(()) => Exit::Complete,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Complete,
        Err(error) => fatal(error),
    }
}

/// What all runs of a command line have in common.
struct Station<'a> {
    runs: &'a Runs,
    crew: Crew,
    /// What its agents said of themselves.
    seats: Vec<Seat>,
    look: &'a Look,
    interrupts: &'a AtomicU32,
    /// When the process started.
    started: Nanos,
    supplies: Inputs,
}

/// A run that took place.
struct Ran {
    plan: ValidPlan,
    measurement: Measurement,
    summary: Summary,
    reads: Vec<Read>,
}

/// A read for `--save`.
#[derive(Clone, Copy, Debug)]
struct Read {
    sent: Nanos,
    latency_ns: Nanos,
}

impl Ran {
    fn report(&self) -> Report<'_> {
        Report {
            plan: &self.plan,
            measurement: &self.measurement,
            summary: &self.summary,
            front: Front::Mutilate.name(),
        }
    }

    fn interrupted(&self) -> bool {
        self.measurement.status == Status::Interrupted
    }
}

impl<'a> Station<'a> {
    fn new(runs: &'a Runs, crew: Crew, interrupts: &'a AtomicU32, started: Nanos) -> Station<'a> {
        let seats = crew.seats();
        Station { runs, crew, seats, look: &runs.look, interrupts, started, supplies: Inputs::default() }
    }

    fn follow(mut self) -> Exit {
        match supplies_of(&self.runs.job.plan) {
            Ok(supplies) => self.supplies = Inputs { password: self.runs.password(), ..supplies },
            Err(error) => return fatal(error),
        }
        let save = self.look.save.as_ref().filter(|_| self.saves());
        let save = match save.map(|path| Save::create(path)).transpose() {
            Ok(save) => save,
            Err(text) => return fatal(text),
        };
        let mut places = match Places::prepare(&self.runs.job.outputs, &self.runs.job.plan) {
            Ok(places) => places,
            Err(error) => return fatal(error),
        };
        self.introduce();
        let last = match self.runs.series {
            Series::Single => self.single(&mut places),
            Series::Search { nth, limit_us } => self.search(nth, limit_us, &mut places),
            Series::Scan { min, max, step } => self.scan(min, max, step, &mut places),
        };
        match last {
            Ok(mut last) => self.conclude(&mut last, places, save),
            Err(exit) => exit,
        }
    }

    /// Whether reads are to be written to a file: not where nothing, or more than one rate, is measured.
    fn saves(&self) -> bool {
        !self.look.load_only && !matches!(self.runs.series, Series::Scan { .. })
    }

    /// What is said before the first run at the highest level.
    fn introduce(&self) {
        if !self.says(2) {
            return;
        }
        let plan = &self.runs.job.plan;
        log(format_args!("options->records = {}", plan.data.records));
        for server in plan.servers.iter().filter(|server| !server.starts_with('/')) {
            let host = server.rsplit_once(':').map_or(server.as_str(), |(host, _)| host);
            let first = server.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
            if let Some(address) = first {
                log(format_args!("Resolved {host} to {}", address.ip()));
            }
        }
    }

    fn says(&self, level: u32) -> bool {
        !self.look.quiet && self.look.verbose >= level
    }

    fn layout(&self) -> Layout {
        Layout { response: self.look.response, p50: self.look.p50, peak: None }
    }

    fn single(&self, places: &mut Places) -> Result<Last, Exit> {
        let ran = self.run_at(self.runs.qps(), places)?;
        let text = render(&ran.report(), &self.layout());
        Ok(Last { text: Some(text).filter(|_| !self.look.load_only), ran })
    }

    fn search(&self, nth: u32, limit_us: u32, places: &mut Places) -> Result<Last, Exit> {
        if !self.look.quiet {
            log(format_args!("Search-mode.  Find QPS @ {limit_us}us {nth}th percentile."));
        }
        let (mut last, mut ended) = (None, None);
        let first = self.runs.qps();
        let mut is_first = true;
        let found = halving(limit_us.into(), first, |asked| {
            let ran = match self.run_at(asked, places) {
                Ok(ran) => ran,
                Err(exit) => {
                    ended = Some(exit);
                    return None;
                }
            };
            let tried = Tried {
                asked,
                rate: rate(&ran.report()),
                nth_us: order_statistic_us(&ran.measurement, nth.into()),
            };
            let is_first = std::mem::take(&mut is_first);
            if !self.look.quiet && is_first {
                log(format_args!("peak qps = {}, nth = {:.1}", tried.rate as u64, tried.nth_us));
            } else if !self.look.quiet {
                log(format_args!(
                    "cur_qps = {asked}, get_qps = {:.6}, nth = {:.6}",
                    tried.rate, tried.nth_us
                ));
            }
            let goes_on = !ran.interrupted() && !is_broken(&ran);
            last = Some(ran);
            goes_on.then_some(tried)
        });
        if let Some(exit) = ended {
            return Err(exit);
        }
        let ran = last.ok_or(FATAL)?;
        if found.is_some_and(|found| !found.met) {
            log(format_args!("no rate was found at which {nth}% of requests are faster than {limit_us}us"));
        }
        let layout = Layout { peak: found.map(|found| found.peak), ..self.layout() };
        Ok(Last { text: Some(render(&ran.report(), &layout)), ran })
    }

    fn scan(&self, min: u32, max: u32, step: u32, places: &mut Places) -> Result<Last, Exit> {
        let layout = self.layout();
        let out = |text: &str| print(text.as_bytes()).map_err(fatal);
        out(&scan_header(&layout))?;
        let mut rates = steps(min, max, step);
        loop {
            let asked = rates.next().expect("a scan has a rate");
            let ran = self.run_at(asked, places)?;
            let is_last = asked > max - step.min(max) || ran.interrupted() || is_broken(&ran);
            out(&scan_row(&ran.report(), &layout, asked))?;
            if is_last {
                return Ok(Last { text: None, ran });
            }
        }
    }

    fn run_at(&self, qps: u32, places: &mut Places) -> Result<Ran, Exit> {
        let crewed = self.runs.crewed_at(qps, &self.seats).map_err(fatal)?;
        self.run(&crewed, places)
    }

    /// Runs a plan. An error is one that leaves nothing to report.
    fn run(&self, crewed: &Crewed, places: &mut Places) -> Result<Ran, Exit> {
        let plan = &crewed.plan;
        let windows = (self.look.miss_window > 0).then(BackgroundText::standard_output);
        let windows = windows.transpose().map_err(fatal)?;
        let mut watcher = Watcher {
            station: self,
            plan,
            places,
            is_first_phase: true,
            before: None,
            misses: MissWindows::new(self.look.miss_window),
            windows,
            reads: Vec::new(),
        };
        let stop = || self.interrupts.load(Ordering::Relaxed) > 0;
        let result = self.crew.run(crewed, &self.supplies, &mut watcher, &stop);
        watcher.phase_is_over();
        let reads = std::mem::take(&mut watcher.reads);
        if let Some(windows) = watcher.windows.take() {
            // Whoever does not want to read any more does not stop the run.
            let dropped_lines = windows.finish(Patience::UntilInterrupt).dropped_lines;
            if dropped_lines > 0 && !self.look.quiet {
                log(format_args!("{dropped_lines} windows of misses were not printed"));
            }
        }
        let measurement = match result {
            Ok(measurement) => measurement,
            Err(NotRun::Interrupted) => return Err(Exit::Interrupted),
            Err(error) => return Err(fatal(self.refusal(&error))),
        };
        let summary = Summary::of(&measurement, plan);
        if self.says(1) && self.runs.series == Series::Single && measurement.started_unix_ns > 0 {
            let stop_ns = measurement.started_unix_ns + measurement.measured_ns;
            let time_s = plan.phases.last().and_then(|phase| phase.stop.time_ns).map_or(0.0, seconds);
            log(format_args!("stopped at {:.6}  options.time = {time_s:.0}", stop_ns as f64 / 1e9));
        }
        Ok(Ran { plan: plan.clone(), measurement, summary, reads })
    }

    /// Why a run did not begin, in the original's words where it has some.
    fn refusal(&self, error: &NotRun) -> String {
        match error {
            NotRun::Here(RunError::Connect(ConnectError::Unresolved { server, error })) => {
                format!("Error while resolving '{}': {error}", self.runs.typed_server(server))
            }
            error => error.to_string(),
        }
    }

    /// Writes everything that is left to write, and says how it ended.
    fn conclude(&self, last: &mut Last, mut places: Places, save: Option<Save>) -> Exit {
        places.settle(&mut last.ran.measurement).iter().for_each(say);
        let Last { ran, text } = last;
        let mut exit = self.verdict(ran);
        let measured = ran.measurement.started_unix_ns > 0;
        if let Some(text) = text.as_ref().filter(|_| measured && !places.take_standard_output()) {
            exit = worse(exit, printed(text));
        }
        if let Some(save) = save.filter(|_| measured) {
            exit = worse(exit, save.write(&ran.reads, self.started));
        }
        match places.finish(&ran.report()) {
            Ok(()) => exit,
            Err(error) => worse(exit, fatal(error)),
        }
    }

    /// What became of the run, said where it is not what was asked for.
    fn verdict(&self, ran: &Ran) -> Exit {
        let measurement = &ran.measurement;
        self.say_failures(measurement);
        if ran.interrupted() {
            return Exit::Interrupted;
        }
        let unstored = measurement.load.as_ref().filter(|load| load.stored < load.records);
        let mut exit = Exit::Complete;
        if let Some(load) = unstored {
            let words = load.messages.keys().next().map_or(String::new(), |words| format!(": {words}"));
            let missing = load.records - load.stored;
            exit = fatal(format_args!("{missing} of {} records were not stored{words}", load.records));
        }
        // What the run lacks was said already, where that is a part of its load.
        let shortfall = unstored
            .and_then(|load| load_shortfall(load, false, None))
            .filter(|_| connections_held(measurement));
        let reason = measurement.reason.as_deref().unwrap_or_default();
        if shortfall.is_some_and(|shortfall| reason.starts_with(&shortfall)) {
            return exit;
        }
        if is_broken(ran) {
            log(trouble(reason, &ran.plan));
            exit = fatal(reason);
        } else if let (Status::Partial, Some(reason)) = (measurement.status, &measurement.reason)
            && !self.look.quiet
        {
            log(reason);
        }
        exit
    }

    /// Requests that servers refused, with their words.
    fn say_failures(&self, measurement: &Measurement) {
        let failed = measurement.ops().all().counts.failed();
        if failed == 0 || self.look.quiet {
            return;
        }
        let words: Vec<String> = measurement
            .messages
            .iter()
            .map(|(words, count)| format!("\"{words}\" ({count} times)"))
            .collect();
        log(format_args!("{failed} requests failed {}", words.join(", ")).to_string().trim_end());
    }
}

/// The last run, and what is to be printed of it.
struct Last {
    ran: Ran,
    text: Option<String>,
}

/// Whether a run came to nothing or lost connections for good; that servers were silent is none of the original's concern.
fn is_broken(ran: &Ran) -> bool {
    let recorded = ran.plan.phases.iter().filter(|phase| phase.recorded).count();
    let members = ran.measurement.agents.iter().flat_map(|agents| &agents.members);
    let threads = match ran.measurement.agents {
        Some(_) => members.map(|member| member.threads).sum(),
        None => ran.plan.engine.threads,
    };
    let workers = threads as usize * recorded;
    let whole = connections_held(&ran.measurement);
    let through = ran.measurement.generator.workers.len() == workers;
    ran.measurement.status == Status::Partial && !(recorded > 0 && whole && through)
}

/// Whether no connection was lost for good.
fn connections_held(measurement: &Measurement) -> bool {
    let connections = &measurement.connections;
    connections.lost <= connections.reconnected && connections.failed == 0
}

/// What the original says of a lost connection.
fn trouble(reason: &str, plan: &Plan) -> String {
    if plan.login.is_some() && reason.contains("the server said") {
        return "SASL authentication failed".to_owned();
    }
    if reason.contains("the server closed the connection") {
        return "Unexpected EOF from server.".to_owned();
    }
    if reason.contains("did not answer in time") || reason.contains("took longer than the timeout") {
        return "BEV_EVENT_ERROR: Connection timed out".to_owned();
    }
    let known =
        ["Connection refused", "Connection reset by peer", "No such file or directory", "Broken pipe"];
    let errno = known.into_iter().find(|words| reason.contains(words));
    format!("BEV_EVENT_ERROR: {}", errno.unwrap_or(reason))
}

fn worse(one: Exit, other: Exit) -> Exit {
    if one == Exit::Complete { other } else { one }
}

/// Who watches one run.
struct Watcher<'a, 'p> {
    station: &'a Station<'a>,
    plan: &'a Plan,
    places: &'p mut Places,
    is_first_phase: bool,
    /// What is under way.
    before: Option<Work>,
    misses: MissWindows,
    /// Where lines about windows of misses go.
    windows: Option<BackgroundText>,
    reads: Vec<Read>,
}

impl Watcher<'_, '_> {
    fn says(&self, level: u32) -> bool {
        self.station.says(level)
    }

    /// Says what the original says at the end of what was under way.
    fn phase_is_over(&mut self) {
        match self.before.take() {
            Some(Work::Load(_)) if self.says(2) => log("Finished loading."),
            Some(Work::Mix(_) | Work::Replay(_)) if self.says(1) => log("Warmup stop."),
            _ => {}
        }
    }

    fn say_connected(&self) {
        if self.says(1) && self.plan.login.is_some() {
            log("SASL authentication succeeded");
        }
        if self.says(2) {
            for server in &self.plan.servers {
                log(format_args!("Connected to {server}."));
            }
        }
    }
}

impl Watch for Watcher<'_, '_> {
    fn wants(&self) -> Wants {
        let saves = self.station.look.save.is_some() && self.station.saves();
        let rows = self.places.want_rows() || saves || self.misses.every > 0;
        let keep = if self.places.want_histograms() { Keep::Histograms } else { Keep::Figures };
        Wants { rows, departures: false, keep, outstanding: true }
    }

    fn begin(&mut self, phase: &Phase, at: Nanos) {
        if std::mem::take(&mut self.is_first_phase) {
            self.say_connected();
        }
        self.phase_is_over();
        if phase.recorded {
            self.places.begin(at);
            if self.says(1) && self.station.runs.series == Series::Single {
                log(format_args!("started at {:.6}", clock::wall() as f64 / 1e9));
            }
            return;
        }
        self.before = Some(phase.work.clone());
        match &phase.work {
            Work::Load(_) if self.says(1) => log("Loading database."),
            Work::Mix(_) | Work::Replay(_) if self.says(1) => log("Warmup start."),
            Work::Pause(pause) if self.says(1) && pause.until_ns > 0 => {
                let since = at.saturating_sub(self.station.started);
                log(format_args!("Sleeping {:.1}s for -W.", seconds(pause.until_ns.saturating_sub(since))));
            }
            _ => {}
        }
    }

    fn slice(&mut self, so_far: &Measurement) {
        if self.places.want_checkpoint() {
            let summary = Summary::of(so_far, self.plan);
            let front = Front::Mutilate.name();
            self.places.checkpoint(&Report {
                plan: self.plan,
                measurement: so_far,
                summary: &summary,
                front,
            });
        }
    }

    fn rows(&mut self, rows: &[Row]) {
        self.places.rows(rows);
        let saves = self.station.look.save.is_some();
        for row in rows.iter().filter(|row| row.verb.reads()) {
            let Some(hit) = hit(row.outcome) else { continue };
            if let (Some(line), Some(windows)) = (self.misses.count(hit), &self.windows) {
                windows.add(&line);
            }
            if saves && (hit || !self.plan.groups[0].policy.successes_only) {
                let latency_ns = row.arrived.saturating_sub(row.sent);
                self.reads.push(Read { sent: row.sent, latency_ns });
            }
        }
    }
}

/// Whether a read found something; `None` where it failed.
fn hit(outcome: Outcome) -> Option<bool> {
    match outcome {
        Outcome::Error(_) => None,
        Outcome::Miss => Some(false),
        _ => Some(true),
    }
}

/// The share of misses in windows of reads.
#[derive(Clone, Copy, Debug)]
struct MissWindows {
    /// Reads of a window; 0 for none.
    every: u64,
    reads: u64,
    misses: u64,
}

impl MissWindows {
    fn new(every: u64) -> MissWindows {
        MissWindows { every, reads: 0, misses: 0 }
    }

    /// Counts a read; gives the line of a window that it completes.
    fn count(&mut self, hit: bool) -> Option<String> {
        self.reads += 1;
        self.misses += u64::from(!hit);
        if self.every == 0 || !self.reads.is_multiple_of(self.every) {
            return None;
        }
        let share = std::mem::take(&mut self.misses) as f64 / self.every as f64;
        Some(format!("{},{share:.4}\n", self.reads))
    }
}

/// The file of `--save`, opened before the load.
struct Save {
    path: PathBuf,
    /// None for a named pipe, which is opened when it is written: that waits for its reader.
    file: Option<OutputFile>,
}

impl Save {
    fn create(path: &Path) -> Result<Save, String> {
        let is_pipe = fs::metadata(path).is_ok_and(|present| present.file_type().is_fifo());
        let file = (!is_pipe)
            .then(|| OutputFile::open(path))
            .transpose()
            .map_err(|error| format!("--save: failed to open {}: {}", path.display(), os_words(&error)))?;
        Ok(Save { path: path.to_owned(), file })
    }

    /// Writes every read: when it was sent, in seconds from the start of the process, and how long it took, in
    /// microseconds.
    fn write(self, reads: &[Read], started: Nanos) -> Exit {
        let exit = printed(&format!("Saving latency samples to {}.\n", self.path.display()));
        let mut reads = reads.to_vec();
        reads.sort_unstable_by_key(|read| read.sent);
        let written = match self.file {
            Some(file) => write_reads(&mut BufWriter::new(file), &reads, started),
            None => {
                let (mut lines, path) = (Vec::new(), self.path.clone());
                let open = move || OpenOptions::new().write(true).open(path);
                write_reads(&mut lines, &reads, started).and_then(|()| patiently(open, &lines))
            }
        };
        match written {
            Ok(()) => exit,
            Err(error) => fatal(format_args!("--save: failed to write {}: {error}", self.path.display())),
        }
    }
}

fn write_reads(out: &mut impl Write, reads: &[Read], started: Nanos) -> io::Result<()> {
    for read in reads {
        let latency_us = read.latency_ns as f64 / MICROSECOND as f64;
        writeln!(out, "{:.6} {latency_us:.6}", seconds(read.sent.saturating_sub(started)))?;
    }
    out.flush()
}

/// The system's words for an error, without its number.
fn os_words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_misses_are_told_apart() {
        let mut windows = MissWindows::new(4);
        let lines: Vec<String> = (0..9).filter_map(|n| windows.count(n % 3 != 0)).collect();
        assert_eq!(lines, ["4,0.5000\n", "8,0.2500\n"]);
        assert_eq!(MissWindows::new(0).count(false), None);
    }

    #[test]
    fn the_originals_words_for_lost_servers_are_found() {
        let plan = read(["-s", "a"].into_iter().map(String::from), &Edge { servers: None, seed: 1 }, &[]);
        let Ok(Asked::Runs(runs)) = plan else { panic!("a plain command line") };
        let plan = &runs.job.plan;
        for (reason, said) in [
            (
                "1 of 1: a:1: Connection refused (os error 111); nothing",
                "BEV_EVENT_ERROR: Connection refused",
            ),
            ("a:1: the server closed the connection", "Unexpected EOF from server."),
            ("a:1: Connection reset by peer (os error 104)", "BEV_EVENT_ERROR: Connection reset by peer"),
            ("a:1: the server did not answer in time", "BEV_EVENT_ERROR: Connection timed out"),
            ("something else", "BEV_EVENT_ERROR: something else"),
        ] {
            assert_eq!(trouble(reason, plan), said);
        }
    }
}
