//! Scenes of the rows that accuse the generator.

use crate::network::Way;
use crate::verdicts::scenario::{Cpus, Disturbance, Load, PLAIN, Scenario, Server, Side, one, two_agents};
use crate::verdicts::witness::{Sees, at_least};

/// The scenes.
pub const SCENES: &[Scenario] = &[
    Scenario {
        row: "generator-cpu-taken",
        limit: "generator",
        staged: "a control group that leaves the generator 15 % of a CPU",
        witnesses: &[at_least(Sees::Throttled, 0.1)],
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
        staged: "a busy process on the CPU of the generator, and no doubt about who took it",
        disturbances: &[Disturbance::Busy(Side::Client)],
        says: &["other processes"],
        never_says: &["not known", "share CPU"],
        loads: &[one("-c 8")],
        ..PLAIN
    },
    Scenario {
        row: "shared-cpu",
        limit: "generator",
        staged: "client and server on one CPU",
        cpus: Cpus::One,
        witnesses: &[at_least(Sees::ServerWaited, 0.06)],
        says: &["share CPU", "--cpus"],
        never_says: &["other processes"],
        loads: &[one("-c 1 --wait spin"), one("-c 50 --wait spin")],
        ..PLAIN
    },
    Scenario {
        must_not: &["shared-cpu"],
        staged: "client and server on a CPU each, and a busy process beside the server",
        disturbances: &[Disturbance::Busy(Side::Server)],
        loads: &[one("-c 8")],
        ..PLAIN
    },
    Scenario {
        staged: "memcached `-t 4` on the two CPUs of the client",
        cpus: Cpus::Both,
        server: Server::Memcached("-t 4 -m 256"),
        never_says: &["other processes"],
        loads: &[one("-c 50 -d 8"), Load { words: "-c 48", agents: 3 }],
        ..PLAIN
    },
    Scenario {
        staged: "a closed loop at a full server: replies that come together are no alarm of Trust",
        never_says: &["added by pummel itself"],
        loads: &[one("-c 50 -d 16")],
        ..PLAIN
    },
    Scenario {
        staged: "a generator that is stopped (SIGSTOP) once for 1 s",
        disturbances: &[Disturbance::Pause(Side::Client, 1_000, 1_000)],
        seconds_min: 4.0,
        never_says: &["Times are reliable", "other processes"],
        loads: &[one("-c 50 -d 64")],
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
        row: "generator-send-buffer",
        limit: "generator",
        staged: "stores of 60 KiB with `--send-buffer 4096`, 1 ms from the server",
        way: Way::delayed(1_000),
        words: "--records 50 --value-size 60k --mix set:1 --send-buffer 4096 --timeout 5s",
        loads: &[one("-c 2"), one("-c 10 --rate 50")],
        ..PLAIN
    },
    Scenario {
        must_not: &["generator-cpu-taken"],
        never_says: &["other processes"],
        staged: "memcached `-t 4` on the CPUs of the client, and nothing else",
        witnesses: &[at_least(Sees::ServerCpu, 0.1)],
        server: Server::Memcached("-t 4 -m 256"),
        cpus: Cpus::Both,
        loads: &[one("-c 8 -T 2"), two_agents("-c 8")],
        ..PLAIN
    },
    Scenario {
        must_not: &["generator-stood-still", "generator-kept-back", "generator-cpu-taken"],
        never_says: &["stood still"],
        staged: "a generator that is stopped (SIGSTOP) for 100 ms of each 370 ms, while the server takes 500 ms for each request",
        server: Server::BuiltIn("--service-time 500ms"),
        disturbances: &[Disturbance::Bursts(Side::Client, 100, 270)],
        seconds_min: 5.0,
        words: "--records 4 --no-load --timeout 5s",
        loads: &[one("-c 4")],
        ..PLAIN
    },
];
