//! Comparisons of runs on machines that are simulated: tests of how often two equal sides are called different, and a
//! change is found.

use pummel_logic::rng::{Stream, unit};
use pummel_measure::compare::{ALPHA, Change, Design, change_of, second_side_first};

use crate::asked;

/// Way in which the runs of a machine differ from each other, in the relative size of a figure.
#[derive(Clone, Copy, Debug)]
enum Machine {
    /// Independent runs, with this standard deviation.
    Independent(f64),
    /// A random walk with steps of this size, and 1 % of each run for itself.
    Drifting(f64),
    /// Each run is in one of two states that are this far apart, and 1 % for itself.
    TwoStates(f64),
    /// Each stretch of eight runs may be twice as slow, and 1 % of each run for itself.
    SlowHours,
    /// Each run is slower than the one before it by this share, and 1 % for itself.
    Slowing(f64),
}

/// Draws of one experiment, in order.
struct Chance {
    stream: Stream,
    drawn: u64,
}

impl Chance {
    fn of(experiment: u64) -> Chance {
        Chance { stream: Stream::from_seed(experiment), drawn: 0 }
    }

    fn uniform(&mut self) -> f64 {
        self.drawn += 1;
        unit(self.stream.draw(self.drawn))
    }

    /// A standard normal number, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.uniform()));
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }
}

/// The logarithms by which runs that follow each other differ from the level.
fn paces(machine: Machine, runs: usize, chance: &mut Chance) -> Vec<f64> {
    let mut level = 0.0;
    let mut of_run = |run: usize| match machine {
        Machine::Independent(sd) => sd * chance.normal(),
        Machine::Drifting(step) => {
            level += step * chance.normal();
            level + 0.01 * chance.normal()
        }
        Machine::TwoStates(apart) => {
            let state = if chance.uniform() < 0.5 { apart } else { 0.0 };
            state + 0.01 * chance.normal()
        }
        Machine::SlowHours => {
            if run.is_multiple_of(8) {
                level = if chance.uniform() < 0.5 { libm::log(2.0) } else { 0.0 };
            }
            level + 0.01 * chance.normal()
        }
        Machine::Slowing(step) => run as f64 * step + 0.01 * chance.normal(),
    };
    (0..runs).map(&mut of_run).collect()
}

/// The change that pairs in drawn order show on a machine, where side B is slower by `planted`.
fn by_pairs(machine: Machine, pairs: usize, planted: f64, experiment: u64) -> Change {
    let mut chance = Chance::of(experiment);
    let paces = paces(machine, 2 * pairs, &mut chance);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for (pair, two) in paces.chunks(2).enumerate() {
        let (one, other) = if second_side_first(experiment, pair as u64) { (1, 0) } else { (0, 1) };
        first.push(100.0 * libm::exp(two[one]));
        second.push(100.0 * libm::exp(two[other]) * (1.0 + planted));
    }
    change_of(Design::Paired, &first, &second).expect("every side has runs")
}

/// The change that all runs of A and then all of B show on a machine.
fn one_after_the_other(machine: Machine, runs: usize, experiment: u64) -> Change {
    let mut chance = Chance::of(experiment);
    let values: Vec<f64> =
        paces(machine, 2 * runs, &mut chance).into_iter().map(|pace| 100.0 * libm::exp(pace)).collect();
    change_of(Design::Apart, &values[..runs], &values[runs..]).expect("every side has runs")
}

fn is_different(change: &Change) -> bool {
    change.p.is_some_and(|p| p <= ALPHA)
}

/// Experiments of each kind, in the tests.
const EXPERIMENTS: u64 = 400;

fn experiments() -> u64 {
    asked("PUMMEL_COVERAGE_EXPERIMENTS", EXPERIMENTS)
}

const MACHINES: [Machine; 6] = [
    Machine::Independent(0.01),
    Machine::Independent(0.05),
    Machine::Drifting(0.03),
    Machine::TwoStates(0.16),
    Machine::SlowHours,
    Machine::Slowing(0.02),
];

fn share(experiments: u64, holds: impl Fn(u64) -> bool) -> f64 {
    (0..experiments).filter(|experiment| holds(*experiment)).count() as f64 / experiments as f64
}

#[test]
fn equal_sides_are_seldom_called_different_on_any_machine() {
    // 5 % are expected at most; 8.3 % is three standard deviations of 400 experiments above it.
    for machine in MACHINES {
        let called = [6, 10, 20]
            .map(|pairs| share(experiments(), |seed| is_different(&by_pairs(machine, pairs, 0.0, seed))));
        println!(
            "equal: {} called different in {} by 6, 10 and 20 pairs",
            format!("{machine:?}").to_lowercase(),
            called.map(|share| format!("{:.1} %", share * 100.0)).join(", ")
        );
        assert!(called.iter().all(|share| *share <= 0.083), "{machine:?}: {called:?}");
    }
}

#[test]
fn of_a_hundred_comparisons_of_ten_equal_pairs_at_most_ten_say_different() {
    for machine in MACHINES {
        let called = (1_000..1_100).filter(|seed| is_different(&by_pairs(machine, 10, 0.0, *seed))).count();
        assert!(called <= 10, "{machine:?}: {called}");
    }
}

#[test]
fn a_planted_change_is_found_where_runs_differ_by_less() {
    // Found of 100 by simulation: 63, 98 and 100 for 2 %, and 20, 51 and 83 for 1 %, where runs differ by 1 %.
    for (planted, pairs, least, most) in [
        (0.02, 6, 0.52, 0.74),
        (0.02, 10, 0.93, 1.0),
        (0.02, 20, 0.99, 1.0),
        (0.01, 6, 0.12, 0.28),
        (0.01, 10, 0.41, 0.61),
        (0.01, 20, 0.75, 0.91),
    ] {
        let found = share(EXPERIMENTS, |seed| {
            is_different(&by_pairs(Machine::Independent(0.01), pairs, planted, seed))
        });
        assert!((least..=most).contains(&found), "{planted} by {pairs} pairs: {found}");
    }
}

#[test]
fn the_interval_contains_the_planted_change() {
    let truth = libm::log(1.02);
    for machine in MACHINES {
        for pairs in [6, 10, 20] {
            let covered = share(experiments(), |seed| {
                let (low, high) = by_pairs(machine, pairs, 0.02, seed).interval.expect("six pairs or more");
                low <= truth && truth <= high
            });
            assert!(covered >= 0.917, "{machine:?}, {pairs} pairs: {covered}");
        }
    }
}

#[test]
fn what_would_have_been_seen_is_seen_in_four_of_five_experiments() {
    let mean = (0..EXPERIMENTS)
        .filter_map(|seed| by_pairs(Machine::Independent(0.01), 10, 0.0, seed).seen)
        .sum::<f64>()
        / EXPERIMENTS as f64;
    let found =
        share(EXPERIMENTS, |seed| is_different(&by_pairs(Machine::Independent(0.01), 10, mean, seed)));
    assert!((0.72..=0.9).contains(&found), "{mean}: {found}");
}

#[test]
fn a_drift_fools_all_of_one_side_after_the_other_and_not_pairs() {
    let fooled =
        share(EXPERIMENTS, |seed| is_different(&one_after_the_other(Machine::Drifting(0.03), 10, seed)));
    assert!(fooled >= 0.5, "{fooled}");
    let slowing = share(100, |seed| is_different(&one_after_the_other(Machine::Slowing(0.02), 10, seed)));
    assert_eq!(slowing, 1.0);
    let pairs = share(EXPERIMENTS, |seed| is_different(&by_pairs(Machine::Drifting(0.03), 10, 0.0, seed)));
    assert!(pairs <= 0.083, "{pairs}");
}
