//! The load model of clients that stay and work on a window of objects, whose bytes and findings are counted apart.

use pummel_logic::client::Lane;
use pummel_logic::connection::session::Chunk;
use pummel_logic::protocol::{Codec, Malformed};
use pummel_logic::time::Nanos;

use crate::backend::Backend;
use crate::worker::load_model::LoadModel;
use crate::worker::population::resident;
use crate::worker::replies::ReplyAccount;
use crate::worker::state::WorkerState;

/// The load model of clients with windows.
#[derive(Debug)]
pub struct Windowed;

impl ReplyAccount for Windowed {
    const HAS_WINDOWS: bool = true;
}

impl<C: Codec> LoadModel<C> for Windowed {
    fn open_lane(&mut self, state: &mut WorkerState<C>, client: usize, lane: Lane, now: Nanos) -> bool {
        state.enqueue(client, lane, now);
        true
    }

    fn handle_done(
        &mut self,
        state: &mut WorkerState<C>,
        client: usize,
        _: &mut (impl Backend + ?Sized),
        _: Nanos,
    ) {
        resident::handle_done(state, client);
    }
}

/// Handles bytes that were received on the connection in `slot`. Returns how many requests they answered.
///
/// # Errors
/// Returns [`Malformed`] for bytes that the protocol does not allow.
#[inline(never)]
pub fn handle_received<C: Codec>(
    state: &mut WorkerState<C>,
    slot: usize,
    chunk: Chunk<'_>,
) -> Result<u32, Malformed> {
    resident::handle_received::<Windowed, C>(state, slot, chunk)
}
