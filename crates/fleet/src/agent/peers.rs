//! The connections of an agent: which of them said something useful, and which are closed because they did not.
//!
//! There are so many places, and each standing has a part of them reserved. A newcomer always gets a place: where all are
//! taken, the least useful standing that has more than its part gives one up. It is the place of the peer that has been
//! silent for the longest time, among those of the address with most of them. The controller that holds the agent keeps its
//! place.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::agent::refusals::refused;
use crate::program::Program;

/// Most connections at one time: a controller needs one, and others only ask who holds the agent.
pub const PEERS_MAX: usize = 64;

/// Longest time of a connection to its first request: for TLS, the preface of HTTP/2, and the request itself.
pub const SILENCE_MAX: Duration = Duration::from_secs(3);

/// Longest silence between requests of a peer that showed neither token nor certificate, such as a probe of health.
const STRANGER_SILENCE_MAX: Duration = Duration::from_secs(60);

/// Longest silence of a controller between requests.
const CONTROLLER_SILENCE_MAX: Duration = Duration::from_secs(600);

/// Standing of a peer by what it has done so far, from the least useful to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Standing {
    /// No request came.
    Silent,
    /// A request came that any peer may make.
    Stranger,
    /// A request came that only controllers may make.
    Controller,
}

impl Standing {
    const ALL: [Standing; 3] = [Standing::Silent, Standing::Stranger, Standing::Controller];

    /// The places that no other standing may take. A controller is silent at first: so many others have to come behind it
    /// before it has asked for something that it loses its place.
    fn places_reserved(self) -> usize {
        match self {
            Standing::Silent => 32,
            Standing::Stranger => 8,
            Standing::Controller => PEERS_MAX - 40,
        }
    }

    fn silence_max(self) -> Duration {
        match self {
            Standing::Silent => SILENCE_MAX,
            Standing::Stranger => STRANGER_SILENCE_MAX,
            Standing::Controller => CONTROLLER_SILENCE_MAX,
        }
    }
}

/// Why the agent closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// The peer said nothing useful for so long.
    Silent(Duration),
    /// A newcomer has its place.
    Displaced,
    /// The peer does not take what it is sent.
    Unread,
}

impl fmt::Display for Closing {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Closing::Silent(silence) => write!(to, "it said nothing of use for {} s", silence.as_secs()),
            Closing::Displaced => write!(
                to,
                "all {PEERS_MAX} connections were taken when another came, and it was the least useful of too many like it"
            ),
            Closing::Unread => to.write_str("it does not take what it is sent"),
        }
    }
}

#[derive(Debug)]
struct State {
    standing: Standing,
    /// When the connection was taken, or its last request came.
    heard: Instant,
    /// Number of times that the peer holds the agent: once, or for a moment twice while a second session of it is turned away.
    holds: u32,
    /// Set when the connection is to be closed, whatever the peer says.
    closing: Option<Closing>,
}

/// One connection, as the agent's services know it.
#[derive(Debug)]
pub struct Peer {
    /// The address that the connection came from.
    pub address: SocketAddr,
    program: Program,
    state: Mutex<State>,
    /// Told when `closing` is set.
    closes: Notify,
}

impl Peer {
    fn new(address: SocketAddr, program: Program) -> Peer {
        let state = State { standing: Standing::Silent, heard: Instant::now(), holds: 0, closing: None };
        Peer { address, program, state: Mutex::new(state), closes: Notify::new() }
    }

    /// Says on standard error that the peer was turned away. To be called on a runtime of tokio.
    pub fn refused(&self, why: impl fmt::Display) {
        refused(self.address, why, self.program);
    }

    /// Notes a request that any peer may make.
    pub fn made_request(&self) {
        self.heard(Standing::Stranger);
    }

    /// Notes a request that only controllers may make.
    pub fn made_controllers_request(&self) {
        self.heard(Standing::Controller);
    }

    fn heard(&self, standing: Standing) {
        let mut state = self.state();
        state.standing = state.standing.max(standing);
        state.heard = Instant::now();
    }

    /// Keeps the connection, whatever comes, until the value that is returned is dropped: the peer holds the agent.
    pub fn hold(self: &Arc<Peer>) -> Holding {
        self.heard(Standing::Controller);
        self.state().holds += 1;
        Holding(Arc::clone(self))
    }

    /// Has the connection closed, even while the peer holds the agent.
    pub fn close(&self, closing: Closing) {
        self.state().closing = Some(closing);
        self.closes.notify_one();
    }

    /// Waits until the agent has to close the connection.
    pub async fn closing(self: Arc<Peer>) -> Closing {
        loop {
            let deadline = match self.deadline() {
                Ok(deadline) => deadline,
                Err(closing) => return closing,
            };
            // Whether the deadline has moved meanwhile is found out when it is reached.
            tokio::select! {
                () = sleep_until(deadline) => {}
                () = self.closes.notified() => {}
            }
        }
    }

    /// When the connection is to be closed if nothing more is heard; an error where it is to be closed now.
    fn deadline(&self) -> Result<Instant, Closing> {
        let (state, now) = (self.state(), Instant::now());
        if let Some(closing) = state.closing {
            return Err(closing);
        }
        let silence_max = state.standing.silence_max();
        let since = if state.holds > 0 { now } else { state.heard };
        if since + silence_max <= now { Err(Closing::Silent(silence_max)) } else { Ok(since + silence_max) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the connection of a peer that holds the agent.
#[derive(Debug)]
pub struct Holding(Arc<Peer>);

impl Drop for Holding {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.holds -= 1;
        state.heard = Instant::now();
    }
}

/// The connections that there are.
#[derive(Debug)]
pub struct Peers {
    program: Program,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    peers: HashMap<u64, Arc<Peer>>,
}

impl Peers {
    /// No connections yet, of an agent in this program.
    pub fn new(program: Program) -> Peers {
        Peers { program, table: Mutex::default() }
    }

    /// Gives a place to a connection from `address`. Where all are taken, the least useful peer loses its own.
    pub fn admit(self: &Arc<Peers>, address: SocketAddr) -> Place {
        let peer = Arc::new(Peer::new(address, self.program));
        let mut table = self.table();
        while table.peers.len() >= PEERS_MAX
            && let Some(number) = table.least_useful()
            && let Some(displaced) = table.peers.remove(&number)
        {
            displaced.close(Closing::Displaced);
        }
        let number = table.next;
        table.next += 1;
        table.peers.insert(number, Arc::clone(&peer));
        Place { peers: Arc::clone(self), number, peer }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// The peer that gives up its place when all are taken; `None` where every peer holds the agent.
    fn least_useful(&self) -> Option<u64> {
        let standings = Standing::ALL.map(|standing| self.with(standing));
        let has_too_many = |peers: &&Vec<Candidate>| {
            peers.first().is_some_and(|one| peers.len() > one.standing.places_reserved())
        };
        // Where none has too many, controllers that hold the agent have taken what was reserved for others.
        let crowd = standings.iter().find(has_too_many);
        let crowd = crowd.or_else(|| standings.iter().find(|peers| !peers.is_empty()))?;
        let mut of_network: HashMap<IpAddr, usize> = HashMap::new();
        crowd.iter().for_each(|one| *of_network.entry(one.network).or_default() += 1);
        let leaves =
            crowd.iter().min_by_key(|one| (Reverse(of_network[&one.network]), one.heard, one.number));
        leaves.map(|one| one.number)
    }

    /// The peers of a standing that do not hold the agent.
    fn with(&self, standing: Standing) -> Vec<Candidate> {
        let peers = self.peers.iter().filter_map(|(&number, peer)| {
            let state = peer.state();
            let network = network_of(peer.address.ip());
            let is_candidate = state.holds == 0 && state.standing == standing;
            is_candidate.then_some(Candidate { standing, network, heard: state.heard, number })
        });
        peers.collect()
    }
}

/// A peer that may lose its place.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    standing: Standing,
    network: IpAddr,
    heard: Instant,
    number: u64,
}

/// Network that counts as one address: an address of IPv4, or the first 64 bits of one of IPv6, of which a machine may have all.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::from((u128::from(address) >> 64 << 64).to_be_bytes()),
        address => address,
    }
}

/// The place of one connection, which is free again when this is dropped.
#[derive(Debug)]
pub struct Place {
    peers: Arc<Peers>,
    number: u64,
    /// Peer of the connection.
    pub peer: Arc<Peer>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.peers.table().peers.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> (Arc<Peers>, Vec<Place>) {
        let peers = Arc::new(Peers::new(Program::SILENT));
        let places = (0..PEERS_MAX).map(|_| peers.admit(address())).collect();
        (peers, places)
    }

    fn address() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 1))
    }

    fn is_displaced(place: &Place) -> bool {
        place.peer.state().closing == Some(Closing::Displaced)
    }

    fn displaced(places: &[Place]) -> Vec<usize> {
        let gone = places.iter().enumerate().filter(|(_, place)| place.peer.state().closing.is_some());
        gone.map(|(at, _)| at).collect()
    }

    #[test]
    fn a_newcomer_has_the_place_of_the_least_useful_and_longest_silent_peer() {
        let (peers, places) = full();
        places[0].peer.made_controllers_request();
        places[1].peer.made_request();
        let _held: Vec<_> = places[2..8].iter().map(|place| place.peer.hold()).collect();
        let mut more = vec![peers.admit(address())];
        assert_eq!(displaced(&places), [8], "the oldest that said nothing and does not hold the agent");
        // Strangers have no more than their part, and controllers as many as there are places left.
        places[9..].iter().for_each(|place| place.peer.made_request());
        more[0].peer.made_request();
        more.push(peers.admit(address()));
        assert_eq!(displaced(&places), [1, 8], "a stranger before the controller that came first");
    }

    #[test]
    fn a_slow_newcomer_keeps_its_place_beside_peers_that_take_all_the_others() {
        for take in [Peer::made_request, Peer::made_controllers_request] {
            let peers = Arc::new(Peers::new(Program::SILENT));
            let slow = peers.admit(address());
            // A crowd that comes again and again, and asks at once.
            let mut crowd = Vec::new();
            for _ in 0..10 * PEERS_MAX {
                crowd.push(peers.admit(address()));
                take(&crowd[crowd.len() - 1].peer);
                crowd.retain(|place| !is_displaced(place));
            }
            assert!(!is_displaced(&slow));
            assert_eq!(peers.table().peers.len(), PEERS_MAX);
            // The newcomer has come through, and is one of many from now on.
            slow.peer.made_controllers_request();
            let _next: Vec<Place> =
                (0..Standing::Silent.places_reserved()).map(|_| peers.admit(address())).collect();
            assert!(!is_displaced(&slow));
        }
    }

    #[test]
    fn an_address_that_takes_many_places_gives_them_up_before_one_that_has_few() {
        for (crowd, other) in [("10.0.0.1:1", "10.0.0.2:1"), ("[2001:db8::1]:1", "[2001:db8:0:1::1]:1")] {
            let peers = Arc::new(Peers::new(Program::SILENT));
            let slow = peers.admit(other.parse().expect("an address"));
            let mut many: Vec<Place> = Vec::new();
            for port in 1..10 * PEERS_MAX {
                let mut from: SocketAddr = crowd.parse().expect("an address");
                if let SocketAddr::V6(from) = &mut from {
                    // Every address of a network is one machine's.
                    from.set_ip((u128::from(*from.ip()) + port as u128).into());
                }
                many.push(peers.admit(from));
                many.retain(|place| !is_displaced(place));
            }
            assert!(!is_displaced(&slow), "{other}");
        }
    }

    #[test]
    fn a_place_is_free_when_its_connection_is_gone() {
        let (peers, mut places) = full();
        places.truncate(1);
        let more: Vec<Place> = (1..PEERS_MAX).map(|_| peers.admit(address())).collect();
        assert!(displaced(&places).is_empty() && displaced(&more).is_empty());
    }

    #[test]
    fn silence_ends_a_connection_unless_it_holds_the_agent() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let peers = Arc::new(Peers::new(Program::SILENT));
            let place = peers.admit(address());
            let began = Instant::now();
            assert_eq!(Arc::clone(&place.peer).closing().await, Closing::Silent(SILENCE_MAX));
            assert!(began.elapsed() >= SILENCE_MAX);
            let held = place.peer.hold();
            let closing = tokio::spawn(Arc::clone(&place.peer).closing());
            drop(held);
            place.peer.close(Closing::Displaced);
            assert_eq!(closing.await.expect("it ends"), Closing::Displaced);
        });
    }
}
