//! The phases of a Plan: what clients do in each, and when it ends.

use serde::{Deserialize, Serialize};

use super::absent::{is_default, is_one, one};
use super::key_churn::KeyChurn;
use super::popularity::Popularity;
use super::trace::TraceReplay;
use super::window::Window;
use crate::dist::Dist;
use crate::protocol::{MetaAsk, Verb};
use crate::time::Nanos;

/// A stretch of the run. Workers meet between phases; every request of a phase ends before the next begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Name of the phase.
    pub name: String,
    /// The work of the clients.
    pub work: Work,
    /// The condition that ends the phase.
    pub stop: Stop,
    /// Whether its requests count in the result (all requests count in `whole_run`).
    pub recorded: bool,
}

/// The work of clients in a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Store every record once, as fast as it goes.
    Load(Load),
    /// Make requests that are drawn from a mix of operations.
    Mix(Mix),
    /// Set and get objects of a window that moves on (memaslap).
    Window(Window),
    /// Make the requests of a recording, as fast as the arrivals allow.
    Replay(Replay),
    /// Make the requests of a trace, which is read while the run goes on.
    Trace(Box<TraceReplay>),
    /// Delete some of the records, as fast as it goes.
    Delete(Delete),
    /// Make no requests; connections stay open.
    Pause(Pause),
    /// Read every record back that the run wrote, and compare it with the newest acknowledged write.
    Audit(Audit),
}

/// Making the requests of a recording, from its first line on; after a deletion that divides a recorded phase, from where
/// the first part stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// File with the requests, read where the run takes place. Every line is asked once, by whichever client of its
    /// worker is free; lines are dealt to the workers in turn.
    pub path: String,
    /// The format of the lines: the number of mutilate's option `--twitter_trace`, 0 to 2.
    pub format: u32,
    /// Delay after which a missed key is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_through_ns: Option<Nanos>,
    /// Every line is a read, also one that stores.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reads_only: bool,
}

/// Deleting records: the keys of the recording in a plan that replays one, and otherwise plain records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Delete {
    /// Share of the records, or of the recording's keys, that are deleted on each server, above 0 and at most 1; which
    /// ones, the seed decides.
    pub share: f64,
    /// Most requests outstanding on one connection.
    pub depth: u32,
}

/// A phase without requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Time at which the pause ends, in nanoseconds from the beginning of the run.
    pub until_ns: Nanos,
    /// Least time of the pause in nanoseconds, from its own beginning.
    #[serde(default, skip_serializing_if = "is_default")]
    pub for_ns: Nanos,
}

/// Reading records back, as fast as it goes: those with an acknowledged write, each from the server that its key belongs to. The
/// phase is the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// Most requests outstanding on one connection.
    pub depth: u32,
}

/// Storing the records before they are asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Most requests outstanding on one connection.
    pub depth: u32,
    /// Whether the values that append and prepend work on are stored too.
    pub pieces: bool,
    /// Whether the values that incr and decr work on are stored too.
    pub counters: bool,
    /// Whether the hashes that hget and hset work on are stored too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hashes: bool,
    /// Whether a plain value is stored too under each key of the operation `command`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub commands: bool,
    /// Leaves out the plain records, which a load stores by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub no_plain: bool,
}

/// Operations that are drawn by weight, and the records that they are for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// Operations and their weights; weights are above 0 and need not sum to anything. Where operations take turns, one may stand at
    /// several places.
    pub ops: Vec<(Verb, f64)>,
    /// The popularity of the records.
    pub popularity: Popularity,
    /// Operations whose records are popular in another way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub popularity_of: Vec<(Verb, Popularity)>,
    /// Keys of each read, 1 or more.
    pub multiget: u32,
    /// Share of the keys read that no other request asks for, 0 to 1; they are above the keys of all records.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fresh: f64,
    /// Share of the keys read that do not exist and are never stored, 0 to 1; popular as the records are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub absent: f64,
    /// The lives of the records' keys; absent: forever. A part may change it. All mixes of a plan have the same
    /// churn, so that a warm-up and the phases after it request the same keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub churn: Option<KeyChurn>,
    /// Delay after which a missed key is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_through_ns: Option<Nanos>,
    /// The way in which a missed key is stored.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fill: Fill,
    /// The delays of these stores in seconds, where they differ; `read_through_ns` is their mean then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill_delay_s: Option<Dist>,
    /// Share of the gets, 0 to 1, after whose reply the same client stores the key: read, modify, write.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_modify_write: f64,
    /// Each add stores a record of its own, which no other request stored before; a client's own ones are its newest records.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inserts: bool,
    /// Reads ask for 1 to `multiget` records that follow each other, each number as likely.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scans: bool,
    /// Each client asks its operations in turns, in their order and as many of each as its weight, and does not draw them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub in_turns: bool,
    /// Ask the server not to answer writes.
    pub noreply: bool,
    /// Keys of each mset, 1 or more.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub multiset: u32,
    /// The extra questions of reads and deletes, which only the meta protocol has.
    #[serde(default, skip_serializing_if = "MetaAsk::is_nothing")]
    pub meta: MetaAsk,
}

/// The way in which a missed key is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Fill {
    /// Store the value whatever is there by now.
    #[default]
    Set,
    /// Only if the key is not stored: of several clients that missed it, the first one stores it.
    Add,
}

impl Mix {
    /// Each operation once, with the sum of its weights, in the order in which operations first occur.
    pub fn weights(&self) -> Vec<(Verb, f64)> {
        let mut sums = [0.0; Verb::COUNT];
        self.ops.iter().for_each(|&(verb, weight)| sums[verb as usize] += weight);
        let mut rest = sums;
        let is_first = |(verb, _): &&(Verb, f64)| std::mem::take(&mut rest[*verb as usize]) > 0.0;
        self.ops.iter().filter(is_first).map(|&(verb, _)| (verb, sums[verb as usize])).collect()
    }

    /// Whether one of the operations is of a kind.
    pub fn any_op(&self, is_kind: impl Fn(Verb) -> bool) -> bool {
        self.ops.iter().any(|&(verb, _)| is_kind(verb))
    }

    /// Whether some requests of the mix are answered. Also with `noreply`, each cas follows a read.
    pub fn is_answered(&self) -> bool {
        let always = |verb: Verb| verb.reads() || matches!(verb, Verb::Version | Verb::Cas);
        !self.noreply || self.any_op(always)
    }

    /// Whether some reads are followed by a store of their key.
    pub fn has_pairs(&self) -> bool {
        self.read_modify_write > 0.0
    }

    /// Whether reads may miss keys for reasons that are distinguished: keys that are no records, that change or that
    /// are stored after a miss.
    pub fn tells_misses(&self) -> bool {
        self.any_op(Verb::asks_for_values)
            && (self.reads_unstored() || self.churn.is_some() || self.read_through_ns.is_some())
    }

    /// Whether reads ask for keys that are no records.
    pub fn reads_unstored(&self) -> bool {
        self.fresh + self.absent > 0.0
    }
}

/// The condition that ends a phase: the first of its two limits that is reached. [`Work::Load`], [`Work::Delete`] and
/// [`Work::Pause`] end by themselves, [`Work::Replay`] also after its last request. Time runs on where a deletion
/// divides a recorded phase ([`Plan::runs_on`](super::Plan::runs_on)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// Time of the phase: requests due later are not part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<Nanos>,
    /// Number of requests of all clients together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
}
