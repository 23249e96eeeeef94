//! The arrivals of a trace: the variation of the number of requests in windows of many lengths, and a model of bursts
//! that is fitted to it.

use pummel_logic::plan::BurstStates;
use pummel_logic::time::{Nanos, SECOND};

/// Length of the shortest windows, in nanoseconds; the precision of the times in the trace, if that is coarser.
const WINDOW_LEAST_NS: Nanos = 10_000_000;

/// Length of the longest windows, in nanoseconds.
const HOUR_NS: Nanos = 3_600 * SECOND;

/// Fewest windows of one length with which that length takes part in the fits of bursts and of the Hurst exponent.
const WINDOWS_LEAST: f64 = 20.0;

/// Fewest windows in an hour with which windows are compared with the mean of their hour and not with that of the
/// whole trace.
const IN_HOUR_LEAST: u64 = 8;

/// Most steps of the rate that are kept: the minutes of 31 days. Longer traces have steps of two minutes, four
/// minutes, and so on.
const STEPS_MAX: usize = 44_640;

/// Least share of the time for which bursts are on. A rarer burst is a single event and no state of the rate.
const ON_LEAST: f64 = 1e-4;

/// Least excess of the index of dispersion over 1, the value of Poisson arrivals, that shows bursts.
const BURST_LEAST: f64 = 0.5;

/// Fewest bursts in a trace with which their length and height are fitted. The mean of n exponentially distributed
/// lengths has a relative error of 1 / sqrt(n), a fifth for 25.
pub const BURSTS_LEAST: f64 = 25.0;

/// Number of windows, and sums of the first three powers of their numbers of requests.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    windows: f64,
    first: f64,
    second: f64,
    third: f64,
}

impl Sums {
    fn add(&mut self, requests: f64) {
        self.windows += 1.0;
        self.first += requests;
        self.second += requests * requests;
        self.third += requests * requests * requests;
    }

    /// The sum of squared distances from the mean.
    fn squares(&self) -> f64 {
        if self.windows > 0.0 { (self.second - self.first * self.first / self.windows).max(0.0) } else { 0.0 }
    }

    /// The sum of cubed distances from the mean.
    fn cubes(&self) -> f64 {
        let mean = if self.windows > 0.0 { self.first / self.windows } else { 0.0 };
        self.third - 3.0 * mean * self.second + 2.0 * mean * mean * self.first
    }
}

/// Statistics of all windows of one length.
#[derive(Debug, Default)]
struct Level {
    width_ns: Nanos,
    number: u64,
    requests: f64,
    most: f64,
    all: Sums,
    hour: Sums,
    /// Number of windows that are compared with their common mean: those of an hour, or `u64::MAX` for those of the
    /// whole trace.
    in_hour: u64,
    squares: f64,
    freedom: f64,
    cubes: f64,
    /// Sum of [`freedom_of_cubes`] over the hours: the divisor that makes the third central moment of `cubes`.
    freedom_of_cubes: f64,
    /// Sums over all windows of the second and the third power of the mean of the window's hour.
    hour_means: [f64; 2],
}

impl Level {
    fn new(width_ns: Nanos) -> Level {
        let in_hour = match HOUR_NS / width_ns {
            windows if windows >= IN_HOUR_LEAST => windows,
            _ => u64::MAX,
        };
        Level { width_ns, in_hour, ..Level::default() }
    }

    fn add(&mut self, since_ns: Nanos, requests: f64) {
        let number = since_ns / self.width_ns;
        if number > self.number {
            self.end_window();
            self.pass(number - self.number - 1);
            self.number = number;
        }
        self.requests += requests;
    }

    fn end_window(&mut self) {
        let requests = std::mem::take(&mut self.requests);
        self.most = self.most.max(requests);
        self.all.add(requests);
        self.hour.add(requests);
        if self.hour.windows >= self.in_hour as f64 {
            self.end_hour();
        }
    }

    fn end_hour(&mut self) {
        let hour = std::mem::take(&mut self.hour);
        if hour.windows > 1.0 {
            self.squares += hour.squares();
            self.freedom += hour.windows - 1.0;
            self.cubes += hour.cubes();
            self.freedom_of_cubes += freedom_of_cubes(hour.windows);
            let mean = hour.first / hour.windows;
            self.hour_means[0] += hour.windows * mean * mean;
            self.hour_means[1] += hour.windows * mean * mean * mean;
        }
    }

    /// Counts this many windows without requests.
    fn pass(&mut self, windows: u64) {
        self.all.windows += windows as f64;
        let here = windows.min(self.in_hour.saturating_sub(self.hour.windows as u64));
        self.hour.windows += here as f64;
        if self.hour.windows < self.in_hour as f64 {
            return;
        }
        self.end_hour();
        let (hours, rest) = ((windows - here) / self.in_hour, (windows - here) % self.in_hour);
        self.freedom += hours as f64 * (self.in_hour - 1) as f64;
        self.freedom_of_cubes += hours as f64 * freedom_of_cubes(self.in_hour as f64);
        self.hour.windows = rest as f64;
    }

    /// Ends the last window and the last hour. The last window counts if the trace covers all of it, or if no other
    /// window has come.
    fn end(&mut self, span_ns: Nanos) {
        if span_ns >= (self.number + 1).saturating_mul(self.width_ns) || self.number == 0 {
            self.end_window();
        }
        self.end_hour();
    }

    fn mean(&self) -> f64 {
        self.all.first / self.all.windows
    }

    fn variance(&self) -> f64 {
        if self.freedom > 0.0 { self.squares / self.freedom } else { 0.0 }
    }

    /// The third central moment of the number of requests, about the means of the hours.
    fn third_moment(&self) -> f64 {
        if self.freedom_of_cubes > 0.0 { self.cubes / self.freedom_of_cubes } else { 0.0 }
    }

    /// The factor by which differences between hours increase the skewness over that of a load with the same rate in
    /// all hours. The third moment of an hour grows with the cube of its rate, so busy hours weigh more.
    fn skew_of_hours(&self) -> f64 {
        let [second, third] = self.hour_means.map(|sum| sum / self.all.windows);
        if second > 0.0 { (third / libm::pow(second, 1.5)).max(1.0) } else { 1.0 }
    }

    fn dispersion(&self) -> Dispersion {
        let width_s = self.width_ns as f64 / SECOND as f64;
        Dispersion { window_s: width_s, windows: self.all.windows, idc: self.variance() / self.mean() }
    }
}

/// Divisor for the sum of cubed distances of n windows from their mean: the expected sum is the third central moment
/// times (n - 1) (n - 2) / n.
fn freedom_of_cubes(windows: f64) -> f64 {
    (windows - 1.0) * (windows - 2.0) / windows
}

/// Variation of the number of requests in windows of one length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dispersion {
    /// Length of a window in seconds.
    pub window_s: f64,
    /// Number of windows.
    pub windows: f64,
    /// The index of dispersion: variance divided by mean, 1 for Poisson arrivals. Windows of up to 7.5 minutes are
    /// compared with the mean of their hour, longer ones with the mean of the trace.
    pub idc: f64,
}

/// A model of the arrivals with two states of the rate, fitted to the variation of the number of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FittedBurst {
    /// The two states of the rate.
    pub states: BurstStates,
    /// The index of dispersion of very long windows in the model.
    pub limit: f64,
    /// The greatest difference between a measured index of dispersion and that of the model, as a share of the
    /// latter.
    pub off: f64,
}

impl FittedBurst {
    /// Mean number of bursts in `span_s` seconds.
    fn in_seconds(&self, span_s: f64) -> f64 {
        span_s * SECOND as f64 / (self.states.on_ns + self.states.off_ns) as f64
    }
}

/// The figures of the arrivals in a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArrivalFit {
    /// Requests per second; `None` if the rows have no times, or exact times that are all the same.
    pub rate: Option<f64>,
    /// Whether most times are whole seconds, so that the arrivals within a second are not known.
    pub whole_seconds: bool,
    /// Requests in the busiest second divided by those in the mean one; `None` for traces shorter than two seconds.
    pub peak_1s: Option<f64>,
    /// Requests in the busiest minute divided by those in the mean one; `None` for traces shorter than two minutes.
    pub peak_60s: Option<f64>,
    /// Indexes of dispersion by length of the window, in ascending order.
    pub dispersions: Vec<Dispersion>,
    /// The Hurst exponent, 0 to 1, from the variance of the mean rates of windows: 0.5 for arrivals without memory,
    /// and more for bursts at all time scales. `None` for fewer than four lengths of windows.
    pub hurst: Option<f64>,
    /// Bursts as two states of the rate; `None` if requests vary little more than by chance or there are fewer than
    /// [`BURSTS_LEAST`] bursts.
    pub burst: Option<FittedBurst>,
    /// The approximate number of bursts if they are fewer than [`BURSTS_LEAST`], too few to know their length and
    /// height.
    pub few_bursts: Option<f64>,
    /// The rate in steps of [`ArrivalFit::step_s`], in requests per second. The last step may be shorter than the
    /// others.
    pub rates: Vec<f64>,
    /// Length of a step in seconds.
    pub step_s: u64,
    /// Rates of the 24 hours of a day that begins with the first row, in requests per second, each the mean over all
    /// days of the trace; empty if the trace is shorter than a day.
    pub hours: Vec<f64>,
}

impl ArrivalFit {
    /// The index of dispersion of windows of `window_s` seconds, interpolated between the measured ones over the
    /// logarithm of the length; `None` outside the measured lengths.
    pub fn idc(&self, window_s: f64) -> Option<f64> {
        let after = self.dispersions.iter().position(|one| one.window_s >= window_s)?;
        let (high, low) = (self.dispersions[after], self.dispersions[after.saturating_sub(1)]);
        if high.window_s == window_s {
            return Some(high.idc);
        }
        let place = libm::log(window_s / low.window_s) / libm::log(high.window_s / low.window_s);
        (after > 0).then_some(low.idc + place * (high.idc - low.idc))
    }
}

/// Counter of the precision of the times of rows, for the precision of the trace.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Resolution {
    requests: u64,
    /// Number of requests whose times are whole seconds.
    of_whole_seconds: u64,
    /// The coarsest precision of all other times, in nanoseconds.
    exact_ns: Nanos,
}

impl Resolution {
    /// Adds a row of `requests` requests whose time has the precision `row_ns`.
    pub(super) fn take(&mut self, row_ns: Nanos, requests: u64) {
        self.requests += requests;
        match row_ns >= SECOND {
            true => self.of_whole_seconds += requests,
            false => self.exact_ns = self.exact_ns.max(row_ns),
        }
    }

    /// The precision of most times, in nanoseconds. A few times may look like whole seconds because programs leave out
    /// a fraction of 0.
    pub(super) fn ns(&self) -> Nanos {
        if self.of_whole_seconds > self.requests / 2 { SECOND } else { self.exact_ns.max(1) }
    }
}

/// Counters of requests in windows of time: one for exact times, and one for whole seconds.
#[derive(Debug)]
pub(super) struct Arrivals {
    exact: ArrivalCounter,
    whole_seconds: ArrivalCounter,
}

impl Arrivals {
    /// The counters for a trace whose first row has a time of the precision `first_ns`.
    pub(super) fn new(first_ns: Nanos) -> Arrivals {
        let exact_ns = if first_ns < SECOND { first_ns } else { 1 };
        Arrivals { exact: ArrivalCounter::new(exact_ns), whole_seconds: ArrivalCounter::new(SECOND) }
    }

    /// Adds `requests` requests at `since_ns` after the first row. The times of calls must not decrease.
    pub(super) fn take(&mut self, since_ns: Nanos, requests: u64) {
        self.exact.take(since_ns, requests);
        self.whole_seconds.take(since_ns, requests);
    }

    /// Computes the figures of the arrivals, whose times have the precision `resolution_ns`.
    pub(super) fn end(self, resolution_ns: Nanos) -> ArrivalFit {
        let counter = if resolution_ns < SECOND { self.exact } else { self.whole_seconds };
        counter.end(resolution_ns)
    }
}

/// Counter of requests in windows of time.
#[derive(Debug)]
struct ArrivalCounter {
    /// Requests of the current window of the shortest length, which ends at `until_ns`.
    pending: f64,
    pending_ns: Nanos,
    until_ns: Nanos,
    levels: Vec<Level>,
    steps: Vec<f64>,
    step_ns: Nanos,
    last_ns: Nanos,
}

impl ArrivalCounter {
    /// A counter for rows whose times have the precision `resolution_ns`.
    fn new(resolution_ns: Nanos) -> ArrivalCounter {
        let least = WINDOW_LEAST_NS.max(resolution_ns);
        let mut widths: Vec<Nanos> =
            (0..).map(|power| least << power).take_while(|width| *width <= HOUR_NS).collect();
        widths.extend([SECOND, 60 * SECOND].into_iter().filter(|width| *width >= least));
        widths.sort_unstable();
        widths.dedup();
        ArrivalCounter {
            pending: 0.0,
            pending_ns: 0,
            until_ns: least,
            levels: widths.into_iter().map(Level::new).collect(),
            steps: Vec::new(),
            step_ns: 60 * SECOND,
            last_ns: 0,
        }
    }

    /// Adds `requests` requests at `since_ns` after the first row. The times of calls must not decrease.
    fn take(&mut self, since_ns: Nanos, requests: u64) {
        self.last_ns = since_ns;
        if since_ns >= self.until_ns {
            self.hand_on();
            let least = self.levels[0].width_ns;
            self.pending_ns = since_ns;
            self.until_ns = (since_ns / least + 1).saturating_mul(least);
        }
        self.pending += requests as f64;
    }

    fn hand_on(&mut self) {
        let (since_ns, requests) = (self.pending_ns, std::mem::take(&mut self.pending));
        self.levels.iter_mut().for_each(|level| level.add(since_ns, requests));
        while since_ns / self.step_ns >= STEPS_MAX as u64 {
            let pairs = self.steps.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.steps = pairs;
            self.step_ns *= 2;
        }
        let step = (since_ns / self.step_ns) as usize;
        if step >= self.steps.len() {
            self.steps.resize(step + 1, 0.0);
        }
        self.steps[step] += requests;
    }

    /// Computes the figures of the arrivals, whose times have the precision `resolution_ns`.
    fn end(mut self, resolution_ns: Nanos) -> ArrivalFit {
        self.hand_on();
        let requests: f64 = self.steps.iter().sum();
        let whole_seconds = resolution_ns >= SECOND;
        // A trace of whole seconds lasts until the end of the last one, which may be its only one.
        let span_ns = match self.last_ns {
            0 if !whole_seconds => 0,
            last_ns => last_ns.saturating_add(resolution_ns.max(1)),
        };
        if span_ns == 0 || requests <= 0.0 {
            return ArrivalFit { whole_seconds, ..ArrivalFit::default() };
        }
        self.levels.retain(|level| level.width_ns >= resolution_ns);
        self.levels.iter_mut().for_each(|level| level.end(span_ns));
        self.levels.retain(|level| level.all.windows >= 2.0 && level.mean() > 0.0);
        let rate = requests / (span_ns as f64 / SECOND as f64);
        let peak = |width_ns: Nanos| {
            let level = self.levels.iter().find(|level| level.width_ns == width_ns)?;
            Some(level.most / level.mean())
        };
        let span_s = span_ns as f64 / SECOND as f64;
        let (burst, few_bursts) = match burst(&self.levels, rate) {
            Some(burst) if burst.in_seconds(span_s) < BURSTS_LEAST => (None, Some(burst.in_seconds(span_s))),
            burst => (burst, None),
        };
        ArrivalFit {
            rate: Some(rate),
            whole_seconds,
            peak_1s: peak(SECOND),
            peak_60s: peak(60 * SECOND),
            dispersions: self.levels.iter().map(Level::dispersion).collect(),
            hurst: hurst(&self.levels),
            burst,
            few_bursts,
            rates: self.rates(span_ns),
            step_s: self.step_ns / SECOND,
            hours: self.hours(span_ns),
        }
    }

    fn rates(&self, span_ns: Nanos) -> Vec<f64> {
        let rate = |(step, requests): (usize, &f64)| {
            let begin_ns = step as u64 * self.step_ns;
            let length_ns = self.step_ns.min(span_ns.saturating_sub(begin_ns)).max(1);
            requests * SECOND as f64 / length_ns as f64
        };
        self.steps.iter().enumerate().map(rate).collect()
    }

    fn hours(&self, span_ns: Nanos) -> Vec<f64> {
        if span_ns < 24 * HOUR_NS || self.step_ns > HOUR_NS {
            return Vec::new();
        }
        let mut hours = vec![(0.0, 0.0); 24];
        for (step, requests) in self.steps.iter().enumerate() {
            let begin_ns = step as u64 * self.step_ns;
            let hour = &mut hours[(begin_ns / HOUR_NS % 24) as usize];
            hour.0 += requests;
            hour.1 += self.step_ns.min(span_ns.saturating_sub(begin_ns)) as f64 / SECOND as f64;
        }
        hours
            .iter()
            .map(|(requests, seconds)| if *seconds > 0.0 { requests / seconds } else { 0.0 })
            .collect()
    }
}

/// The Hurst exponent: 1 plus half the slope of the logarithm of the variance of mean rates over the logarithm of the
/// length of windows. Distances are taken from the mean of the hour.
fn hurst(levels: &[Level]) -> Option<f64> {
    let points: Vec<(f64, f64)> = levels
        .iter()
        .filter(|level| {
            level.in_hour < u64::MAX && level.all.windows >= WINDOWS_LEAST && level.variance() > 0.0
        })
        .map(|level| {
            let width = level.width_ns as f64;
            (libm::log(width), libm::log(level.variance() / (width * width)))
        })
        .collect();
    if points.len() < 4 {
        return None;
    }
    let count = points.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
    let slope = mean(&|point| (point.0 - x) * (point.1 - y)) / mean(&|point| (point.0 - x) * (point.0 - x));
    Some((1.0 + slope / 2.0).clamp(0.0, 1.0))
}

/// The share of its limit that the excess dispersion of the two-state model reaches in windows whose length is
/// `windows` times the memory of the states.
fn reached(windows: f64) -> f64 {
    if windows < 1e-6 { windows / 2.0 } else { 1.0 + libm::expm1(-windows) / windows }
}

/// Fits the two-state model to the variation of the windows. In windows of length t the excess of the index of
/// dispersion over 1 is `A (1 - (1 - e^(-h t)) / (h t))`, where h is the sum of the rates at which the two states are
/// left, and A is the excess of very long windows. The third moment determines the share of time in the busy state.
fn burst(levels: &[Level], rate: f64) -> Option<FittedBurst> {
    let levels: Vec<&Level> = levels
        .iter()
        .filter(|level| level.all.windows >= WINDOWS_LEAST && level.in_hour < u64::MAX)
        .collect();
    let points: Vec<(f64, f64, f64)> = levels
        .iter()
        .map(|level| level.dispersion())
        // The index of n windows has a relative error of sqrt(2 / n), and no model fits better than 5 %.
        .map(|one| (one.window_s, one.idc, 1.0 / (2.0 / one.windows + 0.0025)))
        .collect();
    let largest = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let (shortest, longest) = (points.first()?.0, points.last()?.0);
    if largest < 1.0 + BURST_LEAST {
        return None;
    }
    let mut best: Option<(f64, f64, f64)> = None;
    for step in 0..=400 {
        let memory = libm::pow(10.0, f64::from(step) / 50.0 - 4.0);
        if memory * longest < 0.3 || memory * shortest > 300.0 {
            continue;
        }
        let (mut over, mut under) = (0.0, 0.0);
        for (window, idc, weight) in &points {
            let share = reached(memory * window);
            over += weight * share * (idc - 1.0) / (idc * idc);
            under += weight * share * share / (idc * idc);
        }
        let limit = (over / under).max(0.0);
        let squares = |(window, idc, weight): &(f64, f64, f64)| {
            let off = (1.0 + limit * reached(memory * window)) / idc - 1.0;
            weight * off * off
        };
        let error: f64 = points.iter().map(squares).sum();
        if best.is_none_or(|(least, _, _)| error < least) {
            best = Some((error, memory, limit));
        }
    }
    let (_, memory, limit) = best.filter(|(_, _, limit)| *limit >= BURST_LEAST)?;
    let off = points
        .iter()
        .map(|(window, idc, _)| (idc / (1.0 + limit * reached(memory * window)) - 1.0).abs())
        .fold(0.0, f64::max);
    let states = states(&levels, rate, memory, limit)?;
    Some(FittedBurst { states, limit: 1.0 + limit, off })
}

/// The states whose memory, the sum of the rates at which they are left, is `memory` per second, and whose excess
/// index of dispersion in very long windows is `limit`.
fn states(levels: &[&Level], rate: f64, memory: f64, limit: f64) -> Option<BurstStates> {
    // The variance of the rate divided by the square of its mean.
    let variation = limit * memory / (2.0 * rate);
    // The longest windows within which the state seldom changes show the rate best, because chance in the arrivals
    // weighs least.
    let skew_of = |level: &&&Level| memory * level.width_ns as f64 / SECOND as f64 <= 0.3;
    let level = levels.iter().rfind(skew_of).or(levels.first())?;
    let (mean, variance) = (level.mean(), level.variance());
    let of_rate = (variance - mean).max(1e-12);
    let skew = (level.third_moment() - 3.0 * variance + 2.0 * mean)
        / (libm::pow(of_rate, 1.5) * level.skew_of_hours());
    let on_share = 0.5 * (1.0 - skew / libm::sqrt(skew * skew + 4.0));
    // The rate of the quiet state must not be negative.
    let on_most = 1.0 / (1.0 + variation);
    if on_most.is_nan() || on_most <= ON_LEAST {
        return None;
    }
    let share = on_share.clamp(ON_LEAST, on_most);
    let factor = 1.0 + libm::sqrt(variation * (1.0 - share) / share);
    let time_ns = |seconds: f64| (libm::round(seconds * 1e6) as Nanos).clamp(1, 1_000_000_000_000) * 1_000;
    Some(BurstStates {
        factor: libm::round(factor.min(1.0 / share) * 1e4) / 1e4,
        on_ns: time_ns(1.0 / (memory * (1.0 - share))),
        off_ns: time_ns(1.0 / (memory * share)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::rng::{Stream, unit};

    fn exponential(stream: &Stream, i: u64) -> f64 {
        -libm::log(unit(stream.draw(i)))
    }

    /// Poisson arrivals at a rate that is `factor` times the mean while it is on.
    fn bursty(rate: f64, burst: Option<(f64, f64, f64)>, time_s: f64, resolution_ns: Nanos) -> ArrivalFit {
        let (factor, on_s, off_s) = burst.unwrap_or((1.0, 1.0, 1.0));
        let share = on_s / (on_s + off_s);
        let rates = [rate * (1.0 - share * factor) / (1.0 - share), rate * factor];
        let (gaps, states) = (Stream::from_seed(1), Stream::from_seed(2));
        let mut counter = ArrivalCounter::new(resolution_ns);
        let (mut at, mut end, mut is_on, mut state, mut i) = (0.0, 0.0, false, 0, 0);
        while at < time_s {
            if at >= end {
                is_on = !is_on;
                end = at + exponential(&states, state) * if is_on { on_s } else { off_s };
                state += 1;
            }
            let gap = exponential(&gaps, i) / rates[usize::from(is_on)];
            i += 1;
            if at + gap > end {
                at = end;
                continue;
            }
            at += gap;
            counter.take((at * 1e9) as Nanos / resolution_ns * resolution_ns, 1);
        }
        counter.end(resolution_ns)
    }

    #[test]
    fn poisson_arrivals_vary_by_chance_alone() {
        let fit = bursty(1_000.0, None, 150.0, 1);
        assert!((fit.rate.expect("times") / 1_000.0 - 1.0).abs() < 0.01);
        assert!((fit.idc(1.0).expect("a second") - 1.0).abs() < 0.35, "{:?}", fit.dispersions);
        assert!(fit.burst.is_none(), "{:?}", fit.burst);
        assert!((fit.hurst.expect("levels") - 0.5).abs() < 0.1, "{:?}", fit.hurst);
        assert!(fit.peak_1s.expect("a second") < 1.2 && !fit.whole_seconds);
    }

    #[test]
    fn the_states_of_bursts_are_found() {
        let fit = bursty(500.0, Some((5.0, 0.05, 0.45)), 600.0, 1);
        let burst = fit.burst.expect("bursts");
        // 2 (a - b)^2 p (1 - p) / (h m), in section 2.5 of the notes on traffic.
        let (a, b, p, h, m) = (2_500.0f64, 500.0 * (1.0 - 0.5) / 0.9, 0.1, 1.0 / 0.05 + 1.0 / 0.45, 500.0);
        let limit = 1.0 + 2.0 * (a - b).powi(2) * p * (1.0 - p) / (h * m);
        assert!((burst.limit / limit - 1.0).abs() < 0.15, "{burst:?}, limit {limit}");
        assert!((burst.states.factor / 5.0 - 1.0).abs() < 0.15, "{burst:?}");
        assert!((burst.states.on_ns as f64 / 5e7 - 1.0).abs() < 0.2, "{burst:?}");
        assert!((burst.states.off_ns as f64 / 4.5e8 - 1.0).abs() < 0.2, "{burst:?}");
        assert!(burst.off < 0.3, "{burst:?}");
    }

    #[test]
    fn a_few_bursts_are_told_as_what_they_are_and_not_fitted() {
        let burst = Some((6.0, 2.0, 18.0));
        let short = bursty(100.0, burst, 200.0, 1);
        assert!(short.burst.is_none() && short.few_bursts.is_some_and(|few| few < BURSTS_LEAST), "{short:?}");
        let long = bursty(100.0, burst, 2_000.0, 1);
        assert!(long.burst.is_some() && long.few_bursts.is_none(), "{long:?}");
    }

    #[test]
    fn of_whole_seconds_nothing_is_known_below_them() {
        let fit = bursty(100.0, Some((4.0, 10.0, 30.0)), 3_500.0, SECOND);
        assert!(fit.whole_seconds && fit.dispersions[0].window_s == 1.0);
        let burst = fit.burst.expect("bursts");
        assert!((burst.states.on_ns as f64 / 1e10 - 1.0).abs() < 0.5, "{burst:?}");
    }

    #[test]
    fn a_busy_hour_does_not_make_bursts_rarer_than_they_are() {
        let (gaps, states) = (Stream::from_seed(1), Stream::from_seed(2));
        let mut counter = ArrivalCounter::new(1);
        let (mut at, mut end, mut is_on, mut state, mut i) = (0.0, 0.0, false, 0, 0);
        while at < 12.0 * 3_600.0 {
            if at >= end {
                is_on = !is_on;
                end = at + exponential(&states, state) * if is_on { 5.0 } else { 45.0 };
                state += 1;
            }
            let of_hour = if (at / 3_600.0) as u64 == 3 { 6.0 } else { 1.0 };
            let gap = exponential(&gaps, i) / (20.0 * of_hour * if is_on { 5.0 } else { 5.0 / 9.0 });
            i += 1;
            match at + gap > end {
                true => at = end,
                false => {
                    at += gap;
                    counter.take((at * 1e9) as Nanos, 1);
                }
            }
        }
        let states = counter.end(1).burst.expect("bursts").states;
        let share = states.on_ns as f64 / (states.on_ns + states.off_ns) as f64;
        assert!((0.07..0.14).contains(&share), "{states:?}");
    }

    #[test]
    fn rates_are_kept_by_the_minute_and_the_hour() {
        let mut counter = ArrivalCounter::new(SECOND);
        let day = 24 * 3_600u64;
        for second in (0..2 * day).step_by(10) {
            let hour = second / 3_600 % 24;
            counter.take(second * SECOND, 10 * (100 + hour));
        }
        let fit = counter.end(SECOND);
        assert_eq!((fit.rates.len(), fit.step_s, fit.hours.len()), (2 * 24 * 60, 60, 24));
        assert!((fit.hours[5] - 105.0).abs() < 0.1 && (fit.rates[60] - 101.0).abs() < 0.1, "{:?}", fit.hours);
    }

    #[test]
    fn a_leap_of_centuries_costs_nothing() {
        let mut counter = ArrivalCounter::new(1);
        counter.take(0, 5);
        counter.take(1 << 62, 5);
        counter.take((1 << 62) + 1, 5);
        let fit = counter.end(1);
        assert!(fit.rates.len() <= STEPS_MAX && fit.rate.expect("times") > 0.0);
        let nothing = ArrivalCounter::new(1).end(1);
        assert_eq!((nothing.rate, nothing.rates.len()), (None, 0));
    }
}
