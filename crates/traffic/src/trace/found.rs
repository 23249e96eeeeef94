//! The kind of a line or a record of a trace, and the receiver of its rows.

use crate::trace::row::Row;
use pummel_logic::time::{Nanos, SECOND};

/// The kind of a line or a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Requests, which were handed over.
    Rows,
    /// A line without a request: a header, an empty line, an end.
    Nothing,
    /// An operation that is not replayed.
    Skipped,
    /// Line or record that is no request of the format.
    Bad,
    /// A note that this many requests were not recorded.
    Lost(u64),
}

/// A receiver of rows.
pub(super) type Sink<'a> = dyn FnMut(&Row<'_>) + 'a;

/// The kinds of traces that have columns with names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnKind {
    /// CacheLib's key-value traces: operations in capitals, times in whole seconds; a read missed as often as its hits
    /// are fewer than its requests, or, without a number of hits, if it has no size.
    Kvcache,
    /// CacheLib's CDN traces: every row is a read.
    Cdn,
    /// Traces of any other source, with names of pummel's choice.
    Csv,
}

/// A number of seconds as nanoseconds.
pub(super) fn seconds(number: u64) -> Option<Nanos> {
    number.checked_mul(SECOND)
}
