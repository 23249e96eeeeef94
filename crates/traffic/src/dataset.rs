//! The rows of datasets: the columns that commands name, taken from CSV, TSV or lines of JSON.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};

use csv::{ByteRecord, ErrorKind, ReaderBuilder};
use pummel_logic::plan::DatasetForm;
use serde_json::value::RawValue;

/// Most bytes of a row, as it is in the file.
pub const ROW_MAX_BYTES: u64 = 1 << 20;

/// Bytes that are read from a file at once.
const BUFFER_BYTES: usize = 1 << 16;

/// The mark of UTF-8 with which some programs begin a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A file with its columns named, which hands out its rows.
pub struct RowReader<'a> {
    form: DatasetForm,
    fields: &'a [String],
}

/// A function that takes a row: its fields in the order of the names that were asked for.
pub type TakeRow<'t> = dyn FnMut(&[Cow<'_, [u8]>]) -> io::Result<()> + 't;

impl<'a> RowReader<'a> {
    /// A reader of these columns from files of a form.
    pub fn new(form: DatasetForm, fields: &'a [String]) -> RowReader<'a> {
        RowReader { form, fields }
    }

    /// Reads all rows of a file, and hands each to `take`.
    ///
    /// # Errors
    /// Returns the error of the file or of `take`; and [`io::ErrorKind::InvalidData`] with the number of the line for a row that is no
    /// row of the form, is too long, or has not the columns, and for a file without rows.
    pub fn read(&self, file: impl Read, take: &mut TakeRow<'_>) -> io::Result<()> {
        let rows = match self.form {
            DatasetForm::Csv => self.read_columns(file, b',', take)?,
            DatasetForm::Tsv => self.read_columns(file, b'\t', take)?,
            DatasetForm::JsonLines => self.read_lines(file, take)?,
        };
        match rows {
            0 => Err(wrong("it holds no row".to_owned())),
            _ => Ok(()),
        }
    }

    /// Reads lines with a separator between their columns. Returns the number of rows behind the first line, which names the columns.
    fn read_columns(&self, file: impl Read, separator: u8, take: &mut TakeRow<'_>) -> io::Result<u64> {
        let metered = Metered { file, left: 0 };
        let mut reader = ReaderBuilder::new()
            .delimiter(separator)
            .quoting(self.form == DatasetForm::Csv)
            .buffer_capacity(BUFFER_BYTES)
            .from_reader(metered);
        reader.get_mut().left = ALLOWANCE_BYTES;
        let names = reader.byte_headers().map_err(|error| of_csv(&error, 1))?.clone();
        let columns: Vec<usize> =
            self.fields.iter().map(|field| column_of(field, &names)).collect::<io::Result<_>>()?;
        let mut record = ByteRecord::new();
        let (mut rows, mut row) = (0, Vec::with_capacity(columns.len()));
        loop {
            reader.get_mut().left = ALLOWANCE_BYTES;
            let line = reader.position().line();
            if !reader.read_byte_record(&mut record).map_err(|error| of_csv(&error, line))? {
                return Ok(rows);
            }
            if record.as_slice().len() as u64 > ROW_MAX_BYTES {
                return Err(too_long(line));
            }
            row.clear();
            // The reader refuses rows with another number of columns than the first line has.
            row.extend(
                columns.iter().map(|column| Cow::Owned(record.get(*column).unwrap_or_default().to_vec())),
            );
            take(&row)?;
            rows += 1;
        }
    }

    /// Reads a JSON object from each line that is not blank. Returns the number of rows.
    fn read_lines(&self, file: impl Read, take: &mut TakeRow<'_>) -> io::Result<u64> {
        let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
        let (mut rows, mut number, mut line) = (0, 0, Vec::new());
        loop {
            line.clear();
            number += 1;
            if file.by_ref().take(ROW_MAX_BYTES + 1).read_until(b'\n', &mut line)? == 0 {
                return Ok(rows);
            }
            if line.len() as u64 > ROW_MAX_BYTES {
                return Err(too_long(number));
            }
            let text = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| number == 1).unwrap_or(&line);
            if text.trim_ascii().is_empty() {
                continue;
            }
            let object: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(text).map_err(|error| {
                let words = error.to_string();
                let why = words.split(" at line ").next().unwrap_or_default();
                wrong(format!(
                    "line {number}, column {}: it is no JSON object ({why})",
                    error.column().max(1)
                ))
            })?;
            let row: Vec<Cow<'_, [u8]>> = self
                .fields
                .iter()
                .map(|field| match object.get(field.as_str()) {
                    Some(value) => text_of(value, field, number),
                    None => {
                        let names = object.keys().map(|name| name.as_bytes());
                        Err(wrong(format!("line {number}: {}", absent(field, names))))
                    }
                })
                .collect::<io::Result<_>>()?;
            take(&row)?;
            rows += 1;
        }
    }
}

/// Bytes that may be read for one row: the row itself, and what is read ahead.
const ALLOWANCE_BYTES: u64 = ROW_MAX_BYTES + BUFFER_BYTES as u64;

/// A file of which no more is read for one row than a row may have: a quote that is not closed would take all of it.
struct Metered<R> {
    file: R,
    /// Bytes that may be read before the next row begins.
    left: u64,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let count = self.file.read(&mut buffer[..most])?;
        self.left -= count as u64;
        Ok(count)
    }
}

/// The number of the column with this name.
fn column_of(field: &str, names: &ByteRecord) -> io::Result<usize> {
    let mut found = names.iter().enumerate().filter(|(_, name)| *name == field.as_bytes());
    match (found.next(), found.next()) {
        (Some((column, _)), None) => Ok(column),
        (Some(_), Some(_)) => Err(wrong(format!("line 1: two columns have the name '{field}'"))),
        (None, _) => Err(wrong(format!("line 1: {}", absent(field, names.iter())))),
    }
}

/// The words for a column that a row has not, with the nearest of the names that it has.
fn absent<'n>(field: &str, names: impl Iterator<Item = &'n [u8]>) -> String {
    let names = names.map(|name| String::from_utf8_lossy(name).into_owned());
    let distance = |name: &String| strsim::damerau_levenshtein(&name.to_lowercase(), &field.to_lowercase());
    match names.map(|name| (distance(&name), name)).min() {
        Some((_, nearest)) => {
            let shown: String = nearest.chars().take(SHOWN_CHARS).collect();
            format!("no column is called '{field}'; the nearest is '{}'", shown.escape_debug())
        }
        None => format!("no column is called '{field}'"),
    }
}

/// Most characters of a name of a file that are shown.
const SHOWN_CHARS: usize = 60;

/// The text of a value: what is between the quotes of a string, nothing for null, and any other value as it is in the file.
fn text_of<'v>(value: &'v RawValue, field: &str, line: u64) -> io::Result<Cow<'v, [u8]>> {
    match value.get() {
        "null" => Ok(Cow::Borrowed(&[])),
        text if text.starts_with('"') => match serde_json::from_str::<String>(text) {
            Ok(text) => Ok(Cow::Owned(text.into_bytes())),
            Err(error) => Err(wrong(format!("line {line}: '{field}' is no text: {error}"))),
        },
        text => Ok(Cow::Borrowed(text.as_bytes())),
    }
}

/// The error of a row that begins at this line.
fn of_csv(error: &csv::Error, line: u64) -> io::Error {
    match error.kind() {
        ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => too_long(line),
        ErrorKind::Io(error) => io::Error::new(error.kind(), error.to_string()),
        ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let line = pos.as_ref().map_or(line, csv::Position::line);
            wrong(format!("line {line}: the row has {len} columns, and the first line {expected_len}"))
        }
        _ => wrong(format!("line {line}: {error}")),
    }
}

fn too_long(line: u64) -> io::Error {
    wrong(format!("line {line}: the row is longer than {ROW_MAX_BYTES} bytes (a quote that is not closed?)"))
}

fn wrong(words: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of a file, with `|` between their fields.
    fn rows(form: DatasetForm, fields: &[&str], text: &[u8]) -> Result<Vec<String>, String> {
        let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        let mut rows = Vec::new();
        let mut take = |row: &[Cow<'_, [u8]>]| {
            rows.push(row.iter().map(|field| String::from_utf8_lossy(field)).collect::<Vec<_>>().join("|"));
            Ok(())
        };
        let read = RowReader::new(form, &fields).read(text, &mut take);
        read.map(|()| rows).map_err(|error| error.to_string())
    }

    #[test]
    fn columns_are_found_by_their_names() {
        use DatasetForm::{Csv, JsonLines, Tsv};
        let csv = b"id,name,text\r\n1,\"Ada, \"\"A\"\"\",\"two\nlines\"\r\n\r\n2,,x\r\n";
        assert_eq!(
            rows(Csv, &["text", "id"], csv).as_deref(),
            Ok(&["two\nlines|1".into(), "x|2".into()][..])
        );
        assert_eq!(rows(Csv, &["name"], csv).as_deref(), Ok(&["Ada, \"A\"".into(), String::new()][..]));
        let tsv = b"\xef\xbb\xbfid\tname\n1\t\"a, b\n2\tc\\t";
        assert_eq!(rows(Tsv, &["id", "name"], tsv).as_deref(), Ok(&["1|\"a, b".into(), "2|c\\t".into()][..]));
        let json = b"\xef\xbb\xbf{\"id\":1.50,\"n\":\"a\\n\\u00e9\",\"o\":{\"x\": [1]}}\n\n {\"o\":true,\"n\":null,\"id\":18446744073709551616,\"more\":1}";
        assert_eq!(
            rows(JsonLines, &["id", "n", "o"], json).as_deref(),
            Ok(&["1.50|a\n\u{e9}|{\"x\": [1]}".into(), "18446744073709551616||true".into()][..])
        );
    }

    #[test]
    fn what_is_no_row_is_an_error_that_names_its_line() {
        use DatasetForm::{Csv, JsonLines};
        let mut long = b"a,b\n1,\"".to_vec();
        long.resize(3 << 20, b'x');
        let mut long_line = b"{\"a\":\"".to_vec();
        long_line.resize(3 << 20, b'x');
        for (form, fields, text, words) in [
            (
                Csv,
                &["nmae"][..],
                &b"id,name\n1,a\n"[..],
                "line 1: no column is called 'nmae'; the nearest is 'name'",
            ),
            (Csv, &["a"], b"a,a\n1,2\n", "line 1: two columns have the name 'a'"),
            (Csv, &["a"], b"a,b\n1,2\n1\n", "line 3: the row has 1 columns, and the first line 2"),
            (Csv, &["a"], b"a,b\n", "it holds no row"),
            (Csv, &["a"], b"", "line 1: no column is called 'a'"),
            (Csv, &["a"], &long, "line 2: the row is longer"),
            (JsonLines, &["a"], b"", "it holds no row"),
            (
                JsonLines,
                &["a"],
                b"{\"a\":1}\n{\"b\":1}",
                "line 2: no column is called 'a'; the nearest is 'b'",
            ),
            (JsonLines, &["a"], b"{\"a\":1}\n[1]", "line 2, column 1: it is no JSON object"),
            (JsonLines, &["a"], b"{\"a\":1", "line 1, column 6: it is no JSON object (EOF"),
            (JsonLines, &["a"], b"{\"a\":\"\\ud800\"}", "line 1"),
            (JsonLines, &["a"], &long_line, "line 1: the row is longer"),
        ] {
            let error = rows(form, fields, text).expect_err(words);
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_cut_anywhere_gives_its_first_rows_or_an_error() {
        use DatasetForm::{Csv, JsonLines, Tsv};
        let csv = "id,name\r\n1,\"Ada, \"\"A\"\"\"\r\n\u{e9},\"two\nlines\"\n";
        let json = "{\"id\":1,\"name\":\"a\\u00e9\\n\"}\n{\"name\":[{\"x\":null}],\"id\":-1e9}\n";
        for (form, text) in [(Csv, csv), (Tsv, "id\tname\n1\ta\n2\tb\n"), (JsonLines, json)] {
            let whole = rows(form, &["id", "name"], text.as_bytes()).expect("rows");
            for end in 0..text.len() {
                // The last row of what is cut may be a shorter one.
                if let Ok(cut) = rows(form, &["id", "name"], &text.as_bytes()[..end]) {
                    let (_, first) = cut.split_last().expect("a file without rows is an error");
                    assert!(cut.len() <= whole.len() && whole.starts_with(first), "{form:?} until {end}");
                }
            }
            for at in 0..text.len() {
                for byte in [0, b'"', b',', b'\n', b'{', 0xff] {
                    let mut spoilt = text.as_bytes().to_vec();
                    spoilt[at] = byte;
                    // Rows or an error: whatever it is, it ends.
                    let read = rows(form, &["id", "name"], &spoilt);
                    assert!(read.is_err() || read.is_ok_and(|rows| !rows.is_empty() && rows.len() <= 4));
                }
            }
        }
    }

    #[test]
    fn an_error_of_who_takes_the_rows_ends_the_reading() {
        let fields = ["a".to_owned()];
        let read = |count: usize| {
            let mut left = count;
            let mut take = |_: &[Cow<'_, [u8]>]| {
                left = left.checked_sub(1).ok_or(io::Error::other("enough"))?;
                Ok(())
            };
            RowReader::new(DatasetForm::Csv, &fields).read(&b"a\n1\n2\n3\n"[..], &mut take)
        };
        assert!(read(3).is_ok());
        assert_eq!(read(2).expect_err("it takes two").to_string(), "enough");
    }
}
