//! Context of the answer to a request: the store, the faults, the counters and the session of its connection.

use super::cluster::Cluster;
use super::contract::ServerLogin;
use super::fault::Faults;
use super::resp::{Scripts, Transaction};
use super::store::Store;
use pummel_logic::time::Nanos;

/// State of a connection beside its replies.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerSession {
    /// Whether the connection has sent the right login.
    pub(super) is_logged_in: bool,
    /// Whether the connection asked for RESP3.
    pub(super) resp3: bool,
    /// Whether the connection is to be closed when all replies are sent.
    pub(super) is_closing: bool,
    /// Number of the connection, from 1.
    pub(super) connection: u64,
    /// Number of the node that the connection is to, from 0.
    pub(super) node: usize,
    /// Whether the connection has sent ASKING, and no command since.
    pub(super) is_asking: bool,
    /// Whether the connection has sent READONLY, and no READWRITE since.
    pub(super) is_readonly: bool,
    /// The transaction that the connection has begun, and what it watches (RESP).
    pub(super) transaction: Transaction,
}

/// The figures and the commands of a node of the server.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) gauges: Gauges,
    pub(super) calls: Calls,
    pub(super) scripts: Scripts,
}

/// Figures of `stats` that the store does not know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gauges {
    pub(super) started: Nanos,
    pub(super) unix_ns_at_zero: u64,
    pub(super) connections: u64,
    /// Requests that came, this one included.
    pub(super) requests: u64,
}

/// Context of the answer to a request.
pub(super) struct Context<'c> {
    pub(super) store: &'c mut Store,
    pub(super) faults: &'c mut Faults,
    pub(super) calls: &'c mut Calls,
    pub(super) scripts: &'c mut Scripts,
    pub(super) session: &'c mut ServerSession,
    /// The cluster that the node belongs to; `None` where it belongs to none.
    pub(super) cluster: Option<&'c Cluster>,
    /// The login that connections need; `None` where they need none.
    pub(super) login: Option<&'c ServerLogin>,
    pub(super) gauges: Gauges,
    pub(super) now: Nanos,
}

impl Context<'_> {
    /// Whether the connection has yet to send the right login.
    pub(super) fn needs_login(&self) -> bool {
        self.login.is_some() && !self.session.is_logged_in
    }

    /// Logs the connection in if user and password are right. Returns whether they are.
    pub(super) fn try_login(&mut self, user: &[u8], password: &[u8]) -> bool {
        let right = self.login.is_some_and(|login| login.user == user && login.password == password);
        self.session.is_logged_in |= right;
        right
    }
}

/// Names of the RESP commands that were called, and the number of their calls, by their places in the table of commands.
#[derive(Debug, Default)]
pub(crate) struct Calls(Vec<(&'static str, u64)>);

impl Calls {
    /// Counts a call of the command with this name, which stands at `place` of the table.
    pub(crate) fn count(&mut self, place: usize, name: &'static str) {
        if self.0.len() <= place {
            self.0.resize(place + 1, ("", 0));
        }
        self.0[place] = (name, self.0[place].1 + 1);
    }

    /// The commands that were called, in the order of the table.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().copied().filter(|(_, calls)| *calls > 0)
    }
}
