//! Whether a Plan fits into the memory that a run may take.

use super::bounds::refuse;
use super::field::Field;
use super::invalid::Invalid;
use crate::plan::{Depth, Plan, memory};

/// Refuses a plan that needs more memory than any may.
pub fn fits(plan: &Plan) -> Result<(), Invalid> {
    let need_bytes = memory::need_bytes(plan);
    if need_bytes <= memory::LIMIT_BYTES {
        return Ok(());
    }
    let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
    let deepest = plan.groups.iter().enumerate().max_by_key(|(_, group)| memory::depth_of(group));
    let (index, depth) = match deepest {
        Some((index, group)) => match group.depth {
            Depth::Limit(depth) => (index, depth.to_string()),
            Depth::Unlimited => (index, "unlimited".to_owned()),
        },
        None => (0, "unlimited".to_owned()),
    };
    let expected = format!(
        "this plan needs {} of memory in this process, more than the limit of {}: fewer connections or a smaller depth are \
         accepted",
        gigabytes(need_bytes),
        gigabytes(memory::LIMIT_BYTES)
    );
    refuse(Field::Depth.of(index), depth, expected)
}
