//! The parts of a measured phase that have figures of their own.

use std::borrow::Cow;

use pummel_logic::time::seconds;
use pummel_measure::recorder::Ops;
use pummel_measure::summary::PartSummary;
use serde::{Deserialize, Serialize};

use super::cache::CacheResult;
use super::requests::{OpsResult, RequestTotals, ops_of};
use crate::Report;

/// The requests that were due in one part of the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PhaseResult {
    /// Name of the part.
    pub name: String,
    /// Beginning, in seconds from the beginning of the measured phase.
    pub at_s: f64,
    /// Length in seconds.
    pub seconds: f64,
    /// Connections that are open in the part; absent where their number does not change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// All requests that were due in the part.
    pub totals: RequestTotals,
    /// The requests that were due in the part, by operation.
    pub ops: OpsResult,
    /// The cache as its clients saw it; absent where misses are not told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheResult>,
}

impl PhaseResult {
    /// The parts of a report, as far as the run went.
    pub(super) fn all_of(report: &Report<'_>) -> Vec<PhaseResult> {
        let Report { plan, measurement, .. } = *report;
        let of = |(number, part): (usize, PartSummary)| {
            let raw = measurement.parts.get(number).map_or(Cow::Owned(Ops::default()), Cow::Borrowed);
            let ops = ops_of(plan, &part.ops, &raw);
            PhaseResult {
                at_s: seconds(part.at_ns),
                seconds: seconds(part.length_ns),
                connections: plan.changes.parts.get(number).and_then(|part| plan.connections_in(part)),
                totals: RequestTotals::of(&part.totals),
                cache: CacheResult::of(ops.iter().filter_map(|(_, op)| op.cache)),
                ops,
                name: part.name,
            }
        };
        PartSummary::all_of(measurement, plan).into_iter().enumerate().map(of).collect()
    }
}
