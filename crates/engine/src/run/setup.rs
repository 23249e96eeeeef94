//! The parts of one worker from the context of the run: its clients, their endpoints and its limits.

use std::borrow::Cow;
use std::sync::Arc;

use pummel_logic::client::Client;
use pummel_logic::cluster::hops::HopLimits;
use pummel_logic::cluster::reads::ReadRule;
use pummel_logic::cluster::view::ClusterView;
use pummel_logic::plan::share::{ClientId, depth_at_start, loaders, rank_among_mates};
use pummel_logic::plan::{Clock, Group, Plan, Retry, TRACE_VERBS, Transport, Work};
use pummel_logic::protocol::Verb;
use pummel_logic::protocol::handshake::Handshake;
use pummel_logic::protocol::resp::template::Template;
use pummel_logic::retry::Retries;
use pummel_logic::rng::{Stream, mix};
use pummel_logic::unsent::draws_of_client;
use pummel_logic::workload::mix::verbs_of;
use pummel_logic::workload::request::{CacheClock, RequestInputs, RequestMaker};
use pummel_logic::workload::rows::Rows;
use pummel_logic::workload::sequence::{RequestLength, Sequencer};
use pummel_logic::workload::trace::TraceShare;
use pummel_logic::workload::verify::ledger::Ledger;
use pummel_logic::workload::verify::stale::Writer;
use pummel_measure::interval::Interval;
use pummel_measure::side_times::SideTimes;

use super::context::RunContext;
use crate::clock;
use crate::resolve::Server;
use crate::worker::external_inputs::{ClusterFollower, ExternalInputs};
use crate::worker::feed::RowFeed;
use crate::worker::message_sender::MessageSender;
use crate::worker::population::ChurnLimits;
use crate::worker::reporter::{ReportOptions, WorkerReporter};
use crate::worker::{Endpoint, WorkerLimits, WorkerParts, WorkerSetup};

/// The parts of the worker that `sender` belongs to, with these clients. They are compiled once, and not for each codec and backend.
#[inline(never)]
pub(super) fn parts_of(context: &RunContext<'_>, sender: MessageSender, clients: &[ClientId]) -> WorkerParts {
    let (plan, number) = (context.plan, sender.worker);
    let intervals = std::array::from_fn(|_| Box::new(empty_interval(context).of_worker(number)));
    let options = report_options_of(context, number, clients);
    let (own_clients, endpoints) = clients_of(context, clients);
    let setup = WorkerSetup {
        clients: own_clients,
        lanes: plan.lanes(),
        servers: Arc::clone(&context.host.servers),
        endpoints,
        depth: plan.groups.iter().map(|group| lane_depth_of(context, group)).max().unwrap_or(1),
        handshake: lanes_handshake_of(context),
        limits: limits_of(plan),
        maker: request_maker_of(context, number, clients.len()),
        reporter: WorkerReporter::new(sender, intervals, options),
    };
    let feed = context.trace_run.as_ref().and_then(|run| {
        Some(RowFeed::new(run.take_feed(number)?, Arc::clone(&run.states), number, context.is_simulated()))
    });
    let churn_limits = churn_limits_of(context, number);
    let cluster = context.cluster.as_ref().map(|published| ClusterFollower::new(Arc::clone(published)));
    let external = ExternalInputs { feed, cluster };
    WorkerParts { setup, external, steered: context.steered.clone(), churn_limits }
}

/// Outstanding requests of a connection for which memory is taken beforehand. Most lanes of a cluster's clients are never opened, and take
/// memory when they are.
fn lane_depth_of(context: &RunContext<'_>, group: &Group) -> usize {
    if context.cluster.is_some() { 0 } else { depth_at_start(group.depth) }
}

/// An interval with memory for everything that the run records.
pub(super) fn empty_interval(context: &RunContext<'_>) -> Interval {
    let verbs = recorded_verbs(context.plan);
    let mut interval = Interval::new(context.plan.groups.iter().map(|_| verbs.iter().copied()));
    let has_pairs = |phase: &pummel_logic::plan::Phase| matches!(&phase.work, Work::Mix(mix) if phase.recorded && mix.has_pairs());
    interval.side_times = SideTimes {
        outstanding: context.wants.outstanding.then(Box::default),
        pairs: context.plan.phases.iter().any(has_pairs).then(Box::default),
        hops: context.cluster.as_ref().map(|_| Box::default()),
        transmit: context.plan.engine.stamps.map(|_| Box::default()),
        servers: Vec::new(),
    };
    interval
}

/// The clients of a worker, and the endpoints of their connections.
fn clients_of(context: &RunContext<'_>, ids: &[ClientId]) -> (Vec<Client>, Vec<Endpoint>) {
    let plan = context.plan;
    let mut clients = Vec::with_capacity(ids.len());
    let mut endpoints = Vec::with_capacity(ids.len() * plan.lanes());
    for &id in ids {
        let servers = servers_of_client(context, id);
        clients.push(client_of(context, id, &servers));
        let ranks = ranks_of(plan, id, &servers);
        endpoints.extend(ranks.zip(servers.iter()).map(|(rank, &server)| {
            Endpoint {
                server,
                rank,
                transport: context
                    .phases
                    .first()
                    .map_or(plan.transport, |share| context.transport_of(share.phase, server)),
            }
        }));
        let has_datagrams = plan.window().is_some_and(|window| window.pool.datagrams);
        if let Some(last) = endpoints.last_mut().filter(|_| has_datagrams) {
            last.transport = Transport::Udp;
        }
    }
    (clients, endpoints)
}

/// The ranks of a client's connections among all connections of the plan to their servers, by lane. The lanes of a client go
/// to `servers`: to one of the plan, or to all of them in turn.
fn ranks_of(plan: &Plan, id: ClientId, servers: &[u32]) -> impl Iterator<Item = u64> {
    let lanes = servers.len() as u64;
    let (client, cycle) = match servers.iter().all(|server| *server == servers[0]) {
        true => (rank_at_server(plan, id, servers[0]), 1),
        false => (plan.clients_before(id), plan.servers.len() as u64),
    };
    let first = client * (lanes / cycle);
    (0..lanes).map(move |lane| first + lane / cycle)
}

/// The rank of a client, all of whose lanes go to `server`, among the clients of the plan at that server.
fn rank_at_server(plan: &Plan, id: ClientId, server: u32) -> u64 {
    let block_of = |group: usize| match plan.window() {
        Some(window) => u64::from(window.pool.block),
        None => u64::from(plan.groups[group].policy.block),
    };
    let among_mates = |group: usize, number: u64| {
        let clients = u64::from(plan.groups[group].clients);
        rank_among_mates(number, clients, plan.servers.len() as u64, block_of(group))
    };
    // The number of the first client of a group at the server, which a small group does not have.
    let first = |group: usize| u64::from(server) * block_of(group);
    let before: u64 = (0..id.group).map(|group| among_mates(group, first(group)).1).sum();
    before + among_mates(id.group, id.number).0
}

/// The servers that the lanes of a client go to.
fn servers_of_client<'a>(context: &'a RunContext<'_>, id: ClientId) -> Cow<'a, [u32]> {
    let plan = context.plan;
    match plan.window() {
        Some(window) => Cow::Owned(window.pool.servers_of(id.number, plan.servers.len())),
        None => Cow::Borrowed(context.routers[id.group].servers_of(id.number)),
    }
}

fn client_of(context: &RunContext<'_>, id: ClientId, servers: &[u32]) -> Client {
    let plan = context.plan;
    let writer = context.verifies().then(|| Writer::new(context.mark, plan.clients_before(id)));
    let client = Client::new(id.group, id.number, servers[0], writer).with_lanes(servers);
    let client = if context.cluster.is_some() { client.of_cluster() } else { client };
    let client = if context.retry.is_some() { client.with_retries() } else { client };
    match &context.window {
        Some(window) => client.with_window(window, plan.groups[id.group].clients.into()),
        None => client,
    }
}

/// The maker of the requests of one worker's clients.
fn request_maker_of(context: &RunContext<'_>, worker: usize, own_clients: usize) -> RequestMaker {
    let plan = context.plan;
    let clients = plan.groups.first().map_or(1, |group| u64::from(group.clients));
    let (keys, values) = (context.keys.clone(), context.values.clone());
    let workers = context.process_share.workers.into();
    let worker = u64::from(context.process_share.first_worker) + worker as u64;
    let clock = if plan.protocol.is_resp() { CacheClock::Fine } else { CacheClock::Seconds };
    RequestMaker::new(RequestInputs {
        verify: plan.verify,
        ledger: plan.audits().then(|| Ledger::new(plan.data.records, context.began_at_worker())),
        router: context.routers[0].clone(),
        cluster: context.cluster.as_ref().map(|_| Box::new(cluster_view_of(context, worker))),
        loaders: loaders(context.loading),
        bare_counters: plan.protocol.is_resp(),
        cache: plan.tells_misses().then_some(clock),
        sequencer: plan.sequence().map(|sequence| Sequencer::new(sequence, &plan.data.key_prefix)),
        window: context.window.clone(),
        rows: context.trace_run.as_ref().map(|run| Rows::new(Arc::clone(&run.places), own_clients)),
        trace: context.trace.as_ref().map(|trace| TraceShare::new(Arc::clone(trace), worker, workers)),
        recorded: context.recorded_keys.clone(),
        commands: context.commands.clone().unwrap_or_default(),
        retries: context.retry.as_ref().map(|retry| Box::new(retries_of(plan, retry, worker))),
        load_verb: plan.load_verb(),
        dataset: context.dataset.clone(),
        script: context.script.clone(),
        epoch_ns: clock::wall().saturating_sub(clock::now()),
        ..RequestInputs::new(keys, values, &plan.data, clients, context.mark)
    })
}

/// The commands that are reads: bit n stands for command n.
fn reading_commands(commands: &[Template]) -> u16 {
    let bit = |(place, template): (usize, &Template)| u16::from(template.reads()) << place;
    commands.iter().enumerate().map(bit).fold(0, |all, bit| all | bit)
}

/// The cluster as a worker sees it before it has taken the first map.
fn cluster_view_of(context: &RunContext<'_>, worker: u64) -> ClusterView {
    let plan = context.plan;
    let limits = HopLimits { redirects: plan.cluster.redirects, timeout_ns: plan.timeout_ns };
    let reads = ReadRule {
        from: plan.cluster.read_from,
        command_reads: reading_commands(context.commands.as_deref().map_or(&[], Vec::as_slice)),
        masters_alone: false,
    };
    let jitter = Stream::from_seed(mix(&[plan.seed, worker, CLUSTER_STREAM]));
    let mut view = ClusterView::new(plan.lanes(), limits, jitter);
    view.reads = reads;
    view
}

/// The requests of a worker that are sent again.
fn retries_of(plan: &Plan, retry: &Retry, worker: u64) -> Retries {
    Retries::new(retry, Stream::from_seed(mix(&[plan.seed, worker, RETRY_STREAM])))
}

/// The handshake of the clients' connections, which load the script of the plan. A master may become a replica at any time, so that
/// READONLY is sent to all nodes where replicas are asked something.
fn lanes_handshake_of(context: &RunContext<'_>) -> Arc<Handshake> {
    let handshake = match &context.cluster {
        Some(_) if context.plan.cluster.read_from.asks_replicas() => {
            Arc::new(Handshake::clone(&context.handshake).reading_replicas())
        }
        _ => Arc::clone(&context.handshake),
    };
    match &context.plan.script {
        Some(script) => Arc::new(Handshake::clone(&handshake).loading_script(&script.path, &script.text)),
        None => handshake,
    }
}

/// The number of the stream that shifts the waits of redirected requests.
const CLUSTER_STREAM: u64 = 0x636c_7573_7465_7200;

/// The number of the stream that shifts the waits of requests that are sent again.
const RETRY_STREAM: u64 = 0x7265_7472_7900;

fn limits_of(plan: &Plan) -> WorkerLimits {
    WorkerLimits {
        timeout_ns: plan.timeout_ns,
        reconnect: plan.reconnect,
        no_replies: plan.measures_no_reply(),
        drain_ns: plan.drain_ns(),
        load_silence_max_ns: plan.load_silence_max_ns(),
        silence_max_ns: plan.silence_max_ns(),
        unsent_draws_max: draws_of_client(plan.clients()),
        has_stage: plan.changes.has_stage(),
    }
}

fn report_options_of(context: &RunContext<'_>, worker: usize, clients: &[ClientId]) -> ReportOptions {
    let plan = context.plan;
    let lanes = plan.lanes();
    let churns = plan.churning_group().is_some();
    ReportOptions {
        checks: if context.verifies() { clients.len() * lanes } else { 0 },
        churn_account: churns.then(|| plan.sequence().map(|_| request_length(plan))),
        checks_grow: churns && context.verifies(),
        rows: context.wants.rows,
        departures: context.wants.departures,
        connections: context.wants.connections,
        waits_for_intervals: context.is_simulated(),
        first_connection: clients.first().map_or(0, |client| plan.clients_before(*client) * lanes as u64) + 1,
        successes_only: plan.groups.iter().map(|group| group.policy.successes_only).collect(),
        stamped: plan.engine.clock == Clock::Kernel && !context.host.servers.iter().any(Server::is_unix),
        times_servers: plan.servers.len() > 1,
        sampling: plan.engine.stamps.map(|sampling| (sampling, plan.seed)),
        failed_keys: plan.failed_keys && plan.window().is_none() && plan.sequence().is_none(),
        shards: context.cluster.as_ref().map(|published| Arc::clone(published.shards())),
        parts: plan.changes.parts.iter().map(|part| part.at_ns).collect(),
        seed: mix(&[plan.seed, u64::from(context.process_share.first_worker) + worker as u64]),
    }
}

/// The clients of a worker that come and go; `None` where all clients stay.
fn churn_limits_of(context: &RunContext<'_>, worker: usize) -> Option<ChurnLimits> {
    let (plan, share) = (context.plan, &context.process_share);
    let (group, _) = plan.churning_group()?;
    Some(ChurnLimits {
        group,
        limit: share.churning_clients_of_worker(group, worker) as usize,
        share: (u64::from(share.first_worker) + worker as u64, u64::from(share.workers)),
        depth: lane_depth_of(context, &plan.groups[group]),
        mark: context.verifies().then_some(context.mark),
        transport: plan.transport,
    })
}

/// The sizes of a sequence's requests.
fn request_length(plan: &Plan) -> RequestLength {
    let noreply = plan.phases.iter().any(|phase| matches!(&phase.work, Work::Mix(mix) if mix.noreply));
    let expiry_s = plan.data.expiry_s.quantile(0.0) as i64;
    RequestLength { prefix_bytes: plan.data.key_prefix.len() as u64, expiry_s, noreply }
}

/// The verbs of recorded phases, so that memory for them is taken at the start.
fn recorded_verbs(plan: &Plan) -> Vec<Verb> {
    let mut verbs = Vec::new();
    for phase in plan.phases.iter().filter(|phase| phase.recorded) {
        match &phase.work {
            Work::Load(load) => {
                verbs.push(Verb::Set);
                verbs.extend(plan.load_verb().filter(|_| load.commands));
            }
            Work::Mix(mix) => verbs.extend(verbs_of(mix)),
            Work::Replay(_) | Work::Window(_) => verbs.extend([Verb::Get, Verb::Set]),
            Work::Trace(_) => {
                let sayable = plan.protocol.row().verbs;
                verbs.extend(TRACE_VERBS.iter().filter(|verb| sayable.contains(verb)));
            }
            Work::Delete(_) => verbs.push(Verb::Delete),
            Work::Pause(_) | Work::Audit(_) => {}
        }
    }
    verbs
}
