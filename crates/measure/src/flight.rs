//! The time that requests were in flight, by counts: one addition for each send and each read.

use crate::histogram::wide;
use pummel_logic::merged;
use pummel_logic::time::Nanos;

/// The running integral of the requests in flight of one worker: one addition for each send and each read, whatever the
/// number of requests. A request is in flight from the send of its first byte until its reply was read, or until it was
/// given up.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlightAccount {
    /// Requests in flight.
    in_flight: u64,
    /// Part of the area since `totals` was brought up to date: the times at which requests ended less those at which
    /// they were sent, in nanoseconds, modulo 2^64.
    moment_ns: u64,
    totals: FlightTime,
}

merged! {
    /// The time that requests were in flight, in a recorded phase of any number of workers and processes.
    #[derive(Copy)]
    #[serde(deny_unknown_fields)]
    pub struct FlightTime {
        /// Requests that were sent and are over, however they ended. A request that several connections share counts for
        /// each of them.
        pub requests: u64,
        /// The integral of the number of requests in flight over time, in nanoseconds times requests.
        #[serde(with = "wide")]
        pub area_ns: u128,
        /// The time in flight, in nanoseconds, of requests whose times the recorder does not keep: those without a good
        /// reply, without a reply, and the parts of requests that several connections share.
        #[serde(with = "wide")]
        pub untimed_ns: u128,
        /// The time in flight, in nanoseconds, of requests that several connections share, from the send of the first part
        /// to the read of the last reply: the recorder keeps it, and the integral has the parts.
        #[serde(with = "wide")]
        pub shared_ns: u128,
    }
}

impl FlightAccount {
    /// Counts requests whose first bytes were sent at `at`.
    #[inline]
    pub fn handle_sent(&mut self, requests: u32, at: Nanos) {
        let requests = u64::from(requests);
        self.in_flight = self.in_flight.wrapping_add(requests);
        self.moment_ns = self.moment_ns.wrapping_sub(requests.wrapping_mul(at));
    }

    /// Counts requests that were in flight and ended at `at`, when their replies were read or when they were given up.
    #[inline]
    pub fn handle_ended(&mut self, requests: u32, at: Nanos) {
        let requests = u64::from(requests);
        self.in_flight = self.in_flight.wrapping_sub(requests);
        self.moment_ns = self.moment_ns.wrapping_add(requests.wrapping_mul(at));
        self.totals.requests = self.totals.requests.wrapping_add(requests);
    }

    /// Adds the time in flight, in nanoseconds, of a request whose times the recorder does not keep.
    pub fn add_untimed(&mut self, time_ns: Nanos) {
        self.totals.untimed_ns += u128::from(time_ns);
    }

    /// Adds the time in flight, in nanoseconds, of a request that several connections share.
    pub fn add_shared(&mut self, time_ns: Nanos) {
        self.totals.shared_ns += u128::from(time_ns);
    }

    /// Begins a phase at `now`: requests that are still in flight are in flight from then on.
    pub fn begin(&mut self, now: Nanos) {
        self.moment_ns = self.in_flight.wrapping_mul(now).wrapping_neg();
        self.totals = FlightTime::default();
    }

    /// Brings the totals up to date. The time since the last call times the requests in flight has to fit into 63 bits:
    /// a million requests for two hours do.
    pub fn close(&mut self, now: Nanos) {
        let end = self.in_flight.wrapping_mul(now);
        // What ended after `now`, in the turn that began at `now`, can make the difference negative; later ones even it out.
        let area_ns = self.moment_ns.wrapping_add(end) as i64;
        self.totals.area_ns = self.totals.area_ns.wrapping_add_signed(i128::from(area_ns));
        self.moment_ns = end.wrapping_neg();
    }

    /// The totals of the phase, brought up to date at its end `now`.
    pub fn finish(&mut self, now: Nanos) -> FlightTime {
        self.close(now);
        std::mem::take(&mut self.totals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_integral_is_the_time_that_requests_were_in_flight() {
        let mut account = FlightAccount::default();
        account.begin(1_000);
        account.handle_sent(2, 1_100);
        account.handle_sent(1, 1_300);
        account.handle_ended(2, 1_500);
        account.handle_ended(1, 2_000);
        let time = account.finish(9_000);
        assert_eq!((time.requests, time.area_ns), (3, 2 * 400 + 700));
    }

    #[test]
    fn closing_it_at_any_times_does_not_change_the_integral() {
        let mut account = FlightAccount::default();
        account.begin(0);
        for turn in 0..1_000u64 {
            account.handle_sent(3, turn * 100);
            account.close(turn * 100 + 7);
            account.handle_ended(2, turn * 100 + 40);
            // A turn's beginning lies before what it read.
            account.close(turn * 100 + 39);
            account.handle_ended(1, turn * 100 + 90);
        }
        assert_eq!(account.finish(100_000).area_ns, 1_000 * (2 * 40 + 90));
    }

    #[test]
    fn what_is_in_flight_at_the_beginning_of_a_phase_counts_from_then_on() {
        let mut account = FlightAccount::default();
        account.begin(0);
        account.handle_sent(5, 10);
        account.finish(100);
        account.begin(100);
        account.handle_ended(5, 130);
        assert_eq!(account.finish(500).area_ns, 5 * 30);
    }
}
