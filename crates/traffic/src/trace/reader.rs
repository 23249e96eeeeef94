//! The reader of a trace: bytes go in block by block, rows come out, and lines without a request are counted.

use crate::trace::format::{Format, Lines, Record};
use crate::trace::ptr::{self, HEADER_BYTES, Header, RECORD_BYTES};
use crate::trace::row::{Found, KEY_MAX_BYTES, Sink};

/// Longest line in bytes; a longer one counts as a line without a request, and its rest is skipped.
pub const LINE_MAX_BYTES: usize = 1 << 16;

/// Byte order mark that editors and spreadsheets put before text in UTF-8; it is no part of the first line.
pub(super) const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Most characters of a line that is quoted.
const QUOTE_CHARS_MAX: usize = 80;

/// The counts of a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Lines, or records.
    pub lines: u64,
    /// Rows that were handed over.
    pub rows: u64,
    /// Lines that hold no request of the format.
    pub bad: u64,
    /// The first line that holds no request, by its number from 1: it is cut, and has no control characters. It is
    /// empty for records.
    pub first_bad: Option<(u64, String)>,
    /// Lines with an operation that is not replayed, or items that have expired.
    pub skipped: u64,
    /// The first skipped line, by its number from 1.
    pub first_skipped: Option<(u64, String)>,
    /// Requests that the recorder says it did not write.
    pub lost: u64,
}

impl Account {
    /// Adds the counts of another reader, of the files that follow.
    pub fn add(&mut self, other: Account) {
        let shift = |first: (u64, String)| (self.lines + first.0, first.1);
        self.first_bad = self.first_bad.take().or_else(|| other.first_bad.map(shift));
        let shift = |first: (u64, String)| (self.lines + first.0, first.1);
        self.first_skipped = self.first_skipped.take().or_else(|| other.first_skipped.map(shift));
        self.lines += other.lines;
        self.rows += other.rows;
        self.bad += other.bad;
        self.skipped += other.skipped;
        self.lost = self.lost.saturating_add(other.lost);
    }

    /// Sentences about rows that were left out of the trace with this name and format: at most three.
    pub fn notices(&self, name: &str, format: &Format) -> Vec<String> {
        let mut notices = Vec::new();
        let name = name.escape_debug();
        if let Some((number, line)) = &self.first_bad {
            let Account { bad, lines, .. } = self;
            let (what, quoted) = match line.is_empty() {
                true => ("records", String::new()),
                false => ("lines", format!(": '{line}'")),
            };
            let one = &what[..what.len() - 1];
            notices.push(format!(
                "{bad} of {lines} {what} of '{name}' hold no request of format {} and are left out; the first is {one} \
                 {number}{quoted}",
                format.name(),
            ));
        }
        if let Some((number, line)) = &self.first_skipped {
            let why = match format {
                Format::Metadump => "name items that have expired",
                _ => "ask what is not replayed",
            };
            notices.push(format!(
                "{} of {} lines of '{name}' {why}, and are left out; the first is line {number}: '{line}'",
                self.skipped, self.lines
            ));
        }
        if self.lost > 0 {
            notices.push(format!(
                "{} requests were lost when '{name}' was recorded, as it says itself",
                self.lost
            ));
        }
        notices
    }

    fn note(&mut self, found: Found, line: &[u8]) {
        let quoted = |number| {
            let text: String = String::from_utf8_lossy(line).chars().take(QUOTE_CHARS_MAX).collect();
            Some((number, text.escape_debug().to_string()))
        };
        match found {
            Found::Rows | Found::Nothing => {}
            Found::Bad => {
                self.bad += 1;
                if self.first_bad.is_none() {
                    self.first_bad = quoted(self.lines);
                }
            }
            Found::Skipped => {
                self.skipped += 1;
                if self.first_skipped.is_none() {
                    self.first_skipped = quoted(self.lines);
                }
            }
            Found::Lost(requests) => self.lost = self.lost.saturating_add(requests),
        }
    }
}

/// The reader of one file of a trace.
#[derive(Debug)]
pub struct Reader {
    decoder: Decoder,
    /// The beginning of a line or record that was cut by the end of a block.
    rest: Vec<u8>,
    /// Whether the line under way is too long; its rest is skipped.
    is_too_long: bool,
    account: Account,
}

#[derive(Debug)]
enum Decoder {
    Lines(Lines),
    Records(Record),
    Ptr(Option<Header>),
}

impl Reader {
    /// A reader of a format. `now_s`, seconds since 1970, decides which items of a metadump have expired; without it none has.
    pub fn new(format: &Format, now_s: Option<u64>) -> Reader {
        let decoder = match (Lines::of(format, now_s), format.record()) {
            (Some(lines), _) => Decoder::Lines(lines),
            (None, Some(record)) => Decoder::Records(record),
            (None, None) => Decoder::Ptr(None),
        };
        Reader { decoder, rest: Vec::new(), is_too_long: false, account: Account::default() }
    }

    /// Reads the next bytes, and hands over the rows that they complete.
    pub fn read(&mut self, bytes: &[u8], sink: &mut Sink<'_>) {
        match self.decoder {
            Decoder::Lines(_) => self.read_lines(bytes, sink),
            Decoder::Records(_) | Decoder::Ptr(_) => self.read_records(bytes, sink),
        }
    }

    /// Handles the end of the file, and returns the counts.
    pub fn end(mut self, sink: &mut Sink<'_>) -> Account {
        let rest = std::mem::take(&mut self.rest);
        match self.decoder {
            Decoder::Lines(_) if self.is_too_long => {}
            Decoder::Lines(_) if rest.is_empty() => {}
            Decoder::Lines(_) => self.line(&rest, sink),
            Decoder::Records(_) | Decoder::Ptr(_) if rest.is_empty() => {}
            // A record that was cut.
            Decoder::Records(_) | Decoder::Ptr(_) => {
                self.account.lines += 1;
                self.account.note(Found::Bad, &[]);
            }
        }
        let rows = &mut self.account.rows;
        let mut counted = |row: &crate::trace::row::Row<'_>| {
            *rows += 1;
            sink(row);
        };
        if let Decoder::Lines(lines) = &mut self.decoder {
            let lost = lines.end(&mut counted);
            self.account.lost = self.account.lost.saturating_add(lost);
        }
        self.account
    }

    /// The counts so far.
    pub fn account(&self) -> &Account {
        &self.account
    }

    fn read_lines(&mut self, mut bytes: &[u8], sink: &mut Sink<'_>) {
        while let Some(end) = position_of_line_end(bytes) {
            let (line, after) = (&bytes[..end], &bytes[end + 1..]);
            bytes = after;
            if std::mem::take(&mut self.is_too_long) {
                continue;
            }
            if self.rest.is_empty() {
                self.line(line, sink);
            } else {
                let mut whole = std::mem::take(&mut self.rest);
                whole.extend_from_slice(line);
                self.line(&whole, sink);
                whole.clear();
                self.rest = whole;
            }
        }
        if self.is_too_long {
            return;
        }
        self.rest.extend_from_slice(bytes);
        if self.rest.len() > LINE_MAX_BYTES {
            let rest = std::mem::take(&mut self.rest);
            self.account.lines += 1;
            self.account.note(Found::Bad, &rest);
            self.is_too_long = true;
        }
    }

    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) {
        self.account.lines += 1;
        let line = match self.account.lines {
            1 => line.strip_prefix(&BYTE_ORDER_MARK).unwrap_or(line),
            _ => line,
        };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > LINE_MAX_BYTES {
            return self.account.note(Found::Bad, line);
        }
        let Decoder::Lines(lines) = &mut self.decoder else { unreachable!("records have no lines") };
        let rows = &mut self.account.rows;
        let found = lines.take(line, &mut |row| {
            *rows += u64::from(!row.continues);
            sink(row);
        });
        self.account.note(found, line);
    }

    fn read_records(&mut self, mut bytes: &[u8], sink: &mut Sink<'_>) {
        loop {
            let need = self.record_bytes();
            if !self.rest.is_empty() {
                let more = (need - self.rest.len()).min(bytes.len());
                self.rest.extend_from_slice(&bytes[..more]);
                bytes = &bytes[more..];
                if self.rest.len() < need {
                    return;
                }
                let mut record = std::mem::take(&mut self.rest);
                self.records(&record, sink);
                record.clear();
                self.rest = record;
                continue;
            }
            // The header goes by itself: what follows has another length.
            let whole = match &self.decoder {
                Decoder::Ptr(None) => need.min(bytes.len()),
                _ => bytes.len(),
            };
            let whole = whole - whole % need;
            if whole == 0 {
                return self.rest.extend_from_slice(bytes);
            }
            self.records(&bytes[..whole], sink);
            bytes = &bytes[whole..];
        }
    }

    /// Length of the next header or record.
    fn record_bytes(&self) -> usize {
        match &self.decoder {
            Decoder::Records(record) => record.bytes(),
            Decoder::Ptr(None) => HEADER_BYTES,
            Decoder::Ptr(Some(_)) | Decoder::Lines(_) => RECORD_BYTES,
        }
    }

    /// Reads whole records, or the header of a file that has one. Their kind is examined once.
    fn records(&mut self, bytes: &[u8], sink: &mut Sink<'_>) {
        let account = &mut self.account;
        let mut note = |found: Found| {
            account.lines += 1;
            match found {
                Found::Rows => account.rows += 1,
                found => account.note(found, &[]),
            }
        };
        match &mut self.decoder {
            Decoder::Records(record) => record.take_all(bytes, sink, &mut note),
            Decoder::Ptr(header @ None) => match Header::of(bytes) {
                Some(read) => *header = Some(read),
                // Without a header that is known, its bytes are no records: each counts as one that is bad.
                None => note(Found::Bad),
            },
            Decoder::Ptr(Some(header)) => {
                let mut key = [0; KEY_MAX_BYTES];
                for record in bytes.chunks_exact(RECORD_BYTES) {
                    match ptr::row(header, record, &mut key) {
                        Some(row) => {
                            sink(&row);
                            note(Found::Rows);
                        }
                        None => note(Found::Bad),
                    }
                }
            }
            Decoder::Lines(_) => unreachable!("lines are no records"),
        }
    }
}

/// The end of the first line, eight bytes at a time (Mycroft's test for a zero byte).
#[inline]
fn position_of_line_end(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const LINE_ENDS: u64 = ONES * b'\n' as u64;
    let mut at = 0;
    while let Some(chunk) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes")) ^ LINE_ENDS;
        let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if zeros != 0 {
            return Some(at + zeros.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    bytes[at..].iter().position(|&byte| byte == b'\n').map(|place| at + place)
}
