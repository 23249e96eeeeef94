//! Traces of production caches, and the figures that are fitted from them, as pure code.
//!
//! Bytes of a trace come in block by block, in whatever pieces a reader has them; rows, requests and figures go out. Nothing here
//! opens a file, reads a clock or prints, and nothing grows with the length of a trace. The room may use `pummel-logic` (what a
//! request is, when it is due); it knows no measurement, no socket and no report.
//!
//! Reading begins at [`trace`]: [`trace::Format`] turns bytes into [`trace::Row`]s, and [`trace::Shaper`] makes requests of rows.
//! [`fit::Fitter`] takes the same rows and computes the workload that would look like them; [`fit::generate`] makes rows of such a
//! workload. [`dataset`] has the rows of files whose columns fill places of commands.

#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)]
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod dataset;
pub mod fit;
pub mod recording;
pub mod trace;
pub mod unpacked;
