//! Where the times of requests end up, from one worker's recorder to the figures that reports print.
//!
//! The way up: a worker fills the [`Recorder`](recorder::Recorder)s of its current [`Interval`](interval::Interval);
//! the intervals of all workers with the same index are merged and added to the
//! [`Measurement`](measurement::Measurement); a [`Summary`](summary::Summary) is computed from that. Everything merges
//! exactly: merged parts equal one part that saw everything.

pub mod agents;
pub mod calibration;
pub mod certainty;
pub mod churn;
pub mod compare;
pub mod completion;
pub mod connections;
pub mod counters;
pub mod counts;
pub mod cross_checks;
pub mod evidence;
pub mod figures;
pub mod flight;
pub mod generator;
pub mod headroom;
pub mod histogram;
pub mod interval;
pub mod interval_sum;
pub mod limit;
pub mod little;
pub mod load;
pub mod measurement;
mod messages;
pub mod misses;
pub mod ops;
pub mod outcome;
pub mod parcel;
pub mod parts;
pub mod recorder;
pub mod replayed;
pub mod sample;
pub mod scalability;
#[cfg(test)]
pub(crate) mod scenario;
pub mod slice;
pub mod summary;
pub mod tally;
pub mod transmit;
pub mod trust;
pub mod uncertainty;
pub mod verify;
pub mod words;
