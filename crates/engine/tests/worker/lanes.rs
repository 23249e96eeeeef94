//! Clients with several lanes: the places of records, requests that lanes share, and lanes that are lost.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use pummel_engine::backend::sim::{Admission, NetworkConditions, Next, Peer};
use pummel_engine::backend::{ConnId, Target};
use pummel_logic::plan::{Depth, Group, Plan, Route};
use pummel_logic::protocol::{Fault, Verb};
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_measure::measurement::Status;
use pummel_measure::recorder::Span;
use pummel_testserver::{CountedFault, ServerConfig};

use crate::peer::{Cluster, SharedServer};
use crate::setup::{
    Outcome, at_rate, loaded, measuring, mix, mix_of_all, plan, requests, run, schedule, time,
};

/// Time of the simulated clock at the beginning.
const START: Nanos = SECOND;

const KEY_OWNED: [Route; 4] = [Route::Modulo, Route::Ketama, Route::KetamaWeighted, Route::Crc16];

fn servers(count: usize) -> Vec<SharedServer> {
    (0..count).map(|_| SharedServer::new(ServerConfig::default())).collect()
}

/// Puts `plan` on these servers.
pub fn over(servers: &[SharedServer], route: Route, plan: Plan) -> Plan {
    let names = (0..servers.len()).map(|n| format!("127.0.0.{n}:11211")).collect();
    Plan { servers: names, route, ..plan }
}

pub fn run_over(servers: &[SharedServer], plan: &Plan, seed: u64, conditions: NetworkConditions) -> Outcome {
    run(plan, seed, conditions, || Cluster::new(servers))
}

fn stored(servers: &[SharedServer]) -> Vec<usize> {
    servers.iter().map(|server| server.lock().store().len()).collect()
}

/// Reads of ten keys, all of which are checked.
fn reading_ten(asked: u64) -> Plan {
    let mut plan = loaded(plan());
    plan.verify = 1.0;
    let mut reading = mix(&[(Verb::Get, 1.0)]);
    reading.multiget = 10;
    plan.phases[1] = measuring(reading, requests(asked));
    plan
}

#[test]
fn every_record_is_stored_once_where_keys_have_owners_and_on_every_server_elsewhere() {
    for route in [Route::All, Route::RoundRobin].into_iter().chain(KEY_OWNED) {
        for (clients, threads) in [(4, 1), (7, 3)] {
            let servers = servers(3);
            let mut plan = over(&servers, route, loaded(plan()));
            (plan.groups[0].clients, plan.engine.threads) = (clients, threads);
            let outcome = run_over(&servers, &plan, 1, NetworkConditions::rough());
            assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
            let load = outcome.measurement.load.as_ref().expect("records were loaded");
            // Plain records, pieces and counters.
            let copies = if KEY_OWNED.contains(&route) { 1 } else { 3 };
            assert_eq!(
                (load.records, load.stored, load.errors),
                (300 * copies, 300 * copies, 0),
                "{route:?}"
            );
            let stored = stored(&servers);
            assert_eq!(stored.iter().sum::<usize>() as u64, 300 * copies, "{route:?}: {stored:?}");
            assert!(stored.iter().all(|&here| here > 30 && (copies == 1 || here == 300)), "{stored:?}");
            let sets: u64 = servers.iter().map(|server| server.lock().counts().cmd_set).sum();
            assert_eq!(sets, 300 * copies, "{route:?}: nothing is stored twice");
            assert_eq!(outcome.counts().misses, 0, "{route:?}: what is asked for is where it is asked for");
        }
    }
}

#[test]
fn connections_are_clients_times_lanes() {
    for (route, asked) in [(Route::All, 4), (Route::RoundRobin, 12), (Route::Ketama, 12)] {
        let servers = servers(3);
        let outcome = run_over(&servers, &over(&servers, route, plan()), 1, NetworkConditions::calm());
        let connections = &outcome.measurement.connections;
        assert_eq!((connections.asked, connections.open), (asked, asked), "{route:?}");
    }
}

/// Servers that note from which address each connection comes, beside the address that it goes to.
struct Noting {
    servers: Cluster,
    pairs: Arc<Mutex<Vec<(IpAddr, IpAddr)>>>,
}

impl Peer for Noting {
    forward!(servers: handle_received, handle_closed);

    fn handle_connect(&mut self, conn: ConnId, target: &Target, now: Nanos) -> Admission {
        if let Target::Tcp { address, source: Some(source) } = target {
            self.pairs.lock().expect("no peer panics").push((address.ip(), source.ip()));
        }
        self.servers.handle_connect(conn, target, now)
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        self.servers.poll(conn, now, out)
    }
}

#[test]
fn every_server_is_reached_from_every_source() {
    // Four connections each: of clients with one lane, of clients with two, and of two groups of clients.
    for (route, groups) in [
        (Route::All, vec![4]),
        (Route::RoundRobin, vec![2]),
        (Route::Ketama, vec![2]),
        (Route::All, vec![2, 2]),
    ] {
        for threads in [1, 2] {
            let servers = servers(2);
            let mut plan = over(&servers, route, plan());
            plan.engine.threads = threads;
            plan.socket.source = vec!["127.0.1.1".to_string(), "127.0.1.2".to_string()];
            let group = |(number, &clients): (usize, &u32)| Group {
                name: format!("group {number}"),
                clients,
                ..Group::default()
            };
            plan.groups = groups.iter().enumerate().map(group).collect();
            let pairs: Arc<Mutex<Vec<(IpAddr, IpAddr)>>> = Arc::default();
            let outcome = run(&plan, 1, NetworkConditions::calm(), || Noting {
                servers: Cluster::new(&servers),
                pairs: Arc::clone(&pairs),
            });
            assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
            let pairs = pairs.lock().expect("no peer panics");
            let distinct: BTreeSet<&(IpAddr, IpAddr)> = pairs.iter().collect();
            assert_eq!((pairs.len(), distinct.len()), (4, 4), "{route:?} {groups:?}: {pairs:?}");
        }
    }
}

#[test]
fn round_robin_asks_all_servers_as_often() {
    let servers = servers(3);
    let mut plan = over(&servers, Route::RoundRobin, plan());
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), requests(1_200))];
    run_over(&servers, &plan, 1, NetworkConditions::calm());
    let asked: Vec<u64> = servers.iter().map(|server| server.lock().requests()).collect();
    assert_eq!(asked, [400, 400, 400]);
}

#[test]
fn requests_without_a_reply_count_for_the_server_that_they_were_sent_to() {
    let servers = servers(2);
    let mut plan = over(&servers, Route::All, plan());
    // The first and the third client go to the first server.
    plan.groups[0].clients = 3;
    let mut stores = mix(&[(Verb::Set, 1.0)]);
    stores.noreply = true;
    plan.phases = vec![measuring(stores, requests(1_200))];
    for conditions in [NetworkConditions::calm(), NetworkConditions::rough()] {
        let outcome = run_over(&servers, &plan, 1, conditions);
        let counted: Vec<u64> =
            outcome.measurement.side_times.servers.iter().map(|server| server.completed).collect();
        assert_eq!(counted, [800, 400]);
        let to_first = outcome.rows.iter().filter(|row| row.client.is_multiple_of(2)).count();
        assert_eq!((to_first, outcome.rows.len()), (800, 1_200));
    }
}

#[test]
fn everything_is_verified_over_several_servers() {
    for route in [Route::RoundRobin, Route::Modulo, Route::Ketama, Route::Crc16] {
        for (seed, multiget) in [(1, 1), (2, 5)] {
            let servers = servers(3);
            let mut plan = over(&servers, route, loaded(plan()));
            plan.verify = 1.0;
            plan.groups[0].depth = Depth::Limit(4);
            let mut all = mix_of_all();
            all.multiget = multiget;
            plan.phases[1] = measuring(all, requests(4_000));
            let outcome = run_over(&servers, &plan, seed, NetworkConditions::rough());
            assert_eq!(
                (outcome.measurement.status, outcome.reason().as_str()),
                (Status::Complete, ""),
                "{route:?}"
            );
            let verify = &outcome.measurement.verify;
            assert!(verify.checked > 500, "{route:?}: {} were checked", verify.checked);
            assert_eq!((verify.failed, verify.stale), (0, 0), "{route:?}: {:?}", verify.first);
            assert_eq!(outcome.counts().failed(), 0, "{route:?}");
        }
    }
}

#[test]
fn a_multi_get_over_several_servers_is_one_request() {
    for conditions in [NetworkConditions::calm, NetworkConditions::rough] {
        let servers = servers(3);
        let plan = over(&servers, Route::Ketama, reading_ten(500));
        let outcome = run_over(&servers, &plan, 3, conditions());
        let counts = outcome.counts();
        assert_eq!((counts.requests(), counts.completed, counts.keys), (500, 500, 5_000));
        assert_eq!((counts.hits, counts.misses), (5_000, 0));
        let all = outcome.measurement.ops().all();
        assert_eq!(all.times.of(Span::Response).count(), 500, "one sample each");
        let parts: u64 = servers.iter().map(|server| server.lock().requests()).sum();
        assert!(parts > 300 + 3 * 400, "most have a part on every server: {parts} with loading");
        let keys: u64 = servers.iter().map(|server| server.lock().counts().cmd_get).sum();
        assert_eq!(keys, 5_000);
        assert_eq!(outcome.rows.len(), 500);
        let verify = &outcome.measurement.verify;
        assert_eq!((verify.checked, verify.failed), (5_000, 0), "{:?}", verify.first);
    }
}

#[test]
fn a_multi_get_ends_with_its_last_part() {
    // One of the servers does nothing for a while, in which no request that needs it ends.
    let frozen: (Nanos, Nanos) = (START + 40 * MILLISECOND, START + 70 * MILLISECOND);
    let mut servers = servers(2);
    servers[1] = servers[1].clone().freezing(frozen.0, frozen.1);
    let mut plan = over(&servers, Route::Modulo, plan());
    let mut reading = mix(&[(Verb::Get, 1.0)]);
    reading.multiget = 20;
    plan.phases = vec![measuring(reading, time(100 * MILLISECOND))];
    let outcome = run_over(&servers, &plan, 1, NetworkConditions::calm());
    let held = outcome.rows.iter().filter(|row| row.sent < frozen.1 && row.arrived >= frozen.1);
    assert_eq!(held.count(), 4, "one of each client");
    let ended = |at: Nanos| (frozen.0 + 5 * MILLISECOND..frozen.1).contains(&at);
    assert_eq!(outcome.rows.iter().filter(|row| ended(row.arrived)).count(), 0);
    assert!(outcome.counts().completed > 100);
}

#[test]
fn reading_through_stores_the_missed_keys_where_they_live() {
    for route in [Route::Ketama, Route::Crc16] {
        let servers = servers(3);
        let mut plan = over(&servers, route, plan());
        plan.verify = 0.5;
        let mut reading = mix(&[(Verb::Get, 1.0)]);
        (reading.multiget, reading.read_through_ns) = (5, Some(MILLISECOND / 10));
        plan.phases = vec![measuring(reading, requests(300))];
        let outcome = run_over(&servers, &plan, 1, NetworkConditions::rough());
        assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
        let ops = outcome.measurement.ops();
        let (get, set) = (ops.get(Verb::Get).unwrap().counts, ops.get(Verb::Set).unwrap().counts);
        assert_eq!((get.completed, get.keys), (300, 1_500));
        assert_eq!(set.outcomes.stored, get.misses, "every missing key is stored once");
        assert_eq!(stored(&servers).iter().sum::<usize>(), 100, "by the end each is on one server");
        assert_eq!(outcome.measurement.verify.failed, 0);
    }
}

/// Asserts that all requests of a run without follow-ups are accounted for, however they ended.
fn assert_accounted(outcome: &Outcome, asked: u64, context: &str) {
    let counts = outcome.counts();
    let ended = counts.completed + counts.failed();
    assert_eq!(ended + counts.unfinished + counts.unsent, asked, "{context}: {counts:?}");
    let slices: u64 = outcome.measurement.intervals.iter().map(|slice| slice.counts().requests()).sum();
    assert_eq!(slices, asked, "{context}: the slices have all of them too");
    assert_eq!(outcome.measurement.whole_run.ops.all().requests(), asked, "{context}: and the whole run");
}

/// Three servers, of which the second closes a connection at every fifth request.
fn with_one_closing() -> Vec<SharedServer> {
    let mut servers = servers(3);
    servers[1] = SharedServer::new(ServerConfig {
        faults: vec![CountedFault::CloseAfter.at(5)],
        ..ServerConfig::default()
    });
    servers
}

#[test]
fn in_open_loop_all_that_was_due_is_accounted_for_when_lanes_are_lost() {
    for conditions in [NetworkConditions::calm, NetworkConditions::rough] {
        for seed in 0..8 {
            for (reconnect, route, multiget) in [
                (false, Route::Ketama, 1),
                (true, Route::Modulo, 6),
                (false, Route::Crc16, 6),
                (true, Route::RoundRobin, 1),
            ] {
                let servers = with_one_closing();
                let mut plan = over(&servers, route, at_rate(plan(), 20_000.0));
                (plan.seed, plan.reconnect, plan.timeout_ns) = (seed, reconnect, 5 * MILLISECOND);
                plan.groups[0].depth =
                    [Depth::Limit(1), Depth::Limit(3), Depth::Unlimited][seed as usize % 3];
                let mut asking = mix(&[(Verb::Get, 9.0), (Verb::Set, 1.0)]);
                asking.multiget = multiget;
                plan.phases = vec![measuring(asking, time(50 * MILLISECOND))];
                let outcome = run_over(&servers, &plan, seed, conditions());
                let due: usize = schedule(&plan, 50 * MILLISECOND).iter().map(Vec::len).sum();
                let context = format!("seed {seed} reconnect {reconnect} {route:?} {multiget}");
                assert_eq!(outcome.measurement.measured_ns, 50 * MILLISECOND, "{context}");
                assert_accounted(&outcome, due as u64, &context);
                let counts = outcome.counts();
                assert!(counts.errors(Fault::Closed) > 0, "{context}: parts were lost");
                assert!(counts.completed > 0, "{context}: the other servers go on answering");
                if !reconnect {
                    assert!(counts.unsent > 0, "{context}: nobody asks the lost lanes");
                    assert!(
                        outcome.reason().starts_with("ConnectionsLost { asked: 12, lost: 4,"),
                        "{}",
                        outcome.reason()
                    );
                }
            }
        }
    }
}

#[test]
fn a_number_of_requests_is_made_and_accounted_for_when_lanes_are_lost() {
    for seed in 0..8 {
        for reconnect in [false, true] {
            let servers = with_one_closing();
            let mut plan = over(&servers, Route::Ketama, plan());
            (plan.seed, plan.reconnect) = (seed, reconnect);
            plan.groups[0].depth = Depth::Limit(1 + seed as u32 % 4);
            let mut asking = mix(&[(Verb::Get, 1.0), (Verb::Set, 1.0)]);
            asking.multiget = 4;
            plan.phases = vec![measuring(asking, requests(1_003))];
            let outcome = run_over(&servers, &plan, seed, NetworkConditions::rough());
            if reconnect {
                assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
                assert_accounted(&outcome, 1_003, &format!("seed {seed}"));
            } else {
                let counts = outcome.counts();
                assert_eq!(outcome.measurement.status, Status::Partial);
                assert!(outcome.reason().starts_with("ConnectionsLost { asked: 12,"), "{}", outcome.reason());
                assert!(counts.requests() < 1_003 && counts.errors(Fault::Closed) > 0, "{counts:?}");
            }
        }
    }
}

#[test]
fn a_server_that_does_not_answer_costs_only_the_parts_that_it_has() {
    let mut servers = servers(3);
    servers[2] = servers[2].clone().freezing(START + 300 * MILLISECOND, START + 60 * SECOND);
    let mut plan = over(&servers, Route::Modulo, at_rate(loaded(plan()), 4_000.0));
    (plan.reconnect, plan.timeout_ns) = (true, 20 * MILLISECOND);
    plan.groups[0].depth = Depth::Unlimited;
    plan.phases[1] = measuring(mix(&[(Verb::Get, 1.0)]), time(600 * MILLISECOND));
    let outcome = run_over(&servers, &plan, 1, NetworkConditions::calm());
    let due: usize = schedule(&plan, 600 * MILLISECOND).iter().map(Vec::len).sum();
    let counts = outcome.counts();
    assert_eq!(counts.completed + counts.failed() + counts.unfinished + counts.unsent, due as u64);
    assert!(counts.errors(Fault::Timeout) > 0);
    let late = outcome.rows.iter().filter(|row| row.due > START + 500 * MILLISECOND);
    let answered =
        late.filter(|row| !matches!(row.outcome, pummel_logic::protocol::Outcome::Error(_))).count();
    assert!(answered > 100, "two servers answer to the end: {answered}");
}

#[test]
fn the_same_seed_gives_the_same_measurement_over_several_servers() {
    let once = || {
        let servers = with_one_closing();
        let mut plan = over(&servers, Route::Ketama, loaded(plan()));
        plan.reconnect = true;
        let mut all = mix_of_all();
        all.multiget = 7;
        plan.phases[1] = measuring(all, requests(1_000));
        run_over(&servers, &plan, 5, NetworkConditions::harsh()).rows
    };
    assert_eq!(once(), once());
}
