//! Tests of a cluster by what its nodes answer.

use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND};

use super::config::{ClusterConfig, ClusterFault, Endpoint, NodeAddress};
use crate::tests::receive;
use crate::{Dialect, Server, ServerConfig, ServerConnection, Truth};

/// Slots of the keys `a`, `b` and `c`: with three nodes they belong to the last, the first and the second one.
const SLOT_OF_A: u16 = 15_495;

/// A cluster, and a connection to each node.
struct Fleet {
    server: Server,
    connections: Vec<ServerConnection>,
}

impl Fleet {
    fn new(nodes: u16, endpoint: Endpoint, faults: Vec<ClusterFault>) -> Fleet {
        Fleet::with_replicas((nodes, 0), endpoint, faults)
    }

    /// A fleet of so many masters with so many replicas each.
    fn with_replicas(
        (masters, replicas): (u16, u16),
        endpoint: Endpoint,
        faults: Vec<ClusterFault>,
    ) -> Fleet {
        let nodes = masters * (1 + replicas);
        let addresses =
            (1..=nodes).map(|node| NodeAddress { ip: "127.0.0.1".to_owned(), port: 7_000 + node });
        let cluster = ClusterConfig { nodes: addresses.collect(), masters: masters.into(), endpoint, faults };
        let mut server = Server::new(
            ServerConfig {
                dialect: Dialect::Resp,
                cluster: Some(cluster),
                truth: Truth::Kept,
                ..ServerConfig::default()
            },
            0,
        );
        let connections = (0..usize::from(nodes)).map(|node| server.accept_at(node)).collect();
        Fleet { server, connections }
    }

    fn of_three(faults: Vec<ClusterFault>) -> Fleet {
        Fleet::new(3, Endpoint::Ip, faults)
    }

    /// The reply of a node, counted from 1, to a line.
    fn say(&mut self, node: usize, line: &str, now: Nanos) -> String {
        let connection = &mut self.connections[node - 1];
        self.server.handle_received(connection, format!("{line}\r\n").as_bytes(), now);
        String::from_utf8(receive(&mut self.server, connection, now, usize::MAX))
            .expect("the replies are text")
    }

    /// Says lines to nodes at their times, and compares the replies; those to errors without their end.
    #[track_caller]
    fn play(&mut self, script: &[(Nanos, usize, &str, &str)]) {
        for &(now, node, line, expected) in script {
            let reply = self.say(node, line, now);
            assert_eq!(reply.trim_end().replace("\r\n", " "), expected, "{line} to node {node} at {now}");
        }
    }
}

#[test]
fn a_node_serves_its_own_slots_and_names_the_owners_of_others() {
    Fleet::of_three(Vec::new()).play(&[
        (0, 3, "SET a 1", "+OK"),
        (0, 3, "GET a", "$1 1"),
        (0, 1, "GET a", "-MOVED 15495 127.0.0.1:7003"),
        (0, 2, "SET a 2", "-MOVED 15495 127.0.0.1:7003"),
        (0, 1, "SET b 1", "+OK"),
        (0, 1, "MGET b {b}2", "*2 $1 1 $-1"),
        (0, 1, "MSET b 1 a 2", "-CROSSSLOT Keys in request don't hash to the same slot"),
        (0, 1, "MSET b 1 {b}2 a", "+OK"),
        (0, 3, "DEL a b", "-CROSSSLOT Keys in request don't hash to the same slot"),
        (0, 2, "EXPIRE b 10", "-MOVED 3300 127.0.0.1:7001"),
        (0, 1, "DBSIZE", ":2"),
        (0, 2, "DBSIZE", ":0"),
        (0, 3, "FLUSHALL", "+OK"),
        (0, 1, "DBSIZE", ":2"),
        (0, 1, "PING", "+PONG"),
        (0, 1, "GET", "-ERR wrong number of arguments for 'get' command"),
        (0, 2, "ASKING", "+OK"),
        (0, 2, "GET a", "-MOVED 15495 127.0.0.1:7003"),
        (0, 2, "READONLY", "+OK"),
        (0, 2, "READWRITE", "+OK"),
        (0, 2, "SELECT 0", "+OK"),
        (0, 2, "SELECT 1", "-ERR SELECT is not allowed in cluster mode"),
        (0, 2, "CLUSTER KEYSLOT a", ":15495"),
        (0, 2, "CLUSTER MYID", "$40 0000000000000000000000000000000000000002"),
        (0, 1, "CLUSTER COUNTKEYSINSLOT 3300", ":2"),
        (0, 1, "CLUSTER COUNTKEYSINSLOT 16384", "-ERR value is not an integer or out of range"),
    ]);
}

#[test]
fn a_replica_answers_reads_of_its_masters_slots_after_readonly() {
    Fleet::with_replicas((3, 1), Endpoint::Ip, Vec::new()).play(&[
        (0, 3, "SET a 1", "+OK"),
        (0, 6, "GET a", "-MOVED 15495 127.0.0.1:7003"),
        (0, 6, "READONLY", "+OK"),
        (0, 6, "GET a", "$1 1"),
        (0, 6, "MGET a {a}2", "*2 $1 1 $-1"),
        (0, 6, "TTL a", ":-1"),
        (0, 6, "GET b", "-MOVED 3300 127.0.0.1:7001"),
        (0, 6, "SET a 2", "-MOVED 15495 127.0.0.1:7003"),
        (0, 6, "GETEX a", "-MOVED 15495 127.0.0.1:7003"),
        (0, 6, "DEL a", "-MOVED 15495 127.0.0.1:7003"),
        (0, 6, "FLUSHALL", "-READONLY You can't write against a read only replica."),
        (0, 6, "DBSIZE", ":1"),
        (0, 3, "SET a 3", "+OK"),
        (0, 6, "GET a", "$1 3"),
        (0, 6, "READWRITE", "+OK"),
        (0, 6, "GET a", "-MOVED 15495 127.0.0.1:7003"),
        // On a master it changes nothing.
        (0, 3, "READONLY", "+OK"),
        (0, 3, "SET a 4", "+OK"),
        (0, 3, "GET b", "-MOVED 3300 127.0.0.1:7001"),
    ]);
}

#[test]
fn a_replica_counts_for_itself_and_is_listed_behind_its_master() {
    let mut fleet = Fleet::with_replicas((1, 2), Endpoint::Ip, Vec::new());
    let node = |node: u16| format!("*4 $9 127.0.0.1 :{} $40 {node:040} *0", 7_000 + node);
    let expected = format!("*1 *5 :0 :16383 {} {} {}", node(1), node(2), node(3));
    fleet.play(&[
        (0, 2, "CLUSTER SLOTS", &expected),
        (0, 1, "SET a 1", "+OK"),
        (0, 2, "READONLY", "+OK"),
        (0, 2, "GET a", "$1 1"),
        (0, 2, "GET b", "$-1"),
    ]);
    for (node, hits, misses) in [(1, 0, 0), (2, 1, 1), (3, 0, 0)] {
        let info = fleet.say(node, "INFO stats", 0);
        let expected = format!("keyspace_hits:{hits}\r\nkeyspace_misses:{misses}\r\n");
        assert!(info.contains(&expected), "{node}: {info}");
    }
    let (master, replica) = (fleet.say(1, "HELLO 3", 0), fleet.say(2, "HELLO 3", 0));
    assert!(master.contains("role\r\n$6\r\nmaster") && replica.contains("role\r\n$7\r\nreplica"));
}

#[test]
fn the_replica_of_a_node_that_goes_takes_its_place() {
    for (fault, at) in [
        (ClusterFault::Demote { node: 2, at_ns: SECOND }, SECOND),
        (ClusterFault::Kill { node: 2, at_ns: SECOND }, 2 * SECOND),
    ] {
        let is_alive = matches!(fault, ClusterFault::Demote { .. });
        let mut fleet = Fleet::with_replicas((3, 2), Endpoint::Ip, vec![fault]);
        fleet.play(&[
            (0, 3, "SET a 1", "+OK"),
            (0, 9, "READONLY", "+OK"),
            (SECOND - 1, 6, "GET a", "-MOVED 15495 127.0.0.1:7003"),
            // Its first replica is the sixth node, and its second one the ninth.
            (at, 6, "SET a 2", "+OK"),
            (at, 9, "GET a", "$1 2"),
            (at, 1, "GET a", "-MOVED 15495 127.0.0.1:7006"),
            (at, 9, "SET a 3", "-MOVED 15495 127.0.0.1:7006"),
        ]);
        if is_alive {
            fleet.play(&[(at, 3, "READONLY", "+OK"), (at, 3, "GET a", "$1 2")]);
        }
        let slots = fleet.say(1, "CLUSTER SLOTS", at);
        assert_eq!(slots.contains(":7003\r\n"), is_alive, "{slots}");
    }
}

#[test]
fn a_replica_that_dies_is_listed_no_more_and_moves_nothing() {
    let kill = ClusterFault::Kill { node: 5, at_ns: SECOND };
    let mut fleet = Fleet::with_replicas((3, 1), Endpoint::Ip, vec![kill]);
    fleet.play(&[(0, 3, "SET a 1", "+OK"), (SECOND, 3, "GET a", "$1 1")]);
    assert!(!fleet.say(1, "CLUSTER SLOTS", SECOND).contains(":7006\r\n"));
    fleet.play(&[(SECOND, 6, "PING", ""), (3 * SECOND, 3, "GET a", "$1 1"), (3 * SECOND, 1, "DBSIZE", ":0")]);
    assert_eq!((fleet.server.take_died(), fleet.server.next_change()), (vec![5], NEVER));
}

#[test]
fn a_server_by_itself_has_no_cluster() {
    let mut server = Server::new(ServerConfig { dialect: Dialect::Resp, ..ServerConfig::default() }, 0);
    let mut connection = server.accept();
    for line in ["CLUSTER SLOTS", "ASKING", "READONLY"] {
        server.handle_received(&mut connection, format!("{line}\r\n").as_bytes(), 0);
        let reply = receive(&mut server, &mut connection, 0, usize::MAX);
        assert_eq!(reply, b"-ERR This instance has cluster support disabled\r\n", "{line}");
    }
    server.handle_received(&mut connection, b"INFO\r\n", 0);
    let info = String::from_utf8(receive(&mut server, &mut connection, 0, usize::MAX)).expect("text");
    assert!(info.contains("redis_mode:standalone\r\n") && info.contains("cluster_enabled:0\r\n"), "{info}");
    assert_eq!(server.next_change(), NEVER);
}

#[test]
fn the_slots_are_listed_with_every_form_of_endpoint() {
    let id = |node| format!("$40 {node:040}");
    for (endpoint, host2, host3, ip2, ip3, moved) in [
        (Endpoint::Ip, "$9 127.0.0.1", "$9 127.0.0.1", "*0", "%0", "127.0.0.1:7002"),
        (
            Endpoint::Name("localhost".to_owned()),
            "$9 localhost",
            "$9 localhost",
            "*2 $2 ip $9 127.0.0.1",
            "%1 $2 ip $9 127.0.0.1",
            "localhost:7002",
        ),
        (Endpoint::Unset, "$1 ?", "$1 ?", "*2 $2 ip $9 127.0.0.1", "%1 $2 ip $9 127.0.0.1", "?:7002"),
        (Endpoint::Empty, "$0 ", "$0 ", "*2 $2 ip $9 127.0.0.1", "%1 $2 ip $9 127.0.0.1", ":7002"),
        (Endpoint::Null, "$-1", "_", "*2 $2 ip $9 127.0.0.1", "%1 $2 ip $9 127.0.0.1", ":7002"),
    ] {
        let mut fleet = Fleet::new(2, endpoint, Vec::new());
        for (host, ip) in [(host2, ip2), (host3, ip3)] {
            let one = |first, last, node: u16| {
                format!("*3 :{first} :{last} *4 {host} :{} {} {ip}", 7_000 + node, id(node))
            };
            let expected = format!("*2 {} {}", one(0, 8_191, 1), one(8_192, 16_383, 2));
            fleet.play(&[(0, 2, "CLUSTER SLOTS", &expected)]);
            let hello = fleet.say(2, "HELLO 3", 0);
            assert!(hello.contains("$4\r\nmode\r\n$7\r\ncluster\r\n"), "{hello}");
        }
        fleet.play(&[(0, 1, "GET a", &format!("-MOVED {SLOT_OF_A} {moved}"))]);
    }
}

#[test]
fn info_says_that_the_server_is_a_node_of_a_cluster_and_counts_for_the_node() {
    let mut fleet = Fleet::of_three(Vec::new());
    fleet.play(&[(0, 3, "SET a 1", "+OK")]);
    let info = fleet.say(1, "INFO", 0);
    for line in
        ["redis_mode:cluster", "cluster_enabled:1", "connected_clients:1", "total_commands_processed:1"]
    {
        assert!(info.contains(&format!("{line}\r\n")), "{line} in {info}");
    }
    assert!(!info.contains("Keyspace"), "{info}");
    let info = fleet.say(2, "CLUSTER INFO", 0);
    for line in ["cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:3", "cluster_size:3"] {
        assert!(info.contains(&format!("{line}\r\n")), "{line} in {info}");
    }
}

#[test]
fn a_slot_moves_key_by_key_for_a_second() {
    let migrate = ClusterFault::Migrate { slot: SLOT_OF_A, at_ns: 10 * SECOND };
    let mut fleet = Fleet::of_three(vec![migrate]);
    let (before, begun, half, over) =
        (10 * SECOND - 1, 10 * SECOND, 10 * SECOND + 500 * MILLISECOND, 11 * SECOND);
    fleet.play(&[
        (0, 3, "MSET a 1 {a}2 2", "+OK"),
        (before, 3, "GET {a}3", "$-1"),
        (before, 1, "GET {a}3", "-MOVED 15495 127.0.0.1:7003"),
        // The items are at the source, and absent keys at the target.
        (begun, 3, "MGET a {a}2", "*2 $1 1 $1 2"),
        (begun, 3, "SET a 3", "+OK"),
        (begun, 3, "GET {a}3", "-ASK 15495 127.0.0.1:7001"),
        (begun, 3, "MGET {a}3 {a}4", "-ASK 15495 127.0.0.1:7001"),
        (begun, 3, "MGET a {a}3", "-TRYAGAIN Multiple keys request during rehashing of slot"),
        (begun, 1, "SET {a}3 3", "-MOVED 15495 127.0.0.1:7003"),
        (begun, 2, "ASKING", "+OK"),
        (begun, 2, "SET {a}3 3", "-MOVED 15495 127.0.0.1:7003"),
        (begun, 1, "ASKING", "+OK"),
        (begun, 1, "SET {a}3 3", "+OK"),
        (begun, 1, "GET {a}3", "-MOVED 15495 127.0.0.1:7003"),
        (begun, 1, "ASKING", "+OK"),
        (begun, 1, "MGET {a}3 {a}4", "-TRYAGAIN Multiple keys request during rehashing of slot"),
        (begun, 1, "GET {a}3", "-MOVED 15495 127.0.0.1:7003"),
        (begun, 1, "ASKING", "+OK"),
        (begun, 1, "GET {a}4", "$-1"),
        // One of the two keys has moved.
        (half, 3, "MGET a {a}2", "-TRYAGAIN Multiple keys request during rehashing of slot"),
        (half, 3, "DBSIZE", ":1"),
        (half, 1, "DBSIZE", ":2"),
        (over, 3, "GET a", "-MOVED 15495 127.0.0.1:7001"),
        (over, 1, "MGET a {a}2 {a}3", "*3 $1 3 $1 2 $1 3"),
        (over, 3, "DBSIZE", ":0"),
    ]);
    let slots = fleet.say(2, "CLUSTER SLOTS", over);
    assert!(slots.starts_with("*5\r\n"), "{slots}");
    let notes: Vec<String> = fleet.server.take_notes().map(|note| note.to_string()).collect();
    let faults: Vec<&String> = notes.iter().filter(|line| line.starts_with("fault")).collect();
    assert_eq!(
        faults,
        [
            "fault migrate connection=0 request=0 slot=15495 from=3 to=1 begins",
            "fault migrate connection=0 request=0 slot=15495 owner=1 ends",
        ]
    );
}

#[test]
fn items_keep_their_expiry_and_their_form_when_they_move() {
    let mut fleet = Fleet::of_three(vec![ClusterFault::Demote { node: 2, at_ns: 10 * SECOND }]);
    fleet.play(&[
        (0, 3, "SET a 1 EX 20", "+OK"),
        (0, 3, "HSET {a}2 field 2", ":1"),
        (0, 3, "SET {a}3 3 EX 5", "+OK"),
        (10 * SECOND, 1, "TTL a", ":10"),
        (10 * SECOND, 1, "HGET {a}2 field", "$1 2"),
        (10 * SECOND, 1, "DBSIZE", ":2"),
        (20 * SECOND, 1, "GET a", "$-1"),
    ]);
}

#[test]
fn a_demoted_node_names_the_next_one_at_once() {
    let mut fleet = Fleet::of_three(vec![ClusterFault::Demote { node: 1, at_ns: SECOND }]);
    fleet.play(&[
        (0, 2, "SET c 1", "+OK"),
        (SECOND - 1, 2, "GET c", "$1 1"),
        (SECOND, 2, "GET c", "-MOVED 7365 127.0.0.1:7003"),
        (SECOND, 1, "GET c", "-MOVED 7365 127.0.0.1:7003"),
        (SECOND, 3, "GET c", "$1 1"),
    ]);
    assert_eq!(fleet.server.take_died(), [0; 0]);
}

#[test]
fn a_dead_node_keeps_its_slots_for_a_second() {
    let mut fleet = Fleet::of_three(vec![
        ClusterFault::Kill { node: 0, at_ns: SECOND },
        ClusterFault::Kill { node: 1, at_ns: SECOND + 1 },
    ]);
    assert_eq!(fleet.server.next_change(), SECOND);
    fleet.play(&[(0, 1, "SET b 1", "+OK"), (SECOND, 3, "GET b", "-MOVED 3300 127.0.0.1:7001")]);
    assert_eq!(fleet.server.take_died(), [0]);
    fleet.play(&[(SECOND, 1, "GET b", "")]);
    assert_eq!(fleet.connections[0].poll_close(), Some(crate::Ending::Reset));
    fleet.play(&[
        (2 * SECOND - 1, 3, "GET b", "-MOVED 3300 127.0.0.1:7001"),
        (2 * SECOND - 1, 3, "GET c", "-MOVED 7365 127.0.0.1:7002"),
        // The second node is dead, too.
        (2 * SECOND, 3, "GET b", "$1 1"),
        (2 * SECOND, 3, "GET c", "-MOVED 7365 127.0.0.1:7002"),
        (2 * SECOND + 1, 3, "GET c", "$-1"),
    ]);
    assert_eq!((fleet.server.take_died(), fleet.server.next_change()), (vec![1], NEVER));
}

#[test]
fn a_migration_ends_when_one_of_its_nodes_goes() {
    let migrate = ClusterFault::Migrate { slot: SLOT_OF_A, at_ns: SECOND };
    let half = SECOND + 500 * MILLISECOND;
    for (fault, owner) in [
        (ClusterFault::Demote { node: 2, at_ns: half }, 1),
        (ClusterFault::Demote { node: 0, at_ns: half }, 3),
        (ClusterFault::Kill { node: 2, at_ns: half }, 1),
        (ClusterFault::Kill { node: 0, at_ns: half }, 3),
    ] {
        let mut fleet = Fleet::of_three(vec![migrate, fault]);
        fleet.play(&[
            (0, 3, "MSET a 1 {a}2 2", "+OK"),
            (SECOND, 1, "ASKING", "+OK"),
            (SECOND, 1, "SET {a}3 3", "+OK"),
            (half, owner, "MGET a {a}2 {a}3", "*3 $1 1 $1 2 $1 3"),
            (half, owner, "GET {a}4", "$-1"),
            (3 * SECOND, owner, "MGET a {a}2 {a}3", "*3 $1 1 $1 2 $1 3"),
            (3 * SECOND, 2, "GET a", &format!("-MOVED 15495 127.0.0.1:700{owner}")),
        ]);
    }
}

#[test]
fn a_node_that_nobody_can_follow_keeps_its_slots() {
    let kill = |node| ClusterFault::Kill { node, at_ns: SECOND };
    let mut fleet =
        Fleet::new(3, Endpoint::Ip, vec![kill(0), kill(1), ClusterFault::Demote { node: 2, at_ns: 1 }]);
    fleet.play(&[
        (0, 3, "SET a 1", "+OK"),
        (1, 3, "GET a", "-MOVED 15495 127.0.0.1:7001"),
        (5 * SECOND, 3, "GET a", "-MOVED 15495 127.0.0.1:7001"),
    ]);
}

#[test]
fn no_node_serves_keys_while_the_cluster_is_down() {
    let down = |from_ns, until_ns| ClusterFault::Down { from_ns, until_ns };
    let mut fleet = Fleet::of_three(vec![down(10, 20), down(15, 30)]);
    fleet.play(&[
        (9, 3, "GET a", "$-1"),
        (10, 3, "GET a", "-CLUSTERDOWN The cluster is down"),
        (10, 1, "GET a", "-CLUSTERDOWN The cluster is down"),
        (10, 1, "MGET a b", "-CROSSSLOT Keys in request don't hash to the same slot"),
        (10, 1, "PING", "+PONG"),
        (29, 1, "GET a", "-CLUSTERDOWN The cluster is down"),
        (30, 1, "GET a", "-MOVED 15495 127.0.0.1:7003"),
    ]);
    assert!(fleet.say(1, "CLUSTER INFO", 30).contains("cluster_state:ok"));
}
