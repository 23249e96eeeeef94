//! Comparison of two fits: that of a trace, and that of the requests that a profile makes.

use super::{CLASS_ENDS, Fit, ValueCounts};
use pummel_logic::protocol::Verb;

/// The bound for the distance of two figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Difference of the two figures.
    Difference(f64),
    /// Difference of the two figures, as a share of the figure of the trace.
    Share(f64),
    /// Ratio of the greater figure to the smaller one.
    Factor(f64),
    /// The figure has no bound.
    None,
}

/// A figure of the trace and of the profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Name of the figure.
    pub what: String,
    /// The figure of the trace; `None` if `difference` is a distance between both.
    pub trace: Option<f64>,
    /// The figure of the profile; `None` if `difference` is a distance between both.
    pub profile: Option<f64>,
    /// The difference in the measure of the bound, or the distance; of a factor, the figure of the profile divided by that of
    /// the trace.
    pub difference: f64,
    /// Bound for the distance.
    pub bound: Bound,
}

impl Compared {
    /// Whether the figures differ by more than the bound allows.
    pub fn is_beyond(&self) -> bool {
        match self.bound {
            // What is no number is no agreement.
            Bound::Difference(most) | Bound::Share(most) => {
                self.difference.is_nan() || self.difference.abs() > most
            }
            Bound::Factor(most) => !(1.0 / most..=most).contains(&self.difference),
            Bound::None => false,
        }
    }
}

/// All figures of a trace and of a profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The figures, in the order of reports.
    pub rows: Vec<Compared>,
}

/// Bounds of the figures.
const SHARE_LEAST: f64 = 0.005;
const DISTANCE_LEAST: f64 = 0.02;
const EXPONENT: Bound = Bound::Difference(0.05);
const DISPERSION: Bound = Bound::Share(0.2);
const HIT_RATIO: Bound = Bound::Difference(0.03);
const DISTINCT: Bound = Bound::Share(0.1);

/// The distance, multiplied by the root of 1 / n + 1 / m, that two samples of one law exceed once in a thousand times:
/// sqrt(-ln(0.001 / 2) / 2) (Smirnov, "Table for estimating the goodness of fit of empirical distributions", 1948).
const SMIRNOV: f64 = 1.95;

/// Numbers of keys whose share of the requests is compared.
const TOP: [f64; 3] = [1.0, 10.0, 1_000.0];

/// Fewest requests of a key, in the mean of the most popular ones, for the share of these not to depend on the number of requests.
const REQUESTS_OF_KEY_LEAST: f64 = 100.0;

/// Bound for the shares of the most popular keys where keys change: chance decides which of the most popular records
/// keep theirs, and so what their keys get.
const SHARE_OF_CHANGING: Bound = Bound::Factor(3.0);

/// Standard deviations by which chance takes two shares apart once in a thousand times.
const CHANCE: f64 = 3.3;

/// Fewest windows by which indexes of dispersion are compared: the index of n windows errs by sqrt(2 / n) of itself.
const WINDOWS_LEAST: f64 = 800.0;

/// The bound for the distance of two distributions of a length, which was taken of this many keys, or stores, in both.
fn distance_bound(one: f64, two: f64) -> Bound {
    Bound::Difference((SMIRNOV * libm::sqrt(1.0 / one + 1.0 / two)).clamp(DISTANCE_LEAST, 1.0))
}

/// The bound for shares of this size of the requests of both sides: the variance of each is p (1 - p) / n.
fn share_bound(share: f64, requests: [u64; 2]) -> Bound {
    let [one, two] = requests.map(|requests| 1.0 / requests.max(1) as f64);
    let variance = share * (1.0 - share) * (one + two);
    Bound::Difference((CHANCE * libm::sqrt(variance.max(0.0))).max(SHARE_LEAST))
}

impl Comparison {
    /// The figures of a trace and of the requests that a profile makes, of which there are as many.
    pub fn of(trace: &Fit, profile: &Fit) -> Comparison {
        let mut comparison = Comparison::default();
        comparison.mix(trace, profile);
        comparison.lengths(trace, profile);
        comparison.lifetimes(trace, profile);
        TOP.into_iter().for_each(|keys| comparison.top(keys, trace, profile));
        comparison.popularity(trace, profile);
        comparison.arrivals(trace, profile);
        comparison.caches(trace, profile);
        comparison
    }

    /// The figures of a trace and of fewer requests of a profile that do not depend on the number of requests.
    pub fn of_first(trace: &Fit, profile: &Fit) -> Comparison {
        let mut comparison = Comparison::default();
        comparison.mix(trace, profile);
        comparison.lifetimes(trace, profile);
        // Of keys with few requests, those that had more by chance would be the most popular ones.
        let is_sure = |keys: &f64| {
            profile.spread.seen.top(*keys) * profile.requests as f64 >= REQUESTS_OF_KEY_LEAST * keys
        };
        TOP.into_iter().filter(is_sure).for_each(|keys| comparison.top(keys, trace, profile));
        comparison
    }

    /// The figures that differ by more than their bounds allow.
    pub fn beyond(&self) -> impl Iterator<Item = &Compared> {
        self.rows.iter().filter(|row| row.is_beyond())
    }

    fn add(&mut self, what: impl Into<String>, trace: f64, profile: f64, bound: Bound) {
        let difference = match bound {
            Bound::Share(_) if trace == profile => 0.0,
            Bound::Share(_) => profile / trace - 1.0,
            Bound::Factor(_) if trace == profile => 1.0,
            Bound::Factor(_) => profile / trace,
            _ => profile - trace,
        };
        self.rows.push(Compared {
            what: what.into(),
            trace: Some(trace),
            profile: Some(profile),
            difference,
            bound,
        });
    }

    fn distance(&mut self, what: &str, distance: f64, bound: Bound) {
        let row = Compared { what: what.to_owned(), trace: None, profile: None, difference: distance, bound };
        self.rows.push(row);
    }

    fn mix(&mut self, trace: &Fit, profile: &Fit) {
        let (one, two) = (trace.mix(), profile.mix());
        let share = |mix: &[(Verb, f64)], verb: Verb| {
            mix.iter().find(|(of, _)| *of == verb).map_or(0.0, |(_, share)| *share)
        };
        for verb in Verb::ALL {
            let (one, two) = (share(&one, verb), share(&two, verb));
            if one > 0.0 || two > 0.0 {
                let bound = share_bound(one, [trace.requests, profile.requests]);
                self.add(format!("share of {}", verb.name()), one, two, bound);
            }
        }
    }

    fn lengths(&mut self, trace: &Fit, profile: &Fit) {
        // A key of a sample stands for several, and was drawn once.
        let drawn = Some((trace.sampled, profile.sampled));
        self.numbers("key size", &trace.key_bytes, &profile.key_bytes, drawn);
        self.numbers("value size", &trace.value_bytes, &profile.value_bytes, drawn);
        self.numbers("value size by request", &trace.request_bytes, &profile.request_bytes, None);
    }

    fn lifetimes(&mut self, trace: &Fit, profile: &Fit) {
        self.numbers("TTL", &trace.ttl_s, &profile.ttl_s, Some((1.0, 1.0)));
    }

    /// Quantiles of both, and their distance. `drawn` is the share of the numbers of each that were drawn by themselves; `None`
    /// if nothing is promised of the distance.
    fn numbers(&mut self, what: &str, one: &ValueCounts, two: &ValueCounts, drawn: Option<(f64, f64)>) {
        if one.total() <= 0.0 && two.total() <= 0.0 {
            return;
        }
        let bound = drawn.map_or(Bound::None, |(of_one, of_two)| {
            distance_bound(of_one * one.total(), of_two * two.total())
        });
        for (name, quantile) in [("median", 0.5), ("p90", 0.9), ("p99", 0.99)] {
            let (one, two) = (one.quantile(quantile) as f64, two.quantile(quantile) as f64);
            self.add(format!("{what}, {name}"), one, two, Bound::None);
        }
        self.distance(&format!("{what}, Kolmogorov distance"), one.distance(two), bound);
    }

    /// The share of the requests for this many keys, the most popular ones.
    fn top(&mut self, keys: f64, trace: &Fit, profile: &Fit) {
        self.share_of_top(&format!("{keys}"), keys, trace, profile);
    }

    fn share_of_top(&mut self, what: &str, keys: f64, trace: &Fit, profile: &Fit) {
        let (one, two) = (trace.spread.seen.top(keys), profile.spread.seen.top(keys));
        let bound = match keys_change(trace, profile) {
            true => SHARE_OF_CHANGING,
            false => share_bound(one, [trace.requests, profile.requests]),
        };
        self.add(format!("share of the top {what}"), one, two, bound);
    }

    fn popularity(&mut self, trace: &Fit, profile: &Fit) {
        // Of as many keys on both sides.
        self.share_of_top("1 %", CLASS_ENDS[0] * trace.keys, trace, profile);
        let exponent = if keys_change(trace, profile) { Bound::None } else { EXPONENT };
        if let (Some((one, _)), Some((two, _))) = (trace.spread.zipf, profile.spread.zipf) {
            self.add("alpha", one.exponent, two.exponent, exponent);
        }
        self.add("different keys", trace.keys, profile.keys, DISTINCT);
        self.add("one-hit keys", trace.one_hit(), profile.one_hit(), Bound::None);
    }

    fn arrivals(&mut self, trace: &Fit, profile: &Fit) {
        for window_s in [1.0, 60.0] {
            let of =
                |fit: &Fit| fit.arrivals.dispersions.iter().find(|one| one.window_s == window_s).copied();
            if let (Some(one), Some(two)) = (of(trace), of(profile)) {
                let is_known = one.windows.min(two.windows) >= WINDOWS_LEAST;
                let bound = if is_known { DISPERSION } else { Bound::None };
                self.add(format!("index of dispersion at {window_s} s"), one.idc, two.idc, bound);
            }
        }
    }

    fn caches(&mut self, trace: &Fit, profile: &Fit) {
        for percent in [1.0, 3.0, 10.0, 30.0] {
            let objects = (percent / 100.0 * trace.keys).max(1.0);
            if let (Some((one, _)), Some((two, _))) = (trace.hit_ratio(objects), profile.hit_ratio(objects)) {
                self.add(format!("hit ratio of LRU at {percent} % of the keys"), one, two, HIT_RATIO);
            }
        }
    }
}

fn keys_change(trace: &Fit, profile: &Fit) -> bool {
    trace.churn.lifetimes.is_some() || profile.churn.lifetimes.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_beyond_their_bounds_are_found() {
        let mut comparison = Comparison::default();
        comparison.add("a", 0.5, 0.504, share_bound(0.5, [1_000_000; 2]));
        comparison.add("b", 0.5, 0.506, share_bound(0.5, [1_000_000; 2]));
        comparison.add("c", 100.0, 111.0, DISTINCT);
        comparison.add("d", 100.0, 91.0, DISTINCT);
        comparison.add("e", 0.0, 0.0, DISTINCT);
        comparison.add("f", 0.0, 1.0, DISTINCT);
        comparison.add("g", 1.0, 500.0, Bound::None);
        comparison.distance("h", 0.03, distance_bound(1e6, 1e6));
        comparison.distance("few", 0.27, distance_bound(100.0, 100.0));
        comparison.distance("none", 1.0, distance_bound(0.0, 100.0));
        comparison.add("i", f64::NAN, 0.5, share_bound(f64::NAN, [1_000; 2]));
        comparison.add("of few", 0.3, 0.36, share_bound(0.3, [1_000; 2]));
        comparison.add("j", 0.3, 0.37, share_bound(0.3, [1_000; 2]));
        comparison.add("like", 0.1, 0.2, SHARE_OF_CHANGING);
        comparison.add("k", 0.1, 0.31, SHARE_OF_CHANGING);
        comparison.add("l", 0.31, 0.1, SHARE_OF_CHANGING);
        comparison.add("m", 0.0, 0.1, SHARE_OF_CHANGING);
        comparison.add("none", 0.0, 0.0, SHARE_OF_CHANGING);
        let names: Vec<&str> = comparison.beyond().map(|row| row.what.as_str()).collect();
        assert_eq!(names, ["b", "c", "f", "h", "i", "j", "k", "l", "m"]);
    }
}
