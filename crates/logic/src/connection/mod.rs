//! One connection of a client without a socket: bytes that wait to be sent, requests that wait for a reply, and
//! replies.

pub mod answer;
mod datagrams;
pub mod inflight;
pub mod outbox;
#[cfg(any(test, fuzzing))]
pub mod script;
pub mod session;
