//! The words for why figures have no intervals.

use crate::document::NoIntervals;

/// The reason behind `No intervals:`, without a full stop.
pub fn missing(kind: NoIntervals) -> &'static str {
    match kind {
        NoIntervals::LoadChanges => "the load changes while it is measured",
        NoIntervals::Trace => "the load of a trace need not stay at one level",
        NoIntervals::Recording => "the load of a recording need not stay at one level",
        NoIntervals::Phases => "several phases were measured, which need not be at one level",
        NoIntervals::NotJudged => "whether such a load stays at one level is not judged",
        NoIntervals::Overloaded => "the queue grew to the end, and has no level",
        NoIntervals::Unsteady => "the run was not steady",
        NoIntervals::Short => "the run was too short to say how sure its figures are",
        NoIntervals::Merged => "results were merged, which keep no windows of time",
        NoIntervals::Other => "the reason is not known to this version",
    }
}
