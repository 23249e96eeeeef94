//! Checks that a server returned what was written: intact, and not older than what is known to be stored.

pub mod check;
pub mod ledger;
pub(crate) mod reads;
pub mod stale;
