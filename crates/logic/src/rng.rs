//! Chance without state: draw i of a stream is a function of the seed, the stream's name and i.
//!
//! Any process that knows the seed can compute any draw, in any order, which is what makes a schedule the same for
//! every number of threads, agents and backends.

/// Odd constant of the SplitMix64 generator (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
/// 2014): the golden ratio in 64 bits.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Finalizer of SplitMix64 (variant 13 of Stafford's mixers): a bijection of 64-bit words with good avalanche.
#[inline]
pub fn scramble(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// Hash of a sequence of words; every word and its place counts.
#[inline]
pub fn mix(words: &[u64]) -> u64 {
    words.iter().fold(GOLDEN, |state, &word| mix_in(state, word))
}

/// The hash of a sequence of words that has the hash `state` without its last word.
#[inline]
fn mix_in(state: u64, word: u64) -> u64 {
    scramble(state.wrapping_add(GOLDEN) ^ scramble(word.wrapping_add(GOLDEN)))
}

/// The purpose of a stream of draws. Separate streams keep separate choices independent: a change of the value
/// sizes does not change the choice of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Use {
    /// Gaps between arrivals.
    Gap = 1,
    /// Choice of the operation.
    Op = 2,
    /// Choice of the key.
    Key = 3,
    /// Sizes that do not belong to a key, such as pieces to append.
    Size = 4,
    /// Times of expiry.
    Expiry = 5,
    /// Choice of the answers that are verified.
    Verify = 6,
    /// Delays and deltas.
    Extra = 7,
    /// Bursts of the rate of a group.
    Burst = 8,
}

/// The client, phase and run whose draws a stream holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOwner {
    /// Seed of the run.
    pub seed: u64,
    /// Index of the group of clients in the Plan.
    pub group: u64,
    /// Index of the phase in the Plan.
    pub phase: u64,
    /// Index of the client in its group, over all threads and agents.
    pub client: u64,
}

impl StreamOwner {
    /// The owner of the draws of this client's requests, which is client 0 where all clients draw the same.
    pub fn of_requests(self, same_draws: bool) -> StreamOwner {
        if same_draws { StreamOwner { client: 0, ..self } } else { self }
    }
}

/// A stream of draws, addressed by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    base: u64,
}

impl Stream {
    /// The stream of one owner for one purpose.
    pub fn new(owner: StreamOwner, purpose: Use) -> Stream {
        let [stream] = Stream::for_uses(owner, [purpose]);
        stream
    }

    /// The streams of one owner for these purposes.
    pub fn for_uses<const N: usize>(owner: StreamOwner, purposes: [Use; N]) -> [Stream; N] {
        let owner = mix(&[owner.seed, owner.group, owner.phase, owner.client]);
        purposes.map(|purpose| Stream { base: mix_in(owner, purpose as u64) })
    }

    /// A stream from a bare seed.
    pub fn from_seed(seed: u64) -> Stream {
        Stream { base: mix(&[seed]) }
    }

    /// Draw `i`: 64 uniform bits.
    #[inline]
    pub fn draw(&self, i: u64) -> u64 {
        scramble(self.base.wrapping_add(i.wrapping_mul(GOLDEN)))
    }

    /// Draw `i` with sub-counter `j`, for choices that may need more than one draw; `j` = 0 is [`Stream::draw`].
    #[inline]
    pub fn draw_sub(&self, i: u64, j: u64) -> u64 {
        let first = self.draw(i);
        if j == 0 { first } else { scramble(first ^ scramble(j.wrapping_mul(GOLDEN))) }
    }
}

/// 64 bits as a number in (0, 1): 53 bits of precision, neither end included.
#[inline]
pub fn unit(bits: u64) -> f64 {
    ((bits >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
}

/// 64 bits as a whole number below `bound`, by multiplication (bias below `bound` / 2^64).
#[inline]
pub fn below(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_do_not_depend_on_order() {
        let stream = Stream::from_seed(7);
        let forward: Vec<u64> = (0..100).map(|i| stream.draw(i)).collect();
        let backward: Vec<u64> = (0..100).rev().map(|i| stream.draw(i)).collect();
        assert!(forward.iter().eq(backward.iter().rev()));
    }

    #[test]
    fn streams_of_different_owners_and_uses_differ() {
        let owner = StreamOwner { seed: 1, group: 0, phase: 2, client: 3 };
        let first = Stream::new(owner, Use::Key).draw(0);
        assert_ne!(first, Stream::new(owner, Use::Op).draw(0));
        assert_ne!(first, Stream::new(StreamOwner { client: 4, ..owner }, Use::Key).draw(0));
        assert_ne!(first, Stream::new(StreamOwner { phase: 3, ..owner }, Use::Key).draw(0));
        assert_ne!(first, Stream::new(StreamOwner { seed: 2, ..owner }, Use::Key).draw(0));
        assert_ne!(first, Stream::new(StreamOwner { group: 1, ..owner }, Use::Key).draw(0));
    }

    #[test]
    fn unit_stays_inside_the_open_interval() {
        assert!(unit(0) > 0.0);
        assert!(unit(u64::MAX) < 1.0);
    }

    #[test]
    fn below_covers_its_range() {
        assert_eq!(below(0, 10), 0);
        assert_eq!(below(u64::MAX, 10), 9);
    }
}
