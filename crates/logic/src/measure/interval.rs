//! One slice of the measured phase, as one worker saw it or as all of them did.

use crate::measure::histogram::Histogram;
use crate::measure::measurement::{Bytes, Stamps};
use crate::measure::recorder::Recorder;
use crate::time::Nanos;
use crate::wire::Verb;
use crate::workload::window::WindowCounts;

/// One slice of time. A worker records into it, hands it over at the tick and gets an empty one back; slices of
/// different workers with the same index are merged.
#[derive(Debug)]
pub struct Interval {
    /// Number of the slice, from 0.
    pub index: u64,
    /// Where it begins, from the start of the measured phase.
    pub start_ns: Nanos,
    /// Where it ends. The last one ends with the drain.
    pub end_ns: Nanos,
    /// What was recorded, by group of the Plan.
    pub groups: Vec<Recorder>,
    /// What went over the wire.
    pub bytes: Bytes,
    /// How the worker itself fared.
    pub turns: Turns,
    /// What clients with windows counted.
    pub window: WindowCounts,
    /// How many requests its client had outstanding with each new one, that one included; only where it is wanted.
    pub outstanding: Option<Box<Histogram>>,
}

/// How a worker's loop went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Turns {
    /// Turns of the loop.
    pub turns: u64,
    /// Time in turns that had something to do.
    pub busy_ns: Nanos,
    /// Turns that took above 1 ms.
    pub stalls: u64,
    /// Time in those.
    pub stalled_ns: Nanos,
    /// Receive stamps that were not what they should be.
    pub stamps: Stamps,
}

impl Interval {
    /// An empty slice for groups that ask with these verbs.
    pub fn new<V: IntoIterator<Item = Verb>>(groups: impl IntoIterator<Item = V>) -> Interval {
        Interval {
            index: 0,
            start_ns: 0,
            end_ns: 0,
            groups: groups.into_iter().map(|verbs| Recorder::new(verbs.into_iter())).collect(),
            bytes: Bytes::default(),
            turns: Turns::default(),
            window: WindowCounts::default(),
            outstanding: None,
        }
    }

    /// The same, which also counts outstanding requests where that is wanted.
    pub fn counting(self, outstanding: bool) -> Interval {
        Interval { outstanding: outstanding.then(Box::default), ..self }
    }

    /// Adds another worker's part of the same slice.
    ///
    /// # Panics
    /// When it is another slice, or has other groups.
    pub fn merge(&mut self, other: &mut Interval) {
        assert_eq!(self.index, other.index, "only parts of the same slice are merged");
        assert_eq!(self.groups.len(), other.groups.len(), "all workers have the same groups");
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        for (recorder, more) in self.groups.iter_mut().zip(&mut other.groups) {
            recorder.merge(more);
        }
        self.bytes.merge(&other.bytes);
        self.turns.merge(&other.turns);
        self.window.merge(&other.window);
        if let (Some(ours), Some(theirs)) = (&mut self.outstanding, &other.outstanding) {
            ours.merge(theirs);
        }
    }

    /// Makes it empty again and the slice `index` from `start_ns` on; the memory stays.
    pub fn restart(&mut self, index: u64, start_ns: Nanos) {
        self.index = index;
        self.start_ns = start_ns;
        self.end_ns = start_ns;
        self.groups.iter_mut().for_each(Recorder::clear);
        self.bytes = Bytes::default();
        self.turns = Turns::default();
        self.window = WindowCounts::default();
        if let Some(outstanding) = &mut self.outstanding {
            outstanding.clear();
        }
    }
}

impl Turns {
    /// Adds another worker's, or another slice's, figures.
    pub fn merge(&mut self, other: &Turns) {
        self.turns += other.turns;
        self.busy_ns += other.busy_ns;
        self.stalls += other.stalls;
        self.stalled_ns += other.stalled_ns;
        self.stamps.merge(&other.stamps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::recorder::Sample;
    use crate::wire::Outcome;

    fn slice(index: u64, start_ns: Nanos, end_ns: Nanos, requests: u64) -> Interval {
        let mut interval = Interval::new([[Verb::Get]]);
        interval.restart(index, start_ns);
        interval.end_ns = end_ns;
        for at in 0..requests {
            let sample = Sample {
                verb: Verb::Get,
                outcome: Outcome::Hit,
                keys: 1,
                hits: 1,
                due: at,
                ready: at,
                sent: at,
                arrived: at + 50,
                read: at + 60,
                noreply: false,
            };
            interval.groups[0].record(&sample);
        }
        interval.turns.stalls = requests;
        interval
    }

    #[test]
    fn parts_of_a_slice_add_up_and_cover_the_time_of_both() {
        let mut one = slice(3, 30, 39, 2);
        one.merge(&mut slice(3, 31, 41, 5));
        assert_eq!((one.start_ns, one.end_ns, one.turns.stalls), (30, 41, 7));
        assert_eq!(one.groups[0].ops().all().counts.completed, 7);
    }

    #[test]
    #[should_panic(expected = "same slice")]
    fn different_slices_are_not_merged() {
        slice(3, 0, 1, 0).merge(&mut slice(4, 0, 1, 0));
    }

    #[test]
    fn a_restarted_slice_is_empty() {
        let mut used = slice(0, 0, 10, 4);
        used.restart(1, 10);
        assert_eq!((used.index, used.start_ns, used.end_ns, used.turns), (1, 10, 10, Turns::default()));
        assert_eq!(used.groups[0].ops().all().counts.requests(), 0);
    }
}
