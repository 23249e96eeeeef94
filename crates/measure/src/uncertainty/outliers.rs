//! The processes of a distributed run whose response times were not those of the rest.

use super::batches::{Batches, Bounds, Upper};
use super::special::Confidence;
use super::windows::Windows;
use crate::agents::Deviation;
use crate::figures::{QUANTILES, Unanswered};
use crate::histogram::{Histogram, SparseHistogram, rank};
use crate::measurement::Measurement;
use crate::recorder::{Counts, Span};
use pummel_logic::merge::Merge as _;
use pummel_logic::time::Nanos;

/// The quantiles that processes are compared at, by their names.
const COMPARED: [&str; 2] = ["p50", "p99"];

/// The measurement of one process, as far as it is compared with the others: counts and responses, without memory for
/// empty cells, since there may be very many processes.
#[derive(Clone, Debug)]
pub struct ProcessTimes<H = SparseHistogram> {
    measured_ns: Nanos,
    timeout_ns: Nanos,
    windows: Windows,
    counts: Counts,
    responses: H,
}

/// The measurement of one or several processes.
type Together = ProcessTimes<Histogram>;

impl ProcessTimes {
    /// Takes what is compared from the measurement of a process; `None` where it has no windows.
    pub fn of(measurement: &Measurement) -> Option<ProcessTimes> {
        let windows = measurement.windows.as_ref()?.responses();
        let all = measurement.ops().all();
        let responses = all.times.of(Span::Response).to_sparse();
        Some(ProcessTimes {
            measured_ns: measurement.measured_ns,
            timeout_ns: measurement.timeout_ns,
            windows,
            counts: all.counts,
            responses,
        })
    }
}

impl Together {
    fn unpacked(process: &ProcessTimes) -> Together {
        let ProcessTimes { measured_ns, timeout_ns, counts, .. } = *process;
        let responses = Histogram::copy_of(&process.responses);
        Together { measured_ns, timeout_ns, windows: process.windows.clone(), counts, responses }
    }

    fn with(before: Option<Together>, processes: &[ProcessTimes]) -> Option<Together> {
        processes.iter().fold(before, |sum, process| match sum {
            None => Some(Together::unpacked(process)),
            Some(mut sum) => {
                sum.measured_ns = sum.measured_ns.max(process.measured_ns);
                sum.windows.merge(&process.windows);
                sum.counts.merge(&process.counts);
                sum.responses.merge_sparse(&process.responses);
                Some(sum)
            }
        })
    }

    /// The 99 % intervals of the compared quantiles with the quantiles themselves.
    fn intervals(&self) -> [Option<(Bounds, Nanos)>; COMPARED.len()] {
        let batches = Batches::of(&self.windows, self.measured_ns, |_, _| true);
        let fine = &self.responses;
        let unanswered = Unanswered::of(&self.counts, Span::Response, fine, self.timeout_ns).total();
        COMPARED.map(|name| {
            let (_, quantile) = QUANTILES.into_iter().find(|(known, _)| *known == name)?;
            let of = (fine, unanswered);
            let bounds = batches.as_ref()?.quantile_at(Confidence::P99, Span::Response, of, quantile)?;
            Some((bounds, fine.at_rank(rank(quantile, fine.count() + unanswered))?))
        })
    }
}

/// The difference of the response times of each process from those of all others together: at the first compared
/// quantile at which the two 99 % intervals do not meet. `None` where they meet, and where one of them is not known.
pub fn deviations(processes: &[ProcessTimes]) -> Vec<Option<Deviation>> {
    let mut found = Vec::with_capacity(processes.len());
    compare(processes, None, &mut found);
    found
}

/// Compares each of some processes with all others; `outside` has those that are not among them. Either half is outside of the other
/// one, so that of n processes no more sums than log2 n are held at a time.
fn compare(processes: &[ProcessTimes], outside: Option<Together>, found: &mut Vec<Option<Deviation>>) {
    match processes {
        [] => {}
        [process] => found.push(outside.and_then(|others| deviation(process, &others))),
        _ => {
            let (first, second) = processes.split_at(processes.len() / 2);
            compare(first, Together::with(outside.clone(), second), found);
            compare(second, Together::with(outside, first), found);
        }
    }
}

/// Difference of a process from the others together.
fn deviation(process: &ProcessTimes, others: &Together) -> Option<Deviation> {
    let pairs = Together::unpacked(process).intervals().into_iter().zip(others.intervals());
    pairs.zip(COMPARED).find_map(|((own, others), quantile)| {
        let ((own, own_ns), (others, others_ns)) = (own?, others?);
        let is_apart = is_below(&own, &others) || is_below(&others, &own);
        is_apart.then(|| Deviation { quantile: quantile.to_owned(), own_ns, others_ns })
    })
}

/// Whether an interval ends before another begins.
fn is_below(one: &Bounds, other: &Bounds) -> bool {
    matches!((one.high, other.low), (Upper::Known(high), Some(low)) if high < low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{OpRecord, Times};
    use crate::uncertainty::simulated::{Run, queue};
    use pummel_logic::protocol::Verb;
    use pummel_logic::time::{MICROSECOND, SECOND};

    fn process(seed: u64, service_us: f64) -> ProcessTimes {
        let requests = queue(seed, 0.4, service_us * MICROSECOND as f64, 4 * SECOND);
        ProcessTimes::of(&Run::of(4 * SECOND, requests).measurement()).expect("it has windows")
    }

    #[test]
    fn a_process_that_is_slower_than_the_rest_is_named_with_its_share() {
        let processes: Vec<ProcessTimes> =
            (0..4).map(|seed| process(seed, if seed == 2 { 60.0 } else { 40.0 })).collect();
        let found = deviations(&processes);
        let slow = found[2].as_ref().expect("it is found");
        assert_eq!(slow.quantile, "p50");
        let ratio = slow.own_ns as f64 / slow.others_ns as f64;
        assert!((1.4..1.6).contains(&ratio), "{slow:?}");
    }

    #[test]
    fn equal_processes_are_seldom_named() {
        let named = (0..10)
            .flat_map(|round| {
                let processes: Vec<ProcessTimes> =
                    (0..3).map(|seed| process(3 * round + seed, 40.0)).collect();
                deviations(&processes)
            })
            .flatten()
            .count();
        assert!(named <= 1, "{named} of 30");
    }

    #[test]
    fn of_two_hundred_processes_the_slow_ones_are_named_and_each_takes_little_memory() {
        let equal: Vec<ProcessTimes> = (0..5).map(|seed| process(seed, 40.0)).collect();
        let slow = process(9, 60.0);
        let all: Vec<ProcessTimes> = (0..200)
            .map(|at| if at % 67 == 5 { slow.clone() } else { equal[at % equal.len()].clone() })
            .collect();
        let found = deviations(&all);
        let named: Vec<usize> = (0..200).filter(|at| found[*at].is_some()).collect();
        for at in [5, 72, 139] {
            assert!(named.contains(&at), "{at} is not among {named:?}");
        }
        // Each of the 200 is as sure as in the comparison of a few.
        assert!(named.iter().filter(|at| *at % 67 != 5).count() <= 40, "{named:?}");
        let kept = slow.windows.bytes() + serde_json::to_vec(&slow.responses).expect("it is JSON").len();
        assert!((1_000..400_000).contains(&kept), "{kept} bytes");
    }

    #[test]
    fn a_process_whose_histogram_has_one_digit_is_compared_too() {
        let mut hdr = hdrhistogram::Histogram::<u64>::new(1).expect("the library allows one digit");
        [100, 5_000, 70_000_000_000].into_iter().for_each(|ns| hdr.record(ns).expect("it grows"));
        let times = Times::of_histograms(std::array::from_fn(|_| Histogram::from_hdr(&hdr)));
        let requests = queue(7, 0.4, 40.0 * MICROSECOND as f64, 4 * SECOND);
        let mut measurement = Run::of(4 * SECOND, requests).measurement();
        let op = OpRecord { times, ..OpRecord::default() };
        measurement.groups[0].ops.0[Verb::Get as usize] = Some(Box::new(op));
        let coarse = ProcessTimes::of(&measurement).expect("it is a histogram");
        assert_eq!(deviations(&[coarse, process(1, 40.0), process(2, 40.0)]).len(), 3);
    }

    #[test]
    fn one_process_alone_is_compared_with_nothing() {
        assert_eq!(deviations(&[process(1, 40.0)]), [None]);
        assert!(deviations(&[]).is_empty());
    }
}
