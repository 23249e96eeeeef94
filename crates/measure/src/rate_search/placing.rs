//! The points of a curve of a quantile over the rate, which are placed where the curve bends; and a line through them that never falls.

use pummel_logic::rng::{Stream, mix};

/// Points that are made at first, at equal distances of z = -ln(1 - rate / C).
const FIRST: usize = 5;

/// Greatest of the first points, as a share of the capacity.
const FIRST_SHARE: f64 = 0.9;

/// Fewest points of a curve.
pub const POINTS_MIN: usize = 12;

/// Most points of a curve.
pub const POINTS_MAX: usize = 20;

/// Distance of neighbours, in z, below which they are not divided.
const CLOSE: f64 = 0.02;

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Requests per second that were asked for.
    pub rate: f64,
    /// The quantile and the ends of its interval, as logarithms; an end that is not known is the quantile itself.
    pub value: (f64, f64, f64),
}

/// The rates that are asked for first, in random order.
pub fn first_rates(capacity: f64, seed: u64) -> Vec<f64> {
    let greatest = -libm::log(1.0 - FIRST_SHARE);
    let draws = Stream::from_seed(mix(&[seed, 0xc0]));
    let mut rates: Vec<(u64, f64)> = (1..=FIRST)
        .map(|at| (draws.draw(at as u64), rate_at(greatest * at as f64 / FIRST as f64, capacity)))
        .collect();
    rates.sort_by_key(|(draw, _)| *draw);
    rates.into_iter().map(|(_, rate)| rate).collect()
}

/// The rate of the next point: between the neighbours whose quantiles differ most beyond their intervals, or, where none do,
/// most at all. `None` where there are enough points: [`POINTS_MAX`], or [`POINTS_MIN`] that show all that differs.
pub fn next_rate(points: &[CurvePoint], capacity: f64) -> Option<f64> {
    if points.len() >= POINTS_MAX {
        return None;
    }
    let mut sorted = points.to_vec();
    sorted.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    let is_wide = |pair: &&[CurvePoint]| z(pair[1].rate, capacity) - z(pair[0].rate, capacity) > CLOSE;
    let middle = |pair: &[CurvePoint]| {
        rate_at((z(pair[0].rate, capacity) + z(pair[1].rate, capacity)) / 2.0, capacity)
    };
    let beyond =
        |pair: &[CurvePoint]| (pair[1].value.1 - pair[0].value.2).max(pair[0].value.1 - pair[1].value.2);
    let apart = |pair: &[CurvePoint]| (pair[1].value.0 - pair[0].value.0).abs();
    let pairs = || sorted.windows(2).filter(is_wide);
    let clear = pairs().max_by(|one, other| beyond(one).total_cmp(&beyond(other)));
    match clear {
        Some(pair) if beyond(pair) > 0.0 => Some(middle(pair)),
        _ if points.len() >= POINTS_MIN => None,
        _ => pairs().max_by(|one, other| apart(one).total_cmp(&apart(other))).map(middle),
    }
}

/// The values, in the order of their rates, as a line that never falls: neighbours that fall are replaced by their
/// mean, again and again (pool adjacent violators).
pub fn never_falling(values: &[f64]) -> Vec<f64> {
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for value in values {
        blocks.push((*value, 1));
        while let [.., (before, many), (last, count)] = blocks[..]
            && before > last
        {
            let both = many + count;
            let mean = (before * many as f64 + last * count as f64) / both as f64;
            blocks.truncate(blocks.len() - 2);
            blocks.push((mean, both));
        }
    }
    blocks.into_iter().flat_map(|(value, count)| std::iter::repeat_n(value, count)).collect()
}

fn z(rate: f64, capacity: f64) -> f64 {
    -libm::log(1.0 - (rate / capacity).min(0.999))
}

fn rate_at(z: f64, capacity: f64) -> f64 {
    capacity * (1.0 - libm::exp(-z))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(rate: f64, value: f64) -> CurvePoint {
        CurvePoint { rate, value: (value, value - 0.01, value + 0.01) }
    }

    #[test]
    fn the_first_points_lie_at_equal_distances_of_the_logarithm() {
        let mut rates = first_rates(1_000.0, 1);
        assert_eq!(rates.len(), 5);
        assert!(!rates.is_sorted(), "in random order: {rates:?}");
        rates.sort_by(f64::total_cmp);
        assert!((rates[4] - 900.0).abs() < 1e-9 && (rates[0] - 369.04).abs() < 0.01, "{rates:?}");
    }

    #[test]
    fn the_next_point_is_made_where_the_curve_bends() {
        let points = [point(100.0, 0.0), point(500.0, 0.1), point(700.0, 0.2), point(900.0, 2.0)];
        let next = next_rate(&points, 1_000.0).expect("there are few");
        assert!((700.0..900.0).contains(&next), "{next}");
    }

    #[test]
    fn a_curve_has_at_most_twenty_points_and_twelve_where_nothing_differs() {
        let flat = |count: u32| -> Vec<CurvePoint> {
            (1..=count).map(|at| CurvePoint { rate: f64::from(at) * 40.0, value: (0.0, -1.0, 1.0) }).collect()
        };
        assert!(next_rate(&flat(11), 1_000.0).is_some());
        assert_eq!(next_rate(&flat(12), 1_000.0), None);
        let steep: Vec<CurvePoint> = (1..=20).map(|at| point(f64::from(at) * 40.0, f64::from(at))).collect();
        assert!(next_rate(&steep[..19], 1_000.0).is_some());
        assert_eq!(next_rate(&steep, 1_000.0), None);
    }

    #[test]
    fn a_line_that_never_falls_keeps_what_rises_and_means_what_falls() {
        assert_eq!(never_falling(&[1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]);
        assert_eq!(never_falling(&[1.0, 4.0, 2.0, 5.0]), [1.0, 3.0, 3.0, 5.0]);
        assert_eq!(never_falling(&[3.0, 2.0, 1.0]), [2.0, 2.0, 2.0]);
        assert!(never_falling(&[]).is_empty());
    }
}
