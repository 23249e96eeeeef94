//! The summary of a trace: its requests by operation, its keys, its lengths and its times, in bounded memory.

use crate::measure::histogram::Histogram;
use crate::protocol::Verb;
use crate::time::{Nanos, SECOND};
use crate::trace::row::Row;

/// Counts of different keys are of so many registers: 16 KiB, and an error of 0.8 % (1.04 / sqrt(2^14)).
const REGISTERS_BITS: u32 = 14;

/// The greatest value of a register: one more than the bits of a hash that do not choose it.
const RANK_MAX: u8 = 64 - REGISTERS_BITS as u8 + 1;

/// An estimate of the number of different keys, to about 1 % (HyperLogLog: Flajolet et al., 2007, with the small range
/// correction).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistinctKeys {
    registers: Vec<u8>,
}

impl Default for DistinctKeys {
    fn default() -> DistinctKeys {
        DistinctKeys { registers: vec![0; 1 << REGISTERS_BITS] }
    }
}

impl DistinctKeys {
    /// Notes a key by its hash.
    #[inline]
    pub fn note(&mut self, hash: u64) {
        let register = (hash >> (64 - REGISTERS_BITS)) as usize;
        let rank = ((hash << REGISTERS_BITS) | 1 << (REGISTERS_BITS - 1)).leading_zeros() as u8 + 1;
        self.registers[register] = self.registers[register].max(rank);
    }

    /// Adds the keys of another estimate.
    pub fn merge(&mut self, other: &DistinctKeys) {
        for (register, rank) in self.registers.iter_mut().zip(&other.registers) {
            *register = (*register).max(*rank);
        }
    }

    /// The state as text of one character for each register.
    pub fn to_text(&self) -> String {
        self.registers.iter().map(|rank| char::from(b'0' + rank)).collect()
    }

    /// The state that [`DistinctKeys::to_text`] wrote; `None` where it is none.
    pub fn of_text(text: &str) -> Option<DistinctKeys> {
        let ranks = b'0'..=b'0' + RANK_MAX;
        let is_whole = text.len() == 1 << REGISTERS_BITS && text.bytes().all(|rank| ranks.contains(&rank));
        is_whole.then(|| DistinctKeys { registers: text.bytes().map(|rank| rank - b'0').collect() })
    }

    /// The number of different keys.
    pub fn estimate(&self) -> u64 {
        let count = self.registers.len() as f64;
        let sum: f64 = self.registers.iter().map(|&rank| 0.5f64.powi(rank.into())).sum();
        let raw = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        let zeros = self.registers.iter().filter(|&&rank| rank == 0).count();
        if raw <= 2.5 * count && zeros > 0 {
            return (count * libm::log(count / zeros as f64)).round() as u64;
        }
        raw.round() as u64
    }
}

/// The figures of a trace.
#[derive(Clone, Debug)]
pub struct Stat {
    /// Requests by operation, in the order of [`Verb::ALL`]; a row that stands for several counts as several.
    pub by_verb: [u64; Verb::COUNT],
    /// The time of the first row, and the greatest one.
    pub span: Option<(Nanos, Nanos)>,
    /// Rows that are earlier than the one before.
    pub out_of_order: u64,
    /// Reads that missed when they were recorded.
    pub missed: u64,
    /// Requests of values whose length is not known.
    pub sizes_unknown: u64,
    /// Lengths of keys in bytes, by request.
    pub key_bytes: Histogram,
    /// Known lengths of values in bytes, by request.
    pub value_bytes: Histogram,
    /// TTLs of stores in seconds, where there are some.
    pub ttl_s: Histogram,
    /// Requests of the busiest second.
    pub peak_second: u64,
    /// Whether rows name their client.
    pub has_clients: bool,
    /// Whether all times are whole seconds.
    pub whole_seconds: bool,
    keys: DistinctKeys,
    clients: DistinctKeys,
    second: (Nanos, u64),
}

impl Default for Stat {
    fn default() -> Stat {
        Stat {
            by_verb: [0; Verb::COUNT],
            span: None,
            out_of_order: 0,
            missed: 0,
            sizes_unknown: 0,
            key_bytes: Histogram::new(),
            value_bytes: Histogram::new(),
            ttl_s: Histogram::new(),
            peak_second: 0,
            has_clients: false,
            whole_seconds: true,
            keys: DistinctKeys::default(),
            clients: DistinctKeys::default(),
            second: (0, 0),
        }
    }
}

impl Stat {
    /// Takes in a row.
    pub fn take(&mut self, row: &Row<'_>) {
        let count = u64::from(row.count);
        self.by_verb[row.verb as usize] += count;
        let (first, last) = self.span.unwrap_or((row.at_ns, row.at_ns));
        self.out_of_order += u64::from(row.at_ns < last);
        self.span = Some((first, last.max(row.at_ns)));
        self.missed += if row.missed { count } else { 0 };
        self.key_bytes.record_many(row.key_bytes.into(), count);
        match row.value_bytes {
            Some(bytes) => self.value_bytes.record_many(bytes.into(), count),
            None => self.sizes_unknown += count,
        }
        if row.stores() && row.ttl_s > 0 {
            self.ttl_s.record_many(row.ttl_s.into(), count);
        }
        let second = row.at_ns / SECOND;
        if second != self.second.0 {
            self.second = (second, 0);
        }
        self.second.1 += count;
        self.peak_second = self.peak_second.max(self.second.1);
        self.whole_seconds &= u64::from(row.resolution_ns) == SECOND;
        self.keys.note(row.key_hash());
        if let Some(client) = row.client {
            self.has_clients = true;
            self.clients.note(crate::rng::scramble(client));
        }
    }

    /// Number of requests.
    pub fn requests(&self) -> u64 {
        self.by_verb.iter().sum()
    }

    /// Number of different keys, to about 1 %.
    pub fn keys(&self) -> u64 {
        self.keys.estimate()
    }

    /// Number of different clients, to about 1 %.
    pub fn clients(&self) -> u64 {
        self.clients.estimate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::hash::hash_bytes;

    #[test]
    fn different_keys_are_counted_to_about_one_percent() {
        for (count, most_off) in [(0u64, 0.0), (10, 0.1), (1_000, 0.03), (1_000_000, 0.03)] {
            let mut keys = DistinctKeys::default();
            for _ in 0..2 {
                (0..count).for_each(|key| keys.note(hash_bytes(&key.to_le_bytes())));
            }
            let off = (keys.estimate() as f64 - count as f64).abs();
            assert!(off <= most_off * count as f64, "{count}: {}", keys.estimate());
        }
    }

    #[test]
    fn keys_that_two_processes_asked_count_once() {
        let [mut one, mut other] = [DistinctKeys::default(), DistinctKeys::default()];
        (0..600u64).for_each(|key| one.note(hash_bytes(&key.to_le_bytes())));
        (400..1_000u64).for_each(|key| other.note(hash_bytes(&key.to_le_bytes())));
        other.note(0);
        one.merge(&DistinctKeys::of_text(&other.to_text()).expect("its own text"));
        assert!(one.estimate().abs_diff(1_000) < 20, "{}", one.estimate());
        for wrong in [String::new(), "0".repeat(9), "~".repeat(1 << 14)] {
            assert_eq!(DistinctKeys::of_text(&wrong), None);
        }
    }
}
