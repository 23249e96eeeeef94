//! Observations of the cluster whose nodes a run asked.

use std::collections::BTreeMap;

use pummel_logic::cluster::nodes::UNOWNED;
use serde::{Deserialize, Serialize};

use crate::outages::{Outage, merge_outages};

/// A node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterNode {
    /// Name of the node, `host:port`.
    pub name: String,
    /// Slots that the node owned at the end of the run; 0 for replicas and for nodes that had left.
    pub slots: u32,
    /// Whether the node was a replica at the start, or, where it joined later, at the end.
    #[serde(default)]
    pub is_replica: bool,
    /// Whether the node was not in the cluster at the start.
    #[serde(default)]
    pub joined: bool,
}

/// A shard of a cluster: the slots that one node owned at the start, whichever nodes served them later.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// Number of the node that owned the slots at the start.
    pub node: u16,
    /// Number of slots.
    pub slots: u32,
    /// Records of the run whose keys lie in these slots; `None` where the run has too many to count, or keys that are not those of records.
    #[serde(default)]
    pub records: Option<u64>,
    /// Times in which too few of the shard's requests got a good reply.
    pub outages: Vec<Outage>,
}

/// Observations of a run's cluster, beside the replies to its requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterSeen {
    /// The nodes by their numbers, which are those of the servers in the measurement. Nodes that joined come last.
    pub nodes: Vec<ClusterNode>,
    /// The shards as they were at the start.
    #[serde(default)]
    pub shards: Vec<Shard>,
    /// Answers to the question for the map, without the first one.
    pub refreshes: u64,
    /// Questions for the map that no answer came to.
    pub refreshes_failed: u64,
    /// Maps that differed from the one before, the first one among them.
    pub generations: u64,
    /// Nodes in the last answer whose names cannot be used.
    pub unusable: u64,
}

impl ClusterSeen {
    /// Adds the account of another process of the run. Returns the number here of each node there; `None` for nodes beyond the
    /// 65,535 that have numbers.
    pub fn merge(&mut self, other: &ClusterSeen) -> Vec<Option<u16>> {
        // A process that has seen more maps is the one that looked last.
        if other.generations > self.generations {
            let slots: BTreeMap<&str, u32> =
                other.nodes.iter().map(|there| (there.name.as_str(), there.slots)).collect();
            self.nodes.iter_mut().for_each(|node| node.slots = *slots.get(node.name.as_str()).unwrap_or(&0));
        }
        let numbers = self.add_nodes(&other.nodes);
        let mut places: BTreeMap<u16, usize> =
            self.shards.iter().enumerate().map(|(place, own)| (own.node, place)).collect();
        for shard in &other.shards {
            let Some(&Some(node)) = numbers.get(usize::from(shard.node)) else { continue };
            match places.get(&node) {
                Some(place) => {
                    let own = &mut self.shards[*place];
                    merge_outages(&mut own.outages, &shard.outages);
                    own.records = own.records.or(shard.records);
                }
                None => {
                    places.insert(node, self.shards.len());
                    self.shards.push(Shard { node, ..shard.clone() });
                }
            }
        }
        self.refreshes = self.refreshes.saturating_add(other.refreshes);
        self.refreshes_failed = self.refreshes_failed.saturating_add(other.refreshes_failed);
        self.generations = self.generations.max(other.generations);
        self.unusable = self.unusable.max(other.unusable);
        numbers
    }

    /// Adds the nodes that are not known. Returns the number of each of these nodes.
    fn add_nodes(&mut self, nodes: &[ClusterNode]) -> Vec<Option<u16>> {
        let known = self.nodes.iter().zip(0..UNOWNED);
        let mut known: BTreeMap<String, u16> =
            known.map(|(node, number)| (node.name.clone(), number)).collect();
        let number_of = |node: &ClusterNode| {
            if let Some(number) = known.get(&node.name) {
                return Some(*number);
            }
            let number = u16::try_from(self.nodes.len()).ok().filter(|number| *number < UNOWNED)?;
            self.nodes.push(node.clone());
            known.insert(node.name.clone(), number);
            Some(number)
        };
        nodes.iter().map(number_of).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pummel_logic::time::SECOND;

    use super::*;

    fn node(name: &str, slots: u32) -> ClusterNode {
        ClusterNode { name: name.to_owned(), slots, is_replica: false, joined: false }
    }

    fn outage(from: u64, to: u64, failed: u64) -> Outage {
        let [from_ns, to_ns] = [from, to].map(|seconds| seconds * SECOND);
        Outage {
            from_ns,
            to_ns,
            first_error_ns: from_ns,
            last_error_ns: to_ns,
            success_worst: 0.5,
            failed,
            late: 0,
            unsent: 0,
            replies: BTreeMap::new(),
        }
    }

    #[test]
    fn nodes_and_shards_of_two_processes_are_added_by_their_names() {
        let shard = |node, outages| Shard { node, slots: 8_192, records: None, outages };
        let mut one = ClusterSeen {
            nodes: vec![node("a:1", 8_192), node("a:2", 8_192), node("a:3", 0)],
            shards: vec![shard(0, vec![outage(1, 2, 10)]), shard(1, Vec::new())],
            refreshes: 2,
            generations: 1,
            ..ClusterSeen::default()
        };
        let other = ClusterSeen {
            nodes: vec![node("a:3", 8_192), node("a:1", 8_192), node("a:9", 0)],
            shards: vec![shard(1, vec![outage(2, 3, 5)]), shard(0, vec![outage(7, 8, 1)])],
            refreshes: 3,
            generations: 2,
            unusable: 1,
            ..ClusterSeen::default()
        };
        assert_eq!(one.merge(&other), [Some(2), Some(0), Some(3)]);
        let nodes = one.nodes.iter().map(|node| (node.name.as_str(), node.slots)).collect::<Vec<_>>();
        assert_eq!(nodes, [("a:1", 8_192), ("a:2", 0), ("a:3", 8_192), ("a:9", 0)], "of the later map");
        assert_eq!(one.shards.iter().map(|shard| shard.node).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(one.shards[0].outages.len(), 1, "what is near in time is one outage");
        assert_eq!((one.shards[0].outages[0].failed, one.shards[2].outages[0].failed), (15, 1));
        assert_eq!((one.refreshes, one.generations, one.unusable), (5, 2, 1));
    }

    #[test]
    fn nodes_beyond_those_with_numbers_are_left_out() {
        let nodes =
            |range: std::ops::Range<u32>| range.map(|number| node(&format!("a:{number}"), 1)).collect();
        let mut one = ClusterSeen { nodes: nodes(0..65_000), ..ClusterSeen::default() };
        let shards = [0, 999].map(|node| Shard { node, slots: 1, ..Shard::default() }).to_vec();
        let other = ClusterSeen { nodes: nodes(64_999..65_999), shards, ..ClusterSeen::default() };
        let numbers = one.merge(&other);
        assert_eq!(
            (numbers[0], numbers[1], numbers[535], numbers[536]),
            (Some(64_999), Some(65_000), Some(65_534), None)
        );
        assert_eq!((one.nodes.len(), numbers[999], one.shards.len()), (65_535, None, 1));
    }
}
