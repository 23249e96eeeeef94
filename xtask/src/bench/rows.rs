//! What is measured: the rows of the benchmark, as data.

/// One table of the benchmark: a workload, and who runs it.
pub struct Row {
    /// What it is called; `--rows` looks for its argument in here.
    pub name: &'static str,
    /// Who is measured; ratios are to the first.
    pub contenders: &'static [Contender],
    /// Number of connections.
    pub connections: u32,
    /// Most requests outstanding on a connection.
    pub depth: u32,
    /// Requests per second at equal distances; `None`: closed loop.
    pub rate: Option<u32>,
    /// Length of a key in bytes.
    pub key_bytes: u32,
    /// Length of a value in bytes.
    pub value_bytes: u32,
    /// Number of records, all of them stored before the first round.
    pub records: u32,
}

/// A client program with its arguments.
pub struct Contender {
    /// What its line is called.
    pub name: &'static str,
    /// The program.
    pub program: Program,
    /// Arguments beside those that say the row's workload.
    pub arguments: &'static [&'static str],
}

/// A client program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Program {
    /// `examples/floor.rs` of the engine: the least that such an exchange can cost.
    Floor,
    /// pummel.
    Pummel,
    /// memcaslap of libmemcached, left out where it is not installed. It cannot run the row's workload.
    Memcaslap,
}

impl Program {
    /// What a reader has to know before comparing this line with the others.
    pub fn note(self) -> Option<&'static str> {
        match self {
            Program::Floor | Program::Pummel => None,
            Program::Memcaslap => Some(
                "another workload: nine gets for each set, 64-byte keys, 1,024-byte values, on a server of its own; \
                 its CPU includes its start",
            ),
        }
    }
}

const FLOOR: Contender = Contender { name: "floor", program: Program::Floor, arguments: &[] };
const PUMMEL: Contender = Contender { name: "pummel", program: Program::Pummel, arguments: &[] };
const MEMCASLAP: Contender = Contender { name: "memcaslap", program: Program::Memcaslap, arguments: &[] };

/// The floor sleeps between requests, so pummel may not spin.
const PUMMEL_BLOCKING: Contender = Contender {
    name: "pummel",
    program: Program::Pummel,
    arguments: &["--arrivals", "constant", "--wait", "block"],
};

const GETS: Row = Row {
    name: "get, depth 1",
    contenders: &[FLOOR, PUMMEL, MEMCASLAP],
    connections: 50,
    depth: 1,
    rate: None,
    key_bytes: 30,
    value_bytes: 200,
    records: 10_000,
};

/// Every row, in the order of the output.
pub const ROWS: &[Row] = &[
    GETS,
    Row { name: "get, depth 16", depth: 16, contenders: &[FLOOR, PUMMEL], ..GETS },
    Row {
        name: "get, open loop, 20,000/s, sleeping",
        rate: Some(20_000),
        contenders: &[FLOOR, PUMMEL_BLOCKING],
        ..GETS
    },
];
