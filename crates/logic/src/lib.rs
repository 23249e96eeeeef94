//! Floor 1: everything that pummel knows and decides, as pure code.
//!
//! Nothing here opens a socket, reads a clock, starts a thread, prints or draws from a global source of chance. Bytes,
//! times and seeds come in as arguments; actions and figures go out as values.
//!
//! The way of a request through this crate: [`plan`] describes the run; [`arrival`] computes when a request is due and
//! [`workload`] draws what it asks; [`client`] is the virtual user that makes it; [`connection`] carries it, with bytes
//! that a codec of [`protocol`] writes and reads; [`measure`] records its times. [`server`] is the other
//! side of the wire: a small server core, for tests and for `pummel serve`.

#![forbid(unsafe_code)]

pub mod arrival;
pub mod client;
pub mod connection;
pub mod dist;
pub mod fit;
pub mod measure;
pub mod plan;
pub mod protocol;
pub mod rate_search;
pub mod rng;
pub mod secrets;
pub mod server;
pub mod time;
pub mod trace;
pub mod unsent;
pub mod workload;
