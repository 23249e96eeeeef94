//! Runs in miniature with a known truth, for the tests of judgements: clients with slots, a server and a generator that
//! may each stand still for a while, and the evidence on them.

use std::collections::BTreeMap;

use super::evidence::{
    ConnectionEvidence, Evidence, HostNetwork, MachineEvidence, OurRequests, Probe, ServerCounts,
    ServerEvidence, ServerReading, ThreadUse,
};
use super::interval::Interval;
use super::limit::{Case, Verdict};
use super::measurement::{Keep, Measurement, WorkerTime};
use super::recorder::Sample;
use super::summary::Summary;
use super::transmit::Departure;
use pummel_logic::plan::{Arrivals, Clock, Depth, Engine, Group, Plan};
use pummel_logic::protocol::{Fault, Outcome, Verb};
use pummel_logic::rng::{Stream, unit};
use pummel_logic::time::{MICROSECOND, Nanos, SECOND};

/// Beginning of a stand-still, and its length.
pub type Pause = (Nanos, Nanos);

/// Settings of a run in miniature.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub server: &'static str,
    pub connections: u32,
    pub depth: u32,
    pub threads: u32,
    /// Requests per second of all clients; absent in closed loop.
    pub rate: Option<f64>,
    pub length: Nanos,
    pub service: Nanos,
    pub lag: Nanos,
    /// Number of requests of which one is late, or 0 for none, and its lag.
    pub late: (u64, Nanos),
    pub reaction: Nanos,
    /// Stand-still of the server.
    pub frozen: Pause,
    /// Stand-stills of the generator.
    pub paused: Vec<Pause>,
    /// Time without a connection.
    pub shut: Pause,
    pub timeout: Nanos,
    pub busy_share: f64,
    pub connect: Nanos,
    pub clock: Clock,
    /// Time that sampled requests take to the device, where they are stamped.
    pub out: Option<Nanos>,
    pub evidence: Option<Evidence>,
}

/// An open loop in which everything has time.
pub fn quiet() -> Scenario {
    Scenario {
        server: "127.0.0.1:11211",
        connections: 10,
        depth: 1,
        threads: 1,
        rate: Some(1_000.0),
        length: 4 * SECOND,
        service: 40 * MICROSECOND,
        lag: 3 * MICROSECOND,
        late: (0, 0),
        reaction: 30 * MICROSECOND,
        frozen: (0, 0),
        paused: Vec::new(),
        shut: (0, 0),
        timeout: 5 * SECOND,
        busy_share: 0.1,
        connect: 60 * MICROSECOND,
        clock: Clock::Kernel,
        out: None,
        evidence: None,
    }
}

/// A closed loop in which both sides have time.
pub fn closed() -> Scenario {
    Scenario { rate: None, length: SECOND / 5, busy_share: 0.4, ..quiet() }
}

/// `at`, or the end of a stand-still that `at` falls into.
fn after(at: Nanos, pauses: &[Pause]) -> Nanos {
    let within = pauses.iter().find(|(start, length)| (*start..start + length).contains(&at));
    within.map_or(at, |(start, length)| start + length)
}

impl Scenario {
    /// The run with evidence of a local memcached whose threads, the busiest first, used these shares of a CPU; the first
    /// `serving` of them answer requests.
    pub fn seen(self, threads: &[f64], serving: u32) -> Scenario {
        let span_ns = self.length;
        let part = |share: f64| (share * span_ns as f64) as Nanos;
        let used = |share: &f64| ThreadUse {
            name: "memcached".to_owned(),
            cpu_ns: part(*share),
            run_delay_ns: Some(0),
            last_cpu: Some(0),
        };
        let requests = self.requests();
        let counts = ServerCounts { requests: Some(requests), evictions: Some(0), ..ServerCounts::default() };
        let reading = ServerReading {
            software: "memcached".to_owned(),
            version: "1.6.18".to_owned(),
            serving_threads: Some(serving),
            span_ns,
            cpu_ns: Some(part(threads.iter().sum())),
            counts,
            our_requests: Some(requests),
            memory_bytes: Some(6_000_000),
            memory_limit_bytes: Some(64_000_000),
            connections: Some(u64::from(self.connections) + 2),
            connections_max: Some(1_024),
            ..ServerReading::default()
        };
        let server = ServerEvidence {
            address: self.server.to_owned(),
            reading: Some(reading),
            threads: Some(threads.iter().map(used).collect()),
            threads_span_ns: span_ns,
            host: Some(1),
            cpus: Some("0".to_owned()),
            ..ServerEvidence::default()
        };
        let worker = |_| ThreadUse {
            name: "worker".to_owned(),
            cpu_ns: part(self.busy_share),
            run_delay_ns: Some(0),
            last_cpu: Some(1),
        };
        let workers: Vec<ThreadUse> = (0..self.threads).map(worker).collect();
        let used_ns = workers.iter().map(|worker| worker.cpu_ns).sum();
        let connections = ConnectionEvidence {
            read: u64::from(self.connections),
            lost: Some(0),
            segments_out: requests,
            busy_ns: part(0.5 * f64::from(self.connections)),
            ..ConnectionEvidence::default()
        };
        let machine = MachineEvidence {
            servers_are_local: Some(self.server.starts_with("127.0.0.1:")),
            span_ns,
            workers,
            cpus: 4,
            host: Some(1),
            worker_cpus: Some("1-3".to_owned()),
            // Others use a whole CPU beside each side, and are there to be accused.
            used_by_cpu: BTreeMap::from([(0, span_ns + part(threads.iter().sum())), (1, span_ns + used_ns)]),
            process_ns: Some(used_ns),
            steal_ns: Some(0),
            throttled_ns: Some(0),
            pressure_ns: Some(0),
            connections: Some(connections),
            network: Some(HostNetwork { segments_out: requests, ..HostNetwork::default() }),
            ..MachineEvidence::default()
        };
        Scenario {
            evidence: Some(Evidence {
                servers: vec![server],
                machines: vec![machine],
                ours: Some(OurRequests {
                    sent: requests,
                    keys: requests,
                    counted: Some(requests),
                    one_to_one: true,
                    untold: None,
                }),
                ..Evidence::default()
            }),
            ..self
        }
    }

    /// Changes the evidence on the server.
    pub fn server(mut self, change: impl Fn(&mut ServerEvidence)) -> Scenario {
        change(&mut self.evidence.as_mut().expect("it was seen").servers[0]);
        self
    }

    /// Changes the reading of the server.
    pub fn reading(self, change: impl Fn(&mut ServerReading)) -> Scenario {
        self.server(|server| change(server.reading.as_mut().expect("it was read")))
    }

    /// Adds a probe to the evidence.
    pub fn probe(mut self, probe: Probe) -> Scenario {
        self.evidence.as_mut().expect("it was seen").probe = Some(probe);
        self
    }

    /// Changes the evidence on the generator's machine.
    pub fn machine(mut self, change: impl Fn(&mut MachineEvidence)) -> Scenario {
        change(&mut self.evidence.as_mut().expect("it was seen").machines[0]);
        self
    }

    fn requests(&self) -> u64 {
        self.measurement().ops().all().counts.requests()
    }

    pub fn verdict(&self) -> Verdict {
        let (measurement, plan) = (self.measurement(), self.plan());
        Verdict::of(&Case::of(&measurement, &plan, &measurement.ops().all()))
    }

    pub fn summary(&self) -> Summary {
        Summary::of(&self.measurement(), &self.plan())
    }

    pub fn measurement(&self) -> Measurement {
        let mut interval = Interval::new([[Verb::Get]]);
        for slot in 0..self.connections * self.depth {
            self.slot(slot, &mut interval);
        }
        interval.counters.turns.stalls = self.paused.len() as u64;
        interval.counters.turns.stalled_ns = self.paused.iter().map(|(_, length)| length).sum();
        let mut measurement = Measurement::new(["all".to_owned()], self.clock, self.timeout);
        measurement.add(&mut interval, Keep::Figures);
        measurement.connections.asked = u64::from(self.connections);
        measurement.connections.connect.record_many(self.connect, u64::from(self.connections));
        if self.shut.1 > 0 {
            measurement.connections.lost = u64::from(self.connections);
        }
        measurement.measured_ns = self.length;
        for worker in 0..self.threads {
            // One thread does the work, the others less and less.
            let share = self.busy_share / f64::from(worker + 1);
            let busy_ns = (share * self.length as f64) as Nanos;
            measurement.generator.workers.push(WorkerTime { busy_ns, wall_ns: self.length });
        }
        measurement.evidence.clone_from(&self.evidence);
        measurement
    }

    fn slot(&self, slot: u32, interval: &mut Interval) {
        let gaps = Stream::from_seed(u64::from(slot));
        let slots = f64::from(self.connections * self.depth);
        let (mut due, mut free) = (0, 0);
        for i in 0.. {
            due = match self.rate {
                Some(rate) => due + (-libm::log(unit(gaps.draw(i))) * slots * SECOND as f64 / rate) as Nanos,
                None => free,
            };
            if due >= self.length {
                return;
            }
            let ready = after(due.max(free), &[self.shut]);
            let is_late = self.late.0 > 0 && (i + u64::from(slot)).is_multiple_of(self.late.0);
            let sent = after(ready, &self.paused) + if is_late { self.late.1 } else { self.lag };
            let arrived = after(sent, &[self.frozen]) + self.service;
            let read = after(arrived, &self.paused) + self.reaction;
            let mut sample = Sample { ready, sent, arrived, read, ..Sample::hit(due, 0) };
            free = arrived;
            if arrived - ready > self.timeout {
                sample.outcome = Outcome::Error(Fault::Timeout);
                free = ready + self.timeout;
            }
            if let Some(out) = self.out {
                let departure = Departure { sent, scheduled: None, left: sent + out, arrived: Some(arrived) };
                interval.side_times.transmit.get_or_insert_default().record(&departure);
            }
            interval.groups[0].record(&sample);
        }
    }

    pub fn plan(&self) -> Plan {
        Plan {
            servers: vec![self.server.to_owned()],
            timeout_ns: self.timeout,
            engine: Engine { threads: self.threads, clock: self.clock, ..Engine::default() },
            groups: vec![Group {
                clients: self.connections,
                depth: Depth::Limit(self.depth),
                arrivals: if self.rate.is_some() { Arrivals::Poisson } else { Arrivals::Closed },
                rate: self.rate,
                ..Group::default()
            }],
            ..Plan::default()
        }
    }
}
