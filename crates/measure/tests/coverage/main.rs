//! Coverage: the share of runs whose printed intervals contain the truth, for requests whose times have a known
//! distribution.
//!
//! The tests make 100 runs of 20,000 requests of each process. `cargo xtask coverage` makes 1,000 runs of 200,000 requests
//! through the same functions, and reads the lines that begin with `coverage:`.

mod changing;
mod compare;
mod dealt;
mod process;
mod search;

use pummel_logic::time::SECOND;
use pummel_measure::figures::QUANTILES;
use pummel_measure::recorder::Span;
use pummel_measure::uncertainty::{Bounds, Upper};

use process::{PROCESSES, Process, Traffic};

/// The quantiles that are counted.
const COUNTED: [&str; 5] = ["p50", "p90", "p99", "p99.9", "p99.99"];

/// Greatest rounding of a value by histograms, as a share of it.
const ROUNDING: f64 = 0.001;

/// Counts of runs whose intervals of one quantile contained the truth.
#[derive(Clone, Copy, Debug, Default)]
struct Covered {
    /// Runs with an interval.
    runs: u64,
    /// Runs whose interval contained the truth.
    held: u64,
    /// Runs whose tail was not known from above.
    open: u64,
}

impl Covered {
    fn count(&mut self, bounds: &Bounds, truth_ns: f64) {
        let is_above = bounds.low.is_none_or(|low| low as f64 <= truth_ns * (1.0 + ROUNDING));
        let is_below = match bounds.high {
            Upper::Known(high) => high as f64 >= truth_ns * (1.0 - ROUNDING),
            Upper::Unanswered | Upper::Open => true,
        };
        self.runs += 1;
        self.held += u64::from(is_above && is_below);
        self.open += u64::from(bounds.high == Upper::Open);
    }
}

/// Makes `runs` runs and counts how often each quantile's interval contained the truth, in the order of [`COUNTED`].
fn covered(traffic: &Traffic, runs: u64) -> [Covered; COUNTED.len()] {
    let mut all = [Covered::default(); COUNTED.len()];
    for seed in 0..runs {
        let certainty = dealt::certainty(traffic, seed, 1, 1);
        let times = certainty.of_span(Span::Response).expect("windows keep responses");
        for (name, bounds) in times.named() {
            let Some(at) = COUNTED.iter().position(|counted| *counted == name) else { continue };
            let (_, quantile) = QUANTILES.iter().find(|(known, _)| *known == name).expect("a known quantile");
            all[at].count(&bounds, traffic.quantile(*quantile));
        }
    }
    all
}

/// A number from the environment, for `cargo xtask coverage`.
fn asked(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Counts the runs of one process, prints a line of its figures, and fails where too few intervals held.
fn check(number: usize) {
    let (name, process) = PROCESSES[number];
    let runs = asked("PUMMEL_COVERAGE_RUNS", 100);
    let requests = asked("PUMMEL_COVERAGE_REQUESTS", 20_000);
    let traffic = Traffic { process, rate: requests as f64 / 10.0, length_ns: 10 * SECOND };
    let all = covered(&traffic, runs);
    let figures: Vec<String> = COUNTED
        .iter()
        .zip(&all)
        .map(|(name, one)| format!("{name}={}/{}/{}", one.held, one.runs, one.open))
        .collect();
    println!("coverage: process={} {}", name.replace(' ', "_"), figures.join(" "));
    for (quantile, one) in COUNTED.iter().zip(&all).filter(|(_, one)| one.runs == runs) {
        let least = least_held(process, quantile, runs);
        assert!(
            one.held >= least,
            "{name} {quantile}: {} of {} intervals contain the truth, at least {least} have to",
            one.held,
            one.runs
        );
    }
}

/// The least number of intervals that have to hold. Of 1,000 runs: 930 of every quantile, and 900 of freezes that 5 % of the
/// runs never see. Fewer runs get room for chance: three standard deviations.
fn least_held(process: Process, quantile: &str, runs: u64) -> u64 {
    let rarely_frozen = matches!(process, Process::Frozen(_, between_s) if between_s > 2.0);
    let share = if rarely_frozen && !matches!(quantile, "p50" | "p90") { 0.90 } else { 0.93 };
    let runs = runs as f64;
    let room = if runs >= 1_000.0 { 0.0 } else { 3.0 * libm::sqrt(share * (1.0 - share) * runs) };
    (share * runs - room).floor() as u64
}

macro_rules! processes {
    ($($name:ident: $number:expr,)*) => {
        $(#[test]
        fn $name() {
            check($number);
        })*
    };
}

processes! {
    intervals_hold_for_a_queue_at_half_load: 0,
    intervals_hold_for_a_queue_at_four_fifths: 1,
    intervals_hold_for_a_queue_at_nine_tenths: 2,
    intervals_hold_for_a_queue_near_its_capacity: 3,
    intervals_hold_for_times_with_a_short_memory: 4,
    intervals_hold_for_times_with_a_long_memory: 5,
    intervals_hold_for_frequent_freezes: 6,
    intervals_hold_for_rare_freezes: 7,
}

#[test]
fn the_upper_ends_of_the_intervals_also_fail_sometimes() {
    // Intervals that always hold would be too wide: of 300 runs of a queue, some miss the truth.
    let traffic = Traffic { process: Process::Queue(0.5), rate: 2_000.0, length_ns: 4 * SECOND };
    let [median, ..] = covered(&traffic, 300);
    assert!((1..=36).contains(&(median.runs - median.held)), "{median:?}");
}

#[test]
fn the_bounds_are_identical_for_any_number_of_workers_and_agents() {
    for (name, process) in PROCESSES {
        let traffic = Traffic { process, rate: 2_000.0, length_ns: 20 * SECOND };
        let alone = dealt::certainty(&traffic, 5, 1, 1);
        for (agents, workers) in [(1, 3), (1, 8), (2, 1), (2, 4)] {
            let dealt = dealt::certainty(&traffic, 5, agents, workers);
            assert_eq!(dealt, alone, "{name}: {agents} agents with {workers} workers each");
        }
    }
}

#[test]
fn the_known_quantiles_are_those_of_the_processes() {
    for (name, process) in PROCESSES {
        let traffic = Traffic { process, rate: 1_000.0, length_ns: 300 * SECOND };
        let mut times: Vec<u64> = Vec::new();
        (0..2).for_each(|seed| traffic.run(seed, |(_, time_ns)| times.push(time_ns)));
        for quantile in [0.5, 0.9] {
            let truth = traffic.quantile(quantile);
            let below = times.iter().filter(|time_ns| (**time_ns as f64) < truth).count() as f64;
            let share = below / times.len() as f64;
            assert!((share - quantile).abs() < 0.05, "{name}: {share} lie below the quantile at {quantile}");
        }
    }
}
