//! Floor 3: what people and other machines see of pummel: command lines, reports, agents, the built-in server.

#[cfg(feature = "agents")]
pub mod agent;
pub mod build_info;
pub mod cli;
pub mod commands;
pub mod compat;
#[cfg(feature = "agents")]
mod controller;
pub mod exit_status;
pub mod job;
#[cfg(feature = "agents")]
pub mod launch;
pub mod live;
pub mod metrics;
pub mod native;
pub mod report;
pub mod serve;
pub mod short_help;
pub mod snapshot;
pub mod stderr;
pub mod values;
pub mod visible;
mod write_queue;
