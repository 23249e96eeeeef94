//! mcperf's options as they are written, and the methods that a call can have.

use pummel_logic::protocol::Verb;

use crate::getopt::{Choice, Takes};

/// An option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// `-h`.
    Help,
    /// `-V`.
    Version,
    /// `-v`.
    Verbosity,
    /// `-o`.
    Output,
    /// `-s`.
    Server,
    /// `-p`.
    Port,
    /// `-H`.
    Histogram,
    /// `-t`.
    Timeout,
    /// `-l`.
    Linger,
    /// `-b`.
    SendBuffer,
    /// `-B`.
    RecvBuffer,
    /// `-D`.
    NoDelay,
    /// `-m`.
    Method,
    /// `-e`.
    Expiry,
    /// `-q`.
    NoReply,
    /// `-P`.
    Prefix,
    /// `-c`.
    Client,
    /// `-n`.
    Conns,
    /// `-N`.
    Calls,
    /// `-r`.
    ConnRate,
    /// `-R`.
    CallRate,
    /// `-z`.
    Sizes,
    /// `--response`, of pummel.
    Response,
    /// `--strict`, of pummel.
    Strict,
    /// `--shard`, of pummel.
    Shard,
    /// `--source`, of pummel.
    Source,
    /// `--clock`, of pummel.
    Clock,
    /// `--json`, of pummel.
    Json,
    /// `--csv`, of pummel.
    Csv,
    /// `--hdr`, of pummel.
    Hdr,
    /// `--samples`, of pummel.
    Samples,
    /// `--evidence`, of pummel.
    Evidence,
    /// `--anonymous`, of pummel.
    Anonymous,
}

/// Every option with its meaning, in the order of [`CHOICES`].
pub const NAMES: [Name; 34] = [
    Name::Help,
    Name::Help,
    Name::Version,
    Name::Verbosity,
    Name::Output,
    Name::Server,
    Name::Port,
    Name::Histogram,
    Name::Timeout,
    Name::Linger,
    Name::SendBuffer,
    Name::RecvBuffer,
    Name::NoDelay,
    Name::Method,
    Name::Expiry,
    Name::NoReply,
    Name::Prefix,
    Name::Client,
    Name::Conns,
    Name::Calls,
    Name::ConnRate,
    Name::CallRate,
    Name::Sizes,
    Name::Response,
    Name::Strict,
    Name::Shard,
    Name::Source,
    Name::Clock,
    Name::Json,
    Name::Csv,
    Name::Hdr,
    Name::Samples,
    Name::Evidence,
    Name::Anonymous,
];

/// Every option as it is written.
pub const CHOICES: [Choice; 34] = [
    Choice::both('h', "help", Takes::Nothing),
    Choice::short('?', Takes::Nothing),
    Choice::both('V', "version", Takes::Nothing),
    Choice::both('v', "verbosity", Takes::Value),
    Choice::both('o', "output", Takes::Value),
    Choice::both('s', "server", Takes::Value),
    Choice::both('p', "port", Takes::Value),
    Choice::both('H', "print-histogram", Takes::Nothing),
    Choice::both('t', "timeout", Takes::Value),
    Choice::both('l', "linger", Takes::Value),
    Choice::both('b', "send-buffer", Takes::Value),
    Choice::both('B', "recv-buffer", Takes::Value),
    Choice::both('D', "disable-nodelay", Takes::Nothing),
    Choice::both('m', "method", Takes::Value),
    Choice::both('e', "expiry", Takes::Value),
    Choice::both('q', "use-noreply", Takes::Nothing),
    Choice::both('P', "prefix", Takes::Value),
    Choice::both('c', "client", Takes::Value),
    Choice::both('n', "num-conns", Takes::Value),
    Choice::both('N', "num-calls", Takes::Value),
    Choice::both('r', "conn-rate", Takes::Value),
    Choice::both('R', "call-rate", Takes::Value),
    Choice::both('z', "sizes", Takes::Value),
    Choice::added("response", Takes::Nothing),
    Choice::added("strict", Takes::Nothing),
    Choice::added("shard", Takes::Nothing),
    Choice::added("source", Takes::Value),
    Choice::added("clock", Takes::Value),
    Choice::added("json", Takes::Value),
    Choice::added("csv", Takes::Value),
    Choice::added("hdr", Takes::Value),
    Choice::added("samples", Takes::Value),
    Choice::added("evidence", Takes::Nothing),
    Choice::added("anonymous", Takes::Nothing),
];

/// The methods by their names on command lines.
pub const METHODS: [(&str, Verb); 11] = [
    ("get", Verb::Get),
    ("gets", Verb::Gets),
    ("delete", Verb::Delete),
    ("cas", Verb::Cas),
    ("set", Verb::Set),
    ("add", Verb::Add),
    ("replace", Verb::Replace),
    ("append", Verb::Append),
    ("prepend", Verb::Prepend),
    ("incr", Verb::Incr),
    ("decr", Verb::Decr),
];
