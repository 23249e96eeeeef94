//! Reports: pure functions from a finished run to bytes, one file for each form.

use pummel_logic::plan::Plan;
use pummel_measure::measurement::Measurement;
use pummel_measure::summary::Summary;

/// The version that reports name.
pub use crate::build_info::VERSION;

pub mod anonymous;
pub mod calibration_words;
mod checked_json;
pub mod comparison;
pub mod csv;
pub mod curve;
pub mod document;
pub mod forms;
pub mod hdr;
pub mod hgrm;
pub mod json;
pub mod junit;
pub mod layout;
pub mod markdown;
pub mod merge;
pub mod numbers;
#[allow(clippy::disallowed_methods, clippy::disallowed_types)]
pub mod output;
pub mod page;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod repetition;
pub mod run_figures;
pub mod scalability_words;
pub mod search_words;
pub mod stored;
pub mod tables;
pub mod transmit;

#[cfg(test)]
pub mod example;

/// What a report is made from.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// What was wanted.
    pub plan: &'a Plan,
    /// What was measured.
    pub measurement: &'a Measurement,
    /// The figures of that.
    pub summary: &'a Summary,
    /// The command line that the Plan was written in.
    pub front: &'a str,
}
