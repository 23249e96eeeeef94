//! The words for what a search left open.

use pummel_measure::rate_search::{NoRate, Unsound};
use pummel_measure::words::grouped;

use super::limit::cause_words;

/// The reason why there is no rate, or what is left open, as a sentence without its full stop.
pub fn no_rate_words(reason: &NoRate) -> String {
    let last = |rate: f64| format!("the last was at {} requests per second", grouped_rate(rate));
    match reason {
        NoRate::Unsound { runs, why } => {
            let why = match why {
                Unsound::Idle => "no request was due in it".to_owned(),
                Unsound::Unsteady => "the run was not steady".to_owned(),
                Unsound::Generator(cause) => cause_words(cause),
            };
            format!("{runs} runs in a row say nothing about the server; the last: {why}")
        }
        NoRate::NothingCompleted => "the server completed nothing in closed loop".to_owned(),
        NoRate::MissedAt { rate } => format!("the goal was missed at {} requests per second too", grouped_rate(*rate)),
        NoRate::NotCarried => {
            "the rates around the goal were not carried: the server gives way before its times show it".to_owned()
        }
        NoRate::NoRise => {
            "the times do not rise clearly with the rate around the goal: longer runs (-t) would show where it lies"
                .to_owned()
        }
        NoRate::TooShort { rate } => format!(
            "a run is too short to know the quantile from above: longer runs (-t) would show it; {}",
            last(*rate)
        ),
        NoRate::Unconfirmed { rate } => format!(
            "no run of its own met the goal with its upper bound: longer runs (-t) would be surer; {}",
            last(*rate)
        ),
        NoRate::NoLine { rate } => format!(
            "no line fits the runs around {} requests per second: longer runs (-t) would show it",
            grouped_rate(*rate)
        ),
    }
}

/// A rate as a whole number.
fn grouped_rate(rate: f64) -> String {
    grouped(rate.round() as u64)
}
