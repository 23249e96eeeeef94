//! Stops of the servers: times in which they answered nothing although requests were due, as events of a run.

use pummel_logic::plan::Plan;
use pummel_logic::protocol::Fault;
use pummel_logic::time::{MILLISECOND, Nanos};

use crate::limit::{Case, Standstill, standstills};
use crate::measurement::{Measurement, Slice};

/// The shortest standstill that is told as a stop; shorter ones are a matter of the slow requests.
pub const STOP_MIN_NS: Nanos = 300 * MILLISECOND;

/// The stops of the servers of a run, in order: standstills that were long enough, and of which only the servers can be the cause.
/// Where they answered with errors, connections were lost, or the generator itself stood still, that is the cause.
pub fn stops_of(measurement: &Measurement, plan: &Plan) -> Vec<Standstill> {
    let all = measurement.ops().all();
    let found = standstills(&Case::of(measurement, plan, &all)).into_iter();
    let is_long = |stop: &Standstill| stop.to_ns - stop.from_ns >= STOP_MIN_NS;
    found.filter(|stop| is_long(stop) && is_of_servers(stop, &measurement.intervals)).collect()
}

/// Whether only the servers can be the cause of a standstill.
fn is_of_servers(stop: &Standstill, slices: &[Slice]) -> bool {
    let within = slices.iter().filter(|slice| slice.start_ns < stop.to_ns && slice.end_ns > stop.from_ns);
    let (mut stalled_ns, mut lost, mut answered) = (0, 0, 0);
    for slice in within {
        let counts = slice.counts();
        stalled_ns += slice.counters.turns.stalled_ns;
        lost += [Fault::Refused, Fault::Reset, Fault::Closed]
            .map(|fault| counts.errors(fault))
            .iter()
            .sum::<u64>();
        // A slice at the edge of the stop has errors of the time outside of it.
        if slice.start_ns >= stop.from_ns && slice.end_ns <= stop.to_ns {
            let faults = Fault::ALL.into_iter().filter(|fault| !fault.unanswered());
            answered += faults.map(|fault| counts.errors(fault)).sum::<u64>();
            // A request that waits to be sent again was answered, and is no error yet.
            answered += slice.counters.redirects.replies() + slice.counters.retry.replies();
        }
    }
    lost == 0 && answered == 0 && 2 * stalled_ns < stop.to_ns - stop.from_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Interval;
    use crate::measurement::Keep;
    use crate::sample::Sample;
    use crate::uncertainty::BASE_NS;
    use pummel_logic::plan::Clock;
    use pummel_logic::protocol::{Outcome, Verb};

    /// A request that was due at this time and ended so.
    fn ended(due: Nanos, outcome: Outcome) -> Sample {
        let arrived = due + MILLISECOND / 10;
        Sample {
            verb: Verb::Get,
            outcome,
            keys: 1,
            hits: 1,
            due,
            ready: due,
            sent: due,
            arrived,
            read: arrived,
            noreply: false,
        }
    }

    /// Whether a standstill of a second in a slice of two is the servers' where the slice has this.
    fn is_theirs(fill: impl Fn(&mut Interval)) -> bool {
        is_theirs_between(2 * BASE_NS, 12 * BASE_NS, fill)
    }

    /// Whether a standstill between two times in a slice of two seconds is the servers' where the slice has this.
    fn is_theirs_between(from_ns: Nanos, to_ns: Nanos, fill: impl Fn(&mut Interval)) -> bool {
        let mut interval = Interval::new([[Verb::Get]]);
        interval.restart(0, 0);
        interval.end_ns = 20 * BASE_NS;
        fill(&mut interval);
        let mut measurement = Measurement::new(["clients".to_owned()], Clock::Kernel, BASE_NS);
        measurement.add(&mut interval, Keep::Figures);
        is_of_servers(&Standstill { from_ns, to_ns, lasted: false }, &measurement.intervals)
    }

    #[test]
    fn what_the_generator_or_a_lost_connection_explains_is_no_silence_of_the_server() {
        assert!(is_theirs(|_| ()));
        assert!(!is_theirs(|interval| interval.counters.turns.stalled_ns = 6 * BASE_NS));
        let fails = |fault| {
            move |interval: &mut Interval| interval.groups[0].record(&ended(0, Outcome::Error(fault)))
        };
        assert!(!is_theirs(fails(Fault::Reset)), "the server was gone");
        assert!(is_theirs(fails(Fault::Timeout)), "a silence ends in timeouts");
        let waits = |interval: &mut Interval| interval.counters.redirects.clusterdown = 1;
        assert!(is_theirs(waits), "the answer may have come in the other second");
        assert!(!is_theirs_between(0, 20 * BASE_NS, waits), "the nodes answered, and no request was done");
        let again = |interval: &mut Interval| interval.counters.retry.retries.loading = 1;
        assert!(!is_theirs_between(0, 20 * BASE_NS, again), "the server answered that it was loading");
        let late = |interval: &mut Interval| interval.counters.retry.retries.timeout = 1;
        assert!(
            is_theirs_between(0, 20 * BASE_NS, late),
            "what is sent again after a silence was not answered"
        );
    }
}
