//! Runs in miniature, so that tests of reports need no server.

use pummel_logic::plan::{Arrivals, Backend, Data, Group, Mix, Phase, Plan, Protocol, Route, Stop, Work};
use pummel_logic::protocol::{Fault, Outcome, Verb};
use pummel_logic::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use pummel_measure::cluster::{ClusterNode, ClusterSeen, Shard};
use pummel_measure::connections::SERVERS_TIMED_MAX;
use pummel_measure::evidence::{
    Evidence, MachineEvidence, OurRequests, ServerCounts, ServerEvidence, ServerReading, ThreadUse,
};
use pummel_measure::interval::Interval;
use pummel_measure::measurement::{Bytes, Keep, LoadResult, Measurement, WorkerTime};
use pummel_measure::outages::Outage;
use pummel_measure::parts::ServerRecord;
use pummel_measure::recorder::Sample;
use pummel_measure::summary::Summary;
use pummel_measure::uncertainty::{BASE_NS, Windows};

use crate::anonymous::document_of;
use crate::document::Document;
use crate::{Build, Ending, Report};

/// The build that the examples name.
pub const BUILD: Build =
    Build { commit: "unknown", profile: "dev", target: "x86_64-unknown-linux-gnu", features: "none" };

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
        measurement.load = Some(LoadResult {
            records: 1_000,
            stored: 1_000,
            errors: 0,
            elapsed_ns: 12 * MILLISECOND,
            bytes: 265_000,
            ..LoadResult::default()
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

    /// The run on a cluster of this many masters with a replica each, of which each got its part of the requests, and the first a few
    /// more.
    pub fn on_cluster(mut self, masters: u16) -> Run {
        let slots = 16_384 / u32::from(masters);
        let requests = 2_000 / u64::from(masters);
        let records = Some(self.plan.data.records / u64::from(masters));
        let name = |port: u16| format!("127.0.0.1:{}", 7_000 + port);
        self.plan.servers = (1..=2 * masters).map(name).collect();
        (self.plan.protocol, self.plan.route) = (Protocol::Resp3, Route::Cluster);
        let seen = ClusterSeen {
            nodes: (0..2 * masters)
                .zip(&self.plan.servers)
                .map(|(node, name)| ClusterNode {
                    name: name.clone(),
                    slots: if node < masters { slots } else { 0 },
                    is_replica: node >= masters,
                    joined: false,
                })
                .collect(),
            shards: (0..masters).map(|node| Shard { node, slots, records, ..Shard::default() }).collect(),
            generations: 1,
            ..ClusterSeen::default()
        };
        self.measurement.side_times.servers = (0..masters.min(SERVERS_TIMED_MAX as u16))
            .map(|node| {
                let mut record = ServerRecord::default();
                let more = if node == 0 { requests / 50 } else { 0 };
                (0..requests + more).for_each(|i| record.record(false, Some(30_000 + 100 * i)));
                record
            })
            .collect();
        self.measurement.cluster = Some(seen);
        self
    }

    /// Adds an interval of a second that `fill` has filled.
    pub fn interval(&mut self, index: u64, keep: Keep, fill: impl Fn(&mut Interval)) {
        let mut interval = Interval::new(self.plan.groups.iter().map(|_| [Verb::Get, Verb::Set]));
        interval.restart(index, index * SECOND);
        interval.end_ns = (index + 1) * SECOND;
        fill(&mut interval);
        interval.counters.bytes = Bytes { sent: 60_000, received: 210_000 };
        interval.counters.turns.stamps.shared = 3;
        self.measurement.add(&mut interval, keep);
    }

    /// Adds the windows of the run's requests, which are [`sample`]s 0 to 1,999, as if 100 of them ended in each.
    pub fn with_windows(mut self) -> Run {
        let mut windows = Windows::new(BASE_NS);
        for number in 0..20 {
            let mut slice = Interval::new(self.plan.groups.iter().map(|_| [Verb::Get, Verb::Set]));
            slice.restart(number, number * BASE_NS);
            slice.end_ns = (number + 1) * BASE_NS;
            requests(&mut slice, number * 100..(number + 1) * 100);
            windows.add(&mut slice);
        }
        self.measurement.windows = Some(windows);
        self
    }

    /// What `render` makes of it.
    pub fn report<T>(&self, render: impl Fn(&Report<'_>) -> T) -> T {
        let summary = Summary::of(&self.measurement, &self.plan);
        render(&Report {
            plan: &self.plan,
            measurement: &self.measurement,
            summary: &summary,
            front: "native",
            build: BUILD,
            ending: Ending::Open,
        })
    }
}

impl Run {
    /// What `render` makes of the document of the run.
    pub fn document<T>(&self, render: impl Fn(&Document) -> T) -> T {
        self.report(|report| render(&document_of(report)))
    }
}

/// An outage of two and a half seconds that began at `from_s`, of which a quarter of the lost requests were never sent.
pub fn outage(from_s: u64, lost: u64) -> Outage {
    let at = |ms: u64| from_s * SECOND + ms * MILLISECOND;
    let (unsent, down) = (lost / 4, lost / 2);
    let failed = lost - unsent;
    Outage {
        from_ns: at(0),
        to_ns: at(2_500),
        first_error_ns: at(12),
        last_error_ns: at(2_498),
        success_worst: 0.0,
        failed,
        late: lost / 3,
        unsent,
        replies: [(Fault::Down, down), (Fault::Refused, failed - down)].into(),
    }
}

/// What was seen of a local memcached with one serving thread that used 40 % of a CPU, and of the generator's machine.
pub fn evidence() -> Evidence {
    let counts = ServerCounts { requests: Some(2_000), evictions: Some(3), ..ServerCounts::default() };
    let reading = ServerReading {
        software: "memcached".to_owned(),
        version: "1.6.18".to_owned(),
        serving_threads: Some(1),
        span_ns: 2 * SECOND,
        cpu_ns: Some(800 * MILLISECOND),
        counts,
        our_requests: Some(2_000),
        memory_bytes: Some(16_000_000),
        memory_limit_bytes: Some(64_000_000),
        ..ServerReading::default()
    };
    let thread = ThreadUse {
        name: "memcached".to_owned(),
        cpu_ns: 800 * MILLISECOND,
        run_delay_ns: Some(MILLISECOND),
        last_cpu: None,
    };
    let server = ServerEvidence {
        address: "127.0.0.1:11211".to_owned(),
        reading: Some(reading),
        threads: Some(vec![thread]),
        threads_span_ns: 2 * SECOND,
        ..ServerEvidence::default()
    };
    let machine = MachineEvidence {
        servers_are_local: Some(true),
        span_ns: 2 * SECOND,
        workers: vec![ThreadUse {
            name: "worker".to_owned(),
            cpu_ns: 250 * MILLISECOND,
            run_delay_ns: Some(0),
            last_cpu: None,
        }],
        cpus: 2,
        unread: vec!["the kernel does not say what the hypervisor took".to_owned()],
        ..MachineEvidence::default()
    };
    let ours = OurRequests { sent: 2_000, keys: 2_000, counted: Some(2_000), one_to_one: true, untold: None };
    Evidence { servers: vec![server], machines: vec![machine], ours: Some(ours), ..Evidence::default() }
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
        servers: vec!["127.0.0.1:11211".to_owned()],
        seed: 42,
        data: Data { records: 1_000, ..Data::default() },
        groups: vec![Group {
            name: "all".to_owned(),
            clients: 10,
            arrivals: Arrivals::Poisson,
            rate: Some(1_000.0),
            ..Group::default()
        }],
        phases: vec![Phase {
            name: "measure".to_owned(),
            work: Work::Mix(Mix::of(&[(Verb::Get, 9.0), (Verb::Set, 1.0)])),
            stop: Stop { time_ns: Some(2 * SECOND), requests: None },
            recorded: true,
        }],
        ..Plan::default()
    }
}
