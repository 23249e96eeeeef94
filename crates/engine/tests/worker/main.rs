//! Whole runs over the simulated network, most of them against the core of the built-in server: no socket, and a clock
//! that only the simulation moves, so that figures are exact.

#[macro_use]
mod forward;

mod accounts;
mod audit;
mod baseline;
mod beginnings;
mod changing;
mod churning;
mod churning_in_cluster;
mod events;
mod fills;
mod flow;
mod key_churn;
mod lanes;
mod littles_law;
mod loading;
mod misses;
mod peer;
mod processes;
mod reach;
mod refusals;
mod replay;
mod sequences;
mod setup;
mod spoilt;
mod staged;
mod steering;
mod trace;
mod truth;
mod udp;
mod windows;
