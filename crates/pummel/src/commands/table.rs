//! `pummel table`: reports of mutilate, old and new, as one table of latency against rate.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use pummel_fronts::exit_status::Exit;
use pummel_fronts::mutilate::{ReportReader, table_header};

use crate::output::print;
use crate::stderr::say;

/// The longest line that may belong to a report, in bytes; longer ones are read in pieces.
const LINE_MAX_BYTES: u64 = 1 << 16;

/// The most bytes of a file that are read: reports are short.
const FILE_MAX_BYTES: u64 = 64 << 20;

/// Options of `pummel table`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{STATUSES}"))]
pub struct TableArgs {
    /// Files with the output of mutilate, pummel's or the original's; `-` is standard input
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
}

const EXAMPLES: &str = "\
Each row of a report is a line of CSV: its file, its rate, its percentiles in microseconds. Reports of --scan are a line for each \
rate. A file that cannot be read, has no report or is longer than 64 MiB is left out, and the exit status is 1.

Example:
  for q in 10000 20000 40000; do mutilate -s cache1 --noload -q $q > $q.out; done
  pummel table *.out > curve.csv";

const STATUSES: &str = "\
Exit status:
  0    the table has the rows of every file
  1    a file is left out, or the table cannot be written
  2    wrong usage";

/// Prints the reports of files as CSV.
pub fn table(args: &TableArgs) -> Exit {
    let (mut text, mut exit) = (table_header(), Exit::Complete);
    for path in &args.files {
        match lines_of(path) {
            Ok(lines) => text.push_str(&lines),
            Err(error) => {
                say(format_args!("error: '{}': {error}", path.display()));
                exit = Exit::Failed;
            }
        }
    }
    match print(text.as_bytes()) {
        Ok(()) => exit,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit,
        Err(error) => {
            say(format_args!("error: {error}"));
            Exit::Failed
        }
    }
}

/// The lines of the table that a file comes to.
fn lines_of(path: &Path) -> io::Result<String> {
    let name = path.display().to_string();
    let read = match name.as_str() {
        "-" => read_reports(io::stdin().lock()),
        _ => read_reports(BufReader::new(File::open(path)?)),
    };
    read?.finish(&name).ok_or_else(|| {
        let expected =
            "it has no report of mutilate: a line that begins with '#type' is expected, and rows below it";
        io::Error::new(io::ErrorKind::InvalidData, expected)
    })
}

/// Reads all reports of a text.
///
/// # Errors
/// Returns the system's error, and one of kind `InvalidData` where the text is longer than [`FILE_MAX_BYTES`].
fn read_reports(mut input: impl BufRead) -> io::Result<ReportReader> {
    let (mut line, mut reader, mut left_bytes) = (Vec::new(), ReportReader::default(), FILE_MAX_BYTES);
    loop {
        line.clear();
        let read_bytes = input.by_ref().take(LINE_MAX_BYTES).read_until(b'\n', &mut line)? as u64;
        if read_bytes == 0 {
            return Ok(reader);
        }
        left_bytes = left_bytes.checked_sub(read_bytes).ok_or_else(too_long)?;
        reader.read_line(&String::from_utf8_lossy(&line));
    }
}

fn too_long() -> io::Error {
    let why = format!(
        "it is longer than {} MiB, and reports are short: a file with what mutilate printed is expected",
        FILE_MAX_BYTES >> 20
    );
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_is_refused_and_not_cut() {
        let report = "#type avg std min 5th 10th 90th 95th 99th\nread 1.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0\n\nTotal QPS = 10.0 (10 / 1.0s)\n";
        let of = |rest_bytes: u64| {
            let rest = BufReader::new(io::repeat(b'x').take(rest_bytes));
            read_reports(report.as_bytes().chain(rest))
        };
        let room_bytes = FILE_MAX_BYTES - report.len() as u64;
        let whole = of(room_bytes).expect("it is within the limit").finish("a");
        assert!(whole.is_some_and(|lines| lines.starts_with("a,read")));
        let Err(error) = of(room_bytes + 1) else { panic!("it is too long") };
        assert!(error.to_string().contains("longer than 64 MiB"), "{error}");
    }
}
