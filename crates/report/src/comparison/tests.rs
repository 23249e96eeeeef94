//! Comparisons of runs that are made up.

use pummel_logic::plan::{Arrivals, Depth, Group, Mix, Phase, Plan, Stop, Work};
use pummel_logic::protocol::Verb;
use pummel_logic::time::SECOND;
use pummel_measure::compare::Design;
use pummel_measure::evidence::provenance::Provenance;
use pummel_measure::measurement::Status;
use pummel_measure::outcome::RunOutcome;

use super::*;
use crate::run_figures::Metric;
use crate::run_figures::tests::run_at;

/// A side in open loop whose runs began at these times with times of this scale.
fn side(runs: &[(f64, f64)]) -> Side {
    let group = Group { arrivals: Arrivals::Poisson, rate: Some(20_000.0), ..Group::default() };
    let plan = Plan { servers: vec!["127.0.0.1:11211".to_owned()], groups: vec![group], ..Plan::default() };
    let runs = runs.iter().map(|(started_s, scale)| run_at(*started_s, *scale)).collect();
    Side::new(String::new(), &plan, SideSource::default(), runs)
}

/// Ten pairs in mixed order, in which B is slower by `planted`, and runs differ a little.
fn pairs(planted: f64) -> [Side; 2] {
    let noise = [0.0, 0.004, -0.003, 0.002, -0.006, 0.001, 0.005, -0.002, 0.003, -0.004];
    let other = [0.002, -0.004, 0.001, 0.003, -0.001, 0.004, -0.003, 0.0, -0.002, 0.005];
    let time = |pair: usize, is_second: bool| {
        let comes_second = is_second != (pair % 2 == 1);
        pair as f64 * 20.0 + if comes_second { 10.0 } else { 0.0 }
    };
    let first: Vec<(f64, f64)> = (0..10).map(|pair| (time(pair, false), 1.0 + noise[pair])).collect();
    let second: Vec<(f64, f64)> =
        (0..10).map(|pair| (time(pair, true), (1.0 + other[pair]) * (1.0 + planted))).collect();
    [side(&first), side(&second)]
}

fn apart(planted: f64, runs: usize) -> [Side; 2] {
    let [mut first, mut second] = pairs(planted);
    first.runs.truncate(runs);
    second.runs.truncate(runs);
    for (at, run) in first.runs.iter_mut().chain(&mut second.runs).enumerate() {
        run.started_unix_s = Some(at as f64 * 10.0);
    }
    [first, second]
}

fn claim(kind: ClaimKind, metric: Metric, limit: f64) -> Question {
    Question { claims: vec![Claim { metric, limit, kind }], ..Question::default() }
}

fn exit(comparison: &Comparison) -> u8 {
    match comparison.conclusion() {
        Conclusion::Held => 0,
        Conclusion::Violated | Conclusion::WrongValues => 3,
        Conclusion::NotJudged | Conclusion::Incomplete => 1,
        Conclusion::Interrupted => 130,
    }
}

#[test]
fn a_slower_side_is_called_slower_with_its_interval_and_p() {
    let comparison = Comparison::of_results(pairs(0.044), &Question::default());
    assert_eq!((comparison.design, comparison.order), (Design::Paired, Order::Mixed));
    let said = text(&comparison);
    let line = said.lines().find(|line| line.starts_with("p99 ")).expect("a line");
    assert!(line.contains("A 400 us") && line.contains("B is 4.") && line.contains("% slower ("), "{line}");
    assert!(line.ends_with("10 pairs, p = 0.002"), "{line}");
    // What is not judged is shown without a word.
    let p50 = said.lines().find(|line| line.starts_with("p50 ")).expect("a line");
    assert!(p50.contains("+4.") && !p50.contains("slower"), "{p50}");
    assert!(said.contains("Judged: p99"), "{said}");
    assert_eq!(exit(&comparison), 0, "nothing was held to anything");
    let faster = text(&Comparison::of_results(pairs(-0.044), &Question::default()));
    assert!(faster.contains("B is 4.") && faster.contains("% faster ("), "{faster}");
}

#[test]
fn equal_sides_show_no_difference_and_what_would_have_been_seen() {
    let comparison = Comparison::of_results(pairs(0.0), &Question::default());
    let said = text(&comparison);
    let line = said.lines().find(|line| line.starts_with("p99 ")).expect("a line");
    assert!(line.contains("no difference shown (") && line.ends_with("% would have been seen"), "{line}");
    assert_eq!(comparison.row(Metric::P99).word, Word::NoDifference);
}

/// Pairs in mixed order of runs with these scales of their times.
fn pairs_of(scales: &[(f64, f64)]) -> [Side; 2] {
    let at = |pair: usize, is_second: bool| {
        pair as f64 * 20.0 + if is_second == (pair % 2 == 1) { 0.0 } else { 10.0 }
    };
    let each = || scales.iter().enumerate();
    let first: Vec<(f64, f64)> = each().map(|(pair, (scale, _))| (at(pair, false), *scale)).collect();
    let second: Vec<(f64, f64)> = each().map(|(pair, (_, scale))| (at(pair, true), *scale)).collect();
    [side(&first), side(&second)]
}

#[test]
fn medians_and_pairs_of_opposite_signs_are_both_said() {
    let low = (1.0, 0.9);
    let high = (9.0, 7.0);
    let scales = [(1.0, 3.0), low, high, low, high, low, high];
    let comparison = Comparison::of_results(pairs_of(&scales), &Question::default());
    let said = text(&comparison);
    let line = said.lines().find(|line| line.starts_with("p99 ")).expect("a line");
    assert!(line.contains("A 400 us") && line.contains("B 1.20 ms"), "{line}");
    assert!(
        line.contains("% is the middle of the changes of the pairs, and the medians differ by +200 %"),
        "{line}"
    );
    assert!(headline(&comparison).contains("the medians differ by +200 %"), "{}", headline(&comparison));
    let p50 = row_cells(comparison.row(Metric::P50), &comparison).expect("it is known");
    assert!(p50.word.contains("the medians differ by +200 %"), "{p50:?}");
    for planted in [0.0, 0.044, -0.044] {
        let said = text(&Comparison::of_results(pairs(planted), &Question::default()));
        assert!(!said.contains("the medians differ"), "{said}");
    }
}

#[test]
fn what_would_have_been_seen_is_no_change_beyond_a_doubling() {
    let scales: Vec<(f64, f64)> = (0..10)
        .map(|pair| (1.0, [3.0, 0.3, 2.0, 0.5, 1.0][pair % 5] * (1.0 + pair as f64 / 100.0)))
        .collect();
    let said = text(&Comparison::of_results(pairs_of(&scales), &Question::default()));
    let line = said.lines().find(|line| line.starts_with("p99 ")).expect("a line");
    assert!(
        line.contains("; only a factor of ") && line.ends_with(" or more would have been seen"),
        "{line}"
    );
    assert!(!line.contains("% would have been seen"), "{line}");
}

#[test]
fn runs_that_are_not_complete_are_said_of_one_run_a_side_too() {
    let mut sides = apart(0.0, 1);
    assert!(!text(&Comparison::of_results(sides.clone(), &Question::default())).contains("not complete"));
    sides[1].runs[0].status = Status::Partial;
    let said = text(&Comparison::of_results(sides.clone(), &Question::default()));
    assert!(said.contains("\nThe run of B was not complete; `pummel show` says why.\n"), "{said}");
    let mut several = apart(0.0, 6);
    several[0].runs[2].status = Status::Interrupted;
    let said = text(&Comparison::of_results(several, &Question::default()));
    assert_eq!(said.matches("1 of 6 runs of A was not complete").count(), 1, "{said}");
}

#[test]
fn a_gate_and_a_proof_of_no_harm_are_two_claims() {
    for (planted, kind, limit, status) in [
        (0.10, ClaimKind::Worse, 0.05, 3),
        (0.03, ClaimKind::Worse, 0.05, 0),
        (0.0, ClaimKind::Worse, 0.0, 0),
        (0.0, ClaimKind::Within, 0.05, 0),
        (0.048, ClaimKind::Within, 0.05, 3),
        (-0.2, ClaimKind::Within, 0.01, 0),
    ] {
        let comparison = Comparison::of_results(pairs(planted), &claim(kind, Metric::P99, limit));
        assert_eq!(exit(&comparison), status, "{planted} {kind:?} {limit}: {}", text(&comparison));
    }
    // A rate that falls is a change for the worse: times that grow by 10 % make it fall by 9.1 %.
    let gate = claim(ClaimKind::Worse, Metric::Rate, 0.05);
    let comparison = Comparison::of_results(pairs(0.1), &gate);
    assert_eq!(exit(&comparison), 3);
    assert!(text(&comparison).contains("--worse rate:5%: FAILED; B is worse by more than 5 %"));
    assert!(
        text(&comparison).contains("B does 9.") && text(&comparison).contains("% less"),
        "{}",
        text(&comparison)
    );
    assert_eq!(exit(&Comparison::of_results(pairs(-0.1), &gate)), 0);
}

#[test]
fn runs_that_did_not_alternate_never_differ_unless_their_order_is_accepted() {
    let gate = claim(ClaimKind::Worse, Metric::P99, 0.02);
    let comparison = Comparison::of_results(apart(0.5, 10), &gate);
    assert_eq!((comparison.design, comparison.order), (Design::Apart, Order::FirstBeforeSecond));
    assert_eq!((exit(&comparison), comparison.row(Metric::P99).word), (1, Word::NotKnown));
    let said = text(&comparison);
    assert!(said.contains("A was measured before B: a slower hour would look the same"), "{said}");
    assert!(said.contains("--worse p99:2%: cannot be judged: ") && !said.contains("slower ("), "{said}");
    let accepted = Comparison::of_results(apart(0.5, 10), &Question { accept_order: true, ..gate });
    assert_eq!((exit(&accepted), accepted.row(Metric::P99).word), (3, Word::Differ));
    let words = text(&accepted);
    assert!(words.contains("% slower (") && words.contains("10 runs a side, p = "), "{words}");
    assert!(words.contains("a slower hour would look the same, which was accepted"), "{words}");
}

#[test]
fn two_runs_say_nothing_of_the_systems() {
    let comparison = Comparison::of_results(apart(0.5, 1), &Question::default());
    let said = text(&comparison);
    assert!(said.contains("whether the systems differ is not known"), "{said}");
    assert!(said.contains("A 402 us (") || said.contains("A 400 us ("), "intervals within the runs: {said}");
    assert_eq!(exit(&comparison), 0);
    let gated = Comparison::of_results(apart(0.5, 1), &claim(ClaimKind::Within, Metric::P99, 9.0));
    assert_eq!(exit(&gated), 1);
}

#[test]
fn few_failed_unsteady_or_different_runs_cannot_be_judged() {
    let gate = claim(ClaimKind::Worse, Metric::P99, 0.02);
    let why = |sides: [Side; 2], question: &Question| {
        let comparison = Comparison::of_results(sides, question);
        (exit(&comparison), comparison.doubts.join("; "))
    };
    let mut few = pairs(0.5);
    few.iter_mut().for_each(|side| side.runs.truncate(4));
    assert_eq!(why(few, &gate), (1, "4 runs a side: 6 or more are needed".to_owned()));
    let mut failed = pairs(0.5);
    failed[1].runs[3].status = Status::Partial;
    assert_eq!(why(failed, &gate), (1, "1 of 10 runs of B was not complete".to_owned()));
    let mut unsteady = pairs(0.5);
    unsteady[0].runs[0].steady = Some(false);
    let (status, words) = why(unsteady.clone(), &gate);
    assert!(status == 1 && words.contains("not steady"), "{words}");
    assert_eq!(why(unsteady, &Question { accept_unsteady: true, ..gate.clone() }).0, 3);
    let mut other = pairs(0.5);
    other[1].plan.groups[0].clients = 99;
    assert_eq!(why(other, &gate), (1, "the plans differ in --connections".to_owned()));
    // However much the machines differ.
    let mut elsewhere = pairs(0.5);
    for (place, side) in elsewhere.iter_mut().enumerate() {
        let machine = Provenance { memory_bytes: Some(place as u64), ..Provenance::default() };
        side.source.machine = vec![machine; 60];
    }
    elsewhere[1].plan.groups[0].clients = 99;
    let differing = Comparison::of_results(elsewhere.clone(), &gate).differences;
    assert_eq!(differing.len(), 1 + 40, "what is shown has a limit");
    assert_eq!(why(elsewhere, &gate), (1, "the plans differ in --connections".to_owned()));
    // Another place of the servers and another seed are the same load.
    let mut moved = pairs(0.5);
    moved[1].plan.servers = vec!["cache2:11211".to_owned()];
    moved[1].plan.seed = 99;
    assert_eq!(why(moved, &gate), (3, String::new()));
}

#[test]
fn wrong_values_end_pairs_that_were_measured_with_the_status_of_a_failed_check() {
    let mut sides = pairs(0.0);
    sides[1].runs[3].wrong_values = Some(2);
    for question in [Question::default(), claim(ClaimKind::Worse, Metric::P99, 0.02)] {
        let comparison =
            Comparison::of_pairs(PairCommand::Ab, sides.clone(), &question).ended(10, None, false);
        assert_eq!(exit(&comparison), 3);
        assert!(text(&comparison).contains("WRONG VALUES FOUND: 2 in all runs"), "{}", text(&comparison));
        let comparison = comparison.ended(10, Some("the server is gone".to_owned()), false);
        assert_eq!(exit(&comparison), 1, "runs are missing");
    }
    // Of stored results nothing can be claimed, and the run that was stored has had its exit status.
    let stored = Comparison::of_results(sides, &Question::default());
    assert!(exit(&stored) == 0 && text(&stored).contains("wrong values were found in runs of B"));
    let right = Comparison::of_pairs(PairCommand::Ab, pairs(0.0), &Question::default());
    assert!(exit(&right) == 0 && !text(&right).contains("WRONG VALUES"), "{}", text(&right));
}

#[test]
fn runs_of_errors_carry_no_claim_and_overloaded_runs_are_counted() {
    let question = claim(ClaimKind::Worse, Metric::P99, 0.02);
    let of = |outcome| {
        let mut sides = pairs(0.1);
        sides[1].runs[4].outcome = outcome;
        Comparison::of_pairs(PairCommand::Ab, sides, &question)
    };
    let failed = of(RunOutcome::Failed);
    assert!(text(&failed).contains("FAILED: in 1 of 20 runs more than half "), "{}", text(&failed));
    let doubt = "1 of 10 runs of B was of errors or timeouts for the most part";
    assert!(failed.doubts.iter().any(|known| known == doubt), "{:?}", failed.doubts);
    let overloaded = of(RunOutcome::Overloaded);
    assert!(text(&overloaded).contains("OVERLOADED: in 1 of 20 runs "), "{}", text(&overloaded));
    assert_eq!(overloaded.doubts, of(RunOutcome::Ok).doubts);
    assert!(!text(&of(RunOutcome::Ok)).contains(": in "), "{}", text(&of(RunOutcome::Ok)));
}

#[test]
fn a_figure_that_one_run_does_not_know_has_no_change() {
    let mut sides = pairs(0.1);
    sides[1].runs[4].response_us.p99 = None;
    sides[0].runs[2].trust = Some(false);
    let comparison = Comparison::of_results(sides, &claim(ClaimKind::Worse, Metric::P99, 0.02));
    assert!(text(&comparison).contains("not known in 1 of 20 runs"), "{}", text(&comparison));
    assert!(
        text(&comparison).contains("In 1 of 20 runs part of the times was added by pummel itself (lag).")
    );
    assert_eq!(exit(&comparison), 1);
}

#[test]
fn several_judged_figures_pay_for_their_number() {
    let question = Question { metrics: vec![Metric::P99, Metric::P50], ..Question::default() };
    let comparison = Comparison::of_results(pairs(0.044), &question);
    let row = comparison.row(Metric::P99);
    let p = row.p.expect("there is a test");
    assert!((row.p_corrected.expect("it is judged") / p - 2.0).abs() < 1e-9);
    assert!(text(&comparison).contains("Holm"), "{}", text(&comparison));
}

#[test]
fn pairs_that_are_too_few_for_the_judged_figures_say_so_and_show_no_equality() {
    let question = Question { metrics: vec![Metric::P99, Metric::P50], ..Question::default() };
    let of = |pairs_made: usize, question: &Question| {
        let sides = pairs(0.5).map(|mut side| {
            side.runs.truncate(pairs_made);
            side
        });
        Comparison::of_results(sides, question)
    };
    let few = of(6, &question);
    let said = text(&few);
    let line = said.lines().find(|line| line.starts_with("p99 ")).expect("a line");
    assert_eq!(few.row(Metric::P99).word, Word::NotKnown);
    assert!(line.contains("+50") && line.ends_with("; whether they differ is not known"), "{line}");
    assert!(!said.contains("no difference shown") && !said.contains("would have been seen"), "{said}");
    assert!(
        said.contains("Judged: p50, p99. 6 pairs can show no difference in any of 2 judged figures"),
        "{said}"
    );
    assert!(said.contains("it takes 7 pairs, or fewer figures."), "{said}");
    assert!(headline(&few).contains("6 pairs can show no difference"), "{}", headline(&few));
    let value: serde_json::Value = serde_json::from_slice(&json(&few)).expect("JSON");
    assert_eq!(value["figures"]["p99"]["would_have_been_seen"], serde_json::Value::Null);
    assert_eq!(value["figures"]["p99"]["word"], "not known");
    let claim = |metric| Claim { metric, limit: 0.05, kind: ClaimKind::Worse };
    let gates = Question { claims: vec![claim(Metric::P50), claim(Metric::P99)], ..Question::default() };
    for claim in &of(6, &gates).claims {
        let words = claim.words("B");
        assert!(words.contains("cannot be judged: 6 pairs can show no difference"), "{words}");
    }
    assert!(of(7, &gates).claims.iter().all(|claim| claim.outcome == Outcome::Violated));
    // A seventh pair is enough for two figures, and six are for one.
    assert_eq!(of(7, &question).row(Metric::P99).word, Word::Differ);
    let one = of(6, &Question::default());
    assert_eq!((one.row(Metric::P99).word, one.too_few_pairs()), (Word::Differ, None));
}

#[test]
fn what_would_have_been_seen_is_more_where_more_figures_are_judged() {
    let seen = |metrics: Vec<Metric>| {
        let question = Question { metrics, ..Question::default() };
        let comparison = Comparison::of_results(pairs(0.0), &question);
        comparison.row(Metric::P99).would_have_been_seen.expect("ten pairs can show a difference")
    };
    let (one, three) = (seen(vec![Metric::P99]), seen(vec![Metric::P99, Metric::P50, Metric::P90]));
    assert!(three > 1.1 * one && three < 1.6 * one, "{one} {three}");
}

#[test]
fn a_list_that_differs_in_many_places_is_kept_in_part_and_hides_no_other_difference() {
    let mut sides = pairs(0.0);
    for (side, letter) in sides.iter_mut().zip(["a", "b"]) {
        side.plan.servers = (0..100).map(|host| format!("{letter}{host}:1")).collect();
    }
    sides[1].plan.timeout_ns += 1;
    let found = side::differences(&sides);
    let of = |name: &str| found.iter().filter(|difference| difference.name.starts_with(name)).count();
    assert_eq!((of("plan.servers."), of("plan.timeout_ns")), (40, 1), "{found:?}");
}

#[test]
fn what_differs_in_servers_and_machines_is_said_first() {
    let mut sides = pairs(0.0);
    let source = |version: &str, host: &str| SideSource {
        servers: vec![ServerSoftware {
            software: "memcached".to_owned(),
            version: version.to_owned(),
            serving_threads: None,
        }],
        machine: vec![Provenance { host: Some(host.to_owned()), ..Provenance::default() }],
        ..SideSource::default()
    };
    sides[0].source = source("1.6.18", "x");
    sides[1].source = source("1.6.31\u{1b}[2J", "x");
    let said = text(&Comparison::of_results(sides.clone(), &Question::default()));
    assert!(said.contains("server 1: version: A 1.6.18, B 1.6.31?[2J\n"), "{said}");
    assert!(!said.contains("machine"), "{said}");
    // A result that says less is no difference.
    sides[1].source = SideSource::default();
    assert!(!text(&Comparison::of_results(sides, &Question::default())).contains("What differs"));
}

/// The lines of what differs between two plans.
fn told_apart(change: impl Fn(&mut Plan, &mut Plan)) -> Vec<String> {
    let mut sides = pairs(0.0);
    let [a, b] = &mut sides;
    change(&mut a.plan, &mut b.plan);
    let said = text(&Comparison::of_results(sides, &Question::default()));
    said.lines().filter_map(|line| line.strip_prefix("    ")).map(str::to_owned).collect()
}

#[test]
fn what_differs_in_the_load_is_said_by_its_options() {
    assert_eq!(told_apart(|_, b| b.groups[0].rate = Some(40_000.0)), ["--rate: A 20k, B 40k"]);
    // A load without a rate is the closed loop.
    assert_eq!(
        told_apart(|a, b| {
            a.groups[0].rate = Some(1_500.0);
            (b.groups[0].arrivals, b.groups[0].rate) = (Arrivals::Closed, None);
        }),
        ["--rate: A 1.5k, B not given"]
    );
    // A warm-up of one side does not move the phases behind it.
    let phase = |name: &str, time_s: u64, weights: &[(Verb, f64)]| Phase {
        name: name.to_owned(),
        work: Work::Mix(Mix::of(weights)),
        stop: Stop { time_ns: Some(time_s * SECOND), requests: None },
        recorded: name == "measure",
    };
    let seen = told_apart(|a, b| {
        a.phases = vec![phase("measure", 5, &[(Verb::Get, 1.0)])];
        let mix = [(Verb::Get, 9.0), (Verb::Set, 1.0)];
        b.phases = vec![phase("warmup", 2, &mix), phase("measure", 90, &mix)];
    });
    let expected = ["--time: A 5s, B 90s", "--mix: A get:1, B get:9,set:1", "--warmup: A not given, B 2s"];
    assert_eq!(seen, expected);
    // Of several groups it is said which one.
    let seen = told_apart(|a, b| {
        for plan in [&mut *a, &mut *b] {
            let mut probe = plan.groups[0].clone();
            probe.name = "probe".to_owned();
            plan.groups.push(probe);
        }
        b.groups[1].depth = Depth::Limit(7);
    });
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].starts_with("--depth (group probe): A ") && seen[0].ends_with(", B 7"), "{seen:?}");
}

#[test]
fn a_difference_below_the_noise_of_the_machine_is_shown_and_fails_no_gate() {
    let gate = claim(ClaimKind::Worse, Metric::P99, 0.01);
    let with_noise = |noise: f64| {
        let mut sides = pairs(0.044);
        sides[0].source.noise = [("p99".to_owned(), noise)].into();
        Comparison::of_results(sides, &gate)
    };
    let calm = with_noise(0.005);
    assert!(exit(&calm) == 3 && !text(&calm).contains("can tell apart"), "{}", text(&calm));
    let noisy = with_noise(0.05);
    assert!(
        exit(&noisy) == 0 && text(&noisy).contains("below what this machine can tell apart"),
        "{}",
        text(&noisy)
    );
    // Of two runs it is said how far runs differ by themselves: 1.96 * sqrt(2) * 5 %.
    let mut two = apart(0.1, 1);
    two[1].source.noise = [("p99".to_owned(), 0.05)].into();
    let said = text(&Comparison::of_results(two, &Question::default()));
    assert!(said.contains("differ by themselves: p99 by +- 13.9 %"), "{said}");
}

#[test]
fn json_and_csv_have_everything() {
    let comparison = Comparison::of_results(pairs(0.1), &claim(ClaimKind::Worse, Metric::P99, 0.02));
    let value: serde_json::Value = serde_json::from_slice(&json(&comparison)).expect("JSON");
    let p99 = &value["figures"]["p99"];
    assert_eq!(
        (&value["command"], &value["design"], &p99["word"]),
        (&serde_json::json!("compare"), &serde_json::json!("paired"), &serde_json::json!("differ"))
    );
    let ci = p99["ci"].as_array().expect("an interval");
    assert!(ci[0].as_f64() < p99["change"].as_f64() && p99["change"].as_f64() < ci[1].as_f64(), "{p99}");
    assert_eq!(value["claims"][0]["outcome"], "failed");
    assert_eq!(value["sides"][1]["runs"].as_array().map(Vec::len), Some(10));
    let rows = String::from_utf8(csv(&comparison)).expect("UTF-8");
    let columns: Vec<usize> = rows.lines().map(|row| row.split(',').count()).collect();
    assert!(columns.len() == 21 && columns.iter().all(|count| *count == columns[0]), "{columns:?}");
}

#[test]
fn a_side_whose_generator_was_the_limit_is_never_called_faster_or_slower() {
    let gate = claim(ClaimKind::Worse, Metric::P99, 0.02);
    let limited = |runs: usize| {
        let mut sides = pairs(0.5);
        sides[1].runs[..runs].iter_mut().for_each(|run| run.limit = "generator".to_owned());
        Comparison::of_results(sides, &gate)
    };
    let some = limited(5);
    assert!(exit(&some) == 3 && text(&some).contains("slower"), "half of the runs: {}", text(&some));
    let most = limited(6);
    let said = text(&most) + &markdown_of_all(std::slice::from_ref(&most)) + &headline(&most);
    assert!(!said.contains("slower (") && !said.contains("faster"), "{said}");
    assert!(said.contains("not comparable: the generator was the limit of B"), "{said}");
    assert!(
        text(&most).contains("cannot be judged: the generator was the limit in 6 of 10 runs of B"),
        "{said}"
    );
    assert_eq!((exit(&most), most.row(Metric::P99).word), (1, Word::NotComparable));
    // The first side is at least as good as its figures: beside it the second may be worse, and is not known to be better.
    let first_limited = |planted: f64, question: &Question| {
        let mut sides = pairs(planted);
        sides[0].runs.iter_mut().for_each(|run| run.limit = "generator".to_owned());
        Comparison::of_results(sides, question)
    };
    let slower = first_limited(0.5, &gate);
    assert!(exit(&slower) == 3 && text(&slower).contains("B is 50"), "{}", text(&slower));
    let faster = first_limited(-0.3, &gate);
    assert_eq!((exit(&faster), faster.row(Metric::P99).word), (0, Word::NotComparable));
    assert_eq!(exit(&first_limited(0.0, &claim(ClaimKind::Within, Metric::P99, 0.5))), 1);
    // CPU time for each request is no time of the way.
    let question = Question { metrics: vec![Metric::ClientCpu], ..Question::default() };
    let mut sides = pairs(0.5);
    sides[1].runs.iter_mut().for_each(|run| run.limit = "generator".to_owned());
    assert_ne!(Comparison::of_results(sides, &question).row(Metric::ClientCpu).word, Word::NotComparable);
}

#[test]
fn each_of_several_sides_is_named_by_its_letter() {
    let names = SideNames([SIDE_NAMES[0], SIDE_NAMES[2]]);
    let gate = Question { names, ..claim(ClaimKind::Worse, Metric::P99, 0.02) };
    let comparison = Comparison::of_results(pairs(0.5), &gate);
    let said = text(&comparison);
    assert!(said.contains("C is 50") && said.contains("C is worse by more than 2 %"), "{said}");
    assert!(!said.contains("B is") && !said.contains(" B "), "{said}");
    assert!(headline(&comparison).starts_with("p99: C is 50") && headline(&comparison).ends_with(" than A."));
    let both = [Comparison::of_results(pairs(0.0), &Question::default()), comparison];
    assert_eq!(text_of_all(&both), format!("{}\n{}", text(&both[0]), text(&both[1])));
    let value: serde_json::Value = serde_json::from_slice(&json_of_all(&both)).expect("JSON");
    assert_eq!(value["comparisons"].as_array().map(Vec::len), Some(2));
    assert_eq!((&value["comparisons"][1]["names"][1], &value["schema"]), (&"C".into(), &1.into()));
    assert_eq!(json_of_all(&both[..1]), json(&both[0]), "one comparison is as it was");
}

#[test]
fn markdown_is_a_table_in_which_foreign_words_have_no_meaning() {
    let mut sides = pairs(0.1);
    sides[0].label = "a|b.json <script>".to_owned();
    let comparison = Comparison::of_results(sides, &claim(ClaimKind::Worse, Metric::P99, 0.02));
    let said = markdown_of_all(&[comparison]);
    assert!(said.starts_with("### p99: B is 10") && said.contains("| p99 | "), "{said}");
    assert!(said.contains("a\\|b.json &lt;script&gt;") && said.contains("FAILED"), "{said}");
}

#[test]
fn a_figure_that_is_not_known_is_told_by_what_it_is_more_than() {
    let mut sides = apart(0.0, 1);
    for (side, bound) in sides.iter_mut().zip([1_410_000.0, 2_000_000.0]) {
        let response = &mut side.runs[0].response_us;
        response.p99 = None;
        response.above.insert("p99".to_owned(), bound);
    }
    let comparison = Comparison::of_results(sides.clone(), &Question::default());
    assert_eq!(headline(&comparison), "p99: A > 1.41 s, B > 2.00 s; not known in 2 of 2 runs.");
    let said = text(&comparison);
    let line = said.lines().find(|line| line.starts_with("p99 ")).expect("a line");
    let words: Vec<&str> = line.split_whitespace().collect();
    assert!(words.starts_with(&["p99", "A", ">", "1.41", "s", "B", ">", "2.00", "s"]), "{said}");
    let cells = row_cells(comparison.row(Metric::P99), &comparison).expect("a row");
    assert_eq!((cells.values[1].as_str(), cells.change.as_str()), ("> 2.00 s", "-"));
    let value: serde_json::Value = serde_json::from_slice(&json(&comparison)).expect("JSON");
    assert_eq!(value["sides"][0]["runs"][0]["response_us"]["above"]["p99"], 1_410_000.0);
    // Of several runs of a side no bound is that of their median.
    sides[0].runs.push(sides[0].runs[0].clone());
    let several = Comparison::of_results(sides, &Question::default());
    assert_eq!(several.row(Metric::P99).bounds, [None, Some(2_000_000.0)]);
}

#[test]
fn long_notes_are_whole_in_markdown() {
    let mut comparison = Comparison::of_results(pairs(0.1), &Question::default());
    let why = "a reason of many words ".repeat(40);
    comparison.reason = Some(why.trim_end().to_owned());
    let said = markdown_of_all(&[comparison]);
    assert!(said.contains(&format!("pairs: {}\n", why.trim_end())), "{said}");
}
