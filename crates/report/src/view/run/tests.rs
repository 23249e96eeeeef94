//! Tests of the view of a run: what stands on the screen, and how it gives way where there is little room.

use pummel_logic::plan::{FailOn, Goal};
use pummel_logic::protocol::{Fault, Outcome};
use pummel_logic::time::{MILLISECOND, SECOND};
use pummel_logic::workload::verify::ledger::RecordState;
use pummel_measure::audit::Audit;
use pummel_measure::measurement::{Keep, Status};
use pummel_measure::outcome::RunOutcome;
use pummel_measure::recorder::Sample;

use super::{Headline, Wanted, Word, brief, exit_status, view};
use crate::anonymous::document_of;
use crate::document::{Document, OpResult, ReliableFigures};
use crate::example::{Run, sample};
use crate::screen::{Colours, Paper, draw};
use crate::view::{Line, Tone};
use crate::words::fail_on::answer_words;
use crate::{Ending, Report};

fn good() -> Document {
    Run::new(Keep::Figures).with_windows().document(Clone::clone)
}

/// The screen of a document at some width.
fn screen(document: &Document, width: usize) -> String {
    draw(&view(document, Wanted::Screen), Paper::of_width(width))
}

/// The lines on requests that had no effect, with the tone of their label.
fn outcome_lines(ops: &[(&'static str, u64, &'static str, u64)]) -> Vec<(Tone, String)> {
    let mut document = good();
    let op = |(name, completed, outcome, others): (&'static str, u64, &'static str, u64)| {
        let outcomes = [("stored", completed - others), (outcome, others)].into_iter().collect();
        (name, OpResult { requests: completed, completed, outcomes, ..OpResult::default() })
    };
    document.ops = ops.iter().copied().map(op).collect();
    let lines = view(&document, Wanted::Screen).lines;
    let from = lines.iter().position(|line| line.label == "Outcomes").unwrap_or(lines.len());
    let is_one = |(place, line): &(usize, &Line)| *place == 0 || line.label.is_empty();
    let of = |(_, line): (usize, &Line)| (line.tone, line.text.words());
    lines[from..].iter().enumerate().take_while(is_one).map(of).collect()
}

#[test]
fn requests_without_effect_are_told_calmly_and_as_a_warning_where_nearly_all_had_none() {
    assert_eq!(outcome_lines(&[("set", 1_000, "ok", 0), ("add", 1_000, "not_stored", 0)]), []);
    let told = |ops: &[(&'static str, u64, &'static str, u64)]| {
        let lines = outcome_lines(ops);
        let tone = lines.first().map(|line| line.0);
        (tone, lines.into_iter().map(|line| line.1).collect::<Vec<_>>())
    };
    let calm = told(&[("add", 2_000, "not_stored", 1_979), ("incr", 10, "not_found", 1)]);
    let words = ["add: 1,979 of 2,000 not stored", "incr: 1 of 10 without a record of their key"];
    assert_eq!(calm, (Some(Tone::Plain), words.map(str::to_owned).to_vec()));
    let loud = told(&[("delete", 10, "not_found", 1), ("cas", 2_000, "exists", 1_980)]);
    let words = [
        "cas: 1,980 of 2,000 not stored, since another client had stored in between: nearly all of its times are those of \
         requests that did nothing",
        "delete: 1 of 10 without a record of their key",
    ];
    assert_eq!(loud, (Some(Tone::Warning), words.map(str::to_owned).to_vec()));
    // Requests without a reply are not among those that were answered.
    let noreply = told(&[("touch", 300, "ok", 300)]);
    assert_eq!(noreply, (None, vec![]));
    // A command answers nil for what it does not find, and also where it has done what it is for.
    let nil = told(&[("command", 200, "not_found", 200)]);
    assert_eq!(nil, (Some(Tone::Plain), vec!["command: 200 of 200 answered with nil".to_owned()]));
    let conflicts = told(&[("tx", 200, "conflict", 199)]);
    let words = "tx: 199 of 200 not carried out, since another client had changed what they watch";
    assert_eq!(conflicts, (Some(Tone::Plain), vec![words.to_owned()]));
}

#[test]
fn no_line_is_wider_than_the_paper() {
    let document = good();
    for width in [48, 60, 80, 100, 120] {
        for times in [Wanted::Screen, Wanted::Times] {
            let text = draw(&view(&document, times), Paper::of_width(width));
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width), "{width}: {longest:?}\n{text}");
        }
    }
}

/// The line of the audit, which may be several on paper.
fn audit_line(run: &Run) -> String {
    let screen = run.document(|document| screen(document, 200));
    let lines = screen.lines().skip_while(|line| !line.starts_with("Audit"));
    let is_more = |(place, line): &(usize, &str)| *place == 0 || line.starts_with(' ');
    let words = lines.enumerate().take_while(is_more).flat_map(|(_, line)| line.split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn an_audit_is_told_calmly_where_nothing_was_lost_and_loudly_where_something_was() {
    let mut run = Run::new(Keep::Figures);
    assert_eq!(audit_line(&run), "");
    let mut audit = Audit { begun: true, written: 2_000, ..Audit::default() };
    audit.counts.current = 2_000;
    run.measurement.audit = Some(audit.clone());
    assert_eq!(audit_line(&run), "Audit 2,000 keys read back, none lost");
    audit.counts.current = 1_990;
    run.measurement.audit = Some(audit.clone());
    let unread =
        "Audit inconclusive: 10 keys could not be read; 1,990 of 2,000 keys read back, none of them lost";
    assert_eq!(audit_line(&run), unread);
    audit.counts.note(RecordState::Missing(SECOND), 0);
    audit.counts.note(RecordState::Older(3 * SECOND), 0);
    audit.counts.note(RecordState::Newer, 0);
    run.measurement.audit = Some(audit.clone());
    let lost = "2 of 2,000 keys LOST (1 missing, 1 older than acknowledged), acknowledged at 1.0 to 3.0 s; \
                1 newer than acknowledged; 7 NOT READ";
    assert_eq!(audit_line(&run), format!("Audit {lost}"));
    audit.unknown_beyond = 1;
    run.measurement.audit = Some(audit);
    let why = "inconclusive: 1 more write got no reply, too many to tell which of them were applied; ";
    assert_eq!(audit_line(&run), format!("Audit {why}{lost}"));
}

#[test]
fn a_strict_audit_fails_a_run_that_lost_something_and_one_that_cannot_tell() {
    let mut run = Run::new(Keep::Figures);
    run.plan.fail_on = vec![FailOn::Lost];
    let says = |run: &Run| {
        run.document(|document| {
            document.failures().iter().filter_map(|(_, answer)| answer_words(answer)).next()
        })
    };
    assert_eq!(says(&run).as_deref(), Some("the run did not read back what it wrote (--audit)"));
    let mut audit = Audit { begun: true, written: 9, ..Audit::default() };
    audit.counts.current = 9;
    run.measurement.audit = Some(audit.clone());
    assert_eq!(says(&run), None);
    audit.counts.note(RecordState::Missing(1), 0);
    run.measurement.audit = Some(audit);
    assert_eq!(says(&run).as_deref(), Some("1 of 9 keys lost"));
    run.measurement.audit = Some(Audit { begun: true, written: 9, ..Audit::default() });
    assert_eq!(says(&run).as_deref(), Some("9 keys could not be read"));
    run.measurement.audit = Some(Audit { begun: true, ..Audit::default() });
    assert_eq!(says(&run).as_deref(), Some("no write was acknowledged"));
    run.measurement.audit = Some(Audit::default());
    assert_eq!(says(&run).as_deref(), Some("the run ended before its keys were read back"));
}

#[test]
fn a_server_without_a_reading_has_the_name_and_the_version_that_it_said_before_the_run() {
    let mut document = good();
    document.evidence = None;
    document.detected = Some("memcached 1.6.40, text".to_owned());
    assert!(screen(&document, 120).contains(" (memcached 1.6.40, text) "), "{}", screen(&document, 120));
    document.detected = Some("text".to_owned());
    assert!(screen(&document, 120).contains(" (text) "), "{}", screen(&document, 120));
}

#[test]
fn columns_give_way_in_their_order_and_the_rest_stays() {
    let document = good();
    let heading = |width| {
        let text = screen(&document, width);
        let line = text.lines().find(|line| line.starts_with("response")).unwrap_or_default();
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(heading(80), "req/s p50 p90 p99 p99.9 max");
    assert_eq!(heading(60), "req/s p50 p99 p99.9 max");
    assert_eq!(heading(53), "p50 p99 p99.9 max");
}

#[test]
fn a_number_and_its_unit_are_never_parted() {
    let document = good();
    for width in 48..120 {
        let text = screen(&document, width);
        let begins_with_unit = |line: &&str| {
            let first = line.split_whitespace().next().map(|word| word.trim_end_matches([',', ';', '.']));
            first.is_some_and(|word| ["%", "us", "ms", "s", "req/s"].contains(&word))
        };
        let parted = text.lines().find(begins_with_unit);
        assert_eq!(parted, None, "{width}: {text}");
    }
}

#[test]
fn sequences_stand_only_where_they_are_wanted_and_never_come_from_words() {
    let mut document = good();
    document.plan.servers = vec!["a\u{1b}[31mb:1".to_owned()];
    document.outcome = RunOutcome::Failed;
    let drawn = |colours| draw(&view(&document, Wanted::Screen), Paper { colours, ..Paper::default() });
    assert!(!drawn(Colours::None).contains('\u{1b}'));
    assert!(drawn(Colours::All).contains("\u{1b}[1;31mFAILED\u{1b}[0m"), "{}", drawn(Colours::All));
    let emphasis = drawn(Colours::Emphasis);
    assert!(
        emphasis.contains("\u{1b}[1mFAILED\u{1b}[0m") && !emphasis.contains("\u{1b}[1;31m"),
        "{emphasis}"
    );
}

#[test]
fn the_first_word_decides_the_exit_status() {
    let of = |change: &dyn Fn(&mut Document)| {
        let mut document = good();
        change(&mut document);
        let Headline { words, status } = Headline::of(&document);
        (words, status)
    };
    let missed = |document: &mut Document| {
        document.goals = vec![crate::document::GoalOutcome { met: Some(false), ..Default::default() }];
    };
    assert_eq!(of(&|_| ()), (vec![], 0));
    assert_eq!(of(&|document| document.outcome = RunOutcome::Overloaded), (vec![Word::Overloaded], 0));
    assert_eq!(of(&|document| document.outcome = RunOutcome::Failed), (vec![Word::Failed], 1));
    assert_eq!(of(&missed), (vec![Word::GoalMissed], 3));
    let partial = |document: &mut Document| {
        missed(document);
        document.status = Status::Partial;
        document.verify.failed = 1;
    };
    assert_eq!(of(&partial), (vec![Word::Partial, Word::GoalMissed], 1));
    assert_eq!(of(&|document| document.status = Status::Interrupted), (vec![Word::Interrupted], 130));
}

#[test]
fn a_result_has_the_exit_status_of_its_process() {
    let written =
        |ending| Run::new(Keep::Figures).report(|report| document_of(&Report { ending, ..*report })).exit;
    assert_eq!(written(Ending::Open), None, "a checkpoint");
    assert_eq!(written(Ending::OfResult), Some(0));
    assert_eq!(written(Ending::Usage), Some(2));
    assert_eq!(written(Ending::Signal(15)), Some(0), "the signal came after the end");
    let mut document = good();
    document.status = Status::Interrupted;
    assert_eq!(exit_status(&document, Ending::Signal(15)), Some(143));
    assert_eq!(exit_status(&document, Ending::OfResult), Some(130));
}

#[test]
fn a_run_that_failed_has_neither_table_nor_trust() {
    let mut run = Run::new(Keep::Figures);
    run.interval(2, Keep::Figures, |interval| {
        let outcome = Outcome::Error(Fault::Server);
        (0..7_000).for_each(|i| interval.groups[0].record(&Sample { outcome, ..sample(i) }));
    });
    run.measurement.message(b"WRONGTYPE Operation against a key holding the wrong kind of value", 7_000);
    let text = run.document(|document| screen(document, 80));
    let expected = "\
Result   FAILED: 77.8 % of 9,000 requests were errors
Errors   7,000 x WRONGTYPE Operation against a key holding the wrong kind of
         value
         The keys hold another type: --key-prefix gives this run keys of its own
";
    assert!(text.contains(expected), "{text}");
    assert!(!text.contains("Trust") && !text.contains("response "), "{text}");
    assert!(
        text.ends_with("2,000 requests were answered without error: p50 62.4 us, p99 92.9 us\n"),
        "{text}"
    );
}

#[test]
fn the_line_for_scripts_begins_with_what_is_abnormal() {
    let mut document = good();
    assert_eq!(brief(&document), "get 900/s p50 62.4 us p99 92.9 us, set 100/s p50 62.4 us p99 92.9 us");
    let mut trusted_to = |kind| {
        let trust = document.trust.as_mut().expect("it was judged");
        (trust.ok, trust.kind) = (false, kind);
        brief(&document)
    };
    let only_median = trusted_to(ReliableFigures::P50);
    assert!(only_median.starts_with("get 900/s p50 "), "the tail is said by the report: {only_median}");
    let nothing = trusted_to(ReliableFigures::None);
    assert!(nothing.starts_with("NOT RELIABLE get 900/s "), "{nothing}");
    let mut run = Run::new(Keep::Figures);
    run.plan.goals = vec![Goal { quantile: 0.99, limit_ns: MILLISECOND / 20 }];
    let line = run.document(brief);
    assert!(line.starts_with("GOAL MISSED p99 92.9 us > 50.0 us, get 900/s "), "{line}");
}
