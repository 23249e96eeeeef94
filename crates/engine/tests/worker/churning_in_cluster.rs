//! Clients of a cluster that come and go: the connections that they open, and nodes that take none or say nothing.

use pummel_engine::backend::ConnId;
use pummel_engine::backend::Target;
use pummel_engine::backend::sim::{Admission, NetworkConditions, Next, Peer};
use pummel_logic::dist::Dist;
use pummel_logic::plan::{Arrivals, ChurningClients, Load, Phase, Plan, Protocol, Route, Spawns, Stop, Work};
use pummel_logic::protocol::{Outcome as Ending, Verb};
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_measure::churn::Churn;
use pummel_measure::measurement::Status;
use pummel_testserver::ServerConfig;

use crate::peer::{Cluster, SharedServer, one_store};
use crate::setup::{Outcome, measuring, mix, plan, requests, run, time};

const NODES: u64 = 3;

/// Time of the simulated clock at the beginning.
const START: Nanos = SECOND;

fn server() -> SharedServer {
    let service_time = Some(Dist::Fixed(0.000_1));
    SharedServer::new(ServerConfig { cluster: Some(one_store()), service_time, ..ServerConfig::default() })
}

/// A plan of at most four clients at one time, each with so many requests.
fn coming(spawns: Spawns, calls: u64, stop: Stop) -> Plan {
    let mut plan = Plan {
        servers: (0..NODES).map(|node| format!("127.0.0.{node}:11211")).collect(),
        route: Route::Cluster,
        protocol: Protocol::Resp3,
        reconnect: true,
        timeout_ns: 20 * MILLISECOND,
        phases: vec![measuring(mix(&[(Verb::Get, 1.0), (Verb::Set, 1.0)]), stop)],
        ..plan()
    };
    plan.groups[0].churn = Some(ChurningClients { spawns, calls, sequence: None });
    plan
}

fn churn(outcome: &Outcome) -> &Churn {
    outcome.measurement.connections.churn.as_ref().expect("clients come and go")
}

/// Checks what holds of each run, whatever its nodes do.
fn assert_accounted(outcome: &Outcome) {
    let (churn, counts) = (churn(outcome), outcome.counts());
    assert_eq!((churn.begun, churn.ended), (churn.begun, outcome.departures.len() as u64));
    assert_eq!(churn.established, churn.life.count());
    let slices = outcome.measurement.intervals.iter().map(|slice| &slice.counters.connections);
    let sum = slices.fold((0, 0), |sum, slice| (sum.0 + slice.opened, sum.1 + slice.closed + slice.lost));
    assert_eq!(sum, (churn.established, churn.established), "each that was opened is closed");
    assert_eq!(counts.requests(), outcome.rows.len() as u64 + counts.unsent, "{counts:?}");
}

#[test]
fn each_client_opens_a_connection_to_each_node_that_its_requests_need() {
    let once = server();
    let alone = run(&coming(Spawns::Closed, 1, requests(100)), 1, NetworkConditions::calm(), || {
        Cluster::new(&[once.clone(), once.clone(), once.clone()])
    });
    assert_accounted(&alone);
    let one = churn(&alone);
    assert_eq!((one.begun, one.asked, one.established, one.alive_max), (100, 100, 100, 4));

    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let server = server();
        let mut plan = Plan { protocol, ..coming(Spawns::Closed, 5, requests(500)) };
        // Those who load stay, and have a connection to each node.
        let load = Phase {
            name: "load".to_string(),
            work: Work::Load(Load { depth: 1, ..Load::default() }),
            stop: Stop::default(),
            recorded: false,
        };
        plan.phases.insert(0, load);
        let outcome = run(&plan, 1, NetworkConditions::calm(), || {
            Cluster::new(&[server.clone(), server.clone(), server.clone()])
        });
        assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
        assert_accounted(&outcome);
        let (churn, counts) = (churn(&outcome), outcome.counts());
        assert_eq!((churn.begun, churn.failures.total(), churn.asked), (100, 0, churn.established));
        // Five requests of three nodes need all but 0.4 of them, on average.
        assert!((240..=290).contains(&churn.established), "{}", churn.established);
        assert!((5..=12).contains(&churn.alive_max), "{}", churn.alive_max);
        assert_eq!((counts.completed, counts.requests(), counts.misses), (500, 500, 0));
        let taken = server.lock().counts().total_connections;
        assert!(taken - churn.established <= 4 * NODES + 1, "{taken} with those that stay");
    }
}

#[test]
fn a_node_that_hangs_or_refuses_costs_its_requests_their_timeout_and_is_asked_again() {
    let spawns = || Spawns::Open { arrivals: Arrivals::Constant, rate: 500.0 };
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        for refuses in [false, true] {
            let server = server();
            let mut plan = Plan { protocol, ..coming(spawns(), 2, time(500 * MILLISECOND)) };
            plan.groups[0].clients = 100;
            let back = START + 250 * MILLISECOND;
            let outcome = run(&plan, 1, NetworkConditions::calm(), || {
                let frozen = if refuses { server.clone() } else { server.clone().freezing(0, back) };
                let nodes = Cluster::new(&[server.clone(), frozen, server.clone()]);
                Gate { nodes, refuses_until: if refuses { back } else { 0 } }
            });
            let case = format!("{protocol:?}, it refuses: {refuses}");
            assert_accounted(&outcome);
            let (churn, counts) = (churn(&outcome), outcome.counts());
            assert_eq!((churn.begun, counts.requests()), (250, 500), "{case}: {counts:?}");
            let failures = churn.failures;
            let told = if refuses { failures.refused } else { failures.timeout };
            assert!(told > 5 && told == failures.total(), "{case}: {failures:?}");
            // A third of the requests of the first half find no node.
            assert!((50..=130).contains(&(counts.unsent + counts.failed())), "{case}: {counts:?}");
            let is_late = |arrived: Nanos| arrived >= back + 100 * MILLISECOND;
            let late = outcome.rows.iter().filter(|row| is_late(row.due));
            let good = late.clone().filter(|row| !matches!(row.outcome, Ending::Error(_))).count();
            assert!(good > 100 && good == late.count(), "{case}: {good} when the node is back");
        }
    }
}

/// Nodes of which the second refuses connections for some time.
struct Gate {
    nodes: Cluster,
    refuses_until: Nanos,
}

impl Peer for Gate {
    fn handle_connect(&mut self, conn: ConnId, target: &Target, now: Nanos) -> Admission {
        let Target::Tcp { address, .. } = target else { panic!("{target:?}") };
        if now < self.refuses_until && address.ip().to_string() == "127.0.0.1" {
            return Admission::Refuse;
        }
        self.nodes.handle_connect(conn, target, now)
    }

    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos) {
        self.nodes.handle_received(conn, bytes, now);
    }

    fn handle_closed(&mut self, conn: ConnId, now: Nanos) {
        self.nodes.handle_closed(conn, now);
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        self.nodes.poll(conn, now, out)
    }
}
