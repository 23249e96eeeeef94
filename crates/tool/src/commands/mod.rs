//! The subcommands, but for those that have the name and the options of another tool.

#[cfg(feature = "agents")]
pub mod agent;
#[cfg(feature = "agents")]
pub mod agent_cert;
pub mod demo;
pub mod detection;
pub mod explain;
pub mod man_pages;
pub mod series;
pub mod single;
pub mod table;
