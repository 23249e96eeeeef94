//! The reports of a run: documents, what they say, and every form in which they are written, as pure functions.
//!
//! Nothing here reads a clock, a file, a socket or a terminal. The room may use `pummel-logic`, which says what a plan is, and
//! `pummel-measure`, which says what was measured; it knows no engine and no command line.
//!
//! Reading begins at [`document`], the result of one run as data. [`curve`], [`repetition`] and [`comparison`] are those of
//! several runs. [`text`] is what a terminal shows, [`page`] a page of HTML, and [`forms`] lists the files.

#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

use pummel_logic::plan::Plan;
use pummel_measure::measurement::Measurement;
use pummel_measure::summary::Summary;

/// The version that reports name, which is that of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub mod anonymous;
pub mod calibration_words;
mod checked_json;
pub mod comparison;
pub mod csv;
pub mod curve;
pub mod document;
mod escaped;
mod failed_keys;
pub mod findings;
pub mod forms;
pub mod hdr;
pub mod hgrm;
pub mod json;
pub mod json_layout;
pub mod junit;
pub mod layouts;
pub mod markdown;
pub mod merge;
pub mod numbers;
pub mod page;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod plan_options;
pub mod repetition;
pub mod run_figures;
mod scaling;
#[cfg(feature = "schema")]
pub mod schema;
pub mod screen;
// A snapshot is filled by one thread and read by others; `Mutex` is all that it has of threads.
#[allow(clippy::disallowed_types)]
pub mod snapshot;
pub mod stored;
pub mod suite;
pub mod tables;
pub mod text;
pub mod transmit;
pub mod view;
pub mod visible;
pub mod words;

#[cfg(test)]
mod hostile_tests;

#[cfg(any(test, feature = "testing"))]
pub mod example;

/// Which build of pummel made a result.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// The first digits of the commit; `unknown` where it is not known.
    pub commit: &'static str,
    /// Cargo's profile.
    pub profile: &'static str,
    /// The platform that the program was built for.
    pub target: &'static str,
    /// The optional parts that were built in, or `none`.
    pub features: &'static str,
}

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
    /// The build of the program that measured.
    pub build: Build,
    /// What the exit status rests on beside the result.
    pub ending: Ending,
}

/// What the exit status of a run rests on beside its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// The status is not known: the run goes on, or it is no run of its own, or another program's command line has its own statuses.
    #[default]
    Open,
    /// The result alone decides.
    OfResult,
    /// A signal of this number asked the process to end, which decides where the run was interrupted.
    Signal(u8),
    /// The command line could not be followed.
    Usage,
}
