//! The number of a connection among those of one client.

/// The number of one of a client's connections, from 0.
pub type Lane = u16;

/// Most lanes that a client can have.
pub const LANES_MAX: usize = Lane::MAX as usize;
