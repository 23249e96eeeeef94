//! Times of sampled requests that left this machine: the part of their service time before that, and the part after it.

use serde::{Deserialize, Serialize};

use crate::histogram::{Histogram, NotAHistogram, SparseHistogram};
use pummel_logic::counters;
use pummel_logic::time::Nanos;

/// A transmit stamp may lie this far outside of [sent, arrived], the slack of comparing two clocks.
const STAMP_SLACK_NS: Nanos = 1_000;

/// The times of sampled requests around the moment at which their last byte left: service = out + served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransmitTimes {
    /// left - sent: this machine's kernel, from the system call to the driver.
    pub out: Histogram,
    /// arrived - left: the way there, the server, and the way back. Requests whose reply has no receive stamp are left
    /// out.
    pub served: Histogram,
    /// left - scheduled: the queueing discipline, where its stamps were asked for; part of `out`.
    pub queued: Histogram,
    /// Time from the card's stamp of the request to its stamp of the reply, by the card's clock alone, where its stamps
    /// were asked for.
    #[serde(default)]
    pub wire: Histogram,
    /// Counts of sampled requests without these times.
    pub counts: TransmitCounts,
}

counters! {
    /// Counts of sampled requests with a good reply whose moment of leaving is not known.
    #[serde(deny_unknown_fields)]
    pub struct TransmitCounts {
        /// Requests that the kernel did not stamp.
        pub tx_missing: u64,
        /// Requests that the kernel put into one buffer with a later one, which it stamped.
        pub tx_merged: u64,
        /// Requests with an impossible stamp: it lay outside of the time between sending and arrival.
        pub tx_rejected: u64,
        /// Requests for which the card's stamps were asked for, and that of the request, or that of the reply, did not come
        /// within a second or was impossible.
        #[serde(default)]
        pub wire_missing: u64,
    }
}

/// The times of one sampled request, on the monotonic clock in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The clock before the system call that took the first byte of the request.
    pub sent: Nanos,
    /// Time at which the last byte entered the queueing discipline; `None` where that is not known.
    pub scheduled: Option<Nanos>,
    /// Time at which the driver handed the last byte to the device.
    pub left: Nanos,
    /// Time at which the kernel received the last byte of the reply; `None` without a receive stamp.
    pub arrived: Option<Nanos>,
}

impl TransmitTimes {
    /// Records a request. Returns whether its stamp is possible; where it is not, the request is counted as rejected.
    pub fn record(&mut self, departure: &Departure) -> bool {
        let Departure { sent, scheduled, left, arrived } = *departure;
        let is_early = left.saturating_add(STAMP_SLACK_NS) < sent;
        let is_late = arrived.is_some_and(|arrived| left > arrived.saturating_add(STAMP_SLACK_NS));
        if is_early || is_late {
            self.counts.tx_rejected += 1;
            return false;
        }
        let left = left.max(sent).min(arrived.map_or(Nanos::MAX, |arrived| arrived.max(sent)));
        self.out.record(left - sent);
        if let Some(arrived) = arrived {
            self.served.record(arrived.saturating_sub(left));
        }
        if let Some(scheduled) = scheduled {
            self.queued.record(left.saturating_sub(scheduled.max(sent)));
        }
        true
    }

    /// Adds the times of another worker, slice or process.
    pub fn merge(&mut self, other: &TransmitTimes) {
        self.out.merge(&other.out);
        self.served.merge(&other.served);
        self.queued.merge(&other.queued);
        self.wire.merge(&other.wire);
        self.counts.merge(&other.counts);
    }

    /// Records the card's stamps of a request and of its reply; the first may be missing. A reply stamped before its
    /// request is not recorded.
    pub fn record_wire(&mut self, left: Option<Nanos>, received: Nanos) {
        match left.and_then(|left| received.checked_sub(left)) {
            Some(wire) => self.wire.record(wire),
            None => self.counts.wire_missing += 1,
        }
    }

    /// Makes the times empty, and keeps their memory.
    pub fn clear(&mut self) {
        [&mut self.out, &mut self.served, &mut self.queued, &mut self.wire]
            .into_iter()
            .for_each(Histogram::clear);
        self.counts = TransmitCounts::default();
    }
}

/// [`TransmitTimes`] on their way to another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SparseTransmitTimes {
    out: SparseHistogram,
    served: SparseHistogram,
    queued: SparseHistogram,
    /// Times by the card's clock; absent where no card stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wire: Option<SparseHistogram>,
    counts: TransmitCounts,
}

impl SparseTransmitTimes {
    /// The times in the form that is sent to another process.
    pub fn of(times: &TransmitTimes) -> SparseTransmitTimes {
        SparseTransmitTimes {
            out: times.out.to_sparse(),
            served: times.served.to_sparse(),
            queued: times.queued.to_sparse(),
            wire: (times.wire.count() > 0).then(|| times.wire.to_sparse()),
            counts: times.counts,
        }
    }

    /// Adds the times to those of this process.
    ///
    /// # Errors
    /// Returns [`NotAHistogram`] when the times are no histograms; parts of them may have been added then.
    pub fn add_to(&self, times: &mut TransmitTimes) -> Result<(), NotAHistogram> {
        times.counts.merge(&self.counts);
        times.out.merge_sparse(&self.out)?;
        times.served.merge_sparse(&self.served)?;
        times.queued.merge_sparse(&self.queued)?;
        self.wire.as_ref().map_or(Ok(()), |wire| times.wire.merge_sparse(wire))
    }

    /// Adds the times of a later slice of the same process.
    pub fn merge(&mut self, other: &SparseTransmitTimes) {
        self.out.merge(&other.out);
        self.served.merge(&other.served);
        self.queued.merge(&other.queued);
        match (&mut self.wire, &other.wire) {
            (Some(wire), Some(more)) => wire.merge(more),
            (None, Some(more)) => self.wire = Some(more.clone()),
            (_, None) => {}
        }
        self.counts.merge(&other.counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: Nanos = 1_000_000;

    fn departure(left: Nanos, arrived: Option<Nanos>) -> Departure {
        Departure { sent: SENT, scheduled: None, left: SENT + left, arrived: arrived.map(|at| SENT + at) }
    }

    #[test]
    fn service_is_out_and_served() {
        let mut times = TransmitTimes::default();
        assert!(times.record(&departure(3_000, Some(40_000))));
        assert_eq!((times.out.moments().sum, times.served.moments().sum), (3_000, 37_000));
        assert!(times.record(&departure(5_000, None)), "without a receive stamp only the way out is known");
        assert_eq!((times.out.count(), times.served.count(), times.queued.count()), (2, 1, 0));
    }

    #[test]
    fn a_stamp_that_cannot_be_true_is_counted_and_one_within_the_slack_of_clocks_is_taken() {
        let mut times = TransmitTimes::default();
        assert!(!times.record(&Departure { left: SENT - 1_001, ..departure(0, Some(9_000)) }));
        assert!(!times.record(&departure(10_001, Some(9_000))));
        assert_eq!((times.counts.tx_rejected, times.out.count()), (2, 0));
        assert!(times.record(&Departure { left: SENT - 900, ..departure(0, Some(9_000)) }));
        assert!(times.record(&departure(9_900, Some(9_000))));
        let (out, served) = (times.out.moments(), times.served.moments());
        assert_eq!((out.min, out.max, served.min, served.max), (0, 9_000, 0, 9_000));
    }

    #[test]
    fn the_card_knows_the_time_between_its_own_stamps_alone() {
        let mut times = TransmitTimes::default();
        // The card's clock has nothing to do with that of this machine.
        times.record_wire(Some(7), 7 + 21_000);
        times.record_wire(None, 9);
        times.record_wire(Some(10), 9);
        assert_eq!((times.wire.count(), times.wire.moments().max, times.counts.wire_missing), (1, 21_000, 2));
        let sparse = SparseTransmitTimes::of(&TransmitTimes::default());
        assert!(
            !serde_json::to_string(&sparse).unwrap().contains("\"wire\""),
            "without a card nothing is sent"
        );
    }

    #[test]
    fn the_queueing_discipline_is_part_of_the_way_out() {
        let mut times = TransmitTimes::default();
        times.record(&Departure { scheduled: Some(SENT + 1_000), ..departure(8_000, Some(9_000)) });
        assert_eq!((times.queued.moments().max, times.out.moments().max), (7_000, 8_000));
    }

    #[test]
    fn times_merge_exactly_here_and_on_their_way_to_another_process() {
        let of = |lefts: std::ops::Range<u64>| {
            let mut times = TransmitTimes::default();
            lefts.for_each(|left| _ = times.record(&departure(left * 999, Some(500_000))));
            times.counts.tx_missing = 1;
            times.record_wire(Some(5), 5 + 7_000);
            times
        };
        let mut whole = of(0..300);
        whole.counts.tx_missing = 2;
        whole.record_wire(Some(5), 5 + 7_000);
        let (mut here, mut far, other) = (of(0..100), of(0..100), of(100..300));
        here.merge(&other);
        assert_eq!(here, whole);
        let text = serde_json::to_string(&SparseTransmitTimes::of(&other)).unwrap();
        let sparse: SparseTransmitTimes = serde_json::from_str(&text).unwrap();
        sparse.add_to(&mut far).unwrap();
        assert_eq!(far, whole);
        let mut joined = SparseTransmitTimes::of(&of(0..100));
        joined.merge(&sparse);
        assert_eq!(joined, SparseTransmitTimes::of(&whole));
        whole.clear();
        assert_eq!(whole, TransmitTimes::default());
    }
}
