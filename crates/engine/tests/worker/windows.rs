//! Clients with windows (memaslap) against servers that forget, that refuse to store, and that are full.

use pummel_engine::backend::ConnId;
use pummel_engine::backend::sim::{NetworkConditions, Next, Peer};
use pummel_logic::plan::{
    Arrivals, ChurningClients, Lengths, Phase, Plan, Pool, Protocol, Spawns, Window, Work,
};
use pummel_logic::protocol::Verb;
use pummel_logic::time::Nanos;
use pummel_measure::measurement::Status;
use pummel_testserver::{Limits, ServerConfig};

use crate::peer::{ServerPeer, SharedServer};
use crate::refusals::Full;
use crate::setup::{measuring, mix, plan, requests, run};

/// Four clients that set and get the objects of their windows, and check every value.
fn windowed(protocol: Protocol, multiget: u32) -> Plan {
    let lengths = |start, end| vec![Lengths { start, end, share: 1.0 }];
    let window = Window {
        seed: 7,
        objects: 64,
        keys: lengths(16, 40),
        values: lengths(300, 900),
        set: 0.3,
        get: 0.7,
        multiget,
        overwrite: 0.0,
        verify: 1.0,
        expire: 0.0,
        verbose: true,
        preset: false,
        pool: Pool { sockets: 1, block: 1, datagrams: false, replication: None },
    };
    let measure = Phase {
        name: "measure".to_owned(),
        work: Work::Window(window),
        stop: requests(8_000),
        recorded: true,
    };
    Plan { protocol, phases: vec![measure], ..plan() }
}

#[test]
fn a_server_that_evicts_is_accused_of_no_wrong_value() {
    for protocol in [Protocol::Text, Protocol::Binary] {
        for multiget in [1, 2, 5] {
            // Half of what the windows hold.
            let limits = Limits { memory_max_bytes: 80 << 10, ..Limits::default() };
            let server = SharedServer::new(ServerConfig { limits, ..ServerConfig::default() });
            let outcome = run(&windowed(protocol, multiget), 1, NetworkConditions::rough(), || server.peer());
            let window = outcome.measurement.counters.window;
            assert_eq!(outcome.reason(), "", "{protocol:?}, {multiget}");
            assert_eq!(window.verify_failed, 0, "{protocol:?}, {multiget}: {window:?}");
            assert!(window.verify_misses > 300, "{protocol:?}, {multiget}: {window:?}");
            let counts = outcome.counts();
            assert!(window.verify_misses <= counts.misses, "{counts:?}");
        }
    }
}

/// The built-in server, whose replies to sets are replaced.
struct Answering {
    peer: ServerPeer,
    reply: &'static [u8],
}

impl Peer for Answering {
    forward!(peer: handle_connect, handle_received, handle_closed);

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        let next = self.peer.poll(conn, now, out);
        if out == b"STORED\r\n" {
            out.clear();
            out.extend_from_slice(self.reply);
        }
        next
    }
}

#[test]
fn a_set_that_is_answered_and_not_stored_is_no_good_set() {
    for (reply, words) in [(&b"NOT_STORED\r\n"[..], "NOT_STORED"), (b"EXISTS\r\n", "EXISTS")] {
        let server = SharedServer::new(ServerConfig::default());
        let outcome = run(&windowed(Protocol::Text, 1), 1, NetworkConditions::calm(), || Answering {
            peer: server.peer(),
            reply,
        });
        let ops = outcome.measurement.ops();
        let sets = ops.get(Verb::Set).expect("there were sets").counts;
        assert_eq!(sets.completed, 0, "{words}: {sets:?}");
        assert_eq!(outcome.measurement.messages.get(words), Some(&sets.failed()), "{words}");
        assert_eq!(outcome.measurement.counters.window.object_bytes, 0, "{words}");
    }
}

#[test]
fn a_full_server_is_measured_with_the_connections_that_it_took() {
    for room in [1, 3] {
        let server = SharedServer::new(ServerConfig::default());
        let plan = windowed(Protocol::Text, 1);
        let outcome = run(&plan, 1, NetworkConditions::calm(), || Full::new(server.peer(), room));
        assert_eq!(outcome.measurement.status, Status::Partial);
        let refused = format!("connections: 4, refused: {}, what: \"ERROR Too", 4 - room);
        assert!(outcome.reason().contains(&refused), "{}", outcome.reason());
        assert_eq!(outcome.counts().completed, 2_000 * u64::from(room), "the others did all of theirs");
    }
    let server = SharedServer::new(ServerConfig::default());
    let plan = windowed(Protocol::Text, 1);
    let outcome = run(&plan, 1, NetworkConditions::calm(), || Full::new(server.peer(), 0));
    assert_eq!(outcome.measurement.started_unix_ns, 0, "there is nothing to measure with");
    assert!(outcome.reason().contains("connections: 4, refused: 4,"), "{}", outcome.reason());
}

#[test]
fn a_full_server_refuses_the_connections_of_clients_that_come_and_go() {
    for spawns in [Spawns::Closed, Spawns::Open { arrivals: Arrivals::Constant, rate: 1_000.0 }] {
        let server = SharedServer::new(ServerConfig::default());
        let mut plan = plan();
        plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), requests(400))];
        plan.groups[0].churn = Some(ChurningClients { spawns, calls: 4, sequence: None });
        let outcome = run(&plan, 1, NetworkConditions::calm(), || Full::new(server.peer(), 0));
        let churn = outcome.measurement.connections.churn.as_ref().expect("clients came");
        let failures = churn.failures;
        assert!(failures.refused > 0 && failures.refused == failures.total(), "{failures:?}");
        assert_eq!((churn.replies.error, outcome.counts().completed), (0, 0), "{:?}", churn.replies);
        assert!(outcome.reason().contains("takes no more connections"), "{}", outcome.reason());
    }
}
