//! Tests that every request is accounted for, whatever the conditions.

use std::collections::BTreeMap;

use pummel_engine::backend::sim::{NetworkConditions, Peer, Sim};
use pummel_logic::dist::Dist;
use pummel_logic::plan::{Arrivals, Depth, Group, Plan, Stop};
use pummel_logic::protocol::{Fault, Verb};
use pummel_logic::time::MILLISECOND;
use pummel_measure::measurement::{Measurement, Status};
use pummel_testserver::{CountedFault, ServerConfig};

use crate::peer::SharedServer;
use crate::setup::{
    Outcome, at_rate, loaded, measuring, memcached_verbs, mix, mix_of_all, plan, requests, run, run_with,
    schedule, time,
};

const WEATHERS: [fn() -> NetworkConditions; 3] =
    [NetworkConditions::calm, NetworkConditions::rough, NetworkConditions::harsh];

fn server() -> SharedServer {
    SharedServer::new(ServerConfig::default())
}

/// A plan that loads records, then makes requests of all kinds and checks every value.
fn everything(asked: u64) -> Plan {
    let mut plan = loaded(plan());
    plan.verify = 1.0;
    plan.groups[0].depth = Depth::Limit(4);
    plan.data.value_size = Dist::Uniform { low: 24.0, high: 6000.0 };
    plan.phases[1] = measuring(mix_of_all(), requests(asked));
    plan
}

#[test]
fn under_calm_conditions_the_servers_own_counters_equal_the_whole_run() {
    let server = server();
    let outcome = run(&everything(6_000), 1, NetworkConditions::calm(), || server.peer());
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));

    let locked = server.lock();
    let counted = locked.counts();
    let whole = &outcome.measurement.whole_run;
    let of = |verbs: &[Verb]| {
        let mut sum = pummel_measure::recorder::Counts::default();
        whole.ops.iter().filter(|(verb, _)| verbs.contains(verb)).for_each(|(_, counts)| sum.merge(counts));
        sum
    };
    assert_eq!(of(&Verb::ALL).requests(), locked.requests());
    assert_eq!(of(&Verb::ALL).completed, locked.requests(), "nothing failed");

    let reads = of(&[Verb::Get, Verb::Gets]);
    assert_eq!(
        (reads.keys, reads.hits, reads.misses),
        (counted.cmd_get, counted.get_hits, counted.get_misses)
    );
    let touches = of(&[Verb::Touch]);
    let reading_touches = of(&[Verb::Gat, Verb::Gats]);
    assert_eq!(touches.completed + reading_touches.keys, counted.cmd_touch);
    assert_eq!(touches.outcomes.touched + reading_touches.hits, counted.touch_hits);
    assert_eq!(touches.outcomes.not_found + reading_touches.misses, counted.touch_misses);
    let stores = [Verb::Set, Verb::Add, Verb::Replace, Verb::Append, Verb::Prepend, Verb::Cas];
    assert_eq!(of(&stores).completed, counted.cmd_set);
    assert_eq!(of(&stores).outcomes.stored, counted.total_items);
    let cas = of(&[Verb::Cas]).outcomes;
    assert_eq!(
        (cas.stored, cas.exists, cas.not_found),
        (counted.cas_hits, counted.cas_badval, counted.cas_misses)
    );
    let delete = of(&[Verb::Delete]).outcomes;
    assert_eq!((delete.deleted, delete.not_found), (counted.delete_hits, counted.delete_misses));
    let (incr, decr) = (of(&[Verb::Incr]).outcomes, of(&[Verb::Decr]).outcomes);
    assert_eq!((incr.number, incr.not_found), (counted.incr_hits, counted.incr_misses));
    assert_eq!((decr.number, decr.not_found), (counted.decr_hits, counted.decr_misses));
    assert_eq!(whole.bytes.sent, counted.bytes_read);
    assert_eq!(whole.bytes.received, counted.bytes_written);

    for verb in memcached_verbs() {
        assert!(of(&[verb]).completed > 100, "{} was hardly asked", verb.name());
    }
    let load = outcome.measurement.load.expect("records were loaded");
    assert_eq!((load.records, load.stored, load.errors), (300, 300, 0));
    assert!(outcome.measurement.verify.checked > 1_000);
    assert_eq!(outcome.measurement.verify.failed, 0);
}

#[test]
fn what_is_read_back_is_what_was_written_under_any_conditions() {
    for conditions in WEATHERS {
        for seed in 0..12 {
            let mut plan = everything(1_500);
            plan.seed = seed;
            plan.reconnect = true;
            // Storms delay some replies for longer than anybody waits.
            plan.timeout_ns = 40 * MILLISECOND;
            let server = server();
            let outcome = run(&plan, seed, conditions(), || server.peer());
            if nothing_began(&outcome) {
                continue;
            }
            let verify = &outcome.measurement.verify;
            assert!(verify.checked > 200, "seed {seed}: {} were checked", verify.checked);
            assert_eq!((verify.failed, verify.stale), (0, 0), "seed {seed}: {:?}", verify.first);
            let protocol: u64 = outcome.measurement.whole_run.ops.all().errors(Fault::Protocol);
            assert_eq!(protocol, 0, "seed {seed}: {:?}", outcome.measurement.messages);
        }
    }
}

#[test]
fn many_workers_share_one_server_and_verify_everything_that_they_read() {
    let mut plan = everything(8_000);
    plan.engine.threads = 8;
    plan.groups[0].clients = 16;
    let server = server();
    let outcome = run(&plan, 1, NetworkConditions::rough(), || server.peer());
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    let verify = &outcome.measurement.verify;
    assert!(verify.checked > 1_000, "{} were checked", verify.checked);
    assert_eq!((verify.failed, verify.stale), (0, 0), "{:?}", verify.first);
    let whole = outcome.measurement.whole_run.ops.all();
    let served = server.lock().requests();
    assert_eq!((whole.requests(), whole.completed), (served, served));
}

/// Whether a connection was refused at the very beginning, as happens under harsh conditions.
fn nothing_began(outcome: &Outcome) -> bool {
    let begun = outcome.measurement.whole_run.ops.all().requests() > 0;
    assert!(begun || outcome.reason().starts_with("NotOpened"), "{}", outcome.reason());
    !begun
}

/// Asserts that all requests of a run without follow-ups are accounted for, however they ended.
fn assert_accounted(outcome: &Outcome, asked: u64, context: &str) {
    let counts = outcome.counts();
    assert_eq!(
        counts.completed + counts.failed() + counts.unfinished + counts.unsent,
        asked,
        "{context}: {counts:?}"
    );
    let slices: u64 = outcome.measurement.intervals.iter().map(|slice| slice.counts().requests()).sum();
    assert_eq!(slices, asked, "{context}: the slices have all of them too");
    assert_eq!(outcome.measurement.whole_run.ops.all().requests(), asked, "{context}: and the whole run");
    let ended = outcome.rows.len() as u64;
    assert!(ended <= asked && ended >= counts.completed + counts.failed(), "{context}: {ended} rows");
}

#[test]
fn in_open_loop_all_that_was_due_is_accounted_for() {
    for conditions in WEATHERS {
        for seed in 0..10 {
            for reconnect in [false, true] {
                let mut plan = at_rate(plan(), 20_000.0);
                plan.seed = seed;
                plan.reconnect = reconnect;
                plan.timeout_ns = 5 * MILLISECOND;
                plan.groups[0].depth =
                    [Depth::Limit(1), Depth::Limit(3), Depth::Unlimited][seed as usize % 3];
                plan.phases =
                    vec![measuring(mix(&[(Verb::Get, 9.0), (Verb::Set, 1.0)]), time(50 * MILLISECOND))];
                let server = server();
                let outcome = run(&plan, seed, conditions(), || server.peer());
                if nothing_began(&outcome) {
                    continue;
                }
                // Without --reconnect a storm may end the phase early; then what was due until then counts.
                let length_ns = outcome.measurement.measured_ns;
                assert!(
                    length_ns == 50 * MILLISECOND
                        || outcome.reason().starts_with("ConnectionsLost { asked: 4, lost: 4,")
                );
                let due: usize = schedule(&plan, length_ns).iter().map(Vec::len).sum();
                assert_accounted(&outcome, due as u64, &format!("seed {seed} reconnect {reconnect}"));
            }
        }
    }
}

#[test]
fn a_number_of_requests_is_made_and_accounted_for() {
    for conditions in WEATHERS {
        for seed in 0..10 {
            let mut plan = plan();
            plan.seed = seed;
            plan.reconnect = true;
            plan.groups[0].depth = Depth::Limit(1 + seed as u32 % 4);
            plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0), (Verb::Set, 1.0)]), requests(1_003))];
            let server = server();
            let outcome = run(&plan, seed, conditions(), || server.peer());
            if nothing_began(&outcome) {
                continue;
            }
            assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
            assert_accounted(&outcome, 1_003, &format!("seed {seed}"));
        }
    }
}

#[test]
fn two_measured_phases_have_the_connections_and_the_workers_of_one() {
    let mut plan = plan();
    plan.engine.threads = 2;
    plan.phases = vec![plan.phases[0].clone(), plan.phases[0].clone()];
    let server = server();
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    assert_eq!(outcome.measurement.measured_ns, 200 * MILLISECOND);
    let connections = &outcome.measurement.connections;
    assert_eq!((connections.asked, connections.open), (4, 4));
    let workers = &outcome.measurement.generator.workers;
    assert_eq!(workers.len(), 2);
    let has_both = |ns| (200 * MILLISECOND..210 * MILLISECOND).contains(&ns);
    assert!(workers.iter().all(|worker| has_both(worker.wall_ns) && worker.busy_ns > 0), "{workers:?}");
}

#[test]
fn a_phase_that_ends_on_time_waits_for_no_client_that_was_done_before() {
    let mut plan = at_rate(plan(), 1_000.0);
    plan.groups[0].arrivals = Arrivals::Constant;
    plan.groups[0].policy.ends_on_time = true;
    plan.groups.push(Group { name: "done early".to_string(), clients: 4, ..Group::default() });
    // The second group makes its half of the requests at once, and the first has no time for its own.
    let stop = Stop { time_ns: Some(100 * MILLISECOND), requests: Some(4_000) };
    plan.phases = vec![measuring(mix(&[(Verb::Get, 1.0)]), stop)];
    let server = server();
    let outcome = run(&plan, 1, NetworkConditions::calm(), || server.peer());
    let completed = |group: usize| outcome.measurement.groups[group].ops.counts().completed;
    assert_eq!(completed(1), 2_000);
    assert!((90..=100).contains(&completed(0)), "{}", completed(0));
    let worked_ns = outcome.measurement.generator.workers[0].wall_ns;
    assert!((100 * MILLISECOND..101 * MILLISECOND).contains(&worked_ns), "the drain is over: {worked_ns}");
}

/// A measurement without what comes from the real machine.
fn figures(mut measurement: Measurement) -> String {
    measurement.started_unix_ns = 0;
    measurement.generator.cpu_user_ns = 0;
    measurement.generator.cpu_system_ns = 0;
    measurement.generator.peak_rss_bytes = 0;
    format!("{measurement:?}")
}

#[test]
fn the_same_seed_gives_the_same_measurement() {
    for conditions in WEATHERS {
        for seed in 0..3 {
            let mut plan = everything(1_000);
            plan.seed = seed;
            plan.reconnect = true;
            plan.phases.push(measuring(mix(&[(Verb::Get, 1.0)]), time(30 * MILLISECOND)));
            let once = || {
                let server = server();
                let outcome = run(&plan, seed, conditions(), || server.peer());
                (figures(outcome.measurement), outcome.rows)
            };
            let (first, rows) = once();
            let (second, more_rows) = once();
            assert!(first == second, "seed {seed} gave\n{first}\nand then\n{second}");
            assert_eq!(rows, more_rows, "seed {seed}");
        }
    }
}

#[test]
fn another_seed_of_the_network_changes_times_and_not_the_requests() {
    let mut plan = at_rate(plan(), 10_000.0);
    plan.groups[0].depth = Depth::Unlimited;
    let seen = |seed| {
        let server = server();
        let outcome = run(&plan, seed, NetworkConditions::rough(), || server.peer());
        let mut asked: Vec<_> =
            outcome.rows.iter().map(|row| (row.client, row.due - outcome.begin, row.verb, row.key)).collect();
        asked.sort();
        (asked, figures(outcome.measurement))
    };
    let ((asked, figures), (asked_again, other_figures)) = (seen(1), seen(2));
    assert_eq!(asked, asked_again);
    assert_ne!(figures, other_figures);
}

#[test]
fn the_schedule_of_open_loop_is_the_same_on_any_number_of_threads() {
    let mut plan = at_rate(loaded(plan()), 20_000.0);
    plan.groups[0].clients = 13;
    plan.phases[1] = measuring(mix_of_all(), time(100 * MILLISECOND));
    let asked = |threads: u32, clients: u32| {
        let mut plan = plan.clone();
        plan.engine.threads = threads;
        plan.groups[0].clients = clients;
        let server = server();
        let outcome = run(&plan, 7, NetworkConditions::calm(), || server.peer());
        assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
        let mut asked: BTreeMap<(u64, u64, u64), Verb> = BTreeMap::new();
        // A cas follows from the answer to its gets, and is not part of the schedule.
        for row in outcome.rows.iter().filter(|row| row.verb != Verb::Cas) {
            let before = asked.insert((row.client, row.due - outcome.begin, row.key), row.verb);
            assert_eq!(before, None, "a request was made twice");
        }
        asked
    };
    let single = asked(1, 13);
    assert!((1_800..2_200).contains(&single.len()), "{} requests at 20,000 a second", single.len());
    for threads in [2, 4, 8] {
        assert_eq!(asked(threads, 13), single, "{threads} threads");
    }
    assert_ne!(asked(1, 12), single, "another number of clients has another schedule");
}

#[test]
fn reading_through_stores_exactly_the_keys_that_were_missed() {
    for conditions in [NetworkConditions::calm, NetworkConditions::rough] {
        let mut plan = plan();
        plan.verify = 0.5;
        let mut reading = mix(&[(Verb::Get, 1.0)]);
        (reading.multiget, reading.read_through_ns) = (5, Some(MILLISECOND / 10));
        plan.phases = vec![measuring(reading, requests(300))];
        let server = server();
        let outcome = run(&plan, 1, conditions(), || server.peer());
        assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
        let ops = outcome.measurement.ops();
        let (get, set) = (ops.get(Verb::Get).unwrap().counts, ops.get(Verb::Set).unwrap().counts);
        assert_eq!((get.completed, get.keys), (300, 1_500));
        assert_eq!(set.outcomes.stored, get.misses, "every missing key is stored once");
        assert_eq!(server.lock().store().len(), 100, "and by the end all are there");
        assert_eq!(outcome.measurement.verify.failed, 0);
    }
}

#[test]
fn a_worker_that_lost_its_connections_accounts_for_the_same_time_as_the_others() {
    let mut plan = at_rate(plan(), 10_000.0);
    plan.engine.threads = 4;
    let (closing, healthy) = (
        SharedServer::new(ServerConfig {
            faults: vec![CountedFault::CloseAfter.at(10)],
            ..ServerConfig::default()
        }),
        server(),
    );
    let outcome = run_with(&plan, |worker| {
        let server = if worker == 0 { &closing } else { &healthy };
        Ok(Sim::new(worker as u64, NetworkConditions::calm(), Box::new(server.peer()) as Box<dyn Peer>))
    });
    assert_eq!(outcome.measurement.status, Status::Partial);
    assert_eq!(outcome.measurement.measured_ns, 100 * MILLISECOND);
    let due: Vec<usize> = schedule(&plan, 100 * MILLISECOND).iter().map(Vec::len).collect();
    assert_accounted(&outcome, due.iter().sum::<usize>() as u64, "four workers");
    let counts = outcome.counts();
    assert_eq!((counts.errors(Fault::Closed), counts.unsent), (1, due[0] as u64 - 10));
}
