//! Comparisons of runs that are made up.

use pummel_logic::dist::Dist;
use pummel_logic::plan::{
    Arrivals, Depth, Group, Login, Mix, Phase, Plan, Protocol, RatePoint, RateShape, Stop, TlsOptions, Work,
};
use pummel_logic::protocol::Verb;
use pummel_logic::time::SECOND;
use pummel_measure::compare::Design;
use pummel_measure::evidence::provenance::Provenance;
use pummel_measure::measurement::Status;
use pummel_measure::outcome::RunOutcome;

use super::*;
use crate::run_figures::Metric;
use crate::run_figures::tests::run_at;
use crate::screen::{Paper, draw};
use crate::view::pair::{Headline, view};
use crate::view::run::Wanted;

/// A side in open loop whose runs began at these times with times of this scale.
pub fn side(runs: &[(f64, f64)]) -> Side {
    let group = Group { arrivals: Arrivals::Poisson, rate: Some(20_000.0), ..Group::default() };
    let plan = Plan { servers: vec!["127.0.0.1:11211".to_owned()], groups: vec![group], ..Plan::default() };
    let runs = runs.iter().map(|(started_s, scale)| run_at(*started_s, *scale)).collect();
    Side::new(String::new(), &plan, SideSource::default(), runs)
}

/// Ten pairs in mixed order, in which B is slower by `planted`, and runs differ a little.
pub fn pairs(planted: f64) -> [Side; 2] {
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

/// The first runs of such sides, all of A before those of B.
pub fn apart(planted: f64, runs: usize) -> [Side; 2] {
    let [mut first, mut second] = pairs(planted);
    first.runs.truncate(runs);
    second.runs.truncate(runs);
    for (at, run) in first.runs.iter_mut().chain(&mut second.runs).enumerate() {
        run.started_unix_s = Some(at as f64 * 10.0);
    }
    [first, second]
}

/// A question with one claim.
pub fn claim(kind: ClaimKind, metric: Metric, limit: f64) -> Question {
    Question { claims: vec![Claim { metric, limit, kind }], ..Question::default() }
}

fn exit(comparison: &Comparison) -> u8 {
    Headline::of(std::slice::from_ref(comparison)).status
}

/// The comparison on a screen.
fn text(comparison: &Comparison) -> String {
    draw(&view(std::slice::from_ref(comparison), Wanted::Screen), Paper::of_width(120))
}

#[test]
fn a_slower_side_is_called_slower_with_its_interval_and_p() {
    let comparison = Comparison::of_results(pairs(0.044), &Question::default());
    assert_eq!((comparison.design, comparison.order), (Design::Paired, Order::Mixed));
    let said = text(&comparison);
    assert!(
        said.contains("Result   p99 of B is 4.")
            && said.contains(" % higher (")
            && said.contains("; p = 0.002"),
        "{said}"
    );
    // What is not judged is shown without a word.
    assert_eq!(
        [Metric::P99, Metric::P50].map(|metric| comparison.row(metric).word),
        [Word::Differ, Word::NotJudged]
    );
    assert_eq!(exit(&comparison), 0, "nothing was held to anything");
    let faster = text(&Comparison::of_results(pairs(-0.044), &Question::default()));
    assert!(faster.contains("p99 of B is 4.") && faster.contains(" % lower ("), "{faster}");
}

#[test]
fn equal_sides_show_no_difference_and_what_would_have_been_seen() {
    let comparison = Comparison::of_results(pairs(0.0), &Question::default());
    let said = text(&comparison);
    assert!(
        said.contains("Result   no difference shown: p99 of B is between ")
            && said.contains(" % would have been seen\n"),
        "{said}"
    );
    assert_eq!(comparison.row(Metric::P99).word, Word::NoDifference);
}

/// Pairs in mixed order of runs with these scales of their times.
pub fn pairs_of(scales: &[(f64, f64)]) -> [Side; 2] {
    let at = |pair: usize, is_second: bool| {
        pair as f64 * 20.0 + if is_second == (pair % 2 == 1) { 0.0 } else { 10.0 }
    };
    let each = || scales.iter().enumerate();
    let first: Vec<(f64, f64)> = each().map(|(pair, (scale, _))| (at(pair, false), *scale)).collect();
    let second: Vec<(f64, f64)> = each().map(|(pair, (_, scale))| (at(pair, true), *scale)).collect();
    [side(&first), side(&second)]
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
    let said = text(&comparison);
    assert!(
        said.contains("Result   WORSE: the rate of B is 9.") && said.contains("), 5 % were allowed; p = "),
        "{said}"
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
    assert!(said.contains("Order    A ran before B: a slower hour would look the same\n"), "{said}");
    assert!(said.contains("Result   NOT DECIDED: the runs of A and B did not alternate"), "{said}");
    let accepted = Comparison::of_results(apart(0.5, 10), &Question { accept_order: true, ..gate });
    assert_eq!((exit(&accepted), accepted.row(Metric::P99).word), (3, Word::Differ));
    let words = text(&accepted);
    assert!(
        words.contains("WORSE: p99 of B is 1.5 times as high (") && words.contains("10 runs a side"),
        "{words}"
    );
    assert!(words.contains("a slower hour would look the same, which was accepted"), "{words}");
}

#[test]
fn two_runs_say_nothing_of_the_systems() {
    let comparison = Comparison::of_results(apart(0.5, 1), &Question::default());
    assert_eq!(comparison.doubts[0], Doubt::FewRuns { runs: 1, needed: 6 });
    assert!(comparison.row(Metric::P99).within.iter().all(Option::is_some), "intervals within the runs");
    assert_eq!(exit(&comparison), 0);
    let gated = Comparison::of_results(apart(0.5, 1), &claim(ClaimKind::Within, Metric::P99, 9.0));
    assert_eq!(exit(&gated), 1);
}

#[test]
fn few_failed_unsteady_or_different_runs_cannot_be_judged() {
    let gate = claim(ClaimKind::Worse, Metric::P99, 0.02);
    let one = |side: &str| RunsOfSide { side: side.to_owned(), runs: 1, of: 10 };
    let loads = || vec![Doubt::Loads { options: vec!["--connections".to_owned()] }];
    let why = |sides: [Side; 2], question: &Question| {
        let comparison = Comparison::of_results(sides, question);
        (exit(&comparison), comparison.doubts)
    };
    let mut few = pairs(0.5);
    few.iter_mut().for_each(|side| side.runs.truncate(4));
    assert_eq!(why(few, &gate), (1, vec![Doubt::FewRuns { runs: 4, needed: 6 }]));
    let mut failed = pairs(0.5);
    failed[1].runs[3].status = Status::Partial;
    assert_eq!(why(failed, &gate), (1, vec![Doubt::Incomplete(one("B"))]));
    let mut unsteady = pairs(0.5);
    unsteady[0].runs[0].steady = Some(false);
    // The interval decides of runs that were not steady.
    assert_eq!(why(unsteady.clone(), &gate), (3, vec![Doubt::Unsteady(one("A"))]));
    assert_eq!(why(unsteady, &Question { accept_unsteady: true, ..gate.clone() }), (3, Vec::new()));
    let mut other = pairs(0.5);
    other[1].plan.groups[0].clients = 99;
    assert_eq!(why(other, &gate), (1, loads()));
    // However much the machines differ.
    let mut elsewhere = pairs(0.5);
    for (place, side) in elsewhere.iter_mut().enumerate() {
        let machine = Provenance { memory_bytes: Some(place as u64), ..Provenance::default() };
        side.source.machine = vec![machine; 60];
    }
    elsewhere[1].plan.groups[0].clients = 99;
    let differing = Comparison::of_results(elsewhere.clone(), &gate).differences;
    assert_eq!(differing.len(), 1 + 40, "what is shown has a limit");
    assert_eq!(why(elsewhere, &gate), (1, loads()));
    // Another place of the servers and another seed are the same load.
    let mut moved = pairs(0.5);
    moved[1].plan.servers = vec!["cache2:11211".to_owned()];
    moved[1].plan.seed = 99;
    assert_eq!(why(moved, &gate), (3, Vec::new()));
}

#[test]
fn wrong_values_end_pairs_that_were_measured_with_the_status_of_a_failed_check() {
    let mut sides = pairs(0.0);
    sides[1].runs[3].wrong_values = Some(2);
    for question in [Question::default(), claim(ClaimKind::Worse, Metric::P99, 0.02)] {
        let comparison =
            Comparison::of_pairs(PairCommand::Ab, sides.clone(), &question).ended(10, None, false);
        assert_eq!(exit(&comparison), 3);
        assert!(text(&comparison).contains("Result   WRONG VALUES: 2 in all runs"), "{}", text(&comparison));
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
    assert!(text(&failed).contains("Failed   1 of 20 runs: more than half "), "{}", text(&failed));
    let runs = RunsOfSide { side: "B".to_owned(), runs: 1, of: 10 };
    assert_eq!(failed.doubts, [Doubt::Failed(runs)]);
    let overloaded = of(RunOutcome::Overloaded);
    assert!(text(&overloaded).contains("Overload 1 of 20 runs: "), "{}", text(&overloaded));
    assert_eq!(overloaded.doubts, of(RunOutcome::Ok).doubts);
    assert!(!text(&of(RunOutcome::Ok)).contains("of 20 runs"), "{}", text(&of(RunOutcome::Ok)));
}

#[test]
fn a_figure_that_one_run_does_not_know_has_no_change() {
    let mut sides = pairs(0.1);
    sides[1].runs[4].response_us.p99 = None;
    sides[0].runs[2].trust = Some(false);
    let comparison = Comparison::of_results(sides, &claim(ClaimKind::Worse, Metric::P99, 0.02));
    assert!(
        text(&comparison).contains("NOT DECIDED: p99 is not known in 1 of 20 runs"),
        "{}",
        text(&comparison)
    );
    let trust = "Trust    the times are partly pummel's own in 1 of 20 runs\n";
    assert!(text(&comparison).contains(trust), "{}", text(&comparison));
    assert_eq!(exit(&comparison), 1);
}

#[test]
fn several_judged_figures_pay_for_their_number() {
    let question = Question { metrics: vec![Metric::P99, Metric::P50], ..Question::default() };
    let comparison = Comparison::of_results(pairs(0.044), &question);
    let row = comparison.row(Metric::P99);
    let p = row.p.expect("there is a test");
    assert!((row.p_corrected.expect("it is judged") / p - 2.0).abs() < 1e-9);
    let whole = draw(&view(&[comparison], Wanted::Everything), Paper::default());
    assert!(whole.contains("Holm"), "{whole}");
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
    assert_eq!(few.row(Metric::P99).word, Word::NotKnown);
    let needed = Doubt::FewPairs { pairs: 6, figures: 2, needed: 7 };
    assert_eq!(few.too_few_for_figures(), Some(needed.clone()));
    let said = text(&few);
    assert!(
        said.contains("NOT DECIDED: 6 pairs can show no difference in any of 2 judged figures"),
        "{said}"
    );
    assert!(!said.contains("no difference shown") && !said.contains("would have been seen"), "{said}");
    let value: serde_json::Value = serde_json::from_slice(&json(&few)).expect("JSON");
    assert_eq!(value["figures"]["p99"]["would_have_been_seen"], serde_json::Value::Null);
    assert_eq!(value["figures"]["p99"]["word"], "not known");
    let claim = |metric| Claim { metric, limit: 0.05, kind: ClaimKind::Worse };
    let gates = Question { claims: vec![claim(Metric::P50), claim(Metric::P99)], ..Question::default() };
    for claim in &of(6, &gates).claims {
        assert_eq!(claim.outcome, Outcome::NotJudged(vec![needed.clone()]));
    }
    assert!(of(7, &gates).claims.iter().all(|claim| claim.outcome == Outcome::Violated));
    // A seventh pair is enough for two figures, and six are for one.
    assert_eq!(of(7, &question).row(Metric::P99).word, Word::Differ);
    let one = of(6, &Question::default());
    assert_eq!((one.row(Metric::P99).word, one.too_few_for_figures()), (Word::Differ, None));
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
    let found = differences(&sides);
    let of = |name: &str| found.iter().filter(|difference| difference.name.starts_with(name)).count();
    assert_eq!((of("plan.servers."), of("plan.timeout_ns")), (40, 1), "{found:?}");
}

/// What differs between two plans, in words.
fn told_apart(change: impl Fn(&mut Plan, &mut Plan)) -> Vec<String> {
    let mut sides = pairs(0.0);
    let [a, b] = &mut sides;
    change(&mut a.plan, &mut b.plan);
    let all = Comparison::of_results(sides, &Question::default()).difference_words();
    let words =
        all.into_iter().map(|DifferenceWords { name, values: [a, b], .. }| format!("{name}: A {a}, B {b}"));
    words.collect()
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
fn every_part_that_one_plan_does_not_have_is_said_by_its_options_with_both_values() {
    let warm_up = |time_s: u64| Phase {
        name: "warmup".to_owned(),
        work: Work::Mix(Mix::of(&[(Verb::Get, 1.0)])),
        stop: Stop { time_ns: Some(time_s * SECOND), requests: None },
        recorded: false,
    };
    let seen = told_apart(|a, b| {
        a.phases.insert(0, warm_up(60));
        b.phases.insert(0, warm_up(2));
        a.adaptive.first_eviction = true;
        b.protocol = Protocol::Resp3;
        b.data.value_size = Dist::Uniform { low: 10.0, high: 20.0 };
        b.tls = Some(TlsOptions { ca: Some("ca.pem".to_owned()), ..TlsOptions::default() });
    });
    let expected = [
        "--warmup-until: A evictions:60s, B not given",
        "--value-size: A 200, B uniform:10,20",
        "--warmup: A not given, B 2s",
        "--protocol: A text, B resp3",
        "--tls: A not given, B given",
    ];
    assert_eq!(seen, expected);
    let of_one_side = |a: &mut Plan, _: &mut Plan| {
        a.phases.insert(0, warm_up(60));
        a.adaptive.first_eviction = true;
    };
    assert_eq!(told_apart(of_one_side), ["--warmup-until: A evictions:60s, B not given"]);
    let both_encrypted = |a: &mut Plan, b: &mut Plan| {
        a.tls = Some(TlsOptions { insecure: true, ..TlsOptions::default() });
        b.tls = Some(TlsOptions { ca: Some("ca.pem".to_owned()), ..TlsOptions::default() });
    };
    let expected = ["--tls-insecure: A given, B not given", "--tls-ca: A not given, B ca.pem"];
    assert_eq!(told_apart(both_encrypted), expected);
    let seen = told_apart(|a, b| {
        a.groups[0].policy.spaced = true;
        let line = [10e3, 30e3]
            .into_iter()
            .zip([0, 10])
            .map(|(rate, at_s)| RatePoint { at_ns: at_s * SECOND, rate });
        (b.changes.rate, b.groups[0].rate) = (Some(RateShape::Points(line.collect())), Some(20e3));
        b.groups.push(Group { name: "measuring".to_owned(), ..a.groups[0].clone() });
        b.login = Some(Login { user: "u".to_owned(), password_file: None });
    });
    let expected = [
        "least gap between requests (group clients): A given, B not given",
        "group measuring: A not there, B there",
        "--rate: A 20k, B 10,000 to 30,000 req/s within 10.0 s",
        "--user: A not given, B u",
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_field_of_a_newer_version_is_shown_by_its_path() {
    let mut comparison = Comparison::of_results(pairs(0.0), &Question::default());
    let values = [serde_json::json!(1), serde_json::json!(2)];
    let name = "plan.newer.field".to_owned();
    comparison.differences = vec![Difference { name, values, is_of_the_load: true }];
    let [words] = comparison.difference_words().try_into().expect("one difference");
    assert_eq!((words.name.as_str(), words.values), ("plan.newer.field", ["1", "2"].map(str::to_owned)));
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
    assert!(exit(&noisy) == 0 && text(&noisy).contains("; below what this"), "{}", text(&noisy));
    // Of two runs it is said how far runs differ by themselves: 1.96 * sqrt(2) * 5 %.
    let mut two = apart(0.1, 1);
    two[1].source.noise = [("p99".to_owned(), 0.05)].into();
    let said = text(&Comparison::of_results(two, &Question::default()));
    assert!(
        said.contains("Noise    two runs of one thing differ on this machine: p99 by +- 13.9 %\n"),
        "{said}"
    );
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
    assert!(exit(&some) == 3 && text(&some).contains("WORSE"), "half of the runs: {}", text(&some));
    let most = limited(6);
    let said = text(&most);
    assert!(said.contains("NOT DECIDED: pummel itself was the limit of B"), "{said}");
    assert!(said.contains("Limit    pummel itself in 6 of 10 runs of B\n"), "{said}");
    assert_eq!((exit(&most), most.row(Metric::P99).word), (1, Word::NotComparable));
    // The first side is at least as good as its figures: beside it the second may be worse, and is not known to be better.
    let first_limited = |planted: f64, question: &Question| {
        let mut sides = pairs(planted);
        sides[0].runs.iter_mut().for_each(|run| run.limit = "generator".to_owned());
        Comparison::of_results(sides, question)
    };
    let slower = first_limited(0.5, &gate);
    assert!(exit(&slower) == 3 && text(&slower).contains("B is 50 % higher"), "{}", text(&slower));
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
fn a_time_that_is_partly_lag_is_never_called_better_or_worse_although_no_limit_was_reached() {
    let gate = claim(ClaimKind::Worse, Metric::P99, 0.02);
    let late = |runs: usize, place: usize, question: &Question| {
        let mut sides = pairs(0.5);
        for (run, share) in sides[place].runs[..runs].iter_mut().zip([0.11, 0.12].into_iter().cycle()) {
            (run.trust, run.doubtful) = (Some(false), vec!["p99".to_owned()]);
            run.lag_shares = [("p99".to_owned(), share)].into();
        }
        Comparison::of_results(sides, question)
    };
    let some = late(5, 1, &gate);
    assert!(exit(&some) == 3 && text(&some).contains("WORSE"), "half of the runs: {}", text(&some));
    let most = late(6, 1, &gate);
    let said = text(&most);
    assert!(
        said.contains("NOT DECIDED: pummel itself added up to 12 % of B's p99 in 6 of 10 runs"),
        "{said}"
    );
    assert!(said.contains("Trust    p99 is partly pummel's own in 6 of 20 runs\n"), "{said}");
    assert!(!said.contains("\nLimit "), "{said}");
    assert_eq!((exit(&most), most.row(Metric::P99).word), (1, Word::NotComparable));
    // The first side is at least as good as its figures.
    let slower = late(10, 0, &gate);
    assert!(exit(&slower) == 3 && text(&slower).contains("B is 50 % higher"), "{}", text(&slower));
    // The median is as the server has it.
    let median = Question { metrics: vec![Metric::P50], ..Question::default() };
    assert_eq!(late(10, 1, &median).row(Metric::P50).word, Word::Differ);
    // The doubt comes back from a stored result.
    let doubt = most.hidden_by_generator(Metric::P99)[1].clone().expect("it is doubted");
    let stored = serde_json::to_string(&doubt).expect("JSON");
    assert_eq!(serde_json::from_str::<Doubt>(&stored).expect("its own JSON"), doubt, "{stored}");
}

#[test]
fn each_of_several_sides_is_named_by_its_letter() {
    let names = SideNames([SIDE_NAMES[0], SIDE_NAMES[2]]);
    let gate = Question { names, ..claim(ClaimKind::Worse, Metric::P99, 0.02) };
    let comparison = Comparison::of_results(pairs(0.5), &gate);
    let said = text(&comparison);
    assert!(said.contains("p99 of C is 50 % higher") && said.contains("C to A"), "{said}");
    assert!(!said.contains("of B") && !said.contains(" B "), "{said}");
    let both = [Comparison::of_results(pairs(0.0), &Question::default()), comparison];
    let value: serde_json::Value = serde_json::from_slice(&json_of_all(&both)).expect("JSON");
    assert_eq!(value["comparisons"].as_array().map(Vec::len), Some(2));
    assert_eq!((&value["comparisons"][1]["names"][1], &value["schema"]), (&"C".into(), &1.into()));
    assert_eq!(json_of_all(&both[..1]), json(&both[0]), "one comparison is as it was");
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
    let said = text(&comparison);
    let line = said.lines().find(|line| line.starts_with("p99 ")).expect("a line");
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words, ["p99", ">", "1.41", "s", ">", "2.00", "s", "-"], "{said}");
    let value: serde_json::Value = serde_json::from_slice(&json(&comparison)).expect("JSON");
    assert_eq!(value["sides"][0]["runs"][0]["response_us"]["above"]["p99"], 1_410_000.0);
    // Of several runs of a side no bound is that of their median.
    sides[0].runs.push(sides[0].runs[0].clone());
    let several = Comparison::of_results(sides, &Question::default());
    assert_eq!(several.row(Metric::P99).bounds, [None, Some(2_000_000.0)]);
}
