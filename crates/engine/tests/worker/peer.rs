//! The built-in server's core at the other end of simulated connections.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use pummel_engine::backend::sim::{Admission, Next, Peer, datagram_to_client};
use pummel_engine::backend::{ConnId, Target};
use pummel_logic::time::Nanos;
use pummel_testserver::{DatagramQueue, Ending, Framing, Host, HostConfig, ServerConnection};

/// A server that the test can look into, during a run and after it.
#[derive(Clone)]
pub struct Server {
    host: Arc<Mutex<Host>>,
    /// Time in which the server does nothing: its beginning and its end.
    frozen: (Nanos, Nanos),
}

/// End of a simulated network at a [`Server`].
pub struct ServerPeer {
    server: Server,
    guests: BTreeMap<(u32, u32), Seat>,
}

/// A connection, and the bytes that came for it while the server was frozen.
struct Seat {
    guest: ServerConnection,
    unread: Vec<u8>,
    /// Datagrams that came, and those that wait to be sent; `None` for a connection without datagrams.
    datagrams: Option<(Vec<Vec<u8>>, DatagramQueue<()>)>,
}

impl Server {
    pub fn new(config: HostConfig) -> Server {
        Server { host: Arc::new(Mutex::new(Host::new(config, 0))), frozen: (0, 0) }
    }

    /// Does nothing from the first time to the second, as a stopped process: its kernel takes bytes meanwhile.
    pub fn freezing(self, from: Nanos, to: Nanos) -> Server {
        Server { frozen: (from, to), ..self }
    }

    pub fn host(&self) -> MutexGuard<'_, Host> {
        self.host.lock().expect("no test panics while it holds a server")
    }

    pub fn peer(&self) -> ServerPeer {
        ServerPeer { server: self.clone(), guests: BTreeMap::new() }
    }

    fn is_frozen(&self, now: Nanos) -> bool {
        (self.frozen.0..self.frozen.1).contains(&now)
    }
}

impl Peer for ServerPeer {
    fn handle_connect(&mut self, conn: ConnId, target: &Target, _now: Nanos) -> Admission {
        let guest = self.server.host().accept();
        let is_udp = matches!(target, Target::Udp { .. });
        let datagrams = is_udp.then(|| (Vec::new(), DatagramQueue::new(Framing::PerKey)));
        self.guests.insert((conn.slot, conn.generation), Seat { guest, unread: Vec::new(), datagrams });
        Admission::Accept
    }

    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], _now: Nanos) {
        // They are read when the server is asked what it does, which is next.
        let Some(seat) = self.guests.get_mut(&(conn.slot, conn.generation)) else { return };
        match &mut seat.datagrams {
            Some((unread, _)) => unread.push(bytes.to_vec()),
            None => seat.unread.extend_from_slice(bytes),
        }
    }

    fn handle_closed(&mut self, conn: ConnId, _now: Nanos) {
        if let Some(seat) = self.guests.remove(&(conn.slot, conn.generation)) {
            self.server.host().handle_closed(seat.guest);
        }
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        if self.server.is_frozen(now) {
            return Next::At(self.server.frozen.1);
        }
        let seat =
            self.guests.get_mut(&(conn.slot, conn.generation)).expect("guests who left are not polled");
        let mut host = self.server.host();
        if let Some((unread, post)) = &mut seat.datagrams {
            for datagram in unread.drain(..) {
                host.handle_datagram(post, &(), &datagram, now);
            }
            while let Some(letter) = host.poll_datagram(post, now) {
                datagram_to_client(&letter.bytes, out);
            }
            return Next::At(post.next_due());
        }
        host.handle_received(&mut seat.guest, &std::mem::take(&mut seat.unread), now);
        loop {
            let due = host.poll_send(&mut seat.guest, now);
            if due.is_empty() {
                break;
            }
            due.parts().iter().for_each(|part| out.extend_from_slice(part));
            let count = due.len();
            host.handle_sent(&mut seat.guest, count, now);
        }
        let Some(ending) = seat.guest.poll_close() else { return Next::At(seat.guest.next_due()) };
        drop(host);
        self.handle_closed(conn, now);
        match ending {
            Ending::Fin => Next::Close,
            Ending::Reset => Next::Reset,
        }
    }
}

/// Several servers: connections go to the one whose number is the last part of their address.
pub struct Cluster(Vec<ServerPeer>, BTreeMap<(u32, u32), usize>);

impl Cluster {
    /// The network's end of servers at 127.0.0.0, 127.0.0.1 and so on.
    pub fn new(servers: &[Server]) -> Cluster {
        Cluster(servers.iter().map(Server::peer).collect(), BTreeMap::new())
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
