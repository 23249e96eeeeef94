//! `pummel mutilate`: follows its command line, which asks for one run or several, or for an agent.

use std::ffi::OsString;
use std::fmt::Display;
use std::io;
#[cfg(feature = "agents")]
use std::net::Ipv4Addr;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use pummel_engine::clock;
use pummel_engine::resolve::ConnectError;
use pummel_engine::run::RunError;
use pummel_engine::sys;
#[cfg(feature = "agents")]
use pummel_logic::plan::share::ProcessShare;
use pummel_logic::plan::validate::ValidPlan;
#[cfg(feature = "agents")]
use pummel_logic::plan::{Group, Plan};
#[cfg(feature = "agents")]
use pummel_logic::time::{Nanos, SECOND};
use pummel_measure::measurement::{Measurement, Status};
use pummel_measure::summary::Summary;

#[cfg(feature = "agents")]
use crate::agent::files::AllowedFiles;
#[cfg(feature = "agents")]
use crate::agent::limits::Limits;
#[cfg(feature = "agents")]
use crate::agent::listener;
#[cfg(feature = "agents")]
use crate::agent::network::Network;
#[cfg(feature = "agents")]
use crate::agent::overrides::{LocalOverrides, OrderLog};
#[cfg(feature = "agents")]
use crate::agent::policy::AccessPolicy;
#[cfg(feature = "agents")]
use crate::agent::service::{AgentConfig, serve};
use crate::build_info::BUILD;
#[cfg(feature = "agents")]
use crate::commands::agent::guarded as guarded_config;
use crate::compat::mutilate::report::{local_rate, order_statistic_us, rate, scan_header, scan_row};
use crate::compat::mutilate::style::{FATAL, MutilateStyle, is_broken, line};
use crate::compat::mutilate::{
    AgentOptions, HELP, MutilateCommand, ProcessSettings, Refusal, Runs, Series, VERSION, read,
};
use crate::exit_status::Exit;
#[cfg(feature = "agents")]
use crate::job::agent_variables::{self, AgentVariables, ServingVariables};
use crate::job::driver::{Driver, Extras};
#[cfg(feature = "agents")]
use crate::job::fleet::AgentAddress;
use crate::job::fleet::Fleet;
use crate::job::outlets::FrontFiles;
use crate::job::rate_search::{Tried, halving, steps};
use crate::job::runner::{Dealing, NotRun, Runner};
use crate::job::style::StyleOutput;
use crate::job::{Front, FrontInputs, Job, seed_of};
use crate::output::print;
use crate::stderr::say;
#[cfg(feature = "agents")]
use crate::values;
use pummel_report::{Ending, Report};

/// How long to wait for agents that are there.
#[cfg(feature = "agents")]
const AGENT_PATIENCE_NS: Nanos = 10 * SECOND;

/// How long to wait for agents that are started for the run: logging in, and copying the program, take their time.
#[cfg(feature = "agents")]
const LAUNCH_PATIENCE_NS: Nanos = 60 * SECOND;

/// Follows the words behind `program`, which is how the parser's errors begin.
pub fn mutilate(program: &str, words: &[OsString], inputs: &FrontInputs) -> Exit {
    let started = clock::now();
    let cpus = sys::allowed_cpus().unwrap_or_default();
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    match read(words, inputs, &cpus) {
        Ok(MutilateCommand::Help) => printed(HELP),
        Ok(MutilateCommand::Version) => printed(VERSION),
        Ok(MutilateCommand::Agent(asked)) => agent(&asked, &cpus),
        Ok(MutilateCommand::Runs(runs)) => {
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
    let are_started = runs.agents.iter().any(|agent| matches!(agent, AgentAddress::Started(_)));
    Ok(Some(Fleet {
        addresses: runs.agents.clone(),
        patience_ns: if are_started { LAUNCH_PATIENCE_NS } else { AGENT_PATIENCE_NS },
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
fn agent(_asked: &AgentOptions, _cpus: &[usize]) -> Exit {
    fatal("--agentmode (-A): this pummel was built without agents")
}

/// `-A`: waits for a master. It listens beyond the loopback addresses only with a token or TLS, by which it knows its peers.
#[cfg(feature = "agents")]
fn agent(asked: &AgentOptions, cpus: &[usize]) -> Exit {
    let served = agent_config(asked, cpus).and_then(|config| {
        let interrupts =
            sys::on_interrupt().map_err(|error| format!("signals cannot be handled: {error}"))?;
        serve(config, interrupts).map_err(|error| error.to_string())
    });
    match served {
        Ok(()) => Exit::Complete,
        Err(error) => fatal(error),
    }
}

/// What an agent does by its command line and the variables of its environment.
///
/// # Errors
/// Returns the variable whose value cannot be used, with the reason.
#[cfg(feature = "agents")]
fn agent_config(asked: &AgentOptions, cpus: &[usize]) -> Result<AgentConfig, String> {
    let variables = AgentVariables::of_process()?;
    let serving = variables.serving;
    let tls = variables.tls.map(|files| listener::secure(&files.cert, &files.key, &files.ca)).transpose()?;
    let token = variables
        .token_file
        .map(|path| listener::Token::read(&path).map_err(|why| format!("PUMMEL_AGENT_TOKEN_FILE: {why}")))
        .transpose()?;
    let guarded = tls.is_some() || token.is_some();
    let listen = match &serving.listen {
        Some(text) => listen_address(text, asked.port)?,
        None if guarded => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), asked.port),
        None => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), asked.port),
    };
    if !guarded && !listen.ip().to_canonical().is_loopback() {
        return Err(format!(
            "PUMMEL_AGENT_LISTEN: {listen} is not a loopback address, so PUMMEL_AGENT_TOKEN_FILE has to name a file with a token that \
             master and agents share: an open agent would send load wherever any peer wants"
        ));
    }
    if !guarded {
        say(line(format_args!(
            "listening on the loopback address only; to listen on all, set PUMMEL_AGENT_TOKEN_FILE to a file with a token that \
             master and agents share"
        )));
    }
    let overrides = LocalOverrides {
        threads: asked.settings.threads,
        weight: asked.settings.weight,
        measure_connections: asked.settings.measure_connections,
        blocking: asked.blocking,
        cpus: if asked.pinned { cpus.to_vec() } else { Vec::new() },
    };
    let files = AllowedFiles::below(serving.directory.as_slice())
        .map_err(|(path, error)| format!("PUMMEL_ALLOW_FILE: {}: {error}", path.display()))?;
    let targets = serving.targets.as_deref().map_or(Ok(Vec::new()), networks)?;
    let limits = limits(&serving)?;
    let option_names = &agent_variables::OF_AGENTS;
    let policy = AccessPolicy { tls, token, targets, files, limits, option_names };
    let config = guarded_config(listen, policy, overrides).map_err(|error| error.to_string())?;
    Ok(AgentConfig {
        snapshot: None,
        on_order: (asked.verbose > 0 && !asked.quiet).then_some(OrderLog(order_lines)),
        ..config
    })
}

/// What a plan may take of an agent's machine.
///
/// # Errors
/// Returns the variable whose value cannot be read, with what is accepted.
#[cfg(feature = "agents")]
fn limits(serving: &ServingVariables) -> Result<Limits, String> {
    let count = |name: &str, text: &Option<String>| {
        let read = text.as_deref().map(values::count).transpose();
        read.map_err(|why| format!("{name}: '{}': {why}", text.as_deref().unwrap_or_default()))
    };
    let usual = Limits::default();
    Ok(Limits {
        memory_bytes: count("PUMMEL_AGENT_MAX_MEMORY", &serving.memory)?.unwrap_or(usual.memory_bytes),
        connections: count("PUMMEL_AGENT_MAX_CONNECTIONS", &serving.connections)?,
    })
}

/// Where an agent listens: an address with a port, or with the port of `-p`.
#[cfg(feature = "agents")]
fn listen_address(text: &str, port: u16) -> Result<SocketAddr, String> {
    let with_own_port =
        || text.trim_matches(['[', ']']).parse().map(|address| SocketAddr::new(address, port));
    text.parse().or_else(|_| with_own_port()).map_err(|_| {
        format!("PUMMEL_AGENT_LISTEN: '{text}' is no address: ADDRESS or ADDRESS:PORT is expected, such as 0.0.0.0 or [::]:5556")
    })
}

#[cfg(feature = "agents")]
fn networks(text: &str) -> Result<Vec<Network>, String> {
    let network = |part: &str| {
        part.trim().parse().map_err(|_| {
            format!(
                "PUMMEL_ALLOW_TARGET: '{part}' is no network: ADDRESS/BITS is expected, such as 10.0.0.0/8"
            )
        })
    };
    text.split(',').map(network).collect()
}

/// What an agent says of an order with `-v`: its servers, and its part of the rate.
#[cfg(feature = "agents")]
fn order_lines(plan: &Plan, share: &ProcessShare, weight: u32) -> Vec<String> {
    let mut lines: Vec<String> =
        plan.servers.iter().map(|server| line(format_args!("Got server = {server}"))).collect();
    let is_own = |clients: &std::ops::Range<u64>| !clients.is_empty();
    let own =
        plan.groups.iter().zip(&share.clients).find(|(_, clients)| is_own(clients)).map(|(group, _)| group);
    if let Some(Group { rate: Some(rate), clients, .. }) = own {
        let agents = plan.groups.iter().filter(|group| !group.policy.here);
        let qps: f64 = agents.filter_map(|group| group.rate).sum();
        let lambda = rate / f64::from(*clients);
        let denom = (qps * f64::from(weight) / lambda).round();
        lines.push(line(format_args!("lambda_denom = {denom:.0}, lambda = {lambda:.6}, qps = {qps:.0}")));
    }
    lines
}

/// What is said before the first run at the highest level: names are resolved for it.
fn introduction(runs: &Runs) -> Vec<String> {
    if runs.display.verbose < 2 {
        return Vec::new();
    }
    let plan = &runs.job.plan;
    let resolved = plan.servers.iter().filter(|server| !server.starts_with('/')).filter_map(|server| {
        let host = server.rsplit_once(':').map_or(server.as_str(), |(host, _)| host);
        let first = server.to_socket_addrs().ok().and_then(|mut addresses| addresses.next())?;
        Some(format!("Resolved {host} to {first}"))
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
    let files = FrontFiles { log: None, samples: runs.display.save.clone().filter(|_| runs.saves()) };
    let extras = Extras { files, password: runs.password(), always_reads_inputs: true, ..Extras::default() };
    let driver = match Driver::prepare(&job, &extras, &style) {
        Ok(driver) => driver,
        Err(exit) => return exit,
    };
    let mut series = SeriesRunner { runs, driver, agent_settings: None, made: 0, style: &mut style };
    if let Some((threads, cpus)) = runs.threads_too_many().filter(|_| !runs.display.quiet) {
        series.say(format_args!(
            "WARNING: {threads} threads spin on {cpus} CPUs and take turns, which adds to every latency: --blocking (-B) \
             sleeps instead"
        ));
    }
    let last = match runs.series {
        Series::Single => series.run_at(runs.qps()),
        Series::Search { nth, limit_us } => series.search(nth, limit_us),
        Series::Scan { min, max, step } => series.scan(min, max, step),
    };
    let SeriesRunner { driver, .. } = series;
    match last {
        Ok(ran) => driver.conclude(&ran.plan, Ok(ran.measurement), &mut style),
        // The agents are there and the files are checked: what was written before is the result of another run.
        Err(NotMade::Refused(text)) => driver.conclude(&job.plan, Err(NotRun::Agents(text)), &mut style),
        Err(NotMade::NotRun(error, None)) => driver.conclude(&job.plan, Err(error), &mut style),
        // What was measured before stays the result.
        Err(NotMade::NotRun(error, Some(ran))) => {
            say(line(style.note_failure(&error)));
            driver.conclude(&ran.plan, Ok(ran.measurement), &mut style)
        }
    }
}

/// The runs of a command line.
struct SeriesRunner<'a, 'd, 's> {
    runs: &'a Runs,
    driver: Driver<'d>,
    /// What the agents said of themselves; `None` before they were asked.
    agent_settings: Option<Vec<ProcessSettings>>,
    /// Runs that were begun.
    made: u32,
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
            build: BUILD,
            ending: Ending::Open,
        }
    }

    /// Whether requests of this process were completed.
    fn completes_requests(&self) -> bool {
        local_rate(&self.plan, &self.measurement, &self.summary).1 > 0
    }

    /// Whether anything was measured: a load that fails, or an interruption, may come before that.
    fn measured(&self) -> bool {
        self.measurement.started_unix_ns > 0
    }

    /// Whether another run may follow.
    fn goes_on(&self) -> bool {
        self.measurement.status != Status::Interrupted && !is_broken(&self.plan, &self.measurement)
    }
}

impl SeriesRunner<'_, '_, '_> {
    fn say(&mut self, text: impl Display) {
        let mut out = StyleOutput::default();
        out.line(line(text));
        self.driver.say(&mut out);
    }

    fn search(&mut self, nth: u32, limit_us: u32) -> Result<Ran, NotMade> {
        let quiet = self.runs.display.quiet;
        if !quiet {
            self.say(format_args!("Search-mode.  Find QPS @ {limit_us}us {nth}th percentile."));
        }
        let (mut last, mut ended, mut completes) = (None, None, false);
        let found = halving(limit_us.into(), self.runs.qps(), |asked| {
            let is_first = last.is_none();
            let ran = match self.run_at(asked) {
                Ok(ran) => ran,
                Err(error) => {
                    ended = Some(error);
                    return None;
                }
            };
            let (rate, nth_us) =
                (rate(&ran.report()), order_statistic_us(&ran.plan, &ran.measurement, nth.into()));
            completes |= ran.completes_requests();
            let is_said = !quiet && ran.measured();
            if is_said && is_first {
                self.say(format_args!("peak qps = {}, nth = {nth_us:.1}", rate as u64));
            } else if is_said {
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
            let why = if completes { "" } else { ": no request was completed" };
            if !found.met {
                self.say(format_args!(
                    "no rate was found at which {nth}% of requests are faster than {limit_us}us{why}"
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
            if ran.measured() {
                self.print(scan_row(&ran.report(), &layout, asked));
            }
            if rates.peek().is_none() || !ran.goes_on() {
                return Ok(ran);
            }
            last = Some(ran);
        }
    }

    fn print(&mut self, text: String) {
        let mut out = StyleOutput::default();
        out.report(text);
        self.driver.say(&mut out);
    }

    fn run_at(&mut self, qps: u32) -> Result<Ran, NotMade> {
        if self.agent_settings.is_none() {
            self.agent_settings = Some(settings_of_agents(self.driver.runner()?, self.runs.threads()));
        }
        let agents = self.agent_settings.as_deref().unwrap_or_default();
        let mut shared =
            self.runs.shared_plan_at(qps, agents).map_err(|refusal| NotMade::Refused(refusal.to_string()))?;
        if !self.runs.agents.is_empty() {
            shared.plan = resolved(shared.plan)?;
        }
        shared.plan = with_seed_of(shared.plan, self.made);
        self.made += 1;
        let dealing = Dealing::ByGroups { agents: shared.agents, own: shared.own };
        let measurement = self.driver.run(&shared.plan, &dealing, self.style)?;
        let summary = Summary::of(&measurement, &shared.plan);
        Ok(Ran { plan: shared.plan, measurement, summary })
    }
}

/// The plan as the run of this number has it: with a seed of its own, since runs with the same draws would err together.
fn with_seed_of(plan: ValidPlan, number: u32) -> ValidPlan {
    let mut plan = plan.into_plan();
    plan.seed = seed_of(plan.seed, number);
    plan.validate().expect("a plan that is valid is so with every seed")
}

/// How long an address of a name with several may take to be reached.
const REACH_TIMEOUT: Duration = Duration::from_secs(1);

/// The plan with an address of each server in place of its name, as the original sends it to its agents: names may mean
/// other machines there, or none. Of several addresses it is the first at which something listens.
///
/// # Errors
/// Returns [`NotRun::Here`] when a name has no address.
fn resolved(plan: ValidPlan) -> Result<ValidPlan, NotRun> {
    let mut plan = plan.into_plan();
    for server in plan.servers.iter_mut().filter(|server| !server.starts_with('/')) {
        let found = server.to_socket_addrs().and_then(|addresses| {
            first_listening(&addresses.collect::<Vec<_>>())
                .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it has no address"))
        });
        let address = found.map_err(|error| {
            let server = server.clone();
            NotRun::Here(RunError::Connect(ConnectError::Unresolved { server, error }))
        })?;
        *server = address.to_string();
    }
    Ok(plan.validate().expect("what a plan means does not depend on where its servers are"))
}

/// The first of several addresses at which something listens; the first of all where nothing does, which agents may reach all
/// the same. A single address is not tried.
fn first_listening(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    let listens = |address: &&SocketAddr| TcpStream::connect_timeout(address, REACH_TIMEOUT).is_ok();
    let reached = match addresses {
        [] | [_] => None,
        several => several.iter().find(listens),
    };
    reached.or(addresses.first()).copied()
}

/// Why there is no further run in a series whose last run was this one.
fn after(error: NotMade, last: Option<Ran>) -> NotMade {
    match error {
        NotMade::NotRun(error, _) => NotMade::NotRun(error, last.map(Box::new)),
        refused => refused,
    }
}

/// What the agents said of themselves. One whose own command line does not say its threads has as many as the master.
#[cfg_attr(not(feature = "agents"), expect(unused_variables, reason = "there are no agents to ask"))]
fn settings_of_agents(runner: &Runner, threads: u32) -> Vec<ProcessSettings> {
    match runner {
        Runner::Here => Vec::new(),
        #[cfg(feature = "agents")]
        Runner::Agents(agents) => {
            let settings = agents.hellos().map(|hello| ProcessSettings {
                threads: if hello.threads == 0 { threads } else { hello.threads },
                weight: hello.weight.max(1),
                measure_connections: hello.measure_connections,
            });
            settings.collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn of_several_addresses_the_first_is_taken_at_which_something_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let here = listener.local_addr().expect("it is bound");
        // Ports of addresses of loopback at which nothing listens.
        let deaf = ["127.0.0.2", "127.0.0.3"]
            .map(|host| SocketAddr::new(host.parse().expect("an address"), here.port()));
        assert_eq!(first_listening(&[deaf[0], here]), Some(here));
        assert_eq!(first_listening(&[here, deaf[0]]), Some(here));
        assert_eq!(first_listening(&deaf), Some(deaf[0]));
        assert_eq!(first_listening(&deaf[1..]), Some(deaf[1]));
        assert_eq!(first_listening(&[]), None);
    }
}
