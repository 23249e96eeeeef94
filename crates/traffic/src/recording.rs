//! Traces as mutilate reads them: one request a line, columns between commas.

use std::io::{self, BufRead, Read};

use crate::trace::{Format, Reader, Row};
use pummel_logic::plan::Replay;
use pummel_logic::workload::trace::Trace;

/// A line that is longer holds no request.
const LINE_MAX_BYTES: u64 = 1 << 16;

/// Most characters of a line that is quoted.
const QUOTE_CHARS_MAX: usize = 80;

/// The form of a recording, and what is made of its lines.
#[derive(Clone, Copy, Debug)]
pub struct TraceForm<'a> {
    /// The number of the format, from 0 to 2.
    pub format: u32,
    /// Bytes before every key.
    pub prefix: &'a str,
    /// Every line is a read, also one that stores.
    pub reads_only: bool,
}

impl<'a> TraceForm<'a> {
    /// The form of the recording that a plan replays.
    pub fn of(replay: &Replay, prefix: &'a str) -> TraceForm<'a> {
        TraceForm { format: replay.format, prefix, reads_only: replay.reads_only }
    }

    /// The columns of a line.
    fn columns(&self) -> &'static str {
        match self.format {
            0 => "time,app,read or write,key,length, or key,length",
            1 => "time,key,key size,length,client,get or gets or set,TTL",
            _ => "time,app,1 or 2,key,length",
        }
    }
}

/// Lines between two checks of what was read so far.
const LINES_PER_CHECK: u64 = 1_024;

/// The result of reading a file.
#[derive(Debug)]
pub struct Reading {
    /// Requests of the file.
    pub trace: Trace,
    /// Number of its lines.
    pub lines: u64,
    /// Lines that hold no request, or whose keys cannot be asked for.
    pub left_out: u64,
    /// The first such line with its number, from 1: it is cut, and has no control characters.
    pub first_left_out: Option<(u64, String)>,
}

impl Reading {
    /// Takes in a line that is left out.
    fn leave_out(&mut self, line: &[u8]) {
        self.left_out += 1;
        if self.first_left_out.is_none() {
            let text: String = String::from_utf8_lossy(line).chars().take(QUOTE_CHARS_MAX).collect();
            self.first_left_out = Some((self.lines, text.escape_debug().to_string()));
        }
    }

    /// A sentence about the lines that are left out of the file with this name; `None` where there are none.
    pub fn notice(&self, name: &str, form: &TraceForm<'_>) -> Option<String> {
        let (number, line) = self.first_left_out.as_ref()?;
        Some(format!(
            "{} of {} lines of '{}' hold no request of format {} ({}) and are left out; the first is line {number}: '{line}'",
            self.left_out,
            self.lines,
            name.escape_debug(),
            form.format,
            form.columns()
        ))
    }

    /// Why nothing can be replayed; `None` where there is a request.
    fn emptiness(&self, form: &TraceForm<'_>) -> Option<String> {
        match &self.first_left_out {
            _ if !self.trace.is_empty() => None,
            None => Some("it is empty".to_owned()),
            Some((number, line)) => Some(format!(
                "none of its {} lines holds a request of format {} ({}); the first is line {number}: '{line}'",
                self.lines,
                form.format,
                form.columns()
            )),
        }
    }
}

/// Reads a recording. `check` is asked again and again whether more is to be read after what was read so far, and once at the
/// end.
///
/// # Errors
/// Returns the error of `lines` when it cannot be read, the error of `check`, and [`io::ErrorKind::InvalidData`] when the
/// recording holds no request.
pub fn read_trace(
    mut lines: impl BufRead,
    form: &TraceForm<'_>,
    check: &dyn Fn(&Trace) -> io::Result<()>,
) -> io::Result<Reading> {
    let mut reading = Reading { trace: Trace::new(), lines: 0, left_out: 0, first_left_out: None };
    let mut reader = Reader::new(&Format::Mutilate(form.format.min(2) as u8), None);
    let (mut line, mut key) = (Vec::new(), Vec::new());
    for number in 0u64.. {
        if number.is_multiple_of(LINES_PER_CHECK) {
            check(&reading.trace)?;
        }
        line.clear();
        if lines.by_ref().take(LINE_MAX_BYTES).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        reading.lines += 1;
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let mut is_request = false;
        let mut take = |row: &Row<'_>| {
            key.clear();
            key.extend_from_slice(form.prefix.as_bytes());
            key.extend_from_slice(row.key);
            let stores = row.stores() && !form.reads_only;
            is_request = reading.trace.push(&key, row.value_bytes.unwrap_or(0), stores);
        };
        reader.read(text, &mut take);
        reader.read(b"\n", &mut take);
        if !is_request {
            reading.leave_out(text);
        }
    }
    check(&reading.trace)?;
    match reading.emptiness(form) {
        None => Ok(reading),
        Some(why) => Err(io::Error::new(io::ErrorKind::InvalidData, why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(format: u32, prefix: &str) -> TraceForm<'_> {
        TraceForm { format, prefix, reads_only: false }
    }

    /// Every request of a text as `key=length`, stores with an exclamation mark, and the number of lines that are left out.
    fn rows(text: &str, form: TraceForm<'_>) -> (Vec<String>, u64) {
        let Reading { trace, left_out, .. } = read_trace(text.as_bytes(), &form, &|_| Ok(())).unwrap();
        let shown = (0..trace.len()).map(|row| {
            let mark = if trace.stores(row) { "!" } else { "" };
            format!("{}={}{mark}", String::from_utf8_lossy(trace.key(row)), trace.value_bytes(row))
        });
        (shown.collect(), left_out)
    }

    #[test]
    fn format_0_has_five_columns_or_two() {
        let text = "1,app,read,k1,10\n2,app,write,k2,20\r\nk3,30\n3,app,touch,k4,1\nk5,x\n\n1,2,3\nk6,0";
        let expected = ["k1=10", "k2=20!", "k3=30", "k6=0"].map(String::from).to_vec();
        assert_eq!(rows(text, form(0, "")), (expected, 4));
    }

    #[test]
    fn format_1_is_twitters_without_other_operations_and_lengths_of_0_are_taken_for_1() {
        let text = "0,k1,2,100,7,get,0\n1,k2,2,200,7,set,60\n2,k3,2,5,7,delete,0\n3,k4,2,0,7,get,0\n\
                    4,k5,2,999999,7,set,0\n5,k6,2,1,7,get\n6,k7,2,7,7,gets,0\n7,k8,2,0,7,set,0\n8,k9,2,-1,7,get,0\n";
        let expected =
            ["k1=100", "k2=200!", "k4=1", "k5=524000!", "k7=7", "k8=1!"].map(String::from).to_vec();
        assert_eq!(rows(text, form(1, "")), (expected, 3));
    }

    #[test]
    fn format_2_has_operations_as_numbers() {
        let text = "1,a,1,k1,5\n1,a,2,k2,6\n1,a,3,k3,7\n";
        assert_eq!(rows(text, form(2, "")), (vec!["k1=5".into(), "k2=6!".into()], 1));
        let reads = TraceForm { reads_only: true, ..form(2, "") };
        assert_eq!(rows(text, reads), (vec!["k1=5".into(), "k2=6".into()], 1));
    }

    #[test]
    fn keys_that_no_server_takes_are_left_out_and_the_prefix_counts() {
        let long = "k".repeat(249);
        let text = format!("{long},1\n,1\na b,1\nk,1\n");
        let Reading { trace, left_out, .. } =
            read_trace(text.as_bytes(), &form(0, "p"), &|_| Ok(())).unwrap();
        assert_eq!((trace.len(), left_out), (2, 2));
        assert_eq!(trace.key(0), format!("p{long}").as_bytes());
        assert_eq!(read_trace(text.as_bytes(), &form(0, "pp"), &|_| Ok(())).unwrap().left_out, 3);
    }

    #[test]
    fn lines_that_are_left_out_are_counted_and_the_first_is_quoted() {
        let text = format!("1,a,1,k1,5\n1,a,\u{1b}[2J,{}\nnothing\n", "x".repeat(200));
        let form = form(2, "");
        let reading = read_trace(text.as_bytes(), &form, &|_| Ok(())).unwrap();
        let notice = reading.notice("t", &form).expect("two lines are left out");
        let begin = "2 of 3 lines of 't' hold no request of format 2 (time,app,1 or 2,key,length) and are left out; the first \
                     is line 2: '1,a,\\u{1b}[2J,xxx";
        assert!(notice.starts_with(begin) && notice.ends_with("xxx'"), "{notice}");
        assert!(notice.len() < begin.len() + QUOTE_CHARS_MAX, "{notice}");
        assert_eq!(read_trace(&b"1,a,1,k1,5\n"[..], &form, &|_| Ok(())).unwrap().notice("t", &form), None);
    }

    #[test]
    fn a_file_without_a_request_is_an_error_that_says_what_is_there() {
        let why = |text: &str| {
            read_trace(text.as_bytes(), &form(1, ""), &|_| Ok(())).expect_err("it is refused").to_string()
        };
        assert_eq!(why(""), "it is empty");
        let why = why("k1,5\nk2,6\n");
        assert!(why.starts_with("none of its 2 lines holds a request of format 1 (time,key,"), "{why}");
        assert!(why.ends_with("the first is line 1: 'k1,5'"), "{why}");
    }

    #[test]
    fn reading_ends_where_the_check_says_so() {
        let text = "k,1\n".repeat(10 * LINES_PER_CHECK as usize);
        let few =
            |trace: &Trace| if trace.len() > 2_000 { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(()) };
        assert_eq!(
            read_trace(text.as_bytes(), &form(0, ""), &few).unwrap_err().kind(),
            io::ErrorKind::OutOfMemory
        );
        let short =
            |trace: &Trace| if trace.is_empty() { Ok(()) } else { Err(io::ErrorKind::OutOfMemory.into()) };
        assert!(read_trace(&b"k,1\n"[..], &form(0, ""), &short).is_err(), "the end is checked too");
    }
}
