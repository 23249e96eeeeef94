//! The number of a connection among those of one client.

/// The number of one of a client's connections, from 0.
pub type Lane = u16;

/// Most lanes that a client can have.
pub const LANES_MAX: usize = Lane::MAX as usize;

/// The place where a request is answered: its lane, or in a cluster the slot of its key, whose lane changes.
pub type Place = u16;
