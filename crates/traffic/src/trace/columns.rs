//! Traces with columns between commas that a header names, or that are named by their numbers.

use crate::trace::number::{date, decimal, whole, whole_32};
use crate::trace::row::{Found, KEY_MAX_BYTES, Row, Sink, VALUE_MAX_BYTES, is_key, verb_named};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use pummel_logic::workload::hash::client_of_name;

/// Most columns of a line that are looked at; the others are left out.
const COLUMNS_MAX: usize = 64;

/// The error for a header that names no trace: the expected form.
pub type ColumnsError = String;

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

/// The content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Ignored,
    /// The time in units of `unit_ns`, or as a date of ISO 8601 where dates are read.
    Time {
        unit_ns: Nanos,
        dates: bool,
    },
    Key,
    Op,
    Size,
    Ttl,
    Client,
    KeySize,
    Count,
    /// Number 1 for a read that missed when it was recorded.
    Missed,
    /// Number of the requests that hit when they were recorded.
    Hits,
}

/// The columns of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    columns: Vec<Column>,
    kind: ColumnKind,
    /// Whether a time with a fraction was read: those without one are whole by chance.
    has_fractions: bool,
}

impl Columns {
    /// The columns of a CDN trace without a header: timestamp, cacheKey, OpType, objectSize, responseSize, responseHeaderSize,
    /// rangeStart, rangeEnd, TTL, SamplingRate, cacheHit, and what follows.
    pub(super) fn of_cdn() -> Columns {
        Columns::of_header(b"timestamp,cacheKey,OpType,objectSize,-,-,-,-,TTL,-,cacheHit,-", ColumnKind::Cdn)
            .expect("these are the names of the format")
    }

    /// The columns that a header names.
    ///
    /// # Errors
    /// Returns the names that a header of this kind has, if the line is not one.
    pub(super) fn of_header(line: &[u8], kind: ColumnKind) -> Result<Columns, ColumnsError> {
        let name = |name: &[u8]| column_of(kind, name.trim_ascii());
        let columns: Vec<Column> = line.split(|&byte| byte == b',').take(COLUMNS_MAX).map(name).collect();
        let columns = Columns { columns, kind, has_fractions: false };
        let has = |column: Column| columns.columns.contains(&column);
        let is_header = match kind {
            ColumnKind::Kvcache => has(Column::Key) && has(Column::Op) && has(Column::Size),
            ColumnKind::Cdn => has(Column::Key) && has(Column::Size),
            ColumnKind::Csv => has(Column::Key),
        };
        match is_header {
            true => Ok(columns),
            false => Err(expected(kind).to_owned()),
        }
    }

    /// The columns that a text names by their numbers from 1, such as `time=1,key=3`.
    ///
    /// # Errors
    /// Returns the expected form of the text.
    pub fn numbered(text: &str) -> Result<Columns, ColumnsError> {
        let wanted =
            || "columns by their numbers from 1, a key among them, such as csv:time=1,key=3,op=4".to_owned();
        let mut columns = Vec::new();
        for named in text.split(',') {
            let (name, number) = named.split_once('=').ok_or_else(wanted)?;
            let column = column_of(ColumnKind::Csv, name.as_bytes());
            let number = whole(number.as_bytes()).filter(|number| (1..=COLUMNS_MAX as u64).contains(number));
            let place = number.ok_or_else(wanted)? as usize - 1;
            if column == Column::Ignored {
                return Err(wanted());
            }
            if columns.len() <= place {
                columns.resize(place + 1, Column::Ignored);
            }
            columns[place] = column;
        }
        let columns = Columns { columns, kind: ColumnKind::Csv, has_fractions: false };
        if columns.columns.contains(&Column::Key) { Ok(columns) } else { Err(wanted()) }
    }

    /// Takes in a line behind the header.
    pub(super) fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Found {
        let Columns { columns, kind, has_fractions } = self;
        let mut row = Row { value_bytes: None, ..Row::read(&[]) };
        let mut operation = (*kind == ColumnKind::Cdn).then_some(Operation::Verb(Verb::Get));
        let (mut key_bytes, mut hits, mut seen) = (0, None, 0);
        for (column, text) in columns.iter().zip(line.split(|&byte| byte == b',')) {
            seen += 1;
            let text = text.trim_ascii();
            let is_read = match column {
                Column::Ignored => true,
                Column::Time { unit_ns, dates } => time(text, (*unit_ns, *dates), has_fractions, &mut row),
                Column::Key => {
                    row.key = text;
                    is_key(text)
                }
                Column::Op if *kind == ColumnKind::Cdn => true,
                Column::Op => {
                    operation = operation_of(text);
                    operation.is_some()
                }
                Column::Size if text.is_empty() => true,
                Column::Size => {
                    row.value_bytes = whole_32(text).filter(|bytes| *bytes <= VALUE_MAX_BYTES);
                    row.value_bytes.is_some()
                }
                Column::Ttl if text.is_empty() => true,
                // Traces write fractions here, and -1 for none.
                Column::Ttl => ttl(text).is_some_and(|ttl_s| {
                    row.ttl_s = ttl_s;
                    true
                }),
                Column::Client => {
                    let number = || whole(text).unwrap_or_else(|| client_of_name(text));
                    row.client = (!text.is_empty()).then(number);
                    true
                }
                Column::KeySize => whole_32(text).is_some_and(|bytes| {
                    key_bytes = bytes as usize;
                    true
                }),
                Column::Count => whole_32(text).is_some_and(|count| {
                    row.count = count;
                    true
                }),
                Column::Missed => {
                    row.missed = text == b"1" || text.eq_ignore_ascii_case(b"true");
                    row.missed || matches!(text, b"" | b"0") || text.eq_ignore_ascii_case(b"false")
                }
                // What is no number says nothing of hits.
                Column::Hits => {
                    hits = whole_32(text);
                    true
                }
            };
            if !is_read {
                return Found::Bad;
            }
        }
        // A line that is cut before its last column that is read holds no request.
        let last = columns.iter().rposition(|column| *column != Column::Ignored).unwrap_or(0);
        if seen <= last || row.count == 0 || !is_key(row.key) {
            return Found::Bad;
        }
        row.key_bytes = key_bytes.clamp(row.key.len(), KEY_MAX_BYTES) as u16;
        self.hand_over(row, operation, hits, sink)
    }

    /// Passes on a row whose columns are read, `hits` of whose requests hit where that is known: a row with misses and
    /// hits becomes two, the misses first.
    fn hand_over(
        &self,
        mut row: Row<'_>,
        operation: Option<Operation>,
        hits: Option<u32>,
        sink: &mut Sink<'_>,
    ) -> Found {
        match operation {
            None => {}
            Some(Operation::Verb(verb)) => row.verb = verb,
            Some(Operation::Other) => return Found::Skipped,
        }
        row.missed &= row.verb.reads();
        if !row.verb.reads() || self.kind == ColumnKind::Csv {
            sink(&row);
            return Found::Rows;
        }
        let is_empty = self.kind == ColumnKind::Kvcache && row.value_bytes == Some(0);
        let hits = hits.unwrap_or(if is_empty { 0 } else { row.count }).min(row.count);
        if hits < row.count {
            // A length of 0 is that of a value that was not found.
            let value_bytes = row.value_bytes.filter(|_| !is_empty);
            sink(&Row { count: row.count - hits, missed: true, value_bytes, ..row });
        }
        if hits > 0 {
            sink(&Row { count: hits, continues: hits < row.count, ..row });
        }
        Found::Rows
    }
}

/// Reads a time, in units of `unit_ns` or as a date, into a row.
fn time(text: &[u8], (unit_ns, dates): (Nanos, bool), has_fractions: &mut bool, row: &mut Row<'_>) -> bool {
    let read = decimal(text, unit_ns).or_else(|| if dates { date(text) } else { None });
    let Some((at_ns, has_fraction)) = read else { return false };
    // Programs write 2.0 as 2, too.
    *has_fractions |= has_fraction;
    row.at_ns = at_ns;
    row.resolution_ns = if *has_fractions || unit_ns < MILLISECOND { 1 } else { unit_ns as u32 };
    true
}

/// The content of a column with this name.
fn column_of(kind: ColumnKind, name: &[u8]) -> Column {
    let seconds = Column::Time { unit_ns: SECOND, dates: kind == ColumnKind::Csv };
    match (kind, name) {
        (ColumnKind::Cdn, b"timestamp") | (ColumnKind::Kvcache, b"op_time") => seconds,
        (ColumnKind::Cdn, b"cacheKey") | (ColumnKind::Kvcache | ColumnKind::Csv, b"key") => Column::Key,
        (ColumnKind::Cdn, b"OpType") | (ColumnKind::Kvcache | ColumnKind::Csv, b"op") => Column::Op,
        (ColumnKind::Cdn, b"objectSize") | (ColumnKind::Kvcache | ColumnKind::Csv, b"size") => Column::Size,
        (ColumnKind::Cdn, b"TTL") | (ColumnKind::Kvcache | ColumnKind::Csv, b"ttl") => Column::Ttl,
        (ColumnKind::Kvcache | ColumnKind::Csv, b"key_size") => Column::KeySize,
        (ColumnKind::Kvcache, b"op_count") | (ColumnKind::Csv, b"count") => Column::Count,
        (ColumnKind::Csv, b"time" | b"timestamp") => seconds,
        (ColumnKind::Csv, b"time_ms") => Column::Time { unit_ns: MILLISECOND, dates: false },
        (ColumnKind::Csv, b"time_us") => Column::Time { unit_ns: 1_000, dates: false },
        (ColumnKind::Csv, b"time_ns") => Column::Time { unit_ns: 1, dates: false },
        (ColumnKind::Csv, b"client") => Column::Client,
        (ColumnKind::Csv, b"missed") => Column::Missed,
        (ColumnKind::Kvcache, b"cache_hits") | (ColumnKind::Cdn, b"cacheHit" | b"cache_hit") => Column::Hits,
        _ => Column::Ignored,
    }
}

/// The names of a header, for error messages.
fn expected(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Kvcache => "a header with key, op and size",
        ColumnKind::Cdn => "a header with cacheKey and objectSize, or twelve columns",
        ColumnKind::Csv => {
            "a header with key, and any of time, op, size, ttl, client, key_size, count and missed"
        }
    }
}

/// The operation of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Verb(Verb),
    /// An operation that is not replayed.
    Other,
}

/// The operation that a word names, in small letters or capitals; `None` if the word names none.
fn operation_of(word: &[u8]) -> Option<Operation> {
    let mut small = [0; 16];
    let small = small.get_mut(..word.len())?;
    small.copy_from_slice(word);
    small.make_ascii_lowercase();
    let verb = match &*small {
        b"get_lease" | b"read" => Some(Verb::Get),
        b"set_lease" | b"put" | b"write" => Some(Verb::Set),
        b"del" => Some(Verb::Delete),
        b"touch" => Some(Verb::Touch),
        word => verb_named(word),
    };
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let other = || (!small.is_empty() && small.iter().all(is_word)).then_some(Operation::Other);
    verb.map(Operation::Verb).or_else(other)
}

/// A time to live in seconds; a negative number means none.
fn ttl(text: &[u8]) -> Option<u32> {
    if let Some(negative) = text.strip_prefix(b"-") {
        return decimal(negative, SECOND).map(|_| 0);
    }
    let (ttl_ns, _) = decimal(text, SECOND)?;
    u32::try_from(ttl_ns.div_ceil(SECOND)).ok()
}

/// Whether a line without a header before it is one of a CDN trace.
pub(super) fn is_cdn_line(line: &[u8]) -> bool {
    let columns = line.split(|&byte| byte == b',').count();
    let first = line.split(|&byte| byte == b',').next().unwrap_or(&[]);
    columns >= 12 && decimal(first, SECOND).is_some()
}
