//! Runs whose load fails, wholly or in part, and the figures of the load.

use std::cell::RefCell;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pummel_engine::backend::ConnId;
use pummel_engine::backend::sim::{NetworkConditions, Next, Peer, Sim};
use pummel_engine::run::{Run, Watch};
use pummel_engine::sys;
use pummel_logic::dist::Dist;
use pummel_logic::plan::{Plan, Work};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_measure::connections::TroubleKind;
use pummel_measure::measurement::Status;
use pummel_measure::reason::{Reason, Unstored, Why};
use pummel_testserver::{CountedFault, Limits, ServerConfig};

use crate::peer::{Cluster, ServerPeer, SharedServer};
use crate::setup::{Outcome, at_rate, loaded, measuring, mix, plan, requests, run, run_with};

/// Reply of the built-in server to a value that is too large.
const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";

/// Reply of the built-in server to a request that a fault chose.
const CHOSEN: &str = "SERVER_ERROR this request was chosen to fail";

/// Ten records on each server, then 200 gets.
fn small() -> Plan {
    let mut plan = loaded(plan());
    plan.data.records = 10;
    plan.phases[1] = measuring(mix(&[(Verb::Get, 1.0)]), requests(200));
    if let Work::Load(load) = &mut plan.phases[0].work {
        (load.pieces, load.counters) = (false, false);
    }
    plan
}

/// A server that takes no value: every store is answered by `SERVER_ERROR`.
fn refusing() -> SharedServer {
    let limits = Limits { item_max_bytes: 100, ..Limits::default() };
    SharedServer::new(ServerConfig { limits, ..ServerConfig::default() })
}

/// A server that carries out every second request, and answers each other one by `SERVER_ERROR`.
fn halfhearted() -> SharedServer {
    SharedServer::new(ServerConfig {
        faults: vec![CountedFault::ErrorEvery.at(2)],
        ..ServerConfig::default()
    })
}

fn status(outcome: &Outcome) -> (Status, Option<Reason>) {
    (outcome.measurement.status, outcome.measurement.reason.clone())
}

/// Reason of a load whose records were not all stored because servers said this so often.
fn unstored(records: u64, stored: u64, what: &str, count: u64) -> Option<Reason> {
    let why = Some(Why::Said { what: what.to_owned(), count });
    Some(Reason::Unstored(Unstored { records, stored, per_record: 1, why }))
}

#[test]
fn a_load_that_stores_nothing_ends_the_run_without_measuring() {
    for threads in [1, 3] {
        for allow in [false, true] {
            let mut plan = small();
            (plan.engine.threads, plan.allow_partial_load) = (threads, allow);
            let server = refusing();
            let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
            let expected = (Status::Partial, unstored(10, 0, TOO_LARGE, 10));
            assert_eq!(status(&outcome), expected, "{threads} threads, allowed: {allow}");
            assert_eq!(server.lock().counts().cmd_get, 0, "nothing is measured");
            assert_eq!(outcome.counts().requests(), 0);
            let load = outcome.measurement.load.expect("it was tried");
            assert_eq!((load.records, load.stored, load.errors), (10, 0, 10));
        }
    }
}

#[test]
fn records_are_stored_as_fast_as_it_goes_also_by_clients_that_keep_their_distance() {
    let mut plan = at_rate(small(), 4.0);
    plan.groups[0].policy.spaced = true;
    plan.phases[1].stop = requests(4);
    let server = SharedServer::new(ServerConfig::default());
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    assert_eq!((outcome.counts().requests(), outcome.counts().hits), (4, 4));
    // Three or two stores of each client, a second from one to the next, would take two seconds.
    // Simulated clocks begin at one second.
    assert!(outcome.begin < SECOND + SECOND / 10, "the load ended at {} ns", outcome.begin);
}

#[test]
fn a_server_that_answers_no_store_is_not_measured() {
    let mut plan = small();
    plan.timeout_ns = 20 * MILLISECOND;
    let server = SharedServer::new(ServerConfig::default()).freezing(0, 3600 * SECOND);
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    let reason = outcome.measurement.reason.as_ref().expect("nothing was stored");
    let trouble = reason.trouble().map(|trouble| trouble.kind);
    assert_eq!(trouble, Some(TroubleKind::RequestTimedOut), "{reason:?}");
    assert!(reason.unstored().is_some_and(|load| (load.records, load.stored) == (10, 0)), "{reason:?}");
    assert_eq!(outcome.counts().requests(), 0, "nothing is measured");
}

#[test]
fn a_load_that_stores_a_part_is_measured_and_partial_unless_that_is_allowed() {
    for (allow, expected) in
        [(false, (Status::Partial, unstored(10, 5, CHOSEN, 5))), (true, (Status::Complete, None))]
    {
        let mut plan = small();
        plan.allow_partial_load = allow;
        let server = halfhearted();
        let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
        assert_eq!(status(&outcome), expected);
        assert_eq!(outcome.counts().requests(), 200, "it is measured all the same");
        let load = outcome.measurement.load.expect("it was tried");
        assert_eq!((load.records, load.stored, load.errors), (10, 5, 5));
    }
}

#[test]
fn one_worker_that_stores_nothing_goes_on_with_those_that_do() {
    let mut plan = small();
    (plan.engine.threads, plan.groups[0].clients) = (2, 2);
    let (good, bad) = (SharedServer::new(ServerConfig::default()), refusing());
    let outcome = run_with(&plan, |worker| {
        let server = if worker == 0 { &bad } else { &good };
        Ok(Sim::new(worker as u64, NetworkConditions::calm(), server.peer()))
    });
    assert_eq!(status(&outcome), (Status::Partial, unstored(10, 5, TOO_LARGE, 5)));
    assert_eq!(outcome.counts().requests(), 200);
}

#[test]
fn a_server_that_stores_nothing_beside_one_that_does_makes_the_load_partial() {
    let mut plan = small();
    plan.servers = vec!["127.0.0.0:1".to_owned(), "127.0.0.1:1".to_owned()];
    let servers = [SharedServer::new(ServerConfig::default()), refusing()];
    let outcome = run(&plan, 1, NetworkConditions::calm(), || Cluster::new(&servers));
    assert_eq!(status(&outcome), (Status::Partial, unstored(20, 10, TOO_LARGE, 10)));
    assert_eq!(outcome.counts().requests(), 200);
}

#[test]
fn a_recorded_load_is_held_to_the_same() {
    for (server, allow, stored, expected) in [
        (refusing(), true, 0, unstored(10, 0, TOO_LARGE, 10)),
        (halfhearted(), false, 5, unstored(10, 5, CHOSEN, 5)),
        (halfhearted(), true, 5, None),
        (SharedServer::new(ServerConfig::default()), false, 10, None),
    ] {
        let mut plan = small();
        plan.allow_partial_load = allow;
        plan.phases.truncate(1);
        plan.phases[0].recorded = true;
        let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
        assert_eq!(outcome.measurement.reason, expected);
        let messages = &outcome.measurement.messages;
        assert_eq!(messages.values().sum::<u64>(), 10 - stored, "it is what is measured: {messages:?}");
        let load = outcome.measurement.load.expect("it was tried");
        assert_eq!((load.records, load.stored, load.errors), (10, stored, 10 - stored));
    }
}

#[test]
fn a_recorded_load_that_stores_nothing_ends_the_run_before_what_follows() {
    let mut plan = small();
    plan.phases[0].recorded = true;
    let server = refusing();
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    assert_eq!(outcome.measurement.reason, unstored(10, 0, TOO_LARGE, 10));
    assert_eq!(server.lock().counts().cmd_get, 0);
}

#[test]
fn what_servers_said_to_the_load_is_not_said_of_the_measured_requests() {
    let mut plan = small();
    plan.allow_partial_load = true;
    plan.data.value_size = Dist::Uniform { low: 1.0, high: 200.0 };
    // The load of large values is refused, and the gets that are measured are answered.
    let server = refusing();
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    let load = outcome.measurement.load.as_ref().expect("it was tried");
    assert!(load.stored > 0 && load.errors > 0, "{load:?}");
    assert_eq!(load.messages.get(TOO_LARGE), Some(&load.errors));
    assert_eq!(status(&outcome), (Status::Complete, None));
    assert!(outcome.measurement.messages.is_empty(), "{:?}", outcome.measurement.messages);
    assert_eq!(outcome.counts().failed(), 0);
}

/// A network's end that costs CPU time before each of its answers, and adds up how much.
struct Toil {
    server: ServerPeer,
    /// CPU time to burn before an answer, in nanoseconds.
    burn_ns: Nanos,
    burned_ns: Arc<AtomicU64>,
}

fn cpu_ns() -> Nanos {
    let used = sys::thread_cpu_time();
    used.user_ns + used.system_ns
}

impl Peer for Toil {
    forward!(server: handle_connect, handle_closed);

    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos) {
        let begin = cpu_ns();
        while cpu_ns() < begin + self.burn_ns {}
        self.burned_ns.fetch_add(cpu_ns() - begin, Ordering::Relaxed);
        self.server.handle_received(conn, bytes, now);
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        self.server.poll(conn, now, out)
    }
}

#[test]
fn cpu_time_is_that_of_all_workers_also_when_the_first_is_through_before_the_others() {
    let mut plan = plan();
    (plan.engine.threads, plan.groups[0].clients) = (2, 2);
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), requests(20))];
    let server = SharedServer::new(ServerConfig::default());
    let burned_ns = Arc::new(AtomicU64::new(0));
    let outcome = run_with(&plan, |worker| {
        // The first worker has hardly anything to do.
        let burn_ns = if worker == 0 { 0 } else { 20 * MILLISECOND };
        let peer = Toil { server: server.peer(), burn_ns, burned_ns: Arc::clone(&burned_ns) };
        Ok(Sim::new(worker as u64, NetworkConditions::calm(), peer))
    });
    assert_eq!(status(&outcome), (Status::Complete, None));
    let generator = &outcome.measurement.generator;
    let (spent_ns, burned_ns) =
        (generator.cpu_user_ns + generator.cpu_system_ns, burned_ns.load(Ordering::Relaxed));
    assert!(burned_ns >= 200 * MILLISECOND, "ten requests cost 20 ms each");
    // The kernel brings the time of a thread up to date at its ticks.
    assert!(spent_ns + 20 * MILLISECOND >= burned_ns, "{spent_ns} ns of {burned_ns} ns");
}

/// A watch that ignores all events of a run.
struct Deaf;

impl Watch for Deaf {}

#[test]
fn an_interrupted_load_calls_nothing_an_error_that_was_not_sent_or_not_answered() {
    for recorded in [false, true] {
        // The kernel takes the connection, and what fits into its buffers; no store is ever answered.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("it is an option of every socket");
        let mut plan = small();
        plan.servers = vec![listener.local_addr().expect("it is bound").to_string()];
        (plan.groups[0].clients, plan.timeout_ns) = (1, 10 * SECOND);
        (plan.data.records, plan.data.value_size) = (100, Dist::Fixed(1_000_000.0));
        plan.phases[0].recorded = recorded;
        if let Work::Load(load) = &mut plan.phases[0].work {
            load.depth = 64;
        }
        let accepted = RefCell::new(None);
        let has_heard = || {
            let mut accepted = accepted.borrow_mut();
            if accepted.is_none() {
                *accepted = listener.accept().ok().map(|(stream, _)| stream);
            }
            accepted.as_ref().is_some_and(|stream| stream.peek(&mut [0]).is_ok_and(|bytes| bytes > 0))
        };
        let plan = plan.validate().expect("the plan can be run");
        let measurement = Run::new(&plan).start(&mut Deaf, &has_heard).expect("the run begins");
        assert_eq!(measurement.status, Status::Interrupted);
        let whole = measurement.whole_run.ops.all();
        assert!(whole.unfinished > 0 && whole.unsent > 0, "requests were under way: {whole:?}");
        let load = measurement.load.expect("it was begun");
        assert_eq!((load.stored, load.errors), (0, 0), "recorded: {recorded}");
    }
}
