//! Spells in which servers answered nothing although requests were due: a stop is an event, and neither a slow figure nor a change of level.

use pummel_logic::plan::Plan;
use pummel_logic::protocol::Fault;
use pummel_logic::time::{MILLISECOND, Nanos};

use crate::limit::{Case, standstills};
use crate::measurement::{Measurement, Slice};

/// The shortest spell that is told as a stop; shorter ones are a matter of the slow requests.
const SPELL_MIN_NS: Nanos = 300 * MILLISECOND;

/// A spell without a reply, within the measured phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Beginning, to the length of a window.
    pub from_ns: Nanos,
    /// End, to the length of a window; the end of the measured phase where no reply came after it.
    pub to_ns: Nanos,
}

impl Silence {
    /// The spells of a run, in order. Spells in which servers answered with errors, connections were lost, or the generator itself
    /// stood still are none: these have causes of their own.
    pub fn all_of(measurement: &Measurement, plan: &Plan) -> Vec<Silence> {
        let all = measurement.ops().all();
        let spells = standstills(&Case::of(measurement, plan, &all)).into_iter();
        let spells = spells.map(|spell| Silence { from_ns: spell.from_ns, to_ns: spell.to_ns });
        let is_long = |spell: &Silence| spell.to_ns - spell.from_ns >= SPELL_MIN_NS;
        spells.filter(|spell| is_long(spell) && is_of_servers(*spell, &measurement.intervals)).collect()
    }
}

/// Whether only the servers can be the cause of a spell.
fn is_of_servers(spell: Silence, slices: &[Slice]) -> bool {
    let within = slices.iter().filter(|slice| slice.start_ns < spell.to_ns && slice.end_ns > spell.from_ns);
    let (mut stalled_ns, mut lost, mut answered) = (0, 0, 0);
    for slice in within {
        let counts = slice.counts();
        stalled_ns += slice.counters.turns.stalled_ns;
        lost += [Fault::Refused, Fault::Reset, Fault::Closed]
            .map(|fault| counts.errors(fault))
            .iter()
            .sum::<u64>();
        // A slice at the edge of the spell has errors of the time outside of it.
        if slice.start_ns >= spell.from_ns && slice.end_ns <= spell.to_ns {
            let faults = Fault::ALL.into_iter().filter(|fault| !fault.unanswered());
            answered += faults.map(|fault| counts.errors(fault)).sum::<u64>();
        }
    }
    lost == 0 && answered == 0 && 2 * stalled_ns < spell.to_ns - spell.from_ns
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

    /// Whether a spell of a second in a slice of two is the servers' where the slice has this.
    fn is_theirs(fill: impl Fn(&mut Interval)) -> bool {
        let mut interval = Interval::new([[Verb::Get]]);
        interval.restart(0, 0);
        interval.end_ns = 20 * BASE_NS;
        fill(&mut interval);
        let mut measurement = Measurement::new(["clients".to_owned()], Clock::Kernel, BASE_NS);
        measurement.add(&mut interval, Keep::Figures);
        is_of_servers(Silence { from_ns: 2 * BASE_NS, to_ns: 12 * BASE_NS }, &measurement.intervals)
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
    }
}
