//! The controller of a run over agents: it deals the plan out, keeps the agents in step, and gathers what they measured.

pub mod agent_link;
pub mod clock_offset;
pub mod run;
