//! Whole runs over the simulated network, most of them against the core of the built-in server: no socket, and a clock
//! that only the simulation moves, so that figures are exact.

mod accounts;
mod churning;
mod flow;
mod lanes;
mod little;
mod loading;
mod peer;
mod reach;
mod setup;
mod spoilt;
mod truth;
mod udp;
