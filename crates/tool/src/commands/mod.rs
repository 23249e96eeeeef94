//! The subcommands, but for those that have the name and the options of another tool.

pub mod ab;
#[cfg(feature = "agents")]
pub mod agent;
#[cfg(feature = "agents")]
pub mod agent_cert;
pub mod calibrate;
pub mod compare;
pub mod curve;
pub mod demo;
pub mod detection;
pub mod explain;
pub mod judge_options;
pub mod man_pages;
pub mod page;
pub mod repeat;
pub mod run_maker;
pub mod schema;
pub mod search;
pub mod series;
pub mod series_files;
pub mod show;
pub mod single;
pub mod stored;
pub mod table;
pub mod workloads;
