//! Connections: how many there were, what became of them, and how long opening took.

use pummel_measure::churn::{Churn, ConnectionFailures};
use pummel_measure::connections::Refusal;
use pummel_measure::words::{counted as counted_words, grouped};
use serde::{Deserialize, Serialize};

use super::figures::{TimeFigures, micros};
use crate::Report;
use crate::words::reason::connection_limit;

/// Connections of the measured phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ConnectionsResult {
    /// Connections that were asked for.
    pub asked: u64,
    /// Connections that were open when the measured phase began.
    pub open: u64,
    /// Attempts to open a connection that failed, also those that the server took and then refused.
    pub failed: u64,
    /// Those of the failed attempts that were refused or reset.
    pub turned_away: u64,
    /// Those of the failed attempts for which no local port was free.
    pub no_port: u64,
    /// Open connections that were lost: broken, closed by the server, or closed by pummel because a request on
    /// them had timed out.
    pub lost: u64,
    /// Lost connections that were opened again.
    pub reconnected: u64,
    /// Servers that took connections and then refused them, by an error message or by closing them before the
    /// first reply; empty where no server did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<RefusalResult>,
    /// Time that opening took until the generator noticed it, with the TLS handshake and a login: an upper
    /// bound where many connections open at once.
    pub connect_us: TimeFigures,
    /// How long opening took by server; empty with one server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerConnectionsResult>,
    /// Time of each successful handshake, from the system call that took the client's first message until the
    /// server's last one had arrived; absent without TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshake_us: Option<TimeFigures>,
    /// Number of all handshakes; absent without TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshakes: Option<u64>,
    /// Handshakes that resumed an earlier session; absent without TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed: Option<u64>,
    /// What came of clients that come and go; absent where all clients stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub churn: Option<ChurnResult>,
}

/// What one server refused of the connections that it had taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RefusalResult {
    /// Address of the server.
    pub address: String,
    /// Connections to the server that were opened or refused.
    pub connections: u64,
    /// Connections that the server refused the last time.
    pub refused: u64,
    /// Connections that the server took and then refused.
    pub attempts: u64,
    /// The server's words.
    pub says: String,
    /// The server's limit of connections.
    pub limit: Option<u64>,
    /// Connections that the server has refused since its start, by its own count.
    pub counted: Option<u64>,
}

impl RefusalResult {
    fn of(refusal: &Refusal, servers: &[String]) -> RefusalResult {
        RefusalResult {
            address: servers.get(refusal.server as usize).cloned().unwrap_or_default(),
            connections: refusal.connections,
            refused: refusal.refused,
            attempts: refusal.attempts,
            says: refusal.words.clone(),
            limit: refusal.limit,
            counted: refusal.counted,
        }
    }

    /// The refusals as words that follow a label. `is_resp`: the server speaks RESP.
    pub fn words(&self, is_resp: bool) -> String {
        let RefusalResult { connections, refused, attempts, limit, counted, .. } = *self;
        let room = connection_limit((connections, refused), limit, counted, is_resp);
        let said = if self.says.is_empty() { String::new() } else { format!(", \"{}\"", self.says) };
        let attempts = counted_words(attempts, "attempt");
        let count = match refused {
            // Those of clients that come and go are no more.
            _ if connections == 0 => return format!("{attempts}{said}{room}"),
            0 => format!("none of {} in the end", counted_words(connections, "connection")),
            _ => format!("{} of {}", grouped(refused), counted_words(connections, "connection")),
        };
        format!("{count}{said}{room}; {attempts} in all")
    }
}

/// How long opening connections to one server took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ServerConnectionsResult {
    /// Address of the server.
    pub address: String,
    /// Connections that were opened.
    pub opened: u64,
    /// The median, within 3 %.
    pub connect_p50_us: Option<f64>,
}

/// What came of clients that come and go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ChurnResult {
    /// Clients that came.
    pub clients: u64,
    /// Clients that ended.
    pub ended: u64,
    /// Connections that were asked for, without those for which the system had no descriptor.
    pub asked: u64,
    /// Connections that were established.
    pub established: u64,
    /// Most connections at one time; with several threads the sum of the threads' own maxima.
    pub alive_max: u64,
    /// Connections that failed, by reason.
    pub failures: ConnectionFailures,
    /// From asking to the end, of connections that were open.
    pub life_us: TimeFigures,
    /// How long opening took.
    pub connect_us: TimeFigures,
}

impl ChurnResult {
    pub(super) fn of(churn: &Churn) -> ChurnResult {
        ChurnResult {
            clients: churn.begun,
            ended: churn.ended,
            asked: churn.asked,
            established: churn.established,
            alive_max: churn.alive_max,
            failures: churn.failures,
            life_us: TimeFigures::of_whole(&churn.life),
            connect_us: TimeFigures::of_whole(&churn.connect),
        }
    }
}

impl ConnectionsResult {
    pub(super) fn of(report: &Report<'_>) -> ConnectionsResult {
        let connections = &report.measurement.connections;
        let tls = report.plan.tls.is_some();
        ConnectionsResult {
            asked: connections.asked,
            open: connections.open,
            failed: connections.failed,
            turned_away: connections.turned_away,
            no_port: connections.no_port,
            lost: connections.lost,
            reconnected: connections.reconnected,
            refusals: connections
                .refusals
                .iter()
                .map(|refusal| RefusalResult::of(refusal, &report.plan.servers))
                .collect(),
            connect_us: TimeFigures::of(&report.summary.connect, None),
            servers: servers_of(report),
            handshake_us: tls.then(|| TimeFigures::of(&report.summary.handshake, None)),
            handshakes: tls.then(|| connections.handshake.count()),
            resumed: tls.then_some(connections.resumed),
            churn: connections.churn.as_deref().map(ChurnResult::of),
        }
    }
}

/// The connections of each of several servers.
fn servers_of(report: &Report<'_>) -> Vec<ServerConnectionsResult> {
    let servers = &report.plan.servers;
    let timed = servers.iter().zip(&report.measurement.connections.connect_by_server);
    let of = timed.filter(|_| servers.len() > 1).map(|(address, times)| ServerConnectionsResult {
        address: address.clone(),
        opened: times.count(),
        connect_p50_us: times.quantile(0.5).map(|ns| micros(ns as f64)),
    });
    of.collect()
}
