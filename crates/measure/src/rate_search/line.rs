//! A straight line through points by least squares, and the places where its 95 % band crosses 0.

use crate::uncertainty::{Confidence, student_t};

/// Least number of points of a line with a band.
const POINTS_MIN: usize = 4;

/// A line through points, by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Mean of the points' x.
    mean_x: f64,
    /// The line at `mean_x`.
    level: f64,
    /// The rise of the line for each unit of x.
    slope: f64,
    /// Variance of the points around the line.
    variance: f64,
    /// Sum of the squared distances of the points' x from their mean.
    spread: f64,
    /// Number of points.
    count: f64,
}

/// Rates at which a rising line and its 95 % band cross 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// Place at which the line itself crosses.
    pub at: f64,
    /// Place at which the upper edge of the 95 % band crosses; `None` where the edge is above 0 everywhere.
    pub low: Option<f64>,
    /// Place at which the lower edge of the 95 % band crosses; `None` where the edge is below 0 everywhere.
    pub high: Option<f64>,
}

impl Line {
    /// The line through points (x, y). `None` where there are fewer than four, or all have one x.
    pub fn fit(points: &[(f64, f64)]) -> Option<Line> {
        if points.len() < POINTS_MIN {
            return None;
        }
        let count = points.len() as f64;
        let mean_x = points.iter().map(|point| point.0).sum::<f64>() / count;
        let level = points.iter().map(|point| point.1).sum::<f64>() / count;
        let spread: f64 = points.iter().map(|point| (point.0 - mean_x) * (point.0 - mean_x)).sum();
        if spread <= 0.0 {
            return None;
        }
        let slope = points.iter().map(|point| (point.0 - mean_x) * (point.1 - level)).sum::<f64>() / spread;
        let rest = |point: &(f64, f64)| point.1 - level - slope * (point.0 - mean_x);
        let variance = points.iter().map(|point| rest(point) * rest(point)).sum::<f64>() / (count - 2.0);
        Some(Line { mean_x, level, slope, variance, spread, count })
    }

    /// Standard deviation of the points around the line.
    pub fn deviation(&self) -> f64 {
        libm::sqrt(self.variance)
    }

    /// The line at `x`.
    pub fn at(&self, x: f64) -> f64 {
        self.level + self.slope * (x - self.mean_x)
    }

    /// The upper edge of the 95 % band of the line at `x`.
    pub fn upper(&self, x: f64) -> f64 {
        let distance = x - self.mean_x;
        let variance = self.variance * (1.0 / self.count + distance * distance / self.spread);
        self.at(x) + student_t(self.count - 2.0, Confidence::P95) * libm::sqrt(variance)
    }

    /// Places at which the line and its band cross 0; the band contains the true line at each x in 95 of 100 cases.
    /// `None` where the line does not rise.
    pub fn crossing(&self) -> Option<Crossing> {
        if self.slope <= 0.0 {
            return None;
        }
        let t = student_t(self.count - 2.0, Confidence::P95);
        let margin = t * t * self.variance;
        // (level + slope u)^2 = margin (1 / count + u^2 / spread), with u the distance from the mean of x.
        let a = self.slope * self.slope - margin / self.spread;
        let b = self.level * self.slope;
        let c = self.level * self.level - margin / self.count;
        let root = b * b - a * c;
        let at = self.mean_x - self.level / self.slope;
        if a <= 0.0 || root < 0.0 {
            // The slope is not known to be above 0.
            return Some(Crossing { at, low: None, high: None });
        }
        let half = libm::sqrt(root) / a;
        let middle = self.mean_x - b / a;
        Some(Crossing { at, low: Some(middle - half), high: Some(middle + half) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::rng::{Stream, mix, unit};

    /// Ten points on the line y = 2 (x - 3), with noise of this standard deviation.
    fn points(noise: f64, seed: u64) -> Vec<(f64, f64)> {
        let draws = Stream::from_seed(mix(&[seed]));
        let normal = |i: u64| (0..12).map(|k| unit(draws.draw(12 * i + k))).sum::<f64>() - 6.0;
        (0..10).map(|i| (2.5 + 0.1 * i as f64, 2.0 * (0.1 * i as f64 - 0.5) + noise * normal(i))).collect()
    }

    #[test]
    fn a_line_without_noise_is_found_exactly() {
        let crossing = Line::fit(&points(0.0, 1)).and_then(|line| line.crossing()).expect("a crossing");
        assert!((crossing.at - 3.0).abs() < 1e-9, "{crossing:?}");
        let (low, high) = (crossing.low.expect("known"), crossing.high.expect("known"));
        assert!((low - 3.0).abs() < 1e-6 && (high - 3.0).abs() < 1e-6, "{crossing:?}");
    }

    #[test]
    fn the_band_contains_the_true_crossing_in_19_of_20_lines() {
        let mut missed = 0;
        for seed in 0..1_000 {
            let crossing =
                Line::fit(&points(0.1, seed)).and_then(|line| line.crossing()).expect("a crossing");
            let is_within =
                crossing.low.is_none_or(|low| low <= 3.0) && crossing.high.is_none_or(|high| 3.0 <= high);
            missed += u32::from(!is_within);
        }
        assert!((25..=80).contains(&missed), "{missed} of 1,000 missed");
    }

    #[test]
    fn the_upper_edge_of_the_band_is_0_where_the_lower_end_of_the_crossing_is() {
        for seed in 0..20 {
            let line = Line::fit(&points(0.1, seed)).expect("a line");
            let low = line.crossing().and_then(|crossing| crossing.low).expect("a clear slope");
            assert!(line.upper(low).abs() < 1e-9, "{seed}: {}", line.upper(low));
            assert!(line.upper(low - 0.1) < 0.0 && line.upper(low + 0.1) > 0.0, "{seed}");
        }
    }

    #[test]
    fn a_line_whose_slope_is_not_known_crosses_anywhere() {
        let flat: Vec<(f64, f64)> =
            (0..6).map(|i| (f64::from(i), f64::from(i % 2) + 0.01 * f64::from(i))).collect();
        let crossing = Line::fit(&flat).expect("a line").crossing();
        assert!(
            crossing.is_none_or(|crossing| crossing.low.is_none() && crossing.high.is_none()),
            "{crossing:?}"
        );
        let falling: Vec<(f64, f64)> = (0..6).map(|i| (f64::from(i), -f64::from(i))).collect();
        assert_eq!(Line::fit(&falling).expect("a line").crossing(), None);
    }

    #[test]
    fn too_few_points_and_points_above_each_other_are_no_line() {
        assert_eq!(Line::fit(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]), None);
        assert_eq!(Line::fit(&[(1.0, 1.0); 8]), None);
    }
}
