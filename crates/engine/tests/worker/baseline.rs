//! Round trips that are made one at a time before the measured phase: what they measure, and that they change nothing of the run.

use std::collections::BTreeMap;

use pummel_engine::backend::sim::{Admission, NetworkConditions, Next, Peer};
use pummel_engine::backend::{ConnId, Target};
use pummel_logic::plan::baseline::{KIND_MAX_NS, NoOwnReads, ROUND_TRIPS, ROUND_TRIPS_DROPPED};
use pummel_logic::plan::{Plan, Route, Transport};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_measure::baseline::{Baseline, BaselineFault};
use pummel_measure::measurement::{Measurement, Status};
use pummel_testserver::ServerConfig;

use crate::peer::{Cluster, ServerPeer, SharedServer};
use crate::setup::{Outcome, loaded, measuring, mix, outcome, plan, requests, run};

/// A load and so many gets of a run that has a baseline.
fn with_baseline() -> Plan {
    let mut plan = loaded(Plan { baseline: true, ..plan() });
    plan.phases[1] = measuring(mix(&[(Verb::Get, 3.0), (Verb::Set, 1.0)]), requests(400));
    plan
}

fn baseline(outcome: &Outcome) -> &Baseline {
    outcome.measurement.baseline.as_ref().expect("the plan has one")
}

/// Counts of a run that a baseline must not change: requests, bytes, connections.
fn account(measurement: &Measurement) -> impl PartialEq + std::fmt::Debug {
    let connections = &measurement.connections;
    let counts = [connections.open, connections.lost, connections.reconnected, connections.failed];
    let [own, all] = [measurement.ops().all().counts, measurement.whole_run.ops.all()];
    (own, all, measurement.whole_run.bytes, counts, measurement.messages.clone(), measurement.status)
}

#[test]
fn a_hundred_round_trips_of_each_kind_are_made_and_change_no_count_of_the_run() {
    let plain = outcome(&Plan { baseline: false, ..with_baseline() });
    assert_eq!(plain.measurement.baseline, None);
    let server = SharedServer::new(ServerConfig::default());
    let run = run(&with_baseline(), 1, NetworkConditions::calm(), || server.peer());
    let seen = baseline(&run);
    for trips in [&seen.empty, &seen.own] {
        assert_eq!(trips.requests, ROUND_TRIPS);
        assert_eq!(trips.times.count(), ROUND_TRIPS - ROUND_TRIPS_DROPPED);
    }
    assert_eq!((seen.no_own, seen.faults.len()), (None, 0));
    assert_eq!(account(&run.measurement), account(&plain.measurement));
    let sent = run.measurement.whole_run.ops.all().requests();
    assert_eq!(server.lock().requests(), sent + 2 * ROUND_TRIPS, "the server has seen both");
}

#[test]
fn a_round_trip_takes_what_the_network_and_the_server_take() {
    let way_ns = MILLISECOND / 10;
    let conditions = NetworkConditions { delay_ns: (way_ns, way_ns), ..NetworkConditions::calm() };
    let server = SharedServer::new(ServerConfig::default());
    let run = run(&with_baseline(), 1, conditions, || server.peer());
    for trips in [&baseline(&run).empty, &baseline(&run).own] {
        let moments = trips.times.moments();
        assert_eq!((moments.min, moments.max), (2 * way_ns, 2 * way_ns));
    }
}

#[test]
fn own_requests_are_left_out_where_a_mix_has_none_that_change_nothing() {
    let mut plan = with_baseline();
    plan.phases[1] = measuring(mix(&[(Verb::Set, 1.0)]), requests(100));
    let run = outcome(&plan);
    assert_eq!(baseline(&run).own.requests, 0);
    assert_eq!(baseline(&run).no_own, Some(NoOwnReads::NoReads));
    assert_eq!(baseline(&run).empty.requests, ROUND_TRIPS);
}

#[test]
fn each_server_is_asked_for_records_that_lie_there() {
    let servers: Vec<SharedServer> = (0..3).map(|_| SharedServer::new(ServerConfig::default())).collect();
    for (route, times) in [(Route::Modulo, 1), (Route::Ketama, 1), (Route::RoundRobin, 1), (Route::All, 1)] {
        let mut plan = with_baseline();
        plan.servers = (0..3).map(|number| format!("127.0.0.{number}:11211")).collect();
        plan.route = route;
        plan.phases[1] = measuring(mix(&[(Verb::Get, 1.0)]), requests(400));
        let before: Vec<u64> = servers.iter().map(|server| server.lock().requests()).collect();
        let run = run(&plan, 1, NetworkConditions::calm(), || Cluster::new(&servers));
        assert_eq!(run.measurement.status, Status::Complete, "{}", run.reason());
        assert_eq!(baseline(&run).empty.requests, 3 * times * ROUND_TRIPS, "{route:?}");
        assert_eq!(baseline(&run).own.requests, 3 * times * ROUND_TRIPS, "{route:?}");
        let sent: u64 =
            servers.iter().zip(before).map(|(server, before)| server.lock().requests() - before).sum();
        let of_run = run.measurement.whole_run.ops.all().requests();
        assert_eq!(sent, of_run + 6 * ROUND_TRIPS, "{route:?}");
        let misses: u64 = servers.iter().map(|server| server.lock().counts().get_misses).sum();
        assert_eq!(misses, 0, "{route:?}: every record that was asked for was stored there");
    }
}

/// Answer of a server to an empty request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mood {
    Says(&'static [u8]),
    Closes,
    SaysNothing,
}

/// The built-in server, but for what it does with empty requests.
struct Moody {
    peer: ServerPeer,
    mood: Mood,
    /// Connections on which an empty request has come and was not dealt with.
    asked: BTreeMap<(u32, u32), ()>,
}

impl Peer for Moody {
    forward!(peer: handle_closed);

    fn handle_connect(&mut self, conn: ConnId, target: &Target, now: Nanos) -> Admission {
        self.peer.handle_connect(conn, target, now)
    }

    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos) {
        match bytes.starts_with(b"version") {
            true => _ = self.asked.insert((conn.slot, conn.generation), ()),
            false => self.peer.handle_received(conn, bytes, now),
        }
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        if self.asked.remove(&(conn.slot, conn.generation)).is_none() {
            return self.peer.poll(conn, now, out);
        }
        match self.mood {
            Mood::Says(bytes) => out.extend_from_slice(bytes),
            Mood::SaysNothing => {}
            Mood::Closes => {
                self.peer.handle_closed(conn, now);
                return Next::Close;
            }
        }
        self.peer.poll(conn, now, out)
    }
}

#[test]
fn a_server_that_does_not_answer_leaves_no_baseline_and_the_run_as_it_is() {
    let plain = outcome(&Plan { baseline: false, ..with_baseline() });
    let rows = [
        (Mood::Closes, BaselineFault::Closed),
        (Mood::SaysNothing, BaselineFault::Silent),
        (Mood::Says(b"no word\r\n"), BaselineFault::Malformed),
        (Mood::Says(b"END\r\n"), BaselineFault::Malformed),
        (Mood::Says(b"ERROR Too many open connections\r\n"), BaselineFault::Refused),
    ];
    for (mood, fault) in rows {
        for reconnect in [false, true] {
            let server = SharedServer::new(ServerConfig::default());
            let peer = || Moody { peer: server.peer(), mood, asked: BTreeMap::new() };
            let plan = Plan { reconnect, ..with_baseline() };
            let run = run(&plan, 1, NetworkConditions::calm(), peer);
            assert_eq!(baseline(&run).faults, BTreeMap::from([(fault, 1)]), "{mood:?}");
            assert_eq!((baseline(&run).empty.times.count(), baseline(&run).own.requests), (0, 0), "{mood:?}");
            assert_eq!(account(&run.measurement), account(&plain.measurement), "{mood:?}");
        }
    }
}

#[test]
fn an_error_reply_is_a_round_trip_too() {
    let server = SharedServer::new(ServerConfig::default());
    let peer = || Moody { peer: server.peer(), mood: Mood::Says(b"ERROR\r\n"), asked: BTreeMap::new() };
    let run = run(&with_baseline(), 1, NetworkConditions::calm(), peer);
    assert_eq!(baseline(&run).faults.len(), 0);
    assert_eq!(baseline(&run).empty.times.count(), ROUND_TRIPS - ROUND_TRIPS_DROPPED);
    assert!(run.measurement.messages.is_empty(), "the run had no error: {:?}", run.measurement.messages);
}

#[test]
fn slow_servers_are_asked_for_no_longer_than_the_time_of_a_kind() {
    let way_ns = 5 * MILLISECOND;
    let conditions = NetworkConditions { delay_ns: (way_ns, way_ns), ..NetworkConditions::calm() };
    let server = SharedServer::new(ServerConfig::default());
    let run = run(&with_baseline(), 1, conditions, || server.peer());
    assert_eq!(baseline(&run).empty.requests, KIND_MAX_NS / (2 * way_ns));
    assert_eq!(baseline(&run).faults, BTreeMap::from([(BaselineFault::Slow, 1)]));
    assert_eq!(run.measurement.connections.lost, 0, "the last reply was waited for");
}

#[test]
fn datagrams_of_a_baseline_are_none_of_the_run() {
    let plan = |baseline| {
        let mut plan = with_baseline();
        plan.baseline = baseline;
        plan.transport = Transport::Udp;
        plan.timeout_ns = SECOND;
        plan
    };
    let (plain, run) = (outcome(&plan(false)), outcome(&plan(true)));
    assert_eq!(baseline(&run).own.times.count(), ROUND_TRIPS - ROUND_TRIPS_DROPPED);
    assert_eq!(run.measurement.udp, plain.measurement.udp);
    assert_eq!(account(&run.measurement), account(&plain.measurement));
}
