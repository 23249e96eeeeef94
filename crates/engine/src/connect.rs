//! Addresses.
