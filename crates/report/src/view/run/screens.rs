//! Screens of runs, each at 80 and at 60 columns, beside the files that hold what they are to be.
//!
//! With `PUMMEL_WRITE_SCREENS` set to the folder of the files the test writes them anew, for a reader to look at.

use std::path::Path;

use pummel_logic::plan::{Arrivals, FailOn, Goal, Load, Work};
use pummel_logic::protocol::{Fault, Outcome};
use pummel_logic::time::{MICROSECOND, MILLISECOND, SECOND};
use pummel_measure::evidence::Evidence;
use pummel_measure::limit::{Cause, Clients, SharedMachine, Side, Standstill, ThreadTime};
use pummel_measure::measurement::{Keep, Status};
use pummel_measure::outcome::RunOutcome;
use pummel_measure::recorder::Sample;

use super::{Wanted, view};
use crate::VERSION;
use crate::document::{
    AgentsResult, ChangePlace, ChangeResult, ChangedFigure, Document, LagPartResult, LossResult,
    MemberResult, OpResult, ReliableFigures, ServerRequestsResult, ServerTimes, StopResult,
};
use crate::example::{self, Run, evidence, sample};
use crate::screen::{Paper, draw};

/// A run, and the file that holds its screens.
struct Scene {
    file: &'static str,
    expected: &'static str,
    document: fn() -> Document,
}

macro_rules! scene {
    ($name:ident) => {
        Scene {
            file: concat!(stringify!($name), ".txt"),
            expected: include_str!(concat!("screens/", stringify!($name), ".txt")),
            document: $name,
        }
    };
}

const SCENES: [Scene; 18] = [
    scene!(open_loop),
    scene!(closed_loop),
    scene!(overload),
    scene!(timeouts),
    scene!(errors),
    scene!(stopped),
    scene!(shared_machine),
    scene!(unsteady),
    scene!(interrupted),
    scene!(load),
    scene!(four_servers),
    scene!(cluster),
    scene!(redirects),
    scene!(outage),
    scene!(many_shards),
    scene!(agent_lost),
    scene!(goals_and_faults),
    scene!(without_effect),
];

/// An open loop whose requests were all answered, with intervals, of a server whose statistics were read.
fn open_loop() -> Document {
    let mut run = Run::new(Keep::Figures).with_windows();
    run.measurement.evidence = Some(without_evictions());
    run.document(Clone::clone)
}

/// What was seen of a server that evicted nothing.
fn without_evictions() -> Evidence {
    let mut seen = evidence();
    let reading = seen.servers[0].reading.as_mut().expect("it was read");
    reading.counts.evictions = Some(0);
    seen
}

fn with_cause(document: &mut Document, limit: &str, cause: Cause) {
    let verdict = document.verdict.as_mut().expect("it was judged");
    limit.clone_into(&mut verdict.limit);
    verdict.cause = Some(cause);
}

/// A closed loop that fills the one thread of its server.
fn closed_loop() -> Document {
    let mut document = open_loop();
    let group = &mut document.plan.groups[0];
    (group.arrivals, group.rate) = (Arrivals::Closed, None);
    document.totals.rate_ci = Some([988.2, 1_011.7]);
    let trust = document.trust.as_mut().expect("it was judged");
    trust.kind = ReliableFigures::FullClosedLoop;
    let busiest = ThreadTime { cpu: 0.97, waited: None };
    let (threads, client_threads, client_busy) = (Some(1), 1, 0.79);
    let cause =
        Cause::ServerCpu { server: None, threads, busiest, others: None, client_threads, client_busy };
    with_cause(&mut document, "server", cause);
    document
}

/// Twice the rate that the server can do.
fn overload() -> Document {
    let mut document = open_loop();
    document.plan.groups[0].rate = Some(2_000.0);
    document.outcome = RunOutcome::Overloaded;
    let totals = &mut document.totals;
    (totals.unsent, totals.unfinished, totals.requests) = (1_990, 10, 4_000);
    let full = Some(Clients { connections: 10, depth: Some(1), batch: None, are_mean: false });
    let cause = Cause::Overload { asked: 2_000.0, answered: 1_000.0, backlog: 2_000, full };
    with_cause(&mut document, "server", cause);
    document
}

/// A run of which most requests got no reply in time.
fn timeouts() -> Document {
    let mut run = Run::new(Keep::Figures);
    run.interval(2, Keep::Figures, |interval| {
        let outcome = Outcome::Error(Fault::Timeout);
        (0..200).for_each(|i| interval.groups[0].record(&Sample { outcome, ..sample(i) }));
        let outcome = Outcome::Error(Fault::Abandoned);
        (0..3_000).for_each(|i| interval.groups[0].record(&Sample { outcome, ..sample(i) }));
    });
    (run.measurement.connections.lost, run.measurement.connections.reconnected) = (200, 200);
    run.document(Clone::clone)
}

/// A run of which a quarter of the requests were errors.
fn errors() -> Document {
    let mut run = Run::new(Keep::Figures);
    run.interval(2, Keep::Figures, |interval| {
        let outcome = Outcome::Error(Fault::Server);
        (0..700).for_each(|i| interval.groups[0].record(&Sample { outcome, ..sample(i) }));
    });
    run.measurement.message(b"WRONGTYPE Operation against a key holding the wrong kind of value", 700);
    run.document(Clone::clone)
}

/// A server that stood still for almost two seconds.
fn stopped() -> Document {
    let mut document = open_loop();
    document.stops = vec![StopResult { from_s: 0.1, to_s: 1.9, lasted: false }];
    let (from_ns, to_ns) = (SECOND / 10, 19 * SECOND / 10);
    let standstills = vec![Standstill { from_ns, to_ns, lasted: false }];
    let (timeout_ns, lag_p99_ns) = (SECOND, 3 * MICROSECOND);
    let cause = Cause::Unanswered { share: 0.05, standstills, overload: None, timeout_ns, lag_p99_ns };
    with_cause(&mut document, "server", cause);
    document
}

/// A closed loop of server and client on the same CPUs, whose times are mostly lag.
fn shared_machine() -> Document {
    let mut document = closed_loop();
    let trust = document.trust.as_mut().expect("it was judged");
    (trust.ok, trust.kind) = (false, ReliableFigures::None);
    trust.mostly_lag = vec!["p50".to_owned(), "p90".to_owned()];
    let figure = "p50".to_owned();
    trust.doubtful = vec![LagPartResult { figure, share: 0.95, lag_us: 59.4, response_us: 62.6 }];
    trust.lag_share.p50 = Some(0.95);
    let machine = SharedMachine {
        cpus: 2,
        is_whole: true,
        busy: 0.88,
        client_cpus: 0.74,
        server_cpus: 0.95,
        software: Some("memcached".to_owned()),
        both_waited: true,
    };
    let (waiting, cpus, machine) = (Side::Client, vec![0, 1], Some(machine));
    let cause = Cause::SharedCpu { waiting, agent: None, server: None, cpus, share: 0.4, machine };
    with_cause(&mut document, "generator", cause);
    document
}

/// A run whose median changed along the way.
fn unsteady() -> Document {
    let mut document = open_loop();
    document.steady = Some(false);
    document.change = Some(ChangeResult {
        figure: ChangedFigure::P50,
        kind: ChangePlace::Step,
        at_s: 0.8,
        before: Some(71.9),
        after: Some(55.7),
        says: String::new(),
    });
    document.certainty = None;
    document
}

/// A run that its user ended.
fn interrupted() -> Document {
    let mut document = open_loop();
    document.plan.phases[0].stop.time_ns = Some(10 * SECOND);
    document.status = Status::Interrupted;
    document
}

/// Records that were stored, and nothing else.
fn load() -> Document {
    let mut run = Run::new(Keep::Figures);
    run.plan.phases[0].work = Work::Load(Load::default());
    (run.plan.groups[0].arrivals, run.plan.groups[0].rate) = (Arrivals::Closed, None);
    run.measurement.evidence = Some(without_evictions());
    run.document(Clone::clone)
}

/// Four servers, one of which has most of the requests and long times.
fn four_servers() -> Document {
    let mut document = open_loop();
    let of = |place: usize, completed: u64, us: f64| ServerRequestsResult {
        address: format!("10.0.0.{place}:11211"),
        completed,
        rate: completed as f64 / 2.0,
        service_us: ServerTimes {
            p50: Some(us),
            p90: Some(2.0 * us),
            p99: Some(4.0 * us),
            ..ServerTimes::default()
        },
        ..ServerRequestsResult::default()
    };
    document.servers = vec![of(1, 400, 60.0), of(2, 380, 61.0), of(3, 900, 400.0), of(4, 320, 59.0)];
    document.plan.servers = document.servers.iter().map(|server| server.address.clone()).collect();
    document
}

/// A cluster that stayed as it was.
fn cluster() -> Document {
    Run::new(Keep::Figures).with_windows().on_cluster(3).document(Clone::clone)
}

/// A cluster whose slots moved to a node that joined.
fn redirects() -> Document {
    let mut run = Run::new(Keep::Figures).with_windows().on_cluster(3);
    let redirects = &mut run.measurement.counters.redirects;
    (redirects.moved, redirects.ask, redirects.followed) = (412, 37, 449);
    let seen = run.measurement.cluster.as_mut().expect("it is a cluster");
    seen.nodes[0].slots -= 1_000;
    seen.nodes[3].slots = 1_000;
    run.document(Clone::clone)
}

/// A closed loop on a cluster that lost a master, which made the others say that the cluster is down.
fn outage() -> Document {
    let mut run = Run::new(Keep::Figures).with_windows().on_cluster(3);
    (run.plan.groups[0].arrivals, run.plan.groups[0].rate) = (Arrivals::Closed, None);
    let redirects = &mut run.measurement.counters.redirects;
    (redirects.moved, redirects.clusterdown, redirects.followed) = (61, 880, 700);
    (redirects.repeated, redirects.given_up) = (8, 241);
    let hops = run.measurement.side_times.hops.get_or_insert_default();
    (0..700).for_each(|hop| hops.record(hop * MILLISECOND));
    let seen = run.measurement.cluster.as_mut().expect("it is a cluster");
    for (shard, lost) in seen.shards.iter_mut().zip([3_098, 90, 80]) {
        shard.outages.push(example::outage(10, lost));
    }
    seen.refreshes_failed = 2;
    run.document(Clone::clone)
}

/// A cluster of a hundred shards, ten of which had an outage.
fn many_shards() -> Document {
    let mut run = Run::new(Keep::Figures).with_windows().on_cluster(100);
    let seen = run.measurement.cluster.as_mut().expect("it is a cluster");
    for (place, shard) in seen.shards.iter_mut().enumerate().step_by(10) {
        shard.outages.push(example::outage(place as u64, 1_000 + place as u64));
    }
    run.document(Clone::clone)
}

/// Three agents, one of which was lost.
fn agent_lost() -> Document {
    let mut document = open_loop();
    let member = |place: u32| MemberResult {
        name: format!("10.0.1.{place}:5556"),
        clients: 10,
        requests: 600,
        completed: 600,
        ..MemberResult::default()
    };
    let mut members: Vec<MemberResult> = (1..=3).map(member).collect();
    let why = "it said nothing for 10 s".to_owned();
    members[1].lost = Some(LossResult { at_s: Some(1.2), why, ..LossResult::default() });
    document.agents = Some(AgentsResult { lost: 1, members, ..AgentsResult::default() });
    document.status = Status::Partial;
    document.reason = Some("1 of 3 agents was lost after 1.2 s".to_owned());
    document
}

/// Goals of which one was missed, and faults on which the run fails.
fn goals_and_faults() -> Document {
    let mut run = Run::new(Keep::Figures).with_windows();
    run.plan.goals = vec![
        Goal { quantile: 0.5, limit_ns: 10 * MILLISECOND },
        Goal { quantile: 0.99, limit_ns: 50 * MICROSECOND },
    ];
    run.plan.fail_on = vec![FailOn::Errors, FailOn::Unsteady];
    run.document(Clone::clone)
}

/// Adds of which all found their keys, and deletes of which some found none.
fn without_effect() -> Document {
    let mut document = open_loop();
    let set = document.ops.get("set").expect("a tenth of the requests").clone();
    let with = |outcomes: [(&'static str, u64); 2]| OpResult {
        outcomes: outcomes.into_iter().collect(),
        ..set.clone()
    };
    let (delete, add) =
        (with([("deleted", 180), ("not_found", 20)]), with([("stored", 0), ("not_stored", 200)]));
    document.ops = [("delete", delete), ("add", add)].into_iter().collect();
    document.plan.fail_on = vec![FailOn::Outcomes(50_000)];
    document
}

#[test]
fn every_scene_has_its_screens() {
    let folder = std::env::var_os("PUMMEL_WRITE_SCREENS");
    let mut differ = Vec::new();
    for Scene { file, expected, document } in &SCENES {
        let view = view(&document(), Wanted::Screen);
        let [wide, narrow] = [80, 60].map(|width| draw(&view, Paper::of_width(width)));
        let screens = format!("{wide}\n--- 60 columns\n\n{narrow}").replace(VERSION, "VERSION");
        if let Some(folder) = &folder {
            std::fs::write(Path::new(folder).join(file), &screens).expect("the folder can be written");
        }
        if screens != *expected {
            differ.push(format!("{file}:\n{screens}"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
