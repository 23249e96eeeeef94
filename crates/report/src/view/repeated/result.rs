//! The result of several runs in a sentence: the words in capitals with their reasons, the usual rate, the hits and the errors.

use pummel_logic::plan::Group;
use pummel_measure::words::{counted, grouped};

use super::ran::runs_made;
use crate::repetition::Repetition;
use crate::run_figures::{Lookups, Metric};
use crate::view::cells::{rate, rate_interval, share};
use crate::view::run::counts::asked_rate_of;
use crate::view::run::{Headline, Word};
use crate::view::several::of_runs;
use crate::view::{Text, Tone};

/// The sentence behind `Result`.
pub(super) fn result(repetition: &Repetition, headline: &Headline) -> Text {
    let mut text = Text::default();
    for (place, word) in headline.words.iter().enumerate() {
        text = text.and(Tone::Plain, if place > 0 { ", " } else { "" }).and(word.tone(), word.text());
    }
    let reasons: Vec<String> = headline.words.iter().filter_map(|word| reason(repetition, *word)).collect();
    let is_begun = !text.0.is_empty();
    if headline.words.first() == Some(&Word::Interrupted) {
        text = text.and(Tone::Plain, format!(" after {}", runs_made(repetition)));
    }
    if !reasons.is_empty() {
        text = text.and(Tone::Plain, format!(": {}", reasons.join("; ")));
    }
    if repetition.runs.is_empty() {
        return text;
    }
    with_rate(text.and(Tone::Plain, if is_begun { ". " } else { "" }), repetition)
}

/// The reason for a word; `None` where a line of its own has it.
fn reason(repetition: &Repetition, word: Word) -> Option<String> {
    match word {
        Word::Partial => {
            let why = repetition.reason.as_deref().map(|reason| reason.trim_end_matches('.'));
            let why = why.map_or_else(String::new, |reason| format!(", {reason}"));
            Some(format!("{}{why}", runs_made(repetition)))
        }
        Word::WrongValues => Some(format!(
            "{} in all runs (pummel run --verify says which)",
            grouped(repetition.wrong_values())
        )),
        _ => None,
    }
}

/// The text with the usual rate, and the hits and errors of all runs together.
fn with_rate(mut text: Text, repetition: &Repetition) -> Text {
    let plan = &repetition.plan;
    let all = repetition.runs.len();
    if let Some(figure) = repetition.figures.iter().find(|figure| figure.metric == Metric::Rate) {
        text = text.and(Tone::Figure, format!("{} req/s", rate(figure.median)));
        let is_closed = plan.groups.iter().all(Group::is_closed_loop);
        text = text.and(
            Tone::Plain,
            match (asked_rate_of(plan), figure.interval) {
                (Some(asked), _) => format!(" of {} asked", rate(asked)),
                (None, Some((low, high))) if is_closed => format!(" ({})", rate_interval([low, high])),
                (None, _) => String::new(),
            },
        );
    }
    let mut parts: Vec<(Tone, String)> = Vec::new();
    let lookups: Option<Vec<Lookups>> = repetition.runs.iter().map(|run| run.lookups).collect();
    if let Some(lookups) = lookups {
        let sum = |of: fn(&Lookups) -> u64| lookups.iter().map(of).fold(0, u64::saturating_add);
        let (hits, misses) = (sum(|one| one.hits), sum(|one| one.misses));
        let looked_up = hits.saturating_add(misses);
        if looked_up > 0 {
            parts.push((Tone::Plain, format!("{} hits", share(hits, looked_up))));
        }
    }
    let errors: Option<Vec<u64>> = repetition.runs.iter().map(|run| run.errors).collect();
    if let Some(errors) = errors {
        let sum = errors.iter().copied().fold(0, u64::saturating_add);
        let some = errors.iter().filter(|count| **count > 0).count();
        parts.push(match sum {
            0 => (Tone::Plain, format!("no errors, in {}", of_runs(all, all))),
            sum => (Tone::Warning, format!("{} in {}", counted(sum, "error"), of_runs(some, all))),
        });
    }
    let mut next = "; ";
    for (tone, words) in parts {
        text = text.and(Tone::Plain, next).and(tone, words);
        next = ", ";
    }
    text
}
