//! State of a cluster: the owners of its slots, and which node carries out which command.

use std::collections::BTreeMap;

use pummel_logic::client::route::crc16::{self, SLOTS};
use pummel_logic::time::{NEVER, Nanos};

use super::agenda::{Change, Migration, agenda};
use super::config::{ClusterConfig, Endpoint, NodeAddress};

/// Part that a node plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Serving,
    /// The node answers reads from the items of this one.
    Following(usize),
    Demoted,
    Dead,
}

/// State of a cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    addresses: Vec<NodeAddress>,
    endpoint: Endpoint,
    pub(super) standings: Vec<Standing>,
    /// Number of the owner of each slot.
    pub(super) owners: Vec<usize>,
    pub(super) migrations: Vec<Migration>,
    /// Number of spans of time, among those that go on, in which no node serves a key.
    pub(super) downs: u32,
    /// Changes to come, by their times and in the order in which they were planned.
    pub(super) agenda: BTreeMap<(Nanos, usize), Change>,
    /// Number of changes that were planned so far.
    pub(super) planned: usize,
    /// Nodes that died and were not asked for since.
    pub(super) died: Vec<usize>,
    /// Changes that were made and not noted yet: their word and their details.
    pub(super) made: Vec<(&'static str, String)>,
}

impl Cluster {
    /// A cluster that starts at `now`.
    pub(crate) fn new(config: ClusterConfig, now: Nanos) -> Cluster {
        let masters = config.masters;
        let names = config.nodes[..masters].iter().map(|node| format!("{}:{}", node.ip, node.port));
        let deal = crc16::Deal::new(&names.collect::<Vec<String>>());
        let standing = |node: usize| match node < masters {
            true => Standing::Serving,
            false => Standing::Following((node - masters) % masters),
        };
        let agenda = agenda(&config.faults, now);
        Cluster {
            standings: (0..config.nodes.len()).map(standing).collect(),
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
    pub(crate) fn nodes(&self) -> usize {
        self.addresses.len()
    }

    /// The address of a node.
    pub(crate) fn address(&self, node: usize) -> &NodeAddress {
        &self.addresses[node]
    }

    /// Form in which the nodes are named.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The identity of a node, in 40 hexadecimal digits.
    pub(crate) fn id(&self, node: usize) -> String {
        format!("{:040x}", node + 1)
    }

    /// Whether the node is dead.
    pub(crate) fn is_dead(&self, node: usize) -> bool {
        self.standings[node] == Standing::Dead
    }

    /// The node whose items a node answers from: its master, or itself.
    pub(crate) fn source_of(&self, node: usize) -> usize {
        match self.standings[node] {
            Standing::Following(master) => master,
            Standing::Serving | Standing::Demoted | Standing::Dead => node,
        }
    }

    /// Whether the node is a replica.
    pub(crate) fn is_replica(&self, node: usize) -> bool {
        self.source_of(node) != node
    }

    /// The replicas of a node.
    pub(crate) fn replicas_of(&self, node: usize) -> impl ExactSizeIterator<Item = usize> + use<> {
        let is_its = |other: &usize| self.standings[*other] == Standing::Following(node);
        (0..self.nodes()).filter(is_its).collect::<Vec<usize>>().into_iter()
    }

    /// Whether the cluster serves keys at all.
    pub(crate) fn is_up(&self) -> bool {
        self.downs == 0
    }

    /// The time of the next change; [`NEVER`] if none is to come.
    pub(crate) fn next_change(&self) -> Nanos {
        self.agenda.first_key_value().map_or(NEVER, |((at, _), _)| *at)
    }

    /// Takes the nodes that died since the last call.
    pub(crate) fn take_died(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.died)
    }

    /// Takes the changes that were made since the last call.
    pub(crate) fn take_made(&mut self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.made)
    }

    /// Neighbouring slots of one owner: the first slot, the last one, the owner.
    pub(crate) fn ranges(&self) -> Vec<(usize, usize, usize)> {
        let mut first = 0;
        let ranges = self.owners.chunk_by(|left, right| left == right).map(|range| {
            let last = first + range.len() - 1;
            (std::mem::replace(&mut first, last + 1), last, range[0])
        });
        ranges.collect()
    }

    /// The error for a command with these keys, where the node does not carry it out. `reads`: the connection has said READONLY, and the
    /// command is a read.
    pub(crate) fn refusal<'k>(
        &self,
        node: usize,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
        (is_asking, reads): (bool, bool),
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
            let is_served = owner == node || reads && self.source_of(node) == owner;
            return (!is_served).then(|| format!("MOVED {slot} {}", self.place(owner)));
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
