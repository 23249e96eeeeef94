//! Requests: all together, by operation, and by group.

use std::collections::BTreeMap;

use pummel_logic::measure::certainty::Certainty;
use pummel_logic::measure::histogram::Histogram;
use pummel_logic::measure::measurement::SliceOp;
use pummel_logic::measure::recorder::{Counts, Ops, Span, Times};
use pummel_logic::measure::summary::{Figures, GroupSummary, OpSummary, Totals};
use pummel_logic::plan::Plan;
use pummel_logic::protocol::{Fault, Verb};
use serde::{Serialize, Serializer};

use super::figures::{TimesOut, range_ends, rounded};

#[derive(Serialize)]
pub(super) struct TotalsOut<'a> {
    requests: u64,
    completed: u64,
    errors: u64,
    unfinished: u64,
    unsent: u64,
    #[serde(skip_serializing_if = "is_zero")]
    unsent_estimated: u64,
    /// Where requests that are late are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    #[serde(skip_serializing_if = "is_zero")]
    skipped_estimated: u64,
    rate: f64,
    /// Null where it is not known how sure the rate is.
    rate_ci: Option<[f64; 2]>,
    #[serde(flatten)]
    times: TimesOut<'a>,
}

pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl<'a> TotalsOut<'a> {
    pub(super) fn of(totals: &'a Totals) -> TotalsOut<'a> {
        TotalsOut {
            requests: totals.counts.requests(),
            completed: totals.counts.completed,
            errors: totals.counts.failed(),
            unfinished: totals.counts.unfinished,
            unsent: totals.counts.unsent,
            unsent_estimated: totals.counts.unsent_estimated,
            skipped: None,
            skipped_estimated: 0,
            rate: rounded(totals.rate),
            rate_ci: totals.certainty.as_ref().and_then(|certainty| certainty.rate).map(range_ends),
            times: TimesOut::of(&totals.figures, totals.certainty.as_ref()),
        }
    }

    /// The same requests with those that were left out because they were late.
    pub(super) fn with_skipped(self, skipped: Option<u64>, skipped_estimated: u64) -> TotalsOut<'a> {
        TotalsOut { skipped, skipped_estimated, ..self }
    }
}

/// One verb's counts, with its times and histograms where it has some.
#[derive(Serialize)]
pub(super) struct OpOut<'a> {
    requests: u64,
    completed: u64,
    keys: u64,
    hits: u64,
    misses: u64,
    /// Absent where nothing was read, and where it is not known how sure the share is.
    #[serde(skip_serializing_if = "Option::is_none")]
    hit_share_ci: Option<[f64; 2]>,
    outcomes: Named<11>,
    errors: Named<{ Fault::COUNT }>,
    unfinished: u64,
    unsent: u64,
    #[serde(skip_serializing_if = "is_zero")]
    unsent_estimated: u64,
    #[serde(flatten)]
    times: Option<TimesOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    histograms: Option<Histograms>,
}

impl<'a> OpOut<'a> {
    pub(super) fn of(
        counts: &Counts,
        figures: Option<(&'a [Figures; Span::COUNT], Option<&'a Certainty>)>,
        histograms: Option<Histograms>,
    ) -> OpOut<'a> {
        let certainty = figures.and_then(|(_, certainty)| certainty);
        OpOut {
            requests: counts.requests(),
            completed: counts.completed,
            keys: counts.keys,
            hits: counts.hits,
            misses: counts.misses,
            hit_share_ci: certainty.and_then(|certainty| certainty.hit_share).map(range_ends),
            outcomes: Named(counts.outcomes.named()),
            errors: Named(Fault::ALL.map(|fault| (fault.name(), counts.errors(fault)))),
            unfinished: counts.unfinished,
            unsent: counts.unsent,
            unsent_estimated: counts.unsent_estimated,
            times: figures.map(|(figures, certainty)| TimesOut::of(figures, certainty)),
            histograms,
        }
    }
}

/// Verbs, as the plan calls them, with what is known of them, in the order of reports.
pub(super) struct OpsOut<'a>(pub(super) Vec<(&'static str, OpOut<'a>)>);

impl<'a> OpsOut<'a> {
    pub(super) fn of(plan: &Plan, summaries: &'a [OpSummary], ops: &Ops) -> OpsOut<'a> {
        let each = summaries.iter().map(|summary| {
            let histograms = ops.get(summary.verb).map(|op| Histograms::of(&op.times));
            let figures = (&summary.figures, summary.certainty.as_ref());
            (plan.name_of(summary.verb), OpOut::of(&summary.counts, Some(figures), histograms))
        });
        OpsOut(each.collect())
    }

    pub(super) fn of_slice(plan: &Plan, ops: &'a BTreeMap<Verb, Box<SliceOp>>) -> OpsOut<'a> {
        let each = ops.iter().map(|(verb, op)| {
            let histograms = op.histograms.clone().map(Histograms);
            (plan.name_of(*verb), OpOut::of(&op.counts, Some((&op.figures, None)), histograms))
        });
        OpsOut(each.collect())
    }
}

impl Serialize for OpsOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, op)| (name, op)))
    }
}

/// Counts with their names.
pub(super) struct Named<const N: usize>([(&'static str, u64); N]);

impl<const N: usize> Serialize for Named<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0)
    }
}

/// The five histograms of a verb, encoded.
pub(super) struct Histograms([String; Span::COUNT]);

impl Histograms {
    pub(super) fn of(times: &Times) -> Histograms {
        Histograms(Span::ALL.map(|span| Histogram::to_base64(times.of(span))))
    }
}

impl Serialize for Histograms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Span::ALL.into_iter().map(Span::name).zip(&self.0))
    }
}

#[derive(Serialize)]
pub(super) struct GroupOut<'a> {
    name: &'a str,
    totals: TotalsOut<'a>,
    ops: OpsOut<'a>,
}

impl<'a> GroupOut<'a> {
    pub(super) fn of(plan: &Plan, group: &'a GroupSummary, ops: &Ops) -> GroupOut<'a> {
        let ops = OpsOut::of(plan, &group.ops, ops);
        GroupOut { name: &group.name, totals: TotalsOut::of(&group.totals), ops }
    }
}
