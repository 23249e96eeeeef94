//! A peer that reads slowly: the bytes that wait for its socket have a limit, and the waiting time is the server's and
//! not the generator's.

use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicUsize, Ordering};

use pummel_engine::backend::sim::{NetworkConditions, Sim};
use pummel_engine::backend::{Backend, ConnId, Handed};
use pummel_logic::connection::session::OUTBOX_MAX_BYTES;
use pummel_logic::dist::Dist;
use pummel_logic::plan::{Depth, Plan};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MICROSECOND, MILLISECOND, Nanos};
use pummel_measure::measurement::Status;
use pummel_measure::recorder::Span;
use pummel_testserver::ServerConfig;

use crate::peer::{Cluster, ServerPeer, SharedServer};
use crate::setup::{Outcome, at_rate, measuring, mix, plan, run_with, time};

/// A network that keeps the most bytes that waited when bytes were offered to a socket.
struct Gauge<'a, P> {
    sim: Sim<P>,
    most: &'a AtomicUsize,
}

impl<P: pummel_engine::backend::sim::Peer> Backend for Gauge<'_, P> {
    forward!(sim: now, open, close, drain);

    fn send(&mut self, conn: ConnId, parts: &[IoSlice<'_>]) -> Handed {
        self.most.fetch_max(parts.iter().map(|part| part.len()).sum(), Ordering::Relaxed);
        self.sim.send(conn, parts)
    }

    fn wait(&mut self, until: Nanos) -> io::Result<Nanos> {
        self.sim.wait(until)
    }
}

/// Conditions in which 16 KiB are carried in each half millisecond.
fn narrow() -> NetworkConditions {
    let delay_ns = 500 * MICROSECOND;
    NetworkConditions {
        delay_ns: (delay_ns, delay_ns),
        send_buffer_bytes: 16 * 1024,
        ..NetworkConditions::calm()
    }
}

fn server() -> SharedServer {
    SharedServer::new(ServerConfig::default())
}

/// Runs a plan under these conditions. Returns its outcome and the most bytes that waited.
fn measured(plan: &Plan, peer: impl Fn() -> ServerPeer + Sync) -> (Outcome, usize) {
    let most = AtomicUsize::new(0);
    let outcome = run_with(plan, |worker| {
        Ok(Gauge { sim: Sim::new(1 + worker as u64, narrow(), peer()), most: &most })
    });
    (outcome, most.into_inner())
}

/// A plan of one client that stores values of 1,900 bytes, with this number of requests outstanding.
fn storing(depth: Depth) -> Plan {
    let mut plan = plan();
    plan.groups[0].clients = 1;
    plan.groups[0].depth = depth;
    plan.data.value_size = Dist::Fixed(1_900.0);
    plan.phases = vec![measuring(mix(&[(Verb::Set, 1.0)]), time(100 * MILLISECOND))];
    plan
}

/// Most bytes of a request of these plans.
const REQUEST_MAX_BYTES: usize = 2_000;

#[test]
fn what_waits_for_a_full_socket_has_a_limit_at_any_depth() {
    let server = server();
    let (outcome, most) = measured(&storing(Depth::Limit(10_000)), || server.peer());
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    assert!(most > OUTBOX_MAX_BYTES, "{most}: the limit is not reached");
    assert!(most <= OUTBOX_MAX_BYTES + REQUEST_MAX_BYTES, "{most} bytes waited");
    let (_, lag) = outcome.range(Span::Lag);
    assert!(lag < 200 * MICROSECOND, "lag {lag}: a full socket is not the generator's doing");
    // 100 half milliseconds of 16 KiB in 100 ms, as the way there and back takes one.
    let counts = outcome.counts();
    assert!(counts.completed > 500, "{counts:?}");
    assert_eq!(server.lock().counts().cmd_set, counts.completed + counts.unfinished);
}

#[test]
fn a_full_socket_holds_back_requests_that_want_no_reply() {
    let mut plan = at_rate(storing(Depth::Unlimited), 50_000.0);
    let mut quiet = mix(&[(Verb::Set, 1.0)]);
    quiet.noreply = true;
    plan.phases = vec![measuring(quiet, time(100 * MILLISECOND))];
    let server = server();
    let (outcome, most) = measured(&plan, || server.peer());
    assert!(most > OUTBOX_MAX_BYTES, "{most}: the limit is not reached");
    assert!(most <= OUTBOX_MAX_BYTES + REQUEST_MAX_BYTES, "{most} bytes waited");
    let counts = outcome.counts();
    assert!(counts.completed > 500, "{counts:?}");
    // What was due is accounted for: it was handed over, or it was never sent.
    let due = counts.requests();
    assert!((4_500..5_500).contains(&due), "{due} were due: {counts:?}");
    let (_, lag) = outcome.range(Span::Lag);
    assert!(lag < 200 * MICROSECOND, "lag {lag}: a full socket is not the generator's doing");
}

#[test]
fn values_that_are_only_pointed_at_have_the_same_limit() {
    let mut plan = storing(Depth::Limit(10_000));
    plan.data.value_size = Dist::Fixed(100_000.0);
    plan.timeout_ns = 10_000 * MILLISECOND;
    let server = server();
    let (outcome, most) = measured(&plan, || server.peer());
    assert!(
        most <= 100_000 + 200,
        "one value at a time is offered, with what goes before and behind it: {most}"
    );
    let counts = outcome.counts();
    assert!(counts.completed >= 10, "{counts:?}");
    let (_, lag) = outcome.range(Span::Lag);
    assert!(lag < 200 * MICROSECOND, "lag {lag}: a full socket is not the generator's doing");
}

#[test]
fn a_client_of_several_servers_waits_for_the_one_whose_socket_is_full() {
    let mut plan = storing(Depth::Limit(10_000));
    plan.servers = (0..3).map(|last| format!("127.0.0.{last}:11211")).collect();
    plan.route = pummel_logic::plan::Route::Ketama;
    let servers = [server(), server(), server()];
    let most = AtomicUsize::new(0);
    let outcome = run_with(&plan, |worker| {
        Ok(Gauge { sim: Sim::new(1 + worker as u64, narrow(), Cluster::new(&servers)), most: &most })
    });
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    let most = most.into_inner();
    assert!(most > OUTBOX_MAX_BYTES, "{most}: the limit is not reached");
    assert!(most <= OUTBOX_MAX_BYTES + REQUEST_MAX_BYTES, "{most} bytes waited");
    let (_, lag) = outcome.range(Span::Lag);
    assert!(lag < 200 * MICROSECOND, "lag {lag}: a full socket is not the generator's doing");
    for server in &servers {
        assert!(server.lock().counts().cmd_set > 100, "every server gets its share");
    }
}
