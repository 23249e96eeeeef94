//! The live view of a run on a terminal: a block of four lines, or a whole screen.

pub mod block;
pub mod canvas;
pub mod choice;
#[cfg(test)]
mod example;
pub mod panels;
pub mod screen;
#[cfg(feature = "live")]
#[allow(clippy::disallowed_methods, clippy::disallowed_types)]
pub mod terminal;
pub mod verdict;
pub mod words;
