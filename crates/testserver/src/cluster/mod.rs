//! A Redis cluster of several nodes in one server: which node owns which slot, and how that changes with time.
//!
//! Follows the "Redis cluster specification" in the order of its checks and in the words of its replies. The nodes have no bus:
//! all of them know each change at once.

mod changes;

use std::collections::BTreeMap;

use pummel_logic::client::route::crc16::{self, SLOTS};
use pummel_logic::time::{NEVER, Nanos};

pub(super) use self::changes::Migration;
use self::changes::{Change, agenda};

/// Most nodes of a cluster.
pub const CLUSTER_NODES_MAX: u32 = 64;

/// A cluster at its start. The slots are dealt out as `redis-cli --cluster create` does.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// Addresses of the nodes, at least one and at most [`CLUSTER_NODES_MAX`].
    pub nodes: Vec<NodeAddress>,
    /// Form in which the nodes are named.
    pub endpoint: Endpoint,
    /// Changes of the cluster, with their times after its start. Their nodes exist.
    pub faults: Vec<ClusterFault>,
}

/// Address at which a node listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAddress {
    /// IP address, without brackets.
    pub ip: String,
    /// Port number.
    pub port: u16,
}

/// Form in which nodes are named to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The IP address.
    Ip,
    /// A host name, the same for all nodes.
    Name(String),
    /// A question mark, as of a node whose host name is not set.
    Unset,
    /// Empty words.
    Empty,
    /// Null in `CLUSTER SLOTS`, and empty words in redirects.
    Null,
}

/// Change of a cluster, at a time after its start. Nodes are counted from 0; the next node is the next one that serves slots, and
/// the first node follows the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterFault {
    /// A slot moves to the node after its owner, key by key, for a second.
    Migrate {
        /// Number of the slot.
        slot: u16,
        /// Time at which the migration begins, in nanoseconds.
        at_ns: Nanos,
    },
    /// A node gives all its slots to the next one, and serves none any more.
    Demote {
        /// Number of the node.
        node: usize,
        /// Time of the change, in nanoseconds.
        at_ns: Nanos,
    },
    /// A node dies; a second later the next one has its slots and its items.
    Kill {
        /// Number of the node.
        node: usize,
        /// Time of the death, in nanoseconds.
        at_ns: Nanos,
    },
    /// No node serves a key.
    Down {
        /// Time at which it begins, in nanoseconds.
        from_ns: Nanos,
        /// Time at which it ends, in nanoseconds.
        until_ns: Nanos,
    },
}

/// Part that a node plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Serving,
    Demoted,
    Dead,
}

/// State of a cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    addresses: Vec<NodeAddress>,
    endpoint: Endpoint,
    standings: Vec<Standing>,
    /// Number of the owner of each slot.
    owners: Vec<usize>,
    migrations: Vec<Migration>,
    /// Number of spans of time, among those that go on, in which no node serves a key.
    downs: u32,
    /// Changes to come, by their times and in the order in which they were planned.
    agenda: BTreeMap<(Nanos, usize), Change>,
    /// Number of changes that were planned so far.
    planned: usize,
    /// Nodes that died and were not asked for since.
    died: Vec<usize>,
    /// Changes that were made and not noted yet: their word and their details.
    made: Vec<(&'static str, String)>,
}

impl Cluster {
    /// A cluster that starts at `now`.
    pub(super) fn new(config: ClusterConfig, now: Nanos) -> Cluster {
        let names: Vec<String> =
            config.nodes.iter().map(|node| format!("{}:{}", node.ip, node.port)).collect();
        let deal = crc16::Deal::new(&names);
        let agenda = agenda(&config.faults, now);
        Cluster {
            standings: vec![Standing::Serving; config.nodes.len()],
            addresses: config.nodes,
            endpoint: config.endpoint,
            owners: (0..SLOTS as u16).map(|slot| deal.owner(slot)).collect(),
            migrations: Vec::new(),
            downs: 0,
            planned: agenda.len(),
            agenda,
            died: Vec::new(),
            made: Vec::new(),
        }
    }

    /// Number of nodes, the dead ones included.
    pub(super) fn nodes(&self) -> usize {
        self.addresses.len()
    }

    /// The address of a node.
    pub(super) fn address(&self, node: usize) -> &NodeAddress {
        &self.addresses[node]
    }

    /// Form in which the nodes are named.
    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The identity of a node, in 40 hexadecimal digits.
    pub(super) fn id(&self, node: usize) -> String {
        format!("{:040x}", node + 1)
    }

    /// Whether the node is dead.
    pub(super) fn is_dead(&self, node: usize) -> bool {
        self.standings[node] == Standing::Dead
    }

    /// Whether the cluster serves keys at all.
    pub(super) fn is_up(&self) -> bool {
        self.downs == 0
    }

    /// The time of the next change; [`NEVER`] if none is to come.
    pub(super) fn next_change(&self) -> Nanos {
        self.agenda.first_key_value().map_or(NEVER, |((at, _), _)| *at)
    }

    /// Takes the nodes that died since the last call.
    pub(super) fn take_died(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.died)
    }

    /// Takes the changes that were made since the last call.
    pub(super) fn take_made(&mut self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.made)
    }

    /// Neighbouring slots of one owner: the first slot, the last one, the owner.
    pub(super) fn ranges(&self) -> Vec<(usize, usize, usize)> {
        let mut first = 0;
        let ranges = self.owners.chunk_by(|left, right| left == right).map(|range| {
            let last = first + range.len() - 1;
            (std::mem::replace(&mut first, last + 1), last, range[0])
        });
        ranges.collect()
    }

    /// The error for a command with these keys, where the node does not carry it out.
    pub(super) fn refusal<'k>(
        &self,
        node: usize,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
        is_asking: bool,
        mut is_present: impl FnMut(&[u8]) -> bool,
    ) -> Option<String> {
        let slot = crc16::slot(keys.clone().next()?);
        if keys.clone().any(|key| crc16::slot(key) != slot) {
            return Some("CROSSSLOT Keys in request don't hash to the same slot".to_owned());
        }
        if !self.is_up() {
            return Some("CLUSTERDOWN The cluster is down".to_owned());
        }
        let owner = self.owners[usize::from(slot)];
        let migration = self.migrations.iter().find(|migration| {
            migration.slot == slot && (migration.source == node || is_asking && migration.target == node)
        });
        let Some(migration) = migration else {
            return (owner != node).then(|| format!("MOVED {slot} {}", self.place(owner)));
        };
        let count = keys.clone().count();
        let present = keys.filter(|key| is_present(key)).count();
        match present {
            _ if present == count => None,
            0 if migration.source == node => Some(format!("ASK {slot} {}", self.place(migration.target))),
            _ if migration.target == node && count == 1 => None,
            _ => Some("TRYAGAIN Multiple keys request during rehashing of slot".to_owned()),
        }
    }

    /// Host and port of a node, as redirects name them.
    fn place(&self, node: usize) -> String {
        let NodeAddress { ip, port } = &self.addresses[node];
        let host = match &self.endpoint {
            Endpoint::Ip => ip,
            Endpoint::Name(name) => name,
            Endpoint::Unset => "?",
            Endpoint::Empty | Endpoint::Null => "",
        };
        format!("{host}:{port}")
    }
}

#[cfg(test)]
mod tests;
