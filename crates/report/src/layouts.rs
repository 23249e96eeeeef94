//! The layouts of the result of any command: text, Markdown, CSV, JSON and the page, each by one function.

use std::slice::from_ref;

use crate::page::{self, ComparedSides, PageOptions};
use crate::screen::Paper;
use crate::stored::ResultDocument;
use crate::text::{self, Detail};
use crate::view::run::Wanted;
use crate::view::series::SeriesHeadline;
use crate::view::{pair, repeated, suites};
use crate::{comparison, csv, curve, json, markdown, repetition, suite, view};

/// The text of the result, with a line end after each line.
pub fn text_of(result: &ResultDocument, detail: Detail, paper: Paper) -> String {
    match result {
        ResultDocument::Run(run) => text::run(run, detail, paper),
        ResultDocument::Series(series) => curve::text(series, detail, paper),
        ResultDocument::Repeated(runs) => text::repetition(runs, detail, paper),
        ResultDocument::Pair(pair) => text::comparison(from_ref(pair), detail, paper),
        ResultDocument::Comparison(all) => text::comparison(&all.comparisons, detail, paper),
        ResultDocument::Suites(both) => text::suites(both, detail, paper),
        ResultDocument::Suite(suite) => text::suite(suite, detail, paper),
    }
}

/// The result as Markdown, at most 8 KB.
pub fn markdown_of(result: &ResultDocument) -> Vec<u8> {
    match result {
        ResultDocument::Run(run) => markdown::of_run(run),
        ResultDocument::Series(series) => curve::markdown(series),
        ResultDocument::Repeated(runs) => markdown::render(&repeated::view(runs, Wanted::Screen)),
        ResultDocument::Pair(pair) => markdown::render(&pair::view(from_ref(pair), Wanted::Screen)),
        ResultDocument::Comparison(all) => markdown::render(&pair::view(&all.comparisons, Wanted::Screen)),
        ResultDocument::Suites(both) => markdown::render(&suites::view(both, Wanted::Screen)),
        ResultDocument::Suite(suite) => markdown::render(&view::suite::view(suite, Wanted::Screen)),
    }
}

/// The intervals of a run, the runs of a result of several, or the figures of two suites; `None` for more than two sides.
pub fn csv_of(result: &ResultDocument) -> Option<Vec<u8>> {
    match result {
        ResultDocument::Run(run) => Some(csv::render(run)),
        ResultDocument::Series(series) => Some(curve::csv(series)),
        ResultDocument::Repeated(runs) => Some(repetition::csv(runs)),
        ResultDocument::Pair(pair) => Some(comparison::csv(pair)),
        ResultDocument::Comparison(_) => None,
        ResultDocument::Suites(both) => Some(both.csv()),
        ResultDocument::Suite(suite) => Some(suite::csv(suite)),
    }
}

/// The result as JSON.
pub fn json_of(result: &ResultDocument) -> Vec<u8> {
    match result {
        ResultDocument::Run(run) => json::render(run),
        ResultDocument::Series(series) => json::render(series),
        ResultDocument::Repeated(runs) => json::render(runs),
        ResultDocument::Pair(pair) => json::render(pair),
        ResultDocument::Comparison(all) => json::render(all),
        ResultDocument::Suites(both) => json::render(both),
        ResultDocument::Suite(suite) => json::render(suite),
    }
}

/// The exit status of the command that made the result; `None` if the result of its one run does not name it.
pub fn status_of(result: &ResultDocument) -> Option<u8> {
    match result {
        ResultDocument::Run(run) => run.exit,
        ResultDocument::Series(series) => Some(SeriesHeadline::of(series).status),
        ResultDocument::Repeated(runs) => Some(repeated::headline(runs).status),
        ResultDocument::Pair(pair) => Some(pair::Headline::of(from_ref(pair)).status),
        ResultDocument::Comparison(all) => Some(pair::Headline::of(&all.comparisons).status),
        ResultDocument::Suites(both) => Some(suites::headline(both).status),
        ResultDocument::Suite(suite) => Some(suite.exit_status()),
    }
}

/// The page of a new result, as `--report` writes it.
pub fn new_page_of(result: &ResultDocument) -> Vec<u8> {
    // Of a series alone, whose page can hold what this version does not know, the stored bytes are asked for.
    let json = if let ResultDocument::Series(_) = result { json_of(result) } else { Vec::new() };
    page_of(result, &json, &PageOptions::default())
}

/// The result as a page of HTML; `json` is the result as it was stored.
pub fn page_of(result: &ResultDocument, json: &[u8], options: &PageOptions) -> Vec<u8> {
    match result {
        ResultDocument::Run(run) => page::of_run(run, options),
        ResultDocument::Series(series) => page::of_curve(series, json, options),
        ResultDocument::Repeated(runs) => page::of_repetition(runs, options),
        ResultDocument::Pair(pair) => page::of_pair(pair, options),
        ResultDocument::Comparison(all) => {
            let sides = ComparedSides { comparisons: &all.comparisons, documents: &[] };
            page::of_comparison(&sides, options)
        }
        ResultDocument::Suites(both) => page::of_suites(both, options),
        ResultDocument::Suite(suite) => page::of_suite(suite, options),
    }
}
