//! Checks that a Plan fits into the memory that a run may take.

use super::bounds::refuse;
use super::field::Field;
use super::invalid::Invalid;
use crate::plan::{Depth, Plan, memory};

/// Refuses a plan that needs more memory than any may: its depth, or its connections where they would need too much with a depth
/// of 1 too.
pub fn fits(plan: &Plan) -> Result<(), Invalid> {
    let need_bytes = memory::need_bytes(plan);
    if need_bytes <= memory::LIMIT_BYTES {
        return Ok(());
    }
    let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
    let expected = |accepted: &str| {
        let (need, limit) = (gigabytes(need_bytes), gigabytes(memory::LIMIT_BYTES));
        format!(
            "this plan needs {need} of memory in this process, more than the limit of {limit}: {accepted} accepted"
        )
    };
    if has_too_many_clients(plan) {
        let most = plan.groups.iter().enumerate().max_by_key(|(_, group)| group.clients);
        let (index, clients) = most.map_or((0, 0), |(index, group)| (index, group.clients));
        return refuse(Field::Clients.of(index), clients, expected("fewer connections are"));
    }
    let deepest = plan.groups.iter().enumerate().max_by_key(|(_, group)| memory::depth_of(group));
    let (index, depth) = match deepest {
        Some((index, group)) => match group.depth {
            Depth::Limit(depth) => (index, depth.to_string()),
            Depth::Unlimited => (index, "unlimited".to_owned()),
        },
        None => (0, "unlimited".to_owned()),
    };
    refuse(Field::Depth.of(index), depth, expected("fewer connections or a smaller depth are"))
}

/// Whether a plan needs too much memory whatever its depth. Windows have no depth: their front names what takes the memory.
fn has_too_many_clients(plan: &Plan) -> bool {
    let mut shallow = plan.clone();
    shallow.groups.iter_mut().for_each(|group| group.depth = Depth::Limit(1));
    plan.window().is_none() && memory::need_bytes(&shallow) > memory::LIMIT_BYTES
}
