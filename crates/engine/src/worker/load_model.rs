//! The contract of a load model: what it decides while its clients are polled. The loop over clients is compiled for
//! each model.

use pummel_logic::client::Lane;
use pummel_logic::time::Nanos;

use crate::backend::Backend;
use crate::worker::replies::ReplyAccount;
use crate::worker::state::WorkerState;

/// A load model, as the loop over clients sees it.
pub trait LoadModel<C>: ReplyAccount {
    /// Opens a lane that a client asks for, now or later. Returns whether the client is polled again in this turn.
    fn open_lane(&mut self, state: &mut WorkerState<C>, client: usize, lane: Lane, now: Nanos) -> bool;

    /// Handles that a client has nothing left to do in this phase.
    fn handle_done(
        &mut self,
        state: &mut WorkerState<C>,
        client: usize,
        backend: &mut (impl Backend + ?Sized),
        now: Nanos,
    );
}
