//! What set the rate of a run or the waiting in it, and the figures that this rests on.

use pummel_measure::headroom::ResourceUse;
use pummel_measure::limit::{Cause, Observation, Subject};
use pummel_measure::summary::Summary;
use serde::{Deserialize, Serialize};

use super::figures::rounded;
use super::known::known;
use crate::words::limit::{cause_words, resource_words};
use crate::words::observations::observation_words;

/// What set the rate of a run, or the waiting in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct VerdictResult {
    /// The limit: `none`, `generator`, `server`, `connections`, `network`, `others`, `workload` or `unknown`.
    pub limit: String,
    /// Name of the row of the table below that held.
    pub row: String,
    /// The verdict as a sentence.
    pub says: String,
    /// Facts that the verdict rests on; absent in older results and in sums, and where this version does not know their kind: the
    /// sentence is what there is then.
    #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Every figure that the table is judged by, whether or not its row held.
    pub evidence: Vec<ObservationResult>,
    /// How much of each resource was used.
    pub headroom: Vec<ResourceResult>,
}

/// A figure that the table of limits was judged by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ObservationResult {
    /// Source of the figure: `generator`, `requests`, `network` or `server`.
    pub source: String,
    /// The figure; null where it has no finite value.
    pub value: Option<f64>,
    /// Value from which on the figure is evidence; null where there is no bound.
    pub limit: Option<f64>,
    /// Subject of the figure; absent in older results, and where this version does not know its kind.
    #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// The figure with its subject in words.
    pub says: String,
}

/// How much of a resource was used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ResourceResult {
    /// Name of the resource.
    pub resource: String,
    /// The part that was used, in percent.
    pub used_percent: f64,
    /// Requests per second at which the resource is used up if its use goes on growing with the rate; null for
    /// what does not grow with it, such as memory. Threads need less for each request when they have more to
    /// do, so the true rate is probably higher.
    pub full_at_rate: Option<f64>,
}

impl VerdictResult {
    pub(super) fn of(summary: &Summary) -> VerdictResult {
        let verdict = &summary.verdict;
        VerdictResult {
            limit: verdict.limit.name().to_owned(),
            row: verdict.row.to_owned(),
            says: cause_words(&verdict.cause),
            cause: Some(verdict.cause.clone()),
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
            says: observation_words(&seen.subject, seen.value),
            subject: Some(seen.subject.clone()),
        }
    }
}

impl ResourceResult {
    fn of(used: &ResourceUse) -> ResourceResult {
        ResourceResult {
            resource: resource_words(&used.resource),
            used_percent: rounded(used.share * 100.0),
            full_at_rate: used.full_at_rate.map(rounded),
        }
    }
}
