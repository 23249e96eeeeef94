//! Words about how the rate of a closed loop scales with connections or threads.

use pummel_measure::scalability::{Estimate, Level, Scalability};
use pummel_measure::words::{grouped, rate_text};

/// A level does no more than this many times what the one below it does, for each of its connections or threads, or else no law of
/// scaling fits.
const JUMP: f64 = 1.25;

/// The law through the rates at these levels; `None` for too few of them, and where none fits.
pub fn law_of(levels: &[Level]) -> Option<Scalability> {
    Scalability::of(levels).filter(|_| jump(levels).is_none())
}

/// The law through the rates at these levels of connections or threads, without those that the generator limited, `left_out` in number;
/// why there is none where there is none.
pub fn text(law: Option<Scalability>, levels: &[Level], of: &str, left_out: usize) -> String {
    if let Some((low, high)) = jump(levels) {
        return format!(
            "\nNo law of scaling fits: {} {of} do {:.1} times as much as {}.\n",
            grouped(high.n as u64),
            high.rate / low.rate,
            grouped(low.n as u64)
        );
    }
    let Some(law) = law else {
        let left_out = match left_out {
            0 => String::new(),
            1 => "; 1 was left out, where the generator was the limit".to_owned(),
            several => format!("; {several} were left out, where the generator was the limit"),
        };
        return format!(
            "\nHow the rate scales is not known: it takes six levels, the last 16 times the first{left_out}.\n"
        );
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

/// Two levels, one after the other, of which the greater does more for each of its connections or threads than a law of scaling can
/// have it do: such rates were not made in one way.
fn jump(levels: &[Level]) -> Option<(Level, Level)> {
    let mut levels = levels.to_vec();
    levels.sort_by(|one, other| one.n.total_cmp(&other.n));
    let jumps = levels.windows(2).map(|pair| (pair[0], pair[1]));
    jumps.into_iter().find(|(low, high)| low.rate > 0.0 && high.rate / low.rate > JUMP * high.n / low.n)
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

    fn said(levels: &[Level], of: &str) -> String {
        text(law_of(levels), levels, of, 0)
    }

    #[test]
    fn the_law_is_told_with_its_peak_where_one_is_in_sight() {
        let words = said(&levels(0.001), "threads");
        assert!(words.contains("contention 5.00 % (") && words.contains("expected at 31."), "{words}");
        assert!(said(&levels(0.0), "threads").ends_with("No peak is in sight.\n"));
    }

    #[test]
    fn no_law_is_fitted_to_rates_that_jump() {
        let mut levels = levels(0.0);
        levels[0].rate /= 5.0;
        assert_eq!(
            said(&levels, "connections"),
            "\nNo law of scaling fits: 2 connections do 9.5 times as much as 1.\n"
        );
        assert_eq!(law_of(&levels), None);
    }

    #[test]
    fn too_few_levels_are_said_to_be_too_few() {
        assert!(said(&levels(0.0)[..3], "threads").contains("it takes six levels"));
    }
}
