//! Intervals of the figures of a run, from the differences between windows of its time.
//!
//! Requests that follow each other share a queue, a stall and a neighbour, so that they are worth much less than their
//! number. The method, named [`METHOD`] in results, is Woodruff's interval for a quantile with windows of time as the
//! clusters: the share of requests above the printed value is counted in each of 32 to 63 batches of windows, its variance
//! says how many independent requests the run was worth (Korn and Graubard's effective sample size), what is left of
//! correlation between neighbouring batches is corrected to first order, and the kurtosis of the batches gives the degrees of
//! freedom. An interval says where the figure would lie if the same server with the same connections were measured for
//! another stretch of the same length. It says nothing of another start of the server.

mod batches;
mod early_ends;
#[cfg(test)]
mod exactness;
mod outliers;
mod series;
mod settling;
#[cfg(test)]
pub(crate) mod simulated;
pub(crate) mod special;
pub mod steadiness;
mod until;
mod windows;

pub use self::batches::{Batches, Bounds, Range, Upper};
pub use self::early_ends::EarlyEnds;
pub use self::outliers::{ProcessTimes, deviations};
pub use self::settling::Settling;
pub use self::special::{Confidence, student_t};
pub use self::until::{Looks, UntilResult, quantile_name};
pub use self::windows::{
    BASE_NS, KEPT, WINDOWS_MAX, Window, WindowOp, WindowTimes, Windows, lead_ns, tick_ns,
};

/// The name of the method in results.
pub const METHOD: &str = "batches-1";

/// Probability with which an interval contains its figure.
pub const LEVEL: f64 = 0.95;
