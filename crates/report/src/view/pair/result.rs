//! The result of a comparison in sentences: the words in capitals, the figure that was judged, and the other judged figures.

use pummel_measure::compare::Design;
use pummel_measure::words::grouped;

use super::doubts;
use super::headline::Headline;
use super::judged::{Judged, judged, open_doubts};
use super::sides::{run_seconds, runs_made};
use super::word::Word;
use crate::comparison::{ClaimKind, Comparison, Doubt, Outcome, PairCommand, Row, Word as RowWord};
use crate::run_figures::Metric;
use crate::view::cells::{option_time, plain};
use crate::view::change::{ChangeUnit, possible, size_words};
use crate::view::several::name_of;
use crate::view::{Line, Text, Tone};

/// How much longer runs are advised to be that were not steady.
const LONGER: f64 = 5.0;

/// The lines behind `Result`: one for each side beside the first, but for those that would say the same.
pub(super) fn results(comparisons: &[Comparison], headline: &Headline) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for pair in comparisons {
        let own =
            if comparisons.len() == 1 { headline.clone() } else { Headline::of(std::slice::from_ref(pair)) };
        let text = result(pair, &own);
        if lines.iter().all(|line| line.text != text) {
            lines.push(Line::new(if lines.is_empty() { "Result" } else { "" }, text));
        }
    }
    // The first word of all decides the status.
    let first = |line: &Line| line.text.0.first().map(|span| span.words.clone());
    let decisive = headline.words.first().map(|word| word.text().to_owned());
    if let Some(place) = lines.iter().position(|line| decisive.is_some() && first(line) == decisive) {
        let line = lines.remove(place);
        lines.iter_mut().for_each(|line| line.label = "");
        lines.insert(0, Line { label: "Result", ..line });
    }
    lines
}

/// The sentence about two sides.
pub(super) fn result(pair: &Comparison, headline: &Headline) -> Text {
    let mut text = Text::default();
    for (place, word) in headline.words.iter().enumerate() {
        text = text.and(Tone::Plain, if place > 0 { ", " } else { "" }).and(word.tone(), word.text());
    }
    let has = |word: Word| headline.words.contains(&word);
    let reason = pair.reason.as_deref().map(|reason| reason.trim_end_matches('.'));
    let mut reasons = Vec::new();
    if has(Word::Interrupted) {
        text = text.and(Tone::Plain, format!(" after {}", runs_made(pair)));
    }
    if has(Word::Partial) {
        let why = reason.map_or_else(String::new, |reason| format!(", {reason}"));
        reasons.push(format!("{}{why}", runs_made(pair)));
    }
    if has(Word::WrongValues) {
        reasons
            .push(format!("{} in all runs (pummel run --verify says which)", grouped(pair.wrong_values())));
    }
    let statement = judged(pair).first().map(|first| statement(pair, first));
    // Of a few pairs of more there is nothing to say yet.
    let is_cut = has(Word::Interrupted) || has(Word::Partial);
    let statement =
        statement.filter(|_| !is_cut || !pair.doubts.iter().any(|doubt| !doubt.leaves_intervals()));
    let is_begun = !text.0.is_empty();
    if !reasons.is_empty() {
        text = text.and(Tone::Plain, format!(": {}", reasons.join("; ")));
    }
    let Some(statement) = statement else { return text };
    let between = match (is_begun, reasons.is_empty() && !has(Word::Interrupted)) {
        (false, _) => "",
        (true, true) => ": ",
        (true, false) => ". ",
    };
    statement.0.into_iter().fold(text.and(Tone::Plain, between), |text, span| text.and(span.tone, span.words))
}

/// A line for each further judged figure.
pub(super) fn further(pair: &Comparison) -> Vec<Line> {
    let all = judged(pair);
    let told = all.first().map(|first| statement(pair, first).words());
    let mut lines: Vec<Line> = Vec::new();
    for one in all.iter().skip(1) {
        let statement = statement(pair, one);
        if told.as_deref() == Some(&statement.words())
            || lines.iter().any(|line| line.text.words().ends_with(&statement.words()))
        {
            continue;
        }
        let word = match one.word {
            Some(word) => Text::default().and(word.tone(), word.text()).and(Tone::Plain, ": "),
            None => Text::default(),
        };
        let text = statement.0.into_iter().fold(word, |text, span| text.and(span.tone, span.words));
        lines.push(Line::new(if lines.is_empty() { "Judged" } else { "" }, text));
    }
    lines
}

/// What is said of a judged figure, without its word.
fn statement(pair: &Comparison, judged: &Judged<'_>) -> Text {
    match judged.word {
        Some(Word::NotDecided) => not_decided(pair, judged),
        Some(Word::Worse) => {
            let limit = judged.claim.map_or(0.0, |claim| claim.claim.limit);
            let allowed = match limit {
                0.0 => ", nothing was allowed".to_owned(),
                limit => format!(", {} were allowed", limit_words(limit)),
            };
            changed(pair, judged.row).and(Tone::Plain, format!("{allowed}{}", p_words(judged.row)))
        }
        Some(Word::NotSure) => {
            let limit = judged.claim.map_or(0.0, |claim| claim.claim.limit);
            let subject = format!(
                "{} is not shown to be worse by less than {}: it is ",
                subject(pair, judged.row),
                limit_words(limit)
            );
            between(judged.row)
                .map_or_else(Text::default, |words| Text::plain(subject).and(Tone::Figure, words))
        }
        Some(_) | None => shown(pair, judged),
    }
}

/// The reasons why a figure is not decided, with what is possible.
fn not_decided(pair: &Comparison, judged: &Judged<'_>) -> Text {
    let why = open_doubts(pair, judged);
    if why.is_empty() {
        return changed(pair, judged.row);
    }
    let mut text = Text::plain(doubts::words(pair, &why));
    let row = judged.row;
    if let (Some(change), Some(_)) = (row.change, row.ci) {
        let unit = ChangeUnit::of(pair.design, change, row.ci);
        let figure = unit.figure(change);
        text = text.and(Tone::Plain, format!(". {} is ", subject(pair, row))).and(Tone::Figure, figure);
        text = match range(row) {
            Some(range) => text.and(Tone::Plain, format!(", and anything {range} is possible")),
            None => text,
        };
    }
    match advice(pair, &why) {
        Some(advice) => text.and(Tone::Plain, format!(". {advice}")),
        None => text,
    }
}

/// What to do where runs that were not steady decide nothing.
fn advice(pair: &Comparison, why: &[Doubt]) -> Option<String> {
    let is_unsteady = !why.is_empty() && why.iter().all(Doubt::leaves_intervals);
    let run_s = run_seconds(pair.sides.iter().flat_map(|side| &side.runs))?;
    // Runs are measured a little longer than they were asked for.
    let time = option_time((10.0 * LONGER * run_s).round() / 10.0);
    (is_unsteady && pair.command == PairCommand::Ab).then(|| format!("Longer runs (-t {time}), more pairs"))
}

/// What is shown of a figure.
fn shown(pair: &Comparison, judged: &Judged<'_>) -> Text {
    let row = judged.row;
    match row.word {
        RowWord::Differ => {
            let noise = if row.is_below_noise { "; below what this machine can tell apart" } else { "" };
            let allowed = allowed_words(judged);
            changed(pair, row).and(Tone::Plain, format!("{allowed}{}{noise}", p_words(row)))
        }
        RowWord::NotComparable => {
            let text = Text::plain("not comparable, see Limit: ");
            let changed = changed(pair, row);
            let text = changed.0.into_iter().fold(text, |text, span| text.and(span.tone, span.words));
            text.and(Tone::Plain, allowed_words(judged))
        }
        RowWord::NoDifference => {
            let Some(between) = between(row) else { return changed(pair, row) };
            let text = Text::plain("no difference shown: ");
            let text =
                text.and(Tone::Plain, format!("{} is ", subject(pair, row))).and(Tone::Figure, between);
            text.and(Tone::Plain, format!("{}{}", allowed_words(judged), seen_words(pair, row)))
        }
        RowWord::NotJudged | RowWord::NotKnown => changed(pair, row).and(Tone::Plain, allowed_words(judged)),
    }
}

/// What a claim that holds allowed; empty where there is none, or where the side is better.
fn allowed_words(judged: &Judged<'_>) -> String {
    let Some(claim) = judged.claim.filter(|claim| claim.outcome == Outcome::Held) else {
        return String::new();
    };
    let limit = claim.claim.limit;
    match judged.row.worsening() {
        Some((_, high)) if high <= 0.0 => String::new(),
        Some((_, high)) if high <= limit => format!(", within the {} allowed", limit_words(limit)),
        _ if claim.claim.kind == ClaimKind::Worse => {
            format!(", not shown to be worse by more than {}", limit_words(limit))
        }
        _ => String::new(),
    }
}

/// The figure of a side, such as `p99 of B`.
fn subject(pair: &Comparison, row: &Row) -> String {
    let name = match row.metric {
        Metric::Rate => "the rate",
        other => name_of(other),
    };
    format!("{name} of {}", pair.names.0[1])
}

/// By how much a figure changed, with its interval.
fn changed(pair: &Comparison, row: &Row) -> Text {
    let Some(change) = row.change else { return Text::plain(format!("{} is not known", subject(pair, row))) };
    let unit = ChangeUnit::of(pair.design, change, row.ci);
    let text = Text::plain(format!("{} is ", subject(pair, row))).and(Tone::Figure, unit.figure(change));
    text.and(Tone::Plain, row.ci.map_or_else(String::new, |ends| unit.behind(change, ends)))
}

/// Both ends of what is possible, such as `between 0.6 % lower and 1.9 % higher`.
fn between(row: &Row) -> Option<String> {
    let (low, high) = row.ci?;
    Some(match [possible(low), possible(high)] {
        [low, high] if low == high => low,
        [low, high] => format!("between {low} and {high}"),
    })
}

/// Both ends of what is possible, such as `from 60 % lower to twice as high`; `None` where they are one.
fn range(row: &Row) -> Option<String> {
    let (low, high) = row.ci?;
    let [low, high] = [possible(low), possible(high)];
    (low != high).then(|| format!("from {low} to {high}"))
}

/// The least change that such an experiment finds in 4 of 5 cases.
fn seen_words(pair: &Comparison, row: &Row) -> String {
    match row.would_have_been_seen.filter(|_| pair.design == Design::Paired && row.ci.is_some()) {
        Some(seen) if seen < 1.0 => format!("; {} would have been seen", size_words(seen)),
        Some(seen) => format!("; only a factor of {:.1} or more would have been seen", 1.0 + seen),
        None => String::new(),
    }
}

/// What a claim allows, in percent.
pub(in crate::view) fn limit_words(limit: f64) -> String {
    format!("{} %", plain(100.0 * limit))
}

fn p_words(row: &Row) -> String {
    match row.p_corrected {
        Some(p) if p < 0.001 => "; p is below 0.001".to_owned(),
        Some(p) => format!("; p = {p:.3}"),
        None => String::new(),
    }
}
