//! The subcommands, but for those that have the name and the options of another tool.

#[cfg(feature = "agents")]
pub mod agent;
#[cfg(feature = "agents")]
pub mod agent_cert;
pub mod calibrate;
pub mod curve;
pub mod demo;
pub mod explain;
pub mod man_pages;
pub mod search;
pub mod series;
pub mod single;
pub mod table;
