//! Runs whose number of connections changes: who is connected, who sends, and what becomes of requests at the edges of steps.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use pummel_engine::backend::sim::{Admission, NetworkConditions, Next, Peer};
use pummel_engine::backend::{ConnId, Target};
use pummel_logic::dist::Dist;
use pummel_logic::plan::{Arrivals, Changes, Depth, Part, Plan, Route, Stage, Stop};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, Nanos};
use pummel_measure::measurement::Status;
use pummel_measure::recorder::{Counts, Span};
use pummel_testserver::{CountedFault, ServerConfig};

use crate::lanes::over;
use crate::peer::{Cluster, SharedServer};
use crate::setup::{Outcome, at_rate, loaded, measuring, mix, plan, run, schedule};

/// Length of a step.
const STEP_NS: Nanos = 300 * MILLISECOND;

/// Clients on stage in each step.
const STEPS: [u32; 4] = [2, 7, 3, 5];

/// A plan in closed loop of eight clients, some of which are on stage in each step.
fn staged() -> Plan {
    let mut plan = plan();
    let stop = Stop { time_ns: Some(STEPS.len() as Nanos * STEP_NS), requests: None };
    plan.phases = vec![measuring(mix(&[(Verb::Get, 3.0), (Verb::Set, 1.0)]), stop)];
    plan.groups[0].clients = 8;
    let part = |(at, connections): (usize, &u32)| Part {
        connections: Some(*connections),
        ..Part::plain(format!("step {at}"), at as Nanos * STEP_NS)
    };
    plan.changes = Changes { parts: STEPS.iter().enumerate().map(part).collect(), ..Changes::default() };
    plan
}

/// A server that holds each reply for half a millisecond.
fn held() -> ServerConfig {
    ServerConfig { service_time: Some(Dist::Fixed(0.0005)), ..ServerConfig::default() }
}

/// Changes of the number of a server's connections, with their times.
type Witness = Arc<Mutex<Vec<(Nanos, i64)>>>;

/// Servers that note when connections begin and end.
struct Counting {
    servers: Cluster,
    witness: Witness,
}

impl Peer for Counting {
    forward!(servers: handle_received);

    fn handle_connect(&mut self, conn: ConnId, target: &Target, now: Nanos) -> Admission {
        self.witness.lock().expect("no peer panics").push((now, 1));
        self.servers.handle_connect(conn, target, now)
    }

    fn handle_closed(&mut self, conn: ConnId, now: Nanos) {
        self.witness.lock().expect("no peer panics").push((now, -1));
        self.servers.handle_closed(conn, now);
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        self.servers.poll(conn, now, out)
    }
}

/// Runs a plan against these servers. Returns the number of connections at the middle of each step beside the outcome.
fn run_counted(servers: &[SharedServer], plan: &Plan, conditions: NetworkConditions) -> (Outcome, Vec<i64>) {
    let witness = Witness::default();
    let plan = &over(servers, plan.route, plan.clone());
    let outcome = run(plan, 1, conditions, || Counting {
        servers: Cluster::new(servers),
        witness: Arc::clone(&witness),
    });
    let changes = witness.lock().expect("no peer panics");
    let at = |step: usize| {
        let middle = outcome.begin + step as Nanos * STEP_NS + STEP_NS / 2;
        changes.iter().filter(|(at, _)| *at <= middle).map(|(_, change)| change).sum()
    };
    let counts = (0..STEPS.len()).map(at).collect();
    drop(changes);
    (outcome, counts)
}

/// The clients that had requests due in each step.
fn seen(outcome: &Outcome) -> Vec<BTreeSet<u64>> {
    let in_step = |step: usize| {
        let begin = outcome.begin + step as Nanos * STEP_NS;
        let rows = outcome.rows.iter().filter(move |row| (begin..begin + STEP_NS).contains(&row.due));
        rows.map(|row| row.client).collect()
    };
    (0..STEPS.len()).map(in_step).collect()
}

/// Checks that the parts of a run have all of its requests once.
fn assert_parts_add_up(outcome: &Outcome) {
    let mut sum = Counts::default();
    outcome.measurement.parts.iter().for_each(|ops| sum.merge(&ops.all().counts));
    assert_eq!(sum, outcome.counts(), "all parts together are the phase");
    assert_eq!(outcome.measurement.parts.len(), STEPS.len());
}

#[test]
fn each_step_has_its_connections_and_only_their_clients_send() {
    for route in [Route::All, Route::RoundRobin, Route::Ketama] {
        for threads in [1, 3] {
            for rate in [None, Some(2_000.0)] {
                for depth in [1, 4] {
                    let servers = [(); 2].map(|()| SharedServer::new(held()));
                    let mut plan = over(&servers, route, loaded(staged()));
                    plan.engine.threads = threads;
                    plan.groups[0].depth = Depth::Limit(depth);
                    if let Some(rate) = rate {
                        plan = at_rate(plan, rate);
                    }
                    let (outcome, counts) = run_counted(&servers, &plan, NetworkConditions::calm());
                    let what = format!("{route:?}, {threads} threads, rate {rate:?}, depth {depth}");
                    assert_eq!(
                        (outcome.measurement.status, outcome.reason().as_str()),
                        (Status::Complete, ""),
                        "{what}"
                    );
                    let lanes = plan.lanes() as i64;
                    assert_eq!(counts, STEPS.map(|clients| i64::from(clients) * lanes), "{what}");
                    let stage = Stage::of(&plan, 1).expect("it has steps");
                    for (step, clients) in seen(&outcome).into_iter().enumerate() {
                        let on_stage =
                            (0..8).filter(|number| stage.place_of(*number) < u64::from(STEPS[step]));
                        assert_eq!(clients, on_stage.collect(), "step {step} of {what}");
                    }
                    let all = outcome.counts();
                    assert_eq!((all.failed(), all.unsent, all.unfinished), (0, 0, 0), "{what}: {all:?}");
                    assert_parts_add_up(&outcome);
                    let connections = &outcome.measurement.connections;
                    assert_eq!((connections.lost, connections.failed, connections.reconnected), (0, 0, 0));
                    assert_eq!(connections.open, 2 * lanes as u64, "when the measured phase began");
                }
            }
        }
    }
}

/// A connection that takes long to open delays no request of a closed loop, and none of an open one where it is open in time.
#[test]
fn opening_a_connection_is_no_part_of_a_request() {
    let slow =
        NetworkConditions { delay_ns: (5 * MILLISECOND, 5 * MILLISECOND), ..NetworkConditions::calm() };
    for rate in [None, Some(300.0)] {
        let servers = [SharedServer::new(ServerConfig::default())];
        let mut plan = staged();
        plan.groups[0].depth = Depth::Limit(8);
        if let Some(rate) = rate {
            plan = at_rate(plan, rate);
        }
        let (outcome, _) = run_counted(&servers, &plan, slow);
        assert!(outcome.counts().completed > 100);
        let (_, most) = outcome.range(Span::Wait);
        assert_eq!(most, 0, "{rate:?}");
        assert!(outcome.measurement.connections.connect.moments().min >= 5 * MILLISECOND);
    }
}

#[test]
fn constant_arrivals_are_due_when_they_are_without_steps() {
    let mut plan = at_rate(staged(), 3_000.0);
    plan.groups[0].arrivals = Arrivals::Constant;
    let expected = {
        let mut plain = plan.clone();
        plain.changes.parts.iter_mut().for_each(|part| part.connections = None);
        let mut dues = schedule(&plain, STEPS.len() as Nanos * STEP_NS).concat();
        dues.sort_unstable();
        dues
    };
    for threads in [1, 2] {
        plan.engine.threads = threads;
        let servers = [SharedServer::new(ServerConfig::default())];
        let (outcome, _) = run_counted(&servers, &plan, NetworkConditions::calm());
        assert!(outcome.dues() == expected, "{} and {}", outcome.dues().len(), expected.len());
        let requests: Vec<u64> =
            outcome.measurement.parts.iter().map(|ops| ops.all().counts.requests()).collect();
        assert_eq!(requests, [900; 4], "the rate stays");
    }
}

/// A server that cannot keep up: every request that was due is accounted for in its step, and who leaves does so in time.
#[test]
fn what_a_slow_server_does_not_let_be_sent_is_unsent_in_its_step() {
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        let hold = ServerConfig { service_time: Some(Dist::Fixed(0.010)), ..ServerConfig::default() };
        let servers = [SharedServer::new(hold)];
        let mut plan = at_rate(staged(), 3_000.0);
        plan.groups[0].arrivals = arrivals.clone();
        plan.timeout_ns = 50 * MILLISECOND;
        let (outcome, counts) = run_counted(&servers, &plan, NetworkConditions::calm());
        assert_eq!(counts, STEPS.map(i64::from), "{arrivals:?}");
        assert_parts_add_up(&outcome);
        let requests: Vec<u64> =
            outcome.measurement.parts.iter().map(|ops| ops.all().counts.requests()).collect();
        let is_right = |requests: &u64| match arrivals {
            Arrivals::Constant => *requests == 900,
            _ => (750..=1_050).contains(requests),
        };
        assert!(requests.iter().all(is_right), "{arrivals:?}: {requests:?}");
        assert!(outcome.counts().unsent > 1_000, "{:?}", outcome.counts());
    }
}

#[test]
fn a_connection_that_is_lost_comes_back_within_its_turn_and_none_comes_back_behind_it() {
    for rate in [None, Some(2_000.0)] {
        for depth in [1, 3] {
            let closing = ServerConfig { faults: vec![CountedFault::CloseAfter.at(20)], ..held() };
            let servers = [SharedServer::new(closing)];
            let mut plan = staged();
            plan.reconnect = true;
            plan.groups[0].depth = Depth::Limit(depth);
            if let Some(rate) = rate {
                plan = at_rate(plan, rate);
            }
            let (outcome, _) = run_counted(&servers, &plan, NetworkConditions::calm());
            assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
            let stage = Stage::of(&plan, 0).expect("it has steps");
            for (step, clients) in seen(&outcome).into_iter().enumerate() {
                let is_on = |number: &u64| stage.place_of(*number) < u64::from(STEPS[step]);
                assert!(clients.iter().all(is_on), "step {step}: {clients:?}");
            }
            let connections = &outcome.measurement.connections;
            assert!(connections.lost > 10 && connections.reconnected > 10, "{connections:?}");
            assert_parts_add_up(&outcome);
        }
    }
}

/// Without `--reconnect` a run whose connections are lost is partial, and nothing is counted twice.
#[test]
fn a_client_that_lost_its_connection_for_good_does_not_come_back_on_stage() {
    for rate in [None, Some(2_000.0)] {
        let closing = ServerConfig { faults: vec![CountedFault::CloseAfter.at(50)], ..held() };
        let servers = [SharedServer::new(closing), SharedServer::new(held())];
        let mut plan = over(&servers, Route::All, staged());
        if let Some(rate) = rate {
            plan = at_rate(plan, rate);
        }
        let (outcome, _) = run_counted(&servers, &plan, NetworkConditions::calm());
        assert_eq!(outcome.measurement.status, Status::Partial);
        assert_parts_add_up(&outcome);
        if rate.is_some() {
            let requests = outcome.counts().requests() as f64;
            assert!((requests - 2_400.0).abs() < 250.0, "all that was due in open loop: {requests}");
        }
    }
}

#[test]
fn a_warm_up_has_the_connections_of_the_first_step() {
    let servers = [SharedServer::new(ServerConfig::default())];
    let mut plan = over(&servers, Route::All, loaded(staged()));
    let mut warm_up = plan.phases[1].clone();
    (warm_up.name, warm_up.recorded) = ("warmup".to_owned(), false);
    warm_up.stop.time_ns = Some(100 * MILLISECOND);
    plan.phases.insert(1, warm_up);
    let witness = Witness::default();
    let outcome = run(&plan, 1, NetworkConditions::calm(), || Counting {
        servers: Cluster::new(&servers),
        witness: Arc::clone(&witness),
    });
    assert_eq!(outcome.measurement.status, Status::Complete);
    let changes = witness.lock().expect("no peer panics");
    let at = |moment: Nanos| -> i64 {
        changes.iter().filter(|(at, _)| *at <= moment).map(|(_, change)| change).sum()
    };
    assert_eq!(at(outcome.begin - 50 * MILLISECOND), 2, "in the warm-up");
    assert_eq!(changes.iter().take(8).map(|(_, change)| change).sum::<i64>(), 8, "all of them load");
    assert_eq!(at(outcome.begin + STEP_NS + STEP_NS / 2), 7, "in the second step");
}
