//! The view of a suite: how many of its runs showed what they were expected to show, those that did not, what the audit found, and a
//! table with a row for each run.

use std::collections::BTreeSet;

use pummel_measure::compare::median;
use pummel_measure::measurement::Status;
use pummel_measure::words::{counted, was};

use super::cells::{rate, share, time};
use super::run::ran::servers_of;
use super::run::{Headline, Wanted, Word};
use super::several::{MARK_NOTE, column, is_mostly_lag, without_empty_columns};
use super::{Cell, Column, Line, Note, Row, RowKind, Table, Text, Tone, View};
use crate::document::Document;
use crate::findings::{Finding, Grade, counts};
use crate::run_figures::{Lookups, Metric, RunFigures};
use crate::suite::{SuiteDocument, SuiteRun};

/// The most lines about runs that failed, and about what was not as expected, on a screen.
const LINES_MAX: usize = 6;

/// The most letters of a name of a run in a table.
const NAME_LETTERS_MAX: usize = 32;

/// The word of a suite of which a run did not show what it was expected to show.
const NOT_AS_EXPECTED: &str = "NOT AS EXPECTED";

/// The view of a suite.
pub fn view(suite: &SuiteDocument, wanted: Wanted) -> View {
    let is_everything = wanted == Wanted::Everything;
    let most = if is_everything { usize::MAX } else { LINES_MAX };
    let mut lines = vec![Line::new("Result", result(suite))];
    lines.extend(shortened("Failed", failures(suite), most));
    lines.extend(shortened("Missed", misses(suite), most));
    lines.extend(made_again(suite.made_again));
    lines.extend(audited(&suite.findings, is_everything));
    let tables = vec![table(suite)];
    let is_marked =
        tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.cells).any(|cell| cell.is_mostly_lag);
    let notes = is_marked.then(|| Note::of(MARK_NOTE)).into_iter();
    let notes =
        notes.chain((suite.rounds > 1).then(|| Note::of("The figures are medians of the rounds"))).collect();
    View { ran: ran(suite), lines, tables, notes, ..View::default() }
}

/// The result in a sentence, as a title has it.
pub fn title(suite: &SuiteDocument) -> String {
    format!("{}: {}", suite.title, result(suite).words())
}

/// The servers, the rounds and the program of a suite in a sentence.
pub fn subject(suite: &SuiteDocument) -> String {
    ran(suite).into_iter().flatten().skip(1).collect::<Vec<_>>().join(", ")
}

/// The suite in one line for scripts.
pub fn brief(suite: &SuiteDocument) -> String {
    let missed = misses(suite).into_iter().next();
    let findings = suite.findings.iter().filter(|finding| finding.grade == Grade::Finding).count();
    let findings = (findings > 0).then(|| format!("audit: {}", counted(findings as u64, "finding")));
    [Some(result(suite).words()), missed, findings].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The lines on what ran.
fn ran(suite: &SuiteDocument) -> Vec<Vec<String>> {
    let results = || suite.runs.iter().flat_map(|run| &run.results);
    let readings = results().flat_map(|result| &result.evidence).flat_map(|evidence| &evidence.servers);
    let software = readings.filter_map(|server| server.reading.as_ref());
    let software: BTreeSet<String> = software
        .filter(|reading| !reading.software.is_empty())
        .map(|reading| format!("{} {}", reading.software, reading.version))
        .collect();
    let servers = results().next().map(|first| servers_of(&first.plan, None, &software));
    let rounds = match suite.rounds {
        1 => counted(suite.runs.len() as u64, "run"),
        rounds => format!("{} in {rounds} rounds", counted(suite.runs.len() as u64, "run")),
    };
    let program = suite.program.as_ref().map(|program| match suite.restarted {
        true => format!("{program}, started for each run"),
        false => program.clone(),
    });
    let program = program.or_else(|| suite.restarted.then(|| "restarted before each run".to_owned()));
    let first = [Some(format!("pummel {}", suite.tool.version)), servers, Some(rounds)];
    vec![first.into_iter().flatten().collect(), std::iter::once(suite.title.clone()).chain(program).collect()]
}

/// The sentence behind `Result`.
fn result(suite: &SuiteDocument) -> Text {
    let whole = suite.runs.iter().filter(|run| run.is_whole(suite.rounds)).count();
    let all = suite.runs.len();
    let (met, expected) = suite.met();
    let mut words: Vec<(Tone, &str)> = Vec::new();
    match suite.status {
        Status::Interrupted => words.push((Word::Interrupted.tone(), Word::Interrupted.text())),
        Status::Partial => words.push((Word::Partial.tone(), Word::Partial.text())),
        Status::Complete => {}
    }
    if suite.status == Status::Complete && suite.exit_status() == 3 {
        words.push((Tone::Alarm, NOT_AS_EXPECTED));
    }
    let mut text = Text::default();
    for (tone, word) in &words {
        text = text.and(*tone, *word).and(Tone::Plain, ": ");
    }
    let runs = match whole == all {
        true => counted(all as u64, "run"),
        false => format!("{whole} of {}", counted(all as u64, "run")),
    };
    text = text.and(Tone::Figure, runs).and(Tone::Plain, if whole == all { " made" } else { " complete" });
    if expected > 0 {
        let tone = if met == expected { Tone::Plain } else { Tone::Alarm };
        text = text
            .and(Tone::Plain, "; ")
            .and(tone, format!("{met} of {}", counted(expected as u64, "expectation")))
            .and(Tone::Plain, " met");
    }
    match suite.reason.as_deref().filter(|_| suite.status == Status::Partial) {
        Some(reason) => text.and(Tone::Plain, format!("; {}", reason.trim_end_matches('.'))),
        None => text,
    }
}

/// The runs that failed or are missing, each with the reason.
fn failures(suite: &SuiteDocument) -> Vec<String> {
    let failed = suite.runs.iter().filter(|run| run.reason.is_some() && !run.is_whole(suite.rounds));
    failed.map(|run| format!("{}: {}", run.name, run.reason.clone().unwrap_or_default())).collect()
}

/// What runs did not show that they were expected to show, and the words in capitals of their own results.
fn misses(suite: &SuiteDocument) -> Vec<String> {
    let of_run = |run: &SuiteRun| {
        let expected = run.not_met().map(|missed| format!("{}: {}", run.name, missed.words()));
        let own = own_words(run).map(|words| format!("{}: {words}", run.name));
        expected.chain(own).collect::<Vec<_>>()
    };
    suite.runs.iter().filter(|run| !run.results.is_empty()).flat_map(of_run).collect()
}

/// The words in capitals of the rounds of a run that are about what it was held to; `None` where there are none.
fn own_words(run: &SuiteRun) -> Option<String> {
    let is_held = |word: &Word| {
        matches!(word, Word::GoalMissed | Word::GoalUndecided | Word::WrongValues | Word::NotSure)
    };
    let words: Vec<Word> =
        run.results.iter().flat_map(|result| Headline::of(result).words).filter(is_held).collect();
    let mut named: Vec<&str> = Vec::new();
    for word in words {
        if !named.contains(&word.text()) {
            named.push(word.text());
        }
    }
    (!named.is_empty()).then(|| named.join(", "))
}

/// Sentences as lines with one label: the first ones, and how many there are beyond.
fn shortened(label: &'static str, all: Vec<String>, most: usize) -> Vec<Line> {
    let more = all.len().saturating_sub(most);
    let shown = all.into_iter().take(most).enumerate().map(|(place, words)| match place {
        0 => Line::warning(label, words),
        _ => Line::new("", Text::plain(words)),
    });
    let more = (more > 0).then(|| Line::new("", Text::plain(format!("and {more} more: -v"))));
    shown.chain(more).collect()
}

fn made_again(count: u32) -> Option<Line> {
    let many = u64::from(count);
    let words = format!(
        "{} failed and {} made again; no figure has anything of them",
        counted(many, "run"),
        was(many)
    );
    (count > 0).then(|| Line::warning("Again", words))
}

/// The table with a row for each run.
fn table(suite: &SuiteDocument) -> Table {
    let figures = ["req/s", "p50", "p99"].into_iter().map(|name| column(name, 11, 10, None));
    let words = [("hits", 1), ("limit", 2), ("expected", 3), ("outcome", 4), ("audit", 0)];
    let words =
        words.map(|(name, gives_way)| Column { is_words: true, ..column(name, 0, 0, Some(gives_way)) });
    without_empty_columns(Table {
        name: "run".to_owned(),
        columns: figures.chain(words).collect(),
        rows: suite.runs.iter().map(|run| row(suite, run)).collect(),
        ..Table::default()
    })
}

fn row(suite: &SuiteDocument, run: &SuiteRun) -> Row {
    let figures = figures_of(run);
    let times = [Metric::Rate, Metric::P50, Metric::P99].map(|metric| Cell {
        text: cell(&figures, metric),
        is_mostly_lag: metric != Metric::Rate && is_mostly_lag(&figures, metric),
    });
    let (met, expected) = run.met();
    let met = match (met, expected) {
        (_, 0) => String::new(),
        (met, all) if met == all => "yes".to_owned(),
        (met, all) => format!("{met} of {all}"),
    };
    let words = [hits(&figures), limits(&figures), met, outcome(suite, run), audit(suite, run)].map(Cell::of);
    let cells = times.into_iter().chain(words).collect();
    Row { name: cut(&run.name), cells, kind: RowKind::Figures }
}

/// The figures of the rounds of a run.
pub fn figures_of(run: &SuiteRun) -> Vec<RunFigures> {
    run.results.iter().map(|result| RunFigures::of(result, result.seconds)).collect()
}

/// The median of a figure of the rounds; a lower bound where it is not known in one of them, and a dash where it is not known at all.
fn cell(figures: &[RunFigures], metric: Metric) -> String {
    let value = |value: f64| if metric == Metric::Rate { rate(value) } else { time(value) };
    let known: Option<Vec<f64>> =
        figures.iter().map(|run| run.figure(metric).map(|figure| figure.value)).collect();
    if let Some(median) = known.and_then(|known| median(&known)) {
        return value(median);
    }
    let bound = figures.iter().filter_map(|run| run.bound(metric)).reduce(f64::min);
    bound.map_or_else(|| "-".to_owned(), |bound| format!("> {}", value(bound)))
}

/// The share of keys that were found, of all rounds; empty where none were looked up.
fn hits(figures: &[RunFigures]) -> String {
    let lookups: Vec<Lookups> = figures.iter().filter_map(|run| run.lookups).collect();
    let hits = lookups.iter().fold(0u64, |sum, one| sum.saturating_add(one.hits));
    let all = lookups.iter().fold(hits, |sum, one| sum.saturating_add(one.misses));
    if all == 0 { String::new() } else { share(hits, all) }
}

/// The limits of the rounds, each once.
fn limits(figures: &[RunFigures]) -> String {
    let mut named: Vec<&str> = Vec::new();
    for run in figures {
        if !run.limit.is_empty() && !named.contains(&run.limit.as_str()) {
            named.push(&run.limit);
        }
    }
    named.join(", ")
}

/// What is not as it should be in a run, in a few words; empty where all is.
fn outcome(suite: &SuiteDocument, run: &SuiteRun) -> String {
    if run.results.is_empty() {
        return if run.reason.is_some() { "FAILED" } else { "not made" }.to_owned();
    }
    let words: Vec<Word> =
        run.results.iter().flat_map(|result: &Document| Headline::of(result).words).collect();
    let mut named: Vec<&str> = Vec::new();
    for word in words {
        if !named.contains(&word.text()) {
            named.push(word.text());
        }
    }
    if run.results.len() < suite.rounds as usize {
        return format!("{} of {} rounds", run.results.len(), suite.rounds);
    }
    named.join(", ")
}

/// What the audit found: the findings, and the notes where everything is wanted.
fn audited(findings: &[Finding], is_everything: bool) -> Vec<Line> {
    let (found, notes) = counts(findings);
    if found + notes == 0 {
        return Vec::new();
    }
    let shown = findings.iter().filter(|finding| is_everything || finding.grade == Grade::Finding);
    let sentence = |finding: &Finding| match (&finding.run, finding.grade) {
        (Some(run), Grade::Finding) => format!("{run}: {}", finding.says),
        (Some(run), Grade::Note) => format!("note on {run}: {}", finding.says),
        (None, Grade::Finding) => finding.says.clone(),
        (None, Grade::Note) => format!("note: {}", finding.says),
    };
    let all: Vec<String> = shown.map(sentence).collect();
    let counted_words = [(found, "finding"), (notes, "note")];
    let counted_words = counted_words.iter().filter(|(some, _)| *some > 0);
    let counted_words: Vec<String> = counted_words.map(|(some, what)| counted(*some as u64, what)).collect();
    let tone = if found > 0 { Tone::Warning } else { Tone::Plain };
    let hint = if !is_everything && notes > 0 { " (-v)" } else { "" };
    let head = Line::new("Audit", Text::default().and(tone, counted_words.join(", ")).and(Tone::Plain, hint));
    let most = if is_everything { usize::MAX } else { LINES_MAX };
    let below = shortened("", all, most).into_iter().map(|line| Line { tone: Tone::Plain, ..line });
    std::iter::once(head).chain(below).collect()
}

/// The number of findings about a run.
fn audit(suite: &SuiteDocument, run: &SuiteRun) -> String {
    let is_own =
        |finding: &&Finding| finding.grade == Grade::Finding && finding.run.as_ref() == Some(&run.name);
    match suite.findings.iter().filter(is_own).count() {
        0 => String::new(),
        some => counted(some as u64, "finding"),
    }
}

/// A name of at most so many letters as a table shows.
fn cut(name: &str) -> String {
    match name.chars().count() > NAME_LETTERS_MAX {
        true => name.chars().take(NAME_LETTERS_MAX - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}
