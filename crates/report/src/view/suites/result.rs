//! The result of two suites in one sentence: the runs that differ, the gates that failed, or why nothing is decided.

use super::super::change::ChangeUnit;
use super::super::pair::Word;
use super::super::pair::judged::{Judged, judged};
use super::super::pair::result::limit_words;
use super::super::several::name_of;
use super::super::{Line, Text, Tone};
use super::doubts::{self, Reason};
use super::facts::quoted;
use super::headline::{headline, is_undecided};
use super::table::change_unit;
use crate::comparison::{NamedPair, Row, SuitesComparison, Word as RowWord};

/// Most figures that the sentence names.
const NAMED_MAX: usize = 3;

/// The line `Result`.
pub(super) fn line(suites: &SuitesComparison, reasons: &[Reason]) -> Line {
    let headline = headline(suites);
    let mut text = Text::default();
    for (place, word) in headline.words.iter().enumerate() {
        text = text.and(Tone::Plain, if place > 0 { ", " } else { "" }).and(word.tone(), word.text());
    }
    let has = |word: Word| headline.words.contains(&word);
    let mut parts: Vec<Text> = Vec::new();
    if suites.pairs.is_empty() {
        parts.push(Text::plain("no run is in both suites"));
    }
    if has(Word::Worse) || has(Word::NotSure) {
        parts.push(failed(suites));
    }
    if has(Word::NotDecided) {
        let reason = reasons.first().map(|reason| doubts::words(suites, reason));
        let failed = || suites.failed.iter().flatten().next().map(|run| format!("{} failed", quoted(run)));
        parts.extend(reason.or_else(failed).map(Text::plain));
    }
    if headline.words.is_empty() || headline.status == 1 && !suites.pairs.is_empty() {
        parts.push(shown(suites));
    }
    let begin = if text.0.is_empty() { "" } else { ": " };
    for (place, part) in parts.into_iter().enumerate() {
        text = text.and(Tone::Plain, if place == 0 { begin } else { "; " });
        text = part.0.into_iter().fold(text, |text, span| text.and(span.tone, span.words));
    }
    Line::new("Result", text)
}

/// The judged figures of all pairs that are wanted.
fn figures<'a>(
    suites: &'a SuitesComparison,
    is_wanted: impl Fn(&Judged<'_>) -> bool + 'a,
) -> Vec<(&'a NamedPair, Judged<'a>)> {
    let each =
        suites.pairs.iter().flat_map(|pair| judged(&pair.comparison).into_iter().map(move |own| (pair, own)));
    each.filter(|(_, own)| is_wanted(own)).collect()
}

/// The first of some texts, and how many more there are.
fn first_of(all: Vec<Text>, what: &str) -> Text {
    let more = all.len().saturating_sub(NAMED_MAX);
    let mut text = Text::default();
    for (place, own) in all.into_iter().take(NAMED_MAX).enumerate() {
        text = text.and(Tone::Plain, if place > 0 { ", " } else { "" });
        text = own.0.into_iter().fold(text, |text, span| text.and(span.tone, span.words));
    }
    let plural = if more == 1 { "" } else { "s" };
    text.and(Tone::Plain, if more > 0 { format!(" and {more} more {what}{plural}") } else { String::new() })
}

/// A figure of a run with its change, such as `"reads" p99 +11 %`.
fn changed(pair: &NamedPair, row: &Row) -> Text {
    let change = row.change.map(|change| change_unit(row, change).cell(change));
    let subject = format!("{} {} ", quoted(&pair.name), name_of(row.metric));
    Text::plain(subject).and(Tone::Figure, change.unwrap_or_else(|| "is not known".to_owned()))
}

/// The interval behind a change, in its unit.
fn interval(row: &Row) -> String {
    let Some((change, ends)) = row.change.zip(row.ci) else { return String::new() };
    match change_unit(row, change) {
        ChangeUnit::Factor => format!(" ({})", ChangeUnit::Factor.ends(ends)),
        percent => format!(" ({} %)", percent.ends(ends)),
    }
}

/// The gates that failed.
fn failed(suites: &SuitesComparison) -> Text {
    let failed =
        figures(suites, |own| own.claim.is_some() && matches!(own.word, Some(Word::Worse | Word::NotSure)));
    let words = failed.into_iter().map(|(pair, own)| {
        let limit = own.claim.map_or(0.0, |claim| claim.claim.limit);
        let text = changed(pair, own.row).and(Tone::Plain, interval(own.row));
        let allowed = match own.word {
            Some(Word::NotSure) => format!(", not shown to be worse by less than {}", limit_words(limit)),
            _ if limit == 0.0 => ", nothing was allowed".to_owned(),
            _ => format!(", {} were allowed", limit_words(limit)),
        };
        text.and(Tone::Plain, allowed)
    });
    first_of(words.collect(), "gate")
}

/// How many runs differ, the first of them with their changes, and how many are not decided.
fn shown(suites: &SuitesComparison) -> Text {
    let all = suites.pairs.len();
    let differing = figures(suites, |own| own.word.is_none() && own.row.word == RowWord::Differ);
    let is_differing = |pair: &&NamedPair| differing.iter().any(|(own, _)| std::ptr::eq(*own, *pair));
    let runs = suites.pairs.iter().filter(is_differing).count();
    let undecided = suites.pairs.iter().filter(|pair| is_undecided(pair)).count();
    let open = match undecided {
        0 => String::new(),
        1 => "; 1 is not decided".to_owned(),
        some => format!("; {some} are not decided"),
    };
    if runs == 0 {
        let known = all - undecided;
        let words = match undecided {
            0 if all == 1 => "no difference shown".to_owned(),
            0 => format!("no difference shown in any of {all} runs"),
            _ if known == 0 => return Text::plain(format!("none of {all} runs is decided")),
            _ => format!("no difference shown in {known} of {all} runs"),
        };
        return Text::plain(format!("{words}{open}"));
    }
    let verb = if runs == 1 { "differs" } else { "differ" };
    let noun = if all == 1 { "run" } else { "runs" };
    let words = differing.iter().enumerate().map(|(place, (pair, own))| {
        let noise = if own.row.is_below_noise { "; below what this machine can tell apart" } else { "" };
        let p = p_words(own.row, suites.tests, place == 0);
        changed(pair, own.row).and(Tone::Plain, format!("{p}{noise}"))
    });
    let text = first_of(words.collect(), "figure");
    let begin = Text::plain(format!("{runs} of {all} {noun} {verb}: "));
    let text = text.0.into_iter().fold(begin, |text, span| text.and(span.tone, span.words));
    text.and(Tone::Plain, open)
}

/// The p of a figure, the first with the number of figures that it is corrected for.
fn p_words(row: &Row, tests: usize, is_first: bool) -> String {
    let corrected = if is_first && tests > 1 { format!(" corrected for {tests}") } else { String::new() };
    match row.p_corrected {
        Some(p) if p < 0.001 => format!(" (p below 0.001{corrected})"),
        Some(p) => format!(" (p {p:.3}{corrected})"),
        None => String::new(),
    }
}
