//! What a load model decides while its clients are polled; the loop over clients is compiled for each model.

use pummel_logic::client::Lane;
use pummel_logic::time::Nanos;

use crate::backend::Backend;
use crate::worker::replies::ReplyAccount;
use crate::worker::state::WorkerState;

/// A load model, as far as the loop over clients knows it.
pub trait LoadModel<C>: ReplyAccount {
    /// A client wants this lane opened. Returns whether the client is polled on.
    fn handle_open_wish(&mut self, state: &mut WorkerState<C>, client: usize, lane: Lane, now: Nanos)
    -> bool;

    /// A client has nothing more to do in this phase.
    fn handle_done(
        &mut self,
        state: &mut WorkerState<C>,
        client: usize,
        backend: &mut impl Backend,
        now: Nanos,
    );
}
