//! Approximation of a rising curve by straight lines between few of its points (knots).

/// A stretch between two knots.
struct Stretch {
    from: usize,
    to: usize,
    /// The greatest distance between the curve and the straight line, at point `at`.
    off: f64,
    at: usize,
}

/// A curve, given by points in ascending order of `xs`.
pub(super) struct Curve<'a> {
    /// The x coordinates of the points.
    pub(super) xs: &'a [f64],
    /// The y coordinates of the points.
    pub(super) ys: &'a [f64],
    /// The x coordinate at which the straight line after a knot begins, by the index of the knot: that of the knot or
    /// a greater one.
    pub(super) line_from: &'a dyn Fn(usize) -> f64,
}

impl Curve<'_> {
    /// Indexes of the knots, ascending. The knots of `first`, which must contain the first and the last point, are
    /// always included. The point at the greatest distance from the straight lines is added until there are `most`
    /// knots, or no point is further away than `tolerance`.
    pub(super) fn knots(&self, first: &[usize], most: usize, tolerance: f64) -> Vec<usize> {
        let mut stretches: Vec<Stretch> =
            first.windows(2).map(|pair| self.stretch(pair[0], pair[1])).collect();
        while stretches.len() + 1 < most {
            let furthest =
                stretches.iter().enumerate().max_by(|left, right| left.1.off.total_cmp(&right.1.off));
            let Some((number, stretch)) = furthest else { break };
            if stretch.off <= tolerance {
                break;
            }
            let (from, at, to) = (stretch.from, stretch.at, stretch.to);
            stretches[number] = self.stretch(from, at);
            stretches.push(self.stretch(at, to));
        }
        let mut knots: Vec<usize> = first.iter().copied().chain(stretches.iter().map(|one| one.to)).collect();
        knots.sort_unstable();
        knots.dedup();
        knots
    }

    fn stretch(&self, from: usize, to: usize) -> Stretch {
        let (left, right) = ((self.line_from)(from), self.xs[to]);
        let (low, high) = (self.ys[from], self.ys[to]);
        let line = |x: f64| match right > left {
            true => low + (high - low) * ((x - left) / (right - left)).clamp(0.0, 1.0),
            false => high,
        };
        let mut stretch = Stretch { from, to, off: 0.0, at: from };
        for at in from + 1..to {
            let off = (self.ys[at] - line(self.xs[at])).abs();
            if off > stretch.off {
                (stretch.off, stretch.at) = (off, at);
            }
        }
        stretch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_of_two_lines_has_three_knots() {
        let xs: Vec<f64> = (0..=100).map(f64::from).collect();
        let ys: Vec<f64> =
            xs.iter().map(|x| if *x < 30.0 { 2.0 * x } else { 60.0 + (x - 30.0) / 10.0 }).collect();
        let curve = Curve { xs: &xs, ys: &ys, line_from: &|at| xs[at] };
        assert_eq!(curve.knots(&[0, 100], 64, 1e-9), [0, 30, 100]);
        assert_eq!(curve.knots(&[0, 100], 2, 1e-9), [0, 100]);
    }

    #[test]
    fn more_knots_come_closer() {
        let xs: Vec<f64> = (0..=1000).map(f64::from).collect();
        let ys: Vec<f64> = xs.iter().map(|x| x.sqrt()).collect();
        let curve = Curve { xs: &xs, ys: &ys, line_from: &|at| xs[at] };
        let off = |most: usize| {
            let knots = curve.knots(&[0, 1000], most, 0.0);
            assert_eq!(knots.len(), most);
            knots.windows(2).map(|pair| curve.stretch(pair[0], pair[1]).off).fold(0.0, f64::max)
        };
        assert!(off(16) < off(4) / 4.0);
    }
}
