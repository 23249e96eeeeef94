//! A peer behind TLS: the server's side of the encryption, without a socket.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;

use pummel_engine::backend::sim::{Admission, Next, Peer};
use pummel_engine::backend::{ConnId, Target};
use pummel_logic::time::Nanos;
use rustls::{ServerConfig, ServerConnection};

/// Servers that speak TLS, around servers that do not.
pub struct Secured<P> {
    inner: P,
    config: Arc<ServerConfig>,
    links: BTreeMap<(u32, u32), Link>,
}

struct Link {
    tls: ServerConnection,
    /// Whether the client sent bytes that are no TLS, or the server closes.
    over: bool,
}

impl<P> Secured<P> {
    pub fn new(inner: P, config: Arc<ServerConfig>) -> Secured<P> {
        Secured { inner, config, links: BTreeMap::new() }
    }
}

impl<P: Peer> Peer for Secured<P> {
    fn handle_connect(&mut self, conn: ConnId, target: &Target, now: Nanos) -> Admission {
        let admission = self.inner.handle_connect(conn, target, now);
        if admission == Admission::Accept {
            let mut tls =
                ServerConnection::new(Arc::clone(&self.config)).expect("the configuration is right");
            tls.set_buffer_limit(None);
            self.links.insert((conn.slot, conn.generation), Link { tls, over: false });
        }
        admission
    }

    fn handle_received(&mut self, conn: ConnId, bytes: &[u8], now: Nanos) {
        let Some(link) = self.links.get_mut(&(conn.slot, conn.generation)) else { return };
        let mut sealed = bytes;
        while !sealed.is_empty() && !link.over {
            link.tls.read_tls(&mut sealed).expect("memory can be read");
            link.over |= link.tls.process_new_packets().is_err();
            let mut plain = Vec::new();
            // That nothing more has come is no error here.
            let _ = link.tls.reader().read_to_end(&mut plain);
            if !plain.is_empty() {
                self.inner.handle_received(conn, &plain, now);
            }
        }
    }

    fn handle_closed(&mut self, conn: ConnId, now: Nanos) {
        if self.links.remove(&(conn.slot, conn.generation)).is_some() {
            self.inner.handle_closed(conn, now);
        }
    }

    fn poll(&mut self, conn: ConnId, now: Nanos, out: &mut Vec<u8>) -> Next {
        let key = (conn.slot, conn.generation);
        let mut plain = Vec::new();
        let next = self.inner.poll(conn, now, &mut plain);
        let link = self.links.get_mut(&key).expect("peers are polled on connections that they took");
        link.tls.writer().write_all(&plain).expect("memory can be written");
        if next == Next::Close {
            link.tls.send_close_notify();
        }
        while link.tls.wants_write() {
            link.tls.write_tls(out).expect("memory can be written");
        }
        if matches!(next, Next::At(_)) && !link.over {
            return next;
        }
        self.links.remove(&key);
        if matches!(next, Next::At(_)) {
            self.inner.handle_closed(conn, now);
            return Next::Close;
        }
        next
    }
}
