//! The search for the greatest rate that meets goals, with 95 % confidence: which run is made next, and what all show together.
//!
//! A run in closed loop shows the capacity C. Halvings of (0, C) find about where the goals are crossed. Ten runs around the
//! crossing, in random order so that a slow hour makes no trend, give a straight line of ln(quantile / limit) over
//! z = -ln(1 - rate / C), which is exact for one exponential queue and close for others. The rates at which the 95 % band of the
//! line contains 0 are the answer, and a run at the lower end has to confirm it by its own upper bound. One run that begins beyond
//! the upper end and goes on at the answer shows whether the server recovers from overload.
//!
//! A server may fall behind a rate before its times reach the limit. The least rate that it did not carry is then the upper end, and
//! the greatest rate below it that a run confirms is the answer.
//!
//! If the generator was the limit of the run in closed loop, C is the generator's rate, and the server's is not known:
//! the line is then drawn over the rate itself, no rate above C is tried, and the answer says so.

mod findings;
mod line;
pub mod placing;
mod recovery;

pub use self::line::{Crossing, Line};
pub use self::recovery::Recovery;

use crate::limit::Cause;
use pummel_logic::rng::{Stream, mix};
use serde::{Deserialize, Serialize};

/// Share of the capacity that rates stay below: z is infinite at the capacity.
const SHARE_MAX: f64 = 0.98;

/// Halvings that are made at least.
const HALVINGS: u32 = 4;

/// Halvings that are made at most, where the goals are crossed at a small share of the capacity.
const HALVINGS_MAX: u32 = 9;

/// The halvings end when their interval is narrower than this share of its upper end.
const NARROW: f64 = 0.15;

/// Greatest distance of the runs around the crossing from it, as a share of it.
const AROUND: f64 = 0.15;

/// Share of the least rate that was not carried that rates stay below.
const CARRIED: f64 = 0.995;

/// Runs around the crossing.
const AROUND_RUNS: usize = 10;

/// Runs that are added at once, where the crossing is not known well enough.
const MORE_RUNS: usize = 4;

/// Most runs around the crossing.
const AROUND_RUNS_MAX: usize = 46;

/// Least number of runs that count for a line.
const LINE_RUNS_MIN: usize = 6;

/// Most runs at the rate that was found.
const CONFIRMATIONS_MAX: u32 = 3;

/// The next rate, as a share of the last, where every rate met the goals and the tail was not known from above.
const LOWER: f64 = 0.9;

/// A run differs from the line by more standard deviations than this once in twenty times, to one side.
const CHANCE: f64 = 1.645;

/// Runs in a row that do not count after which the search ends.
const UNSOUND_MAX: u32 = 3;

/// Rate of the overload, as a factor of the upper end of the answer, or of the capacity where no upper end is known.
const OVERLOAD: f64 = 1.2;

pummel_logic::words! {
    /// Purpose of a run.
    pub enum Role {
        /// Finds the capacity in closed loop.
        Peak = "peak",
        /// Finds about where the goals are crossed.
        Halve = "search",
        /// Finds precisely where the goals are crossed.
        Around = "around",
        /// Checks whether the rate that was found meets the goals in a run of its own.
        Confirm = "confirm",
        /// The overload: how the server behaves beyond its limit, and whether it recovers. The run continues at
        /// [`RateSearch::answer`] without a pause.
        Overload = "overload",
    }
}

/// A run that is to be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedRun {
    /// Purpose of the run.
    pub role: Role,
    /// Requests per second; `None` for closed loop.
    pub rate: Option<f64>,
}

/// Findings of a run that the search needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFindings {
    /// Completed requests per second.
    pub rate: f64,
    /// ln(quantile / limit) of the goal that is nearest to its limit, or the furthest beyond it; `None` where the
    /// quantile is not known.
    pub margin: Option<f64>,
    /// `margin` of the upper ends of the quantiles' intervals; `None` where one is not known from above.
    pub margin_high: Option<f64>,
    /// Whether requests were answered about as fast as they were asked.
    pub carried: bool,
    /// The cause where the generator was the limit; `None` where it was not.
    pub generator: Option<Cause>,
    /// Reason why the run does not count; `None` where it counts.
    pub unsound: Option<Unsound>,
}

/// Reason why a run says nothing about the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unsound {
    /// No request was due in it.
    Idle,
    /// The run was not steady.
    Unsteady,
    /// The generator was the limit.
    Generator(Cause),
}

/// Reason why there is no rate, or what is left open. Rates are in requests per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NoRate {
    /// Several runs in a row say nothing about the server.
    Unsound {
        /// Number of these runs.
        runs: u32,
        /// Reason of the last of them.
        why: Unsound,
    },
    /// The server completed nothing in closed loop.
    NothingCompleted,
    /// The goal was missed at the least rate that was tried.
    MissedAt {
        /// The least rate.
        rate: f64,
    },
    /// The rates around the goal were not carried, so that the server gives way before its times show it.
    NotCarried,
    /// The times do not rise clearly with the rate around the goal.
    NoRise,
    /// The last run was too short to know the quantile from above.
    TooShort {
        /// Rate of the run.
        rate: f64,
    },
    /// No run of its own met the goal with its upper bound.
    Unconfirmed {
        /// Rate of the last of these runs.
        rate: f64,
    },
    /// No line fits the runs around a rate.
    NoLine {
        /// Rate of the middle of these runs.
        rate: f64,
    },
}

impl NoRate {
    /// The names of servers, agents, cards and keys, and the words of servers, each to be changed.
    pub fn names_mut(&mut self) -> Vec<&mut String> {
        match self {
            NoRate::Unsound { why: Unsound::Generator(cause), .. } => cause.names_mut(),
            _ => Vec::new(),
        }
    }
}

impl RunFindings {
    /// Whether the goals were met, by the quantiles themselves.
    fn met(&self) -> bool {
        self.carried && self.margin.is_some_and(|margin| margin <= 0.0)
    }

    /// Whether the goals were met with their upper bounds.
    fn met_surely(&self) -> bool {
        self.met() && self.margin_high.is_some_and(|margin| margin <= 0.0)
    }
}

/// Result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The greatest rate that is known to meet the goals, with 95 % confidence, and that a run of its own confirmed.
    pub rate: Option<f64>,
    /// The rates between which the limit is reached: those at which the 95 % band of the line contains it, or those from the
    /// greatest that was carried to `not_carried`. `None` where they are not known, and with `at_least`.
    pub interval: Option<(f64, f64)>,
    /// The least rate that was not carried, where that is the limit: the band of the line is within the goals up to there.
    pub not_carried: Option<f64>,
    /// Whether greater rates were not asked for because there are none: the goals are met at least at `rate`.
    pub at_least: bool,
    /// Whether greater rates than `rate` met the goals too, in runs that were too short for an upper bound of the
    /// quantiles; only with `at_least`.
    pub is_open_above: bool,
    /// Whether the interval is as narrow as was asked for; `None` where nothing was asked for.
    pub precise: Option<bool>,
    /// Reason why there is no rate, or what is left open.
    pub reason: Option<NoRate>,
}

/// Progress of the search.
#[derive(Clone, Debug, PartialEq)]
enum Stage {
    Peak,
    /// The goals are met at `low`, or it is 0, and missed at `high`, after `made` halvings.
    Halving {
        low: f64,
        high: f64,
        made: u32,
    },
    /// All halvings met the goals: the greatest rate is tried.
    Top,
    /// Runs that are still to be made, the next one last.
    Around {
        left: Vec<f64>,
    },
    Confirming {
        rate: f64,
        made: u32,
    },
    Overload,
    Done,
}

/// A search: [`RateSearch::next`] returns the run that is to be made, and [`RateSearch::handle`] takes in its result.
#[derive(Clone, Debug)]
pub struct RateSearch {
    seed: u64,
    /// Greatest width of the interval, as a share of its lower end.
    precision: Option<f64>,
    stage: Stage,
    /// The capacity, in requests per second.
    capacity: f64,
    /// The cause where the capacity is the generator's; `None` where it is the server's.
    generator: Option<Cause>,
    /// Points of the line: rate and margin.
    points: Vec<(f64, f64)>,
    /// Runs that were made around the crossing.
    around_runs: usize,
    /// The least rate that was not carried.
    ceiling: f64,
    unsound: u32,
    answer: Answer,
}

impl RateSearch {
    /// A search whose order of runs follows from `seed`. With a `precision` runs are added until the interval is as narrow, as
    /// a share of its lower end.
    pub fn new(seed: u64, precision: Option<f64>) -> RateSearch {
        RateSearch {
            seed,
            precision,
            stage: Stage::Peak,
            capacity: 0.0,
            generator: None,
            points: Vec::new(),
            around_runs: 0,
            ceiling: f64::INFINITY,
            unsound: 0,
            answer: Answer::default(),
        }
    }

    /// The run that is to be made next; `None` at the end.
    pub fn next(&self) -> Option<PlannedRun> {
        let ask = |role, rate| Some(PlannedRun { role, rate: Some(rate) });
        match &self.stage {
            Stage::Peak => Some(PlannedRun { role: Role::Peak, rate: None }),
            Stage::Halving { low, high, .. } => ask(Role::Halve, (low + high) / 2.0),
            Stage::Top => ask(Role::Halve, self.greatest()),
            Stage::Around { left } => ask(Role::Around, *left.last().expect("a stage without runs is left")),
            Stage::Confirming { rate, .. } => ask(Role::Confirm, *rate),
            Stage::Overload => ask(Role::Overload, self.overload()),
            Stage::Done => None,
        }
    }

    /// Result of the search. It is final when [`RateSearch::next`] asks for nothing more.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Number of runs through which the line was drawn.
    pub fn line_runs(&self) -> usize {
        self.points.len()
    }

    /// The rate in closed loop, in requests per second; 0 before the first run. It is the capacity of the server where the
    /// generator was not the limit.
    pub fn capacity(&self) -> f64 {
        self.capacity
    }

    /// The cause where the generator was the limit in closed loop: the capacity of the server is not known then. `None` where it was
    /// not.
    pub fn generator(&self) -> Option<&Cause> {
        self.generator.as_ref()
    }

    /// Takes in the result of the run that [`RateSearch::next`] asked for.
    pub fn handle(&mut self, seen: &RunFindings) {
        let Some(PlannedRun { role, rate }) = self.next() else { return };
        let rate = rate.unwrap_or(0.0);
        let judges = match role {
            Role::Halve | Role::Around | Role::Confirm => true,
            // The capacity may be the generator's, which the answer says; it is known all the same.
            Role::Peak => seen.generator.is_none(),
            Role::Overload => false,
        };
        if let Some(why) = seen.unsound.as_ref().filter(|_| judges) {
            self.unsound += 1;
            if self.unsound >= UNSOUND_MAX {
                self.end(NoRate::Unsound { runs: UNSOUND_MAX, why: why.clone() });
            }
            return;
        }
        if judges {
            self.unsound = 0;
        }
        if judges && role != Role::Peak && !seen.carried {
            self.ceiling = self.ceiling.min(rate);
        }
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Peak => self.handle_peak(seen),
            Stage::Halving { low, high, made } => {
                self.handle_halving((low, high), made + 1, rate, seen.met())
            }
            Stage::Top if seen.met() => {
                self.answer.at_least = true;
                self.stage = Stage::Confirming { rate, made: 0 };
            }
            Stage::Top => self.begin_around(rate),
            Stage::Around { left } => self.handle_around(left, rate, seen),
            Stage::Confirming { made, .. } => self.handle_confirmation(rate, made + 1, seen),
            Stage::Overload | Stage::Done => {}
        }
    }

    fn handle_peak(&mut self, seen: &RunFindings) {
        self.capacity = seen.rate;
        self.generator.clone_from(&seen.generator);
        if seen.rate > 0.0 {
            self.stage = Stage::Halving { low: 0.0, high: seen.rate, made: 0 };
        } else {
            self.end(NoRate::NothingCompleted);
        }
    }

    fn handle_halving(&mut self, (low, high): (f64, f64), made: u32, rate: f64, met: bool) {
        let (low, high) = if met { (rate, high) } else { (low, rate) };
        if high >= self.capacity && made >= HALVINGS {
            self.stage = Stage::Top;
        } else if made < HALVINGS || (made < HALVINGS_MAX && high - low > NARROW * high) {
            self.stage = Stage::Halving { low, high, made };
        } else if low > 0.0 {
            self.begin_around((low + high) / 2.0);
        } else {
            self.end(NoRate::MissedAt { rate });
        }
    }

    /// Plans the runs around a crossing that is about at `rate`.
    fn begin_around(&mut self, rate: f64) {
        let left = self.rates_around(rate, AROUND_RUNS);
        self.stage = Stage::Around { left };
    }

    /// Draws `count` rates at equal distances around `rate`, in random order.
    fn rates_around(&self, rate: f64, count: usize) -> Vec<f64> {
        let high = (rate * (1.0 + AROUND)).min(self.reachable());
        let low = (rate * (1.0 - AROUND)).min(high * (1.0 - AROUND));
        let distance = (high - low) / (count - 1) as f64;
        let draws = Stream::from_seed(mix(&[self.seed, self.around_runs as u64]));
        let mut rates: Vec<(u64, f64)> =
            (0..count).map(|at| (draws.draw(at as u64), low + distance * at as f64)).collect();
        rates.sort_by_key(|(draw, _)| *draw);
        rates.into_iter().map(|(_, rate)| rate).collect()
    }

    fn handle_around(&mut self, mut left: Vec<f64>, rate: f64, seen: &RunFindings) {
        left.pop();
        self.around_runs += 1;
        self.add_point(rate, seen);
        if !left.is_empty() {
            self.stage = Stage::Around { left };
            return;
        }
        self.decide(rate);
    }

    /// Adds a run to the line, unless its rate was not carried: such a run has no steady quantile.
    fn add_point(&mut self, rate: f64, seen: &RunFindings) {
        if let Some(margin) = seen.margin.filter(|_| seen.carried) {
            self.points.push((rate, margin));
        }
    }

    /// Looks at the line through all runs: more runs, or the confirmation.
    fn decide(&mut self, last_rate: f64) {
        let found = self.locate();
        self.judge_precision();
        let crossing = self.line().and_then(|line| line.crossing());
        let crossed_at = crossing.map_or(last_rate, |crossing| self.rate_at(crossing.at));
        let about = self.answer.not_carried.unwrap_or(crossed_at);
        let is_known = found.is_some_and(|rate| rate > 0.0) && self.answer.precise != Some(false);
        match found {
            _ if !is_known && self.around_runs + MORE_RUNS <= AROUND_RUNS_MAX => {
                let left = self.rates_around(about.clamp(self.capacity * 1e-3, self.greatest()), MORE_RUNS);
                self.stage = Stage::Around { left };
            }
            Some(rate) if rate > 0.0 => self.stage = Stage::Confirming { rate, made: 0 },
            _ if self.points.len() < LINE_RUNS_MIN => self.end(NoRate::NotCarried),
            _ => self.end(NoRate::NoRise),
        }
    }

    /// Notes between which rates the limit is, by the line and by what was carried. Returns the rate that has to be confirmed;
    /// `None` where the limit is not known.
    fn locate(&mut self) -> Option<f64> {
        (self.answer.interval, self.answer.not_carried) = (None, None);
        let line = self.line()?;
        let reachable = self.reachable();
        if self.ceiling.is_finite() && line.upper(self.z(reachable)) <= 0.0 {
            self.answer.interval = Some((self.greatest_carried()?, self.ceiling));
            self.answer.not_carried = Some(self.ceiling);
            return Some(reachable);
        }
        let crossing = line.crossing()?;
        // A line that crosses beyond the greatest rate is confirmed there, and its upper end is beyond it too.
        let low = self.rate_at(crossing.low?).min(reachable);
        self.answer.interval = Some((low, self.rate_at(crossing.high?).min(self.ceiling)));
        Some(low)
    }

    /// Notes whether the interval is as narrow as was asked for.
    fn judge_precision(&mut self) {
        let is_narrow =
            |precision: f64| self.answer.interval.is_some_and(|(low, high)| high <= low * (1.0 + precision));
        self.answer.precise = self.precision.map(is_narrow);
    }

    fn handle_confirmation(&mut self, rate: f64, made: u32, seen: &RunFindings) {
        if seen.met_surely() {
            self.answer.rate = Some(rate);
            if let (Some(_), Some((carried, _))) = (self.answer.not_carried, &mut self.answer.interval) {
                *carried = rate.max(*carried);
                self.judge_precision();
            }
            // What the generator cannot send overloads no server.
            let can_overload = self.generator.is_none() || self.overload() <= self.greatest();
            self.stage = if can_overload { Stage::Overload } else { Stage::Done };
            return;
        }
        self.add_point(rate, seen);
        let is_open = seen.met() && seen.margin_high.is_none();
        if is_open && self.answer.at_least && made < CONFIRMATIONS_MAX {
            // A tail that is open near the capacity is known at a lower rate, where slow spells are shorter.
            self.answer.is_open_above = true;
            self.stage = Stage::Confirming { rate: rate * LOWER, made };
            return;
        }
        (self.answer.at_least, self.answer.is_open_above) = (false, false);
        if is_open {
            return self.end(NoRate::TooShort { rate });
        }
        if made >= CONFIRMATIONS_MAX {
            return self.end(NoRate::Unconfirmed { rate });
        }
        match self.after_failure(rate, seen) {
            Some(next) => self.stage = Stage::Confirming { rate: next, made },
            None if self.around_runs + AROUND_RUNS <= AROUND_RUNS_MAX => self.begin_around(rate),
            None => self.end(NoRate::NoLine { rate }),
        }
    }

    /// The rate of the next confirmation: the lower end of the new line, and low enough for the upper bound of a run like
    /// the last one to be within the limit nineteen times of twenty; after a run that was not carried, a rate that was. `None` where
    /// there is no line yet.
    fn after_failure(&mut self, rate: f64, seen: &RunFindings) -> Option<f64> {
        let line = self.line()?;
        let low = self.locate()?;
        self.judge_precision();
        let above = match (seen.margin, seen.margin_high) {
            (Some(margin), Some(high)) => (high - margin).max(0.0),
            _ => 0.0,
        };
        let safe = line.crossing().map_or(f64::INFINITY, |crossing| {
            let slope = (line.at(crossing.at + 1e-3) - line.at(crossing.at)) / 1e-3;
            self.rate_at(crossing.at - (above + CHANCE * line.deviation()) / slope)
        });
        // One small step after the other would end at the most confirmations and not at the limit.
        let carried = if seen.carried { None } else { self.greatest_carried() };
        let next = low.min(safe).min(rate * 0.995).min(carried.unwrap_or(f64::INFINITY));
        (next > self.capacity * 1e-3).then_some(next)
    }

    /// The line of ln(quantile / limit) over z through all runs that count; `None` where these are too few.
    fn line(&self) -> Option<Line> {
        if self.points.len() < LINE_RUNS_MIN {
            return None;
        }
        let points: Vec<(f64, f64)> = self.points.iter().map(|point| (self.z(point.0), point.1)).collect();
        Line::fit(&points)
    }

    fn end(&mut self, reason: NoRate) {
        self.answer.rate = None;
        (self.answer.at_least, self.answer.is_open_above) = (false, false);
        self.answer.reason = Some(reason);
        self.stage = Stage::Done;
    }

    /// The greatest rate that is asked for, but for the overload.
    fn greatest(&self) -> f64 {
        self.capacity * SHARE_MAX
    }

    /// The greatest rate that is asked for with what is known of those that were not carried, but for the overload.
    fn reachable(&self) -> f64 {
        self.greatest().min(self.ceiling * CARRIED)
    }

    /// The greatest rate of the line that was carried, below all that were not.
    fn greatest_carried(&self) -> Option<f64> {
        let carried = self.points.iter().map(|point| point.0).filter(|rate| *rate < self.ceiling);
        carried.reduce(f64::max)
    }

    fn overload(&self) -> f64 {
        OVERLOAD * self.answer.interval.map_or(self.capacity, |(_, high)| high)
    }

    /// -ln(1 - rate / C), or rate / C where C is the generator's.
    fn z(&self, rate: f64) -> f64 {
        let share = (rate / self.capacity).min(SHARE_MAX);
        if self.generator.is_some() { share } else { -libm::log(1.0 - share) }
    }

    /// The rate of a z; 0 for a z below 0.
    fn rate_at(&self, z: f64) -> f64 {
        let share = if self.generator.is_some() { z } else { 1.0 - libm::exp(-z) };
        self.capacity * share.max(0.0)
    }
}

#[cfg(test)]
mod tests;
