//! Agents: processes that run parts of a plan for a controller, which may be on another machine.
//!
//! A distributed run is a run: [`member`] runs a part of a plan through the engine, on an agent ([`service`]) and also in
//! the process of the controller ([`crate::controller`]) where that measures too. Agent and controller speak gRPC, whose
//! messages are in [`proto`]. A connection comes in through [`listener`], and keeps its place among the [`peers`] while it
//! is of use. What a controller may ask for is in [`policy`], with [`network`], [`files`] and [`limits`].

pub mod files;
pub mod lease;
pub mod limits;
pub mod listener;
pub mod member;
pub mod network;
mod order;
pub mod overrides;
pub mod peers;
pub mod policy;
pub mod proto;
mod refusals;
pub mod service;
mod session;
