//! The population of a worker: clients that stay, that come and go, or that work on windows.
//!
//! A worker matches its population once for each event and once for each wake-up. The code behind each match is
//! compiled for each load model, so that clients of one model have no branches for another. The loop over resident
//! clients is compiled for each backend too.

mod churning;
mod lifetime;
mod slots;
mod spawner;

use pummel_logic::connection::session::Chunk;
use pummel_logic::protocol::{Codec, Malformed};
use pummel_logic::time::Nanos;
use pummel_measure::trouble::CloseReason;
use pummel_measure::trouble::Trouble;

use self::churning::Churning;
pub use self::spawner::{ChurnLimits, ChurnPhase, SpawnSchedule};
use crate::backend::Backend;
use crate::worker::load_model::{LoadModel, Resident};
use crate::worker::state::{Loss, WorkerState};

/// The load model of a worker's clients.
#[derive(Debug)]
pub(in crate::worker) enum Population {
    /// Clients that stay.
    Resident(Resident<false>),
    /// Clients that come and go in some phases.
    Churning(Box<Churning>),
    /// Clients that stay, each of which has a window of objects.
    Windowed(Resident<true>),
}

/// Evaluates an expression with the load model of a population under its own type.
macro_rules! with_model {
    ($population:expr, $model:ident => $value:expr) => {
        match $population {
            Population::Resident($model) => $value,
            Population::Churning($model) => $value,
            Population::Windowed($model) => $value,
        }
    };
}

impl Population {
    /// The population of clients that stay, with windows or without.
    pub fn staying(has_windows: bool) -> Population {
        if has_windows { Population::Windowed(Resident) } else { Population::Resident(Resident) }
    }

    /// The population of clients that come and go, with room for those in `slots` slots, which have so many connections.
    pub fn churning(limits: ChurnLimits, (slots, connections): (usize, usize)) -> Population {
        Population::Churning(Box::new(Churning::new(limits, (slots, connections))))
    }

    /// Time at which [`Population::poll`] has to be called.
    #[inline]
    pub fn next_due(&self) -> Nanos {
        with_model!(self, model => model.next_due())
    }

    /// Lets the due clients come.
    pub fn poll<C: Codec>(&mut self, state: &mut WorkerState<C>, backend: &mut dyn Backend, now: Nanos) {
        with_model!(self, model => model.poll(state, backend, now));
    }

    /// Tries the connections again, by another address, that their clients could not open by a server's first address.
    #[inline]
    pub fn redial<C: Codec>(&mut self, state: &mut WorkerState<C>, backend: &mut dyn Backend) {
        with_model!(self, model => model.redial(state, backend));
    }

    /// Begins a phase in which clients come and go.
    ///
    /// # Panics
    /// Panics when clients do not come and go in this run.
    pub fn begin_churn<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        phase: ChurnPhase,
        backend: &mut dyn Backend,
    ) {
        let Population::Churning(churning) = self else { panic!("the plan says that clients come and go") };
        churning.begin_phase(state, phase, backend);
    }

    /// Ends a phase. Returns how many requests were never made because their servers were given up, beside those that
    /// clients count themselves.
    pub fn end_phase<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        backend: &mut dyn Backend,
        now: Nanos,
    ) -> u64 {
        with_model!(self, model => model.end_phase(state, backend, now))
    }

    /// Whether clients come and go in the phase under way, so that none of its connections is open when it begins.
    pub fn comes_and_goes(&self) -> bool {
        with_model!(self, model => model.comes_and_goes())
    }

    /// Wakes all clients.
    pub fn wake_all<C: Codec>(&mut self, state: &mut WorkerState<C>) {
        with_model!(self, model => model.wake_all(state));
    }

    /// Stops all clients, since the run is interrupted: no connection is opened and no client comes any more.
    pub fn stop<C: Codec>(&mut self, state: &mut WorkerState<C>, now: Nanos) {
        for entry in &mut state.entries {
            entry.client.stop(now);
        }
        state.openings.forget_waiting();
        with_model!(self, model => model.stop(state, now));
        self.wake_all(state);
    }

    /// Lets the phase of all clients end at `end`, which is not later than it was. Clients that come and go have no part in phases
    /// whose end is found while they go on.
    pub fn end_at<C: Codec>(&mut self, state: &mut WorkerState<C>, end: Nanos) {
        for entry in &mut state.entries {
            entry.client.end_at(end);
        }
        self.wake_all(state);
    }

    /// Stops the clients whose phase ends on time, now that it is over at `end`.
    pub fn end_on_time<C: Codec>(&mut self, state: &mut WorkerState<C>, end: Nanos) {
        for entry in state.entries.iter_mut().filter(|entry| entry.client.ends_on_time()) {
            entry.client.stop(end);
        }
        self.wake_all(state);
    }

    /// Polls every woken client and sends its requests.
    #[inline]
    pub fn serve_woken<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        backend: &mut impl Backend,
        now: Nanos,
    ) {
        // The loop is compiled for each backend where clients stay, and once for all of them otherwise.
        let any: &mut dyn Backend = match self {
            Population::Resident(resident) => return state.serve_woken(resident, backend, now),
            Population::Churning(_) | Population::Windowed(_) => backend,
        };
        self.serve_others(state, any, now);
    }

    /// Polls every woken client of the models other than the resident one.
    #[inline(never)]
    fn serve_others<C: Codec>(&mut self, state: &mut WorkerState<C>, backend: &mut dyn Backend, now: Nanos) {
        match self {
            Population::Resident(_) => {}
            Population::Churning(churning) => state.serve_woken(&mut **churning, backend, now),
            Population::Windowed(windowed) => state.serve_woken(windowed, backend, now),
        }
    }

    /// Sends the waiting bytes of congested connections whose sockets take bytes again.
    #[cold]
    pub fn relieve<C: Codec>(&mut self, state: &mut WorkerState<C>, backend: &mut dyn Backend, now: Nanos) {
        with_model!(self, model => model.relieve(state, backend, now));
    }

    /// Handles bytes that were received on the connection in `slot`. Returns how many requests they answered.
    ///
    /// # Errors
    /// Returns [`Malformed`] for bytes that the protocol does not allow.
    #[inline(always)]
    pub fn handle_received<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        slot: usize,
        chunk: Chunk<'_>,
    ) -> Result<u32, Malformed> {
        match self {
            Population::Resident(resident) => resident.handle_received(state, slot, chunk),
            Population::Churning(churning) => churning.handle_received(state, slot, chunk),
            Population::Windowed(windowed) => receive_apart(windowed, state, slot, chunk),
        }
    }

    /// Handles that the connection in `slot` is open. Ignored where the connection was not being opened.
    pub fn handle_opened<C: Codec>(&mut self, state: &mut WorkerState<C>, slot: usize, now: Nanos) {
        let Some(since) = state.connections[slot].open() else { return };
        with_model!(self, model => model.handle_opened(state, slot, since, now));
    }

    /// Handles that the connection in `slot` was closed or could not be opened. The socket is closed already.
    pub fn handle_closed<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        slot: usize,
        reason: CloseReason,
        now: Nanos,
    ) {
        with_model!(self, model => model.handle_closed(state, slot, reason, now));
    }

    /// Closes the connection in `slot` in order, since its client does not want it any more.
    pub fn close<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        slot: usize,
        backend: &mut dyn Backend,
        now: Nanos,
    ) {
        with_model!(self, model => model.close(state, slot, backend, now));
    }

    /// Closes all connections of a client that is off stage.
    pub fn close_lanes<C: Codec>(
        &mut self,
        state: &mut WorkerState<C>,
        number: usize,
        backend: &mut dyn Backend,
    ) {
        let now = backend.now();
        match self {
            Population::Resident(model) => state.close_lanes(model, number, backend, now),
            Population::Churning(model) => state.close_lanes(&mut **model, number, backend, now),
            Population::Windowed(model) => state.close_lanes(model, number, backend, now),
        }
    }

    /// Counts the end of the open connection in `slot`.
    pub fn note_end<C: Codec>(&self, state: &mut WorkerState<C>, slot: usize, trouble: Trouble, now: Nanos) {
        with_model!(self, model => model.note_end(state, slot, trouble, now));
    }

    /// Handles the loss of the open connection in `slot`. A client that stays may then not open the connection again where its server
    /// has been silent for too long.
    pub fn lose<C: Codec>(&mut self, state: &mut WorkerState<C>, slot: usize, loss: Loss, now: Nanos) {
        with_model!(self, model => model.lose(state, slot, loss, now));
    }

    /// Closes the connection in `slot` at the end of a phase and ends its outstanding requests. The client may open
    /// the connection again.
    pub fn end_session<C: Codec>(&mut self, state: &mut WorkerState<C>, slot: usize, now: Nanos) {
        with_model!(self, model => model.end_session(state, slot, now));
    }

    /// Gives up the late requests on the connection in `slot`, which is over datagrams and stays open.
    pub fn end_overdue<C: Codec>(&self, state: &mut WorkerState<C>, slot: usize, now: Nanos) {
        with_model!(self, model => model.end_overdue(state, slot, now));
    }
}

/// Handles received bytes of clients with windows, apart from the code for those without.
#[inline(never)]
fn receive_apart<C: Codec>(
    windowed: &mut Resident<true>,
    state: &mut WorkerState<C>,
    slot: usize,
    chunk: Chunk<'_>,
) -> Result<u32, Malformed> {
    windowed.handle_received(state, slot, chunk)
}
