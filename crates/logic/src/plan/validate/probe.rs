//! Checks that a run can be probed: that its own operations can be made once more with few of them in flight.

use super::bounds::refuse;
use super::field::Field;
use super::invalid::Invalid;
use crate::plan::Plan;

/// Refuses a probe where no judge reads it, of more servers than one, and of requests that are not drawn from a mix.
pub fn fits(plan: &Plan) -> Result<(), Invalid> {
    if !plan.probe {
        return Ok(());
    }
    let accepted = if !plan.evidence {
        "expected a run that asks its server for its statistics, and no --no-evidence"
    } else if plan.servers.len() != 1 {
        "expected one server with it"
    } else if plan.sequence().is_some() || plan.probed_phase().is_none() {
        "expected drawn requests in the last phase, and no recording"
    } else {
        return Ok(());
    };
    refuse(Field::Probe.path(), true, accepted)
}
