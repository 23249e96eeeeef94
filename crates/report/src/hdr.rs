//! The intervals as an HdrHistogram log, for the standard tools that read those.

use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriter, IntervalLogWriterBuilder, Tag};
use pummel_measure::recorder::Span;

use crate::VERSION;
use crate::document::{Document, OpsResult};

/// Values are nanoseconds; the column for the eye is in milliseconds, as is usual.
const MAX_DIVISOR: f64 = 1e6;

type Log<'a> = IntervalLogWriter<'a, 'a, Vec<u8>, V2DeflateSerializer>;

/// The log: for every interval and op the histograms that hold something, with tags such as `get.response`.
///
/// Where the intervals were measured without their histograms the log has the whole measured phase as one interval.
pub fn render(document: &Document) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let start = SystemTime::UNIX_EPOCH + length_of(document.started_unix_s.unwrap_or_default());
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
    let intervals = &document.intervals;
    let is_kept = |ops: &OpsResult| ops.iter().all(|(_, op)| !op.histograms.is_empty());
    if !intervals.is_empty() && intervals.iter().all(|interval| is_kept(&interval.ops)) {
        for interval in intervals {
            lines(&mut log, &interval.ops, interval.at_s, interval.seconds);
        }
    } else {
        lines(&mut log, &document.ops, 0.0, document.seconds);
    }
    bytes
}

const NEVER_FAILS: &str = "memory takes everything, and the counts fit";

/// Seconds of a result as a duration; none where they are no duration.
fn length_of(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// Adds a line for each op and time that has values. A text of a stored result that is no histogram has no line.
fn lines(log: &mut Log<'_>, ops: &OpsResult, at_s: f64, seconds: f64) {
    for (name, op) in ops.iter() {
        for span in Span::ALL {
            let Some(Ok(histogram)) = op.histogram(span) else { continue };
            let tag = format!("{name}.{}", span.name());
            // The names of verbs have neither; a stored result may have any name.
            let Some(tag) = Tag::new(&tag) else { continue };
            if histogram.count() > 0 {
                log.write_histogram(&histogram.to_hdr(), length_of(at_s), length_of(seconds), Some(tag))
                    .expect(NEVER_FAILS);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Run;
    use hdrhistogram::serialization::interval_log::{IntervalLogHistogram, IntervalLogIterator, LogEntry};
    use pummel_logic::time::SECOND;
    use pummel_measure::histogram::Histogram;
    use pummel_measure::measurement::Keep;

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
        let lines = read(&run.document(render));
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
        let lines = read(&Run::new(Keep::Figures).document(render));
        assert_eq!(lines.len(), 2 * Span::COUNT);
        assert!(lines.iter().all(|line| (line.1, line.2) == (Duration::ZERO, Duration::from_secs(2))));
        assert_eq!(lines[0].3.count(), 1_800);
    }

    #[test]
    fn intervals_in_which_nothing_happened_have_no_lines() {
        let mut run = Run::new(Keep::Histograms);
        let before = run.document(render);
        run.interval(2, Keep::Histograms, |interval| interval.end_ns = 3 * SECOND);
        assert_eq!(run.document(render), before);
    }
}
