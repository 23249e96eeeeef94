//! A simulated network.
