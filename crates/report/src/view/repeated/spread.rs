//! How far several runs of one configuration differ, where chance within a run does not explain it.

use pummel_measure::words::was;

use crate::repetition::{RepeatedFigure, Repetition};
use crate::view::several::{name_of, value};
use crate::view::{Line, Text};

/// The lines behind `Runs`: the figures in which the runs fall in groups, then those that differ otherwise, and whether the server was
/// restarted.
pub(super) fn lines(repetition: &Repetition, is_everything: bool) -> Vec<Line> {
    let differing: Vec<&RepeatedFigure> =
        repetition.figures.iter().filter(|figure| is_beyond_chance(figure)).collect();
    let mut sentences: Vec<String> = groups(&differing).into_iter().collect();
    let others: Vec<&str> = differing
        .iter()
        .filter(|figure| figure.spread.is_some_and(|spread| spread.groups.is_none()))
        .map(|figure| name_of(figure.metric))
        .collect();
    match others.as_slice() {
        [] => {}
        [one] => sentences.push(format!("{one} differs more than chance within a run explains")),
        [first @ .., last] => sentences
            .push(format!("{} and {last} differ more than chance within a run explains", first.join(", "))),
    }
    if !sentences.is_empty() || is_everything {
        sentences.extend(restarted(repetition, !sentences.is_empty()));
    }
    if sentences.is_empty() { Vec::new() } else { vec![Line::new("Runs", Text::plain(sentences.join(". ")))] }
}

fn is_beyond_chance(figure: &RepeatedFigure) -> bool {
    figure.spread.is_some_and(|spread| spread.is_beyond_chance == Some(true))
}

/// The two groups that the runs fall in by each of some figures; `None` where they do not.
fn groups(figures: &[&RepeatedFigure]) -> Option<String> {
    let mut parts = Vec::new();
    for figure in figures {
        let Some(groups) = figure.spread.and_then(|spread| spread.groups) else { continue };
        let [low, high] = groups.medians.map(|median| value(figure.metric, median));
        let [lower, upper] = groups.runs;
        let name = name_of(figure.metric);
        parts.push(match parts.is_empty() {
            true => format!("{name} has two groups: {lower} runs near {low}, {upper} near {high}"),
            false => format!("{name}: {lower} near {low}, {upper} near {high}"),
        });
    }
    (!parts.is_empty()).then(|| format!("{}, which chance does not explain", parts.join("; ")))
}

/// Whether the server was restarted, with the option that does it where the runs differ.
fn restarted(repetition: &Repetition, is_advised: bool) -> Option<String> {
    let (subject, many) = match repetition.plan.servers.len() {
        1 => ("The server", 1),
        _ => ("The servers", 2),
    };
    let verb = was(many);
    match repetition.restarted {
        Some(true) => Some(format!("{subject} {verb} restarted before each of them")),
        Some(false) if is_advised => Some(format!("{subject} {verb} not restarted between them (--restart)")),
        Some(false) => Some(format!("{subject} {verb} not restarted between them")),
        None => None,
    }
}
