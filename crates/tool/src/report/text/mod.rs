//! Reports for people to read, one file for each style.

pub mod native;
