//! Command lines: each front turns the arguments of one tool into a Plan, and opens nothing.

pub mod values;
