//! The two answers of a result: how far its times may be believed, and what set the rate or the waiting.

use pummel_measure::headroom::ResourceUse;
use pummel_measure::limit::Observation;
use pummel_measure::summary::Summary;
use pummel_measure::trust::LagShare;
use serde::{Deserialize, Serialize};

use super::figures::rounded;

/// How far the times of a run may be believed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrustResult {
    /// Whether they may be believed.
    pub ok: bool,
    /// The part of the response that is the generator's lag.
    pub lag_share: LagShareResult,
    /// Names of the figures of the response that are lag for half or more.
    pub mostly_lag: Vec<String>,
    /// The answer in sentences.
    pub says: String,
}

/// The part of the response that is lag, from 0 to 1, at two quantiles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LagShareResult {
    /// In the mean.
    pub mean: Option<f64>,
    /// At the quantile of 50 %.
    pub p50: Option<f64>,
    /// At the quantile of 99 %.
    pub p99: Option<f64>,
    /// Whether lag and response are those of the same requests.
    pub same_requests: bool,
}

/// What set the rate of a run, or the waiting in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerdictResult {
    /// The limit, in a word.
    pub limit: String,
    /// Name of the row of the table of limits that held.
    pub row: String,
    /// The verdict in sentences.
    pub says: String,
    /// The figures that the table was judged by.
    pub evidence: Vec<ObservationResult>,
    /// How much of each resource was used.
    pub headroom: Vec<ResourceResult>,
}

/// A figure that the table of limits was judged by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObservationResult {
    /// Where the figure is from.
    pub source: String,
    /// The figure; null where it has no finite value.
    pub value: Option<f64>,
    /// From which on the figure is evidence.
    pub limit: Option<f64>,
    /// What the figure is of.
    pub says: String,
}

/// How much of a resource was used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceResult {
    /// Name of the resource.
    pub resource: String,
    /// The part that was used, in percent.
    pub used_percent: f64,
    /// Requests per second at which the resource is used up.
    pub full_at_rate: Option<f64>,
}

impl TrustResult {
    pub(super) fn of(summary: &Summary) -> TrustResult {
        let trust = &summary.trust;
        TrustResult {
            ok: trust.ok,
            lag_share: LagShareResult::of(&trust.lag_share),
            mostly_lag: trust.mostly_lag.iter().map(|name| (*name).to_owned()).collect(),
            says: trust.says.clone(),
        }
    }
}

impl LagShareResult {
    pub(super) fn of(shares: &LagShare) -> LagShareResult {
        let [mean, p50, p99] = [shares.mean, shares.p50, shares.p99].map(|share| share.map(rounded));
        LagShareResult { mean, p50, p99, same_requests: shares.same_requests }
    }
}

impl VerdictResult {
    pub(super) fn of(summary: &Summary) -> VerdictResult {
        let verdict = &summary.verdict;
        VerdictResult {
            limit: verdict.limit.name().to_owned(),
            row: verdict.row.to_owned(),
            says: verdict.says.clone(),
            evidence: verdict.evidence.iter().map(ObservationResult::of).collect(),
            headroom: summary.headroom.iter().map(ResourceResult::of).collect(),
        }
    }
}

impl ObservationResult {
    fn of(seen: &Observation) -> ObservationResult {
        // Shares of lost segments are far below a thousandth, and no reason to hide them.
        let value = (seen.value * 1e6).round() / 1e6;
        ObservationResult {
            source: seen.source.to_owned(),
            value: value.is_finite().then_some(value),
            limit: seen.limit,
            says: seen.says.clone(),
        }
    }
}

impl ResourceResult {
    fn of(used: &ResourceUse) -> ResourceResult {
        ResourceResult {
            resource: used.resource.clone(),
            used_percent: rounded(used.share * 100.0),
            full_at_rate: used.full_at_rate.map(rounded),
        }
    }
}
