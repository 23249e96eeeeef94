//! Why a run did not begin.

use std::fmt;
use std::io;
use std::net::IpAddr;

use pummel_measure::connections::TroubleKind;

use crate::backend::tls::TlsError;
use crate::resolve::ConnectError;

/// Why a run did not begin.
#[derive(Debug)]
pub enum RunError {
    /// The plan cannot be run, for this reason.
    Plan(String),
    /// The connections of the plan cannot be begun.
    Connect(ConnectError),
    /// TLS cannot be set up as the plan says.
    Tls(TlsError),
    /// Requests may not be sent to this server from here.
    Forbidden {
        /// The server in the Plan.
        server: String,
        /// The server's address; `None` for a unix socket.
        address: Option<IpAddr>,
    },
    /// The login of the plan was not sent to this server, and so not to any.
    Login {
        /// The server in the Plan.
        server: String,
        /// Reason for the refusal.
        why: LoginUnsent,
    },
    /// No server says which nodes its cluster has, for this reason, as a sentence without its full stop.
    Cluster(String),
    /// The user ended it before it began.
    Interrupted,
    /// The kernel refused an operation, with a description of the operation.
    Kernel(&'static str, io::Error),
}

/// The error of a thread that could not be started.
pub(super) fn no_thread(error: io::Error) -> RunError {
    RunError::Kernel("a thread could not be started", error)
}

/// Why a login was not sent to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginUnsent {
    /// The server answers without a login, and would store the user and the password as an item.
    NotDemanded,
    /// The server cannot be reached, for this kind of reason, and the reason as a sentence without its full stop.
    Unreachable(TroubleKind, String),
    /// The server did not say that it demands a login; what it did instead is the end of a sentence whose subject is the
    /// server.
    Unknown(String),
}

impl LoginUnsent {
    /// Writes the reason as a sentence about this server, without its full stop.
    fn write(&self, server: &str, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoginUnsent::NotDemanded => write!(
                to,
                "{server} demands no login and would store the user and the password as an item, so they were not sent"
            ),
            LoginUnsent::Unreachable(_, why) => write!(to, "{server}: {why}"),
            LoginUnsent::Unknown(did) => write!(
                to,
                "{server} did not say that it demands a login, so user and password were not sent: it {did}"
            ),
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Plan(what) | RunError::Cluster(what) => to.write_str(what),
            RunError::Connect(error) => error.fmt(to),
            RunError::Tls(error) => error.fmt(to),
            RunError::Forbidden { server, address: Some(address) } => {
                write!(to, "{server} is {address}, and nothing may be sent there from here")
            }
            RunError::Forbidden { server, address: None } => {
                write!(to, "{server} is on this machine, and nothing may be sent there")
            }
            RunError::Login { server, why } => why.write(server, to),
            RunError::Interrupted => to.write_str("interrupted"),
            RunError::Kernel(what, error) => write!(to, "{what}: {error}"),
        }
    }
}

impl std::error::Error for RunError {}
