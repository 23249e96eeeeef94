//! When requests are due: rates, the gaps between requests, and the schedule of one client, as arithmetic.

mod along;
mod burst;
mod curve;
mod phase;
mod rate;
mod schedule;
mod steered;

pub use self::curve::RateCurve;
pub use self::phase::pace_of;
pub use self::rate::{GAP_MIN_NS, Passed, RATE_MAX, RATE_MIN, RateError, check_rate, estimated_count};
pub use self::schedule::{Pace, Schedule};
pub use self::steered::{CHANGES_MAX, steered_plan, steps};
