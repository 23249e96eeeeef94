//! Tests of the view of two suites: whole screens, and the sentences of their results.

use super::{brief, headline, view};
use crate::comparison::suite_tests::{in_any_order, planted, suite, suites};
use crate::comparison::tests::claim;
use crate::comparison::{ClaimKind, Difference, Question, SuiteSide, SuitesComparison};
use crate::run_figures::Metric;
use crate::screen::{Paper, draw};
use crate::view::pair::Word;
use crate::view::run::Wanted;

fn screen(compared: &SuitesComparison, width: usize) -> String {
    draw(&view(compared, Wanted::Screen), Paper::of_width(width))
}

/// The words of a screen, whichever lines they are on.
fn words(compared: &SuitesComparison) -> String {
    screen(compared, 120).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Four runs with names of use.
fn named(scales: [f64; 4], question: &Question) -> SuitesComparison {
    let mut compared = suites(6, &scales, question);
    let names = ["reads", "reads, TLS", "writes of 100 KiB values by one connection", "touch"];
    for (pair, name) in compared.pairs.iter_mut().zip(names) {
        pair.name = name.to_owned();
    }
    compared
}

#[test]
fn the_screen_has_the_result_and_a_row_for_each_run() {
    let compared = named([1.0, 1.2, 1.0, 1.0], &in_any_order());
    let said = screen(&compared, 100);
    assert!(said.starts_with("A  before.json   4 runs, 127.0.0.1:11211\nB  after.json "), "{said}");
    assert!(said.contains("4 runs in both suites, 6 rounds a side of 10.0 s\n"), "{said}");
    assert!(
        said.contains("Result   1 of 4 runs differs: \"reads, TLS\" p99 +19 % (p 0.009 corrected for 4)\n"),
        "{said}"
    );
    assert!(
        said.contains("Order    A ran before B: a slower hour would look the same, which was accepted\n"),
        "{said}"
    );
    let row = said.lines().find(|line| line.starts_with("reads, TLS")).expect("a row");
    assert!(row.contains("   p99   ") && row.contains("+19 %") && row.ends_with("differs"), "{row}");
    assert!(said.contains("\nwrites of 100 KiB values "), "{said}");
    for width in [48, 60, 80, 100, 120] {
        let shown = screen(&compared, width);
        let longest = shown.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(width), "{width}: {longest:?}\n{shown}");
        assert!(shown.contains("B to A") && shown.contains("differs\n"), "{shown}");
    }
    assert_eq!(brief(&compared), "1 of 4 runs differs: \"reads, TLS\" p99 +19 % (p 0.009 corrected for 4)");
    assert!(!brief(&compared).contains('\n'));
}

#[test]
fn everything_has_all_figures_of_each_run() {
    let text = draw(&view(&named([1.0; 4], &in_any_order()), Wanted::Everything), Paper::default());
    for figure in ["p50", "p90", "p99", "p99.9", "rate", "own CPU"] {
        assert_eq!(text.matches(&format!("   {figure} ")).count(), 4, "{figure}: {text}");
    }
}

#[test]
fn equal_suites_and_several_differences_are_told_in_one_sentence() {
    assert_eq!(brief(&suites(6, &planted(1.0), &in_any_order())), "no difference shown in any of 12 runs");
    let some = brief(&suites(6, &[1.2, 1.3, 1.0, 0.7, 0.6, 1.4], &in_any_order()));
    assert!(some.starts_with("5 of 6 runs differ: \"run 0\" p99 +"), "{some}");
    assert!(
        some.contains(" corrected for 6), \"run 1\" p99 ") && some.ends_with(" and 2 more figures"),
        "{some}"
    );
}

#[test]
fn a_doubt_of_all_runs_is_told_once() {
    let compared = suites(6, &planted(1.2), &Question::default());
    let said = words(&compared);
    let why = "Result NOT DECIDED: the rounds of A and B did not alternate in mixed order (--accept-order judges them anyway)";
    assert!(said.contains(why), "{said}");
    assert_eq!((said.matches("did not alternate").count(), headline(&compared).status), (1, 0), "{said}");
    let one = words(&suites(1, &[1.0, 1.3], &Question::default()));
    assert!(one.contains("NOT DECIDED: 1 round a side cannot show that a run differs: it takes 6"), "{one}");
    let many = words(&suites(6, &[1.0; 24], &in_any_order()));
    assert!(
        many.contains(
            "NOT DECIDED: 6 rounds a side can show no difference in any of 24 judged figures: it takes 7, or fewer figures"
        ),
        "{many}"
    );
}

#[test]
fn a_doubt_of_some_runs_names_them_and_leaves_the_others_decided() {
    let mut first = suite("a", 1, 0.0, 6, &[1.0; 4]);
    for run in [0, 2] {
        first.runs[run].1.runs[3].steady = Some(false);
    }
    let second = suite("b", 2, 1e6, 6, &[1.0, 1.3, 1.0, 1.0]);
    let compared = SuitesComparison::of(first, second, &in_any_order());
    let said = words(&compared);
    assert!(said.contains("Result 1 of 4 runs differs: \"run 1\" p99 +"), "{said}");
    assert!(said.contains(" corrected for 4); 2 are not decided "), "{said}");
    assert!(said.contains("Doubts 2 of 12 rounds of A were not steady (in \"run 0\", \"run 2\") "), "{said}");
    assert!(!said.contains("Unsteady"), "{said}");
}

#[test]
fn gates_that_fail_or_cannot_be_judged_begin_the_result() {
    let gate = |accept_order| Question { accept_order, ..claim(ClaimKind::Worse, Metric::P99, 0.1) };
    let failed = suites(6, &planted(1.4), &gate(true));
    assert_eq!(headline(&failed).words, [Word::Worse]);
    let said = brief(&failed);
    assert!(
        said.starts_with("WORSE: \"run 3\" p99 +4") && said.ends_with(" %), 10 % were allowed"),
        "{said}"
    );
    let open = suites(6, &planted(1.4), &gate(false));
    assert_eq!((headline(&open).words, headline(&open).status), (vec![Word::NotDecided], 1));
    assert!(
        brief(&open).starts_with("NOT DECIDED: the rounds of A and B did not alternate"),
        "{}",
        brief(&open)
    );
    let within = Question { accept_order: true, ..claim(ClaimKind::Within, Metric::P99, 0.01) };
    let said = brief(&suites(6, &[1.0, 1.0], &within));
    assert!(
        said.starts_with("NOT SURE: \"run 0\" p99 ")
            && said.contains("not shown to be worse by less than 1 %"),
        "{said}"
    );
}

#[test]
fn runs_of_one_suite_alone_and_suites_without_a_common_run_are_told() {
    let of = |names: &[&str], started_s: f64| {
        let mut own = suite("x", 1, started_s, 6, &vec![1.0; names.len()]);
        own.runs.iter_mut().zip(names).for_each(|((own, _), name)| *own = (*name).to_owned());
        own
    };
    let first = of(&["a", "b", "c", "d", "e", "f"], 0.0);
    let compared = SuitesComparison::of(first, of(&["f", "g"], 1e6), &in_any_order());
    let said = words(&compared);
    assert!(said.contains("Only A \"a\", \"b\", \"c\" and 2 more runs: not compared "), "{said}");
    assert!(said.contains("Only B \"g\": not compared "), "{said}");
    let none = SuitesComparison::of(of(&["a"], 0.0), of(&["b"], 1.0), &in_any_order());
    assert_eq!((brief(&none).as_str(), headline(&none).status), ("NOT DECIDED: no run is in both suites", 1));
    let empty = SuitesComparison::of(SuiteSide::default(), SuiteSide::default(), &in_any_order());
    assert!(screen(&empty, 80).contains("Result   NOT DECIDED: no run is in both suites\n"));
}

#[test]
fn runs_that_moved_together_and_servers_that_differ_are_told_once() {
    let mut compared = suites(6, &[1.2; 12], &in_any_order());
    for pair in &mut compared.pairs {
        pair.comparison.differences = vec![Difference {
            name: "server.0.version".to_owned(),
            values: ["1.6.18".into(), "1.6.31".into()],
            is_of_the_load: false,
        }];
    }
    compared.pairs[2].comparison.differences.clear();
    let said = words(&compared);
    assert!(said.contains("Moved 12 of 12 runs moved together, p99 by +1"), "{said}");
    assert!(
        said.contains(
            " %: the machine or the whole server may have changed, rather than what one run is about "
        ),
        "{said}"
    );
    assert_eq!(said.matches("server 1: version 1.6.18, 1.6.31").count(), 1, "{said}");
    assert!(said.contains("1.6.31 (in \"run 0\", \"run 1\", \"run 3\" and 8 more runs) "), "{said}");
}
