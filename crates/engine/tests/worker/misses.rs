//! Causes of missed keys, and bytes of values, beside what the test knows of every request.

use std::collections::BTreeMap;

use pummel_engine::backend::sim::NetworkConditions;
use pummel_logic::dist::Dist;
use pummel_logic::plan::{
    Depth, Engine, Event, EventKind, Fill, Mix, Part, Plan, Popularity, RankRange, Route,
};
use pummel_logic::protocol::{Outcome as Ended, Verb};
use pummel_logic::time::{MILLISECOND, SECOND};
use pummel_logic::workload::cache_counts::CacheCounts;
use pummel_logic::workload::value::ValueMaker;
use pummel_measure::events::Row;
use pummel_measure::measurement::Status;
use pummel_testserver::{Limits, ServerConfig};

use crate::peer::SharedServer;
use crate::setup::{Outcome, at_rate, loaded, measuring, mix, plan, requests, run, time};

const ABSENT: std::ops::Range<u64> = 1_000_000_000_000_000..2_000_000_000_000_000;
const FRESH: std::ops::Range<u64> = 2_000_000_000_000_000..6_000_000_000_000_000;

/// Reads of records, of fresh keys (each read once) and of keys that do not exist; each missed key is stored.
fn reading() -> Mix {
    Mix {
        read_through_ns: Some(5 * MILLISECOND),
        fill: Fill::Add,
        fresh: 0.1,
        absent: 0.2,
        ..mix(&[(Verb::Get, 9.0), (Verb::Set, 1.0)])
    }
}

/// A measurement of half a minute of these requests.
fn plan_of(work: Mix) -> Plan {
    let mut plan = at_rate(plan(), 400.0);
    plan.interval_ns = SECOND;
    plan.data.records = 200;
    plan.groups[0].clients = 6;
    plan.groups[0].depth = Depth::Limit(8);
    plan.phases = vec![measuring(work, time(30 * SECOND))];
    plan
}

fn outcome_at(plan: &Plan, server: &SharedServer) -> Outcome {
    let outcome = run(plan, 1, NetworkConditions::calm(), || server.peer());
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    let sum = |each: &mut dyn Iterator<Item = CacheCounts>| {
        let mut sum = CacheCounts::default();
        each.for_each(|counts| sum.merge(&counts));
        sum
    };
    let (all, measurement) = (outcome.counts(), &outcome.measurement);
    if plan.tells_misses() {
        assert_eq!(all.cache.misses(), all.misses, "every miss has one cause");
    }
    assert_eq!(sum(&mut measurement.intervals.iter().map(|slice| slice.counts().cache)), all.cache);
    if !measurement.parts.is_empty() {
        assert_eq!(sum(&mut measurement.parts.iter().map(|ops| ops.all().counts.cache)), all.cache);
    }
    outcome
}

fn outcome(plan: &Plan) -> Outcome {
    outcome_at(plan, &SharedServer::new(ServerConfig::default()))
}

/// The misses of single gets, by what the test knows of the key: the numbers of those that do not exist, that are fresh, that
/// were stored before the answer came, and of all others.
fn known(outcome: &Outcome) -> [u64; 4] {
    let mut stored: BTreeMap<u64, u64> = BTreeMap::new();
    for row in outcome.rows.iter().filter(|row| row.outcome == Ended::Stored) {
        let first = stored.entry(row.key).or_insert(row.read);
        *first = row.read.min(*first);
    }
    let mut counts = [0; 4];
    for Row { key, read, .. } in outcome.rows.iter().filter(|row| row.outcome == Ended::Miss) {
        let at = match stored.get(key) {
            _ if ABSENT.contains(key) => 0,
            _ if FRESH.contains(key) => 1,
            Some(first) if first <= read => 2,
            _ => 3,
        };
        counts[at] += 1;
    }
    counts
}

#[test]
fn keys_of_a_server_that_loses_none_are_missed_because_they_expired_or_were_not_stored_yet() {
    let mut plan = plan_of(reading());
    plan.data.expiry_s = Dist::Fixed(3.0);
    let outcome = outcome(&plan);
    let [absent, fresh, stored, never] = known(&outcome);
    let cache = outcome.counts().cache;
    assert_eq!((cache.absent, cache.first_touch), (absent, fresh));
    assert_eq!((cache.expired, cache.other), (stored, never));
    assert!(absent > 1_000 && fresh > 500 && stored > 500 && never > 100, "{cache:?}");
    // Every miss of a key that may exist is followed by a fill, but for those that are due behind the end.
    let ops = outcome.measurement.ops();
    let adds = ops.get(Verb::Add).expect("missed keys are added").counts;
    assert_eq!((adds.cache.fills, adds.cache.duplicate_fills), (adds.completed, adds.outcomes.not_stored));
    assert!(adds.completed > 1_500 && adds.outcomes.not_stored > 0, "{adds:?}");
}

/// The store that ends a pair draws its expiry as any other.
#[test]
fn keys_that_expired_after_the_store_of_a_pair_are_missed_because_they_expired() {
    let work = Mix { read_modify_write: 1.0, fresh: 0.1, ..mix(&[(Verb::Get, 1.0)]) };
    let mut plan = plan_of(work);
    plan.data.records = 2_000;
    plan.data.expiry_s = Dist::Uniform { low: 2.0, high: 6.0 };
    let outcome = outcome(&plan);
    let [absent, fresh, stored, never] = known(&outcome);
    let cache = outcome.counts().cache;
    assert_eq!((cache.absent, cache.first_touch), (absent, fresh));
    assert_eq!((cache.expired, cache.other), (stored, never));
    assert!(fresh > 500 && stored > 500 && never > 500, "{cache:?}");
    let pairs = outcome.measurement.side_times.pairs.as_ref().expect("the plan has pairs");
    let sets = outcome.measurement.ops().get(Verb::Set).expect("gets are followed by sets").counts;
    assert_eq!(pairs.count(), sets.completed);
    // A pair takes as long as its two requests, one after the other.
    let read_ns = outcome.rows.iter().filter(|row| row.verb == Verb::Get).map(|row| row.read - row.due).min();
    assert!(read_ns.is_some_and(|read_ns| pairs.moments().min > read_ns), "{:?}", pairs.moments());
}

#[test]
fn keys_that_a_server_evicts_are_other_misses() {
    let mut plan = plan_of(Mix { absent: 0.0, ..reading() });
    plan.data.records = 1_000;
    let limits = Limits { items_max: Some(300), ..Limits::default() };
    let server = SharedServer::new(ServerConfig { limits, ..ServerConfig::default() });
    let outcome = outcome_at(&loaded(plan), &server);
    let [_, fresh, stored, never] = known(&outcome);
    let cache = outcome.counts().cache;
    assert_eq!((cache.first_touch, cache.other), (fresh, stored + never));
    assert!(cache.other > 2_000 && cache.expired == 0 && cache.absent == 0, "{cache:?}");
}

#[test]
fn deleted_keys_are_other_misses_and_keys_that_were_told_to_expire_are_expired() {
    let range = RankRange { first: 0, last: 9 };
    for (kind, expects_expired) in [(EventKind::Delete(range), false), (EventKind::Expire(range), true)] {
        let work = Mix { fresh: 0.0, absent: 0.0, fill: Fill::Set, ..reading() };
        let mut plan = plan_of(work);
        plan.data.records = 10;
        plan.data.expiry_s = Dist::Fixed(1_000.0);
        plan.groups[0].clients = 1;
        plan.changes.events = vec![Event { at_ns: 20 * SECOND, what: kind.clone() }];
        let outcome = outcome(&loaded(plan));
        let cache = outcome.counts().cache;
        assert!(cache.misses() > 0, "{kind:?}");
        assert_eq!(cache.expired > 0, expects_expired, "{kind:?}: {cache:?}");
        assert_eq!(cache.other == 0, expects_expired, "{kind:?}: {cache:?}");
    }
}

#[test]
fn new_keys_are_missed_by_their_first_touch_on_any_number_of_threads() {
    let churn = Some("exponential:2".parse().expect("it is a churn"));
    for (threads, multiget, route) in [(1, 1, Route::All), (3, 1, Route::All), (2, 4, Route::Modulo)] {
        let mut plan = plan_of(Mix { churn: churn.clone(), multiget, ..reading() });
        plan.engine = Engine { threads, ..plan.engine };
        plan.route = route;
        if route != Route::All {
            plan.servers.push("127.0.0.1:11212".to_owned());
        }
        plan.changes.parts = (0..6)
            .map(|number| {
                let at_ns = number * 5 * SECOND;
                let popularity =
                    [Popularity::Uniform, Popularity::Zipf { exponent: 1.0 }][number as usize % 2].clone();
                Part { popularity: Some(popularity), ..Part::plain(format!("{number}"), at_ns) }
            })
            .collect();
        let outcome = outcome(&loaded(plan));
        let cache = outcome.counts().cache;
        // The server loses nothing: whatever is missed and may exist was never stored.
        assert_eq!((cache.expired, cache.other), (0, 0), "{threads} threads, {multiget} keys: {cache:?}");
        assert!(cache.first_touch > 1_500 && cache.absent > 1_000, "{cache:?}");
    }
}

#[test]
fn bytes_are_those_of_the_values_that_were_found_missed_and_stored() {
    let mut plan = plan_of(reading());
    plan.data.value_size = "uniform:10,900".parse().expect("it is a distribution");
    let values = ValueMaker::new(&plan.data).expect("values of the plan");
    let outcome = outcome(&plan);
    let bytes = |is_of: &dyn Fn(&Row) -> bool| {
        let rows = outcome.rows.iter().filter(|row| is_of(row));
        rows.map(|row| values.len_of(row.key) as u64).sum::<u64>()
    };
    let cache = outcome.counts().cache;
    assert_eq!(cache.hit_bytes, bytes(&|row| row.outcome == Ended::Hit));
    assert_eq!(cache.stored_bytes, bytes(&|row| row.outcome == Ended::Stored));
    assert_eq!(cache.missed_bytes, bytes(&|row| row.outcome == Ended::Miss && !ABSENT.contains(&row.key)));
    assert!(cache.hit_bytes > 100_000 && cache.missed_bytes > 100_000 && cache.stored_bytes > 100_000);
}

#[test]
fn nothing_is_counted_where_no_miss_has_a_cause_of_its_own() {
    let mut plan = plan_of(mix(&[(Verb::Get, 9.0), (Verb::Set, 1.0)]));
    plan.phases[0].stop = requests(1_000);
    assert!(!plan.tells_misses());
    let counts = outcome(&plan).counts();
    assert!(counts.cache.is_zero() && counts.misses > 0, "{counts:?}");
}
