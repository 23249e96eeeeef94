//! The baseline of a run: what was measured of round trips that were made one at a time before the measured phase.

use std::collections::BTreeMap;

use crate::histogram::Histogram;
use pummel_logic::merge::first;
use pummel_logic::merged;
use pummel_logic::plan::baseline::{NoOwnReads, ROUND_TRIPS_DROPPED};
use pummel_logic::time::Nanos;

merged! {
    /// Round trips that were made one at a time before the measured phase, each on the thread and by the stamps of the run. They
    /// belong to no other count of the run.
    #[serde(deny_unknown_fields)]
    pub struct Baseline {
        /// Requests that ask for nothing: the server's version, or PING.
        pub empty: RoundTrips,
        /// Reads of the run.
        #[serde(default)]
        pub own: RoundTrips,
        /// Why no reads of the run were made; `None` where they were to be.
        #[serde(default)]
        pub no_own: Option<NoOwnReads> => first,
        /// Number of connections on which the round trips were not made as they were to be, by the reason.
        #[serde(default)]
        pub faults: BTreeMap<BaselineFault, u64>,
    }
}

merged! {
    /// Round trips of one kind.
    #[serde(deny_unknown_fields)]
    pub struct RoundTrips {
        /// Times from sending a request to the arrival of its reply, without the first ones of each connection.
        pub times: Histogram,
        /// Requests that were sent, the first ones of each connection among them.
        pub requests: u64,
    }
}

impl RoundTrips {
    /// Records round trip number `index` of a connection, which took `took_ns`.
    pub fn record(&mut self, index: u64, took_ns: Nanos) {
        if index >= ROUND_TRIPS_DROPPED {
            self.times.record(took_ns);
        }
    }

    /// Quantiles of the times in nanoseconds, p50 and p99; `None` where no round trip was counted.
    pub fn quantiles(&self) -> Option<(Nanos, Nanos)> {
        Some((self.times.quantile(0.5)?, self.times.quantile(0.99)?))
    }
}

pummel_logic::words! {
    /// The reason why round trips on a connection were not made as they were to be.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum BaselineFault {
        /// No connection to the server was open before the measured phase.
        NotOpen = "not-open",
        /// The server closed the connection.
        Closed = "closed",
        /// The server said that it takes no more connections.
        Refused = "refused",
        /// The server did not answer in time.
        Silent = "silent",
        /// The server answered something that the protocol does not allow.
        Malformed = "malformed",
        /// Too few requests were answered in the time for them: none was left behind the first ones.
        Slow = "slow",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_round_trips_of_a_connection_are_not_counted() {
        let mut trips = RoundTrips::default();
        (0..ROUND_TRIPS_DROPPED).for_each(|index| trips.record(index, 1_000_000));
        assert_eq!(trips.quantiles(), None);
        (ROUND_TRIPS_DROPPED..20).for_each(|index| trips.record(index, 10));
        assert_eq!(trips.quantiles(), Some((10, 10)));
    }

    #[test]
    fn baselines_of_two_workers_are_added() {
        let baseline = |fault, requests, no_own| {
            let mut baseline = Baseline { no_own, ..Baseline::default() };
            baseline.empty.requests = requests;
            (0..requests).for_each(|index| baseline.empty.record(index, 100));
            baseline.faults.insert(fault, 1);
            baseline
        };
        let mut both = baseline(BaselineFault::Silent, 20, None);
        both.merge(&baseline(BaselineFault::Silent, 10, Some(NoOwnReads::NoReads)));
        both.merge(&baseline(BaselineFault::Closed, 0, Some(NoOwnReads::Tracked)));
        assert_eq!((both.empty.requests, both.empty.times.count()), (30, 20));
        assert_eq!(both.no_own, Some(NoOwnReads::NoReads));
        assert_eq!(both.faults, BTreeMap::from([(BaselineFault::Silent, 2), (BaselineFault::Closed, 1)]));
    }
}
