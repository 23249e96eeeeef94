//! What a search found, as words and as JSON.

use pummel_logic::plan::Goal;
use pummel_measure::limit::Cause;
use pummel_measure::rate_search::{Answer, NoRate, Recovery, Unsound};
use pummel_measure::summary::time_text;
use pummel_measure::words::{grouped, percent};
use serde_json::{Value, json};

use crate::words::limit::cause_words;

/// What a search found, so far or at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// The answer.
    pub answer: Answer,
    /// Completed requests per second in a closed loop.
    pub capacity: f64,
    /// The cause where the generator was the limit in a closed loop; `None` where it was not.
    pub generator: Option<Cause>,
    /// Number of runs through which the line of the answer was drawn.
    pub line_runs: usize,
    /// The rate of the overload, in requests per second; `None` where there was none.
    pub overload: Option<f64>,
    /// What was left of the overload; `None` where that is not known.
    pub recovery: Option<Recovery>,
}

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

/// The answer in a few sentences, for a search that was to meet `goals`.
pub fn text(search: Option<&SearchResult>, goals: &[Goal], met: Option<SingleRuns>) -> String {
    let goals: Vec<String> = goals.iter().map(goal_text).collect();
    let goals = goals.join(" and ");
    let Some(SearchResult { answer, capacity, generator, line_runs, .. }) = search else {
        return no_rate(&goals, met);
    };
    let mut text = match answer.rate {
        Some(rate) if answer.at_least => {
            let most = format!(
                "{} are the most that {} in a closed loop",
                count(*capacity),
                if generator.is_some() { "this generator asked for" } else { "were answered" }
            );
            let more = match answer.is_open_above {
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
    if let Some((low, high)) = answer.interval {
        let carried = answer.not_carried.map_or_else(String::new, |rate| {
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
            "In a closed loop the generator was the limit, and what the server can do is not known: {}.\n",
            cause_words(generator)
        );
    }
    if answer.precise == Some(false) && answer.interval.is_some() {
        text += "That is wider than --precision asks for: longer runs (-t) would be surer.\n";
    }
    if let Some(reason) = &answer.reason {
        text += &format!("Why: {}.\n", reason_words(reason));
    }
    text + &recovery_words(search)
}

/// The reason why there is no rate, or what is left open, as a sentence without its full stop.
fn reason_words(reason: &NoRate) -> String {
    let last = |rate: f64| format!("the last was at {} requests per second", count(rate));
    match reason {
        NoRate::Unsound(runs, why) => {
            let why = match why {
                Unsound::Idle => "no request was due in it".to_owned(),
                Unsound::Unsteady => "the run was not steady".to_owned(),
                Unsound::Generator(cause) => cause_words(cause),
            };
            format!("{runs} runs in a row say nothing about the server; the last: {why}")
        }
        NoRate::NothingCompleted => "the server completed nothing in closed loop".to_owned(),
        NoRate::MissedAt(rate) => format!("the goal was missed at {} requests per second too", count(*rate)),
        NoRate::NotCarried => {
            "the rates around the goal were not carried: the server gives way before its times show it".to_owned()
        }
        NoRate::NoRise => {
            "the times do not rise clearly with the rate around the goal: longer runs (-t) would show where it lies"
                .to_owned()
        }
        NoRate::TooShort(rate) => format!(
            "a run is too short to know the quantile from above: longer runs (-t) would show it; {}",
            last(*rate)
        ),
        NoRate::Unconfirmed(rate) => format!(
            "no run of its own met the goal with its upper bound: longer runs (-t) would be surer; {}",
            last(*rate)
        ),
        NoRate::NoLine(rate) => format!(
            "no line fits the runs around {} requests per second: longer runs (-t) would show it",
            count(*rate)
        ),
    }
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
fn recovery_words(search: Option<&SearchResult>) -> String {
    let Some(SearchResult { overload: Some(overload), recovery: Some(recovery), .. }) = search else {
        return String::new();
    };
    let overload = count(*overload);
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

/// The fields of a search in the JSON of a curve.
pub fn json(search: &SearchResult) -> Value {
    let SearchResult { answer, capacity, generator, line_runs, overload, recovery } = search;
    json!({
        "low": answer.interval.map(|(low, _)| low),
        "high": answer.interval.map(|(_, high)| high),
        "not_carried": answer.not_carried,
        "at_least": answer.at_least,
        "precise": answer.precise,
        "reason": answer.reason.as_ref().map(reason_words),
        "closed_loop_rate": capacity,
        "closed_loop_generator": generator.as_ref().map(cause_words),
        "line_runs": line_runs,
        "overload": overload.map(|rate| json!({
            "rate": rate,
            "slower": recovery.map(|recovery| recovery.slower),
            "seconds": recovery.map(|recovery| recovery.seconds),
            "lasted": recovery.map(|recovery| recovery.lasted),
        })),
    })
}

/// `p99 at most 1.00 ms`.
fn goal_text(goal: &Goal) -> String {
    format!("p{} at most {}", number_plain(goal.quantile * 100.0), time_text(goal.limit_ns))
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
    use super::*;

    const GOAL: Goal = Goal { quantile: 0.99, limit_ns: 1_000_000 };

    fn found() -> SearchResult {
        SearchResult {
            answer: Answer {
                rate: Some(74_100.4),
                interval: Some((74_100.4, 76_900.0)),
                ..Answer::default()
            },
            capacity: 98_000.0,
            generator: None,
            line_runs: 10,
            overload: Some(92_280.0),
            recovery: Some(Recovery { slower: 0.12, seconds: 0.3, lasted: false }),
        }
    }

    fn said(search: &SearchResult) -> String {
        text(Some(search), &[GOAL], None)
    }

    #[test]
    fn an_answer_says_how_sure_it_is_and_what_an_overload_left() {
        assert_eq!(
            said(&found()),
            "\nThe goal (p99 at most 1.00 ms) is met at 74,100 requests per second, with 95 % confidence, also by the upper \
             bound of a run of its own there.\n\
             The limit is reached between 74,100 and 76,900 requests per second (10 runs in random order; 98,000 in a closed \
             loop).\n\
             After 5 s at 92,280 requests per second the same rate was 12 % slower for 0.3 s.\n"
        );
        let lasting = Recovery { lasted: true, ..found().recovery.expect("known") };
        assert!(
            said(&SearchResult { recovery: Some(lasting), ..found() })
                .ends_with("slower as long as was looked.\n")
        );
        let much = Recovery { slower: 52.58, ..lasting };
        assert!(
            said(&SearchResult { recovery: Some(much), ..found() })
                .ends_with("requests at the same rate took 53.6 times as long, as long as was looked.\n")
        );
        let none = Recovery { slower: 0.0, seconds: 0.0, lasted: false };
        assert!(
            said(&SearchResult { recovery: Some(none), ..found() })
                .ends_with("answered as before at once.\n")
        );
        assert!(!said(&SearchResult { recovery: None, ..found() }).contains("After"));
    }

    #[test]
    fn no_answer_says_why() {
        let answer = Answer {
            reason: Some(NoRate::TooShort(1_000.0)),
            // Without an interval there is none that could be too wide.
            precise: Some(false),
            ..Answer::default()
        };
        let words = said(&SearchResult { answer, overload: None, recovery: None, ..found() });
        assert!(words.contains("No rate is known to meet the goal (p99 at most 1.00 ms)."), "{words}");
        assert!(
            !words.contains("--precision") && words.contains("Why: a run is too short to know"),
            "{words}"
        );
        assert!(
            text(None, &[GOAL], None).contains("No rate is known to meet the goal (p99 at most 1.00 ms).")
        );
        let runs = SingleRuns { rate: 4_918.0, made: 2, met: 2, seconds: 3.0, is_steady: true };
        let said = |runs: SingleRuns| text(None, &[GOAL], Some(runs));
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
        let answer = Answer { rate: Some(96_040.0), at_least: true, ..Answer::default() };
        let search = SearchResult { answer, ..found() };
        let words = said(&search);
        let first = "is met at 96,040 requests per second, at least: more were not asked for, since 98,000 are the most that were \
                     answered in a closed loop.\n";
        assert!(words.contains(first) && !words.contains("The limit is reached"), "{words}");
        let value = json(&search);
        assert_eq!(
            (&value["low"], &value["high"], &value["at_least"]),
            (&Value::Null, &Value::Null, &json!(true))
        );
    }

    #[test]
    fn a_goal_that_was_confirmed_below_runs_that_met_it_too_is_not_said_to_be_the_greatest_rate() {
        let answer =
            Answer { rate: Some(86_436.0), at_least: true, is_open_above: true, ..Answer::default() };
        let words = said(&SearchResult { answer, ..found() });
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
        let answer = Answer {
            rate: Some(93_000.0),
            interval: Some((93_000.0, 94_000.0)),
            not_carried: Some(94_000.0),
            ..Answer::default()
        };
        let search = SearchResult { answer, ..found() };
        let words = said(&search);
        let limit = "The limit is reached between 93,000 and 94,000 requests per second: 94,000 were not answered as fast as they \
                     were asked, while the times would allow more (10 runs in random order; 98,000 in a closed loop).\n";
        assert!(words.contains(limit), "{words}");
        let value = json(&search);
        assert_eq!((&value["high"], &value["not_carried"]), (&json!(94_000.0), &json!(94_000.0)));
        assert_eq!(json(&found())["not_carried"], Value::Null);
    }

    #[test]
    fn a_rate_in_closed_loop_that_was_the_generators_is_not_called_the_servers() {
        let generator = Some(Cause::GeneratorSendBuffer { share: 0.98 });
        let answer = Answer { rate: Some(96_040.0), at_least: true, ..Answer::default() };
        let search = SearchResult { answer, generator, overload: None, recovery: None, ..found() };
        let words = said(&search);
        assert!(
            words.contains("98,000 are the most that this generator asked for in a closed loop"),
            "{words}"
        );
        assert!(
            words.contains("the generator was the limit, and what the server can do is not known"),
            "{words}"
        );
        let words =
            "this machine's send buffers: they were full for 98 % of the time. Larger ones: --send-buffer";
        assert_eq!(json(&search)["closed_loop_generator"], words);
    }

    #[test]
    fn the_json_has_the_interval_and_the_overload() {
        let value = json(&found());
        assert_eq!(value["low"], 74_100.4);
        assert_eq!(value["overload"]["seconds"], 0.3);
        assert_eq!(json(&SearchResult { overload: None, ..found() })["overload"], Value::Null);
    }
}
