//! Nothing is allocated for a request: a measured phase that is three times as long allocates no more often.
//!
//! A program of its own, because what counts allocations stands in for the allocator of the whole program.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;

use pummel_engine::run::{Watch, run};
use pummel_logic::dist::Dist;
use pummel_logic::measure::measurement::Status;
use pummel_logic::plan::{
    Arrivals, Backend, Clock, Data, Depth, Engine, Group, Manner, Mix, Phase, Plan, Protocol, Route, SCHEMA,
    Socket, Stop, Style, Wait, Work,
};
use pummel_logic::time::SECOND;
use pummel_logic::wire::{MetaAsk, Verb};
use pummel_logic::workload::popularity::Popularity;
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
    let mix = Mix {
        ops: vec![(Verb::Get, 1.0)],
        popularity: Popularity::Uniform,
        multiget: 1,
        read_through_ns: None,
        noreply: false,
        multiset: 1,
        meta: MetaAsk::default(),
    };
    let (engine, socket) = (
        Engine {
            threads: 1,
            cpus: Vec::new(),
            backend: Backend::Epoll,
            wait: Wait::Auto,
            clock: Clock::Kernel,
        },
        Socket { nodelay: true, linger_s: None, send_buffer: None, recv_buffer: None, source: Vec::new() },
    );
    Plan {
        schema: SCHEMA,
        servers: vec![server.to_string()],
        route: Route::All,
        protocol: Protocol::Text,
        transport: pummel_logic::plan::Transport::Stream,
        seed: 1,
        // One slice: what a slice costs is not paid for each request.
        interval_ns: 3_600 * SECOND,
        timeout_ns: 60 * SECOND,
        reconnect: false,
        verify: 0.0,
        goals: Vec::new(),
        engine,
        socket,
        login: None,
        tls: None,
        database: 0,
        command: None,
        data: Data {
            records: 10_000,
            seed: 0,
            key_prefix: String::new(),
            key_size: Dist::Fixed(30.0),
            value_size: Dist::Fixed(200.0),
            expiry_s: Dist::Fixed(0.0),
            style: Style::default(),
        },
        groups: vec![Group {
            name: "clients".to_string(),
            clients: CLIENTS,
            depth: Depth::Limit(depth),
            arrivals: if rate.is_some() { Arrivals::Poisson } else { Arrivals::Closed },
            rate,
            crowd: None,
            manner: Manner::default(),
        }],
        phases: vec![Phase {
            name: "measure".to_string(),
            work: Work::Mix(mix),
            stop: Stop { time_ns: None, requests: Some(requests) },
            recorded: true,
        }],
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
