//! Runs in which keys become hot and records are lost at a moment.

use pummel_engine::backend::sim::NetworkConditions;
use pummel_logic::plan::{
    Depth, Engine, Event, EventKind, Fill, FlashCrowd, HotKey, Mix, Plan, Protocol, RankRange, Route,
};
use pummel_logic::protocol::{MetaAsk, Verb};
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_testserver::ServerConfig;

use crate::lanes::{over, run_over};
use crate::peer::SharedServer;
use crate::setup::{Outcome, at_rate, loaded, measuring, mix, outcome, plan, time};

/// Reads of `records` records at this rate for `length_ns`, in which `events` happen.
fn eventful(work: Mix, records: u64, rate: f64, length_ns: Nanos, events: Vec<Event>) -> Plan {
    let mut plan = at_rate(plan(), rate);
    plan.interval_ns = SECOND;
    plan.data.records = records;
    plan.groups[0].clients = 8;
    plan.groups[0].depth = Depth::Limit(64);
    plan.phases = vec![measuring(work, time(length_ns))];
    plan.changes.events = events;
    loaded(plan)
}

fn gets() -> Mix {
    mix(&[(Verb::Get, 1.0)])
}

fn all_of(first: u64, last: u64, at_ns: Nanos) -> Event {
    Event { at_ns, what: EventKind::Delete(RankRange { first, last }) }
}

#[test]
fn records_are_deleted_once_at_their_moment_however_many_threads_there_are() {
    let mut plan = eventful(gets(), 100, 400.0, SECOND, vec![all_of(3, 22, 300 * MILLISECOND)]);
    for threads in [1, 3] {
        plan.engine = Engine { threads, ..plan.engine };
        let outcome = outcome(&plan);
        let deletes = outcome.rows.iter().filter(|row| row.verb == Verb::Delete);
        let mut keys: Vec<u64> = deletes
            .map(|row| {
                assert_eq!(row.due - outcome.begin, 300 * MILLISECOND);
                row.key
            })
            .collect();
        keys.sort_unstable();
        assert_eq!(keys, (3..=22).collect::<Vec<u64>>(), "{threads} threads");
        let ops = outcome.measurement.ops();
        assert_eq!(ops.get(Verb::Delete).map(|op| op.counts.outcomes.deleted), Some(20), "all were there");
        let missed = outcome.rows.iter().filter(|row| row.verb == Verb::Get && (3..=22).contains(&row.key));
        assert!(missed.count() as u64 > ops.get(Verb::Get).map_or(0, |op| op.counts.misses));
        assert!(ops.get(Verb::Get).is_some_and(|op| op.counts.misses > 20));
    }
}

#[test]
fn records_are_lost_on_every_server_that_has_them() {
    for (route, copies) in [(Route::All, 3), (Route::RoundRobin, 3), (Route::Modulo, 1), (Route::Ketama, 1)] {
        let servers: Vec<SharedServer> = (0..3).map(|_| SharedServer::new(ServerConfig::default())).collect();
        let plan = eventful(gets(), 100, 400.0, SECOND, vec![all_of(0, 29, 300 * MILLISECOND)]);
        let outcome = run_over(&servers, &over(&servers, route, plan), 1, NetworkConditions::calm());
        let ops = outcome.measurement.ops();
        let deleted = ops.get(Verb::Delete).map(|op| (op.counts.completed, op.counts.outcomes.deleted));
        assert_eq!(deleted, Some((30 * copies, 30 * copies)), "{route:?}: each is there and is deleted once");
    }
}

/// A record that is deleted or expires every second, and is asked for 400 times a second; the database takes 100 ms.
fn stampede(work: Mix, waves: u64, what: fn(RankRange) -> EventKind) -> Outcome {
    let work = Mix { read_through_ns: Some(100 * MILLISECOND), ..work };
    let is_leased = work.meta.vivify_s.is_some();
    let only = RankRange { first: 0, last: 0 };
    let at = |wave: u64| Event { at_ns: wave * SECOND + SECOND / 2, what: what(only) };
    let mut plan = eventful(work, 1, 400.0, waves * SECOND, (0..waves).map(at).collect());
    if is_leased {
        plan.protocol = Protocol::Meta;
    }
    outcome(&plan)
}

#[test]
fn a_stampede_has_one_miss_and_those_that_come_before_its_fill() {
    let waves = 60;
    for what in [EventKind::Delete, EventKind::Expire] {
        let outcome = stampede(Mix { fill: Fill::Add, ..gets() }, waves, what);
        let ops = outcome.measurement.ops();
        let counts = |verb| ops.get(verb).expect("it was asked").counts;
        let (misses, fills) = (counts(Verb::Get).misses as f64, counts(Verb::Add));
        // l D = 40 misses follow the first of each wave, and their number is Poisson distributed.
        let expected = waves as f64 * (1.0 + 40.0);
        assert!((misses - expected).abs() < 5.0 * expected.sqrt(), "{misses}, expected {expected}");
        assert_eq!(fills.outcomes.stored, waves, "the first fill of each wave stores");
        assert_eq!(fills.outcomes.not_stored + fills.outcomes.stored, fills.completed);
        assert_eq!(fills.completed as f64, misses);
    }
}

/// Checks that with leases one client is asked to fill, and the others wait.
#[test]
fn a_stampede_among_clients_with_leases_has_one_fill() {
    let waves = 20;
    let meta = MetaAsk { vivify_s: Some(30), ..MetaAsk::default() };
    let outcome = stampede(Mix { meta, ..gets() }, waves, EventKind::Delete);
    let ops = outcome.measurement.ops();
    assert_eq!(ops.get(Verb::Set).map(|op| op.counts.completed), Some(waves));
    assert_eq!(ops.get(Verb::Get).map(|op| op.counts.outcomes.win), Some(waves));
}

/// Records of a run with hot new keys; such a key is another one in every run, and this number stands for it.
const RECORDS: u64 = 2_000;

#[test]
fn a_flash_crowd_has_its_share_however_many_threads_there_are() {
    let crowd = |key| FlashCrowd { key, share: 0.4, rise_ns: SECOND, hold_ns: 4 * SECOND, fall_ns: SECOND };
    let at = |second, key| Event { at_ns: second * SECOND, what: EventKind::Hot(crowd(key)) };
    let events = vec![at(1, HotKey::New), at(8, HotKey::Rank(77))];
    let mut plan =
        eventful(mix(&[(Verb::Get, 3.0), (Verb::Set, 1.0)]), RECORDS, 1_000.0, 15 * SECOND, events);
    let asked = |outcome: &Outcome| {
        let mut asked: Vec<(Nanos, u64)> =
            outcome.rows.iter().map(|row| (row.due - outcome.begin, row.key.min(RECORDS))).collect();
        asked.sort_unstable();
        asked
    };
    let one = asked(&outcome(&plan));
    plan.engine = Engine { threads: 3, ..plan.engine };
    assert!(asked(&outcome(&plan)) == one);
    let share = |from: u64, until: u64, is_hot: &dyn Fn(u64) -> bool, expected: f64| {
        let window = one.iter().filter(|(due, _)| (from * SECOND..until * SECOND).contains(due));
        let (all, hot) =
            (window.clone().count() as f64, window.filter(|(_, key)| is_hot(*key)).count() as f64);
        let sd = (all * expected * (1.0 - expected)).sqrt();
        assert!(
            (hot - all * expected).abs() <= 5.0 * sd + 1.0,
            "{from} s: {hot} of {all}, expected {expected}"
        );
    };
    let new = |key: u64| key == RECORDS;
    for (from, until, expected) in [(0, 1, 0.0), (1, 2, 0.2), (2, 6, 0.4), (6, 7, 0.2), (7, 15, 0.0)] {
        share(from, until, &new, expected);
    }
    for (from, until, expected) in [(0, 8, 0.0), (8, 9, 0.2), (9, 13, 0.4), (13, 14, 0.2)] {
        // The record also has its part of what the hot key leaves to all.
        share(from, until, &|key| key == 77, expected + (1.0 - expected) / RECORDS as f64);
    }
}
