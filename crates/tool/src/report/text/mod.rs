//! Reports for people to read, one file for each style.

pub mod agents;
pub mod mcperf;
pub mod memaslap;
pub mod mutilate;
pub mod native;
mod numbers;
