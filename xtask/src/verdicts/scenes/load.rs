//! Scenes of the rows that name what was asked for, or nothing.

use crate::network::Way;
use crate::verdicts::scenario::{PLAIN, Scenario, Server, Side, one, two_agents};
use crate::verdicts::witness::{Sees, at_least, at_most};

/// The scenes.
pub const SCENES: &[Scenario] = &[
    Scenario {
        row: "nothing-completed",
        limit: "unknown",
        staged: "a server that answers nothing (`serve --fault stall-after=1`)",
        server: Server::BuiltIn("--fault stall-after=1"),
        words: "--records 1k --no-load --no-evidence --timeout 200ms",
        loads: &[one("-c 4"), one("-c 4 --rate 500")],
        ..PLAIN
    },
    Scenario {
        row: "slots",
        limit: "connections",
        staged: "2 connections, 1 ms from the server, and a rate near all that they can carry",
        way: Way::delayed(1_000),
        loads: &[one("-c 2 --rate 750"), one("-c 2 -T 2 --rate 750"), two_agents("-c 2 --rate 750")],
        ..PLAIN
    },
    Scenario {
        row: "in-flight",
        limit: "connections",
        staged: "one connection, and nothing else",
        loads: &[one("-c 1"), one("-c 1 --mix set:1")],
        ..PLAIN
    },
    Scenario {
        row: "in-flight",
        limit: "connections",
        staged: "redis-server, 1 ms away",
        way: Way::delayed(1_000),
        server: Server::Redis(""),
        words: "--records 1k --protocol resp2",
        loads: &[one("-c 20"), one("-c 20 -T 2"), two_agents("-c 20")],
        ..PLAIN
    },
    Scenario {
        row: "lost-records",
        limit: "workload",
        staged: "memcached `-m 8` and 60 MB of records",
        server: Server::Memcached("-t 1 -m 8"),
        words: "--records 30k --value-size 2k --mix get:3,set:1",
        loads: &[one("-c 20 --rate 4k")],
        ..PLAIN
    },
    Scenario {
        row: "lost-records",
        limit: "workload",
        staged: "memcached `-m 8`, 0.5 ms away, and 60 MB of records",
        way: Way::delayed(500),
        server: Server::Memcached("-t 1 -m 8"),
        // The way loses frames when all connections store at once.
        words: "--records 30k --value-size 2k --mix get:3,set:1 --timeout 5s",
        loads: &[one("-c 50 -T 2 --rate 2k"), two_agents("-c 50 --rate 2k")],
        ..PLAIN
    },
    Scenario {
        row: "lost-records",
        limit: "workload",
        staged: "redis-server `--maxmemory 8mb` and 60 MB of records",
        server: Server::Redis("--maxmemory 8mb --maxmemory-policy allkeys-lru"),
        words: "--records 30k --value-size 2k --mix get:3,set:1 --protocol resp2",
        loads: &[one("-c 20 --rate 4k")],
        ..PLAIN
    },
    Scenario {
        row: "ports",
        limit: "generator",
        staged: "a connection for each call, and 1,000 local ports",
        witnesses: &[at_least(Sees::Sockets(Side::Client, "time-wait"), 500.0)],
        way: Way::FewPorts(1_000),
        seconds_min: 3.0,
        words: "--records 100 -c 50 --calls-per-connection 1",
        loads: &[one("")],
        ..PLAIN
    },
    Scenario {
        must_not: &["ports"],
        staged: "a connection for each call, 1,000 local ports, and `--linger 0`, which gives them back at once",
        witnesses: &[at_most(Sees::Sockets(Side::Client, "time-wait"), 100.0)],
        way: Way::FewPorts(1_000),
        seconds_min: 3.0,
        words: "--records 100 -c 50 --calls-per-connection 1 --linger 0",
        loads: &[one("")],
        ..PLAIN
    },
];
