//! `pummel run` and `pummel load`: one run of a job.

use crate::commands::detection::detected;
use crate::exit_status::{Exit, answer};
use crate::job::detection::Detection;
use crate::job::driver::{Extras, check_here, drive};
use crate::job::{FrontInputs, Job};
use crate::native::Typed;
use crate::native::detection::Detectable;
use crate::native::style::NativeStyle;

/// Follows a command line that asks for one run: finds out what its servers speak where the options leave that open, makes
/// the run and writes its reports.
pub fn follow<A: Detectable>(typed: &Typed<A>, inputs: &FrontInputs) -> Exit {
    let (typed, detection) = detected(typed, inputs);
    match A::job(&typed, inputs) {
        Ok(job) => run_detected(&job, detection),
        Err(error) => answer(&error.into()),
    }
}

/// Makes the run of a job whose servers were not asked for their protocol, and writes its reports.
pub fn run(job: &Job) -> Exit {
    run_detected(job, Detection::Unasked)
}

fn run_detected(job: &Job, detection: Detection) -> Exit {
    let extras = Extras { detection, ..Extras::default() };
    match check_here(job) {
        Ok(()) => drive(job, &extras, &mut NativeStyle::new(&job.outputs)),
        Err(error) => answer(&error.into()),
    }
}
