//! Nothing is allocated for a request: a measured phase that is three times as long allocates no more often.
//!
//! A program of its own, because what counts allocations stands in for the allocator of the whole program.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;

use pummel_engine::run::{Watch, run};
use pummel_logic::measure::measurement::Status;
use pummel_logic::plan::{Arrivals, Backend, Depth, Engine, Group, Mix, Phase, Plan, Stop, Work};
use pummel_logic::time::SECOND;
use pummel_logic::wire::Verb;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<std::alloc::System> = &INSTRUMENTED_SYSTEM;

const CLIENTS: u32 = 4;

/// A server that answers every line with the same item, and allocates nothing while it does. Returns its address.
fn server() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            thread::spawn(move || {
                let (mut block, mut replies) = ([0; 8192], Vec::with_capacity(64 * 1024));
                while let Ok(len @ 1..) = stream.read(&mut block) {
                    replies.clear();
                    for _ in block[..len].iter().filter(|byte| **byte == b'\n') {
                        replies.extend_from_slice(b"VALUE some_key 0 5\r\nvalue\r\nEND\r\n");
                    }
                    if stream.write_all(&replies).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// Gets of one server: so many at so many at a time, and so many a second in open loop.
fn plan(server: &str, requests: u64, depth: u32, rate: Option<f64>) -> Plan {
    Plan {
        servers: vec![server.to_string()],
        seed: 1,
        // One slice: what a slice costs is not paid for each request.
        interval_ns: 3_600 * SECOND,
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

/// How often a whole run allocates.
fn allocations(server: &str, requests: u64, depth: u32, rate: Option<f64>) -> usize {
    struct Nobody;
    impl Watch for Nobody {}
    let plan = plan(server, requests, depth, rate);
    let region = Region::new(ALLOCATOR);
    let measurement = run(&plan, &mut Nobody, &|| false).expect("the run begins");
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
    let server = server();
    for (depth, rate) in [(1, None), (16, None), (1, Some(40_000.0)), (16, Some(40_000.0))] {
        allocations(&server, 2_000, depth, rate);
        let short = allocations(&server, 10_000, depth, rate);
        let long = allocations(&server, 30_000, depth, rate);
        assert!(
            long <= short + NOISE,
            "20,000 more requests at depth {depth}, rate {rate:?}: {short} allocations, then {long}"
        );
    }
}
