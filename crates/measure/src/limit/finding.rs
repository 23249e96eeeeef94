//! The limit of a run: what set its rate, or the waiting in it.

/// The limits that a run can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// No limit: requests were answered as they came.
    None,
    /// The generator: its threads, its CPU, its kernel.
    Generator,
    /// The server, or its machine.
    Server,
    /// The number of requests that may be in flight: connections times depth.
    Connections,
    /// The network, or the length of the way.
    Network,
    /// Clients that are not of this run.
    Others,
    /// The requests that were asked for, such as records that the server cannot hold.
    Workload,
    /// There is nothing to judge by, or the figures contradict each other.
    Unknown,
}

impl Limit {
    /// All limits in their order.
    pub const ALL: [Limit; 8] = [
        Limit::None,
        Limit::Generator,
        Limit::Server,
        Limit::Connections,
        Limit::Network,
        Limit::Others,
        Limit::Workload,
        Limit::Unknown,
    ];

    /// The word of the JSON result and of curves.
    pub fn name(self) -> &'static str {
        match self {
            Limit::None => "none",
            Limit::Generator => "generator",
            Limit::Server => "server",
            Limit::Connections => "connections",
            Limit::Network => "network",
            Limit::Others => "others",
            Limit::Workload => "workload",
            Limit::Unknown => "unknown",
        }
    }
}

/// Result of a row of the table of limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Limit that was found.
    pub limit: Limit,
    /// Sentences on the limit, one or two, with the numbers that they rest on.
    pub says: String,
}

impl Finding {
    /// A finding with its sentences.
    pub fn new(limit: Limit, says: impl Into<String>) -> Finding {
        Finding { limit, says: says.into() }
    }
}

/// A figure that the limits are judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Source of the figure: `generator`, `server`, `network` or `requests`.
    pub source: &'static str,
    /// The figure; a share of 1 unless `says` gives it another unit.
    pub value: f64,
    /// The figure from which on it is evidence; absent where there is no such bound.
    pub limit: Option<f64>,
    /// Sentence about the figure, with its value.
    pub says: String,
}
