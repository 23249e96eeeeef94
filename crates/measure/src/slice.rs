//! A slice of the measured phase as it is saved: counts and figures by verb, histograms where they are wanted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::counters::Counters;
use crate::figures::{Figures, Unanswered};
use crate::histogram::{Histogram, Sketch};
use crate::interval::Interval;
use crate::parts::{ServerRecord, SlicePart};
use crate::recorder::{Counts, Ops, Span};
use pummel_logic::merge::Merge as _;
use pummel_logic::merged;
use pummel_logic::protocol::Verb;
use pummel_logic::time::Nanos;

/// A slice of the measured phase, all workers and groups together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    /// Number of the slice, from 0.
    pub index: u64,
    /// Beginning of the slice, in nanoseconds from the start of the measured phase.
    pub start_ns: Nanos,
    /// End of the slice, in nanoseconds from the start of the measured phase.
    pub end_ns: Nanos,
    /// Requests of the slice, by verb. Boxed, because a node of the map has room for eleven verbs, most slices have one
    /// verb, and there are many slices.
    pub ops: BTreeMap<Verb, Box<SliceOp>>,
    /// Everything that only adds up, beside the requests.
    pub counters: Counters,
    /// The times of all requests of the slice, folded; absent in results of versions that kept none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sketch: Option<SliceSketch>,
    /// The share of each of several servers in the slice, by its number in the Plan; empty with one server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<SlicePart>,
    /// The share of each process of a distributed run in the slice, in the order of the processes; empty with one
    /// process, or with more than [`MEMBERS_TIMED_MAX`](crate::parts::MEMBERS_TIMED_MAX).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<SlicePart>,
}

merged! {
    /// The times of the requests of a slice in few cells, so that every slice keeps them.
    #[serde(deny_unknown_fields)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub struct SliceSketch {
        /// Response times: the number of the first cell that is not empty, and the counts from there on.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<u64>"))]
        pub response: Sketch,
        /// Service times, in the same way.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<u64>"))]
        pub service: Sketch,
        /// Requests that got no answer.
        pub unanswered: u64,
    }
}

/// The requests of one verb in a slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SliceOp {
    /// Counts of the requests by their end.
    pub counts: Counts,
    /// The figures of the requests' times, by [`Span`].
    pub figures: [Figures; Span::COUNT],
    /// The histograms of the requests' times, by [`Span`], in HdrHistogram's V2 encoding; `None` where they are not
    /// kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histograms: Option<[String; Span::COUNT]>,
}

/// Choice of what is kept of the times of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Figures without their histograms.
    Figures,
    /// Figures and histograms, some kilobytes for each verb.
    Histograms,
}

impl Slice {
    pub(super) fn of(interval: &mut Interval, timeout_ns: Nanos, keep: Keep) -> Slice {
        let mut slice = Slice {
            index: interval.index,
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            ops: BTreeMap::new(),
            counters: interval.counters,
            sketch: None,
            servers: interval.side_times.servers.iter().map(ServerRecord::part).collect(),
            members: Vec::new(),
        };
        if let [recorder] = interval.groups.as_mut_slice() {
            slice.keep(recorder.ops(), timeout_ns, keep);
        } else {
            let mut together = Ops::default();
            interval.groups.iter_mut().for_each(|recorder| together.merge(recorder.ops()));
            slice.keep(&together, timeout_ns, keep);
        }
        slice
    }

    fn keep(&mut self, ops: &Ops, timeout_ns: Nanos, keep: Keep) {
        let mut sketch = SliceSketch::default();
        for (_, op) in ops.iter() {
            sketch.response.add(op.times.of(Span::Response));
            sketch.service.add(op.times.of(Span::Service));
            sketch.unanswered += op.counts.unanswered();
        }
        self.sketch = Some(sketch);
        for (verb, op) in ops.iter() {
            let kept = SliceOp {
                counts: op.counts,
                figures: Figures::of_op(op, timeout_ns),
                histograms: matches!(keep, Keep::Histograms)
                    .then(|| Span::ALL.map(|span| op.times.of(span).to_base64())),
            };
            self.ops.insert(verb, Box::new(kept));
        }
    }

    /// Length in nanoseconds.
    pub fn length_ns(&self) -> Nanos {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// The counts of all verbs together.
    pub fn counts(&self) -> Counts {
        let mut all = Counts::default();
        self.ops.values().for_each(|op| all.merge(&op.counts));
        all
    }

    pub(super) fn merge(&mut self, other: &Slice, timeout_ns: Nanos) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        for (verb, more) in &other.ops {
            match self.ops.get_mut(verb) {
                Some(op) => op.merge(more, timeout_ns),
                None => drop(self.ops.insert(*verb, more.clone())),
            }
        }
        self.counters.merge(&other.counters);
        self.servers.merge(&other.servers);
        self.members.merge(&other.members);
        // Where one slice has no sketch, the sketch of the other would stand for both.
        self.sketch = self.sketch.take().zip(other.sketch.as_ref()).map(|(mut sketch, more)| {
            sketch.merge(more);
            sketch
        });
    }
}

impl SliceOp {
    pub(super) fn merge(&mut self, other: &SliceOp, timeout_ns: Nanos) {
        self.counts.merge(&other.counts);
        let histograms = self.histograms().zip(other.histograms()).map(|(mut merged, more)| {
            merged.iter_mut().zip(&more).for_each(|(histogram, more)| histogram.merge(more));
            merged
        });
        match histograms {
            Some(merged) => {
                self.figures = Span::ALL.map(|span| {
                    let times = &merged[span as usize];
                    Figures::of(span, times, &Unanswered::of(&self.counts, span, times, timeout_ns))
                });
                self.histograms = Some(merged.each_ref().map(Histogram::to_base64));
            }
            None => {
                self.figures
                    .iter_mut()
                    .zip(&other.figures)
                    .for_each(|(figures, more)| figures.merge_exact(more));
                self.histograms = None;
            }
        }
    }

    /// The histograms that were kept, with their exact figures. `None` also where a text is not one.
    pub fn histograms(&self) -> Option<[Histogram; Span::COUNT]> {
        let texts = self.histograms.as_ref()?;
        let mut histograms: [Histogram; Span::COUNT] = Default::default();
        for (at, histogram) in histograms.iter_mut().enumerate() {
            *histogram = Histogram::from_parts(&texts[at], self.figures[at].exact).ok()?;
        }
        Some(histograms)
    }
}
