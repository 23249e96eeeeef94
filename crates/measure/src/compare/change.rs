//! The change of one figure from side A to side B, and whether the runs of the two sides alternated.

use super::rank_sum::{self, RankSum};
use super::signed_rank::{self, SignedRank, seen_factor};
use pummel_logic::rng;
use serde::{Deserialize, Serialize};

/// Most runs of a side that are compared: the exact tests take a moment for as many.
pub const RUNS_MAX: usize = 50;

/// Runs of a side that it takes to claim a change.
pub const RUNS_TO_CLAIM: usize = 6;

/// Pairs in each of the two orders, as a part of all pairs, below which the order of runs is not mixed.
const ORDERS_SHARE: usize = 4;

/// Relation between the runs of two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Design {
    /// Run i of one side and run i of the other are a pair, and which of them came first was mixed.
    Paired,
    /// The runs have no partners: a change of the machine's pace over time looks like a change from side to side.
    Apart,
}

/// The change of a figure from side A to side B, as the logarithm of the ratio B / A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The estimate: that of Hodges and Lehmann, or the ratio itself of one run a side.
    pub estimate: f64,
    /// The 95 % interval; `None` for fewer than six runs a side.
    pub interval: Option<(f64, f64)>,
    /// The two-sided p; `None` for one run a side.
    pub p: Option<f64>,
    /// The least change that as many pairs show in 4 of 5 cases, where no other figure is judged; `None` where runs are not paired or
    /// fewer than six.
    pub seen: Option<f64>,
    /// Runs of the side that has fewer.
    pub runs: usize,
}

impl Change {
    /// The change with its ends exchanged in sign: from side B to side A.
    #[must_use]
    pub fn reversed(self) -> Change {
        Change { estimate: -self.estimate, interval: self.interval.map(|(low, high)| (-high, -low)), ..self }
    }

    /// The least change that as many pairs show in 4 of 5 cases, where the p of `tests` figures are corrected by Holm and this one
    /// has the least; `None` where they can show none.
    pub fn seen_among(&self, tests: usize) -> Option<f64> {
        Some(self.seen? * (seen_factor(self.runs, tests)? / seen_factor(self.runs, 1)?))
    }
}

/// The change of a figure from its values of side A and side B. `None` where a side has no value, a value is not above
/// 0, a side has more than [`RUNS_MAX`] values, or pairs lack a partner.
pub fn change_of(design: Design, first: &[f64], second: &[f64]) -> Option<Change> {
    let runs = first.len().min(second.len());
    let is_bounded = first.len().max(second.len()) <= RUNS_MAX;
    let is_positive = first.iter().chain(second).all(|value| value.is_finite() && *value > 0.0);
    if runs == 0 || !is_positive || !is_bounded {
        return None;
    }
    let logs = |values: &[f64]| values.iter().map(|value| libm::log(*value)).collect::<Vec<f64>>();
    let (first, second) = (logs(first), logs(second));
    let several = |p: f64| (runs > 1).then_some(p);
    match design {
        Design::Paired if first.len() != second.len() => None,
        Design::Paired => {
            let differences: Vec<f64> = first.iter().zip(&second).map(|(one, other)| other - one).collect();
            let SignedRank { p, estimate, interval, seen } = SignedRank::of(&differences)?;
            Some(Change { estimate, interval, p: several(p), seen, runs })
        }
        Design::Apart => {
            let RankSum { p, estimate, interval } = RankSum::of(&first, &second)?;
            Some(Change { estimate, interval, p: several(p), seen: None, runs })
        }
    }
}

/// Whether so many runs of each side can show a difference in one of `tests` figures whose p are corrected by Holm: whether the least p
/// that there is is small enough for all of them.
pub fn can_differ(design: Design, [first, second]: [usize; 2], tests: usize) -> bool {
    match design {
        Design::Paired => signed_rank::can_differ(first.min(second), tests),
        Design::Apart => rank_sum::can_differ(first, second, tests),
    }
}

/// Whether side B runs first in pair `pair` of an experiment with this seed. Of two pairs that follow each other one has each
/// order, and the seed decides which, so that a steady drift of the machine's pace cancels out.
pub fn second_side_first(seed: u64, pair: u64) -> bool {
    let is_flipped = rng::mix(&[seed, pair / 2]) & 1 == 1;
    is_flipped != (pair % 2 == 1)
}

/// The pairs of runs that began at these times, in seconds, as places in `first` and `second`: neighbours in time. `None`
/// where the sides have unequal numbers of runs, the neighbours are not one of each side, two runs began at one time, or a
/// quarter of the pairs does not have each of the two orders. Such runs do not alternate, and a drift could look like a change.
pub fn pairs_in_time(first: &[f64], second: &[f64]) -> Option<Vec<(usize, usize)>> {
    if first.is_empty() || first.len() != second.len() {
        return None;
    }
    let places = |times: &[f64], is_second: bool| {
        times.iter().enumerate().map(|(place, time)| (*time, is_second, place)).collect::<Vec<_>>()
    };
    let mut runs = places(first, false);
    runs.extend(places(second, true));
    runs.sort_by(|one, other| one.0.total_cmp(&other.0));
    if runs.windows(2).any(|two| two[0].0 >= two[1].0) {
        return None;
    }
    let mut pairs = Vec::with_capacity(first.len());
    let mut reversed = 0;
    for pair in runs.chunks(2) {
        match (pair[0], pair[1]) {
            ((_, false, one), (_, true, other)) => pairs.push((one, other)),
            ((_, true, other), (_, false, one)) => {
                pairs.push((one, other));
                reversed += 1;
            }
            _ => return None,
        }
    }
    let rarer = reversed.min(pairs.len() - reversed);
    (rarer * ORDERS_SHARE >= pairs.len()).then_some(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_the_logarithm_of_the_ratio_and_turns_round() {
        let first = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0];
        let second: Vec<f64> = first.iter().map(|value| value * 1.1).collect();
        let change = change_of(Design::Paired, &first, &second).expect("six pairs");
        assert!((libm::exp(change.estimate) - 1.1).abs() < 1e-9, "{change:?}");
        assert_eq!((change.runs, change.p), (6, Some(0.03125)));
        let back = change_of(Design::Paired, &second, &first).expect("six pairs");
        assert!((back.estimate - change.reversed().estimate).abs() < 1e-12);
        assert_eq!(change.reversed().reversed(), change);
    }

    #[test]
    fn what_would_have_been_seen_is_more_where_more_figures_are_judged() {
        let first = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 101.0];
        let second = [101.0, 99.0, 100.0, 100.5, 100.0, 99.0, 103.0];
        let change = change_of(Design::Paired, &first, &second).expect("seven pairs");
        let seen = |tests: usize| change.seen_among(tests);
        assert_eq!(seen(1), change.seen);
        assert!(seen(1).is_some() && seen(1) < seen(2), "{change:?}");
        assert_eq!(seen(4), None, "seven pairs show nothing of four figures");
        let apart = change_of(Design::Apart, &first, &second).expect("seven runs a side");
        assert_eq!(apart.seen_among(1), None);
    }

    #[test]
    fn one_run_a_side_has_a_ratio_and_nothing_more() {
        for design in [Design::Paired, Design::Apart] {
            let change = change_of(design, &[2.0], &[3.0]).expect("one run a side");
            assert!((libm::exp(change.estimate) - 1.5).abs() < 1e-12);
            assert_eq!((change.interval, change.p, change.seen), (None, None, None));
        }
    }

    #[test]
    fn what_has_no_ratio_has_no_change() {
        assert_eq!(change_of(Design::Apart, &[], &[1.0]), None);
        assert_eq!(change_of(Design::Apart, &[0.0], &[1.0]), None);
        assert_eq!(change_of(Design::Apart, &[f64::NAN], &[1.0]), None);
        assert_eq!(change_of(Design::Paired, &[1.0, 2.0], &[1.0]), None);
        assert_eq!(change_of(Design::Apart, &[1.0; RUNS_MAX + 1], &[1.0]), None);
        assert!(change_of(Design::Apart, &[1.0; RUNS_MAX], &[1.0; RUNS_MAX]).is_some());
    }

    #[test]
    fn runs_that_alternate_in_mixed_order_are_pairs() {
        let first = [1.0, 4.0, 5.0, 8.0];
        let second = [3.0, 2.0, 7.0, 6.0];
        assert_eq!(pairs_in_time(&first, &second), Some(vec![(0, 1), (1, 0), (2, 3), (3, 2)]));
        // A always first: a drift of the pace has one sign in all pairs.
        assert_eq!(pairs_in_time(&[1.0, 3.0, 5.0, 7.0], &[2.0, 4.0, 6.0, 8.0]), None);
        assert_eq!(pairs_in_time(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), None);
        assert_eq!(pairs_in_time(&[1.0, 2.0], &[3.0]), None);
        assert_eq!(pairs_in_time(&[1.0, 4.0], &[1.0, 3.0]), None);
        assert_eq!(pairs_in_time(&[], &[]), None);
    }

    #[test]
    fn the_order_of_pairs_is_drawn_and_balanced() {
        let orders = |seed: u64| (0..10).map(|pair| second_side_first(seed, pair)).collect::<Vec<bool>>();
        for seed in 0..100 {
            assert!(orders(seed).chunks(2).all(|two| two[0] != two[1]), "{seed}");
        }
        let first = (0..1_000).filter(|seed| second_side_first(*seed, 0)).count();
        assert!((400..=600).contains(&first), "{first}");
        assert_ne!(orders(1), orders(2));
    }
}
