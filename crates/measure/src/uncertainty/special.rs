//! The functions of statistics that intervals need: the regularised incomplete beta function and Student's t.

/// Steps of the continued fraction. It needs fewer than the square root of its greater parameter, also where that is [`TOTAL_MAX`],
/// and fewer than a hundred more for small ones.
const STEPS_MAX: u32 = 1_000_000;

/// Sum of both parameters above which they are made smaller in proportion: the intervals of so many trials are narrower
/// than the precision of any printed figure, and those of fewer trials are wider.
const TOTAL_MAX: f64 = 1e12;

/// The regularised incomplete beta function I(a, b; x), for a and b above 0 and x from 0 to 1: the probability that a
/// beta variable with these parameters is at most x. The continued fraction is that of the Digital Library of
/// Mathematical Functions, 8.17.22, evaluated by Lentz's method. Not a number where a parameter is none, or where the
/// fraction does not converge.
pub fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    let scale = (TOTAL_MAX / (a + b)).min(1.0);
    let (a, b) = (a * scale, b * scale);
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast on this side of the mean only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let ln_beta = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    let front = libm::exp(a * libm::log(x) + b * libm::log1p(-x) - ln_beta) / a;
    fraction(a, b, x).map_or(f64::NAN, |fraction| (front * fraction).clamp(0.0, 1.0))
}

/// The continued fraction; `None` where it does not converge.
fn fraction(a: f64, b: f64, x: f64) -> Option<f64> {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if libm::fabs(value) < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut product = d;
    if !(a + b + x).is_finite() {
        return None;
    }
    for step in 1..=STEPS_MAX {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            change = c * d;
            product *= change;
        }
        if libm::fabs(change - 1.0) < 1e-13 {
            return Some(product);
        }
    }
    None
}

/// Most steps of the search for a root: bisection has every bit of a number after 1,100 of them.
const BISECTIONS_MAX: u32 = 1_200;

/// Probability with which an interval contains its figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confidence {
    /// The probability on each side of the interval.
    pub tail: f64,
    /// The point of the normal distribution that is exceeded with that probability.
    pub normal: f64,
    /// Range of that point of Student's t, from infinitely many degrees of freedom to one.
    student: (f64, f64),
}

impl Confidence {
    /// Confidence of 95 in 100.
    pub const P95: Confidence =
        Confidence { tail: 0.025, normal: 1.959_963_984_540_054, student: (1.9, 13.0) };

    /// Confidence of 99 in 100.
    pub const P99: Confidence =
        Confidence { tail: 0.005, normal: 2.575_829_303_548_901, student: (2.5, 64.0) };
}

/// The point of Student's t with `freedom` degrees of freedom, at least 1, that is exceeded with the probability of one side.
pub fn student_t(freedom: f64, confidence: Confidence) -> f64 {
    let freedom = freedom.max(1.0);
    let tail = |t: f64| 0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t));
    let (least, most) = confidence.student;
    root(least, most, |t| tail(t) - confidence.tail)
}

/// Finds the root of `function`, which falls from above 0 at `low` to below 0 at `high` or rises the other way, by the
/// Illinois form of false position, and by bisection where that is slow. Returns `low` or `high` where the function has
/// one sign between them.
pub fn root(low: f64, high: f64, function: impl Fn(f64) -> f64) -> f64 {
    let (mut from, mut to) = (low, high);
    let (mut at_from, mut at_to) = (function(from), function(to));
    if at_from * at_to > 0.0 {
        return if libm::fabs(at_from) < libm::fabs(at_to) { from } else { to };
    }
    for step in 0..100 + BISECTIONS_MAX {
        let middle = if step >= 100 || at_to == at_from {
            (from + to) / 2.0
        } else {
            (from * at_to - to * at_from) / (at_to - at_from)
        };
        let at_middle = function(middle);
        // Bisection ends where no number lies between the two.
        if step >= 100 && (middle == from || middle == to) {
            return middle;
        }
        if at_middle == 0.0 || libm::fabs(to - from) <= 1e-12 * libm::fabs(to) {
            return middle;
        }
        if at_middle * at_to < 0.0 {
            (from, at_from) = (to, at_to);
        } else {
            at_from /= 2.0;
        }
        let moved = libm::fabs(middle - to);
        (to, at_to) = (middle, at_middle);
        let tolerance = 1e-12 * libm::fabs(middle);
        if moved <= tolerance {
            // A step may be short because the function is steep at the other end. At a root the sign changes beside it.
            let beside = if from > to { (to + tolerance).min(from) } else { (to - tolerance).max(from) };
            let at_beside = function(beside);
            if at_beside * at_to <= 0.0 {
                return middle;
            }
            (to, at_to) = (beside, at_beside);
        }
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{ContinuousCDF, StudentsT};
    use statrs::function::beta::beta_reg;

    #[test]
    fn the_beta_function_is_that_of_another_library() {
        for (a, b) in [(0.5, 0.5), (1.0, 3.0), (2.5, 0.5), (37.0, 4.0), (400.0, 17.5), (9_900.0, 101.0)] {
            for x in [0.0, 0.001, 0.1, 0.4, 0.5, 0.9, 0.95, 0.99, 0.995, 1.0] {
                let (ours, theirs) = (incomplete_beta(a, b, x), beta_reg(a, b, x));
                assert!((ours - theirs).abs() < 1e-9, "I({a}, {b}; {x}): {ours} beside {theirs}");
            }
        }
    }

    #[test]
    fn a_large_number_of_trials_takes_the_shape_of_the_normal_distribution() {
        // P(Bin(n, q) >= k) is I(k, n - k + 1; q).
        let (n, q) = (4e6, 0.99);
        let sd = libm::sqrt(n * q * (1.0 - q));
        let above = incomplete_beta(n * q + 1.96 * sd, n * (1.0 - q) - 1.96 * sd + 1.0, q);
        assert!((above - 0.025).abs() < 5e-4, "{above}");
    }

    #[test]
    fn the_beta_function_converges_for_every_number_of_trials() {
        // From each side, P(Bin(n, q) >= n q) is near a half, where the fraction needs the most steps.
        for n in [1.0, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12, 1e15, f64::MAX / 4.0] {
            for q in [0.5, 0.9, 0.99, 0.9999, 0.01] {
                for off in [-4.0, -0.001, 0.0, 0.001, 4.0] {
                    let x = (q + off * libm::sqrt(q * (1.0 - q) / n)).clamp(0.0, 1.0);
                    let share = incomplete_beta(n * q, n * (1.0 - q) + 1.0, x);
                    assert!((0.0..=1.0).contains(&share), "I({n} trials, {q}; {x}): {share}");
                    let is_middle = n >= 1e4 && n * (1.0 - q) >= 100.0 && off.abs() < 0.01;
                    assert!(!is_middle || (share - 0.5).abs() < 0.05, "I({n} trials, {q}; {x}): {share}");
                }
            }
        }
        for (a, b) in [(f64::NAN, 1.0), (1.0, f64::NAN), (f64::INFINITY, 1.0)] {
            assert!(incomplete_beta(a, b, 0.5).is_nan(), "I({a}, {b})");
        }
    }

    #[test]
    fn students_t_is_that_of_another_library() {
        for freedom in [1.0, 1.7, 2.0, 5.0, 9.0, 31.0, 62.0] {
            for (confidence, point) in [(Confidence::P95, 0.975), (Confidence::P99, 0.995)] {
                let theirs = StudentsT::new(0.0, 1.0, freedom).expect("a distribution").inverse_cdf(point);
                let ours = student_t(freedom, confidence);
                assert!((ours - theirs).abs() < 1e-6 * theirs, "{freedom}: {ours} beside {theirs}");
            }
        }
        // The first terms of the expansion for many degrees of freedom: z + (z^3 + z) / (4 n).
        let student_t = |freedom: f64| student_t(freedom, Confidence::P95);
        assert!((student_t(1e5) - 1.959_987_7).abs() < 1e-7, "{}", student_t(1e5));
        assert!((student_t(0.2) - student_t(1.0)).abs() < 1e-12, "fewer than one degree count as one");
    }

    #[test]
    fn a_root_is_found_from_either_side_and_an_end_is_given_where_there_is_none() {
        assert!((root(0.0, 3.0, |x| 2.0 - x * x) - libm::sqrt(2.0)).abs() < 1e-9);
        assert!((root(0.0, 3.0, |x| x * x * x - 2.0) - libm::cbrt(2.0)).abs() < 1e-9);
        assert_eq!(root(1.0, 2.0, |x| x), 1.0);
        // A function that is flat but for a step leaves false position no slope to follow.
        let step = root(-1e9, 1e9, |x| if x < 0.123 { -1e-9 } else { 1e12 });
        assert!((step - 0.123).abs() < 1e-9, "{step}");
        let steep = root(0.0, 1e6, |x| libm::exp(x.min(600.0)) - 2.0);
        assert!((steep - libm::log(2.0)).abs() < 1e-9, "{steep}");
    }
}
