//! A comparison as text for people.

use pummel_measure::compare::{Design, RUNS_TO_CLAIM};
use pummel_measure::words::counted;

use super::difference_words::{DifferenceWords, words_of_all};
use super::result::{Comparison, PairCommand, Row, Word, incomplete_words};
use super::side::Side;
use crate::run_figures::{Metric, RunFigures, lag_words_of, made_again_words, outcome_words};

/// The least width of the column of a side's values.
const COLUMN_LEAST: usize = 12;

/// The report for people.
pub fn text(comparison: &Comparison) -> String {
    let [first, second] = comparison.names.0;
    let version = &comparison.tool.version;
    let mut text = format!("pummel {version}: {first} and {second}, {}\n", design_words(comparison));
    for (name, side) in comparison.names.0.into_iter().zip(&comparison.sides) {
        text += &format!("{name}  {}\n", label(side));
    }
    text += &what_differs(comparison);
    text.push('\n');
    let known = || comparison.rows.iter().filter(|row| !is_blank(row, comparison));
    let widths = [0, 1].map(|side| {
        let longest = known().map(|row| side_words(row, side).chars().count()).max();
        longest.unwrap_or_default().max(COLUMN_LEAST)
    });
    for row in known() {
        text += &format!("{}\n", row_words(row, comparison, widths));
    }
    for note in notes(comparison) {
        text += &format!("\n{note}\n");
    }
    text
}

/// The reports of several comparisons for people, one after the other.
pub fn text_of_all(comparisons: &[Comparison]) -> String {
    comparisons.iter().map(text).collect::<Vec<String>>().join("\n")
}

/// Notes on the figures of a comparison, and the outcome of its claims: paragraphs.
pub fn notes(comparison: &Comparison) -> Vec<String> {
    let mut notes = foot(comparison);
    let wrong = comparison.wrong_values();
    if wrong > 0 {
        notes.push(format!("WRONG VALUES FOUND: {wrong} in all runs; `pummel run --verify` says which."));
    }
    notes.extend(comparison.claims.iter().map(|claim| claim.words(comparison.names.0[1])));
    notes.extend(made_again_words(comparison.made_again));
    if let Some(reason) = &comparison.reason {
        let asked = comparison.asked_pairs.map_or(String::new(), |asked| format!(" of {asked}"));
        notes.push(format!("Not complete: {}{asked} pairs: {reason}", comparison.runs()));
    }
    notes
}

/// Name of a side: its label, or its servers.
pub fn label(side: &Side) -> String {
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

/// The differences between the sides other than their figures, in words.
pub fn difference_words(comparison: &Comparison) -> Vec<DifferenceWords> {
    words_of_all(&comparison.differences, comparison.sides.each_ref().map(|side| &side.plan))
}

/// What differs, a line each; nothing where nothing does.
fn what_differs(comparison: &Comparison) -> String {
    let is_said = |words: &DifferenceWords| {
        // The sides of `ab` are named by their servers where those differ.
        let is_server = comparison.command == PairCommand::Ab && words.field.starts_with("plan.servers");
        // The lines of the sides name their programs whole.
        let is_program = comparison.command == PairCommand::Ab && words.field.starts_with("program");
        words.field == "plan.seed" || is_server || is_program
    };
    let [a, b] = comparison.names.0;
    let shown = difference_words(comparison).into_iter().filter(|words| !is_said(words));
    let lines: String = shown
        .map(|DifferenceWords { name, values: [first, second], .. }| {
            format!("    {name}: {a} {first}, {b} {second}\n")
        })
        .collect();
    if lines.is_empty() { String::new() } else { format!("\nWhat differs besides the figures:\n{lines}") }
}

/// Whether no run has a value or a lower bound of a figure.
fn is_blank(row: &Row, comparison: &Comparison) -> bool {
    row.bounds == [None, None] && row.unknown == [0, 1].map(|side| comparison.sides[side].runs.len())
}

/// The line of a figure, with columns of these widths for its values.
fn row_words(row: &Row, comparison: &Comparison, [wide_a, wide_b]: [usize; 2]) -> String {
    let name = row.metric.name();
    let [first, second] = comparison.names.0;
    let [a, b] = [0, 1].map(|side| side_words(row, side));
    let line =
        format!("{name:<11} {first} {a:<wide_a$} {second} {b:<wide_b$}  {}", said_words(row, comparison));
    line.trim_end().to_owned()
}

/// The figure of one side, with its interval within the run if the side has one run, or its lower bound.
fn side_words(row: &Row, side: usize) -> String {
    match (row.values[side], row.within[side]) {
        (Some(value), Some((low, high))) => {
            format!("{} ({} .. {})", row.metric.text(value), row.metric.text(low), row.metric.text(high))
        }
        (Some(value), None) => row.metric.text(value),
        (None, _) => {
            row.bounds[side].map_or_else(|| "-".to_owned(), |bound| format!("> {}", row.metric.text(bound)))
        }
    }
}

/// The statement about a figure, whether or not it is known on both sides.
fn said_words(row: &Row, comparison: &Comparison) -> String {
    match row.change {
        None => {
            let missing = row.unknown[0].saturating_add(row.unknown[1]);
            let runs = comparison.sides.iter().map(|side| side.runs.len()).sum::<usize>();
            format!("not known in {missing} of {}", counted(runs as u64, "run"))
        }
        Some(_) => change_words(row, comparison),
    }
}

/// The cells of a figure in a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowWords {
    /// The name of the figure.
    pub name: &'static str,
    /// Value of each side.
    pub values: [String; 2],
    /// The change from the first side to the second, in percent; `-` where it is not known.
    pub change: String,
    /// The 95 % interval of the change; `-` if there is none.
    pub interval: String,
    /// The conclusion.
    pub word: String,
}

/// The cells of a figure; `None` if no run has any knowledge of it.
pub fn row_cells(row: &Row, comparison: &Comparison) -> Option<RowWords> {
    if is_blank(row, comparison) {
        return None;
    }
    let dash = || "-".to_owned();
    let word = match row.word {
        Word::NotJudged if row.change.is_some() => {
            opposed_words(row, comparison).trim_start_matches("; ").to_owned()
        }
        Word::NotKnown => format!("whether they differ is not known{}", opposed_words(row, comparison)),
        Word::NotComparable => limited_words(comparison),
        _ => said_words(row, comparison),
    };
    Some(RowWords {
        name: row.metric.name(),
        values: [0, 1].map(|side| side_words(row, side)),
        change: row.change.map_or_else(dash, signed),
        interval: row.ci.map_or_else(dash, |(low, high)| format!("{} .. {}", bare(low), signed(high))),
        word,
    })
}

/// One sentence on the two sides: what their first judged figure shows.
pub fn headline(comparison: &Comparison) -> String {
    let [first, second] = comparison.names.0;
    let row = comparison.rows.iter().find(|row| row.is_judged).or_else(|| comparison.rows.first());
    let Some(row) = row else { return format!("{first} and {second} have no figures.") };
    let name = if row.metric == Metric::Rate { "Rate" } else { row.metric.name() };
    let change = row.change.map(signed);
    let why = || {
        let doubt = comparison.doubts.first().cloned();
        doubt.or_else(|| comparison.too_few_pairs()).unwrap_or_default()
    };
    match (row.word, change) {
        (_, None) if row.bounds != [None, None] => {
            let [a, b] = [0, 1].map(|side| side_words(row, side));
            format!("{name}: {first} {a}, {second} {b}; {}.", said_words(row, comparison))
        }
        (_, None) => format!("{name} of {first} and {second}: {}.", said_words(row, comparison)),
        (Word::Differ, _) => {
            let relative = row.change.unwrap_or_default();
            let opposed = opposed_words(row, comparison);
            format!("{name}: {} than {first}{opposed}.", claim_words(row, relative, second))
        }
        (Word::NoDifference, _) => {
            format!("{name} of {first} and {second}: {}.", change_words(row, comparison))
        }
        (Word::NotComparable, Some(change)) => {
            format!("{name} of {first} and {second} ({change}) is {}.", limited_words(comparison))
        }
        (Word::NotKnown | Word::NotJudged, Some(change)) => {
            let why = match why() {
                why if why.is_empty() => String::new(),
                why => format!(": {why}"),
            };
            let opposed = opposed_words(row, comparison);
            format!(
                "{name}: {change} from {first} to {second}{opposed}; whether they differ is not known{why}."
            )
        }
    }
}

/// What is said of the change of a figure.
fn change_words(row: &Row, comparison: &Comparison) -> String {
    words_of_change(row, comparison) + &opposed_words(row, comparison)
}

/// What the medians say where they and the estimate of the change have opposite signs; empty elsewhere.
fn opposed_words(row: &Row, comparison: &Comparison) -> String {
    let ([Some(first), Some(second)], Some(relative)) = (row.values, row.change) else {
        return String::new();
    };
    let of_medians = second / first - 1.0;
    // What is printed as nothing has no sign.
    let is_printed = |change: f64| change.abs() >= 0.000_5;
    if !is_printed(of_medians) || !is_printed(relative) || (of_medians > 0.0) == (relative > 0.0) {
        return String::new();
    }
    let what = match comparison.design {
        Design::Paired => "changes of the pairs",
        Design::Apart => "changes between all runs",
    };
    format!(
        "; {} is the middle of the {what}, and the medians differ by {}",
        signed(relative),
        signed(of_medians)
    )
}

/// The least change that would have been seen, in percent, or as a factor where it is more than a doubling: no figure becomes
/// smaller by more than 100 %.
fn seen_words(seen: f64) -> String {
    match seen {
        change if change < 1.0 => format!("; {} would have been seen", percent_of_change(change)),
        change => format!("; only a factor of {:.2} or more would have been seen", 1.0 + change),
    }
}

fn words_of_change(row: &Row, comparison: &Comparison) -> String {
    let Some(relative) = row.change else { return String::new() };
    let interval = row.ci.map(|(low, high)| format!(" ({} .. {})", bare(low), signed(high)));
    let interval = interval.unwrap_or_default();
    let seen = match (row.would_have_been_seen, comparison.design) {
        (Some(seen), Design::Paired) if row.ci.is_some() => seen_words(seen),
        _ => String::new(),
    };
    match row.word {
        Word::Differ => {
            let noise = if row.is_below_noise { "; below what this machine can tell apart" } else { "" };
            let claim = claim_words(row, relative, comparison.names.0[1]);
            format!("{claim}     {}{noise}", test_words(row, comparison))
        }
        Word::NoDifference => format!("no difference shown{interval}{seen}"),
        Word::NotKnown if comparison.too_few_pairs().is_some() => {
            format!("{}{interval}; whether they differ is not known", signed(relative))
        }
        Word::NotJudged | Word::NotKnown => format!("{}{interval}", signed(relative)),
        Word::NotComparable => format!("{}{interval}, {}", signed(relative), limited_words(comparison)),
    }
}

/// The reason why figures of the sides are not comparable.
fn limited_words(comparison: &Comparison) -> String {
    let sides = comparison.names.0.into_iter().zip(&comparison.sides);
    let limited: Vec<&str> =
        sides.filter(|(_, side)| side.is_generator_limited()).map(|(name, _)| name).collect();
    format!("not comparable: the generator was the limit of {}", limited.join(" and "))
}

/// The words of a change that is shown, with its interval in the direction of the change.
fn claim_words(row: &Row, relative: f64, name: &str) -> String {
    let size = percent_of_change(relative.abs());
    let words = row.metric.change_words(name, relative > 0.0, &size);
    let interval = row.ci.map(|(low, high)| {
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
    format!(" Runs on this machine differ by themselves: {}.", each.join(", "))
}

fn test_words(row: &Row, comparison: &Comparison) -> String {
    let what = match comparison.design {
        Design::Paired => counted(comparison.runs() as u64, "pair"),
        Design::Apart => format!("{} a side", counted(comparison.runs() as u64, "run")),
    };
    row.p_corrected.map_or(what.clone(), |p| format!("{what}, p = {}", p_words(p)))
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

/// Sentences about runs that failed or were overloaded, and about times that hold lag of pummel.
fn run_words(comparison: &Comparison) -> Vec<String> {
    let runs: Vec<&RunFigures> = comparison.sides.iter().flat_map(|side| &side.runs).collect();
    outcome_words(&runs).into_iter().chain(lag_words_of(&runs)).collect()
}

/// Notes on all figures: paragraphs.
fn foot(comparison: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    let runs = comparison.runs();
    let judged: Vec<&str> =
        comparison.rows.iter().filter(|row| row.is_judged).map(|row| row.metric.name()).collect();
    if runs >= RUNS_TO_CLAIM {
        let rule = match judged.len() {
            0 | 1 => "call it different",
            _ => "call any of them different (each p is corrected for their number by Holm)",
        };
        let judged = judged.join(", ");
        notes.push(match comparison.too_few_pairs() {
            Some(why) => format!("Judged: {judged}. {why}."),
            None => format!("Judged: {judged}. Of 100 experiments with equal sides at most 5 {rule}."),
        });
    }
    if comparison.design == Design::Paired && runs >= 2 {
        notes.push("A figure of a side is the median of its runs; a change is the middle of the changes of the pairs.".to_owned());
    }
    if comparison.design == Design::Apart {
        if runs == 1 && comparison.sides.iter().all(|side| side.runs.len() == 1) {
            notes.push(format!(
                "Two runs; whether the systems differ is not known. Intervals are those within each run.{}",
                noise_words(comparison)
            ));
        }
        if let Some(trap) = comparison.order.trap(comparison.names) {
            notes.push(format!(
                "{trap}{}.",
                if comparison.accept_order { ", which was accepted" } else { "" }
            ));
        }
    }
    notes.extend(run_words(comparison));
    // Of two runs it was said already, and each claim says it.
    let says_doubts = comparison.claims.is_empty() && !comparison.doubts.is_empty() && runs > 1;
    if !says_doubts {
        let sides = comparison.names.0.into_iter().zip(&comparison.sides);
        let incomplete: Vec<String> = sides.filter_map(|(name, side)| incomplete_words(name, side)).collect();
        if !incomplete.is_empty() {
            let words = incomplete.join("; ");
            let (first, rest) = words.split_at(1);
            notes.push(format!("{}{rest}; `pummel show` says why.", first.to_uppercase()));
        }
    }
    if says_doubts {
        notes.push(format!("Nothing is certain here: {}.", comparison.doubts.join("; ")));
    }
    notes
}
