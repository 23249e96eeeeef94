//! One connection of a client: what waits to be sent, what is owed, and what came, without a socket.

pub mod answer;
mod datagrams;
pub mod inflight;
pub mod outbox;
#[cfg(any(test, fuzzing))]
pub mod script;
pub mod session;
