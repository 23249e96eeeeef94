//! Little's law as a check of the instrument: the time that requests were in flight, by two independent accounts.
//!
//! Little's law (J. D. C. Little, Operations Research 9, 1961) says that the mean number of requests in flight is their
//! rate times the mean time that each was in flight. Both sides times the length of the run are the time that all
//! requests together were in flight. One account integrates the number of requests in flight: it counts requests at each
//! send and at each read, and never looks at a single request. The other account adds up what the recorder holds of each
//! request. An instrument that loses requests, counts them twice or mixes up their times disagrees with itself.

use crate::measurement::Measurement;
use crate::recorder::{OpRecord, Span};

pub use crate::flight::{FlightAccount, FlightTime};

/// The two sides of Little's law, each as the time that all requests together were in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Little {
    /// The integral of the number of requests in flight over time, in nanoseconds: by counts at sends and reads.
    pub by_count_ns: u128,
    /// The sum of the time of each request from its send to the read of its reply, in nanoseconds: by the recorder.
    pub by_request_ns: u128,
    /// Requests that both are about.
    pub requests: u64,
}

impl Little {
    /// Difference of the two accounts, in percent of the greater one; 0 where nothing was in flight.
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
    let timed = measurement.op_records().map(|op| op.times.of(Span::Service).count()).sum::<u64>();
    if flight.requests == 0 || flight.requests < timed {
        return None;
    }
    let of_spans =
        |op: &OpRecord| [Span::Service, Span::Reaction].map(|span| op.times.of(span).moments().sum);
    let by_request_ns = measurement
        .op_records()
        .flat_map(of_spans)
        .fold(0u128, u128::saturating_add)
        .saturating_add(flight.untimed_ns)
        .saturating_sub(flight.shared_ns);
    Some(Little { by_count_ns: flight.area_ns, by_request_ns, requests: flight.requests })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Interval;
    use crate::measurement::Keep;
    use crate::recorder::Sample;
    use pummel_logic::plan::Clock;
    use pummel_logic::protocol::Verb;

    /// A measurement of requests that were each in flight for 200 ns, and what the account of counts has.
    fn measured(requests: u64, flight: FlightTime) -> Measurement {
        let mut measurement = Measurement::new(["one".to_owned()], Clock::Kernel, 0);
        let mut interval = Interval::new([[Verb::Get]]);
        for at in 0..requests {
            interval.groups[0].record(&Sample { sent: at + 5, read: at + 205, ..Sample::hit(at, 195) });
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
