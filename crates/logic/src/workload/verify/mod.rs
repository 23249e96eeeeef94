//! Whether what a server returned is what was written: intact, and not older than what is known to be stored.

pub mod check;
pub(crate) mod reads;
pub mod stale;
