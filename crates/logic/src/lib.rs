//! Floor 1: everything that pummel knows and decides, as pure code.
//!
//! Nothing here opens a socket, reads a clock, starts a thread, prints or draws from a global source of chance. Bytes,
//! times and seeds come in as arguments; wishes and figures go out as values.
//!
//! The way of a request through this crate: [`plan`] says what is wanted; [`arrivals`] says when a request is due and
//! [`workload`] what it asks; [`client`] is the virtual user who wants it; [`session`] is the connection that owes it,
//! with the bytes made and read by a codec of [`wire`]; [`measure`] is where its times end up. [`host`] is the other
//! side of the wire: a small server core, for tests and for `pummel serve`.

#![forbid(unsafe_code)]

pub mod arrivals;
pub mod client;
pub mod dist;
pub mod host;
pub mod inflight;
pub mod measure;
pub mod outbox;
pub mod plan;
pub mod rng;
pub mod route;
pub mod sequence;
pub mod session;
pub mod shared;
pub mod time;
pub mod unsent;
pub mod wire;
pub mod workload;
