//! One thread's whole work: the only loop there is.
//!
//! A turn: wake the clients whose time has come, send what they ask, wait, take in what happened. Nothing is sent from
//! inside a completion: what happened is taken in first, then all that follows from it is sent.

mod churn_account;
mod connecting;
mod connections;
pub mod deadlines;
pub mod departures;
mod events;
mod expiry;
mod load_model;
pub mod meeting;
pub mod messages;
pub mod opening;
pub mod population;
mod replies;
pub(crate) mod reporter;
mod sending;
mod setup;
pub mod silence;
mod state;

use std::io;

use pummel_logic::plan::Transport;
use pummel_logic::protocol::{Codec, Fault};
use pummel_logic::time::{NEVER, Nanos};
use pummel_logic::workload::request::RequestMaker;

use crate::backend::{Backend, Close};
use crate::worker::deadlines::Wheel;
use crate::worker::events::handle;
use crate::worker::expiry::expire;
use crate::worker::meeting::Meeting;
use crate::worker::messages::PhaseFate;
use crate::worker::population::{ChurnLimits, ChurnPhase, Population};
use crate::worker::reporter::WorkerReporter;
pub use crate::worker::setup::{Endpoint, WorkerLimits, WorkerSetup};
pub use crate::worker::state::ClientEntry;
use crate::worker::state::{CloseCause, WorkerState};

/// One thread's clients, connections and measurements.
#[derive(Debug)]
pub struct Worker<C, B> {
    backend: B,
    population: Population,
    state: WorkerState<C>,
}

impl<C: Codec, B: Backend> Worker<C, B> {
    /// A worker for these clients, without a connection yet.
    pub fn new(
        backend: B,
        setup: WorkerSetup,
        limits: WorkerLimits,
        maker: RequestMaker,
        reporter: WorkerReporter,
    ) -> Worker<C, B> {
        let population = Population::staying(maker.has_window());
        let state = WorkerState::new(setup, limits, maker, reporter, backend.now());
        Worker { backend, population, state }
    }

    /// The worker, speaking with copies of this codec, which has settings.
    pub fn speaking(mut self, codec: &C) -> Worker<C, B> {
        for connection in &mut self.state.connections {
            connection.session.speak(codec.renew());
        }
        self.state.codec = codec.renew();
        self
    }

    /// The worker, whose clients come and go in phases for which [`Worker::begin_churn`] is called; `None`: in no phase.
    pub fn churn_limits(mut self, churn_limits: Option<ChurnLimits>) -> Worker<C, B> {
        if let Some(churn_limits) = churn_limits {
            self.state.wheel = Wheel::exact();
            self.population = Population::churning(churn_limits, self.state.entries.len());
        }
        self
    }

    /// Opens every connection. Ends early when one of them is not going to be open, since the run then does not go on.
    ///
    /// # Errors
    /// Returns the error of the backend when the kernel refuses to wait. A connection that cannot be opened is no
    /// error here: the reporter has it.
    pub fn open(&mut self, meeting: &Meeting) -> io::Result<()> {
        let lost_before = self.state.lanes_lost;
        self.open_until(meeting, |state| state.lanes_lost > lost_before)
    }

    /// Whether the phase that is over closed connections that have to be opened again before the next one.
    pub fn has_shut(&self) -> bool {
        self.state.connections.iter().any(|connection| connection.history.closed_between_phases)
    }

    /// Between phases: opens the connections again that the phase before closed, since their answers were late. Ends when
    /// each of them is open or could not be opened at the first attempt, for which a timeout is the longest. Clients have
    /// been told to wait.
    ///
    /// # Errors
    /// Returns the error of the backend when the kernel refuses to wait.
    pub fn reopen(&mut self, meeting: &Meeting) -> io::Result<()> {
        self.open_until(meeting, |state| !state.is_reopening())
    }

    /// Turns until clients have the connections that they want, or `enough`.
    fn open_until(&mut self, meeting: &Meeting, enough: impl Fn(&WorkerState<C>) -> bool) -> io::Result<()> {
        self.population.wake_all(&mut self.state);
        let now = self.backend.now();
        self.turns(meeting, Bounds { end: NEVER, drain_end: NEVER, idle: false }, now, enough)?;
        Ok(())
    }

    /// Before a phase in which clients come and go: all connections are closed, and all slots are free.
    ///
    /// # Panics
    /// When clients do not come and go in this run.
    pub fn begin_churn(&mut self, churn_phase: ChurnPhase) {
        self.population.begin_churn(&mut self.state, churn_phase, &mut self.backend);
    }

    /// Works one phase, for which every client has been told what to do, from `begin` on.
    ///
    /// # Errors
    /// Returns the error of the backend when the kernel refuses to wait. What servers do is no error here: it is
    /// counted.
    pub fn work(&mut self, meeting: &Meeting, begin: Nanos, end: Nanos) -> io::Result<()> {
        self.population.wake_all(&mut self.state);
        self.state.patience_ns = match (end, self.state.maker.is_load()) {
            (NEVER, true) => self.state.limits.load_patience_ns,
            (NEVER, false) => self.state.limits.patience_ns,
            _ => NEVER,
        };
        let bounds = Bounds { end, drain_end: end.saturating_add(self.state.limits.drain_ns), idle: false };
        let over = self.turns(meeting, bounds, begin, |_| false)?;
        self.settle(over);
        Ok(())
    }

    /// Whether the next phase can begin: all connections are open, or will be opened again.
    pub fn can_go_on(&self) -> bool {
        !self.state.has_lost()
    }

    /// Where it writes down what it does.
    pub fn reporter(&self) -> &WorkerReporter {
        &self.state.reporter
    }

    /// The clock.
    pub fn now(&self) -> Nanos {
        self.backend.now()
    }

    /// The clients, to be told what to do in the next phase, with what they share and where they are measured.
    pub fn parts(&mut self) -> (&mut [ClientEntry], &mut RequestMaker, &mut WorkerReporter) {
        (&mut self.state.entries, &mut self.state.maker, &mut self.state.reporter)
    }

    /// Between phases: connections to servers to which `transport` leads by another one from now on are closed, to be
    /// opened anew. Says whether there are any; their clients wait for their next work, without a connection.
    pub fn change_transport(&mut self, transport: impl Fn(u32) -> Transport) -> bool {
        let mut any = false;
        let state = &mut self.state;
        for slot in 0..state.connections.len() {
            let endpoint = &mut state.endpoints[slot];
            let transport = transport(endpoint.server);
            if std::mem::replace(&mut endpoint.transport, transport) == transport {
                continue;
            }
            any = true;
            self.backend.close(state.id(slot), Close::Fin);
            let connection = &mut state.connections[slot];
            if connection.reset().is_opening() {
                state.openings.end_one();
            }
            state.reporter.add_datagrams(&connection.session.datagram_counts());
            connection.session.carry_by_datagrams(transport == Transport::Udp);
            let (client, lane) = state.owner(slot);
            state.entries[client].client.handle_closed(lane, true, &mut state.maker);
        }
        any
    }

    /// Closes every connection and hands over what was measured.
    pub fn finish(mut self) -> WorkerReporter {
        for slot in 0..self.state.connections.len() {
            self.backend.close(self.state.id(slot), Close::Fin);
            let counts = self.state.connections[slot].session.datagram_counts();
            self.state.reporter.add_datagrams(&counts);
        }
        self.state.reporter
    }

    /// Turns until every client is done, the drain is over, or `enough`. Returns when that was.
    fn turns(
        &mut self,
        meeting: &Meeting,
        mut bounds: Bounds,
        begin: Nanos,
        enough: impl Fn(&WorkerState<C>) -> bool,
    ) -> io::Result<Nanos> {
        let Worker { backend, population, state } = self;
        let mut now = backend.now();
        while now < begin {
            now = backend.wait(begin)?;
        }
        state.reporter.note_begun(now);
        loop {
            if meeting.is_stopped() && bounds.end > now {
                population.stop(state, now);
                bounds = Bounds { end: now, drain_end: now.saturating_add(state.limits.drain_ns), ..bounds };
            }
            // Without a stamp, a reply came when it was read, and what follows from it is due since then: now, and not
            // after another look at what else is ready. Nothing else is as late, since what came meanwhile was not read.
            let due_until = now.max(state.read_at);
            state.wake_due(due_until);
            if !state.relieved.is_empty() {
                population.relieve(state, backend, now);
            }
            population.serve_woken(state, backend, due_until);
            state.open_queued(backend, now);
            if now >= population.next_due() {
                population.poll(state, backend, now);
            }
            if now >= bounds.drain_end || enough(state) {
                return Ok(now);
            }
            if state.active == 0
                && let Some(over) = over_when_idle(state, meeting, &mut bounds, now)
            {
                return Ok(over);
            }
            let until = state.next_time(now).min(population.next_due()).min(bounds.drain_end);
            let woke = backend.now();
            state.reporter.worked(now, woke);
            now = backend.wait_from(woke, until)?;
            state.reporter.waited(until.max(woke), now);
            backend.drain(&mut |conn, event| handle(state, population, conn, event, now));
            backend.handshakes(&mut |handshake| state.reporter.shook_hands(handshake));
            state.close_broken(backend);
            population.redial(state, backend);
            state.send_handshakes(backend);
            if state.reporter.wants_mending() {
                backend.mend_stamps();
            }
            expire(state, population, backend, now);
            state.reporter.tick(now);
        }
    }

    /// The end of a phase, which was over at `over`: what is still owed is unfinished, and what was due and was not sent
    /// is unsent.
    fn settle(&mut self, over: Nanos) {
        let Worker { backend, population, state } = self;
        let now = backend.now();
        state.reporter.abandon(true);
        for slot in 0..state.connections.len() {
            if !state.connections[slot].session.is_idle() {
                // Closed by this worker, because its answers would come in the next phase: it is neither lost nor, then,
                // reconnected.
                backend.close(state.id(slot), Close::Fin);
                state.connections[slot].history.closed_between_phases = true;
                state.miss(slot);
                population.end_session(state, slot, CloseCause::Closed(Fault::Closed), now);
            }
        }
        state.reporter.abandon(false);
        let mut missing = population.end_phase(state, backend, over);
        let (mut dead, mut skipped, mut skipped_estimated, mut repeated) = (0, 0, 0, 0);
        for entry in &mut state.entries {
            let client = &mut entry.client;
            repeated += client.repeated();
            let (reporter, group) = (&mut state.reporter, client.group());
            let draws_max = state.limits.unsent_draws_max;
            client.count_unsent(over, &mut state.maker, draws_max, |unsent| reporter.unsent(group, unsent));
            dead += client.lost_lanes();
            missing += client.missing();
            skipped += client.skipped().requests;
            skipped_estimated += client.skipped().estimated;
            entry.due = NEVER;
        }
        state.due.clear();
        let silent = state.silent(now);
        let fate = PhaseFate { dead, missing, skipped, skipped_estimated, repeated, silent };
        state.reporter.end_phase(over, fate);
    }
}

/// When a phase ends, and when its last answers are given up.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    end: Nanos,
    drain_end: Nanos,
    /// The others know that this worker cannot do anything more.
    idle: bool,
}

/// When the phase is over in which no client of this worker has anything left to do; `None` where it lasts, since other
/// workers go on. Where connections were lost before its end, requests are due all the same for as long as other workers
/// go on: all account for the same time.
fn over_when_idle<C: Codec>(
    state: &WorkerState<C>,
    meeting: &Meeting,
    bounds: &mut Bounds,
    now: Nanos,
) -> Option<Nanos> {
    let is_early = now < bounds.end && bounds.end != NEVER;
    if !is_early || !state.has_lost() {
        return Some(now);
    }
    if !std::mem::replace(&mut bounds.idle, true) {
        meeting.fall_idle(now);
    }
    meeting.all_idle()
}
