//! The misses of records that a run had loaded, and that nothing took away.

use pummel_logic::plan::Plan;
use pummel_measure::evidence::server::FLUSHED;
use pummel_measure::measurement::Measurement;
use pummel_measure::misses;

use super::evidence::{EvidenceResult, ReadingResult};
use super::requests::{OpsResult, reads_records};

/// Whether every miss of a run is one of a record that it had loaded, and that neither the run nor a server took away.
pub(super) fn are_unexpected(
    plan: &Plan,
    measurement: &Measurement,
    evidence: Option<&EvidenceResult>,
) -> bool {
    let readings =
        evidence.iter().flat_map(|seen| &seen.servers).filter_map(|server| server.reading.as_ref());
    let took_some = |reading: &ReadingResult| {
        let counts = [reading.counts.evictions, reading.counts.expired];
        let is_flushed = reading.disturbances.iter().any(|words| words.starts_with(FLUSHED));
        is_flushed || counts.into_iter().flatten().any(|count| count > 0)
    };
    let measures_mix = plan.mixes().any(|(number, _)| plan.phases[number].recorded);
    measures_mix && misses::are_unexpected(plan, measurement) && !readings.into_iter().any(took_some)
}

/// Keys of records that reads missed.
pub(super) fn missed(ops: &OpsResult) -> u64 {
    ops.iter().filter(|(name, _)| reads_records(name)).map(|(_, op)| op.misses).sum()
}
