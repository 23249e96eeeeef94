//! Agents: processes that run parts of a plan for a controller, which may be on another machine.
//!
//! A distributed run is a run: [`member`] runs a part of a plan through the engine, on an agent ([`service`]) and also in
//! the process of the controller ([`crate::controller`]) where that measures too. Agent and controller speak gRPC, whose
//! messages are in [`proto`]. [`listener`] and [`policy`] decide which controllers are served.

pub mod listener;
pub mod member;
pub mod policy;
pub mod proto;
pub mod service;
