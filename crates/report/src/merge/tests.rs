//! Sums of runs in miniature, beside the one run that made the same requests.

use std::ops::Range;

use pummel_logic::plan::{FailOn, Goal, Part as ChangePart, Until};
use pummel_logic::protocol::{Fault, Outcome, Verb};
use pummel_logic::rng::{below, mix};
use pummel_logic::time::SECOND;
use pummel_measure::measurement::{Keep, Measurement, Status};
use pummel_measure::recorder::{Sample, Span};

use super::*;
use crate::comparison::{StoredFile, side_of};
use crate::document::{ChangeResult, ChangedFigure, LagPartResult, ReliableFigures};
use crate::example::{BUILD, Run, sample};
use crate::screen::Paper;
use crate::stored::ResultDocument;
use crate::text::{Detail, run};
use crate::{json, markdown, repetition};

/// The result of a run that made the requests with these numbers, some of which failed or were never sent.
fn of_requests(seed: u64, numbers: impl Iterator<Item = u64> + Clone) -> Document {
    let mut run = Run::new(Keep::Figures);
    run.plan.seed = seed;
    let names = run.plan.groups.iter().map(|group| group.name.clone());
    let mut measurement = Measurement::new(names, run.plan.engine.clock, run.plan.timeout_ns);
    measurement.started_unix_ns = 1_700_000_000 * SECOND;
    measurement.measured_ns = 2 * SECOND;
    run.measurement = measurement;
    for half in 0..2 {
        run.interval(half, Keep::Figures, |interval| {
            for number in numbers.clone().filter(|number| number % 2 == half) {
                match number % 97 {
                    0 => interval.groups[0].counts(Verb::Get).unsent += 1,
                    1 => {
                        let outcome = Outcome::Error(Fault::Timeout);
                        interval.groups[0].record(&Sample { outcome, ..sample(number) });
                    }
                    _ => interval.groups[0].record(&sample(number)),
                }
            }
        });
    }
    run.document(Clone::clone)
}

fn shares(numbers: Range<u64>, of: u64) -> Vec<Document> {
    let is_of = move |share: u64, number: u64| below(mix(&[7, number]), of) == share;
    (0..of)
        .map(|share| of_requests(share, numbers.clone().filter(move |number| is_of(share, *number))))
        .collect()
}

fn parts(documents: &[Document]) -> Vec<Part<'_>> {
    const NAMES: [&str; 4] = ["a.json", "b.json", "c.json", "d.json"];
    NAMES.into_iter().zip(documents).map(|(name, document)| Part { name, document }).collect()
}

fn why(documents: &[Document]) -> String {
    merged(&parts(documents), BUILD).expect_err("they do not belong together").0
}

#[test]
fn a_sum_with_an_overloaded_part_is_overloaded() {
    let mut documents = shares(0..3_000, 2);
    let sum = merged(&parts(&documents), BUILD).expect("they are shares of one load");
    assert_eq!((sum.outcome, sum.outcome_says), (RunOutcome::Ok, None));
    documents[1].outcome = RunOutcome::Overloaded;
    documents[1].outcome_says = Some("990/s answered of 2,000/s asked".to_owned());
    let sum = merged(&parts(&documents), BUILD).expect("they are shares of one load");
    assert_eq!(sum.outcome, RunOutcome::Overloaded);
    assert_eq!(sum.outcome_says.as_deref(), Some("b.json: 990/s answered of 2,000/s asked"));
}

#[test]
fn the_sum_of_shares_is_the_run_that_made_all_of_their_requests() {
    for of in [2, 3, 4] {
        let whole = of_requests(0, 0..3_000);
        let documents = shares(0..3_000, of);
        let sum = merged(&parts(&documents), BUILD).expect("they are shares of one load");
        assert_eq!(
            (sum.totals.requests, sum.totals.completed),
            (whole.totals.requests, whole.totals.completed)
        );
        assert_eq!((sum.totals.rate, sum.bytes.sent), (whole.totals.rate, whole.bytes.sent * of));
        for ((name, op), (other, expected)) in sum.ops.iter().zip(whole.ops.iter()) {
            assert_eq!(name, other);
            assert_eq!((op.hits, op.misses, op.unsent), (expected.hits, expected.misses, expected.unsent));
            assert_eq!((&op.errors, &op.outcomes), (&expected.errors, &expected.outcomes));
            assert_eq!(op.histograms, expected.histograms, "{name}");
            for span in Span::ALL {
                let [of_sum, of_whole] = [op, expected].map(|op| op.times.of_span(span));
                assert!(of_sum.quantiles().eq(of_whole.quantiles()), "{name} {}", span.name());
                assert_eq!(of_sum.min, of_whole.min);
                let [mean, other] = [of_sum, of_whole].map(|times| times.mean.expect("there are requests"));
                assert!((mean - other).abs() < 0.0011, "{name} {}: {mean} {other}", span.name());
            }
        }
        assert_eq!(sum.anatomy.iter().map(|cell| cell.count).sum::<u64>(), whole.totals.completed);
        let counts = |document: &Document| {
            let ops = |interval: &crate::document::IntervalResult| {
                interval
                    .ops
                    .iter()
                    .map(|(name, op)| (name.to_owned(), op.completed, op.unsent))
                    .collect::<Vec<_>>()
            };
            document.intervals.iter().map(|it| (ops(it), it.sketch.clone())).collect::<Vec<_>>()
        };
        assert_eq!(counts(&sum), counts(&whole));
        assert_eq!(sum.plan.groups[0].clients, 10 * of as u32);
        assert_eq!(sum.plan.groups[0].rate, Some(1_000.0 * of as f64));
    }
}

#[test]
fn a_sum_is_a_result_that_is_shown_and_read_again() {
    let mut documents = shares(0..500, 2);
    documents[0].labels.insert("branch".to_owned(), "main".to_owned());
    documents[0].labels.insert("rack".to_owned(), "1".to_owned());
    documents[1].labels.insert("branch".to_owned(), "main".to_owned());
    documents[1].labels.insert("rack".to_owned(), "2".to_owned());
    let sum = merged(&parts(&documents), BUILD).expect("a sum");
    assert_eq!(sum.labels.keys().collect::<Vec<_>>(), ["branch"], "what holds of all");
    let bytes = json::render(&sum);
    assert!(Document::read(&bytes).expect("a result") == sum);
    let text = run(&sum, Detail::Everything, Paper::default());
    assert!(text.contains("\nMerged       the sum of 2 results: a.json "), "{text}");
    let said = "\nTrust    reliable in both results: pummel's own delay (lag) is at most 4 % of";
    assert!(text.contains(said), "{text}");
    let of_each = ["\nLimit    a.json: the server, or the way to it: ", " b.json: the server,"];
    assert!(of_each.iter().all(|words| text.contains(words)), "{text}");
    // A sum may be a part of a sum.
    let more = of_requests(9, 500..600);
    let all = [sum, more];
    assert_eq!(merged(&parts(&all), BUILD).expect("a sum").merged.len(), 2);
}

#[test]
fn parts_that_are_not_complete_or_not_trusted_make_such_a_sum() {
    let mut documents = shares(0..500, 3);
    documents[1].status = Status::Interrupted;
    documents[1].reason = Some("interrupted".to_owned());
    documents[2].trust =
        Some(TrustResult { ok: false, says: "it stalled".to_owned(), ..TrustResult::default() });
    documents[2].verdict = Some(generator_limit());
    let sum = merged(&parts(&documents), BUILD).expect("a sum");
    assert_eq!((sum.status, sum.reason.as_deref()), (Status::Interrupted, Some("b.json: interrupted")));
    let trust = sum.trust.expect("it is said");
    assert_eq!((trust.ok, trust.says.as_str()), (false, "reliable in 2 of 3 results. c.json: it stalled"));
    let verdict = sum.verdict.expect("it is said");
    assert_eq!(verdict.limit, "unknown");
    assert!(verdict.says.starts_with("c.json: pummel's CPU. a.json"), "{}", verdict.says);
}

/// A limit of the generator, of a version that kept no facts.
fn generator_limit() -> VerdictResult {
    let says = "pummel's CPU".to_owned();
    VerdictResult { limit: "generator".to_owned(), says, ..VerdictResult::default() }
}

#[test]
fn a_sum_keeps_the_causes_of_its_parts_and_says_them_of_the_parts() {
    let mut documents = shares(0..500, 3);
    let half = LagPartResult { figure: "p50".to_owned(), share: 0.54, ..LagPartResult::default() };
    for document in &mut documents[1..] {
        let trust = document.trust.as_mut().expect("it was judged");
        (trust.ok, trust.kind, trust.doubtful) = (false, ReliableFigures::None, vec![half.clone()]);
    }
    documents[2].verdict = Some(generator_limit());
    let sum = merged(&parts(&documents), BUILD).expect("a sum");
    let line = sum.trust_line().expect("it is said").to_string();
    let expected = "NOT RELIABLE in 2 of 3 results. b.json: 54 % of p50 is pummel's own delay (lag), and its cause is not known. \
                    c.json: 54 % of p50 is pummel's own delay (lag), see Limit";
    assert_eq!(line, expected);
    assert_eq!(sum.trust.as_ref().expect("it is said").says, expected);
    assert!(sum.is_unreliable());
    assert!(sum.limit_line().expect("it is said").starts_with("c.json: pummel's CPU. "), "{sum:?}");
    assert_eq!(sum.merged[2].trust, documents[2].trust);
}

#[test]
fn the_servers_of_a_sum_stopped_while_no_part_got_a_reply() {
    let mut documents = shares(0..500, 2);
    let stop = |from_s, to_s| StopResult { from_s, to_s, lasted: false };
    documents[0].stops = vec![stop(0.2, 0.6), stop(1.0, 1.6)];
    documents[1].stops = vec![stop(1.0, 1.6)];
    documents[1].started_unix_s = documents[1].started_unix_s.map(|began| began + 0.1);
    let sum = merged(&parts(&documents), BUILD).expect("a sum");
    assert_eq!(sum.stops, [stop(1.1, 1.6)]);
    assert_eq!(sum.merged[0].stops, documents[0].stops);
    documents[1].stops.clear();
    assert!(merged(&parts(&documents), BUILD).expect("a sum").stops.is_empty());
}

#[test]
fn a_change_of_a_part_is_said_of_the_part_and_not_of_the_sum() {
    let mut documents = shares(0..500, 2);
    documents[0].steady = Some(true);
    documents[1].steady = Some(false);
    documents[1].change = Some(ChangeResult {
        figure: ChangedFigure::P50,
        at_s: 6.2,
        before: Some(180.0),
        after: Some(121.0),
        ..ChangeResult::default()
    });
    let sum = merged(&parts(&documents), BUILD).expect("a sum");
    assert_eq!((sum.steady, &sum.change), (Some(false), &None));
    assert_eq!((sum.merged[0].steady, &sum.merged[1].change), (Some(true), &documents[1].change));
    let text = run(&sum, Detail::Everything, Paper::default());
    let words = "b.json: p50 was 180 us before 6.2 s and 121 us after: no intervals";
    assert!(text.replace("\n         ", " ").contains(words), "{text}");
    let summary = String::from_utf8(markdown::of_run(&sum)).expect("UTF-8");
    assert!(
        summary.contains("**Unsteady** b.json: p50 was 180 us before 6.2 s and 121 us after: no intervals\n"),
        "{summary}"
    );
}

#[test]
fn a_sum_says_why_it_has_no_intervals_and_not_that_a_run_was_short() {
    let sum = merged(&parts(&shares(0..500, 2)), BUILD).expect("a sum");
    let text = run(&sum, Detail::Everything, Paper::default());
    assert!(text.contains("\nNo intervals: results were merged, which keep no windows of time\n"), "{text}");
    assert!(!text.contains("too short"), "{text}");
}

#[test]
fn intervals_that_were_merged_with_their_neighbours_are_not_added_to_those_of_other_times() {
    let mut documents = shares(0..500, 2);
    assert_eq!(merged(&parts(&documents), BUILD).expect("a sum").intervals.len(), 2);
    documents[1].intervals_merged = 1;
    assert!(merged(&parts(&documents), BUILD).expect("a sum").intervals.is_empty());
}

#[test]
fn a_sum_of_runs_that_went_on_until_they_were_sure_is_not_said_to_be_unsure() {
    let mut documents = shares(0..500, 2);
    for document in &mut documents {
        document.plan.adaptive.until = Some(Until { quantile: 0.99, half_width: 0.05, least_ns: SECOND });
    }
    let sum = merged(&parts(&documents), BUILD).expect("a sum");
    assert!(sum.until.is_none());
    let text = run(&sum, Detail::Everything, Paper::default());
    assert!(!text.contains("UNTIL"), "{text}");
}

#[test]
fn an_anonymous_sum_names_no_file() {
    let mut documents = shares(0..500, 2);
    for document in &mut documents {
        document.plan.anonymous = true;
        document.status = Status::Interrupted;
        document.generator.why = Some("slow".to_owned());
    }
    documents[1].verdict = Some(generator_limit());
    let sum = merged(&parts(&documents), BUILD).expect("a sum");
    let text = String::from_utf8(json::render(&sum)).expect("JSON");
    assert!(!text.contains(".json"), "{text}");
    assert_eq!(sum.merged[1].file, "result-2");
    assert!(sum.reason.expect("it is said").starts_with("result-1: "));
    let runs = as_runs(&parts(&documents)).expect("repetitions of one run");
    assert!(runs.reason.expect("it is said").starts_with("result-1: "));
    assert_eq!(why(&documents[..1]), "2 to 1000 results are merged, not 1");
}

#[test]
fn what_is_only_about_output_is_no_other_load() {
    let mut documents = shares(0..300, 2);
    let goal = Goal { quantile: 0.99, limit_ns: SECOND };
    documents[0].plan.goals = vec![goal, Goal { quantile: 0.5, limit_ns: SECOND }];
    documents[1].plan.goals = vec![goal];
    documents[1].plan.fail_on = vec![FailOn::Limited];
    documents[1].plan.evidence = !documents[1].plan.evidence;
    documents[1].plan.server_stats_ns = Some(SECOND);
    let sum = merged(&parts(&documents), BUILD).expect("shares of one load");
    assert_eq!((sum.plan.goals, sum.plan.fail_on), (vec![goal], Vec::new()), "what all have");
    let runs = as_runs(&parts(&documents)).expect("repetitions of one run");
    let json = String::from_utf8(repetition::json(&runs)).expect("JSON");
    assert!(json.contains("\"restarted\": null"), "{json}");
}

#[test]
fn what_does_not_belong_together_is_refused_with_the_reason() {
    let good = shares(0..300, 2);
    let changed = |change: fn(&mut Document)| {
        let mut documents = good.clone();
        change(&mut documents[1]);
        why(&documents)
    };
    assert_eq!(why(&good[..1]), "2 to 1000 results are merged, not 1");
    assert_eq!(
        why(&[good[0].clone(), good[0].clone()]),
        "a.json and b.json are one result: it would count twice"
    );
    let other_plan = changed(|it| it.plan.data.records = 7);
    assert!(
        other_plan
            .starts_with("a.json and b.json are no shares of one load: their plans differ in --records"),
        "{other_plan}"
    );
    let stages = changed(|it| {
        it.plan.changes.parts = vec![ChangePart::plain("first".to_owned(), 0)];
    });
    let words = "b.json: a load that changes while it is measured (--stage, --burst, --phases; plan.changes) is not merged";
    assert_eq!(stages, words);
    let trace = changed(|it| it.trace = Some(Default::default()));
    assert_eq!(trace, "b.json: the figures of a replayed trace are not merged");
    let other_server = changed(|it| it.plan.servers = vec!["cache2:11211".to_owned()]);
    assert!(other_server.contains("differ in --server"), "{other_server}");
    let closed = changed(|it| it.plan.groups[0].rate = None);
    assert!(closed.contains("differ in --rate"), "{closed}");
    let later = changed(|it| it.started_unix_s = it.started_unix_s.map(|began| began + 1.5));
    assert!(
        later.contains("of 2.0 s only 0.5 s are common to all") && later.contains("--as-runs"),
        "{later}"
    );
    let empty = changed(|it| it.started_unix_s = None);
    assert!(empty.starts_with("b.json: nothing was measured"), "{empty}");
    let bare = changed(|it| it.ops.0[0].1.histograms = Default::default());
    assert_eq!(bare, "b.json: get, response: the result keeps no histogram of it");
    let broken = changed(|it| it.ops.0[0].1.histograms.0[0].1 = "!".to_owned());
    assert!(broken.starts_with("b.json: get, response: not a histogram"), "{broken}");
    let strange = changed(|it| it.ops.0[0].0 = "fly".to_owned());
    assert_eq!(strange, "b.json: no operation is called 'fly'");
}

#[test]
fn repetitions_are_in_the_order_of_their_beginnings_and_can_be_compared() {
    let mut documents = shares(0..300, 3);
    for (document, offset) in documents.iter_mut().zip([20.0, 0.0, 10.0]) {
        document.started_unix_s = document.started_unix_s.map(|began| began + offset);
    }
    let runs = as_runs(&parts(&documents)).expect("repetitions of one run");
    assert_eq!(runs.runs.iter().map(|run| run.seed).collect::<Vec<_>>(), [1, 2, 0]);
    let file =
        StoredFile { name: "all.json".to_owned(), result: ResultDocument::Repeated(Box::new(runs.clone())) };
    assert_eq!(side_of(&[file]).expect("a side").runs.len(), 3);
    documents[1].plan.groups[0].clients = 11;
    let refused = as_runs(&parts(&documents)).expect_err("another load").0;
    assert!(refused.contains("no repetitions of one run: their plans differ in --connections"), "{refused}");
}
