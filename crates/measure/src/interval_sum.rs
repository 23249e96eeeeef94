//! The slices that workers hand over, added up to the intervals that a user asked for.

use crate::interval::Interval;
use crate::uncertainty::tick_ns;
use pummel_logic::time::Nanos;

/// Adds slices of a tick each up to intervals. All numbers and times are those of one phase.
#[derive(Debug)]
pub struct IntervalSum {
    /// Length of an interval, in nanoseconds.
    interval_ns: Nanos,
    /// Number of ticks in an interval.
    ticks: u64,
    /// The interval under way.
    sum: Box<Interval>,
    /// Whether the interval under way has a slice.
    is_begun: bool,
}

impl IntervalSum {
    /// The sum for intervals of `interval_ns`, which uses the memory of `empty`.
    pub fn new(interval_ns: Nanos, empty: Box<Interval>) -> IntervalSum {
        IntervalSum { interval_ns, ticks: interval_ns / tick_ns(interval_ns), sum: empty, is_begun: false }
    }

    /// Adds the next slice, and passes the interval on to `emit` when it is whole. Slices come in the order of their
    /// times and do not overlap. One that reaches beyond its interval makes that longer, and the next one shorter.
    pub fn add(&mut self, slice: &mut Interval, mut emit: impl FnMut(&mut Interval)) {
        let number = slice.index / self.ticks;
        if self.is_begun && self.sum.index != number {
            self.finish(&mut emit);
        }
        let is_whole = slice.end_ns >= (number + 1).saturating_mul(self.interval_ns);
        if is_whole && !self.is_begun {
            slice.index = number;
            return emit(slice);
        }
        if !self.is_begun {
            self.sum.restart(number, slice.start_ns);
            self.is_begun = true;
        }
        slice.index = number;
        self.sum.merge(slice);
        if is_whole {
            self.finish(emit);
        }
    }

    /// Passes the interval under way on to `emit`, if it has a slice: the phase is over.
    pub fn finish(&mut self, mut emit: impl FnMut(&mut Interval)) {
        if std::mem::take(&mut self.is_begun) {
            emit(&mut self.sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::protocol::Verb;
    use pummel_logic::time::MILLISECOND;

    /// The intervals, as number, beginning and end in milliseconds, of slices of 100 ms that begin and end at these
    /// milliseconds.
    fn intervals(interval_ms: u64, slices: &[(u64, u64)]) -> Vec<(u64, u64, u64)> {
        let mut intervals = Vec::new();
        let empty = || Box::new(Interval::new([[Verb::Get]]));
        let mut sum = IntervalSum::new(interval_ms * MILLISECOND, empty());
        let mut slice = empty();
        let mut emit = |whole: &mut Interval| {
            assert_eq!(
                whole.counters.turns.stalls,
                (whole.end_ns - whole.start_ns) / MILLISECOND,
                "nothing is lost"
            );
            intervals.push((whole.index, whole.start_ns / MILLISECOND, whole.end_ns / MILLISECOND));
        };
        for (start, end) in slices {
            slice.restart(start / 100.min(interval_ms), start * MILLISECOND);
            slice.end_ns = end * MILLISECOND;
            slice.counters.turns.stalls = end - start;
            sum.add(&mut slice, &mut emit);
        }
        sum.finish(emit);
        intervals
    }

    #[test]
    fn ten_slices_of_a_tenth_of_a_second_are_an_interval_of_a_second() {
        let slices: Vec<(u64, u64)> = (0..25).map(|tick| (tick * 100, tick * 100 + 100)).collect();
        assert_eq!(intervals(1_000, &slices), [(0, 0, 1_000), (1, 1_000, 2_000), (2, 2_000, 2_500)]);
    }

    #[test]
    fn a_slice_that_is_an_interval_is_passed_on_as_it_is() {
        assert_eq!(
            intervals(50, &[(0, 50), (50, 100), (100, 117)]),
            [(0, 0, 50), (1, 50, 100), (2, 100, 117)]
        );
    }

    #[test]
    fn a_slice_that_came_late_makes_its_interval_longer() {
        let slices = [(0, 100), (100, 1_300), (1_300, 1_400), (1_400, 2_000), (2_000, 2_100)];
        assert_eq!(intervals(1_000, &slices), [(0, 0, 1_300), (1, 1_300, 2_000), (2, 2_000, 2_100)]);
    }

    #[test]
    fn intervals_without_a_slice_are_left_out() {
        assert_eq!(intervals(1_000, &[(100, 200), (4_900, 5_200)]), [(0, 100, 200), (4, 4_900, 5_200)]);
    }

    #[test]
    fn a_phase_without_slices_has_no_interval() {
        assert!(intervals(1_000, &[]).is_empty());
    }
}
