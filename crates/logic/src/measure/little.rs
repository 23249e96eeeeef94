//! Little's law as a check of the instrument: the time that requests were in flight, by two independent accounts.
//!
//! Little's law (J. D. C. Little, Operations Research 9, 1961) says that the mean number of requests in flight is their
//! rate times the mean time that each was in flight. Both sides times the length of the run are the time that all
//! requests together were in flight. One account integrates the number of requests in flight: it counts requests at each
//! send and at each read, and never looks at a single request. The other account adds up what the recorder holds of each
//! request. An instrument that loses requests, counts them twice or mixes up their times disagrees with itself.

use serde::{Deserialize, Serialize};

use crate::measure::histogram::wide;
use crate::measure::measurement::Measurement;
use crate::measure::recorder::Span;
use crate::time::Nanos;

/// The running integral of the requests in flight of one worker: one addition for each send and each read, whatever the
/// number of requests. A request is in flight from the send of its first byte until its reply was read, or until it was
/// given up.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlightAccount {
    /// Requests in flight.
    in_flight: u64,
    /// For the time since `totals` was brought up to date: the times at which requests ended less those at which they
    /// were sent, in nanoseconds, modulo 2^64.
    moment_ns: u64,
    totals: FlightTime,
}

/// The time that requests were in flight, in a recorded phase of any number of workers and processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

impl FlightTime {
    /// Adds the time of another worker or process.
    pub fn merge(&mut self, other: &FlightTime) {
        self.requests = self.requests.saturating_add(other.requests);
        self.area_ns = self.area_ns.saturating_add(other.area_ns);
        self.untimed_ns = self.untimed_ns.saturating_add(other.untimed_ns);
        self.shared_ns = self.shared_ns.saturating_add(other.shared_ns);
    }
}

/// The two sides of Little's law, each as the time that all requests together were in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Little {
    /// The integral of the number of requests in flight over time, in nanoseconds: by counts at sends and reads.
    pub by_count_ns: u128,
    /// The sum of what each request took from its send to the read of its reply, in nanoseconds: by the recorder.
    pub by_request_ns: u128,
    /// Requests that both are about.
    pub requests: u64,
}

impl Little {
    /// By how much the two accounts disagree, in percent of the greater one; 0 where nothing was in flight.
    pub fn disagreement_percent(&self) -> f64 {
        let most = self.by_count_ns.max(self.by_request_ns);
        if most == 0 {
            return 0.0;
        }
        100.0 * self.by_count_ns.abs_diff(self.by_request_ns) as f64 / most as f64
    }
}

/// The two accounts of a measurement. `None` where there is none for all of its requests: nothing was recorded, the
/// result is older than the account, or a part of it is that of a process that was lost.
pub fn little(measurement: &Measurement) -> Option<Little> {
    let flight = measurement.flight;
    let all = measurement.ops().all();
    let timed = all.times.of(Span::Service).count();
    if flight.requests == 0 || flight.requests < timed {
        return None;
    }
    let timed_ns = [Span::Service, Span::Reaction].map(|span| all.times.of(span).moments().sum);
    let by_request_ns = timed_ns[0]
        .saturating_add(timed_ns[1])
        .saturating_add(flight.untimed_ns)
        .saturating_sub(flight.shared_ns);
    Some(Little { by_count_ns: flight.area_ns, by_request_ns, requests: flight.requests })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::interval::Interval;
    use crate::measure::measurement::Keep;
    use crate::measure::recorder::Sample;
    use crate::plan::Clock;
    use crate::protocol::{Outcome, Verb};

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

    /// A measurement of requests that were each in flight for 200 ns, and what the account of counts has.
    fn measured(requests: u64, flight: FlightTime) -> Measurement {
        let mut measurement = Measurement::new(["one".to_owned()], Clock::Kernel, 0);
        let mut interval = Interval::new([[Verb::Get]]);
        for at in 0..requests {
            interval.groups[0].record(&Sample {
                verb: Verb::Get,
                outcome: Outcome::Hit,
                keys: 1,
                hits: 1,
                due: at,
                ready: at,
                sent: at + 5,
                arrived: at + 195,
                read: at + 205,
                noreply: false,
            });
        }
        measurement.add(&mut interval, Keep::Figures);
        measurement.flight = flight;
        measurement
    }

    #[test]
    fn accounts_that_agree_disagree_by_nothing_and_others_by_their_difference() {
        let of = |requests, area_ns| FlightTime { requests, area_ns, ..FlightTime::default() };
        let good = little(&measured(100, of(100, 20_000))).expect("both accounts");
        assert_eq!((good.by_count_ns, good.by_request_ns, good.requests), (20_000, 20_000, 100));
        assert!(good.disagreement_percent() < 1e-9);
        let wrong = little(&measured(100, of(100, 25_000))).expect("both accounts");
        assert!((wrong.disagreement_percent() - 20.0).abs() < 1e-9);
    }

    #[test]
    fn without_an_account_of_all_requests_nothing_is_said() {
        let of = |requests| FlightTime { requests, area_ns: 1, ..FlightTime::default() };
        assert_eq!(little(&measured(100, of(0))), None, "an old result");
        assert_eq!(little(&measured(100, of(99))), None, "a lost process");
        assert_eq!(little(&measured(0, of(0))), None, "no request");
    }

    #[test]
    fn untimed_requests_and_shared_ones_are_evened_out() {
        let flight = FlightTime { requests: 103, area_ns: 20_350, untimed_ns: 500, shared_ns: 150 };
        let both = little(&measured(100, flight)).expect("both accounts");
        assert_eq!(both.by_count_ns, both.by_request_ns);
        let text = serde_json::to_string(&flight).unwrap();
        assert_eq!(serde_json::from_str::<FlightTime>(&text).unwrap(), flight);
        let mut twice = flight;
        twice.merge(&flight);
        assert_eq!((twice.requests, twice.area_ns, twice.untimed_ns), (206, 40_700, 1_000));
    }
}
