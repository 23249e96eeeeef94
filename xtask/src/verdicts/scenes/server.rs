//! Scenes of the rows that name the server.

use crate::network::Way;
use crate::verdicts::scenario::{Cpus, Disturbance, PLAIN, Scenario, Server, Side, one, two_agents};
use crate::verdicts::witness::{Sees, at_least, at_most};

/// The scenes.
pub const SCENES: &[Scenario] = &[
    Scenario {
        row: "server-connections",
        limit: "server",
        staged: "memcached `-c 20` and 40 connections that are opened again and again (`--reconnect`)",
        server: Server::Memcached("-t 1 -m 256 -c 20"),
        words: "--no-load --records 1k -c 40 --reconnect",
        loads: &[one(""), one("--rate 2k"), one("--rate 2k -T 2")],
        ..PLAIN
    },
    Scenario {
        row: "server-connections",
        limit: "server",
        staged: "redis-server `--maxclients 20` and 40 connections that are opened again and again (`--reconnect`)",
        server: Server::Redis("--maxclients 20"),
        words: "--no-load --records 1k -c 40 --reconnect --protocol resp2",
        loads: &[one(""), one("--rate 2k")],
        ..PLAIN
    },
    Scenario {
        row: "server-restarted",
        limit: "server",
        must_not: &["lost-records"],
        says: &["started anew during the run"],
        staged: "memcached that is killed and started anew (`--reconnect`)",
        witnesses: &[at_most(Sees::Counter("uptime"), 3.0)],
        disturbances: &[Disturbance::Restart(3_000, 300)],
        seconds_min: 5.0,
        words: "--records 1k --reconnect",
        loads: &[one("-c 10 --rate 1k")],
        ..PLAIN
    },
    Scenario {
        must_not: &["server-restarted"],
        never_says: &["started anew"],
        staged: "redis-server that closes all connections (`CLIENT KILL`) and goes on (`--reconnect`)",
        witnesses: &[
            at_least(Sees::Counter("total_connections_received"), 20.0),
            at_least(Sees::Counter("uptime_in_seconds"), 3.0),
        ],
        server: Server::Redis(""),
        disturbances: &[Disturbance::Line(2_000, "CLIENT KILL TYPE normal SKIPME yes")],
        seconds_min: 4.0,
        words: "--records 1k --reconnect --protocol resp2",
        loads: &[one("-c 10 --rate 1k")],
        ..PLAIN
    },
    Scenario {
        row: "server-receive-window",
        limit: "server",
        staged: "stores of 200 KiB, receive buffers of 64 KiB, and a server that is stopped (SIGSTOP) for 60 ms of each 120 ms",
        way: Way::SmallWindow,
        disturbances: &[Disturbance::Bursts(Side::Server, 60, 60)],
        words: "--records 50 --value-size 200k --mix set:1 -c 4 -d 2",
        loads: &[one(""), one("--rate 300"), two_agents("--rate 300")],
        ..PLAIN
    },
    Scenario {
        row: "server-one-thread",
        limit: "server",
        staged: "memcached `-t 4` and one connection",
        server: Server::Memcached("-t 4 -m 256"),
        words: "--records 1k --value-size 8 --multiget 100 -c 1",
        loads: &[one("-d 32"), one("-d 64 --rate 200k")],
        ..PLAIN
    },
    Scenario {
        row: "server-cpu",
        limit: "server",
        staged: "memcached `-t 1`, more connections than it needs",
        words: "--records 1k -c 50",
        loads: &[one("-d 16"), one("-d 16 -T 2"), one("-d 16 --rate 600k"), two_agents("-d 16")],
        ..PLAIN
    },
    Scenario {
        row: "server-cpu",
        limit: "server",
        staged: "redis-server, more connections than it needs",
        server: Server::Redis(""),
        words: "--records 1k -c 50 --protocol resp2 --mix mset:1 --multiset 10",
        loads: &[one("-d 16"), one("-d 16 --rate 300k")],
        ..PLAIN
    },
    Scenario {
        row: "service-by-exclusion",
        limit: "server",
        staged: "a full server that is not asked (`--no-evidence`)",
        words: "--records 1k -c 50 -d 16 --no-evidence",
        loads: &[one(""), one("-T 2"), two_agents("")],
        ..PLAIN
    },
    Scenario {
        row: "server-run-delay",
        limit: "server",
        staged: "a busy process on the CPU of the server",
        disturbances: &[Disturbance::Busy(Side::Server)],
        loads: &[one("-c 8"), one("-c 20 --rate 5k"), one("-c 8 -T 2"), two_agents("-c 8")],
        ..PLAIN
    },
    Scenario {
        row: "server-run-delay",
        limit: "server",
        staged: "a control group that leaves the server half of a CPU",
        disturbances: &[Disturbance::Quota(Side::Server, 50)],
        loads: &[one("-c 8")],
        ..PLAIN
    },
    Scenario {
        row: "server-bursts",
        limit: "server",
        staged: "a server that is stopped (SIGSTOP) for 60 ms of each 200 ms",
        disturbances: &[Disturbance::Bursts(Side::Server, 60, 140)],
        loads: &[one("-c 10 --rate 2k"), one("-c 10 -T 2 --rate 2k"), two_agents("-c 10 --rate 2k")],
        ..PLAIN
    },
    Scenario {
        row: "waits-by-exclusion",
        limit: "server",
        staged: "2 connections 1 ms from a server that is not asked (`--no-evidence`)",
        way: Way::delayed(1_000),
        words: "--records 1k --no-evidence",
        loads: &[one("-c 2 --rate 750"), one("-c 2 -T 2 --rate 750")],
        ..PLAIN
    },
    Scenario {
        row: "unanswered",
        limit: "server",
        staged: "a server that answers nothing from a request on (`serve --fault stall-after`), and 2,000 connections",
        server: Server::BuiltIn("--fault stall-after=1400"),
        words: "--records 1k --timeout 100ms --no-evidence",
        loads: &[one("-c 2000 --rate 1k")],
        ..PLAIN
    },
    Scenario {
        must_not: &["server-connections"],
        staged: "a server that is stopped (SIGSTOP) for 0.6 s, and another program with a full queue of its listening socket",
        witnesses: &[
            at_least(Sees::Kernel(Side::Server, "TcpExtListenOverflows"), 1.0),
            at_most(Sees::ListenDrops, 0.0),
        ],
        way: Way::FewPorts(28_000),
        disturbances: &[Disturbance::Pause(Side::Server, 1_000, 600), Disturbance::FullListenQueue],
        seconds_min: 3.0,
        words: "--records 1k --timeout 300ms --reconnect",
        loads: &[one("-c 10 --rate 2k")],
        ..PLAIN
    },
    Scenario {
        must_not: &["server-run-delay"],
        staged: "client and server on one CPU",
        witnesses: &[at_least(Sees::ServerWaited, 0.05)],
        cpus: Cpus::One,
        loads: &[one("-c 1")],
        ..PLAIN
    },
    Scenario {
        row: "server-occupied",
        limit: "server",
        must_not: &["slots", "in-flight"],
        staged: "redis-server that is occupied without using CPU (`DEBUG SLEEP 0.001`)",
        witnesses: &[at_least(Sees::InCommands, 0.5), at_most(Sees::ServerCpu, 0.5)],
        server: Server::Redis("--enable-debug-command yes"),
        seconds_min: 2.0,
        words: "--protocol resp2 --command 'DEBUG SLEEP 0.001' -c 10",
        loads: &[one("--rate 2k"), one("")],
        ..PLAIN
    },
    Scenario {
        must_not: &["server-occupied"],
        staged: "a server that takes 2 ms for each request, whatever else is under way (`serve --service-time 2ms`)",
        witnesses: &[at_most(Sees::ServerCpu, 0.5)],
        server: Server::BuiltIn("--service-time 2ms --wait auto"),
        seconds_min: 2.0,
        words: "--records 100 -c 10",
        loads: &[one(""), one("--rate 4k"), one("--protocol resp2")],
        ..PLAIN
    },
    Scenario {
        row: "server-occupied",
        limit: "server",
        must_not: &["slots", "in-flight"],
        staged: "a server with one queue that sleeps for 2 ms for each request (`serve --queue 1`), and `--probe`",
        server: Server::BuiltIn("--service-time 2ms --queue 1 --wait auto"),
        seconds_min: 2.0,
        words: "--records 100 --no-load --probe",
        loads: &[one("-c 10"), one("-c 10 --rate 450"), one("-c 1")],
        ..PLAIN
    },
    Scenario {
        row: "in-flight",
        limit: "connections",
        must_not: &["server-occupied"],
        staged: "a server that takes 2 ms for each request, whatever else is under way, and `--probe`",
        server: Server::BuiltIn("--service-time 2ms --wait auto"),
        seconds_min: 2.0,
        words: "--records 100 --no-load --probe",
        loads: &[one("-c 10"), one("-c 1")],
        ..PLAIN
    },
    Scenario {
        row: "slots",
        limit: "connections",
        must_not: &["server-occupied"],
        staged: "a server that takes 2 ms for each request, whatever else is under way, and `--probe`",
        server: Server::BuiltIn("--service-time 2ms --wait auto"),
        seconds_min: 2.0,
        words: "--records 100 --no-load --probe -c 10",
        loads: &[one("--rate 4k")],
        ..PLAIN
    },
    Scenario {
        row: "overload",
        limit: "server",
        staged: "a server with one queue that does 1,000 requests a second (`serve --queue 1`), asked for 3,000",
        witnesses: &[at_most(Sees::ServerCpu, 0.9)],
        server: Server::BuiltIn("--service-time 1ms --queue 1"),
        seconds_min: 4.0,
        words: "--records 10 --no-load --timeout 30s -c 50 --no-evidence",
        loads: &[one("-d unlimited --rate 3k")],
        ..PLAIN
    },
    Scenario {
        must_not: &["overload"],
        staged: "a server that stands still (SIGSTOP) until the end",
        disturbances: &[Disturbance::Pause(Side::Server, 3_000, 60_000)],
        seconds_min: 4.0,
        words: "--records 10 --no-load --timeout 500ms -c 50 --no-evidence",
        loads: &[one("-d unlimited --rate 1k")],
        ..PLAIN
    },
];
