//! A queue whose service time changes while it is measured: tests that this is found, waited for, and not reported
//! where nothing changes.

use pummel_logic::plan::{Adaptive, Arrivals, Group, Mix, Phase, Plan, Settle, Stop, Until, Work};
use pummel_logic::protocol::Verb;
use pummel_logic::rng::{Stream, mix, unit};
use pummel_logic::time::{Nanos, SECOND, seconds};
use pummel_measure::measurement::{WarmUp, WarmUpEnd};
use pummel_measure::recorder::Span;
use pummel_measure::summary::Summary;
use pummel_measure::uncertainty::{EarlyEnds, Upper};

use crate::asked;
use crate::dealt;
use crate::process::Arrival;

/// The mean service time at level 1, in seconds.
const SERVICE_S: f64 = 100e-6;

/// Time before the end of a phase at which that end is announced.
const AHEAD_NS: Nanos = SECOND / 2;

/// Requests of one server that serves for exponential times with mean [`SERVICE_S`] times `level` at the moment of the arrival, in
/// seconds, and is busy for `load` of its time at level 1. The queue is in its steady state at the beginning.
fn queue(seed: u64, load: f64, length_ns: Nanos, level: impl Fn(f64) -> f64) -> Vec<Arrival> {
    let draws = Stream::from_seed(mix(&[seed, 404]));
    let exponential = |i: u64| -libm::log(1.0 - unit(draws.draw(i)));
    let begin_s = -200.0 * SERVICE_S / (1.0 - load) / (1.0 - load);
    let (mut now_s, mut free_s) = (begin_s, begin_s);
    let mut requests = Vec::new();
    for i in 0.. {
        now_s += exponential(2 * i) * SERVICE_S / load;
        free_s = free_s.max(now_s) + exponential(2 * i + 1) * SERVICE_S * level(now_s.max(0.0));
        if now_s * 1e9 >= length_ns as f64 {
            return requests;
        }
        if now_s >= 0.0 {
            requests.push(((now_s * 1e9) as Nanos, ((free_s - now_s) * 1e9) as Nanos));
        }
    }
    unreachable!("time goes on")
}

/// A plan of one measured phase of this length at a rate, after a warm-up that settles where `settle` is there.
fn plan(time_ns: Nanos, adaptive: Adaptive) -> Plan {
    let phase = |recorded| Phase {
        name: "run".to_owned(),
        work: Work::Mix(Mix::of(&[(Verb::Get, 1.0)])),
        stop: Stop { time_ns: Some(time_ns), requests: None },
        recorded,
    };
    let group = Group { rate: Some(1e4), arrivals: Arrivals::Poisson, ..Group::default() };
    Plan { adaptive, groups: vec![group], phases: vec![phase(true)], ..Plan::default() }
}

/// The requests from `begin_ns` to `end_ns`, with their times from there on.
fn part(requests: &[Arrival], begin_ns: Nanos, end_ns: Nanos) -> Vec<Arrival> {
    let within = requests.iter().filter(|(at, _)| (begin_ns..end_ns).contains(at));
    within.map(|(at, time_ns)| (at - begin_ns, *time_ns)).collect()
}

#[test]
fn changes_are_found_at_their_second_and_a_steady_load_is_left_alone() {
    const LENGTH_NS: Nanos = 10 * SECOND;
    let runs = asked("PUMMEL_COVERAGE_RUNS_CHANGING", 20);
    let plan = plan(LENGTH_NS, Adaptive::default());
    let change = |requests: Vec<Arrival>| {
        let measurement = dealt::measured(requests, LENGTH_NS, 1, 1);
        Summary::of(&measurement, &plan).change().map(|change| seconds(change.at_ns))
    };
    let step = |at_s: f64| if at_s < 5.0 { 1.0 } else { 1.3 };
    let is_found = |seed: &u64| {
        change(queue(*seed, 0.5, LENGTH_NS, step)).is_some_and(|at_s| (4.0..=6.0).contains(&at_s))
    };
    let found = (0..runs).filter(is_found).count() as u64;
    println!("changing: a step of 30 % was found at its second in {found} of {runs} runs");
    assert!(found * 20 >= runs * 19, "{found} of {runs}");
    for load in [0.5, 0.8] {
        let is_alarm = |seed: &u64| change(queue(*seed, load, LENGTH_NS, |_| 1.0)).is_some();
        let alarms = (0..runs).filter(is_alarm).count() as u64;
        println!("changing: {alarms} of {runs} steady runs at load {load} were called unsteady");
        // 8 of 100, with room for chance where there are few.
        assert!(alarms <= runs * 8 / 100 + u64::from(runs < 100) * 2, "load {load}: {alarms} of {runs}");
    }
}

#[test]
fn what_follows_a_warm_up_that_settled_is_the_level_of_the_load() {
    const LENGTH_NS: Nanos = 10 * SECOND;
    const LONGEST_NS: Nanos = 100 * SECOND;
    const LOAD: f64 = 0.3;
    let runs = asked("PUMMEL_COVERAGE_RUNS_CHANGING", 10);
    let settle = Settle::before(Some(LENGTH_NS));
    let plan = plan(LENGTH_NS, Adaptive { settle: Some(settle), ..Adaptive::default() });
    let (mut held, mut settled, mut waited_s) = (0, 0, 0.0);
    for seed in 0..runs {
        // Twice as slow at first, and a third of that is left after 2 s.
        let level = |at_s: f64| 1.0 + libm::exp(-at_s / 2.0);
        let requests = queue(seed, LOAD, LONGEST_NS + LENGTH_NS, level);
        let mut ends = EarlyEnds::of(&plan);
        let mut over_ns = None;
        dealt::slices(&requests, LONGEST_NS, |slice| {
            over_ns = over_ns.or(ends.warm_up_slice(slice).map(|end_ns| end_ns + AHEAD_NS));
        });
        let begin_ns = over_ns.unwrap_or(LONGEST_NS);
        let mut measurement =
            dealt::measured(part(&requests, begin_ns, begin_ns + LENGTH_NS), LENGTH_NS, 1, 1);
        let until = WarmUpEnd::Settled;
        let warm_up = WarmUp { until, elapsed_ns: begin_ns, settled: over_ns.is_some(), cut_short: false };
        measurement.warm_up = Some(warm_up);
        let certainty = dealt::certainty_of(&measurement);
        let times = certainty.of_span(Span::Response).expect("windows keep responses");
        let (_, bounds) = times.named().find(|(name, _)| *name == "p50").expect("the median is known");
        let truth_ns = libm::log(2.0) * SERVICE_S / (1.0 - LOAD) * 1e9;
        let is_below = matches!(bounds.high, Upper::Known(high) if high as f64 >= truth_ns * 0.999);
        held += u64::from(is_below && bounds.low.is_some_and(|low| low as f64 <= truth_ns * 1.001));
        settled += u64::from(over_ns.is_some());
        waited_s += seconds(begin_ns) / runs as f64;
    }
    println!(
        "changing: after a service time that begins at twice its level (tau 2 s), {settled} of {runs} warm-ups settled, after {waited_s:.1} s in \
         the mean, and {held} intervals contain the median of the level"
    );
    // 90 of 100, with room for chance where there are few.
    assert!(held + u64::from(runs < 100) >= runs * 9 / 10, "{held} of {runs}");
    assert!(settled * 10 >= runs * 9, "{settled} of {runs}");
}

#[test]
fn a_measurement_that_ends_when_enough_is_known_is_as_near_as_it_says() {
    const LONGEST_NS: Nanos = 60 * SECOND;
    const ASKED: f64 = 0.05;
    const LOAD: f64 = 0.5;
    let runs = asked("PUMMEL_COVERAGE_RUNS_CHANGING", 10);
    let until = Until { quantile: 0.99, half_width: ASKED, least_ns: 2 * SECOND };
    let plan = plan(LONGEST_NS, Adaptive { until: Some(until), ..Adaptive::default() });
    let truth_ns = -libm::log(0.01) * SERVICE_S / (1.0 - LOAD) * 1e9;
    let (mut held, mut near, mut ended, mut took_s) = (0, 0, 0, 0.0);
    for seed in 0..runs {
        let requests = queue(seed, LOAD, LONGEST_NS, |_| 1.0);
        let mut ends = EarlyEnds::of(&plan);
        let mut over_ns = None;
        dealt::slices(&requests, LONGEST_NS, |slice| {
            // A run that ends is looked at no longer.
            if over_ns.is_none_or(|over_ns| slice.start_ns < over_ns) {
                over_ns = over_ns.or(ends.measured_slice(slice));
            }
        });
        let end_ns = over_ns.unwrap_or(LONGEST_NS).min(LONGEST_NS);
        let measurement = dealt::measured(part(&requests, 0, end_ns), end_ns, 1, 1);
        let summary = Summary::of(&measurement, &plan);
        let certainty = dealt::certainty_of(&measurement);
        let times = certainty.of_span(Span::Response).expect("windows keep responses");
        let (_, bounds) = times.named().find(|(name, _)| *name == "p99").expect("p99 is known");
        let is_below = match bounds.high {
            Upper::Known(high) => high as f64 >= truth_ns * 0.999,
            Upper::Unanswered | Upper::Open => true,
        };
        held += u64::from(is_below && bounds.low.is_none_or(|low| low as f64 <= truth_ns * 1.001));
        let half_width = summary.until.and_then(|until| until.half_width).unwrap_or(f64::INFINITY);
        let value_ns = dealt::quantile_of(&measurement, 0.99);
        near += u64::from(libm::fabs(value_ns / truth_ns - 1.0) <= half_width.max(ASKED));
        ended += u64::from(end_ns < LONGEST_NS);
        took_s += seconds(end_ns) / runs as f64;
    }
    println!(
        "changing: --until p99:5% took {took_s:.1} s in the mean ({ended} of {runs} ended before the longest time), {held} intervals \
         contain the truth, {near} figures are as near as was asked or said"
    );
    // 90 and 97 of 100, with room for chance where there are few.
    let few = u64::from(runs < 100);
    assert!(held + few >= runs * 9 / 10, "{held} of {runs}");
    assert!(near + few >= runs * 97 / 100, "{near} of {runs}");
}
