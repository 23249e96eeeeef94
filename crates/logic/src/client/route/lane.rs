//! The number of one of a client's sockets.

/// One of a client's sockets, by number.
pub type Lane = u16;

/// Most lanes that a client can have.
pub const LANES_MAX: usize = Lane::MAX as usize;
