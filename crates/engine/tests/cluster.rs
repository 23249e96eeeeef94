//! Runs on a real cluster of redis-server: three masters and three replicas, whose slots move and whose nodes fail, stop and join
//! while they are loaded.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use pummel_engine::run::{Run, Watch};
use pummel_logic::dist::Dist;
use pummel_logic::plan::{
    Arrivals, Audit, Data, Depth, Group, Load, Mix, Pause, Phase, Plan, Protocol, ReadFrom, Route, SlotRange,
    Stop, Work,
};
use pummel_logic::protocol::Verb;
use pummel_logic::protocol::resp::template::Template;
use pummel_logic::time::{Nanos, SECOND};
use pummel_measure::measurement::{Measurement, Status};

/// Longest wait for a change of the cluster.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time after which a node that does not answer counts as failed in the cluster, in milliseconds. On a busy machine nodes that are
/// well may be silent for a second.
const NODE_TIMEOUT_MS: &str = "2500";

// ---- The cluster ----

/// A reply of a node.
#[derive(Clone, Debug, PartialEq)]
enum Reply {
    Text(String),
    Number(i64),
    List(Vec<Reply>),
    Null,
    Error(String),
}

impl Reply {
    fn text(&self) -> &str {
        match self {
            Reply::Text(text) | Reply::Error(text) => text,
            other => panic!("{other:?} is no text"),
        }
    }

    fn read(from: &mut impl BufRead) -> std::io::Result<Reply> {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let (kind, rest) = line.trim_end().split_at(1);
        let number = || rest.parse::<i64>().expect("a number");
        Ok(match kind {
            "+" => Reply::Text(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Number(number()),
            "$" if number() < 0 => Reply::Null,
            "$" => {
                let mut bytes = vec![0; number() as usize + 2];
                from.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Reply::Text(String::from_utf8_lossy(&bytes).into_owned())
            }
            "*" => Reply::List((0..number()).map(|_| Reply::read(from)).collect::<Result<_, _>>()?),
            other => panic!("{other} begins no reply"),
        })
    }
}

/// A node of the test's own, on a port of 127.0.0.1.
struct Node {
    child: Child,
    port: u16,
    bus_port: u16,
    directory: PathBuf,
}

/// A port that nothing listens on.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port of 127.0.0.1");
    listener.local_addr().expect("it is bound").port()
}

impl Node {
    fn start() -> Node {
        for _ in 0..10 {
            // Another process may take a port before the server does; then others are tried.
            let (port, bus_port) = (free_port(), free_port());
            let directory = env::temp_dir().join(format!("pummel-cluster-{}-{port}", std::process::id()));
            fs::create_dir_all(&directory).expect("a directory for redis-server");
            if let Some(child) = Node::spawn(port, bus_port, &directory) {
                return Node { child, port, bus_port, directory };
            }
        }
        panic!("redis-server starts on none of ten ports");
    }

    /// Starts the server; `None` where it does not come up.
    fn spawn(port: u16, bus_port: u16, directory: &PathBuf) -> Option<Child> {
        let mut command = Command::new("redis-server");
        command.args([
            "--save",
            "",
            "--appendonly",
            "no",
            "--bind",
            "127.0.0.1",
            "--repl-diskless-sync-delay",
            "0",
        ]);
        command.args(["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"]);
        command.args(["--cluster-node-timeout", NODE_TIMEOUT_MS, "--cluster-port", &bus_port.to_string()]);
        command.arg("--dir").arg(directory).arg("--port").arg(port.to_string());
        let spawned = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn();
        let mut child = spawned.unwrap_or_else(|error| {
            panic!(
                "this test runs a cluster of redis-server ({error}); on Debian and Ubuntu `apt-get install redis-server` brings it"
            )
        });
        let said = BufReader::new(child.stdout.take().expect("its output is piped"));
        let mut lines = said.lines().map_while(Result::ok);
        if !lines.any(|line| line.contains("Ready to accept connections")) {
            let _ = child.wait();
            return None;
        }
        // Whatever else it says must not fill the pipe; the thread ends with the server.
        thread::spawn(move || lines.for_each(drop));
        Some(child)
    }

    fn name(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Asks the node for something; `Err` where it does not answer.
    fn ask(&self, words: &[&str]) -> std::io::Result<Reply> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut request = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| request += &format!("${}\r\n{word}\r\n", word.len()));
        (&stream).write_all(request.as_bytes())?;
        Reply::read(&mut BufReader::new(&stream))
    }

    /// Tells the node to do something.
    fn tell(&self, words: &[&str]) -> Reply {
        let reply = self.ask(words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        assert!(!matches!(reply, Reply::Error(_)), "{words:?}: {reply:?}");
        reply
    }

    fn id(&self) -> String {
        self.tell(&["CLUSTER", "MYID"]).text().to_owned()
    }

    /// A line of a section of INFO.
    fn info(&self, section: &str, name: &str) -> Option<String> {
        let reply = self.ask(&["INFO", section]).ok()?;
        let line = reply.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::to_owned)
    }

    /// Calls of a command that the node has counted.
    fn calls(&self, command: &str) -> u64 {
        let line = self.info("commandstats", &format!("cmdstat_{command}"));
        let calls = line.and_then(|line| line.strip_prefix("calls=")?.split(',').next()?.parse().ok());
        calls.unwrap_or(0)
    }

    /// Number of keys that the node holds.
    fn keys(&self) -> i64 {
        match self.tell(&["DBSIZE"]) {
            Reply::Number(keys) => keys,
            other => panic!("{other:?} is no number"),
        }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args([name, &pid]).status().expect("kill is there");
        assert!(status.success());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

struct Cluster {
    nodes: Vec<Node>,
}

impl Cluster {
    /// Three masters with a third of the slots each, and a replica of each.
    fn start() -> Cluster {
        let nodes: Vec<Node> = (0..6).map(|_| Node::start()).collect();
        let slots = [("0", "5460"), ("5461", "10922"), ("10923", "16383")];
        for (number, (node, (first, last))) in nodes.iter().zip(slots).enumerate() {
            node.tell(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]);
            node.tell(&["CLUSTER", "ADDSLOTSRANGE", first, last]);
        }
        let cluster = Cluster { nodes };
        (1..6).for_each(|number| cluster.meet(&cluster.nodes[number]));
        let knows_all = |node: &Node| {
            let nodes = node.tell(&["CLUSTER", "NODES"]);
            nodes.text().lines().filter(|line| !line.contains("handshake")).count() == 6
        };
        until("the nodes know each other", || cluster.nodes.iter().all(knows_all));
        for (master, replica) in (0..3).zip(3..6) {
            let id = cluster.nodes[master].id();
            until("a replica follows its master", || {
                matches!(cluster.nodes[replica].ask(&["CLUSTER", "REPLICATE", &id]), Ok(Reply::Text(_)))
            });
        }
        cluster.await_well();
        cluster
    }

    fn meet(&self, node: &Node) {
        let (port, bus_port) = (node.port.to_string(), node.bus_port.to_string());
        self.nodes[0].tell(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus_port]);
    }

    /// The ranges of slots that a node tells: first, last, master's port, ports of replicas.
    fn ranges(&self, node: &Node) -> Vec<(i64, i64, i64, Vec<i64>)> {
        let Ok(Reply::List(ranges)) = node.ask(&["CLUSTER", "SLOTS"]) else { return Vec::new() };
        let port = |node: &Reply| match node {
            Reply::List(words) => match words[1] {
                Reply::Number(port) => port,
                ref other => panic!("{other:?} is no port"),
            },
            other => panic!("{other:?} is no node"),
        };
        let range = |range: &Reply| match range {
            Reply::List(words) => match (&words[0], &words[1]) {
                (Reply::Number(first), Reply::Number(last)) => {
                    (*first, *last, port(&words[2]), words[3..].iter().map(port).collect())
                }
                other => panic!("{other:?} is no range"),
            },
            other => panic!("{other:?} is no range"),
        };
        ranges.iter().map(range).collect()
    }

    /// Waits until all nodes are well: they agree on the slots, each range has a replica, and replicas are linked.
    fn await_well(&self) {
        until("the cluster is well", || {
            let first = self.ranges(&self.nodes[0]);
            let is_well = |node: &Node| {
                let is_up =
                    node.ask(&["CLUSTER", "INFO"]).is_ok_and(|info| info.text().contains("cluster_state:ok"));
                let link = node.info("replication", "master_link_status");
                let mut same = self.ranges(node);
                let mut expected = first.clone();
                same.sort();
                expected.sort();
                is_up && link.is_none_or(|link| link == "up") && same == expected
            };
            let slots: i64 = first.iter().map(|(first, last, ..)| last - first + 1).sum();
            slots == 16_384
                && first.iter().all(|(.., replicas)| !replicas.is_empty())
                && self.nodes.iter().all(is_well)
        });
    }

    /// Starts a node again that was killed, and waits until all are well.
    fn restart(&mut self, place: usize) {
        let node = &mut self.nodes[place];
        let _ = node.child.wait();
        until("the node starts again", || match Node::spawn(node.port, node.bus_port, &node.directory) {
            Some(child) => {
                node.child = child;
                true
            }
            None => false,
        });
        self.await_well();
    }

    /// Keys of these nodes.
    fn keys(&self, places: &[usize]) -> i64 {
        places.iter().map(|place| self.nodes[*place].keys()).sum()
    }

    /// The places of the masters of `count` shards, by their first slots.
    fn masters(&self) -> Vec<usize> {
        let mut ranges = self.ranges(&self.nodes[0]);
        ranges.sort();
        let mut masters = Vec::new();
        for (_, _, port, _) in ranges {
            let place = self.nodes.iter().position(|node| i64::from(node.port) == port).expect("a node");
            if !masters.contains(&place) {
                masters.push(place);
            }
        }
        masters
    }

    /// A replica of a master, by places.
    fn replica_of(&self, master: usize) -> usize {
        let port = i64::from(self.nodes[master].port);
        let ranges = self.ranges(&self.nodes[master]);
        let (.., replicas) = ranges.iter().find(|(_, _, owner, _)| *owner == port).expect("it owns slots");
        let place = |port: &i64| self.nodes.iter().position(|node| i64::from(node.port) == *port);
        replicas.iter().find_map(place).expect("it has a replica")
    }

    /// Moves a slot with its keys, as `redis-cli --cluster reshard` does.
    fn migrate(&self, slot: i64, from: usize, to: usize) {
        let (source, target) = (&self.nodes[from], &self.nodes[to]);
        let (source_id, target_id, slot) = (source.id(), target.id(), slot.to_string());
        target.tell(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source_id]);
        source.tell(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target_id]);
        loop {
            let Reply::List(keys) = source.tell(&["CLUSTER", "GETKEYSINSLOT", &slot, "50"]) else {
                panic!("keys")
            };
            if keys.is_empty() {
                break;
            }
            let port = target.port.to_string();
            let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "REPLACE", "KEYS"];
            words.extend(keys.iter().map(Reply::text));
            // A node that was silent for too long is down for a moment.
            until("keys are moved", || matches!(source.ask(&words), Ok(Reply::Text(_))));
        }
        target.tell(&["CLUSTER", "SETSLOT", &slot, "NODE", &target_id]);
        source.tell(&["CLUSTER", "SETSLOT", &slot, "NODE", &target_id]);
        for node in self.masters().into_iter().map(|place| &self.nodes[place]) {
            let _ = node.ask(&["CLUSTER", "SETSLOT", &slot, "NODE", &target_id]);
        }
    }

    /// The first slots of a master, so many of them.
    fn slots_of(&self, master: usize, count: usize) -> Vec<i64> {
        let port = i64::from(self.nodes[master].port);
        let ranges = self.ranges(&self.nodes[master]).into_iter();
        ranges
            .filter(|(_, _, owner, _)| *owner == port)
            .flat_map(|(first, last, ..)| first..=last)
            .take(count)
            .collect()
    }

    /// Errors of one kind that all nodes have counted.
    fn errors(&self, kind: &str) -> u64 {
        let of = |node: &Node| {
            let line = node.info("errorstats", &format!("errorstat_{kind}"));
            line.and_then(|line| line.strip_prefix("count=")?.parse::<u64>().ok()).unwrap_or(0)
        };
        self.nodes.iter().map(of).sum()
    }

    fn forget_counts(&self) {
        self.nodes.iter().for_each(|node| drop(node.ask(&["CONFIG", "RESETSTAT"])));
    }

    /// Calls of CLUSTER SLOTS that all nodes have counted.
    fn slots_calls(&self) -> u64 {
        self.nodes.iter().map(|node| node.calls("cluster|slots")).sum()
    }
}

// ---- The runs ----

struct Unwatched;

impl Watch for Unwatched {}

/// A load and then gets and sets at a steady rate for so many seconds, on the cluster of which the first node is a seed.
fn plan(cluster: &Cluster, seconds: u64, timeout_ns: Nanos) -> Plan {
    let mix = Mix::of(&[(Verb::Get, 0.8), (Verb::Set, 0.2)]);
    let phase = |name: &str, work, time_ns| Phase {
        name: name.to_owned(),
        recorded: matches!(work, Work::Mix(_)),
        work,
        stop: Stop { time_ns, ..Stop::default() },
    };
    Plan {
        servers: vec![cluster.nodes[0].name()],
        route: Route::Cluster,
        protocol: Protocol::Resp2,
        reconnect: true,
        verify: 1.0,
        timeout_ns,
        evidence: false,
        data: Data { records: 2_000, ..Data::default() },
        groups: vec![Group {
            clients: 8,
            depth: Depth::Limit(16),
            arrivals: Arrivals::Poisson,
            rate: Some(2_000.0),
            ..Group::default()
        }],
        phases: vec![
            phase("load", Work::Load(Load { depth: 16, ..Load::default() }), None),
            phase("measure", Work::Mix(mix), Some(seconds * SECOND)),
        ],
        ..Plan::default()
    }
}

/// The plan on two threads, behind which every key is read back after a pause.
fn audited(mut plan: Plan, settle_ns: Nanos) -> Plan {
    plan.engine.threads = 2;
    let mut add = |name: &str, work, time_ns| {
        let stop = Stop { time_ns, ..Stop::default() };
        plan.phases.push(Phase { name: name.to_owned(), work, stop, recorded: false });
    };
    add("settle", Work::Pause(Pause { until_ns: 0, for_ns: settle_ns }), None);
    add("audit", Work::Audit(Audit { depth: 16 }), Some(30 * SECOND));
    plan
}

/// Asserts that every key was read back, and that no acknowledged write was lost.
fn assert_nothing_lost(measurement: &Measurement, what: &str) {
    let audit = measurement.audit.as_ref().expect("it was audited");
    assert_eq!((audit.written, audit.unread(), audit.counts.lost()), (2_000, 0, 0), "{what}: {audit:?}");
}

/// Runs a plan while `meanwhile` changes the cluster, a second after the start.
fn run(plan: Plan, meanwhile: impl FnOnce() + Send) -> Measurement {
    let plan = plan.validate().expect("the plan is valid");
    let measurement = thread::scope(|scope| {
        let changing = scope.spawn(move || {
            thread::sleep(Duration::from_secs(1));
            meanwhile();
        });
        let measurement = Run::new(&plan).start(&mut Unwatched, &|| false).expect("the run begins");
        changing.join().expect("the cluster is changed");
        measurement
    });
    assert_eq!(measurement.status, Status::Complete, "{:?}", measurement.reason);
    assert_eq!(measurement.verify.failed, 0, "{:?}", measurement.verify);
    measurement
}

/// Completed requests, failed ones and those that were never sent.
fn account(measurement: &Measurement) -> (u64, u64, u64) {
    let counts = measurement.groups[0].ops.all().counts;
    (counts.completed, counts.failed(), counts.unsent)
}

/// Asserts that no request failed, and that each was sent.
fn assert_right(measurement: &Measurement, what: &str) {
    let (completed, failed, unsent) = account(measurement);
    assert!(completed > 1_000, "{what}: {completed}");
    assert_eq!((failed, unsent), (0, 0), "{what}: {:?}", measurement.messages);
    // A cluster replicates behind its replies: a master that dies or hangs takes acknowledged writes with it, and no other may.
    assert_eq!(measurement.verify.stale, 0, "{what}: {:?}", measurement.verify);
}

#[test]
fn runs_survive_what_happens_to_a_cluster() {
    let mut cluster = Cluster::start();
    commands_are_known_as_the_server_knows_them(&cluster.nodes[0]);
    steady(&cluster);
    replicas_answer_reads(&cluster);
    replicas_and_masters_change_while_they_are_read(&cluster);
    a_replica_dies(&mut cluster);
    requests_of_a_tag_are_one_command(&cluster);
    chosen_slots_are_asked_alone(&cluster);
    slots_move(&cluster);
    a_replica_takes_over(&cluster);
    a_master_dies_and_returns(&mut cluster);
    a_master_hangs(&cluster);
    acknowledged_writes_are_lost(&mut cluster);
    a_node_joins(&mut cluster);
}

/// Asserts that commands are known as the server knows them.
fn commands_are_known_as_the_server_knows_them(node: &Node) {
    let Reply::List(commands) = node.tell(&["COMMAND"]) else { panic!("the commands") };
    let mut known = 0;
    for command in &commands {
        let Reply::List(facts) = command else { panic!("{command:?}") };
        let [Reply::Text(name), Reply::Number(arity), Reply::List(flags), Reply::Number(first), ..] =
            &facts[..]
        else {
            panic!("{facts:?}")
        };
        let has = |flag: &str| flags.iter().any(|known| known.text() == flag);
        let words = |count: i64| format!("{name} {}", vec!["1"; count as usize - 1].join(" "));
        let least = arity.abs();
        // Of subcommands the second word decides, and of some a word says how many keys there are.
        let Ok(template) = Template::parse(&words(least)) else { continue };
        let is_unknown = least == 1 || Template::parse(&words(least - 1)).is_ok();
        if is_unknown || name == "zrank" || name == "zrevrank" {
            continue;
        }
        known += 1;
        assert_eq!(template.reads(), has("readonly"), "{name}");
        assert_eq!(Template::parse(&words(least + 1)).is_ok(), *arity < 0, "{name}");
        assert!(
            *first == 0 || !template.keeps_slot(false, pummel_logic::cluster::slot_of),
            "{name}: its keys are known"
        );
    }
    assert!(known > 150, "{known} of {}", commands.len());
}

fn steady(cluster: &Cluster) {
    cluster.forget_counts();
    let measurement = run(audited(plan(cluster, 2, 5 * SECOND), SECOND / 10), || ());
    assert_right(&measurement, "steady");
    assert_nothing_lost(&measurement, "steady");
    assert!(measurement.counters.redirects.is_zero(), "{:?}", measurement.counters.redirects);
    let seen = measurement.cluster.expect("it is a cluster");
    assert_eq!((seen.nodes.len(), seen.shards.len(), seen.generations), (6, 3, 1));
    assert!(seen.shards.iter().all(|shard| shard.outages.is_empty()));
    assert_eq!(cluster.slots_calls(), 1, "the map is asked for once");
}

fn replicas_answer_reads(cluster: &Cluster) {
    let masters = cluster.masters();
    for read_from in ReadFrom::ALL {
        cluster.forget_counts();
        let mut plan = plan(cluster, 2, 5 * SECOND);
        plan.cluster.read_from = read_from;
        plan.protocol = if read_from == ReadFrom::Any { Protocol::Resp3 } else { Protocol::Resp2 };
        let measurement = run(plan, || ());
        assert_right(&measurement, read_from.name());
        assert!(measurement.counters.redirects.is_zero(), "{:?}", measurement.counters.redirects);
        for (place, node) in cluster.nodes.iter().enumerate() {
            let is_master = masters.contains(&place);
            let is_read = match read_from {
                ReadFrom::Primary => is_master,
                ReadFrom::Replica | ReadFrom::PreferReplica => !is_master,
                ReadFrom::Any => true,
            };
            let gets = node.calls("get");
            assert_eq!(gets > 0, is_read, "{gets} gets at node {place}, {read_from:?}");
            let errors = node.info("errorstats", "errorstat_MOVED");
            assert_eq!(errors, None, "node {place}, {read_from:?}");
        }
    }
}

fn replicas_and_masters_change_while_they_are_read(cluster: &Cluster) {
    for read_from in [ReadFrom::Any, ReadFrom::Replica] {
        let master = cluster.masters()[0];
        let replica = cluster.replica_of(master);
        let mut plan = plan(cluster, 4, 10 * SECOND);
        plan.cluster.read_from = read_from;
        let measurement = run(plan, || {
            cluster.nodes[replica].tell(&["CLUSTER", "FAILOVER"]);
        });
        assert_right(&measurement, read_from.name());
        let seen = measurement.cluster.expect("it is a cluster");
        assert!(seen.generations >= 2, "{seen:?}");
        cluster.await_well();
    }
}

fn a_replica_dies(cluster: &mut Cluster) {
    let replica = cluster.replica_of(cluster.masters()[1]);
    let mut plan = plan(cluster, 5, 10 * SECOND);
    plan.cluster.read_from = ReadFrom::Any;
    let measurement = run(plan, || cluster.nodes[replica].signal("-KILL"));
    // Writes never go there, and reads are repeated on the master.
    assert_right(&measurement, "a replica that dies");
    assert!(measurement.connections.lost > 0);
    cluster.restart(replica);
}

/// The plan with gets of ten keys and sets of four, whose records share a tag by tens.
fn with_tags(cluster: &Cluster) -> Plan {
    let mut plan = plan(cluster, 2, 5 * SECOND);
    plan.data.key_tag = Some(10);
    let ops = vec![(Verb::Get, 0.8), (Verb::Mset, 0.2)];
    plan.phases[1].work = Work::Mix(Mix { multiget: 10, multiset: 4, ..Mix::of(&ops) });
    plan
}

fn requests_of_a_tag_are_one_command(cluster: &Cluster) {
    cluster.forget_counts();
    let measurement = run(with_tags(cluster), || ());
    assert_right(&measurement, "requests of a tag");
    let masters = cluster.masters();
    let calls = |command| masters.iter().map(|place| cluster.nodes[*place].calls(command)).sum::<u64>();
    assert_eq!(calls("mget") + calls("mset"), account(&measurement).0, "each request is one command");
    assert!(calls("mget") > 0 && calls("mset") > 0);
    assert_eq!(cluster.errors("CROSSSLOT"), 0);
    let checked = measurement.verify.checked;
    assert_eq!(checked, 10 * calls("mget"), "each value of each get is checked");
    let seen = measurement.cluster.expect("it is a cluster");
    let records: Vec<u64> = seen.shards.iter().filter_map(|shard| shard.records).collect();
    assert!(records.len() == 3 && records.iter().sum::<u64>() == 2_000, "{records:?}");
    assert!(records.iter().all(|records| records % 10 == 0), "a tag is in one shard: {records:?}");
}

fn chosen_slots_are_asked_alone(cluster: &Cluster) {
    let masters = cluster.masters();
    for (tag, place) in [(None, 0), (Some(10), 1), (Some(10), 2)] {
        for place in &masters {
            cluster.nodes[*place].tell(&["FLUSHALL"]);
        }
        cluster.forget_counts();
        let port = i64::from(cluster.nodes[masters[place]].port);
        let ranges = cluster.ranges(&cluster.nodes[0]).into_iter().filter(|(_, _, owner, _)| *owner == port);
        let mut plan = with_tags(cluster);
        plan.data.key_tag = tag;
        plan.data.slots =
            ranges.map(|(first, last, ..)| SlotRange { first: first as u16, last: last as u16 }).collect();
        let measurement = run(plan, || ());
        assert_right(&measurement, "chosen slots");
        assert!(measurement.counters.redirects.is_zero(), "{:?}", measurement.counters.redirects);
        for (other, node) in masters.iter().map(|place| &cluster.nodes[*place]).enumerate() {
            let expected = if other == place { 2_000 } else { 0 };
            assert_eq!(node.keys(), expected, "all records are on one node");
            let calls = ["get", "set", "mget", "mset"].map(|command| node.calls(command));
            assert_eq!(calls != [0; 4], other == place, "one node is asked: {calls:?}");
        }
        let seen = measurement.cluster.expect("it is a cluster");
        let records: Vec<Option<u64>> = seen.shards.iter().map(|shard| shard.records).collect();
        let expected = (0..3).map(|other| Some(if other == place { 2_000 } else { 0 }));
        assert_eq!(records, expected.collect::<Vec<_>>());
    }
}

fn slots_move(cluster: &Cluster) {
    let masters = cluster.masters();
    let slots = cluster.slots_of(masters[0], 60);
    cluster.forget_counts();
    let measurement = run(audited(plan(cluster, 5, 10 * SECOND), SECOND / 10), || {
        slots.iter().for_each(|slot| cluster.migrate(*slot, masters[0], masters[1]));
    });
    assert_right(&measurement, "slots that move");
    assert_nothing_lost(&measurement, "slots that move");
    let redirects = measurement.counters.redirects;
    assert!(redirects.moved > 0, "{redirects:?}");
    let seen = ["MOVED", "ASK", "TRYAGAIN"].map(|kind| cluster.errors(kind));
    assert_eq!(
        [redirects.moved, redirects.ask, redirects.tryagain],
        seen,
        "our counts are those of the nodes"
    );
    cluster.await_well();
}

fn a_replica_takes_over(cluster: &Cluster) {
    let master = cluster.masters()[0];
    let replica = cluster.replica_of(master);
    let measurement = run(plan(cluster, 4, 10 * SECOND), || {
        cluster.nodes[replica].tell(&["CLUSTER", "FAILOVER"]);
    });
    assert_right(&measurement, "a failover by hand");
    let seen = measurement.cluster.expect("it is a cluster");
    assert!(seen.generations >= 2, "{seen:?}");
    cluster.await_well();
}

fn a_master_dies_and_returns(cluster: &mut Cluster) {
    let master = cluster.masters()[1];
    let replica = cluster.replica_of(master);
    cluster.forget_counts();
    // Requests wait for longer than the failover takes.
    let begun = Instant::now();
    let measurement = run(plan(cluster, 10, 30 * SECOND), || cluster.nodes[master].signal("-KILL"));
    let (completed, failed, unsent) = account(&measurement);
    let failed_of = |verb| measurement.groups[0].ops.get(verb).map(|op| op.counts.failed());
    // A write whose reply was lost with the master is not repeated: it may have been carried out.
    assert_eq!((failed_of(Verb::Get), failed_of(Verb::Set), unsent), (Some(0), Some(failed), 0));
    assert!(completed > 1_000, "{completed}");
    let calls = cluster.slots_calls();
    assert!(calls <= 2 + 10 * begun.elapsed().as_secs(), "{calls} calls of CLUSTER SLOTS");
    cluster.restart(master);
    assert!(cluster.masters().contains(&replica), "the replica was promoted");
}

/// A prober outside pummel asks the replica for a key of the shard every 10 ms. The shard is back when the replica answers.
fn a_master_hangs(cluster: &Cluster) {
    let master = cluster.masters()[2];
    let replica = cluster.replica_of(master);
    let slot = cluster.slots_of(master, 1)[0];
    let key = key_of(slot);
    let mut outage = Duration::ZERO;
    let measurement = run(plan(cluster, 10, SECOND / 4), || {
        let begun = Instant::now();
        cluster.nodes[master].signal("-STOP");
        until("the replica takes over", || {
            thread::sleep(Duration::from_millis(10));
            matches!(cluster.nodes[replica].ask(&["SET", &key, "x"]), Ok(Reply::Text(_)))
        });
        outage = begun.elapsed();
        cluster.nodes[master].signal("-CONT");
    });
    let (completed, failed, unsent) = account(&measurement);
    assert!(failed + unsent > 0 && completed > 1_000, "{completed} {failed} {unsent}");
    let seen = measurement.cluster.expect("it is a cluster");
    let shard = seen
        .shards
        .iter()
        .find(|shard| seen.nodes[usize::from(shard.node)].name == cluster.nodes[master].name());
    let outages = &shard.expect("the shard is there").outages;
    let found: BTreeMap<Nanos, Nanos> = outages.iter().map(|outage| (outage.from_ns, outage.to_ns)).collect();
    let (from, to) = (found.keys().min().expect("an outage"), found.values().max().expect("an outage"));
    let found = Duration::from_nanos(to - from);
    // A busy machine adds to both.
    let apart = found.abs_diff(outage);
    assert!(apart < Duration::from_millis(700), "{found:?} and {outage:?} by the prober");
    cluster.await_well();
}

/// A key of a slot.
fn key_of(slot: i64) -> String {
    let is_there =
        |number: &u64| i64::from(pummel_logic::cluster::slot_of(format!("p{number}").as_bytes())) == slot;
    format!("p{}", (0..10_000_000u64).find(is_there).expect("each slot has keys"))
}

/// A replica that was stopped while its master took writes is promoted without most of them.
fn acknowledged_writes_are_lost(cluster: &mut Cluster) {
    const RECORDS: u64 = 40_000;
    let masters = cluster.masters();
    let (master, others) = (masters[0], &masters[1..]);
    let replica = cluster.replica_of(master);
    masters.iter().for_each(|place| drop(cluster.nodes[*place].tell(&["FLUSHALL"])));
    let mut plan = audited(plan(cluster, 8, 30 * SECOND), SECOND);
    plan.data = Data { records: RECORDS, value_size: Dist::Fixed(1_000.0), ..plan.data };
    // Only the load stores, so that a key that is there has the write that was acknowledged.
    plan.phases[1].work = Work::Mix(Mix::of(&[(Verb::Get, 1.0)]));
    cluster.nodes[replica].signal("-STOP");
    let measurement = run(plan, || {
        until("the records are loaded", || cluster.keys(&masters) == RECORDS as i64);
        cluster.nodes[master].signal("-KILL");
        cluster.nodes[replica].signal("-CONT");
    });
    let audit = measurement.audit.as_ref().expect("it was audited");
    let there = cluster.keys(others) + cluster.keys(&[replica]);
    assert_eq!((audit.written, audit.unread(), audit.counts.older), (RECORDS, 0, 0), "{audit:?}");
    assert!(audit.counts.missing > 0, "{audit:?}");
    assert_eq!(audit.counts.missing as i64 + there, RECORDS as i64, "{audit:?}");
    let seen = measurement.cluster.as_ref().expect("it is a cluster");
    let shards: Vec<&str> = audit
        .counts
        .lost_by_shard
        .keys()
        .map(|shard| seen.nodes[usize::from(seen.shards[usize::from(*shard)].node)].name.as_str())
        .collect();
    assert_eq!(shards, [cluster.nodes[master].name()]);
    cluster.restart(master);
}

fn a_node_joins(cluster: &mut Cluster) {
    let joined = Node::start();
    cluster.meet(&joined);
    cluster.nodes.push(joined);
    let last = cluster.nodes.len() - 1;
    let ids: Vec<String> = cluster.nodes.iter().map(Node::id).collect();
    until("the nodes know each other", || {
        let knows_all = |node: &Node| {
            let known = node.tell(&["CLUSTER", "NODES"]);
            ids.iter().all(|id| known.text().contains(id))
        };
        cluster.nodes.iter().all(knows_all)
    });
    let master = cluster.masters()[0];
    let slots = cluster.slots_of(master, 200);
    let measurement = run(plan(cluster, 6, 10 * SECOND), || {
        slots.iter().for_each(|slot| cluster.migrate(*slot, master, last));
    });
    assert_right(&measurement, "a node that joins");
    let seen = measurement.cluster.expect("it is a cluster");
    let number = seen.nodes.iter().position(|node| node.name == cluster.nodes[last].name());
    let number = number.expect("the new node is known");
    assert_eq!(seen.nodes[number].slots, 200);
    let record = measurement.side_times.servers.get(number).expect("it was asked");
    assert!(record.completed > 0, "the new node has answered");
}
