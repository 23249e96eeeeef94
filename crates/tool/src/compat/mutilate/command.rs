//! `pummel mutilate`: follows its command line, which asks for one run or several, or for an agent.

use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::net::ToSocketAddrs;
#[cfg(feature = "agents")]
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
#[cfg(feature = "agents")]
use std::path::PathBuf;

use pummel_engine::clock;
use pummel_engine::sys;
use pummel_logic::measure::measurement::{Measurement, Status};
use pummel_logic::measure::summary::Summary;
use pummel_logic::plan::validate::ValidPlan;
#[cfg(feature = "agents")]
use pummel_logic::time::{Nanos, SECOND};

#[cfg(feature = "agents")]
use crate::agent::files::AllowedFiles;
#[cfg(feature = "agents")]
use crate::agent::listener;
#[cfg(feature = "agents")]
use crate::agent::overrides::LocalOverrides;
#[cfg(feature = "agents")]
use crate::agent::policy::AccessPolicy;
#[cfg(feature = "agents")]
use crate::agent::service::serve;
#[cfg(feature = "agents")]
use crate::commands::agent::guarded as guarded_config;
use crate::compat::mutilate::report::{order_statistic_us, rate, scan_header, scan_row};
use crate::compat::mutilate::style::{FATAL, MutilateStyle, is_broken, line};
use crate::compat::mutilate::{AgentAsked, Asked, HELP, Refusal, Runs, Seat, Series, VERSION, read};
use crate::exit_status::Exit;
#[cfg(feature = "agents")]
use crate::job::agent_variables::AgentVariables;
use crate::job::driver::{Driver, Extras};
use crate::job::fleet::Fleet;
use crate::job::outlets::FrontFiles;
use crate::job::rate_search::{Tried, halving, steps};
use crate::job::runner::{Dealing, NotRun, Runner};
use crate::job::style::Said;
use crate::job::{Edge, Front, Job};
use crate::report::Report;
use crate::report::output::print;
use crate::stderr::say;

/// Directory below which an agent reads the files that a master's plan names.
#[cfg(feature = "agents")]
const ALLOW_FILE: &str = "PUMMEL_ALLOW_FILE";

/// How long to wait for agents.
#[cfg(feature = "agents")]
const AGENT_PATIENCE_NS: Nanos = 10 * SECOND;

/// Follows the words behind `program`, which is how the parser's errors begin.
pub fn mutilate(program: &str, words: &[OsString], edge: &Edge) -> Exit {
    let started = clock::now();
    let cpus = sys::allowed_cpus().unwrap_or_default();
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    match read(words, edge, &cpus) {
        Ok(Asked::Help) => printed(HELP),
        Ok(Asked::Version) => printed(VERSION),
        Ok(Asked::Agent(asked)) => agent(&asked, &cpus),
        Ok(Asked::Runs(runs)) => {
            let style = MutilateStyle::new(&runs, started, introduction(&runs));
            fleet_of(&runs).map_or_else(|exit| exit, |fleet| follow(&runs, fleet, style))
        }
        Err(Refusal::Words(text)) => {
            say(format_args!("{program}: {text}"));
            Exit::Other(1)
        }
        Err(Refusal::Fatal(text)) => fatal(text),
    }
}

/// The agents of a command line; `None` where it names none.
#[cfg(feature = "agents")]
fn fleet_of(runs: &Runs) -> Result<Option<Fleet>, Exit> {
    if runs.agents.is_empty() {
        return Ok(None);
    }
    Ok(Some(Fleet {
        places: runs.agents.clone(),
        patience_ns: AGENT_PATIENCE_NS,
        tls: None,
        token_file: None,
        stop_on_loss: false,
        allow_version_mismatch: false,
    }))
}

#[cfg(not(feature = "agents"))]
fn fleet_of(runs: &Runs) -> Result<Option<Fleet>, Exit> {
    match runs.agents.is_empty() {
        true => Ok(None),
        false => Err(fatal("--agent (-a): this pummel was built without agents")),
    }
}

#[cfg(not(feature = "agents"))]
fn agent(_asked: &AgentAsked, _cpus: &[usize]) -> Exit {
    fatal("--agentmode (-A): this pummel was built without agents")
}

/// `-A`: waits for a master. It listens to all the world only where it knows who speaks.
#[cfg(feature = "agents")]
fn agent(asked: &AgentAsked, cpus: &[usize]) -> Exit {
    let variables = match AgentVariables::of_process() {
        Ok(variables) => variables,
        Err(error) => return fatal(error),
    };
    let secured = variables.tls.map(|files| listener::secure(&files.cert, &files.key, &files.ca)).transpose();
    let read = variables.token_file.map(|path| listener::Token::read(&path)).transpose();
    let (tls, token) = match (secured, read) {
        (Ok(tls), Ok(token)) => (tls, token),
        (Err(error), _) | (_, Err(error)) => return fatal(error),
    };
    let guarded = tls.is_some() || token.is_some();
    let address: IpAddr = if guarded { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST }.into();
    if !guarded {
        say(line(format_args!(
            "listening on the loopback address only; to listen on all, set PUMMEL_AGENT_TOKEN_FILE to a file with a word that master \
             and agents share"
        )));
    }
    let overrides = LocalOverrides {
        threads: asked.seat.threads,
        weight: asked.seat.weight,
        measure_connections: asked.seat.measure_connections,
        blocking: asked.blocking,
        cpus: if asked.pinned { cpus.to_vec() } else { Vec::new() },
    };
    let directory = std::env::var_os(ALLOW_FILE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let directories: Vec<PathBuf> = directory.into_iter().collect();
    let files = match AllowedFiles::below(&directories) {
        Ok(files) => files,
        Err((path, error)) => return fatal(format_args!("{ALLOW_FILE}: {}: {error}", path.display())),
    };
    let policy = AccessPolicy { tls, token, files, ..AccessPolicy::default() };
    let interrupts = match sys::on_interrupt() {
        Ok(interrupts) => interrupts,
        Err(error) => return fatal(format_args!("signals cannot be handled: {error}")),
    };
    let config = guarded_config(SocketAddr::new(address, asked.port), policy, overrides);
    match config
        .map_err(|error| error.to_string())
        .and_then(|config| serve(config, interrupts).map_err(|e| e.to_string()))
    {
        Ok(()) => Exit::Complete,
        Err(error) => fatal(error),
    }
}

/// What is said before the first run at the highest level: names are resolved for it.
fn introduction(runs: &Runs) -> Vec<String> {
    if runs.look.verbose < 2 {
        return Vec::new();
    }
    let plan = &runs.job.plan;
    let resolved = plan.servers.iter().filter(|server| !server.starts_with('/')).filter_map(|server| {
        let host = server.rsplit_once(':').map_or(server.as_str(), |(host, _)| host);
        let first = server.to_socket_addrs().ok().and_then(|mut addresses| addresses.next())?;
        Some(format!("Resolved {host} to {}", first.ip()))
    });
    std::iter::once(format!("options->records = {}", plan.data.records)).chain(resolved).collect()
}

fn fatal(text: impl Display) -> Exit {
    say(line(text));
    FATAL
}

fn printed(text: &str) -> Exit {
    match print(text.as_bytes()) {
        Ok(()) => Exit::Complete,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Complete,
        Err(error) => fatal(error),
    }
}

/// Makes the runs of a command line, and writes what comes of them.
fn follow<'a>(runs: &'a Runs, fleet: Option<Fleet>, mut style: MutilateStyle<'a>) -> Exit {
    let job = Job { fleet, ..runs.job.clone() };
    let files = FrontFiles { log: None, samples: runs.look.save.clone().filter(|_| runs.saves()) };
    let extras = Extras { files, password: runs.password(), always_reads_inputs: true };
    let driver = match Driver::prepare(&job, &extras, &style) {
        Ok(driver) => driver,
        Err(exit) => return exit,
    };
    let mut station = Station { runs, driver, seats: None, style: &mut style };
    let last = match runs.series {
        Series::Single => station.run_at(runs.qps()),
        Series::Search { nth, limit_us } => station.search(nth, limit_us),
        Series::Scan { min, max, step } => station.scan(min, max, step),
    };
    let Station { driver, .. } = station;
    match last {
        Ok(ran) => driver.conclude(&ran.plan, Ok(ran.measurement), &mut style),
        Err(NotMade::Refused(text)) => fatal(text),
        Err(NotMade::NotRun(error, None)) => driver.conclude(&job.plan, Err(error), &mut style),
        // What was measured before stays the result.
        Err(NotMade::NotRun(error, Some(ran))) => {
            say(line(style.note_failure(&error)));
            driver.conclude(&ran.plan, Ok(ran.measurement), &mut style)
        }
    }
}

/// The runs of a command line.
struct Station<'a, 'd, 's> {
    runs: &'a Runs,
    driver: Driver<'d>,
    /// What the agents said of themselves; `None` before they were asked.
    seats: Option<Vec<Seat>>,
    style: &'s mut MutilateStyle<'a>,
}

/// A run that was made.
struct Ran {
    plan: ValidPlan,
    measurement: Measurement,
    summary: Summary,
}

/// Why there is no run.
enum NotMade {
    /// The command line cannot be followed beside these agents.
    Refused(String),
    /// The run could not begin. The run before it in the series is kept, where there is one.
    NotRun(NotRun, Option<Box<Ran>>),
}

impl From<NotRun> for NotMade {
    fn from(error: NotRun) -> NotMade {
        NotMade::NotRun(error, None)
    }
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

    /// Whether another run may follow.
    fn goes_on(&self) -> bool {
        self.measurement.status != Status::Interrupted && !is_broken(&self.plan, &self.measurement)
    }
}

impl Station<'_, '_, '_> {
    fn say(&mut self, text: impl Display) {
        let mut said = Said::default();
        said.line(line(text));
        self.driver.say(&mut said);
    }

    fn search(&mut self, nth: u32, limit_us: u32) -> Result<Ran, NotMade> {
        let quiet = self.runs.look.quiet;
        if !quiet {
            self.say(format_args!("Search-mode.  Find QPS @ {limit_us}us {nth}th percentile."));
        }
        let (mut last, mut ended) = (None, None);
        let found = halving(limit_us.into(), self.runs.qps(), |asked| {
            let is_first = last.is_none();
            let ran = match self.run_at(asked) {
                Ok(ran) => ran,
                Err(error) => {
                    ended = Some(error);
                    return None;
                }
            };
            let (rate, nth_us) = (rate(&ran.report()), order_statistic_us(&ran.measurement, nth.into()));
            if !quiet && is_first {
                self.say(format_args!("peak qps = {}, nth = {nth_us:.1}", rate as u64));
            } else if !quiet {
                self.say(format_args!("cur_qps = {asked}, get_qps = {rate:.6}, nth = {nth_us:.6}"));
            }
            let goes_on = ran.goes_on();
            last = Some(ran);
            goes_on.then_some(Tried { asked, rate, nth_us })
        });
        if let Some(error) = ended {
            return Err(after(error, last));
        }
        if let Some(found) = found {
            self.style.note_peak(found.peak);
            if !found.met {
                self.say(format_args!(
                    "no rate was found at which {nth}% of requests are faster than {limit_us}us"
                ));
            }
        }
        Ok(last.expect("a search makes a run, or says why not"))
    }

    fn scan(&mut self, min: u32, max: u32, step: u32) -> Result<Ran, NotMade> {
        let layout = self.style.layout();
        self.print(scan_header(&layout));
        let mut rates = steps(min, max, step).peekable();
        let mut last = None;
        loop {
            let asked = rates.next().expect("a scan whose rates are in order has a rate");
            let ran = self.run_at(asked).map_err(|error| after(error, last.take()))?;
            self.print(scan_row(&ran.report(), &layout, asked));
            if rates.peek().is_none() || !ran.goes_on() {
                return Ok(ran);
            }
            last = Some(ran);
        }
    }

    fn print(&mut self, text: String) {
        let mut said = Said::default();
        said.report(text);
        self.driver.say(&mut said);
    }

    fn run_at(&mut self, qps: u32) -> Result<Ran, NotMade> {
        if self.seats.is_none() {
            self.seats = Some(seats_of(self.driver.runner()?));
        }
        let seats = self.seats.as_deref().unwrap_or_default();
        let crewed =
            self.runs.crewed_at(qps, seats).map_err(|refusal| NotMade::Refused(refusal.to_string()))?;
        let dealing = Dealing::ByGroups { agents: &crewed.agents, own: crewed.own };
        let measurement = self.driver.run(&crewed.plan, dealing, self.style)?;
        let summary = Summary::of(&measurement, &crewed.plan);
        Ok(Ran { plan: crewed.plan, measurement, summary })
    }
}

/// Why there is no further run in a series whose last run was this one.
fn after(error: NotMade, last: Option<Ran>) -> NotMade {
    match error {
        NotMade::NotRun(error, _) => NotMade::NotRun(error, last.map(Box::new)),
        refused => refused,
    }
}

/// What the agents said of themselves.
fn seats_of(runner: &Runner) -> Vec<Seat> {
    match runner {
        Runner::Here => Vec::new(),
        #[cfg(feature = "agents")]
        Runner::Agents(crew) => {
            let seats = crew.hellos().map(|hello| Seat {
                threads: hello.threads.max(1),
                weight: hello.weight.max(1),
                measure_connections: hello.measure_connections,
            });
            seats.collect()
        }
    }
}
