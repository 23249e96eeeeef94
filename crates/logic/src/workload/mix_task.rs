//! A mix, made ready for drawing: its operations, the popularity of its records, and what its answers ask for.

use crate::dist::Dist;
use crate::plan::{Fill, Mix, Popularity};
use crate::protocol::{MetaAsk, Verb};
use crate::rng::Stream;
use crate::time::Nanos;
use crate::workload::choices::Choices;
use crate::workload::drawn_records::{DrawnRecords, KeyAt};
use crate::workload::mix::MixTable;
use crate::workload::popularity::{Chooser, Latest};
use crate::workload::unstored::Unstored;

/// A mix, made ready for drawing.
#[derive(Debug)]
pub(super) struct MixTask {
    pub(super) table: MixTable,
    pub(super) chooser: Chooser,
    /// The choices of each operation, where one chooser is not enough.
    choices: Option<Box<Choices>>,
    /// Keys read that are not records, if there are some.
    pub(super) unstored: Option<Unstored>,
    /// Reads are for plain records only.
    pub(super) reads_plainly: bool,
    /// Salt that makes the fresh keys of this phase and run differ from those of every other.
    pub(super) fresh_salt: u64,
    /// The popularity follows the newest records.
    pub(super) latest: Option<Box<Latest>>,
    /// Share of the gets that are followed by a store of their key.
    pub(super) read_modify_write: f64,
    /// Adds store records of their own.
    pub(super) inserts: bool,
    /// Reads ask for 1 to `multiget` records that follow each other.
    pub(super) scans: bool,
    /// A read asks for one key and for nothing behind it.
    pub(super) reads_singly: bool,
    /// The popularity is sequential.
    pub(super) sequential: bool,
    /// Keys of a read.
    pub(super) multiget: u16,
    /// Keys of an mset.
    pub(super) multiset: u16,
    /// Draws of keys that belong to one request.
    pub(super) stride: u64,
    pub(super) meta: MetaAsk,
    /// The delay after a miss with which the key is stored, in nanoseconds; `None` if it is not stored.
    pub(super) read_through: Option<Nanos>,
    pub(super) fill: Fill,
    /// The delays in seconds, where they differ.
    pub(super) fill_delay_s: Option<Dist>,
    pub(super) noreply: bool,
}

/// The longest delay of a store after a miss, in seconds: a day.
pub(super) const DELAY_MAX_S: f64 = 86_400.0;

/// The draw of a request that decides how many records it scans; those of fresh and absent keys are below and above it.
pub(super) const SCAN_DRAW: u64 = 1 << 33;

/// The draw of a get that decides whether its key is stored afterwards.
pub(super) const MODIFY_DRAW: u64 = 1 << 34;

/// Whether a popularity follows the newest records.
pub(super) fn is_latest(popularity: &Popularity) -> bool {
    matches!(popularity, Popularity::Latest { .. })
}

impl MixTask {
    /// The mix over these records; `fresh_salt` is a number that no other phase of any run has.
    pub(super) fn new(mix: &Mix, records: DrawnRecords, fresh_salt: u64) -> MixTask {
        let keys = if mix.scans { 1 } else { mix.multiget.max(mix.multiset) };
        let at_once = records.of_commands.iter().copied().fold(keys, |most, keys| most.max(keys.into()));
        let stride = u64::from(at_once);
        let table = MixTable::new(mix);
        let unstored = Unstored::of(mix);
        MixTask {
            reads_plainly: !table.has_spaces()
                && unstored.is_none()
                && !mix.scans
                && !is_latest(&mix.popularity),
            latest: match mix.popularity {
                Popularity::Latest { exponent } => Some(Box::new(Latest::new(records.count, exponent))),
                _ => None,
            },
            read_modify_write: mix.read_modify_write,
            inserts: mix.inserts,
            scans: mix.scans,
            reads_singly: mix.multiget == 1 && mix.read_modify_write == 0.0 && !mix.in_turns,
            fresh_salt,
            unstored,
            table,
            chooser: Chooser::of_request(&mix.popularity, records, stride),
            choices: Choices::of(mix, records, stride).map(Box::new),
            sequential: mix.popularity == Popularity::Sequential,
            multiget: mix.multiget as u16,
            multiset: mix.multiset as u16,
            stride,
            meta: mix.meta,
            read_through: mix.read_through_ns,
            fill: mix.fill,
            fill_delay_s: mix.fill_delay_s.clone(),
            noreply: mix.noreply,
        }
    }

    /// The record that a request asks for. `ops` is the client's stream of operations, and `keys` that of keys.
    #[inline]
    pub(super) fn choose(&self, (ops, keys): (&Stream, &Stream), at: KeyAt) -> u64 {
        match &self.choices {
            None => self.choose_for_any(keys, at),
            Some(choices) => choices.choose(self.table.asked(at.index, ops), keys, at),
        }
    }

    /// The record that a request of this verb asks for, which is not one of the client's requests in turn.
    pub(super) fn choose_for(&self, verb: Verb, keys: &Stream, at: KeyAt) -> u64 {
        match &self.choices {
            None => self.choose_for_any(keys, at),
            Some(choices) => choices.choose((verb, at.index), keys, at),
        }
    }

    /// The record that a request asks for, where all operations are for records of one popularity.
    #[inline]
    fn choose_for_any(&self, keys: &Stream, at: KeyAt) -> u64 {
        let turn = if self.sequential { at.index * at.clients + at.client } else { at.index };
        self.chooser.choose(keys, turn * self.stride + at.place)
    }
}
