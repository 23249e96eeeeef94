//! Runs in miniature, so that tests of reports need no server.

use pummel_logic::dist::Dist;
use pummel_logic::measure::interval::Interval;
use pummel_logic::measure::measurement::{Bytes, Keep, Load, Measurement, WorkerTime};
use pummel_logic::measure::recorder::Sample;
use pummel_logic::measure::summary::Summary;
use pummel_logic::plan::{
    Arrivals, Backend, Clock, Data, Depth, Engine, Group, Manner, Mix, Phase, Plan, Protocol, Route, SCHEMA,
    Socket, Stop, Style, Transport, Wait, Work,
};
use pummel_logic::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use pummel_logic::wire::{MetaAsk, Outcome, Verb};
use pummel_logic::workload::popularity::Popularity;

use super::Report;

/// A run of two seconds.
pub struct Run {
    /// What was asked for.
    pub plan: Plan,
    /// What came of it.
    pub measurement: Measurement,
}

impl Run {
    /// Ten connections that ask for gets and sets in open loop and get what they want, in two intervals.
    pub fn new(keep: Keep) -> Run {
        let plan = plan();
        let names = plan.groups.iter().map(|group| group.name.clone());
        let mut measurement = Measurement::new(names, plan.engine.clock, plan.timeout_ns);
        measurement.started_unix_ns = 1_700_000_000 * SECOND;
        measurement.measured_ns = 2 * SECOND;
        measurement.load = Some(Load {
            records: 1_000,
            stored: 1_000,
            errors: 0,
            elapsed_ns: 12 * MILLISECOND,
            bytes: 265_000,
        });
        measurement.connections.asked = 10;
        measurement.connections.open = 10;
        (1..=10).for_each(|i| measurement.connections.connect.record(i * 7 * MICROSECOND));
        measurement.generator.cpu_user_ns = 1_200 * MICROSECOND;
        measurement.generator.cpu_system_ns = 9_800 * MICROSECOND;
        measurement.generator.workers.push(WorkerTime { busy_ns: SECOND / 4, wall_ns: 2 * SECOND });
        measurement.generator.peak_rss_bytes = 11_534_336;
        measurement.generator.backends.insert(Backend::Epoll);
        measurement.generator.fallbacks.insert("the kernel is too old".to_owned());
        let mut run = Run { plan, measurement };
        run.interval(0, keep, |interval| requests(interval, 0..1_000));
        run.interval(1, keep, |interval| requests(interval, 1_000..2_000));
        run
    }

    /// Adds an interval of a second that `fill` has filled.
    pub fn interval(&mut self, index: u64, keep: Keep, fill: impl Fn(&mut Interval)) {
        let mut interval = Interval::new(self.plan.groups.iter().map(|_| [Verb::Get, Verb::Set]));
        interval.restart(index, index * SECOND);
        interval.end_ns = (index + 1) * SECOND;
        fill(&mut interval);
        interval.bytes = Bytes { sent: 60_000, received: 210_000 };
        interval.turns.stamps.shared = 3;
        self.measurement.add(&mut interval, keep);
    }

    /// What `render` makes of it.
    pub fn report<T>(&self, render: impl Fn(&Report<'_>) -> T) -> T {
        let summary = Summary::of(&self.measurement, &self.plan);
        render(&Report {
            plan: &self.plan,
            measurement: &self.measurement,
            summary: &summary,
            front: "native",
        })
    }
}

/// Request `i`: every tenth is a set, every twentieth get misses, and times grow a little from one to the next.
pub fn sample(i: u64) -> Sample {
    let due = i * MILLISECOND;
    let ready = due + if i.is_multiple_of(50) { 4_000 } else { 0 };
    let sent = ready + 1_000 + i % 100 * 17;
    let arrived = sent + 30_000 + i % 1_000 * 61;
    let set = i.is_multiple_of(10);
    let miss = i % 20 == 1;
    Sample {
        verb: if set { Verb::Set } else { Verb::Get },
        outcome: match (set, miss) {
            (true, _) => Outcome::Stored,
            (false, true) => Outcome::Miss,
            (false, false) => Outcome::Hit,
        },
        keys: 1,
        hits: u32::from(!set && !miss),
        due,
        ready,
        sent,
        arrived,
        read: arrived + 2_500,
        noreply: false,
    }
}

fn requests(interval: &mut Interval, which: std::ops::Range<Nanos>) {
    which.for_each(|i| interval.groups[0].record(&sample(i)));
}

fn plan() -> Plan {
    Plan {
        schema: SCHEMA,
        servers: vec!["127.0.0.1:11211".to_owned()],
        route: Route::All,
        protocol: Protocol::Text,
        transport: Transport::Stream,
        seed: 42,
        interval_ns: SECOND,
        timeout_ns: SECOND,
        reconnect: false,
        verify: 0.0,
        goals: Vec::new(),
        engine: Engine {
            threads: 1,
            cpus: Vec::new(),
            backend: Backend::Auto,
            wait: Wait::Auto,
            clock: Clock::Kernel,
        },
        socket: Socket {
            nodelay: true,
            linger_s: None,
            send_buffer: None,
            recv_buffer: None,
            source: Vec::new(),
        },
        login: None,
        tls: None,
        database: 0,
        command: None,
        data: Data {
            records: 1_000,
            seed: 0,
            key_prefix: String::new(),
            key_size: Dist::Fixed(30.0),
            value_size: Dist::Fixed(200.0),
            expiry_s: Dist::Fixed(0.0),
            style: Style::default(),
        },
        groups: vec![Group {
            name: "all".to_owned(),
            clients: 10,
            depth: Depth::Limit(1),
            arrivals: Arrivals::Poisson,
            rate: Some(1_000.0),
            crowd: None,
            manner: Manner::default(),
        }],
        phases: vec![Phase {
            name: "measure".to_owned(),
            work: Work::Mix(Mix {
                ops: vec![(Verb::Get, 9.0), (Verb::Set, 1.0)],
                popularity: Popularity::Uniform,
                multiget: 1,
                read_through_ns: None,
                noreply: false,
                multiset: 1,
                meta: MetaAsk::default(),
            }),
            stop: Stop { time_ns: Some(2 * SECOND), requests: None },
            recorded: true,
        }],
    }
}
