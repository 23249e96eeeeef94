//! Floor 2, the engine: threads, sockets and the clock.
//!
//! The engine takes a [`Plan`](pummel_logic::plan::Plan), opens the connections, sends the requests and returns the
//! measurement. All unsafe code is in [`sys`] and [`backend`].
//!
//! Reading begins at [`run`]: its `start.rs` chooses the kernel interface and the codec and starts the threads, and its `phases.rs`
//! is what each worker's thread does. [`worker`] is the loop of such a thread, over a [`backend`] that moves bytes. [`evidence`] asks
//! the servers and this machine what they were busy with, on a thread of its own.

#![deny(clippy::print_stderr, clippy::print_stdout)]
#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod backend;
pub mod clock;
pub mod cluster;
pub mod evidence;
pub mod resolve;
pub mod run;
mod side_connections;
#[allow(unsafe_code)]
pub mod sys;
pub mod worker;
