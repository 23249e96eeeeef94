//! The context of a run: everything that follows from the Plan, its inputs and this machine, for all workers.

use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pummel_logic::arrival::{Pace, pace_of};
use pummel_logic::client::route::Router;
use pummel_logic::plan::share::{PhaseShare, ProcessShare};
use pummel_logic::plan::{Phase, Plan, Retry, Transport, Wait, Work};
use pummel_logic::protocol::handshake::Handshake;
use pummel_logic::protocol::resp::template::Template;
use pummel_logic::rng::StreamOwner;
use pummel_logic::time::Nanos;
use pummel_logic::workload::dataset::DatasetRows;
use pummel_logic::workload::key::{KeyMaker, PrefixTooLong};
use pummel_logic::workload::mix::spaces_of;
use pummel_logic::workload::sequence;
use pummel_logic::workload::trace::{RecordedKeys, Trace};
use pummel_logic::workload::value::{ValueMaker, ValueTooLarge};
use pummel_logic::workload::verify::stale::RunMark;
use pummel_logic::workload::window::WindowMaker;
use pummel_measure::completion::Loaded;
use pummel_measure::events::Wants;

use super::audit::SharedLedger;
use super::error::RunError;
use super::inputs::{Gate, Inputs, Permit, Run};
use super::login::handshake_of;
use super::servers::ensure_descriptors;
use super::steering::{Steering, steered_rate};
use super::trace::TraceRun;
use crate::backend::choice::Choice;
use crate::backend::tls::Setup;
use crate::clock;
use crate::cluster::published::Published;
use crate::evidence::{Moments, Newest, Observed};
use crate::resolve::Server;
use crate::worker::barrier::Barrier;
use crate::worker::steering::SteeredRate;

/// The servers and the kernel interface, as found on this machine before a run begins.
pub(super) struct HostSetup {
    pub(super) servers: Arc<[Server]>,
    /// The servers that are asked for their statistics.
    pub(super) asked: Arc<[Server]>,
    /// The kernel interface, and the way in which the workers wait for replies and requests; `None` on backends of the caller's
    /// making, whose clocks are simulated.
    pub(super) kernel: Option<(Choice, Wait)>,
    /// Encryption of all connections; `None` without, and on backends of the caller's making.
    pub(super) tls: Option<Setup>,
    /// The map of the cluster whose nodes the servers are; `None` where they are none.
    pub(super) cluster: Option<Arc<Published>>,
}

/// The link between a run and its observer.
pub(super) struct ObserverLink {
    /// The moments of the run, shared by workers and the observer.
    pub(super) moments: Moments,
    /// The latest statistics of the servers within the measured phases.
    pub(super) newest: Newest,
    /// The first and the last measured phase.
    pub(super) phases: (usize, usize),
}

/// The common inputs of all workers of a run.
pub(super) struct RunContext<'a> {
    pub(super) plan: &'a Plan,
    /// The dealing of each phase to the clients.
    pub(super) phases: Vec<PhaseShare<'a>>,
    /// The pace of each group's requests in each phase; `None` in closed loop.
    pub(super) paces: Vec<Vec<Option<Pace>>>,
    /// Requests that each phase makes in this process, where that is known.
    pub(super) requests_here: Vec<Option<u64>>,
    /// Time at which the run began.
    pub(super) began: Nanos,
    /// The commands of the user, that of the load behind the others; `None` without any.
    pub(super) commands: Option<Arc<Vec<Template>>>,
    /// The rows that fill places of commands; `None` without any.
    pub(super) dataset: Option<DatasetRows>,
    /// The text of the plan's script; `None` without one.
    pub(super) script: Option<Arc<str>>,
    /// The errors after which requests are sent again; `None` where they are not.
    pub(super) retry: Option<Retry>,
    pub(super) trace: Option<Arc<Trace>>,
    /// The trace that is replayed while it is read.
    pub(super) trace_run: Option<TraceRun>,
    /// The keys of the trace, where a phase deletes them.
    pub(super) recorded_keys: Option<RecordedKeys>,
    pub(super) keys: KeyMaker,
    pub(super) values: ValueMaker,
    pub(super) window: Option<WindowMaker>,
    pub(super) host: HostSetup,
    /// The transport of loads: [`Transport::Udp`] where one of the servers is loaded over it.
    pub(super) loading: Transport,
    /// The router of each group.
    pub(super) routers: Vec<Router>,
    pub(super) handshake: Arc<Handshake>,
    pub(super) mark: RunMark,
    /// The clients and workers of this process.
    pub(super) process_share: Cow<'a, ProcessShare>,
    /// The gate at which this process waits for the others; `None` where it is the only process.
    pub(super) gate: Option<&'a dyn Gate>,
    pub(super) barrier: Barrier,
    /// The commands that change the rate, and the rate that follows from them; `None` where it is that of the plan.
    pub(super) steering: Option<Arc<Steering>>,
    pub(super) steered: Option<Arc<SteeredRate>>,
    /// Records that each phase stored here. Each worker adds its own before it meets the others for the next phase.
    pub(super) stored: Vec<AtomicU64>,
    pub(super) wants: Wants,
    /// The map of the cluster whose nodes the servers are; `None` where they are none.
    pub(super) cluster: Option<Arc<Published>>,
    /// The addresses to which requests may be sent; `None` for all addresses.
    pub(super) permit: Option<Permit>,
    /// The acknowledged writes of all workers; `None` where they are not read back.
    pub(super) audit: Option<SharedLedger>,
    /// `None` where nothing is observed.
    pub(super) observer: Option<ObserverLink>,
}

impl<'a> RunContext<'a> {
    /// The context of a run in this process.
    ///
    /// # Errors
    /// Returns [`RunError::Plan`] for a plan whose command, keys, values or login cannot be sent, or whose password or
    /// recorded requests are missing, and [`RunError::Connect`] when the descriptors do not suffice.
    pub(super) fn new(run: &'a Run<'a>, host: HostSetup, wants: Wants) -> Result<RunContext<'a>, RunError> {
        let Run { plan, inputs, process } = run;
        let commands = commands_of(plan)?;
        let process_share = match process {
            Some(process) => Cow::Borrowed(process.share),
            None => Cow::Owned(ProcessShare::whole(plan, random_mark())),
        };
        ensure_descriptors(plan, &process_share).map_err(RunError::Connect)?;
        let trace = trace_of(plan, inputs)?;
        let began = clock::now();
        let over_udp = host.servers.iter().any(|server| server.loading() == Transport::Udp);
        let loading = if over_udp { Transport::Udp } else { Transport::Stream };
        let deletes = plan.phases.iter().any(|phase| matches!(phase.work, Work::Delete(_)));
        let recorded_keys = trace.clone().filter(|_| deletes).map(RecordedKeys::of);
        let key_count = recorded_keys.as_ref().map_or(0, RecordedKeys::count);
        let phases: Vec<PhaseShare<'a>> = (0..plan.phases.len())
            .map(|number| PhaseShare::new(plan, number, loading).with_recorded_keys(key_count))
            .collect();
        let keys = KeyMaker::of_spaces(&plan.data, &spaces_of(plan))
            .map_err(|error: PrefixTooLong| RunError::Plan(error.to_string()))?;
        let handshake = Arc::new(handshake_of(plan, inputs)?);
        let steered = steered_rate(plan, inputs.steering.as_ref());
        let trace_run = TraceRun::of(plan, &process_share, inputs.files.as_ref());
        if plan.trace().is_some() && trace_run.is_none() {
            return Err(RunError::Plan("the files of the trace were not opened".to_owned()));
        }
        let longest_row = plan.trace().map_or(0, |replay| replay.value_max_bytes);
        let longest_value = trace.as_ref().map_or(longest_row, |trace| trace.longest_value());
        Ok(RunContext {
            plan,
            requests_here: phases.iter().map(|phase| phase.requests_in(&process_share)).collect(),
            paces: phases.iter().map(|share| paces_of(plan, share, steered.as_ref())).collect(),
            phases,
            began,
            commands,
            dataset: dataset_of(plan, inputs)?,
            script: plan.script.as_ref().map(|script| script.text.as_str().into()),
            retry: plan.sent_again_after(),
            trace,
            trace_run,
            recorded_keys,
            keys,
            values: values_of(plan, longest_value.into())?,
            window: plan.window().map(WindowMaker::new),
            observer: observer_link_of(plan, &process_share).filter(|_| host.kernel.is_some()),
            cluster: host.cluster.clone(),
            permit: inputs.permit.clone(),
            host,
            loading,
            routers: routers_of(plan),
            handshake,
            mark: RunMark::new(process_share.mark),
            barrier: Barrier::new(process_share.threads as usize).among_others(!process_share.is_whole()),
            steering: inputs.steering.clone(),
            steered,
            gate: process.map(|process| process.gate),
            process_share,
            stored: plan.phases.iter().map(|_| AtomicU64::new(0)).collect(),
            audit: plan.audits().then(SharedLedger::default),
            wants,
        })
    }

    /// Whether the backends are of the caller's making, with a clock that is not that of this machine.
    pub(super) fn is_simulated(&self) -> bool {
        self.host.kernel.is_none()
    }

    /// A time before all that workers do, on their clocks.
    pub(super) fn began_at_worker(&self) -> Nanos {
        if self.is_simulated() { 0 } else { self.began }
    }

    /// The servers that the observer looks at. They are asked by the first process of several, and by those on the same machine.
    pub(super) fn observed(&self) -> Observed {
        let HostSetup { servers, asked, tls, .. } = &self.host;
        Observed {
            servers: Arc::clone(asked),
            loaded: Arc::clone(servers),
            tls: tls.clone(),
            handshake: Arc::clone(&self.handshake),
            asks_all: self.process_share.is_whole() || self.process_share.first_worker == 0,
        }
    }

    /// Number of connections that each client opens before the run. Clients of a cluster open more where nodes join it.
    pub(super) fn lanes_at_start(&self) -> usize {
        match &self.cluster {
            Some(published) => {
                published.topology().map.serving(self.plan.cluster.read_from.asks_replicas()).count()
            }
            None => self.plan.lanes(),
        }
    }

    /// The transport of a phase's requests to a server.
    pub(super) fn transport_of(&self, phase: &Phase, server: u32) -> Transport {
        match phase.work {
            Work::Load(_) => self.host.servers[server as usize].loading(),
            _ => self.plan.transport,
        }
    }

    /// The records that phase `number` was to store in this process, and those that it stored; both are 0 where the
    /// phase is no load. The figures are final when all workers have met for the next phase.
    pub(super) fn loaded_by(&self, number: usize) -> Loaded {
        match self.phases[number].phase.work {
            Work::Load(_) => Loaded {
                records: self.requests_here[number].unwrap_or(0),
                stored: self.stored[number].load(Ordering::Relaxed),
            },
            _ => Loaded::default(),
        }
    }

    /// The place of a client's random draws in a phase.
    pub(super) fn place_of(&self, phase: usize, group: usize, client: u64) -> StreamOwner {
        StreamOwner { seed: self.plan.seed, group: group as u64, phase: phase as u64, client }
    }

    /// Whether this phase is a warm-up whose end is found while it runs.
    pub(super) fn finds_end_of_warm_up(&self, number: usize) -> bool {
        let measured = || self.plan.phases.iter().position(|phase| phase.recorded);
        self.plan.adaptive.ends_warm_up() && measured() == Some(number + 1)
    }

    /// Whether a server has evicted a record since the run began.
    pub(super) fn has_seen_eviction(&self) -> bool {
        self.observer.as_ref().is_some_and(|observer| observer.moments.state().evicted)
    }

    /// The reason why no server reports its evictions, if a warm-up waits for one.
    pub(super) fn unreported_evictions(&self) -> Option<String> {
        let observer = self.observer.as_ref().filter(|_| self.plan.adaptive.first_eviction)?;
        observer.moments.state().unreported.clone()
    }

    /// The measured phase whose end another process finds while it runs; `None` if there is none.
    pub(super) fn end_found_elsewhere(&self) -> Option<usize> {
        let is_found_elsewhere = self.plan.adaptive.until.is_some() && !self.process_share.is_whole();
        self.plan.phases.iter().position(|phase| phase.recorded).filter(|_| is_found_elsewhere)
    }

    /// Whether clients of the plan check what they stored.
    pub(super) fn verifies(&self) -> bool {
        self.plan.verify > 0.0
    }
}

/// The pace of each group's requests in a phase; `None` in closed loop. The first group follows a rate that is steered while
/// it is measured.
fn paces_of(plan: &Plan, share: &PhaseShare<'_>, steered: Option<&Arc<SteeredRate>>) -> Vec<Option<Pace>> {
    let pace = |group: usize| match (steered, share.arrivals_of(group)) {
        (Some(rate), Some((arrivals, _))) if group == 0 && share.phase.recorded => {
            Some(Pace::along(arrivals, rate.curve(), u64::from(plan.groups[group].clients)))
        }
        _ => pace_of(plan, share, group),
    };
    (0..plan.groups.len()).map(pace).collect()
}

/// The link to the observer of a run; `None` where the plan wants none, and where nothing is measured.
fn observer_link_of(plan: &Plan, share: &ProcessShare) -> Option<ObserverLink> {
    let first = plan.phases.iter().position(|phase| phase.recorded)?;
    let last = plan.phases.iter().rposition(|phase| phase.recorded)?;
    plan.evidence.then(|| ObserverLink {
        moments: Moments::new(share.threads as usize),
        newest: Newest::default(),
        phases: (first, last),
    })
}

/// The commands of the user, that of the load behind the others; `None` without any.
fn commands_of(plan: &Plan) -> Result<Option<Arc<Vec<Template>>>, RunError> {
    plan.templates().map_err(|error| RunError::Plan(error.to_string()))
}

/// The rows that fill places of commands; `None` without any.
fn dataset_of(plan: &Plan, inputs: &Inputs) -> Result<Option<DatasetRows>, RunError> {
    let Some(dataset) = &plan.dataset else { return Ok(None) };
    match inputs.rows.clone() {
        Some(packed) => Ok(Some(DatasetRows { packed, order: dataset.order })),
        None => Err(RunError::Plan("the rows of the dataset were not read".to_owned())),
    }
}

/// The requests that a plan replays; `None` where it replays none.
fn trace_of(plan: &Plan, inputs: &Inputs) -> Result<Option<Arc<Trace>>, RunError> {
    let trace = inputs.trace.clone().filter(|_| plan.replays());
    if plan.replays() && trace.is_none() {
        return Err(RunError::Plan("the recorded requests were not read".to_owned()));
    }
    Ok(trace)
}

/// The values of a plan, the longest of which has at least `longest` bytes. The values are zeros where requests are a
/// sequence.
fn values_of(plan: &Plan, longest: u64) -> Result<ValueMaker, RunError> {
    let values = ValueMaker::reaching(&plan.data, longest)
        .map_err(|error: ValueTooLarge| RunError::Plan(error.to_string()))?
        .with_signed_counters(plan.protocol.is_resp());
    let Some(sequence) = plan.sequence() else {
        return Ok(values);
    };
    let stores = plan
        .phases
        .iter()
        .any(|phase| matches!(&phase.work, Work::Mix(mix) if mix.ops.iter().any(|(verb, _)| verb.stores())));
    let draws = plan.phases.iter().filter_map(|phase| phase.stop.requests).max().unwrap_or(u64::MAX);
    Ok(values.of_zeros(if stores { sequence::largest(sequence.sizes, draws) } else { 0 }))
}

/// Returns the router of each group's clients.
fn routers_of(plan: &Plan) -> Vec<Router> {
    let router = |block: u32| Router::new(plan.route, &plan.servers).in_blocks(block.into());
    plan.groups.iter().map(|group| router(group.policy.block)).collect()
}

/// 64 bits that no other run has, from the operating system.
fn random_mark() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
