//! Clients that come and go: every one of them, and every request, is accounted for, whatever the conditions.

use std::collections::BTreeSet;
use std::io::{self};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pummel_engine::backend::dial::{self, failure_of};
use pummel_engine::backend::sim::{Admission, NetworkConditions, Next, Peer, Sim};
use pummel_engine::backend::{Backend, Close, ConnId, Event, Target};
use pummel_logic::plan::{
    Arrivals, ChurningClients, Depth, Gap, Login, Plan, Protocol, Sequence, Spawns, Stop,
};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND};
use pummel_measure::churn::Churn;
use pummel_measure::measurement::Status;
use pummel_measure::trouble::Trouble;
use pummel_testserver::ServerConfig;

use crate::peer::{Cluster, SharedServer};
use crate::setup::{Outcome, loaded, measuring, mix, mix_of_all, plan, requests, run, run_with, time};

fn server() -> SharedServer {
    SharedServer::new(ServerConfig::default())
}

/// A plan of at most four clients at one time, each with five requests.
fn coming(births: Spawns, stop: Stop) -> Plan {
    let mut plan = loaded(plan());
    plan.groups[0].churn = Some(ChurningClients { spawns: births, calls: 5, sequence: None });
    plan.phases[1] = measuring(mix_of_all(), stop);
    plan
}

fn churn(outcome: &Outcome) -> &Churn {
    outcome.measurement.connections.churn.as_ref().expect("clients come and go")
}

fn a_thousand_a_second() -> Spawns {
    Spawns::Open { arrivals: Arrivals::Constant, rate: 1_000.0 }
}

/// The requests of a sequence, one byte each; connections a millisecond apart.
fn counted(calls: u64, gap: Option<Gap>, count: u64) -> Plan {
    let mut plan = plan();
    let sequence = Sequence {
        instance: 0,
        calls: gap,
        sizes: Gap::Uniform(1.0, 16.0),
        stride: 1,
        offset: 0,
        bogus: false,
    };
    let births = Spawns::Drawn(Gap::Fixed(0.001));
    plan.data.key_prefix = "mcp:".to_owned();
    plan.groups[0].clients = 1_000;
    plan.groups[0].depth = if gap.is_some() { Depth::Unlimited } else { Depth::Limit(1) };
    plan.groups[0].churn = Some(ChurningClients { spawns: births, calls, sequence: Some(sequence) });
    plan.phases = vec![measuring(mix(&[(Verb::Set, 1.0)]), requests(count))];
    plan
}

#[test]
fn each_client_makes_its_requests_on_a_connection_of_its_own() {
    let server = server();
    let outcome = run(&coming(Spawns::Closed, requests(502)), 1, NetworkConditions::calm(), || server.peer());
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    let churn = churn(&outcome);
    assert_eq!((churn.begun, churn.asked, churn.established), (101, 101, 101));
    assert_eq!((churn.alive_max, churn.life.count(), churn.failures.total()), (4, 101, 0));
    // A cas is two requests.
    let of = |client| outcome.rows.iter().filter(|row| row.client == client).count();
    assert!((0..100).all(|client| (5..=10).contains(&of(client))));
    assert!((2..=4).contains(&of(100)), "the last one makes what is left");
    // Those who loaded, and memcached's own.
    assert_eq!(server.lock().counts().total_connections, 101 + 4 + 1);
}

#[test]
fn clients_come_when_they_are_due_whoever_is_there() {
    let server = server();
    let outcome =
        run(&coming(a_thousand_a_second(), requests(100)), 1, NetworkConditions::calm(), || server.peer());
    let firsts: BTreeSet<u64> =
        outcome.rows.iter().filter(|row| row.due >= outcome.begin).map(|row| row.client).collect();
    assert_eq!(firsts, (0..20).collect());
    for client in 0..20 {
        let first = outcome.rows.iter().find(|row| row.client == client).unwrap();
        assert_eq!(first.due - outcome.begin, client * MILLISECOND, "client {client}");
        assert!(first.ready > first.due, "opening is a part of the wait");
    }
}

#[test]
fn time_ends_the_coming_and_every_request_is_accounted_for() {
    let stop = Stop { time_ns: Some(50 * MILLISECOND), requests: None };
    for conditions in [NetworkConditions::calm(), NetworkConditions::rough(), NetworkConditions::harsh()] {
        for seed in 1..6 {
            let server = server();
            let mut plan = coming(a_thousand_a_second(), stop);
            plan.phases.remove(0);
            let outcome = run(&plan, seed, conditions, || server.peer());
            let churn = churn(&outcome);
            let counts = outcome.counts();
            assert_eq!(churn.begun, 50, "{:?}", churn.failures);
            assert_eq!(churn.established, churn.life.count());
            assert_eq!(counts.requests(), outcome.rows.len() as u64 + counts.unsent, "{counts:?}");
            assert!(churn.failures.total() <= churn.begun, "each is counted once");
        }
    }
}

#[test]
fn requests_of_connections_that_could_not_be_opened_are_unsent() {
    let conditions = NetworkConditions { refuse: 1.0, ..NetworkConditions::calm() };
    let server = server();
    let outcome = run(&counted(5, None, 500), 1, conditions, || server.peer());
    let churn = churn(&outcome);
    assert_eq!((churn.begun, churn.established, churn.failures.refused), (100, 0, 100));
    assert_eq!((outcome.counts().requests(), outcome.counts().unsent), (500, 500));
    assert_eq!(outcome.measurement.status, Status::Partial);
    assert!(outcome.reason().starts_with("ClientsFailed { begun: 100, failed: 100,"), "{}", outcome.reason());
}

#[test]
fn a_sequence_asks_each_key_once_in_the_order_of_asking() {
    let server = server();
    let outcome =
        run(&counted(10, Some(Gap::Fixed(0.001)), 1_000), 1, NetworkConditions::calm(), || server.peer());
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    let mut sent: Vec<_> = outcome.rows.iter().map(|row| (row.sent, row.key)).collect();
    sent.sort_unstable();
    let keys: BTreeSet<u64> = sent.iter().map(|(_, key)| *key).collect();
    assert_eq!(keys, (1..=1_000).collect());
    let churn = churn(&outcome);
    assert_eq!(
        (churn.request_bytes.min, churn.request_bytes.max, churn.request_bytes.count),
        (28, 44, 1_000)
    );
    assert_eq!((churn.reply_bytes.sum, churn.replies.stored), (8_000, 1_000));
    assert_eq!(outcome.measurement.counters.bytes.sent, churn.request_bytes.sum as u64);
    // Nine gaps of a millisecond, and the ways there and back.
    let life = churn.life.moments();
    assert!((9 * MILLISECOND..10 * MILLISECOND).contains(&life.min), "{life:?}");
    assert!((9..=11).contains(&churn.alive_max), "{}", churn.alive_max);
}

#[test]
fn calls_in_open_loop_do_not_wait_for_answers() {
    let server = server().freezing(0, 30 * MILLISECOND);
    let outcome =
        run(&counted(10, Some(Gap::Fixed(0.001)), 10), 1, NetworkConditions::calm(), || server.peer());
    let first = outcome.rows.iter().map(|row| row.sent).min().unwrap();
    for row in &outcome.rows {
        assert_eq!((row.sent - first + MILLISECOND / 2) / MILLISECOND, row.key - 1, "{row:?}");
    }
}

#[test]
fn a_silent_server_costs_each_connection_its_timeout_to_the_nanosecond() {
    let server = server().freezing(0, NEVER);
    for timeout_ns in [SECOND / 2, 5 * SECOND] {
        let plan = Plan { timeout_ns, ..counted(10, None, 200) };
        let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
        let churn = churn(&outcome);
        assert_eq!((churn.failures.timeout, churn.failures.total()), (20, 20));
        assert_eq!((churn.request_bytes.count, churn.reply_bytes.count), (20, 0));
        let life = churn.life.moments();
        assert!(life.min >= timeout_ns && life.max < timeout_ns + MILLISECOND, "{life:?}");
        assert_eq!(outcome.counts().requests(), 200);
    }
}

#[test]
fn lost_connections_are_counted_once_by_their_kind_and_the_others_go_on() {
    let broken = |conditions| {
        let server = server();
        let outcome = run(&counted(10, Some(Gap::Fixed(0.001)), 2_000), 3, conditions, || server.peer());
        let churn = churn(&outcome).clone();
        assert_eq!((churn.begun, churn.established), (200, 200));
        assert_eq!(outcome.counts().requests(), 2_000);
        assert_eq!(churn.request_bytes.count, outcome.counts().requests() - outcome.counts().unsent);
        let failed = outcome.departures.iter().filter_map(|gone| gone.failure.as_ref());
        assert_eq!(failed.clone().count() as u64, churn.failures.total());
        for (failure, trouble) in failed {
            assert!(matches!(trouble, Some(Trouble::Lost(reason)) if failure_of(reason) == *failure));
        }
        let (made, of) =
            outcome.departures.iter().fold((0, 0), |sum, gone| (sum.0 + gone.calls.0, sum.1 + gone.calls.1));
        assert_eq!((made, of), (2_000 - outcome.counts().unsent, 2_000));
        churn.failures
    };
    let reset = broken(NetworkConditions { reset: 0.02, ..NetworkConditions::calm() });
    assert!(reset.reset > 10 && reset.total() == reset.reset, "{reset:?}");
    let closed = broken(NetworkConditions { close: 0.02, ..NetworkConditions::calm() });
    assert!(closed.other > 10 && closed.total() == closed.other, "{closed:?}");
}

#[test]
fn workers_share_a_crowd_out_among_them() {
    let server = server();
    let mut plan = coming(a_thousand_a_second(), requests(500));
    plan.engine.threads = 3;
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    assert_eq!(churn(&outcome).begun, 100);
    let clients: BTreeSet<u64> = outcome.rows.iter().map(|row| row.client).collect();
    assert_eq!(clients, (0..100).collect());
}

#[test]
fn values_are_checked_and_warm_ups_are_not_counted() {
    let server = server();
    let mut plan = coming(a_thousand_a_second(), requests(500));
    plan.verify = 1.0;
    let mut warmup = plan.phases[1].clone();
    (warmup.name, warmup.recorded) = ("warmup".to_owned(), false);
    plan.phases.insert(1, warmup);
    let outcome = run(&plan, 1, NetworkConditions::rough(), || server.peer());
    assert_eq!((churn(&outcome).begun, churn(&outcome).ended), (100, 100));
    let measured: BTreeSet<u64> = outcome.departures.iter().map(|gone| gone.client).collect();
    assert_eq!((measured, outcome.departures.len()), ((0..100).collect(), 100), "none of the warm-up");
    assert!(outcome.departures.iter().all(|gone| gone.was_open && gone.failure.is_none()));
    assert!(
        outcome.departures.iter().all(|gone| outcome.begin <= gone.asked_at && gone.asked_at < gone.ended_at)
    );
    assert!(outcome.measurement.verify.checked > 0);
    assert_eq!(outcome.measurement.verify.failed, 0);
}

#[test]
fn clients_of_a_sequence_come_by_the_millisecond_and_never_early() {
    let server = server();
    // Three gaps, of which the first is the grain and the last but one more.
    for (gap_ns, asked_at) in [
        (MILLISECOND, vec![0, 1_000, 2_000, 3_000, 4_000, 5_000]),
        (MILLISECOND / 4, vec![0, 1_000, 1_000, 1_000, 1_000, 2_000]),
        (5 * MILLISECOND / 2, vec![0, 2_500, 5_000, 7_500, 10_000, 12_500]),
        (MILLISECOND / 500, vec![0, 1_000, 1_000, 1_000, 1_000, 1_000]),
    ] {
        let mut plan = counted(1, None, 6);
        plan.groups[0].churn.as_mut().unwrap().spawns = Spawns::Drawn(Gap::Fixed(gap_ns as f64 / 1e9));
        let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
        let mut asked: Vec<u64> =
            outcome.departures.iter().map(|gone| (gone.asked_at - outcome.begin) / 1_000).collect();
        asked.sort_unstable();
        // Each connection that is begun takes the simulated clock a little further.
        let early_or_late = asked.iter().zip(&asked_at).find(|(at, due)| *at < *due || **at > **due + 100);
        assert_eq!(early_or_late, None, "{asked:?}");
    }
}

/// Four clients at one time that get five records each, from a server that holds nothing.
fn getting(births: Spawns, stop: Stop) -> Plan {
    let mut plan = plan();
    plan.groups[0].churn = Some(ChurningClients { spawns: births, calls: 5, sequence: None });
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), stop)];
    plan
}

/// Asserts that every client that came is gone, and every request that was due is accounted for.
#[track_caller]
fn assert_accounted(outcome: &Outcome) -> &Churn {
    let churn = churn(outcome);
    let counts = outcome.counts();
    assert_eq!(churn.begun, churn.ended, "all are gone");
    assert!(churn.failures.total() <= churn.begun, "each is counted once");
    assert_eq!(counts.requests(), outcome.rows.len() as u64 + counts.unsent, "{counts:?}");
    churn
}

/// A server that answers the first bytes of each connection with a fixed message.
#[derive(Clone)]
struct Doorman {
    words: &'static [u8],
    /// Whether the server closes the connection after its message.
    closes: bool,
    /// Connections that came, and those that the client has closed.
    came: Arc<AtomicU64>,
    left: Arc<AtomicU64>,
    spoken_to: BTreeSet<(u32, u32)>,
}

impl Doorman {
    fn new(words: &'static [u8], closes: bool) -> Doorman {
        let (came, left) = Default::default();
        Doorman { words, closes, came, left, spoken_to: BTreeSet::new() }
    }
}

impl Peer for Doorman {
    fn handle_connect(&mut self, _conn: ConnId, _target: &Target, _now: Nanos) -> Admission {
        self.came.fetch_add(1, Ordering::Relaxed);
        Admission::Accept
    }

    fn handle_received(&mut self, conn: ConnId, _bytes: &[u8], _now: Nanos) {
        self.spoken_to.insert((conn.slot, conn.generation));
    }

    fn handle_closed(&mut self, _conn: ConnId, _now: Nanos) {
        self.left.fetch_add(1, Ordering::Relaxed);
    }

    fn poll(&mut self, conn: ConnId, _now: Nanos, out: &mut Vec<u8>) -> Next {
        if !self.spoken_to.remove(&(conn.slot, conn.generation)) {
            return Next::At(NEVER);
        }
        out.extend_from_slice(self.words);
        if self.closes { Next::Close } else { Next::At(NEVER) }
    }
}

#[test]
fn a_greeting_that_is_refused_ends_each_client_and_closes_its_connection() {
    let login = Some(Login { user: "joe".to_owned(), password_file: Some("Cargo.toml".to_owned()) });
    let refusals: [(Protocol, Option<Login>, &'static [u8]); 4] = [
        (Protocol::Resp3, None, b"-ERR max number of clients reached\r\n"),
        (Protocol::Resp2, login.clone(), b"-WRONGPASS invalid username-password pair\r\n"),
        (Protocol::Text, login.clone(), b"CLIENT_ERROR authentication failure\r\n"),
        (Protocol::Meta, login, b"CLIENT_ERROR authentication failure\r\n"),
    ];
    for (protocol, login, words) in refusals {
        for closes in [false, true] {
            for births in [Spawns::Closed, a_thousand_a_second()] {
                for conditions in [NetworkConditions::calm(), NetworkConditions::rough()] {
                    let doorman = Doorman::new(words, closes);
                    let plan =
                        Plan { protocol, login: login.clone(), ..getting(births.clone(), requests(100)) };
                    let outcome = run(&plan, 1, conditions, || doorman.clone());
                    let churn = assert_accounted(&outcome);
                    assert_eq!((churn.begun, churn.established, churn.failures.other), (20, 0, 20));
                    assert_eq!(outcome.counts().unsent, 100);
                    let reason = outcome.reason();
                    let (_, said) = words.split_at(usize::from(words[0] == b'-'));
                    assert!(reason.contains(std::str::from_utf8(said).unwrap().trim_end()), "{reason}");
                    let (came, left) = (&doorman.came, &doorman.left);
                    assert_eq!(came.load(Ordering::Relaxed), 20, "{protocol:?}");
                    let expected = if closes { 0..=20 } else { 16..=20 };
                    // The last ones may be on their way when the run ends.
                    assert!(expected.contains(&left.load(Ordering::Relaxed)), "{protocol:?}: {left:?}");
                }
            }
        }
    }
}

#[test]
fn seats_rest_longer_after_each_connection_that_fails() {
    let refused = NetworkConditions { refuse: 1.0, ..NetworkConditions::calm() };
    for births in [Spawns::Closed, a_thousand_a_second()] {
        let server = server();
        let outcome = run(&getting(births, time(2 * SECOND)), 1, refused, || server.peer());
        let churn = assert_accounted(&outcome);
        // Each of four seats rests 10, 20, 40, 80, 160, 320, 640 and 1,000 ms.
        assert_eq!((churn.failures.refused, churn.begun), (4 * 8, 4 * 8));
    }
    // A server that takes connections and closes them without an answer.
    for births in [Spawns::Closed, a_thousand_a_second()] {
        let outcome =
            run(&getting(births, time(2 * SECOND)), 1, NetworkConditions::calm(), || Doorman::new(b"", true));
        let churn = assert_accounted(&outcome);
        assert_eq!((churn.failures.other, churn.begun), (4 * 8, 4 * 8));
    }
}

#[test]
fn a_connection_that_fails_after_an_answer_is_followed_by_the_next_at_once() {
    let server = server();
    let conditions = NetworkConditions { reset: 0.2, ..NetworkConditions::calm() };
    let outcome = run(&getting(Spawns::Closed, time(SECOND / 10)), 1, conditions, || server.peer());
    let churn = assert_accounted(&outcome);
    assert!(churn.failures.reset > 100, "{:?}", churn.failures);
}

#[test]
fn a_silent_server_is_given_up_where_no_time_ends_the_run() {
    for births in [Spawns::Closed, a_thousand_a_second()] {
        for threads in [1, 3] {
            let server = server().freezing(0, NEVER);
            let mut plan = getting(births.clone(), requests(1_000_003));
            plan.engine.threads = threads;
            let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
            let churn = assert_accounted(&outcome);
            // Ten timeouts of a second, and what was under way then.
            assert_eq!(churn.failures.timeout, churn.begun);
            assert!((40..=48).contains(&churn.begun), "{}", churn.begun);
            let measured = outcome.measurement.measured_ns;
            assert!((10 * SECOND..=12 * SECOND).contains(&measured), "{measured}");
            assert_eq!(outcome.measurement.status, Status::Partial);
            let missing = 1_000_003 - outcome.counts().requests();
            let fact = format!("missing: {missing},");
            assert!(outcome.reason().contains(&fact), "{fact}: {}", outcome.reason());
        }
    }
}

#[test]
fn clients_of_a_server_that_answers_come_when_another_one_was_given_up() {
    let servers = [server(), server().freezing(0, NEVER)];
    let mut plan = getting(Spawns::Closed, requests(10_000));
    plan.servers = (0..2).map(|n| format!("127.0.0.{n}:11211")).collect();
    let outcome = run(&plan, 1, NetworkConditions::calm(), || Cluster::new(&servers));
    let churn = assert_accounted(&outcome);
    assert_eq!(outcome.counts().completed, 5_000, "all requests to the server that answers");
    assert_eq!(churn.failures.timeout, churn.failures.total());
    let missing = 10_000 - outcome.counts().requests();
    assert!(missing > 4_000, "{missing}");
    assert!(outcome.reason().contains(&format!("missing: {missing},")));
}

/// A machine that limits the connections of a process.
struct Scarce {
    network: Sim<crate::peer::ServerPeer>,
    most: usize,
    open: BTreeSet<(u32, u32)>,
    refused: Vec<ConnId>,
}

impl Backend for Scarce {
    forward!(network: now, send);

    fn open(&mut self, conn: ConnId, target: &Target) {
        if self.open.len() >= self.most {
            return self.refused.push(conn);
        }
        self.open.insert((conn.slot, conn.generation));
        self.network.open(conn, target);
    }

    fn close(&mut self, conn: ConnId, how: Close) {
        self.open.remove(&(conn.slot, conn.generation));
        self.network.close(conn, how);
    }

    fn wait(&mut self, until: Nanos) -> io::Result<Nanos> {
        self.network.wait(if self.refused.is_empty() { until } else { 0 })
    }

    fn drain(&mut self, on: &mut impl FnMut(ConnId, Event<'_>)) {
        for conn in std::mem::take(&mut self.refused) {
            on(conn, Event::Closed(dial::reason(libc::EMFILE)));
        }
        let open = &mut self.open;
        self.network.drain(&mut |conn, event| {
            if let Event::Closed(_) = event {
                open.remove(&(conn.slot, conn.generation));
            }
            on(conn, event);
        });
    }
}

#[test]
fn a_machine_without_more_descriptors_bounds_the_clients_and_is_named() {
    for births in [Spawns::Closed, Spawns::Open { arrivals: Arrivals::Constant, rate: 1e6 }] {
        let server = server();
        let mut plan = getting(births, time(3 * SECOND));
        plan.groups[0].clients = 1_000;
        let outcome = run_with(&plan, |_| {
            let network = Sim::new(1, NetworkConditions::calm(), server.peer());
            Ok(Scarce { network, most: 10, open: BTreeSet::new(), refused: Vec::new() })
        });
        let churn = assert_accounted(&outcome);
        assert_eq!(churn.failures.descriptors, churn.failures.total());
        // The births of the first turn, and one more each second.
        assert!(churn.failures.descriptors <= 64 + 3, "{:?}", churn.failures);
        assert_eq!(churn.alive_max, 10);
        assert!(churn.established > 10_000, "the others go on: {}", churn.established);
        let reason = outcome.reason();
        assert!(reason.starts_with("NoRoom { open_max: 10,") && reason.contains("ulimit -Hn"), "{reason}");
    }
}
