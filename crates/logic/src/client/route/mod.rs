//! The choice of the connection (lane) of a client for each request: the only one, each in turn, or that of the
//! server which owns the key.

pub mod crc16;
pub mod ketama;
mod lane;
pub mod modulo;

use self::crc16::Deal;
use self::ketama::Ring;
pub use self::lane::{LANES_MAX, Lane, Place};
use crate::plan::Route;

/// The lanes of every client, and the rule that chooses the lane of a request.
///
/// Lane n of a client goes to server n of the Plan. The only lane of a client goes to the server that the client is
/// dealt to.
#[derive(Clone, Debug)]
pub struct Router {
    servers: Vec<u32>,
    rule: Rule,
    /// Number of neighbouring clients that are dealt to one server, where clients have one lane.
    block: u64,
}

/// The rule that chooses the lane of a request.
#[derive(Clone, Debug)]
enum Rule {
    /// The only lane.
    Own,
    /// The lanes one after the other.
    Turns,
    Modulo,
    Ketama(Ring),
    Crc16(Deal),
    /// The slot of the key, whose owner changes.
    Cluster,
}

/// The ways in which the loading of records is divided between clients and servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounds {
    /// Each server has its own clients, which store every record there.
    PerServer,
    /// All clients store each record on every server.
    Turns,
    /// All clients store each record once.
    Once,
}

impl Router {
    /// One server, and one lane to it.
    pub fn single() -> Router {
        Router { servers: vec![0], rule: Rule::Own, block: 1 }
    }

    /// The lanes to these servers of a Plan, and to the nodes that may join a cluster.
    ///
    /// # Panics
    /// Panics when there is no server, or when there are more than [`LANES_MAX`] and clients have a lane to each.
    pub fn new(route: Route, servers: &[String]) -> Router {
        assert!(!servers.is_empty(), "a plan has a server");
        assert!(route.lanes(servers.len()) <= LANES_MAX, "lanes can be numbered");
        let rule = match route {
            Route::All => Rule::Own,
            Route::RoundRobin => Rule::Turns,
            Route::Modulo => Rule::Modulo,
            Route::Ketama => Rule::Ketama(Ring::plain(servers)),
            Route::KetamaWeighted => Rule::Ketama(Ring::weighted(servers)),
            Route::Crc16 => Rule::Crc16(Deal::new(servers)),
            Route::Cluster => Rule::Cluster,
        };
        let count = if route == Route::Cluster { route.lanes(servers.len()) } else { servers.len() };
        Router { servers: (0..count as u32).collect(), rule, block: 1 }
    }

    /// Deals `block` clients at a time, by their numbers, to one server, where clients have one lane.
    pub fn in_blocks(self, block: u64) -> Router {
        Router { block, ..self }
    }

    /// Number of neighbouring clients that are dealt to one server.
    #[inline]
    pub(crate) fn block(&self) -> u64 {
        self.block
    }

    /// The servers that the lanes of client `number` go to, by lane.
    pub fn servers_of(&self, number: u64) -> &[u32] {
        match self.rule {
            Rule::Own => {
                let own = (number / self.block % self.servers.len() as u64) as usize;
                &self.servers[own..=own]
            }
            _ => &self.servers,
        }
    }

    /// Number of servers.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    /// Whether the lane of a request depends on its key.
    #[inline]
    pub fn owns_keys(&self) -> bool {
        !matches!(self.rule, Rule::Own | Rule::Turns)
    }

    /// Returns the way in which loading deals records to clients and servers.
    #[inline]
    pub(crate) fn rounds(&self) -> Rounds {
        match self.rule {
            Rule::Own => Rounds::PerServer,
            Rule::Turns => Rounds::Turns,
            _ => Rounds::Once,
        }
    }

    /// Whether slots of a cluster decide on the lane of a request.
    pub(crate) fn deals_slots(&self) -> bool {
        matches!(self.rule, Rule::Crc16(_) | Rule::Cluster)
    }

    /// Whether the place of a request is a slot whose owner changes, and not a lane.
    #[inline]
    pub fn is_cluster(&self) -> bool {
        matches!(self.rule, Rule::Cluster)
    }

    /// The place of a request, by the number of the request in the sequence of its client (`turn`) or by its key: its lane, or
    /// the slot of its key in a cluster.
    #[inline]
    pub fn place_of(&self, turn: u64, key: &[u8]) -> Place {
        let lanes = self.servers.len();
        match &self.rule {
            Rule::Own => 0,
            Rule::Turns => (turn % lanes as u64) as Lane,
            Rule::Modulo => (modulo::one_at_a_time(key) as usize % lanes) as Lane,
            Rule::Ketama(ring) => ring.lane_of(key),
            Rule::Crc16(deal) => deal.lane_of(key),
            Rule::Cluster => crc16::slot(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Placements that libmemcached 1.1.4 itself made (`memcached_generate_hash`): for each list of servers three lines,
    /// each with the route and one digit (base 36) for every key of [`keys`].
    const LIBMEMCACHED: &str = include_str!("libmemcached.txt");

    fn keys() -> Vec<String> {
        let padded = (0..1_000).map(|n| format!("{n:030}"));
        let short = (0..500).map(|n| format!("key{n}"));
        let foreign = (0..500).map(|n| format!("schlüssel:{n}"));
        padded.chain(short).chain(foreign).collect()
    }

    #[test]
    fn keys_live_where_libmemcached_puts_them() {
        let mut checked = 0;
        let mut servers: Vec<String> = Vec::new();
        for line in LIBMEMCACHED.lines() {
            let Some((name, digits)) = line.split_once(' ') else {
                servers = line.split(',').map(str::to_owned).collect();
                continue;
            };
            let route = match name {
                "modulo" => Route::Modulo,
                "ketama" => Route::Ketama,
                "ketama-weighted" => Route::KetamaWeighted,
                other => panic!("{other} is no route"),
            };
            let router = Router::new(route, &servers);
            assert_eq!(digits.len(), keys().len());
            for (key, digit) in keys().iter().zip(digits.chars()) {
                let lane = router.place_of(0, key.as_bytes());
                assert_eq!(Some(u32::from(lane)), digit.to_digit(36), "{key} by {name} over {servers:?}");
                checked += 1;
            }
        }
        assert_eq!(checked, 6 * 3 * 2_000);
    }

    #[test]
    fn a_route_without_owners_has_turns_or_one_lane() {
        let servers: Vec<String> = (0..3).map(|n| format!("127.0.0.{n}:11211")).collect();
        let own = Router::new(Route::All, &servers);
        let places: Vec<&[u32]> = (0..4).map(|number| own.servers_of(number)).collect();
        assert_eq!(places, [&[0][..], &[1], &[2], &[0]]);
        assert_eq!(own.place_of(7, b"key"), 0);
        let blocks = own.in_blocks(2);
        let places: Vec<&[u32]> = (0..8).map(|number| blocks.servers_of(number)).collect();
        assert_eq!(places, [&[0][..], &[0], &[1], &[1], &[2], &[2], &[0], &[0]]);
        let turns = Router::new(Route::RoundRobin, &servers);
        assert_eq!(turns.servers_of(1), [0, 1, 2]);
        let lanes: Vec<Lane> = (1..6).map(|turn| turns.place_of(turn, b"key")).collect();
        assert_eq!(lanes, [1, 2, 0, 1, 2]);
    }
}
