//! The thread that asks for a new map of a cluster when a reply or a lost connection shows that the one in use is old.
//!
//! Each process has one such thread, whatever its clients are: clients that ask by themselves have melted clusters.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use pummel_logic::cluster::map::SlotMap;
use pummel_logic::cluster::nodes::{NodeNumber, NodeTable};
use pummel_logic::cluster::refresh::RefreshSchedule;
use pummel_logic::cluster::slots_reply::SlotsReply;
use pummel_logic::time::NEVER;

use super::discovery::SlotsQuestions;
use super::published::{Published, Topology};
use crate::clock;
use crate::resolve::Server;

/// Longest wait after which the thread looks whether the run is over.
const LOOK: Duration = Duration::from_millis(20);

/// Results of the refreshes of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refreshes {
    /// Answers that were received.
    pub answered: u64,
    /// Questions that no answer came to.
    pub failed: u64,
    /// Maps that were published, the first among them.
    pub generations: u64,
    /// Nodes in the last answer whose names cannot be used.
    pub unusable: u64,
}

/// Asks for the map whenever a worker wants it, until the run is over.
pub fn refresh(
    published: &Published,
    mut questions: SlotsQuestions<'_>,
    mut schedule: RefreshSchedule,
    servers: &[Server],
    permits: &dyn Fn(IpAddr) -> bool,
) -> Refreshes {
    let mut refreshes = Refreshes { generations: 1, ..Refreshes::default() };
    while !published.is_over() {
        let now = clock::now();
        let wait = match schedule.next_time() {
            NEVER => LOOK,
            at => Duration::from_nanos(at.saturating_sub(now)).min(LOOK),
        };
        if !wait.is_zero()
            && let Some(wish) = published.await_wish(wait)
        {
            schedule.want(wish, clock::now());
        }
        let now = clock::now();
        if schedule.next_time() > now {
            continue;
        }
        let before = published.topology();
        let candidates: Vec<NodeNumber> = before.map.members().collect();
        let Some(node) = schedule.begin(now, &candidates) else { continue };
        let answer = questions.ask(usize::from(node), &|| !published.is_over());
        let changed = match answer {
            Ok(Some(Ok(reply))) => {
                refreshes.answered += 1;
                refreshes.unusable = reply.unusable.into();
                let topology = topology_of(&reply, &before.nodes, servers, permits);
                let changed = topology.map != before.map;
                if changed {
                    published.publish(topology);
                    refreshes.generations += 1;
                }
                Some(changed)
            }
            Ok(Some(Err(_))) => {
                refreshes.failed += 1;
                None
            }
            Ok(None) | Err(_) => None,
        };
        schedule.handle_end(clock::now(), changed);
        // A node that owns slots and is gone is replaced sooner or later.
        if let Some(node) = published.owner_that_is_down(&published.topology().map) {
            schedule.want(Some(node), clock::now());
        }
    }
    refreshes
}

/// The map of a reply. Nodes that join get the next numbers, as long as there are servers that none has; the others have no
/// number, and their slots no owner.
pub fn topology_of(
    reply: &SlotsReply,
    known: &NodeTable,
    servers: &[Server],
    permits: &dyn Fn(IpAddr) -> bool,
) -> Topology {
    let mut nodes = known.clone();
    let before = nodes.len();
    let mut map = SlotMap::of(reply, &mut nodes);
    for (number, server) in servers.iter().enumerate().take(nodes.len()).skip(before) {
        let node = number as NodeNumber;
        if !server.join(&nodes.name(node).to_string(), permits) {
            map = without(map, node);
        }
    }
    Topology { map: Arc::new(map), nodes: Arc::new(nodes) }
}

/// The map without a node that cannot be reached.
fn without(mut map: SlotMap, node: NodeNumber) -> SlotMap {
    for slot in 0..pummel_logic::cluster::SLOTS as u16 {
        if map.owner_of(slot) == node {
            map.set_owner(slot, pummel_logic::cluster::UNOWNED);
        }
    }
    map
}
