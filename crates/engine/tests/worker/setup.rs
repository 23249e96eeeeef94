//! Plans, and checks that the tests make of every measurement.

use std::io;

use pummel_engine::backend::sim::{NetworkConditions, Peer, Sim};
use pummel_engine::run::{Inputs, Run, Watch};
use pummel_logic::arrival::pace_of;
use pummel_logic::plan::share::PhaseShare;
use pummel_logic::plan::{
    Arrivals, Data, Group, Load, Mix, Pause, Phase, Plan, Stage, Stop, Transport, Work,
};
use pummel_logic::protocol::Verb;
use pummel_logic::rng::StreamOwner;
use pummel_logic::time::{MILLISECOND, Nanos};
use pummel_measure::events::Wants;
use pummel_measure::events::{Departure, Row};
use pummel_measure::littles_law::little;
use pummel_measure::measurement::{Keep, Measurement, Status};
use pummel_measure::recorder::{Counts, Span};
use pummel_testserver::ServerConfig;

use crate::peer::SharedServer;

/// Four clients that get a few records, each the same ones, in closed loop for a tenth of a second, from a server that
/// holds nothing.
pub fn plan() -> Plan {
    Plan {
        servers: vec!["127.0.0.1:11211".to_string()],
        seed: 1,
        interval_ns: 20 * MILLISECOND,
        data: Data { records: 100, ..Data::default() },
        groups: vec![Group { clients: 4, ..Group::default() }],
        phases: vec![measuring(
            mix(&[(Verb::Get, 1.0)]),
            Stop { time_ns: Some(100 * MILLISECOND), requests: None },
        )],
        ..Plan::default()
    }
}

pub fn mix(ops: &[(Verb, f64)]) -> Mix {
    Mix::of(ops)
}

/// Every operation of memcached.
pub fn memcached_verbs() -> impl Iterator<Item = Verb> {
    Verb::ALL.into_iter().filter(|verb| !verb.is_resp_only())
}

/// A mix of every operation of memcached, with equal weights.
pub fn mix_of_all() -> Mix {
    let ops: Vec<(Verb, f64)> = memcached_verbs().map(|verb| (verb, 1.0)).collect();
    mix(&ops)
}

pub fn measuring(mix: Mix, stop: Stop) -> Phase {
    Phase { name: "measure".to_string(), work: Work::Mix(mix), stop, recorded: true }
}

pub fn requests(count: u64) -> Stop {
    Stop { time_ns: None, requests: Some(count) }
}

pub fn time(ns: Nanos) -> Stop {
    Stop { time_ns: Some(ns), requests: None }
}

/// Puts a load of every record of every space before the first phase of `plan`.
pub fn loaded(mut plan: Plan) -> Plan {
    let load = Load { depth: 8, pieces: true, counters: true, ..Load::default() };
    let phase =
        Phase { name: "load".to_string(), work: Work::Load(load), stop: Stop::default(), recorded: false };
    plan.phases.insert(0, phase);
    plan
}

/// Puts `plan` in open loop: all clients together ask `rate` times in a second.
pub fn at_rate(mut plan: Plan, rate: f64) -> Plan {
    plan.groups[0].arrivals = Arrivals::Poisson;
    plan.groups[0].rate = Some(rate);
    plan
}

/// Result of a run: its measurement, and every request of its measured phase, by client in the order of their ends.
pub struct Outcome {
    pub measurement: Measurement,
    pub rows: Vec<Row>,
    /// The end of every client that came and went in the run.
    pub departures: Vec<Departure>,
    /// Beginning of the last phase before an audit.
    pub begin: Nanos,
}

impl Outcome {
    /// Counts of the requests of the measured phase.
    pub fn counts(&self) -> Counts {
        self.measurement.ops().all().counts
    }

    /// The least and the greatest of these times over all verbs.
    pub fn range(&self, span: Span) -> (Nanos, Nanos) {
        let all = self.measurement.ops().all();
        let histogram = all.times.of(span);
        let moments = histogram.moments();
        assert!(histogram.count() > 0, "nothing was measured");
        (moments.min, moments.max)
    }

    /// Due times of the requests, from the beginning of the measured phase, in ascending order.
    pub fn dues(&self) -> Vec<Nanos> {
        let mut dues: Vec<Nanos> = self.rows.iter().map(|row| row.due - self.begin).collect();
        dues.sort_unstable();
        dues
    }

    /// The facts of the reason; empty where the run is complete.
    pub fn reason(&self) -> String {
        self.measurement.reason.as_ref().map_or_else(String::new, |reason| format!("{reason:?}"))
    }
}

/// A watch that keeps the events of a run.
#[derive(Default)]
pub struct ReaderState {
    pub rows: Vec<Row>,
    departures: Vec<Departure>,
    pub begin: Nanos,
}

impl Watch for ReaderState {
    fn wants(&self) -> Wants {
        Wants { rows: true, departures: true, keep: Keep::Histograms, outstanding: false, connections: false }
    }

    fn begin(&mut self, phase: &Phase, at: Nanos) {
        if !is_behind(phase) {
            self.begin = at;
        }
    }

    fn rows(&mut self, rows: &[Row]) {
        self.rows.extend_from_slice(rows);
    }

    fn departures(&mut self, gone: &[Departure]) {
        self.departures.extend_from_slice(gone);
    }
}

/// Runs a plan to its end against the built-in server, on a network without faults.
pub fn outcome(plan: &Plan) -> Outcome {
    let server = SharedServer::new(ServerConfig::default());
    let outcome = run(plan, 1, NetworkConditions::calm(), || server.peer());
    assert_eq!((outcome.measurement.status, outcome.reason().as_str()), (Status::Complete, ""));
    outcome
}

/// Runs a plan on a simulated network with this seed and this peer.
pub fn run<P: Peer>(
    plan: &Plan,
    seed: u64,
    conditions: NetworkConditions,
    peer: impl Fn() -> P + Sync,
) -> Outcome {
    // One type for all peers: each would be compiled with every codec otherwise.
    let peer = || Box::new(peer()) as Box<dyn Peer + '_>;
    run_with(plan, |worker| Ok(Sim::new(seed + worker as u64, conditions, peer())))
}

/// Runs a plan on any backend.
pub fn run_with<B: pummel_engine::backend::Backend>(
    plan: &Plan,
    backend: impl Fn(usize) -> io::Result<B> + Sync,
) -> Outcome {
    run_with_inputs(plan, &Inputs::default(), backend)
}

/// Runs a plan with what no plan holds on any backend.
pub fn run_with_inputs<B: pummel_engine::backend::Backend>(
    plan: &Plan,
    inputs: &Inputs,
    backend: impl Fn(usize) -> io::Result<B> + Sync,
) -> Outcome {
    let mut state = ReaderState::default();
    let plan = &plan.clone().validate().expect("the plan can be run");
    let measurement =
        Run::new(plan).with_inputs(inputs).start_on(&mut state, &|| false, backend).expect("the run begins");
    assert_accounts_agree(&measurement);
    Outcome { measurement, rows: state.rows, departures: state.departures, begin: state.begin }
}

/// Checks that the two accounts of the time in flight agree, as they do in every run, whatever happens in it. Figures
/// that the simulation knows exactly are equal but for stamps of a clock that is off.
fn assert_accounts_agree(measurement: &Measurement) {
    let Some(little) = little(measurement) else { return };
    assert!(little.disagreement_percent() < 1.0, "{little:?}, {:?}", measurement.flight);
}

/// Whether a phase belongs to an audit.
fn is_behind(phase: &Phase) -> bool {
    matches!(phase.work, Work::Audit(_) | Work::Pause(Pause { for_ns: 1.., .. }))
}

/// Due times of the requests of the last phase before an audit, which lasts `length_ns`, from its beginning, for each client.
pub fn schedule(plan: &Plan, length_ns: Nanos) -> Vec<Vec<Nanos>> {
    let group = &plan.groups[0];
    let clients = u64::from(group.clients);
    let last = plan.phases.iter().rposition(|phase| !is_behind(phase)).expect("the plan has phases");
    let share = PhaseShare::new(plan, last, Transport::Stream);
    let pace = pace_of(plan, &share, 0).expect("the plan is in open loop");
    let phase = last as u64;
    let stage = Stage::of(plan, last);
    let times = |client| {
        let owner = StreamOwner { seed: plan.seed, group: 0, phase, client };
        let mut schedule = match &stage {
            Some(stage) => pace.schedule_on_stage(owner, stage),
            None => pace.schedule(owner),
        };
        std::iter::repeat_with(|| schedule.next()).take_while(|&due| due < length_ns).collect()
    };
    (0..clients).map(times).collect()
}
