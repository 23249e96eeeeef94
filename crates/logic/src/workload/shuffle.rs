//! The numbers below a bound in an order that only a seed decides, without a table.

use crate::rng::mix;

/// Rounds of the network: enough for an order in which no pattern is seen.
const ROUNDS: u64 = 4;

/// An order of the numbers below a bound: a Feistel network over the next power of 4, walked on until the result is
/// below the bound (Black, Rogaway, "Ciphers with arbitrary finite domains", 2002).
#[derive(Clone, Copy, Debug)]
pub struct Shuffle {
    bound: u64,
    half_bits: u32,
    seed: u64,
}

impl Shuffle {
    /// An order of the numbers below `bound`, 1 to 2^40.
    pub fn new(seed: u64, bound: u64) -> Shuffle {
        let bits = u64::BITS - (bound - 1).leading_zeros();
        Shuffle { bound, half_bits: bits.div_ceil(2).max(1), seed }
    }

    /// The number at a place below the bound; every number has one place.
    pub fn at(&self, place: u64) -> u64 {
        let mut number = self.step(place);
        while number >= self.bound {
            number = self.step(number);
        }
        number
    }

    fn step(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ (mix(&[self.seed, round, right]) & mask));
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once_in_an_order_that_the_seed_decides() {
        for bound in [1, 2, 3, 100, 1_000, 4_096, 10_000] {
            let order =
                |seed| (0..bound).map(|place| Shuffle::new(seed, bound).at(place)).collect::<Vec<_>>();
            let mut sorted = order(1);
            sorted.sort_unstable();
            assert_eq!(sorted, (0..bound).collect::<Vec<_>>());
            assert!(bound < 100 || order(1) != order(2));
        }
    }

    #[test]
    fn the_first_nine_tenths_are_spread_over_all_numbers() {
        let shuffle = Shuffle::new(7, 10_000);
        let low = (0..9_000).filter(|&place| shuffle.at(place) < 5_000).count();
        assert!((low as f64 - 4_500.0).abs() < 5.0 * 16.0, "{low}");
    }
}
