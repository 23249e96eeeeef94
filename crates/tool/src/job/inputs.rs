//! What a plan needs that is not in it, read where the plan is run.

use std::io;
use std::path::Path;
use std::sync::Arc;

use pummel_engine::run::Inputs;
use pummel_logic::plan::{Plan, Work};

use crate::compat::mutilate::read_trace;
use crate::stderr::say;

/// What a plan needs that is not in it: the requests that it replays. Lines that are none are counted on standard error.
///
/// # Errors
/// When they cannot be read; the message names the file.
pub fn supplies_of(plan: &Plan) -> io::Result<Inputs> {
    let replays = plan.phases.iter().find_map(|phase| match &phase.work {
        Work::Replay(replay) => Some(replay),
        _ => None,
    });
    let Some(replay) = replays else { return Ok(Inputs::default()) };
    let reading = read_trace(Path::new(&replay.path), replay.format, &plan.data.key_prefix)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot read '{}': {error}", replay.path)))?;
    if reading.bad_lines > 0 {
        say(format_args!(
            "{} lines of '{}' hold no request and are left out",
            reading.bad_lines, replay.path
        ));
    }
    Ok(Inputs { trace: Some(Arc::new(reading.trace)), ..Inputs::default() })
}
