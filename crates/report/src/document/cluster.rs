//! The cluster of a run: redirects, the load of each shard, and outages.

use std::collections::BTreeSet;

use pummel_logic::cluster::SLOTS;
use pummel_logic::cluster::view::RedirectCounts;
use pummel_logic::plan::ReadFrom;
use pummel_logic::time::{Nanos, seconds};
use pummel_logic::words;
use pummel_measure::cluster::{ClusterNode, ClusterSeen, Shard};
use pummel_measure::connections::SERVERS_TIMED_MAX;
use pummel_measure::outages::Outage;
use pummel_measure::parts::ServerRecord;
use pummel_measure::words::counted;
use serde::{Deserialize, Serialize};

use super::figures::{is_zero, rounded};
use super::named::Named;
use super::parts::ServerTimes;
use super::transmit::SampleFigures;
use crate::Report;

/// Most outages that a result lists.
pub const OUTAGES_MAX: usize = 1_000;

/// The cluster whose nodes were asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ClusterResult {
    /// Nodes that were known at the end, replicas among them.
    pub nodes: u64,
    /// Answers to the question for the map of slots, without the first one.
    pub refreshes: u64,
    /// Questions for the map that no answer came to.
    pub refreshes_failed: u64,
    /// Maps that differed from the one before, the first one among them.
    pub generations: u64,
    /// Nodes in the last answer whose names cannot be used.
    pub unusable: u64,
    /// Replies that redirected requests or made them wait, and what became of those requests.
    #[serde(flatten)]
    pub redirects: RedirectCounts,
    /// Times from the first to the last sending of the requests that were sent on and answered in the end; null where there was none.
    pub hop_us: Option<SampleFigures>,
    /// The nodes that owned slots at the start, then the replicas where reads are sent to replicas, then nodes that joined.
    pub shards: Vec<ShardResult>,
    /// The unevenness of the nodes that were to serve reads at the start.
    pub imbalance: ImbalanceResult,
    /// Times in which too few of a shard's requests got a good reply, the first 1,000 in the order of time.
    pub outages: Vec<OutageResult>,
    /// Number of outages that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub outages_beyond: u64,
}

words! {
    /// The role of a node in a cluster.
    #[derive(Default)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum NodeRole {
        /// The node owns slots, or may own some.
        #[default]
        Master = "master",
        /// The node follows a master.
        Replica = "replica",
    }
}

/// A node of a cluster that owned slots, or served requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ShardResult {
    /// Address of the node.
    pub node: String,
    /// The role of the node at the start, or, where it was not in the cluster then, at the end.
    pub role: NodeRole,
    /// Whether the node joined the cluster, or took over slots from another node.
    pub joined: bool,
    /// Slots that the node owned at the start.
    pub slots: u32,
    /// Slots that the node owned at the end.
    pub slots_at_end: u32,
    /// Records of the run whose keys lie in the slots that the node owned at the start; null where it joined, where the run has more
    /// than 10 million records, and where its keys are not those of records.
    pub records: Option<u64>,
    /// Requests that the node answered last, or that were lost with a connection to it; null beyond the first 64 nodes.
    pub requests: Option<u64>,
    /// Share of the node in all requests that were sent; null where `requests` is.
    pub share: Option<f64>,
    /// Share of the node in the 16,384 slots at the start; null where it owned none.
    pub expected: Option<f64>,
    /// Quantiles of the service time, within 3 %; null where one falls among the requests without an answer.
    pub service_us: ServerTimes,
    /// Number of these requests that ended with an error or without an answer; null where `requests` is.
    pub errors: Option<u64>,
    /// Missed keys of records that this run had loaded, in answers of this node; absent where they may be gone for a
    /// reason, and where `requests` is null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unexpected_misses: Option<u64>,
}

/// The unevenness of the nodes that were to serve reads at the start: the masters, with `--read-from any` the replicas too, with
/// `replica` and `prefer-replica` the replicas alone. Null where a figure of a node is not known, and with one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ImbalanceResult {
    /// The most requests of a node by their mean.
    pub requests: Option<f64>,
    /// The greatest 99th percentile of the service time of a node by the median of them.
    pub p99: Option<f64>,
}

/// A time in which less than 99 % of the requests of a shard got a good reply. Its times are seconds from the beginning of the
/// measured phase; requests belong to the time at which they were due, in a closed loop to that at which they were ready.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OutageResult {
    /// The node that owned the shard's slots at the start, whichever node served them later.
    pub shard: String,
    /// Slots of the shard.
    pub slots: u32,
    /// Time of the first request that failed or was not sent, in seconds from the beginning of the measured phase.
    pub first_error: f64,
    /// Time of the last request that failed or was not sent, in seconds as well.
    pub last_error: f64,
    /// Begin and end of the time in which less than 99 % of the requests got a good reply, in seconds, each a whole number of tenths.
    pub below_99: [f64; 2],
    /// Least share of good replies in a tenth of a second, or in more of them where those have few requests.
    pub success_worst: f64,
    /// Requests that failed.
    pub failed: u64,
    /// Good replies that took about ten times as long as the median of the second before, or longer.
    pub late: u64,
    /// Requests that were due and never sent.
    pub unsent: u64,
    /// Failed requests by the kind of their error.
    pub replies: Named<u64>,
}

/// The replies that redirected requests or made them wait, by the word of each kind.
pub fn redirects_by_kind(counts: &RedirectCounts) -> [(&'static str, u64); 6] {
    [
        ("moved", counts.moved),
        ("ask", counts.ask),
        ("tryagain", counts.tryagain),
        ("clusterdown", counts.clusterdown),
        ("loading", counts.loading),
        ("readonly", counts.readonly),
    ]
}

impl OutageResult {
    /// Requests that got no good reply.
    pub fn not_right(&self) -> u64 {
        self.failed.saturating_add(self.unsent)
    }

    fn of(shard: &str, slots: u32, outage: &Outage) -> OutageResult {
        let at_s = |ns: Nanos| rounded(seconds(ns));
        OutageResult {
            shard: shard.to_owned(),
            slots,
            first_error: at_s(outage.first_error_ns),
            last_error: at_s(outage.last_error_ns),
            below_99: [at_s(outage.from_ns), at_s(outage.to_ns)],
            success_worst: rounded(outage.success_worst),
            failed: outage.failed,
            late: outage.late,
            unsent: outage.unsent,
            replies: outage.replies.iter().map(|(reply, count)| (reply.name(), *count)).collect(),
        }
    }
}

/// Facts about the requests of all nodes.
struct OfAll {
    sent: u64,
    /// The nodes that reads were sent to.
    read_from: ReadFrom,
    /// Whether every miss is one of a record that this run had loaded.
    are_unexpected: bool,
}

impl ShardResult {
    /// The node, which owned these slots at the start or none, where `sent` requests were sent to all.
    fn of(
        node: &ClusterNode,
        own: Option<&Shard>,
        record: Option<&ServerRecord>,
        of_all: &OfAll,
    ) -> ShardResult {
        let OfAll { sent, read_from, .. } = *of_all;
        let failed = record.map(|record| record.failed.saturating_add(record.unanswered));
        let requests = record.zip(failed).map(|(record, failed)| record.completed.saturating_add(failed));
        let slots = own.map_or(0, |own| own.slots);
        // Where replicas are asked nothing, one of them that was asked something was a master for a while.
        let took_over = node.slots > 0 || !read_from.asks_replicas();
        ShardResult {
            node: node.name.clone(),
            role: if node.is_replica { NodeRole::Replica } else { NodeRole::Master },
            joined: slots == 0 && (node.joined || took_over),
            slots,
            slots_at_end: node.slots,
            records: own.and_then(|own| own.records),
            requests,
            share: requests.filter(|_| sent > 0).map(|own| rounded(own as f64 / sent as f64)),
            expected: (slots > 0).then(|| rounded(f64::from(slots) / SLOTS as f64)),
            service_us: record.map(ServerTimes::of).unwrap_or_default(),
            errors: failed,
            unexpected_misses: record.filter(|_| of_all.are_unexpected).map(|record| record.misses),
        }
    }

    /// Whether the node is a replica that served as one.
    pub fn is_replica(&self) -> bool {
        self.role == NodeRole::Replica && !self.joined
    }

    /// Whether reads were to be sent to the node, as the cluster was at the start. Masters without a record of the run have none.
    pub fn was_to_serve_reads(&self, read_from: ReadFrom) -> bool {
        let (is_master, is_replica) = (self.slots > 0 && self.records != Some(0), self.is_replica());
        match read_from {
            ReadFrom::Primary => is_master,
            ReadFrom::Replica | ReadFrom::PreferReplica => is_replica,
            ReadFrom::Any => is_master || is_replica,
        }
    }
}

impl ImbalanceResult {
    fn of(shards: &[ShardResult], read_from: ReadFrom) -> ImbalanceResult {
        let all = |figure: fn(&ShardResult) -> Option<f64>| {
            let figures = shards.iter().filter(|shard| shard.was_to_serve_reads(read_from)).map(figure);
            let figures = figures.collect::<Option<Vec<f64>>>()?;
            (figures.len() > 1).then_some(figures)
        };
        let most_by = |figures: &[f64], usual: f64| {
            let most = figures.iter().fold(0.0, |most: f64, figure| most.max(*figure));
            (usual > 0.0).then(|| rounded(most / usual))
        };
        let requests = all(|shard| shard.requests.map(|requests| requests as f64));
        let p99 = all(|shard| shard.service_us.p99);
        ImbalanceResult {
            requests: requests.and_then(|all| most_by(&all, all.iter().sum::<f64>() / all.len() as f64)),
            p99: p99.and_then(|mut all| {
                all.sort_by(f64::total_cmp);
                let (low, high) = (all[(all.len() - 1) / 2], all[all.len() / 2]);
                most_by(&all, f64::midpoint(low, high))
            }),
        }
    }
}

impl ClusterResult {
    /// The cluster by the number of its nodes.
    pub fn words(&self) -> String {
        format!("cluster of {}", counted(self.nodes, "node"))
    }

    /// The cluster of the run; `None` where the servers were none.
    pub(super) fn of(report: &Report<'_>, are_unexpected: bool) -> Option<ClusterResult> {
        let seen = report.measurement.cluster.as_ref()?;
        let counts = report.summary.totals.counts;
        let sent = counts.requests().saturating_sub(counts.unsent);
        let hops = report.measurement.side_times.hops.as_deref();
        let read_from = report.plan.cluster.read_from;
        let of_all = OfAll { sent, read_from, are_unexpected };
        let shards = shards_of(seen, &report.measurement.side_times.servers, &of_all);
        let (outages, outages_beyond) = outages_of(seen);
        Some(ClusterResult {
            nodes: seen.nodes.len() as u64,
            refreshes: seen.refreshes,
            refreshes_failed: seen.refreshes_failed,
            generations: seen.generations,
            unusable: seen.unusable,
            redirects: report.measurement.counters.redirects,
            hop_us: hops.filter(|hops| hops.count() > 0).map(SampleFigures::of),
            imbalance: ImbalanceResult::of(&shards, read_from),
            shards,
            outages,
            outages_beyond,
        })
    }
}

/// The nodes that owned slots at the start, then the replicas where they are asked something, and those that own slots at the end or
/// were asked something.
fn shards_of(seen: &ClusterSeen, records: &[ServerRecord], of_all: &OfAll) -> Vec<ShardResult> {
    let of = |place: usize, own: Option<&Shard>| {
        let node = seen.nodes.get(place)?;
        // The last nodes have no records where they were asked nothing; a cluster of one node has none at all.
        let none = ServerRecord::default();
        let is_told_apart = place < SERVERS_TIMED_MAX && !records.is_empty();
        let record = records.get(place).or(is_told_apart.then_some(&none));
        Some(ShardResult::of(node, own, record, of_all))
    };
    let at_start = seen.shards.iter().filter_map(|shard| of(usize::from(shard.node), Some(shard)));
    let is_asked = |role: NodeRole| role == NodeRole::Replica && of_all.read_from.asks_replicas();
    let owners: BTreeSet<usize> = seen.shards.iter().map(|shard| usize::from(shard.node)).collect();
    let others = (0..seen.nodes.len())
        .filter(|place| !owners.contains(place))
        .filter_map(|place| of(place, None))
        .filter(|node| {
            is_asked(node.role) || node.slots_at_end > 0 || node.requests.is_some_and(|requests| requests > 0)
        });
    at_start.chain(others).collect()
}

/// The first [`OUTAGES_MAX`] outages of all shards in the order of time, and how many there are beyond.
fn outages_of(seen: &ClusterSeen) -> (Vec<OutageResult>, u64) {
    let mut outages: Vec<OutageResult> = Vec::new();
    for shard in &seen.shards {
        let name = seen.nodes.get(usize::from(shard.node)).map_or("", |node| node.name.as_str());
        outages.extend(shard.outages.iter().map(|outage| OutageResult::of(name, shard.slots, outage)));
    }
    outages.sort_by(|one, other| one.below_99[0].total_cmp(&other.below_99[0]));
    let beyond = outages.len().saturating_sub(OUTAGES_MAX) as u64;
    outages.truncate(OUTAGES_MAX);
    (outages, beyond)
}

#[cfg(test)]
mod tests {
    use pummel_measure::measurement::Keep;

    use super::*;
    use crate::example::{self, Run};

    fn cluster_of(run: &Run) -> ClusterResult {
        run.document(|document| document.cluster.clone()).expect("it is a cluster")
    }

    #[test]
    fn a_shard_has_its_part_of_requests_and_slots_and_a_node_that_took_over_has_its_own_entry() {
        let mut run = Run::new(Keep::Figures).on_cluster(2);
        let seen = run.measurement.cluster.as_mut().expect("it is a cluster");
        (seen.nodes[0].slots, seen.nodes[2].slots) = (0, 8_192);
        let servers = &mut run.measurement.side_times.servers;
        servers.resize_with(3, ServerRecord::default);
        servers[1].record(true, None);
        (0..50).for_each(|_| servers[2].record_unanswered());
        let cluster = cluster_of(&run);
        let facts: Vec<_> = cluster
            .shards
            .iter()
            .map(|shard| (shard.joined, shard.slots, shard.slots_at_end, shard.requests, shard.errors))
            .collect();
        let expected = [
            (false, 8_192, 0, Some(1_020), Some(0)),
            (false, 8_192, 8_192, Some(1_001), Some(1)),
            (true, 0, 8_192, Some(50), Some(50)),
        ];
        assert_eq!(facts, expected);
        let shares: Vec<_> = cluster.shards.iter().map(|shard| (shard.share, shard.expected)).collect();
        let expected = [(Some(0.51), Some(0.5)), (Some(0.5), Some(0.5)), (Some(0.025), None)];
        assert_eq!(shares, expected);
        assert_eq!(cluster.shards[2].node, "127.0.0.1:7003");
        assert_eq!(cluster.nodes, 4);
    }

    #[test]
    fn imbalance_is_that_of_the_masters_at_the_start_and_not_known_where_one_of_them_is_not() {
        let mut run = Run::new(Keep::Figures).on_cluster(4);
        let imbalance = cluster_of(&run).imbalance;
        assert_eq!(imbalance.requests, Some(1.015), "510 of a mean of 502.5");
        assert!(imbalance.p99.is_some_and(|p99| (1.0..1.05).contains(&p99)), "{imbalance:?}");
        (0..50).for_each(|_| run.measurement.side_times.servers[3].record_unanswered());
        let imbalance = cluster_of(&run).imbalance;
        assert!(imbalance.requests.is_some() && imbalance.p99.is_none(), "{imbalance:?}");
        let many = cluster_of(&Run::new(Keep::Figures).on_cluster(65));
        assert_eq!(many.imbalance, ImbalanceResult::default());
        assert!(many.shards[63].requests.is_some() && many.shards[64].requests.is_none());
        let one = cluster_of(&Run::new(Keep::Figures).on_cluster(1));
        assert_eq!(one.imbalance, ImbalanceResult::default());
        run.measurement.side_times.servers.clear();
        assert!(cluster_of(&run).shards.iter().all(|shard| shard.requests.is_none()));
    }

    #[test]
    fn replicas_have_rows_and_are_part_of_the_imbalance_where_reads_are_sent_to_them() {
        let record = |requests: u64| {
            let mut record = ServerRecord::default();
            (0..requests).for_each(|_| record.record(false, Some(50_000)));
            record
        };
        for (read_from, rows, imbalance) in [
            (ReadFrom::Primary, 2, Some(1.01)),
            (ReadFrom::Replica, 4, Some(1.5)),
            (ReadFrom::PreferReplica, 4, Some(1.5)),
            (ReadFrom::Any, 4, Some(1.447)),
        ] {
            let mut run = Run::new(Keep::Figures).on_cluster(2);
            run.plan.cluster.read_from = read_from;
            if read_from.asks_replicas() {
                run.measurement.side_times.servers.extend([record(600), record(200)]);
            }
            let cluster = cluster_of(&run);
            let roles: Vec<_> = cluster.shards.iter().map(|shard| (shard.role, shard.joined)).collect();
            let expected = [NodeRole::Master, NodeRole::Master, NodeRole::Replica, NodeRole::Replica];
            assert_eq!(roles, expected[..rows].iter().map(|role| (*role, false)).collect::<Vec<_>>());
            assert_eq!(cluster.imbalance.requests, imbalance, "{read_from:?}");
        }
    }

    #[test]
    fn a_replica_that_took_over_and_one_that_joined_are_told_apart() {
        let mut run = Run::new(Keep::Figures).on_cluster(2);
        run.plan.cluster.read_from = ReadFrom::Any;
        let seen = run.measurement.cluster.as_mut().expect("it is a cluster");
        (seen.nodes[0].slots, seen.nodes[2].slots) = (0, 8_192);
        let node =
            ClusterNode { name: "127.0.0.1:7005".to_owned(), slots: 0, is_replica: true, joined: true };
        seen.nodes.push(node);
        let cluster = cluster_of(&run);
        let facts: Vec<_> =
            cluster.shards.iter().map(|shard| (shard.role, shard.joined, shard.slots_at_end)).collect();
        let expected = [
            (NodeRole::Master, false, 0),
            (NodeRole::Master, false, 8_192),
            (NodeRole::Replica, true, 8_192),
            (NodeRole::Replica, false, 0),
            (NodeRole::Replica, true, 0),
        ];
        assert_eq!(facts, expected);
    }

    #[test]
    fn outages_stand_in_the_order_of_time_with_their_shards_and_beyond_a_thousand_are_counted() {
        let mut run = Run::new(Keep::Figures).on_cluster(3);
        let seen = run.measurement.cluster.as_mut().expect("it is a cluster");
        seen.shards[0].outages.push(example::outage(10, 400));
        seen.shards[2].outages.push(example::outage(4, 40));
        let cluster = cluster_of(&run);
        let expected = OutageResult {
            shard: "127.0.0.1:7001".to_owned(),
            slots: 5_461,
            first_error: 10.012,
            last_error: 12.498,
            below_99: [10.0, 12.5],
            success_worst: 0.0,
            failed: 300,
            late: 133,
            unsent: 100,
            replies: [("refused", 100), ("down", 200)].into_iter().collect(),
        };
        assert_eq!(cluster.outages[1], expected);
        assert_eq!((cluster.outages[0].shard.as_str(), cluster.outages_beyond), ("127.0.0.1:7003", 0));
        let seen = run.measurement.cluster.as_mut().expect("it is a cluster");
        seen.shards[1].outages = (0..1_000).map(|number| example::outage(4 * number, 40)).collect();
        let cluster = cluster_of(&run);
        assert_eq!((cluster.outages.len(), cluster.outages_beyond), (1_000, 2));
    }
}
