//! Runs whose records get other keys in the course of time.

use std::collections::BTreeMap;

use pummel_engine::backend::sim::NetworkConditions;
use pummel_logic::plan::{Depth, Engine, Fill, Mix, Part, Phase, Plan, Popularity, Stop};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, SECOND};
use pummel_measure::measurement::Status;
use pummel_testserver::ServerConfig;

use crate::peer::SharedServer;
use crate::setup::{Outcome, at_rate, loaded, measuring, mix, outcome, plan, requests, run, time};

/// First number of the keys that records get at the end of a life.
const RENEWED_FROM: u64 = 6_000_000_000_000_000;

const RECORDS: u64 = 100;

fn churning(churn: &str) -> Mix {
    let churn = Some(churn.parse().expect("it is a churn"));
    Mix {
        churn,
        multiget: 3,
        read_through_ns: Some(0),
        fill: Fill::Add,
        ..mix(&[(Verb::Get, 4.0), (Verb::Set, 1.0)])
    }
}

/// A warm-up of a second and a measurement of four, whose records are loaded.
pub fn plan_of(work: &Mix) -> Plan {
    let mut plan = at_rate(plan(), 500.0);
    plan.data.records = RECORDS;
    plan.groups[0].clients = 6;
    plan.groups[0].depth = Depth::Limit(16);
    plan.phases = vec![warming(work, time(SECOND)), measuring(work.clone(), time(4 * SECOND))];
    loaded(plan)
}

fn warming(work: &Mix, stop: Stop) -> Phase {
    Phase { name: "warmup".to_owned(), recorded: false, ..measuring(work.clone(), stop) }
}

/// Requests by their due times, from the beginning of the measured phase; without the stores that answers cause. New
/// keys, which are others in every run, are counted from the first of them.
fn schedule(outcome: &Outcome) -> Vec<(u64, &'static str, u64)> {
    let rows = outcome.rows.iter().filter(|row| row.verb != Verb::Add);
    let generation = |key: u64| (key - RENEWED_FROM) / RECORDS;
    let renewed = outcome.rows.iter().map(|row| row.key).filter(|key| *key >= RENEWED_FROM);
    let first = renewed.map(generation).min().unwrap_or(0);
    let counted = |key: u64| if key < RENEWED_FROM { key } else { key - RECORDS * first };
    let mut asked: Vec<_> =
        rows.map(|row| (row.due - outcome.begin, row.verb.name(), counted(row.key))).collect();
    asked.sort_unstable();
    asked
}

#[test]
fn keys_that_change_follow_from_the_plan_however_many_threads_there_are() {
    for churn in ["exponential:2", "share:0.02", "requests:900"] {
        let mut plan = plan_of(&churning(churn));
        let one = schedule(&outcome(&plan));
        plan.engine = Engine { threads: 3, ..plan.engine };
        assert!(schedule(&outcome(&plan)) == one, "{churn}");
        let renewed = one.iter().filter(|(_, _, key)| *key >= RENEWED_FROM).count();
        assert!(renewed > one.len() / 4 && renewed < one.len(), "{churn}: {renewed} of {}", one.len());
    }
}

#[test]
fn a_key_that_was_left_is_asked_for_no_more_and_a_new_one_is_missed() {
    let outcome = outcome(&plan_of(&Mix { multiget: 1, ..churning("exponential:2") }));
    let mut last: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut keys = BTreeMap::new();
    let mut rows: Vec<_> = outcome.rows.iter().filter(|row| row.verb != Verb::Add).collect();
    rows.sort_by_key(|row| row.due);
    for row in rows {
        let record = if row.key < RECORDS { row.key } else { (row.key - RENEWED_FROM) % RECORDS };
        let (key, _) = *last.entry(record).or_insert((row.key, row.due));
        if key != row.key {
            assert_eq!(keys.insert(row.key, record), None, "a key that was left comes back");
            last.insert(record, (row.key, row.due));
        }
    }
    assert!(keys.len() > 100, "{}", keys.len());
    let ops = outcome.measurement.ops();
    let counts = |verb| ops.get(verb).expect("new keys are missed and added").counts;
    let (gets, fills) = (counts(Verb::Get), counts(Verb::Add));
    // Old keys are loaded, and a new one is missed until it is stored.
    assert!(gets.misses > 80 && gets.misses < 4 * keys.len() as u64, "{} of {}", gets.misses, keys.len());
    assert!(fills.completed >= gets.misses - 5, "{} {}", fills.completed, gets.misses);
}

/// The client finds the items of a read of several keys although their part, or a key's life, is over when the reply comes.
#[test]
fn replies_that_come_in_another_part_or_life_are_those_of_their_request() {
    let mut plan = plan_of(&Mix { read_through_ns: None, fill: Fill::Set, ..churning("0.02") });
    plan.verify = 1.0;
    let part =
        |at_ns, popularity| Part { popularity: Some(popularity), ..Part::plain(format!("{at_ns}"), at_ns) };
    let popularities = [Popularity::Uniform, Popularity::Zipf { exponent: 1.0 }];
    plan.changes.parts = (0..40)
        .map(|number| part(number * 100 * MILLISECOND, popularities[number as usize % 2].clone()))
        .collect();
    let slow =
        NetworkConditions { delay_ns: (30 * MILLISECOND, 40 * MILLISECOND), ..NetworkConditions::calm() };
    let server = SharedServer::new(ServerConfig::default());
    let outcome = run(&plan, 1, slow, || server.peer());
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    let verify = &outcome.measurement.verify;
    assert!(verify.failed == 0 && verify.stale == 0, "{verify:?}");
    assert_eq!(outcome.counts().errors.iter().sum::<u64>(), 0);
}

/// A record lives 2,000 requests and is asked for every 100: hardly one is replaced that was not asked for.
#[test]
fn in_closed_loop_as_many_requests_miss_as_records_are_replaced() {
    let work = Mix { ops: vec![(Verb::Get, 1.0)], multiget: 1, ..churning("share:0.05") };
    let mut plan = plan();
    plan.data.records = RECORDS;
    plan.groups[0].clients = 6;
    plan.phases = vec![warming(&work, requests(2_000)), measuring(work, requests(20_000))];
    let outcome = outcome(&loaded(plan));
    let ops = outcome.measurement.ops();
    let gets = ops.get(Verb::Get).expect("there are gets").counts;
    let share = gets.misses as f64 / (gets.hits + gets.misses) as f64;
    assert!((share - 0.05).abs() < 0.01, "{share}");
}
