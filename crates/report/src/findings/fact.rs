//! The facts that findings consist of.

use pummel_measure::measurement::Status;
use serde::{Deserialize, Serialize};

/// A reason why a run, or several results together, do not measure what their names say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Fact {
    /// The client was the limit.
    ClientLimit {
        /// The sentence of the result on its limit; null where it has none.
        why: Option<String>,
    },
    /// Times are not reliable.
    TimesNotReliable {
        /// Whether none of them is.
        is_none: bool,
        /// Names of the figures in which the generator's own delay is visible; empty where `why` says it.
        figures: Vec<String>,
        /// The sentence of the result on its trust; null where it has none.
        why: Option<String>,
    },
    /// A quantile that a goal speaks of is the generator's own delay for half or more.
    GoalOfLag {
        /// The quantile, from 0 to 1.
        quantile: f64,
    },
    /// The run was not at one level.
    NotSteady {
        /// The sentence of the result; null where it has none.
        why: Option<String>,
    },
    /// Fewer than ten requests lie beyond the quantile that a goal speaks of.
    TooFewRequests {
        /// The quantile, from 0 to 1.
        quantile: f64,
        /// Requests of the run.
        requests: u64,
        /// Fewest requests of which ten lie beyond the quantile.
        least: u64,
    },
    /// The quantile that a goal speaks of falls among requests without an answer.
    OnlyLowerBound {
        /// The quantile, from 0 to 1.
        quantile: f64,
        /// Lower bound of the quantile.
        above_us: f64,
    },
    /// The interval of a quantile has the limit of its goal inside.
    Undecided {
        /// The quantile, from 0 to 1.
        quantile: f64,
        /// Limit of the goal.
        limit_us: f64,
        /// Lower end of the 95 % interval; null where it is not known.
        low_us: Option<f64>,
        /// Upper end of the 95 % interval; null where it is not known.
        high_us: Option<f64>,
    },
    /// The run was too short for an interval of a quantile, or for the upper end of one.
    NoInterval {
        /// The quantile, from 0 to 1.
        quantile: f64,
        /// Whether a goal speaks of the quantile.
        is_goal: bool,
        /// Whether the lower end is known.
        has_low_end: bool,
    },
    /// Records that the run had loaded were missed.
    LoadedMissed {
        /// Keys of loaded records that were missed.
        misses: u64,
        /// Keys that were read.
        keys: u64,
        /// The sentence of the result on them; null where it has none.
        why: Option<String>,
    },
    /// Keys were missed although the plan means its reads to find them.
    Misses {
        /// Keys that were missed.
        misses: u64,
        /// Keys that were read.
        keys: u64,
        /// Whether the plan loads records.
        is_loaded: bool,
        /// The sentence of the result on the causes; null where it has none.
        why: Option<String>,
    },
    /// The servers counted other misses than the replies show.
    ServerMisses {
        /// Misses by the servers' count.
        counted: u64,
        /// Misses by the replies.
        replied: u64,
        /// Keys that were read.
        keys: u64,
    },
    /// The servers counted misses of a command whose replies do not show them.
    UntoldMisses {
        /// Name of the command.
        command: String,
        /// Share of its keys that did not exist, from 0 to 1.
        share: f64,
    },
    /// Nearly all requests of an operation stored or found nothing.
    NothingDone {
        /// Name of the operation.
        op: String,
        /// Requests that stored or found nothing.
        without_effect: u64,
        /// Requests that were answered.
        answered: u64,
    },
    /// A part of the records was not asked for while the run was measured.
    RecordsNotAsked {
        /// Expected share of the records that were asked for, from 0 to 1.
        share: f64,
        /// Number of records.
        records: u64,
        /// Keys that the run asked for.
        keys: u64,
        /// Popularity of the records, as `--popularity` has it.
        popularity: String,
        /// Whether more requests are all that is missing, since every record is as likely as the others.
        is_even: bool,
    },
    /// One connection made all requests.
    OneConnection,
    /// One thread of the server answered all requests.
    OneServingThread,
    /// All records together are so small that they may stay in the cache of a CPU.
    SmallData {
        /// Bytes of all keys and values, on average.
        bytes: u64,
        /// Bytes below which they are taken for small.
        below: u64,
    },
    /// Servers evicted records of a run that means its reads to find them.
    Evictions {
        /// Records that were evicted.
        evictions: u64,
        /// Keys that were missed.
        misses: u64,
        /// Keys that were read.
        keys: u64,
    },
    /// Other clients asked the servers too.
    OtherClients {
        /// Requests of others; null where their number is not known.
        requests: Option<u64>,
        /// These requests as a share of those of the run; null where it is not known.
        share: Option<f64>,
        /// The sentence of the result on its limit, where others are that.
        why: Option<String>,
    },
    /// More than half of the requests failed.
    Failed {
        /// The sentence of the result; null where it has none.
        why: Option<String>,
    },
    /// Some requests failed.
    Errors {
        /// Requests that failed.
        failed: u64,
        /// All requests.
        requests: u64,
    },
    /// Values were wrong, or older than they may be.
    WrongValues {
        /// Number of these values.
        values: u64,
    },
    /// Less was measured than asked.
    NotComplete {
        /// How the run ended.
        status: Status,
        /// The reason; null where none is known.
        reason: Option<String>,
    },
    /// The result has no run.
    NoRun,
    /// More requests were due than were answered, and their queue grew to the end.
    Overloaded {
        /// The sentence of the result; null where it has none.
        why: Option<String>,
    },
    /// Results whose names say that they are the same differ in load, server or machine.
    ResultsDiffer {
        /// Names of the results.
        results: Vec<String>,
        /// Names of what differs: an option of `pummel run` if one decides it.
        differ: Vec<Differing>,
    },
    /// No run is encrypted.
    NoTls,
    /// No run has large values.
    NoLargeValues {
        /// Bytes from which on a value is large.
        from: u64,
    },
    /// No run has more than one connection.
    NoConcurrency,
}

/// Something that differs between the first of several results and others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Differing {
    /// Name of what differs.
    pub name: String,
    /// The different values, that of the first result first.
    pub values: Vec<String>,
}

impl Fact {
    /// Whether the fact tells of the time at which a run was made rather than of what it asked for.
    pub(super) fn is_of_one_moment(&self) -> bool {
        matches!(self, Fact::TimesNotReliable { .. } | Fact::NotSteady { .. })
    }

    /// The part of the run that the fact is about, by which facts of one kind are told apart: a quantile, or the name of an operation.
    pub(super) fn subject(&self) -> String {
        match self {
            Fact::GoalOfLag { quantile }
            | Fact::TooFewRequests { quantile, .. }
            | Fact::OnlyLowerBound { quantile, .. }
            | Fact::Undecided { quantile, .. }
            | Fact::NoInterval { quantile, .. } => quantile.to_string(),
            Fact::UntoldMisses { command: name, .. } | Fact::NothingDone { op: name, .. } => name.clone(),
            _ => String::new(),
        }
    }
}
