//! The built-in server's core at the other end of simulated connections.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use pummel_engine::backend::sim::{Admission, Next, Peer, datagram_to_client};
use pummel_engine::backend::{ConnId, Target};
use pummel_logic::time::Nanos;
use pummel_testserver::{
    ClusterConfig, DatagramQueue, Ending, Endpoint, Framing, NodeAddress, Server, ServerConfig,
    ServerConnection,
};

/// A server that the test can look into, during a run and after it.
#[derive(Clone)]
pub struct SharedServer {
    server: Arc<Mutex<Server>>,
    /// Time in which the server does nothing: its beginning and its end.
    frozen: (Nanos, Nanos),
}

/// End of a simulated network at a [`SharedServer`].
pub struct ServerPeer {
    server: SharedServer,
    /// Number of the node that connections are to, where the server is a cluster.
    node: usize,
    connections: BTreeMap<(u32, u32), Seat>,
}

/// A connection, and the bytes that came for it while the server was frozen.
struct Seat {
    connection: ServerConnection,
    unread: Vec<u8>,
    /// Datagrams that came, and those that wait to be sent; `None` for a connection without datagrams.
    datagrams: Option<(Vec<Vec<u8>>, DatagramQueue<()>)>,
}

impl SharedServer {
    pub fn new(config: ServerConfig) -> SharedServer {
        SharedServer { server: Arc::new(Mutex::new(Server::new(config, 0))), frozen: (0, 0) }
    }

    /// Does nothing from the first time to the second, as a stopped process: its kernel takes bytes meanwhile.
    pub fn freezing(self, from: Nanos, to: Nanos) -> SharedServer {
        SharedServer { frozen: (from, to), ..self }
    }

    pub fn lock(&self) -> MutexGuard<'_, Server> {
        self.server.lock().expect("no test panics while it holds a server")
    }

    pub fn peer(&self) -> ServerPeer {
        self.peer_at(0)
    }

    /// The network's end of one node of a cluster.
    fn peer_at(&self, node: usize) -> ServerPeer {
        ServerPeer { server: self.clone(), node, connections: BTreeMap::new() }
    }

    fn is_frozen(&self, now: Nanos) -> bool {
        (self.frozen.0..self.frozen.1).contains(&now)
    }
}

impl Peer for ServerPeer {
    fn handle_connect(&mut self, conn: ConnId, target: &Target, _now: Nanos) -> Admission {
        let connection = self.server.lock().accept_at(self.node);
        let is_udp = matches!(target, Target::Udp { .. });
        let datagrams = is_udp.then(|| (Vec::new(), DatagramQueue::new(Framing::PerKey)));
        self.connections
            .insert((conn.slot, conn.generation), Seat { connection, unread: Vec::new(), datagrams });
        Admission::Accept
    }

    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], _now: Nanos) {
        // They are read when the server is asked what it does, which is next.
        let Some(seat) = self.connections.get_mut(&(conn.slot, conn.generation)) else { return };
        match &mut seat.datagrams {
            Some((unread, _)) => unread.push(bytes.to_vec()),
            None => seat.unread.extend_from_slice(bytes),
        }
    }

    fn handle_closed(&mut self, conn: ConnId, _now: Nanos) {
        if let Some(seat) = self.connections.remove(&(conn.slot, conn.generation)) {
            self.server.lock().handle_closed(seat.connection);
        }
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        if self.server.is_frozen(now) {
            return Next::At(self.server.frozen.1);
        }
        let seat = self
            .connections
            .get_mut(&(conn.slot, conn.generation))
            .expect("connections who left are not polled");
        let mut locked = self.server.lock();
        if let Some((unread, post)) = &mut seat.datagrams {
            for datagram in unread.drain(..) {
                locked.handle_datagram(post, &(), &datagram, now);
            }
            while let Some(letter) = locked.poll_datagram(post, now) {
                datagram_to_client(&letter.bytes, out);
            }
            return Next::At(post.next_due());
        }
        locked.handle_received(&mut seat.connection, &std::mem::take(&mut seat.unread), now);
        loop {
            let due = locked.poll_send(&mut seat.connection, now);
            if due.is_empty() {
                break;
            }
            due.parts().iter().for_each(|part| out.extend_from_slice(part));
            let count = due.len();
            locked.handle_sent(&mut seat.connection, count, now);
        }
        let Some(ending) = seat.connection.poll_close() else { return Next::At(seat.connection.next_due()) };
        drop(locked);
        self.handle_closed(conn, now);
        match ending {
            Ending::Fin => Next::Close,
            Ending::Reset => Next::Reset,
        }
    }
}

/// The cluster that all nodes of a plan stand for: what they hold is one store, and each of them serves every slot.
pub fn one_store() -> ClusterConfig {
    let node = NodeAddress { ip: "127.0.0.1".to_owned(), port: 7_001 };
    ClusterConfig { nodes: vec![node], masters: 1, endpoint: Endpoint::Ip, faults: Vec::new() }
}

/// Several servers: connections go to the one whose number is the last part of their address.
pub struct Cluster(Vec<ServerPeer>, BTreeMap<(u32, u32), usize>);

impl Cluster {
    /// The network's end of servers at 127.0.0.0, 127.0.0.1 and so on.
    pub fn new(servers: &[SharedServer]) -> Cluster {
        Cluster(servers.iter().map(SharedServer::peer).collect(), BTreeMap::new())
    }

    /// The network's end of the nodes of a cluster at 127.0.0.0, 127.0.0.1 and so on.
    pub fn of_nodes(cluster: &SharedServer, nodes: usize) -> Cluster {
        Cluster((0..nodes).map(|node| cluster.peer_at(node)).collect(), BTreeMap::new())
    }

    fn of(&mut self, conn: ConnId) -> Option<&mut ServerPeer> {
        self.1.get(&(conn.slot, conn.generation)).map(|&server| &mut self.0[server])
    }
}

impl Peer for Cluster {
    fn handle_connect(&mut self, conn: ConnId, target: &Target, now: Nanos) -> Admission {
        let (Target::Tcp { address: SocketAddr::V4(address), .. }
        | Target::Udp { address: SocketAddr::V4(address), .. }) = target
        else {
            panic!("{target:?}")
        };
        let server = usize::from(address.ip().octets()[3]);
        self.1.insert((conn.slot, conn.generation), server);
        self.0[server].handle_connect(conn, target, now)
    }

    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos) {
        self.of(conn).expect("it was greeted").handle_received(conn, bytes, now);
    }

    fn handle_closed(&mut self, conn: ConnId, now: Nanos) {
        if let Some(server) = self.of(conn) {
            server.handle_closed(conn, now);
        }
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        self.of(conn).expect("it was greeted").poll(conn, now, out)
    }
}
