//! The page of a suite: its result, a table of its runs with a small picture of each, and the sections of each run below.

use maud::{Markup, PreEscaped, html};
use pummel_logic::plan::labels_text;

use super::axis::known_time;
use super::frame::{details, fields, lines_of, said, scoped, section, table};
use super::svg::{WORDS_MAX, cut_name, place};
use super::words::command_line;
use super::{Heading, PageOptions, data, sections};
use crate::VERSION;
use crate::document::Document;
use crate::findings::{Finding, Grade};
use crate::numbers::number;
use crate::run_figures::Metric;
use crate::suite::{SuiteDocument, SuiteRun};
use crate::view::suite::{figures_of, found_of, page_view, subject, title};
use crate::view::{Cell, Line, Table, Text};

/// Width and height of a small picture, in its own units.
const SPARK: (f64, f64) = (120.0, 24.0);

/// Points of a small picture at most.
const SPARK_POINTS_MAX: usize = 60;

/// The page of a suite.
pub fn of_suite(suite: &SuiteDocument, options: &PageOptions) -> Vec<u8> {
    let view = page_view(suite);
    let heading = Heading { headline: title(suite), subject: subject(suite), ..Heading::default() };
    let facts = [
        ("Labels", labels_text(&suite.labels)),
        ("Command", command_line(&suite.argv)),
        ("Made by", suite.tool.words()),
    ];
    let body = html! {
        (heading.markup(options))
        (said(&view, &["Result"]))
        @for own in &view.tables { (runs_table(suite, own)) }
        p.how { "The small pictures show the completed requests per second over the time of each run, from 0." }
        @for (place, run) in suite.runs.iter().enumerate() { (run_section(suite, place, run)) }
        (section("How it was run", fields(&facts)))
        (sections::footer_of(data::of_suite(suite, options.embed), sections::DataKind::Several))
        p.dim { "Drawn by pummel " (VERSION) "." }
    };
    heading.page(options, body)
}

/// The id of the section of a run.
fn id_of(place: usize) -> String {
    format!("run-{}", place + 1)
}

/// The table of all runs, in which each name leads to the section of its run.
fn runs_table(suite: &SuiteDocument, own: &Table) -> Markup {
    let class = |is_words: bool| is_words.then_some("name");
    let cell = |cell: &Cell| html! { (cut_name(cell.text.trim(), WORDS_MAX)) @if cell.is_mostly_lag { "*" } };
    html! {
        div.wide { table {
            thead { tr {
                th { (own.name) }
                th.name { "over time" }
                @for column in &own.columns { th class=[class(column.is_words)] { (column.name) } }
            } }
            tbody {
                @for (at, (row, run)) in own.rows.iter().zip(&suite.runs).enumerate() { tr {
                    td { a href=(format!("#{}", id_of(at))) { (cut_name(&run.name, WORDS_MAX)) } }
                    td.name { (spark(run)) }
                    @for (own_cell, column) in row.cells.iter().zip(&own.columns) {
                        td class=[class(column.is_words)] { (cell(own_cell)) }
                    }
                } }
            }
        } }
    }
}

/// The completed requests per second of the first round of a run, as a line without axes; nothing where the run has fewer than two
/// intervals.
fn spark(run: &SuiteRun) -> Markup {
    let Some(result) = run.results.first() else { return Markup::default() };
    let rates: Vec<f64> = result.intervals.iter().map(|interval| interval.rate).collect();
    let each = rates.len().div_ceil(SPARK_POINTS_MAX).max(1);
    let points: Vec<f64> =
        rates.chunks(each).map(|some| some.iter().sum::<f64>() / some.len() as f64).collect();
    let most = points.iter().copied().filter(|rate| rate.is_finite()).fold(0.0, f64::max);
    if points.len() < 2 || most <= 0.0 {
        return Markup::default();
    }
    let (width, height) = SPARK;
    let step = width / (points.len() - 1) as f64;
    let drawn: String = points
        .iter()
        .enumerate()
        .map(|(at, rate)| {
            let (x, y) = (step * at as f64, 1.0 + (height - 2.0) * (1.0 - rate / most));
            format!("{}{} {}", if at == 0 { "M" } else { "L" }, place(x), place(y))
        })
        .collect();
    html! {
        svg.spark viewBox=(format!("0 0 {} {}", place(width), place(height))) preserveAspectRatio="none" aria-hidden="true" {
            path class="line p50" d=(PreEscaped(drawn)) {}
        }
    }
}

/// A run with what it was expected to show, its rounds, and the sections of one of them.
fn run_section(suite: &SuiteDocument, place: usize, run: &SuiteRun) -> Markup {
    let expected: Vec<Vec<String>> = run
        .expectations
        .iter()
        .map(|one| {
            let met = match one.met {
                Some(true) => "met",
                Some(false) => "missed",
                None => "not known",
            };
            vec![one.subject.clone(), one.expected.clone(), one.found.clone(), met.to_owned()]
        })
        .collect();
    let facts = [("Options", run.options.clone()), ("Reason", run.reason.clone().unwrap_or_default())];
    html! {
        div id=(id_of(place)) {
            (section(&run.name, html! {
                (fields(&facts))
                (lines_of(&found(suite, run)))
                @if !expected.is_empty() { (table(&["expected of", "to be", "found", ""], &expected)) }
                @if suite.rounds > 1 && !run.results.is_empty() { (rounds(run)) }
                @if let Some((round, result)) = middle(run) {
                    (details(&summary_of(suite, round), scoped(&sections_of(result), &id_of(place))))
                }
            }))
        }
    }
}

/// What the audit found of a run, a line for each finding and each note.
fn found(suite: &SuiteDocument, run: &SuiteRun) -> Vec<Line> {
    let line = |finding: &Finding| match finding.grade {
        Grade::Finding => Line::warning("Finding", finding.says.clone()),
        Grade::Note => Line::new("Note", Text::plain(finding.says.clone())),
    };
    found_of(suite, run).map(line).collect()
}

/// The words of the closed part of a run.
fn summary_of(suite: &SuiteDocument, round: usize) -> String {
    match suite.rounds {
        1 => "Its whole result".to_owned(),
        _ => format!("The whole result of round {}, whose rate is the middle one", round + 1),
    }
}

/// The rounds of a run, a row for each.
fn rounds(run: &SuiteRun) -> Markup {
    let rows: Vec<Vec<String>> = figures_of(run)
        .iter()
        .enumerate()
        .map(|(round, figures)| {
            let time = |metric| known_time(figures.figure(metric).map(|one| one.value));
            let mut row = vec![(round + 1).to_string(), number(figures.rate)];
            row.extend([Metric::P50, Metric::P90, Metric::P99, Metric::P999].map(time));
            row.push(figures.limit.clone());
            row
        })
        .collect();
    table(&["round", "req/s", "p50", "p90", "p99", "p99.9", "limit"], &rows)
}

/// The round whose rate is the middle one, with its place.
fn middle(run: &SuiteRun) -> Option<(usize, &Document)> {
    let mut rounds: Vec<(usize, &Document)> = run.results.iter().enumerate().collect();
    rounds.sort_by(|one, other| one.1.totals.rate.total_cmp(&other.1.totals.rate));
    let middle = rounds.len().saturating_sub(1) / 2;
    rounds.get(middle).copied()
}

/// The sections of a run as its own page has them, but for the heat map of service times, which would make twelve runs a large page.
fn sections_of(result: &Document) -> Markup {
    html! { (super::top::tiles(result)) (super::top::goals(result)) (sections::of_run(result, false)) }
}

#[cfg(test)]
mod tests {
    use pummel_measure::measurement::{Keep, Status};

    use super::*;
    use crate::example::Run;
    use crate::page::Embed;
    use crate::suite::ExpectationResult;

    fn suite(rounds: u32) -> SuiteDocument {
        let mut suite = SuiteDocument::new("nightly <b>".to_owned(), rounds, Vec::new());
        let result = || Run::new(Keep::Figures).document(Clone::clone);
        let met = ExpectationResult {
            subject: "p99".to_owned(),
            expected: "<1ms".to_owned(),
            found: "92.9 us".to_owned(),
            met: Some(true),
            bound: Some(1_000.0),
            figure: Some(92.9),
        };
        suite.runs = ["reads", "reads & writes"]
            .map(|name| SuiteRun {
                name: name.to_owned(),
                results: (0..rounds).map(|_| result()).collect(),
                expectations: vec![met.clone()],
                ..SuiteRun::default()
            })
            .to_vec();
        suite.runs.push(SuiteRun {
            name: "gone".to_owned(),
            reason: Some("nothing listens".to_owned()),
            ..SuiteRun::default()
        });
        suite.end(None, false);
        suite
    }

    #[test]
    fn each_run_has_a_row_that_leads_to_its_section_and_ids_of_its_own() {
        let page = String::from_utf8(of_suite(&suite(1), &PageOptions::default())).expect("UTF-8");
        assert!(page.contains("nightly &lt;b&gt;") && !page.contains("nightly <b>"));
        for id in ["run-1", "run-2", "run-3"] {
            assert!(
                page.contains(&format!("href=\"#{id}\"")) && page.contains(&format!("id=\"{id}\"")),
                "{id}"
            );
        }
        let mut ids: Vec<&str> =
            page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "no id is there twice");
        assert!(page.contains("reads &amp; writes") && page.contains("nothing listens"));
        assert!(page.contains("class=\"spark\""), "small pictures");
    }

    #[test]
    fn rounds_have_a_table_and_the_middle_one_is_shown() {
        let mut several = suite(3);
        for (rate, result) in [30.0, 10.0, 20.0].into_iter().zip(&mut several.runs[0].results) {
            result.totals.rate = rate;
        }
        assert_eq!(middle(&several.runs[0]).map(|(place, _)| place), Some(2));
        let page = String::from_utf8(of_suite(&several, &PageOptions::default())).expect("UTF-8");
        assert!(page.contains("The whole result of round 3, whose rate is the middle one"));
    }

    #[test]
    fn a_page_holds_its_suite_unless_it_is_to_hold_none() {
        let suite = suite(1);
        assert_eq!(suite.status, Status::Partial);
        let page = |embed| of_suite(&suite, &PageOptions { embed, ..PageOptions::default() });
        let json = crate::stored::json_of(&page(Embed::Full)).expect("it holds its result");
        let Ok(crate::stored::ResultDocument::Suite(read)) = crate::stored::read(&json) else {
            panic!("a suite")
        };
        assert_eq!(*read, suite);
        assert!(crate::stored::json_of(&page(Embed::Reduced)).is_ok());
        assert!(crate::stored::json_of(&page(Embed::None)).is_err());
    }
}
