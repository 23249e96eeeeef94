//! The number of different keys, in bounded memory.

/// Bits of the number of registers of a count of different keys: 16 KiB, and an error of 0.8 % (1.04 / sqrt(2^14)).
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

    /// The state that [`DistinctKeys::to_text`] wrote; `None` for other text.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::hash::hash_bytes;

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
