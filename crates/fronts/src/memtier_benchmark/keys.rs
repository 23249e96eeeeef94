//! The records of memtier_benchmark's command line: their keys, the spread of requests over them, and their values.

use pummel_logic::dist::{Dist, Range, Weighted};
use pummel_logic::plan::{Data, KeyStyle, Popularity, Style, VALUE_CLASSES_MAX, ValueClass, ValueStyle};

use super::options::{Options, Pattern};

/// Length of a value where no option says one, in bytes.
const SIZE_BYTES: u32 = 32;

/// The byte of all values without `-R`.
const FILLER: char = 'x';

impl Options {
    /// The records.
    pub(super) fn data(&self) -> Data {
        let first_key = self.first_key();
        let (value_size, value_classes) = self.value_sizes();
        Data {
            records: (self.key_maximum - first_key).saturating_add(1),
            first_key,
            key_prefix: self.key_prefix.clone(),
            value_size,
            value_classes,
            value_filler: (!self.random_data).then_some(FILLER),
            expiry_s: match self.expiry_range.filter(|_| !self.protocol.is_resp()) {
                Some(range) => whole_numbers(range),
                None => Dist::Fixed(0.0),
            },
            style: Style {
                keys: KeyStyle::Unpadded,
                values: if self.sizes_follow_keys { ValueStyle::Stable } else { ValueStyle::Fresh },
                ..Style::default()
            },
            ..Data::default()
        }
    }

    /// The number of the first key. Zipf's law begins at 1, as its ranks do.
    fn first_key(&self) -> u64 {
        let is_zipf = self.patterns().iter().all(|pattern| *pattern == Pattern::Zipf);
        if is_zipf { self.key_minimum.max(1).min(self.key_maximum) } else { self.key_minimum }
    }

    /// The spread of requests over the records by a letter.
    pub(super) fn popularity(&self, pattern: Pattern) -> Popularity {
        let range = (self.key_maximum - self.key_minimum) as f64;
        match pattern {
            Pattern::Random => Popularity::Uniform,
            Pattern::Normal => Popularity::Normal {
                median: if self.key_median > 0.0 {
                    self.key_median - self.key_minimum as f64
                } else {
                    range / 2.0
                },
                deviation: if self.key_deviation > 0.0 { self.key_deviation } else { (range / 6.0).max(1.0) },
            },
            Pattern::Zipf => Popularity::Zipf { exponent: self.zipf_exponent },
            Pattern::Sequential => Popularity::SequentialEach,
            Pattern::Parallel => Popularity::SequentialShares,
        }
    }

    /// The lengths of values: of those behind all classes, and the classes of `--data-size-pattern S`, whose lengths rise with the keys.
    fn value_sizes(&self) -> (Dist, Vec<ValueClass>) {
        if !self.size_list.is_empty() {
            return (weighted(&self.size_list), Vec::new());
        }
        let Some((low, high)) = self.size_range else {
            let size = if self.data_size > 0 { self.data_size } else { SIZE_BYTES };
            return (Dist::Fixed(size.into()), Vec::new());
        };
        if !self.sizes_follow_keys {
            return (whole_numbers((low, high)), Vec::new());
        }
        let steps = VALUE_CLASSES_MAX as u64 + 1;
        let edge = |step: u64| f64::from(low) + f64::from(high - low) * step as f64 / steps as f64;
        let sizes = |step: u64| Dist::Uniform { low: edge(step), high: edge(step + 1) };
        let class =
            |step: u64| ValueClass { until: (step + 1) as f64 / steps as f64, value_size: sizes(step) };
        (sizes(steps - 1), (0..steps - 1).map(class).collect())
    }

    /// Mean length of a key in bytes, where all are as likely.
    pub(super) fn mean_key_bytes(&self) -> f64 {
        let (first, last) = (self.key_minimum, self.key_maximum);
        let mut digits = 0.0;
        let (mut least, mut count) = (0_u64, 1);
        loop {
            let most = 10_u64.checked_pow(count).map_or(u64::MAX, |end| end - 1);
            let (low, high) = (least.max(first), most.min(last));
            if low <= high {
                digits += f64::from(count) * ((high - low) as f64 + 1.0);
            }
            if most >= last {
                break;
            }
            (least, count) = (most + 1, count + 1);
        }
        self.key_prefix.len() as f64 + digits / ((last - first) as f64 + 1.0)
    }

    /// Mean length of a value in bytes.
    pub(super) fn mean_value_bytes(&self) -> f64 {
        let (rest, classes) = self.value_sizes();
        let all = classes.iter().map(|class| &class.value_size).chain([&rest]);
        all.map(Dist::mean).sum::<f64>() / (classes.len() + 1) as f64
    }
}

/// All whole numbers of a range, its ends among them, each as likely.
fn whole_numbers((low, high): (u32, u32)) -> Dist {
    of_ranges([Range { low: low.into(), high: high.into(), weight: 1.0 }].into())
}

/// Sizes by their weights.
fn weighted(list: &[(u32, u32)]) -> Dist {
    let range =
        |&(size, weight): &(u32, u32)| Range { low: size.into(), high: size.into(), weight: weight.into() };
    of_ranges(list.iter().map(range).filter(|range| range.weight > 0.0).collect())
}

fn of_ranges(ranges: Vec<Range>) -> Dist {
    Dist::Weighted(Weighted::new(ranges).expect("ranges of 32 bits with weights above 0 are a distribution"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_length_of_a_key_counts_the_numbers_of_each_length() {
        let options = |key_minimum, key_maximum| Options {
            key_prefix: "k".to_owned(),
            key_minimum,
            key_maximum,
            ..Options::default()
        };
        assert_eq!(options(0, 9).mean_key_bytes(), 2.0);
        assert_eq!(options(0, 99).mean_key_bytes(), 1.0 + (10.0 + 180.0) / 100.0);
        assert_eq!(options(5, 14).mean_key_bytes(), 2.5);
        assert_eq!(options(0, u64::MAX / 2).mean_key_bytes().floor(), 19.0);
    }

    #[test]
    fn sizes_that_follow_keys_rise_in_steps_from_the_least_to_the_greatest() {
        let options =
            Options { size_range: Some((100, 1_800)), sizes_follow_keys: true, ..Options::default() };
        let (rest, classes) = options.value_sizes();
        assert_eq!(classes.len(), VALUE_CLASSES_MAX);
        assert_eq!(classes[0].value_size, Dist::Uniform { low: 100.0, high: 200.0 });
        assert_eq!(rest, Dist::Uniform { low: 1_700.0, high: 1_800.0 });
    }

    #[test]
    fn sizes_of_a_list_have_the_shares_of_their_weights() {
        let mean = weighted(&[(100, 3), (500, 1), (9, 0)]).mean();
        assert!((mean - 200.0).abs() < 1e-9, "{mean}");
        assert_eq!(weighted(&[(64, 7)]).mean(), 64.0);
    }
}
