//! The program: what follows the command lines of `pummel-fronts`, with files, terminals, signals and the built-in server.
//!
//! Reading begins at `main.rs`, which hands the words of a command line to a file of [`commands`]. The driver in [`job`] checks what a
//! job needs, makes its runs and writes its results; its `series` makes several runs of one kind. The program may use every other crate.
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
