//! Scenes of the rows that name the network or other clients.

use std::time::Duration;

use crate::network::{Trouble, Way};
use crate::verdicts::scenario::{Disturbance, PLAIN, Scenario, Server, Side, one, two_agents};
use crate::verdicts::witness::{Sees, at_least, at_most};

const LOSSY: Way = Way::Far(Trouble { delay: Duration::from_micros(200), lost_one_in: 150 });

/// The scenes.
pub const SCENES: &[Scenario] = &[
    Scenario {
        must_not: &["others"],
        never_says: &["not ours"],
        staged: "memcached `-t 4` and no load before, so that its threads may count the connections late",
        witnesses: &[at_most(Sees::Counter("total_connections"), 60.0)],
        server: Server::Memcached("-t 4 -m 256"),
        words: "--records 1k --no-load -c 50",
        loads: &[one(""), one("--rate 2k"), two_agents("")],
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
        row: "way",
        limit: "network",
        staged: "a relay that takes 1 ms in each direction",
        way: Way::delayed(1_000),
        loads: &[one("-c 50 --rate 2k"), one("-c 50 -T 2 --rate 2k"), two_agents("-c 50 --rate 2k")],
        ..PLAIN
    },
    Scenario {
        must_not: &["network-loss"],
        staged: "redis-server that sleeps for 0.5 s once (`DEBUG SLEEP 0.5`): what was sent again had arrived",
        witnesses: &[
            at_least(Sees::Kernel(Side::Client, "TcpRetransSegs"), 1.0),
            at_most(Sees::KernelBeyond(Side::Client, "TcpRetransSegs", "TcpExtTCPDSACKRecv"), 0.0),
        ],
        way: Way::FewPorts(28_000),
        server: Server::Redis("--enable-debug-command yes"),
        disturbances: &[Disturbance::Line(2_000, "DEBUG SLEEP 0.5")],
        seconds_min: 4.0,
        words: "--records 1k --protocol resp2",
        loads: &[one("-d 4 --rate 5k")],
        ..PLAIN
    },
    Scenario {
        must_not: &["network-loss"],
        staged: "a memcached that is stopped (SIGSTOP) for 0.6 s once: what was sent again had arrived",
        witnesses: &[
            at_least(Sees::Kernel(Side::Client, "TcpRetransSegs"), 1.0),
            at_most(Sees::KernelBeyond(Side::Client, "TcpRetransSegs", "TcpExtTCPDSACKRecv"), 0.0),
        ],
        way: Way::FewPorts(28_000),
        disturbances: &[Disturbance::Pause(Side::Server, 2_000, 600)],
        seconds_min: 4.0,
        loads: &[one("-d 4 --rate 5k")],
        ..PLAIN
    },
];
