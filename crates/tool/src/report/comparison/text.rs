//! A comparison as text for people.

use std::fmt::Write as _;

use pummel_logic::measure::compare::Design;
use pummel_logic::measure::words::counted;
use serde_json::Value;

use super::result::{Comparison, Row, Word};
use super::side::{Difference, Side};
use crate::report::VERSION;

/// Most characters of a value that is shown.
const VALUE_CHARS_MAX: usize = 60;

/// The report for people.
pub fn text(comparison: &Comparison) -> String {
    let mut text = format!("pummel {VERSION}: A and B, {}\n", design_words(comparison));
    for (name, side) in ["A", "B"].into_iter().zip(&comparison.sides) {
        text += &format!("{name}  {}\n", label(side));
    }
    text += &difference_words(comparison);
    text.push('\n');
    for row in &comparison.rows {
        if let Some(line) = row_words(row, comparison) {
            text += &format!("{line}\n");
        }
    }
    text += &foot(comparison);
    for claim in &comparison.claims {
        text += &format!("\n{}\n", claim.words());
    }
    if let Some(reason) = &comparison.reason {
        let asked = comparison.asked_pairs.map_or(String::new(), |asked| format!(" of {asked}"));
        text += &format!("\nNot complete: {}{asked} pairs: {reason}\n", comparison.runs());
    }
    text
}

fn label(side: &Side) -> String {
    match side.label.is_empty() {
        true => side.plan.servers.join(", "),
        false => side.label.clone(),
    }
}

fn design_words(comparison: &Comparison) -> String {
    let [first, second] = [0, 1].map(|side| comparison.sides[side].runs.len() as u64);
    match comparison.design {
        Design::Paired => format!("{} in mixed order", counted(first, "pair")),
        Design::Apart if first == second => format!("{} a side", counted(first, "run")),
        Design::Apart => format!("{} and {}", counted(first, "run"), counted(second, "run")),
    }
}

/// What differs, a line each; nothing where nothing does.
fn difference_words(comparison: &Comparison) -> String {
    let is_said = |difference: &Difference| {
        // The sides of `ab` are named by their servers where those differ.
        let is_server = comparison.command == "ab" && difference.name.starts_with("plan.servers");
        difference.name == "plan.seed" || is_server
    };
    let shown = comparison.differences.iter().filter(|difference| !is_said(difference));
    let lines: String = shown
        .map(|difference| {
            let [first, second] = difference.values.each_ref().map(value_words);
            format!("    {}: A {first}, B {second}\n", difference.name)
        })
        .collect();
    if lines.is_empty() { String::new() } else { format!("\nWhat differs beside the figures:\n{lines}") }
}

fn value_words(value: &Value) -> String {
    let words = match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    // A result may come from elsewhere: its words are no lines and no commands of a terminal.
    let mut words: String =
        words.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect();
    if words.chars().count() > VALUE_CHARS_MAX {
        words = words.chars().take(VALUE_CHARS_MAX).collect::<String>() + "...";
    }
    words
}

/// The line of a figure; `None` where no run knows it.
fn row_words(row: &Row, comparison: &Comparison) -> Option<String> {
    let runs = [0, 1].map(|side| comparison.sides[side].runs.len());
    if row.unknown == runs {
        return None;
    }
    let name = row.metric.name();
    let value = |side: usize| match (row.values[side], row.within[side]) {
        (Some(value), Some((low, high))) => {
            format!("{} ({} .. {})", row.metric.text(value), row.metric.text(low), row.metric.text(high))
        }
        (Some(value), None) => row.metric.text(value),
        (None, _) => "-".to_owned(),
    };
    let mut line = format!("{name:<11} A {:<12} B {:<12}  ", value(0), value(1));
    line += &match row.change {
        None => {
            let missing = row.unknown[0] + row.unknown[1];
            format!("not known in {missing} of {}", counted((runs[0] + runs[1]) as u64, "run"))
        }
        Some(_) => change_words(row, comparison),
    };
    Some(line.trim_end().to_owned())
}

/// What is said of the change of a figure.
fn change_words(row: &Row, comparison: &Comparison) -> String {
    let (Some(relative), Some(change)) = (row.relative(), row.change) else { return String::new() };
    let interval = row.relative_interval().map(|(low, high)| format!(" ({} .. {})", bare(low), signed(high)));
    let interval = interval.unwrap_or_default();
    let seen = match (change.seen, comparison.design) {
        (Some(seen), Design::Paired) if change.interval.is_some() => {
            format!("; {} would have been seen", percent_of_change(seen.exp_m1()))
        }
        _ => String::new(),
    };
    match row.word {
        Word::Differ => {
            let noise = if row.is_below_noise() { "; below what this machine can tell apart" } else { "" };
            format!("{}     {}{noise}", claim_words(row, relative), test_words(row, comparison))
        }
        Word::NoDifference => format!("no difference shown{interval}{seen}"),
        Word::NotJudged | Word::NotKnown => format!("{}{interval}", signed(relative)),
    }
}

/// The words of a change that is shown, with its interval in the direction of the change.
fn claim_words(row: &Row, relative: f64) -> String {
    let size = percent_of_change(relative.abs());
    let words = row.metric.change_words(relative > 0.0, &size);
    let interval = row.relative_interval().map(|(low, high)| {
        let (near, far) = if relative > 0.0 { (low, high) } else { (-high, -low) };
        format!(" ({} .. {})", plain(near), percent_of_change(far))
    });
    words + &interval.unwrap_or_default()
}

/// By how much two runs differ on this machine by themselves, where a calibration knows it.
fn noise_words(comparison: &Comparison) -> String {
    let known = comparison.rows.iter().filter_map(|row| Some((row.metric.name(), row.noise?)));
    // Of two equal runs 95 of 100 differ by less: 1.96 standard deviations of a difference.
    let each: Vec<String> =
        known.map(|(name, noise)| format!("{name} by +- {:.1} %", 196.0 * 2.0_f64.sqrt() * noise)).collect();
    if each.is_empty() {
        return String::new();
    }
    format!("Runs on this machine differ by themselves: {}.\n", each.join(", "))
}

fn test_words(row: &Row, comparison: &Comparison) -> String {
    let what = match comparison.design {
        Design::Paired => counted(comparison.runs() as u64, "pair"),
        Design::Apart => format!("{} a side", counted(comparison.runs() as u64, "run")),
    };
    row.p.map_or(what.clone(), |p| format!("{what}, p = {}", p_words(p)))
}

fn p_words(p: f64) -> String {
    if p < 0.001 { "below 0.001".to_owned() } else { format!("{p:.3}") }
}

/// A change in percent with its sign.
fn signed(change: f64) -> String {
    format!("{} %", bare(change))
}

/// A change in percent with its sign, without the word for percent.
fn bare(change: f64) -> String {
    let digits = plain(change.abs());
    // A change of nothing has no sign.
    match (digits.as_str(), change < 0.0) {
        ("0.0", _) => digits,
        (_, true) => format!("-{digits}"),
        (_, false) => format!("+{digits}"),
    }
}

/// A change in percent without the word for percent: one digit behind the point, none from 100 % on.
fn plain(change: f64) -> String {
    let percent = change * 100.0;
    if percent.abs() < 99.95 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

fn percent_of_change(change: f64) -> String {
    format!("{} %", plain(change))
}

/// In how many runs the times are partly those of the generator.
fn doubtful_words(comparison: &Comparison) -> String {
    let runs = || comparison.sides.iter().flat_map(|side| &side.runs);
    let doubtful = runs().filter(|run| run.trust == Some(false)).count();
    match doubtful {
        0 => String::new(),
        doubtful => {
            format!("\nIn {doubtful} of {} runs the times are partly the generator's own.\n", runs().count())
        }
    }
}

/// What is to be known of all figures.
fn foot(comparison: &Comparison) -> String {
    let mut text = String::new();
    let runs = comparison.runs();
    let judged: Vec<&str> =
        comparison.rows.iter().filter(|row| row.is_judged).map(|row| row.metric.name()).collect();
    if runs >= 2 {
        let correction = if judged.len() > 1 { ", each p corrected for their number by Holm" } else { "" };
        writeln!(text, "\nJudged: {} (5 % level{correction}).", judged.join(", "))
            .expect("text can always be added to");
    }
    if comparison.design == Design::Apart {
        if runs == 1 && comparison.sides.iter().all(|side| side.runs.len() == 1) {
            text +=
                "\nTwo runs; whether the systems differ is not known. Intervals are those within each run.\n";
            text += &noise_words(comparison);
        }
        if let Some(trap) = comparison.order.trap() {
            text +=
                &format!("{trap}{}.\n", if comparison.accept_order { ", which was accepted" } else { "" });
        }
    }
    text += &doubtful_words(comparison);
    // Of two runs it was said already, and each claim says it.
    if comparison.claims.is_empty() && !comparison.doubts.is_empty() && runs > 1 {
        text += &format!("\nNothing is certain here: {}.\n", comparison.doubts.join("; "));
    }
    text
}
