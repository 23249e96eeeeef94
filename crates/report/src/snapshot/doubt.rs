//! The doubt about the times of a run under way: what is doubtful, since when, and why as far as that is known.

use pummel_logic::time::Nanos;
use pummel_measure::limit::{FULL_SHARE, VISIBLE_SHARE};
use pummel_measure::trust::Trust;

/// The figures that are named, the worst one first: where the median is doubtful, everything is.
const NAMED: [&str; 3] = ["p50", "p99", "mean"];

/// A doubt about the times of a run: a figure that was mostly, or visibly, the generator's own delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Doubt {
    /// Name of the figure, the worst one so far.
    pub figure: &'static str,
    /// The time since which there is a doubt, in nanoseconds since the measured phase began.
    pub since_ns: Nanos,
    /// The time from which on the figures of the run so far are reliable again; `None` while they are not.
    pub until_ns: Option<Nanos>,
    /// Share of their time for which full workers were busy, where that is the cause.
    pub busy: Option<f64>,
}

impl Doubt {
    /// The doubt after one more look at the run so far: `figure` is doubtful at `at_ns`, and the workers were busy for this share
    /// of their time.
    pub fn follow(
        before: Option<Doubt>,
        figure: Option<&'static str>,
        at_ns: Nanos,
        busy: Option<f64>,
    ) -> Option<Doubt> {
        let full = busy.filter(|share| *share > FULL_SHARE);
        match (before, figure) {
            (before, None) => before.map(|doubt| Doubt { until_ns: doubt.until_ns.or(Some(at_ns)), ..doubt }),
            (None, Some(figure)) => Some(Doubt { figure, since_ns: at_ns, until_ns: None, busy: full }),
            (Some(doubt), Some(figure)) => {
                let rank = |name: &str| NAMED.iter().position(|named| *named == name);
                let figure = if rank(figure) < rank(doubt.figure) { figure } else { doubt.figure };
                let busy = doubt.busy.into_iter().chain(full).reduce(f64::max);
                Some(Doubt { figure, until_ns: None, busy, ..doubt })
            }
        }
    }
}

/// The figure of the response that makes the times of a run doubtful; `None` where they are reliable.
pub fn doubted_figure(trust: &Trust) -> Option<&'static str> {
    if trust.ok {
        return None;
    }
    let shares = [trust.lag_share.p50, trust.lag_share.p99, trust.lag_share.mean];
    let is_late = |share: Option<f64>| share.is_some_and(|share| share > VISIBLE_SHARE);
    let found = NAMED.into_iter().zip(shares).find(|(_, share)| is_late(*share));
    // A wait behind late requests shows in the slowest ones.
    Some(found.map_or("p99", |(name, _)| name))
}

#[cfg(test)]
mod tests {
    use pummel_logic::time::SECOND;

    use super::*;

    #[test]
    fn a_doubt_stays_with_its_time_when_it_is_over() {
        let after = |before, figure, second: u64, busy| Doubt::follow(before, figure, second * SECOND, busy);
        let none = after(None, None, 1, Some(0.99));
        assert_eq!(none, None);
        let first = after(none, Some("p99"), 3, Some(0.2));
        let doubt = Doubt { figure: "p99", since_ns: 3 * SECOND, until_ns: None, busy: None };
        assert_eq!(first, Some(doubt));
        let worse = after(first, Some("p50"), 4, Some(0.95));
        let doubt = Doubt { figure: "p50", busy: Some(0.95), ..doubt };
        assert_eq!(worse, Some(doubt));
        assert_eq!(after(worse, Some("p99"), 5, None), Some(doubt), "the worst figure stays");
        let over = after(worse, None, 6, None);
        assert_eq!(over, Some(Doubt { until_ns: Some(6 * SECOND), ..doubt }));
        assert_eq!(after(over, None, 7, None), over);
        assert_eq!(after(over, Some("p99"), 8, None), Some(doubt), "it is not over");
    }
}
