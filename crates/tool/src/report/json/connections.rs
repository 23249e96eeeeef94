//! Connections: how many there were, what became of them, and how long opening took.

use pummel_logic::measure::churn::{Churn, ConnectionFailures};
use serde::Serialize;

use super::figures::{FiguresOut, WholeOut};
use crate::report::Report;

#[derive(Serialize)]
pub(super) struct ConnectionsOut<'a> {
    asked: u64,
    open: u64,
    failed: u64,
    lost: u64,
    reconnected: u64,
    connect_us: FiguresOut<'a>,
    /// Absent without TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    handshake_us: Option<FiguresOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed: Option<u64>,
    /// Absent where all clients stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    churn: Option<ChurnOut>,
}

/// What came of clients that come and go.
#[derive(Serialize)]
pub(super) struct ChurnOut {
    clients: u64,
    ended: u64,
    asked: u64,
    established: u64,
    alive_max: u64,
    failures: ConnectionFailures,
    life_us: WholeOut,
    connect_us: WholeOut,
}

impl ChurnOut {
    pub(super) fn of(churn: &Churn) -> ChurnOut {
        ChurnOut {
            clients: churn.begun,
            ended: churn.ended,
            asked: churn.asked,
            established: churn.established,
            alive_max: churn.alive_max,
            failures: churn.failures,
            life_us: WholeOut::of(&churn.life),
            connect_us: WholeOut::of(&churn.connect),
        }
    }
}

impl<'a> ConnectionsOut<'a> {
    pub(super) fn of(report: &Report<'a>) -> ConnectionsOut<'a> {
        let connections = &report.measurement.connections;
        let tls = report.plan.tls.is_some();
        ConnectionsOut {
            asked: connections.asked,
            open: connections.open,
            failed: connections.failed,
            lost: connections.lost,
            reconnected: connections.reconnected,
            connect_us: FiguresOut::alone(&report.summary.connect),
            handshake_us: tls.then_some(FiguresOut::alone(&report.summary.handshake)),
            resumed: tls.then_some(connections.resumed),
            churn: connections.churn.as_deref().map(ChurnOut::of),
        }
    }
}
