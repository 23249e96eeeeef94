//! Acts of the built-in server, as one line for each request and each fault.

use std::fmt::{self, Write};

use pummel_logic::time::Nanos;

/// First lines of a truth file: the format and its columns.
pub const TRUTH_HEADER: &str = "\
# pummel serve truth 1
# request CONNECTION REQUEST VERB ARRIVED_NS SENT_NS HELD_NS ASKED_NS [QUEUED_NS]
# fault KIND connection=C request=R ...
";

/// Act of the server; its `Display` is its line in the truth file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A request ended.
    Request {
        /// Number of the connection, from 1.
        connection: u64,
        /// Number of the request over the whole server, from 1.
        request: u64,
        /// The first word of the request.
        verb: &'static str,
        /// Time at which the last byte of the request arrived, in nanoseconds on the server's clock.
        arrived: Nanos,
        /// Time at which the last byte of the reply was handed to the socket, in nanoseconds; `None` when there was no
        /// reply, or not all of one.
        sent: Option<Nanos>,
        /// Time for which the reply was to be held, in nanoseconds, without the time in the queue.
        asked_ns: Nanos,
        /// Time for which the request waited for a server, in nanoseconds; `None` where there is no queue.
        queued_ns: Option<Nanos>,
    },
    /// The server made a fault on purpose.
    Fault {
        /// The word of `--fault`.
        kind: &'static str,
        /// Number of the connection.
        connection: u64,
        /// Number of the request; 0 where none has come.
        request: u64,
        /// The key of the value that the fault concerns, where it concerns one.
        key: Option<Vec<u8>>,
        /// Details as `name=value`; may be empty.
        detail: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Request { connection, request, verb, arrived, sent, asked_ns, queued_ns } => {
                write!(out, "request {connection} {request} {verb} {arrived} ")?;
                match sent {
                    Some(sent) => write!(out, "{sent} {}", sent.saturating_sub(*arrived))?,
                    None => out.write_str("- -")?,
                }
                write!(out, " {asked_ns}")?;
                match queued_ns {
                    Some(queued_ns) => write!(out, " {queued_ns}"),
                    None => Ok(()),
                }
            }
            Note::Fault { kind, connection, request, key, detail } => {
                write!(out, "fault {kind} connection={connection} request={request}")?;
                if let Some(key) = key {
                    write!(out, " key={}", Word(key))?;
                }
                if !detail.is_empty() {
                    write!(out, " {detail}")?;
                }
                Ok(())
            }
        }
    }
}

/// Bytes as one word of a line: a byte that is no visible character of ASCII, or a backslash, is written as `\xNN`.
pub(super) struct Word<'a>(pub(super) &'a [u8]);

impl fmt::Display for Word<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in self.0 {
            match byte {
                b'\\' | ..b'!' | 0x7f.. => write!(out, "\\x{byte:02x}")?,
                b'!'..=b'~' => out.write_char(char::from(byte))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_any_bytes_is_one_word_of_its_line() {
        let note = |key: &[u8]| Note::Fault {
            kind: "flip",
            connection: 1,
            request: 2,
            key: Some(key.to_vec()),
            detail: "bit=3".to_owned(),
        };
        for (key, word) in [
            (&b"plain~!'\"=:"[..], "plain~!'\"=:"),
            (b"with blank\r\n\0", "with\\x20blank\\x0d\\x0a\\x00"),
            (b"\\x20", "\\x5cx20"),
            (b"\x7f\xc3\xbc", "\\x7f\\xc3\\xbc"),
            (b"", ""),
        ] {
            assert_eq!(note(key).to_string(), format!("fault flip connection=1 request=2 key={word} bit=3"));
        }
        let every: Vec<u8> = (0..=255).collect();
        assert_eq!(note(&every).to_string().split_ascii_whitespace().count(), 6);
    }
}
