//! Runs against servers that misbehave, in every pair of features: whatever a peer does, the accounts add up, the run ends
//! in time with little memory, no verdict is given without proof, and nothing panics.
//!
//! Every run is a function of its pair, its misbehaviour and its seed. `cargo xtask hostile` runs more seeds, or one. These
//! environment variables say which:
//!
//! * `PUMMEL_HOSTILE_SEEDS`: so many seeds from 0 on, 12 where it is absent;
//! * `PUMMEL_HOSTILE_SEED`: this seed alone;
//! * `PUMMEL_HOSTILE_PAIR`: this pair of features alone, as `churn,handshake`;
//! * `PUMMEL_HOSTILE_FAULT`: this misbehaviour alone;
//! * `PUMMEL_HOSTILE_PLANS`: so many plans that are drawn at random, from seed 0 on, 12 where it is absent;
//! * `PUMMEL_HOSTILE_PLAN`: the plan of this seed alone.

// Of what is shared with other tests, each program uses a part.
#![allow(dead_code)]

#[path = "../authority/mod.rs"]
mod authority;
mod bounded;
mod faults;
mod features;
mod invariants;
mod memory;
#[path = "../worker/peer.rs"]
mod peer;
mod plans;
mod replies;
mod scenes;
mod secured;
#[path = "../worker/setup.rs"]
mod setup;
mod watch;

use std::env;

use faults::Misbehaviour;
use features::{Feature, Pair, pairs, refusal};
use scenes::{Case, Tally};

/// Seeds of each pair and misbehaviour where nothing else is asked for.
const SEEDS: u64 = 12;

/// Choice of the runs that are made.
struct Choice {
    seeds: std::ops::Range<u64>,
    pair: Option<Pair>,
    fault: Option<Misbehaviour>,
}

impl Choice {
    fn from_environment() -> Choice {
        let word = |name: &str| env::var(name).ok().filter(|word| !word.is_empty());
        let number =
            |name: &str| word(name).map(|word| word.parse::<u64>().expect("a number of seeds, or a seed"));
        let seeds = match (number("PUMMEL_HOSTILE_SEED"), number("PUMMEL_HOSTILE_SEEDS")) {
            (Some(seed), _) => seed..seed + 1,
            (None, seeds) => 0..seeds.unwrap_or(SEEDS),
        };
        let feature = |name: &str| {
            let known = Feature::ALL.into_iter().find(|feature| feature.name() == name);
            known.unwrap_or_else(|| panic!("there is no feature {name:?}"))
        };
        let pair = word("PUMMEL_HOSTILE_PAIR").map(|pair| {
            let (one, other) = pair.split_once(',').unwrap_or((&pair, &pair));
            let (one, other) = (feature(one), feature(other));
            (one.min(other), one.max(other))
        });
        let fault = word("PUMMEL_HOSTILE_FAULT").map(|name| {
            let known = Misbehaviour::ALL.into_iter().find(|fault| fault.name() == name);
            known.unwrap_or_else(|| panic!("there is no misbehaviour {name:?}"))
        });
        Choice { seeds, pair, fault }
    }

    /// The seeds of a pair: half of them, rounded up, where the measured phase ends when a quantile is known, since such
    /// runs take seconds of simulated time.
    fn seeds_of(&self, pair: Pair) -> std::ops::Range<u64> {
        let std::ops::Range { start, end } = self.seeds;
        let is_long = pair.0 == Feature::Until || pair.1 == Feature::Until;
        start..if is_long { start + (end - start).div_ceil(2) } else { end }
    }
}

/// Runs every pair that begins with a feature, and prints the findings; a line for each pair and misbehaviour, which
/// `cargo xtask hostile` reads.
fn run_pairs_of(feature: Feature) {
    let choice = Choice::from_environment();
    let mut all = Vec::new();
    for pair in pairs().filter(|pair| pair.0 == feature && refusal(*pair, 0).is_none()) {
        if choice.pair.is_some_and(|chosen| chosen != pair) {
            continue;
        }
        for fault in
            Misbehaviour::ALL.into_iter().filter(|fault| choice.fault.is_none_or(|chosen| chosen == *fault))
        {
            let mut tally = Tally::default();
            for seed in choice.seeds_of(pair) {
                let case = Case { pair, fault, seed };
                tally.add(case, scenes::run(case));
            }
            println!("hostile: {}", tally.line(pair, fault));
            for finding in &tally.findings {
                println!("hostile finding: {finding}");
            }
            all.append(&mut tally.findings);
        }
    }
    let count = all.len();
    all.truncate(40);
    assert!(count == 0, "{count} findings, the first of them:\n{}", all.join("\n"));
}

/// Runs plans that are drawn at random; of each only its validity is known.
#[test]
fn plans_that_are_drawn_at_random_run_where_they_are_valid() {
    let number = |name: &str| {
        let word = env::var(name).ok().filter(|word| !word.is_empty());
        word.map(|word| word.parse::<u64>().expect("a number of plans, or a seed"))
    };
    let seeds = match (number("PUMMEL_HOSTILE_PLAN"), number("PUMMEL_HOSTILE_PLANS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, plans) => 0..plans.unwrap_or(SEEDS),
    };
    let (mut all, mut runs, mut drawn) = (Vec::new(), 0, 0);
    for seed in seeds {
        let (findings, attempts) = plans::run(seed);
        (runs, drawn) = (runs + 1, drawn + attempts);
        for finding in &findings {
            println!("hostile finding: {}", finding.replace('\n', " "));
        }
        all.extend(findings);
    }
    println!("hostile plans: runs={runs} drawn={drawn} findings={}", all.len());
    let count = all.len();
    all.truncate(10);
    assert!(count == 0, "{count} findings, the first of them:\n{}", all.join("\n"));
}

#[test]
fn pairs_with_a_handshake() {
    run_pairs_of(Feature::Handshake);
}

#[test]
fn pairs_with_churn() {
    run_pairs_of(Feature::Churn);
}

#[test]
fn pairs_with_windows() {
    run_pairs_of(Feature::Windows);
}

#[test]
fn pairs_with_several_servers() {
    run_pairs_of(Feature::Servers);
}

#[test]
fn pairs_with_tls() {
    run_pairs_of(Feature::Tls);
}

#[test]
fn pairs_with_udp() {
    run_pairs_of(Feature::Udp);
}

#[test]
fn pairs_with_reconnecting() {
    run_pairs_of(Feature::Reconnect);
}

#[test]
fn pairs_with_verifying() {
    run_pairs_of(Feature::Verify);
}

#[test]
fn pairs_with_multi_gets() {
    run_pairs_of(Feature::MultiGet);
}

#[test]
fn pairs_with_reading_through() {
    run_pairs_of(Feature::ReadThrough);
}

#[test]
fn pairs_with_changing_rates() {
    run_pairs_of(Feature::Changes);
}

#[test]
fn pairs_with_requests_that_depend_on_each_other() {
    run_pairs_of(Feature::Dependent);
}

#[test]
fn pairs_with_a_cluster() {
    run_pairs_of(Feature::Cluster);
}

#[test]
fn pairs_with_an_audit() {
    run_pairs_of(Feature::Audit);
}

#[test]
fn tracking_alone() {
    run_pairs_of(Feature::Tracking);
    let run = |seed| {
        scenes::run(Case { pair: (Feature::Tracking, Feature::Tracking), fault: Misbehaviour::Fields, seed })
    };
    let pushes: u64 = (0..SEEDS).map(|seed| run(seed).pushes).sum();
    assert!(pushes > 100, "hardly any message came by itself: {pushes}");
}

#[test]
fn commands_alone() {
    run_pairs_of(Feature::Commands);
}

#[test]
fn pairs_with_requests_that_are_sent_again() {
    run_pairs_of(Feature::Retries);
}

#[test]
fn pairs_with_steps_of_connections() {
    run_pairs_of(Feature::Steps);
}

#[test]
fn pairs_with_a_trace() {
    run_pairs_of(Feature::Trace);
}

#[test]
fn pairs_with_keys_that_change_and_with_events() {
    run_pairs_of(Feature::KeyChurn);
    run_pairs_of(Feature::Events);
}

#[test]
fn pairs_with_noreply_with_phases_and_with_settling() {
    run_pairs_of(Feature::Noreply);
    run_pairs_of(Feature::Phases);
    run_pairs_of(Feature::Settle);
}

#[test]
fn pairs_with_a_warm_up_until_the_first_eviction() {
    run_pairs_of(Feature::Evictions);
}

#[test]
fn pairs_with_an_end_that_is_found_and_with_keys_that_are_no_records() {
    run_pairs_of(Feature::Until);
    run_pairs_of(Feature::Unstored);
}

#[test]
fn every_pair_is_run_with_every_seed_or_refused_with_every_seed() {
    let mut refused = Vec::new();
    for pair in pairs() {
        let why = refusal(pair, 0);
        for seed in 1..200 {
            let other = refusal(pair, seed);
            assert_eq!(other.is_some(), why.is_some(), "{pair:?}, seed {seed}: {other:?}");
        }
        refused.extend(why.map(|_| pair));
    }
    let expected = [
        (Feature::Handshake, Feature::Udp),
        (Feature::Churn, Feature::Windows),
        (Feature::Churn, Feature::Udp),
        (Feature::Churn, Feature::Reconnect),
        (Feature::Churn, Feature::Settle),
        (Feature::Churn, Feature::Until),
        (Feature::Churn, Feature::Changes),
        (Feature::Churn, Feature::KeyChurn),
        (Feature::Churn, Feature::Events),
        (Feature::Churn, Feature::Evictions),
        (Feature::Churn, Feature::Audit),
        (Feature::Churn, Feature::Retries),
        (Feature::Churn, Feature::Steps),
        (Feature::Windows, Feature::ReadThrough),
        (Feature::Windows, Feature::Noreply),
        (Feature::Windows, Feature::Settle),
        (Feature::Windows, Feature::Until),
        (Feature::Windows, Feature::Unstored),
        (Feature::Windows, Feature::Changes),
        (Feature::Windows, Feature::Dependent),
        (Feature::Windows, Feature::Trace),
        (Feature::Windows, Feature::KeyChurn),
        (Feature::Windows, Feature::Events),
        (Feature::Windows, Feature::Evictions),
        (Feature::Windows, Feature::Cluster),
        (Feature::Windows, Feature::Audit),
        (Feature::Windows, Feature::Tracking),
        (Feature::Windows, Feature::Commands),
        (Feature::Windows, Feature::Retries),
        (Feature::Windows, Feature::Steps),
        (Feature::Tls, Feature::Udp),
        (Feature::Udp, Feature::Trace),
        (Feature::Udp, Feature::Cluster),
        (Feature::Udp, Feature::Audit),
        (Feature::Udp, Feature::Tracking),
        (Feature::Udp, Feature::Commands),
        (Feature::Udp, Feature::Retries),
        (Feature::Udp, Feature::Steps),
        (Feature::Verify, Feature::Trace),
        (Feature::MultiGet, Feature::Dependent),
        (Feature::MultiGet, Feature::Trace),
        (Feature::Noreply, Feature::Dependent),
        (Feature::Noreply, Feature::Trace),
        (Feature::Noreply, Feature::Cluster),
        (Feature::Noreply, Feature::Audit),
        (Feature::Noreply, Feature::Tracking),
        (Feature::Noreply, Feature::Commands),
        (Feature::Noreply, Feature::Retries),
        (Feature::Settle, Feature::Trace),
        (Feature::Settle, Feature::Evictions),
        (Feature::Until, Feature::Changes),
        (Feature::Until, Feature::Trace),
        (Feature::Until, Feature::Events),
        (Feature::Until, Feature::Steps),
        (Feature::Unstored, Feature::Trace),
        (Feature::Changes, Feature::Trace),
        (Feature::Dependent, Feature::Trace),
        (Feature::Trace, Feature::KeyChurn),
        (Feature::Trace, Feature::Events),
        (Feature::Trace, Feature::Evictions),
        (Feature::Trace, Feature::Audit),
        (Feature::Trace, Feature::Commands),
        (Feature::Trace, Feature::Steps),
        (Feature::KeyChurn, Feature::Audit),
        (Feature::Events, Feature::Audit),
        (Feature::Events, Feature::Steps),
        (Feature::Evictions, Feature::Audit),
        (Feature::Audit, Feature::Commands),
    ];
    assert_eq!((pairs().count(), refused), (378, expected.to_vec()));
}

#[test]
fn a_case_gives_the_same_run_again() {
    for (pair, fault, seed) in [
        ((Feature::Churn, Feature::Verify), Misbehaviour::Closed, 3),
        ((Feature::Servers, Feature::MultiGet), Misbehaviour::ErrorForValue, 4),
        ((Feature::Udp, Feature::ReadThrough), Misbehaviour::Half, 5),
        ((Feature::Windows, Feature::Verify), Misbehaviour::Garbage, 6),
    ] {
        let once = || scenes::figures(Case { pair, fault, seed });
        assert_eq!(once(), once(), "{pair:?} {fault:?} {seed}");
    }
}

#[test]
fn runs_that_once_broke_an_invariant_break_none() {
    let cases = [
        ((Feature::Reconnect, Feature::Reconnect), Misbehaviour::Refused, 26),
        ((Feature::Reconnect, Feature::Reconnect), Misbehaviour::Refused, 65),
        ((Feature::Reconnect, Feature::Phases), Misbehaviour::Refused, 26),
        ((Feature::Reconnect, Feature::ReadThrough), Misbehaviour::Refused, 65),
        ((Feature::Servers, Feature::Reconnect), Misbehaviour::Refused, 30),
        ((Feature::Handshake, Feature::Reconnect), Misbehaviour::Closed, 36),
        ((Feature::Tls, Feature::Reconnect), Misbehaviour::Closed, 68),
        ((Feature::Tls, Feature::Reconnect), Misbehaviour::Closed, 83),
        ((Feature::Churn, Feature::Churn), Misbehaviour::Silence, 74),
        ((Feature::Handshake, Feature::Windows), Misbehaviour::Closed, 76),
        ((Feature::Handshake, Feature::Phases), Misbehaviour::Extra, 808),
        ((Feature::Udp, Feature::Verify), Misbehaviour::Garbage, 301),
        ((Feature::Udp, Feature::Verify), Misbehaviour::Garbage, 373),
        ((Feature::Changes, Feature::Events), Misbehaviour::Closed, 3),
        ((Feature::Changes, Feature::Events), Misbehaviour::Repeated, 13),
        ((Feature::MultiGet, Feature::ReadThrough), Misbehaviour::Half, 2),
        ((Feature::Udp, Feature::ReadThrough), Misbehaviour::Extra, 2),
        ((Feature::KeyChurn, Feature::KeyChurn), Misbehaviour::Fields, 0),
    ];
    for (pair, fault, seed) in cases {
        let mut tally = Tally::default();
        let case = Case { pair, fault, seed };
        tally.add(case, scenes::run(case));
        assert!(tally.findings.is_empty(), "{}", tally.findings.join("\n"));
    }
}
