//! The middle, the least and the greatest of some numbers.

use serde::Serialize;

/// Middle, least and greatest of some numbers; NaN where there are none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The one in the middle, or between the two there.
    pub median: f64,
    /// Least of the numbers.
    pub min: f64,
    /// Greatest of the numbers.
    pub max: f64,
}

impl Spread {
    /// The spread of these numbers, in any order.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (values.first(), values.last()) else {
            return Spread { median: f64::NAN, min: f64::NAN, max: f64::NAN };
        };
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Spread { median: f64::midpoint(low, high), min, max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        assert_eq!(Spread::of([4.0, 1.0, 3.0, 2.0]), Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert_eq!(Spread::of([7.0]), Spread { median: 7.0, min: 7.0, max: 7.0 });
        assert!(Spread::of([]).median.is_nan());
    }
}
