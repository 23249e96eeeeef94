//! Words about what a search found.

use pummel_logic::time::{MICROSECOND, Nanos};
use pummel_measure::rate_search::Recovery;
use pummel_measure::summary::time_text;
use pummel_measure::words::{grouped, percent};

use crate::document::{CurveDocument, CurveGoal, CurveOverload, CurveSearch};

/// The runs at the greatest rate at which a single run met the goals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SingleRuns {
    /// The rate, in requests per second.
    pub rate: f64,
    /// Number of runs at that rate.
    pub made: usize,
    /// Number of those that met the goals.
    pub met: usize,
    /// Seconds in which the requests of a run were due.
    pub seconds: f64,
    /// Whether each of them was at one level from its beginning to its end.
    pub is_steady: bool,
}

/// Lengths of runs that are advised, in seconds.
const ADVISED_S: [f64; 9] = [1.0, 3.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0];

/// The answer in a few sentences, of a search in which the single runs `met` met the goals.
pub fn text(found: &CurveDocument, met: Option<SingleRuns>) -> String {
    let goals: Vec<String> = found.goals.iter().map(goal_text).collect();
    let goals = goals.join(" and ");
    let Some(search) = &found.search else { return no_rate(&goals, met) };
    let CurveSearch { closed_loop_rate: capacity, closed_loop_generator: generator, line_runs, .. } = search;
    let mut text = match found.found_rate {
        Some(rate) if search.at_least => {
            let most = format!(
                "{} are the most that {} in a closed loop",
                count(*capacity),
                if generator.is_some() { "this generator asked for" } else { "were answered" }
            );
            let more = match search.open_above {
                false => format!("more were not asked for, since {most}"),
                true => format!(
                    "runs at greater rates met it too, but were too short to know the quantile from above \
                     ({most})"
                ),
            };
            format!("\nThe goal ({goals}) is met at {} requests per second, at least: {more}.\n", count(rate))
        }
        Some(rate) => format!(
            "\nThe goal ({goals}) is met at {} requests per second, with 95 % confidence, also by the upper bound of a run \
             of its own there.\n",
            count(rate)
        ),
        None => no_rate(&goals, met),
    };
    let interval = search.low.zip(search.high);
    if let Some((low, high)) = interval {
        let carried = search.not_carried.map_or_else(String::new, |rate| {
            format!(
                ": {} were not answered as fast as they were asked, while the times would allow more",
                count(rate)
            )
        });
        text += &format!(
            "The limit is reached between {} and {} requests per second{carried} ({line_runs} runs in random order; {} in a \
             closed loop).\n",
            count(low),
            count(high),
            count(*capacity)
        );
    }
    if let Some(generator) = generator {
        text += &format!(
            "In a closed loop the generator was the limit, and what the server can do is not known: {generator}.\n"
        );
    }
    if search.precise == Some(false) && interval.is_some() {
        text += "That is wider than --precision asks for: longer runs (-t) would be surer.\n";
    }
    if let Some(reason) = &search.reason {
        text += &format!("Why: {reason}.\n");
    }
    text + &search.overload.as_ref().map_or_else(String::new, recovery_words)
}

/// The sentences about a search without an answer, which was to meet `goals`; single runs met them in `met`.
fn no_rate(goals: &str, met: Option<SingleRuns>) -> String {
    let Some(SingleRuns { rate, made, met, seconds, is_steady }) = met else {
        return format!("\nNo rate is known to meet the goal ({goals}).\n");
    };
    let rate = count(rate);
    let runs = match (met, made) {
        (1, 1) => "in one run".to_owned(),
        (2, 2) => "in both runs".to_owned(),
        (met, made) if met == made => format!("in all {made} runs"),
        (met, made) => format!("in {met} of {made} runs"),
    };
    let why = match ADVISED_S.iter().find(|advised| **advised >= 3.0 * seconds) {
        // How many runs more would make it sure is not known.
        _ if !is_steady => "such runs were not steady, and nothing is sure".to_owned(),
        Some(advised) => format!("{} s is too short to be 95 % sure: -t {advised}s", number_plain(seconds)),
        None => "that is not 95 % sure".to_owned(),
    };
    format!("\nNOT SURE: {rate} requests per second met the goal ({goals}) {runs}; {why}.\n")
}

/// What was left of the overload; nothing where that is not known.
fn recovery_words(overload: &CurveOverload) -> String {
    let Some(recovery) = &overload.recovery else { return String::new() };
    let overload = count(overload.rate);
    let Recovery { slower, seconds, lasted } = recovery;
    if *seconds <= 0.0 {
        return format!(
            "After 5 s at {overload} requests per second the server answered as before at once.\n"
        );
    }
    let how_long =
        if *lasted { "as long as was looked" } else { &*format!("for {} s", number_plain(*seconds)) };
    let words = match *slower {
        slower if slower < 1.0 => format!("the same rate was {} slower", percent(slower)),
        slower => format!("requests at the same rate took {:.1} times as long,", 1.0 + slower),
    };
    format!("After 5 s at {overload} requests per second {words} {how_long}.\n")
}

/// `p99 at most 1.00 ms`.
fn goal_text(goal: &CurveGoal) -> String {
    let limit_ns = (goal.limit_us * MICROSECOND as f64).round() as Nanos;
    format!("p{} at most {}", number_plain(goal.quantile * 100.0), time_text(limit_ns))
}

/// A number without digits that say nothing: 99, 99.9, 0.3.
fn number_plain(value: f64) -> String {
    ((value * 1e6).round() / 1e6).to_string()
}

/// A rate as a whole number.
fn count(rate: f64) -> String {
    grouped(rate.round() as u64)
}

#[cfg(test)]
mod tests {
    use pummel_measure::rate_search::NoRate;

    use super::*;
    use crate::words::search::no_rate_words;

    const RECOVERY: Recovery = Recovery { slower: 0.12, seconds: 0.3, lasted: false };

    fn found() -> CurveSearch {
        CurveSearch {
            low: Some(74_100.4),
            high: Some(76_900.0),
            closed_loop_rate: 98_000.0,
            line_runs: 10,
            overload: Some(CurveOverload { rate: 92_280.0, recovery: Some(RECOVERY) }),
            ..CurveSearch::default()
        }
    }

    /// The series of a search for 1 ms at p99 that found this rate.
    fn series(found_rate: Option<f64>, search: Option<CurveSearch>) -> CurveDocument {
        let goals = vec![CurveGoal { quantile: 0.99, limit_us: 1_000.0 }];
        CurveDocument { goals, found_rate, search, ..CurveDocument::default() }
    }

    fn said(rate: f64, search: CurveSearch) -> String {
        text(&series(Some(rate), Some(search)), None)
    }

    fn after(recovery: Option<Recovery>) -> String {
        said(74_100.4, CurveSearch { overload: Some(CurveOverload { rate: 92_280.0, recovery }), ..found() })
    }

    #[test]
    fn an_answer_says_how_sure_it_is_and_what_an_overload_left() {
        assert_eq!(
            said(74_100.4, found()),
            "\nThe goal (p99 at most 1.00 ms) is met at 74,100 requests per second, with 95 % confidence, also by the upper \
             bound of a run of its own there.\n\
             The limit is reached between 74,100 and 76,900 requests per second (10 runs in random order; 98,000 in a closed \
             loop).\n\
             After 5 s at 92,280 requests per second the same rate was 12 % slower for 0.3 s.\n"
        );
        let lasting = Recovery { lasted: true, ..RECOVERY };
        assert!(after(Some(lasting)).ends_with("slower as long as was looked.\n"));
        let much = Recovery { slower: 52.58, ..lasting };
        assert!(
            after(Some(much))
                .ends_with("requests at the same rate took 53.6 times as long, as long as was looked.\n")
        );
        let none = Recovery { slower: 0.0, seconds: 0.0, lasted: false };
        assert!(after(Some(none)).ends_with("answered as before at once.\n"));
        assert!(!after(None).contains("After"));
    }

    #[test]
    fn no_answer_says_why() {
        let search = CurveSearch {
            reason: Some(no_rate_words(&NoRate::TooShort(1_000.0))),
            // Without an interval there is none that could be too wide.
            precise: Some(false),
            ..CurveSearch::default()
        };
        let words = text(&series(None, Some(search)), None);
        assert!(words.contains("No rate is known to meet the goal (p99 at most 1.00 ms)."), "{words}");
        assert!(
            !words.contains("--precision") && words.contains("Why: a run is too short to know"),
            "{words}"
        );
        assert!(
            text(&series(None, None), None)
                .contains("No rate is known to meet the goal (p99 at most 1.00 ms).")
        );
        let runs = SingleRuns { rate: 4_918.0, made: 2, met: 2, seconds: 3.0, is_steady: true };
        let said = |runs: SingleRuns| text(&series(None, None), Some(runs));
        assert_eq!(
            said(runs),
            "\nNOT SURE: 4,918 requests per second met the goal (p99 at most 1.00 ms) in both runs; 3 s is too short to be 95 % \
             sure: -t 10s.\n"
        );
        assert!(said(SingleRuns { made: 1, met: 1, ..runs }).contains(") in one run; "));
        assert!(said(SingleRuns { made: 3, ..runs }).contains(") in 2 of 3 runs; "));
        assert!(said(SingleRuns { is_steady: false, ..runs }).contains("not steady"));
        assert!(said(SingleRuns { seconds: 2_000.0, ..runs }).ends_with("that is not 95 % sure.\n"));
    }

    #[test]
    fn a_goal_that_is_met_everywhere_is_met_at_least_there() {
        let search = CurveSearch { low: None, high: None, at_least: true, ..found() };
        let words = said(96_040.0, search);
        let first = "is met at 96,040 requests per second, at least: more were not asked for, since 98,000 are the most that were \
                     answered in a closed loop.\n";
        assert!(words.contains(first) && !words.contains("The limit is reached"), "{words}");
    }

    #[test]
    fn a_goal_that_was_confirmed_below_runs_that_met_it_too_is_not_said_to_be_the_greatest_rate() {
        let search = CurveSearch { low: None, high: None, at_least: true, open_above: true, ..found() };
        let words = said(86_436.0, search);
        assert!(!words.contains("more were not asked for"), "{words}");
        assert!(
            words
                .contains("86,436 requests per second, at least: runs at greater rates met it too, but were"),
            "{words}"
        );
        assert!(words.contains("(98,000 are the most that were answered in a closed loop)"), "{words}");
    }

    #[test]
    fn a_rate_that_what_is_carried_bounds_says_so() {
        let search =
            CurveSearch { low: Some(93_000.0), high: Some(94_000.0), not_carried: Some(94_000.0), ..found() };
        let words = said(93_000.0, search);
        let limit = "The limit is reached between 93,000 and 94,000 requests per second: 94,000 were not answered as fast as they \
                     were asked, while the times would allow more (10 runs in random order; 98,000 in a closed loop).\n";
        assert!(words.contains(limit), "{words}");
    }

    #[test]
    fn a_rate_in_closed_loop_that_was_the_generators_is_not_called_the_servers() {
        let generator = Some("Thread 1 was busy for 98 % of the time".to_owned());
        let search = CurveSearch { at_least: true, closed_loop_generator: generator, ..found() };
        let words = said(96_040.0, search);
        assert!(
            words.contains("98,000 are the most that this generator asked for in a closed loop"),
            "{words}"
        );
        assert!(
            words.contains("the generator was the limit, and what the server can do is not known"),
            "{words}"
        );
    }
}
