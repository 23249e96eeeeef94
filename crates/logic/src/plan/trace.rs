//! The replay of a trace: its files, its pace, and which client sends which of its rows.

use serde::{Deserialize, Serialize};

use super::absent::{is_default, is_one, one};
use crate::dist::Dist;
use crate::protocol::Verb;
use crate::time::Nanos;

/// The replay of a trace. Several phases of a plan that replay one have the same trace: each continues where the one
/// before it stopped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TraceReplay {
    /// The files, one behind the other, read where the run takes place; `-` is standard input, which is accepted alone.
    pub paths: Vec<String>,
    /// The format by its name; absent: found from the first bytes of each file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Due times of the requests.
    pub pace: TracePace,
    /// Due times within a second, for traces whose times are whole seconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub within_second: WithinSecond,
    /// The rule that decides which client sends a row; absent: `client` if rows name their clients, else `key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<DealBy>,
    /// Operations that are sent in place of those of the trace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub map: Vec<MappedVerb>,
    /// The treatment of times to live.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ttl: TraceTtl,
    /// Number of times that the trace is replayed; 0: repeatedly, until the phase is over.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub passes: u32,
    /// Every pass has keys of its own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fresh_passes: bool,
    /// Rows earlier than this after the first one are left out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub from_ns: Nanos,
    /// Rows from this time after the first one on are left out; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_ns: Option<Nanos>,
    /// Share of the keys whose rows are kept, above 0 and at most 1.
    #[serde(default = "one_share", skip_serializing_if = "is_one_share")]
    pub sample: f64,
    /// Requests that are made of each row, each with a key and a client of its own, 1 to 1,000.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub amplify: u32,
    /// The source of the stores of missed keys: the trace, or the misses of the replay.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fills: Fills,
    /// Time from a miss until `own` fills store the key.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fill_delay_ns: Nanos,
    /// The delays of these stores in seconds, where they differ; `fill_delay_ns` is their mean then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill_delay_s: Option<Dist>,
    /// Lengths in bytes of values that `own` fills store and that the trace never says; absent: those of its
    /// stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_size: Option<Dist>,
    /// Every row stores its key, whatever it asks: the files hold the items of a server.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stores_only: bool,
    /// Longer values are cut to this length in bytes.
    pub value_max_bytes: u32,
}

impl TraceReplay {
    /// The operation that is sent for a row of the trace with this one.
    pub fn mapped(&self, verb: Verb) -> Verb {
        self.map.iter().find(|mapped| mapped.from == verb).map_or(verb, |mapped| mapped.to)
    }

    /// The replay of all rows of these files, once, with nothing changed; values are cut to `value_max_bytes`.
    pub fn of(paths: Vec<String>, pace: TracePace, value_max_bytes: u32) -> TraceReplay {
        TraceReplay {
            paths,
            pace,
            passes: 1,
            sample: 1.0,
            amplify: 1,
            value_max_bytes,
            ..TraceReplay::default()
        }
    }
}

/// An operation of a trace, and the one that is sent in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MappedVerb {
    /// The operation of the rows.
    pub from: Verb,
    /// The operation that is sent.
    pub to: Verb,
}

/// The operations that rows of traces have.
#[rustfmt::skip]
pub const TRACE_VERBS: [Verb; 12] = [
    Verb::Get, Verb::Gets, Verb::Set, Verb::Add, Verb::Replace, Verb::Append, Verb::Prepend, Verb::Cas,
    Verb::Incr, Verb::Decr, Verb::Delete, Verb::Touch,
];

/// Due times of the requests of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TracePace {
    /// At the time of their row from the first one on, divided by the speed.
    Trace {
        /// The speed, 0.000001 to 1,000,000; 1 is that of the trace.
        speed: f64,
    },
    /// A request is due as soon as its client has a free slot.
    #[default]
    Fast,
    /// By the arrivals of the group: row i is due when arrival i of the whole group is.
    Rate,
}

/// Due time of a row within its second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WithinSecond {
    /// Row j of m at j/m of the second.
    #[default]
    Spread,
    /// At sorted uniform draws.
    Poisson,
    /// All of them at the beginning of the second.
    Burst,
}

/// The rule that decides which client sends a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DealBy {
    /// The client that the row names; its key where it names none. The requests of each client keep their order.
    Client,
    /// The key. The requests for each key keep their order.
    Key,
    /// The number of the row.
    Row,
}

/// The treatment of times to live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TraceTtl {
    /// Times to live are divided by the speed, and are at least one second.
    #[default]
    Scale,
    /// Times to live are kept.
    Keep,
    /// Records never expire.
    None,
}

/// The source of the stores of keys that reads of a replay miss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Fills {
    /// The stores of the trace, as they were recorded.
    #[default]
    Recorded,
    /// The misses of the replay. Stores are left out that follow a recorded miss of their key by their client within 5 s.
    Own,
}

fn one_share() -> f64 {
    1.0
}

fn is_one_share(share: &f64) -> bool {
    *share == 1.0
}
