//! The rows of the benchmark, as data.

use clap::ValueEnum;

/// One table of the benchmark: a workload, and who runs it.
pub struct Row {
    /// Name of the row; `--rows` looks for its argument in here.
    pub name: &'static str,
    /// The programs that are measured; ratios are to the first.
    pub contenders: &'static [Contender],
    /// Protocol that is spoken, which decides the server too.
    pub dialect: Dialect,
    /// Operation that is asked.
    pub op: Op,
    /// Number of connections.
    pub connections: u32,
    /// Most requests outstanding on a connection.
    pub depth: u32,
    /// Requests per second at equal distances; `None`: closed loop.
    pub rate: Option<u32>,
    /// Popularity of the records, as `--popularity` has it.
    pub popularity: &'static str,
    /// Length of a key in bytes.
    pub key_bytes: u32,
    /// Length of a value in bytes.
    pub value_bytes: u32,
    /// Number of records, all of them stored before the first round.
    pub records: u32,
    /// Budget of pummel in this row.
    pub budget: Budget,
}

impl Row {
    /// The programs of the row and another build of pummel, whose lines stand below those of this build.
    pub fn with_other_build(&self) -> Vec<Contender> {
        let other = |own: Contender| (own.program == Program::Pummel).then(|| own.of_other_build());
        self.contenders.iter().flat_map(|&own| [Some(own), other(own)]).flatten().collect()
    }
}

/// A protocol that is spoken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// memcached's text protocol.
    Text,
    /// memcached's meta commands.
    Meta,
    /// memcached's binary protocol.
    Binary,
    /// RESP2, with a redis-server.
    Resp2,
}

impl Dialect {
    /// Name as `--protocol` has it.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Text => "text",
            Dialect::Meta => "meta",
            Dialect::Binary => "binary",
            Dialect::Resp2 => "resp2",
        }
    }
}

/// An operation that is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Reads that hit.
    Get,
    /// Writes of records.
    Set,
}

impl Op {
    /// Name as `--mix` has it.
    pub fn name(self) -> &'static str {
        match self {
            Op::Get => "get",
            Op::Set => "set",
        }
    }
}

/// A kernel interface of pummel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Backend {
    /// Readiness by epoll.
    Epoll,
    /// Completions by io_uring.
    Uring,
}

impl Backend {
    /// Name as `--backend` has it.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Epoll => "epoll",
            Backend::Uring => "uring",
        }
    }
}

/// A client program with its arguments.
#[derive(Clone, Copy)]
pub struct Contender {
    /// Name of its line.
    pub name: &'static str,
    /// Program that is run.
    pub program: Program,
    /// Of pummel, its kernel interface.
    pub backend: Option<Backend>,
    /// Arguments beside those that say the row's workload.
    pub arguments: &'static [&'static str],
}

impl Contender {
    /// The line of another build of pummel, which sends what this line sends.
    fn of_other_build(self) -> Contender {
        let name = match self.backend {
            Some(Backend::Uring) => "other build, uring",
            _ => "other build, epoll",
        };
        Contender { name, program: Program::OtherPummel, ..self }
    }
}

/// A client program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Program {
    /// `examples/floor.rs` of the engine: the least that such an exchange can cost.
    Floor,
    /// The program pummel.
    Pummel,
    /// Another build of pummel, which `--beside` names.
    OtherPummel,
    /// memcaslap of libmemcached, left out where it is not installed. It cannot run the row's workload.
    Memcaslap,
    /// redis-benchmark of redis-tools, left out where it is not installed.
    RedisBenchmark,
}

impl Program {
    /// Note for a reader who compares this line with the others.
    pub fn note(self) -> Option<&'static str> {
        match self {
            Program::Floor | Program::Pummel | Program::OtherPummel => None,
            Program::Memcaslap => Some(
                "another workload: nine gets for each set, 64-byte keys, 1,024-byte values, on a server of its own; \
                 its CPU includes its start",
            ),
            Program::RedisBenchmark => Some(
                "the same requests, as many as the floor would have had in the time; its CPU includes its start",
            ),
        }
    }

    /// Whether the program needs a server of its own, because its stores would evict the records of the row.
    pub fn needs_own_server(self) -> bool {
        self == Program::Memcaslap
    }
}

/// The most that a row may cost pummel, or the least that it must reach; `None`: nothing is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// CPU per request to that of the floor, at most.
    pub cpu_ratio: Option<f64>,
    /// CPU in user mode per request in microseconds, at most.
    pub user_us: Option<f64>,
    /// Requests per second to those of the floor, at least.
    pub rate_ratio: Option<f64>,
    /// 99th percentile of the lag in microseconds, below.
    pub lag_p99_us: Option<f64>,
    /// Peak of resident memory in MB (millions of bytes), at most.
    pub peak_rss_mb: Option<f64>,
}

impl Budget {
    const NONE: Budget =
        Budget { cpu_ratio: None, user_us: None, rate_ratio: None, lag_p99_us: None, peak_rss_mb: None };

    /// Memory alone, as it is for 50 connections.
    const MEMORY: Budget = Budget { peak_rss_mb: Some(32.0), ..Budget::NONE };
}

const fn floor(name: &'static str, arguments: &'static [&'static str]) -> Contender {
    Contender { name, program: Program::Floor, backend: None, arguments }
}

const fn epoll(arguments: &'static [&'static str]) -> Contender {
    let backend = Some(Backend::Epoll);
    Contender { name: "pummel epoll", program: Program::Pummel, backend, arguments }
}

const fn uring(arguments: &'static [&'static str]) -> Contender {
    let backend = Some(Backend::Uring);
    Contender { name: "pummel uring", program: Program::Pummel, backend, arguments }
}

const fn peer(name: &'static str, program: Program, arguments: &'static [&'static str]) -> Contender {
    Contender { name, program, backend: None, arguments }
}

const FLOOR: Contender = floor("floor", &[]);
const FLOOR_BLOCKING: Contender = floor("floor, blocking", &["--wait", "block"]);
const FLOOR_SPINNING: Contender = floor("floor, spinning", &["--wait", "spin"]);

/// The floor asks at equal distances, so pummel has to.
const SPIN: &[&str] = &["--arrivals", "constant", "--wait", "spin"];
const BLOCK: &[&str] = &["--arrivals", "constant", "--wait", "block"];
const AUTO: &[&str] = &["--arrivals", "constant", "--wait", "auto"];

const CLOSED: &[Contender] = &[FLOOR, epoll(&[]), uring(&[])];
const SPINNING: &[Contender] = &[FLOOR_SPINNING, epoll(SPIN), uring(SPIN)];
const BLOCKING: &[Contender] = &[FLOOR_BLOCKING, epoll(BLOCK), uring(BLOCK)];
const BETWEEN: &[Contender] = &[FLOOR_BLOCKING, FLOOR_SPINNING, epoll(AUTO), uring(AUTO)];

const GETS: Row = Row {
    name: "get, depth 1",
    contenders: &[FLOOR, epoll(&[]), uring(&[]), peer("memcaslap", Program::Memcaslap, &[])],
    dialect: Dialect::Text,
    op: Op::Get,
    connections: 50,
    depth: 1,
    rate: None,
    popularity: "uniform",
    key_bytes: 30,
    value_bytes: 200,
    records: 10_000,
    budget: Budget { cpu_ratio: Some(1.10), user_us: Some(0.40), rate_ratio: Some(0.98), ..Budget::MEMORY },
};

const OTHERS: Row = Row { contenders: CLOSED, budget: Budget::MEMORY, ..GETS };
const SETS: Row = Row { op: Op::Set, ..OTHERS };
const OPEN_20K: Row = Row { rate: Some(20_000), ..OTHERS };
const OPEN_100K: Row = Row { rate: Some(100_000), ..OTHERS };
const DIALECT: Row = Row { budget: Budget { cpu_ratio: Some(1.15), ..Budget::MEMORY }, ..OTHERS };

/// Every row, in the order of the output.
pub const ROWS: &[Row] = &[
    GETS,
    Row { name: "get, depth 4", depth: 4, ..OTHERS },
    Row {
        name: "get, depth 16",
        depth: 16,
        budget: Budget { cpu_ratio: Some(1.35), rate_ratio: Some(0.98), ..Budget::MEMORY },
        ..OTHERS
    },
    Row { name: "get, depth 64", depth: 64, ..OTHERS },
    Row { name: "get, 1 connection", connections: 1, ..OTHERS },
    Row {
        name: "get, 1,000 connections",
        connections: 1_000,
        budget: Budget { peak_rss_mb: Some(96.0), ..Budget::NONE },
        ..OTHERS
    },
    Row {
        name: "get, 10,000 connections",
        connections: 10_000,
        budget: Budget { cpu_ratio: Some(1.10), peak_rss_mb: Some(96.0), ..Budget::NONE },
        ..OTHERS
    },
    Row { name: "get, zipf", popularity: "zipf:0.99", ..OTHERS },
    Row { name: "set, 200 B", ..SETS },
    Row { name: "set, 10 KB", value_bytes: 10_000, records: 10_000, ..SETS },
    Row { name: "set, 1 MB", value_bytes: 1_000_000, records: 100, budget: Budget::NONE, ..SETS },
    Row {
        name: "get, open loop, 20,000/s, spinning",
        contenders: SPINNING,
        budget: Budget { lag_p99_us: Some(20.0), ..Budget::MEMORY },
        ..OPEN_20K
    },
    Row {
        name: "get, open loop, 20,000/s, blocking",
        contenders: BLOCKING,
        budget: Budget { cpu_ratio: Some(1.10), ..Budget::MEMORY },
        ..OPEN_20K
    },
    Row { name: "get, open loop, 20,000/s, auto", contenders: BETWEEN, ..OPEN_20K },
    Row { name: "get, open loop, 100,000/s, spinning", contenders: SPINNING, ..OPEN_100K },
    Row { name: "get, open loop, 100,000/s, blocking", contenders: BLOCKING, ..OPEN_100K },
    Row { name: "get, open loop, 100,000/s, auto", contenders: BETWEEN, ..OPEN_100K },
    Row {
        name: "get, binary",
        contenders: &[FLOOR, epoll(&[]), uring(&[]), peer("memcaslap", Program::Memcaslap, &["--binary"])],
        dialect: Dialect::Binary,
        ..DIALECT
    },
    Row { name: "get, meta", dialect: Dialect::Meta, ..DIALECT },
    Row {
        name: "get, resp2",
        contenders: &[FLOOR, epoll(&[]), uring(&[]), peer("redis-benchmark", Program::RedisBenchmark, &[])],
        dialect: Dialect::Resp2,
        ..DIALECT
    },
    // redis-server answers what it has read with one write, so that requests stay together; memcached 1.6.18 does not.
    Row {
        name: "get, resp2, depth 16",
        contenders: &[FLOOR, epoll(&[]), uring(&[]), peer("redis-benchmark", Program::RedisBenchmark, &[])],
        dialect: Dialect::Resp2,
        depth: 16,
        budget: Budget { cpu_ratio: Some(1.35), rate_ratio: Some(0.98), ..Budget::MEMORY },
        ..DIALECT
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_every_row_is_the_floor() {
        assert!(ROWS.iter().all(|row| row.contenders[0].program == Program::Floor));
    }

    #[test]
    fn rows_and_the_lines_of_a_row_are_told_apart_by_their_names() {
        let apart = |names: Vec<&str>| {
            let mut sorted = names.clone();
            sorted.sort_unstable();
            sorted.dedup();
            sorted.len() == names.len()
        };
        assert!(apart(ROWS.iter().map(|row| row.name).collect()));
        for row in ROWS {
            assert!(apart(row.contenders.iter().map(|contender| contender.name).collect()), "{}", row.name);
        }
    }
}
