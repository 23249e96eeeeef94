//! Known truth: the acts of the peer are known to the nanosecond, and so are the figures that the run has to report of
//! them.

use std::collections::BTreeMap;
use std::io::{self};

use pummel_engine::backend::sim::{Admission, NetworkConditions, Next, Peer, Sim};
use pummel_engine::backend::{Backend, ConnId, Event, Target};
use pummel_logic::dist::Dist;
use pummel_logic::plan::{Depth, Plan, Protocol, Stop};
use pummel_logic::protocol::{Fault, Outcome as End, Verb};
use pummel_logic::time::{MICROSECOND, MILLISECOND, NEVER, Nanos, SECOND};
use pummel_measure::connections::TroubleKind;
use pummel_measure::events::Row;
use pummel_measure::measurement::Status;
use pummel_measure::reason::{Reason, ServerTrouble, Why};
use pummel_measure::recorder::Span;
use pummel_testserver::{CountedFault, ServerConfig, ServerFault};

use crate::peer::{ServerPeer, SharedServer};
use crate::setup::{Outcome, at_rate, loaded, measuring, mix, plan, requests, run, run_with, schedule, time};

/// Time there and back in [`NetworkConditions::calm`].
const WAY: Nanos = 30 * MICROSECOND;

/// Time that the simulated kernel takes for a few calls and looks at the clock.
const CALLS: Nanos = 10 * MICROSECOND;

fn server() -> SharedServer {
    SharedServer::new(ServerConfig::default())
}

fn faulty(fault: ServerFault) -> SharedServer {
    SharedServer::new(ServerConfig { faults: vec![fault], ..ServerConfig::default() })
}

fn held(seconds: f64) -> SharedServer {
    SharedServer::new(ServerConfig { service_time: Some(Dist::Fixed(seconds)), ..ServerConfig::default() })
}

#[test]
fn a_server_that_holds_replies_for_5_ms_shows_5_ms_of_service_time() {
    let server = held(0.005);
    let outcome = run(&plan(), 1, NetworkConditions::calm(), || server.peer());
    let expected = 5 * MILLISECOND + WAY;
    assert_eq!(outcome.range(Span::Service), (expected, expected));
    let (_, lag) = outcome.range(Span::Lag);
    let (_, reaction) = outcome.range(Span::Reaction);
    assert!(lag < CALLS && reaction < CALLS, "lag {lag}, reaction {reaction}");
    assert_eq!(outcome.range(Span::Wait), (0, 0));
    // Every client asks again when a reply has arrived: one request after the other for a tenth of a second.
    let each = 100 * MILLISECOND / expected + 1;
    assert_eq!(outcome.counts().completed, 4 * each);
    assert_eq!(outcome.measurement.measured_ns, 100 * MILLISECOND);
}

#[test]
fn a_request_follows_a_reply_in_the_turn_that_read_it_stamped_or_not() {
    let mut plan = plan();
    plan.groups[0].clients = 1;
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), requests(400))];
    for unstamped in [0.0, 1.0] {
        let server = server();
        let outcome =
            run(&plan, 1, NetworkConditions { unstamped, ..NetworkConditions::calm() }, || server.peer());
        let turns = outcome.measurement.counters.turns.turns;
        assert!((400..=402).contains(&turns), "{turns} turns for 400 requests, unstamped {unstamped}");
    }
}

#[test]
fn service_times_of_replies_in_one_read_end_with_the_last_of_them() {
    let mut plan = plan();
    plan.groups[0].clients = 1;
    plan.groups[0].depth = Depth::Limit(4);
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), requests(400))];
    let server = server();
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    assert_eq!(outcome.range(Span::Service), (WAY, WAY));
    let stamps = outcome.measurement.counters.turns.stamps;
    assert_eq!((stamps.missing, stamps.shared, stamps.rejected), (0, 300, 0));
}

#[test]
fn a_silent_server_costs_a_timeout_for_every_request_and_a_new_connection() {
    let mut plan = plan();
    plan.timeout_ns = 10 * MILLISECOND;
    let server = faulty(CountedFault::StallAfter.at(1));
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    let counts = outcome.counts();
    assert_eq!(counts.completed, 0);
    // A request is given up at most one 64th of the timeout late, and the next connection takes one way there and back.
    assert!((4 * 9..=4 * 10).contains(&counts.errors(Fault::Timeout)), "{counts:?}");
    assert_eq!(counts.errors(Fault::Timeout) + counts.unfinished, counts.requests(), "{counts:?}");
    let connections = &outcome.measurement.connections;
    assert_eq!(connections.lost, counts.errors(Fault::Timeout) + counts.unfinished);
    assert_eq!(connections.failed, 0);
    for row in &outcome.rows {
        let took = row.arrived - row.sent;
        assert!(took <= 10 * MILLISECOND + 10 * MILLISECOND / 64 + CALLS, "given up after {took} ns");
        assert!(took >= 10 * MILLISECOND || row.outcome == End::Error(Fault::Closed));
    }
    let end = outcome.rows.iter().map(|row| row.arrived).max().unwrap() - outcome.begin;
    assert!(end <= 111 * MILLISECOND, "the run ended {end} ns after its beginning");
    assert_eq!(outcome.measurement.status, Status::Partial);
    assert!(outcome.reason().contains("took longer than the timeout"), "{}", outcome.reason());
}

#[test]
fn a_server_that_falls_silent_loses_its_unanswered_requests_and_the_run_ends_on_time() {
    let mut plan = at_rate(plan(), 10_000.0);
    plan.timeout_ns = 200 * MILLISECOND;
    let server = faulty(CountedFault::StallAfter.at(500));
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    let counts = outcome.counts();
    let due: usize = schedule(&plan, 100 * MILLISECOND).iter().map(Vec::len).sum();
    assert_eq!(counts.requests(), due as u64);
    assert_eq!(counts.completed, 499);
    assert_eq!(counts.errors(Fault::Timeout), 4, "the oldest of each client");
    assert_eq!(
        counts.completed + counts.errors(Fault::Timeout) + counts.unfinished + counts.unsent,
        due as u64
    );
    let end = outcome.rows.iter().map(|row| row.arrived).max().unwrap() - outcome.begin;
    assert!(end <= 300 * MILLISECOND + CALLS, "100 ms and a drain of one timeout, not {end} ns");
}

#[test]
fn a_server_that_closes_ends_the_run_or_costs_a_connection_each_time() {
    let mut plan = plan();
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), requests(1_000))];
    let ending = |plan: &Plan| {
        let server = faulty(CountedFault::CloseAfter.at(100));
        run(plan, 1, NetworkConditions::calm(), || server.peer())
    };
    let outcome = ending(&plan);
    assert_eq!(outcome.measurement.status, Status::Partial);
    let server = "127.0.0.1:11211".to_owned();
    let what = "the server closed the connection".to_owned();
    let why = Some(Why::Trouble(ServerTrouble { server, kind: TroubleKind::Closed, what }));
    assert_eq!(outcome.measurement.reason, Some(Reason::ConnectionsLost { asked: 4, lost: 4, why }));
    assert_eq!(outcome.counts().errors(Fault::Closed), 4);
    assert_eq!(outcome.measurement.connections.lost, 4);
    assert_eq!(outcome.measurement.connections.reconnected, 0);

    plan.reconnect = true;
    let outcome = ending(&plan);
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    let counts = outcome.counts();
    assert_eq!((counts.completed, counts.errors(Fault::Closed)), (990, 10));
    assert_eq!(outcome.measurement.connections.lost, 10);
    assert_eq!(outcome.measurement.connections.reconnected, 10);
}

#[test]
fn garbage_is_named_and_ends_the_connection() {
    let mut plan = plan();
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), requests(1_000))];
    let server = faulty(CountedFault::GarbageAfter.at(101));
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    let counts = outcome.counts();
    assert_eq!((counts.completed, counts.errors(Fault::Protocol)), (100, 4));
    assert_eq!(outcome.measurement.status, Status::Partial);
    assert!(outcome.reason().contains("what the protocol does not allow"), "{}", outcome.reason());
}

#[test]
fn half_a_reply_is_an_unanswered_request() {
    let mut plan = plan();
    plan.groups[0].clients = 1;
    plan.timeout_ns = 20 * MILLISECOND;
    let server = faulty(CountedFault::HalfReplyAfter.at(51));
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    let counts = outcome.counts();
    assert_eq!(counts.completed, 50);
    assert!((4..=5).contains(&counts.errors(Fault::Timeout)), "{counts:?}");
}

#[test]
fn error_replies_are_counted_and_do_not_make_a_run_partial() {
    let mut plan = plan();
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), requests(1_000))];
    let server = faulty(CountedFault::ErrorEvery.at(10));
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    let counts = outcome.counts();
    assert_eq!((counts.completed, counts.errors(Fault::Server)), (900, 100));
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    assert_eq!(outcome.measurement.messages.values().sum::<u64>(), 100);
}

#[test]
fn wrong_bits_are_found_every_one() {
    let mut plan = loaded(plan());
    plan.verify = 1.0;
    plan.phases[1] = measuring(mix(&[(Verb::Get, 1.0)]), requests(1_000));
    for fault in [CountedFault::Flip.at(10), CountedFault::WrongKey.at(10)] {
        let server = faulty(fault);
        let outcome = run(&plan, 1, NetworkConditions::rough(), || server.peer());
        let verify = &outcome.measurement.verify;
        assert_eq!((verify.checked, verify.failed), (1_000, 100), "{fault:?}");
        assert_eq!(outcome.measurement.status, Status::Complete);
    }
}

#[test]
fn where_connections_are_refused_nothing_begins() {
    let server = server();
    let conditions = NetworkConditions { refuse: 1.0, ..NetworkConditions::calm() };
    let outcome = run(&plan(), 1, conditions, || server.peer());
    assert_eq!(outcome.measurement.status, Status::Partial);
    let reason = outcome.reason();
    // The first refusal is enough.
    assert!(reason.starts_with("NotOpened { asked: 4, failed: 1, lost: 0, untried: 3,"), "{reason}");
    assert_eq!(outcome.counts().requests(), 0);
    assert_eq!(server.lock().requests(), 0);
}

/// A server that takes connections and answers none of them, nor the wish for one after the first.
struct Deaf {
    accepted: bool,
}

impl Peer for Deaf {
    fn handle_connect(&mut self, _conn: ConnId, _target: &Target, _now: Nanos) -> Admission {
        match std::mem::replace(&mut self.accepted, true) {
            false => Admission::Accept,
            true => Admission::Ignore,
        }
    }

    fn handle_received(&mut self, _conn: ConnId, _bytes: &[u8], _now: Nanos) {}

    fn poll(&mut self, _conn: ConnId, _now: Nanos, _out: &mut Vec<u8>) -> Next {
        Next::At(NEVER)
    }
}

#[test]
fn a_connection_that_does_not_open_in_time_has_failed() {
    let mut plan = plan();
    plan.timeout_ns = 50 * MILLISECOND;
    let outcome = run(&plan, 1, NetworkConditions::calm(), || Deaf { accepted: false });
    assert_eq!(outcome.measurement.status, Status::Partial);
    assert_eq!(outcome.counts().requests(), 0);
    assert!(outcome.reason().starts_with("NotOpened { asked: 4, failed: 3,"), "{}", outcome.reason());
    assert!(outcome.reason().contains("kind: NotTaken"), "{}", outcome.reason());
}

/// A server that takes a number of connections, closes the first of them at once, and refuses all others.
struct Closing {
    peer: ServerPeer,
    takes: u64,
    connections: u64,
    first: Option<ConnId>,
}

impl Peer for Closing {
    forward!(peer: handle_received, handle_closed);

    fn handle_connect(&mut self, conn: ConnId, target: &Target, now: Nanos) -> Admission {
        self.connections += 1;
        if self.connections > self.takes {
            return Admission::Refuse;
        }
        self.first.get_or_insert(conn);
        self.peer.handle_connect(conn, target, now)
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        match self.first == Some(conn) {
            true => Next::Close,
            false => self.peer.poll(conn, now, out),
        }
    }
}

/// A server that takes a number of connections and closes each later one as soon as it is open.
struct Full {
    peer: ServerPeer,
    takes: u32,
}

impl Peer for Full {
    forward!(peer: handle_connect, handle_received, handle_closed);

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        match conn.slot >= self.takes {
            true => Next::Close,
            false => self.peer.poll(conn, now, out),
        }
    }
}

#[test]
fn a_connection_that_is_closed_while_others_are_opened_does_not_hold_up_the_run() {
    let server = server();
    let closing = |takes| Closing { peer: server.peer(), takes, connections: 0, first: None };
    let mut plan = Plan { reconnect: true, ..plan() };
    plan.groups[0].clients = 20;
    let outcome = run(&plan, 1, NetworkConditions::calm(), || closing(20));
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    assert!(outcome.measurement.connections.failed > 1, "the first one is asked for in vain");
    assert!(outcome.counts().completed > 0);
    plan.reconnect = false;
    let outcome = run(&plan, 1, NetworkConditions::calm(), || closing(20));
    assert_eq!(outcome.measurement.status, Status::Partial);
    assert!(
        outcome.reason().starts_with("NotOpened { asked: 20, failed: 0, lost: 1,"),
        "{}",
        outcome.reason()
    );
}

#[test]
fn a_server_that_closes_every_new_connection_is_given_up_although_it_is_asked_nothing() {
    let server = server();
    let mut plan = Plan { reconnect: true, ..plan() };
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), requests(4_000))];
    let outcome = run(&plan, 1, NetworkConditions::calm(), || Full { peer: server.peer(), takes: 3 });
    assert_eq!(outcome.measurement.status, Status::Partial);
    assert_eq!(outcome.counts().completed, 3_000, "the share of the clients that have a connection");
    let waited_ns = outcome.measurement.measured_ns;
    assert!((10 * SECOND..20 * SECOND).contains(&waited_ns), "{waited_ns}");
}

/// A server that never answers one request, by its number from 0, and answers all others.
struct Forgetful {
    peer: ServerPeer,
    forgets: u64,
    requests: u64,
}

impl Peer for Forgetful {
    forward!(peer: handle_connect, handle_closed);

    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos) {
        self.requests += 1;
        if self.requests - 1 != self.forgets {
            self.peer.handle_received(conn, bytes, now);
        }
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        self.peer.poll(conn, now, out)
    }
}

#[test]
fn one_request_without_an_answer_beside_others_that_are_answered_does_not_make_the_server_gone() {
    let server = server();
    let forgetful = || Forgetful { peer: server.peer(), forgets: 2_000, requests: 0 };
    let outcome = run(&plan(), 1, NetworkConditions::calm(), forgetful);
    let counts = outcome.counts();
    assert!(counts.completed > 2_000, "the others go on until the end: {counts:?}");
    // The request was sent before the last answers, and is given up when nothing more is asked.
    assert_eq!((counts.errors(Fault::Timeout), counts.unfinished), (1, 0), "{counts:?}");
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
}

#[test]
fn a_server_that_stops_between_two_requests_of_one_connection_is_silent() {
    let mut plan = plan();
    plan.groups[0].clients = 1;
    plan.groups[0].depth = Depth::Limit(16);
    // All sixteen are sent at once, before the last answer.
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), requests(16))];
    let stalling = faulty(CountedFault::StallAfter.at(5));
    let outcome = run(&plan, 1, NetworkConditions::calm(), || stalling.peer());
    assert_eq!((outcome.counts().completed, outcome.counts().errors(Fault::Timeout)), (4, 12));
    assert_eq!(outcome.measurement.status, Status::Partial);
    let reason = outcome.reason();
    assert!(reason.starts_with("ServerGone"), "{reason}");
}

#[test]
fn a_server_that_stops_behind_answers_on_a_few_of_many_connections_is_silent() {
    let mut plan = plan();
    plan.groups[0].clients = 16;
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), requests(16))];
    let stalling = faulty(CountedFault::StallAfter.at(5));
    let outcome = run(&plan, 1, NetworkConditions::calm(), || stalling.peer());
    assert_eq!((outcome.counts().completed, outcome.counts().errors(Fault::Timeout)), (4, 12));
    assert_eq!(outcome.measurement.status, Status::Partial);
    assert!(outcome.reason().starts_with("ServerGone"), "{}", outcome.reason());
}

#[test]
fn a_server_that_stops_for_good_is_given_up_at_any_depth_and_number_of_connections() {
    for clients in [1, 2, 50] {
        for depth in [1, 16] {
            let mut plan = plan();
            plan.groups[0].clients = clients;
            plan.groups[0].depth = Depth::Limit(depth);
            plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), requests(100_000))];
            let stalling = faulty(CountedFault::StallAfter.at(1_005));
            let outcome = run(&plan, 1, NetworkConditions::calm(), || stalling.peer());
            assert_eq!(outcome.counts().completed, 1_004);
            assert_eq!(outcome.measurement.status, Status::Partial);
            // Ten timeouts of a second, and those that were under way then.
            let waited_ns = outcome.measurement.measured_ns;
            assert!((10 * SECOND..13 * SECOND).contains(&waited_ns), "{clients}, {depth}: {waited_ns}");
        }
    }
}

#[test]
fn a_lost_connection_that_nobody_opens_again_leaves_its_requests_unsent() {
    let mut plan = at_rate(plan(), 1_000.0);
    plan.groups[0].clients = 1;
    plan.timeout_ns = 10 * MILLISECOND;
    let outcome = run(&plan, 1, NetworkConditions::calm(), || Deaf { accepted: false });
    let counts = outcome.counts();
    let due: usize = schedule(&plan, outcome.measurement.measured_ns).iter().map(Vec::len).sum();
    assert_eq!((counts.requests(), counts.errors(Fault::Timeout)), (due as u64, 1));
    assert_eq!(counts.unsent, due as u64 - 1);
    assert_eq!(outcome.measurement.status, Status::Partial);
}

/// The requests of each client, in the order in which they were due.
fn by_client(rows: &[Row]) -> BTreeMap<u64, Vec<Row>> {
    let mut clients: BTreeMap<u64, Vec<Row>> = BTreeMap::new();
    for row in rows {
        clients.entry(row.client).or_default().push(*row);
    }
    clients.values_mut().for_each(|rows| rows.sort_by_key(|row| row.due));
    clients
}

#[test]
fn a_server_that_is_frozen_for_a_second_shows_as_wait_and_not_as_service_or_lag() {
    let (freeze, thaw) = (2_500 * MILLISECOND, 3_500 * MILLISECOND);
    let mut plan = at_rate(plan(), 1_000.0);
    plan.interval_ns = SECOND;
    plan.timeout_ns = 5 * SECOND;
    plan.groups[0].clients = 10;
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), time(4 * SECOND))];
    let server = server().freezing(freeze, thaw);
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));

    let due: Vec<Vec<Nanos>> = schedule(&plan, 4 * SECOND);
    let clients = by_client(&outcome.rows);
    let mut caught = 0;
    for (client, rows) in &clients {
        let expected: Vec<Nanos> = due[*client as usize].iter().map(|due| due + outcome.begin).collect();
        assert_eq!(rows.iter().map(|row| row.due).collect::<Vec<_>>(), expected, "everything was asked");
        let mut slot_freed = 0;
        for row in rows {
            assert_eq!(
                row.ready,
                row.due.max(slot_freed),
                "ready is the latest of due and the slot's freeing"
            );
            assert!(row.sent - row.ready < CALLS * 20, "lag {}", row.sent - row.ready);
            // At the server half a way after it was sent, the request is served at once, or when the server thaws.
            let there = row.sent + WAY / 2;
            let served = if (freeze..thaw).contains(&there) { thaw } else { there };
            caught += u64::from(served != there);
            assert!(row.arrived >= served + WAY / 2 && row.arrived < served + WAY / 2 + CALLS);
            slot_freed = row.arrived;
        }
    }
    assert_eq!(caught, 10, "one request of each client was in the server's hands");

    // Late are those that were due in the frozen second, and a few behind them.
    let late_ns = 100 * MILLISECOND;
    let late = outcome.rows.iter().filter(|row| row.arrived - row.due > late_ns).count();
    let due_between = |from: Nanos, to: Nanos| {
        let due = due.iter().flatten().map(|due| due + outcome.begin);
        due.filter(|due| (from..to).contains(due)).count()
    };
    let certainly = due_between(freeze, thaw - late_ns);
    let possibly = due_between(freeze - WAY, thaw - late_ns + 20 * MILLISECOND);
    assert!((certainly..=possibly).contains(&late), "{late} are late, of {certainly} to {possibly}");
    assert!(certainly > 800);

    let all = outcome.measurement.ops().all();
    let quantile = |span, share| all.times.of(span).quantile(share).unwrap();
    for span in [Span::Response, Span::Wait] {
        let p99 = quantile(span, 0.99);
        assert!((950 * MILLISECOND..=SECOND).contains(&p99), "{} p99 is {p99}", span.name());
    }
    assert!(quantile(Span::Service, 0.99) < WAY + CALLS);
    assert!(quantile(Span::Lag, 0.99) < 20 * CALLS);
}

#[test]
fn with_a_short_timeout_the_frozen_second_is_timeouts_and_new_connections() {
    let (freeze, thaw) = (1_500 * MILLISECOND, 2_500 * MILLISECOND);
    let mut plan = at_rate(plan(), 1_000.0);
    plan.timeout_ns = 200 * MILLISECOND;
    plan.groups[0].clients = 10;
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), time(2 * SECOND))];
    let server = server().freezing(freeze, thaw);
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    let counts = outcome.counts();
    let due: usize = schedule(&plan, 2 * SECOND).iter().map(Vec::len).sum();
    assert_eq!(counts.requests(), due as u64);
    // Each client's oldest is given up after 200 ms or a 64th more, so often as that fits in a second.
    let timeouts = counts.errors(Fault::Timeout);
    assert!((40..=50).contains(&timeouts), "{timeouts} timeouts");
    assert_eq!(counts.completed + timeouts + counts.unfinished, due as u64, "{counts:?}");
    assert_eq!(outcome.measurement.connections.reconnected, timeouts);
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
}

/// A network whose client is stopped once, for some time.
struct Stopped<P> {
    sim: Sim<P>,
    at: Nanos,
    for_ns: Nanos,
}

impl<P: Peer> Backend for Stopped<P> {
    forward!(sim: now, open, send, close, drain);

    fn wait(&mut self, until: Nanos) -> io::Result<Nanos> {
        if self.sim.now() >= self.at {
            self.at = NEVER;
            self.sim.pause(self.for_ns);
        }
        self.sim.wait(until)
    }
}

fn stopped_client(plan: &Plan, server: &SharedServer, at: Nanos, for_ns: Nanos) -> Outcome {
    run_with(plan, |worker| {
        Ok(Stopped { sim: Sim::new(worker as u64, NetworkConditions::calm(), server.peer()), at, for_ns })
    })
}

#[test]
fn a_client_that_was_stopped_shows_it_as_lag_and_reaction_and_not_as_service() {
    let mut plan = at_rate(plan(), 1_000.0);
    plan.groups[0].clients = 10;
    plan.timeout_ns = 5 * SECOND;
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), time(2 * SECOND))];
    let server = held(0.005);
    let (stopped, woken) = (2_000 * MILLISECOND, 2_500 * MILLISECOND);
    let outcome = stopped_client(&plan, &server, stopped, woken - stopped);
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    let service = 5 * MILLISECOND + WAY;
    assert_eq!(outcome.range(Span::Service), (service, service), "the server was never slower");
    let (_, reaction) = outcome.range(Span::Reaction);
    assert!((495 * MILLISECOND..500 * MILLISECOND + CALLS).contains(&reaction), "{reaction}");
    let (_, lag) = outcome.range(Span::Lag);
    assert!((400 * MILLISECOND..505 * MILLISECOND).contains(&lag), "{lag}");
    let turns = outcome.measurement.counters.turns;
    assert_eq!(turns.stalls, 1);
    assert!((499 * MILLISECOND..502 * MILLISECOND).contains(&turns.stalled_ns), "{turns:?}");
}

#[test]
fn a_phase_whose_only_worker_had_no_cpu_when_it_should_have_begun_begins_anew() {
    let mut plan = at_rate(plan(), 1_000.0);
    plan.groups[0].clients = 1;
    plan.groups[0].policy.ends_on_time = true;
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), time(100 * MILLISECOND))];
    let server = held(0.000_1);
    // The clock begins at a second. The client is stopped while it waits for the beginning, and longer than the phase lasts.
    let outcome = stopped_client(&plan, &server, SECOND + 10_000, 500 * MILLISECOND);
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    let counts = outcome.counts();
    let due: usize = schedule(&plan, 100 * MILLISECOND).iter().map(Vec::len).sum();
    assert_eq!((counts.completed, counts.unsent), (due as u64, 0));
    assert!(outcome.begin > 1_500 * MILLISECOND, "{}", outcome.begin);
    // One that is stopped for a moment begins late, as ever.
    let outcome = stopped_client(&plan, &server, SECOND + 10_000, 50 * MILLISECOND);
    assert!(outcome.begin < 1_010 * MILLISECOND, "{}", outcome.begin);
    let (_, lag) = outcome.range(Span::Lag);
    assert!((40 * MILLISECOND..51 * MILLISECOND).contains(&lag), "{lag}");
}

#[test]
fn a_reply_that_lay_unread_beyond_the_timeout_was_in_time() {
    let mut plan = plan();
    plan.timeout_ns = 100 * MILLISECOND;
    plan.groups[0].clients = 2;
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), time(SECOND))];
    let server = held(0.005);
    let outcome = stopped_client(&plan, &server, 1_300 * MILLISECOND, 500 * MILLISECOND);
    let counts = outcome.counts();
    assert_eq!(counts.failed(), 0, "the server answered in time, and the client read late");
    let service = 5 * MILLISECOND + WAY;
    assert_eq!(outcome.range(Span::Service), (service, service));
}

#[test]
fn a_client_that_was_stopped_while_it_opened_connections_waits_for_the_replies_to_its_handshakes() {
    let plan = Plan { protocol: Protocol::Resp3, ..plan() };
    // The client is stopped in its first wait, for longer than a connection may take to open.
    let outcome = stopped_client(&plan, &server(), 0, 2 * plan.timeout_ns);
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    let connections = &outcome.measurement.connections;
    assert_eq!((connections.open, connections.failed, connections.lost), (4, 0, 0));
}

#[test]
fn a_handshake_that_is_not_answered_in_time_has_failed() {
    let plan = Plan { protocol: Protocol::Resp3, ..plan() };
    let outcome = run(&plan, 1, NetworkConditions::calm(), || Deaf { accepted: false });
    assert_eq!(outcome.measurement.status, Status::Partial);
    assert!(outcome.reason().contains("kind: NotTaken"), "{}", outcome.reason());
}

/// A network whose client is stopped once, in the middle of a wait that ends with the signal that wakes the client and
/// hands over nothing.
struct Interrupted<P> {
    network: Stopped<P>,
    is_woken: bool,
}

impl<P: Peer> Backend for Interrupted<P> {
    forward!(network: now, open, send, close);

    fn wait(&mut self, until: Nanos) -> io::Result<Nanos> {
        let at = self.network.at;
        let now = self.network.wait(until)?;
        self.is_woken = self.network.at != at;
        Ok(now)
    }

    fn drain(&mut self, on: &mut impl FnMut(ConnId, Event<'_>)) {
        if !self.is_woken {
            self.network.drain(on);
        }
    }
}

#[test]
fn replies_that_lay_unread_at_the_end_of_the_drain_end_their_requests() {
    let mut plan = plan();
    plan.timeout_ns = 5 * SECOND;
    let server = held(0.005);
    // The measured tenth of a second begins behind the first second of the clock, and a drain of a second follows.
    let (at, for_ns) = (1_050 * MILLISECOND, 1_500 * MILLISECOND);
    let outcome = run_with(&plan, |worker| {
        let sim = Sim::new(worker as u64, NetworkConditions::calm(), server.peer());
        Ok(Interrupted { network: Stopped { sim, at, for_ns }, is_woken: false })
    });
    let counts = outcome.counts();
    assert_eq!((counts.unfinished, counts.failed()), (0, 0), "the server answered in time: {counts:?}");
    assert_eq!(counts.completed, server.lock().requests(), "no request followed from a reply behind the end");
    let service = 5 * MILLISECOND + WAY;
    assert_eq!(outcome.range(Span::Service), (service, service));
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
}

#[test]
fn a_reply_that_came_in_time_while_others_were_read_is_no_timeout() {
    let mut plan = plan();
    // Each reply comes shortly before its request is late, while those before it are taken in.
    plan.timeout_ns = MILLISECOND + WAY + MICROSECOND;
    plan.groups[0].clients = 64;
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), time(300 * MILLISECOND))];
    let server = held(0.001);
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    let counts = outcome.counts();
    assert_eq!((counts.failed(), counts.errors(Fault::Timeout)), (0, 0), "{counts:?}");
    assert!(counts.completed > 64 * 200, "{counts:?}");
}

#[test]
fn handed_over_requests_without_reply_have_no_service_time() {
    let mut plan = at_rate(plan(), 5_000.0);
    let mut quiet = mix(&[(Verb::Get, 1.0), (Verb::Set, 1.0)]);
    quiet.noreply = true;
    plan.phases = vec![measuring(quiet, time(100 * MILLISECOND))];
    let server = server();
    let outcome = run(&plan, 1, NetworkConditions::rough(), || server.peer());
    let ops = outcome.measurement.ops();
    let (sets, gets) = (ops.get(Verb::Set).unwrap(), ops.get(Verb::Get).unwrap());
    assert!(sets.counts.completed > 200 && sets.counts.outcomes.ok == sets.counts.completed);
    for span in Span::ALL {
        let expected = if matches!(span, Span::Wait | Span::Lag) { sets.counts.completed } else { 0 };
        assert_eq!(sets.times.of(span).count(), expected, "{}", span.name());
        assert_eq!(gets.times.of(span).count(), gets.counts.completed, "{}", span.name());
    }
    assert_eq!(server.lock().counts().cmd_set, sets.counts.completed, "the server got every one of them");
}

/// A server that refuses some of the connections, by their number from 0, and panics at a request, also from 0.
struct Porter {
    peer: ServerPeer,
    refuses: std::ops::Range<u64>,
    panics_at: u64,
    connections: u64,
    requests: u64,
}

impl Porter {
    fn new(server: &SharedServer, refuses: std::ops::Range<u64>, panics_at: u64) -> Porter {
        Porter { peer: server.peer(), refuses, panics_at, connections: 0, requests: 0 }
    }
}

impl Peer for Porter {
    forward!(peer: handle_closed);

    fn handle_connect(&mut self, conn: ConnId, target: &Target, now: Nanos) -> Admission {
        self.connections += 1;
        if self.refuses.contains(&(self.connections - 1)) {
            return Admission::Refuse;
        }
        self.peer.handle_connect(conn, target, now)
    }

    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos) {
        assert!(self.requests != self.panics_at, "the test lets this worker fail");
        self.requests += 1;
        self.peer.handle_received(conn, bytes, now);
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        self.peer.poll(conn, now, out)
    }
}

/// Sets that ask for no reply, a thousand in a second over one connection, which is opened again.
fn quiet_sets(stop: Stop) -> Plan {
    let mut plan = Plan { reconnect: true, ..at_rate(plan(), 1_000.0) };
    plan.groups[0].clients = 1;
    let mut sets = mix(&[(Verb::Set, 1.0)]);
    sets.noreply = true;
    plan.phases = vec![measuring(sets, stop)];
    plan
}

#[test]
fn a_server_that_takes_connections_again_is_not_gone_where_nothing_asks_for_a_reply() {
    // Behind the refusals of the first run lie 1.3 s, and in the second another connection is lost 11 s after them.
    // Each connection of the others lives for half a second, which is less than the timeout.
    let stops = [
        (1_700, time(3 * SECOND)),
        (11_000, requests(25_000)),
        (500, time(3 * SECOND)),
        (500, requests(25_000)),
    ];
    for (closes_at, stop) in stops {
        let closing = faulty(CountedFault::CloseAfter.at(closes_at));
        let porter = || Porter::new(&closing, 1..3, NEVER);
        let outcome = run(&quiet_sets(stop), 1, NetworkConditions::calm(), porter);
        assert_eq!(
            (outcome.measurement.status, outcome.reason().as_str()),
            (Status::Complete, ""),
            "{closes_at}"
        );
        let connections = &outcome.measurement.connections;
        assert_eq!((connections.failed, connections.reconnected), (2, connections.lost), "{closes_at}");
        assert!(connections.reconnected > 0, "{closes_at}");
    }
}

#[test]
fn a_server_that_takes_no_connection_any_more_is_gone_where_nothing_asks_for_a_reply() {
    for (stop, expected) in [(time(3 * SECOND), "ServerGone"), (requests(25_000), "ConnectionsLost")] {
        let closing = faulty(CountedFault::CloseAfter.at(1_700));
        let porter = || Porter::new(&closing, 1..u64::MAX, NEVER);
        let outcome = run(&quiet_sets(stop), 1, NetworkConditions::calm(), porter);
        assert_eq!(outcome.measurement.status, Status::Partial);
        assert!(outcome.reason().contains(expected), "{}", outcome.reason());
    }
}

/// Puts a warm-up before `plan` as its first phase.
fn warmed_up(mut plan: Plan) -> Plan {
    let mut warmup = plan.phases[0].clone();
    (warmup.name, warmup.recorded) = ("warmup".to_owned(), false);
    plan.phases.insert(0, warmup);
    plan
}

/// A warm-up with far more requests than the server can answer, which leaves every connection with answers owed.
fn overloaded_at_first() -> Plan {
    let mut plan = at_rate(plan(), 1_000_000.0);
    plan.groups[0].depth = Depth::Limit(4);
    warmed_up(plan)
}

#[test]
fn after_an_overloaded_warm_up_all_connections_are_open_when_the_measured_phase_begins() {
    for threads in [1, 2] {
        let mut plan = overloaded_at_first();
        plan.engine.threads = threads;
        let server = held(0.005);
        let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
        assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
        let connections = &outcome.measurement.connections;
        assert_eq!((connections.open, connections.lost, connections.reconnected), (4, 0, 0));
        // Each was opened twice, and memcached counts one of its own.
        assert_eq!(server.lock().counts().total_connections, 2 * 4 + 1);
        let first = outcome.rows.iter().filter(|row| row.sent != NEVER).map(|row| row.sent).min();
        assert!(first.unwrap() - outcome.begin < CALLS, "they ask at once");
    }
}

#[test]
fn connections_that_timed_out_in_the_drain_of_the_warm_up_are_open_when_the_measured_phase_begins() {
    for threads in [1, 2] {
        let mut plan = warmed_up(plan());
        plan.engine.threads = threads;
        plan.timeout_ns = 50 * MILLISECOND;
        // The warm-up ends after some 1,102 ms of the clock, and its last requests are late 8 ms behind that.
        let server = server().freezing(1_060 * MILLISECOND, 1_140 * MILLISECOND);
        let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
        assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
        assert_eq!((outcome.counts().failed(), outcome.counts().unfinished), (0, 0));
        let connections = &outcome.measurement.connections;
        assert_eq!((connections.open, connections.lost, connections.reconnected), (4, 4, 4));
        let first = outcome.rows.iter().filter(|row| row.sent != NEVER).map(|row| row.sent).min();
        assert!(first.unwrap() - outcome.begin < CALLS, "they ask at once");
    }
}

#[test]
fn a_connection_that_cannot_be_opened_again_after_the_warm_up_ends_the_run_or_is_tried_again() {
    let server = held(0.005);
    let plan = overloaded_at_first();
    let outcome = run(&plan, 1, NetworkConditions::calm(), || Porter::new(&server, 5..u64::MAX, NEVER));
    assert_eq!(outcome.measurement.status, Status::Partial);
    assert!(outcome.reason().starts_with("NotOpened { asked: 4,"), "{}", outcome.reason());
    assert_eq!(outcome.counts().requests(), 0, "it is not measured with fewer connections");
    let plan = Plan { reconnect: true, ..plan };
    let outcome = run(&plan, 1, NetworkConditions::calm(), || Porter::new(&server, 5..12, NEVER));
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    let connections = &outcome.measurement.connections;
    assert_eq!((connections.failed, connections.lost, connections.reconnected), (7, 0, 0));
    assert!(outcome.counts().completed > 0);
}

#[test]
fn a_worker_that_panics_ends_the_run_of_the_others_with_an_error() {
    let mut plan = plan();
    plan.engine.threads = 3;
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), requests(1_000_000_000)), plan.phases.remove(0)];
    let server = server();
    let outcome = run_with(&plan, |worker| {
        let panics_at = if worker == 1 { 100 } else { NEVER };
        Ok(Sim::new(1, NetworkConditions::calm(), Porter::new(&server, 0..0, panics_at)))
    });
    assert_eq!(outcome.measurement.status, Status::Partial);
    let reason = outcome.reason();
    assert!(reason.starts_with("WorkerFailed") && reason.contains("lets this worker fail"), "{reason}");
    assert!(outcome.counts().completed > 0, "what the others measured is kept");
}

#[test]
fn a_backend_that_cannot_be_made_without_a_panic_ends_the_run_too() {
    let plan = Plan { engine: pummel_logic::plan::Engine { threads: 2, ..plan().engine }, ..plan() };
    let server = server();
    let outcome = run_with(&plan, |worker| {
        assert!(worker != 0, "the test lets the first worker fail");
        Ok(Sim::new(1, NetworkConditions::calm(), server.peer()))
    });
    assert!(outcome.reason().contains("lets the first worker fail"), "{}", outcome.reason());
}
