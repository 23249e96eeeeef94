//! The counts of a cache as its clients see it: misses by cause, bytes found, and stores.

crate::counters! {
    /// Counts of keys that were read, by their outcome, and of the bytes of their values.
    #[serde(default)]
    pub struct CacheCounts {
        /// Missed keys that were never stored: fresh keys, and keys new by churn or by a flash crowd that the
        /// thread has neither stored nor found. Exact with one thread and no agents; with several, a new key
        /// that another thread stored and the server lost counts here too.
        pub first_touch: u64,
        /// Missed keys that do not exist (`--absent`).
        pub absent: u64,
        /// Missed keys whose last store by the same thread had outlived its `--ttl`; over memcached's protocols
        /// from one second before its end, since memcached counts whole seconds.
        pub expired: u64,
        /// All other misses: evicted, deleted, never loaded, or stored by another thread or by the load before
        /// the run. Each thread knows up to 393,216 keys of its own; misses of keys beyond them count here.
        pub other: u64,
        /// Bytes of the values that reads found.
        pub hit_bytes: u64,
        /// Bytes of the values that a store of the missed keys has; keys that do not exist have none.
        pub missed_bytes: u64,
        /// Bytes of the values whose stores were acknowledged.
        pub stored_bytes: u64,
        /// Stores of missed keys that were completed.
        pub fills: u64,
        /// Fills that found the key already stored, which only `--fill add` shows.
        pub duplicate_fills: u64,
    }
}

/// Why a key was missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissCause {
    /// The key was never stored.
    FirstTouch,
    /// The key does not exist.
    Absent,
    /// The worker's last store of the key had outlived its expiry.
    Expired,
    /// The cause is not known.
    Other,
}

impl CacheCounts {
    /// Missed keys of all causes.
    pub fn misses(&self) -> u64 {
        self.first_touch + self.absent + self.expired + self.other
    }

    /// Missed keys by their causes, with the names of the causes.
    pub fn by_cause(&self) -> [(&'static str, u64); 4] {
        [
            ("first_touch", self.first_touch),
            ("absent", self.absent),
            ("expired", self.expired),
            ("other", self.other),
        ]
    }

    /// The share of the bytes asked for that were found, 0 to 1; `None` where none were asked for, and where keys were that do not
    /// exist: those have no bytes.
    pub fn hit_share_of_bytes(&self) -> Option<f64> {
        let asked = self.hit_bytes + self.missed_bytes;
        (asked > 0 && self.absent == 0).then(|| self.hit_bytes as f64 / asked as f64)
    }

    /// Counts a missed key whose value has so many bytes.
    pub(crate) fn miss(&mut self, cause: MissCause, bytes: u64) {
        let count = match cause {
            MissCause::FirstTouch => &mut self.first_touch,
            MissCause::Absent => &mut self.absent,
            MissCause::Expired => &mut self.expired,
            MissCause::Other => &mut self.other,
        };
        *count += 1;
        self.missed_bytes += if cause == MissCause::Absent { 0 } else { bytes };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_miss_has_one_cause_and_keys_that_do_not_exist_have_no_bytes() {
        let mut counts = CacheCounts::default();
        assert!(counts.is_zero() && counts.hit_share_of_bytes().is_none());
        for cause in [MissCause::FirstTouch, MissCause::Absent, MissCause::Expired, MissCause::Other] {
            counts.miss(cause, 100);
        }
        counts.hit_bytes = 900;
        assert_eq!((counts.misses(), counts.missed_bytes), (4, 300));
        assert!(counts.by_cause().iter().all(|(_, count)| *count == 1));
        assert_eq!(counts.hit_share_of_bytes(), None, "keys that do not exist were asked for");
        counts.absent = 0;
        assert_eq!(counts.hit_share_of_bytes(), Some(0.75));
        let mut twice = counts;
        twice.merge(&counts);
        assert_eq!((twice.misses(), twice.hit_bytes, twice.hit_share_of_bytes()), (6, 1_800, Some(0.75)));
        twice.subtract(&counts);
        assert_eq!(twice, counts);
    }
}
