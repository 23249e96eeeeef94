//! Floor 2, the engine: threads, sockets and the clock.
//!
//! The engine takes a [`Plan`](pummel_logic::plan::Plan), opens the connections, sends the requests and returns the
//! measurement. All unsafe code is in [`sys`] and [`backend`].

#![deny(clippy::print_stderr, clippy::print_stdout)]
#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod backend;
pub mod clock;
pub mod evidence;
pub mod resolve;
pub mod run;
mod side_connections;
#[allow(unsafe_code)]
pub mod sys;
pub mod worker;
