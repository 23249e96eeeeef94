//! The intervals as an HdrHistogram log, for the standard tools that read those.

use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriter, IntervalLogWriterBuilder, Tag};
use pummel_logic::measure::histogram::Histogram;
use pummel_logic::measure::recorder::Span;
use pummel_logic::time::Nanos;

use crate::report::{Report, VERSION};

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
                let name = report.plan.name_of(verb);
                line(&mut log, op.times.of(span), (name, span), 0, report.measurement.measured_ns);
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
                let name = report.plan.name_of(*verb);
                line(log, histogram, (name, span), slice.start_ns, slice.length_ns());
            }
        }
    }
}

fn line(
    log: &mut Log<'_>,
    histogram: &Histogram,
    (name, span): (&str, Span),
    start_ns: Nanos,
    length_ns: Nanos,
) {
    if histogram.count() == 0 {
        return;
    }
    let tag = format!("{name}.{}", span.name());
    let tag = Tag::new(&tag).expect("names of verbs and spans have no comma and no space");
    let (start, length) = (Duration::from_nanos(start_ns), Duration::from_nanos(length_ns));
    log.write_histogram(&histogram.to_hdr(), start, length, Some(tag)).expect(NEVER_FAILS);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::Run;
    use hdrhistogram::serialization::interval_log::{IntervalLogHistogram, IntervalLogIterator, LogEntry};
    use pummel_logic::measure::measurement::Keep;
    use pummel_logic::time::SECOND;

    /// Tag, start, length and histogram of every line, as the library's own reader finds them.
    fn read(log: &[u8]) -> Vec<(String, Duration, Duration, Histogram)> {
        let entries =
            IntervalLogIterator::new(log).map(|entry| entry.expect("every line is one of the format"));
        let lines = entries.filter_map(|entry| match entry {
            LogEntry::Interval(line) => Some(parts(&line)),
            LogEntry::StartTime(time) | LogEntry::BaseTime(time) => {
                assert_eq!(time, Duration::from_secs(1_700_000_000));
                None
            }
        });
        lines.collect()
    }

    fn parts(line: &IntervalLogHistogram<'_>) -> (String, Duration, Duration, Histogram) {
        let histogram = Histogram::from_base64(line.encoded_histogram()).unwrap();
        let tag = line.tag().expect("every line has a tag").as_str().to_owned();
        (tag, line.start_timestamp(), line.duration(), histogram)
    }

    #[test]
    fn the_lines_of_all_intervals_add_up_to_what_was_measured() {
        let run = Run::new(Keep::Histograms);
        let lines = read(&run.report(render));
        assert_eq!(lines.len(), 2 * 2 * Span::COUNT);
        for (verb, op) in run.measurement.ops().iter() {
            for span in Span::ALL {
                let tag = format!("{}.{}", verb.name(), span.name());
                let mut merged = Histogram::new();
                lines.iter().filter(|line| line.0 == tag).for_each(|line| merged.merge(&line.3));
                assert!(merged.cells().eq(op.times.of(span).cells()), "{tag}");
            }
        }
        let last = lines.last().unwrap();
        assert_eq!((last.1, last.2), (Duration::from_secs(1), Duration::from_secs(1)));
    }

    #[test]
    fn without_histograms_of_intervals_the_whole_phase_is_one() {
        let lines = read(&Run::new(Keep::Figures).report(render));
        assert_eq!(lines.len(), 2 * Span::COUNT);
        assert!(lines.iter().all(|line| (line.1, line.2) == (Duration::ZERO, Duration::from_secs(2))));
        assert_eq!(lines[0].3.count(), 1_800);
    }

    #[test]
    fn intervals_in_which_nothing_happened_have_no_lines() {
        let mut run = Run::new(Keep::Histograms);
        let before = run.report(render);
        run.interval(2, Keep::Histograms, |interval| interval.end_ns = 3 * SECOND);
        assert_eq!(run.report(render), before);
    }
}
