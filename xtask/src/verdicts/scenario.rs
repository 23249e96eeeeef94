//! The scenarios: what is staged for each row of the table of limits, and which loads have to end with its name.

use std::time::Duration;

use crate::network::{Trouble, Way};

/// The server of a scenario, with its own options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// memcached.
    Memcached(&'static str),
    /// redis-server.
    Redis(&'static str),
    /// The built-in server, which misbehaves as it is told to.
    BuiltIn(&'static str),
}

/// A side of the exchange, and its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The generator.
    Client,
    /// The server.
    Server,
}

/// What is done to a run, beside its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// A process that computes on the CPU of a side.
    Busy(Side),
    /// A control group that leaves a side so many percent of a CPU.
    Quota(Side, u32),
    /// A side is stopped for the first time of each sum of both, in milliseconds.
    Bursts(Side, u32, u32),
    /// Another client of the server with these words, beside the server.
    SecondClient(&'static str),
}

/// A load, and what it is made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Words of `pummel run` beside those of its scenario.
    pub words: &'static str,
    /// Whether two agents make it.
    pub has_agents: bool,
}

/// A load of one process.
const fn one(words: &'static str) -> Load {
    Load { words, has_agents: false }
}

/// A load of two agents.
const fn two_agents(words: &'static str) -> Load {
    Load { words, has_agents: true }
}

impl Load {
    /// The load as words of a table.
    pub fn name(&self) -> String {
        let is_open = self.words.contains("--rate");
        let by = match (self.has_agents, self.words.contains("-T 2")) {
            (true, _) => "2 agents",
            (false, true) => "2 threads",
            (false, false) => "1 thread",
        };
        format!("{}, {by}: {}", if is_open { "open" } else { "closed" }, self.words)
    }
}

/// A staged row of the table of limits.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The row that has to hold.
    pub row: &'static str,
    /// The limit that it names.
    pub limit: &'static str,
    /// How it is staged, as words of a table.
    pub staged: &'static str,
    /// The way to the server.
    pub way: Way,
    /// The server.
    pub server: Server,
    /// What is done beside the load.
    pub disturbances: &'static [Disturbance],
    /// Words of `pummel run` that all of its loads have.
    pub words: &'static str,
    /// The loads.
    pub loads: &'static [Load],
}

/// A row that is not staged, and why.
pub struct Unstaged {
    /// The row, and what of it.
    pub row: &'static str,
    /// Why it is not staged.
    pub why: &'static str,
}

pub const PLAIN: Scenario = Scenario {
    row: "",
    limit: "",
    staged: "",
    way: Way::Loopback,
    server: Server::Memcached("-t 1 -m 256"),
    disturbances: &[],
    words: "--records 1k",
    loads: &[],
};

const LOSSY: Way = Way::Far(Trouble { delay: Duration::from_micros(200), lost_one_in: 150 });

/// All scenarios.
pub const SCENARIOS: &[Scenario] = &[
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
        row: "generator-cpu-taken",
        limit: "generator",
        staged: "a control group that leaves the generator 15 % of a CPU",
        disturbances: &[Disturbance::Quota(Side::Client, 15)],
        loads: &[one("-c 8"), one("-c 20 --rate 20k"), one("-c 8 -T 2")],
        ..PLAIN
    },
    Scenario {
        row: "generator-cpu-taken",
        limit: "generator",
        staged: "a busy process on the CPU of the generator",
        disturbances: &[Disturbance::Busy(Side::Client)],
        loads: &[one("-c 8"), one("-c 20 --rate 10k"), two_agents("-c 8")],
        ..PLAIN
    },
    Scenario {
        row: "generator-cpu-taken",
        limit: "generator",
        staged: "two client threads on one CPU, each with a connection that is always busy",
        loads: &[one("-c 2 -T 2")],
        ..PLAIN
    },
    Scenario {
        row: "generator-thread-busy",
        limit: "generator",
        staged: "every request stamped when it leaves (`--stamps tx+sched:1`), which costs more than an answer",
        words: "--records 1k --value-size 8 --verify --backend epoll --stamps tx+sched:1 -c 50",
        loads: &[one(""), one("--rate 300k")],
        ..PLAIN
    },
    Scenario {
        row: "generator-kept-back",
        limit: "generator",
        staged: "a generator that is stopped (SIGSTOP) for 60 ms of each 200 ms",
        disturbances: &[Disturbance::Bursts(Side::Client, 60, 140)],
        loads: &[one("-c 20 --rate 2k"), one("-c 20 --rate 2k -T 2")],
        ..PLAIN
    },
    Scenario {
        row: "generator-stood-still",
        limit: "generator",
        staged: "a generator that is stopped (SIGSTOP) for 60 ms of each 200 ms",
        server: Server::BuiltIn("--service-time 500us"),
        disturbances: &[Disturbance::Bursts(Side::Client, 60, 140)],
        loads: &[one("-c 2"), one("-c 4 -T 2"), two_agents("-c 4")],
        ..PLAIN
    },
    Scenario {
        row: "generator-out",
        limit: "generator",
        staged: "stores of 1,200 bytes through a queueing discipline (tbf) that lets 12 Mbit/s leave the generator, one packet \
                 after the other (`--stamps tx+sched:1`)",
        way: Way::Queued(12),
        words: "--records 100 --value-size 1200 --mix set:1 --stamps tx+sched:1",
        loads: &[one("-c 8"), one("-c 20 --rate 800"), one("-c 20 -T 2 --rate 800")],
        ..PLAIN
    },
    Scenario {
        row: "others",
        limit: "others",
        staged: "a second client of the server, beside it",
        disturbances: &[Disturbance::SecondClient("-c 2 --rate 3k")],
        loads: &[one("-c 2"), one("-c 20 --rate 3k")],
        ..PLAIN
    },
    Scenario {
        row: "others",
        limit: "others",
        staged: "a second client of the server, both 0.5 ms from it",
        way: Way::delayed(500),
        disturbances: &[Disturbance::SecondClient("-c 20 --rate 1k")],
        loads: &[one("-c 50 -T 2 --rate 2k"), two_agents("-c 50 --rate 2k")],
        ..PLAIN
    },
    Scenario {
        row: "others",
        limit: "others",
        staged: "a second client of redis-server, beside it",
        server: Server::Redis(""),
        words: "--records 1k --protocol resp2",
        disturbances: &[Disturbance::SecondClient("-c 2 --rate 3k --protocol resp2")],
        loads: &[one("-c 2"), one("-c 20 --rate 3k")],
        ..PLAIN
    },
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
        row: "network-bandwidth",
        limit: "network",
        staged: "values of 400 KiB over a card that says 10 Gbit/s and sends no more (tbf)",
        way: Way::Limited(10_000),
        server: Server::Memcached("-t 2 -m 256"),
        words: "--records 100 --value-size 400k",
        loads: &[one("-c 8 -d 4"), one("-c 8 --rate 4k")],
        ..PLAIN
    },
    Scenario {
        row: "network-loss",
        limit: "network",
        staged: "a relay that loses one segment in 150",
        way: LOSSY,
        words: "--records 100 --timeout 5s",
        loads: &[
            one("-c 20"),
            one("-c 20 --rate 1k"),
            one("-c 20 -T 2 --rate 1k"),
            two_agents("-c 20 --rate 1k"),
        ],
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
        row: "generator-send-buffer",
        limit: "generator",
        staged: "stores of 60 KiB with `--send-buffer 4096`, 1 ms from the server",
        way: Way::delayed(1_000),
        words: "--records 50 --value-size 60k --mix set:1 --send-buffer 4096 --timeout 5s",
        loads: &[one("-c 2"), one("-c 10 --rate 50")],
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
        row: "way",
        limit: "network",
        staged: "a relay that takes 1 ms in each direction",
        way: Way::delayed(1_000),
        loads: &[one("-c 50 --rate 2k"), one("-c 50 -T 2 --rate 2k"), two_agents("-c 50 --rate 2k")],
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
];

/// The rows of the table that no scenario stages, and parts of rows.
pub const UNSTAGED: &[Unstaged] = &[
    Unstaged { row: "instrument", why: "an instrument that disagrees with itself is a bug of pummel" },
    Unstaged { row: "generator-cpu-taken, by the hypervisor", why: "steal is made outside of the machine" },
    Unstaged {
        row: "network-bandwidth, the cloud's allowance",
        why: "only cards of a cloud count what went beyond it",
    },
    Unstaged {
        row: "closed-loop",
        why: "it is left where a thread is busy for 80 to 90 % of its time, which no load holds for sure",
    },
    Unstaged {
        row: "server-connections, a full queue of the listening socket",
        why: "memcached and redis-server accept faster than one machine can connect",
    },
];

/// Runs against idle servers, in which the verdict must name no limit: server, words. Two client threads that share a
/// CPU sleep until a request is due, and timers that are late by more than 20 us are a visible part of the short
/// responses of memcached and Redis: these lines use servers that hold each request for 2 ms and do nothing meanwhile.
pub const IDLE: &[(Server, &str)] = &[
    (Server::Memcached("-t 4 -m 256"), "-c 1 --rate 100"),
    (Server::Memcached("-t 4 -m 256"), "-c 10 --rate 500"),
    (Server::Memcached("-t 4 -m 256"), "-c 50 --rate 2k"),
    (Server::Memcached("-t 1 -m 256"), "-c 20 --rate 1k"),
    (Server::Memcached("-t 1 -m 256"), "-c 100 --rate 3k --mix get:9,set:1"),
    (Server::Memcached("-t 1 -m 256"), "-c 10 --rate 200 --protocol meta"),
    (Server::Memcached("-t 1 -m 256"), "-c 50 --rate 5k --protocol binary"),
    (Server::Redis(""), "-c 10 --rate 500 --protocol resp2"),
    (Server::Redis(""), "-c 50 --rate 2k --protocol resp3"),
    (Server::Redis(""), "-c 30 --rate 1k --protocol resp2 --mix get:3,set:1"),
    (Server::BuiltIn(SLOW_AND_IDLE), "-c 50 -T 2 --rate 200"),
    (Server::BuiltIn(SLOW_AND_IDLE), "-c 100 -T 2 --rate 500 --mix get:9,set:1"),
    (Server::BuiltIn(SLOW_AND_IDLE), "-c 60 -T 2 --rate 300 --protocol resp2"),
];

/// The options of a server that holds each reply for a time, and does nothing meanwhile.
const SLOW_AND_IDLE: &str = "--service-time 2ms --wait auto";
