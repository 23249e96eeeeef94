//! One of a client's sockets as the client knows it: whether it is open, and which reply is being received on it.

use crate::time::Nanos;

/// The state of a lane, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneState {
    /// The lane is not open, and its opening was not asked for.
    Closed,
    Opening,
    /// Open since this time.
    Open(Nanos),
    /// The lane is never opened again.
    Lost,
}

/// One of a client's sockets, as far as the client knows it.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) state: LaneState,
    /// Number of the lane's server in the Plan.
    pub(super) server: u32,
    /// The last attempt to open it failed, after it had been open.
    pub(super) down: bool,
    /// Place of the key of a multi-get that is expected next in the reply.
    pub(super) cursor: u16,
    /// Keys that the reply passed over so far; of a read for a cas, whose reply passes over none, the bytes of the values that were
    /// received, where they are counted.
    pub(super) missed: Vec<u64>,
    /// For a read of a cas: the CAS unique of the item that was received. For other reads: the bytes of the values of
    /// the reply that is being received, if they are counted. No reply needs both, and there are many clients.
    pub(super) cas_or_bytes: u64,
}

impl Socket {
    pub(super) fn new(server: u32) -> Socket {
        let (state, missed) = (LaneState::Closed, Vec::new());
        Socket { state, server, down: false, cursor: 0, missed, cas_or_bytes: 0 }
    }
}
