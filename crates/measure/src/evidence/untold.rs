//! The misses of a command whose replies do not tell them, by the counts of its servers.

use serde::{Deserialize, Serialize};

use super::server::ServerReading;
use crate::tally::Tally;
use pummel_logic::plan::Plan;
use pummel_logic::protocol::Verb;
use pummel_logic::protocol::resp::key_lookups::Told;

/// Largest relative difference between the lookups that servers counted and those that were expected with which the counts are those
/// of this run.
const EQUAL_SHARE: f64 = 0.01;

/// The lookups of keys by a run in which the replies of one command alone do not tell what they found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UntoldLookups {
    /// Verb of the command.
    pub verb: Verb,
    /// Keys that it looked up.
    pub lookups: u64,
    /// Keys that all other requests looked up, as servers count them.
    pub others: u64,
    /// Keys among those of the others that were not there.
    pub others_missed: u64,
}

/// The misses of a command whose replies do not tell them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UntoldMisses {
    /// Verb of the command.
    pub verb: Verb,
    /// Keys that it looked up.
    pub lookups: u64,
    /// Keys that were not there, by the servers' counts.
    pub missed: u64,
}

impl UntoldLookups {
    /// The lookups of the requests of a tally; `None` unless one command alone looks up keys and does not tell which are there, and all
    /// others that look up keys tell of each.
    pub fn of(plan: &Plan, tally: &Tally) -> Option<UntoldLookups> {
        if !plan.protocol.is_resp() || plan.commands.is_empty() {
            return None;
        }
        let templates = plan.templates().ok()??;
        let mut untold: Option<UntoldLookups> = None;
        let (mut others, mut others_missed) = (0u64, 0u64);
        for (verb, counts) in tally.iter() {
            let Some(place) = verb.command() else {
                match verb {
                    // A field that is missing is none of the keys.
                    Verb::Hget => return None,
                    verb if verb.reads() => {
                        others += counts.keys;
                        others_missed += counts.misses;
                    }
                    _ => {}
                }
                continue;
            };
            let lookups = templates.get(place)?.key_lookups()?;
            match lookups.told {
                _ if lookups.per_request == 0 => {}
                Told::Keys => {
                    others += counts.completed * u64::from(lookups.per_request);
                    others_missed += counts.misses;
                }
                Told::Nothing if untold.is_none() => {
                    let lookups = counts.completed * u64::from(lookups.per_request);
                    untold = Some(UntoldLookups { verb, lookups, others: 0, others_missed: 0 });
                }
                Told::Nothing | Told::Other => return None,
            }
        }
        untold.map(|untold| UntoldLookups { others, others_missed, ..untold })
    }

    /// The lookups of two processes of one run; `None` where they are not of one command.
    pub fn with(self, other: UntoldLookups) -> Option<UntoldLookups> {
        (self.verb == other.verb).then(|| UntoldLookups {
            verb: self.verb,
            lookups: self.lookups.saturating_add(other.lookups),
            others: self.others.saturating_add(other.others),
            others_missed: self.others_missed.saturating_add(other.others_missed),
        })
    }

    /// The misses of the command by the counts of these servers; `None` where they did not count what this run looked up and no more.
    pub fn missed<'a>(&self, readings: impl Iterator<Item = &'a ServerReading>) -> Option<UntoldMisses> {
        let (mut hits, mut misses) = (0u64, 0u64);
        for reading in readings {
            let counts = reading.is_whole().then_some(&reading.counts)?;
            hits = hits.saturating_add(counts.hits?);
            misses = misses.saturating_add(counts.misses?);
        }
        let counted = hits.saturating_add(misses) as f64;
        let expected = self.lookups.saturating_add(self.others) as f64;
        let is_ours = (counted - expected).abs() <= EQUAL_SHARE * self.lookups as f64;
        let missed = misses.saturating_sub(self.others_missed).min(self.lookups);
        is_ours.then_some(UntoldMisses { verb: self.verb, lookups: self.lookups, missed })
    }
}

impl UntoldMisses {
    /// Share of the keys that were not there, which is known to one in a hundred; `None` where it may be 0.
    pub fn share(&self) -> Option<f64> {
        let share = self.missed as f64 / self.lookups.max(1) as f64;
        (share > EQUAL_SHARE).then_some(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;
    use crate::evidence::ServerCounts;
    use pummel_logic::plan::{Command, Protocol};

    fn plan(commands: &[&str]) -> Plan {
        let commands = commands.iter().map(|text| Command::unnamed(text)).collect();
        Plan { protocol: Protocol::Resp2, commands, ..Plan::default() }
    }

    fn tally(counts: &[(Verb, u64, u64)]) -> Tally {
        let mut tally = Tally::default();
        for (verb, completed, misses) in counts {
            let counts = Counts {
                completed: *completed,
                keys: *completed,
                hits: completed - misses,
                misses: *misses,
                ..Counts::default()
            };
            tally.counts(*verb).merge(&counts);
        }
        tally
    }

    fn reading(hits: u64, misses: u64) -> ServerReading {
        let counts = ServerCounts {
            hits: Some(hits),
            misses: Some(misses),
            requests: Some(1),
            ..ServerCounts::default()
        };
        ServerReading { counts, span_ns: 1, ..ServerReading::default() }
    }

    #[test]
    fn the_misses_of_the_one_command_that_cannot_tell_are_what_the_others_do_not_explain() {
        let lengths = plan(&["STRLEN __key__", "LPUSH {x}l x"]);
        let counts = tally(&[(Verb::Get, 1_000, 100), (Verb::Command, 500, 0), (Verb::Command2, 900, 0)]);
        let untold = UntoldLookups::of(&lengths, &counts).expect("STRLEN cannot tell");
        let expected = UntoldLookups { verb: Verb::Command, lookups: 500, others: 1_000, others_missed: 100 };
        assert_eq!(untold, expected);
        let missed = |hits, misses| untold.missed([reading(hits, misses)].iter());
        let found = missed(940, 560).expect("the counts are those of the run");
        assert_eq!((found.missed, found.share()), (460, Some(0.92)));
        let two = [reading(440, 260), reading(500, 300)];
        assert_eq!(untold.missed(two.iter()), Some(found));
        assert_eq!(missed(1_400, 100).map(|found| (found.missed, found.share())), Some((0, None)));
        assert_eq!(missed(946, 560), None, "another client looked up keys too");
        assert_eq!(missed(934, 560), None, "the server counts less than is known of these commands");
        let anew = ServerReading { restarted: true, ..reading(940, 560) };
        assert_eq!(untold.missed([anew].iter()), None);
        let twice = untold.with(untold).expect("they are of one command");
        assert_eq!((twice.lookups, twice.others, twice.others_missed), (1_000, 2_000, 200));
        assert_eq!(untold.with(UntoldLookups { verb: Verb::Command2, ..untold }), None);
    }

    #[test]
    fn two_commands_that_cannot_tell_and_those_that_tell_of_elements_leave_it_open() {
        let counts = tally(&[(Verb::Command, 500, 0), (Verb::Command2, 900, 0)]);
        for (other, is_known) in [
            ("GETBIT __key__ 1", false),
            ("HGET __key__ a", false),
            ("EVAL x 1 __key__", false),
            ("NEW.COMMAND __key__", false),
            ("HLEN __key__", true),
            ("SET __key__ x", true),
            ("SCAN 0", true),
        ] {
            let plan = plan(&["STRLEN __key__", other]);
            assert_eq!(UntoldLookups::of(&plan, &counts).is_some(), is_known, "{other}");
        }
        let told = plan(&["HLEN __key__", "LLEN __key__"]);
        assert_eq!(UntoldLookups::of(&told, &counts), None);
        assert_eq!(UntoldLookups::of(&plan(&[]), &tally(&[(Verb::Get, 9, 0)])), None);
    }
}
