//! Reads through to a database: how missed keys are stored, beside the closed forms of caches that forget.

use pummel_engine::backend::sim::NetworkConditions;
use pummel_logic::dist::Dist;
use pummel_logic::plan::{Fill, Mix, Phase, Plan, Popularity};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, SECOND, seconds};
use pummel_testserver::{Limits, ServerConfig};

use crate::peer::SharedServer;
use crate::setup::{Outcome, at_rate, measuring, mix, plan, requests, run, time};

/// Reads of a mix that store what they missed.
fn reading_through(fill: Fill, delay_ns: u64) -> Mix {
    Mix { read_through_ns: Some(delay_ns), fill, ..mix(&[(Verb::Get, 1.0)]) }
}

fn hit_ratio(outcome: &Outcome) -> f64 {
    let ops = outcome.measurement.ops();
    let counts = ops.get(Verb::Get).expect("there are gets").counts;
    counts.hits as f64 / (counts.hits + counts.misses) as f64
}

/// 200 records that live for two seconds, each asked for twice a second.
fn expiring(fill: Fill) -> Plan {
    let work = reading_through(fill, 250 * MILLISECOND);
    let mut plan = at_rate(plan(), 400.0);
    plan.interval_ns = SECOND;
    plan.data.records = 200;
    plan.data.expiry_s = Dist::Fixed(2.0);
    plan.groups[0].clients = 8;
    let warm =
        Phase { name: "warmup".to_owned(), recorded: false, ..measuring(work.clone(), time(10 * SECOND)) };
    plan.phases = vec![warm, measuring(work, time(300 * SECOND))];
    plan
}

#[test]
fn the_hits_of_records_that_expire_are_those_of_the_closed_form() {
    // With l requests a second of a key, a life of T and a database that takes D: l T / (1 + l D + l T).
    let (l, life_s, delay_s) = (2.0, 2.0, 0.25);
    let expected = l * life_s / (1.0 + l * delay_s + l * life_s);
    let run = |fill| {
        let server = SharedServer::new(ServerConfig::default());
        run(&expiring(fill), 3, NetworkConditions::calm(), || server.peer())
    };
    let added = run(Fill::Add);
    let ratio = hit_ratio(&added);
    assert!((ratio - expected).abs() < 0.006, "{ratio} {expected}");
    let ops = added.measurement.ops();
    let fills = ops.get(Verb::Add).expect("missed keys are added").counts;
    assert!(ops.get(Verb::Set).is_none());
    // Of 1 + l D misses in a row the first is stored.
    let duplicates = fills.outcomes.not_stored as f64 / fills.completed as f64;
    let expected = l * delay_s / (1.0 + l * delay_s);
    assert!((duplicates - expected).abs() < 0.01, "{duplicates} {expected}");
    // A late duplicate that is set prolongs a life, to T after the last of the misses in D.
    let prolonged_s = life_s + delay_s - (1.0 - (-l * delay_s).exp()) / l;
    let expected = l * prolonged_s / (1.0 + l * delay_s + l * prolonged_s);
    let set = hit_ratio(&run(Fill::Set));
    assert!((set - expected).abs() < 0.006 && set > ratio, "{set} {expected}");
}

/// The share of hits of an LRU of `items` equal items, when record i is asked for in proportion to (i + 1)^-`exponent`: the
/// approximation of Che, Tung and Wang (IEEE JSAC 2002), which Fagin had in 1977.
fn hits_of_lru(records: u64, exponent: f64, items: f64) -> f64 {
    let weights: Vec<f64> = (1..=records).map(|rank| (rank as f64).powf(-exponent)).collect();
    let sum: f64 = weights.iter().sum();
    let shares: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
    let held = |time: f64| shares.iter().map(|share| 1.0 - (-share * time).exp()).sum::<f64>();
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if held(middle) < items { low = middle } else { high = middle }
    }
    shares.iter().map(|share| share * (1.0 - (-share * low).exp())).sum()
}

#[test]
fn the_hits_of_a_server_that_is_too_small_are_those_of_its_lru() {
    for (exponent, items) in [(0.9, 400), (0.6, 800)] {
        let popularity = Popularity::Zipf { exponent };
        let work = Mix { popularity, ..reading_through(Fill::Set, 0) };
        let mut plan = plan();
        plan.interval_ns = SECOND;
        plan.data.records = 2_000;
        let warm =
            Phase { name: "warmup".to_owned(), recorded: false, ..measuring(work.clone(), requests(30_000)) };
        plan.phases = vec![warm, measuring(work, requests(120_000))];
        let limits = Limits { items_max: Some(items), ..Limits::default() };
        let server = SharedServer::new(ServerConfig { limits, ..ServerConfig::default() });
        let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
        let (ratio, expected) = (hit_ratio(&outcome), hits_of_lru(2_000, exponent, items as f64));
        assert!((ratio - expected).abs() < 0.005, "zipf:{exponent}, {items} items: {ratio} {expected}");
        assert!(server.lock().counts().evictions > 10_000);
    }
}

#[test]
fn stores_wait_for_delays_of_the_distribution() {
    let mean_s = 0.005;
    let mut work = reading_through(Fill::Set, 5 * MILLISECOND);
    work.fill_delay_s = Some(Dist::Exponential { mean: mean_s });
    let mut plan = plan();
    plan.data.records = 1_000_000;
    plan.phases = vec![measuring(work, requests(4_000))];
    let server = SharedServer::new(ServerConfig::default());
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    let of = |verb| outcome.rows.iter().filter(move |row| row.verb == verb);
    let delays: Vec<f64> = of(Verb::Set)
        .map(|set| {
            let misses = of(Verb::Get).filter(|get| get.key == set.key && get.read <= set.due);
            let missed = misses.map(|get| get.read).max().expect("a store follows a miss");
            seconds(set.due - missed)
        })
        .collect();
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    let above = delays.iter().filter(|delay| **delay > mean_s).count() as f64 / delays.len() as f64;
    assert!(delays.len() > 3_000, "{}", delays.len());
    assert!((mean / mean_s - 1.0).abs() < 0.1, "{mean}");
    assert!((above - (-1.0_f64).exp()).abs() < 0.04, "a third is above the mean: {above}");
}
