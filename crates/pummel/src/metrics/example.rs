//! A snapshot for tests in which every metric of the table has a value.

use std::collections::BTreeMap;

use pummel_logic::time::SECOND;
use pummel_logic::workload::cache_counts::CacheCounts;
use pummel_measure::histogram::Histogram;
use pummel_measure::recorder::{Counts, Outcomes, Span};
use pummel_report::snapshot::buckets::TimeBuckets;
use pummel_report::snapshot::{
    ConnectionCounts, Identity, OpTotals, PlanFacts, Role, RunResult, ServerFigures, Snapshot, Stage,
};

use crate::metrics::families::{ProcessFigures, Value, families};
use crate::metrics::table::ROWS;

fn times() -> TimeBuckets {
    let mut histogram = Histogram::new();
    [0, 900, 40_000, 41_000, 90_000, 91_000, 3_000_000, SECOND, 12 * SECOND]
        .iter()
        .for_each(|ns| histogram.record(*ns));
    let mut times = TimeBuckets::default();
    times.add(&histogram);
    times
}

/// A job that is over, and its process.
pub fn full() -> (Snapshot, ProcessFigures) {
    let cache = CacheCounts { expired: 1, hit_bytes: 800, ..CacheCounts::default() };
    let counts = Counts { completed: 9, hits: 8, misses: 1, cache, ..Counts::default() };
    let op = OpTotals { counts, times: std::array::from_fn(|_| times()) };
    let outcomes = Outcomes { touched: 3, not_found: 4, ..Outcomes::default() };
    let touch =
        OpTotals { counts: Counts { completed: 7, outcomes, ..Counts::default() }, ..OpTotals::default() };
    let mut connections = ConnectionCounts::default();
    (connections.asked, connections.open, connections.lost) = (Some(50), Some(49), 1);
    let server = ServerFigures {
        server: "a:1".to_owned(),
        cpu_ns: Some(5),
        requests: Some(10),
        hits: Some(1),
        misses: Some(2),
        evictions: Some(0),
        connections: Some(50),
        memory_bytes: Some(1 << 20),
    };
    let result = RunResult {
        status: "complete",
        connections_failed: 2,
        connect: times(),
        verified: Some([7, 1, 1]),
        audited: Some([90, 1, 2, 3, 4, 5]),
        generator_limited: false,
        quantiles: vec![("get".to_owned(), Span::Response, 0.99, 151_000)],
        goals: vec![("p99:1ms".to_owned(), true)],
        members: vec![("m1".to_owned(), 1_000, false), ("m2".to_owned(), 900, true)],
        members_lost: 1,
        servers: vec![server],
    };
    let plan = PlanFacts {
        rate: Some(20_000.0),
        protocol: "text",
        mode: "open",
        clock: "kernel",
        are_a_cluster: true,
        sends_again: true,
        ..PlanFacts::default()
    };
    let snapshot = Snapshot {
        identity: Identity { run: "r".to_owned(), role: Role::Run, front: "native" },
        plan: Some(plan),
        stage: Stage::Over,
        started_unix_ns: 1_700_000_000 * SECOND,
        backends: vec!["epoll"],
        ops: BTreeMap::from([("get".to_owned(), op), ("touch".to_owned(), touch)]),
        workers_busy_ns: vec![SECOND, 2 * SECOND],
        connections,
        result: Some(result),
        ..Snapshot::default()
    };
    let process = ProcessFigures {
        now: 0,
        cpu_ns: SECOND,
        resident_bytes: Some(1 << 24),
        open_fds: Some(9),
        max_fds: 1024,
    };
    (snapshot, process)
}

#[test]
fn every_row_of_the_table_is_served_in_its_order() {
    let (snapshot, process) = full();
    let served: Vec<&str> = families(&snapshot, &process).iter().map(|family| family.row.name).collect();
    let table: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    assert_eq!(served, table);
}

#[test]
fn requests_without_effect_are_those_of_operations_that_may_have_none() {
    let (snapshot, process) = full();
    let families = families(&snapshot, &process);
    let named = families.iter().find(|family| family.row.name == "pummel_requests_without_effect_total");
    let samples = &named.expect("it is served").samples;
    let expected = [("not_stored", 0), ("exists", 0), ("not_found", 4), ("conflict", 0)];
    assert_eq!(samples.len(), expected.len(), "none of the gets: {samples:?}");
    for (sample, (outcome, count)) in samples.iter().zip(expected) {
        let own = [("op", "touch".to_owned()), ("outcome", outcome.to_owned())];
        assert!(sample.labels.ends_with(&own) && sample.value == Value::Count(count), "{sample:?}");
    }
}

#[test]
fn a_goal_that_is_asked_for_twice_is_one_series() {
    let (mut snapshot, process) = full();
    let goals = ["p99:1ms", "p50:1ms", "p99:1ms"].map(|goal| (goal.to_owned(), true));
    snapshot.result.as_mut().expect("it is over").goals = goals.to_vec();
    let families = families(&snapshot, &process);
    let served = families.iter().find(|family| family.row.name == "pummel_goal_met").expect("it is served");
    assert_eq!(served.samples.len(), 2, "{served:?}");
}
