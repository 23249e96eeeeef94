//! Little's law in whole runs: the integral of requests in flight is what the recorder has of each of them.

use pummel_engine::backend::sim::NetworkConditions;
use pummel_logic::merge::Merge as _;
use pummel_logic::plan::{Depth, Plan};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, SECOND};
use pummel_measure::littles_law::{Little, little};
use pummel_testserver::ServerConfig;

use crate::peer::SharedServer;
use crate::setup::{Outcome, at_rate, loaded, measuring, mix, mix_of_all, plan, requests, run, time};

fn outcome(plan: &Plan, conditions: NetworkConditions) -> Outcome {
    let server = SharedServer::new(ServerConfig::default());
    run(plan, 3, conditions, || server.peer())
}

/// The two accounts of a run of 10,000 requests or more, all of which were answered.
fn judged(plan: &Plan, conditions: NetworkConditions) -> Little {
    let outcome = outcome(plan, conditions);
    let counts = outcome.counts();
    assert!(counts.completed >= 10_000 && counts.unanswered() == 0, "{counts:?} {}", outcome.reason());
    little(&outcome.measurement).expect("every request is in both accounts")
}

fn assert_agrees(little: Little, context: &str) {
    assert!(little.by_count_ns > 0, "{context}");
    assert!(little.disagreement_percent() < 1.0, "{context}: {little:?}");
}

#[test]
fn in_closed_loop_both_accounts_have_the_same_time() {
    for (depth, threads) in [(1, 1), (16, 1), (4, 3)] {
        for conditions in [NetworkConditions::calm(), NetworkConditions::rough()] {
            let mut plan = plan();
            plan.engine.threads = threads;
            plan.groups[0].depth = Depth::Limit(depth);
            plan.phases = vec![measuring(mix(&[(Verb::Get, 9.0), (Verb::Set, 1.0)]), requests(12_000))];
            assert_agrees(judged(&plan, conditions), &format!("depth {depth}, {threads} threads"));
        }
    }
}

#[test]
fn in_open_loop_after_another_phase_both_accounts_have_the_same_time() {
    let mut plan = at_rate(loaded(plan()), 20_000.0);
    plan.groups[0].depth = Depth::Unlimited;
    plan.phases.push(measuring(mix(&[(Verb::Get, 1.0)]), time(50 * MILLISECOND)));
    plan.phases[1].recorded = false;
    plan.phases.push(measuring(mix(&[(Verb::Get, 1.0)]), time(SECOND)));
    let little = judged(&plan, NetworkConditions::rough());
    assert_agrees(little, "open loop");
}

#[test]
fn requests_without_times_in_the_recorder_are_in_both_accounts() {
    // All verbs, with errors of the server among them; then stores that ask for no reply.
    let mut errors = loaded(plan());
    errors.data.value_size = pummel_logic::dist::Dist::Fixed(900.0);
    errors.phases[1] = measuring(mix_of_all(), requests(12_000));
    let mut quiet = plan();
    let mut stores = mix(&[(Verb::Set, 1.0), (Verb::Get, 1.0)]);
    stores.noreply = true;
    quiet.phases = vec![measuring(stores, requests(12_000))];
    let mut successes = plan();
    successes.groups[0].policy.successes_only = true;
    successes.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), requests(12_000))];
    for (name, plan) in [("errors", errors), ("no reply", quiet), ("successes only", successes)] {
        let outcome = outcome(&plan, NetworkConditions::rough());
        let little = little(&outcome.measurement).expect("both accounts");
        assert!(little.requests >= 10_000, "{name}: {little:?}");
        assert_agrees(little, name);
        let untimed = outcome.measurement.flight.untimed_ns;
        assert!(untimed > 0 || name == "errors", "{name}: {:?}", outcome.measurement.flight);
    }
}

#[test]
fn an_account_that_misses_requests_is_found_out() {
    let mut plan = plan();
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), requests(12_000))];
    let mut measurement = outcome(&plan, NetworkConditions::calm()).measurement;
    assert_agrees(little(&measurement).expect("both accounts"), "as measured");
    // Every request was recorded three times.
    let ops = measurement.groups[0].ops.clone();
    for _ in 0..2 {
        measurement.groups[0].ops.merge(&ops);
    }
    measurement.flight.requests *= 3;
    assert!(little(&measurement).expect("both accounts").disagreement_percent() > 50.0);
}
