//! Tests of connections while a phase that has a time to begin at has not begun.

use std::io::{self};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pummel_engine::backend::sim::{NetworkConditions, Next, Peer, Sim};
use pummel_engine::backend::{Backend, ConnId};
use pummel_engine::run::{Gate, Run};
use pummel_logic::plan::share::ProcessShare;
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_measure::completion::Loaded;
use pummel_measure::measurement::{Measurement, Status};
use pummel_testserver::ServerConfig;

use crate::peer::{ServerPeer, SharedServer};
use crate::setup::{ReaderState, loaded, plan};

/// Time for which the processes of a run wait for each other before each phase.
const WAIT_NS: Nanos = 5 * SECOND;

/// Time without a request after which the server does something unasked on a connection.
const IDLE_NS: Nanos = SECOND;

struct Late;

impl Gate for Late {
    fn pass(&self, ready: Nanos, _loaded: Loaded) -> Option<Nanos> {
        Some(ready + WAIT_NS)
    }
}

/// Action of a server on a connection without a request for some time.
#[derive(Clone, Copy, PartialEq)]
enum WhenIdle {
    Nothing,
    Closes,
    Sends(&'static [u8]),
}

/// A server that does something unasked once on each connection that has stored something.
struct Restless {
    peer: ServerPeer,
    when_idle: WhenIdle,
    /// Time from which each connection is idle; `None` once the server has acted.
    idle_at: std::collections::BTreeMap<(u32, u32), Option<Nanos>>,
}

impl Peer for Restless {
    forward!(peer: handle_connect, handle_closed);

    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos) {
        if bytes.starts_with(b"set") && self.when_idle != WhenIdle::Nothing {
            self.idle_at.insert((conn.slot, conn.generation), Some(now + IDLE_NS));
        }
        self.peer.handle_received(conn, bytes, now);
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        let next = self.peer.poll(conn, now, out);
        let (Some(idle_at), Next::At(at)) = (self.idle_at.get_mut(&(conn.slot, conn.generation)), next)
        else {
            return next;
        };
        match (idle_at.filter(|idle_at| now >= *idle_at), self.when_idle) {
            (None, _) => Next::At(idle_at.map_or(at, |idle_at| at.min(idle_at))),
            (Some(_), WhenIdle::Sends(bytes)) => {
                *idle_at = None;
                out.extend_from_slice(bytes);
                next
            }
            (Some(_), _) => {
                self.peer.handle_closed(conn, now);
                Next::Close
            }
        }
    }
}

/// A network that counts how often its worker waits.
struct Counting {
    network: Sim<Restless>,
    waits: Arc<AtomicU64>,
}

impl Backend for Counting {
    forward!(network: now, open, send, close, drain);

    fn wait(&mut self, until: Nanos) -> io::Result<Nanos> {
        assert!(self.waits.fetch_add(1, Ordering::Relaxed) < 20_000, "it spins");
        self.network.wait(until)
    }
}

/// Runs a load and a measurement of a tenth of a second, behind a gate that lets seconds pass. Returns the measurement
/// and the number of the worker's waits.
fn gated(when_idle: WhenIdle, reconnect: bool) -> (Measurement, u64) {
    let mut plan = loaded(plan());
    plan.reconnect = reconnect;
    let plan = plan.validate().expect("the plan can be run");
    let server = SharedServer::new(ServerConfig::default());
    let clients = 0..u64::from(plan.groups[0].clients);
    let share = ProcessShare { clients: vec![clients], threads: 1, first_worker: 0, workers: 1, mark: 5 };
    let waits = Arc::new(AtomicU64::new(0));
    let backend = |_| {
        let peer = Restless { peer: server.peer(), when_idle, idle_at: Default::default() };
        Ok(Counting { network: Sim::new(7, NetworkConditions::calm(), peer), waits: Arc::clone(&waits) })
    };
    let run = Run::new(&plan).with_process_share(&share, &Late);
    let measurement = run.start_on(&mut ReaderState::default(), &|| false, backend).expect("the run begins");
    (measurement, waits.load(Ordering::Relaxed))
}

#[test]
fn a_worker_sleeps_up_to_the_beginning_of_a_phase_whatever_comes_meanwhile() {
    let (calm, waits_calm) = gated(WhenIdle::Nothing, true);
    assert_eq!((calm.status, calm.connections.open, calm.connections.lost), (Status::Complete, 4, 0));
    for when_idle in [WhenIdle::Closes, WhenIdle::Sends(b"END\r\n"), WhenIdle::Sends(b"EN")] {
        let (_, waits) = gated(when_idle, true);
        assert!(waits < 2 * waits_calm, "{waits} waits, and {waits_calm} where nothing comes");
    }
    assert!(calm.measured_ns >= 100 * MILLISECOND);
}

#[test]
fn connections_that_are_closed_when_a_phase_begins_do_not_count_as_open() {
    for when_idle in [WhenIdle::Closes, WhenIdle::Sends(b"END\r\n")] {
        let (measurement, _) = gated(when_idle, true);
        let connections = &measurement.connections;
        assert_eq!((measurement.status, &measurement.reason), (Status::Complete, &None));
        assert_eq!((connections.open, connections.lost, connections.reconnected), (0, 4, 4));
    }
}
