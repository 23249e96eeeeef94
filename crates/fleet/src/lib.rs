//! Runs over several machines: agents, the controller that deals a plan to them, and what starts them by ssh or Slurm.
//!
//! A distributed run is a run: an agent runs its part of a plan through the engine, and the controller adds up what all of them
//! measured. tokio and gRPC are here and nowhere else. The room prints nothing by itself: the [`program::Program`] that it runs in
//! says where words go, and which build it is. It may use `pummel-logic`, `pummel-measure`, `pummel-engine`, `pummel-report` and what
//! `pummel-fronts` says of a fleet.
//!
//! Reading begins at [`agent`], what one machine does, and [`controller`], what keeps them in step. [`launch`] starts agents.

#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod agent;
pub mod controller;
pub mod launch;
pub mod program;
