//! The intervals as an HdrHistogram log, for the standard tools that read those.

use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriter, IntervalLogWriterBuilder, Tag};
use pummel_logic::measure::histogram::Histogram;
use pummel_logic::measure::recorder::Span;
use pummel_logic::time::Nanos;
use pummel_logic::wire::Verb;

use super::{Report, VERSION};

/// Values are nanoseconds; the column for the eye is in milliseconds, as is usual.
const MAX_DIVISOR: f64 = 1e6;

type Log<'a> = IntervalLogWriter<'a, 'a, Vec<u8>, V2DeflateSerializer>;

/// The log: for every interval and op the histograms that hold something, with tags such as `get.response`.
///
/// Where the intervals were measured without their histograms the log has the whole measured phase as one interval.
pub fn render(report: &Report<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let start = SystemTime::UNIX_EPOCH + Duration::from_nanos(report.measurement.started_unix_ns);
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment(&format!(
            "[pummel {VERSION}; values are nanoseconds, the maximum of each line milliseconds]"
        ))
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(MAX_DIVISOR)
        .begin_log_with(&mut bytes, &mut serializer)
        .expect(NEVER_FAILS);
    let kept =
        report.measurement.intervals.iter().all(|slice| slice.ops.values().all(|op| op.histograms.is_some()));
    if kept && !report.measurement.intervals.is_empty() {
        slices(&mut log, report);
    } else {
        for (verb, op) in report.measurement.ops().iter() {
            for span in Span::ALL {
                line(&mut log, op.times.of(span), (verb, span), 0, report.measurement.measured_ns);
            }
        }
    }
    bytes
}

const NEVER_FAILS: &str = "memory takes everything, and the counts fit";

fn slices(log: &mut Log<'_>, report: &Report<'_>) {
    for slice in &report.measurement.intervals {
        for (verb, op) in &slice.ops {
            for (span, histogram) in Span::ALL.into_iter().zip(op.histograms().iter().flatten()) {
                line(log, histogram, (*verb, span), slice.start_ns, slice.length_ns());
            }
        }
    }
}

fn line(
    log: &mut Log<'_>,
    histogram: &Histogram,
    (verb, span): (Verb, Span),
    start_ns: Nanos,
    length_ns: Nanos,
) {
    if histogram.count() == 0 {
        return;
    }
    let tag = format!("{}.{}", verb.name(), span.name());
    let tag = Tag::new(&tag).expect("names of verbs and spans have no comma and no space");
    let (start, length) = (Duration::from_nanos(start_ns), Duration::from_nanos(length_ns));
    log.write_histogram(&histogram.to_hdr(), start, length, Some(tag)).expect(NEVER_FAILS);
}
