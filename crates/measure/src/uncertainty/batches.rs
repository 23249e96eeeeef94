//! Intervals of quantiles, means, shares and rates from batches of windows.

use super::series::{Series, Spread};
use super::special::{Confidence, incomplete_beta, root, student_t};
use super::windows::{KEPT, Window, WindowOp, Windows};
use crate::histogram::{CoarseHistogram, Histogram, rank};
use crate::recorder::Span;
use pummel_logic::protocol::Verb;
use pummel_logic::time::{Nanos, SECOND};

/// The least number of batches that windows are put into, where there are as many windows.
const BATCHES: usize = 32;

/// Least number of batches that chance can be estimated from.
const BATCHES_MIN: usize = 10;

/// Number of slow spells beyond a quantile below which the effective number of requests is also taken at the lower end
/// of its interval.
const SPELLS_MANY: f64 = 100.0;

/// Most repetitions of the search for the lower end with the effective number of requests there.
const LOWER_MAX: usize = 4;

/// Requests of one kind, in batches of windows of equal length.
pub struct Batches {
    batches: Vec<Batch>,
    /// Number of requests with a time of each kept span or without an answer, those of windows that are in no batch too.
    requests: [u64; KEPT.len()],
    /// The requests of the windows that are in no batch, which are the oldest.
    left_out: Batch,
}

/// The requests of a run before and after a moment.
pub struct Split {
    /// The moment, in nanoseconds from the beginning of the measured phase.
    pub at_ns: Nanos,
    /// The requests before that moment.
    pub before: WindowOp,
    /// The measured time before that moment, in nanoseconds.
    pub before_ns: Nanos,
    /// The requests after that moment.
    pub after: WindowOp,
    /// The measured time after that moment, in nanoseconds.
    pub after_ns: Nanos,
}

/// The requests of one batch.
#[derive(Clone, Debug, Default)]
struct Batch {
    /// The measured time of the batch.
    length_ns: Nanos,
    op: WindowOp,
}

/// The interval of a quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The lower end, in nanoseconds; `None` where the quantile is not known from below.
    pub low: Option<Nanos>,
    /// The upper end.
    pub high: Upper,
    /// Effective number of independent requests for this quantile.
    pub effective: f64,
    /// Effective number of independent requests beyond the quantile, which shows whether the tail is known.
    pub spells: f64,
}

/// The upper end of an interval, the lesser ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Upper {
    /// End of the interval, in nanoseconds.
    Known(Nanos),
    /// The end falls among requests without an answer.
    Unanswered,
    /// The run was too short to know the tail from above.
    Open,
}

/// The interval of a mean, a share or a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Batches {
    /// The batches of the requests whose group and verb `is_asked` accepts, of a measured phase of `measured_ns`. With m windows a batch has m / 32 of them, at
    /// least one; the oldest windows that fill no batch are left out. `None` where there are fewer than ten batches.
    pub fn of(
        windows: &Windows,
        measured_ns: Nanos,
        is_asked: impl Fn(usize, Verb) -> bool,
    ) -> Option<Batches> {
        let all = windows.iter();
        let per_batch = (all.len() / BATCHES).max(1);
        let count = all.len() / per_batch;
        if count < BATCHES_MIN {
            return None;
        }
        let mut batches = vec![Batch::default(); count];
        let mut left_out = Batch::default();
        let begin = all.len() - count * per_batch;
        for (number, window) in all.enumerate() {
            let batch = match number.checked_sub(begin) {
                Some(number) => &mut batches[number / per_batch],
                None => &mut left_out,
            };
            batch.add(window, &is_asked);
            batch.length_ns += windows.measured_ns_of(number, measured_ns);
        }
        let requests: [u64; KEPT.len()] = std::array::from_fn(|kept| {
            batches.iter().chain([&left_out]).map(|batch| batch.requests(kept)).sum()
        });
        Some(Batches { batches, requests, left_out })
    }

    /// Number of batches.
    pub fn count(&self) -> usize {
        self.batches.len()
    }

    /// The requests before and after the end of the batch with this number, counted from 1.
    pub fn split(&self, after_batches: usize) -> Split {
        let (mut before, mut after) = (self.left_out.clone(), Batch::default());
        for (number, batch) in self.batches.iter().enumerate() {
            let part = if number < after_batches { &mut before } else { &mut after };
            part.op.merge(&batch.op);
            part.length_ns += batch.length_ns;
        }
        Split {
            at_ns: before.length_ns,
            before_ns: before.length_ns,
            before: before.op,
            after_ns: after.length_ns,
            after: after.op,
        }
    }

    /// The share of requests above a quantile of `fine`, as [`Batches::quantile`] takes it, over the batches.
    pub fn above(&self, span: Span, fine: &Histogram, unanswered: u64, quantile: f64) -> Option<Series> {
        let kept = kept(span)?;
        let total = fine.count() + unanswered;
        if self.requests[kept] != total || total == 0 {
            return None;
        }
        let cut = Cut::of(fine, rank(quantile, total));
        let above = |batch: &Batch| cut.above(batch.cells(kept)) + batch.op.unanswered as f64;
        Some(self.series(above, |batch| batch.requests(kept) as f64))
    }

    /// The completed requests per second, over the batches.
    pub fn rates(&self) -> Series {
        self.series(|batch| batch.op.completed as f64, |batch| batch.length_ns as f64 / SECOND as f64)
    }

    /// The share of keys that were found, over the batches.
    pub fn hit_shares(&self) -> Series {
        self.series(|batch| batch.op.hits as f64, |batch| batch.op.keys as f64)
    }

    /// The interval of a quantile of `fine`, which has the times of this span of all the requests, together with
    /// `unanswered` requests that took longer than all of them. `None` for times that windows do not keep, where the
    /// windows have other requests, and where the quantile is the greatest request of all.
    pub fn quantile(&self, span: Span, fine: &Histogram, unanswered: u64, quantile: f64) -> Option<Bounds> {
        self.quantile_at(Confidence::P95, span, (fine, unanswered), quantile)
    }

    /// The interval of a quantile, as [`Batches::quantile`] gives it, that contains it as often as asked.
    pub fn quantile_at(
        &self,
        confidence: Confidence,
        span: Span,
        (fine, unanswered): (&Histogram, u64),
        quantile: f64,
    ) -> Option<Bounds> {
        let total = fine.count() + unanswered;
        if (total as f64) * (1.0 - quantile) < 1.0 {
            return None;
        }
        let requests = TimedRequests { confidence, span, fine, unanswered };
        let worth = self.worth(&requests, quantile)?;
        let low = self.lower_share(&requests, quantile, worth.trials);
        let high = upper_share(worth.trials, quantile, confidence.tail);
        Some(Bounds {
            low: low.and_then(|share| fine.at_rank(((share * total as f64) as u64).max(1))),
            high: match high {
                None => Upper::Open,
                Some(share) => {
                    let rank = (libm::ceil(share * total as f64) as u64 + 1).min(total);
                    fine.at_rank(rank).map_or(Upper::Unanswered, Upper::Known)
                }
            },
            effective: worth.effective,
            spells: worth.trials * (1.0 - quantile),
        })
    }

    /// Effective number of requests at a quantile.
    fn worth(&self, requests: &TimedRequests<'_>, quantile: f64) -> Option<Worth> {
        let &TimedRequests { confidence, span, fine, unanswered } = requests;
        let total = fine.count() + unanswered;
        let spread = self.above(span, fine, unanswered, quantile)?.spread();
        let beyond = 1.0 - quantile;
        // Of a quantile among the unanswered requests, all of those are above the cut, which are more than lie beyond it.
        let is_among_answered = rank(quantile, total) <= fine.count();
        let above = if is_among_answered { beyond } else { unanswered as f64 / total as f64 };
        let effective = match spread.variance > 0.0 {
            true => ((1.0 - above) * above / spread.variance).min(total as f64),
            false => total as f64,
        };
        let narrowed = confidence.normal / student_t(spread.freedom, confidence);
        Some(Worth { effective, trials: effective * narrowed * narrowed })
    }

    /// The share of the requests below the lower end of a quantile's interval; `None` where that end is not known.
    ///
    /// The end is the least value that chance would let look like the quantile, so what counts is the effective number
    /// of requests there. A spell reaches further beyond a lower value: where a run saw many spells of few by chance,
    /// the number is smaller there than at the quantile. It is never taken to be larger.
    fn lower_share(&self, requests: &TimedRequests<'_>, quantile: f64, trials: f64) -> Option<f64> {
        let end = |trials: f64| lower_share(trials, quantile, requests.confidence.tail);
        let (mut trials, mut low) = (trials, end(trials)?);
        if trials * (1.0 - quantile) >= SPELLS_MANY {
            return Some(low);
        }
        for _ in 0..LOWER_MAX {
            match self.worth(requests, low) {
                Some(there) if there.trials < trials => trials = there.trials,
                _ => break,
            }
            low = end(trials)?;
        }
        Some(low)
    }

    /// The interval of the mean of a span, in nanoseconds, around `mean`.
    pub fn mean(&self, span: Span, mean: f64) -> Option<Range> {
        let kept = kept(span)?;
        self.around(
            mean,
            |batch| batch.op.times[kept].sum_ns as f64,
            |batch| batch.cells(kept).count() as f64,
        )
    }

    /// The interval of the share of keys that were found, around `share`. Where it did not vary at all it is the exact one
    /// of Clopper and Pearson.
    pub fn hit_share(&self, share: f64) -> Option<Range> {
        let sum =
            |of: fn(&Batch) -> u64| self.batches.iter().chain([&self.left_out]).map(of).sum::<u64>() as f64;
        let keys = sum(|batch| batch.op.keys);
        let spread = self.spread(|batch| batch.op.hits as f64, |batch| batch.op.keys as f64);
        if keys > 0.0 && spread.variance == 0.0 {
            return Some(exact_share(sum(|batch| batch.op.hits), keys));
        }
        let range = self.around(share, |batch| batch.op.hits as f64, |batch| batch.op.keys as f64)?;
        Some(Range { low: range.low.max(0.0), high: range.high.min(1.0) })
    }

    /// The interval of the completed requests per second, around `rate`.
    pub fn rate(&self, rate: f64) -> Option<Range> {
        self.around(rate, |batch| batch.op.completed as f64, |batch| batch.length_ns as f64 / SECOND as f64)
    }

    fn around(
        &self,
        figure: f64,
        part: impl Fn(&Batch) -> f64,
        of: impl Fn(&Batch) -> f64 + Copy,
    ) -> Option<Range> {
        // One batch that has all there is says nothing of how batches differ.
        if self.batches.iter().filter(|batch| of(batch) > 0.0).count() < 2 {
            return None;
        }
        let spread = self.spread(part, of);
        let half = student_t(spread.freedom, Confidence::P95) * libm::sqrt(spread.variance);
        Some(Range { low: (figure - half).max(0.0), high: figure + half })
    }

    /// The residuals of the sum of `part` over the sum of `of`.
    fn series(&self, part: impl Fn(&Batch) -> f64, of: impl Fn(&Batch) -> f64) -> Series {
        let parts: Vec<f64> = self.batches.iter().map(part).collect();
        Series::of(&parts, self.batches.iter().map(of).collect())
    }

    /// Spread of the sum of `part` over the sum of `of`.
    fn spread(&self, part: impl Fn(&Batch) -> f64, of: impl Fn(&Batch) -> f64) -> Spread {
        self.series(part, of).spread()
    }
}

impl Batch {
    fn add(&mut self, window: &Window, is_asked: &impl Fn(usize, Verb) -> bool) {
        for (group, ops) in window.groups.iter().enumerate() {
            let asked = ops.iter().filter(|(verb, _)| is_asked(group, **verb));
            asked.for_each(|(_, op)| self.op.merge(op));
        }
    }

    fn cells(&self, kept: usize) -> &CoarseHistogram {
        &self.op.times[kept].cells
    }

    /// Requests with a time of this span, and those without an answer.
    fn requests(&self, kept: usize) -> u64 {
        self.cells(kept).count() + self.op.unanswered
    }
}

/// The requests whose quantiles have intervals, and the confidence of these.
struct TimedRequests<'a> {
    confidence: Confidence,
    span: Span,
    fine: &'a Histogram,
    unanswered: u64,
}

/// Effective number of independent requests of a run for a quantile.
struct Worth {
    effective: f64,
    /// Effective number of requests, reduced by the uncertainty of their variance.
    trials: f64,
}

/// A value among coarse cells.
struct Cut {
    cell: usize,
    /// The share of the cell's requests that lie above the value.
    share: f64,
}

impl Cut {
    /// Cuts `fine` at a rank.
    fn of(fine: &Histogram, rank: u64) -> Cut {
        let (cell, share) = CoarseHistogram::cut_at(fine, rank).unwrap_or((usize::MAX, 0.0));
        Cut { cell, share }
    }

    fn above(&self, cells: &CoarseHistogram) -> f64 {
        if self.cell == usize::MAX {
            return 0.0;
        }
        cells.after_cell(self.cell) as f64 + self.share * cells.in_cell(self.cell) as f64
    }
}

fn kept(span: Span) -> Option<usize> {
    KEPT.iter().position(|kept| *kept == span)
}

/// The share of the requests below the lower end of a quantile's interval, for this many independent trials; `None`
/// where they are too few to know that end.
fn lower_share(trials: f64, quantile: f64, side: f64) -> Option<f64> {
    let beyond = 1.0 - quantile;
    let share = (libm::pow(beyond, trials) <= side).then(|| {
        let tail = |share: f64| incomplete_beta(trials * (1.0 - share), trials * share + 1.0, beyond) - side;
        root((quantile - reach(trials, quantile)).max(1e-9), quantile, tail)
    });
    share.filter(|share| share.is_finite())
}

/// The share of the requests below the upper end of a quantile's interval, for this many independent trials; `None`
/// where they are too few to know that end.
fn upper_share(trials: f64, quantile: f64, side: f64) -> Option<f64> {
    let share = (libm::pow(quantile, trials) <= side).then(|| {
        let tail =
            |share: f64| incomplete_beta(trials * share, trials * (1.0 - share) + 1.0, quantile) - side;
        root(quantile, (quantile + reach(trials, quantile)).min(1.0 - 1e-12), tail)
    });
    share.filter(|share| share.is_finite())
}

/// Greatest distance of an end of an interval from the quantile, as a share of the requests.
fn reach(trials: f64, quantile: f64) -> f64 {
    8.0 * libm::sqrt(quantile * (1.0 - quantile) / trials) + 2.0 / trials
}

/// The exact interval of a share of `hits` in `keys` independent trials.
fn exact_share(hits: f64, keys: f64) -> Range {
    let low = if hits <= 0.0 {
        0.0
    } else {
        root(0.0, 1.0, |share| incomplete_beta(hits, keys - hits + 1.0, share) - Confidence::P95.tail)
    };
    let high = if hits >= keys {
        1.0
    } else {
        root(0.0, 1.0, |share| 1.0 - incomplete_beta(hits + 1.0, keys - hits, share) - Confidence::P95.tail)
    };
    Range { low, high }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::uncertainty::simulated::{Run, queue};
    use crate::uncertainty::{BASE_NS, WindowTimes};
    use pummel_logic::rng::{Stream, unit};
    use pummel_logic::time::{MICROSECOND, MILLISECOND};

    fn contains(bounds: &Bounds, value: f64) -> bool {
        let below = bounds.low.is_none_or(|low| low as f64 <= value * 1.001);
        let above = match bounds.high {
            Upper::Known(high) => high as f64 >= value * 0.999,
            Upper::Unanswered | Upper::Open => true,
        };
        below && above
    }

    #[test]
    fn intervals_contain_the_true_quantile_and_mean_of_a_queue_in_19_of_20_runs() {
        const RUNS: u64 = 60;
        let service_ns = 40.0 * MICROSECOND as f64;
        for load in [0.5, 0.8] {
            let mean = service_ns / (1.0 - load);
            let mut missed = [0; 4];
            for seed in 0..RUNS {
                let run = Run::of(4 * SECOND, queue(seed, load, service_ns, 4 * SECOND));
                let batches = run.batches().expect("batches");
                let seen = run.ops.all().times.of(Span::Response).moments().mean_ns().expect("a mean");
                let range = batches.mean(Span::Response, seen).expect("a range");
                missed[3] += u64::from(!(range.low..=range.high).contains(&mean));
                for (missed, quantile) in missed.iter_mut().zip([0.5, 0.9, 0.99]) {
                    let truth = -libm::log(1.0 - quantile) * mean;
                    *missed += u64::from(!contains(&run.bounds(quantile).expect("an interval"), truth));
                }
            }
            // Three of sixty are expected; ten would come once in four thousand times.
            assert!(missed.iter().all(|missed| *missed < 10), "load {load}: {missed:?} of {RUNS} missed");
        }
    }

    #[test]
    fn requests_that_share_a_queue_are_worth_less_than_their_number() {
        let run = Run::of(4 * SECOND, queue(7, 0.8, 40_000.0, 4 * SECOND));
        let bounds = run.bounds(0.99).expect("an interval");
        let count = run.ops.all().counts.completed as f64;
        assert!(bounds.effective < count / 8.0, "{} of {count}", bounds.effective);
    }

    #[test]
    fn independent_requests_are_worth_about_their_number() {
        let draws = Stream::from_seed(3);
        let requests = (0..200_000u64).map(|i| {
            let time_ns = 50_000.0 - libm::log(1.0 - unit(draws.draw(i))) * 20_000.0;
            (i * 4 * SECOND / 200_000, Some(time_ns as Nanos))
        });
        let bounds = Run::of(4 * SECOND, requests).bounds(0.9).expect("an interval");
        assert!((60_000.0..=200_000.0).contains(&bounds.effective), "{bounds:?}");
        let (Some(low), Upper::Known(high)) = (bounds.low, bounds.high) else { panic!("{bounds:?}") };
        // The quantile of the shifted exponential is 96.05 us; 200,000 of them know it to 0.3 us.
        assert!((95_000..96_100).contains(&low) && (96_000..97_200).contains(&high), "{bounds:?}");
    }

    #[test]
    fn a_tail_of_few_slow_spells_is_open_above() {
        // One stall in four seconds, in which a tenth of a percent of the requests waited.
        let requests = (0..40_000u64).map(|i| {
            let stalled = (20_000..20_050).contains(&i);
            (i * 4 * SECOND / 40_000, Some(if stalled { 30_000_000 } else { 50_000 + i % 97 * 100 }))
        });
        let bounds = Run::of(4 * SECOND, requests).bounds(0.999).expect("an interval");
        assert_eq!(bounds.high, Upper::Open);
        assert!(bounds.spells < 3.7, "{bounds:?}");
    }

    #[test]
    fn a_lower_end_counts_what_the_run_is_worth_there() {
        // Seven stalls of 50 ms in ten seconds, where three are the rule: with three, 1 % of the requests wait for longer than 16.7 ms.
        // Seven or more instead of three come once in 30 runs, which an end that may fail in one of 40 has to bear.
        let stalls: Vec<Nanos> = (0..7).map(|i| (i * 1_387 + 307) * MILLISECOND).collect();
        let requests = (0..200_000u64).map(|i| {
            let at = i * 10 * SECOND / 200_000;
            let stalled = stalls.iter().find(|begin| (**begin..**begin + 50 * MILLISECOND).contains(&at));
            let time_ns = 50_000 + i % 97 * 100;
            match stalled {
                Some(begin) => (begin + 50 * MILLISECOND, Some(begin + 50 * MILLISECOND - at + time_ns)),
                None => (at, Some(time_ns)),
            }
        });
        let bounds = Run::of(10 * SECOND, requests).bounds(0.99).expect("an interval");
        let low = bounds.low.expect("a lower end");
        assert!((5_000 * MICROSECOND..16_700 * MICROSECOND).contains(&low), "{bounds:?}");
    }

    #[test]
    fn an_upper_end_among_unanswered_requests_is_called_so() {
        let requests = (0..40_000u64)
            .map(|i| (i * 4 * SECOND / 40_000, (i % 100 >= 2).then_some(50_000 + i * 7 % 1_000)));
        let run = Run::of(4 * SECOND, requests);
        let bounds = run.bounds(0.98).expect("an interval");
        assert_eq!(bounds.high, Upper::Unanswered, "{bounds:?}");
        assert!(run.bounds(0.5).expect("an interval").low.is_some());
    }

    #[test]
    fn quantiles_among_unanswered_requests_are_known_as_well_as_the_share_of_those() {
        // Two of a hundred requests have no answer, at random.
        let draws = Stream::from_seed(5);
        let requests = (0..40_000u64).map(|i| {
            (i * 4 * SECOND / 40_000, (unit(draws.draw(i)) >= 0.02).then_some(50_000 + i * 7 % 1_000))
        });
        let run = Run::of(4 * SECOND, requests);
        let [some, most] = [0.99, 0.9999].map(|quantile| run.bounds(quantile).expect("an interval"));
        assert_eq!(some.effective, most.effective);
        assert!(some.effective > 15_000.0, "{some:?}");
        assert_eq!(
            (some.low, some.high),
            (None, Upper::Unanswered),
            "{some:?}: it is among the unanswered for sure"
        );
    }

    #[test]
    fn a_short_run_and_a_quantile_that_is_the_greatest_have_no_interval() {
        let requests = |count: u64| (0..count).map(move |i| (i * SECOND / count, Some(1_000 + i)));
        assert_eq!(Run::of(9 * BASE_NS, requests(5_000)).bounds(0.5), None, "nine windows");
        let run = Run::of(SECOND, requests(500));
        assert!(run.bounds(0.99).is_some());
        assert_eq!(run.bounds(0.999), None, "half a request lies beyond");
    }

    #[test]
    fn windows_that_miss_requests_give_no_interval() {
        let run = Run::of(2 * SECOND, (0..5_000u64).map(|i| (i * 400_000, Some(1_000 + i % 50))));
        let batches = run.batches().expect("batches");
        let all = run.ops.all();
        let fine = all.times.of(Span::Response);
        assert!(batches.quantile(Span::Response, fine, 0, 0.5).is_some());
        assert_eq!(batches.quantile(Span::Response, fine, 1, 0.5), None, "one more request");
        assert_eq!(batches.quantile(Span::Lag, fine, 0, 0.5), None, "no windows of lag");
    }

    /// The bounds of two quantiles of twenty windows, three of which have nearly all requests: so many each, in one cell but for 1 or
    /// 5 % of them.
    fn bounds_of_many(requests: u64) -> [Bounds; 2] {
        let mut fine = Histogram::new();
        let window = |number: u64| {
            let all = if number < 3 { requests } else { requests / 1_000 };
            let slow = all / 1_000 * (10 + number % 2 * 40);
            let mut times = Histogram::new();
            times.record_many(50_000, all - slow);
            times.record_many(90_000, slow);
            fine.merge(&times);
            let mut cells = CoarseHistogram::default();
            cells.add(&times);
            let times = WindowTimes { sum_ns: 0, cells };
            let op = WindowOp { times: [times.clone(), times], ..WindowOp::default() };
            Window { groups: vec![BTreeMap::from([(Verb::Get, op)])] }
        };
        let windows = Windows::of_each((0..20).map(window).collect());
        let batches = Batches::of(&windows, 20 * BASE_NS, |_, _| true).expect("twenty batches");
        [0.5, 0.98].map(|quantile| batches.quantile(Span::Response, &fine, 0, quantile).expect("an interval"))
    }

    #[test]
    fn more_requests_in_a_cell_than_32_bits_count_leave_the_intervals_as_they_are() {
        let few = bounds_of_many(2_000_000);
        // Of all windows together, and of one window.
        for many in [2_000_000_000, 6_000_000_000] {
            for (few, many) in few.into_iter().zip(bounds_of_many(many)) {
                assert_eq!((few.low, few.high), (many.low, many.high));
                assert!((few.effective / many.effective - 1.0).abs() < 1e-3, "{few:?} {many:?}");
            }
        }
    }

    #[test]
    fn the_mean_the_rate_and_the_hit_share_have_intervals_around_themselves() {
        let length_ns = 4 * SECOND;
        let run = Run::of(length_ns, queue(11, 0.5, 40_000.0, length_ns));
        let batches = run.batches().expect("batches");
        let all = run.ops.all();
        let mean = all.times.of(Span::Response).moments().mean_ns().expect("a mean");
        let range = batches.mean(Span::Response, mean).expect("a range");
        assert!(range.low < mean && mean < range.high && range.high - range.low < 8_000.0, "{range:?}");
        let rate = all.counts.completed as f64 / 4.0;
        let range = batches.rate(rate).expect("a range");
        assert!(range.low < 12_500.0 && range.high > 12_500.0, "{range:?}");
        let range = batches.hit_share(1.0).expect("a range");
        assert_eq!(range.high, 1.0);
        assert!((0.999..1.0).contains(&range.low), "{range:?}: so many keys were all found");
    }

    #[test]
    fn only_the_requests_that_are_asked_for_count() {
        let run = Run::of(2 * SECOND, (0..5_000u64).map(|i| (i * 400_000, Some(1_000 + i % 50))));
        let batches = Batches::of(&run.windows, run.length_ns, |_, verb| verb == Verb::Set).expect("batches");
        assert!(batches.rate(0.0).is_some_and(|range| range.high == 0.0));
        assert_eq!(batches.mean(Span::Response, 0.0), None);
    }

    #[test]
    fn a_share_of_few_trials_has_its_exact_interval() {
        let close = |range: Range, low: f64, high: f64| {
            assert!((range.low - low).abs() < 1e-3 && (range.high - high).abs() < 1e-3, "{range:?}");
        };
        close(exact_share(0.0, 10.0), 0.0, 0.3085);
        close(exact_share(10.0, 10.0), 0.6915, 1.0);
        close(exact_share(3.0, 10.0), 0.0667, 0.6525);
    }
}
