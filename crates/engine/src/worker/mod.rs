//! The worker: one thread, its clients and connections, and the loop in which it works.
//!
//! One turn of the loop wakes the clients that are due, sends their requests, waits for events and handles the events.
//! No request is sent while an event is handled: all events of a turn are handled before the requests that follow from
//! them are sent.

pub(crate) mod barrier;
pub(crate) mod baseline;
mod churn_account;
mod connecting;
mod connections;
pub(crate) mod deadlines;
pub(crate) mod departures;
mod events;
mod expiry;
pub(crate) mod external_inputs;
pub(crate) mod feed;
mod lane_slots;
mod load_model;
pub(crate) mod message_sender;
pub mod messages;
pub(crate) mod opening;
pub(crate) mod population;
pub(crate) mod refusals;
mod replies;
pub(crate) mod reporter;
mod sending;
mod setup;
pub(crate) mod silence;
mod stamping;
mod state;
pub(crate) mod steering;

use std::io;
use std::sync::Arc;

use pummel_logic::plan::Transport;
use pummel_logic::protocol::Codec;
use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND};
use pummel_logic::workload::request::RequestMaker;
use pummel_measure::baseline::Baseline;
use pummel_measure::phase_ends::PhaseOutcome;

use crate::backend::{Backend, Close};
use crate::worker::barrier::{Barrier, Readiness};
use crate::worker::baseline::{BaselineTask, RoundTripMaker};
use crate::worker::connections::Connection;
use crate::worker::deadlines::TimingWheel;
use crate::worker::events::{handle, handle_others};
use crate::worker::expiry::{finds_late, give_up_late};
use crate::worker::external_inputs::{ExternalInputs, count_held_back, end_waiting};
use crate::worker::population::{ChurnLimits, ChurnPhase, Population};
use crate::worker::reporter::WorkerReporter;
pub(crate) use crate::worker::setup::{Endpoint, WorkerLimits, WorkerSetup};
pub(crate) use crate::worker::state::ClientEntry;
use crate::worker::state::WorkerState;
use crate::worker::steering::{Follower, SteeredRate};

/// Most looks for what lies unread when few connections are open: the largest socket buffers are empty after fewer.
const LOOKS_MAX: usize = 64;

/// Silence of servers after which they have refused all the connections that they refuse, in nanoseconds.
const QUIET_NS: Nanos = 100 * MILLISECOND;

/// Longest wait of a worker for refusals, in nanoseconds.
const REFUSALS_MAX_NS: Nanos = SECOND;

/// Least number of connections that are served by one look, however many have something to read.
const SERVED_BY_A_LOOK: usize = 64;

/// One thread's backend, clients, connections and measurements.
#[derive(Debug)]
pub struct Worker<C, B> {
    backend: B,
    population: Population,
    state: WorkerState<C>,
    /// Sources beside the connections, looked at in each turn; `None` where there are none.
    external: Option<Box<ExternalInputs>>,
    /// Follows the changes of the rate; `None` if the rate is not changed by hand.
    follower: Option<Box<Follower>>,
}

/// The parts of a worker beside its codec and its backend.
#[derive(Debug)]
pub struct WorkerParts {
    /// The clients, with all that they need.
    pub setup: WorkerSetup,
    /// Sources beside the connections, looked at in each turn.
    pub external: ExternalInputs,
    /// The rate that the clients follow; `None` keeps the rate of their schedules.
    pub steered: Option<Arc<SteeredRate>>,
    /// The limits of the clients that come and go; `None` if all clients stay in all phases.
    pub churn_limits: Option<ChurnLimits>,
}

/// The steps of a run's phases on a worker, whatever its codec and its backend: the way through the phases is compiled
/// once.
pub trait PhaseWorker {
    /// Begins part `part` of a trace with the phase that follows.
    fn begin_part(&mut self, part: u32);

    /// Ends the part of a trace with the phase under way.
    fn end_part(&mut self);

    /// Opens every connection. Returns early when a connection cannot be opened, or is lost, since the run then does not
    /// go on; clients with windows go on without those of their number that lost a connection which was open. A
    /// connection that was open and that its server closed meanwhile is opened again in the phases that follow, which
    /// give a server up: one that refuses it would be asked without an end here.
    ///
    /// # Errors
    /// Returns the error of the backend when the kernel refuses to wait. A connection that cannot be opened is counted
    /// by the reporter and is no error here.
    fn open(&mut self, barrier: &Barrier) -> io::Result<()>;

    /// Number of connections that are open and on which the server has sent nothing yet, no agreement to a handshake either.
    fn unanswered(&self) -> u64;

    /// Whether connections that were lost in the last phase, or that its end closed, have to be opened again before the
    /// next phase.
    fn has_shut(&self) -> bool;

    /// Opens the connections again that were lost in the last phase, or that its end closed because their replies were
    /// late. Returns when each of them is open or its first attempt has failed, which takes one timeout at most for each
    /// address of a server, and another one where a handshake follows. All clients must have an assignment without requests.
    ///
    /// # Errors
    /// Returns the error of the backend when the kernel refuses to wait.
    fn reopen(&mut self, barrier: &Barrier) -> io::Result<()>;

    /// Prepares a phase in which clients come and go: closes all connections and frees all slots.
    ///
    /// # Panics
    /// Panics when clients do not come and go in this run.
    fn begin_churn(&mut self, churn_phase: ChurnPhase);

    /// Makes round trips one at a time on connections that are open, while no client has anything to do.
    ///
    /// # Errors
    /// Returns the error of the backend when the kernel refuses to wait. What a server does is no error here.
    fn measure_baseline(&mut self, task: &BaselineTask<'_>) -> io::Result<Baseline>;

    /// Waits for the beginning of a phase, for which every client must have its assignment. Events of connections are
    /// handled meanwhile. Returns the time at which the wait was over, `begin` or later.
    ///
    /// # Errors
    /// Returns the error of the backend when the kernel refuses to wait.
    fn await_begin(&mut self, begin: Nanos) -> io::Result<Nanos>;

    /// Works one phase, which has begun, up to `end`. Every client must have its assignment for the phase.
    ///
    /// # Errors
    /// Returns the error of the backend when the kernel refuses to wait. Failures of servers are counted and are no
    /// errors here.
    fn work(&mut self, barrier: &Barrier, end: Nanos) -> io::Result<()>;

    /// Readiness of the worker for the next phase: every connection is open or will be opened again. Clients with
    /// windows do without those of their number whose connections were lost after they had been opened.
    fn readiness(&self) -> Readiness;

    /// The reporter of this worker.
    fn reporter(&self) -> &WorkerReporter;

    /// The monotonic clock of the backend.
    fn now(&self) -> Nanos;

    /// The clients, the maker of their requests, and the reporter: what the beginning of a phase changes.
    fn parts(&mut self) -> (&mut [ClientEntry], &mut RequestMaker, &mut WorkerReporter);

    /// Closes the connections of the clients that are off stage when a phase begins.
    fn clear_stage(&mut self);

    /// Sets the transport of each server's connections, between phases, and closes the connections whose transport
    /// changes. Returns whether there are any; their clients have no connection until it is opened again.
    fn change_transport(&mut self, transport: &dyn Fn(u32) -> Transport) -> bool;
}

impl<C: Codec, B: Backend> Worker<C, B> {
    /// A worker without an open connection. Every connection gets a copy of `codec`, so that its settings hold for all of them.
    pub fn new(backend: B, codec: &C, parts: WorkerParts) -> Worker<C, B> {
        let WorkerParts { setup, external, steered, churn_limits } = parts;
        let (population, wheel) = match churn_limits {
            Some(limits) => {
                let slots = (setup.clients.len(), setup.endpoints.len());
                (Population::churning(limits, slots), TimingWheel::exact())
            }
            None => {
                let wheel = TimingWheel::new(setup.limits.timeout_ns, backend.now());
                (Population::staying(setup.maker.has_window()), wheel)
            }
        };
        Worker {
            backend,
            population,
            state: WorkerState::new(setup, wheel, codec.renew()),
            external: external.boxed(),
            follower: steered.map(|rate| Box::new(Follower::new(rate))),
        }
    }

    /// Takes turns until all clients have the connections that they want, or until `enough` returns true.
    fn open_until(&mut self, barrier: &Barrier, enough: &mut Enough<'_, C>) -> io::Result<()> {
        self.population.wake_all(&mut self.state);
        self.turns(barrier, Bounds { end: NEVER, drain_end: NEVER, idle: false }, Some(enough))?;
        Ok(())
    }

    /// Waits for the refusals that are on their way where a server has refused a connection that is not opened again: how many
    /// it took and how many it refused is said at the end.
    fn await_refusals(&mut self) -> io::Result<()> {
        let Worker { backend, population, state, .. } = self;
        if state.limits.reconnect || !state.reporter.refusals.any() {
            return Ok(());
        }
        let begun = backend.now();
        let mut last_event = begun;
        let mut now = begun;
        while state.unanswered() > 0 && now < last_event + QUIET_NS && now < begun + REFUSALS_MAX_NS {
            now = backend.wait_from(now, last_event + QUIET_NS)?;
            let mut any = false;
            take_events(state, population, backend, now, || any = true);
            if any {
                last_event = now;
            }
        }
        Ok(())
    }

    /// Takes the refusals that lie unread, since connections that are refused may be the reason why the run is over.
    /// Refusals that cannot be waited for any more are not reported.
    fn take_last_refusals(&mut self) {
        if !self.state.limits.reconnect && self.state.unanswered() > 0 {
            self.state.is_opening = true;
            let Worker { backend, population, state, .. } = &mut *self;
            let _ = take_what_lies_unread(state, population, backend);
            let _ = self.await_refusals();
        }
        self.state.note_refusals();
    }

    /// Closes every connection and returns the reporter.
    pub fn finish(mut self) -> WorkerReporter {
        self.take_last_refusals();
        for slot in 0..self.state.connections.len() {
            self.backend.close(self.state.id(slot), Close::Fin);
            let counts = self.state.connections[slot].session.take_datagram_counts();
            self.state.reporter.add_datagrams(&counts);
        }
        self.state.reporter.note_asked(self.state.maker.lateness(), self.state.maker.asked_rows());
        self.state.reporter
    }

    /// Takes turns until every client is done, the drain is over, or `enough` returns true. Returns the time at which
    /// that was the case. `enough` is no type parameter, so that this loop, with all that it contains, is compiled once for a
    /// codec and a backend.
    fn turns(
        &mut self,
        barrier: &Barrier,
        mut bounds: Bounds,
        mut enough: Option<&mut Enough<'_, C>>,
    ) -> io::Result<Nanos> {
        let Worker { backend, population, state, external, follower } = self;
        let mut now = backend.now();
        let ends_on_time = state.entries.iter().any(|entry| entry.client.ends_on_time());
        // When clients that send nothing in the drain are stopped; never where there are none, or they are stopped.
        let mut stop_at = if ends_on_time { bounds.end } else { NEVER };
        loop {
            if now >= stop_at {
                population.end_on_time(state, stop_at);
                stop_at = NEVER;
            }
            // The end of the phase before does not end the opening of connections, which has no end of its own.
            let is_over =
                if bounds.end == NEVER { barrier.is_stopped() } else { barrier.ends_at() < bounds.end };
            if is_over && bounds.end > now {
                bounds = ended_early(population, state, barrier, bounds, now);
                stop_at = stop_at.min(if ends_on_time { bounds.end } else { NEVER });
            }
            // A reply without a receive stamp counts as arrived when it was read, which may be after `now`. The request
            // that follows from it is due at that time, and is sent in this turn.
            let due_until = now.max(state.read_at);
            state.wake_due(due_until);
            if !state.relieved.is_empty() {
                population.relieve(state, backend, now);
            }
            if let Some(external) = external {
                external.look(state, population, backend, now);
            }
            population.serve_woken(state, backend, due_until);
            state.open_queued(backend, now);
            if now >= population.next_due() {
                population.poll(state, backend, now);
            }
            if now >= bounds.drain_end {
                // A reply that came in the drain ends its request, but no request follows from it any more.
                if state.is_owed() {
                    take_what_lies_unread(state, population, backend)?;
                }
                return Ok(backend.now());
            }
            if enough.as_mut().is_some_and(|enough| enough(state)) {
                return Ok(now);
            }
            if state.active == 0
                && let Some(over) = over_when_idle(state, barrier, &mut bounds, now)
            {
                return Ok(over);
            }
            let until = state.next_time(now).min(population.next_due()).min(bounds.drain_end);
            let until = external.as_ref().map_or(until, |external| until.min(external.next_look(now)));
            let woke = backend.now();
            state.reporter.worked(now, woke);
            now = backend.wait_from(woke, until)?;
            state.reporter.waited(until.max(woke), now);
            take_events(state, population, backend, now, || ());
            if finds_late(state, now) {
                take_what_lies_unread(state, population, backend)?;
                give_up_late(state, population, backend, now);
            }
            if state.reporter.tick(now) {
                if let Some(follower) = follower {
                    follower.look(population, state);
                }
                if state.limits.has_stage {
                    cut_turns(state, now);
                }
            }
        }
    }

    /// Ends a phase that was over at `over`: requests without a reply are unfinished, and requests that were due and
    /// were not sent are unsent.
    fn close_phase(&mut self, over: Nanos) {
        let Worker { backend, population, state, .. } = self;
        let now = backend.now();
        state.reporter.abandon(true);
        state.end_redirects();
        for slot in 0..state.connections.len() {
            if !state.connections[slot].session.is_idle() {
                // This worker closes the connection because its replies would arrive in the next phase. The connection
                // counts neither as lost nor as reconnected.
                backend.close(state.id(slot), Close::Fin);
                state.connections[slot].history.closed_between_phases = true;
                state.note_missed_replies(slot);
                population.end_session(state, slot, now);
            }
        }
        end_waiting(state, now);
        state.reporter.abandon(false);
        count_held_back(state, over);
        let missing = population.end_phase(state, backend, over);
        state.await_closed();
        account_for(state, missing, over, now);
    }
}

/// Handles the events of the backend and their immediate consequences. Calls `seen` for each event.
#[inline]
fn take_events<C: Codec, B: Backend>(
    state: &mut WorkerState<C>,
    population: &mut Population,
    backend: &mut B,
    now: Nanos,
    mut seen: impl FnMut(),
) {
    backend.drain(&mut |conn, event| {
        seen();
        handle(state, population, conn, event, now);
    });
    handle_others(state, population, backend);
}

/// Reads all bytes that have arrived. One call of the backend handles a limited number of connections and bytes, and
/// a signal may have ended the wait before any were handled, so several calls are made. Their number is limited too,
/// in case a peer never stops sending.
#[cold]
fn take_what_lies_unread<C: Codec, B: Backend>(
    state: &mut WorkerState<C>,
    population: &mut Population,
    backend: &mut B,
) -> io::Result<()> {
    let mut empty_looks = 0;
    for _ in 0..LOOKS_MAX + state.connections.len() / SERVED_BY_A_LOOK {
        let now = backend.now();
        let now = backend.wait(now)?;
        let mut is_empty = true;
        take_events(state, population, backend, now, || is_empty = false);
        empty_looks = if is_empty { empty_looks + 1 } else { 0 };
        // The first look may only ask again for a receive that had found no buffer.
        if empty_looks == 2 {
            break;
        }
    }
    Ok(())
}

impl<C: Codec, B: Backend> PhaseWorker for Worker<C, B> {
    fn begin_part(&mut self, part: u32) {
        if let Some(external) = &mut self.external {
            external.begin_part(part);
        }
    }

    fn end_part(&mut self) {
        if let Some(external) = &mut self.external {
            external.end_part();
        }
    }

    fn open(&mut self, barrier: &Barrier) -> io::Result<()> {
        let has_windows = matches!(self.population, Population::Windowed(_));
        let lost = |state: &WorkerState<C>| state.lanes_lost - state.lanes_refused;
        let lost_before = lost(&self.state);
        let mut decided = 0;
        self.state.is_opening = true;
        self.open_until(barrier, &mut |state| {
            let is_decided = |connection: &&Connection<C>| {
                let client = || &state.entries[connection.client as usize].client;
                let history = connection.history;
                history.opened
                    || history.refused
                    || has_windows && client().is_cut_off()
                    || state.lanes.may_be_absent() && client().is_absent(connection.lane)
            };
            decided += state.connections[decided..].iter().take_while(is_decided).count();
            let ends_run = if has_windows { state.lanes_unopened > 0 } else { lost(state) > lost_before };
            decided == state.connections.len() || ends_run
        })?;
        self.state.is_opening = false;
        self.await_refusals()
    }

    fn unanswered(&self) -> u64 {
        self.state.unanswered()
    }

    fn has_shut(&self) -> bool {
        self.state.connections.iter().any(|connection| connection.history.awaited)
    }

    fn reopen(&mut self, barrier: &Barrier) -> io::Result<()> {
        self.open_until(barrier, &mut |state| !state.is_reopening())
    }

    fn begin_churn(&mut self, churn_phase: ChurnPhase) {
        self.population.begin_churn(&mut self.state, churn_phase, &mut self.backend);
    }

    fn measure_baseline(&mut self, task: &BaselineTask<'_>) -> io::Result<Baseline> {
        let Worker { backend, population, state, .. } = self;
        RoundTripMaker { backend, population, state }.make(task)
    }

    fn await_begin(&mut self, begin: Nanos) -> io::Result<Nanos> {
        let Worker { backend, population, state, .. } = self;
        let mut now = backend.now();
        loop {
            // The wait does not sleep over what is not taken.
            now = backend.wait_from(now, begin)?;
            take_events(state, population, backend, now, || ());
            if now >= begin {
                break;
            }
        }
        state.reporter.note_begun(now);
        if !population.comes_and_goes() {
            let open = state.entries.iter().map(|entry| entry.client.open_lanes()).sum();
            state.reporter.note_open(open, state.unanswered());
        }
        Ok(now)
    }

    fn work(&mut self, barrier: &Barrier, end: Nanos) -> io::Result<()> {
        self.population.wake_all(&mut self.state);
        self.state.silence.begin_phase();
        self.state.silence_max_ns = match (end, self.state.maker.is_load()) {
            (NEVER, true) => self.state.limits.load_silence_max_ns,
            (NEVER, false) => self.state.limits.silence_max_ns,
            _ if self.state.maker.audited().is_some() => self.state.limits.silence_max_ns,
            _ => NEVER,
        };
        let bounds = Bounds { end, drain_end: end.saturating_add(self.state.limits.drain_ns), idle: false };
        let over = self.turns(barrier, bounds, None)?;
        self.close_phase(over);
        Ok(())
    }

    fn readiness(&self) -> Readiness {
        let state = &self.state;
        match &self.population {
            Population::Windowed(_) if state.lanes_unopened == 0 && state.has_lost() => {
                let goes_on = state.entries.iter().any(|entry| !entry.client.is_cut_off());
                if goes_on { Readiness::Ready } else { Readiness::Idle }
            }
            _ if state.has_lost() => Readiness::Unable,
            _ => Readiness::Ready,
        }
    }

    fn reporter(&self) -> &WorkerReporter {
        &self.state.reporter
    }

    fn now(&self) -> Nanos {
        self.backend.now()
    }

    fn parts(&mut self) -> (&mut [ClientEntry], &mut RequestMaker, &mut WorkerReporter) {
        (&mut self.state.entries, &mut self.state.maker, &mut self.state.reporter)
    }

    fn clear_stage(&mut self) {
        let Worker { backend, population, state, .. } = self;
        for number in 0..state.entries.len() {
            if state.entries[number].client.is_off_stage() {
                population.close_lanes(state, number, backend);
            }
        }
    }

    fn change_transport(&mut self, transport: &dyn Fn(u32) -> Transport) -> bool {
        let mut any = false;
        let state = &mut self.state;
        for slot in 0..state.connections.len() {
            let endpoint = &mut state.endpoints[slot];
            let transport = transport(endpoint.server);
            if std::mem::replace(&mut endpoint.transport, transport) == transport {
                continue;
            }
            any = true;
            state.reset(slot, &mut self.backend);
            let counts = state.connections[slot].session.take_datagram_counts();
            state.reporter.add_datagrams(&counts);
            let (client, lane) = state.owner(slot);
            state.entries[client].client.handle_closed(lane, true, &mut state.maker);
        }
        any
    }
}

/// Counts what the clients leave behind at the end of a phase that was over at `over`, and reports that the phase ended. The backend
/// is no part of it, so that it is compiled once for a codec.
#[inline(never)]
fn account_for<C: Codec>(state: &mut WorkerState<C>, mut missing: u64, over: Nanos, now: Nanos) {
    let ends = state.reporter.part_ends(over);
    let draws_max = (state.limits.unsent_draws_max / ends.len() as u64).max(1);
    let (mut dead, mut repeated) = (0, 0);
    for number in 0..state.entries.len() {
        state.count_unsent(number, &ends, draws_max);
        let WorkerState { entries, reporter, .. } = &mut *state;
        let entry = &mut entries[number];
        let client = &entry.client;
        repeated += client.repeated();
        dead += client.lost_lanes();
        missing += client.missing();
        reporter.skipped(client.skipped());
        entry.due = NEVER;
    }
    state.due.clear();
    let silent = state.silent(now);
    let outcome = PhaseOutcome { dead, missing, repeated, silent };
    state.reporter.end_phase(over, outcome);
}

/// Lets the clients send nothing more that have been late for too long behind their turn on stage.
#[cold]
fn cut_turns<C: Codec>(state: &mut WorkerState<C>, now: Nanos) {
    for number in 0..state.entries.len() {
        if state.entries[number].client.cut_turn(now) {
            state.wake(number);
        }
    }
}

/// Decides by a worker's state whether its turns end.
type Enough<'a, C> = dyn FnMut(&WorkerState<C>) -> bool + 'a;

/// The end of a phase, and the time at which its last replies are given up.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    end: Nanos,
    drain_end: Nanos,
    /// Whether the other workers know that this worker has nothing left to do.
    idle: bool,
}

/// The bounds of a phase that ends before its time: now where the run was stopped, and at the moment that all workers know
/// otherwise.
#[cold]
fn ended_early<C: Codec>(
    population: &mut Population,
    state: &mut WorkerState<C>,
    barrier: &Barrier,
    bounds: Bounds,
    now: Nanos,
) -> Bounds {
    let end = match barrier.is_stopped() {
        true => {
            population.stop(state, now);
            now
        }
        false => {
            let end = barrier.ends_at().max(now);
            population.end_at(state, end);
            state.reporter.end_phase_at(end);
            end
        }
    };
    Bounds { end, drain_end: end.saturating_add(state.limits.drain_ns), ..bounds }
}

/// Time at which a phase is over because no client of this worker has anything left to do; `None` while the phase
/// goes on. If connections were lost before the end of the phase, the phase goes on as long as other workers go on,
/// and requests are due in that time: all workers account for one interval.
fn over_when_idle<C: Codec>(
    state: &WorkerState<C>,
    barrier: &Barrier,
    bounds: &mut Bounds,
    now: Nanos,
) -> Option<Nanos> {
    let is_early = now < bounds.end && bounds.end != NEVER;
    if !is_early || !state.has_lost() {
        return Some(now);
    }
    if !std::mem::replace(&mut bounds.idle, true) {
        barrier.mark_idle(now);
    }
    barrier.all_idle()
}
