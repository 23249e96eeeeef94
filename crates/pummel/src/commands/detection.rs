//! The question to servers which protocol they speak, put before the job of a command line is made.

use pummel_engine::{run, sys};
use pummel_fronts::job::{FrontInputs, Job};
use pummel_fronts::native::Typed;

use crate::detection::{Detectable, with_protocol};
use crate::front_inputs::PATHS;
use crate::job::detection::Detection;
use crate::job::result_files::ResultFiles;

/// The options with the protocol that their servers speak, and the outcome of the detection. Servers are not asked if a
/// result cannot be written.
pub fn detected<A: Detectable>(typed: &Typed<A>, inputs: &FrontInputs) -> (Typed<A>, Detection) {
    let unwritable = |job: &Job| match job.outputs.files.conflict(job.outputs.format, &[], PATHS) {
        Some((form, file, accepted)) => {
            Some(format!("invalid value '{}' for '{}': {accepted}", file.display(), form.flag()))
        }
        None => ResultFiles::check(&job.outputs.files).err().map(|error| error.to_string()),
    };
    let ask = |inquiry: &run::Inquiry| {
        // Where signals cannot be counted, one ends the process, as before the question.
        let _ = sys::on_interrupt();
        run::detect(inquiry, &|| sys::interrupts() == 0)
    };
    with_protocol(typed, inputs, &ask, &unwritable)
}
