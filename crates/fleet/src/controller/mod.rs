//! The controller of a run over agents: it deals the plan to them, keeps them in step, and gathers what they measured.

pub mod agent_link;
mod agreed_ends;
pub mod clock_offset;
pub mod connected_agents;
mod event_queue;
mod member_state;
mod run;
pub mod shares;
mod slices;
pub mod start_error;
mod timeline;
