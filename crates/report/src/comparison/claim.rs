//! What a change is held to: `--worse` and `--within`.

use serde::{Deserialize, Serialize};

use crate::run_figures::Metric;

/// A sentence about a change that a comparison is to judge.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// The figure.
    pub metric: Metric,
    /// The greatest change for the worse that is allowed, as a share: 0.02 for 2 %.
    pub limit: f64,
    /// The kind of the claim: `worse` or `within`.
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

/// Claim and its outcome: `passed`, `failed`, or `not judged` with the reason as `why`.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "outcome", content = "why")]
pub enum Outcome {
    /// The claim holds.
    #[serde(rename = "passed")]
    Held,
    /// The claim is violated.
    #[serde(rename = "failed")]
    Violated,
    /// The claim cannot be judged, for this reason.
    #[serde(rename = "not judged")]
    NotJudged(String),
}

impl Claim {
    /// Its option.
    pub fn flag(&self) -> &'static str {
        match self.kind {
            ClaimKind::Worse => "--worse",
            ClaimKind::Within => "--within",
        }
    }

    /// What becomes of it, from the 95 % interval of the change for the worse and from the reasons why nothing can be judged. A
    /// change below the noise of the machine violates no regression gate.
    pub(super) fn judged(
        &self,
        worsening: Option<(f64, f64)>,
        is_below_noise: bool,
        doubts: &[String],
    ) -> ClaimResult {
        let outcome = match (worsening, doubts) {
            (_, [_, ..]) => Outcome::NotJudged(doubts.join("; ")),
            (None, []) => Outcome::NotJudged(format!("{} is not known in every run", self.metric.name())),
            (Some((low, high)), []) => {
                let is_violated = match self.kind {
                    ClaimKind::Worse => low > self.limit && !is_below_noise,
                    ClaimKind::Within => high >= self.limit,
                };
                if is_violated { Outcome::Violated } else { Outcome::Held }
            }
        };
        ClaimResult { claim: *self, outcome }
    }
}

impl ClaimResult {
    /// The outcome where the generator was the limit of sides, for these reasons: the second side is not shown to be worse where its own
    /// generator may be the cause, nor to be hardly worse where either generator may hide it.
    pub(super) fn unless_limited(self, limited: [Option<String>; 2]) -> ClaimResult {
        let [first, second] = limited;
        let why = match (self.claim.kind, &self.outcome) {
            (_, Outcome::NotJudged(_)) => None,
            (ClaimKind::Worse, Outcome::Violated) => second,
            (ClaimKind::Worse, Outcome::Held) => None,
            (ClaimKind::Within, _) => {
                Some([first, second].into_iter().flatten().collect::<Vec<_>>().join("; "))
                    .filter(|why| !why.is_empty())
            }
        };
        match why {
            Some(why) => ClaimResult { outcome: Outcome::NotJudged(why), ..self },
            None => self,
        }
    }

    /// The claim and its outcome in a sentence about the side of this name.
    pub fn words(&self, name_of_side: &str) -> String {
        let Claim { metric, limit, kind } = self.claim;
        let name = metric.name();
        let limit = percent(limit);
        let subject = format!("{} {name}:{limit}", self.claim.flag()).replace(" %", "%");
        match (&self.outcome, kind) {
            (Outcome::NotJudged(why), _) => format!("{subject}: cannot be judged: {why}"),
            (Outcome::Held, ClaimKind::Worse) => {
                format!("{subject}: passed; {name_of_side} is not shown to be worse by more than {limit}")
            }
            (Outcome::Violated, ClaimKind::Worse) => {
                format!("{subject}: FAILED; {name_of_side} is worse by more than {limit}")
            }
            (Outcome::Held, ClaimKind::Within) => {
                format!("{subject}: passed; {name_of_side} is shown to be no worse than by {limit}")
            }
            (Outcome::Violated, ClaimKind::Within) => {
                format!("{subject}: FAILED; {name_of_side} is not shown to be no worse than by {limit}")
            }
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

/// A share in percent, without digits that say nothing.
fn percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 1e2)
}
