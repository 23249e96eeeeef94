//! Runs that replay a trace while it is read: the due times of its requests, their clients, and their ends.

use std::io::{self, Cursor, Read};
use std::sync::Arc;

use pummel_engine::backend::sim::{NetworkConditions, Sim};
use pummel_engine::run::{Inputs, TraceFiles};
use pummel_logic::plan::{
    Arrivals, DealBy, Depth, Fills, Phase, Plan, Route, Stop, TracePace, TraceReplay, Work,
};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_measure::measurement::Status;
use pummel_measure::reason::Reason;
use pummel_testserver::{CountedFault, ServerConfig};

use crate::lanes::over;
use crate::peer::{Cluster, SharedServer};
use crate::setup::{Outcome, plan, requests, run_with_inputs, time};

/// Files in memory; one without contents cannot be read.
struct InMemory(Vec<Option<Vec<u8>>>);

impl TraceFiles for InMemory {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn name(&self, number: usize) -> String {
        format!("file-{number}")
    }

    fn open(&self, number: usize) -> io::Result<Box<dyn Read + Send>> {
        match &self.0[number] {
            Some(bytes) => Ok(Box::new(Cursor::new(bytes.clone()))),
            None => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}

fn inputs(files: &[&str]) -> Inputs {
    let files = files.iter().map(|text| Some(text.as_bytes().to_vec())).collect();
    Inputs { files: Some(Arc::new(InMemory(files))), ..Inputs::default() }
}

fn replay(pace: TracePace) -> TraceReplay {
    TraceReplay::of(vec!["file".to_owned()], pace, 10_000)
}

const REAL: TracePace = TracePace::Trace { speed: 1.0 };

/// A plan that replays a trace in these phases, which are recorded or not.
fn replaying(replay: &TraceReplay, phases: &[(Stop, bool)], threads: u32) -> Plan {
    let phase = |&(stop, recorded): &(Stop, bool)| Phase {
        name: "replay".to_owned(),
        work: Work::Trace(Box::new(replay.clone())),
        stop,
        recorded,
    };
    let mut plan = Plan { phases: phases.iter().map(phase).collect(), ..plan() };
    plan.engine.threads = threads;
    (plan.timeout_ns, plan.interval_ns) = (SECOND, 10 * SECOND);
    plan.groups[0].clients = 6;
    match replay.pace {
        TracePace::Trace { .. } => {
            (plan.groups[0].arrivals, plan.groups[0].depth) = (Arrivals::Trace, Depth::Unlimited)
        }
        TracePace::Fast => {}
        TracePace::Rate => {
            (plan.groups[0].arrivals, plan.groups[0].rate) = (Arrivals::Constant, Some(1_000.0));
            plan.groups[0].depth = Depth::Unlimited;
        }
    }
    plan
}

const WHOLE: &[(Stop, bool)] = &[(Stop { time_ns: None, requests: None }, true)];

fn run(plan: &Plan, inputs: &Inputs, server: &SharedServer) -> Outcome {
    run_with_inputs(plan, inputs, |worker| {
        Ok(Sim::new(worker as u64, NetworkConditions::calm(), server.peer()))
    })
}

/// 3,000 rows in 30 seconds of the trace, by 17 clients: a store of each key, then reads.
fn twitter() -> String {
    let row = |number: u64| {
        let (second, key, client) = (number / 100, number % 300, number % 17);
        let op = if number < 300 { "set" } else { "get" };
        format!("{second},key-{key},10,{},{client},{op},{}\n", 20 + key, if number < 300 { 600 } else { 0 })
    };
    (0..3_000).map(row).collect()
}

#[test]
fn requests_are_due_to_the_nanosecond_whatever_the_number_of_threads() {
    let spread: Vec<Nanos> = (0..3_000).map(|row| row * SECOND / 100).collect();
    for threads in [1, 3] {
        for (speed, divisor) in [(1.0, 1), (10.0, 10)] {
            let server = SharedServer::new(ServerConfig::default());
            // Simulated workers have clocks of their own: what one stores is there for the others at any time of theirs.
            let by_key = TraceReplay { by: Some(DealBy::Key), ..replay(TracePace::Trace { speed }) };
            let plan = replaying(&by_key, WHOLE, threads);
            let outcome = run(&plan, &inputs(&[&twitter()]), &server);
            assert_eq!(outcome.measurement.status, Status::Complete, "{}", outcome.reason());
            let counts = outcome.counts();
            assert_eq!((counts.completed, counts.hits, counts.misses), (3_000, 2_700, 0));
            let expected: Vec<Nanos> = spread.iter().map(|due| due / divisor).collect();
            assert_eq!(outcome.dues(), expected, "{threads} threads at {speed}");
            let replayed = outcome.measurement.replayed.as_ref().expect("a trace was replayed");
            assert_eq!((replayed.rows, replayed.requests, replayed.is_whole), (3_000, 3_000, true));
            assert_eq!((replayed.late_rows, replayed.covered_ns), (0, 29_990 * MILLISECOND));
            assert!(replayed.keys.abs_diff(300) < 10, "{}", replayed.keys);
        }
    }
}

#[test]
fn a_rate_decides_when_rows_are_due_and_their_order_stays() {
    let server = SharedServer::new(ServerConfig::default());
    let plan = replaying(&TraceReplay { by: Some(DealBy::Key), ..replay(TracePace::Rate) }, WHOLE, 2);
    let outcome = run(&plan, &inputs(&[&twitter()]), &server);
    let expected: Vec<Nanos> = (0..3_000).map(|row| row * MILLISECOND).collect();
    assert_eq!(outcome.dues(), expected);
    assert_eq!(outcome.counts().hits, 2_700);
}

#[test]
fn without_a_pace_clients_ask_as_soon_as_they_are_answered_and_all_rows_are_asked() {
    for by in [DealBy::Client, DealBy::Key, DealBy::Row] {
        let server = SharedServer::new(ServerConfig::default());
        let fast = TraceReplay { by: Some(by), ..replay(TracePace::Fast) };
        let text = twitter();
        let (first, second) = text.split_at(text.find("\n15,").expect("a row of second 15") + 1);
        let outcome = run(&replaying(&fast, WHOLE, 2), &inputs(&[first, second]), &server);
        assert_eq!(outcome.counts().completed, 3_000, "{by:?}: {}", outcome.reason());
        if by == DealBy::Key {
            assert_eq!(outcome.counts().misses, 0, "the store of a key is before its reads");
        }
    }
}

#[test]
fn a_warm_up_takes_the_first_rows_and_the_measurement_the_others() {
    for first in [requests(300), time(3 * SECOND)] {
        let server = SharedServer::new(ServerConfig::default());
        let plan = replaying(&replay(REAL), &[(first, false), (Stop::default(), true)], 2);
        let outcome = run(&plan, &inputs(&[&twitter()]), &server);
        assert_eq!(outcome.counts().completed, 2_700, "{first:?}: {}", outcome.reason());
        assert_eq!(outcome.dues()[..2], [0, 10 * MILLISECOND], "the measurement begins with its first row");
    }
    let server = SharedServer::new(ServerConfig::default());
    let plan = replaying(&replay(REAL), &[(time(10 * SECOND), true)], 1);
    let outcome = run(&plan, &inputs(&[&twitter()]), &server);
    assert_eq!((outcome.counts().completed, outcome.measurement.status), (1_000, Status::Complete));
}

#[test]
fn a_warm_up_that_takes_the_whole_trace_is_why_nothing_was_measured() {
    for first in [requests(3_000), time(40 * SECOND)] {
        let server = SharedServer::new(ServerConfig::default());
        let plan = replaying(&replay(REAL), &[(first, false), (Stop::default(), true)], 2);
        let outcome = run(&plan, &inputs(&[&twitter()]), &server);
        assert_eq!(outcome.measurement.status, Status::Partial);
        assert_eq!(outcome.measurement.reason, Some(Reason::TraceTaken { rows: 3_000 }));
    }
}

#[test]
fn misses_of_the_replay_fill_where_that_is_asked_for() {
    let text = "time,key,op,size,client\n0,a,get,5,1\n1,a,get,5,1\n2,b,get,,1\n3,b,get,,1\n";
    let server = SharedServer::new(ServerConfig::default());
    let own = TraceReplay { fills: Fills::Own, fill_delay_ns: 100 * MILLISECOND, ..replay(REAL) };
    let outcome = run(&replaying(&own, WHOLE, 1), &inputs(&[text]), &server);
    let of = |verb: Verb| outcome.rows.iter().filter(|row| row.verb == verb).count();
    assert_eq!((of(Verb::Get), of(Verb::Set)), (4, 2));
    assert_eq!((outcome.counts().hits, outcome.counts().misses), (2, 2));
    assert_eq!(server.lock().store().len(), 2);
}

#[test]
fn every_operation_of_a_trace_is_asked_and_keys_keep_their_names() {
    let ops = [
        "set", "get", "gets", "incr", "decr", "append", "prepend", "replace", "cas", "add", "touch",
        "delete", "add",
    ];
    let rows = ops.iter().enumerate().map(|(second, op)| format!("{second},{op},the-key,3,77\n"));
    let text: String = std::iter::once("time,op,key,size,ttl\n".to_owned()).chain(rows).collect();
    let server = SharedServer::new(ServerConfig::default());
    let outcome = run(&replaying(&replay(REAL), WHOLE, 1), &inputs(&[&text]), &server);
    let counts = outcome.counts();
    // A cas is a gets and a cas.
    assert_eq!((counts.completed, counts.failed()), (14, 0), "{:?}", outcome.measurement.messages);
    assert_eq!(outcome.rows.iter().filter(|row| row.verb == Verb::Cas).count(), 1);
    assert_eq!(server.lock().store().len(), 1);
}

#[test]
fn a_trace_that_cannot_be_read_makes_the_run_partial_and_says_why() {
    let server = SharedServer::new(ServerConfig::default());
    let files = InMemory(vec![Some(twitter().into_bytes()), None]);
    let unread = Inputs { files: Some(Arc::new(files)), ..Inputs::default() };
    let outcome = run(&replaying(&replay(TracePace::Fast), WHOLE, 2), &unread, &server);
    assert_eq!(outcome.measurement.status, Status::Partial);
    assert!(outcome.reason().contains("cannot read 'file-1': "), "{}", outcome.reason());
    assert_eq!(outcome.counts().completed, 3_000, "what was read was asked");
    let outcome = run(&replaying(&replay(TracePace::Fast), WHOLE, 1), &inputs(&["what is\nthis\n"]), &server);
    assert!(outcome.reason().contains("--trace-format"), "{}", outcome.reason());
    let wrong = TraceReplay { format: Some("twitter".to_owned()), ..replay(TracePace::Fast) };
    let outcome = run(&replaying(&wrong, WHOLE, 1), &inputs(&["what is\nthis\n"]), &server);
    assert!(outcome.reason().contains("no request"), "{}", outcome.reason());
}

#[test]
fn a_trace_is_replayed_again_and_again_until_its_time_is_over() {
    let server = SharedServer::new(ServerConfig::default());
    let endless = TraceReplay { passes: 0, ..replay(REAL) };
    let outcome = run(&replaying(&endless, &[(time(70 * SECOND), true)], 2), &inputs(&[&twitter()]), &server);
    assert_eq!(
        (outcome.counts().completed, outcome.measurement.status),
        (7_000, Status::Complete),
        "{}",
        outcome.reason()
    );
}

#[test]
fn clients_whose_server_is_gone_leave_their_rows_unsent_and_the_others_go_on() {
    // The server does nothing for longer than a request may take.
    let server = SharedServer::new(ServerConfig::default()).freezing(5 * SECOND, 25 * SECOND);
    let outcome = run(&replaying(&replay(REAL), WHOLE, 2), &inputs(&[&twitter()]), &server);
    let counts = outcome.counts();
    assert!(counts.failed() > 0, "requests of the frozen time get no answer");
    assert_eq!(counts.requests(), 3_000, "every row is accounted for: {}", outcome.reason());
}

#[test]
fn rows_of_clients_whose_server_is_gone_are_unsent_where_they_were_due_in_the_phase() {
    // Every 20th request closes its connection, which is not opened again.
    let closing = ServerConfig { faults: vec![CountedFault::CloseAfter.at(20)], ..ServerConfig::default() };
    let by_key = TraceReplay { by: Some(DealBy::Key), ..replay(REAL) };
    let servers = [ServerConfig::default(), closing.clone()].map(SharedServer::new);
    let plan = over(&servers, Route::All, replaying(&by_key, &[(time(10 * SECOND), true)], 1));
    let outcome = run_with_inputs(&plan, &inputs(&[&twitter()]), |worker| {
        Ok(Sim::new(worker as u64, NetworkConditions::calm(), Cluster::new(&servers)))
    });
    let (counts, length_ns) = (outcome.counts(), outcome.measurement.measured_ns);
    assert!((9 * SECOND..=10 * SECOND).contains(&length_ns), "half of the clients go on: {length_ns}");
    assert_eq!(counts.requests(), length_ns.div_ceil(10 * MILLISECOND), "{counts:?}");
    assert!(counts.completed > 300 && counts.failed() > 0 && counts.unsent > 100, "{counts:?}");
    // The phase is over where no client is left, and so are its rows.
    let plan = replaying(&by_key, &[(time(20 * SECOND), true)], 1);
    let outcome = run(&plan, &inputs(&[&twitter()]), &SharedServer::new(closing));
    let (counts, length_ns) = (outcome.counts(), outcome.measurement.measured_ns);
    assert!(length_ns < 10 * SECOND, "{length_ns}");
    assert_eq!(counts.requests(), length_ns.div_ceil(10 * MILLISECOND), "{counts:?}");
}

#[test]
fn a_client_whose_server_is_gone_leaves_a_row_of_a_fast_replay_unsent_for_each_of_its_slots() {
    for depth in [1, 4] {
        let closing =
            ServerConfig { faults: vec![CountedFault::CloseAfter.at(20)], ..ServerConfig::default() };
        let servers = [ServerConfig::default(), closing].map(SharedServer::new);
        let endless = TraceReplay { passes: 0, by: Some(DealBy::Key), ..replay(TracePace::Fast) };
        let end = time(200 * MILLISECOND);
        let mut plan = over(&servers, Route::All, replaying(&endless, &[(end, true)], 1));
        plan.groups[0].depth = Depth::Limit(depth);
        let outcome = run_with_inputs(&plan, &inputs(&[&twitter()]), |worker| {
            Ok(Sim::new(worker as u64, NetworkConditions::calm(), Cluster::new(&servers)))
        });
        assert!(outcome.reason().starts_with("ConnectionsLost { asked: 6, lost: 3,"), "{}", outcome.reason());
        let counts = outcome.counts();
        assert!(counts.completed > 1_000, "the others go on: {counts:?}");
        // Rows may wait for the other clients too when the time is over.
        let slots = 3 * u64::from(depth);
        assert!((slots..=2 * slots).contains(&counts.unsent), "{counts:?}");
    }
}

#[test]
fn a_run_that_ends_before_its_trace_accounts_for_what_its_clients_asked() {
    let bad = format!("{}\nno row\n{}", "0,key,3,1,1,get,0", twitter());
    for pace in [REAL, TracePace::Fast] {
        let server = SharedServer::new(ServerConfig::default());
        let (passes, end) = if pace == REAL { (1, 10 * SECOND) } else { (0, MILLISECOND) };
        let long = TraceReplay { passes, format: Some("twitter".to_owned()), ..replay(pace) };
        let end = time(end);
        let outcome = run(&replaying(&long, &[(end, true)], 2), &inputs(&[&bad]), &server);
        let replayed = outcome.measurement.replayed.as_ref().expect("a trace was replayed");
        let asked = outcome.counts().requests();
        assert!(asked > 0 && replayed.requests.abs_diff(asked) <= 6, "{} and {asked}", replayed.requests);
        assert!(replayed.busiest_client_requests < asked && !replayed.is_whole, "{pace:?}");
        assert_eq!(replayed.notices.len(), 1, "what is left out is told once: {:?}", replayed.notices);
        if pace == REAL {
            assert_eq!(replayed.bad_lines, 1);
            assert!(replayed.covered_ns < 10 * SECOND, "{}", replayed.covered_ns);
        }
    }
}

#[test]
fn a_row_that_stands_for_billions_of_requests_does_not_outlast_its_run() {
    let server = SharedServer::new(ServerConfig::default());
    let text = "time,key,op,count\n0.5,a,get,4294967295\n";
    let outcome = run(&replaying(&replay(REAL), &[(requests(100), true)], 1), &inputs(&[text]), &server);
    let replayed = outcome.measurement.replayed.as_ref().expect("a trace was replayed");
    assert_eq!((replayed.rows, replayed.kept, replayed.requests), (1, 1, 100));
    assert_eq!((replayed.lost, replayed.uncounted), (0, u64::from(u32::MAX) - 262_144));
    assert_eq!((outcome.counts().completed, outcome.measurement.status), (100, Status::Complete));
}
