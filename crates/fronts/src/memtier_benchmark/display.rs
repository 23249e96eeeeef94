//! What memtier_benchmark's reports say beside their figures: the options of the command line, and the rows.

use pummel_logic::protocol::Verb;

use super::options::Options;

/// What is said about runs beside their figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Display {
    /// The options as they were given.
    pub(super) options: Options,
    /// The address of the server, as words about it have it.
    pub address: String,
    /// `-n` of each client; absent where time ends the runs.
    pub requests: Option<u64>,
    /// The rows of the report, without that of the totals.
    pub rows: Vec<Row>,
    /// Mean bytes of a request of each row, by which what was sent is dealt to them; empty where that is not known.
    pub request_bytes: Vec<f64>,
}

/// A row of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The name in tables.
    pub name: String,
    /// The name of its distribution.
    pub title: String,
    /// The operations of the plan that it counts.
    pub verbs: Vec<Verb>,
    /// The kind of its operations.
    pub kind: RowKind,
}

/// The kind of the operations of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// SETs.
    Set,
    /// GETs.
    Get,
    /// WAITs.
    Wait,
    /// A command of the user.
    Command,
}
