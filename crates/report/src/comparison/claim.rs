//! What a change is held to: `--worse` and `--within`.

use serde::{Deserialize, Serialize};

use super::doubt::Doubt;
use crate::run_figures::Metric;

/// A sentence about a change that a comparison is to judge.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// The figure.
    pub metric: Metric,
    /// The greatest change for the worse that is allowed, as a share: 0.02 for 2 %.
    pub limit: f64,
    /// The kind of the claim.
    #[serde(rename = "claim")]
    pub kind: ClaimKind,
}

/// The kinds of claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ClaimKind {
    /// A regression gate: violated where side B is shown to be worse by more than the limit.
    Worse,
    /// A proof of no harm: violated unless side B is shown to be no worse than by the limit.
    Within,
}

/// Claim and its outcome: `passed`, `failed`, or `not judged` with the reasons as `why`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClaimResult {
    /// The claim.
    #[serde(flatten)]
    pub claim: Claim,
    /// The outcome of the claim.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Outcome of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "outcome", content = "why")]
pub enum Outcome {
    /// The claim holds.
    #[serde(rename = "passed")]
    Held,
    /// The claim is violated.
    #[serde(rename = "failed")]
    Violated,
    /// The claim cannot be judged, for these reasons.
    #[serde(rename = "not judged")]
    NotJudged(Vec<Doubt>),
}

impl Claim {
    /// Its option.
    pub fn flag(&self) -> &'static str {
        match self.kind {
            ClaimKind::Worse => "--worse",
            ClaimKind::Within => "--within",
        }
    }

    /// What becomes of it, from the 95 % interval of the change for the worse and from the doubts about the sides. A change below the
    /// noise of the machine, or one that is not shown beside the gates of other pairs, may violate no regression gate. Runs that were not
    /// steady are judged where the interval lies on one side of the limit.
    pub(super) fn judged(
        &self,
        worsening: Option<(f64, f64)>,
        may_violate: bool,
        doubts: &[Doubt],
    ) -> ClaimResult {
        let of_intervals: Vec<Doubt> =
            doubts.iter().filter(|doubt| doubt.leaves_intervals()).cloned().collect();
        let outcome = match worsening {
            _ if doubts.len() > of_intervals.len() => Outcome::NotJudged(doubts.to_vec()),
            None => Outcome::NotJudged(vec![Doubt::UnknownFigure { metric: self.metric }]),
            Some((low, high)) => match self.kind {
                ClaimKind::Worse if low > self.limit && may_violate => Outcome::Violated,
                ClaimKind::Worse if high <= self.limit || of_intervals.is_empty() => Outcome::Held,
                ClaimKind::Within if high < self.limit => Outcome::Held,
                ClaimKind::Within if low > self.limit || of_intervals.is_empty() => Outcome::Violated,
                ClaimKind::Worse | ClaimKind::Within => Outcome::NotJudged(of_intervals),
            },
        };
        ClaimResult { claim: *self, outcome }
    }
}

impl ClaimResult {
    /// The outcome where figures of sides are partly the generator's: the second side is not shown to be worse where its own generator
    /// may be the cause, nor to be hardly worse where either generator may hide it.
    pub(super) fn unless_hidden(self, hidden: [Option<Doubt>; 2]) -> ClaimResult {
        let [first, second] = hidden;
        let why: Vec<Doubt> = match (self.claim.kind, &self.outcome) {
            (_, Outcome::NotJudged(_)) | (ClaimKind::Worse, Outcome::Held) => Vec::new(),
            (ClaimKind::Worse, Outcome::Violated) => second.into_iter().collect(),
            (ClaimKind::Within, _) => first.into_iter().chain(second).collect(),
        };
        match why.is_empty() {
            true => self,
            false => ClaimResult { outcome: Outcome::NotJudged(why), ..self },
        }
    }

    /// The word of results.
    pub fn name(&self) -> &'static str {
        match self.outcome {
            Outcome::Held => "passed",
            Outcome::Violated => "failed",
            Outcome::NotJudged(_) => "not judged",
        }
    }
}
