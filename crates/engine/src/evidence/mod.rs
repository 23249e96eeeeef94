//! Evidence of what limited a run, taken by a thread that is no worker: it asks the servers for their statistics, and reads
//! what the kernel counts, before and after the measured phases.
//!
//! A reading never fails a run and is never waited for longer than [`BARRIER_MAX`]. Servers are only ever asked for what they
//! counted: nothing is set, reset, or listed.

mod connections;
mod eviction_watch;
mod inquiry;
mod machine;
mod moments;
mod observer;
mod periodic_readings;
mod process;
pub mod provenance;

use std::time::Duration;

pub(crate) use self::moments::{Moment, Moments, Newest};
pub(crate) use self::observer::{Findings, Observed, observe};

/// Longest time that the beginning of a measured phase, and the closing of connections after it, wait for a reading. A
/// reading that takes longer goes on beside the phase, and leaves out the figures that can then not be compared.
pub(crate) const BARRIER_MAX: Duration = Duration::from_millis(150);
