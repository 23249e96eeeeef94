//! Why a run did not begin.

use std::fmt;
use std::io;
use std::net::IpAddr;

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
    /// The kernel refused an operation, with a description of the operation.
    Kernel(&'static str, io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Plan(what) => to.write_str(what),
            RunError::Connect(error) => error.fmt(to),
            RunError::Tls(error) => error.fmt(to),
            RunError::Forbidden { server, address: Some(address) } => {
                write!(to, "{server} is {address}, and nothing may be sent there from here")
            }
            RunError::Forbidden { server, address: None } => {
                write!(to, "{server} is on this machine, and nothing may be sent there")
            }
            RunError::Kernel(what, error) => write!(to, "{what}: {error}"),
        }
    }
}

impl std::error::Error for RunError {}
