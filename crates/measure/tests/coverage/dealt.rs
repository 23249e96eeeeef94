//! A stream of requests dealt to workers and agents, and measured as the engine does it: recorders, slices, windows, intervals.

use std::collections::BTreeMap;

use pummel_logic::plan::Clock;
use pummel_logic::protocol::{Outcome, Verb};
use pummel_logic::time::{Nanos, SECOND};
use pummel_measure::certainty::Certainty;
use pummel_measure::histogram::rank;
use pummel_measure::interval::{Interval, add_part, take_whole};
use pummel_measure::interval_sum::IntervalSum;
use pummel_measure::measurement::{Keep, Measurement};
use pummel_measure::recorder::{Sample, Span};
use pummel_measure::uncertainty::{BASE_NS, Windows};

use crate::process::{Arrival, Traffic};

const TIMEOUT_NS: Nanos = 60 * SECOND;

/// A process of a run: its workers' slices, and the measurement that they become.
#[expect(clippy::vec_box, reason = "a worker hands its intervals over in boxes")]
struct Part {
    length_ns: Nanos,
    /// The slice that each worker writes to.
    workers: Vec<Box<Interval>>,
    /// Memory of slices that were taken.
    spares: Vec<Box<Interval>>,
    open: BTreeMap<u64, Box<Interval>>,
    sum: IntervalSum,
    measurement: Measurement,
    windows: Windows,
}

fn slice() -> Box<Interval> {
    Box::new(Interval::new([[Verb::Get]]))
}

impl Part {
    fn new(workers: usize, length_ns: Nanos) -> Part {
        let begun = |_| {
            let mut slice = slice();
            slice.restart(0, 0);
            slice
        };
        Part {
            length_ns,
            workers: (0..workers).map(begun).collect(),
            spares: Vec::new(),
            open: BTreeMap::new(),
            sum: IntervalSum::new(SECOND, slice()),
            measurement: Measurement::new(["all".to_owned()], Clock::Kernel, TIMEOUT_NS),
            windows: Windows::new(BASE_NS),
        }
    }

    /// Lets a worker record a request, in the slice in which it ended; what ends later belongs to the last one.
    fn record(&mut self, worker: usize, (arrived, time_ns): Arrival) {
        let last = self.length_ns / BASE_NS - 1;
        let tick = ((arrived + time_ns) / BASE_NS).min(last);
        let own = &mut self.workers[worker];
        if tick > own.index {
            let mut next = self.spares.pop().unwrap_or_else(slice);
            next.restart(tick, tick * BASE_NS);
            let mut done = std::mem::replace(own, next);
            done.end_ns = (done.index + 1) * BASE_NS;
            add_part(&mut self.open, done, |spare| self.spares.push(spare));
            self.collect();
        }
        self.workers[worker].groups[0].record(&sample(arrived, time_ns));
    }

    /// Adds the slices that all workers are through with to the measurement.
    fn collect(&mut self) {
        let end = self.workers.iter().map(|slice| slice.index).min().unwrap_or(u64::MAX);
        let Part { open, spares, windows, sum, measurement, .. } = self;
        while let Some(mut whole) = take_whole(open, end, BASE_NS, |spare| spares.push(spare)) {
            windows.add(&mut whole);
            sum.add(&mut whole, |interval| measurement.add(interval, Keep::Figures));
            spares.push(whole);
        }
    }

    fn finish(mut self) -> Measurement {
        for mut slice in std::mem::take(&mut self.workers) {
            slice.end_ns = (slice.index + 1) * BASE_NS;
            add_part(&mut self.open, slice, drop);
        }
        self.collect();
        let Part { mut measurement, mut sum, windows, .. } = self;
        sum.finish(|interval| measurement.add(interval, Keep::Figures));
        measurement.windows = Some(windows);
        measurement.measured_ns = self.length_ns;
        measurement.answered_ns = self.length_ns;
        measurement
    }
}

/// The measurement of a run whose requests are dealt in turn to `workers` workers of each of `agents` agents.
pub fn measurement(traffic: &Traffic, seed: u64, agents: usize, workers: usize) -> Measurement {
    let mut arrivals: Vec<Arrival> = Vec::new();
    traffic.run(seed, |arrival| arrivals.push(arrival));
    measured(arrivals, traffic.length_ns, agents, workers)
}

/// The measurement of a run of `length_ns` with these requests, which are dealt in turn to `workers` workers of each of
/// `agents` agents.
pub fn measured(mut arrivals: Vec<Arrival>, length_ns: Nanos, agents: usize, workers: usize) -> Measurement {
    let mut parts: Vec<Part> = (0..agents).map(|_| Part::new(workers, length_ns)).collect();
    // Requests are recorded when they end.
    arrivals.sort_by_key(|(arrived, time_ns)| arrived + time_ns);
    for (turn, arrival) in arrivals.into_iter().enumerate() {
        parts[turn % agents].record(turn / agents % workers, arrival);
    }
    let whole = parts.into_iter().map(Part::finish).reduce(|mut whole, part| {
        whole.merge(&part);
        whole
    });
    whole.expect("there is a part")
}

/// Passes the slices of a run of `length_ns` with these requests on, as one worker hands them over.
pub fn slices(requests: &[Arrival], length_ns: Nanos, mut take: impl FnMut(&mut Interval)) {
    let mut ended: Vec<Arrival> = requests.to_vec();
    ended.sort_by_key(|(arrived, time_ns)| arrived + time_ns);
    let mut ended = ended.into_iter().peekable();
    let mut tick = slice();
    for index in 0..length_ns / BASE_NS {
        tick.restart(index, index * BASE_NS);
        tick.end_ns = (index + 1) * BASE_NS;
        while let Some((arrived, time_ns)) =
            ended.next_if(|(arrived, time_ns)| arrived + time_ns < tick.end_ns)
        {
            tick.groups[0].record(&sample(arrived, time_ns));
        }
        take(&mut tick);
    }
}

/// A get that came at this moment and took this time.
fn sample(arrived: Nanos, time_ns: Nanos) -> Sample {
    Sample {
        verb: Verb::Get,
        outcome: Outcome::Hit,
        keys: 1,
        hits: 1,
        due: arrived,
        ready: arrived,
        sent: arrived,
        arrived: arrived + time_ns,
        read: arrived + time_ns,
        noreply: false,
    }
}

/// The certainty of such a run.
pub fn certainty(traffic: &Traffic, seed: u64, agents: usize, workers: usize) -> Certainty {
    certainty_of(&measurement(traffic, seed, agents, workers))
}

/// The quantile of the responses of a run, in nanoseconds.
pub fn quantile_of(measurement: &Measurement, quantile: f64) -> f64 {
    let all = measurement.ops().all();
    let fine = all.times.of(Span::Response);
    fine.at_rank(rank(quantile, fine.count())).unwrap_or(0) as f64
}

/// The certainty of a run.
pub fn certainty_of(measurement: &Measurement) -> Certainty {
    // A summary gives none of a run that it takes for unsteady, which some of these are by chance.
    let certainty = Certainty::of(measurement, &measurement.ops().all(), |_, _| true);
    certainty.expect("the run is long enough")
}
