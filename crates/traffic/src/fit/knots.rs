//! The few points of a rising curve between which straight lines come closest to it.

/// A stretch between two knots.
struct Stretch {
    from: usize,
    to: usize,
    /// The greatest distance of the curve from the straight line; it is at point `at`.
    off: f64,
    at: usize,
}

/// A curve by its points, in the order of `xs`.
pub(super) struct Curve<'a> {
    /// Places of the points.
    pub(super) xs: &'a [f64],
    /// Heights of the curve at the points.
    pub(super) ys: &'a [f64],
    /// The beginning of the straight line behind a knot, by the number of the knot: at the knot itself, or further.
    pub(super) line_from: &'a dyn Fn(usize) -> f64,
}

impl Curve<'_> {
    /// The numbers of at most `most` points, rising: those of `first`, which hold the first and the last point, and then,
    /// again and again, the point where the curve is furthest from the straight lines, until it is nowhere further than
    /// `tolerance`.
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
