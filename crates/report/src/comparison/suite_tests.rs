//! Comparisons of two suites that are made up: what is found, what is not, and what is written is read again.

use pummel_logic::rng::{Stream, mix, unit};
use pummel_measure::compare::{Design, RUNS_MAX};
use pummel_measure::measurement::Status;

use super::family::{self, JudgedRow};
use super::row::{Row, Word};
use super::tests::{claim, pairs_of, side};
use super::*;
use crate::json::render;
use crate::layouts::status_of;
use crate::run_figures::Metric;
use crate::stored::{self, ResultDocument};

/// Standard deviation of the logarithm of a round.
const NOISE: f64 = 0.03;

/// The scale of a round, with noise: normal logarithms by Box and Muller.
fn noisy(scale: f64, suite: u64, run: usize, round: usize) -> f64 {
    let draws = Stream::from_seed(mix(&[suite, run as u64, round as u64]));
    let radius = (-2.0 * (1.0 - unit(draws.draw(0))).ln()).sqrt();
    scale * (NOISE * radius * (std::f64::consts::TAU * unit(draws.draw(1))).cos()).exp()
}

/// A suite that began at some time, with a run for each of these scales.
pub fn suite(label: &str, seed: u64, started_s: f64, rounds: usize, scales: &[f64]) -> SuiteSide {
    let run = |(place, scale): (usize, &f64)| {
        let at = |round: usize| started_s + (round * scales.len() + place) as f64 * 10.0;
        let rounds: Vec<(f64, f64)> =
            (0..rounds).map(|round| (at(round), noisy(*scale, seed, place, round))).collect();
        (format!("run {place}"), side(&rounds))
    };
    SuiteSide {
        label: label.to_owned(),
        runs: scales.iter().enumerate().map(run).collect(),
        failed: Vec::new(),
    }
}

/// Two suites after each other, the second with these scales beside those of the first.
pub fn suites(rounds: usize, scales: &[f64], question: &Question) -> SuitesComparison {
    let first = suite("before.json", 1, 0.0, rounds, &vec![1.0; scales.len()]);
    let second = suite("after.json", 2, 1e6, rounds, scales);
    SuitesComparison::of(first, second, question)
}

/// A question that judges rounds in any order.
pub fn in_any_order() -> Question {
    Question { accept_order: true, ..Question::default() }
}

/// Twelve runs, one of which has this scale.
pub fn planted(scale: f64) -> Vec<f64> {
    (0..12).map(|run| if run == 3 { scale } else { 1.0 }).collect()
}

fn status(suites: &SuitesComparison) -> u8 {
    status_of(&ResultDocument::Suites(Box::new(suites.clone()))).expect("a comparison has a status")
}

fn word(suites: &SuitesComparison, run: usize) -> Word {
    suites.pairs[run].comparison.row(Metric::P99).word
}

#[test]
fn a_planted_difference_is_found_among_twelve_runs_and_no_other() {
    let compared = suites(6, &planted(1.2), &in_any_order());
    assert_eq!((compared.pairs.len(), compared.tests), (12, 12));
    for run in 0..12 {
        let expected = if run == 3 { Word::Differ } else { Word::NoDifference };
        assert_eq!(word(&compared, run), expected, "run {run}");
    }
    // Twice one of 924 orders, for twelve figures.
    let row = compared.pairs[3].comparison.row(Metric::P99);
    assert!((row.p_corrected.expect("a test") - 24.0 / 924.0).abs() < 1e-9, "{row:?}");
    assert_eq!(compared.pairs[3].comparison.tests_in_all, Some(12));
    assert_eq!((status(&compared), compared.shared_shift), (0, None));
    // A difference whose p is small enough alone is none among twelve.
    let of = |runs: usize| {
        let mut first = suite("a", 1, 0.0, 6, &vec![1.0; runs]);
        let mut second = suite("b", 2, 1e6, 6, &vec![1.0; runs]);
        for (side, base) in [(&mut first, 1.0), (&mut second, 1.035)] {
            for (round, run) in side.runs[0].1.runs.iter_mut().enumerate() {
                run.response_us.p99 = Some(base + 0.01 * round as f64);
            }
        }
        SuitesComparison::of(first, second, &in_any_order())
    };
    let p = of(12).pairs[0].comparison.row(Metric::P99).p.expect("a test");
    assert!(p < 0.05 && p > 0.05 / 12.0, "{p}");
    assert_eq!([1, 12].map(|runs| word(&of(runs), 0)), [Word::Differ, Word::NoDifference]);
}

#[test]
fn one_pair_of_runs_is_compared_as_it_is_without_a_suite() {
    for question in [in_any_order(), Question::default(), claim(ClaimKind::Worse, Metric::P99, 0.05)] {
        let (first, second) = (suite("a", 1, 0.0, 6, &[1.0]), suite("b", 2, 1e6, 6, &[1.2]));
        let [one, other] = [&first, &second].map(|suite| suite.runs[0].1.clone());
        let compared = SuitesComparison::of(first, second, &question);
        let alone = Comparison::of_results([one, other], &question);
        assert_eq!(json(&compared.pairs[0].comparison), json(&alone));
        assert!(!String::from_utf8(json(&alone)).expect("UTF-8").contains("tests_in_all"));
    }
}

/// How often a run is called different of 200 pairs of suites: any of those that are equal, and the one with this scale.
fn found(rounds: usize, scale: f64) -> [usize; 2] {
    const EXPERIMENTS: u64 = 200;
    let mut counts = [0, 0];
    let bare = side(&[]);
    let run = side(&[(0.0, 1.0)]).runs[0].clone();
    for experiment in 0..EXPERIMENTS {
        let of = |run_place: usize, place: u64| {
            let mut side = bare.clone();
            let scale = if run_place == 3 && place == 1 { scale } else { 1.0 };
            side.runs = vec![run.clone(); rounds];
            for (round, run) in side.runs.iter_mut().enumerate() {
                let seed = 2 * experiment + place + 1_000;
                run.response_us.p99 = Some(400.0 * noisy(scale, seed, run_place, round));
            }
            side
        };
        let of_run = |run: usize| Row::of(Metric::P99, &[of(run, 0), of(run, 1)], Design::Apart);
        let mut rows: Vec<_> = (0..12).map(of_run).collect();
        let mut judged: Vec<JudgedRow<'_>> = rows
            .iter_mut()
            .map(|(row, change)| JudgedRow {
                row,
                change: *change,
                design: Design::Apart,
                runs: [rounds; 2],
                may_differ: true,
            })
            .collect();
        assert_eq!(family::judge(&mut judged), 12);
        let is_found = |run: &usize| rows[*run].0.word == Word::Differ;
        let is_equal = |run: &usize| scale == 1.0 || *run != 3;
        counts[0] += usize::from((0..12).filter(is_equal).any(|run| is_found(&run)));
        counts[1] += usize::from(is_found(&3));
    }
    counts
}

#[test]
fn equal_suites_are_seldom_called_different_and_a_change_is_found() {
    let [equal, six, seven] = [(6, 1.0), (6, 1.1), (7, 1.1)].map(|(rounds, scale)| found(rounds, scale));
    for [false_alarms, _] in [equal, six, seven] {
        assert!(false_alarms <= 14, "{false_alarms} of 200");
    }
    // Six rounds show a difference among twelve runs only where all of one side are above all of the other.
    assert!(six[1] >= 140 && seven[1] >= 190, "{six:?} {seven:?}");
}

#[test]
fn more_runs_than_rounds_can_tell_apart_are_not_known() {
    let of = |runs: usize, rounds: usize| suites(rounds, &vec![1.0; runs], &in_any_order());
    assert_eq!(word(&of(23, 6), 0), Word::NoDifference);
    let many = of(24, 6);
    let doubt = Doubt::FewRunsForFigures { runs: 6, figures: 24, needed: 7 };
    assert_eq!(
        (word(&many, 0), many.pairs[0].comparison.too_few_for_figures()),
        (Word::NotKnown, Some(doubt))
    );
    assert_eq!(word(&of(24, 7), 0), Word::NoDifference);
    // Pairs of rounds take more.
    let paired = |rounds: usize| {
        let names = |side: Side| SuiteSide {
            failed: Vec::new(),
            label: String::new(),
            runs: (0..12).map(|run| (run.to_string(), side.clone())).collect(),
        };
        let scales = vec![(1.0, 1.5); rounds];
        let [first, second] = pairs_of(&scales).map(names);
        SuitesComparison::of(first, second, &Question::default())
    };
    let few = paired(6);
    let doubt = Doubt::FewPairs { pairs: 6, figures: 12, needed: 9 };
    assert_eq!((word(&few, 0), few.pairs[0].comparison.too_few_for_figures()), (Word::NotKnown, Some(doubt)));
    assert_eq!(word(&paired(9), 0), Word::Differ);
}

#[test]
fn names_that_one_suite_alone_has_are_told_and_not_compared() {
    let first = suite("a", 1, 0.0, 6, &[1.0, 1.0, 1.0]);
    let mut second = suite("b", 2, 1e6, 6, &[1.0, 1.0, 1.0]);
    second.runs[0].0 = "another".to_owned();
    second.runs.swap(1, 2);
    let compared = SuitesComparison::of(first, second, &in_any_order());
    assert_eq!(compared.only, [vec!["run 0".to_owned()], vec!["another".to_owned()]]);
    let names: Vec<&str> = compared.pairs.iter().map(|pair| pair.name.as_str()).collect();
    assert_eq!((names, compared.tests), (vec!["run 1", "run 2"], 2));
    let empty = SuitesComparison::of(SuiteSide::default(), suite("b", 2, 0.0, 6, &[1.0]), &in_any_order());
    assert_eq!((empty.pairs.len(), empty.tests, empty.only[1].len(), status(&empty)), (0, 0, 1, 1));
    let nothing = SuitesComparison::of(SuiteSide::default(), SuiteSide::default(), &in_any_order());
    assert_eq!((nothing.only, nothing.shared_shift), ([Vec::new(), Vec::new()], None));
}

#[test]
fn the_status_is_that_of_the_gates_of_all_runs() {
    let gate = |limit: f64, accept_order: bool| Question {
        accept_order,
        ..claim(ClaimKind::Worse, Metric::P99, limit)
    };
    assert_eq!(status(&suites(6, &planted(1.4), &gate(0.1, true))), 3);
    assert_eq!(status(&suites(6, &planted(1.4), &gate(0.6, true))), 0);
    assert_eq!(status(&suites(6, &planted(1.0), &gate(0.1, true))), 0);
    assert_eq!(status(&suites(6, &planted(1.4), &gate(0.1, false))), 1, "the order is not accepted");
    assert_eq!(status(&suites(6, &[1.4; 24], &gate(0.1, true))), 1, "too few rounds for 24 gates");
    let within = |limit| Question { accept_order: true, ..claim(ClaimKind::Within, Metric::P99, limit) };
    assert_eq!(status(&suites(6, &planted(1.0), &within(0.2))), 0);
    assert_eq!(status(&suites(6, &planted(1.2), &within(0.2))), 3);
}

#[test]
fn a_gate_among_many_fails_only_where_it_is_shown_for_as_many() {
    let question = Question { accept_order: true, ..claim(ClaimKind::Worse, Metric::P99, 0.05) };
    let with_rounds = |runs: usize, values: [f64; 6]| {
        let mut first = suite("a", 1, 0.0, 6, &vec![1.0; runs]);
        let mut second = suite("b", 2, 1e6, 6, &vec![1.0; runs]);
        let set = |side: &mut SuiteSide, values: [f64; 6]| {
            for (run, value) in side.runs[0].1.runs.iter_mut().zip(values) {
                run.response_us.p99 = Some(value);
            }
        };
        set(&mut first, [400.0, 401.0, 402.0, 403.0, 404.0, 405.0]);
        set(&mut second, values);
        let compared = SuitesComparison::of(first, second, &question);
        compared.pairs[0].comparison.claims[0].outcome.clone()
    };
    // All rounds are above the limit of 5 %, or all but one.
    let clear = [440.0, 441.0, 442.0, 443.0, 444.0, 445.0];
    let nearly = [422.8, 441.0, 442.0, 443.0, 444.0, 445.0];
    assert_eq!([1, 12].map(|runs| with_rounds(runs, clear)), [Outcome::Violated, Outcome::Violated]);
    assert_eq!([1, 12].map(|runs| with_rounds(runs, nearly)), [Outcome::Violated, Outcome::Held]);
}

#[test]
fn a_gate_for_a_rate_is_judged_in_the_direction_that_is_worse() {
    let question = Question { accept_order: true, ..claim(ClaimKind::Worse, Metric::Rate, 0.1) };
    assert_eq!(status(&suites(6, &planted(1.5), &question)), 3, "the rate falls by a third");
    assert_eq!(status(&suites(6, &planted(0.5), &question)), 0, "the rate doubles");
    let all = Question { accept_order: true, ..claim(ClaimKind::Worse, Metric::Rate, 1.0) };
    assert_eq!(status(&suites(6, &planted(1.5), &all)), 0, "no rate falls by more than all");
}

/// The shift of suites whose second has these scales, without noise but for a little.
fn shift(scales: &[f64]) -> Option<SharedShift> {
    let of = |started_s: f64, scales: &[f64]| {
        let run = |(place, scale): (usize, &f64)| {
            let round = |round: usize| {
                (started_s + round as f64, scale * (1.0 + 0.001 * ((round * 7 + place) % 5) as f64))
            };
            (place.to_string(), side(&(0..6).map(round).collect::<Vec<_>>()))
        };
        SuiteSide {
            label: String::new(),
            runs: scales.iter().enumerate().map(run).collect(),
            failed: Vec::new(),
        }
    };
    SuitesComparison::of(of(0.0, &vec![1.0; scales.len()]), of(1e6, scales), &in_any_order()).shared_shift
}

#[test]
fn runs_that_moved_together_are_told_and_their_neighbours_are_not() {
    let mut together = vec![1.03, 1.05, 1.04, 1.035, 1.045, 1.04, 1.03, 1.05, 1.04, 1.04, 1.045, 1.0];
    let found = shift(&together).expect("eleven of twelve moved");
    assert_eq!((found.metric, found.runs, found.of), (Metric::P99, 11, 12));
    let (least, greatest) = found.changes;
    assert!((least - 0.03).abs() < 0.003 && (greatest - 0.05).abs() < 0.003, "{found:?}");
    // One that moved much more is none of them.
    together[0] = 1.5;
    assert_eq!(shift(&together).map(|found| found.runs), Some(10));
    let down: Vec<f64> = together.iter().map(|scale| 2.0 - scale).collect();
    assert!(shift(&down).is_some_and(|found| found.changes.1 < 0.0));
    // Half of them up and half down, one alone, changes of any size, too few of all, and three runs.
    let halves: Vec<f64> = (0..12).map(|run| if run % 2 == 0 { 1.04 } else { 0.96 }).collect();
    let any: Vec<f64> = (0..12).map(|run| 1.0 + 0.01 * 2_f64.powi(run)).collect();
    let eight: Vec<f64> = (0..12).map(|run| if run < 8 { 1.04 } else { 1.0 }).collect();
    for scales in [halves, planted(1.04), any, eight, vec![1.04; 3], vec![1.0; 12], vec![]] {
        assert_eq!(shift(&scales), None, "{scales:?}");
    }
    assert_eq!(shift(&[1.04; 4]).map(|found| found.runs), Some(4));
}

#[test]
fn equal_suites_with_noise_hardly_ever_move_together() {
    let count = (0..60_u64).filter(|seed| {
        let of = |seed, started_s| suite("", seed, started_s, 6, &[1.0; 6]);
        let compared = SuitesComparison::of(of(2 * seed + 50, 0.0), of(2 * seed + 51, 1e6), &in_any_order());
        compared.shared_shift.is_some()
    });
    let count = count.count();
    assert!(count <= 2, "{count} of 60");
}

#[test]
fn a_stored_comparison_of_suites_is_read_as_it_was_written() {
    let question = claim(ClaimKind::Worse, Metric::P99, 0.05);
    let empty = SuitesComparison::of(SuiteSide::default(), suite("b", 2, 0.0, 2, &[1.0]), &question);
    let moved = suites(6, &[1.2; 6], &in_any_order());
    assert!(moved.shared_shift.is_some());
    for made in [suites(6, &planted(1.4), &question), suites(1, &[1.0, 1.3], &question), moved, empty] {
        let bytes = render(&made);
        let Ok(ResultDocument::Suites(read)) = stored::read(&bytes) else { panic!("a comparison of suites") };
        assert_eq!((&*read, render(&read)), (&made, bytes.clone()));
        let step = bytes.len() / 40 + 1;
        for end in (0..bytes.len() - 2).step_by(step) {
            assert!(stored::read(&bytes[..end]).is_err(), "{end}");
        }
    }
}

#[test]
fn what_is_beyond_the_limits_or_no_comparison_is_refused() {
    let made = || suites(2, &[1.0, 1.0], &in_any_order());
    let refused = |change: &dyn Fn(&mut SuitesComparison)| {
        let mut changed = made();
        change(&mut changed);
        stored::read(&render(&changed)).expect_err("it is beyond a limit").to_string()
    };
    let many =
        |suites: &mut SuitesComparison| suites.pairs = vec![suites.pairs[0].clone(); SUITE_RUNS_MAX + 1];
    assert!(refused(&many).contains("at most 200 runs"));
    let rounds = |suites: &mut SuitesComparison| {
        let side = &mut suites.pairs[1].comparison.sides[0];
        side.runs = vec![side.runs[0].clone(); RUNS_MAX + 1];
    };
    assert!(refused(&rounds).contains("at most 50 rounds"));
    assert!(refused(&|suites| suites.only[1] = vec![String::new(); SUITE_RUNS_MAX + 1]).contains("200"));
    assert!(refused(&|suites| suites.pairs[0].comparison.rows.0.truncate(3)).contains("all figures"));
    let text = String::from_utf8(render(&made())).expect("UTF-8");
    for (part, other) in [
        ("\"pairs\"", "\"pairs\": 7, \"x\""),
        ("\"tests\": 2", "\"tests\": -2"),
        ("\"tests\": 2", "\"tests\": 1e300"),
        ("\"name\": \"run 0\"", "\"name\": 9"),
        ("\"only\"", "\"others\""),
        ("\"schema\": 1", "\"schema\": 9"),
        ("\"command\": \"compare\"", "\"command\": \"ab\""),
    ] {
        assert!(text.contains(part), "{part}: {text}");
        assert!(stored::read(text.replace(part, other).as_bytes()).is_err(), "{other}");
    }
}

#[test]
fn counts_of_a_file_of_any_size_panic_nowhere() {
    let mut made = suites(2, &[1.0, 1.3], &claim(ClaimKind::Worse, Metric::P99, 0.0));
    let rounds = || RunsOfSide { side: "A".to_owned(), runs: usize::MAX, of: usize::MAX };
    for pair in &mut made.pairs {
        pair.name = "\u{1b}[2J</script>".repeat(30);
        pair.comparison.tests_in_all = Some(usize::MAX);
        pair.comparison.status = Status::Partial;
        pair.comparison.doubts = vec![
            Doubt::Incomplete(rounds()),
            Doubt::FewPairs { pairs: usize::MAX, figures: usize::MAX, needed: usize::MAX },
            Doubt::Unsteady(rounds()),
        ];
        for claim in &mut pair.comparison.claims {
            claim.outcome = Outcome::NotJudged(pair.comparison.doubts.clone());
        }
        for row in &mut pair.comparison.rows.0 {
            (row.change, row.ci, row.is_judged) = (Some(-1.0), Some((f64::MIN, f64::MAX)), true);
            (row.word, row.p_corrected) = (Word::Differ, Some(-3.0));
        }
    }
    made.tests = usize::MAX;
    made.shared_shift =
        Some(SharedShift { metric: Metric::Rate, runs: 0, of: usize::MAX, changes: (-1e300, f64::MAX) });
    let result = ResultDocument::Suites(Box::new(made));
    for detail in [crate::text::Detail::Line, crate::text::Detail::Screen, crate::text::Detail::Everything] {
        let shown = crate::layouts::text_of(&result, detail, crate::screen::Paper::default());
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }
    let page = String::from_utf8(crate::layouts::new_page_of(&result)).expect("UTF-8");
    assert!(!page.contains("[2J</script>"), "{page}");
    assert!(crate::layouts::csv_of(&result).is_some() && status_of(&result).is_some());
    assert!(crate::layouts::markdown_of(&result).len() <= 8 * 1024);
}
