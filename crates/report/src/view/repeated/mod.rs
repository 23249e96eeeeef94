//! The view of several runs of one configuration: what ran, what came of all of them, and how far they differ.

mod figures;
mod headline;
mod ran;
mod result;
mod spread;

#[cfg(test)]
mod tests;

use super::run::Wanted;
use super::several::{made_again, of_runs, outcomes, trust, unsteady, without_effect};
use super::{Line, Text, Tone, View};
use crate::repetition::Repetition;
use crate::run_figures::RunFigures;

pub use self::headline::headline;

/// The view of several runs.
pub fn view(repetition: &Repetition, wanted: Wanted) -> View {
    let is_everything = wanted == Wanted::Everything;
    let runs: Vec<&RunFigures> = repetition.runs.iter().collect();
    let mut lines = vec![Line::new("Result", result::result(repetition, &headline(repetition)))];
    lines.extend(goal(repetition));
    lines.extend(outcomes(&runs));
    let others = repetition.runs.iter().flat_map(|run| &run.other_outcomes);
    lines.extend(without_effect([(others, String::new())]));
    lines.extend(made_again(repetition.made_again));
    lines.extend(trust(&runs, false));
    lines.extend(limit(repetition));
    lines.extend(spread::lines(repetition, is_everything));
    lines.extend(unsteady(&runs));
    let tables = figures::tables(repetition, is_everything);
    let notes = figures::notes(repetition, &tables, is_everything);
    View { ran: ran::ran(repetition), lines, tables, notes, ..View::default() }
}

/// The result in a sentence, as a title has it.
pub fn title(repetition: &Repetition) -> String {
    result::result(repetition, &headline(repetition)).words()
}

/// The runs in one line for scripts: the words, the rate, and the quantiles that every run knows.
pub fn brief(repetition: &Repetition) -> String {
    let words: Vec<&str> = headline(repetition).words.into_iter().map(super::run::Word::text).collect();
    let begin = if words.is_empty() { String::new() } else { format!("{} ", words.join(", ")) };
    format!("{begin}{}{}", ran::runs_made(repetition), figures::brief(repetition))
}

/// The runs that missed a goal, of those that had one.
fn goal(repetition: &Repetition) -> Option<Line> {
    let (missed, judged) = repetition.missed();
    if judged == 0 {
        return None;
    }
    let text = match missed {
        0 => Text::plain(format!("met in {}", of_runs(judged, judged))),
        missed => Text::default()
            .and(Tone::Alarm, "missed")
            .and(Tone::Plain, format!(" in {}", of_runs(missed, judged))),
    };
    Some(Line::new("Goal", text))
}

/// The runs in which pummel itself was the limit.
fn limit(repetition: &Repetition) -> Option<Line> {
    let limited = repetition.runs.iter().filter(|run| run.limit == "generator").count();
    let words = format!("pummel itself in {}", of_runs(limited, repetition.runs.len()));
    (limited > 0).then(|| Line::new("Limit", Text::plain(words)))
}
