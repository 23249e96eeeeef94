//! The lowest room of floor 1: what is sent, when, and what the answers mean, as pure code.
//!
//! Nothing here opens a socket, reads a clock, starts a thread, prints or draws from a global source of chance. Bytes,
//! times and seeds come in as arguments; actions and figures go out as values. This room uses no other room; all others use it.
//!
//! Reading begins at [`plan`], which describes the run. A request's way goes on from there: [`arrival`] computes when it is due
//! and [`workload`] draws what it asks; [`client`] is the virtual user that makes it; [`connection`] carries it, with bytes
//! that a codec of [`protocol`] writes and reads.

#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod arrival;
pub mod bodies;
#[deny(clippy::expect_used, clippy::unwrap_used)]
pub mod client;
#[deny(clippy::expect_used, clippy::unwrap_used)]
pub mod cluster;
#[deny(clippy::expect_used, clippy::unwrap_used)]
pub mod connection;
pub mod counters;
mod decimal;
pub mod dist;
pub mod merge;
pub mod plan;
#[deny(clippy::expect_used, clippy::unwrap_used)]
pub mod protocol;
#[deny(clippy::expect_used, clippy::unwrap_used)]
pub mod retry;
pub mod rng;
pub mod secrets;
pub mod time;
pub mod unsent;
pub mod words;
pub mod workload;
