//! Runs on a cluster: its nodes are found before the run, and a thread asks for them again while it goes on.

use std::iter;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread;

use pummel_logic::client::route::crc16::Deal;
use pummel_logic::cluster::map::SlotMap;
use pummel_logic::cluster::nodes::{NodeName, NodeNumber, NodeTable};
use pummel_logic::cluster::refresh::RefreshSchedule;
use pummel_logic::cluster::shards::ShardOfSlot;
use pummel_logic::cluster::slots_reply::{NodeSeen, SlotsReply};
use pummel_logic::cluster::{SLOTS, slot_of};
use pummel_logic::plan::Plan;
use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::rng::mix;
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_logic::workload::key::KEY_MAX_BYTES;
use pummel_logic::workload::mix::spaces_of;
use pummel_measure::cluster::{ClusterNode, ClusterSeen, Shard};
use pummel_measure::outages::ShardBuckets;

use super::context::RunContext;
use super::error::{RunError, no_thread};
use super::inputs::Run;
use super::login::handshake_of;
use super::servers::resolved;
use crate::backend::tls::Setup;
use crate::clock;
use crate::cluster::discovery::{SlotsQuestions, Unanswered};
use crate::cluster::published::{Published, Topology};
use crate::cluster::refresher::{Joining, Refreshes, refresh, topology_of};
use crate::resolve::{Server, Sources};

/// Shortest and longest time for a node to take a connection before the run, and to answer, in nanoseconds.
const WAIT_NS: (Nanos, Nanos) = (SECOND, 60 * SECOND);

/// Time for a node to take a connection while the run goes on, and to answer, in nanoseconds: another one is asked then.
const REFRESH_NS: Nanos = 500 * MILLISECOND;

/// Most records that are counted by their shards: a second of work.
const COUNTED_MAX: u64 = 10_000_000;

/// The description of the operation when the kernel lets no node be asked.
const CANNOT_ASK: &str = "the cluster cannot be asked for its nodes";

/// The cluster of a run, before the run.
pub(super) struct Found {
    /// The plan with the nodes of the cluster as its servers.
    pub(super) plan: ValidPlan,
    /// The answer that said which nodes there are.
    pub(super) reply: SlotsReply,
}

/// Asks the servers of a plan one after the other for the nodes of their cluster, until one has answered or `goes_on` returns
/// false.
///
/// # Errors
/// Returns [`RunError::Plan`] where a server is no node of a cluster, or names no node that can be reached, and
/// [`RunError::Cluster`] where none answers.
pub(super) fn found(run: &Run<'_>, goes_on: &dyn Fn() -> bool) -> Result<Found, RunError> {
    let Run { plan, inputs, .. } = run;
    let servers: Arc<[Server]> = resolved(plan, &plan.servers, inputs.permit.as_ref(), goes_on)?.into();
    let tls = plan.tls.as_ref().map(|options| match &inputs.tls_files {
        Some(files) => Setup::with_files(options, &servers, files.as_ref()),
        None => Setup::new(options, &servers),
    });
    let tls = tls.transpose().map_err(RunError::Tls)?;
    let handshake = Arc::new(handshake_of(plan, inputs)?);
    let wait_ns = plan.timeout_ns.clamp(WAIT_NS.0, WAIT_NS.1);
    let questions = SlotsQuestions::new(plan, Arc::clone(&servers), tls.as_ref(), handshake, wait_ns);
    let mut questions = questions.map_err(|error| RunError::Kernel(CANNOT_ASK, error))?;
    let mut failures = Vec::new();
    for number in 0..servers.len() {
        let name = servers[number].name();
        let answer = questions.ask(number, goes_on).map_err(|error| RunError::Kernel(CANNOT_ASK, error))?;
        match answer.ok_or(RunError::Interrupted)? {
            Ok(reply) if reply.ranges.iter().all(|range| range.master.is_none()) => {
                failures.push(format!("{name} names no node of its cluster that owns a slot and has a name"));
            }
            Ok(reply) => return with_nodes(plan, reply),
            Err(Unanswered::NotACluster) => {
                let why =
                    format!("{name} is no node of a cluster (its cluster mode is off): leave out --cluster");
                return Err(RunError::Plan(why));
            }
            Err(Unanswered::Failed(why)) => failures.push(format!("{name} {why}")),
        }
    }
    Err(RunError::Cluster(failures.join("; ")))
}

/// The plan with the nodes of a reply as its servers: the masters in the order of their slots, then the replicas by their names,
/// so that all processes number them alike.
fn with_nodes(plan: &Plan, reply: SlotsReply) -> Result<Found, RunError> {
    let mut ranges: Vec<_> = reply.ranges.iter().collect();
    ranges.sort_by_key(|range| range.first);
    let masters = ranges.iter().filter_map(|range| range.master.as_ref());
    let mut replicas: Vec<&NodeSeen> = ranges.iter().flat_map(|range| &range.replicas).collect();
    replicas.sort_by(|one, other| one.name.cmp(&other.name));
    let mut servers: Vec<String> = Vec::new();
    for node in masters.chain(replicas) {
        let name = node.name.to_string();
        if !servers.contains(&name) {
            servers.push(name);
        }
    }
    let plan = Plan { servers, ..plan.clone() };
    let plan = plan.validate().map_err(|error| {
        RunError::Plan(format!("the nodes that the cluster names cannot be used: {error}"))
    })?;
    Ok(Found { plan, reply })
}

/// The servers of a run on a cluster, with places for nodes that join it, and the first map.
pub(super) fn published(
    plan: &Plan,
    servers: &[Server],
    reply: &SlotsReply,
) -> Result<(Arc<[Server]>, Arc<Published>), RunError> {
    let (servers, nodes) = with_vacant(plan, servers)?;
    let joining = Joining {
        servers: &servers,
        permits: &|_| true,
        takes_replicas: plan.cluster.read_from.asks_replicas(),
    };
    let first = topology_of(reply, &nodes, &joining);
    let nodes_max = servers.len();
    Ok((servers, Arc::new(Published::new(first, nodes_max))))
}

/// The servers of a simulated run on a cluster, with places for nodes that join it, and a map in which the servers of the plan own as
/// many slots each. Where replicas are asked something, the second half of the servers are the replicas of the first.
pub(super) fn dealt(plan: &Plan, servers: &[Server]) -> Result<(Arc<[Server]>, Arc<Published>), RunError> {
    let (servers, nodes) = with_vacant(plan, servers)?;
    let count = plan.servers.len();
    let masters = if plan.cluster.read_from.asks_replicas() { count.div_ceil(2) } else { count };
    let (deal, mut map) = (Deal::new(&plan.servers[..masters]), SlotMap::unowned());
    (0..SLOTS as u16).for_each(|slot| map.set_owner(slot, deal.owner(slot) as NodeNumber));
    (masters..count)
        .for_each(|replica| map.add_replica((replica - masters) as NodeNumber, replica as NodeNumber));
    let nodes_max = servers.len();
    let first = Topology { map: Arc::new(map), nodes: Arc::new(nodes) };
    Ok((servers, Arc::new(Published::new(first, nodes_max))))
}

/// The servers of a plan with places for nodes that join its cluster, and the table of the nodes that are known.
fn with_vacant(plan: &Plan, servers: &[Server]) -> Result<(Arc<[Server]>, NodeTable), RunError> {
    let sources = Sources::parse(&plan.socket.source).map_err(RunError::Connect)?;
    let vacant = iter::repeat_with(|| Server::vacant(&sources)).take(plan.lanes() - servers.len());
    let servers: Arc<[Server]> = servers.iter().cloned().chain(vacant).collect();
    let mut nodes = NodeTable::new(servers.len());
    for name in plan.servers.iter().filter_map(|name| NodeName::parse(name)) {
        nodes.number_of(&name);
    }
    Ok((servers, nodes))
}

/// The thread that asks for new maps.
pub(super) struct Refresher<'scope> {
    thread: thread::ScopedJoinHandle<'scope, Refreshes>,
    end: EndOfRefreshes,
}

/// Ends the thread, also when the run does not get as far as its workers.
struct EndOfRefreshes(Arc<Published>);

impl Drop for EndOfRefreshes {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Starts the thread that asks for new maps.
pub(super) fn spawn_refresher<'scope, 'a: 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    context: &'a RunContext<'a>,
    published: &Arc<Published>,
) -> Result<Refresher<'scope>, RunError> {
    let plan = context.plan;
    let servers = Arc::clone(&context.host.servers);
    let schedule = RefreshSchedule::new(mix(&[plan.seed, context.process_share.mark]));
    let schedule = match plan.cluster.refresh_ns {
        Some(period_ns) => schedule.with_period(period_ns, clock::now()),
        None => schedule,
    };
    let shared = Arc::clone(published);
    let work = move || {
        let (tls, handshake) = (context.host.tls.as_ref(), Arc::clone(&context.handshake));
        let permits = |address: IpAddr| context.permit.as_ref().is_none_or(|permit| permit(address));
        let joining = Joining {
            servers: &servers,
            permits: &permits,
            takes_replicas: plan.cluster.read_from.asks_replicas(),
        };
        match SlotsQuestions::new(plan, Arc::clone(&servers), tls, handshake, REFRESH_NS) {
            Ok(questions) => refresh(&shared, questions, schedule, &joining),
            // Without it the run goes on with what its own replies teach it.
            Err(_) => Refreshes::default(),
        }
    };
    let thread = thread::Builder::new().name("cluster".to_owned()).spawn_scoped(scope, work);
    Ok(Refresher { thread: thread.map_err(no_thread)?, end: EndOfRefreshes(Arc::clone(published)) })
}

impl Refresher<'_> {
    /// Ends the thread, and returns what its questions came to.
    pub(super) fn join(self) -> Refreshes {
        drop(self.end);
        self.thread.join().unwrap_or_default()
    }
}

/// The cluster as its workers saw it, at the end of a run. The requests of the shards stand in their order.
pub(super) fn seen(
    context: &RunContext<'_>,
    published: &Published,
    requests: &[ShardBuckets],
) -> ClusterSeen {
    let Topology { map, nodes } = published.topology();
    let first = published.first();
    let node = |number: usize| {
        let (joined, number) = (number >= first.nodes.len(), number as NodeNumber);
        ClusterNode {
            name: nodes.name(number).to_string(),
            slots: map.slots_of(number),
            is_replica: if joined { map.is_replica(number) } else { first.map.is_replica(number) },
            joined,
        }
    };
    let records = records_by_shard(context, published.shards());
    let shards = published.shards().owners().iter().enumerate().map(|(at, &(node, slots))| Shard {
        node,
        slots,
        records: records.as_ref().map(|records| records[at]),
        outages: requests.get(at).map(ShardBuckets::outages).unwrap_or_default(),
    });
    ClusterSeen {
        nodes: (0..nodes.len()).map(node).collect(),
        shards: shards.collect(),
        ..ClusterSeen::default()
    }
}

/// Number of the run's records in each shard; `None` where it has more than [`COUNTED_MAX`], or keys that are not those of records.
fn records_by_shard(context: &RunContext<'_>, shards: &ShardOfSlot) -> Option<Vec<u64>> {
    let (keys, plan) = (&context.keys, context.plan);
    let spaces = spaces_of(plan);
    let records = plan.data.records.checked_mul(spaces.len() as u64)?;
    if spaces.is_empty() || records > COUNTED_MAX {
        return None;
    }
    let mut counts = vec![0; shards.owners().len()];
    let mut buffer = [0; KEY_MAX_BYTES];
    for space in spaces {
        for record in 0..plan.data.records {
            let index = keys.spaces().index(space, record);
            counts[shards.of(slot_of(keys.key(index, &mut buffer)))] += 1;
        }
    }
    Some(counts)
}

/// Adds what the questions for the map came to.
pub(super) fn add_refreshes(seen: &mut ClusterSeen, refreshes: Refreshes) {
    seen.refreshes = refreshes.answered;
    seen.refreshes_failed = refreshes.failed;
    seen.generations = refreshes.generations;
    seen.unusable = refreshes.unusable;
}
