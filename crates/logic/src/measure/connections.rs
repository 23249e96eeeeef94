//! The account of connections: how many were opened, failed and were lost, and how long opening took.

use serde::{Deserialize, Serialize};

use crate::measure::churn::Churn;
use crate::measure::histogram::{CoarseHistogram, Histogram};

/// Most servers whose connections are timed one by one.
pub const SERVERS_TIMED_MAX: usize = 64;

/// The account of the connections of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// Number of connections that the Plan asks for.
    pub asked: u64,
    /// Number of connections that were open when the measured phase began.
    pub open: u64,
    /// Connections that were open when a measured phase began and on which their server had sent nothing yet, so that it may
    /// have counted them as new ones later. One that had been opened anew counts in each such phase.
    #[serde(default)]
    pub unheard: u64,
    /// Attempts to open a connection that failed.
    pub failed: u64,
    /// Those of the failed attempts that the peer refused or reset.
    #[serde(default)]
    pub turned_away: u64,
    /// Those of the failed attempts for which no local port was free.
    #[serde(default)]
    pub no_port: u64,
    /// Open connections that broke, or had to be closed.
    pub lost: u64,
    /// Lost connections that were opened again.
    pub reconnected: u64,
    /// Time that opening a connection took; with TLS, until the handshake was over.
    pub connect: Histogram,
    /// Time that opening a connection took, by the number of the server in the Plan; the first [`SERVERS_TIMED_MAX`] of them.
    /// Empty in results of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connect_by_server: Vec<CoarseHistogram>,
    /// Time that TLS handshakes took, which is a part of opening; empty without TLS.
    #[serde(default)]
    pub handshake: Histogram,
    /// Number of TLS handshakes that resumed a session.
    #[serde(default)]
    pub resumed: u64,
    /// The account of clients that come and go; `None` where all clients stay.
    #[serde(default)]
    pub churn: Option<Box<Churn>>,
}

impl Connections {
    /// Adds the times of another worker by server.
    pub fn merge_servers(&mut self, others: &[CoarseHistogram]) {
        if self.connect_by_server.len() < others.len() {
            self.connect_by_server.resize_with(others.len(), CoarseHistogram::default);
        }
        self.connect_by_server.iter_mut().zip(others).for_each(|(times, more)| times.merge(more));
    }

    /// Adds the account of another worker.
    pub fn merge(&mut self, other: &Connections) {
        self.asked += other.asked;
        self.open += other.open;
        self.unheard += other.unheard;
        self.failed += other.failed;
        self.turned_away += other.turned_away;
        self.no_port += other.no_port;
        self.lost += other.lost;
        self.reconnected += other.reconnected;
        self.connect.merge(&other.connect);
        self.merge_servers(&other.connect_by_server);
        self.handshake.merge(&other.handshake);
        self.resumed += other.resumed;
        if let Some(churn) = &other.churn {
            self.churn.get_or_insert_default().merge(churn);
        }
    }
}
