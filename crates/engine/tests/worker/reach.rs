//! Load that no machine can send: every run ends in time, and every request that was due is accounted for.

use std::cell::Cell;

use pummel_engine::backend::sim::{NetworkConditions, Sim};
use pummel_engine::run::{Run, Watch};
use pummel_logic::dist::Dist;
use pummel_logic::plan::{Arrivals, ChurningClients, Depth, Gap, Late, Phase, Plan, Route, Sequence, Spawns};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND};
use pummel_measure::events::Row;
use pummel_measure::measurement::{Measurement, Status};
use pummel_testserver::{CountedFault, ServerConfig};

use crate::peer::{Cluster, SharedServer};
use crate::setup::{Outcome, at_rate, measuring, mix, plan, run, time};

/// Requests, or clients, per second; two milliseconds of them are [`DUE`].
const RATE: f64 = 1e12;
const LENGTH_NS: Nanos = 2 * MILLISECOND;
const DUE: u64 = 2_000_000_000;

fn server() -> SharedServer {
    SharedServer::new(ServerConfig::default())
}

/// A phase of [`LENGTH_NS`] with as long a drain.
fn far(arrivals: Arrivals, depth: Depth) -> Plan {
    let mut plan = Plan { timeout_ns: LENGTH_NS, ..plan() };
    let group = &mut plan.groups[0];
    (group.arrivals, group.rate, group.depth) = (arrivals, Some(RATE), depth);
    plan.phases[0] = measuring(mix(&[(Verb::Get, 1.0)]), time(LENGTH_NS));
    plan
}

/// Asserts that the phase ended with its time and its drain.
fn assert_in_time(outcome: &Outcome) {
    let measured_ns = outcome.measurement.measured_ns;
    assert!(measured_ns <= 2 * LENGTH_NS + MILLISECOND, "{measured_ns} ns");
}

#[test]
fn a_rate_that_cannot_be_reached_ends_in_time_at_any_depth() {
    for depth in [Depth::Limit(1), Depth::Limit(16), Depth::Unlimited] {
        for (threads, silent) in [(1, false), (1, true), (3, true)] {
            let mut plan = far(Arrivals::Constant, depth);
            plan.engine.threads = threads;
            let until = if silent { NEVER } else { 0 };
            let server = server().freezing(0, until);
            let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
            let counts = outcome.counts();
            assert_eq!((counts.requests(), counts.unsent_estimated), (DUE, 0), "{depth:?}: {counts:?}");
            assert_in_time(&outcome);

            let poisson = Plan { groups: far(Arrivals::Poisson, depth).groups, ..plan };
            let counts = run(&poisson, 1, NetworkConditions::calm(), || server.peer()).counts();
            assert!((counts.requests() as f64 / DUE as f64 - 1.0).abs() < 0.001, "{depth:?}: {counts:?}");
            assert!(counts.unsent_estimated > 0 && counts.unsent_estimated < counts.unsent, "{counts:?}");
        }
    }
}

#[test]
fn nothing_is_sent_behind_the_end_of_a_phase_that_ends_on_time() {
    for threads in [1, 3] {
        for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
            let mut plan = far(arrivals, Depth::Limit(1));
            (plan.engine.threads, plan.timeout_ns) = (threads, SECOND);
            plan.groups[0].policy.ends_on_time = true;
            // A warm-up that ends on time stops no client that goes on afterwards.
            let warmup = Phase { recorded: false, ..plan.phases[0].clone() };
            plan.phases.insert(0, warmup);
            let server = server();
            let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
            let counts = outcome.counts();
            assert!(counts.completed > 0 && counts.unfinished == 0, "{counts:?}");
            assert!((counts.requests() as f64 / DUE as f64 - 1.0).abs() < 0.001, "{counts:?}");
            let end = outcome.begin + LENGTH_NS;
            let last_sent = outcome.rows.iter().filter(|row| row.sent != NEVER).map(|row| row.sent).max();
            assert!(last_sent.is_some_and(|sent| sent < end + MILLISECOND / 10), "{last_sent:?}, {end}");
            assert!(
                outcome.measurement.answered_ns < LENGTH_NS + MILLISECOND,
                "{}",
                outcome.measurement.answered_ns
            );
        }
    }
}

#[test]
fn what_follows_from_misses_does_not_hold_up_the_end() {
    let mut plan = far(Arrivals::Constant, Depth::Limit(16));
    let mut reading = mix(&[(Verb::Get, 1.0), (Verb::Set, 1.0)]);
    (reading.multiget, reading.read_through_ns) = (5, Some(0));
    plan.phases[0] = measuring(reading, time(LENGTH_NS));
    let server = server();
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    assert!(outcome.counts().requests() >= DUE);
    assert!(outcome.counts().completed > 100);
    assert_in_time(&outcome);
}

/// The stores of the keys that a read missed are sent one after the other where a client has one request outstanding.
#[test]
fn what_follows_from_misses_is_not_sent_behind_the_end_of_a_phase_that_ends_on_time() {
    let mut plan = at_rate(plan(), 1_000.0);
    // So many that no key is drawn twice.
    plan.data.records = 10_000_000;
    plan.groups[0].policy.ends_on_time = true;
    let mut reading = mix(&[(Verb::Get, 1.0)]);
    (reading.multiget, reading.read_through_ns) = (5, Some(0));
    plan.phases = vec![measuring(reading, time(100 * MILLISECOND))];
    for threads in [1, 2] {
        plan.engine.threads = threads;
        let slow = ServerConfig { service_time: Some(Dist::Fixed(0.003)), ..ServerConfig::default() };
        let server = SharedServer::new(slow);
        let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
        let end = outcome.begin + 100 * MILLISECOND;
        let sent = outcome.rows.iter().map(|row| row.sent).filter(|&sent| sent != NEVER).max();
        assert!(sent.is_some_and(|sent| sent < end + MILLISECOND / 10), "{sent:?}, {end}");
        let is_followed = |row: &&Row| row.verb == Verb::Get && row.read < end;
        let followed = outcome.rows.iter().filter(is_followed).count() as u64;
        let stores = outcome.measurement.ops().get(Verb::Set).expect("keys are missed").counts;
        assert_eq!(stores.requests(), 5 * followed, "each is accounted for: {stores:?}");
        assert!(stores.completed > 0 && stores.unsent > 0, "{stores:?}");
    }
}

#[test]
fn requests_that_are_left_out_because_they_are_late_do_not_hold_up_the_turn() {
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        let gaps_are_drawn = arrivals == Arrivals::Poisson;
        let mut plan = far(arrivals, Depth::Limit(1));
        plan.groups[0].policy.late = Late::Skipped;
        plan.phases[0].stop = time(10 * LENGTH_NS);
        let server = server();
        let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
        let due = outcome.counts().requests() + outcome.measurement.counters.skipped.requests;
        assert!((due as f64 / (10 * DUE) as f64 - 1.0).abs() < 0.001, "{due} requests");
        assert!(outcome.measurement.counters.skipped.requests > DUE);
        let estimated = outcome.measurement.counters.skipped.estimated;
        assert_eq!(estimated > 0, gaps_are_drawn, "equal gaps are counted by arithmetic");
        assert!(estimated < outcome.measurement.counters.skipped.requests);
    }
}

#[test]
fn requests_whose_server_is_lost_do_not_hold_up_the_turn() {
    let mut servers: Vec<SharedServer> = (0..3).map(|_| server()).collect();
    servers[1] = SharedServer::new(ServerConfig {
        faults: vec![CountedFault::CloseAfter.at(5)],
        ..ServerConfig::default()
    });
    let names = (0..3).map(|n| format!("127.0.0.{n}:11211")).collect();
    let plan = Plan { servers: names, route: Route::Modulo, ..far(Arrivals::Constant, Depth::Limit(4)) };
    let outcome = run(&plan, 1, NetworkConditions::calm(), || Cluster::new(&servers));
    assert!(outcome.reason().starts_with("ConnectionsLost { asked: 12, lost: 4,"), "{}", outcome.reason());
    assert_eq!(outcome.counts().requests(), DUE, "{:?}", outcome.counts());
    assert_in_time(&outcome);
}

/// Four seats for clients that come faster than any machine can have them, five requests each.
fn crowded(births: Spawns) -> Plan {
    let mut plan = Plan { timeout_ns: LENGTH_NS, ..plan() };
    plan.groups[0].churn = Some(ChurningClients { spawns: births, calls: 5, sequence: None });
    plan.phases[0] = measuring(mix(&[(Verb::Get, 1.0)]), time(LENGTH_NS));
    plan
}

#[test]
fn clients_that_cannot_be_had_are_counted_and_do_not_hold_up_the_end() {
    for threads in [1, 3] {
        let births = Spawns::Open { arrivals: Arrivals::Constant, rate: RATE };
        let plan =
            Plan { engine: pummel_logic::plan::Engine { threads, ..Default::default() }, ..crowded(births) };
        for server in [server(), server().freezing(0, NEVER)] {
            let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
            let churn = outcome.measurement.connections.churn.as_ref().expect("clients come and go");
            assert!(churn.begun >= 4 && churn.life.moments().max <= 2 * LENGTH_NS + MILLISECOND);
            let lost = outcome.counts().unsent;
            // Of those who came, some had not asked everything.
            let waiting = 5 * (DUE - churn.begun);
            assert!((waiting..=waiting + 5 * 4).contains(&lost), "{lost} unsent, {} begun", churn.begun);
            assert_in_time(&outcome);
        }
    }
}

#[test]
fn drawn_clients_that_cannot_be_had_are_estimated() {
    let sequence =
        Sequence { instance: 0, calls: None, sizes: Gap::Fixed(1.0), stride: 1, offset: 0, bogus: false };
    for gap in [Gap::Fixed(1e-300), Gap::Fixed(1e-9), Gap::Exponential(1e-10), Gap::Uniform(1e-300, 1e-9)] {
        let mut plan = crowded(Spawns::Drawn(gap));
        plan.phases[0] = measuring(mix(&[(Verb::Set, 1.0)]), time(LENGTH_NS));
        plan.groups[0].churn.as_mut().expect("a crowd").sequence = Some(sequence.clone());
        let server = server();
        let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
        assert!(outcome.counts().unsent > 1_000_000, "{gap:?}: {:?}", outcome.counts());
        assert_in_time(&outcome);
    }
}

/// Runs a plan until this many slices of its measured phase are there, and interrupts it then.
fn interrupted(plan: &Plan, slices: u64, server: &SharedServer) -> Measurement {
    struct Counting<'a>(&'a Cell<u64>);
    impl Watch for Counting<'_> {
        fn slice(&mut self, _so_far: &Measurement) {
            self.0.set(self.0.get() + 1);
        }
    }
    let seen = Cell::new(0);
    let stop = || seen.get() >= slices;
    let plan = &plan.clone().validate().expect("the plan can be run");
    Run::new(plan)
        .start_on(&mut Counting(&seen), &stop, |worker| {
            Ok(Sim::new(worker as u64, NetworkConditions::calm(), server.peer()))
        })
        .expect("the run begins")
}

#[test]
fn clients_that_waited_for_a_place_are_counted_when_a_run_is_interrupted() {
    for rate in [1_000.0, RATE] {
        let births = Spawns::Open { arrivals: Arrivals::Constant, rate };
        let mut plan = Plan { timeout_ns: 3_600 * SECOND, interval_ns: 100 * MILLISECOND, ..crowded(births) };
        plan.phases[0].stop = time(1_000_000 * SECOND);
        let measurement = interrupted(&plan, 10, &server().freezing(0, NEVER));
        assert_eq!(measurement.status, Status::Interrupted);
        let counts = measurement.ops().all().counts;
        let least = (5.0 * (rate - 10.0)) as u64;
        assert!(counts.unsent >= least, "a second passed at {rate} clients a second: {counts:?}");
    }
}
