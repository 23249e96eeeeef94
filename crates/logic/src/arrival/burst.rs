//! Bursts of a rate: two states that take turns, and many sources that are on and off.

use super::curve::RateCurve;
use crate::dist::Dist;
use crate::plan::{Burst, BurstSources, BurstStates};
use crate::rng::{self, Stream, StreamOwner, Use};
use crate::time::{NEVER, Nanos};

impl RateCurve {
    /// The curve with bursts until `until_ns`, which are those of all clients of the group and phase of `owner`.
    pub fn with_bursts(&self, burst: &Burst, owner: StreamOwner, until_ns: Nanos) -> RateCurve {
        let factors = match burst {
            Burst::States(states) => factors_of_states(states, stream_of(owner, 0), until_ns),
            Burst::Hurst(sources) => factors_of_sources(sources, owner, until_ns),
        };
        self.times(&factors, until_ns)
    }
}

/// The stream of a source of bursts of a group in a phase.
fn stream_of(owner: StreamOwner, source: u64) -> Stream {
    Stream::new(StreamOwner { client: source, ..owner }, Use::Burst)
}

/// The factors of two states that take turns. The times of a state are exponential, so that the one that is under way at the
/// beginning has a length of the same law.
fn factors_of_states(states: &BurstStates, stream: Stream, until_ns: Nanos) -> Vec<(Nanos, f64)> {
    let mut is_on = rng::unit(stream.draw(0)) < states.share();
    let mut factors = Vec::new();
    let (mut at_ns, mut draw): (Nanos, u64) = (0, 1);
    while at_ns < until_ns {
        let (factor, mean_ns) = match is_on {
            true => (states.factor, states.on_ns),
            false => (states.factor_off().max(0.0), states.off_ns),
        };
        factors.push((at_ns, factor));
        let time_ns = Dist::Exponential { mean: mean_ns as f64 }.draw(stream.draw(draw));
        at_ns = at_ns.saturating_add((time_ns as Nanos).max(1));
        (is_on, draw) = (!is_on, draw + 1);
    }
    factors
}

/// The factors of sources that are on and off: twice the share of the sources that are on, since each is on for half of the time.
fn factors_of_sources(sources: &BurstSources, owner: StreamOwner, until_ns: Nanos) -> Vec<(Nanos, f64)> {
    let mut changes: Vec<(Nanos, i64)> = Vec::new();
    let mut on: i64 = 0;
    for source in 0..u64::from(sources.sources) {
        let times = OnOffTimes::new(sources, stream_of(owner, source));
        let mut is_on = times.begins_on();
        on += i64::from(is_on);
        let (mut at_ns, mut draw) = (times.first_ns(), 2);
        while at_ns < until_ns {
            is_on = !is_on;
            changes.push((at_ns, if is_on { 1 } else { -1 }));
            at_ns = at_ns.saturating_add(times.time_ns(draw));
            draw += 1;
        }
    }
    changes.sort_unstable();
    let factor = |on: i64| 2.0 * on as f64 / f64::from(sources.sources);
    let mut factors = vec![(0, factor(on))];
    for (at_ns, change) in changes {
        on += change;
        match factors.last_mut() {
            Some(last) if last.0 == at_ns => last.1 = factor(on),
            _ => factors.push((at_ns, factor(on))),
        }
    }
    factors
}

/// The times that one source is on and off: Pareto distributed, with an exponent between 1 and 2.
struct OnOffTimes {
    stream: Stream,
    mean_ns: f64,
    exponent: f64,
    /// The shortest time.
    least_ns: f64,
}

impl OnOffTimes {
    fn new(sources: &BurstSources, stream: Stream) -> OnOffTimes {
        let (mean_ns, exponent) = (sources.on_ns as f64, 3.0 - 2.0 * sources.hurst);
        OnOffTimes { stream, mean_ns, exponent, least_ns: mean_ns * (exponent - 1.0) / exponent }
    }

    fn begins_on(&self) -> bool {
        rng::unit(self.stream.draw(0)) < 0.5
    }

    /// The rest of the period that is under way at the beginning. It is more often a long period than a short one: `P(>
    /// x)` is the integral of the law's tail from x on, divided by its mean.
    fn first_ns(&self) -> Nanos {
        let share = rng::unit(self.stream.draw(1));
        let left_ns = if share * self.exponent > 1.0 {
            self.mean_ns * (1.0 - share)
        } else {
            self.least_ns * libm::pow(self.exponent * share, -1.0 / (self.exponent - 1.0))
        };
        whole(left_ns)
    }

    fn time_ns(&self, draw: u64) -> Nanos {
        whole(self.least_ns * libm::pow(rng::unit(self.stream.draw(draw)), -1.0 / self.exponent))
    }
}

/// A time in whole nanoseconds, at least 1; the conversion saturates.
fn whole(time_ns: f64) -> Nanos {
    if time_ns < NEVER as f64 { (time_ns as Nanos).max(1) } else { NEVER }
}
