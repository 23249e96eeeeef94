//! A request allocates no memory: a measured phase that is much longer allocates no more often. A trace takes no more memory the
//! longer it is replayed.
//!
//! The test is a program of its own, because the counting allocator is that of the whole program.

use std::io::{self, Cursor, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use pummel_engine::run::{Inputs, Run, TraceFiles, Watch};
use pummel_logic::plan::{
    Arrivals, Backend, ChurningClients, Depth, Engine, Group, Mix, Phase, Plan, Spawns, Stop, TracePace,
    TraceReplay, Work,
};
use pummel_logic::protocol::Verb;
use pummel_logic::time::SECOND;
use pummel_measure::measurement::Status;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

/// A watch of a run whose progress these tests do not follow.
struct Unwatched;

impl Watch for Unwatched {}

#[global_allocator]
static ALLOCATOR: &StatsAlloc<std::alloc::System> = &INSTRUMENTED_SYSTEM;

const CLIENTS: u32 = 4;

/// Room for the answers to all lines of one read.
const REPLIES_BYTES: usize = 64 * 1024;

/// A server that answers every line with the same item, and allocates nothing while it does; several connections at one
/// time, each on a thread of its own, or one after the other. Returns its address.
fn server(at_one_time: bool) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    thread::spawn(move || {
        let mut replies = Vec::with_capacity(REPLIES_BYTES);
        loop {
            let (stream, _) = listener.accept().expect("a connection");
            if at_one_time {
                thread::spawn(move || answer(stream, &mut Vec::with_capacity(REPLIES_BYTES)));
            } else {
                answer(stream, &mut replies);
            }
        }
    });
    address
}

/// Answers to one connection until it is closed.
fn answer(mut stream: TcpStream, replies: &mut Vec<u8>) {
    let mut block = [0; 2048];
    while let Ok(len @ 1..) = stream.read(&mut block) {
        replies.clear();
        for _ in block[..len].iter().filter(|byte| **byte == b'\n') {
            replies.extend_from_slice(b"VALUE some_key 0 5\r\nvalue\r\nEND\r\n");
        }
        if stream.write_all(replies).is_err() {
            return;
        }
    }
}

/// A plan of gets from one server: `requests` of them, `depth` at a time, and in open loop at `rate` per second.
fn plan(server: &str, requests: u64, depth: u32, rate: Option<f64>) -> Plan {
    Plan {
        servers: vec![server.to_string()],
        seed: 1,
        // One slice: what a slice costs is not paid for each request. The time is prime, so that workers hand over no parts of it
        // either, of which there are more the slower the machine is.
        interval_ns: 3_599_999_999_941,
        timeout_ns: 60 * SECOND,
        engine: Engine { backend: Backend::Epoll, ..Engine::default() },
        groups: vec![Group {
            clients: CLIENTS,
            depth: Depth::Limit(depth),
            arrivals: if rate.is_some() { Arrivals::Poisson } else { Arrivals::Closed },
            rate,
            ..Group::default()
        }],
        phases: vec![Phase {
            name: "measure".to_string(),
            work: Work::Mix(Mix::of(&[(Verb::Get, 1.0)])),
            stop: Stop { time_ns: None, requests: Some(requests) },
            recorded: true,
        }],
        ..Plan::default()
    }
}

/// Number of allocations in a whole run.
fn allocations(plan: &Plan, requests: u64) -> usize {
    let plan = &plan.clone().validate().expect("the plan can be run");
    let region = Region::new(ALLOCATOR);
    let measurement = Run::new(plan).start(&mut Unwatched, &|| false).expect("the run begins");
    let change = region.change();
    assert_eq!(measurement.status, Status::Complete, "{:?}", measurement.reason);
    assert_eq!(measurement.ops().all().counts.completed, requests);
    change.allocations + change.reallocations
}

/// Allocations that are not for requests differ from run to run: threads that start, lists that grow to what happened to
/// come at one time, a look at the clock of the watching thread. They are far fewer than the requests.
const NOISE: usize = 200;

#[test]
fn requests_allocate_nothing() {
    let server = server(true);
    let rate = Some(40_000.0);
    for (depth, rate, threads) in [
        (1, None, 1),
        (16, None, 1),
        (200, None, 1),
        (16, None, 3),
        (1, rate, 1),
        (16, rate, 1),
        (200, rate, 1),
        (16, rate, 3),
    ] {
        // Something that happens once in some hundred requests is seen only among many; a rate takes its time.
        let more = if rate.is_some() { 20_000 } else { 150_000 };
        assert_flat(&format!("depth {depth}, rate {rate:?}, {threads} threads"), more, |requests| {
            let mut plan = plan(&server, requests, depth, rate);
            plan.engine.threads = threads;
            plan
        });
    }
}

#[test]
fn requests_of_clients_that_come_and_go_allocate_nothing() {
    let server = server(false);
    for depth in [1, 4] {
        assert_flat(&format!("clients that come and go, depth {depth}"), 50_000, |requests| {
            let mut plan = plan(&server, requests, depth, None);
            plan.groups[0].churn =
                Some(ChurningClients { spawns: Spawns::Closed, calls: 20, sequence: None });
            plan
        });
    }
}

/// Lock for one test at a time, since the allocations of the whole program are counted.
static ALONE: Mutex<()> = Mutex::new(());

/// Asserts that a plan with `more` additional requests allocates no more often.
fn assert_flat(what: &str, more: u64, plan: impl Fn(u64) -> Plan) {
    let _alone = ALONE.lock().unwrap_or_else(|broken| broken.into_inner());
    let of = |requests| allocations(&plan(requests), requests);
    of(2_000);
    let (short, long) = (of(10_000), of(10_000 + more));
    assert!(long <= short + NOISE, "{more} more requests, {what}: {short} allocations, then {long}");
}

/// A trace of gets that notes the memory of the program whenever it is opened.
struct Noting {
    text: Vec<u8>,
    live_bytes: Mutex<Vec<usize>>,
}

impl TraceFiles for Noting {
    fn count(&self) -> usize {
        1
    }

    fn name(&self, _number: usize) -> String {
        "gets".to_owned()
    }

    fn open(&self, _number: usize) -> io::Result<Box<dyn Read + Send>> {
        let stats = ALLOCATOR.stats();
        self.live_bytes
            .lock()
            .expect("no other holder")
            .push(stats.bytes_allocated - stats.bytes_deallocated);
        Ok(Box::new(Cursor::new(self.text.clone())))
    }
}

/// Memory that may be more in a late pass of a replay than in an early one: what is on its way between threads.
const ON_THE_WAY_BYTES: usize = 1 << 20;

#[test]
fn a_trace_takes_no_more_memory_the_longer_it_is_replayed() {
    const PASSES: u32 = 30;
    const ROWS: u32 = 6_000;
    let _alone = ALONE.lock().unwrap_or_else(|broken| broken.into_inner());
    let row = |number: u32| format!("{},key-{number},get,100,{}\n", number / 1_000, number % 97);
    let text: String =
        std::iter::once("time,key,op,size,client\n".to_owned()).chain((0..ROWS).map(row)).collect();
    let files = Arc::new(Noting { text: text.into_bytes(), live_bytes: Mutex::default() });
    // Keys of each pass are new ones, so that none is kept for another pass.
    let replay = TraceReplay {
        passes: PASSES,
        fresh_passes: true,
        ..TraceReplay::of(vec!["gets".to_owned()], TracePace::Fast, 1_000)
    };
    let mut plan = plan(&server(true).to_string(), 1, 16, None);
    plan.phases[0].work = Work::Trace(Box::new(replay));
    plan.phases[0].stop = Stop::default();
    let plan = &plan.validate().expect("the plan can be run");
    let inputs = Inputs { files: Some(files.clone()), ..Inputs::default() };
    let measurement =
        Run::new(plan).with_inputs(&inputs).start(&mut Unwatched, &|| false).expect("the run begins");
    assert_eq!(
        measurement.ops().all().counts.completed,
        u64::from(PASSES * ROWS),
        "{:?}",
        measurement.reason
    );
    let live_bytes = files.live_bytes.lock().expect("the reader has ended");
    let early = live_bytes[3..8].iter().max().expect("five passes");
    let late = live_bytes[25..].iter().min().expect("five passes");
    assert!(*late <= early + ON_THE_WAY_BYTES, "{live_bytes:?}");
}
