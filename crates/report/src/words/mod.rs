//! The words for the facts of results: one table for each subject, from which every report takes its sentences.

pub mod baseline;
pub mod commands;
pub mod fail_on;
pub mod findings;
pub mod intervals;
pub mod limit;
pub mod observations;
pub mod outcomes;
pub mod reason;
pub mod search;
pub mod suite;
pub mod trust;
pub mod unsteady;
pub mod verify;
