//! Lives of the keys of records, as shares of the time of a trace.

use pummel_logic::dist::Dist;

/// The keys of one record that have one life, as shares of the time of the trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct KeysOfLife {
    /// The longest time for which a key is seen: its life, or all of the trace.
    pub(super) length: f64,
    /// Keys that are seen for this time.
    pub(super) whole: f64,
    /// Rate of keys whose life is cut by the beginning or the end of the trace, or by their record's next key; each
    /// length up to `length` is equally likely.
    pub(super) cut: f64,
}

/// The lives of the keys of records, as shares of the time of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lives(Vec<(f64, f64)>);

impl Lives {
    /// Lives of keys that stay.
    pub(super) fn endless() -> Lives {
        Lives::default()
    }

    /// Lives and the shares of the records that have them; lives of 0 are no lives.
    pub(super) fn of(lives: &[(f64, f64)]) -> Lives {
        Lives(lives.iter().copied().filter(|(life, share)| *life > 0.0 && *share > 0.0).collect())
    }

    /// The lives in seconds, in a trace of `span_s` seconds.
    pub(super) fn of_seconds(lives: Option<&Dist>, span_s: f64) -> Lives {
        let Some(Dist::Weighted(weighted)) = lives.filter(|_| span_s > 0.0) else { return Lives::endless() };
        let total: f64 = weighted.ranges().iter().map(|range| range.weight).sum();
        let life = |range: &pummel_logic::dist::Range| (range.low as f64 / span_s, range.weight / total);
        Lives::of(&weighted.ranges().iter().map(life).collect::<Vec<_>>())
    }

    pub(super) fn are_endless(&self) -> bool {
        self.0.is_empty()
    }

    /// The shortest life, at most the whole trace.
    pub(super) fn shortest(&self) -> f64 {
        self.0.iter().map(|(life, _)| *life).fold(1.0, f64::min)
    }

    /// The keys that one record has in the mean, by their lives. The moment at which a record's life begins is any.
    pub(super) fn of_keys(&self) -> impl Iterator<Item = KeysOfLife> {
        self.0.iter().map(|&(life, share)| match life < 1.0 {
            // A cut key at the beginning, one at the end, and whole ones between them.
            true => KeysOfLife { length: life, whole: share * (1.0 / life - 1.0), cut: 2.0 * share },
            // One key, or two with a change between them.
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
