//! The summary of a trace: its requests by operation, its keys, its lengths and its times, computed in bounded
//! memory.

use super::KEYS_EXACT_MAX;
use super::arrivals::Resolution;
use super::counts::ValueCounts;
use super::key_count::KeyCount;
use crate::trace::row::Row;
use pummel_logic::protocol::Verb;
use pummel_logic::time::{Nanos, SECOND};

/// The figures in the summary of a trace.
#[derive(Clone, Debug)]
pub struct Stat {
    /// Number of requests of each operation, in the order of [`Verb::ALL`]; a row that stands for several requests
    /// counts as that many.
    pub by_verb: [u64; Verb::COUNT],
    /// The time of the first row and the latest time of a row; `None` without rows.
    pub span: Option<(Nanos, Nanos)>,
    /// Number of rows that are earlier than a row before them.
    pub out_of_order: u64,
    /// Number of reads that missed when the trace was recorded.
    pub missed: u64,
    /// Number of reads and stores whose value has an unknown length, without the reads that missed.
    pub sizes_unknown: u64,
    /// Lengths of keys in bytes, one for each request.
    pub key_bytes: ValueCounts,
    /// Known lengths of values in bytes, one for each request.
    pub value_bytes: ValueCounts,
    /// TTLs of stores in seconds, without stores that have none.
    pub ttl_s: ValueCounts,
    /// Number of requests in the busiest second. A row that is earlier than a row before it counts as made at the
    /// latest time so far.
    pub peak_second: u64,
    /// Whether a row names its client.
    pub has_clients: bool,
    keys: KeyCount,
    clients: KeyCount,
    second: (Nanos, u64),
    resolution: Resolution,
}

impl Default for Stat {
    fn default() -> Stat {
        Stat {
            by_verb: [0; Verb::COUNT],
            span: None,
            out_of_order: 0,
            missed: 0,
            sizes_unknown: 0,
            key_bytes: ValueCounts::default(),
            value_bytes: ValueCounts::default(),
            ttl_s: ValueCounts::default(),
            peak_second: 0,
            has_clients: false,
            keys: KeyCount::new(KEYS_EXACT_MAX),
            clients: KeyCount::new(KEYS_EXACT_MAX),
            second: (0, 0),
            resolution: Resolution::default(),
        }
    }
}

impl Stat {
    /// Adds a row to the summary.
    pub fn take(&mut self, row: &Row<'_>) {
        let count = u64::from(row.count);
        self.by_verb[row.verb as usize] += count;
        let (first, last) = self.span.unwrap_or((row.at_ns, row.at_ns));
        self.out_of_order += u64::from(row.at_ns < last);
        let at_ns = row.at_ns.max(last);
        self.span = Some((first, at_ns));
        self.missed += if row.missed { count } else { 0 };
        self.key_bytes.add(row.key_bytes.into(), count as f64);
        match row.known_value_bytes() {
            Some(bytes) => self.value_bytes.add(bytes.into(), count as f64),
            None if row.missed => {}
            None if row.verb.reads() || row.stores() => self.sizes_unknown += count,
            None => {}
        }
        if row.stores() && row.ttl_s > 0 {
            self.ttl_s.add(row.ttl_s.into(), count as f64);
        }
        let second = at_ns / SECOND;
        if second != self.second.0 {
            self.second = (second, 0);
        }
        self.second.1 += count;
        self.peak_second = self.peak_second.max(self.second.1);
        self.resolution.take(row.resolution_ns.into(), count);
        self.keys.note(row.key_hash());
        if let Some(client) = row.client {
            self.has_clients = true;
            self.clients.note(pummel_logic::rng::scramble(client));
        }
    }

    /// Whether most times are whole seconds, as in a fit of the trace.
    pub fn whole_seconds(&self) -> bool {
        self.resolution.ns() == SECOND
    }

    /// The length of the trace in nanoseconds, from the first row to the latest one; if times are whole seconds, up to the
    /// end of the last second. `None` if no row has a time other than 0, or all have the same exact time.
    pub fn length_ns(&self) -> Option<Nanos> {
        let (first, last) = self.span.filter(|(_, last)| *last > 0)?;
        let last_second_ns = if self.whole_seconds() { SECOND } else { 0 };
        Some((last - first).saturating_add(last_second_ns)).filter(|length_ns| *length_ns > 0)
    }

    /// Number of all requests.
    pub fn requests(&self) -> u64 {
        self.by_verb.iter().sum()
    }

    /// Number of different keys, and whether it is exact: up to [`KEYS_EXACT_MAX`] keys are counted, and the number
    /// of more keys is estimated from a sample, the same that a fit takes.
    pub fn keys(&self) -> (u64, bool) {
        (self.keys.count(), self.keys.is_exact())
    }

    /// Number of different clients, and whether it is exact, as for [`Stat::keys`].
    pub fn clients(&self) -> (u64, bool) {
        (self.clients.count(), self.clients.is_exact())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::Fitter;

    fn stat_of(rows: &[Row<'_>]) -> Stat {
        let mut stat = Stat::default();
        rows.iter().for_each(|row| stat.take(row));
        stat
    }

    #[test]
    fn lengths_are_those_of_values_and_neither_of_deletes_nor_of_buckets() {
        let store = Row { verb: Verb::Set, value_bytes: Some(7_201), ttl_s: 7_200, ..Row::read(b"a") };
        let delete = Row { verb: Verb::Delete, value_bytes: Some(0), count: 9, ..Row::read(b"a") };
        let missed = Row { missed: true, ..Row::read(b"b") };
        let stat = stat_of(&[store, delete, missed, Row { value_bytes: Some(14), missed: true, ..missed }]);
        assert_eq!((stat.value_bytes.total(), stat.value_bytes.mean()), (2.0, 7_215.0 / 2.0));
        assert_eq!((stat.value_bytes.quantile(0.99), stat.ttl_s.quantile(0.5)), (7_201, 7_200));
        assert_eq!((stat.requests(), stat.missed, stat.sizes_unknown), (12, 2, 0));
        let unknown =
            stat_of(&[Row { count: 3, ..Row::read(b"a") }, Row { verb: Verb::Touch, ..Row::read(b"a") }]);
        assert_eq!((unknown.sizes_unknown, unknown.value_bytes.total()), (3, 0.0));
    }

    #[test]
    fn a_row_that_is_late_counts_as_made_at_the_time_of_the_row_before_it() {
        let at = |second: u64| Row { at_ns: second * SECOND, ..Row::read(b"a") }.within_second();
        let stat = stat_of(&[1, 1, 1, 0, 1, 1, 2].map(at));
        assert_eq!((stat.peak_second, stat.out_of_order, stat.length_ns()), (6, 1, Some(2 * SECOND)));
        let in_order = stat_of(&[1, 1, 2, 2, 2, 3].map(at));
        assert_eq!((in_order.peak_second, in_order.out_of_order), (3, 0));
    }

    #[test]
    fn keys_are_as_many_as_those_of_a_fit() {
        let keys: Vec<[u8; 8]> = (0..50_000u64).map(u64::to_le_bytes).collect();
        let (mut stat, mut fitter) = (Stat::default(), Fitter::default());
        for key in keys.iter().chain(&keys) {
            let row = Row { client: Some(u64::from(key[0])), ..Row::read(key) };
            stat.take(&row);
            fitter.take(&row);
        }
        let fit = fitter.end();
        assert_eq!((stat.keys(), stat.clients()), ((50_000, true), (256, true)));
        assert_eq!(fit.keys, 50_000.0);
        // Where only a sample is kept, it is the same one.
        let (mut count, mut fitter) = (KeyCount::new(4_096), Fitter::with_keys_max(4_096));
        for key in &keys {
            let row = Row::read(key);
            count.note(row.key_hash());
            fitter.take(&row);
        }
        assert_eq!(count.count() as f64, fitter.end().keys);
        assert!(!count.is_exact());
    }
}
