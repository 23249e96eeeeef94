//! Simulated runs, without sockets and clocks, for the tests of intervals and steadiness.

use super::{BASE_NS, Batches, Bounds, Windows};
use crate::interval::Interval;
use crate::measurement::Measurement;
use crate::recorder::{Ops, Sample, Span};
use pummel_logic::merge::Merge as _;
use pummel_logic::plan::Clock;
use pummel_logic::protocol::{Fault, Outcome, Verb};
use pummel_logic::rng::{Stream, unit};
use pummel_logic::time::{Nanos, SECOND};

/// A run whose requests end at moments and have times, both in nanoseconds; `None` for a request without an answer.
pub struct Run {
    pub windows: Windows,
    pub length_ns: Nanos,
    pub ops: Ops,
}

impl Run {
    pub fn of(length_ns: Nanos, requests: impl IntoIterator<Item = (Nanos, Option<Nanos>)>) -> Run {
        let mut run = Run { windows: Windows::new(BASE_NS), length_ns, ops: Ops::default() };
        slices(length_ns, requests, |slice| {
            run.windows.add(slice);
            run.ops.merge(slice.groups[0].ops());
        });
        run
    }

    /// The run as the measurement of a plan with one group.
    pub fn measurement(&self) -> Measurement {
        let mut measurement = Measurement::new(["clients".to_owned()], Clock::Kernel, SECOND);
        measurement.measured_ns = self.length_ns;
        measurement.groups[0].ops = self.ops.clone();
        measurement.windows = Some(self.windows.clone());
        measurement
    }

    pub fn batches(&self) -> Option<Batches> {
        Batches::of(&self.windows, self.length_ns, |_, _| true)
    }

    pub fn bounds(&self, quantile: f64) -> Option<Bounds> {
        let all = self.ops.all();
        let batches = self.batches()?;
        batches.quantile(Span::Response, all.times.of(Span::Response), all.counts.unanswered(), quantile)
    }
}

/// Passes the slices of 100 ms of a run on, in which requests end at moments and have times, as [`Run::of`] takes them.
pub fn slices(
    length_ns: Nanos,
    requests: impl IntoIterator<Item = (Nanos, Option<Nanos>)>,
    mut emit: impl FnMut(&mut Interval),
) {
    let ticks = length_ns / BASE_NS;
    let mut times: Vec<Vec<Option<Nanos>>> = vec![Vec::new(); ticks as usize];
    for (end_ns, time_ns) in requests {
        times[(end_ns / BASE_NS).min(ticks - 1) as usize].push(time_ns);
    }
    let mut slice = Interval::new([[Verb::Get]]);
    for (tick, times) in (0..).zip(times) {
        slice.restart(tick, tick * BASE_NS);
        slice.end_ns = (tick + 1) * BASE_NS;
        for time_ns in times {
            slice.groups[0].record(&sample(time_ns));
        }
        emit(&mut slice);
    }
}

/// A get that took this long, or that was not answered in time.
pub fn sample(time_ns: Option<Nanos>) -> Sample {
    match time_ns {
        Some(time_ns) => Sample::hit(0, time_ns),
        None => Sample { outcome: Outcome::Error(Fault::Timeout), ..Sample::hit(0, 0) },
    }
}

/// The requests of a simulated queue of [`changing_queue`] whose service does not change.
pub fn queue(seed: u64, load: f64, service_ns: f64, length_ns: Nanos) -> Vec<(Nanos, Option<Nanos>)> {
    changing_queue(seed, load, service_ns, length_ns, |_| 1.0)
}

/// The requests of one server that serves for exponential times with mean `service_ns` times `level` at the moment of the
/// arrival, in seconds, and is asked, in a Poisson process, so often that this share of its time is used at level 1. At that level the
/// time of a request in the queue and in service is exponential with mean service / (1 - load).
pub fn changing_queue(
    seed: u64,
    load: f64,
    service_ns: f64,
    length_ns: Nanos,
    level: impl Fn(f64) -> f64,
) -> Vec<(Nanos, Option<Nanos>)> {
    let draws = Stream::from_seed(seed);
    let exponential = |i: u64| -libm::log(1.0 - unit(draws.draw(i)));
    let begin = -200.0 * service_ns / (1.0 - load);
    let (mut arrives, mut free) = (begin, begin);
    let mut requests = Vec::new();
    for i in 0.. {
        arrives += exponential(2 * i) * service_ns / load;
        let service = exponential(2 * i + 1) * service_ns * level(arrives.max(0.0) / SECOND as f64);
        free = free.max(arrives) + service;
        if arrives >= length_ns as f64 {
            return requests;
        }
        if arrives >= 0.0 {
            requests.push((free as Nanos, Some((free - arrives) as Nanos)));
        }
    }
    unreachable!("time goes on")
}
