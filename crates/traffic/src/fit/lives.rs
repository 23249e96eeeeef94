//! Lifetimes of keys, for records that change their keys in the course of a trace. All times are shares of the length
//! of the trace.

use pummel_logic::dist::Dist;

/// The keys that one record has during the trace, in the mean over all records, as far as they have one lifetime.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct KeysOfLife {
    /// The longest time for which such a key is in the trace: its lifetime, or 1 if that is longer than the trace.
    pub(super) length: f64,
    /// Mean number of keys per record that are in the trace for all of `length`.
    pub(super) whole: f64,
    /// Mean number of keys per record whose life is cut short by the beginning or the end of the trace, or by the
    /// change to the record's next key. Their time in the trace is uniformly distributed from 0 to `length`.
    pub(super) cut: f64,
}

/// Pairs of a lifetime and the share of the records whose keys have it; empty if records keep their keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lives(Vec<(f64, f64)>);

impl Lives {
    /// The lifetimes of records that keep their keys.
    pub(super) fn endless() -> Lives {
        Lives::default()
    }

    /// Lifetimes with the shares of the records that have them. Entries with a lifetime or share of 0 are left out.
    pub(super) fn of(lives: &[(f64, f64)]) -> Lives {
        Lives(lives.iter().copied().filter(|(life, share)| *life > 0.0 && *share > 0.0).collect())
    }

    /// The lifetimes of a distribution in seconds, for a trace of `span_s` seconds; endless without a distribution.
    pub(super) fn of_seconds(lives: Option<&Dist>, span_s: f64) -> Lives {
        let Some(Dist::Weighted(weighted)) = lives.filter(|_| span_s > 0.0) else { return Lives::endless() };
        let total: f64 = weighted.ranges().iter().map(|range| range.weight).sum();
        let life = |range: &pummel_logic::dist::Range| (range.low as f64 / span_s, range.weight / total);
        Lives::of(&weighted.ranges().iter().map(life).collect::<Vec<_>>())
    }

    pub(super) fn are_endless(&self) -> bool {
        self.0.is_empty()
    }

    /// The shortest lifetime, at most 1.
    pub(super) fn shortest(&self) -> f64 {
        self.0.iter().map(|(life, _)| *life).fold(1.0, f64::min)
    }

    /// The mean numbers of keys of a record, for each lifetime. The first change of key is at a random time.
    pub(super) fn of_keys(&self) -> impl Iterator<Item = KeysOfLife> {
        self.0.iter().map(|&(life, share)| match life < 1.0 {
            // One key is cut at the beginning and one at the end, and whole ones are between them.
            true => KeysOfLife { length: life, whole: share * (1.0 / life - 1.0), cut: 2.0 * share },
            // The record has one key, or two with a change between them.
            false => KeysOfLife { length: 1.0, whole: share * (1.0 - 1.0 / life), cut: 2.0 * share / life },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_record_fill_the_time_of_the_trace() {
        for lives in [vec![(0.1, 1.0)], vec![(0.3, 0.7), (4.0, 0.3)], vec![(1.0, 1.0)]] {
            let lives = Lives::of(&lives);
            let time: f64 = lives.of_keys().map(|keys| keys.length * (keys.whole + keys.cut / 2.0)).sum();
            assert!((time - 1.0).abs() < 1e-12, "{lives:?}: {time}");
            assert!(!lives.are_endless() && lives.shortest() <= 1.0);
        }
        assert!(Lives::endless().are_endless() && Lives::of(&[(0.0, 1.0)]).are_endless());
    }

    #[test]
    fn lives_in_seconds_are_shares_of_the_trace() {
        let dist: Dist = "weighted:30-30@70,600-600@30".parse().expect("a distribution");
        assert_eq!(Lives::of_seconds(Some(&dist), 60.0), Lives::of(&[(0.5, 0.7), (10.0, 0.3)]));
        assert_eq!(Lives::of_seconds(None, 60.0), Lives::endless());
        assert_eq!(Lives::of_seconds(Some(&dist), 0.0), Lives::endless());
    }
}
