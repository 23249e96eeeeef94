//! Command lines: what the words of a user ask for, and what pummel says about it, as pure code.
//!
//! A front turns the arguments of one tool into a [`job`]: a plan, and what is to be written about its run; its [`style`] makes the
//! text of people from the events of the run. Nothing here reads a file, the environment, a clock or a socket: what a front needs of
//! them is given in [`job::FrontInputs`]. The room may use `pummel-logic`, `pummel-measure`, `pummel-traffic` and `pummel-report`.
//!
//! Reading begins at [`job`]. [`native`] is pummel's own command line; [`mcperf`], [`memaslap`], [`mutilate`],
//! [`redis_benchmark`] and [`memtier_benchmark`] are those of other tools: rows of [`fronts`], read by [`getopt`] and [`c_numbers`].

#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod agent_variables;
pub mod c_numbers;
pub mod exit_status;
pub mod fleet;
pub mod front;
pub mod fronts;
pub mod getopt;
pub mod hints;
pub mod job;
pub mod launch_spec;
pub mod mcperf;
pub mod memaslap;
pub mod memtier_benchmark;
pub mod metrics_options;
pub mod mutilate;
pub mod native;
pub mod other_tools;
pub mod outputs;
pub mod redis_benchmark;
pub mod screen_options;
pub mod so_far;
pub mod style;
pub mod user_commands;
pub mod values;
