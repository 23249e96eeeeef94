//! The measurement of a run, from one worker's recorder to the figures that reports print, and how sure they are, as pure code.
//!
//! Nothing here reads a clock, a file or a socket. The room may use `pummel-logic`, which says what a request is; it knows no
//! engine and no report. Everything merges exactly: merged parts equal one part that saw everything.
//!
//! Reading begins at [`recorder`], which a worker fills in its current [`interval`]. The intervals of all workers with the same
//! index are merged and added to the [`measurement`]; a [`summary`] is computed from that. [`uncertainty`] says how far its
//! figures may be from the truth, [`trust`] how much of them is the generator's own, and [`limit`] what determined them, from
//! the [`evidence`]. [`compare`] and [`rate_search`] judge several runs.

#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod agents;
pub mod audit;
pub mod baseline;
pub mod calibration;
pub mod certainty;
pub mod churn;
pub mod cluster;
pub mod compare;
pub mod completion;
pub mod connections;
pub mod counters;
pub mod counts;
pub mod cross_checks;
pub mod events;
pub mod evidence;
pub mod failed_keys;
pub mod figures;
pub mod flight;
pub mod generator;
pub mod headroom;
pub mod histogram;
pub mod interval;
pub mod interval_sum;
pub mod limit;
pub mod littles_law;
pub mod load;
pub mod measurement;
pub mod misses;
pub mod open_slices;
pub mod ops;
pub mod outages;
pub mod outcome;
pub mod parcel;
pub mod parts;
pub mod phase_ends;
pub mod rate_search;
pub mod reason;
pub mod recorder;
pub mod replayed;
pub mod resource;
pub mod sample;
pub mod scalability;
#[cfg(test)]
pub(crate) mod scenario;
pub mod side_times;
pub mod slice;
pub mod stops;
pub mod summary;
pub mod tally;
pub mod transmit;
pub mod trouble;
pub mod trust;
pub mod uncertainty;
pub mod verify;
pub mod words;
