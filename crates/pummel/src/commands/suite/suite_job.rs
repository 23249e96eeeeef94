//! A run of a suite before it is made: its name, its job, and what it is expected to show.

use pummel_fronts::job::Job;
use pummel_report::suite::Expectation;

use crate::job::detection::Detection;
use crate::job::series::ServerCare;

/// A run of a suite, ready to be made.
pub struct SuiteJob {
    /// Name of the run.
    pub name: String,
    /// Options of the run beside those of the suite, without passwords.
    pub options: String,
    /// What the run is expected to show.
    pub expectations: Vec<Expectation>,
    /// The run, without files of its own.
    pub job: Job,
    /// What its servers were found to speak.
    pub detection: Detection,
    /// What is done to its server before the run.
    pub care: ServerCare,
}
