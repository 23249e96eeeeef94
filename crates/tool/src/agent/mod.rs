//! Many machines, one measurement: agents that run their parts of a plan, and the controller that leads them.
//!
//! A remote run is a run: [`member`] runs a part of a plan through the engine, on an agent ([`serve`]) as in the process
//! of the controller ([`lead`]) where that measures too. Between the two lies gRPC: [`door`] decides who may come in,
//! [`link`] is the controller's end.

pub mod allow;
pub mod args;
pub mod cert;
pub mod clocks;
pub mod door;
pub mod lead;
pub mod link;
pub mod member;
pub mod proto;
pub mod serve;
