//! The words of the report about a run that was not at one level, and about ends that were decided while a run went on.

use pummel_measure::uncertainty::quantile_name;
use pummel_measure::words::{percent, rate_text};

use super::page::Page;
use super::units::micros_text;
use crate::document::{ChangeResult, Document, MergedResult, UntilOutcome};
use crate::numbers::number;

/// What changed in a run that was not at one level; `None` where nothing did.
pub(crate) fn words(document: &Document) -> Option<String> {
    if document.steady != Some(false) {
        return None;
    }
    if !document.merged.is_empty() {
        return Some(merged_words(&document.merged));
    }
    let what = document.change.as_ref().map_or_else(|| document.unsteady_words(), change_words);
    Some(format!("{what}: no intervals"))
}

/// Which of the results that were added up were not steady, and why the first of them was not.
fn merged_words(parts: &[MergedResult]) -> String {
    let unsteady: Vec<&MergedResult> = parts.iter().filter(|part| part.steady == Some(false)).collect();
    let Some(first) = unsteady.first() else { return "A result of the sum was not steady.".to_owned() };
    let name = &first.file;
    let text = match &first.change {
        Some(change) => format!("{name} was not steady: {}", change_words(change)),
        None => format!("{name} was not steady"),
    };
    match unsteady.len() {
        1 => format!("{text}."),
        count => format!("{text}; {count} of {} results were not steady.", parts.len()),
    }
}

/// A change as words, such as `p50 180 us before 6.2 s, 121 us after`.
fn change_words(change: &ChangeResult) -> String {
    let text = |value: Option<f64>| match (change.figure.as_str(), value) {
        (_, None) => "unknown".to_owned(),
        ("p50", Some(us)) => micros_text(us),
        ("rate", Some(rate)) => rate_text(rate),
        (_, Some(share)) => percent(share),
    };
    let (before, after) = (text(change.before), text(change.after));
    format!("{} was {before} before {:.1} s and {after} after", change.figure, change.at_s)
}

/// Adds how the warm-up and the measurement ended, where that was decided while they went on.
pub(super) fn ends(page: &mut Page, document: &Document) {
    if let Some(warm_up) = &document.warmup {
        page.field("Warm-up", &warm_up.words());
    }
    if let Some(until) = &document.until {
        page.field("Until", &until_words(until));
    }
}

fn until_words(until: &UntilOutcome) -> String {
    let percent = |share: f64| format!("{} %", number(share * 100.0));
    let (name, asked) = (quantile_name(until.quantile), percent(until.asked));
    let known = until.half_width.map_or_else(
        || format!("how sure {name} is, is not known"),
        |half_width| format!("{name} +- {}", percent(half_width)),
    );
    match until.reached {
        true => format!("{known} ({asked} asked for)"),
        false => format!("{known}, {asked} WAS NOT REACHED"),
    }
}
