//! Traces as mutilate reads them: one request a line, columns between commas.

use std::io::{self, BufRead, Read};

use pummel_logic::workload::trace::Trace;

/// The longest value that a trace of format 1 may ask for, in bytes.
const VALUE_MAX_BYTES: u32 = 524_000;

/// A line that is longer holds no request.
const LINE_MAX_BYTES: u64 = 1 << 16;

/// Lines between two checks of what was read so far.
const LINES_PER_CHECK: u64 = 1_024;

/// What was read of a file.
#[derive(Debug)]
pub struct Reading {
    /// Its requests.
    pub trace: Trace,
    /// Lines that are none, or whose keys cannot be asked for.
    pub bad_lines: u64,
}

/// Reads a trace of a format from 0 to 2. `prefix` comes before every key. `check` is asked again and again whether more is
/// to be read after what was read so far, and once at the end.
///
/// # Errors
/// Returns the error of `lines` when it cannot be read, and the error of `check`.
pub fn read_trace(
    mut lines: impl BufRead,
    format: u32,
    prefix: &str,
    check: &dyn Fn(&Trace) -> io::Result<()>,
) -> io::Result<Reading> {
    let mut reading = Reading { trace: Trace::new(), bad_lines: 0 };
    let (mut line, mut key) = (Vec::new(), Vec::new());
    for number in 0u64.. {
        if number.is_multiple_of(LINES_PER_CHECK) {
            check(&reading.trace)?;
        }
        line.clear();
        if lines.by_ref().take(LINE_MAX_BYTES).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let columns: Vec<&[u8]> = text.split(|byte| *byte == b',').collect();
        let good = match row(&columns, format) {
            Some(Row::Passed) => true,
            Some(Row::Asked { key: name, value_bytes, stores }) => {
                key.clear();
                key.extend_from_slice(prefix.as_bytes());
                key.extend_from_slice(name);
                !name.is_empty() && reading.trace.push(&key, value_bytes, stores)
            }
            None => false,
        };
        reading.bad_lines += u64::from(!good);
    }
    check(&reading.trace)?;
    Ok(reading)
}

/// A line of a trace.
enum Row<'a> {
    /// A request.
    Asked { key: &'a [u8], value_bytes: u32, stores: bool },
    /// An operation that is left out.
    Passed,
}

fn row<'a>(columns: &[&'a [u8]], format: u32) -> Option<Row<'a>> {
    let asked = |key, value_bytes, stores| Some(Row::Asked { key, value_bytes, stores });
    match (format, columns) {
        (0, &[key, length]) => asked(key, number(length)?, false),
        (0, &[_, _, op, key, length]) => asked(key, number(length)?, stores(op, b"read", b"write")?),
        (1, &[_, key, _, length, _, op, _]) => match stores(op, b"get", b"set") {
            None => Some(Row::Passed),
            Some(stores) => match number(length)? {
                0 => Some(Row::Passed),
                length => asked(key, length.min(VALUE_MAX_BYTES), stores),
            },
        },
        (2, &[_, _, op, key, length]) => asked(key, number(length)?, stores(op, b"1", b"2")?),
        _ => None,
    }
}

fn stores(op: &[u8], reads: &[u8], writes: &[u8]) -> Option<bool> {
    match op {
        op if op == reads => Some(false),
        op if op == writes => Some(true),
        _ => None,
    }
}

/// A length in bytes, at most the largest value that memcached can be told to take.
fn number(text: &[u8]) -> Option<u32> {
    let number: u32 = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
    (number <= 1 << 30).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every request of a text as `key=length`, stores with an exclamation mark, and the number of bad lines.
    fn rows(text: &str, format: u32) -> (Vec<String>, u64) {
        let Reading { trace, bad_lines } = read_trace(text.as_bytes(), format, "", &|_| Ok(())).unwrap();
        let shown = (0..trace.len()).map(|row| {
            let mark = if trace.stores(row) { "!" } else { "" };
            format!("{}={}{mark}", String::from_utf8_lossy(trace.key(row)), trace.value_bytes(row))
        });
        (shown.collect(), bad_lines)
    }

    #[test]
    fn format_0_has_five_columns_or_two() {
        let text = "1,app,read,k1,10\n2,app,write,k2,20\r\nk3,30\n3,app,touch,k4,1\nk5,x\n\n1,2,3\nk6,0";
        assert_eq!(rows(text, 0), (["k1=10", "k2=20!", "k3=30", "k6=0"].map(String::from).to_vec(), 4));
    }

    #[test]
    fn format_1_is_twitters_and_leaves_out_other_operations_and_empty_values() {
        let text = "0,k1,2,100,7,get,0\n1,k2,2,200,7,set,60\n2,k3,2,5,7,delete,0\n3,k4,2,0,7,get,0\n\
                    4,k5,2,999999,7,set,0\n5,k6,2,1,7,get\n";
        assert_eq!(rows(text, 1), (["k1=100", "k2=200!", "k5=524000!"].map(String::from).to_vec(), 1));
    }

    #[test]
    fn format_2_has_operations_as_numbers() {
        assert_eq!(rows("1,a,1,k1,5\n1,a,2,k2,6\n1,a,3,k3,7\n", 2), (vec!["k1=5".into(), "k2=6!".into()], 1));
    }

    #[test]
    fn keys_that_no_server_takes_are_bad_lines_and_the_prefix_counts() {
        let long = "k".repeat(249);
        let text = format!("{long},1\n,1\na b,1\n");
        let read = |prefix| read_trace(text.as_bytes(), 0, prefix, &|_| Ok(())).unwrap();
        let Reading { trace, bad_lines } = read("p");
        assert_eq!((trace.len(), bad_lines), (1, 2));
        assert_eq!(trace.key(0), format!("p{long}").as_bytes());
        assert_eq!(read("pp").bad_lines, 3);
    }

    #[test]
    fn reading_ends_where_the_check_says_so() {
        let text = "k,1\n".repeat(10 * LINES_PER_CHECK as usize);
        let few =
            |trace: &Trace| if trace.len() > 2_000 { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(()) };
        assert_eq!(read_trace(text.as_bytes(), 0, "", &few).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        let short =
            |trace: &Trace| if trace.is_empty() { Ok(()) } else { Err(io::ErrorKind::OutOfMemory.into()) };
        assert!(read_trace(&b"k,1\n"[..], 0, "", &short).is_err(), "the end is checked too");
    }
}
