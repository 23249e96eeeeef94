//! Which reads are checked, and which writes are known to be stored when a read is sent.

use crate::rng::unit;
use crate::workload::verify::stale::{RunMark, Witness};

/// The checks of one worker's reads.
#[derive(Debug)]
pub(crate) struct ReadChecks {
    /// Share of the reads whose values are checked, from 0 to 1.
    share: f64,
    /// The writes that are known to be stored.
    pub(crate) witness: Witness,
}

impl ReadChecks {
    /// Checks of this share of the reads, in a run with this mark.
    pub(in crate::workload) fn new(share: f64, run: RunMark) -> ReadChecks {
        ReadChecks { share, witness: Witness::new(run) }
    }

    /// Whether the items of the answer to a read of so many keys may be of use.
    #[inline]
    pub(crate) fn reads_items(&self, keys: u16) -> bool {
        self.share > 0.0 || keys > 1
    }

    /// Whether the values of a read are checked, drawn from `bits`.
    #[inline]
    pub(in crate::workload) fn is_checked(&self, bits: u64) -> bool {
        self.share > 0.0 && unit(bits) < self.share
    }
}
