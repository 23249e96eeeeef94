//! The state of the running job, as of its last interval, for metrics and the live view.
//!
//! The thread that collects a run makes it from whole intervals, once for each, so that no worker does anything for it.
//! Counts of the measured phases add up over all runs of the job and never fall.

pub mod backlog;
pub mod buckets;
pub mod doubt;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::numbers::grouped;
use crate::view::cells;
use pummel_logic::arrival::RateCurve;
use pummel_logic::plan::share::ProcessShare;
use pummel_logic::plan::{Arrivals, Clock, Goal, Group, Phase, Plan, Route, Work};
use pummel_logic::protocol::{Fault, Verb};
use pummel_logic::time::{Nanos, SECOND, seconds};
use pummel_measure::counters::{Counters, Turns};
use pummel_measure::events::ConnectionEvent;
use pummel_measure::events::MemberFacts;
use pummel_measure::evidence::server_stats::ServerInterval;
use pummel_measure::interval::Interval;
use pummel_measure::limit::{Case, FULL_SHARE, KeptBack, Limit};
use pummel_measure::measurement::{Measurement, Slice, Status};
use pummel_measure::recorder::{Counts, OpRecord, Span};
use pummel_measure::summary::{Figures, QUANTILES, Summary};
use pummel_measure::trust::Trust;
use pummel_measure::words::counted;

use self::backlog::{Backlog, IntervalEnd, OpenLoop, RECENT_MAX, Rates};
use self::buckets::TimeBuckets;
use self::doubt::{Doubt, doubted_figure};

/// The least time between two summaries of the whole measurement, in nanoseconds: a summary costs more than an
/// interval.
const SO_FAR_NS: Nanos = SECOND / 2;

/// The latest messages that are kept.
const MESSAGES_MAX: usize = 64;

/// A [`Snapshot`] that the collecting thread writes and others read. No reader holds it for longer than it takes to copy
/// or to print it.
#[derive(Clone, Debug, Default)]
pub struct SharedSnapshot(Arc<Mutex<Snapshot>>);

impl SharedSnapshot {
    /// The snapshot of a process with this identity, before its first run.
    pub fn new(identity: Identity) -> SharedSnapshot {
        SharedSnapshot(Arc::new(Mutex::new(Snapshot { identity, ..Snapshot::default() })))
    }

    /// The snapshot, which no other thread changes while the guard is there.
    pub fn lock(&self) -> MutexGuard<'_, Snapshot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The role of a process in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// The process makes the whole run.
    #[default]
    Run,
    /// The process merges the measurements of agents, and has their sum.
    Controller,
    /// The process makes a part of a run, which is also in the sum of its controller.
    Agent,
}

impl Role {
    /// The word of the label `role`.
    pub fn name(self) -> &'static str {
        match self {
            Role::Run => "run",
            Role::Controller => "controller",
            Role::Agent => "agent",
        }
    }
}

/// Identity of a process, which tells its figures from those of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The name of the run.
    pub run: String,
    /// Role of the process in the run.
    pub role: Role,
    /// Name of the command line that the run comes from.
    pub front: &'static str,
}

/// The state of a running job.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Identity of this process.
    pub identity: Identity,
    /// Facts of the plan of the run under way; `None` before the first run.
    pub plan: Option<PlanFacts>,
    /// Stage of the run under way.
    pub stage: Stage,
    /// The phase under way that is not measured: requests that have ended, and how many it has where that is known.
    pub progress: Option<(u64, Option<u64>)>,
    /// Beginning of the first measured phase of the last run, in nanoseconds since 1970; 0 before it.
    pub started_unix_ns: Nanos,
    /// Beginning of that phase on the monotonic clock, which stays as it is when the wall clock is set.
    pub started: Nanos,
    /// The kernel interfaces of the last run whose interfaces are known; empty before the first interval. Where agents make the
    /// run they are known at its end.
    pub backends: Vec<&'static str>,
    /// The requests of all measured phases, by the word of their operation; empty unless they are asked for.
    pub ops: BTreeMap<String, OpTotals>,
    /// Everything that only adds up in the measured phases, beside the requests.
    pub counters: Counters,
    /// The turns that belong to the run under way.
    pub run_turns: Turns,
    /// Time that each worker of this process was busy in the measured phases, in nanoseconds.
    pub workers_busy_ns: Vec<Nanos>,
    /// Connections.
    pub connections: ConnectionCounts,
    /// Figures that are known only at the end of a run; `None` before the first end.
    pub result: Option<RunResult>,
    /// The latest intervals of the run under way, the oldest first, at most [`RECENT_MAX`]; empty unless they are asked for.
    pub recent: VecDeque<Arc<Slice>>,
    /// The backlog of the run under way; empty in closed loop, and unless it is asked for.
    pub backlog: Backlog,
    /// CPU time of all servers together in cores, as of each of [`Snapshot::recent`]; `None` where no server told it.
    pub server_cores: VecDeque<Option<f64>>,
    /// The doubt about the times of the run under way, once there was one.
    pub doubt: Option<Doubt>,
    /// The figures of the run under way so far; `None` before its first interval, and unless they are asked for.
    pub so_far: Option<SoFar>,
    /// How long the measured phase of the run that is over took, in nanoseconds; 0 before its end.
    pub ended_ns: Nanos,
    /// The processes of the run under way, in the order in which intervals name them; empty where this process makes it alone.
    pub members: Vec<MemberFacts>,
    /// The newest interval of each server by its own counters, in the order of the servers that are asked; empty where they are not
    /// asked within the measured phases, or by another process.
    pub server_intervals: Vec<Option<ServerInterval>>,
    /// Whether keys of the screen change the rate.
    pub is_steerable: bool,
    /// While the run is paused by hand: the requests per second at which it will resume.
    pub resumes_at: Option<f64>,
    /// Whether [`Snapshot::recent`], [`Snapshot::so_far`] and what follows from them are kept.
    pub keeps_recent: bool,
    /// Whether [`Snapshot::ops`] is kept.
    pub keeps_ops: bool,
    /// The latest notices and losses of the run under way, with their seconds since the measured phase began, the oldest first.
    pub messages: VecDeque<(f64, String)>,
    /// The messages of which a run has each only once.
    pub told: Told,
}

/// The messages that a run under way has once, as far as they were told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    timeouts: bool,
    overload: bool,
    slots: bool,
    silence: bool,
}

/// The displayed facts of a run's plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanFacts {
    /// The servers, as the Plan names them.
    pub servers: Vec<String>,
    /// The servers by the names that may be shown, one for each.
    pub server_names: Vec<String>,
    /// Whether these servers are those that are asked for their counters.
    pub are_asked: bool,
    /// The protocol.
    pub protocol: &'static str,
    /// Whether the servers are the nodes of a cluster.
    pub are_a_cluster: bool,
    /// Whether requests are sent again after errors.
    pub sends_again: bool,
    /// `open` or `closed`.
    pub mode: &'static str,
    /// Name of the clock that says when replies arrive.
    pub clock: &'static str,
    /// The seed of the run.
    pub seed: u64,
    /// Requests per second that are asked for in this process; `None` in closed loop, and where they change.
    pub rate: Option<f64>,
    /// Requests per second that are asked for in this process where they change; `None` where they do not.
    pub changing: Option<ChangingRate>,
    /// The clients, where their requests are due at times that no reply changes, and all of them are in this view.
    pub open: Option<OpenLoop>,
    /// The operations of the measured mix and their weights.
    pub mix: Vec<(String, f64)>,
    /// Length of the measured phases, in nanoseconds; `None` where no time ends them.
    pub measured_ns: Option<Nanos>,
    /// The goals.
    pub goals: Vec<Goal>,
    /// Name of the arrival process, such as `poisson`.
    pub arrivals: String,
    /// Threads of this process.
    pub threads: u32,
}

/// Requests per second that change while a run is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangingRate {
    /// Rate of the clients whose rate changes, from the beginning of the measured phase on.
    curve: Arc<RateCurve>,
    /// Part of these clients that is in this process, from 0 to 1.
    part: f64,
    /// Rate of all other clients of this process.
    others: f64,
}

impl ChangingRate {
    /// The rates of a plan in the process with this share of it, or in one that makes all of it; `None` where they do not change.
    fn of(plan: &Plan, share: Option<&ProcessShare>) -> Option<ChangingRate> {
        if plan.changes.rate.is_none() && plan.changes.burst.is_none() {
            return None;
        }
        let measured = plan.phases.iter().position(|phase| phase.recorded)?;
        let rate = plan.groups.first()?.rate?;
        let curve = Arc::new(RateCurve::in_phase(plan, measured, rate));
        let others = rates_of(plan, share).skip(1).flatten().sum();
        Some(ChangingRate { curve, part: part_of(plan.groups.first()?, 0, share), others })
    }

    /// Requests of all clients of this process that are due so long after the beginning of the measured phase.
    pub fn requests_before(&self, since_ns: Nanos) -> f64 {
        self.curve.requests_before(since_ns) * self.part + self.others * seconds(since_ns)
    }

    /// The rate of all clients of this process so long after the beginning of the measured phase.
    pub fn at(&self, since_ns: Nanos) -> f64 {
        self.curve.rate_at(since_ns) * self.part + self.others
    }
}

/// The rate of each group of a plan in the process with this share of it, or in one that makes all of it; `None` in closed loop.
fn rates_of<'a>(plan: &'a Plan, share: Option<&'a ProcessShare>) -> impl Iterator<Item = Option<f64>> + 'a {
    let groups = plan.groups.iter().enumerate();
    groups.map(move |(at, group)| Some(group.rate? * part_of(group, at, share)))
}

/// The part of the clients of the group with this index that is in the process with this share, from 0 to 1. Clients of a group
/// have equal rates.
fn part_of(group: &Group, at: usize, share: Option<&ProcessShare>) -> f64 {
    let Some(share) = share else { return 1.0 };
    let clients = share.clients.get(at).map_or(0, |clients| clients.end.saturating_sub(clients.start));
    clients as f64 / f64::from(group.clients.max(1))
}

/// The stage of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// Nothing was sent yet.
    #[default]
    Connecting,
    /// Records are stored.
    Load,
    /// Requests are sent that are not measured.
    WarmUp,
    /// Requests are measured.
    Measure,
    /// Nothing is sent before what was stored is read back.
    Settle,
    /// What was stored is read back.
    Audit,
    /// The run is over.
    Over,
}

impl Stage {
    /// Every stage, in the order of a run.
    pub const ALL: [Stage; 7] = [
        Stage::Connecting,
        Stage::Load,
        Stage::WarmUp,
        Stage::Measure,
        Stage::Settle,
        Stage::Audit,
        Stage::Over,
    ];

    /// The word of the label `phase`.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Connecting => "connecting",
            Stage::Load => "load",
            Stage::WarmUp => "warmup",
            Stage::Measure => "measure",
            Stage::Settle => "settle",
            Stage::Audit => "audit",
            Stage::Over => "over",
        }
    }
}

/// The figures of a run so far.
#[derive(Clone, Debug)]
pub struct SoFar {
    /// By operation: its word, its counts, and the figures of its times by [`Span`].
    pub ops: Vec<(String, Counts, [Figures; Span::COUNT])>,
    /// All operations together.
    pub counts: Counts,
    /// The times of all operations together, by [`Span`].
    pub figures: [Figures; Span::COUNT],
    /// Whether lag is a small part of the response, by the rule of the report.
    pub is_trusted: bool,
    /// Whether a figure of the response is lag for half or more.
    pub has_figures_of_lag: bool,
    /// The figure of the response that is doubtful, where the times are not trusted: the median before all others.
    pub doubted: Option<&'static str>,
    /// Whether a visible part of the responses is wait, or delay of the generator.
    pub has_waits: bool,
    /// Whether late requests of the generator made the wait.
    pub is_lag_the_wait: bool,
    /// Whether all clients ask again as soon as they are answered.
    pub is_closed: bool,
    /// Length of the measured phase so far, in nanoseconds.
    pub measured_ns: Nanos,
}

impl SoFar {
    /// Whether more than half of the requests that ended were errors or timeouts, which the report calls a failed run.
    pub fn is_failing(&self) -> bool {
        self.counts.failed() > self.counts.ended() / 2
    }

    fn of(plan: &Plan, measured: &Measurement) -> SoFar {
        let ops = measured.ops();
        let all = ops.all();
        let figures = Figures::of_op(&all, measured.timeout_ns);
        let of = |(verb, op): (Verb, &OpRecord)| {
            (plan.name_of(verb).to_owned(), op.counts, Figures::of_op(op, measured.timeout_ns))
        };
        let case = Case::of(measured, plan, &all);
        let trust = Trust::of(&case, &figures, &ops);
        SoFar {
            ops: ops.iter().map(of).collect(),
            counts: all.counts,
            is_trusted: trust.ok,
            has_figures_of_lag: trust.mostly_lag.iter().any(|name| *name != "min"),
            doubted: doubted_figure(&trust),
            has_waits: case.waits().is_some() || KeptBack::of(&case).is_much(&case),
            is_lag_the_wait: case.lag_made_the_wait(),
            is_closed: case.is_closed,
            figures,
            measured_ns: measured.measured_ns,
        }
    }
}

/// The requests of one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpTotals {
    /// How they ended.
    pub counts: Counts,
    /// Their times, by [`Span`].
    pub times: [TimeBuckets; Span::COUNT],
}

/// Connections of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Connections that the run under way asks for; `None` before its first interval.
    pub asked: Option<u64>,
    /// Connections of the run under way that are open, by those that were lost and opened again; `None` where that is not
    /// known.
    pub open: Option<u64>,
    /// Connections that were lost in all runs.
    pub lost: u64,
    /// Lost connections that were opened again in all runs.
    pub reopened: u64,
    /// Losses and reopenings that belong to the run under way: those that came as events, and all at its end.
    of_run: (u64, u64),
}

impl ConnectionCounts {
    /// Connections of the run under way that were lost, and lost ones that were opened again.
    pub fn of_run(&self) -> (u64, u64) {
        self.of_run
    }
}

/// Figures that are known at the end of a run.
#[derive(Clone, Debug, Default)]
pub struct RunResult {
    /// How the run ended.
    pub status: &'static str,
    /// Attempts to open a connection that failed, in all runs.
    pub connections_failed: u64,
    /// Time that opening connections took, in all runs.
    pub connect: TimeBuckets,
    /// Values that were checked in all runs: right, wrong, stale. `None` where none was.
    pub verified: Option<[u64; 3]>,
    /// Keys that were read back: current, contested, newer, older, missing, unread; `None` where none are.
    pub audited: Option<[u64; 6]>,
    /// Whether the generator set the rate of the last run.
    pub generator_limited: bool,
    /// Quantiles of the last run that are known: operation, span, name of the quantile as a number from 0 to 1, nanoseconds.
    pub quantiles: Vec<(String, Span, f64, Nanos)>,
    /// The goals of the last run, and whether each was met; goals that are undecided are left out.
    pub goals: Vec<(String, bool)>,
    /// Members of the last run: name, greatest error of its clock in nanoseconds, whether it was lost.
    pub members: Vec<(String, Nanos, bool)>,
    /// Members that were lost in all runs.
    pub members_lost: u64,
    /// The servers' own figures over the measured phases of all runs.
    pub servers: Vec<ServerFigures>,
}

/// A server's own figures over the measured phases of runs; `None` if it did not report them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFigures {
    /// The server, as the Plan names it.
    pub server: String,
    /// CPU time of its process, in nanoseconds.
    pub cpu_ns: Option<Nanos>,
    /// Requests that it counted.
    pub requests: Option<u64>,
    /// Keys that it found.
    pub hits: Option<u64>,
    /// Keys that it did not find.
    pub misses: Option<u64>,
    /// Items that it threw out.
    pub evictions: Option<u64>,
    /// Connections that were open at the end.
    pub connections: Option<u64>,
    /// Memory in use at the end, in bytes.
    pub memory_bytes: Option<u64>,
}

impl ServerFigures {
    /// Adds the server's figures of a later run.
    fn follow(&mut self, later: ServerFigures) {
        let add = |known: &mut Option<u64>, more: Option<u64>| {
            *known = known.map_or(more, |sum| Some(sum + more.unwrap_or(0)))
        };
        add(&mut self.cpu_ns, later.cpu_ns);
        add(&mut self.requests, later.requests);
        add(&mut self.hits, later.hits);
        add(&mut self.misses, later.misses);
        add(&mut self.evictions, later.evictions);
        (self.connections, self.memory_bytes) = (later.connections, later.memory_bytes);
    }
}

impl Snapshot {
    /// Begins anew if the next figures belong to another run than the present ones; a run without a name has the name
    /// of the process.
    pub fn belong_to(&mut self, run: &str) {
        if run.is_empty() || self.identity.run == run {
            return;
        }
        let identity = Identity { run: run.to_owned(), ..std::mem::take(&mut self.identity) };
        let (keeps_recent, keeps_ops) = (self.keeps_recent, self.keeps_ops);
        *self = Snapshot { identity, keeps_recent, keeps_ops, ..Snapshot::default() };
    }

    /// Notes that a run of this plan is about to begin, all of which is shown here.
    pub fn announce(&mut self, plan: &Plan) {
        self.announce_facts(PlanFacts::of(plan, None));
    }

    /// Notes that a run of this plan is about to begin, of which this process makes a share.
    pub fn announce_share(&mut self, plan: &Plan, share: &ProcessShare) {
        self.announce_facts(PlanFacts::of(plan, Some(share)));
    }

    fn announce_facts(&mut self, facts: PlanFacts) {
        self.plan = Some(facts);
        self.stage = Stage::Connecting;
        self.progress = None;
        self.recent.clear();
        self.server_cores.clear();
        (self.backlog, self.doubt, self.told) = (Backlog::default(), None, Told::default());
        self.so_far = None;
        self.messages.clear();
        self.run_turns = Turns::default();
        self.members.clear();
        self.server_intervals.clear();
        self.resumes_at = None;
        let connections = &mut self.connections;
        (connections.asked, connections.open, connections.of_run) = (None, None, (0, 0));
    }

    /// Notes that a phase begins at `at` of the monotonic clock, which is at this time in nanoseconds since 1970.
    pub fn begin(&mut self, phase: &Phase, at: Nanos, at_unix_ns: Nanos) {
        let is_first = self.stage != Stage::Measure;
        self.stage = match &phase.work {
            _ if phase.recorded => Stage::Measure,
            Work::Load(_) => Stage::Load,
            Work::Pause(pause) if pause.for_ns > 0 => Stage::Settle,
            Work::Audit(_) => Stage::Audit,
            _ => Stage::WarmUp,
        };
        self.progress = None;
        if phase.recorded && is_first {
            (self.started, self.started_unix_ns) = (at, at_unix_ns);
        }
    }

    /// Requests per second that are asked for at this time of the monotonic clock; before the measured phase those with which it
    /// begins. `None` in closed loop.
    pub fn asked_rate(&self, now: Nanos) -> Option<f64> {
        let plan = self.plan.as_ref()?;
        let Some(changing) = &plan.changing else { return plan.rate };
        let since_ns = match self.stage {
            Stage::Connecting | Stage::Load | Stage::WarmUp => 0,
            // Nothing is due in the drain, whose rate is the last one too.
            Stage::Measure => {
                let last_ns = plan.measured_ns.map_or(Nanos::MAX, |length_ns| length_ns.saturating_sub(1));
                now.saturating_sub(self.started).min(last_ns)
            }
            // The last one that was asked for.
            Stage::Settle | Stage::Audit => {
                plan.measured_ns.map_or(0, |length_ns| length_ns.saturating_sub(1))
            }
            Stage::Over => self.ended_ns.saturating_sub(1),
        };
        Some(changing.at(since_ns))
    }

    /// Records a change of the rate by hand: the plan has all changes so far, and `resumes_at` is the rate at which the
    /// load will resume while it is paused.
    pub fn steered(&mut self, plan: &Plan, resumes_at: Option<f64>) {
        self.resumes_at = resumes_at;
        if let Some(facts) = &mut self.plan {
            facts.changing = ChangingRate::of(plan, None).or(facts.changing.take());
        }
    }

    /// Records the progress of a phase that is not measured.
    pub fn progress(&mut self, ended: u64, of: Option<u64>) {
        self.progress = Some((ended, of));
    }

    /// Adds a whole interval of a measured phase.
    pub fn add(&mut self, plan: &Plan, interval: &mut Interval) {
        if self.keeps_ops {
            self.add_ops(plan, interval);
        }
        self.counters.merge(&interval.counters);
        self.run_turns.merge(&interval.counters.turns);
    }

    fn add_ops(&mut self, plan: &Plan, interval: &mut Interval) {
        for recorder in &mut interval.groups {
            for (verb, op) in recorder.ops().iter() {
                let totals = self.ops.entry(plan.name_of(verb).to_owned()).or_default();
                totals.counts.merge(&op.counts);
                for span in Span::ALL {
                    totals.times[span as usize].add(op.times.of(span));
                }
            }
        }
    }

    /// Takes the figures that no interval has from the measurement so far.
    pub fn slice(&mut self, plan: &Plan, so_far: &Measurement) {
        self.note_backends(so_far);
        let connections = &mut self.connections;
        connections.asked = Some(so_far.connections.asked);
        // A run has all connections, or ends: those that are missing were lost meanwhile.
        if self.identity.role == Role::Run && plan.churning_group().is_none() {
            let (lost, back) = connections.of_run;
            let asked = plan.connections_at(so_far.measured_ns).unwrap_or(so_far.connections.asked);
            connections.open = Some((asked + back).saturating_sub(lost));
        }
        if self.keeps_recent
            && let Some(slice) = so_far.intervals.last()
        {
            if self.recent.len() == RECENT_MAX {
                self.recent.pop_front();
                self.server_cores.pop_front();
            }
            self.recent.push_back(Arc::new(slice.clone()));
            self.server_cores.push_back(self.cores_of_servers());
            self.follow_backlog(slice);
            let is_stale = |last: &SoFar| so_far.measured_ns >= last.measured_ns + SO_FAR_NS;
            if self.so_far.as_ref().is_none_or(is_stale) {
                let figures = SoFar::of(plan, so_far);
                let busy = self.busy_share();
                self.doubt = Doubt::follow(self.doubt.take(), figures.doubted, slice.end_ns, busy);
                self.so_far = Some(figures);
            }
            self.tell_of(plan, slice);
        }
    }

    /// Requests that were due so long after the measured phase began, by the rate that was asked for; `None` where that is no
    /// number.
    fn due_before(&self, since_ns: Nanos) -> Option<f64> {
        let plan = self.plan.as_ref()?;
        let since_ns = plan.measured_ns.map_or(since_ns, |length_ns| since_ns.min(length_ns));
        let due = match &plan.changing {
            Some(changing) => changing.requests_before(since_ns),
            None => plan.rate? * seconds(since_ns),
        };
        let most = plan.open?.requests_max;
        Some(most.map_or(due, |most| due.min(most as f64)))
    }

    /// Adds an interval to the backlog, where the run has one.
    fn follow_backlog(&mut self, slice: &Slice) {
        let open = self.plan.as_ref().and_then(|plan| plan.open);
        let (Some(open), Some(due)) = (open, self.due_before(slice.end_ns)) else { return };
        let sum = |span: Span| {
            let exact = slice.ops.values().map(|op| &op.figures[span as usize].exact);
            exact.fold((0, 0.0), |(count, sum), more| (count + more.count, sum + more.sum as f64))
        };
        let (answered, response_ns) = sum(Span::Response);
        let length_ns = slice.length_ns().max(1) as f64;
        let counts = slice.counts();
        let faults = Fault::ALL.into_iter().filter(|fault| fault.unanswered());
        let unanswered: u64 = faults.map(|fault| counts.errors(fault)).sum();
        let interval = IntervalEnd {
            end_ns: slice.end_ns,
            due,
            ended: counts.ended() + slice.counters.skipped.requests,
            answered: counts.ended() - unanswered,
            response_ns: (answered > 0).then(|| response_ns / answered as f64),
            slots_taken: (sum(Span::Service).1 + sum(Span::Lag).1) / length_ns,
        };
        self.backlog.follow(&open, interval);
    }

    /// CPU time of the servers together in cores, by their newest intervals.
    fn cores_of_servers(&self) -> Option<f64> {
        let told = self.server_intervals.iter().flatten();
        told.filter_map(ServerInterval::cores).reduce(|one, other| one + other)
    }

    /// The share of their time for which the workers were busy in the last interval, from 0 to 1; `None` where their number is not
    /// known.
    pub fn busy_share(&self) -> Option<f64> {
        let slice = self.recent.back()?;
        let workers = self.workers_busy_ns.len();
        let time_ns = slice.length_ns() as f64 * workers as f64;
        (time_ns > 0.0).then(|| slice.counters.turns.busy_ns as f64 / time_ns)
    }

    /// Whether the generator itself makes the present backlog: its threads are full, or it sends requests late.
    fn is_own_backlog(&self) -> bool {
        let is_busy = self.busy_share().is_some_and(|share| share > FULL_SHARE);
        is_busy || self.so_far.as_ref().is_some_and(|so_far| so_far.is_lag_the_wait)
    }

    /// The rates of a load that is more than what the server, or the way to it, carries; `None` where it is carried, and where
    /// the generator itself keeps requests back.
    pub fn overload(&self) -> Option<Rates> {
        self.backlog.overload().filter(|_| !self.is_own_backlog())
    }

    /// Adds the messages that follow from an interval, each once in a run.
    fn tell_of(&mut self, plan: &Plan, slice: &Slice) {
        let mut words = Vec::new();
        let overload = self.overload().filter(|_| !self.told.overload);
        if let Some(Rates { asked, answered }) = overload {
            self.told.overload = true;
            let [asked, answered] = [asked, answered].map(cells::rate);
            words.push(format!("the server does not keep up: {asked}/s asked, {answered}/s answered"));
        }
        let open = self.plan.as_ref().and_then(|plan| plan.open);
        let full = open.filter(|open| self.backlog.takes_all_slots(open) && !self.told.slots);
        if let Some(open) = full {
            self.told.slots = true;
            words.push(format!(
                "all {} connections are busy, requests wait for one",
                grouped(open.connections)
            ));
        }
        if self.backlog.silent_ns().is_some() && !self.told.silence {
            self.told.silence = true;
            words.push("the server answers nothing".to_owned());
        }
        let timeouts = slice.counts().errors(Fault::Timeout);
        if timeouts > 0 && !self.told.timeouts {
            self.told.timeouts = true;
            let timeout = cells::option_time(seconds(plan.timeout_ns));
            words.push(format!(
                "first timeouts: {} got no reply within {timeout}",
                counted(timeouts, "request")
            ));
        }
        let at_s = seconds(slice.end_ns);
        words.into_iter().for_each(|words| self.keep_message(at_s, words));
    }

    /// Takes the kernel interfaces from a measurement that knows them.
    fn note_backends(&mut self, measured: &Measurement) {
        let backends = &measured.generator.backends;
        if !backends.is_empty() {
            self.backends = backends.iter().map(|backend| backend.name()).collect();
        }
    }

    /// Notes that a connection was lost or is open again.
    pub fn connection(&mut self, event: ConnectionEvent) {
        let connections = &mut self.connections;
        match event {
            ConnectionEvent::Lost => (connections.lost += 1, connections.of_run.0 += 1),
            ConnectionEvent::Back => (connections.reopened += 1, connections.of_run.1 += 1),
        };
    }

    /// Adds the turns of one worker of this process over a part of a measured phase.
    pub fn worker(&mut self, worker: usize, turns: &Turns) {
        if self.workers_busy_ns.len() <= worker {
            self.workers_busy_ns.resize(worker + 1, 0);
        }
        self.workers_busy_ns[worker] += turns.busy_ns;
    }

    /// Keeps a message of the run under way, which came at this time of the monotonic clock.
    pub fn message(&mut self, at: Nanos, words: &str) {
        let since_s = match self.stage {
            Stage::Measure => at.saturating_sub(self.started) as f64 / SECOND as f64,
            _ => 0.0,
        };
        self.keep_message(since_s, words.to_owned());
    }

    fn keep_message(&mut self, since_s: f64, words: String) {
        if self.messages.len() == MESSAGES_MAX {
            self.messages.pop_front();
        }
        self.messages.push_back((since_s, words));
    }

    /// Notes that the run is over; its measurement and summary are absent where it could not begin.
    pub fn end(&mut self, plan: &Plan, ended: Option<(&Measurement, &Summary)>) {
        self.stage = Stage::Over;
        self.progress = None;
        let Some((measurement, summary)) = ended else { return };
        self.ended_ns = measurement.measured_ns;
        self.note_backends(measurement);
        let mut result = self.result.take().unwrap_or_default();
        result.status = match measurement.status {
            Status::Complete => "complete",
            Status::Partial => "partial",
            Status::Interrupted => "interrupted",
        };
        let connections = &measurement.connections;
        // Events may have been dropped where they came too fast; the account at the end is exact.
        let all = (connections.lost, connections.reconnected);
        let (lost, back) = std::mem::replace(&mut self.connections.of_run, all);
        self.connections.lost += connections.lost.saturating_sub(lost);
        self.connections.reopened += connections.reconnected.saturating_sub(back);
        self.connections.asked = Some(connections.asked);
        // Where agents have the connections, or clients come and go, how many are open is not known at any time.
        self.connections.open = self.connections.open.map(|_| 0);
        result.connections_failed += connections.failed;
        result.connect.add(&connections.connect);
        let verify = &measurement.verify;
        if plan.verify > 0.0 {
            let [right, wrong, stale] = result.verified.get_or_insert_default();
            *right += verify.checked.saturating_sub(verify.failed + verify.stale);
            *wrong += verify.failed;
            *stale += verify.stale;
        }
        if let Some(audit) = &measurement.audit {
            let counts = &audit.counts;
            let own = [
                counts.current,
                counts.contested,
                counts.newer,
                counts.older,
                counts.missing,
                audit.unread(),
            ];
            let all = result.audited.get_or_insert_default();
            all.iter_mut().zip(own).for_each(|(all, own)| *all += own);
        }
        let is_open = !plan.groups.iter().any(Group::is_closed_loop);
        let limit = summary.limit(is_open, measurement.counters.skipped.requests);
        result.generator_limited = limit == Limit::Generator;
        result.quantiles = known_quantiles(plan, summary);
        result.goals =
            summary.goals.iter().filter_map(|goal| Some((goal.goal.to_string(), goal.met?))).collect();
        let members = measurement.agents.iter().flat_map(|agents| &agents.members);
        let name = |number: usize, name: &str| match plan.anonymous {
            true => format!("agent-{}", number + 1),
            false => name.to_owned(),
        };
        result.members = members
            .enumerate()
            .map(|(number, member)| {
                (name(number, &member.name), member.clock_error_ns, member.lost.is_some())
            })
            .collect();
        result.members_lost += result.members.iter().filter(|(.., is_lost)| *is_lost).count() as u64;
        for seen in servers_of(plan, measurement) {
            match result.servers.iter_mut().find(|known| known.server == seen.server) {
                Some(known) => known.follow(seen),
                None => result.servers.push(seen),
            }
        }
        self.result = Some(result);
    }

    /// All operations together, so far.
    pub fn counts(&self) -> Counts {
        let mut all = Counts::default();
        self.ops.values().for_each(|op| all.merge(&op.counts));
        all
    }
}

/// The quantiles of a run that are known, for each operation.
fn known_quantiles(plan: &Plan, summary: &Summary) -> Vec<(String, Span, f64, Nanos)> {
    let mut known = Vec::new();
    for (verb, totals) in &summary.ops {
        for span in Span::ALL {
            for (place, (_, quantile)) in QUANTILES.iter().enumerate() {
                if let Some(ns) = totals.figures[span as usize].quantiles[place].known() {
                    known.push((plan.name_of(*verb).to_owned(), span, *quantile, ns));
                }
            }
        }
    }
    known
}

fn servers_of(plan: &Plan, measurement: &Measurement) -> Vec<ServerFigures> {
    let seen = measurement.evidence.iter().flat_map(|evidence| &evidence.servers).enumerate();
    let seen = seen.filter_map(|(number, server)| Some((number, server, server.reading.as_ref()?)));
    let name = |number: usize, address: &str| match plan.anonymous {
        true => format!("server-{}", number + 1),
        false => address.to_owned(),
    };
    let figures = seen.map(|(number, server, reading)| ServerFigures {
        server: name(number, &server.address),
        cpu_ns: reading.cpu_ns,
        requests: reading.counts.requests,
        hits: reading.counts.hits,
        misses: reading.counts.misses,
        evictions: reading.counts.evictions,
        connections: reading.connections,
        memory_bytes: reading.memory_bytes,
    });
    figures.collect()
}

impl PlanFacts {
    /// The facts of a plan in the process with this share of it, or in one that shows all of it.
    fn of(plan: &Plan, share: Option<&ProcessShare>) -> PlanFacts {
        let rates: Vec<f64> = rates_of(plan, share).flatten().collect();
        let is_closed = plan.groups.iter().all(|group| matches!(group.arrivals, Arrivals::Closed));
        let recorded = plan.phases.iter().filter(|phase| phase.recorded);
        let mix = recorded.clone().find_map(|phase| match &phase.work {
            Work::Mix(mix) => Some(mix.weights()),
            _ => None,
        });
        let mix: Vec<(Verb, f64)> = mix.unwrap_or_default();
        let changing = ChangingRate::of(plan, share);
        PlanFacts {
            servers: if plan.anonymous { Vec::new() } else { plan.servers.clone() },
            are_asked: plan.server_stats_at.is_empty(),
            server_names: plan
                .servers
                .iter()
                .enumerate()
                .map(|(number, name)| match plan.anonymous {
                    true => format!("server-{}", number + 1),
                    false => name.clone(),
                })
                .collect(),
            protocol: plan.protocol.name(),
            are_a_cluster: plan.route == Route::Cluster,
            sends_again: plan.sent_again_after().is_some(),
            mode: if is_closed { "closed" } else { "open" },
            clock: match plan.engine.clock {
                Clock::Kernel => "kernel",
                Clock::User => "user",
            },
            seed: plan.seed,
            // A rate that changes is no one figure.
            rate: (!rates.is_empty() && changing.is_none()).then(|| rates.iter().sum()),
            changing,
            // Of a share it is not known which of its requests are due.
            open: OpenLoop::of(plan).filter(|_| share.is_none()),
            mix: mix.into_iter().map(|(verb, weight)| (plan.name_of(verb).to_owned(), weight)).collect(),
            // The longest time of a measurement that ends when enough is known is no length.
            measured_ns: match plan.adaptive.until {
                None => recorded.map(|phase| phase.stop.time_ns).sum(),
                Some(_) => None,
            },
            goals: plan.goals.clone(),
            arrivals: plan.groups.first().map(|group| group.arrivals.to_string()).unwrap_or_default(),
            threads: plan.engine.threads,
        }
    }
}

#[cfg(test)]
mod tests {
    use pummel_logic::arrival::steps;
    use pummel_logic::plan::{Backend, ChurningClients, Mix, RatePoint, Spawns, Stop};
    use pummel_logic::protocol::Outcome;
    use pummel_measure::recorder::Sample;

    use super::*;

    fn interval(index: u64, requests: u64) -> Interval {
        let mut interval = Interval::new([[Verb::Get]]);
        interval.restart(index, index * SECOND);
        interval.end_ns = (index + 1) * SECOND;
        for at in 0..requests {
            interval.groups[0].record(&Sample {
                verb: Verb::Get,
                outcome: Outcome::Hit,
                keys: 1,
                hits: 1,
                due: at,
                ready: at,
                sent: at,
                arrived: at + 50_000,
                read: at + 60_000,
                noreply: false,
            });
        }
        interval
    }

    fn measured() -> Measurement {
        let mut measured = Measurement::new(["clients".to_owned()], Clock::Kernel, SECOND);
        measured.connections.asked = 10;
        measured
    }

    #[test]
    fn requests_of_a_second_run_are_added_to_those_of_the_first() {
        let plan = Plan::default();
        let mut snapshot = Snapshot { keeps_ops: true, ..Snapshot::default() };
        for run in 1..=2u64 {
            snapshot.announce(&plan);
            assert_eq!((snapshot.stage, snapshot.connections.open), (Stage::Connecting, None));
            snapshot.add(&plan, &mut interval(0, 7));
            snapshot.add(&plan, &mut interval(1, 3));
            snapshot.end(&plan, None);
            let get = &snapshot.ops["get"];
            assert_eq!(get.counts.completed, run * 10);
            assert_eq!(get.times[Span::Service as usize].count(), run * 10);
        }
        assert_eq!(snapshot.counts().completed, 20);
    }

    #[test]
    fn stalls_and_losses_of_a_run_are_told_from_those_of_all_runs() {
        let plan = Plan::default();
        let mut snapshot = Snapshot::default();
        for run in 1..=3u64 {
            snapshot.announce(&plan);
            assert_eq!((snapshot.run_turns.stalls, snapshot.connections.of_run()), (0, (0, 0)));
            let mut interval = interval(0, 1);
            interval.counters.turns.stalls = 2;
            snapshot.add(&plan, &mut interval);
            snapshot.connection(ConnectionEvent::Lost);
            assert_eq!((snapshot.run_turns.stalls, snapshot.counters.turns.stalls), (2, 2 * run));
            assert_eq!((snapshot.connections.of_run(), snapshot.connections.lost), ((1, 0), run));
            snapshot.end(&plan, None);
        }
    }

    #[test]
    fn what_belongs_to_another_run_begins_with_nothing() {
        let plan = Plan::default();
        let mut snapshot = Snapshot { keeps_ops: true, ..Snapshot::default() };
        snapshot.identity = Identity { run: "agent".to_owned(), role: Role::Agent, front: "native" };
        for (name, expected) in [("a", 7), ("a", 14), ("b", 7), ("", 14)] {
            snapshot.belong_to(name);
            snapshot.add(&plan, &mut interval(0, 7));
            assert_eq!(snapshot.counts().completed, expected, "{name}");
        }
        assert_eq!(snapshot.identity, Identity { run: "b".to_owned(), role: Role::Agent, front: "native" });
    }

    #[test]
    fn the_rate_that_is_asked_for_follows_a_load_that_changes() {
        let group = Group { arrivals: Arrivals::Poisson, rate: Some(300.0), ..Group::default() };
        let stop = Stop { time_ns: Some(4 * SECOND), requests: None };
        let work = Work::Mix(Mix::of(&[(Verb::Get, 1.0)]));
        let phase = Phase { name: "measure".to_owned(), work, stop, recorded: true };
        let other = Group { rate: Some(5.0), ..group.clone() };
        let mut plan = Plan { groups: vec![group, other], phases: vec![phase], ..Plan::default() };
        let began = 7 * SECOND;
        let asked = |plan: &Plan| {
            let mut snapshot = Snapshot::default();
            snapshot.announce(plan);
            let before = snapshot.asked_rate(began);
            // However the time of day is set, the target goes its way.
            snapshot.begin(&plan.phases[0], began, 1_700_000_000 * SECOND);
            let during = [0, 1, 3, 9].map(|s| snapshot.asked_rate(began + s * SECOND));
            (before, during)
        };
        assert_eq!(asked(&plan), (Some(305.0), [Some(305.0); 4]));
        let change = RatePoint { at_ns: 2 * SECOND, rate: 500.0 };
        plan.changes.rate = Some(steps(100.0, &[change]));
        // Nothing is due in the drain; what was asked last stands there.
        let expected = [105.0, 105.0, 505.0, 505.0].map(Some);
        assert_eq!(asked(&plan), (Some(105.0), expected));
        plan.groups.iter_mut().for_each(|group| (group.rate, group.arrivals) = (None, Arrivals::Closed));
        plan.changes.rate = None;
        assert_eq!(asked(&plan), (None, [None; 4]));
    }

    #[test]
    fn a_step_of_the_time_moves_no_message() {
        let stop = Stop { time_ns: Some(4 * SECOND), requests: None };
        let work = Work::Mix(Mix::of(&[(Verb::Get, 1.0)]));
        let phase = Phase { name: "measure".to_owned(), work, stop, recorded: true };
        let mut snapshot = Snapshot::default();
        snapshot.begin(&phase, 7 * SECOND, 1_700_000_000 * SECOND);
        snapshot.message(9 * SECOND, "words");
        assert_eq!(snapshot.messages, [(2.0, "words".to_owned())]);
        assert_eq!(snapshot.started_unix_ns, 1_700_000_000 * SECOND);
    }

    #[test]
    fn the_targets_of_all_shares_are_that_of_the_run() {
        let group = Group { arrivals: Arrivals::Poisson, rate: Some(300.0), clients: 6, ..Group::default() };
        let stop = Stop { time_ns: Some(4 * SECOND), requests: None };
        let work = Work::Mix(Mix::of(&[(Verb::Get, 1.0)]));
        let phase = Phase { name: "measure".to_owned(), work, stop, recorded: true };
        let other = Group { rate: Some(50.0), clients: 1, ..group.clone() };
        let mut plan = Plan { groups: vec![group, other], phases: vec![phase], ..Plan::default() };
        let share = |clients: [std::ops::Range<u64>; 2]| ProcessShare {
            clients: clients.to_vec(),
            threads: 1,
            first_worker: 0,
            workers: 3,
            mark: 1,
        };
        let shares = [share([0..2, 0..0]), share([2..6, 0..0]), share([0..0, 0..1])];
        let targets = |plan: &Plan| {
            shares.each_ref().map(|share| {
                let mut snapshot = Snapshot::default();
                snapshot.announce_share(plan, share);
                snapshot.asked_rate(0).map(f64::round)
            })
        };
        assert_eq!(targets(&plan), [Some(100.0), Some(200.0), Some(50.0)]);
        plan.changes.rate = Some(steps(150.0, &[RatePoint { at_ns: 2 * SECOND, rate: 500.0 }]));
        assert_eq!(targets(&plan), [Some(50.0), Some(100.0), Some(50.0)]);
    }

    #[test]
    fn how_many_connections_are_open_is_not_known_where_clients_come_and_go() {
        let churn = ChurningClients { spawns: Spawns::Closed, calls: 5, sequence: None };
        let group = Group { churn: Some(churn), ..Group::default() };
        let plan = Plan { groups: vec![group], ..Plan::default() };
        let mut snapshot = Snapshot::default();
        snapshot.announce(&plan);
        snapshot.slice(&plan, &measured());
        assert_eq!((snapshot.connections.asked, snapshot.connections.open), (Some(10), None));
    }

    #[test]
    fn kernel_interfaces_that_are_known_at_the_end_stay_known_in_the_next_run() {
        let plan = Plan::default();
        let mut snapshot = Snapshot::default();
        let mut end = measured();
        end.generator.backends.insert(Backend::Epoll);
        let summary = Summary::of(&end, &plan);
        snapshot.end(&plan, Some((&end, &summary)));
        assert_eq!(snapshot.backends, ["epoll"]);
        snapshot.announce(&plan);
        snapshot.slice(&plan, &measured());
        assert_eq!(snapshot.backends, ["epoll"], "the sum of agents does not know them meanwhile");
    }

    #[test]
    fn what_nobody_asks_for_is_not_kept() {
        let plan = Plan::default();
        let mut snapshot = Snapshot::default();
        snapshot.add(&plan, &mut interval(0, 7));
        snapshot.slice(&plan, &measured());
        assert!(snapshot.ops.is_empty() && snapshot.recent.is_empty() && snapshot.so_far.is_none());
    }

    #[test]
    fn connections_that_are_open_follow_from_those_that_were_lost_and_came_back() {
        let plan = Plan::default();
        let mut snapshot = Snapshot::default();
        snapshot.announce(&plan);
        for event in [ConnectionEvent::Lost, ConnectionEvent::Lost, ConnectionEvent::Back] {
            snapshot.connection(event);
        }
        snapshot.slice(&plan, &measured());
        assert_eq!(snapshot.connections.open, Some(9));
        // The account at the end knows of a loss whose event was dropped.
        let mut end = measured();
        (end.connections.lost, end.connections.reconnected) = (3, 1);
        let summary = Summary::of(&end, &plan);
        snapshot.end(&plan, Some((&end, &summary)));
        assert_eq!((snapshot.connections.lost, snapshot.connections.reopened), (3, 1));
    }

    #[test]
    fn recent_intervals_and_messages_have_a_limit() {
        let plan = Plan::default();
        let mut snapshot = Snapshot { keeps_recent: true, ..Snapshot::default() };
        let mut so_far = measured();
        for index in 0..RECENT_MAX as u64 + 5 {
            so_far.add(&mut interval(index, 1), pummel_measure::measurement::Keep::Figures);
            snapshot.slice(&plan, &so_far);
            snapshot.message(0, "words");
        }
        assert_eq!((snapshot.recent.len(), snapshot.messages.len()), (RECENT_MAX, MESSAGES_MAX));
        assert_eq!(snapshot.recent.front().map(|slice| slice.index), Some(5));
    }
}
