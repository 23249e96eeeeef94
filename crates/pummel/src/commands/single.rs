//! `pummel run` and `pummel load`: one run of a job.

use pummel_fronts::exit_status::Exit;
use pummel_fronts::job::{FrontInputs, Job, UsageError};
use pummel_fronts::native::options::RunArgs;
use pummel_fronts::native::steering::steered;
use pummel_fronts::native::style::NativeStyle;
use pummel_fronts::native::{self, Typed};

use crate::commands::detection::detected;
use crate::detection::Detectable;
use crate::job::detection::Detection;
use crate::job::driver::{Extras, check_here, drive};
use crate::job::observers::has_terminal;
use crate::parser_answer::answer;

/// Follows a command line that asks for one run: finds out what its servers speak where the options leave that open, makes
/// the run and writes its reports.
pub fn follow<A: Detectable>(typed: &Typed<A>, inputs: &FrontInputs) -> Exit {
    let (typed, detection) = detected(typed, inputs);
    match A::job(&typed, inputs) {
        Ok(job) => run_detected(&job, detection),
        Err(error) => answer(&error.into()),
    }
}

/// Runs a command line with `--steer`: one run whose rate is changed by keys of the live view.
pub fn follow_steered(typed: &Typed<RunArgs>, inputs: &FrontInputs) -> Exit {
    if !has_terminal() {
        return answer(&UsageError::Missing(NO_TERMINAL.to_owned()).into());
    }
    let (typed, detection) = detected(typed, inputs);
    match native::run(&typed, inputs).and_then(steered) {
        Ok(job) => run_detected(&job, detection),
        Err(error) => answer(&error.into()),
    }
}

/// The refusal of `--steer` without a terminal that shows the live view.
const NO_TERMINAL: &str =
    "'--steer' is accepted on a terminal only: standard error is not a terminal, CI is set, or TERM is dumb";

fn run_detected(job: &Job, detection: Detection) -> Exit {
    let extras = Extras { detection, ..Extras::default() };
    match check_here(job) {
        Ok(()) => drive(job, &extras, &mut NativeStyle::new(&job.outputs)),
        Err(error) => answer(&error.into()),
    }
}
