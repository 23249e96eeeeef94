//! The records that requests are drawn from, and the places of their keys in requests.

use crate::protocol::COMMANDS_MAX;

/// The records that requests are drawn from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DrawnRecords {
    /// Number of records in each space.
    pub(crate) count: u64,
    /// Number of neighbours from which a request takes all its records; `None` where it takes any.
    pub(crate) together: Option<u64>,
    /// Number of records that a request of each command of the user draws, at least 1.
    pub(crate) of_commands: [u16; COMMANDS_MAX],
}

/// The place of a key in a request of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyAt {
    /// Number of the request among its client's.
    pub(crate) index: u64,
    /// Number of the key in the request.
    pub(crate) place: u64,
    /// Number of the client.
    pub(crate) client: u64,
    /// Number of clients.
    pub(crate) clients: u64,
}
