//! The newest acknowledged write of each record, against which the records are read at the end of a run.
//!
//! A record may have several writers. Of two acknowledged writes the later one is known where it was sent after the other was
//! acknowledged, and where both are of one client, which takes its acknowledgements in the order of its writes. Of other writes, the
//! server may rightly hold either: the record is then *contested*, until a write is sent after all of them.

use crate::time::Nanos;
use crate::workload::value::Version;

/// Precision of the kept times, in nanoseconds.
const UNIT_NS: Nanos = 100_000;

/// Marks contested records among the times of acknowledgement.
const CONTESTED: u32 = 1 << 31;

/// Most writes with an unknown outcome that are kept.
const UNKNOWN_MAX: usize = 1 << 20;

/// The newest acknowledged write of a record; none where `acknowledged` is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Acknowledged {
    version: Version,
    /// When the write was sent, in units since the beginning of the run, rounded down.
    sent: u32,
    /// When the last of the writes that may be the newest was acknowledged, rounded up, at least 1; with the mark of contested records.
    acknowledged: u32,
}

impl Acknowledged {
    fn is_contested(self) -> bool {
        self.acknowledged & CONTESTED != 0
    }

    fn units(self) -> u32 {
        self.acknowledged & !CONTESTED
    }

    /// The writes of both, none of which need be the last of one client.
    fn joined(self, other: Acknowledged) -> Acknowledged {
        if self.acknowledged == 0 || other.sent > self.units() {
            return other;
        }
        if other.acknowledged == 0 || self.sent > other.units() {
            return self;
        }
        let newer = if other.sent > self.sent { other } else { self };
        let is_contested = self.version != other.version || self.is_contested() || other.is_contested();
        let mark = if is_contested { CONTESTED } else { 0 };
        Acknowledged { acknowledged: self.units().max(other.units()) | mark, ..newer }
    }
}

/// The acknowledged writes of the plain records of a run.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    records: Box<[Acknowledged]>,
    /// The beginning of the run.
    began: Nanos,
    /// Writes of which it is not known whether they were applied: no reply came, or an error did.
    unknown: Vec<Version>,
    /// Records whose load had such an outcome.
    unknown_loads: Vec<u64>,
    /// Writes with an unknown outcome that are not kept.
    unknown_beyond: u64,
}

/// The state of a record that was read, against its newest acknowledged write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordState {
    /// The record has the newest acknowledged write.
    Current,
    /// The record has a write that was under way together with the newest one.
    Contested,
    /// The record has a write whose outcome the run never learned.
    Newer,
    /// The record has an older value. The newest write was acknowledged at this time.
    Older(Nanos),
    /// The record is not there. Its newest write was acknowledged at this time.
    Missing(Nanos),
}

impl Ledger {
    /// A ledger of so many records, none of which was written, in a run that began at `began`.
    pub fn new(records: u64, began: Nanos) -> Ledger {
        let records = vec![Acknowledged::default(); records as usize].into();
        Ledger { records, began, ..Ledger::default() }
    }

    /// Notes that a write was acknowledged that was sent and answered at these times.
    pub fn note_stored(&mut self, record: u64, version: Version, (sent, answered): (Nanos, Nanos)) {
        let began = self.began;
        let Some(old) = self.records.get_mut(record as usize) else { return };
        let sent = (sent.saturating_sub(began) / UNIT_NS).min((CONTESTED - 2).into()) as u32;
        let answered =
            answered.saturating_sub(began).div_ceil(UNIT_NS).clamp(1, (CONTESTED - 1).into()) as u32;
        let write = Acknowledged { version, sent, acknowledged: answered };
        let follows =
            !old.is_contested() && version.writer() == old.version.writer() && version > old.version;
        *old = if follows { write } else { old.joined(write) };
    }

    /// Notes that it is not known what became of a write.
    pub fn note_unknown(&mut self, record: u64, version: Version) {
        if self.unknown.len() + self.unknown_loads.len() >= UNKNOWN_MAX {
            self.unknown_beyond += 1;
        } else if version == Version::LOADED {
            self.unknown_loads.push(record);
        } else {
            self.unknown.push(version);
        }
    }

    /// Adds the writes that other clients made.
    pub fn merge(&mut self, other: Ledger) {
        if self.records.is_empty() {
            *self = other;
            return;
        }
        for (own, other) in self.records.iter_mut().zip(&other.records) {
            *own = own.joined(*other);
        }
        self.unknown.extend(other.unknown);
        self.unknown_loads.extend(other.unknown_loads);
        self.unknown_beyond += other.unknown_beyond;
    }

    /// Makes the ledger ready for [`Ledger::judge`], when nothing is noted any more.
    pub fn close(&mut self) {
        self.unknown.sort_unstable();
        self.unknown_loads.sort_unstable();
    }

    /// Number of records with an acknowledged write.
    pub fn written(&self) -> u64 {
        self.records.iter().filter(|record| record.acknowledged != 0).count() as u64
    }

    /// Whether a record has an acknowledged write.
    #[inline]
    pub fn is_written(&self, record: u64) -> bool {
        self.records.get(record as usize).is_some_and(|record| record.acknowledged != 0)
    }

    /// Writes with an unknown outcome that were not kept, since there were too many.
    pub fn unknown_beyond(&self) -> u64 {
        self.unknown_beyond
    }

    /// The state of a record that was read, which had a value of this version or none; `None` where it has no acknowledged write.
    pub fn judge(&self, record: u64, found: Option<Version>) -> Option<RecordState> {
        let newest = self.records.get(record as usize).filter(|newest| newest.acknowledged != 0)?;
        let acknowledged = self.began.saturating_add(u64::from(newest.units()) * UNIT_NS);
        let Some(found) = found else { return Some(RecordState::Missing(acknowledged)) };
        let is_loaded = found == Version::LOADED;
        let is_unknown = match is_loaded {
            true => self.unknown_loads.binary_search(&record).is_ok(),
            false => self.unknown.binary_search(&found).is_ok(),
        };
        let is_later = found.writer() == newest.version.writer() && found > newest.version;
        Some(if found == newest.version {
            RecordState::Current
        } else if is_unknown || is_later && newest.version != Version::LOADED {
            RecordState::Newer
        } else if newest.is_contested() && !is_loaded {
            RecordState::Contested
        } else {
            RecordState::Older(acknowledged)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::memory::ACKNOWLEDGED_BYTES;
    use crate::time::MILLISECOND;

    /// A write: its writer and count, when it was sent and when it was acknowledged, in milliseconds.
    type Write = (u32, u64, Nanos, Nanos);

    const BEGAN: Nanos = 5_000 * MILLISECOND;

    fn version((writer, count): (u32, u64)) -> Version {
        if count == 0 { Version::LOADED } else { Version::new(writer, count) }
    }

    fn note(ledger: &mut Ledger, record: u64, (writer, count, sent, answered): Write) {
        let times = (BEGAN + sent * MILLISECOND, BEGAN + answered * MILLISECOND);
        ledger.note_stored(record, version((writer, count)), times);
    }

    /// The state of record 1 after these acknowledged writes, and writes with an unknown outcome, where this was found.
    fn state(writes: &[Write], unknown: &[(u32, u64)], found: Option<(u32, u64)>) -> Option<RecordState> {
        let mut ledger = Ledger::new(3, BEGAN);
        writes.iter().for_each(|&write| note(&mut ledger, 1, write));
        unknown.iter().for_each(|&lost| ledger.note_unknown(1, version(lost)));
        ledger.close();
        ledger.judge(1, found.map(version))
    }

    fn at(milliseconds: u64) -> Nanos {
        BEGAN + milliseconds * MILLISECOND
    }

    const LOADED: Write = (0, 0, 1, 2);

    #[test]
    fn a_record_is_judged_by_its_newest_acknowledged_write() {
        let (current, newer, contested) =
            (Some(RecordState::Current), Some(RecordState::Newer), Some(RecordState::Contested));
        let older = |ms| Some(RecordState::Older(at(ms)));
        let missing = |ms| Some(RecordState::Missing(at(ms)));
        type Row<'a> = (&'a [Write], &'a [(u32, u64)], Option<(u32, u64)>, Option<RecordState>);
        let rows: [Row<'_>; 20] = [
            (&[], &[], None, None),
            (&[], &[(3, 1)], Some((3, 1)), None),
            (&[LOADED], &[], Some((0, 0)), current),
            (&[LOADED], &[], None, missing(2)),
            (&[LOADED], &[], Some((3, 9)), older(2)),
            (&[LOADED], &[(3, 9)], Some((3, 9)), newer),
            (&[LOADED, (3, 9, 4, 6)], &[], Some((3, 9)), current),
            (&[LOADED, (3, 9, 4, 6)], &[], Some((0, 0)), older(6)),
            (&[LOADED, (3, 9, 4, 6)], &[(0, 0)], Some((0, 0)), newer),
            (&[LOADED, (3, 9, 4, 6)], &[], None, missing(6)),
            // Pipelined by one client.
            (&[(3, 9, 4, 6), (3, 10, 5, 7)], &[], Some((3, 10)), current),
            (&[(3, 9, 4, 6), (3, 10, 5, 7)], &[], Some((3, 9)), older(7)),
            (&[(3, 9, 4, 6), (3, 10, 5, 7)], &[], Some((3, 11)), newer),
            // A redirected write is acknowledged behind a later one.
            (&[(3, 10, 5, 7), (3, 9, 4, 8)], &[], Some((3, 9)), contested),
            // Of two clients, one after the other and together.
            (&[(3, 9, 4, 6), (4, 2, 7, 8)], &[], Some((3, 9)), older(8)),
            (&[(3, 9, 4, 6), (4, 2, 5, 8)], &[], Some((3, 9)), contested),
            (&[(3, 9, 4, 6), (4, 2, 5, 8)], &[], Some((4, 2)), current),
            (&[(3, 9, 4, 6), (4, 2, 5, 8)], &[], Some((0, 0)), older(8)),
            (&[(3, 9, 4, 6), (4, 2, 5, 8)], &[], None, missing(8)),
            // A write behind both settles it.
            (&[(3, 9, 4, 6), (4, 2, 5, 8), (3, 10, 9, 10)], &[], Some((4, 2)), older(10)),
        ];
        for (writes, unknown, found, expected) in rows {
            assert_eq!(state(writes, unknown, found), expected, "{writes:?} {unknown:?} {found:?}");
        }
    }

    #[test]
    fn a_contested_record_is_not_settled_by_a_client_that_saw_a_part_of_it() {
        let writes = [(3, 9, 4, 6), (4, 2, 5, 8), (4, 3, 7, 9)];
        assert_eq!(state(&writes, &[], Some((3, 9))), Some(RecordState::Contested));
        let settled = [(3, 9, 4, 6), (4, 2, 5, 8), (4, 3, 9, 10)];
        assert_eq!(state(&settled, &[], Some((3, 9))), Some(RecordState::Older(at(10))));
    }

    #[test]
    fn ledgers_of_several_workers_make_one_whatever_their_order() {
        let writes: [Write; 5] = [LOADED, (3, 9, 4, 6), (4, 2, 7, 8), (5, 1, 7, 9), (6, 1, 12, 13)];
        let found = [None, Some((0, 0)), Some((3, 9)), Some((4, 2)), Some((5, 1)), Some((6, 1))];
        for end in 1..=writes.len() {
            let expected: Vec<_> = found.map(|found| state(&writes[..end], &[], found)).to_vec();
            for split in 0..1 << end {
                let mut ledgers = [Ledger::new(3, BEGAN), Ledger::new(3, BEGAN)];
                for (place, &write) in writes[..end].iter().enumerate() {
                    note(&mut ledgers[split >> place & 1], 1, write);
                }
                let [one, other] = ledgers;
                let mut merged = Ledger::default();
                merged.merge(other);
                merged.merge(one);
                let states: Vec<_> = found.map(|found| merged.judge(1, found.map(version))).to_vec();
                let is_same = |(own, expected): (&Option<RecordState>, &Option<RecordState>)| {
                    let either = [Some(RecordState::Current), Some(RecordState::Contested)];
                    own == expected || either.contains(own) && either.contains(expected)
                };
                assert!(states.iter().zip(&expected).all(is_same), "{end} {split}: {states:?} {expected:?}");
                assert_eq!((merged.written(), merged.is_written(1), merged.is_written(0)), (1, true, false));
            }
        }
    }

    #[test]
    fn a_record_takes_as_much_memory_as_plans_are_told() {
        assert_eq!(size_of::<Acknowledged>() as u64, ACKNOWLEDGED_BYTES);
    }

    #[test]
    fn unknown_writes_beyond_a_bound_are_counted() {
        let mut ledger = Ledger::new(1, 0);
        (0..UNKNOWN_MAX as u64 + 3).for_each(|count| ledger.note_unknown(0, Version::new(1, count + 1)));
        assert_eq!((ledger.unknown_beyond(), ledger.unknown.len()), (3, UNKNOWN_MAX));
        ledger.note_stored(7, Version::new(1, 1), (1, 2));
        assert_eq!(ledger.written(), 0, "no record has this number");
    }
}
