//! Servers that take connections and refuse them, and their neighbours: servers that answer with errors, and servers that end
//! connections on purpose.

use std::collections::{BTreeMap, BTreeSet};

use pummel_engine::backend::sim::{Admission, NetworkConditions, Next, Peer};
use pummel_engine::backend::{ConnId, Target};
use pummel_logic::plan::{Plan, Protocol};
use pummel_logic::protocol::{self, Verb};
use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND};
use pummel_measure::measurement::Status;
use pummel_measure::reason::Reason;
use pummel_testserver::ServerConfig;

use crate::peer::{ServerPeer, SharedServer};
use crate::setup::{Outcome, loaded, measuring, mix, plan, requests, run, time};

/// Replies of memcached and Redis on a connection that is one too many.
const MEMCACHED: &[u8] = b"ERROR Too many open connections\r\n";
const REDIS: &[u8] = b"-ERR max number of clients reached\r\n";

/// Time at which a full server sends its refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaks {
    /// Refusal as soon as the connection is there.
    AtOnce,
    /// Refusal when a request has come, which the words then seem to answer.
    ToRequests,
    /// Refusal on the second of the connections that it refuses; the others it resets when a request has come.
    Once,
}

/// The built-in server, which sends to all connections but the first few that it is full, and closes them.
pub struct Full {
    peer: ServerPeer,
    room: u32,
    /// Time from which on there is room for all.
    until: Nanos,
    words: &'static [u8],
    speaks: Speaks,
    /// The connections that were let in.
    connections: BTreeSet<(u32, u32)>,
    /// Connections on which a request has come.
    asked: BTreeSet<(u32, u32)>,
    refused: u64,
}

impl Full {
    /// A server that speaks memcached's text protocol and has room for the connections in the first slots.
    pub fn new(peer: ServerPeer, room: u32) -> Full {
        Full {
            peer,
            room,
            until: NEVER,
            words: MEMCACHED,
            speaks: Speaks::AtOnce,
            connections: BTreeSet::new(),
            asked: BTreeSet::new(),
            refused: 0,
        }
    }

    fn speaking(self, words: &'static [u8], speaks: Speaks) -> Full {
        Full { words, speaks, ..self }
    }
}

impl Peer for Full {
    fn handle_connect(&mut self, conn: ConnId, target: &Target, now: Nanos) -> Admission {
        if conn.slot >= self.room && now < self.until {
            return Admission::Accept;
        }
        self.connections.insert((conn.slot, conn.generation));
        self.peer.handle_connect(conn, target, now)
    }

    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos) {
        match self.connections.contains(&(conn.slot, conn.generation)) {
            true => self.peer.handle_received(conn, bytes, now),
            false => _ = self.asked.insert((conn.slot, conn.generation)),
        }
    }

    fn handle_closed(&mut self, conn: ConnId, now: Nanos) {
        if self.connections.remove(&(conn.slot, conn.generation)) {
            self.peer.handle_closed(conn, now);
        }
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        if self.connections.contains(&(conn.slot, conn.generation)) {
            return self.peer.poll(conn, now, out);
        }
        if self.speaks != Speaks::AtOnce && !self.asked.contains(&(conn.slot, conn.generation)) {
            return Next::At(NEVER);
        }
        self.refused += 1;
        if self.speaks == Speaks::Once && self.refused != 2 {
            return Next::Reset;
        }
        out.extend_from_slice(self.words);
        Next::Close
    }
}

/// The plan of four clients, for a server with these words.
fn four(words: &[u8], reconnect: bool) -> Plan {
    let protocol = if words == REDIS { Protocol::Resp2 } else { Protocol::Text };
    Plan { protocol, reconnect, ..plan() }
}

/// Reason of a run whose server refused so many of four connections with these words.
fn not_taken(refused: u64, words: &str, protocol: Protocol) -> Reason {
    let (server, what) = ("127.0.0.1:11211".to_owned(), words.to_owned());
    let is_resp = protocol.is_resp();
    Reason::NotTaken { server, connections: 4, refused, what, limit: None, counted: None, is_resp, others: 0 }
}

/// Runs against a server that has room for one connection.
fn refused(plan: &Plan, words: &'static [u8], speaks: Speaks, conditions: NetworkConditions) -> Outcome {
    let server = SharedServer::new(ServerConfig::default());
    run(plan, 1, conditions, || Full::new(server.peer(), 1).speaking(words, speaks))
}

#[test]
fn a_connection_that_is_refused_is_tried_again_at_growing_intervals_and_no_more_than_every_second() {
    for words in [MEMCACHED, REDIS] {
        for speaks in [Speaks::AtOnce, Speaks::ToRequests, Speaks::Once] {
            let mut plan = four(words, true);
            plan.phases[0].stop = time(8 * SECOND);
            plan.interval_ns = SECOND;
            let outcome = refused(&plan, words, speaks, NetworkConditions::calm());
            let connections = &outcome.measurement.connections;
            let [refusal] = &connections.refusals[..] else { panic!("{:?}", connections.refusals) };
            let what = format!("{speaks:?}: {refusal:?}");
            // A server's refusals in a row decide the pause, so that it soon is half a second to a second for each connection.
            assert!((3 * 8..=3 * 24).contains(&refusal.attempts), "{what}");
            assert_eq!((refusal.connections, refusal.refused), (4, 3), "{what}");
            let said = std::str::from_utf8(words).unwrap().trim_end().trim_start_matches('-');
            assert_eq!(refusal.words, said, "{what}");
            assert_eq!(outcome.measurement.reason, Some(not_taken(3, said, plan.protocol)), "{what}");
            assert_eq!(outcome.measurement.status, Status::Partial);
            if speaks != Speaks::Once {
                // None of them was open, lost or opened again.
                let counts = (connections.failed, connections.lost, connections.reconnected);
                assert_eq!(counts, (refusal.attempts, 0, 0), "{what}");
            }
            assert!(outcome.counts().completed > 10_000, "the one that was taken goes on: {what}");
        }
    }
}

#[test]
fn a_run_without_reconnection_always_ends_with_what_the_server_took() {
    for words in [MEMCACHED, REDIS] {
        for speaks in [Speaks::AtOnce, Speaks::ToRequests] {
            for conditions in [NetworkConditions::calm(), NetworkConditions::rough()] {
                for loads in [false, true] {
                    let plan = four(words, false);
                    let plan = if loads { loaded(plan) } else { plan };
                    let outcome = refused(&plan, words, speaks, conditions);
                    let said = std::str::from_utf8(words).unwrap().trim_end().trim_start_matches('-');
                    let expected = Some(not_taken(3, said, plan.protocol));
                    assert_eq!(outcome.measurement.reason, expected, "{speaks:?}, loads: {loads}");
                    assert_eq!(outcome.measurement.status, Status::Partial);
                }
            }
        }
    }
}

#[test]
fn a_server_that_has_room_at_last_has_all_connections_within_two_seconds() {
    let mut plan = four(MEMCACHED, true);
    plan.phases[0].stop = time(5 * SECOND);
    plan.interval_ns = SECOND;
    let server = SharedServer::new(ServerConfig::default());
    let outcome = run(&plan, 1, NetworkConditions::calm(), || Full {
        until: 2_500 * MILLISECOND,
        ..Full::new(server.peer(), 1)
    });
    let refusals = &outcome.measurement.connections.refusals;
    assert_eq!((refusals[0].refused, refusals[0].connections), (0, 4), "{refusals:?}");
    assert!((8..=3 * 8).contains(&refusals[0].attempts), "{refusals:?}");
    assert_eq!(outcome.reason(), "", "all were taken in the end");
    let last = outcome.rows.iter().filter(|row| row.outcome == protocol::Outcome::Miss).map(|row| row.client);
    assert_eq!(last.collect::<BTreeSet<u64>>().len(), 4, "all four clients were answered");
}

#[test]
fn a_run_by_requests_gives_a_server_up_that_refuses_all_connections_for_good() {
    for speaks in [Speaks::AtOnce, Speaks::ToRequests] {
        let plan = Plan {
            phases: vec![measuring(mix(&[(Verb::Get, 1.0)]), requests(4_000))],
            ..four(MEMCACHED, true)
        };
        let server = SharedServer::new(ServerConfig::default());
        let full = || Full::new(server.peer(), 0).speaking(MEMCACHED, speaks);
        let outcome = run(&plan, 1, NetworkConditions::calm(), full);
        assert!(outcome.reason().contains("connections: 4, refused: 4,"), "{}", outcome.reason());
    }
}

/// The built-in server, which ends each connection after a number of polls with something to read, and answers with an
/// error before.
struct Ending {
    peer: ServerPeer,
    replies: u32,
    error: Option<&'static [u8]>,
    heard: BTreeMap<(u32, u32), u32>,
}

impl Peer for Ending {
    forward!(peer: handle_closed);

    fn handle_connect(&mut self, conn: ConnId, target: &Target, now: Nanos) -> Admission {
        self.heard.insert((conn.slot, conn.generation), 0);
        self.peer.handle_connect(conn, target, now)
    }

    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos) {
        *self.heard.entry((conn.slot, conn.generation)).or_default() += 1;
        if self.error.is_none() {
            self.peer.handle_received(conn, bytes, now);
        }
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        let heard = self.heard[&(conn.slot, conn.generation)];
        let next = match self.error {
            Some(error) if heard > 0 => {
                out.extend_from_slice(error);
                Next::At(NEVER)
            }
            _ => self.peer.poll(conn, now, out),
        };
        if heard < self.replies {
            return next;
        }
        self.handle_closed(conn, now);
        Next::Close
    }
}

#[test]
fn a_server_that_ends_connections_behind_their_replies_refuses_none() {
    let errors: [(Protocol, Option<&'static [u8]>); 3] = [
        (Protocol::Text, None),
        (Protocol::Text, Some(b"CLIENT_ERROR bad data chunk\r\n")),
        (Protocol::Resp2, Some(b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n")),
    ];
    for (protocol, error) in errors {
        let server = SharedServer::new(ServerConfig::default());
        let plan = Plan { protocol, ..four(MEMCACHED, true) };
        let outcome = run(&plan, 1, NetworkConditions::calm(), || Ending {
            peer: server.peer(),
            replies: 1,
            error,
            heard: BTreeMap::new(),
        });
        let connections = &outcome.measurement.connections;
        assert_eq!(connections.refusals, [], "{error:?}");
        // Four connections in a tenth of a second, each of which lives for two ways there and back.
        assert!(connections.reconnected > 100, "{error:?}: no pause: {connections:?}");
    }
}
