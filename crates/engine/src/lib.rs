//! Floor 2: threads, sockets and the clock.
//!
//! The only floor that talks to the kernel. A [`Plan`](pummel_logic::plan::Plan) comes in, a measurement goes out; all
//! unsafe code is in [`sys`] and [`backend`].

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
