//! The universal scalability law through the rates of a closed loop at several levels: connections, or threads.
//!
//! X(N) = g N / (1 + a (N - 1) + b N (N - 1)), after N. J. Gunther, "Guerrilla Capacity Planning", 2007: g is the rate of one, a what has
//! to be done one after the other, and b what each has to agree upon with all others. N / X is a quadratic in N, which is fitted by least
//! squares with weights X^4 / (N^2 V), V being the variance of X, and with a and b at least 0.

use pummel_logic::rng::{Stream, mix};
use serde::{Deserialize, Serialize};

/// Fewest levels that the law is fitted to.
const LEVELS_MIN: usize = 6;

/// The greatest level is at least so many times the least.
const FACTOR_MIN: f64 = 16.0;

/// Relative variance of rates where none is known: all have the same weight beside their size.
const VARIANCE_DEFAULT: f64 = 1e-6;

/// Resamplings from which intervals are taken.
const RESAMPLES: u64 = 400;

/// A level and its rate in closed loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Connections or threads.
    pub n: f64,
    /// Completed requests per second.
    pub rate: f64,
    /// Variance of `rate`; 0 where it is not known.
    pub variance: f64,
}

/// A figure with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// Value of the figure.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// The law through several levels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scalability {
    /// The rate of one, in requests per second.
    pub gain: Estimate,
    /// The share of the work that is done one after the other.
    pub contention: Estimate,
    /// The share of the work that each has to agree upon with each other one.
    pub coherency: Estimate,
    /// The level of the greatest rate; `None` where no peak is near: the interval of `coherency` contains 0, or the
    /// peak would lie beyond twice the greatest level.
    pub peak: Option<f64>,
}

impl Scalability {
    /// The law through these levels. `None` for fewer than six, where the greatest is below 16 times the least, and where a rate
    /// is 0.
    pub fn of(levels: &[Level]) -> Option<Scalability> {
        let least = levels.iter().map(|level| level.n).fold(f64::INFINITY, f64::min);
        let greatest = levels.iter().map(|level| level.n).fold(0.0, f64::max);
        let is_usable = |level: &Level| level.n >= 1.0 && level.rate > 0.0;
        if levels.len() < LEVELS_MIN || greatest < FACTOR_MIN * least || !levels.iter().all(is_usable) {
            return None;
        }
        // A level of which nothing is known is not known better than any other.
        let unknown = levels.iter().map(Level::relative_variance).fold(0.0, f64::max);
        let unknown = if unknown > 0.0 { unknown } else { VARIANCE_DEFAULT };
        let points: Vec<Point> = levels.iter().map(|level| Point::of(level, unknown)).collect();
        let fit = fit(&points)?;
        let all = resampled(&points, fit);
        let estimate = |value: f64, of: &dyn Fn(&[f64; 3]) -> f64| {
            let mut values: Vec<f64> = all.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            let at = |share: f64| values[((values.len() - 1) as f64 * share) as usize];
            Estimate { value, low: at(0.025).min(value), high: at(0.975).max(value) }
        };
        let [one, serial, agreed] = fit;
        let coherency = estimate(agreed / one, &|fit| fit[2] / fit[0]);
        let contention = estimate(serial / one, &|fit| fit[1] / fit[0]);
        let peak = libm::sqrt((1.0 - contention.value).max(0.0) / coherency.value);
        Some(Scalability {
            gain: estimate(1.0 / one, &|fit| 1.0 / fit[0]),
            contention,
            coherency,
            peak: (coherency.low > 0.0 && peak < 2.0 * greatest).then_some(peak),
        })
    }
}

impl Level {
    fn relative_variance(&self) -> f64 {
        self.variance / (self.rate * self.rate)
    }
}

/// A level as a point of N / X = c0 + c1 (N - 1) + c2 N (N - 1).
#[derive(Clone, Copy, Debug)]
struct Point {
    terms: [f64; 3],
    y: f64,
    weight: f64,
}

impl Point {
    /// The point of a level, whose relative variance is `unknown` where it is not known.
    fn of(level: &Level, unknown: f64) -> Point {
        let Level { n, rate, .. } = *level;
        let relative = level.relative_variance();
        let relative = if relative > 0.0 { relative } else { unknown };
        let weight = rate * rate / (n * n * relative);
        Point { terms: [1.0, n - 1.0, n * (n - 1.0)], y: n / rate, weight }
    }

    fn at(&self, fit: [f64; 3]) -> f64 {
        self.terms.iter().zip(fit).map(|(term, factor)| term * factor).sum()
    }
}

/// The least squares with c0 above 0 and c1 and c2 at least 0: the best of those with each set of terms.
fn fit(points: &[Point]) -> Option<[f64; 3]> {
    let sets: [&[usize]; 4] = [&[0, 1, 2], &[0, 1], &[0, 2], &[0]];
    let fits = sets.into_iter().filter_map(|terms| solve(points, terms));
    let legal = fits.filter(|fit| fit[0] > 0.0 && fit[1] >= 0.0 && fit[2] >= 0.0);
    let squares = |fit: [f64; 3]| {
        points
            .iter()
            .map(|point| point.weight * (point.y - point.at(fit)) * (point.y - point.at(fit)))
            .sum::<f64>()
    };
    legal.min_by(|one, other| squares(*one).total_cmp(&squares(*other)))
}

/// Weighted least squares with these terms, by Gauss' elimination; `None` where the points do not separate them.
fn solve(points: &[Point], terms: &[usize]) -> Option<[f64; 3]> {
    let size = terms.len();
    let mut rows = [[0.0; 4]; 3];
    for (row, one) in rows.iter_mut().zip(terms) {
        for (cell, other) in row.iter_mut().zip(terms) {
            *cell = points.iter().map(|point| point.weight * point.terms[*one] * point.terms[*other]).sum();
        }
        row[size] = points.iter().map(|point| point.weight * point.terms[*one] * point.y).sum();
    }
    for column in 0..size {
        let pivot = rows[column][column];
        if pivot.is_nan() || pivot <= 1e-12 * rows[0][0].abs() * f64::EPSILON {
            return None;
        }
        let source = rows[column];
        for row in rows.iter_mut().take(size).skip(column + 1) {
            let factor = row[column] / pivot;
            row.iter_mut().zip(source).for_each(|(cell, from)| *cell -= factor * from);
        }
    }
    let mut solution = [0.0; 3];
    for at in (0..size).rev() {
        let known: f64 = (at + 1..size).map(|later| rows[at][later] * solution[terms[later]]).sum();
        solution[terms[at]] = (rows[at][size] - known) / rows[at][at];
    }
    solution.iter().all(|factor| factor.is_finite()).then_some(solution)
}

/// Fits to points whose weighted residuals are drawn anew from those of `best`.
fn resampled(points: &[Point], best: [f64; 3]) -> Vec<[f64; 3]> {
    let parameters = best.iter().filter(|factor| **factor > 0.0).count();
    let inflation =
        libm::sqrt(points.len() as f64 / (points.len() - parameters.min(points.len() - 1)) as f64);
    let residual = |point: &Point| (point.y - point.at(best)) * libm::sqrt(point.weight) * inflation;
    let residuals: Vec<f64> = points.iter().map(residual).collect();
    let again = |draw: u64| {
        let draws = Stream::from_seed(mix(&[draw, 0x05ca1e]));
        let moved = points.iter().enumerate().map(|(at, point)| {
            let drawn = residuals[(draws.draw(at as u64) % residuals.len() as u64) as usize];
            Point { y: point.at(best) + drawn / libm::sqrt(point.weight), ..*point }
        });
        fit(&moved.collect::<Vec<Point>>())
    };
    let all: Vec<[f64; 3]> = (0..RESAMPLES).filter_map(again).collect();
    if all.is_empty() { vec![best] } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::rng::unit;

    /// Levels of powers of two from 1 on that follow the law, with noise of this share.
    fn levels(count: u32, (g, a, b): (f64, f64, f64), noise: f64, seed: u64) -> Vec<Level> {
        let draws = Stream::from_seed(seed);
        let level = |at: u32| {
            let n = f64::from(1 << at);
            let exact = g * n / (1.0 + a * (n - 1.0) + b * n * (n - 1.0));
            let normal = (0..12).map(|k| unit(draws.draw(u64::from(at * 12 + k)))).sum::<f64>() - 6.0;
            let rate = exact * (1.0 + noise * normal);
            Level { n, rate, variance: (noise * exact).powi(2) }
        };
        (0..count).map(level).collect()
    }

    #[test]
    fn the_factors_of_the_law_are_found_without_noise() {
        let law = Scalability::of(&levels(8, (1_000.0, 0.05, 0.001), 0.0, 1)).expect("enough levels");
        assert!((law.gain.value / 1_000.0 - 1.0).abs() < 1e-6, "{law:?}");
        assert!(
            (law.contention.value - 0.05).abs() < 1e-6 && (law.coherency.value - 0.001).abs() < 1e-8,
            "{law:?}"
        );
        assert!((law.peak.expect("in sight") - 30.82).abs() < 0.01, "{law:?}");
    }

    #[test]
    fn a_peak_beyond_what_was_seen_is_not_in_sight() {
        let law = Scalability::of(&levels(7, (1_000.0, 0.05, 0.0), 0.01, 2)).expect("enough levels");
        assert_eq!(law.peak, None, "{law:?}");
        assert!(law.coherency.low <= 1e-6, "{law:?}");
        assert!((law.contention.value - 0.05).abs() < 0.01, "{law:?}");
    }

    #[test]
    fn rates_that_grow_faster_than_the_level_have_no_negative_factors() {
        let faster = |at: u32| {
            let n = f64::from(1 << at);
            Level { n, rate: 100.0 * n * (1.0 + 0.01 * n), variance: 1.0 }
        };
        let law = Scalability::of(&(0..7).map(faster).collect::<Vec<_>>()).expect("enough levels");
        assert_eq!((law.contention.value, law.coherency.value, law.peak), (0.0, 0.0, None));
    }

    #[test]
    fn the_intervals_contain_the_true_factors_mostly() {
        let mut held = 0;
        for seed in 0..50 {
            let law = Scalability::of(&levels(8, (1_000.0, 0.05, 0.002), 0.01, seed)).expect("enough levels");
            held += u32::from((law.contention.low..=law.contention.high).contains(&0.05));
        }
        assert!(held >= 40, "{held} of 50");
    }

    #[test]
    fn a_level_whose_variance_is_not_known_weighs_as_little_as_the_least_known_one() {
        let mut all = levels(8, (1_000.0, 0.05, 0.002), 0.01, 3);
        // The worst known level varies by 5 %, and another one, whose rate is far off, has no interval.
        all[6].variance = (0.05 * all[6].rate).powi(2);
        all[2].rate *= 0.8;
        let law = |variance: f64| {
            let mut all = all.clone();
            all[2].variance = variance;
            Scalability::of(&all).expect("enough levels")
        };
        let (unknown, worst) = (law(0.0), law((0.05 * all[2].rate).powi(2)));
        for (one, other) in [(unknown.gain, worst.gain), (unknown.contention, worst.contention)] {
            assert!((one.value / other.value - 1.0).abs() < 1e-6, "{unknown:?} {worst:?}");
        }
        // Known to a thousandth, as a rate that does not vary, it would draw the law to itself.
        let best = law((0.001 * all[2].rate).powi(2));
        let off = |law: &Scalability| (law.gain.value / 1_000.0 - 1.0).abs();
        assert!(off(&unknown) < 0.03 && off(&best) > 2.0 * off(&unknown), "{unknown:?} {best:?}");
    }

    #[test]
    fn too_few_levels_over_too_small_a_range_have_no_law() {
        let all = levels(8, (1_000.0, 0.05, 0.001), 0.0, 1);
        assert_eq!(Scalability::of(&all[..5]), None);
        assert_eq!(Scalability::of(&all[3..]), None);
        let dead = all.iter().map(|level| Level { rate: 0.0, ..*level }).collect::<Vec<_>>();
        assert_eq!(Scalability::of(&dead), None);
    }
}
