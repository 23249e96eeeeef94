//! Runs in the manner of mutilate: one, a search or a scan, over agents or without them.

use std::fmt::Display;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use pummel_engine::resolve::ConnectError;
use pummel_engine::run::RunError;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::fleet::AgentAddress;
use pummel_fronts::fleet::Fleet;
use pummel_fronts::job::{Job, seed_of};
use pummel_fronts::mutilate::report::{local_rate, order_statistic_us, rate, scan_header, scan_row};
use pummel_fronts::mutilate::style::{FATAL, MutilateStyle, is_broken, line};
use pummel_fronts::mutilate::{NAME, ProcessSettings, Runs, Series};
use pummel_fronts::style::{Style, StyleOutput};
use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::time::{Nanos, SECOND};
use pummel_measure::measurement::{Measurement, Status};

use crate::job::detection::Detection;
use crate::job::driver::{Driver, Extras};
use crate::job::outlets::FrontFiles;
use crate::job::rate_search::{Halving, steps};
use crate::job::runner::{Dealing, NotRun, Runner};
use crate::job::series::{Finished, RunSeries, SeriesRun, SeriesRunner, SeriesSide, ServerCare};
use crate::stderr::say;

/// How long to wait for agents that are there.
const AGENT_PATIENCE_NS: Nanos = 10 * SECOND;

/// How long to wait for agents that are started for the run: logging in, and copying the program, take their time.
const LAUNCH_PATIENCE_NS: Nanos = 60 * SECOND;

/// Makes the runs of a command line that was read when the clock said `started`.
pub fn follow_runs(runs: &Runs, started: Nanos) -> Exit {
    let style = MutilateStyle::new(runs, started, introduction(runs));
    fleet_of(runs).map_or_else(|exit| exit, |fleet| follow(runs, fleet, style))
}

/// The agents of a command line; `None` where it names none. The reason is said where this build has no agents.
fn fleet_of(runs: &Runs) -> Result<Option<Fleet>, Exit> {
    if runs.agents.is_empty() {
        return Ok(None);
    }
    if !cfg!(feature = "agents") {
        say(line("--agent (-a): this pummel was built without agents"));
        return Err(FATAL);
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

/// Makes the runs of a command line, and writes what comes of them.
fn follow<'a>(runs: &'a Runs, fleet: Option<Fleet>, mut style: MutilateStyle<'a>) -> Exit {
    let job = Job { fleet, ..runs.job.clone() };
    let saved = runs.display.save.clone().filter(|_| runs.saves());
    let files = FrontFiles { log: None, own: saved.map(|path| ("--save", path)).into_iter().collect() };
    let extras = Extras { files, password: runs.password(), always_reads_inputs: true, ..Extras::default() };
    let mut driver = match Driver::prepare(&job, &extras, &style) {
        Ok(driver) => driver,
        Err(exit) => return exit,
    };
    if let Some((threads, cpus)) = runs.threads_too_many().filter(|_| !runs.display.quiet) {
        say_line(
            &mut driver,
            format_args!(
                "WARNING: {threads} threads spin on {cpus} CPUs and take turns, which adds to every latency: --blocking (-B) \
                 sleeps instead"
            ),
        );
    }
    let agents = match driver.runner() {
        Ok(runner) => settings_of_agents(runner, runs.threads()),
        Err(error) => return driver.conclude(&job.plan, Err(error), &mut style),
    };
    let side = SeriesSide::new(ServerCare::None, Detection::default(), true);
    let mut runner = SeriesRunner::new(vec![driver], vec![side], runs.display.quiet);
    let mut series = RunsAtRates::new(runs, agents, &mut style);
    let state = runner.run(&mut series, |_, _| {});
    let RunsAtRates { rates, last, is_cut, completes, .. } = series;
    let mut driver = runner.into_drivers().swap_remove(0);
    if let Rates::Search { search, nth, limit_us } = rates
        && let Some(peak) = search.peak().filter(|_| !is_cut && state.end.is_none())
    {
        style.note_peak(peak);
        let why = if completes { "" } else { ": no request was completed" };
        if !search.met() {
            say_line(
                &mut driver,
                format_args!(
                    "no rate was found at which {nth}% of requests are faster than {limit_us}us{why}"
                ),
            );
        }
    }
    match (last, state.end) {
        (Some(ran), end) => {
            // What was measured before stays the result.
            if let Some(error) = end {
                say(line(style.note_failure(&error.told())));
            }
            driver.conclude(&ran.plan, Ok(ran.measurement), &mut style)
        }
        // The agents are there and the files are checked: what was written before is the result of another run.
        (None, end) => driver.conclude(&job.plan, Err(end.unwrap_or(NotRun::Interrupted)), &mut style),
    }
}

fn say_line(driver: &mut Driver<'_>, text: impl Display) {
    let mut out = StyleOutput::default();
    out.line(line(text));
    driver.say(&mut out);
}

/// The rates of a command line.
enum Rates {
    /// The rate of the options, before its run.
    Single(Option<u32>),
    /// Rates that lead to the greatest at which an order statistic, in per cent, stays below a limit.
    Search { search: Halving, nth: u32, limit_us: u32 },
    /// All rates at a distance.
    Scan(Box<dyn Iterator<Item = u32>>),
}

/// The runs of a command line. As in the original, a run that fell short is followed by the next one unless it is broken.
struct RunsAtRates<'a, 's> {
    runs: &'a Runs,
    /// The settings of the agents.
    agents: Vec<ProcessSettings>,
    rates: Rates,
    style: &'s mut MutilateStyle<'a>,
    /// The rate of the last run, in requests per second, and the number of runs that were begun.
    asked: u32,
    begun: u32,
    last: Option<Finished>,
    /// Whether requests of this process were completed in any run.
    completes: bool,
    /// Whether the last run lets none follow.
    is_cut: bool,
}

impl<'a, 's> RunsAtRates<'a, 's> {
    fn new(runs: &'a Runs, agents: Vec<ProcessSettings>, style: &'s mut MutilateStyle<'a>) -> Self {
        let rates = match runs.series {
            Series::Single => Rates::Single(Some(runs.qps())),
            Series::Search { nth, limit_us } => {
                Rates::Search { search: Halving::new(limit_us.into(), runs.qps()), nth, limit_us }
            }
            Series::Scan { min, max, step } => Rates::Scan(Box::new(steps(min, max, step))),
        };
        RunsAtRates {
            runs,
            agents,
            rates,
            style,
            asked: 0,
            begun: 0,
            last: None,
            completes: false,
            is_cut: false,
        }
    }

    /// The head of what a series says.
    fn introduce(&self, out: &mut StyleOutput) {
        match &self.rates {
            Rates::Single(_) => {}
            Rates::Search { nth, limit_us, .. } => {
                out.line(line(format_args!("Search-mode.  Find QPS @ {limit_us}us {nth}th percentile.")));
            }
            Rates::Scan(_) => out.report(scan_header(&self.style.layout())),
        }
    }
}

impl RunSeries for RunsAtRates<'_, '_> {
    fn next_run(&mut self, out: &mut StyleOutput) -> Result<Option<SeriesRun>, NotRun> {
        if self.begun == 0 {
            self.introduce(out);
        }
        let next = match &mut self.rates {
            _ if self.is_cut => None,
            Rates::Single(rate) => rate.take(),
            Rates::Search { search, .. } => search.next_rate(),
            Rates::Scan(rates) => rates.next(),
        };
        let Some(asked) = next else { return Ok(None) };
        let shared = self.runs.shared_plan_at(asked, &self.agents);
        let mut shared = shared.map_err(|refusal| NotRun::Agents(refusal.to_string()))?;
        if !self.runs.agents.is_empty() {
            shared.plan = resolved(shared.plan)?;
        }
        let seed = seed_of(shared.plan.seed, self.begun);
        (self.asked, self.begun) = (asked, self.begun + 1);
        let dealing = Dealing::ByGroups { agents: shared.agents, own: shared.own };
        Ok(Some(SeriesRun { dealing, ..SeriesRun::new(&shared.plan, seed) }))
    }

    fn counts(&mut self, _: &ValidPlan, _: &mut Measurement) -> bool {
        true
    }

    fn add(&mut self, ran: Finished, out: &mut StyleOutput) -> Result<(), NotRun> {
        self.completes |= local_rate(&ran.plan, &ran.measurement, &ran.summary).1 > 0;
        self.is_cut = ran.measurement.status == Status::Interrupted || is_broken(&ran.plan, &ran.measurement);
        let (asked, report) = (self.asked, ran.report(NAME));
        match &mut self.rates {
            Rates::Search { search, nth, .. } => {
                let nth_us = order_statistic_us(&ran.plan, &ran.measurement, (*nth).into());
                let rate = rate(&report);
                if is_measured(&ran) && self.begun == 1 {
                    out.line(line(format_args!("peak qps = {}, nth = {nth_us:.1}", rate as u64)));
                } else if is_measured(&ran) {
                    let words = format!("cur_qps = {asked}, get_qps = {rate:.6}, nth = {nth_us:.6}");
                    out.line(line(words));
                }
                search.handle(rate, nth_us);
            }
            Rates::Scan(_) if is_measured(&ran) => {
                out.report(scan_row(&report, &self.style.layout(), asked));
            }
            Rates::Scan(_) | Rates::Single(_) => {}
        }
        self.last = Some(ran);
        Ok(())
    }

    fn style(&mut self) -> Option<&mut dyn Style> {
        Some(self.style)
    }
}

/// Whether anything was measured: a load that fails, or an interruption, may come before that.
fn is_measured(ran: &Finished) -> bool {
    ran.measurement.started_unix_ns > 0
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

/// The first of several addresses at which something listens; the first of all where nothing does, since agents may reach it. No
/// connection is tried where there is one address.
fn first_listening(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    let listens = |address: &&SocketAddr| TcpStream::connect_timeout(address, REACH_TIMEOUT).is_ok();
    let reached = match addresses {
        [] | [_] => None,
        several => several.iter().find(listens),
    };
    reached.or(addresses.first()).copied()
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
    use crate::job::series::tests::{asked, finished, inputs};
    use pummel_fronts::mutilate::{MutilateCommand, read};
    use pummel_fronts::style::Word;
    use pummel_measure::reason::Reason;

    /// Makes the series of a command line.
    fn with_series<T>(words: &str, test: impl FnOnce(&mut RunsAtRates<'_, '_>) -> T) -> T {
        let words = words.split(' ').map(str::to_owned);
        let Ok(MutilateCommand::Runs(runs)) = read(words, &inputs(), &[0]) else { panic!("it makes runs") };
        let mut style = MutilateStyle::new(&runs, 0, Vec::new());
        test(&mut RunsAtRates::new(&runs, Vec::new(), &mut style))
    }

    #[test]
    fn a_scan_has_a_head_and_a_row_for_each_rate_and_ends_with_the_first_interruption() {
        with_series("-s a -t 1 --scan=500:1500:500", |series| {
            let mut out = StyleOutput::default();
            let run = series.next_run(&mut out).expect("a run").expect("a run");
            series.add(finished(&run), &mut out).expect("it is taken");
            let printed = out.take();
            assert!(matches!(&printed[..], [Word::Report(_), Word::Report(_)]), "a head and a row");
            let rates = asked(series, 1).iter().map(|run| run.plan.groups[0].rate).collect::<Vec<_>>();
            assert_eq!(rates, [Some(1_000.0)]);
            let run = series.next_run(&mut out).expect("a run").expect("a run");
            let mut cut = finished(&run);
            cut.measurement.mark(Status::Interrupted, Reason::Interrupted);
            assert!(series.counts(&cut.plan, &mut cut.measurement), "the original reports it");
            series.add(cut, &mut out).expect("it is taken");
            assert!(series.is_cut && series.next_run(&mut out).expect("no error").is_none());
        });
    }

    #[test]
    fn a_search_says_its_peak_first_and_its_steps_after_it() {
        with_series("-s a -t 1 --search=95:1", |series| {
            let mut out = StyleOutput::default();
            for _ in 0..2 {
                let run = series.next_run(&mut out).expect("a run").expect("a run");
                series.add(finished(&run), &mut out).expect("it is taken");
            }
            let lines = out.take().into_iter().filter_map(|word| match word {
                Word::Line(text) => Some(text),
                _ => None,
            });
            let lines: Vec<String> = lines.collect();
            let begins =
                ["Search-mode.  Find QPS @ 1us 95th", "peak qps = 1000, nth =", "cur_qps = 500, get_qps ="];
            assert_eq!(lines.len(), begins.len(), "{lines:?}");
            for (text, begin) in lines.iter().zip(begins) {
                assert!(text.starts_with(&line(begin)), "{text}");
            }
        });
    }

    #[test]
    fn one_run_has_the_rate_of_its_options() {
        with_series("-s a -t 1 -q 300", |series| {
            let rates = asked(series, 9).iter().map(|run| run.plan.groups[0].rate).collect::<Vec<_>>();
            assert_eq!(rates, [Some(300.0)]);
        });
    }

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
