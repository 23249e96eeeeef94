//! Times of sampled requests that left this machine: the part of their service time before that, and the part after it.

use crate::histogram::Histogram;
use pummel_logic::time::Nanos;
use pummel_logic::{counters, merged};

/// A transmit stamp may lie this far outside of [sent, arrived], the slack of comparing two clocks.
const STAMP_SLACK_NS: Nanos = 1_000;

merged! {
    /// The times of sampled requests around the moment at which their last byte left: service = out + served.
    #[serde(deny_unknown_fields)]
    pub struct TransmitTimes<H = Histogram> {
        /// left - sent: this machine's kernel, from the system call to the driver.
        pub out: H,
        /// arrived - left: the way there, the server, and the way back. Requests whose reply has no receive stamp are left
        /// out.
        pub served: H,
        /// left - scheduled: the queueing discipline, where its stamps were asked for; part of `out`.
        pub queued: H,
        /// Time from the card's stamp of the request to its stamp of the reply, by the card's clock alone, where its stamps
        /// were asked for.
        pub wire: H,
        /// Counts of sampled requests without these times.
        pub counts: TransmitCounts,
    }
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

    /// Records the card's stamps of a request and of its reply; the first may be missing. A reply stamped before its
    /// request is not recorded.
    pub fn record_wire(&mut self, left: Option<Nanos>, received: Nanos) {
        match left.and_then(|left| received.checked_sub(left)) {
            Some(wire) => self.wire.record(wire),
            None => self.counts.wire_missing += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::SparseHistogram;
    use pummel_logic::merge::{Clear as _, Merge as _};

    type Sparse = TransmitTimes<SparseHistogram>;

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
        let text = serde_json::to_string(&Sparse::copy_of(&other)).unwrap();
        let sparse: Sparse = serde_json::from_str(&text).unwrap();
        far.merge(&sparse);
        assert_eq!(far, whole);
        let mut joined = Sparse::copy_of(&of(0..100));
        joined.merge(&sparse);
        assert_eq!(joined, Sparse::copy_of(&whole));
        whole.clear();
        assert_eq!(whole, TransmitTimes::default());
    }
}
