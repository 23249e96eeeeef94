//! The processes of a distributed run whose response times were not those of the rest.

use super::batches::{Batches, Bounds, Upper};
use super::special::Confidence;
use super::windows::Windows;
use crate::measure::agents::Deviation;
use crate::measure::figures::{QUANTILES, Unanswered};
use crate::measure::histogram::rank;
use crate::measure::measurement::Measurement;
use crate::measure::recorder::{OpRecord, Span};
use crate::time::Nanos;

/// The quantiles that processes are compared at, by their names.
const COMPARED: [&str; 2] = ["p50", "p99"];

/// What one process measured, as far as it is compared with the others.
#[derive(Clone, Debug)]
pub struct ProcessTimes {
    measured_ns: Nanos,
    timeout_ns: Nanos,
    windows: Windows,
    all: OpRecord,
}

impl ProcessTimes {
    /// What a process measured; `None` where it has no windows.
    pub fn of(measurement: &Measurement) -> Option<ProcessTimes> {
        Some(ProcessTimes {
            measured_ns: measurement.measured_ns,
            timeout_ns: measurement.timeout_ns,
            windows: measurement.windows.clone()?,
            all: measurement.ops().all(),
        })
    }

    fn merge(&mut self, other: &ProcessTimes) {
        self.measured_ns = self.measured_ns.max(other.measured_ns);
        self.windows.merge(&other.windows);
        self.all.merge(&other.all);
    }

    /// The 99 % intervals of the compared quantiles with the quantiles themselves.
    fn intervals(&self) -> [Option<(Bounds, Nanos)>; COMPARED.len()] {
        let batches = Batches::of(&self.windows, self.measured_ns, |_, _| true);
        let fine = self.all.times.of(Span::Response);
        let unanswered = Unanswered::of(&self.all.counts, Span::Response, fine, self.timeout_ns).total();
        COMPARED.map(|name| {
            let (_, quantile) = QUANTILES.into_iter().find(|(known, _)| *known == name)?;
            let of = (fine, unanswered);
            let bounds = batches.as_ref()?.quantile_at(Confidence::P99, Span::Response, of, quantile)?;
            Some((bounds, fine.at_rank(rank(quantile, fine.count() + unanswered))?))
        })
    }
}

/// For each process, how its response times differ from those of all others together: at the first compared quantile at which the
/// two 99 % intervals do not meet. `None` where they meet, and where one of them is not known.
pub fn deviations(processes: &[ProcessTimes]) -> Vec<Option<Deviation>> {
    // The others of a process are those before it and those after it: two merges for each, however many there are.
    let merged = |parts: &mut dyn Iterator<Item = &ProcessTimes>| {
        let mut sums: Vec<Option<ProcessTimes>> = vec![None];
        for part in parts {
            let mut sum = sums.last().cloned().flatten();
            match &mut sum {
                Some(sum) => sum.merge(part),
                none => *none = Some(part.clone()),
            }
            sums.push(sum);
        }
        sums
    };
    let before = merged(&mut processes.iter());
    let after = merged(&mut processes.iter().rev());
    let others = |at: usize| {
        let (one, other) = (before[at].clone(), &after[processes.len() - 1 - at]);
        match (one, other) {
            (Some(mut one), Some(other)) => {
                one.merge(other);
                Some(one)
            }
            (one, other) => one.or_else(|| other.clone()),
        }
    };
    let deviation = |(at, process): (usize, &ProcessTimes)| {
        let pairs = process.intervals().into_iter().zip(others(at)?.intervals());
        pairs.zip(COMPARED).find_map(|((own, others), quantile)| {
            let ((own, own_ns), (others, others_ns)) = (own?, others?);
            let is_apart = is_below(&own, &others) || is_below(&others, &own);
            is_apart.then(|| Deviation { quantile: quantile.to_owned(), own_ns, others_ns })
        })
    };
    processes.iter().enumerate().map(deviation).collect()
}

/// Whether an interval ends before another begins.
fn is_below(one: &Bounds, other: &Bounds) -> bool {
    matches!((one.high, other.low), (Upper::Known(high), Some(low)) if high < low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::uncertainty::simulated::{Run, queue};
    use crate::time::{MICROSECOND, SECOND};

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
    fn one_process_alone_is_compared_with_nothing() {
        assert_eq!(deviations(&[process(1, 40.0)]), [None]);
        assert!(deviations(&[]).is_empty());
    }
}
