//! One worker's memory of the writes that are known to be stored, and the verdict on a read value.

use super::writer::{Known, Lost, RunMark, Writer};
use crate::rng::mix;
use crate::workload::value::Version;

/// Entries of a worker's [`Witness`], one cache line each.
const SLOTS: usize = 4096;

/// A key on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPlace {
    /// Number of the server in the run: what one server stored says nothing about another.
    pub server: u32,
    /// Index of the key.
    pub index: u64,
}

/// Number of writes that a worker knew to be stored when a read was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(pub(super) u64);

/// One worker's memory of acknowledged writes: small, direct-mapped, and forgetful. To forget loses verdicts and never
/// invents one.
#[derive(Clone, Debug)]
pub struct Witness {
    pub(super) slots: Box<[StoredWrite]>,
    first_count: u64,
    /// Writes that were stored so far.
    stored: u64,
    /// Number of stored writes that were forgotten.
    cleared: u64,
}

/// The newest acknowledged write of a key; empty when `stored` is 0.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct StoredWrite {
    place: RecordPlace,
    /// Version of the write.
    pub(super) version: Version,
    known: Known,
    /// Number of writes that had been stored, this one included.
    stored: u64,
}

impl Witness {
    /// A witness without a write.
    pub fn new(run: RunMark) -> Witness {
        Witness::with_slots(run, SLOTS)
    }

    pub(super) fn with_slots(run: RunMark, slots: usize) -> Witness {
        assert!(slots.is_power_of_two());
        let empty = StoredWrite {
            place: RecordPlace { server: 0, index: 0 },
            version: Version::LOADED,
            known: Known { until: 0, lost: Lost::default() },
            stored: 0,
        };
        Witness { slots: vec![empty; slots].into(), first_count: run.first_count, stored: 0, cleared: 0 }
    }

    /// The mark that a read remembers when it is sent.
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark(self.stored)
    }

    /// Takes in the answer to a write that was stored.
    #[inline]
    pub fn handle_stored(&mut self, writer: &mut Writer, place: RecordPlace, version: Version) {
        let Some(known) = writer.answer(version) else { return };
        self.stored += 1;
        let at = self.slot_of(place);
        let old = &self.slots[at];
        // The answers of one client's sockets may come in another order than the writes; the newest says most.
        let older = version.writer() == old.version.writer() && version < old.version;
        if !(older && old.place == place && old.stored > self.cleared) {
            self.slots[at] = StoredWrite { place, version, known, stored: self.stored };
        }
    }

    /// Forgets all writes, because a connection was lost and it is not known what its server holds from then on.
    pub fn clear(&mut self) {
        self.cleared = self.stored;
    }

    /// Whether a value that a read returned was certainly overwritten before the read was sent.
    #[inline]
    pub fn is_stale(&self, place: RecordPlace, version: Version, mark: Mark) -> bool {
        let slot = &self.slots[self.slot_of(place)];
        let count = version.count();
        slot.place == place
            && slot.version.writer() == version.writer()
            && (self.first_count..slot.known.until).contains(&count)
            && !(slot.known.lost.first..=slot.known.lost.last).contains(&count)
            && slot.stored > self.cleared
            && slot.stored <= mark.0
    }

    #[inline]
    pub(super) fn slot_of(&self, place: RecordPlace) -> usize {
        mix(&[u64::from(place.server), place.index]) as usize & (self.slots.len() - 1)
    }
}
