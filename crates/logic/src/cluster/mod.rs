//! The state of a Redis or Valkey cluster as a client knows it: its nodes, the owner of each hash slot, and the rules for
//! replies that name another node.
//!
//! Reading begins at [`map`], which the reply to `CLUSTER SLOTS` ([`slots_reply`]) is made into. A server that does not serve a slot
//! answers with a [`redirect`].

#[cfg(any(test, fuzzing, feature = "testing"))]
pub mod contract;
pub mod hops;
pub mod map;
pub mod nodes;
pub mod reads;
pub mod redirect;
pub mod refresh;
pub mod shards;
pub mod slots_reply;
mod values;
pub mod view;

pub use self::nodes::{NodeNumber, UNOWNED};
pub use crate::client::route::crc16::{SLOTS, slot as slot_of};
