//! The figures of a run by the rows of memtier_benchmark's reports, and of several runs together.

use pummel_logic::merge::Merge as _;
use pummel_logic::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use pummel_measure::counters::Bytes;
use pummel_measure::histogram::{Histogram, rank};
use pummel_measure::interval::Interval;
use pummel_measure::measurement::{Measurement, Status};
use pummel_measure::recorder::{Counts, Ops, Span};

use super::display::{Display, Row, RowKind};

/// Most seconds that are kept: those of the first eleven days.
const SECONDS_MAX: usize = 1_000_000;

/// The figures of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFigures {
    /// Beginning, in milliseconds since 1970; 0 of several runs together.
    pub started_ms: u64,
    /// Length in milliseconds.
    pub length_ms: u64,
    /// Whether the user ended the run.
    pub is_interrupted: bool,
    /// The rows, in the order of the report, and the totals behind them.
    pub rows: Vec<RowFigures>,
    /// The seconds of the run; none of several runs together.
    pub seconds: Vec<SecondFigures>,
}

/// The figures of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowFigures {
    /// Completed requests.
    pub count: u64,
    /// Completed requests per second.
    pub rate: f64,
    /// Keys per second that were found.
    pub hits: f64,
    /// Keys per second that were not found.
    pub misses: f64,
    /// Redirects per second of a cluster, `MOVED` and `ASK`; `None` where they are not known for the row.
    pub redirects: Option<(f64, f64)>,
    /// Connections that were lost or not opened.
    pub connection_errors: u64,
    /// Such connections per second.
    pub connection_error_rate: f64,
    /// Kilobytes per second that were received and sent; `None` where they are not known for the row.
    pub kilobytes: Option<(f64, f64)>,
    /// The service times.
    pub times: Histogram,
}

/// The figures of a second of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct SecondFigures {
    /// Number of the second, from 0.
    pub second: u64,
    /// The rows, in the order of the report, and the totals behind them.
    pub rows: Vec<SecondRow>,
}

/// The figures of a row in a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecondRow {
    /// Completed requests.
    pub count: u64,
    /// Bytes that were received and sent; `None` where they are not known for the row.
    pub bytes: Option<Bytes>,
    /// Sum of the service times, in milliseconds.
    pub sum_ms: f64,
    /// Mean service time in milliseconds.
    pub mean_ms: f64,
    /// Least service time in milliseconds.
    pub least_ms: f64,
    /// Greatest service time in milliseconds.
    pub greatest_ms: f64,
    /// The percentiles of the command line, in milliseconds.
    pub percentiles_ms: Vec<f64>,
}

/// Bytes of a stored reply of RESP, of a text and of a binary one, and of a reply to WAIT.
const STORED_BYTES: [u64; 3] = [5, 8, 24];
const WAITED_BYTES: u64 = 4;

/// The milliseconds of a number of nanoseconds.
pub fn milliseconds(ns: f64) -> f64 {
    ns / MILLISECOND as f64
}

/// A percentile of these times in milliseconds; 0 where there are none.
pub fn percentile_ms(times: &Histogram, percent: f64) -> f64 {
    let at = times.at_rank(rank(percent / 100.0, times.count()).max(1));
    at.map_or(0.0, |ns| milliseconds(ns as f64))
}

/// Service times of the completed requests of a row, with their counts.
fn of_row(ops: &Ops, row: &Row) -> (Counts, Histogram) {
    let (mut counts, mut times) = (Counts::default(), Histogram::new());
    for op in row.verbs.iter().filter_map(|verb| ops.get(*verb)) {
        counts.merge(&op.counts);
        times.merge(op.times.of(Span::Service));
    }
    (counts, times)
}

impl Display {
    /// The bytes of each row. Where several rows share them they are dealt by the lengths of their requests, and of their replies, of
    /// which only those of GETs differ; `None` where that is not known, as with requests that failed.
    pub(super) fn dealt(&self, by_row: &[Counts], all: Bytes) -> Vec<Option<Bytes>> {
        let is_known = by_row.iter().all(|counts| counts.failed() == 0 && counts.unfinished == 0);
        if self.request_bytes.is_empty() || !is_known && by_row.len() > 1 {
            return vec![None; by_row.len()];
        }
        let counts: Vec<u64> = by_row.iter().map(|counts| counts.completed).collect();
        let weights: Vec<f64> =
            counts.iter().zip(&self.request_bytes).map(|(count, bytes)| *count as f64 * bytes).collect();
        let total: f64 = weights.iter().sum();
        let replies = |row: &Row, count: u64| match row.kind {
            RowKind::Get | RowKind::Command => 0,
            RowKind::Wait => count * WAITED_BYTES,
            RowKind::Set => {
                let form = match (self.options.protocol.is_resp(), self.options.protocol) {
                    (true, _) => 0,
                    (false, super::options::GivenProtocol::Text) => 1,
                    (false, _) => 2,
                };
                count * STORED_BYTES[form]
            }
        };
        let known: Vec<u64> =
            self.rows.iter().zip(&counts).map(|(row, count)| replies(row, *count)).collect();
        let gets = counts.iter().zip(&self.rows).any(|(count, row)| *count > 0 && known_by_rest(row.kind));
        let fixed: u64 = known.iter().sum();
        let deal = |((row, weight), known): ((&Row, &f64), &u64)| {
            let sent = if total > 0.0 { (all.sent as f64 * weight / total).round() as u64 } else { 0 };
            let received = match (known_by_rest(row.kind), gets) {
                (true, true) => all.received.saturating_sub(fixed),
                (true, false) => 0,
                (false, true) => (*known).min(all.received),
                // Without a row that takes the rest, all replies are of rows of known lengths.
                (false, false) if fixed > 0 => all.received * known / fixed,
                (false, false) => 0,
            };
            Some(Bytes { sent, received })
        };
        self.rows.iter().zip(&weights).zip(&known).map(deal).collect()
    }

    /// The figures of a run. `seconds` are those that were handed over while it went on.
    pub fn figures(&self, measurement: &Measurement, seconds_of_run: Vec<SecondFigures>) -> RunFigures {
        // A server that stops answering does not shorten the time in which it was asked.
        let length_ns = measurement.measured_ns.max(measurement.answered_ns);
        let per_second = |count: u64| count as f64 * SECOND as f64 / length_ns.max(1) as f64;
        let ops = measurement.ops();
        let by_row: Vec<(Counts, Histogram)> = self.rows.iter().map(|row| of_row(&ops, row)).collect();
        let counts: Vec<Counts> = by_row.iter().map(|(counts, _)| *counts).collect();
        let kilobytes = |bytes: Bytes| {
            let rate = |bytes: u64| per_second(bytes) / 1_024.0;
            (rate(bytes.received), rate(bytes.sent))
        };
        let bytes = self.dealt(&counts, measurement.counters.bytes);
        let of = |counts: &Counts, times: &Histogram, bytes: Option<Bytes>| RowFigures {
            count: counts.completed,
            rate: per_second(counts.completed),
            hits: per_second(counts.hits),
            misses: per_second(counts.misses),
            kilobytes: bytes.map(kilobytes),
            times: times.clone(),
            ..RowFigures::default()
        };
        let mut rows: Vec<RowFigures> =
            by_row.iter().zip(bytes).map(|((counts, times), bytes)| of(counts, times, bytes)).collect();
        let all = ops.all();
        let redirects = measurement.counters.redirects;
        let lost = measurement.connections.lost + measurement.connections.failed;
        rows.push(RowFigures {
            redirects: Some((per_second(redirects.moved), per_second(redirects.ask))),
            connection_errors: lost,
            connection_error_rate: per_second(lost),
            ..of(&all.counts, all.times.of(Span::Service), Some(measurement.counters.bytes))
        });
        RunFigures {
            started_ms: measurement.started_unix_ns / MILLISECOND,
            length_ms: length_ns / MILLISECOND,
            is_interrupted: measurement.status == Status::Interrupted,
            rows,
            seconds: seconds_of_run,
        }
    }

    /// Adds the figures of a slice to the seconds of a run.
    pub fn add_second(&self, interval: &mut Interval, seconds_of_run: &mut Vec<SecondFigures>) {
        if seconds_of_run.len() >= SECONDS_MAX {
            return;
        }
        let mut ops = Ops::default();
        interval.groups.iter_mut().for_each(|recorder| ops.merge(recorder.ops()));
        let by_row: Vec<(Counts, Histogram)> = self.rows.iter().map(|row| of_row(&ops, row)).collect();
        let counts: Vec<Counts> = by_row.iter().map(|(counts, _)| *counts).collect();
        let bytes = self.dealt(&counts, interval.counters.bytes);
        let row = |count: u64, times: &Histogram, bytes: Option<Bytes>| {
            let moments = times.moments();
            let is_any = times.count() > 0;
            SecondRow {
                count,
                bytes,
                sum_ms: milliseconds(moments.sum as f64),
                mean_ms: moments.mean_ns().map_or(0.0, milliseconds),
                least_ms: if is_any { percentile_ms(times, 0.0) } else { 0.0 },
                greatest_ms: if is_any { milliseconds(moments.max as f64) } else { 0.0 },
                percentiles_ms: self
                    .options
                    .percentiles
                    .iter()
                    .map(|percent| percentile_ms(times, *percent))
                    .collect(),
            }
        };
        let mut rows: Vec<SecondRow> = by_row
            .iter()
            .zip(bytes)
            .map(|((counts, times), bytes)| row(counts.completed, times, bytes))
            .collect();
        let all = ops.all();
        rows.push(row(all.counts.completed, all.times.of(Span::Service), Some(interval.counters.bytes)));
        seconds_of_run.push(SecondFigures { second: interval.start_ns / SECOND, rows });
    }
}

/// Whether the replies of such a row are what those of the others leave.
fn known_by_rest(kind: RowKind) -> bool {
    matches!(kind, RowKind::Get | RowKind::Command)
}

impl RunFigures {
    /// The totals; those of no requests where nothing was run.
    pub fn totals(&self) -> Option<&RowFigures> {
        self.rows.last()
    }

    /// Completed requests per second.
    pub fn rate(&self) -> f64 {
        self.totals().map_or(0.0, |totals| totals.rate)
    }

    /// The figures of several runs: means of their rates, and the times of all of them.
    pub fn together(runs: &[RunFigures]) -> RunFigures {
        let count = runs.len().max(1) as f64;
        let rows = runs.first().map_or(0, |run| run.rows.len());
        let row = |at: usize| {
            let of: Vec<&RowFigures> = runs.iter().filter_map(|run| run.rows.get(at)).collect();
            let mean =
                |value: &dyn Fn(&RowFigures) -> f64| of.iter().map(|row| value(row)).sum::<f64>() / count;
            let pair = |value: fn(&RowFigures) -> Option<(f64, f64)>| {
                of.iter().all(|row| value(row).is_some()).then(|| {
                    (
                        mean(&|row| value(row).map_or(0.0, |(first, _)| first)),
                        mean(&|row| value(row).map_or(0.0, |(_, second)| second)),
                    )
                })
            };
            let mut times = Histogram::new();
            of.iter().for_each(|row| times.merge(&row.times));
            RowFigures {
                count: of.iter().map(|row| row.count).sum(),
                rate: mean(&|row| row.rate),
                hits: mean(&|row| row.hits),
                misses: mean(&|row| row.misses),
                redirects: pair(|row| row.redirects),
                connection_errors: of.iter().map(|row| row.connection_errors).sum(),
                connection_error_rate: mean(&|row| row.connection_error_rate),
                kilobytes: pair(|row| row.kilobytes),
                times,
            }
        };
        RunFigures {
            is_interrupted: runs.iter().any(|run| run.is_interrupted),
            rows: (0..rows).map(row).collect(),
            ..RunFigures::default()
        }
    }

    /// The reports of these runs, with their titles: that of the only run; of several the best one, the worst one and all together, and
    /// before them each, where all runs are to be printed.
    pub fn titled(runs: &[RunFigures], asked: u32, prints_all: bool) -> Vec<(String, RunFigures)> {
        if asked == 1 {
            return runs.iter().map(|run| ("ALL STATS".to_owned(), run.clone())).collect();
        }
        let by_rate = |first: &&RunFigures, second: &&RunFigures| first.rate().total_cmp(&second.rate());
        let mut titled = Vec::new();
        if prints_all {
            let each = runs.iter().enumerate();
            titled.extend(each.map(|(at, run)| (format!("RUN #{} RESULTS", at + 1), run.clone())));
        }
        titled.extend(runs.iter().max_by(by_rate).map(|run| ("BEST RUN RESULTS".to_owned(), run.clone())));
        titled.extend(runs.iter().min_by(by_rate).map(|run| ("WORST RUN RESULTS".to_owned(), run.clone())));
        if !runs.is_empty() {
            let title = format!("AGGREGATED AVERAGE RESULTS ({} runs)", runs.len());
            titled.push((title, RunFigures::together(runs)));
        }
        titled
    }
}

/// Times in whole microseconds, rounded up: the unit of the original's histograms.
pub fn in_microseconds(times: &Histogram) -> Histogram {
    let mut micros = Histogram::new();
    let greatest = times.moments().max;
    for (_, highest, count) in times.cells() {
        micros.record_many(highest.min(greatest).div_ceil(MICROSECOND), count);
    }
    micros
}

/// A line of a distribution: the least time in nanoseconds that so many per cent of all do not exceed, and this percentage. Steps
/// are ten for each halving of what is left; a distribution of nothing has one line.
pub fn distribution(times: &Histogram) -> Vec<(Nanos, f64)> {
    const STEPS: f64 = 10.0;
    let (total, greatest) = (times.count(), times.moments().max);
    let (mut lines, mut passed, mut percent) = (Vec::new(), 0, 0.0_f64);
    'cells: for (_, highest, count) in times.cells() {
        passed += count;
        let reached = 100.0 * passed as f64 / total as f64;
        while percent <= reached {
            lines.push((highest.min(greatest), percent));
            let halvings = ((100.0 / (100.0 - percent)).log2() as i64 + 1) as f64;
            percent += 100.0 / (STEPS * halvings.exp2());
            if passed == total {
                break 'cells;
            }
        }
    }
    lines.push((greatest, 100.0));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(us: &[(u64, u64)]) -> Histogram {
        let mut times = Histogram::new();
        us.iter().for_each(|(us, count)| times.record_many(us * MICROSECOND, *count));
        times
    }

    #[test]
    fn a_distribution_has_ten_steps_for_each_halving_and_ends_at_the_greatest() {
        let lines = distribution(&times(&[(100, 50), (200, 40), (900, 10)]));
        let percents: Vec<f64> = lines.iter().map(|(_, percent)| *percent).collect();
        assert_eq!(percents[..11], [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0]);
        assert_eq!(percents[11], 52.5);
        assert_eq!(lines.last(), Some(&(900 * MICROSECOND, 100.0)));
        let is_rising = |pair: &[(Nanos, f64)]| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1;
        assert!(lines.windows(2).all(is_rising), "{lines:?}");
        assert_eq!(distribution(&times(&[])), [(0, 100.0)]);
        assert_eq!(distribution(&times(&[(5, 1)])).len(), 2);
    }

    #[test]
    fn several_runs_have_the_mean_of_their_rates_and_the_times_of_all() {
        let run = |rate, us| RunFigures {
            rows: vec![RowFigures {
                count: 10,
                rate,
                times: times(&[(us, 10)]),
                kilobytes: Some((1.0, rate)),
                ..RowFigures::default()
            }],
            ..RunFigures::default()
        };
        let runs = [run(100.0, 50), run(300.0, 70)];
        let together = RunFigures::together(&runs);
        let row = together.totals().expect("it has one");
        assert_eq!((row.count, row.rate, row.times.count()), (20, 200.0, 20));
        assert_eq!(row.kilobytes, Some((1.0, 200.0)));
        let titles: Vec<(String, f64)> =
            RunFigures::titled(&runs, 2, true).into_iter().map(|(title, run)| (title, run.rate())).collect();
        let expected = [
            ("RUN #1 RESULTS", 100.0),
            ("RUN #2 RESULTS", 300.0),
            ("BEST RUN RESULTS", 300.0),
            ("WORST RUN RESULTS", 100.0),
            ("AGGREGATED AVERAGE RESULTS (2 runs)", 200.0),
        ];
        assert_eq!(titles, expected.map(|(title, rate)| (title.to_owned(), rate)));
    }

    #[test]
    fn microseconds_are_rounded_up() {
        let micros = in_microseconds(&times(&[(1, 1)]));
        assert_eq!(micros.at_rank(1), Some(1));
    }
}
