//! `pummel run` and `pummel load`: one run of a job.

use crate::exit_status::{Exit, answer};
use crate::job::driver::{Extras, check_here, drive};
use crate::job::{Job, UsageError};
use crate::native::style::NativeStyle;

/// Follows a command line that may ask for a run.
pub fn run_if_valid(job: Result<Job, UsageError>) -> Exit {
    match job {
        Ok(job) => run(&job),
        Err(error) => answer(&error.into()),
    }
}

/// Makes the run of a job and writes its reports.
pub fn run(job: &Job) -> Exit {
    match check_here(job) {
        Ok(()) => drive(job, &Extras::default(), &mut NativeStyle::new(&job.outputs)),
        Err(error) => answer(&error.into()),
    }
}
