//! The work of a phase, made ready for one worker's clients.

use std::sync::Arc;

use crate::plan::{Load, Mix, Popularity, Replay};
use crate::protocol::{MetaAsk, Verb};
use crate::time::Nanos;
use crate::workload::key::Space;
use crate::workload::mix::MixTable;
use crate::workload::popularity::Chooser;
use crate::workload::shuffle::Shuffle;
use crate::workload::trace::Trace;

/// The work of a phase, made ready.
#[derive(Debug)]
pub(super) enum Task {
    /// Nothing: connections are opened.
    Rest,
    /// The indexes to store: `spaces[n / records]` and so on, dealt to the clients in turn.
    Load(Vec<Space>),
    Mix(Box<Asking>),
    /// What the sequencer says.
    Sequence {
        verb: Verb,
        noreply: bool,
    },
    /// A window of each client; whether every object is set once, and nothing else done.
    Window {
        preset: bool,
    },
    Replay(TraceCursor),
    /// Which records are deleted: those at the first places of an order.
    Delete {
        order: Shuffle,
        records: u64,
    },
}

/// A worker's part of a trace: every row that leaves `first` when divided by `step`.
#[derive(Clone, Debug)]
pub(super) struct TraceShare {
    pub(super) trace: Arc<Trace>,
    pub(super) first: u64,
    pub(super) step: u64,
}

/// A trace that is being replayed.
#[derive(Debug)]
pub(super) struct TraceCursor {
    pub(super) trace: Arc<Trace>,
    /// The row that is asked next.
    pub(super) next: u64,
    pub(super) step: u64,
    pub(super) read_through: Option<Nanos>,
}

/// What a mix asks.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) table: MixTable,
    pub(super) chooser: Chooser,
    pub(super) sequential: bool,
    pub(super) multiget: u16,
    pub(super) multiset: u16,
    /// Draws of keys that belong to one request.
    pub(super) stride: u64,
    pub(super) meta: MetaAsk,
    pub(super) read_through: Option<Nanos>,
    pub(super) noreply: bool,
}

impl Asking {
    pub(super) fn new(mix: &Mix, records: u64) -> Asking {
        Asking {
            table: MixTable::new(mix),
            // Which client asks matters for sequential popularity alone, and is put into the number of the draw there.
            chooser: Chooser::new(&mix.popularity, records, 0, 1),
            sequential: mix.popularity == Popularity::Sequential,
            multiget: mix.multiget as u16,
            multiset: mix.multiset as u16,
            stride: u64::from(mix.multiget.max(mix.multiset)),
            meta: mix.meta,
            read_through: mix.read_through_ns,
            noreply: mix.noreply,
        }
    }
}

impl TraceCursor {
    /// Whether every row of its part was asked.
    #[inline]
    pub(super) fn is_exhausted(&self) -> bool {
        self.next >= self.trace.len()
    }

    /// How many rows wait to be asked.
    pub(super) fn rows_left(&self) -> u64 {
        self.trace.len().saturating_sub(self.next).div_ceil(self.step)
    }

    /// Leaves out so many rows.
    pub(super) fn pass(&mut self, rows: u64) {
        self.next += rows * self.step;
    }

    /// The next row, as what it asks and its number.
    #[inline]
    pub(super) fn take(&mut self) -> (Verb, u64) {
        let row = self.next;
        self.next += self.step;
        (if self.trace.stores(row) { Verb::Set } else { Verb::Get }, row)
    }

    pub(super) fn new(replay: &Replay, trace_share: Option<&TraceShare>) -> TraceCursor {
        let TraceShare { trace, first, step } =
            trace_share.expect("whoever plans a replay brings the trace").clone();
        TraceCursor { trace, next: first, step, read_through: replay.read_through_ns }
    }
}

pub(super) fn load_spaces(load: &Load) -> Vec<Space> {
    let wanted = |space: &Space| match space {
        Space::Plain => !load.no_plain,
        Space::Pieces => load.pieces,
        Space::Counters => load.counters,
        Space::Hashes => load.hashes,
        Space::Commands => load.commands,
    };
    Space::ALL.into_iter().filter(wanted).collect()
}
