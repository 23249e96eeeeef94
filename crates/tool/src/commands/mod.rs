//! The subcommands that are more than one run of a [`crate::job::Job`].

#[cfg(feature = "agents")]
pub mod agent;
#[cfg(feature = "agents")]
pub mod agent_cert;
pub mod demo;
pub mod explain;
pub mod man_pages;
pub mod series;
