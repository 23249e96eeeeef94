//! The audit of a run: the keys whose newest acknowledged write was lost.

use pummel_logic::time::seconds;
use pummel_measure::audit::Audit;
use pummel_measure::evidence::server::FLUSHED;
use pummel_measure::words::counted;
use serde::{Deserialize, Serialize};

use super::figures::rounded;
use super::named::Named;
use super::{ClusterResult, EvidenceResult};
use crate::Report;

/// The keys that the run wrote, read back after it and compared with the newest write that was acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AuditResult {
    /// Keys with an acknowledged write, those of the load among them. All further counts add up to it, without `lost`.
    pub keys: u64,
    /// Keys with the newest acknowledged write.
    pub current: u64,
    /// Keys with a write that was under way together with the newest acknowledged one: the server may rightly hold either.
    pub contested: u64,
    /// Keys with a write that no reply acknowledged, which was applied all the same.
    pub newer: u64,
    /// Keys with an older value.
    pub older: u64,
    /// Keys that were not there.
    pub missing: u64,
    /// Keys whose newest acknowledged write was lost: the older ones and the missing ones.
    pub lost: u64,
    /// Keys that could not be read, or not in time.
    pub unread: u64,
    /// When the first of the lost writes was acknowledged, in seconds from the beginning of the measured phase; 0 for writes
    /// before it, and null where none was lost.
    pub first_lost_s: Option<f64>,
    /// When the last of the lost writes was acknowledged, in seconds as well.
    pub last_lost_s: Option<f64>,
    /// Lost writes by the node of a cluster that owned their slots at the start; empty where none was lost, and for other servers.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub shards: Named<u64>,
    /// The reason why the counts are no proof that writes were lost, or that none was; null where they are.
    pub inconclusive: Option<String>,
}

impl AuditResult {
    /// The audit of the run; `None` where none was asked for.
    pub(super) fn of(
        report: &Report<'_>,
        cluster: Option<&ClusterResult>,
        evidence: Option<&EvidenceResult>,
    ) -> Option<AuditResult> {
        let audit = report.measurement.audit.as_ref()?;
        let counts = &audit.counts;
        let node_of = |shard: u16| cluster?.shards.get(usize::from(shard)).map(|shard| shard.node.clone());
        let shards = counts.lost_by_shard.iter();
        let at_s = |ns| rounded(seconds(ns));
        Some(AuditResult {
            keys: audit.written,
            current: counts.current,
            contested: counts.contested,
            newer: counts.newer,
            older: counts.older,
            missing: counts.missing,
            lost: counts.lost(),
            unread: audit.unread(),
            first_lost_s: counts.lost_at.map(|lost| at_s(lost.first_ns)),
            last_lost_s: counts.lost_at.map(|lost| at_s(lost.last_ns)),
            shards: shards.filter_map(|(shard, lost)| Some((node_of(*shard)?, *lost))).collect(),
            inconclusive: inconclusive(audit, evidence),
        })
    }
}

/// The reason why an audit proves nothing; `None` where it does.
fn inconclusive(audit: &Audit, evidence: Option<&EvidenceResult>) -> Option<String> {
    if !audit.begun {
        return Some("the run ended before its keys were read back".to_owned());
    }
    if audit.written == 0 {
        return Some("no write was acknowledged".to_owned());
    }
    if audit.unread() > 0 && audit.counts.lost() == 0 {
        return Some(format!("{} could not be read", counted(audit.unread(), "key")));
    }
    if audit.unknown_beyond > 0 {
        return Some(format!(
            "{} got no reply, too many to tell which of them were applied",
            counted(audit.unknown_beyond, "more write")
        ));
    }
    if audit.counts.missing == 0 {
        return None;
    }
    let readings = evidence.iter().flat_map(|seen| &seen.servers);
    readings.into_iter().find_map(|server| {
        let reading = server.reading.as_ref()?;
        let counts = [(reading.counts.evictions, "evicted"), (reading.counts.expired, "let expire")];
        let gone = counts.into_iter().find_map(|(count, how)| Some((count.filter(|count| *count > 0)?, how)));
        let is_flushed = reading.disturbances.iter().any(|words| words.starts_with(FLUSHED));
        match gone {
            Some((count, how)) => Some(format!("{} {how} {}", server.address, counted(count, "record"))),
            None => is_flushed.then(|| format!("{} was emptied", server.address)),
        }
    })
}

#[cfg(test)]
mod tests {
    use pummel_logic::workload::verify::ledger::RecordState;
    use pummel_measure::audit::AuditCounts;
    use pummel_measure::measurement::Keep;

    use super::*;
    use crate::example::Run;

    /// The audit of 10 keys of which these states were read, on three masters.
    fn audited(states: &[RecordState]) -> Run {
        let mut run = Run::new(Keep::Figures).on_cluster(3);
        let mut counts = AuditCounts::default();
        states.iter().for_each(|state| counts.note(*state, 1));
        run.measurement.audit = Some(Audit { begun: true, written: 10, counts, unknown_beyond: 0 });
        run
    }

    fn result_of(run: &Run) -> AuditResult {
        run.document(|document| document.audit.clone()).expect("it was audited")
    }

    #[test]
    fn lost_writes_have_their_times_and_their_shard() {
        let states = [
            RecordState::Current,
            RecordState::Older(1_500_000_000),
            RecordState::Missing(900_000_000),
            RecordState::Newer,
            RecordState::Contested,
        ];
        let expected = AuditResult {
            keys: 10,
            current: 1,
            contested: 1,
            newer: 1,
            older: 1,
            missing: 1,
            lost: 2,
            unread: 5,
            first_lost_s: Some(0.9),
            last_lost_s: Some(1.5),
            shards: [("127.0.0.1:7002", 2)].into_iter().collect(),
            inconclusive: None,
        };
        assert_eq!(result_of(&audited(&states)), expected);
        assert_eq!(Run::new(Keep::Figures).document(|document| document.audit.clone()), None);
    }

    #[test]
    fn an_audit_that_was_not_made_or_that_proves_nothing_says_so() {
        let mut run = audited(&[]);
        run.measurement.audit = Some(Audit::default());
        assert_eq!(
            result_of(&run).inconclusive.as_deref(),
            Some("the run ended before its keys were read back")
        );
        let unread = result_of(&audited(&[RecordState::Current]));
        assert_eq!(unread.inconclusive.as_deref(), Some("9 keys could not be read"));
        let lost = result_of(&audited(&[RecordState::Missing(1)]));
        assert_eq!((lost.lost, lost.unread, lost.inconclusive), (1, 9, None), "what is lost is known");
        let mut run = audited(&[RecordState::Current; 10]);
        run.measurement.audit.as_mut().expect("it was audited").unknown_beyond = 5;
        let words = "5 more writes got no reply, too many to tell which of them were applied";
        assert_eq!(result_of(&run).inconclusive.as_deref(), Some(words));
    }
}
