//! The exact figures of a histogram: count, least, greatest, sum and sum of squares.

use serde::{Deserialize, Serialize};

use pummel_logic::time::Nanos;

/// The exact figures of a histogram. All are zero but for `min` when nothing was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moments {
    /// Number of values.
    pub count: u64,
    /// The least value; `u64::MAX` when there is none.
    pub min: Nanos,
    /// The greatest value.
    pub max: Nanos,
    /// Sum of the values.
    #[serde(with = "wide")]
    pub sum: u128,
    /// Sum of the squares of the values.
    #[serde(with = "wide")]
    pub sum_squares: u128,
}

impl Moments {
    /// Mean in nanoseconds; `None` when there is no value.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Standard deviation of these values (not an estimate for others) in nanoseconds; `None` when there is no value.
    pub fn stddev_ns(&self) -> Option<f64> {
        let mean = self.mean_ns()?;
        let count = u128::from(self.count);
        // Exact in whole numbers where they fit, because the difference of two large means would lose every digit.
        let spread = match (self.sum_squares.checked_mul(count), self.sum.checked_mul(self.sum)) {
            (Some(squares), Some(square)) => {
                squares.saturating_sub(square) as f64 / (count as f64 * count as f64)
            }
            _ => self.sum_squares as f64 / count as f64 - mean * mean,
        };
        Some(libm::sqrt(spread.max(0.0)))
    }

    /// Adds a value.
    pub fn record(&mut self, value: u64) {
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u128::from(value);
        self.sum_squares = self.sum_squares.saturating_add(u128::from(value) * u128::from(value));
    }

    /// Adds the values that `other` is about.
    pub fn merge(&mut self, other: &Moments) {
        self.count = self.count.saturating_add(other.count);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
        self.sum_squares = self.sum_squares.saturating_add(other.sum_squares);
    }
}

impl Default for Moments {
    fn default() -> Moments {
        Moments { count: 0, min: u64::MAX, max: 0, sum: 0, sum_squares: 0 }
    }
}

/// Whole numbers of 128 bits as decimal text, since not every data format and reader has numbers of that size.
pub(crate) mod wide {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
