//! The bytes of values behind their headers, made when they are sent and made again when they are checked.

use std::sync::Arc;

use crate::rng::{mix, scramble};

/// Length of a group in bytes.
pub const GROUP_BYTES: usize = 64;

/// Bytes that are made in one step.
pub type Group = [u8; GROUP_BYTES];

/// Groups of the block: 16 KiB, which stay in the nearest cache of a processor beside what a worker touches.
const BLOCK_GROUPS: usize = 256;

/// Groups that are made at once to be compared.
const CHECKED_GROUPS: usize = 16;

/// Groups until the lengths of their random parts come again.
const MASKS: usize = 4;

/// Least and greatest ratio to which compressors bring values.
pub const RATIOS: std::ops::RangeInclusive<f64> = 1.0..=10.0;

/// Bytes that lz4 and gzip write on average for each group beside its random bytes: where it is, and how far the zeros reach.
const GROUP_COST_BYTES: f64 = 4.0;

/// The bytes of all bodies of one data seed. A body is a function of the data seed, the body's own seed and the place in it, so
/// that any process makes the same one, from any place on.
///
/// A body goes round in a block of random bytes, from a group of its own on. Each word of 64 bits of a group is combined by exclusive
/// or with a number that is drawn for the body and the lap, and grows from group to group by a step that is drawn too. Any two
/// bodies, and any two laps of one, meet a group with different numbers, so that no bytes come again. That costs about as much as a
/// copy of the block. In values that are to be compressed, the end of each group is zeros.
#[derive(Clone, Debug)]
pub struct Bodies {
    block: Arc<[Group; BLOCK_GROUPS]>,
    /// The form of bytes that are not all random.
    form: Option<Form>,
}

/// The form of bodies whose bytes are not all random.
#[derive(Clone, Debug)]
enum Form {
    /// The bits that are random, of [`MASKS`] groups one after the other, where the others are 0.
    Masked(Arc<[Group; MASKS]>),
    /// All bytes are this one.
    Filled(u8),
}

impl Bodies {
    /// The bodies of this seed, which compressors bring to about `ratio` : 1; draws the block.
    pub fn new(seed: u64, ratio: f64) -> Bodies {
        let mut block = Box::new([[0; GROUP_BYTES]; BLOCK_GROUPS]);
        for (at, word) in block.as_flattened_mut().as_chunks_mut().0.iter_mut().enumerate() {
            *word = mix(&[seed, at as u64]).to_le_bytes();
        }
        let form = (ratio > *RATIOS.start()).then(|| Form::Masked(Arc::new(masks(ratio))));
        Bodies { block: Arc::from(block), form }
    }

    /// Bodies all of whose bytes are this one, if it is one.
    pub fn filled_with(self, filler: Option<u8>) -> Bodies {
        match filler {
            Some(byte) => Bodies { form: Some(Form::Filled(byte)), ..self },
            None => self,
        }
    }

    /// Fills in groups of the body with this seed, which is a hash, from group `first` on.
    #[inline(never)]
    pub fn fill(&self, seed: u64, first: u64, mut groups: &mut [Group]) {
        if let Some(Form::Filled(byte)) = &self.form {
            return groups.fill([*byte; GROUP_BYTES]);
        }
        let begin = (seed >> 32) % BLOCK_GROUPS as u64 + first;
        let (mut lap, mut at) = (begin / BLOCK_GROUPS as u64, (begin % BLOCK_GROUPS as u64) as usize);
        let mut mask = first as usize;
        while !groups.is_empty() {
            let (now, later) = groups.split_at_mut(groups.len().min(BLOCK_GROUPS - at));
            let drawn = scramble(seed ^ lap);
            let step = drawn.rotate_left(32) | 1;
            let mut number = drawn.wrapping_add(step.wrapping_mul(at as u64));
            for (group, random) in now.iter_mut().zip(&self.block[at..]) {
                *group = of_words(|word| word_of(random, word) ^ number);
                number = number.wrapping_add(step);
            }
            if let Some(Form::Masked(masks)) = &self.form {
                for group in now {
                    let bits = &masks[mask % MASKS];
                    *group = of_words(|word| word_of(group, word) & word_of(bits, word));
                    mask = mask.wrapping_add(1);
                }
            }
            (lap, at, groups) = (lap + 1, 0, later);
        }
    }

    /// Adds the first `len_bytes` bytes of the body with this seed.
    #[inline]
    pub fn append(&self, seed: u64, len_bytes: usize, to: &mut Vec<u8>) {
        let begin = to.len();
        to.resize(begin + len_bytes.next_multiple_of(GROUP_BYTES), 0);
        self.fill(seed, 0, to[begin..].as_chunks_mut().0);
        to.truncate(begin + len_bytes);
    }

    /// Whether `bytes` are those of the body with this seed from place `at` on.
    pub fn reads(&self, seed: u64, at: u64, mut bytes: &[u8]) -> bool {
        let mut room = [[0; GROUP_BYTES]; CHECKED_GROUPS];
        let (mut group, mut passed) = (at / GROUP_BYTES as u64, (at % GROUP_BYTES as u64) as usize);
        while !bytes.is_empty() {
            let count = (passed + bytes.len()).div_ceil(GROUP_BYTES).min(CHECKED_GROUPS);
            self.fill(seed, group, &mut room[..count]);
            let (now, later) = bytes.split_at(bytes.len().min(count * GROUP_BYTES - passed));
            if !room.as_flattened()[passed..].starts_with(now) {
                return false;
            }
            (group, passed, bytes) = (group + count as u64, 0, later);
        }
        true
    }
}

/// Word `at` of a group.
#[inline(always)]
fn word_of(group: &Group, at: usize) -> u64 {
    u64::from_le_bytes(group.as_chunks().0[at])
}

/// The group whose words `word` returns.
#[inline(always)]
fn of_words(word: impl Fn(usize) -> u64) -> Group {
    let mut made = [0; GROUP_BYTES];
    for (at, bytes) in made.as_chunks_mut().0.iter_mut().enumerate() {
        *bytes = word(at).to_le_bytes();
    }
    made
}

/// The bits of random bytes in groups that compressors bring to about `ratio` : 1.
fn masks(ratio: f64) -> [Group; MASKS] {
    let random = (GROUP_BYTES as f64 / ratio - GROUP_COST_BYTES) * MASKS as f64;
    let random_bytes = libm::round(random).clamp(0.0, (MASKS * GROUP_BYTES) as f64) as usize;
    std::array::from_fn(|at| {
        let count = random_bytes * (at + 1) / MASKS - random_bytes * at / MASKS;
        std::array::from_fn(|byte| if byte < count { u8::MAX } else { 0 })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::*;

    fn body(bodies: &Bodies, seed: u64, len_bytes: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        bodies.append(seed, len_bytes, &mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn a_body_reads_the_same_from_any_place_on(
            seed in any::<u64>(),
            from in 0usize..40_000,
            len in 0usize..20_000,
            ratio in 1.0..10.0,
        ) {
            let bodies = Bodies::new(3, ratio);
            let whole = body(&bodies, seed, from + len);
            prop_assert!(bodies.reads(seed, from as u64, &whole[from..]));
            let (first, count) = (from / GROUP_BYTES, len.div_ceil(GROUP_BYTES));
            let mut groups = vec![[0; GROUP_BYTES]; count + 1];
            bodies.fill(seed, first as u64, &mut groups);
            let filled = &groups.as_flattened()[from % GROUP_BYTES..];
            prop_assert!(filled[..len] == whole[from..]);
        }
    }

    #[test]
    fn every_changed_byte_is_seen_at_every_place_and_length() {
        let bodies = Bodies::new(3, 1.0);
        let whole = body(&bodies, 77, 300);
        for from in [0, 1, 63, 64, 65, 100] {
            for len in [0, 1, 62, 63, 64, 65, 129, 200] {
                let mut bytes = whole[from..from + len].to_vec();
                assert!(bodies.reads(77, from as u64, &bytes), "{len} bytes from {from}");
                assert!(len < 8 || !bodies.reads(78, from as u64, &bytes), "another body");
                assert!(len < 8 || !bodies.reads(77, from as u64 + 1, &bytes), "another place");
                for at in 0..len {
                    bytes[at] ^= 0x10;
                    assert!(!bodies.reads(77, from as u64, &bytes), "byte {at} of {len} from {from}");
                    bytes[at] ^= 0x10;
                }
            }
        }
    }

    #[test]
    fn no_eight_bytes_come_again_in_many_bodies_and_in_a_long_one() {
        let bodies = Bodies::new(3, 1.0);
        let mut bytes = body(&bodies, mix(&[1_000]), 1 << 20);
        for seed in 0..1_000 {
            bodies.append(mix(&[seed]), 4_072, &mut bytes);
        }
        let mut words: Vec<&[u8; 8]> = bytes.as_chunks().0.iter().collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
    }

    #[test]
    fn laps_of_a_long_body_have_no_more_bytes_in_common_than_chance_has() {
        let bytes = body(&Bodies::new(3, 1.0), mix(&[1]), 1 << 20);
        let lap = BLOCK_GROUPS * GROUP_BYTES;
        for laps in [1, 2, 16] {
            let same = |at: usize| {
                let pairs = bytes[at..].iter().zip(&bytes[at + laps * lap..]).step_by(8);
                pairs.filter(|(one, other)| one == other).count() as f64 / (bytes.len() - laps * lap) as f64
                    * 8.0
            };
            assert!((0..8).all(|at| same(at) < 0.006), "1 of 256 would be 0.004");
        }
    }

    #[test]
    fn bytes_are_as_often_each_of_their_values_at_each_place_of_a_group() {
        let bodies = Bodies::new(3, 1.0);
        let mut counts = vec![[0u32; 256]; GROUP_BYTES];
        for seed in 0..100 {
            for group in body(&bodies, mix(&[seed]), 256 * GROUP_BYTES).as_chunks::<GROUP_BYTES>().0 {
                group.iter().zip(&mut counts).for_each(|(&byte, counts)| counts[usize::from(byte)] += 1);
            }
        }
        // 25,600 draws: 100 of each value, give or take six standard deviations.
        assert!(counts.iter().flatten().all(|count| (40..160).contains(count)));
    }

    #[test]
    fn of_bodies_that_compress_so_many_bytes_are_random() {
        for (ratio, random_bytes) in [(1.0, 256), (2.0, 112), (4.0, 48), (3.0, 69), (10.0, 10)] {
            let bytes = body(&Bodies::new(3, ratio), 5, 256_000);
            let zeros = bytes.iter().filter(|&&byte| byte == 0).count() as f64 / 1_000.0;
            let expected = 256.0 - random_bytes as f64 * 255.0 / 256.0;
            assert!((zeros - expected).abs() < 0.2, "{ratio} : 1 has {zeros} zeros of 256 bytes");
        }
    }
}
