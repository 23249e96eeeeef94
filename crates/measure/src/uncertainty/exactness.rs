//! Tests of the memory of windows, and of results that do not depend on how requests are dealt to workers and agents.

use super::simulated::{queue, sample};
use super::{BASE_NS, KEPT, Window, Windows};
use crate::certainty::Certainty;
use crate::interval::Interval;
use crate::measurement::{Keep, Measurement};
use pummel_logic::plan::Clock;
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MICROSECOND, Nanos, SECOND};

const LENGTH_NS: Nanos = 5 * SECOND;

/// The measurement of a process whose workers each record their part of the requests; the parts of a slice are merged, and the whole
/// slice is added to the windows.
fn process(workers: &[Vec<(Nanos, Option<Nanos>)>]) -> Measurement {
    let mut measurement = Measurement::new(["clients".to_owned()], Clock::Kernel, SECOND);
    let mut windows = Windows::new(BASE_NS);
    for tick in 0..LENGTH_NS / BASE_NS {
        let mut slices = workers.iter().map(|requests| {
            let mut slice = Interval::new([[Verb::Get]]);
            slice.restart(tick, tick * BASE_NS);
            slice.end_ns = (tick + 1) * BASE_NS;
            let ended = requests.iter().filter(|(end_ns, _)| end_ns / BASE_NS == tick);
            ended.for_each(|(_, time_ns)| slice.groups[0].record(&sample(*time_ns)));
            slice
        });
        let mut whole = slices.next().expect("there are workers");
        slices.for_each(|mut part| whole.merge(&mut part));
        windows.add(&mut whole);
        measurement.add(&mut whole, Keep::Figures);
    }
    measurement.measured_ns = LENGTH_NS;
    measurement.windows = Some(windows);
    measurement
}

/// Requests that are dealt to so many in turn.
fn dealt(requests: &[(Nanos, Option<Nanos>)], to: usize) -> Vec<Vec<(Nanos, Option<Nanos>)>> {
    (0..to).map(|number| requests.iter().skip(number).step_by(to).copied().collect()).collect()
}

#[test]
fn bounds_are_the_same_to_the_bit_for_any_number_of_workers_and_agents() {
    let service_ns = 200.0 * MICROSECOND as f64;
    let mut requests = queue(9, 0.7, service_ns, LENGTH_NS);
    requests.retain(|(end_ns, _)| *end_ns < LENGTH_NS);
    let certainty = |measurement: &Measurement| {
        let all = measurement.ops().all();
        Certainty::of(measurement, &all, |_, _| true).expect("it is known")
    };
    let alone = certainty(&process(&dealt(&requests, 1)));
    assert!(alone.rate.is_some() && alone.times[0].quantiles[3].is_some());
    for workers in [3, 8] {
        assert_eq!(certainty(&process(&dealt(&requests, workers))), alone, "{workers} workers");
    }
    let agents = dealt(&requests, 2).into_iter().map(|part| process(&dealt(&part, 3)));
    let mut together = Measurement::new(["clients".to_owned()], Clock::Kernel, SECOND);
    agents.for_each(|agent| together.merge(&agent));
    assert_eq!(certainty(&together), alone, "two agents");
}

#[test]
fn windows_of_two_operations_take_less_than_a_megabyte() {
    let mut windows = Windows::new(BASE_NS);
    let mut slice = Interval::new([[Verb::Get, Verb::Set]]);
    // Until just before the windows are added together, when there are the most of them.
    for tick in 0..128 {
        slice.restart(tick, tick * BASE_NS);
        slice.end_ns = (tick + 1) * BASE_NS;
        // From 20 us to 20 ms, a thousand times as much.
        for step in 0..400u64 {
            let time_ns = (20_000.0 * libm::pow(1_000.0, step as f64 / 399.0)) as Nanos;
            for verb in [Verb::Get, Verb::Set] {
                slice.groups[0].record(&crate::recorder::Sample { verb, ..sample(Some(time_ns)) });
            }
        }
        windows.add(&mut slice);
    }
    assert_eq!(windows.iter().len(), 128);
    let ops = windows.iter().flat_map(Window::ops);
    let bytes: usize =
        ops.map(|op| size_of_val(op) + op.times.iter().map(|times| times.cells.bytes()).sum::<usize>()).sum();
    assert!((300_000..1_000_000).contains(&bytes), "{bytes} bytes for {} spans", KEPT.len());
}
