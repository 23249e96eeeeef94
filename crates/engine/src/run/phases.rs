//! The phases of a worker's thread, from its first connection to its last message.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Duration;

use pummel_logic::arrival::{Pace, Schedule};
use pummel_logic::client::PhaseAssignment;
use pummel_logic::plan::share::{ClientId, ClientShare, PhaseShare};
use pummel_logic::plan::timing::PhaseTimes;
use pummel_logic::plan::{self, Stage, Work};
use pummel_logic::protocol::Codec;
use pummel_logic::time::{MILLISECOND, NEVER, Nanos};
use pummel_logic::workload::request::{PhaseChanges, RequestMaker};
use pummel_logic::workload::sequence::Draws;
use pummel_measure::completion::Loaded;
use pummel_measure::uncertainty::tick_ns;

use super::context::RunContext;
use super::setup::parts_of;
use crate::backend::Backend;
use crate::evidence::{BARRIER_MAX, Moment};
use crate::sys;
use crate::worker::barrier::Readiness;
use crate::worker::baseline::BaselineTask;
use crate::worker::message_sender::MessageSender;
use crate::worker::messages::{WorkerEnd, WorkerMessage};
use crate::worker::population::{ChurnPhase, SpawnSchedule};
use crate::worker::reporter::{ReportMode, WorkerReporter};
use crate::worker::{ClientEntry, PhaseWorker, Worker};

/// Nanoseconds between the barrier of the workers and the beginning of a phase, so that no worker is late for it.
const HEAD_START_NS: Nanos = 2 * MILLISECOND;

/// Nanoseconds before the beginning of a phase that several processes have agreed on in which no round trip of the baseline is waited
/// for any more.
const BASELINE_OVER_NS: Nanos = 100 * MILLISECOND;

/// Nanoseconds before that beginning from which on the observer looks: the round trips of all processes are over, although their clocks
/// may differ.
const OBSERVED_NS: Nanos = 80 * MILLISECOND;

/// Most nanoseconds that a worker may be late for the beginning of a phase before the phase begins anew: longer than a
/// busy machine lets a thread wait, so that what a user sees of the load does not depend on it.
const LATE_MAX_NS: Nanos = 100 * MILLISECOND;

/// Most beginnings of a phase.
const BEGINNINGS_MAX: usize = 10;

/// A function that makes the backend of a worker from the worker's number, on the worker's thread. The function is no
/// type parameter, so that each kind of backend is compiled once for each codec.
pub(super) type MakeBackend<'a, B> = dyn Fn(usize) -> io::Result<B> + Sync + 'a;

/// Runs one worker on the calling thread. When a worker panics, the others do not wait for it and the run ends with an
/// error, unless panics abort the process.
pub(super) fn run_worker<C: Codec, B: Backend>(
    context: &RunContext<'_>,
    sender: MessageSender,
    backend: &MakeBackend<'_, B>,
    codec: &C,
) {
    let (worker, say) = (sender.worker, sender.last_message());
    let life = AssertUnwindSafe(|| worker_main::<C, B>(context, sender, backend, codec));
    let Err(panic) = catch_unwind(life) else { return };
    context.barrier.leave();
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
    let failure = Some(io::Error::other(format!("it panicked, which is a bug of pummel: {words}")));
    say(WorkerMessage::Done(Box::new(WorkerEnd { worker, failure, ..WorkerEnd::default() })));
}

/// Runs one worker through all phases, on its CPU and with its backend.
fn worker_main<C: Codec, B: Backend>(
    context: &RunContext<'_>,
    sender: MessageSender,
    backend: &MakeBackend<'_, B>,
    codec: &C,
) {
    let number = sender.worker;
    let pinned = match context.plan.engine.cpus.as_slice() {
        [] => Ok(()),
        cpus => sys::pin_to_cpu(cpus[number % cpus.len()]),
    };
    let backend = match pinned.and_then(|()| backend(number)) {
        Ok(backend) => backend,
        Err(error) => {
            context.barrier.leave();
            let end = WorkerEnd { worker: number, failure: Some(error), ..WorkerEnd::default() };
            sender.say(WorkerMessage::Done(Box::new(end)));
            return;
        }
    };
    if let Some(observer) = &context.observer {
        observer.moments.set_thread(number, sys::thread_number());
    }
    let clients = context.process_share.clients_of_worker(context.plan, number);
    let mut worker = Worker::new(backend, codec, parts_of(context, sender, &clients));
    let result = PhaseRunner { context, number, clients, worker: &mut worker, churns_since: None }.run();
    if result.is_err() {
        context.barrier.leave();
    }
    worker.finish().finish(result.err());
}

/// A worker on its way through the phases of the plan.
struct PhaseRunner<'a, 'w> {
    context: &'a RunContext<'a>,
    /// Number of the worker in this process.
    number: usize,
    clients: Vec<ClientId>,
    worker: &'w mut dyn PhaseWorker,
    /// The beginning of the first phase in which keys change, on the monotonic clock; `None` before it.
    churns_since: Option<Nanos>,
}

impl PhaseRunner<'_, '_> {
    /// Works through all phases, or through those before the first phase that does not begin.
    fn run(&mut self) -> io::Result<()> {
        let context = self.context;
        // A simulated clock has a beginning of its own.
        let began = if context.is_simulated() { self.worker.now() } else { context.began };
        self.worker.open(&context.barrier)?;
        let mut times = PhaseTimes::NONE;
        for share in &context.phases {
            self.prepare(share)?;
            let Some((ready, loaded)) = self.meet(share) else { return Ok(()) };
            let Some(begin) = self.begin_of(share, ready, loaded)? else { return Ok(()) };
            let earlier = times;
            let times_from = |begin| earlier.next(context.plan, share.number, begin, began);
            times = self.begin_in_time(share, begin, &times_from)?;
            self.announce(share, times);
            self.worker.work(&context.barrier, times.end)?;
            self.worker.end_part();
            let reporter = self.worker.reporter();
            reporter.say(WorkerMessage::Spent { phase: share.number, cpu: sys::process_cpu_time() });
            context.stored[share.number].fetch_add(reporter.stored(), Ordering::Relaxed);
            self.observe_after(share.number);
            self.share_ledger(share.number);
        }
        Ok(())
    }

    /// Adds the acknowledged writes of this worker to those of the others, behind the last phase that is measured.
    fn share_ledger(&mut self, phase: usize) {
        let context = self.context;
        let Some(shared) = &context.audit else { return };
        if context.plan.phases.iter().rposition(|phase| phase.recorded) == Some(phase)
            && let Some(ledger) = self.worker.parts().1.take_ledger()
        {
            shared.add(ledger);
        }
    }

    /// Opens the connections that a phase needs at its beginning and that are not open.
    fn prepare(&mut self, share: &PhaseShare<'_>) -> io::Result<()> {
        let context = self.context;
        // With windows each socket keeps the transport that it has.
        let changed = context.window.is_none()
            && self.worker.change_transport(&|server| context.transport_of(share.phase, server));
        if changed {
            self.idle(share);
            self.worker.open(&context.barrier)
        } else if share.begins_with_all_open() && self.worker.has_shut() {
            self.idle(share);
            self.worker.reopen(&context.barrier)
        } else {
            Ok(())
        }
    }

    /// Meets the other workers of this process for a phase. Returns since when all are ready, on the monotonic clock, and
    /// what the phase before stored; `None` where the phase does not begin.
    fn meet(&mut self, share: &PhaseShare<'_>) -> Option<(Nanos, Loaded)> {
        let context = self.context;
        // What can be read back is, although a server is gone.
        let is_behind = matches!(share.phase.work, Work::Audit(_) | Work::Pause(_)) && context.plan.audits();
        let readiness = if is_behind { Readiness::Ready } else { self.worker.readiness() };
        let ready = context.barrier.wait(self.worker.now(), readiness)?;
        let loaded =
            share.number.checked_sub(1).map_or(Loaded::default(), |before| context.loaded_by(before));
        // Where the load is shared among processes, the controller decides.
        let goes_on = !loaded.has_failed() || !context.process_share.is_whole();
        goes_on.then_some((ready, loaded))
    }

    /// Time at which a phase begins, on the monotonic clock; `None` if it does not begin. `ready` is the time since
    /// which all workers of this process are ready, and `loaded` has the records that the phase before stored.
    fn begin_of(
        &mut self,
        share: &PhaseShare<'_>,
        ready: Nanos,
        loaded: Loaded,
    ) -> io::Result<Option<Nanos>> {
        let (context, phase) = (self.context, share.number);
        let has_baseline = context.plan.baseline_phase() == Some(phase);
        let Some(gate) = context.gate else {
            let ready = match has_baseline {
                true => self.measure_baseline(share, NEVER)?,
                false => Some(ready),
            };
            let Some(ready) = ready else { return Ok(None) };
            self.observe_before(phase, NEVER);
            let is_observed = context.observer.as_ref().is_some_and(|observer| observer.phases.0 == phase);
            let ready = match is_observed {
                // Worker 0 waits for the observer, and the others wait for worker 0.
                true => context.barrier.wait(self.worker.now(), Readiness::Ready),
                false => Some(ready),
            };
            return Ok(ready.map(|ready| ready.saturating_add(HEAD_START_NS)));
        };
        // Worker 0 passes the gate for all, and the others wait for the result.
        let mut begin = match self.number {
            0 => gate.pass(ready, loaded),
            _ => Some(0),
        };
        if has_baseline {
            // All processes are ready now, and the phase begins late enough for the round trips of all.
            let readiness = if begin.is_some() { Readiness::Ready } else { Readiness::Unable };
            begin = context.barrier.wait(begin.unwrap_or(0), readiness);
            let Some(begin) = begin else { return Ok(None) };
            if self.measure_baseline(share, begin.saturating_sub(BASELINE_OVER_NS))?.is_none() {
                return Ok(None);
            }
            // Others make theirs still, which the servers count.
            self.worker.await_begin(begin.saturating_sub(OBSERVED_NS))?;
        }
        if let Some(begin) = begin.filter(|_| self.number == 0) {
            // All processes are ready now, and none sends anything before the phase begins.
            self.observe_before(phase, begin);
        }
        let readiness = if begin.is_some() { Readiness::Ready } else { Readiness::Unable };
        Ok(context.barrier.wait(begin.unwrap_or(0), readiness))
    }

    /// Makes the round trips of the baseline before a phase, whose replies are waited for until `until` at most, and opens the
    /// connections again that were lost in it. Returns since when all workers of this process have done so; `None` where the phase
    /// does not begin.
    fn measure_baseline(&mut self, share: &PhaseShare<'_>, until: Nanos) -> io::Result<Option<Nanos>> {
        let context = self.context;
        let own = context.plan.own_reads(share.number);
        let worker = u64::from(context.process_share.first_worker) + self.number as u64;
        // No client has the greatest numbers.
        let owner = context.place_of(share.number, 0, u64::MAX - worker);
        let task = BaselineTask { own: &own, owner, until, barrier: &context.barrier };
        let baseline = self.worker.measure_baseline(&task)?;
        self.worker.reporter().say(WorkerMessage::Baseline(Box::new(baseline)));
        if share.begins_with_all_open() && self.worker.has_shut() {
            self.idle(share);
            self.worker.reopen(&context.barrier)?;
        }
        Ok(context.barrier.wait(self.worker.now(), self.worker.readiness()))
    }

    /// Lets the observer look before a phase, on worker 0: at the first phase all connections are open, and before the first
    /// measured one nothing is under way. Waits for the observer, but not beyond `begin`.
    fn observe_before(&self, phase: usize, begin: Nanos) {
        let context = self.context;
        let Some(observer) = context.observer.as_ref().filter(|_| self.number == 0) else { return };
        let moments = &observer.moments;
        if phase == 0 {
            moments.announce(Moment::Open);
        }
        if observer.phases.0 == phase {
            moments.announce(Moment::Before);
            let left = begin.saturating_sub(self.worker.now()).saturating_sub(HEAD_START_NS);
            let limit = BARRIER_MAX.min(Duration::from_nanos(left));
            moments.wait_until_observed(Moment::Before, limit, &|| context.barrier.is_stopped());
        }
    }

    /// Lets the observer look after the last measured phase, when all workers have ended it and connections are open still.
    fn observe_after(&self, phase: usize) {
        let context = self.context;
        let Some(observer) = &context.observer else { return };
        if observer.phases.1 != phase {
            return;
        }
        // The result of the barrier does not matter: a run that was stopped is looked at too.
        let _ = context.barrier.wait(self.worker.now(), Readiness::Ready);
        if self.number == 0 {
            observer.moments.announce(Moment::After);
            observer.moments.wait_until_observed(Moment::After, BARRIER_MAX, &|| false);
        }
        let _ = context.barrier.wait(self.worker.now(), Readiness::Ready);
    }

    /// Gives every client its assignment for a phase that begins at `begin`, and waits for that. Returns the times of the phase,
    /// which are `times_from` its beginning. A worker that had no CPU when the phase should have begun, and that is the only one of its
    /// run, lets it begin anew: nothing of it was asked, and a short phase may even be over by then.
    fn begin_in_time(
        &mut self,
        share: &PhaseShare<'_>,
        begin: Nanos,
        times_from: &dyn Fn(Nanos) -> PhaseTimes,
    ) -> io::Result<PhaseTimes> {
        let context = self.context;
        let is_alone = context.gate.is_none() && context.process_share.threads == 1;
        let mut times = times_from(begin);
        for _ in 0..BEGINNINGS_MAX {
            self.begin(share, times);
            let now = self.worker.await_begin(times.begin)?;
            let is_late = now.saturating_sub(times.begin) > LATE_MAX_NS;
            if !is_alone || !is_late || context.plan.runs_on(share.number) {
                break;
            }
            times = times_from(now.saturating_add(HEAD_START_NS));
        }
        Ok(times)
    }

    /// Gives every client its assignment for a phase.
    fn begin(&mut self, share: &PhaseShare<'_>, times: PhaseTimes) {
        let context = self.context;
        let (plan, phase) = (context.plan, share.phase);
        let churned = self.churned_before(share.number, times.begin);
        let unanswered = self.worker.unanswered();
        let (entries, maker, reporter) = self.worker.parts();
        begin_clients(context, share, (times, churned), &self.clients, entries, maker, reporter);
        self.worker.clear_stage();
        let (entries, _, reporter) = self.worker.parts();
        let open = entries.iter().map(|entry| entry.client.open_lanes()).sum();
        reporter.note_open(open, unanswered);
        if let (Work::Mix(_), Some((group, churn))) = (&phase.work, plan.churning_group()) {
            self.worker.begin_churn(churn_phase_of(context, share, (group, churn), times));
        }
    }

    /// Reports that a phase begins, and opens its part of the trace.
    fn announce(&mut self, share: &PhaseShare<'_>, times: PhaseTimes) {
        let context = self.context;
        let part = context.trace_run.as_ref().and_then(|run| run.parts[share.number]);
        if let Some(part) = part {
            self.worker.begin_part(part);
        }
        if self.number == 0 {
            let round = context.barrier.round();
            let (phase, at, cpu) = (share.number, times.begin, sys::process_cpu_time());
            let began = WorkerMessage::Began { phase, at, cpu, round };
            self.worker.reporter().say(began);
        }
    }

    /// Time for which keys have changed before a phase that begins at `begin`, in nanoseconds; `None` where they change
    /// in no phase before it. The plan's times count where it says them, so that keys follow from the plan alone.
    fn churned_before(&mut self, phase: usize, begin: Nanos) -> Option<Nanos> {
        let plan = self.context.plan;
        let since = self.churns_since;
        if since.is_none() && plan.churns(phase) {
            self.churns_since = Some(begin);
        }
        since.map(|since| plan.churned_before(phase).unwrap_or(begin.saturating_sub(since)))
    }

    /// Gives every client an assignment without requests.
    fn idle(&mut self, share: &PhaseShare<'_>) {
        let context = self.context;
        let (entries, ..) = self.worker.parts();
        for (entry, client) in entries.iter_mut().zip(&self.clients) {
            let place = context.place_of(share.number, client.group, client.number);
            let asked_before = entry.client.asked();
            entry.client.begin(PhaseAssignment { asked_before, ..PhaseAssignment::nothing(place) }, None);
        }
    }
}

/// Gives every client of a worker its assignment for a phase, and its maker and its reporter theirs. Keys have changed for `churned`
/// nanoseconds. Neither codec nor backend is a part of it, so that it is compiled once.
#[inline(never)]
fn begin_clients(
    context: &RunContext<'_>,
    share: &PhaseShare<'_>,
    (times, churned): (PhaseTimes, Option<Nanos>),
    clients: &[ClientId],
    entries: &mut [ClientEntry],
    maker: &mut RequestMaker,
    reporter: &mut WorkerReporter,
) {
    let (plan, phase) = (context.plan, share.phase);
    if let (Work::Audit(_), Some(shared)) = (&phase.work, &context.audit) {
        maker.keep_audited(shared.closed());
    }
    maker.begin(&phase.work, plan.seed);
    let churned_ns = churned.unwrap_or(0);
    let changes = match phase.recorded {
        true => PhaseChanges { parts: &plan.changes.parts, churned_ns, events: &plan.changes.events },
        false => PhaseChanges { churned_ns, ..PhaseChanges::default() },
    };
    maker.begin_changes(&phase.work, &changes, plan.seed);
    let is_sliced = phase.recorded || context.finds_end_of_warm_up(share.number);
    let mode = if is_sliced { ReportMode::Record(tick_ns(plan.interval_ns)) } else { ReportMode::Count };
    reporter.begin_phase(share.number, mode, times.begin, times.end);
    reporter.note_rows(phase.recorded);
    reporter.note_loads(matches!(phase.work, Work::Load(_)));
    let paces = &context.paces[share.number];
    let stage = Stage::of(plan, share.number);
    for (entry, &client) in entries.iter_mut().zip(clients) {
        let stage = stage.as_ref().filter(|_| client.group == 0);
        let asked_before = churned.map_or(0, |_| entry.client.asked());
        let assignment = PhaseAssignment { asked_before, ..assignment_of(context, share, client, times) };
        let schedule = match &phase.work {
            Work::Pause(_) => Some(Schedule::never()),
            _ => paces[client.group].as_ref().map(|pace| match stage {
                Some(stage) => pace.schedule_on_stage(assignment.place, stage),
                None => pace.schedule(assignment.place),
            }),
        };
        entry.client.begin(assignment, schedule);
        let turns = stage.map(|stage| stage.turns_of(client.number));
        entry.client.set_turns(turns, plan.drain_ns(), maker);
        if client.group == 0 {
            entry.client.add_events(maker);
        }
    }
}

/// The assignment of a client in a phase.
fn assignment_of(
    context: &RunContext<'_>,
    share: &PhaseShare<'_>,
    client: ClientId,
    times: PhaseTimes,
) -> PhaseAssignment {
    let group = &context.plan.groups[client.group];
    let ClientShare { requests, depth, repeats } = share.of_client(client);
    PhaseAssignment {
        place: context.place_of(share.number, client.group, client.number),
        same_draws: group.policy.same_draws,
        begin: times.begin,
        end: times.end,
        requests,
        depth,
        batched: share.is_batched(client.group),
        repeats,
        late: group.policy.late,
        // What goes as fast as it can, as a load does, has no gaps that could be kept.
        spacing_ns: if group.policy.spaced && share.arrivals_of(client.group).is_some() {
            mean_gap_ns(group)
        } else {
            0
        },
        ends_on_time: group.policy.ends_on_time,
        asked_before: 0,
    }
}

/// The mean time between two requests of a client, in nanoseconds; 0 in closed loop.
fn mean_gap_ns(group: &plan::Group) -> Nanos {
    group.rate.map_or(0, |rate| Pace::mean_gap_ns(rate, u64::from(group.clients)))
}

/// The phase of a group's clients that come and go.
fn churn_phase_of(
    context: &RunContext<'_>,
    share: &PhaseShare<'_>,
    (group, churn): (usize, &plan::ChurningClients),
    times: PhaseTimes,
) -> ChurnPhase {
    let place = context.place_of(share.number, group, 0);
    let sequence = churn.sequence.as_ref();
    let spawns = match &churn.spawns {
        plan::Spawns::Closed => SpawnSchedule::Closed,
        plan::Spawns::Open { arrivals, rate } => {
            SpawnSchedule::Scheduled(Pace::new(arrivals, *rate, 1).schedule(place))
        }
        plan::Spawns::Drawn(gap) => {
            SpawnSchedule::Drawn(Draws::new(*gap, sequence.map_or(0, |sequence| sequence.instance)))
        }
    };
    // Where all clients draw the same, or ask their operations in turns, short lives would end before the later draws and turns.
    let takes_turns = matches!(&context.plan.phases[share.number].work, Work::Mix(mix) if mix.in_turns);
    let goes_on = takes_turns || context.plan.groups[group].policy.same_draws;
    ChurnPhase {
        place,
        same_draws: context.plan.groups[group].policy.same_draws,
        begin: times.begin,
        end: times.end,
        spawns,
        requests: share.requests.unwrap_or(u64::MAX),
        calls: churn.calls,
        goes_on: goes_on.then_some(context.plan.groups[group].clients.into()),
        depth: share.churning_depth(group, churn.calls),
        batched: share.is_batched(group),
        has_call_gaps: sequence.is_some_and(|sequence| sequence.calls.is_some()),
        // mcperf's connections come when they are due, and a failed one delays no other.
        paced: sequence.is_none(),
    }
}
