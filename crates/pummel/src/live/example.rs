//! A run under way, for tests.

use std::sync::Arc;

use pummel_logic::plan::{Arrivals, Clock, Group, Mix, Phase, Plan, Stop, Work};
use pummel_logic::protocol::{Outcome, Verb};
use pummel_logic::rng;
use pummel_logic::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use pummel_measure::events::MemberFacts;
use pummel_measure::evidence::ServerCounts;
use pummel_measure::evidence::server_stats::ServerInterval;
use pummel_measure::interval::Interval;
use pummel_measure::measurement::{Keep, Measurement};
use pummel_measure::parts::SlicePart;
use pummel_measure::recorder::Sample;
use pummel_report::snapshot::backlog::OpenLoop;
use pummel_report::snapshot::{Identity, PlanFacts, Snapshot, Stage};

/// A plan of open loop at a rate.
pub fn plan_at(rate: f64) -> Plan {
    let group = Group { arrivals: Arrivals::Poisson, rate: Some(rate), ..Group::default() };
    let stop = Stop { time_ns: Some(300 * SECOND), requests: None };
    let work = Work::Mix(Mix::of(&[(Verb::Get, 1.0)]));
    let phase = Phase { name: "measure".to_owned(), work, stop, recorded: true };
    Plan { groups: vec![group], phases: vec![phase], ..Plan::default() }
}

/// The run, as three agents make it against four servers; one of the agents is lost.
pub fn shared() -> Snapshot {
    let (mut snapshot, _) = measuring();
    let member = |number: u64| MemberFacts {
        name: format!("m{number}:5556"),
        clock_error_ns: number * 15 * MICROSECOND,
        threads: 2,
        is_lost: number == 2,
    };
    snapshot.members = (1..=3).map(member).collect();
    if let Some(plan) = &mut snapshot.plan {
        plan.are_asked = true;
        plan.server_names = (1..=4).map(|number| format!("cache{number}:11211")).collect();
    }
    let part = |number: u64| SlicePart {
        completed: 100 + number,
        failed: number / 4,
        p50_ns: Some(50 * MICROSECOND),
        p99_ns: (number != 3).then_some((70 + 10 * number) * MICROSECOND),
        ..SlicePart::default()
    };
    let member_part = |number: u64| SlicePart {
        lag_p99_ns: Some(number * MICROSECOND),
        busy_ns: number * SECOND / 5,
        ..part(number)
    };
    let told = |number: u64| ServerInterval {
        end_ns: SECOND,
        cpu_ns: Some(number * SECOND / 4),
        counts: ServerCounts {
            hits: Some(90 + number),
            misses: Some(10 - number),
            evictions: Some(number - 1),
            ..ServerCounts::default()
        },
        ..ServerInterval::default()
    };
    // The last server told nothing in time.
    snapshot.server_intervals = (1..=4).map(|number| (number < 4).then(|| told(number))).collect();
    if let Some(last) = snapshot.recent.back_mut() {
        let slice = Arc::make_mut(last);
        slice.members = (1..=3).map(member_part).collect();
        slice.servers = (1..=4).map(part).collect();
    }
    snapshot
}

/// A run of five minutes after 42 s, and the time of the monotonic clock.
pub fn measuring() -> (Snapshot, Nanos) {
    let mut measurement = Measurement::new(["clients".to_owned()], Clock::Kernel, SECOND);
    let plan = plan_at(400.0);
    let started = 9_000 * SECOND;
    let mut snapshot = Snapshot {
        identity: Identity::default(),
        plan: Some(PlanFacts {
            servers: vec!["cache1:11211".to_owned()],
            rate: Some(400.0),
            arrivals: "poisson".to_owned(),
            mix: vec![("get".to_owned(), 9.0), ("set".to_owned(), 1.0)],
            measured_ns: Some(300 * SECOND),
            mode: "open",
            open: Some(OpenLoop { connections: 50, slots: Some(50), requests_max: None }),
            ..PlanFacts::default()
        }),
        stage: Stage::Measure,
        started_unix_ns: 1_700_000_000 * SECOND,
        started,
        workers_busy_ns: vec![0],
        keeps_recent: true,
        ..Snapshot::default()
    };
    for index in 0..42u64 {
        let mut interval = Interval::new([[Verb::Get, Verb::Set]]);
        interval.restart(index, index * SECOND);
        interval.end_ns = (index + 1) * SECOND;
        interval.counters.turns.busy_ns = SECOND / 8;
        for request in 0..400u64 {
            let draw = rng::mix(&[index, request]);
            let service = 30 * MICROSECOND
                + draw % (40 * MICROSECOND)
                + if draw.is_multiple_of(97) { 1_500 * MICROSECOND } else { 0 };
            let due = index * SECOND + request * 2_500 * MICROSECOND;
            interval.groups[0].record(&Sample {
                verb: if request % 10 == 0 { Verb::Set } else { Verb::Get },
                outcome: if request % 10 == 0 { Outcome::Stored } else { Outcome::Hit },
                keys: 1,
                hits: u32::from(request % 10 != 0),
                due,
                ready: due,
                sent: due + MICROSECOND,
                arrived: due + MICROSECOND + service,
                read: due + 20 * MICROSECOND + service,
                noreply: false,
            });
        }
        snapshot.add(&plan, &mut interval);
        measurement.connections.asked = 50;
        measurement.measured_ns = interval.end_ns;
        measurement.add(&mut interval, Keep::Figures);
        snapshot.slice(&plan, &measurement);
    }
    snapshot.message(started + 31 * SECOND, "stall of 4.1 ms");
    (snapshot, started + 42 * SECOND)
}

/// A run of 20 s after this many seconds, and the time of the monotonic clock: its server answers half of what it is asked, by 50
/// connections that all wait for it.
pub fn overloaded(seconds: u64) -> (Snapshot, Nanos) {
    let mut plan = plan_at(2_000.0);
    plan.groups[0].clients = 50;
    let mut measurement = Measurement::new(["clients".to_owned()], Clock::Kernel, 60 * SECOND);
    measurement.connections.asked = 50;
    let started = 9_000 * SECOND;
    let mut snapshot = Snapshot {
        plan: Some(PlanFacts {
            servers: vec!["cache1:11211".to_owned()],
            rate: Some(2_000.0),
            arrivals: "poisson".to_owned(),
            mix: vec![("get".to_owned(), 9.0), ("set".to_owned(), 1.0)],
            measured_ns: Some(20 * SECOND),
            mode: "open",
            open: OpenLoop::of(&plan),
            ..PlanFacts::default()
        }),
        stage: Stage::Measure,
        started_unix_ns: 1_700_000_000 * SECOND,
        started,
        workers_busy_ns: vec![0],
        keeps_recent: true,
        ..Snapshot::default()
    };
    for index in 0..seconds {
        let mut interval = Interval::new([[Verb::Get, Verb::Set]]);
        interval.restart(index, index * SECOND);
        interval.end_ns = (index + 1) * SECOND;
        interval.counters.turns.busy_ns = SECOND / 100;
        for request in index * 1_000..(index + 1) * 1_000 {
            let (due, arrived) = (request * MILLISECOND / 2, (request + 1) * MILLISECOND - 1);
            let sent = due.max(arrived.saturating_sub(50 * MILLISECOND));
            let (verb, outcome) = match request % 10 {
                0 => (Verb::Set, Outcome::Stored),
                _ => (Verb::Get, Outcome::Hit),
            };
            interval.groups[0].record(&Sample {
                verb,
                outcome,
                keys: 1,
                hits: u32::from(verb == Verb::Get),
                due,
                ready: sent,
                sent,
                arrived,
                read: arrived,
                noreply: false,
            });
        }
        snapshot.add(&plan, &mut interval);
        measurement.measured_ns = interval.end_ns;
        measurement.add(&mut interval, Keep::Figures);
        snapshot.slice(&plan, &measurement);
    }
    (snapshot, started + seconds * SECOND)
}
