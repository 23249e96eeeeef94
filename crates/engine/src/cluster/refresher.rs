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
    joining: &Joining<'_>,
) -> Refreshes {
    let mut refreshes = Refreshes { generations: 1, ..Refreshes::default() };
    while !published.is_over() {
        let now = clock::now();
        let wait = match schedule.next_time() {
            NEVER => LOOK,
            at => Duration::from_nanos(at.saturating_sub(now)).min(LOOK),
        };
        if !wait.is_zero()
            && let Some(request) = published.await_request(wait)
        {
            schedule.request_refresh(request, clock::now());
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
                let topology = topology_of(&reply, &before.nodes, joining);
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
            schedule.request_refresh(Some(node), clock::now());
        }
    }
    refreshes
}

/// The nodes that may join a run.
pub struct Joining<'a> {
    /// The servers of the run, the vacant ones last.
    pub servers: &'a [Server],
    /// Whether requests may be sent to an address.
    pub permits: &'a dyn Fn(IpAddr) -> bool,
    /// Whether replicas are asked something.
    pub takes_replicas: bool,
}

/// The map of a reply. Nodes that join get the next numbers, as long as there are vacant servers and a name has an address that may
/// be reached: masters, then replicas where they are asked something. The slots of other masters have no owner until the next reply.
pub fn topology_of(reply: &SlotsReply, known: &NodeTable, joining: &Joining<'_>) -> Topology {
    let mut nodes = known.clone();
    let masters = reply.ranges.iter().filter_map(|range| range.master.as_ref());
    let replicas = reply.ranges.iter().flat_map(|range| &range.replicas).filter(|_| joining.takes_replicas);
    for node in masters.chain(replicas).filter(|node| known.find(&node.name).is_none()) {
        let is_new = nodes.find(&node.name).is_none();
        let vacant = joining.servers.get(nodes.len()).filter(|_| is_new);
        if vacant.is_some_and(|server| server.join(&node.name.to_string(), joining.permits)) {
            nodes.number_of(&node.name);
        }
    }
    let map = SlotMap::of(reply, &mut nodes.full());
    Topology { map: Arc::new(map), nodes: Arc::new(nodes) }
}

#[cfg(test)]
mod tests {
    use pummel_logic::cluster::UNOWNED;
    use pummel_logic::cluster::nodes::NodeName;
    use pummel_logic::cluster::slots_reply::{NodeSeen, SlotRange};

    use super::*;
    use crate::resolve::Sources;

    fn seen(name: &str) -> NodeSeen {
        NodeSeen { name: NodeName::parse(name).expect("it is a name"), id: String::new() }
    }

    fn range(first: u16, last: u16, master: &str) -> SlotRange {
        SlotRange { first, last, master: Some(seen(master)), replicas: Vec::new() }
    }

    fn joining<'a>(servers: &'a [Server], permits: &'a dyn Fn(IpAddr) -> bool) -> Joining<'a> {
        Joining { servers, permits, takes_replicas: false }
    }

    #[test]
    fn nodes_that_join_take_vacant_servers_and_others_get_none() {
        let first = Server::resolve("127.0.0.1:1", &Sources::default()).expect("an address");
        let vacant = || Server::vacant(&Sources::default());
        let servers = [first, vacant(), vacant()];
        let mut known = NodeTable::new(servers.len());
        known.number_of(&seen("127.0.0.1:1").name);
        let ranges = [
            ("127.0.0.1:1", 0),
            ("127.0.0.9:2", 1),
            ("127.0.0.1:3", 2),
            ("127.0.0.1:4", 3),
            ("127.0.0.1:5", 4),
            ("127.0.0.1:3", 5),
        ];
        let ranges = ranges.iter().map(|(name, slot)| range(*slot, *slot, name)).collect();
        let reply = SlotsReply { ranges, unusable: 0 };
        let permits = |address: IpAddr| !address.to_string().ends_with('9');
        let Topology { map, nodes } = topology_of(&reply, &known, &joining(&servers, &permits));
        let owners = [0, 1, 2, 3, 4, 5].map(|slot| map.owner_of(slot));
        assert_eq!(owners, [0, UNOWNED, 1, 2, UNOWNED, 1], "one may not be reached, and one has no place");
        assert_eq!((nodes.len(), servers[1].name(), servers[2].name()), (3, "127.0.0.1:3", "127.0.0.1:4"));
        // The numbers stay, whatever comes later.
        let again = topology_of(&reply, &nodes, &joining(&servers, &|_| true));
        assert_eq!((again.map.owner_of(5), again.map.owner_of(1), again.nodes.len()), (1, UNOWNED, 3));
    }

    #[test]
    fn replicas_join_behind_the_masters_and_only_where_they_are_asked_something() {
        let range = |slot: u16, master: &str, replica: &str| SlotRange {
            replicas: vec![seen(replica)],
            ..range(slot, slot, master)
        };
        let ranges = vec![range(0, "127.0.0.1:1", "127.0.0.1:5"), range(1, "127.0.0.1:2", "127.0.0.1:6")];
        let reply = SlotsReply { ranges, unusable: 0 };
        for (takes_replicas, members, names) in
            [(false, 2, ["127.0.0.1:2", ""]), (true, 3, ["127.0.0.1:2", "127.0.0.1:5"])]
        {
            let first = Server::resolve("127.0.0.1:1", &Sources::default()).expect("an address");
            let vacant = || Server::vacant(&Sources::default());
            let servers = [first, vacant(), vacant()];
            let mut known = NodeTable::new(servers.len());
            known.number_of(&seen("127.0.0.1:1").name);
            let joining = Joining { takes_replicas, ..joining(&servers, &|_| true) };
            let Topology { map, nodes } = topology_of(&reply, &known, &joining);
            assert_eq!((map.members().count(), nodes.len()), (members, members), "{takes_replicas}");
            assert_eq!([servers[1].name(), servers[2].name()], names);
            assert_eq!(map.replicas_of(0), if takes_replicas { &[2][..] } else { &[] });
        }
    }
}
