//! How the rate of a closed loop scales with connections or threads, as words and as JSON.

use pummel_measure::scalability::{Estimate, Level, Scalability};
use pummel_measure::words::{grouped, rate_text};
use serde_json::{Value, json};

/// The law through the rates at these levels; nothing where there are no levels.
pub fn text(levels: &[Level]) -> String {
    if levels.is_empty() {
        return String::new();
    }
    let Some(law) = Scalability::of(levels) else {
        return "\nHow the rate scales is not known: it takes six levels, the last 16 times the first.\n"
            .to_owned();
    };
    let share = |of: Estimate| {
        let [value, low, high] = [of.value, of.low, of.high].map(|share| share * 100.0);
        format!("{value:.2} % ({low:.2} .. {high:.2})")
    };
    let peak = match law.peak {
        Some(peak) => format!("The greatest rate is expected at {}.", grouped(peak.round() as u64)),
        None => "No peak is in sight.".to_owned(),
    };
    format!(
        "\nThe first alone would do {} (universal scalability law); contention {}, coherency {}. {peak}\n",
        rate_text(law.gain.value),
        share(law.contention),
        share(law.coherency)
    )
}

/// The fields of the law in the JSON of a curve; null where there is none.
pub fn json(levels: &[Level]) -> Value {
    let Some(law) = Scalability::of(levels) else { return Value::Null };
    let estimate = |of: Estimate| json!({ "value": of.value, "low": of.low, "high": of.high });
    json!({
        "gain": estimate(law.gain),
        "contention": estimate(law.contention),
        "coherency": estimate(law.coherency),
        "peak": law.peak,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(coherency: f64) -> Vec<Level> {
        let level = |at: u32| {
            let n = f64::from(1 << at);
            let rate = 1_000.0 * n / (1.0 + 0.05 * (n - 1.0) + coherency * n * (n - 1.0));
            Level { n, rate, variance: 0.0 }
        };
        (0..7).map(level).collect()
    }

    #[test]
    fn the_law_is_told_with_its_peak_where_one_is_in_sight() {
        let words = text(&levels(0.001));
        assert!(words.contains("contention 5.00 % (") && words.contains("expected at 31."), "{words}");
        assert!(text(&levels(0.0)).ends_with("No peak is in sight.\n"));
        assert_eq!(json(&levels(0.0))["peak"], Value::Null);
        assert!(json(&levels(0.001))["peak"].as_f64().is_some_and(|peak| (peak - 30.8).abs() < 0.1));
    }

    #[test]
    fn too_few_levels_are_said_to_be_too_few() {
        assert!(text(&levels(0.0)[..3]).contains("it takes six levels"));
        assert_eq!((text(&[]), json(&[])), (String::new(), Value::Null));
    }
}
