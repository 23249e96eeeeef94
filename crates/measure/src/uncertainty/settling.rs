//! End of a warm-up: the load of its last two blocks is looked at until it stays at one level.
//!
//! Each block has 25 points. Over the 50 points of the last two blocks the share of requests above their median, the
//! rate in closed loop and the hit share are asked for a trend and for a beginning that differs from the end (Geweke).
//! The limit is the two-sided 20 % point, shared by the figures, so that a load that is at its level is taken for it at
//! the first look three times of four. MSER-5, the choice of the literature for finished series, takes a slow decay for
//! a level early on.

use std::collections::VecDeque;

use super::series::Series;
use super::windows::{WindowOp, tick_ns};
use crate::interval::Interval;
use pummel_logic::plan::{Arrivals, Plan, Settle};
use pummel_logic::time::{Nanos, SECOND};

/// Points of a block where its ticks suffice for so many.
const POINTS: u64 = 25;

/// The two-sided 20 % point of the normal distribution, shared by one, two and three figures.
const LIMITS: [f64; 3] = [1.2816, 1.6449, 1.8339];

/// The share of keys that reads find may not rise by more than this from the first block to the second.
const HIT_SHARE_RISE_MAX: f64 = 0.001;

/// The warm-up of a run, point by point.
#[derive(Debug)]
pub struct Settling {
    discard_ns: Nanos,
    /// Length of a point, in nanoseconds.
    point_ns: Nanos,
    /// Points of a block.
    points_per_block: u64,
    /// Whether the rate is set by the server and not by the plan.
    has_own_rate: bool,
    /// The points of the last two blocks, the last one first under way.
    points: VecDeque<WindowOp>,
    /// Number of the first of the points.
    first: u64,
    /// Blocks that have been looked at.
    blocks: u64,
}

impl Settling {
    /// The warm-up of a plan, before its first slice; `None` where only time ends it.
    pub fn of(plan: &Plan) -> Option<Settling> {
        let Settle { discard_ns, block_ns } = plan.adaptive.settle?;
        let tick_ns = tick_ns(plan.interval_ns);
        let ticks = (block_ns / tick_ns).max(1);
        let ticks_per_point = (ticks / POINTS).max(1);
        let is_closed = plan.groups.iter().all(|group| group.arrivals == Arrivals::Closed);
        Some(Settling {
            discard_ns,
            point_ns: ticks_per_point * tick_ns,
            points_per_block: (ticks / ticks_per_point).max(1),
            has_own_rate: is_closed,
            points: VecDeque::new(),
            first: 0,
            blocks: 0,
        })
    }

    /// Adds the next slice of the warm-up, whose times count from its beginning. Returns whether the load has settled, where the
    /// slice ended a block.
    pub fn add(&mut self, slice: &mut Interval) -> Option<bool> {
        let verdict = self.look(slice.start_ns);
        let Some(since_ns) = slice.start_ns.checked_sub(self.discard_ns) else { return verdict };
        let number = since_ns / self.point_ns;
        self.reach(number);
        if let Some(point) = number.checked_sub(self.first).and_then(|at| self.points.get_mut(at as usize)) {
            let ops = slice.groups.iter_mut().flat_map(|recorder| {
                let ops: Vec<WindowOp> = recorder.ops().iter().map(|(_, op)| WindowOp::of(op)).collect();
                ops
            });
            ops.for_each(|op| point.merge(&op));
        }
        self.look(slice.end_ns).or(verdict)
    }

    /// Makes room for the point with this number, within the last two blocks.
    fn reach(&mut self, number: u64) {
        let most = 2 * self.points_per_block;
        if number >= self.first + 2 * most {
            self.points.clear();
            self.first = number + 1 - most;
        }
        while self.first + self.points.len() as u64 <= number {
            self.points.push_back(WindowOp::default());
            if self.points.len() as u64 > most {
                self.points.pop_front();
                self.first += 1;
            }
        }
    }

    /// Looks at the last two blocks where a block is over at `now_ns`; `None` where none is, or there is only one.
    fn look(&mut self, now_ns: Nanos) -> Option<bool> {
        let over = now_ns.saturating_sub(self.discard_ns) / (self.point_ns * self.points_per_block);
        if over <= self.blocks {
            return None;
        }
        self.blocks = over;
        if over < 2 {
            return None;
        }
        self.reach(over * self.points_per_block - 1);
        let points: Vec<&WindowOp> = self.points.iter().collect();
        Some(is_level(&points, self.has_own_rate.then_some(self.point_ns)))
    }
}

/// Whether points of equal length are at one level. The rate is asked about where their length is given, in nanoseconds.
fn is_level(points: &[&WindowOp], point_ns: Option<Nanos>) -> bool {
    let mut series = vec![above_median(points), hit_shares(points)];
    series.extend(point_ns.map(|point_ns| {
        let completed: Vec<f64> = points.iter().map(|op| op.completed as f64).collect();
        Series::of(&completed, vec![point_ns as f64 / SECOND as f64; points.len()])
    }));
    series.retain(|series| !series.is_constant());
    let limit = LIMITS[series.len().clamp(1, LIMITS.len()) - 1];
    let is_quiet =
        |series: &Series| libm::fabs(series.trend()) <= limit && libm::fabs(series.beginning()) <= limit;
    let requests: u64 = points.iter().map(|op| op.completed + op.unanswered).sum();
    requests > 0 && series.iter().all(is_quiet) && hit_share_rise(points) <= HIT_SHARE_RISE_MAX
}

/// The share of requests above the median of all points.
fn above_median(points: &[&WindowOp]) -> Series {
    let mut all = WindowOp::default();
    points.iter().for_each(|op| all.merge(op));
    let cells = &all.times[0].cells;
    let total = cells.count() + all.unanswered;
    let (cell, share) = cells.cut(0.5 * total as f64);
    let above = |op: &&WindowOp| {
        let cells = &op.times[0].cells;
        cells.after_cell(cell) as f64 + share * cells.in_cell(cell) as f64 + op.unanswered as f64
    };
    let parts: Vec<f64> = points.iter().map(above).collect();
    Series::of(&parts, points.iter().map(|op| (op.times[0].cells.count() + op.unanswered) as f64).collect())
}

fn hit_shares(points: &[&WindowOp]) -> Series {
    let hits: Vec<f64> = points.iter().map(|op| op.hits as f64).collect();
    Series::of(&hits, points.iter().map(|op| op.keys as f64).collect())
}

/// Rise of the share of keys that were found from the first half of the points to the second.
fn hit_share_rise(points: &[&WindowOp]) -> f64 {
    let share = |points: &[&WindowOp]| {
        let (hits, keys) = points.iter().fold((0, 0), |(hits, keys), op| (hits + op.hits, keys + op.keys));
        (keys > 0).then(|| hits as f64 / keys as f64)
    };
    let (first, second) = points.split_at(points.len() / 2);
    match (share(first), share(second)) {
        (Some(first), Some(second)) => second - first,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uncertainty::BASE_NS;
    use crate::uncertainty::simulated::{Run, changing_queue, slices};
    use pummel_logic::plan::{Adaptive, Group};
    use pummel_logic::time::{MICROSECOND, seconds};

    const SERVICE_NS: f64 = 80.0 * MICROSECOND as f64;
    const BLOCK_NS: Nanos = 4 * SECOND;
    const LENGTH_NS: Nanos = 40 * SECOND;

    /// A plan in open loop whose warm-up settles by blocks of 4 s.
    fn plan() -> Plan {
        let settle = Settle { discard_ns: 2 * SECOND, block_ns: BLOCK_NS };
        let group = Group { arrivals: Arrivals::Poisson, rate: Some(1e4), ..Group::default() };
        let adaptive = Adaptive { settle: Some(settle), ..Adaptive::default() };
        Plan { adaptive, groups: vec![group], ..Plan::default() }
    }

    /// Time at which the load of these requests has settled, in nanoseconds; `None` where it has not before the end.
    fn settled_at(requests: &[(Nanos, Option<Nanos>)]) -> Option<Nanos> {
        let mut settling = Settling::of(&plan()).expect("the plan settles");
        let mut at = None;
        slices(LENGTH_NS, requests.iter().copied(), |slice| {
            if at.is_none() && settling.add(slice) == Some(true) {
                at = Some(slice.end_ns);
            }
        });
        at
    }

    fn load(seed: u64, level: impl Fn(f64) -> f64) -> Vec<(Nanos, Option<Nanos>)> {
        changing_queue(seed, 0.4, SERVICE_NS, LENGTH_NS, level)
    }

    #[test]
    fn a_load_at_its_level_settles_at_the_first_look_most_times_and_not_before_two_blocks() {
        let settled: Vec<Option<Nanos>> = (0..30).map(|seed| settled_at(&load(seed, |_| 1.0))).collect();
        let first = 2 * SECOND + 2 * BLOCK_NS;
        assert!(settled.iter().flatten().all(|at| *at >= first && (at - first).is_multiple_of(BLOCK_NS)));
        // Three of four are expected; 14 of 30 would come once in a thousand times.
        let at_once = settled.iter().filter(|at| **at == Some(first)).count();
        assert!(at_once >= 15, "{at_once} of 30 at the first look");
        assert!(settled.iter().flatten().count() >= 28, "{settled:?}");
    }

    #[test]
    fn what_is_measured_after_a_decay_has_settled_contains_the_level_in_9_of_10_runs() {
        const RUNS: u64 = 40;
        // The median of the response of the queue at its level.
        let truth = core::f64::consts::LN_2 * SERVICE_NS / 0.6;
        let contains = |seed: &u64| {
            let requests = load(100 + seed, |at_s| 1.0 + libm::exp(-at_s / 2.0));
            let Some(settled) = settled_at(&requests) else { return false };
            let begin = settled + SECOND / 2;
            let measured = requests
                .iter()
                .filter(|(ends, _)| (begin..begin + BLOCK_NS).contains(ends))
                .map(|(ends, time)| (ends - begin, *time));
            let bounds = Run::of(BLOCK_NS, measured).bounds(0.5).expect("an interval");
            let known = |end: Option<Nanos>| end.map_or(0.0, |ns| ns as f64);
            let high = match bounds.high {
                crate::uncertainty::Upper::Known(high) => Some(high),
                _ => None,
            };
            (known(bounds.low)..=known(high)).contains(&truth)
        };
        let contained = (0..RUNS).filter(contains).count();
        assert!(contained >= 34, "{contained} of {RUNS}");
    }

    #[test]
    fn a_load_that_goes_on_falling_does_not_settle() {
        let settled = (0..10).filter_map(|seed| settled_at(&load(seed, |at_s| 1.5 - at_s / 80.0)));
        let early = settled.filter(|at| seconds(*at) < 14.0).count();
        assert!(early <= 2, "{early} of 10 at the first looks");
    }

    #[test]
    fn a_hit_share_that_rises_is_not_settled() {
        let point = |hits: u64| WindowOp { completed: 1_000, keys: 1_000, hits, ..WindowOp::default() };
        let rising: Vec<WindowOp> = (0..50).map(|at| point(900 + at / 5)).collect();
        assert!(!is_level(&rising.iter().collect::<Vec<_>>(), None));
        let steady: Vec<WindowOp> = (0..50).map(|at| point(900 + at % 2)).collect();
        assert!(is_level(&steady.iter().collect::<Vec<_>>(), None));
        assert!(!is_level(&vec![&WindowOp::default(); 50], None), "nothing is no level");
    }

    #[test]
    fn slices_that_come_late_and_gaps_are_taken_for_what_they_are() {
        let mut settling = Settling::of(&plan()).expect("the plan settles");
        let mut slice = Interval::new([[pummel_logic::protocol::Verb::Get]]);
        let mut add = |start_ns: Nanos, end_ns: Nanos| {
            slice.restart(0, start_ns);
            slice.end_ns = end_ns;
            settling.add(&mut slice)
        };
        assert_eq!(add(0, BASE_NS), None);
        assert_eq!(add(2 * SECOND, 6 * SECOND), None, "one block");
        assert_eq!(add(9 * SECOND, 30 * SECOND), Some(false), "nothing was asked in it");
        assert_eq!(add(3_600 * SECOND, 3_601 * SECOND), Some(false), "an hour without a slice");
        assert!(settling.points.len() as u64 <= 2 * settling.points_per_block);
    }
}
