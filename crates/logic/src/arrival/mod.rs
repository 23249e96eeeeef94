//! When requests are due: rates, the gaps between requests, and the schedule of one client, as arithmetic.

mod gap;
mod rate;
mod schedule;

pub use self::gap::{GAP_MIN_NS, Passed, estimated_count};
pub use self::rate::{ArrivalError, RATE_MAX, RATE_MIN, check, check_rate};
pub use self::schedule::{Pace, Schedule};
