//! A ratio of two sums over batches of time: how much it varies by chance, and whether it stays at one level.
//!
//! The residual of batch j is r_j = a_j - R n_j, with a_j and n_j the two parts of the batch and R the ratio of the whole. The
//! residuals of a ratio that stays at its level are noise around 0, whatever the sizes of the batches.

/// The most correlation between neighbouring batches that is corrected.
const CORRELATION_MAX: f64 = 0.8;

/// Parts of a series, the first of which is compared with the last half.
const PARTS: usize = 8;

/// The residuals of a ratio over batches of time, the first batch first.
pub struct Series {
    residuals: Vec<f64>,
    sizes: Vec<f64>,
    /// Sum of the sizes.
    size: f64,
    /// Sum of the squares of the residuals; 0 where rounding alone made them.
    squares: f64,
}

/// Spread of the ratio of two sums over batches.
pub struct Spread {
    /// Variance of the ratio.
    pub variance: f64,
    /// Degrees of freedom, from 1 to the number of batches less one.
    pub freedom: f64,
}

impl Series {
    /// The residuals of the sum of `parts` over the sum of `sizes`, which are as many.
    pub fn of(parts: &[f64], sizes: Vec<f64>) -> Series {
        let size: f64 = sizes.iter().sum();
        let ratio = if size > 0.0 { parts.iter().sum::<f64>() / size } else { 0.0 };
        let residuals: Vec<f64> = parts.iter().zip(&sizes).map(|(part, size)| part - ratio * size).collect();
        let squares = sum_of_squares(&residuals);
        // What rounding leaves of residuals that are all 0 is no variance.
        let squares = if size <= 0.0 || squares <= 1e-18 * size * size { 0.0 } else { squares };
        Series { residuals, sizes, size, squares }
    }

    /// Whether the ratio is the same in all batches, so that chance cannot be estimated.
    pub fn is_constant(&self) -> bool {
        self.squares == 0.0
    }

    /// Spread of the ratio: the formulas of a ratio estimator over clusters, with the correlation of neighbours and the
    /// kurtosis of the residuals. Batches whose neighbours have the correlation r are worth (1 - r) / (1 + r) times as
    /// many that have none, and no more is known of their variance than from so many.
    pub fn spread(&self) -> Spread {
        let count = self.residuals.len() as f64;
        if self.is_constant() {
            return Spread { variance: 0.0, freedom: count - 1.0 };
        }
        let correlation = correlation(&self.residuals, self.squares);
        let fourth: f64 = self.residuals.iter().map(|r| r * r * r * r).sum();
        let kurtosis = count * fourth / (self.squares * self.squares);
        let freedom = if kurtosis > 1.0 { 2.0 * count / (kurtosis - 1.0) } else { count - 1.0 };
        let independent = count / (count - 1.0) * self.squares / (self.size * self.size);
        Spread {
            variance: independent * (1.0 + correlation) / (1.0 - correlation),
            freedom: (freedom.min(count - 1.0) * (1.0 - correlation) / (1.0 + correlation)).max(1.0),
        }
    }

    /// Distance of the first eighth of the batches above the last half in standard errors (Geweke's diagnostic), with
    /// the long-run variance of the last half: a beginning that differs has none of its own. 0 where the last half has
    /// no variance and no difference.
    pub fn beginning(&self) -> f64 {
        let (count, first) = (self.residuals.len(), self.first_part());
        let last = count - count.div_ceil(2)..count;
        let (Some((ours, our_size)), Some((theirs, their_size))) =
            (self.mean(0..first), self.mean(last.clone()))
        else {
            return 0.0;
        };
        let half = last.len() as f64;
        let left: Vec<f64> = last.map(|at| self.residuals[at] - theirs * self.sizes[at]).collect();
        let variance = long_run_variance(&left)
            * (first as f64 / (our_size * our_size) + half / (their_size * their_size));
        in_errors(ours - theirs, variance)
    }

    /// Number of batches in the first eighth.
    pub fn first_part(&self) -> usize {
        self.residuals.len().div_ceil(PARTS)
    }

    /// The slope of the residuals over time in its standard errors, with the long-run variance of what the slope leaves; 0
    /// where the ratio is constant.
    pub fn trend(&self) -> f64 {
        let count = self.residuals.len() as f64;
        let middle = (count - 1.0) / 2.0;
        let from_middle = |number: usize| number as f64 - middle;
        let lever: f64 =
            (0..self.residuals.len()).map(|number| from_middle(number) * from_middle(number)).sum();
        let product: f64 = self.residuals.iter().enumerate().map(|(number, r)| from_middle(number) * r).sum();
        if self.is_constant() || lever <= 0.0 {
            return 0.0;
        }
        let slope = product / lever;
        let left: Vec<f64> =
            self.residuals.iter().enumerate().map(|(number, r)| r - slope * from_middle(number)).collect();
        in_errors(slope, long_run_variance(&left) / lever)
    }

    /// The greatest self-normalised statistic G of Shao and Zhang ("Testing for change points in time series", 2010), and after
    /// how many batches it is reached: with S the running sums of the residuals, T_k = (S_k - k S_b / b) / sqrt(b), and
    /// V_k the squares of what the running sums of either side deviate from a straight line, over b squared, G is the
    /// greatest T_k^2 / V_k. It needs no estimate of a variance. `None` where the ratio is constant.
    pub fn change(&self) -> Option<(f64, usize)> {
        if self.is_constant() {
            return None;
        }
        let count = self.residuals.len();
        let mut sums = vec![0.0];
        for residual in &self.residuals {
            sums.push(sums[sums.len() - 1] + residual);
        }
        let (b, total) = (count as f64, sums[count]);
        let statistic = |k: usize| {
            let share = k as f64 / b;
            let distance = sums[k] - share * total;
            let before: f64 = (1..=k)
                .map(|i| sums[i] - i as f64 / k as f64 * sums[k])
                .map(|deviation| deviation * deviation)
                .sum();
            let after: f64 = (k + 1..=count)
                .map(|i| {
                    total - sums[i - 1] - (count - i + 1) as f64 / (count - k) as f64 * (total - sums[k])
                })
                .map(|deviation| deviation * deviation)
                .sum();
            (distance * distance / b) / ((before + after) / (b * b)).max(f64::MIN_POSITIVE)
        };
        (1..count).map(|k| (statistic(k), k)).max_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// Distance of the first `after` batches from the others in standard errors, with the long-run variance of what is
    /// left where each side has a level of its own. 0 where a side has no size.
    pub fn distance(&self, after: usize) -> f64 {
        let count = self.residuals.len();
        let (Some((before, before_size)), Some((behind, behind_size))) =
            (self.mean(0..after), self.mean(after..count))
        else {
            return 0.0;
        };
        let level = |at: usize| if at < after { before } else { behind };
        let left: Vec<f64> = (0..count).map(|at| self.residuals[at] - level(at) * self.sizes[at]).collect();
        let (first, rest) = (after as f64, (count - after) as f64);
        let variance = long_run_variance(&left)
            * (first / (before_size * before_size) + rest / (behind_size * behind_size));
        libm::fabs(in_errors(before - behind, variance))
    }

    /// The mean residual of some batches and their size; `None` where they have no size.
    fn mean(&self, batches: std::ops::Range<usize>) -> Option<(f64, f64)> {
        let size: f64 = self.sizes[batches.clone()].iter().sum();
        (size > 0.0).then(|| (self.residuals[batches].iter().sum::<f64>() / size, size))
    }
}

fn sum_of_squares(residuals: &[f64]) -> f64 {
    residuals.iter().map(|r| r * r).sum()
}

/// A value in its standard errors; 0 for no value.
fn in_errors(value: f64, variance: f64) -> f64 {
    match (value == 0.0, variance > 0.0) {
        (true, _) => 0.0,
        (false, true) => value / libm::sqrt(variance),
        (false, false) => f64::INFINITY.copysign(value),
    }
}

/// The correlation of neighbours that is corrected, without its bias of one over the number of batches.
fn correlation(residuals: &[f64], squares: f64) -> f64 {
    let neighbours: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    (neighbours / squares + 1.0 / residuals.len() as f64).clamp(0.0, CORRELATION_MAX)
}

/// The long-run variance of residuals that neighbour each other, to first order.
fn long_run_variance(residuals: &[f64]) -> f64 {
    let squares = sum_of_squares(residuals);
    if squares <= 0.0 {
        return 0.0;
    }
    let correlation = correlation(residuals, squares);
    squares / (residuals.len() as f64 - 1.0) * (1.0 + correlation) / (1.0 - correlation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[f64]) -> Series {
        Series::of(values, vec![1.0; values.len()])
    }

    #[test]
    fn a_constant_ratio_has_no_scores_whatever_the_sizes_of_its_batches() {
        let sizes: Vec<f64> = (1..=32).map(f64::from).collect();
        let parts: Vec<f64> = sizes.iter().map(|size| 0.3 * size).collect();
        let series = Series::of(&parts, sizes);
        assert!(series.is_constant());
        assert_eq!((series.beginning(), series.trend()), (0.0, 0.0));
        assert!(series.change().is_none());
        assert_eq!(series.spread().variance, 0.0);
    }

    #[test]
    fn batches_that_resemble_their_neighbours_have_fewer_degrees_of_freedom() {
        let values = |stretch: usize| -> Vec<f64> {
            // Deviations of one size, so that the kurtosis is the same whatever their order.
            (0..48).map(|at| if (at / stretch).is_multiple_of(2) { 1.1 } else { 0.9 }).collect()
        };
        let [apart, alike] = [1, 6].map(|stretch| series(&values(stretch)).spread());
        assert_eq!(apart.freedom, 47.0);
        // The correlation of neighbours in stretches of six is about two thirds.
        assert!((7.0..13.0).contains(&alike.freedom), "{}", alike.freedom);
        assert!(alike.variance > 4.0 * apart.variance);
    }

    #[test]
    fn sides_of_a_series_that_wanders_lie_few_standard_errors_apart() {
        // Waves of a fifth of the series: their sides differ by what such waves make.
        let waves: Vec<f64> =
            (0..40).map(|at| 1.0 + libm::sin(at as f64 * std::f64::consts::TAU / 8.0)).collect();
        assert!((1..40).all(|after| series(&waves).distance(after) < 3.0));
        let raised: Vec<f64> =
            waves.iter().enumerate().map(|(at, value)| value + if at < 20 { 0.0 } else { 9.0 }).collect();
        assert!(series(&raised).distance(20) > 10.0);
    }

    #[test]
    fn a_step_is_found_where_it_is_and_a_beginning_and_a_trend_have_their_signs() {
        let noise = |at: usize| if at.is_multiple_of(2) { 0.01 } else { -0.01 };
        let step: Vec<f64> = (0..40).map(|at| if at < 17 { 2.0 } else { 1.0 } + noise(at)).collect();
        let (statistic, at) = series(&step).change().expect("a change");
        assert!(statistic > 1_000.0 && at == 17, "{statistic} after {at}");
        assert!(series(&step).distance(17) > 100.0);
        assert_eq!(series(&step).distance(0), 0.0);
        let high_beginning: Vec<f64> = (0..40).map(|at| if at < 5 { 2.0 } else { 1.0 } + noise(at)).collect();
        assert!(series(&high_beginning).beginning() > 50.0);
        let falling: Vec<f64> = (0..40).map(|at| -(at as f64) + noise(at)).collect();
        assert!(series(&falling).trend() < -100.0);
        assert!(series(&falling).beginning() > 1.0);
    }
}
