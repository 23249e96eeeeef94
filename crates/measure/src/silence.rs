//! Spells in which servers answered nothing although requests were due: a stop is an event, and neither a slow figure nor a change of level.

use pummel_logic::protocol::Fault;
use pummel_logic::time::Nanos;

use crate::measurement::{Measurement, Slice};
use crate::uncertainty::Windows;

/// Fewest windows without a reply that make a spell.
const WINDOWS_MIN: usize = 3;

/// Fewest replies that the rest of the run had in the same time, so that a slow load is not taken for a silent server.
const REPLIES_MIN: f64 = 20.0;

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
    pub fn all_of(measurement: &Measurement) -> Vec<Silence> {
        let Some(windows) = &measurement.windows else { return Vec::new() };
        let spells = spells_of(windows, measurement.measured_ns);
        spells.into_iter().filter(|spell| is_of_servers(*spell, &measurement.intervals)).collect()
    }
}

/// The longest runs of windows without a reply, where the other windows had many.
fn spells_of(windows: &Windows, measured_ns: Nanos) -> Vec<Silence> {
    let completed: Vec<u64> =
        windows.iter().map(|window| window.ops().map(|op| op.completed).sum()).collect();
    let busy = completed.iter().filter(|count| **count > 0).count();
    let mean = completed.iter().sum::<u64>() as f64 / busy.max(1) as f64;
    let mut spells = Vec::new();
    let mut from = None;
    for (place, count) in completed.iter().copied().chain([1]).enumerate() {
        match (count, from) {
            (0, None) => from = Some(place),
            (1.., Some(begin)) => {
                from = None;
                let many = place - begin;
                // What stands before the first reply is the time that a load takes to begin.
                if begin > 0 && many >= WINDOWS_MIN && mean * many as f64 >= REPLIES_MIN {
                    let at = |window: usize| window as Nanos * windows.length_ns();
                    let (from_ns, to_ns) = (at(begin), at(place).min(measured_ns));
                    spells.extend((to_ns > from_ns).then_some(Silence { from_ns, to_ns }));
                }
            }
            _ => {}
        }
    }
    spells
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
    use pummel_logic::time::MILLISECOND;

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

    /// Windows in which so many requests ended each.
    fn windows(completed: &[u64]) -> Windows {
        let mut windows = Windows::new(BASE_NS);
        for (number, count) in (0..).zip(completed) {
            let mut slice = Interval::new([[Verb::Get]]);
            slice.restart(number, number * BASE_NS);
            slice.end_ns = (number + 1) * BASE_NS;
            for request in 0..*count {
                slice.groups[0].record(&ended(number * BASE_NS + request * MILLISECOND, Outcome::Hit));
            }
            windows.add(&mut slice);
        }
        windows
    }

    fn spells(completed: &[u64]) -> Vec<(Nanos, Nanos)> {
        let found = spells_of(&windows(completed), completed.len() as Nanos * BASE_NS);
        found.iter().map(|spell| (spell.from_ns / BASE_NS, spell.to_ns / BASE_NS)).collect()
    }

    #[test]
    fn windows_without_a_reply_are_a_spell_where_the_others_have_many() {
        assert_eq!(spells(&[40, 40, 0, 0, 0, 40, 40]), [(2, 5)]);
        assert_eq!(spells(&[40, 0, 0, 40, 40, 40, 40]), [(0, 0); 0], "two windows may be chance");
        assert_eq!(spells(&[1, 0, 0, 0, 2, 0, 1]), [(0, 0); 0], "a slow load has such windows");
        assert_eq!(spells(&[0, 0, 0, 40, 40]), [(0, 0); 0], "the load had not begun");
        assert_eq!(spells(&[40, 40, 0, 0, 0, 0]), [(2, 6)], "to the end");
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
