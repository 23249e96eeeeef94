//! The result as plain tables of columns, for formats that programs read: intervals, and histograms in long form.

use pummel_logic::protocol::{Fault, Outcome};
use pummel_logic::workload::cache_counts::CacheCounts;
use pummel_measure::recorder::Span;

use crate::document::{Document, IntervalResult, OpResult};

/// The figures of each time in a row.
const ROW_FIGURES: [&str; 10] =
    ["min", "mean", "stddev", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"];

/// A column of the cache's counts: its name, and its value.
type CacheColumn = (&'static str, fn(&CacheCounts) -> u64);

/// The columns of what clients saw of the cache.
pub const CACHE_COLUMNS: [CacheColumn; 9] = [
    ("misses_first_touch", |counts| counts.first_touch),
    ("misses_absent", |counts| counts.absent),
    ("misses_expired", |counts| counts.expired),
    ("misses_other", |counts| counts.other),
    ("hit_bytes", |counts| counts.hit_bytes),
    ("missed_bytes", |counts| counts.missed_bytes),
    ("stored_bytes", |counts| counts.stored_bytes),
    ("fills", |counts| counts.fills),
    ("duplicate_fills", |counts| counts.duplicate_fills),
];

/// A table: columns of one length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The columns, in order.
    pub columns: Vec<Column>,
}

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name of the column.
    pub name: String,
    /// Values of the column.
    pub values: Values,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Words with few different values.
    Words(Vec<String>),
    /// Whole numbers.
    Counts(Vec<u64>),
    /// Whole numbers below 2^31.
    Smalls(Vec<u32>),
    /// Nanoseconds; `None` for an event that did not happen.
    Moments(Vec<Option<u64>>),
    /// Numbers of records, which may have all 64 bits; `None` for a key that is none of them.
    Keys(Vec<Option<u64>>),
    /// Numbers; `None` where they are not known.
    Numbers(Vec<Option<f64>>),
}

impl Values {
    /// How many values there are.
    pub fn len(&self) -> usize {
        match self {
            Values::Words(values) => values.len(),
            Values::Counts(values) => values.len(),
            Values::Smalls(values) => values.len(),
            Values::Moments(values) | Values::Keys(values) => values.len(),
            Values::Numbers(values) => values.len(),
        }
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Table {
    /// A table of these columns.
    ///
    /// # Panics
    /// Panics when they have different lengths.
    pub fn new(columns: Vec<(String, Values)>) -> Table {
        let columns: Vec<Column> =
            columns.into_iter().map(|(name, values)| Column { name, values }).collect();
        let rows = columns.first().map_or(0, |column| column.values.len());
        assert!(columns.iter().all(|column| column.values.len() == rows), "the columns have one length");
        Table { columns }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }
}

/// The intervals, a row for each and operation, which are those of the CSV.
pub fn intervals(document: &Document) -> Table {
    let rows: Vec<(&IntervalResult, &str, &OpResult)> = document
        .intervals
        .iter()
        .flat_map(|interval| interval.ops.iter().map(move |(name, op)| (interval, name, op)))
        .collect();
    let numbers = |of: &dyn Fn(&IntervalResult, &OpResult) -> Option<f64>| {
        Values::Numbers(rows.iter().map(|(interval, _, op)| of(interval, op)).collect())
    };
    let counts = |of: &dyn Fn(&OpResult) -> u64| Values::Counts(rows.iter().map(|row| of(row.2)).collect());
    let rate = |interval: &IntervalResult, op: &OpResult| {
        Some(if interval.seconds > 0.0 { op.completed as f64 / interval.seconds } else { 0.0 })
    };
    let mut columns = vec![
        ("at_s".to_owned(), numbers(&|interval, _| Some(interval.at_s))),
        ("seconds".to_owned(), numbers(&|interval, _| Some(interval.seconds))),
        ("op".to_owned(), Values::Words(rows.iter().map(|row| row.1.to_owned()).collect())),
        ("requests".to_owned(), counts(&|op| op.requests)),
        ("completed".to_owned(), counts(&|op| op.completed)),
        ("rate".to_owned(), numbers(&rate)),
        ("keys".to_owned(), counts(&|op| op.keys)),
        ("hits".to_owned(), counts(&|op| op.hits)),
        ("misses".to_owned(), counts(&|op| op.misses)),
    ];
    for fault in Fault::ALL {
        let count = |op: &OpResult| op.errors.get(fault.name()).copied().unwrap_or(0);
        columns.push((format!("errors_{}", fault.name()), counts(&count)));
    }
    columns.push(("unfinished".to_owned(), counts(&|op| op.unfinished)));
    columns.push(("unsent".to_owned(), counts(&|op| op.unsent)));
    for span in Span::ALL {
        for figure in ROW_FIGURES {
            let of = |_: &IntervalResult, op: &OpResult| op.times.of_span(span).plain(figure);
            columns.push((format!("{}_{figure}_us", span.name()), numbers(&of)));
        }
    }
    let phases = rows.iter().map(|(interval, ..)| phase_at(document, interval.at_s).to_owned());
    columns.push(("phase".to_owned(), Values::Words(phases.collect())));
    for (name, of) in CACHE_COLUMNS {
        let count = |_: &IntervalResult, op: &OpResult| op.cache.as_ref().map(|counts| of(counts) as f64);
        columns.push((name.to_owned(), numbers(&count)));
    }
    for name in Outcome::WITHOUT_EFFECT.map(|outcome| outcome.name()) {
        let count = |op: &OpResult| op.outcomes.get(name).copied().unwrap_or(0);
        columns.push((format!("outcomes_{name}"), counts(&count)));
    }
    Table::new(columns)
}

/// The name of the phase in which an interval begins; empty where the load does not change.
fn phase_at(document: &Document, at_s: f64) -> &str {
    // Beginnings are rounded to microseconds, and those of intervals to the tick.
    let begun = document.phases.iter().rev().find(|phase| phase.at_s <= at_s + 1e-3);
    begun.map_or("", |phase| phase.name.as_str())
}

/// The histograms, a row for each cell that holds something: of the whole run (`at_s` is not there) each operation and time
/// with the cells as they were recorded, of each interval the response and service of all operations together in cells of an
/// eighth of a doubling. `to_ns` is the least value of the next cell. Results without histograms have no such rows.
pub fn histograms(document: &Document) -> Table {
    let (mut at, mut op, mut span) = (Vec::new(), Vec::new(), Vec::new());
    let (mut from, mut to, mut count) = (Vec::new(), Vec::new(), Vec::new());
    let mut row = |at_s: Option<f64>, names: (&str, Span), cell: (u64, u64, u64)| {
        at.push(at_s);
        op.push(names.0.to_owned());
        span.push(names.1.name().to_owned());
        from.push(cell.0);
        to.push(cell.1);
        count.push(cell.2);
    };
    for (name, result) in document.ops.iter() {
        for span in Span::ALL {
            let Some(Ok(histogram)) = result.histogram(span) else { continue };
            for (lowest, highest, cell) in histogram.cells() {
                row(None, (name, span), (lowest, highest + 1, cell));
            }
        }
    }
    for interval in &document.intervals {
        let Some(sketch) = &interval.sketch else { continue };
        for (span, times) in [(Span::Response, &sketch.response), (Span::Service, &sketch.service)] {
            times.cells().for_each(|cell| row(Some(interval.at_s), ("all", span), cell));
        }
    }
    Table::new(vec![
        ("at_s".to_owned(), Values::Numbers(at)),
        ("op".to_owned(), Values::Words(op)),
        ("span".to_owned(), Values::Words(span)),
        ("from_ns".to_owned(), Values::Counts(from)),
        ("to_ns".to_owned(), Values::Counts(to)),
        ("count".to_owned(), Values::Counts(count)),
    ])
}

/// Facts about the run for the metadata of its tables: names and values.
pub fn facts(document: &Document) -> Vec<(String, String)> {
    let json = |value: serde_json::Result<String>| value.expect("a result is JSON");
    let mut facts = vec![
        ("pummel.version".to_owned(), document.tool.version.clone()),
        ("pummel.schema".to_owned(), document.schema.to_string()),
        ("pummel.status".to_owned(), json(serde_json::to_string(&document.status)).replace('"', "")),
        ("pummel.seconds".to_owned(), document.seconds.to_string()),
        ("pummel.plan".to_owned(), json(serde_json::to_string(&document.plan))),
    ];
    let started = document.started_unix_s.map(|at| ("pummel.started_unix_s".to_owned(), at.to_string()));
    facts.extend(started);
    facts.extend(document.labels.iter().map(|(name, value)| (format!("pummel.label.{name}"), value.clone())));
    facts
}

/// The lines of a file of requests as tables of at most `rows_max` rows, from `text` behind its first line.
#[derive(Debug)]
pub struct SampleRows<I> {
    lines: I,
    rows_max: usize,
}

/// The columns of a table of requests, without a row.
pub fn no_samples() -> Table {
    sample_table(Default::default(), Default::default(), (Vec::new(), Default::default()))
}

/// A table of requests from its columns: five times, two words, the number of the key and two places.
fn sample_table(
    times: [Vec<Option<u64>>; 5],
    words: [Vec<String>; 2],
    (keys, places): (Vec<Option<u64>>, [Vec<u32>; 2]),
) -> Table {
    let [due, ready, sent, arrived, read] = times.map(Values::Moments);
    let [op, outcome] = words.map(Values::Words);
    let [client, group] = places.map(Values::Smalls);
    let columns = [
        ("due_ns", due),
        ("ready_ns", ready),
        ("sent_ns", sent),
        ("arrived_ns", arrived),
        ("read_ns", read),
        ("op", op),
        ("outcome", outcome),
        ("key", Values::Keys(keys)),
        ("client", client),
        ("group", group),
    ];
    Table::new(columns.into_iter().map(|(name, values)| (name.to_owned(), values)).collect())
}

impl<I> SampleRows<I> {
    /// Tables of the lines of a file, without its first one.
    pub fn new(lines: I, rows_max: usize) -> SampleRows<I> {
        SampleRows { lines, rows_max }
    }
}

impl<I: Iterator<Item = std::io::Result<String>>> SampleRows<I> {
    /// The next table; `None` after the last line.
    ///
    /// # Errors
    /// Returns the error of the lines, and `InvalidData` for a line that does not describe a request.
    pub fn next_table(&mut self) -> std::io::Result<Option<Table>> {
        let mut times: [Vec<Option<u64>>; 5] = Default::default();
        let mut words: [Vec<String>; 2] = Default::default();
        let (mut keys, mut places): (Vec<Option<u64>>, [Vec<u32>; 2]) = Default::default();
        while keys.len() < self.rows_max {
            let Some(line) = self.lines.next().transpose()? else { break };
            let wrong =
                || std::io::Error::new(std::io::ErrorKind::InvalidData, format!("no request: {line}"));
            let cells: Vec<&str> = line.split(',').collect();
            let [due, ready, sent, arrived, read, op, outcome, key, client, group] = cells[..] else {
                return Err(wrong());
            };
            let known = |cell: &str| -> std::io::Result<Option<u64>> {
                if cell.is_empty() { Ok(None) } else { cell.parse().map(Some).map_err(|_| wrong()) }
            };
            for (column, cell) in times.iter_mut().zip([due, ready, sent, arrived, read]) {
                column.push(known(cell)?);
            }
            words[0].push(op.to_owned());
            words[1].push(outcome.to_owned());
            // The keys of a trace are no numbers of records.
            keys.push(known(key)?);
            for (column, cell) in places.iter_mut().zip([client, group]) {
                column.push(cell.parse().map_err(|_| wrong())?);
            }
        }
        if keys.is_empty() {
            return Ok(None);
        }
        Ok(Some(sample_table(times, words, (keys, places))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Run;
    use pummel_measure::measurement::Keep;

    fn counts<'a>(table: &'a Table, name: &str) -> &'a [u64] {
        match &table.columns.iter().find(|column| column.name == name).expect(name).values {
            Values::Counts(values) => values,
            other => panic!("{name} has no counts: {other:?}"),
        }
    }

    #[test]
    fn histograms_hold_every_request_of_the_run_and_of_each_interval() {
        let document = Run::new(Keep::Figures).document(Clone::clone);
        let table = histograms(&document);
        let Values::Numbers(at) = &table.columns[0].values else { panic!("times") };
        let sum = |is_of: &dyn Fn(Option<f64>) -> bool| {
            let rows = at.iter().zip(counts(&table, "count"));
            rows.filter(|(at, _)| is_of(**at)).map(|(_, count)| count).sum::<u64>()
        };
        // Five times of the whole run, and two of each interval.
        assert_eq!(sum(&|at| at.is_none()), 5 * 2_000);
        assert_eq!(sum(&|at| at == Some(1.0)), 2 * 1_000);
        let cells = counts(&table, "from_ns").iter().zip(counts(&table, "to_ns"));
        assert!(cells.clone().all(|(from, to)| from < to));
    }

    #[test]
    fn requests_are_read_in_tables_and_what_is_none_is_refused() {
        let lines = ["1,2,3,,,get,unfinished,7,0,0", "4,,,,,set,unsent,,3,1", "5,5,6,9,9,get,hit,1,2,0"];
        let given = lines.into_iter().map(|line| Ok(line.to_owned()));
        let mut rows = SampleRows::new(given, 2);
        let first = rows.next_table().expect("requests").expect("two of them");
        assert_eq!(first.rows(), 2);
        // A request of a trace has no number of a record.
        assert_eq!(first.columns[7].values, Values::Keys(vec![Some(7), None]));
        assert_eq!(first.columns[3].values, Values::Moments(vec![None, None]));
        assert_eq!(rows.next_table().expect("requests").expect("one").rows(), 1);
        assert_eq!(rows.next_table().expect("the end"), None);
        for wrong in ["", "1,2,3", "x,,,,,get,hit,1,2,0", "1,,,,,get,hit,-1,2,0", "1,,,,,get,hit,1,2,0,9"] {
            let mut rows = SampleRows::new(std::iter::once(Ok(wrong.to_owned())), 9);
            assert!(rows.next_table().is_err(), "{wrong}");
        }
    }

    #[test]
    fn facts_name_the_plan_and_the_labels() {
        let mut run = Run::new(Keep::Figures);
        run.plan.labels.insert("branch".to_owned(), "main".to_owned());
        let facts = run.document(facts);
        let value = |name: &str| facts.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        assert_eq!((value("pummel.status"), value("pummel.label.branch")), (Some("complete"), Some("main")));
        assert!(value("pummel.plan").expect("the plan").contains("\"seed\":42"));
    }
}
