//! Replies that end otherwise than they began, and replies with more than was asked for: the use that is made of their
//! values.

use pummel_engine::backend::ConnId;
use pummel_engine::backend::sim::{NetworkConditions, Next, Peer};
use pummel_logic::dist::Dist;
use pummel_logic::plan::{ChurningClients, Depth, Plan, Protocol, Spawns, Work};
use pummel_logic::protocol::{Fault, Verb};
use pummel_logic::time::Nanos;
use pummel_measure::measurement::Status;
use pummel_testserver::{Limits, ServerConfig};

use crate::peer::{ServerPeer, SharedServer};
use crate::setup::{Outcome, loaded, measuring, mix, plan, requests, run};

/// Changes a reply, which is the whole of one where a connection has one request outstanding.
type Spoil = fn(&mut Vec<u8>);

/// The built-in server, every third of whose replies to reads is changed on its way out.
struct Spoiling {
    peer: ServerPeer,
    spoil: Spoil,
    reads: u64,
}

impl Peer for Spoiling {
    forward!(peer: handle_connect, handle_received, handle_closed);

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        let next = self.peer.poll(conn, now, out);
        let brings_values = [&b"VALUE "[..], b"VA ", b"*", b"$", b"\x81\x0d", b"\x81\x00"];
        if brings_values.iter().any(|word| out.starts_with(word)) {
            self.reads += 1;
            if self.reads.is_multiple_of(3) {
                (self.spoil)(out);
            }
        }
        next
    }
}

/// Four clients with one request outstanding each, that write and read few records and check every value.
fn checking(protocol: Protocol, multiget: u32) -> Plan {
    let mut plan = loaded(Plan { protocol, verify: 1.0, reconnect: true, ..plan() });
    let mut work = mix(&[(Verb::Get, 1.0), (Verb::Set, 1.0)]);
    work.multiget = multiget;
    plan.data.records = 4;
    let Work::Load(load) = &mut plan.phases[0].work else { panic!("it loads first") };
    (load.depth, load.pieces, load.counters) = (1, false, false);
    plan.phases[1] = measuring(work, requests(4_000));
    plan
}

fn spoilt(plan: &Plan, conditions: NetworkConditions, spoil: Spoil) -> Outcome {
    let server = SharedServer::new(ServerConfig::default());
    run(plan, 1, conditions, || Spoiling { peer: server.peer(), spoil, reads: 0 })
}

/// A length in bytes, written as decimal digits before a line end.
fn length_at(bytes: &[u8]) -> usize {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&bytes[..digits]).unwrap().parse().unwrap()
}

fn line_end(bytes: &[u8]) -> usize {
    bytes.windows(2).position(|two| two == b"\r\n").expect("a line ends") + 2
}

/// Bytes of the first item of a reply of the text and meta protocols.
fn item_len(reply: &[u8]) -> usize {
    let line = line_end(reply);
    let words: Vec<&[u8]> = reply[..line].split(|byte| byte.is_ascii_whitespace()).collect();
    line + length_at(if words[0] == b"VA" { words[1] } else { words[3] }) + 2
}

/// Bytes of the first packet.
fn packet_len(reply: &[u8]) -> usize {
    24 + u32::from_be_bytes(reply[8..12].try_into().unwrap()) as usize
}

const BUSY: &[u8] = b"SERVER_ERROR busy\r\n";

fn replace_end(reply: &mut Vec<u8>, end: &[u8], by: &[u8]) {
    assert!(reply.ends_with(end), "{}", reply.escape_ascii());
    reply.truncate(reply.len() - end.len());
    reply.extend_from_slice(by);
}

/// An error stands where the end mark of a multi-get should.
const ENDS_IN_AN_ERROR: [(Protocol, Spoil); 4] = [
    (Protocol::Text, |reply| replace_end(reply, b"END\r\n", BUSY)),
    (Protocol::Meta, |reply| replace_end(reply, b"MN\r\n", b"SERVER_ERROR busy\r\nMN\r\n")),
    (Protocol::Resp2, |reply| {
        let mut at = line_end(reply);
        for _ in 1..length_at(&reply[1..]) {
            at += line_end(&reply[at..]) + length_at(&reply[at + 1..]) + 2;
        }
        reply.truncate(at);
        reply.extend_from_slice(b"-BUSY\r\n");
    }),
    (Protocol::Binary, |reply| {
        let noop = reply.len() - 24;
        let mut failed = reply[noop..].to_vec();
        (failed[1], failed[7]) = (0x0d, 0x85);
        reply.splice(noop..noop, failed);
    }),
];

#[test]
fn an_error_behind_a_value_makes_nothing_of_the_next_value_stale() {
    for (protocol, spoil) in ENDS_IN_AN_ERROR {
        let outcome = spoilt(&checking(protocol, 3), NetworkConditions::calm(), spoil);
        assert_eq!(
            (outcome.measurement.status, outcome.reason().as_str()),
            (Status::Complete, ""),
            "{protocol:?}"
        );
        let verify = &outcome.measurement.verify;
        assert_eq!((verify.failed, verify.stale), (0, 0), "{protocol:?}: {:?}", verify.first);
        let errors = outcome.counts().errors(Fault::Server);
        assert!(errors > 500, "{protocol:?}: {errors} ended in an error");
        assert_eq!(outcome.counts().failed(), errors, "{protocol:?}");
        assert_eq!(outcome.measurement.connections.lost, 0, "{protocol:?}");
        assert!(verify.checked >= 3 * outcome.counts().completed / 2, "{} were checked", verify.checked);
    }
}

#[test]
fn what_follows_an_error_between_two_values_accuses_of_nothing() {
    let spoil: Spoil = |reply| {
        let at = item_len(reply);
        reply.splice(at..at, BUSY.iter().copied());
    };
    for seed in 0..10 {
        let plan = Plan { seed, ..checking(Protocol::Text, 3) };
        let outcome = spoilt(&plan, NetworkConditions { cut: 0.9, ..NetworkConditions::rough() }, spoil);
        let verify = &outcome.measurement.verify;
        assert_eq!((verify.failed, verify.stale), (0, 0), "seed {seed}: {:?}", verify.first);
        assert!(outcome.counts().errors(Fault::Server) > 300, "{:?}", outcome.counts());
        assert!(outcome.measurement.connections.lost > 0);
    }
}

/// The first value comes twice.
const REPEATS_A_VALUE: [(Protocol, Spoil); 3] = [
    (Protocol::Text, |reply| {
        let item = reply[..item_len(reply)].to_vec();
        reply.splice(..0, item);
    }),
    (Protocol::Meta, |reply| {
        let item = reply[..item_len(reply)].to_vec();
        reply.splice(..0, item);
    }),
    (Protocol::Binary, |reply| {
        let packet = reply[..packet_len(reply)].to_vec();
        reply.splice(..0, packet);
    }),
];

#[test]
fn a_value_that_comes_more_often_than_its_key_was_asked_for_ends_the_connection() {
    for (protocol, spoil) in REPEATS_A_VALUE {
        for (multiget, verify) in [(1, 0.0), (1, 1.0), (3, 0.0), (3, 1.0)] {
            let what = format!("{protocol:?}, {multiget} keys, verify {verify}");
            let outcome =
                spoilt(&Plan { verify, ..checking(protocol, multiget) }, NetworkConditions::calm(), spoil);
            let (counts, lost) = (outcome.counts(), outcome.measurement.connections.lost);
            assert_eq!(
                (outcome.measurement.status, outcome.reason().as_str()),
                (Status::Complete, ""),
                "{what}"
            );
            assert_eq!(counts.completed + counts.failed(), 4_000, "{what}");
            let gets = outcome.measurement.ops().get(Verb::Get).expect("half of them read").counts;
            assert_eq!(gets.hits + gets.misses, gets.keys, "{what}");
            assert!(lost > 200, "{what}: {counts:?}");
            let verdicts = &outcome.measurement.verify;
            assert_eq!((verdicts.failed, verdicts.stale), (0, 0), "{what}: {:?}", verdicts.first);
        }
    }
}

#[test]
fn a_repeated_value_in_place_of_another_is_seen_where_values_are_checked() {
    let spoil: Spoil = |reply| {
        let first = reply[..item_len(reply)].to_vec();
        let second = item_len(&reply[first.len()..]);
        reply.splice(first.len()..first.len() + second, first);
    };
    let mut plan = checking(Protocol::Text, 2);
    plan.data.records = 1_000;
    let outcome = spoilt(&plan, NetworkConditions::calm(), spoil);
    let counts = outcome.counts();
    assert!(counts.errors(Fault::Protocol) > 200, "{counts:?}");
    assert_eq!(counts.errors(Fault::Protocol), outcome.measurement.connections.lost);
    assert_eq!((outcome.measurement.verify.failed, outcome.measurement.verify.stale), (0, 0));
}

#[test]
fn errors_of_requests_without_reply_have_an_account_of_their_own() {
    for protocol in [Protocol::Meta, Protocol::Binary] {
        for (depth, multiget) in [(1, 1), (4, 1), (4, 3)] {
            let mut plan = checking(protocol, multiget);
            plan.phases.remove(0);
            plan.reconnect = false;
            plan.data.value_size = Dist::Uniform { low: 24.0, high: 2_000.0 };
            plan.data.records = 100;
            plan.groups[0].depth = Depth::Limit(depth);
            let Work::Mix(work) = &mut plan.phases[0].work else { panic!("it measures") };
            work.noreply = true;
            let limits = Limits { item_max_bytes: 1_000, ..Limits::default() };
            let server = SharedServer::new(ServerConfig { limits, ..ServerConfig::default() });
            let outcome = run(&plan, 1, NetworkConditions::rough(), || server.peer());
            let (counts, measurement) = (outcome.counts(), &outcome.measurement);
            let what = format!("{protocol:?}, depth {depth}, {multiget} keys: {counts:?}");
            assert_eq!((measurement.status, outcome.reason().as_str()), (Status::Complete, ""), "{what}");
            assert_eq!((measurement.connections.lost, counts.failed()), (0, 0), "{what}");
            assert_eq!(counts.completed, 4_000, "{what}");
            assert!(measurement.noreply_errors > 500, "{} errors, {what}", measurement.noreply_errors);
            assert_eq!(measurement.messages.values().sum::<u64>(), measurement.noreply_errors, "{what}");
            assert_eq!((measurement.verify.failed, measurement.verify.stale), (0, 0), "{what}");
            let stored = counts.outcomes.ok - measurement.noreply_errors;
            // The run does not wait for the errors of its last stores.
            let late = stored - server.lock().counts().total_items;
            assert!(late <= 4 * u64::from(depth), "{late} errors were not counted, {what}");
        }
    }
}

/// Puts the beginning of an unasked answer behind every third answer, which is the last one of its client.
#[test]
fn the_beginning_of_an_answer_behind_the_last_one_of_a_client_does_not_reach_the_next_client() {
    for protocol in [Protocol::Text, Protocol::Meta, Protocol::Binary, Protocol::Resp2, Protocol::Resp3] {
        let mut plan = loaded(Plan { protocol, verify: 1.0, ..plan() });
        plan.data.records = 4;
        plan.groups[0].clients = 1;
        plan.groups[0].churn = Some(ChurningClients { spawns: Spawns::Closed, calls: 3, sequence: None });
        plan.phases[1] = measuring(mix(&[(Verb::Get, 1.0)]), requests(30));
        let spoil: Spoil = |reply| {
            let beginning = reply[..2].to_vec();
            reply.extend(beginning);
        };
        let outcome = spoilt(&plan, NetworkConditions::calm(), spoil);
        let counts = outcome.counts();
        assert_eq!(
            (outcome.measurement.status, outcome.reason().as_str()),
            (Status::Complete, ""),
            "{protocol:?}"
        );
        assert_eq!((counts.completed, counts.failed()), (30, 0), "{protocol:?}");
        assert_eq!(outcome.measurement.verify.checked, 30, "{protocol:?}");
    }
}
