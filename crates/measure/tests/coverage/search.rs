//! Searches for the knee of a queue with constant service, whose quantiles are known by Erlang's series.

use pummel_logic::plan::{Goal, Plan};
use pummel_logic::time::{Nanos, SECOND};
use pummel_measure::rate_search::{PlannedRun, RateSearch, RunFindings};
use pummel_measure::summary::Summary;

use crate::asked;
use crate::dealt;
use crate::process::{Process, Traffic};

/// The service time: the server can do 5,000 requests per second.
const SERVICE_S: f64 = 200e-6;

/// The rate up to which the goal is met: at a load of 0.7, p99 is 7.486 services (Erlang's series in 70 digits).
const KNEE: f64 = 3_500.0;

const LIMIT_NS: Nanos = 1_497_200;

/// Length of each run.
const RUN_NS: Nanos = 10 * SECOND;

fn goal() -> Goal {
    Goal { quantile: 0.99, limit_ns: LIMIT_NS }
}

/// Simulates a run: in closed loop it has nearly the capacity, and otherwise the times of the queue at that rate.
fn run(ask: PlannedRun, seed: u64) -> RunFindings {
    let Some(rate) = ask.rate else {
        return RunFindings { rate: 0.99 / SERVICE_S, carried: true, ..RunFindings::default() };
    };
    if rate >= 1.0 / SERVICE_S {
        return RunFindings { rate: 1.0 / SERVICE_S, ..RunFindings::default() };
    }
    let traffic = Traffic { process: Process::Steady(SERVICE_S), rate, length_ns: RUN_NS };
    let measurement = dealt::measurement(&traffic, seed, 1, 1);
    let plan = Plan { goals: vec![goal()], ..Plan::default() };
    let summary = Summary::of(&measurement, &plan);
    RunFindings { unsound: None, ..RunFindings::of(&measurement, &summary, true) }
}

#[test]
fn the_knee_is_that_of_the_series() {
    let traffic = Traffic { process: Process::Steady(SERVICE_S), rate: KNEE, length_ns: RUN_NS };
    let p99_ns = traffic.quantile(0.99);
    assert!((p99_ns / LIMIT_NS as f64 - 1.0).abs() < 1e-3, "{p99_ns}");
}

#[test]
fn searches_find_the_knee_of_a_queue_and_hardly_ever_promise_too_much() {
    let searches = asked("PUMMEL_COVERAGE_SEARCHES", 8);
    let (mut held, mut answered, mut too_high) = (0, 0, 0);
    for seed in 0..searches {
        let mut search = RateSearch::new(seed, None);
        let mut runs = 0;
        while let Some(ask) = search.next() {
            runs += 1;
            search.handle(&run(ask, seed * 1_000 + runs));
        }
        let answer = search.answer();
        held += u64::from(answer.interval.is_some_and(|(low, high)| (low..=high).contains(&KNEE)));
        answered += u64::from(answer.rate.is_some());
        too_high += u64::from(answer.rate.is_some_and(|rate| rate > 1.02 * KNEE));
    }
    println!(
        "searches: of {searches}, {held} intervals contain the knee, {answered} have an answer, {too_high} promise more than 2 % too much"
    );
    // 18 of 20 and at most 1 of 20, with room for chance where there are few.
    let few = if searches < 20 { 1 } else { 0 };
    assert!(held + few >= searches * 9 / 10, "{held} of {searches} intervals contain the knee");
    assert!(too_high <= (searches / 20).max(1), "{too_high} of {searches} answers promise too much");
    assert!(answered * 2 >= searches, "{answered} of {searches} searches have an answer");
}
