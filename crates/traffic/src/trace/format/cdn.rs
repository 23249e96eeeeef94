//! CacheLib's CDN traces: columns by a header, or twelve and more in a fixed order.

use crate::trace::columns::Columns;
use crate::trace::found::ColumnKind;
use crate::trace::number::decimal;
use pummel_logic::time::SECOND;

/// The columns of a trace without a header: timestamp, cacheKey, OpType, objectSize, responseSize, responseHeaderSize,
/// rangeStart, rangeEnd, TTL, SamplingRate, cacheHit, and what follows.
pub(super) fn columns() -> Columns {
    Columns::of_header(b"timestamp,cacheKey,OpType,objectSize,-,-,-,-,TTL,-,cacheHit,-", ColumnKind::Cdn)
        .expect("these are the names of the format")
}

/// Whether a line without a header before it is one of the format.
pub(super) fn is_line(line: &[u8]) -> bool {
    let columns = line.split(|&byte| byte == b',').count();
    let first = line.split(|&byte| byte == b',').next().unwrap_or(&[]);
    columns >= 12 && decimal(first, SECOND).is_some()
}
