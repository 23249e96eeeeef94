//! The reads that are checked, the requests that are counted when they are answered, and the writes that are known to
//! be stored when a read is sent.

use crate::rng::unit;
use crate::workload::verify::ledger::Ledger;
use crate::workload::verify::stale::{RunMark, Witness};

/// The checks of one worker's reads.
#[derive(Debug)]
pub(crate) struct ReadChecks {
    /// Share of the reads whose values are checked, from 0 to 1.
    share: f64,
    /// Share of the reads whose values are checked in the phase under way, which is 1 where records are read back.
    share_now: f64,
    /// Replies are counted for the account of the cache.
    pub(in crate::workload) counts_cache: bool,
    /// Reads of one key are checked or counted, so that items of their answers may be of use.
    reads_items: bool,
    /// Whether stores leave a record until they are answered.
    marks_stores: bool,
    /// The writes that are known to be stored.
    pub(crate) witness: Witness,
    /// The acknowledged writes; `None` where they are not read back.
    pub(crate) ledger: Option<Box<Ledger>>,
}

impl ReadChecks {
    /// Checks of this share of the reads, in a run with this mark.
    pub(in crate::workload) fn new(share: f64, run: RunMark) -> ReadChecks {
        ReadChecks {
            share,
            share_now: share,
            counts_cache: false,
            reads_items: share > 0.0,
            marks_stores: share > 0.0,
            witness: Witness::new(run),
            ledger: None,
        }
    }

    /// Begins a phase. `is_load`: the phase loads; `counts_cache`: its replies are counted for the account of the
    /// cache; `is_audit`: it reads all records back.
    pub(in crate::workload) fn begin(&mut self, is_load: bool, counts_cache: bool, is_audit: bool) {
        let checks = self.share > 0.0;
        self.counts_cache = counts_cache;
        self.reads_items = checks || counts_cache;
        self.share_now = if is_audit { 1.0 } else { self.share };
        self.marks_stores = checks && (!is_load || self.ledger.is_some()) || counts_cache;
    }

    /// Whether something is remembered of stores until they are answered: their versions, or that they are counted.
    #[inline]
    pub(crate) fn marks_stores(&self) -> bool {
        self.marks_stores
    }

    /// Whether the items of the answer to a read of so many keys may be of use.
    #[inline]
    pub(crate) fn reads_items(&self, keys: u16) -> bool {
        self.reads_items || keys > 1
    }

    /// Whether the values of a read are checked, drawn from `bits`.
    #[inline]
    pub(in crate::workload) fn is_checked(&self, bits: u64) -> bool {
        self.share_now > 0.0 && unit(bits) < self.share_now
    }
}
