//! Runs whose load changes: every request is due at the time of its plan, whatever the threads.

use std::sync::Arc;

use pummel_engine::backend::sim::NetworkConditions;
use pummel_logic::arrival::{Pace, RateCurve};
use pummel_logic::dist::Dist;
use pummel_logic::plan::{
    Arrivals, Burst, BurstStates, Changes, Depth, Engine, Group, Part, Plan, RatePoint, RateShape, Route,
    Sine, Stop,
};
use pummel_logic::protocol::Verb;
use pummel_logic::rng::StreamOwner;
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_measure::measurement::Status;
use pummel_measure::recorder::Counts;
use pummel_testserver::{CountedFault, ServerConfig};

use crate::lanes::{over, run_over};
use crate::peer::SharedServer;
use crate::setup::{measuring, mix, plan, run, schedule};

/// Length of the measured phase.
const LENGTH_NS: Nanos = 2 * SECOND;

/// A plan of six clients under this load.
fn changing(changes: Changes, arrivals: Arrivals) -> Plan {
    let mut plan = plan();
    let stop = Stop { time_ns: Some(LENGTH_NS), requests: None };
    plan.phases = vec![measuring(mix(&[(Verb::Get, 3.0), (Verb::Set, 1.0)]), stop)];
    plan.groups[0].clients = 6;
    plan.groups[0].depth = Depth::Limit(64);
    plan.groups[0].arrivals = arrivals;
    let mean = changes.rate.as_ref().map_or(400.0, |shape| RateCurve::of(shape).mean_until(LENGTH_NS));
    plan.groups[0].rate = Some(mean);
    plan.changes = changes;
    plan
}

fn points(points: &[(u64, f64)]) -> RateShape {
    let point = |&(at_ms, rate): &(u64, f64)| RatePoint { at_ns: at_ms * MILLISECOND, rate };
    RateShape::Points(points.iter().map(point).collect())
}

#[test]
fn requests_are_due_where_the_plan_says_however_many_threads_there_are() {
    let sine = Sine { mean: 500.0, amplitude: 450.0, period_ns: SECOND, start: 0.75 };
    let states = BurstStates { factor: 4.0, on_ns: 20 * MILLISECOND, off_ns: 80 * MILLISECOND };
    let burst = Some(Burst::States(states));
    let ramp = points(&[(0, 0.0), (1_000, 800.0), (1_000, 100.0)]);
    for changes in [
        Changes { rate: Some(ramp), ..Changes::default() },
        Changes { rate: Some(RateShape::Sine(sine)), burst, ..Changes::default() },
        Changes { burst, ..Changes::default() },
    ] {
        for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
            let mut plan = changing(changes.clone(), arrivals.clone());
            let rate = plan.groups[0].rate.expect("the loop is open");
            let curve = Arc::new(RateCurve::in_phase(&plan, 0, rate));
            let pace = Pace::along(&arrivals, curve, 6);
            let mut expected: Vec<Nanos> = Vec::new();
            for client in 0..6 {
                let owner = StreamOwner { seed: plan.seed, group: 0, phase: 0, client };
                let mut schedule = pace.schedule(owner);
                let times = std::iter::repeat_with(|| schedule.next());
                expected.extend(times.take_while(|due| *due < LENGTH_NS));
            }
            expected.sort_unstable();
            assert!(expected.len() > 300, "{}", expected.len());
            for threads in [1, 3] {
                plan.engine = Engine { threads, ..plan.engine };
                let server = SharedServer::new(ServerConfig::default());
                let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
                assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
                assert!(outcome.dues() == expected, "{changes:?}, {arrivals:?}, {threads} threads");
            }
        }
    }
}

/// Checks that a load may rest for longer than any server may be silent, and come back.
#[test]
fn a_load_that_rests_for_a_minute_is_whole() {
    let ms = |seconds: u64| seconds * 1_000;
    let rests = points(&[(0, 50.0), (ms(2), 50.0), (ms(2), 0.0), (ms(62), 0.0), (ms(62), 50.0)]);
    let mut plan = changing(Changes { rate: Some(rests), ..Changes::default() }, Arrivals::Constant);
    plan.phases[0].stop.time_ns = Some(64 * SECOND);
    plan.groups[0].rate = Some(200.0 / 64.0);
    let server = SharedServer::new(ServerConfig::default());
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    let dues = outcome.dues();
    assert_eq!(dues.len(), 200);
    assert!(dues.iter().all(|due| !(2 * SECOND..62 * SECOND).contains(due)), "nothing is due in the rest");
}

/// Beside a measured phase whose rate changes, the warm-up goes at the rate with which it begins.
#[test]
fn a_warm_up_goes_at_the_rate_with_which_the_measured_phase_begins() {
    for (first, expected) in [(100.0, 100.0), (0.0, 250.0)] {
        let shape = points(&[(0, first), (2_000, 500.0)]);
        let mut plan = changing(Changes { rate: Some(shape), ..Changes::default() }, Arrivals::Constant);
        let mut warm_up = plan.phases[0].clone();
        (warm_up.name, warm_up.recorded) = ("warmup".to_owned(), false);
        plan.phases.insert(0, warm_up);
        let server = SharedServer::new(ServerConfig::default());
        let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
        let all: u64 = outcome.measurement.whole_run.ops.iter().map(|(_, counts)| counts.requests()).sum();
        let before = all - outcome.counts().requests();
        assert_eq!(before as f64, 2.0 * expected, "a warm-up of two seconds before a rate from {first} on");
    }
}

/// A request belongs to the part in which it was due, whenever it ends, and whether it is sent or not.
#[test]
fn the_requests_of_the_parts_are_those_that_were_due_in_them() {
    let shape = points(&[(0, 100.0), (500, 100.0), (500, 2_000.0), (1_500, 2_000.0), (1_500, 10.0)]);
    let parts = [0, 500, 1_500].map(|at_ms| Part::plain(format!("from {at_ms}"), at_ms * MILLISECOND));
    // Of the second server, which holds each reply for longer than the time between two of a client, much is never asked.
    for (hold_s, depth) in [(0.001, 64), (0.040, 2)] {
        let changes = Changes { rate: Some(shape.clone()), parts: parts.to_vec(), ..Changes::default() };
        let mut plan = changing(changes, Arrivals::Constant);
        plan.timeout_ns = 100 * MILLISECOND;
        plan.groups[0].depth = Depth::Limit(depth);
        let config = ServerConfig { service_time: Some(Dist::Fixed(hold_s)), ..ServerConfig::default() };
        let server = SharedServer::new(config);
        for threads in [1, 2] {
            plan.engine = Engine { threads, ..plan.engine };
            let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
            let parts = &outcome.measurement.parts;
            let requests: Vec<u64> = parts.iter().map(|ops| ops.all().counts.requests()).collect();
            assert_eq!(requests, [50, 2_000, 5], "{hold_s}");
            let mut sum = Counts::default();
            parts.iter().for_each(|ops| sum.merge(&ops.all().counts));
            assert_eq!(sum, outcome.counts(), "all parts together are the phase");
            assert_eq!(sum.unsent > 0, depth == 2, "{sum:?}");
        }
    }
}

/// A client in closed loop owes no request but that which it could not send when its connection was lost, however many parts
/// the phase has.
#[test]
fn requests_that_a_closed_loop_cannot_send_beside_a_load_with_parts_are_counted_once() {
    let closing = ServerConfig { faults: vec![CountedFault::CloseAfter.at(10)], ..ServerConfig::default() };
    let servers = [closing, ServerConfig::default()].map(SharedServer::new);
    let parts = [0, 500, 1_500].map(|at_ms| Part::plain(format!("from {at_ms}"), at_ms * MILLISECOND));
    let changes = Changes { parts: parts.to_vec(), ..Changes::default() };
    let mut plan = over(&servers, Route::All, changing(changes, Arrivals::Constant));
    for depth in [1, 4] {
        let depth_limit = Depth::Limit(depth);
        let closed = Group { name: "closed".to_owned(), clients: 2, depth: depth_limit, ..Group::default() };
        plan.groups.truncate(1);
        plan.groups.push(closed);
        let outcome = run_over(&servers, &plan, 1, NetworkConditions::calm());
        assert_eq!(outcome.measurement.measured_ns, LENGTH_NS);
        let due: usize = schedule(&plan, LENGTH_NS).iter().map(Vec::len).sum();
        let of_group = |group: usize| outcome.measurement.groups[group].ops.all().counts;
        assert_eq!(of_group(0).requests(), due as u64, "all that was due in open loop");
        assert!(of_group(0).unsent > 0 && of_group(1).completed > 1_000);
        assert_eq!(of_group(1).unsent, u64::from(depth), "each slot of the client that lost its server");
        let mut sum = Counts::default();
        outcome.measurement.parts.iter().for_each(|ops| sum.merge(&ops.all().counts));
        assert_eq!(sum, outcome.counts(), "all parts together are the phase");
        assert_eq!(outcome.measurement.whole_run.ops.all().requests(), sum.requests());
    }
}

/// Phases that are joined go on without a drain, and each asks its own operations.
#[test]
fn each_part_asks_the_operations_of_its_own_mix() {
    let part = |at_ms: u64, ops: &[(Verb, f64)]| Part {
        ops: Some(ops.to_vec()),
        ..Part::plain(format!("from {at_ms}"), at_ms * MILLISECOND)
    };
    let parts = vec![
        part(0, &[(Verb::Get, 1.0)]),
        part(700, &[(Verb::Set, 1.0)]),
        part(1_200, &[(Verb::Get, 1.0), (Verb::Set, 1.0)]),
        Part::plain("as the phase".to_owned(), 1_600 * MILLISECOND),
    ];
    let mut plan = changing(Changes { parts, ..Changes::default() }, Arrivals::Poisson);
    plan.groups[0].rate = Some(4_000.0);
    // The slow server leaves much unsent, which is counted by verb too.
    for (hold_s, depth) in [(0.001, 64), (0.050, 2)] {
        plan.groups[0].depth = Depth::Limit(depth);
        let config = ServerConfig { service_time: Some(Dist::Fixed(hold_s)), ..ServerConfig::default() };
        let server = SharedServer::new(config);
        let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
        let shares: Vec<f64> = outcome
            .measurement
            .parts
            .iter()
            .map(|ops| {
                let gets = ops.get(Verb::Get).map_or(0, |op| op.counts.requests()) as f64;
                gets / ops.all().counts.requests() as f64
            })
            .collect();
        assert_eq!(&shares[..2], [1.0, 0.0], "{shares:?}");
        assert!((shares[2] - 0.5).abs() < 0.07 && (shares[3] - 0.75).abs() < 0.07, "{shares:?}");
    }
}
