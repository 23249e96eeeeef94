//! Whether the times of a run may be believed: how much of them is the generator's own.

use super::figures::{Figures, QUANTILES, Quantile, time_text};
use super::sample::Span;
use crate::time::{MICROSECOND, Nanos};

/// Lag above this share of the response at the same quantile is named.
const SHARE_MAX: f64 = 0.1;

/// Lag below this time, in nanoseconds, is never worth a sentence.
const LAG_MIN_NS: Nanos = 20 * MICROSECOND;

/// The quantiles that are judged.
const JUDGED: [&str; 2] = ["p50", "p99"];

/// Why the times of a run may not be believed, as a sentence without its full stop; `None` where the generator's lag is
/// small beside the response at the median and at the 99th percentile. `figures` are those of all requests, by
/// [`Span`]. The sentence never names what limited the rate: lag is no evidence of that.
pub fn doubt(figures: &[Figures; Span::COUNT]) -> Option<String> {
    let parts: Vec<String> = JUDGED.iter().filter_map(|name| doubt_at(figures, name)).collect();
    let words = || format!("the times are partly the generator's own: {}", parts.join(", "));
    (!parts.is_empty()).then(words)
}

/// The lag and the response at one quantile as words, where that much lag is worth them.
fn doubt_at(figures: &[Figures; Span::COUNT], name: &str) -> Option<String> {
    let place = QUANTILES.iter().position(|(known, _)| *known == name)?;
    let at = |span: Span| figures[span as usize].quantiles[place];
    let (Quantile::Known(lag_ns), Quantile::Known(response_ns)) = (at(Span::Lag), at(Span::Response)) else {
        return None;
    };
    let is_large = lag_ns > LAG_MIN_NS && lag_ns as f64 > SHARE_MAX * response_ns as f64;
    let words =
        || format!("{} of lag beside {} of response at {name}", time_text(lag_ns), time_text(response_ns));
    is_large.then(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::figures::Unanswered;
    use crate::measure::histogram::Histogram;

    /// The figures of a hundred requests, of which so many had this lag and the others none, each answered 150 us after
    /// it was sent.
    fn figures(late: usize, lag_ns: Nanos) -> [Figures; Span::COUNT] {
        let lags = (0..100).map(|number| if number < late { lag_ns } else { 0 });
        let (mut lag, mut response) = (Histogram::new(), Histogram::new());
        for lag_ns in lags {
            lag.record(lag_ns);
            response.record(lag_ns + 150 * MICROSECOND);
        }
        Span::ALL.map(|span| {
            let histogram = if span == Span::Lag { &lag } else { &response };
            Figures::of(span, histogram, &Unanswered::default())
        })
    }

    #[test]
    fn lag_is_named_beside_the_response_where_it_is_a_tenth_of_it() {
        assert_eq!(doubt(&figures(0, 0)), None);
        assert_eq!(doubt(&figures(100, 15 * MICROSECOND)), None, "too short to be worth a sentence");
        let words = doubt(&figures(5, 100 * MICROSECOND)).expect("a word");
        assert!(words.starts_with("the times are partly the generator's own: "), "{words}");
        assert!(words.ends_with(" of response at p99") && !words.contains("p50"), "{words}");
        let words = doubt(&figures(80, 100 * MICROSECOND)).expect("a word");
        assert!(words.contains("at p50, ") && words.ends_with("at p99"), "{words}");
    }
}
