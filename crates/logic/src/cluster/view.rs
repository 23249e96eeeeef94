//! The cluster as one worker sees it: the map and the nodes that were published last, with later changes that replies and lost
//! connections show.

use super::hops::HopLimits;
use super::map::SlotMap;
use super::nodes::{NodeName, NodeNumber, NodeTable, UNOWNED};
use super::reads::{Reach, ReadRule};
use super::redirect::Redirect;
use crate::rng::Stream;
use crate::time::{MILLISECOND, Nanos};

/// Time after the failure of a connection to a node in which a redirect to that node is a reason to wait, in nanoseconds: in a
/// failover all nodes name the dead one.
const FAILED_LATELY_NS: Nanos = 100 * MILLISECOND;

crate::counters! {
    /// The replies of nodes that redirected requests or made them wait, and what became of those requests.
    pub struct RedirectCounts {
        /// Number of replies `MOVED`.
        pub moved: u64,
        /// Number of replies `ASK`.
        pub ask: u64,
        /// Number of replies `TRYAGAIN`.
        pub tryagain: u64,
        /// Number of replies `CLUSTERDOWN` and `MASTERDOWN`.
        pub clusterdown: u64,
        /// Number of replies `LOADING`.
        pub loading: u64,
        /// Number of replies `READONLY`.
        pub readonly: u64,
        /// Requests that were repeated because their connection was lost: reads, and those of which nothing had been sent.
        pub repeated: u64,
        /// Requests that were sent again or had to wait, and were then answered.
        pub followed: u64,
        /// Requests that were sent again or had to wait, and failed in the end.
        pub given_up: u64,
    }
}

impl RedirectCounts {
    /// Counts a reply.
    pub fn note(&mut self, reply: &Redirect) {
        let count = match reply {
            Redirect::Moved { .. } => &mut self.moved,
            Redirect::Ask { .. } => &mut self.ask,
            Redirect::TryAgain => &mut self.tryagain,
            Redirect::ClusterDown | Redirect::MasterDown => &mut self.clusterdown,
            Redirect::Loading => &mut self.loading,
            Redirect::ReadOnly => &mut self.readonly,
            Redirect::CrossSlot => return,
        };
        *count += 1;
    }

    /// Number of replies that redirected a request or made it wait.
    pub fn replies(&self) -> u64 {
        self.moved + self.ask + self.tryagain + self.clusterdown + self.loading + self.readonly
    }
}

/// A request for a new map, and the node whose reply or loss caused it, which is not to be asked.
pub type RefreshRequest = Option<NodeNumber>;

/// The cluster as one worker sees it.
#[derive(Debug)]
pub struct ClusterView {
    map: SlotMap,
    nodes: NodeTable,
    /// The nodes that reads are sent to.
    pub reads: ReadRule,
    /// Whether each node may be asked something, by what was published last.
    members: Vec<bool>,
    /// Time at which the last connection to each node failed; 0 for none.
    failed_at: Vec<Nanos>,
    /// Nodes that have been silent for so long that nothing waits for them.
    given_up: Vec<bool>,
    request: Option<RefreshRequest>,
    /// Nodes that have answered nothing since a connection to them failed.
    failing: Vec<NodeNumber>,
    limits: HopLimits,
    jitter: Stream,
    jitters: u64,
    /// Redirects and waits of the phase under way.
    pub counts: RedirectCounts,
}

impl ClusterView {
    /// The view of a worker before anything is published: no node is known. `nodes_max` is the greatest number of nodes;
    /// `jitter` shifts the waits.
    pub fn new(nodes_max: usize, limits: HopLimits, jitter: Stream) -> ClusterView {
        ClusterView {
            map: SlotMap::unowned(),
            nodes: NodeTable::new(nodes_max),
            reads: ReadRule::default(),
            members: vec![false; nodes_max],
            failed_at: vec![0; nodes_max],
            given_up: vec![false; nodes_max],
            request: None,
            failing: Vec::new(),
            limits,
            jitter,
            jitters: 0,
            counts: RedirectCounts::default(),
        }
    }

    /// Replaces map and nodes by those that were published.
    pub fn renew(&mut self, map: &SlotMap, nodes: &NodeTable) {
        self.map.clone_from(map);
        self.nodes.clone_from(nodes);
        self.members.fill(false);
        for node in map.serving(self.reads.asks_replicas()) {
            if let Some(is_member) = self.members.get_mut(usize::from(node)) {
                *is_member = true;
            }
        }
    }

    /// The node that a read of a slot is sent to; `None` where none is known. `draw` chooses among nodes that are reached alike.
    pub fn reader_of(&self, slot: u16, draw: u64, reach: impl Fn(NodeNumber) -> Reach) -> Option<NodeNumber> {
        let replicas = self.map.replicas_of(self.map.owner_of(slot));
        self.reads.node_of(self.owner_of(slot), replicas, draw, reach)
    }

    /// The node that owns a slot; `None` where none is known.
    #[inline]
    pub fn owner_of(&self, slot: u16) -> Option<NodeNumber> {
        let owner = self.map.owner_of(slot);
        (owner != UNOWNED).then_some(owner)
    }

    /// The bounds of redirects.
    pub fn limits(&self) -> &HopLimits {
        &self.limits
    }

    /// 64 random bits.
    pub fn jitter(&mut self) -> u64 {
        self.jitters += 1;
        self.jitter.draw(self.jitters)
    }

    /// The name of a node; `None` for a number that no node has.
    pub fn name(&self, node: NodeNumber) -> Option<&NodeName> {
        (usize::from(node) < self.nodes.len()).then(|| self.nodes.name(node))
    }

    /// Takes in a reply to a request of `slot`. Returns the number of the node that it names, if it names one that is known. A
    /// `MOVED` gives the slot to that node at once; every sign of a change asks for a new map.
    pub fn take_in(&mut self, reply: &Redirect, from: NodeNumber, slot: u16) -> Option<NodeNumber> {
        self.counts.note(reply);
        match reply {
            Redirect::Moved { slot: moved, node } => {
                let node = node.as_ref().and_then(|node| self.nodes.find(node));
                // A reply about another slot teaches nothing about this one.
                if let Some(node) = node.filter(|_| *moved == slot) {
                    self.map.set_owner(slot, node);
                }
                self.request_refresh(node.is_none().then_some(from));
                node.filter(|_| *moved == slot)
            }
            Redirect::Ask { node, .. } => {
                let node = node.as_ref().and_then(|node| self.nodes.find(node));
                if node.is_none() {
                    self.request_refresh(None);
                }
                node
            }
            Redirect::ClusterDown | Redirect::MasterDown | Redirect::Loading | Redirect::ReadOnly => {
                self.request_refresh(None);
                None
            }
            Redirect::TryAgain | Redirect::CrossSlot => None,
        }
    }

    /// Notes at `now` that a connection to a node failed, or was lost.
    pub fn note_failure(&mut self, node: NodeNumber, now: Nanos) {
        if let Some(at) = self.failed_at.get_mut(usize::from(node)) {
            *at = now;
            if !self.failing.contains(&node) {
                self.failing.push(node);
            }
        }
        self.request_refresh(Some(node));
    }

    /// Notes that a node took a connection.
    pub fn note_opened(&mut self, node: NodeNumber) {
        if let Some(given_up) = self.given_up.get_mut(usize::from(node)) {
            *given_up = false;
        }
    }

    /// Lets requests for this node wait no more until it takes a connection.
    pub fn give_up(&mut self, node: NodeNumber) {
        if let Some(given_up) = self.given_up.get_mut(usize::from(node)) {
            *given_up = true;
        }
    }

    /// Whether no request waits for this node.
    pub fn is_given_up(&self, node: NodeNumber) -> bool {
        self.given_up.get(usize::from(node)).is_some_and(|given_up| *given_up)
    }

    /// Whether a connection to this node failed less than 100 ms before `now`.
    pub fn has_failed_lately(&self, node: NodeNumber, now: Nanos) -> bool {
        let at = self.failed_at.get(usize::from(node)).copied().unwrap_or(0);
        at != 0 && now < at.saturating_add(FAILED_LATELY_NS)
    }

    /// Asks for a new map, of another node than `blamed`.
    pub fn request_refresh(&mut self, blamed: RefreshRequest) {
        self.request = Some(blamed.or(self.request.flatten()));
    }

    /// Takes the request for a new map, if there is one.
    pub fn take_refresh_request(&mut self) -> Option<RefreshRequest> {
        self.request.take()
    }

    /// Takes a node that has answered again. `answered_at` returns the time of the last reply of a node. A node that only takes
    /// connections may hang.
    pub fn take_returned(&mut self, answered_at: impl Fn(NodeNumber) -> Nanos) -> Option<NodeNumber> {
        let failed_at = |node: NodeNumber| self.failed_at[usize::from(node)];
        let place = self.failing.iter().position(|&node| answered_at(node) > failed_at(node))?;
        Some(self.failing.swap_remove(place))
    }

    /// The nodes that may be asked something, by what was published last.
    pub fn members(&self) -> impl Iterator<Item = NodeNumber> {
        let numbered = self.members.iter().enumerate();
        numbered.filter(|(_, is_member)| **is_member).map(|(node, _)| node as NodeNumber)
    }

    /// Whether this node owns a slot.
    pub fn owns_slots(&self, node: NodeNumber) -> bool {
        self.map.slots_of(node) > 0
    }

    /// Whether this node owns a slot, or is a replica of one that does where reads are sent to replicas, so that clients have
    /// connections to it.
    pub fn is_member(&self, node: NodeNumber) -> bool {
        self.members.get(usize::from(node)).is_some_and(|is_member| *is_member)
    }
}
