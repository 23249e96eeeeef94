//! Sequences of commands and transactions: each is one request, carried out once, also while slots move from node to node.

use pummel_engine::backend::sim::NetworkConditions;
use pummel_logic::cluster::slot_of;
use pummel_logic::dist::Dist;
use pummel_logic::plan::{Command, Depth, Plan, Protocol, Route};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, NEVER, SECOND};
use pummel_measure::measurement::Status;
use pummel_testserver::{ClusterConfig, ClusterFault, Endpoint, NodeAddress, ServerConfig};

use crate::peer::{Cluster, SharedServer};
use crate::setup::{Outcome, measuring, mix, plan, requests, run, time};

/// Four clients that ask these commands in RESP2 or RESP3, with equal weights.
fn asking(protocol: Protocol, texts: &[&str], depth: u32) -> Plan {
    let name =
        |(number, text): (usize, &&str)| Command { name: format!("own-{number}"), ..Command::unnamed(text) };
    let verbs: Vec<(Verb, f64)> =
        (0..texts.len()).filter_map(Verb::of_command).map(|verb| (verb, 1.0)).collect();
    let mut plan = Plan {
        protocol,
        commands: texts.iter().enumerate().map(name).collect(),
        phases: vec![measuring(mix(&verbs), requests(2_000))],
        ..plan()
    };
    plan.data.records = 10;
    plan.groups[0].depth = Depth::Limit(depth);
    plan
}

fn server(cluster: Option<ClusterConfig>) -> SharedServer {
    let service_time = Some(Dist::Uniform { low: 0.000_05, high: 0.000_2 });
    SharedServer::new(ServerConfig { service_time, cluster, ..ServerConfig::default() })
}

/// The number of times that a command was carried out by these nodes.
fn calls(server: &SharedServer, nodes: usize, command: &str) -> u64 {
    let mut all = 0;
    for node in 0..nodes {
        let mut server = server.lock();
        let mut connection = server.accept_at(node);
        let now = NEVER / 2;
        server.handle_received(&mut connection, b"*2\r\n$4\r\nINFO\r\n$12\r\ncommandstats\r\n", now);
        let mut told = Vec::new();
        server
            .poll_send(&mut connection, NEVER - 1)
            .parts()
            .iter()
            .for_each(|part| told.extend_from_slice(part));
        let told = String::from_utf8(told).expect("a report in ASCII");
        let calls = told.split_once(&format!("cmdstat_{command}:calls=")).map(|(_, rest)| rest);
        all += calls.and_then(|rest| rest.split(',').next()?.parse::<u64>().ok()).unwrap_or(0);
    }
    all
}

/// Requests of the command at this place that were carried out, and those that met a conflict.
fn done(outcome: &Outcome, place: usize) -> (u64, u64) {
    let verb = Verb::of_command(place).expect("there are so many");
    let counts = outcome.measurement.ops().get(verb).map(|op| op.counts).unwrap_or_default();
    assert_eq!((counts.failed(), counts.hits, counts.misses), (0, 0, 0), "{counts:?}");
    (counts.completed - counts.outcomes.conflict, counts.outcomes.conflict)
}

#[test]
fn transactions_are_carried_out_or_meet_a_conflict() {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let server = server(None);
        let texts = [
            "MULTI ; INCR __key__ ; PING ; INCR __key__:n ; EXEC",
            "WATCH __key__ ; GET __key__ ;; MULTI ; INCR __key__ ; SET __key__:v __value__ ; EXEC",
        ];
        let outcome = run(&asking(protocol, &texts, 1), 1, NetworkConditions::calm(), || server.peer());
        assert_eq!((outcome.measurement.status, outcome.rows.len()), (Status::Complete, 2_000));
        let ((plain, none), (watched, conflicts)) = (done(&outcome, 0), done(&outcome, 1));
        assert_eq!((plain + watched + conflicts, none), (2_000, 0));
        assert!(conflicts > 50 && watched > 50, "{watched} and {conflicts}");
        assert_eq!(calls(&server, 1, "incr"), 2 * plain + watched);
        assert_eq!(calls(&server, 1, "set"), watched);
        assert_eq!(calls(&server, 1, "get"), watched + conflicts);
    }
}

#[test]
fn parts_of_sequences_go_out_when_the_replies_to_those_before_have_come_at_any_depth() {
    for (protocol, depth) in [(Protocol::Resp2, 1), (Protocol::Resp3, 3)] {
        let server = server(None);
        let texts = ["INCR __key__ ; INCR __key__ ;; GET __key__ ;; MULTI ; INCR __key__ ; EXEC", "PING"];
        let outcome = run(&asking(protocol, &texts, depth), 1, NetworkConditions::calm(), || server.peer());
        assert_eq!((outcome.measurement.status, outcome.rows.len()), (Status::Complete, 2_000));
        let ((sequences, _), (pings, _)) = (done(&outcome, 0), done(&outcome, 1));
        assert_eq!(sequences + pings, 2_000);
        assert_eq!(calls(&server, 1, "incr"), 3 * sequences);
        assert_eq!(calls(&server, 1, "get"), sequences);
        // Three round trips of a sequence, and one of a PING.
        let service_ns = |place: usize| {
            let rows = outcome.rows.iter().filter(|row| row.verb.command() == Some(place));
            rows.map(|row| row.arrived - row.sent).min().unwrap_or(0)
        };
        assert!(service_ns(0) > 2 * service_ns(1), "{} {}", service_ns(0), service_ns(1));
    }
}

#[test]
fn while_slots_move_every_command_is_carried_out_once() {
    let nodes = 2;
    let addresses =
        (0..nodes).map(|node| NodeAddress { ip: format!("127.0.0.{node}"), port: 11_211 }).collect();
    for (protocol, depth, texts) in [
        (
            Protocol::Resp2,
            1,
            &[
                "MULTI ; INCR __key__ ; PING ; INCR __key__:n ; EXEC",
                "INCR __key__:p ; INCR __key__:q ;; INCR __key__:r ; PING",
                "WATCH __key__:w ; GET __key__:w ;; MULTI ; INCR __key__:w ; EXEC",
            ][..],
        ),
        (
            Protocol::Resp3,
            4,
            &[
                "MULTI ; INCR __key__ ; PING ; INCR __key__:n ; EXEC",
                "INCR __key__:p ; INCR __key__:q ;; INCR __key__:r ; PING",
            ],
        ),
    ] {
        let mut plan = Plan {
            servers: (0..nodes).map(|node| format!("127.0.0.{node}:11211")).collect(),
            route: Route::Cluster,
            reconnect: true,
            timeout_ns: 3 * SECOND,
            ..asking(protocol, texts, depth)
        };
        plan.data.key_tag = Some(1);
        plan.phases[0].stop = time(1_500 * MILLISECOND);
        plan.interval_ns = SECOND;
        // All slots that have keys move, each in its time.
        let keys = pummel_logic::workload::key::KeyMaker::new(&plan.data).expect("short keys");
        let mut buffer = [0; pummel_logic::workload::key::KEY_MAX_BYTES];
        let slots = (0..1_000).map(|index| slot_of(keys.key(index, &mut buffer)));
        let slots: std::collections::BTreeSet<u16> = slots.collect();
        let at_ns = |number: usize| SECOND + 50 * MILLISECOND + (number % 40) as u64 * MILLISECOND;
        let faults = slots.iter().enumerate();
        let faults =
            faults.map(|(number, &slot)| ClusterFault::Migrate { slot, at_ns: at_ns(number) }).collect();
        let cluster =
            ClusterConfig { nodes: Vec::clone(&addresses), masters: nodes, endpoint: Endpoint::Ip, faults };
        let server = server(Some(cluster));
        let outcome = run(&plan, 1, NetworkConditions::calm(), || Cluster::of_nodes(&server, nodes));
        assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
        let redirects = &outcome.measurement.counters.redirects;
        assert!(redirects.ask > 20 && redirects.moved > 0, "{redirects:?}");
        let counts = outcome.counts();
        assert_eq!((counts.unfinished, counts.unsent), (0, 0));
        let ((tx, _), (plain, _)) = (done(&outcome, 0), done(&outcome, 1));
        let watched = if texts.len() > 2 { done(&outcome, 2).0 } else { 0 };
        assert_eq!(calls(&server, nodes, "incr"), 2 * tx + 3 * plain + watched, "{redirects:?}");
    }
}
