//! The view of a suite: how many of its runs showed what they were expected to show, those that did not, what the audit found, and a
//! table with a row for each run.

use std::collections::BTreeSet;

use pummel_measure::compare::median;
use pummel_measure::measurement::Status;
use pummel_measure::words::counted;

use super::cells::{rate, share, time};
use super::run::ran::servers_of;
use super::run::{Headline, Wanted, Word};
use super::several::{
    MARK_NOTE, column, each_once, is_mostly_lag, made_again, of_runs, without_empty_columns,
};
use super::{Cell, Column, Line, Note, Row, RowKind, Table, Text, Tone, View};
use crate::document::Document;
use crate::findings::{Finding, Grade, counts};
use crate::run_figures::{Lookups, Metric, RunFigures};
use crate::suite::expectation::share_words;
use crate::suite::{SuiteDocument, SuiteRun, is_whole};
use crate::words::findings::kind_words;

/// The most lines about runs that failed, and about what was not as expected, on a screen.
const LINES_MAX: usize = 6;

/// The most letters of a name of a run in a table.
const NAME_LETTERS_MAX: usize = 28;

/// The word of a suite of which a run did not show what it was expected to show.
const NOT_AS_EXPECTED: &str = "NOT AS EXPECTED";

/// How much of what was found the lines of a suite have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// Kinds of findings, and a few lines of each sort: what stands beyond is behind an option.
    Screen,
    /// Kinds of findings: what was found of each run stands beside the run.
    Page,
    /// Every finding and every note.
    Everything,
}

/// The view of a suite.
pub fn view(suite: &SuiteDocument, wanted: Wanted) -> View {
    match wanted {
        Wanted::Everything => of(suite, Extent::Everything),
        _ => of(suite, Extent::Screen),
    }
}

/// The view of a suite whose findings stand beside its runs.
pub fn page_view(suite: &SuiteDocument) -> View {
    of(suite, Extent::Page)
}

/// What was found of a run, a sentence for each finding and each note.
pub fn found_of<'a>(suite: &'a SuiteDocument, run: &'a SuiteRun) -> impl Iterator<Item = &'a Finding> {
    suite.findings.iter().filter(|finding| finding.run.as_ref() == Some(&run.name))
}

fn of(suite: &SuiteDocument, extent: Extent) -> View {
    let most = if extent == Extent::Screen { LINES_MAX } else { usize::MAX };
    let mut lines = vec![Line::new("Result", result(suite))];
    lines.extend(shortened("Failed", failures(suite), most));
    lines.extend(shortened("Missed", misses(suite), most));
    lines.extend(made_again(suite.made_again));
    lines.extend(audited(&suite.findings, suite.runs.len(), extent));
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

/// The servers, the rounds and the program of a suite in a sentence, without its title.
pub fn subject(suite: &SuiteDocument) -> String {
    let lines = ran(suite).into_iter().flat_map(|line| line.into_iter().skip(1));
    lines.collect::<Vec<_>>().join(", ")
}

/// The suite in one line for scripts.
pub fn brief(suite: &SuiteDocument) -> String {
    let missed = failures(suite).into_iter().chain(misses(suite)).next();
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
    let failed = suite.runs.iter().filter(|run| !run.is_whole(suite.rounds));
    let reasons = failed.filter_map(|run| Some((run.name.clone(), run.reason.clone()?)));
    told_once(reasons, suite.runs.len())
}

/// What runs did not show that they were expected to show, and the words in capitals of their own results: what several runs have in
/// common once.
fn misses(suite: &SuiteDocument) -> Vec<String> {
    let of_run = |run: &SuiteRun| {
        let expected = run.not_met().map(|missed| missed.words());
        expected.chain(own_words(run)).map(|words| (run.name.clone(), words)).collect::<Vec<_>>()
    };
    // What a run that failed did not show is told by its reason.
    let made = suite.runs.iter().filter(|run| run.results.iter().any(is_whole));
    told_once(made.flat_map(of_run), suite.runs.len())
}

/// Words about runs, each with the runs that they are about: one run by its name, and several by their number.
fn told_once(each: impl Iterator<Item = (String, String)>, all: usize) -> Vec<String> {
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for (run, words) in each {
        match told.iter_mut().find(|(known, _)| *known == words) {
            Some((_, runs)) => runs.push(run),
            None => told.push((words, vec![run])),
        }
    }
    let words_of = |(words, runs): (String, Vec<String>)| match runs.as_slice() {
        [one] => format!("{one}: {words}"),
        [one, other] => format!("{one}, {other}: {words}"),
        runs => format!("{}: {words}", of_runs(runs.len(), all)),
    };
    told.into_iter().map(words_of).collect()
}

/// The words in capitals of the rounds of a run that are about what it was held to; `None` where there are none.
fn own_words(run: &SuiteRun) -> Option<String> {
    let is_held = |word: &Word| {
        matches!(word, Word::GoalMissed | Word::GoalUndecided | Word::WrongValues | Word::NotSure)
    };
    let words = run.results.iter().flat_map(|result| Headline::of(result).words).filter(is_held);
    let named = each_once(words.map(Word::text));
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

/// The table with a row for each run.
fn table(suite: &SuiteDocument) -> Table {
    let figures = ["req/s", "p50", "p99"].into_iter().map(|name| column(name, 10, 9, None));
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
    // Rounds that failed show nothing of the run, unless all did.
    let whole: Vec<RunFigures> = figures_of(run)
        .into_iter()
        .zip(&run.results)
        .filter(|(_, result)| is_whole(result))
        .map(|(own, _)| own)
        .collect();
    let figures = if whole.is_empty() { figures_of(run) } else { whole };
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

/// The median of the shares of keys that were found; empty where none were looked up.
fn hits(figures: &[RunFigures]) -> String {
    let shares: Vec<(f64, u64, u64)> = figures
        .iter()
        .filter_map(|run| run.lookups)
        .filter_map(|Lookups { hits, misses }| {
            let all = hits.saturating_add(misses);
            (all > 0).then(|| (hits as f64 / all as f64, hits, all))
        })
        .collect();
    match shares.as_slice() {
        [] => String::new(),
        // The words of the counts are exact.
        [(_, hits, all)] => share(*hits, *all),
        several => {
            let middle = median(&several.iter().map(|(share, ..)| *share).collect::<Vec<f64>>());
            middle.map_or_else(String::new, share_words)
        }
    }
}

/// The limits of the rounds, each once.
fn limits(figures: &[RunFigures]) -> String {
    each_once(figures.iter().map(|run| run.limit.as_str()).filter(|limit| !limit.is_empty())).join(", ")
}

/// What is not as it should be in a run, in a few words; empty where all is.
fn outcome(suite: &SuiteDocument, run: &SuiteRun) -> String {
    if run.results.is_empty() {
        return if run.reason.is_some() { "FAILED" } else { "not made" }.to_owned();
    }
    if run.results.len() < suite.rounds as usize {
        return format!("{} of {} rounds", run.results.len(), suite.rounds);
    }
    let words = run.results.iter().flat_map(|result: &Document| Headline::of(result).words);
    each_once(words.map(Word::text)).join(", ")
}

/// A finding or a note with its run.
fn sentence(finding: &Finding) -> String {
    match (&finding.run, finding.grade) {
        (Some(run), Grade::Finding) => format!("{run}: {}", finding.says),
        (Some(run), Grade::Note) => format!("note on {run}: {}", finding.says),
        (None, Grade::Finding) => finding.says.clone(),
        (None, Grade::Note) => format!("note: {}", finding.says),
    }
}

/// The findings, those of one kind in several of so many runs together.
fn by_kind(findings: &[Finding], all: usize) -> Vec<String> {
    let mut kinds: Vec<Vec<&Finding>> = Vec::new();
    for finding in findings.iter().filter(|finding| finding.grade == Grade::Finding) {
        let is_alike = |kind: &Vec<&Finding>| {
            let of = |finding: &Finding| finding.fact.as_ref().map(std::mem::discriminant);
            of(finding).is_some() && kind.first().is_some_and(|first| of(first) == of(finding))
        };
        match kinds.iter_mut().find(|kind| is_alike(kind)) {
            Some(kind) => kind.push(finding),
            None => kinds.push(vec![finding]),
        }
    }
    let words_of = |kind: Vec<&Finding>| {
        let fact = kind.first().and_then(|first| first.fact.as_ref()).filter(|_| kind.len() > 1);
        let runs: BTreeSet<&str> = kind.iter().filter_map(|finding| finding.run.as_deref()).collect();
        match fact {
            Some(fact) if runs.len() == 1 => {
                format!("{}: {}", runs.first().copied().unwrap_or_default(), kind_words(fact))
            }
            Some(fact) => format!("{}: {}", of_runs(runs.len(), all), kind_words(fact)),
            None => kind.first().map(|finding| sentence(finding)).unwrap_or_default(),
        }
    };
    kinds.into_iter().map(words_of).collect()
}

/// What the audit found: the findings by kind, or each of them with the notes where everything is wanted.
fn audited(findings: &[Finding], runs: usize, extent: Extent) -> Vec<Line> {
    let (found, notes) = counts(findings);
    if found + notes == 0 {
        return Vec::new();
    }
    let all: Vec<String> = match extent {
        Extent::Everything => findings.iter().map(sentence).collect(),
        Extent::Screen | Extent::Page => by_kind(findings, runs),
    };
    let counted_words = [(found, "finding"), (notes, "note")];
    let counted_words = counted_words.iter().filter(|(some, _)| *some > 0);
    let counted_words: Vec<String> = counted_words.map(|(some, what)| counted(*some as u64, what)).collect();
    let tone = if found > 0 { Tone::Warning } else { Tone::Plain };
    let hint = if extent == Extent::Screen { " (-v)" } else { "" };
    let head = Line::new("Audit", Text::default().and(tone, counted_words.join(", ")).and(Tone::Plain, hint));
    let most = if extent == Extent::Screen { LINES_MAX } else { usize::MAX };
    let below = shortened("", all, most).into_iter().map(|line| Line { tone: Tone::Plain, ..line });
    std::iter::once(head).chain(below).collect()
}

/// The number of findings about a run.
fn audit(suite: &SuiteDocument, run: &SuiteRun) -> String {
    match found_of(suite, run).filter(|finding| finding.grade == Grade::Finding).count() {
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

#[cfg(test)]
mod tests {
    use pummel_measure::measurement::Keep;

    use super::*;
    use crate::document::{TrustResult, VerdictResult};
    use crate::example::Run;
    use crate::suite::ExpectationResult;

    fn missed(subject: &str) -> ExpectationResult {
        ExpectationResult {
            subject: subject.to_owned(),
            expected: "!generator".to_owned(),
            found: "generator".to_owned(),
            met: Some(false),
            ..ExpectationResult::default()
        }
    }

    /// A suite of runs with these names, in each of which the generator was the limit.
    fn limited(names: &[&str]) -> SuiteDocument {
        let mut result = Run::new(Keep::Figures).document(Clone::clone);
        let says = "It was me".to_owned();
        result.verdict =
            Some(VerdictResult { limit: "generator".to_owned(), says, ..VerdictResult::default() });
        result.trust = Some(TrustResult { ok: true, ..TrustResult::default() });
        let mut suite = SuiteDocument::new("nightly".to_owned(), 1, Vec::new());
        suite.runs = names
            .iter()
            .map(|name| SuiteRun {
                name: (*name).to_owned(),
                results: vec![result.clone()],
                expectations: vec![missed("limit")],
                ..SuiteRun::default()
            })
            .collect();
        suite.end(None, false);
        suite
    }

    fn lines(view: &View, label: &str) -> Vec<String> {
        let mut own = "";
        let mut found = Vec::new();
        for line in &view.lines {
            own = if line.label.is_empty() { own } else { line.label };
            if own == label {
                found.push(line.text.words());
            }
        }
        found
    }

    #[test]
    fn what_several_runs_have_in_common_is_told_once() {
        let three = view(&limited(&["a", "b", "c"]), Wanted::Screen);
        assert_eq!(lines(&three, "Missed"), ["all 3 runs: limit generator, expected !generator"]);
        let audit = lines(&three, "Audit");
        assert!(audit.contains(&"all 3 runs: pummel itself was the limit".to_owned()), "{audit:?}");
        let one = view(&limited(&["a"]), Wanted::Screen);
        assert_eq!(lines(&one, "Missed"), ["a: limit generator, expected !generator"]);
        let audit = lines(&one, "Audit");
        assert!(audit.iter().any(|line| line.starts_with("a: pummel itself was the limit")), "{audit:?}");
    }

    #[test]
    fn everything_has_each_finding_and_each_note_and_a_screen_says_that_there_are_more() {
        let suite = limited(&["a", "b", "c"]);
        let [screen, everything] =
            [Wanted::Screen, Wanted::Everything].map(|wanted| lines(&view(&suite, wanted), "Audit"));
        assert!(screen[0].ends_with("(-v)") && !everything[0].contains("-v"), "{screen:?} {everything:?}");
        assert_eq!(everything.len(), suite.findings.len() + 1);
        assert!(screen.len() < everything.len());
    }

    #[test]
    fn runs_without_a_result_are_told_apart_from_those_that_failed() {
        let mut suite = limited(&["a"]);
        let bare = |name: &str, reason: Option<&str>| SuiteRun {
            name: name.to_owned(),
            reason: reason.map(str::to_owned),
            ..SuiteRun::default()
        };
        suite.runs.push(bare("gone", Some("nothing listens there")));
        suite.runs.push(bare("left", None));
        suite.end(None, true);
        let view = view(&suite, Wanted::Screen);
        assert_eq!(lines(&view, "Failed"), ["gone: nothing listens there"]);
        assert!(lines(&view, "Result")[0].starts_with("INTERRUPTED: 1 of 3 runs complete"));
        let outcome =
            view.tables[0].columns.iter().position(|column| column.name == "outcome").expect("a column");
        let words: Vec<&str> =
            view.tables[0].rows.iter().map(|row| row.cells[outcome].text.as_str()).collect();
        assert_eq!(words, ["", "FAILED", "not made"]);
        assert_eq!(brief(&suite).split("; ").next(), Some("INTERRUPTED: 1 of 3 runs complete"));
    }
}
