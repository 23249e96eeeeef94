//! The kinds of records, and the ranges of their indexes.

/// The purpose of a record; each kind has its own range of indexes, so that every operation finds a value that it can
/// work on and every reply can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Read, stored, removed and touched.
    Plain,
    /// Appended and prepended to: whole frames in any order.
    Pieces,
    /// Counted up and down: digits, then spaces.
    Counters,
    /// Records that are hashes with one field (RESP).
    Hashes,
    /// Records that the commands of a template work on (RESP).
    Commands,
}

impl Space {
    /// Every space, in the order of their indexes. `ALL[s as usize] == s`.
    pub const ALL: [Space; 5] =
        [Space::Plain, Space::Pieces, Space::Counters, Space::Hashes, Space::Commands];

    /// Number of spaces.
    pub const COUNT: usize = Space::ALL.len();
}

/// The ranges of indexes of all spaces, each as long as there are records: plain records begin at 0, and the other spaces
/// follow in the order of [`Space::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spaces {
    records: u64,
}

impl Spaces {
    /// The spaces for so many records.
    ///
    /// # Panics
    /// Panics when `records` is not 1 to 2^40, the bounds that the Plan states.
    pub fn new(records: u64) -> Spaces {
        assert!((1..=1 << 40).contains(&records), "a plan has 1 to 2^40 records");
        Spaces { records }
    }

    /// Number of records in each space.
    pub fn records(self) -> u64 {
        self.records
    }

    /// The index of a space's record.
    #[inline]
    pub fn index(self, space: Space, record: u64) -> u64 {
        debug_assert!(record < self.records);
        space as u64 * self.records + record
    }

    /// The space that an index lies in.
    #[inline]
    pub fn space(self, index: u64) -> Space {
        // Nearly all are plain, and a comparison costs less than a division.
        if index < self.records { Space::Plain } else { self.space_behind(index) }
    }

    /// The space that an index behind the plain records lies in. Keys that are no records stand for plain ones.
    fn space_behind(self, index: u64) -> Space {
        Space::ALL.get((index / self.records) as usize).copied().unwrap_or(Space::Plain)
    }

    /// The number in its space of the record with this index.
    #[inline]
    pub fn record(self, index: u64) -> u64 {
        index % self.records
    }

    /// The first number that is no index.
    pub fn end(self) -> u64 {
        Space::COUNT as u64 * self.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_lie_one_behind_the_other() {
        let spaces = Spaces::new(100);
        let firsts = [0, 100, 200, 300, 400];
        for (space, first) in Space::ALL.into_iter().zip(firsts) {
            for record in [0, 1, 99] {
                assert_eq!(spaces.index(space, record), first + record);
                assert_eq!(spaces.space(first + record), space);
                assert_eq!(spaces.record(first + record), record);
            }
        }
        assert_eq!(spaces.end(), 500);
    }
}
