//! Results whose names were chosen to do harm, in every layout: no escape sequence, no tag, no formula, no mark of a language.

use pummel_measure::measurement::{Keep, Status};

use crate::comparison::suite_tests::{in_any_order, suites};
use crate::document::{Document, EventResult, PhaseResult};
use crate::example::Run;
use crate::page::PageOptions;
use crate::screen::Paper;
use crate::stored::ResultDocument;
use crate::suite::{ExpectationResult, SuiteDocument, SuiteRun};
use crate::text::Detail;
use crate::visible::is_hidden;
use crate::{csv, junit, layouts, markdown, page, text};

/// Names that mean something to a terminal, a browser, a spreadsheet, Markdown, XML, or the direction of a line.
const NAMES: [&str; 7] = [
    "\u{1b}[2J\u{9b}31m\u{7}",
    "<script>alert(1)</script>",
    "=cmd()",
    "a|b\n# c",
    "]]><x y=\"'\">",
    "\u{202e}txt\u{2066}\u{200f}",
    "--><!--",
];

/// A result in which every foreign word is this name.
fn named(name: &str) -> Document {
    let mut document = Run::new(Keep::Figures).document(Clone::clone);
    let word = || name.to_owned();
    document.plan.servers = vec![word()];
    document.plan.labels.insert(word(), word());
    document.labels = document.plan.labels.clone();
    document.argv = vec![word()];
    (document.status, document.reason) = (Status::Partial, Some(word()));
    document.error_messages = [(name, 3)].into_iter().collect();
    document.tool.version = word();
    document.detected = Some(word());
    document.events = vec![EventResult { at_s: 1.0, kind: word(), what: word() }];
    document.phases = vec![PhaseResult { name: word(), seconds: 1.0, ..PhaseResult::default() }];
    document.ops.0[0].0 = word();
    document.intervals.iter_mut().for_each(|interval| interval.ops.0[0].0 = word());
    document
}

#[test]
fn no_layout_lets_a_name_do_anything() {
    for name in NAMES {
        let document = named(name);
        let layouts = [
            ("csv", csv::render(&document)),
            ("junit", junit::render(&document)),
            ("markdown", markdown::of_run(&document)),
            ("page", page::of_run(&document, &PageOptions::default())),
        ];
        for (layout, bytes) in layouts {
            let shown = String::from_utf8(bytes).expect("UTF-8");
            // A page isolates letters from right to left by marks of its own.
            let is_bad =
                |letter: char| is_hidden(letter) && !matches!(letter, '\n' | '\u{2068}' | '\u{2069}');
            assert!(!shown.contains(is_bad), "{layout} of {name:?}: {shown}");
            let has_tag = ["<script>alert", "<x y=", "--><!--"].iter().any(|tag| shown.contains(tag));
            assert!(layout == "csv" || !has_tag, "{layout} of {name:?}: {shown}");
        }
        let shown = text::run(&document, Detail::Everything, Paper::default());
        assert!(!shown.contains(|letter: char| is_hidden(letter) && letter != '\n'), "{shown}");
    }
}

#[test]
fn a_table_has_no_formula_and_no_row_of_its_own_by_a_name() {
    let table = |name: &str| String::from_utf8(csv::render(&named(name))).expect("UTF-8");
    let formula = table("=cmd()");
    assert!(formula.contains(",'=cmd(),") && !formula.contains(",=cmd()"), "{formula}");
    assert_eq!(table("a|b\n# c").lines().count(), formula.lines().count());
}

#[test]
fn a_row_of_markdown_has_as_many_cells_whatever_a_name_holds() {
    let summary = |name: &str| String::from_utf8(markdown::of_run(&named(name))).expect("UTF-8");
    let cells = |summary: &str, row: &str| {
        let line = summary.lines().find(|line| line.contains(row)).unwrap_or_else(|| panic!("{summary}"));
        line.replace("\\|", "").matches('|').count()
    };
    let hostile = summary("a|b\n# c");
    assert_eq!(cells(&hostile, "a\\|b \\# c |"), cells(&hostile, "| set |"));
    assert!(!hostile.contains("\n# c"), "{hostile}");
}

#[test]
fn no_layout_of_two_suites_lets_the_name_of_a_run_do_anything() {
    for name in NAMES {
        let mut compared = suites(6, &[1.0, 1.4], &in_any_order());
        compared.labels = [name.to_owned(), name.to_owned()];
        compared.only = [vec![name.to_owned()], vec![name.to_owned()]];
        compared.pairs.iter_mut().for_each(|pair| pair.name = name.to_owned());
        shows_nothing_else(name, &ResultDocument::Suites(Box::new(compared)));
    }
}

#[test]
fn no_layout_of_a_suite_lets_a_name_do_anything() {
    for name in NAMES {
        let word = || name.to_owned();
        let expected = ExpectationResult { expected: word(), found: word(), ..ExpectationResult::default() };
        let run = SuiteRun {
            name: word(),
            options: word(),
            reason: Some(word()),
            expectations: vec![expected],
            results: vec![named(name)],
            ..SuiteRun::default()
        };
        let mut suite = SuiteDocument::new(word(), 1, vec![word()]);
        suite.program = Some(word());
        suite.labels.insert(word(), word());
        suite.runs = vec![run];
        suite.end(Some(word()), false);
        let result = ResultDocument::Suite(Box::new(suite));
        shows_nothing_else(name, &result);
        let ResultDocument::Suite(suite) = &result else { panic!("a suite") };
        let cases = String::from_utf8(junit::render_suite(suite)).expect("UTF-8");
        assert!(!cases.contains("<script>") && !cases.contains("<x y="), "{cases}");
    }
}

/// Fails where a layout of a result shows a name otherwise than as words.
fn shows_nothing_else(name: &str, result: &ResultDocument) {
    let layouts = [
        ("csv", layouts::csv_of(result).expect("it has one")),
        ("markdown", layouts::markdown_of(result)),
        ("page", layouts::new_page_of(result)),
        ("text", layouts::text_of(result, Detail::Everything, Paper::default()).into_bytes()),
        ("line", layouts::text_of(result, Detail::Line, Paper::default()).into_bytes()),
    ];
    for (layout, bytes) in layouts {
        let shown = String::from_utf8(bytes).expect("UTF-8");
        let is_bad = |letter: char| is_hidden(letter) && !matches!(letter, '\n' | '\u{2068}' | '\u{2069}');
        assert!(!shown.contains(is_bad), "{layout} of {name:?}: {shown}");
        let has_tag = ["<script>alert", "<x y=", "--><!--"].iter().any(|tag| shown.contains(tag));
        assert!(!["markdown", "page"].contains(&layout) || !has_tag, "{layout} of {name:?}: {shown}");
        assert!(layout != "csv" || !shown.contains("\n=cmd()"), "{shown}");
    }
}
