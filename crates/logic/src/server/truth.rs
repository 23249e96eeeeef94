//! What the built-in server really did, as one line per request and per fault.

use std::fmt;

use crate::time::Nanos;

/// First lines of a truth file: what its columns are.
pub const TRUTH_HEADER: &str = "\
# pummel serve truth 1
# request CONNECTION REQUEST VERB ARRIVED_NS SENT_NS HELD_NS ASKED_NS
# fault KIND connection=C request=R ...
";

/// One thing that happened; its `Display` is its line in the truth file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A request ended.
    Request {
        /// Number of the connection, from 1.
        connection: u64,
        /// Number of the request over the whole server, from 1.
        request: u64,
        /// Its first word.
        verb: &'static str,
        /// When it was complete, on the server's clock.
        arrived: Nanos,
        /// When the last byte of its reply was handed over; `None` when there was no reply, or not all of one.
        sent: Option<Nanos>,
        /// For how long the reply was to be held.
        asked_ns: Nanos,
    },
    /// Something was done wrong on purpose.
    Fault {
        /// The word of `--fault`.
        kind: &'static str,
        /// On which connection.
        connection: u64,
        /// At which request; 0 where none came yet.
        request: u64,
        /// Whose value, where it is about one.
        key: Option<Vec<u8>>,
        /// What exactly, as `name=value`; may be empty.
        detail: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Request { connection, request, verb, arrived, sent, asked_ns } => {
                write!(out, "request {connection} {request} {verb} {arrived} ")?;
                match sent {
                    Some(sent) => write!(out, "{sent} {}", sent.saturating_sub(*arrived))?,
                    None => out.write_str("- -")?,
                }
                write!(out, " {asked_ns}")
            }
            Note::Fault { kind, connection, request, key, detail } => {
                write!(out, "fault {kind} connection={connection} request={request}")?;
                if let Some(key) = key {
                    write!(out, " key={}", key.escape_ascii())?;
                }
                if !detail.is_empty() {
                    write!(out, " {detail}")?;
                }
                Ok(())
            }
        }
    }
}
