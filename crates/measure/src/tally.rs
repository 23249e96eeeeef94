//! Counts of requests by verb without their times: for requests that are not measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::counts::Counts;
use crate::ops::Ops;
use crate::sample::Sample;
use pummel_logic::merge::Merge;
use pummel_logic::protocol::Verb;

/// The counts of a recorder without its times: for requests that are not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally([Counts; Verb::COUNT]);

impl Tally {
    /// Counts a request by its end.
    #[inline]
    pub fn record(&mut self, sample: &Sample) {
        self.0[sample.verb as usize].count(sample);
    }

    /// The counts of the requests of one verb.
    pub fn counts(&mut self, verb: Verb) -> &mut Counts {
        &mut self.0[verb as usize]
    }

    /// Adds the counts of measured requests.
    pub fn add(&mut self, ops: &Ops) {
        for (verb, op) in ops.iter() {
            self.0[verb as usize].merge(&op.counts);
        }
    }

    /// The counts without those of `part`, which were added before.
    pub fn without(&self, part: &Tally) -> Tally {
        let mut rest = self.clone();
        rest.0.iter_mut().zip(&part.0).for_each(|(counts, less)| counts.subtract(less));
        rest
    }

    /// Sets all counts to 0.
    pub fn clear(&mut self) {
        *self = Tally::default();
    }

    /// The verbs with requests, in the order of reports.
    pub fn iter(&self) -> impl Iterator<Item = (Verb, &Counts)> {
        Verb::ALL.into_iter().zip(&self.0).filter(|(_, counts)| counts.requests() > 0)
    }

    /// All verbs together.
    pub fn all(&self) -> Counts {
        let mut all = Counts::default();
        self.0.iter().for_each(|counts| all.merge(counts));
        all
    }
}

impl Merge for Tally {
    fn merge(&mut self, other: &Tally) {
        self.0.merge(&other.0);
    }
}

impl Serialize for Tally {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<BTreeMap<_, _>>().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Tally {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Tally, D::Error> {
        let saved = BTreeMap::<Verb, Counts>::deserialize(deserializer)?;
        let mut tally = Tally::default();
        for (verb, counts) in saved {
            tally.0[verb as usize] = counts;
        }
        Ok(tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::protocol::Outcome;

    #[test]
    fn what_is_left_without_a_part_is_the_other_part() {
        let sample = |keys| Sample {
            verb: Verb::Get,
            outcome: Outcome::Stale,
            keys,
            hits: keys,
            due: 0,
            ready: 0,
            sent: 0,
            arrived: 0,
            read: 0,
            noreply: false,
        };
        let (mut part, mut whole) = (Tally::default(), Tally::default());
        part.record(&sample(3));
        part.counts(Verb::Set).unfinished += 2;
        whole.merge(&part);
        whole.record(&sample(4));
        whole.counts(Verb::Set).unsent_estimated += 5;
        part.counts(Verb::Set).unsent_estimated += 3;
        let rest = whole.without(&part).all();
        assert_eq!((rest.completed, rest.keys, rest.unfinished), (1, 4, 0));
        assert_eq!((rest.outcomes.stale, rest.unsent_estimated), (1, 2), "outcomes and estimates too");
    }
}
