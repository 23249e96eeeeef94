//! Runs over UDP on a network that loses, reorders and doubles datagrams.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;

use pummel_engine::backend::sim::{Admission, NetworkConditions, Next, Peer, datagram_to_client};
use pummel_engine::backend::{ConnId, Target};
use pummel_logic::plan::{Depth, Plan, Transport};
use pummel_logic::protocol::udp::Frame;
use pummel_logic::protocol::{Fault, Verb};
use pummel_logic::time::{MILLISECOND, NEVER, Nanos};
use pummel_measure::measurement::Status;
use pummel_testserver::ServerConfig;

use super::peer::{ServerPeer, SharedServer};
use super::setup::{Outcome, loaded, measuring, mix, plan, requests, run};

/// A server that knows which keys were stored, and replies as memcached does over UDP.
#[derive(Default)]
struct Shelf {
    keys: BTreeSet<Vec<u8>>,
    inbox: BTreeMap<(u32, u32), Vec<Vec<u8>>>,
    /// Whether the server takes datagrams and sends none.
    silent: bool,
}

impl Peer for Shelf {
    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], _now: Nanos) {
        self.inbox.entry((conn.slot, conn.generation)).or_default().push(bytes.to_vec());
    }

    fn poll(&mut self, conn: ConnId, _now: Nanos, out: &mut Vec<u8>) -> Next {
        for datagram in self.inbox.remove(&(conn.slot, conn.generation)).unwrap_or_default() {
            if self.silent {
                continue;
            }
            let (frame, request) = Frame::decode(&datagram).expect("each request has a frame");
            let mut words = request.split(|byte| byte.is_ascii_whitespace());
            let (verb, key) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let reply = match verb {
                b"set" => {
                    self.keys.insert(key.to_vec());
                    b"STORED\r\n".to_vec()
                }
                b"get" if self.keys.contains(key) => [b"VALUE ", key, b" 0 1\r\nx\r\nEND\r\n"].concat(),
                _ => b"END\r\n".to_vec(),
            };
            datagram_to_client(&[&frame.encode()[..], &reply].concat(), out);
        }
        Next::At(NEVER)
    }
}

fn over_udp(count: u64) -> Plan {
    let mut plan = Plan {
        transport: Transport::Udp,
        timeout_ns: 5 * MILLISECOND,
        phases: vec![measuring(mix(&[(Verb::Get, 0.5), (Verb::Set, 0.5)]), requests(count))],
        ..plan()
    };
    plan.groups[0].depth = Depth::Limit(4);
    plan
}

fn leaky(plan: &Plan, seed: u64) -> Outcome {
    run(plan, seed, NetworkConditions::lossy(), Shelf::default)
}

#[test]
fn on_a_leaky_network_every_request_ends_and_no_connection_is_lost() {
    let outcome = leaky(&loaded(over_udp(4_000)), 7);
    let (counts, measurement) = (outcome.counts(), &outcome.measurement);
    assert_eq!((measurement.status, &measurement.reason), (Status::Complete, &None));
    assert_eq!(counts.requests(), 4_000);
    assert_eq!(counts.completed + counts.failed(), 4_000);
    let udp = measurement.udp.expect("datagrams are counted");
    assert!(counts.failed() > 50, "2 % are lost on each way: {counts:?}");
    assert!(udp.udp_timeout >= counts.failed() && udp.packet_drop >= udp.udp_timeout, "{udp:?}");
    assert!(udp.stray > 0, "doubled replies answer nobody");
    assert_eq!(measurement.connections.lost, 0);
    let load = measurement.load.as_ref().expect("it was loaded");
    assert_eq!((load.stored, load.errors), (load.records, 0), "lost stores are repeated");
    for row in &outcome.rows {
        assert!(row.arrived - row.sent <= 5 * MILLISECOND + MILLISECOND, "{row:?} waited longer");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let plan = over_udp(500);
    let (one, other) = (leaky(&plan, 3), leaky(&plan, 3));
    assert_eq!(one.measurement.udp, other.measurement.udp);
    assert_eq!(one.rows, other.rows);
}

#[test]
fn a_silent_server_is_given_up() {
    let silent = || Shelf { silent: true, ..Shelf::default() };
    let outcome = run(&over_udp(1_000_000), 1, NetworkConditions::calm(), silent);
    assert_eq!(outcome.measurement.status, Status::Partial);
    assert!(outcome.reason().contains("longer than the timeout"), "{}", outcome.reason());
}

/// A server that keeps values, and sends every third of them without the line end behind it.
#[derive(Default)]
struct Cutting {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    inbox: BTreeMap<(u32, u32), Vec<Vec<u8>>>,
    reads: u64,
}

impl Peer for Cutting {
    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], _now: Nanos) {
        self.inbox.entry((conn.slot, conn.generation)).or_default().push(bytes.to_vec());
    }

    fn poll(&mut self, conn: ConnId, _now: Nanos, out: &mut Vec<u8>) -> Next {
        for datagram in self.inbox.remove(&(conn.slot, conn.generation)).unwrap_or_default() {
            let (frame, request) = Frame::decode(&datagram).expect("each request has a frame");
            let line = request.windows(2).position(|two| two == b"\r\n").expect("a request is a line") + 2;
            let mut words = request[..line].split(|byte| byte.is_ascii_whitespace());
            let (verb, key) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let mut reply = b"STORED\r\n".to_vec();
            if verb == b"set" {
                self.values.insert(key.to_vec(), request[line..request.len() - 2].to_vec());
            } else if let Some(value) = self.values.get(key) {
                self.reads += 1;
                let head = format!(" 0 {}\r\n", value.len());
                let end: &[u8] = if self.reads.is_multiple_of(3) { b"  END\r\n" } else { b"\r\nEND\r\n" };
                reply = [b"VALUE ", key, head.as_bytes(), value, end].concat();
            } else {
                reply = b"END\r\n".to_vec();
            }
            datagram_to_client(&[&frame.encode()[..], &reply].concat(), out);
        }
        Next::At(NEVER)
    }
}

#[test]
fn a_value_without_its_end_fails_its_own_request_and_accuses_of_nothing() {
    let mut plan = loaded(Plan { verify: 1.0, ..over_udp(4_000) });
    plan.data.records = 4;
    plan.groups[0].depth = Depth::Limit(1);
    let outcome = run(&plan, 1, NetworkConditions::calm(), Cutting::default);
    let (counts, verify) = (outcome.counts(), &outcome.measurement.verify);
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    assert_eq!((verify.failed, verify.stale), (0, 0), "{:?}", verify.first);
    assert!(counts.errors(Fault::Protocol) > 300, "{counts:?}");
    assert_eq!(counts.failed(), counts.errors(Fault::Protocol), "{counts:?}");
    assert!(verify.checked > 1_000, "{verify:?}");
}

/// A server that closes one connection over TCP in the middle of the load, and refuses the next one that is tried.
struct Stumbling {
    inner: ServerPeer,
    received: u32,
    refusals: u32,
}

impl Peer for Stumbling {
    forward!(inner: handle_closed);

    fn handle_connect(&mut self, conn: ConnId, target: &Target, now: Nanos) -> Admission {
        if std::mem::take(&mut self.refusals) > 0 {
            return Admission::Refuse;
        }
        self.inner.handle_connect(conn, target, now)
    }

    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos) {
        self.received += 1;
        self.inner.handle_received(conn, bytes, now);
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        if self.received == 10 {
            (self.received, self.refusals) = (11, 1);
            self.inner.handle_closed(conn, now);
            return Next::Close;
        }
        self.inner.poll(conn, now, out)
    }
}

#[test]
fn a_phase_over_another_transport_begins_with_open_connections_although_an_attempt_failed_before() {
    // The server can be reached over TCP, so that it is loaded over TCP; all traffic is simulated.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut plan = loaded(Plan { reconnect: true, allow_partial_load: true, ..over_udp(400) });
    plan.servers = vec![listener.local_addr().expect("it is bound").to_string()];
    let server = SharedServer::new(ServerConfig::default());
    let outcome = run(&plan, 1, NetworkConditions::calm(), || Stumbling {
        inner: server.peer(),
        received: 0,
        refusals: 0,
    });
    let measurement = &outcome.measurement;
    assert_eq!((measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    assert_eq!((measurement.connections.lost, measurement.connections.failed), (1, 1), "while loading");
    let first: Vec<_> = outcome.rows.iter().filter(|row| row.due == outcome.begin).collect();
    assert!(first.len() >= 4, "each client asks when the phase begins");
    for row in first {
        assert_eq!(row.ready, row.due, "its connection was open when the phase began");
    }
}
