//! The reasons why a run cannot begin to open its connections.

use std::fmt;
use std::io;

/// The reason why a run cannot begin to open its connections. The text of each variant says what can be done about it.
#[derive(Debug)]
pub enum ConnectError {
    /// A server's name has none of the accepted forms.
    ServerForm(String),
    /// The name service does not know the host, or does not answer.
    Unresolved {
        /// The text in the Plan.
        server: String,
        /// The error of the name service.
        error: io::Error,
    },
    /// The kernel does not accept the path of a unix socket.
    SocketPath(String),
    /// The text of a source is no IP address.
    SourceForm(String),
    /// No source address is of the kind (IPv4 or IPv6) of any address of the server.
    SourceKind(String),
    /// The system allows fewer descriptors than the connections need.
    Descriptors {
        /// Number of connections asked for.
        connections: u64,
        /// Number of descriptors that the process needs.
        needed: u64,
        /// Number of descriptors that are allowed.
        allowed: u64,
    },
}

impl fmt::Display for ConnectError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::ServerForm(server) => write!(
                out,
                "{server:?} is no server: use HOST:PORT, [IPV6]:PORT with a port from 1 to 65535, or the path \
                 of a unix socket, which begins with /"
            ),
            ConnectError::Unresolved { server, error } => write!(
                out,
                "the host of {server:?} could not be resolved ({error}): check the name, or use an IP address"
            ),
            ConnectError::SocketPath(server) => write!(
                out,
                "{server:?} cannot be the path of a unix socket: the kernel takes up to 107 bytes; use a \
                 shorter path, for example through a symbolic link"
            ),
            ConnectError::SourceForm(source) => {
                write!(out, "{source:?} is no source address: use an IPv4 or IPv6 address of this machine")
            }
            ConnectError::SourceKind(server) => write!(
                out,
                "no source address can reach {server:?}: one is IPv4 and the other IPv6; give a source of the \
                 server's kind"
            ),
            ConnectError::Descriptors { connections, needed, allowed } => write!(
                out,
                "{connections} connections need {needed} open files, but the system allows this process only \
                 {allowed}: raise the hard limit (as root: `ulimit -Hn {needed}`, or LimitNOFILE={needed} for \
                 a service), or ask for fewer connections"
            ),
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConnectError::Unresolved { error, .. } => Some(error),
            _ => None,
        }
    }
}
