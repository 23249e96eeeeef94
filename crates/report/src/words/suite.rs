//! The words of a suite while it runs.

use std::time::Duration;

use pummel_measure::words::counted;

use crate::suite::SuiteRun;

/// What came of the expectations of a run, to follow its figures; empty where it has none.
pub fn met_words(run: &SuiteRun) -> String {
    let (met, all) = run.met();
    if all == 0 {
        return String::new();
    }
    if met == all {
        return ", as expected".to_owned();
    }
    let missed: Vec<String> = run.not_met().map(|one| one.words()).collect();
    format!(", NOT AS EXPECTED: {}", missed.join("; "))
}

/// The runs that are left and the time that they will take, to follow a sentence; empty where none are left.
pub fn left_words(runs: u32, time: Duration) -> String {
    if runs == 0 {
        return String::new();
    }
    let seconds = time.as_secs();
    let time = match seconds {
        0..90 => format!("{} s", seconds.max(1)),
        90..5_400 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{:.1} h", seconds as f64 / 3_600.0),
    };
    format!("; {} left, about {time}", counted(u64::from(runs), "run"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::ExpectationResult;

    #[test]
    fn what_was_not_as_expected_is_told_with_both_values() {
        let outcome = |met| ExpectationResult {
            subject: "p99".to_owned(),
            expected: "<1ms".to_owned(),
            found: "1.42 ms".to_owned(),
            met,
            ..ExpectationResult::default()
        };
        let words = |outcomes: &[Option<bool>]| {
            met_words(&SuiteRun {
                expectations: outcomes.iter().map(|met| outcome(*met)).collect(),
                ..SuiteRun::default()
            })
        };
        assert_eq!(words(&[]), "");
        assert_eq!(words(&[Some(true), Some(true)]), ", as expected");
        assert_eq!(words(&[Some(true), Some(false)]), ", NOT AS EXPECTED: p99 1.42 ms, expected <1ms");
    }

    #[test]
    fn the_time_that_is_left_has_one_unit() {
        let words = |runs, seconds| left_words(runs, Duration::from_secs(seconds));
        assert_eq!(words(0, 5), "");
        assert_eq!(words(1, 0), "; 1 run left, about 1 s");
        assert_eq!(words(3, 89), "; 3 runs left, about 89 s");
        assert_eq!(words(9, 90), "; 9 runs left, about 2 min");
        assert_eq!(words(9, 5_400), "; 9 runs left, about 1.5 h");
    }
}
