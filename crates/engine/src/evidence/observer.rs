//! The observer of a run: a thread that is no worker and reads servers, this machine and its connections before and after
//! the measured phases.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use pummel_logic::plan::Plan;
use pummel_logic::protocol::handshake::Handshake;
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_measure::evidence::proc::threads_between;
use pummel_measure::evidence::provenance::list_of;
use pummel_measure::evidence::redis::OwnWork;
use pummel_measure::evidence::reply::{Dialect, Question};
use pummel_measure::evidence::{
    ConnectionLimit, Evidence, MachineEvidence, ServerEvidence, ServerReading, ThreadUse, memcached, redis,
};
use pummel_measure::misses::may_have_other_keys;

use super::connections::{Connections, OwnConnections, OwnCookies};
use super::eviction_watch::{EvictionWatch, WatchState};
use super::inquiry::{ServerReport, StatisticsInquiry};
use super::machine::{Machine, MachineReading};
use super::moments::{Moment, Moments, Newest};
use super::periodic_readings::PeriodicReadings;
use super::process::{addresses_of, listen_drops, process_of, resident_bytes_of, threads_of};
use crate::backend::tls::Setup;
use crate::clock;
use crate::resolve::Server;
use crate::sys;

/// Longest time that the connections to servers may take to open, in nanoseconds.
const OPEN_MAX_NS: Nanos = SECOND;

/// Longest time for the replies of healthy servers, in nanoseconds. Phases wait that long for them.
const REPLY_NS: Nanos = 100 * MILLISECOND;

/// Longest time for a server that does not answer, in nanoseconds; nothing waits for it.
const SILENCE_NS: Nanos = SECOND;

/// Time after which a server that was full and refused a question is asked again, in nanoseconds.
const AGAIN_NS: Nanos = 50 * MILLISECOND;

/// The servers that an observer looks at, and its way to them.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The servers that are asked.
    pub servers: Arc<[Server]>,
    /// The servers that get the load, to which the run's own connections go.
    pub loaded: Arc<[Server]>,
    /// Encryption of the side connections.
    pub tls: Option<Setup>,
    /// The login of the side connections.
    pub handshake: Arc<Handshake>,
    /// Whether this process asks all servers, or only those on its own machine.
    pub asks_all: bool,
}

/// Findings of an observer in a run.
#[derive(Debug, Default)]
pub struct Findings {
    /// The evidence; `None` if no measured phase began.
    pub evidence: Option<Evidence>,
    /// The limit of connections that each server reports behind a run of which it refused some; empty for other runs.
    pub limits: Vec<ConnectionLimit>,
}

/// Observes a run until it is over. The statistics of servers within the measured phases are also left in `newest`.
/// `stopped` returns whether the run was stopped.
pub fn observe(
    plan: &Plan,
    observed: Observed,
    moments: &Moments,
    newest: &Newest,
    stopped: &dyn Fn() -> bool,
) -> Findings {
    Observer::new(plan, observed).run(&RunWatch { moments, newest, stopped })
}

/// The run as its observer sees it.
struct RunWatch<'a> {
    moments: &'a Moments,
    newest: &'a Newest,
    stopped: &'a dyn Fn() -> bool,
}

struct Observer {
    inquiry: Option<StatisticsInquiry>,
    /// The servers that this process asks, by their numbers in the inquiry, and all servers by their names.
    asked: Vec<Option<usize>>,
    servers: Arc<[Server]>,
    addresses: HashSet<SocketAddr>,
    /// The run's own connections that were seen.
    own_cookies: OwnCookies,
    dialect: Dialect,
    over_udp: bool,
    machine: Machine,
    /// Whether all servers that get the load are local.
    servers_are_local: bool,
    /// The processes of the servers that run on this machine, once they are found.
    pids: Vec<Option<u32>>,
    /// Why no server can be asked.
    cannot_ask: Option<String>,
    before: Option<Observation>,
    after: Option<Observation>,
    /// The intervals in which servers are asked too; `None` where that is not wanted of this process.
    intervals: Option<PeriodicReadings>,
    /// The watch for the first eviction; `None` if this process does not have the task.
    eviction_watch: Option<EvictionWatch>,
}

/// Readings at one moment.
struct Observation {
    /// Time at which the run stopped waiting for the look, on the monotonic clock.
    released_at: Nanos,
    machine: MachineReading,
    servers: Vec<ServerObservation>,
}

/// Readings of one server at one moment.
struct ServerObservation {
    report: Result<ServerReport, String>,
    /// Whether the server answered before the run went on.
    is_in_time: bool,
    /// The threads of the server's process; absent for a server on another machine.
    threads: Option<Result<Threads, String>>,
    /// Attempts that the server's listening sockets have turned away; absent where the number is not known.
    listen_drops: Option<u64>,
}

/// The threads of a process at one moment.
struct Threads {
    at: Nanos,
    /// CPUs that the process may run on.
    cpus: Option<String>,
    /// Resident memory of the process, in bytes.
    resident_bytes: Option<u64>,
    times: BTreeMap<u32, ThreadUse>,
}

impl Threads {
    fn read(pid: u32) -> Result<Threads, String> {
        let times = threads_of(pid).ok_or_else(|| format!("the threads of process {pid} cannot be seen"))?;
        let cpus = sys::allowed_cpus_of(pid).ok().map(|cpus| list_of(&cpus));
        Ok(Threads { at: clock::now(), cpus, resident_bytes: resident_bytes_of(pid), times })
    }
}

impl Observer {
    fn new(plan: &Plan, observed: Observed) -> Observer {
        let servers = observed.servers;
        let mut mine: Vec<Server> = Vec::new();
        let asked = servers.iter().map(|server| {
            (observed.asks_all || server.is_local()).then(|| {
                mine.push(server.clone());
                mine.len() - 1
            })
        });
        let asked = asked.collect();
        // A server that is no node of a cluster would count these questions among its errors.
        let of_nodes = [Question::SlotsByKeys, Question::SlotsByCpu];
        let mut hidden = if plan.route.deals_slots() { Vec::new() } else { of_nodes.to_vec() };
        if !may_have_other_keys(plan) {
            hidden.push(Question::UsualRecord);
        }
        let inquiry = StatisticsInquiry::new(plan, mine, observed.tls.as_ref(), observed.handshake, &hidden);
        let cannot_ask =
            inquiry.as_ref().err().map(|error| format!("no connection for its statistics: {error}"));
        let asks_all = observed.asks_all && inquiry.is_ok();
        let every_ns = plan.server_stats_ns.filter(|_| asks_all);
        let awaits_eviction = plan.adaptive.first_eviction && asks_all;
        Observer {
            inquiry: inquiry.ok(),
            asked,
            addresses: observed.loaded.iter().flat_map(addresses_of).collect(),
            pids: vec![None; servers.len()],
            own_cookies: OwnCookies::new(),
            dialect: Dialect::of(plan.protocol),
            over_udp: plan.uses_datagrams(),
            machine: Machine::new(),
            servers_are_local: observed.loaded.iter().all(Server::is_local),
            cannot_ask,
            before: None,
            after: None,
            intervals: every_ns.map(|every_ns| PeriodicReadings::new(every_ns, &servers)),
            eviction_watch: awaits_eviction.then(|| EvictionWatch::new(servers.len())),
            servers,
        }
    }

    /// Looks at every moment that is announced, in their order, until the run is over.
    fn run(mut self, watch: &RunWatch<'_>) -> Findings {
        let moments = watch.moments;
        let mut observed = Moment::Start;
        while observed < Moment::End {
            let Some(announced) = self.next_moment(moments, observed) else {
                match observed {
                    Moment::Before => self.tick(watch),
                    _ => self.look_for_eviction(watch),
                }
                continue;
            };
            if observed < Moment::Open && announced < Moment::End {
                self.open(watch);
                observed = Moment::Open;
            } else if announced == Moment::Before {
                let observation = self.look(watch, Moment::Before);
                if let Some(intervals) = &mut self.intervals {
                    intervals.begin(observation.released_at);
                }
                self.before = Some(observation);
                self.note_interval(|observer| observer.before.as_ref());
                observed = Moment::Before;
            } else {
                // A phase that began before it could be looked at is not looked at any more.
                if self.before.is_some() && self.after.is_none() {
                    self.after = Some(self.look(watch, Moment::After));
                    self.note_interval(|observer| observer.after.as_ref());
                }
                observed = announced;
            }
            moments.set_observed(observed);
        }
        let in_time = !moments.state().late;
        let limits = if moments.state().refused { self.read_limits() } else { Vec::new() };
        Findings { evidence: self.evidence(in_time), limits }
    }

    /// Asks the servers for their limits of connections. One that was full lets the question in as soon as it has closed the
    /// run's connections.
    fn read_limits(&mut self) -> Vec<ConnectionLimit> {
        let mut limits = vec![ConnectionLimit::default(); self.servers.len()];
        let Some(inquiry) = &mut self.inquiry else { return limits };
        inquiry.begin_tries();
        let end = clock::now().saturating_add(SILENCE_NS);
        loop {
            inquiry.ask();
            note(inquiry.listen(end, &|| true), &mut self.cannot_ask);
            let mut is_complete = true;
            for (limit, side) in limits.iter_mut().zip(&self.asked) {
                let Some(side) = *side else { continue };
                match inquiry.take(side) {
                    Ok(report) => *limit = ConnectionLimit::of(&report.facts, &report.settings),
                    Err(_) => is_complete = false,
                }
            }
            let now = clock::now();
            if is_complete || now >= end {
                return limits;
            }
            note(inquiry.receive_until(end.min(now.saturating_add(AGAIN_NS))), &mut self.cannot_ask);
        }
    }

    /// Waits for the next moment; `None` where servers are to be asked before it comes.
    fn next_moment(&self, moments: &Moments, observed: Moment) -> Option<Moment> {
        match &self.intervals {
            Some(intervals) if observed == Moment::Before => {
                let left = intervals.next_at.saturating_sub(clock::now());
                moments.wait_for_later_within(observed, Duration::from_nanos(left))
            }
            _ => match self.eviction_watch.as_ref().and_then(EvictionWatch::next_at) {
                Some(next_at) if observed == Moment::Open => {
                    let left = next_at.saturating_sub(clock::now());
                    moments.wait_for_later_within(observed, Duration::from_nanos(left))
                }
                _ => Some(moments.wait_for_later(observed)),
            },
        }
    }

    /// Asks the servers before the measured phases whether one has evicted a record.
    fn look_for_eviction(&mut self, watch: &RunWatch<'_>) {
        let (Some(evictions), Some(inquiry)) = (&mut self.eviction_watch, &mut self.inquiry) else { return };
        let goes_on = || watch.moments.announced() <= Moment::Open && !(watch.stopped)();
        inquiry.ask_those_that_answered();
        note(inquiry.listen(clock::now().saturating_add(SILENCE_NS), &goes_on), &mut self.cannot_ask);
        for (number, side) in self.asked.iter().enumerate() {
            let Some(side) = *side else { continue };
            let reading = |before: &_, after: &_| reading_of(self.dialect, before, after);
            evictions.take_in(number, inquiry.take(side), reading);
        }
        if !goes_on() {
            // The warm-up is over. A further round would be over at once, and the next one due.
            return evictions.end();
        }
        match evictions.end_round(clock::now()) {
            WatchState::Nothing => {}
            WatchState::Evicted => watch.moments.state().evicted = true,
            WatchState::Unreported(why) => watch.moments.state().unreported = Some(why.clone()),
        }
    }

    /// Asks the servers within the measured phases.
    fn tick(&mut self, watch: &RunWatch<'_>) {
        let (Some(intervals), Some(inquiry)) = (&mut self.intervals, &mut self.inquiry) else { return };
        let goes_on = || watch.moments.announced() <= Moment::Before && !(watch.stopped)();
        let until = clock::now().saturating_add(SILENCE_NS.min(intervals.every_ns));
        inquiry.ask_those_that_answered();
        note(inquiry.listen(until, &goes_on), &mut self.cannot_ask);
        for (number, side) in self.asked.iter().enumerate() {
            let Some(side) = *side else { continue };
            let reading = |before: &_, after: &_| reading_of(self.dialect, before, after);
            intervals.take_in(number, inquiry.take(side).ok().as_ref(), reading);
        }
        intervals.advance(clock::now());
        watch.newest.leave(intervals.newest());
    }

    /// Lets an interval begin or end with what was seen before or after the measured phases.
    fn note_interval(&mut self, observation: fn(&Observer) -> Option<&Observation>) {
        let Some(mut intervals) = self.intervals.take() else { return };
        let servers = observation(self).into_iter().flat_map(|observation| &observation.servers);
        for (number, server) in servers.enumerate() {
            let reading = |before: &_, after: &_| reading_of(self.dialect, before, after);
            intervals.take_in(number, server.report.as_ref().ok(), reading);
        }
        self.intervals = Some(intervals);
    }

    /// Opens the connections to the servers, for as long as nothing waits for it.
    fn open(&mut self, watch: &RunWatch<'_>) {
        // What is known now need not be found while the measured phase waits. An error is met again by the reading.
        if !self.addresses.is_empty() {
            let own = OwnConnections { servers: &self.addresses, without: &HashSet::new() };
            let _ = own.find(&mut self.own_cookies);
        }
        let Some(inquiry) = &mut self.inquiry else { return };
        let until = clock::now().saturating_add(OPEN_MAX_NS);
        let goes_on = || watch.moments.announced() <= Moment::Open && !(watch.stopped)();
        note(inquiry.open(until, &goes_on), &mut self.cannot_ask);
    }

    /// Looks at everything. The moment counts as observed when all servers have answered or [`REPLY_NS`] is over; those that
    /// are silent are waited for until [`SILENCE_NS`] is over, or the next moment comes.
    fn look(&mut self, watch: &RunWatch<'_>, moment: Moment) -> Observation {
        let began = clock::now();
        let own = self.side_cookies();
        let connections = self.read_connections(&own);
        let machine = self.machine.read(began, &watch.moments.threads(), connections);
        let mut known: Vec<_> = self.pids.iter().map(|pid| pid.map(Threads::read)).collect();
        if let Some(inquiry) = &mut self.inquiry {
            inquiry.ask();
            note(inquiry.listen(began.saturating_add(REPLY_NS), &|| true), &mut self.cannot_ask);
        }
        let mut servers: Vec<Option<ServerObservation>> = (0..self.servers.len())
            .map(|number| {
                self.has_reported(number).then(|| self.observe_server(number, true, known[number].take()))
            })
            .collect();
        watch.moments.set_observed(moment);
        let released_at = clock::now();
        let goes_on = || watch.moments.announced() <= moment && !(watch.stopped)();
        let goes_on_to_the_end = || !(watch.stopped)();
        if let Some(inquiry) = &mut self.inquiry {
            let until = began.saturating_add(SILENCE_NS);
            let goes_on: &dyn Fn() -> bool =
                if moment == Moment::Before { &goes_on } else { &goes_on_to_the_end };
            note(inquiry.listen(until, goes_on), &mut self.cannot_ask);
        }
        let late = (0..self.servers.len()).map(|number| match servers[number].take() {
            Some(observation) => observation,
            None => self.observe_server(number, false, known[number].take()),
        });
        let servers = late.collect();
        Observation { released_at, machine, servers }
    }

    /// The cookies of the side connections, which are none of the run's own.
    fn side_cookies(&self) -> HashSet<u64> {
        let Some(inquiry) = &self.inquiry else { return HashSet::new() };
        inquiry.sockets().filter_map(|socket| sys::cookie_of(socket.as_raw_fd()).ok()).collect()
    }

    fn read_connections(&mut self, own: &HashSet<u64>) -> io::Result<Connections> {
        if self.addresses.is_empty() {
            Ok(Connections::new())
        } else {
            OwnConnections { servers: &self.addresses, without: own }.read(&mut self.own_cookies)
        }
    }

    /// Whether a server has reported its counters, or is not asked.
    fn has_reported(&self, number: usize) -> bool {
        match (&self.inquiry, self.asked[number]) {
            (Some(inquiry), Some(side)) => inquiry.has(side),
            _ => true,
        }
    }

    /// Reads a server now. `threads` has the threads of its process if that was already known; otherwise the process
    /// of a local server is found by the report, and its threads are read.
    fn observe_server(
        &mut self,
        number: usize,
        is_in_time: bool,
        threads: Option<Result<Threads, String>>,
    ) -> ServerObservation {
        let report = match (&mut self.inquiry, self.asked[number]) {
            (Some(inquiry), Some(side)) => inquiry.take(side),
            // Another agent asks this server; without side connections `cannot_ask` is the reason.
            _ => Err(String::new()),
        };
        let report = report.map_err(|why| self.cannot_ask.clone().unwrap_or(why));
        let server = &self.servers[number];
        let threads = match (threads, &report) {
            (Some(threads), _) => Some(threads),
            (None, Ok(report)) if server.is_local() => {
                Some(process_of(server, &report.facts).and_then(|pid| {
                    self.pids[number] = Some(pid);
                    Threads::read(pid)
                }))
            }
            (None, _) => None,
        };
        let listen_drops = if server.is_local() { listen_drops(server) } else { None };
        ServerObservation { report, is_in_time, threads, listen_drops }
    }

    /// Evidence from before and after the measured phases; `None` where one of the two readings is missing. `in_time`:
    /// the run waited until both readings were taken.
    fn evidence(mut self, in_time: bool) -> Option<Evidence> {
        let (before, after) = (self.before.take()?, self.after.take()?);
        let pairs = before.servers.into_iter().zip(after.servers).enumerate();
        let servers = pairs.map(|(number, pair)| self.server_evidence(number, pair, in_time)).collect();
        let machine = MachineEvidence {
            servers_are_local: Some(self.servers_are_local),
            ..self.machine.between(before.machine, after.machine)
        };
        let server_stats = self.intervals.map_or(Vec::new(), |intervals| intervals.stats);
        Some(Evidence { servers, machines: vec![machine], server_stats, ..Evidence::default() })
    }

    fn server_evidence(
        &self,
        number: usize,
        (before, after): (ServerObservation, ServerObservation),
        in_time: bool,
    ) -> ServerEvidence {
        let is_in_time = in_time && before.is_in_time && after.is_in_time;
        let mut evidence =
            ServerEvidence { address: self.servers[number].name().to_owned(), ..ServerEvidence::default() };
        // Counters of sockets that are gone are gone with them.
        evidence.listen_drops =
            before.listen_drops.zip(after.listen_drops).map(|(before, after)| after.saturating_sub(before));
        match (before.report, after.report) {
            (Ok(before), Ok(after)) => {
                let mut reading = reading_of(self.dialect, &before, &after);
                // The count of our own requests is entered where it belongs to the same time as the server's.
                reading.our_requests = (is_in_time && reading.is_whole()).then_some(0);
                evidence.reading = Some(reading);
            }
            (Err(why), _) | (_, Err(why)) => {
                evidence.unread = (!why.is_empty()).then(|| self.with_transport(why));
            }
        }
        match (before.threads, after.threads) {
            (Some(Ok(first)), Some(Ok(last))) => {
                evidence.threads = Some(threads_between(&first.times, &last.times));
                evidence.threads_span_ns = last.at.saturating_sub(first.at);
                (evidence.host, evidence.cpus) = (self.machine.host(), last.cpus);
                evidence.resident_bytes = last.resident_bytes;
            }
            // The process of a server that started anew is another one.
            (Some(_), Some(_)) if evidence.reading.as_ref().is_some_and(|reading| reading.restarted) => {}
            (Some(Err(why)), _) | (_, Some(Err(why))) => evidence.threads_unread = Some(why),
            (None, _) | (_, None) => {}
        }
        evidence
    }

    fn with_transport(&self, why: String) -> String {
        let not_over_udp = " (statistics are not asked for over UDP)";
        if self.over_udp { format!("{why}{not_over_udp}") } else { why }
    }
}

fn reading_of(dialect: Dialect, before: &ServerReport, after: &ServerReport) -> ServerReading {
    let span_ns = after.at.saturating_sub(before.at);
    let own = OwnWork {
        commands: after.own.commands - before.own.commands,
        connections: after.own.connections - before.own.connections,
    };
    match dialect {
        Dialect::Text | Dialect::Binary => {
            memcached::reading(&before.facts, &after.facts, &after.settings, span_ns, own.connections)
        }
        Dialect::Resp => redis::reading(&before.facts, &after.facts, &after.settings, span_ns, own),
    }
}

/// Keeps the first error of the kernel.
fn note(result: io::Result<()>, cannot_ask: &mut Option<String>) {
    if let (Err(error), None) = (result, &cannot_ask) {
        *cannot_ask = Some(format!("its statistics could not be waited for: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn no_server_is_asked_for_evictions_after_the_round_in_which_the_run_was_stopped() {
        let mut plan = Plan::default();
        plan.adaptive.first_eviction = true;
        let servers: Arc<[Server]> = Arc::<[Server; 0]>::new([]);
        let observed = Observed {
            loaded: Arc::clone(&servers),
            servers,
            tls: None,
            handshake: Arc::new(Handshake::none()),
            asks_all: true,
        };
        let mut observer = Observer::new(&plan, observed);
        let (moments, newest, is_stopped) = (Moments::new(0), Newest::default(), Cell::new(false));
        moments.announce(Moment::Open);
        let stopped = || is_stopped.get();
        let watch = RunWatch { moments: &moments, newest: &newest, stopped: &stopped };
        let has_round =
            |observer: &Observer| observer.eviction_watch.as_ref().and_then(EvictionWatch::next_at).is_some();
        observer.look_for_eviction(&watch);
        assert!(has_round(&observer), "a round is followed by another while the run goes on");
        is_stopped.set(true);
        let mut rounds = 0;
        while rounds < 10 && has_round(&observer) {
            observer.look_for_eviction(&watch);
            rounds += 1;
        }
        assert_eq!(rounds, 1);
    }
}
