//! Floor 3: what people and other machines see of pummel: command lines, reports, agents, the built-in server.
//!
//! Reading begins at `main.rs`, which hands the words of a command line to a file of [`commands`], or of [`compat`] for another tool's
//! command line. [`native`] makes the job of pummel's own options, and the driver in [`job`] checks what a job needs, makes its runs and
//! writes its results.
//!
//! The modules that deny what `clippy.toml` lists are pure functions; a part of theirs that is not says so, and tests need not be.

#![forbid(unsafe_code)]

pub mod build_info;
pub mod cli;
pub mod commands;
pub mod detection;
pub mod front_inputs;
pub mod job;
#[cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]
pub mod live;
#[cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]
pub mod metrics;
pub mod output;
pub mod parser_answer;
pub mod serve;
pub mod short_help;
pub mod stderr;
pub mod terminal;
mod write_queue;
