//! Documents that are written and read again.

use super::*;
use crate::example::{Run, evidence, outage, sample};
use crate::json;
use pummel_logic::plan::{Command, Goal, TlsOptions, TransmitSampling};
use pummel_logic::protocol::{Fault, Outcome, Verb};
use pummel_logic::time::MILLISECOND;
use pummel_logic::workload::verify::check::Damage;
use pummel_measure::agents::{Agents, LossReason, Lost, Member};
use pummel_measure::churn::Churn;
use pummel_measure::counters::SliceConnections;
use pummel_measure::measurement::Keep;
use pummel_measure::recorder::{Counts, OpRecord, Sample};
use pummel_measure::summary::Figures;

/// Asserts that the document of a run is read from its JSON as it was written, and is written with the bytes that were read.
#[track_caller]
fn comes_back(run: &Run) {
    let document = run.document(Clone::clone);
    let bytes = json::render(&document);
    let read = Document::read(&bytes).expect("a result of this version");
    assert!(read == document, "{}", String::from_utf8_lossy(&bytes));
    assert_eq!(json::render(&read), bytes);
}

#[test]
fn a_written_document_is_read_as_it_was() {
    comes_back(&Run::new(Keep::Figures));
    comes_back(&Run::new(Keep::Histograms));
    comes_back(&Run::new(Keep::Figures).with_windows());
}

#[test]
fn a_document_with_every_field_is_read_as_it_was() {
    let mut run = Run::new(Keep::Figures);
    run.interval(2, Keep::Figures, |interval| {
        for i in 0..50 {
            let outcome = Outcome::Error(Fault::Timeout);
            interval.groups[0].record(&Sample { outcome, ..sample(i) });
        }
        interval.groups[0].counts(Verb::Get).unsent += 20;
    });
    run.plan.tls = Some(TlsOptions { insecure: true, ..TlsOptions::default() });
    run.plan.labels.insert("branch".to_owned(), "<main>".to_owned());
    run.plan.goals = vec![Goal { quantile: 0.999, limit_ns: 2_000 * MILLISECOND }];
    run.plan.engine.stamps = Some(TransmitSampling { every: 64, scheduled: true, hardware: false });
    let measurement = &mut run.measurement;
    measurement.connections.handshake.record(1_500_000);
    measurement.connections.churn = Some(Box::new(Churn { begun: 9, ..Churn::default() }));
    measurement.side_times.transmit = Some(Box::default());
    measurement.udp = Some(udp::DatagramCounts { packet_drop: 4, ..udp::DatagramCounts::default() });
    measurement.samples = Some(Samples { written: 1, dropped: 2 });
    measurement.verify.fail(b"key", Damage::Bytes);
    measurement.message(b"SERVER_ERROR \"</script>\x00", 3);
    measurement.evidence = Some(evidence());
    let lost = Lost { at_ns: Some(5), why: LossReason::Late, left: true };
    measurement.agents = Some(Agents {
        start_spread_ns: Some(300_000),
        members: vec![Member {
            name: "a:1".to_owned(),
            clients: 25,
            threads: 1,
            clock_offset_ns: -2_500_000,
            clock_error_ns: 40_000,
            late_ns: None,
            lost: Some(lost),
            counts: Counts { completed: 1_200, ..Counts::default() },
            figures: Figures::of_op(&OpRecord::default(), 0),
            deviation: None,
        }],
    });
    comes_back(&run);
}

#[test]
fn a_document_of_a_cluster_is_read_as_it_was() {
    let mut run = Run::new(Keep::Figures).on_cluster(3);
    run.measurement.counters.redirects.moved = 7;
    let seen = run.measurement.cluster.as_mut().expect("it is a cluster");
    seen.shards[1].outages.push(outage(1, 40));
    comes_back(&run);
}

#[test]
fn connections_of_clients_that_come_and_go_are_counted_from_none() {
    let mut run = Run::new(Keep::Figures);
    run.measurement.connections.open = 50;
    for (slice, (opened, closed, lost)) in run.measurement.intervals.iter_mut().zip([(9, 3, 1), (6, 10, 1)]) {
        slice.counters.connections = SliceConnections { opened, closed, lost, ..SliceConnections::default() };
    }
    let open = |run: &Run| -> Vec<u64> {
        let document = run.document(Clone::clone);
        document.intervals.iter().filter_map(|interval| Some(interval.connections?.open)).collect()
    };
    assert_eq!(open(&run), [55, 50], "clients that stay keep those that they had");
    run.measurement.connections.churn = Some(Box::new(Churn { begun: 15, ended: 15, ..Churn::default() }));
    assert_eq!(open(&run), [5, 0]);
}

#[test]
fn what_is_no_result_is_told_what_it_is() {
    let told = |text: &str| Document::read(text.as_bytes()).expect_err("no result").to_string();
    assert_eq!(
        told(r#"{"schema": 2, "status": "complete", "plan": {}}"#),
        "a result of a newer version: its schema is 2, and this version of pummel reads up to 1"
    );
    assert_eq!(
        told(r#"{"schema": 1, "command": "search", "runs": []}"#),
        "the result of `pummel search`, and not that of one run"
    );
    let lacks = "JSON, but not the result of a run: expected also ";
    assert_eq!(told("{}"), format!("{lacks}`schema`, `status`, `plan`"));
    assert_eq!(told(r#"{"schema": 1}"#), format!("{lacks}`status`, `plan`"));
    assert_eq!(told(r#"{"schema": 1, "plan": {}}"#), format!("{lacks}`status`"));
    let number = "not the JSON result of a run: expected a whole number as `schema`";
    assert_eq!(told(r#"{"schema": "1", "status": "complete", "plan": {}}"#), number);
    for text in ["[]", "[1, 2, 3, 4, 5, 6]", "7", " \"schema\""] {
        assert_eq!(told(text), "not the JSON result of a run: expected a JSON object in braces", "{text}");
    }
    assert!(told("").starts_with("not the JSON result of a run: EOF"), "{}", told(""));
    let mut value: Value = serde_json::from_slice(&Run::new(Keep::Figures).document(json::render)).unwrap();
    value["totals"]["rate"] = "fast".into();
    let wrong = serde_json::to_string_pretty(&value).unwrap();
    assert!(told(&wrong).contains("invalid type: string \"fast\", expected f64"), "{}", told(&wrong));
}

#[test]
fn a_plan_is_told_as_a_plan() {
    let plan = Plan { commands: vec![Command::unnamed("LPUSH __key__ __value__")], ..Plan::default() };
    for plan in [plan, Plan::default()] {
        let (json, toml) = (serde_json::to_vec(&plan).unwrap(), toml::to_string(&plan).unwrap().into_bytes());
        for text in [json, toml] {
            assert_eq!(Document::read(&text), Err(NotAResult::Plan));
        }
    }
    let said = NotAResult::Plan.to_string();
    assert!(said.contains("`pummel run --plan FILE` runs it"), "{said}");
}

#[test]
fn what_an_older_result_lacks_is_not_known_and_what_a_newer_one_has_more_is_left_out() {
    let bytes = Run::new(Keep::Figures).document(json::render);
    let mut value: Value = serde_json::from_slice(&bytes).unwrap();
    let members = value.as_object_mut().unwrap();
    for name in ["trust", "verdict", "whole_run", "intervals", "generator", "front", "goals", "bytes"] {
        assert!(members.remove(name).is_some(), "{name}");
    }
    members.insert("of_tomorrow".to_owned(), Value::Bool(true));
    value["ops"]["get"]["of_tomorrow"] = 5.into();
    let document = Document::read(value.to_string().as_bytes()).expect("a result");
    assert_eq!((document.trust.as_ref(), document.intervals.len()), (None, 0));
    assert_eq!(document.ops.get("get").map(|op| op.requests), Some(1_800));
}

#[test]
fn a_result_that_is_cut_anywhere_is_refused_without_a_panic() {
    let bytes = Run::new(Keep::Figures).document(json::render);
    let end = bytes.len() - 2;
    for at in (0..end).step_by(7).chain(end.saturating_sub(40)..end) {
        assert!(Document::read(&bytes[..at]).is_err(), "cut at byte {at} of {end}");
    }
}

#[test]
fn changed_bytes_never_panic_the_reader() {
    let bytes = Run::new(Keep::Figures).document(json::render);
    let mut state = 88_172_645_463_325_252_u64;
    for _ in 0..400 {
        let mut wrong = bytes.clone();
        for _ in 0..3 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = (state % wrong.len() as u64) as usize;
            wrong[at] = (state >> 32) as u8;
        }
        if let Ok(document) = Document::read(&wrong) {
            // What was read has to be something that every report can show.
            json::render(&document);
            crate::csv::render(&document);
            crate::hdr::render(&document);
        }
    }
}
