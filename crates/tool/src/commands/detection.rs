//! The question to servers which protocol they speak, put before the job of a command line is made.

use pummel_engine::run;

use crate::job::FrontInputs;
use crate::job::detection::Detection;
use crate::native::Typed;
use crate::native::detection::{Detectable, with_protocol};

/// The options with the protocol that their servers speak, and what came of asking them.
pub fn detected<A: Detectable>(typed: &Typed<A>, inputs: &FrontInputs) -> (Typed<A>, Detection) {
    with_protocol(typed, inputs, &run::detect)
}
