//! A stream of requests dealt to workers and agents, and measured as the engine does it: recorders, slices, windows, intervals.

use std::collections::BTreeMap;

use pummel_logic::measure::certainty::Certainty;
use pummel_logic::measure::interval::{Interval, add_part, take_whole};
use pummel_logic::measure::interval_sum::IntervalSum;
use pummel_logic::measure::measurement::{Keep, Measurement};
use pummel_logic::measure::recorder::Sample;
use pummel_logic::measure::uncertainty::{BASE_NS, Windows};
use pummel_logic::plan::Clock;
use pummel_logic::protocol::{Outcome, Verb};
use pummel_logic::time::{Nanos, SECOND};

use crate::process::{Arrival, Traffic};

const TIMEOUT_NS: Nanos = 60 * SECOND;

/// One process of a run: its workers' slices, and the measurement that they become.
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
        self.workers[worker].groups[0].record(&Sample {
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
        });
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

/// The measurement of a run whose requests are dealt in turn to so many workers of each of so many agents.
pub fn measurement(traffic: &Traffic, seed: u64, agents: usize, workers: usize) -> Measurement {
    let mut parts: Vec<Part> = (0..agents).map(|_| Part::new(workers, traffic.length_ns)).collect();
    let mut arrivals: Vec<Arrival> = Vec::new();
    traffic.run(seed, |arrival| arrivals.push(arrival));
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

/// The certainty of such a run.
pub fn certainty(traffic: &Traffic, seed: u64, agents: usize, workers: usize) -> Certainty {
    let measurement = measurement(traffic, seed, agents, workers);
    // A summary gives none of a run that it takes for unsteady, which some of these are by chance.
    let certainty = Certainty::of(&measurement, &measurement.ops().all(), |_, _| true);
    certainty.expect("the run is long enough")
}
