//! The two answers of a result: how far its times may be believed, and what set the rate or the waiting.

use pummel_logic::measure::headroom::ResourceUse;
use pummel_logic::measure::limit::Observation;
use pummel_logic::measure::summary::Summary;
use pummel_logic::measure::trust::LagShare;
use serde::Serialize;

use super::figures::rounded;

#[derive(Serialize)]
pub(super) struct TrustOut<'a> {
    ok: bool,
    lag_share: LagShareOut,
    says: &'a str,
}

#[derive(Serialize)]
pub(super) struct LagShareOut {
    p50: Option<f64>,
    p99: Option<f64>,
    same_requests: bool,
}

#[derive(Serialize)]
pub(super) struct VerdictOut<'a> {
    limit: &'static str,
    row: &'static str,
    says: &'a str,
    evidence: Vec<ObservationOut<'a>>,
    headroom: Vec<ResourceOut<'a>>,
}

#[derive(Serialize)]
struct ObservationOut<'a> {
    source: &'static str,
    value: f64,
    limit: Option<f64>,
    says: &'a str,
}

#[derive(Serialize)]
struct ResourceOut<'a> {
    resource: &'a str,
    used_percent: f64,
    full_at_rate: Option<f64>,
}

impl TrustOut<'_> {
    pub(super) fn of(summary: &Summary) -> TrustOut<'_> {
        let trust = &summary.trust;
        TrustOut { ok: trust.ok, lag_share: LagShareOut::of(&trust.lag_share), says: &trust.says }
    }
}

impl LagShareOut {
    pub(super) fn of(shares: &LagShare) -> LagShareOut {
        let (p50, p99) = (shares.p50.map(rounded), shares.p99.map(rounded));
        LagShareOut { p50, p99, same_requests: shares.same_requests }
    }
}

impl VerdictOut<'_> {
    pub(super) fn of(summary: &Summary) -> VerdictOut<'_> {
        let verdict = &summary.verdict;
        VerdictOut {
            limit: verdict.limit.name(),
            row: verdict.row,
            says: &verdict.says,
            evidence: verdict.evidence.iter().map(ObservationOut::of).collect(),
            headroom: summary.headroom.iter().map(ResourceOut::of).collect(),
        }
    }
}

impl ObservationOut<'_> {
    fn of(seen: &Observation) -> ObservationOut<'_> {
        // Shares of lost segments are far below a thousandth, and no reason to hide them.
        let value = (seen.value * 1e6).round() / 1e6;
        ObservationOut { source: seen.source, value, limit: seen.limit, says: &seen.says }
    }
}

impl ResourceOut<'_> {
    fn of(used: &ResourceUse) -> ResourceOut<'_> {
        ResourceOut {
            resource: &used.resource,
            used_percent: rounded(used.share * 100.0),
            full_at_rate: used.full_at_rate.map(rounded),
        }
    }
}
