//! Whole runs over the simulated network, most of them against the core of the built-in server: no socket, and a clock
//! that only the simulation moves, so that figures are exact.

mod accounts;
mod crowd;
mod lanes;
mod loading;
mod peer;
mod setup;
mod truth;
mod udp;
