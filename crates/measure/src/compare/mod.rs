//! Statistics of figures of several runs: of two sides that may differ by more than chance, and of the runs of one.
//!
//! Runs of one configuration differ from each other by more than an interval within a run says, and the pace of a machine
//! drifts. Two sides are therefore compared by runs that alternate in drawn order: the logarithm of the ratio of each pair is
//! one number, [`SignedRank`] tests these numbers and estimates their middle. Runs that do not alternate are compared by
//! [`RankSum`], which a drift can fool. All tests are exact: no distribution of the figures is assumed.

mod change;
mod distributions;
mod median;
mod rank_sum;
mod repetition;
mod signed_rank;

pub use self::change::{
    Change, Design, RUNS_MAX, RUNS_TO_CLAIM, can_differ, change_of, pairs_in_time, second_side_first,
};
pub use self::distributions::{ALPHA, adjusted};
pub use self::median::{RUNS_FOR_INTERVAL, mean, median, median_interval, standard_deviation, variance};
pub use self::rank_sum::RankSum;
pub use self::repetition::{Groups, RunFigure, RunSpread};
pub use self::signed_rank::{SignedRank, seen_change, sign_p};
