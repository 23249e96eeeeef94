//! The normal law over the records, of which what lies outside of them is left out.

use crate::dist::Dist;
use crate::rng;

/// Deviations of so many times the records leave all records equally popular, up to a part in 10^12.
const FLAT_FROM: f64 = 1e6;

/// The normal law over records, as if every draw outside of them were drawn again.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Normal {
    records: u64,
    law: Dist,
    /// The part of the law below record 0, and the part over the records.
    below: f64,
    width: f64,
    /// All records are equally popular.
    is_flat: bool,
}

impl Normal {
    /// The law with this median and this standard deviation, both in records; record r stands for the numbers from r to below r + 1.
    pub(super) fn new(records: u64, median: f64, deviation: f64) -> Normal {
        let end = records as f64;
        let part_below =
            |number: f64| libm::erfc((median - number) / deviation * std::f64::consts::FRAC_1_SQRT_2) / 2.0;
        let below = part_below(0.0);
        let width = part_below(end) - below;
        let is_flat = deviation > FLAT_FROM * end;
        Normal { records, law: Dist::Normal { mean: median, sd: deviation }, below, width, is_flat }
    }

    /// The record of 64 random bits.
    pub(super) fn record(&self, bits: u64) -> u64 {
        if self.is_flat {
            return rng::below(bits, self.records);
        }
        let number = self.law.quantile(self.below + self.width * rng::unit(bits));
        // The conversion takes what is negative by its last bits to 0.
        (number as u64).min(self.records - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    /// Counts of the records of so many draws.
    fn counts(records: u64, median: f64, deviation: f64, draws: u64) -> Vec<f64> {
        let (law, stream) = (Normal::new(records, median, deviation), Stream::from_seed(11));
        let mut counts = vec![0.0; records as usize];
        (0..draws).for_each(|i| counts[law.record(stream.draw(i)) as usize] += 1.0);
        counts
    }

    #[test]
    fn each_record_gets_its_share_of_the_law_that_is_cut_at_both_ends() {
        let draws = 400_000;
        for (records, median, deviation) in
            [(40, 20.0, 6.0), (40, 0.0, 10.0), (25, 22.5, 30.0), (7, 7.0, 1.5)]
        {
            // The integral of the density by many small steps.
            let density = |x: f64| (-(x - median) * (x - median) / (2.0 * deviation * deviation)).exp();
            let mass = |record: u64| {
                (0..1_000).map(|k| density(record as f64 + (f64::from(k) + 0.5) / 1e3)).sum::<f64>()
            };
            let all: f64 = (0..records).map(mass).sum();
            for (record, count) in counts(records, median, deviation, draws).into_iter().enumerate() {
                let expected = mass(record as u64) / all * draws as f64;
                let sd = expected.max(1.0).sqrt();
                assert!(
                    (count - expected).abs() < 5.0 * sd + 1.0,
                    "record {record}: {count}, expected {expected}"
                );
            }
        }
    }

    #[test]
    fn extreme_deviations_keep_to_the_records() {
        let narrow = counts(100, 50.5, 1e-9, 1_000);
        assert_eq!(narrow[50], 1_000.0);
        let flat = counts(10, 3.0, 1e300, 100_000);
        assert!(flat.iter().all(|count| (count - 10_000.0).abs() < 500.0), "{flat:?}");
        assert_eq!(counts(1, 0.0, 3.0, 100), [100.0]);
        assert_eq!(counts(5, 5.0, 1e-300, 100)[4], 100.0);
    }
}
