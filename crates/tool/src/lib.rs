//! Floor 3: what people and other machines see of pummel: command lines, reports, the built-in server.

mod absence;
#[cfg(feature = "agents")]
pub mod agent;
pub mod aside;
mod background;
pub mod cli;
pub mod demo;
pub mod execute;
pub mod exit;
pub mod explain;
pub mod front;
pub mod mcperf;
pub mod memaslap;
pub mod mutilate;
pub mod pages;
#[cfg(feature = "agents")]
pub mod placement;
pub mod places;
pub mod progress;
pub mod report;
pub mod runner;
pub mod samples;
pub mod search;
pub mod serve;
pub mod supplies;
pub mod sweep;
