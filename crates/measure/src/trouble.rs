//! The reason why a connection was not opened or was lost, in words that say what can be done about it.

use std::fmt;
use std::io;
use std::sync::Arc;

use pummel_logic::plan::detect::words;
use pummel_logic::protocol::{Fault, Malformed};

use crate::connections::TroubleKind;

/// Why a connection was closed or could not be opened: the class that results count, and the system's error number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseReason {
    /// The class that results count.
    pub fault: Fault,
    /// The system's error number (`errno`); 0 for an orderly close.
    pub errno: i32,
    /// The reason as a clause about the server, where more is known than the two above say.
    pub words: Option<Arc<str>>,
    /// Kind of the failure, where more is known than the class and the number say.
    pub kind: Option<TroubleKind>,
}

impl CloseReason {
    /// A reason without words of its own.
    pub const fn new(fault: Fault, errno: i32) -> CloseReason {
        CloseReason { fault, errno, words: None, kind: None }
    }
}

/// The reason why a connection was not opened, was lost, or was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The connection could not be opened.
    NotOpened(CloseReason),
    /// The connection broke, or was closed by the peer.
    Lost(CloseReason),
    /// The peer sent bytes that the protocol does not allow: a description, the first of these bytes, and whether they are the first
    /// on their connection.
    Malformed(&'static str, Vec<u8>, bool),
    /// A request took longer than the timeout.
    TimedOut,
}

/// Most first bytes of a malformed reply that are kept.
const MALFORMED_BYTES: usize = 40;

impl Trouble {
    /// The trouble for bytes that the protocol does not allow. `is_greeting` means that they are the first bytes on
    /// their connection. A greeting in words is kept whole, since it names the server.
    pub fn malformed(Malformed(what): Malformed, bytes: &[u8], is_greeting: bool) -> Trouble {
        let shown = match words(bytes).filter(|_| is_greeting) {
            Some(greeting) => greeting.into_bytes(),
            None => bytes[..bytes.len().min(MALFORMED_BYTES)].to_vec(),
        };
        Trouble::Malformed(what, shown, is_greeting)
    }

    /// Kind of the trouble.
    pub fn kind(&self) -> TroubleKind {
        match self {
            Trouble::NotOpened(reason) | Trouble::Lost(reason) => kind_of(reason),
            Trouble::Malformed(_, bytes, _) if says_full(bytes) => TroubleKind::Full,
            Trouble::Malformed(_, bytes, _) if bytes.starts_with(DENIED) => TroubleKind::ProtectedMode,
            Trouble::Malformed(_, bytes, true) => match bytes.first() {
                // A record of TLS: an alert, or a message of the handshake.
                Some(0x15 | 0x16) => TroubleKind::SpeaksTls,
                _ if bytes.starts_with(b"HTTP/") => TroubleKind::SpeaksHttp,
                _ => TroubleKind::SpeaksOther,
            },
            Trouble::Malformed(_, _, false) => TroubleKind::Other,
            Trouble::TimedOut => TroubleKind::RequestTimedOut,
        }
    }

    /// Adds the message of a full server to the loss of a connection, if the message is among `errors`. A full server
    /// sends it before it closes a connection; the message then answers the first request, if one was sent by then.
    pub fn after<'a>(self, mut errors: impl Iterator<Item = &'a [u8]>) -> Trouble {
        match self {
            Trouble::Lost(reason @ CloseReason { words: None, .. }) => {
                let said = errors.find(|error| says_full(error));
                let words = said.map(|error| Arc::from(full(error)));
                let kind = said.map(|_| TroubleKind::Full).or(reason.kind);
                Trouble::Lost(CloseReason { words, kind, ..reason })
            }
            other => other,
        }
    }
}

/// Whether these bytes are the message of a server that takes no more connections. The `-` of a RESP error may stand
/// in front.
pub fn says_full(bytes: &[u8]) -> bool {
    let words = bytes.strip_prefix(b"-").unwrap_or(bytes);
    FULL.iter()
        .any(|(sign, full)| words.strip_prefix(*sign).is_some_and(|said| said.starts_with(full.as_bytes())))
}

/// The words for a server that takes no more connections and said so.
fn full(said: &[u8]) -> String {
    format!(
        "the server takes no more connections (memcached -c, maxclients of Redis): \"{}\"",
        said.escape_ascii()
    )
}

impl fmt::Display for Trouble {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::NotOpened(CloseReason { words: Some(words), .. })
            | Trouble::Lost(CloseReason { words: Some(words), .. }) => to.write_str(words),
            Trouble::NotOpened(reason) | Trouble::Lost(reason) => match (reason.errno, reason.fault) {
                (0, Fault::Timeout) => to.write_str("the server did not answer in time"),
                (0, _) => to.write_str("the server closed the connection"),
                (libc::EADDRINUSE, _) => to.write_str(NO_PORT),
                (libc::EADDRNOTAVAIL, _) => to.write_str(NOT_OURS),
                (errno, _) => {
                    let error = io::Error::from_raw_os_error(errno);
                    write!(to, "{error}{}", hint(&error))
                }
            },
            Trouble::Malformed(_, bytes, _) if says_full(bytes) => to.write_str(&full(bytes)),
            Trouble::Malformed(_, bytes, _) if bytes.starts_with(DENIED) => {
                write!(to, "the server refuses this client: it said \"{}\"", bytes.escape_ascii())
            }
            Trouble::Malformed(what, bytes, _) => to.write_str(&not_allowed(what, bytes)),
            Trouble::TimedOut => to.write_str("a request took longer than the timeout"),
        }
    }
}

/// Kind of the failure of a connection for this reason.
fn kind_of(reason: &CloseReason) -> TroubleKind {
    if let Some(kind) = reason.kind {
        return kind;
    }
    match (reason.errno, reason.fault) {
        (0, Fault::Timeout) | (libc::ETIMEDOUT, _) => TroubleKind::NotTaken,
        (0, _) => TroubleKind::Closed,
        (libc::ECONNREFUSED, _) => TroubleKind::Refused,
        (libc::ENOENT, _) => TroubleKind::NoSocket,
        (libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED, _) => TroubleKind::Reset,
        (libc::EHOSTUNREACH | libc::ENETUNREACH, _) => TroubleKind::Unreachable,
        _ => TroubleKind::Other,
    }
}

/// The words for bytes that the protocol does not allow, and why it does not.
pub fn not_allowed(what: &str, bytes: &[u8]) -> String {
    format!("the server sent what the protocol does not allow ({what}): \"{}\"", bytes.escape_ascii())
}

/// The beginning of the message that Redis in protected mode sends, without a request, to clients of other machines.
const DENIED: &[u8] = b"-DENIED";

/// The words for an attempt to connect for which this machine had no port.
const NO_PORT: &str = "no local port is free; --linger 0 gives the ports of closed connections back at once, and more addresses \
                       for --source have more ports";

/// The words for a source that is no address of this machine.
const NOT_OURS: &str = "the address of --source is not one of this machine";

/// The messages that memcached and Redis send, without a request, on a connection beyond their limit of connections.
const FULL: [(&[u8], &str); 2] =
    [(b"ERROR ", "Too many open connections"), (b"ERR ", "max number of clients")];

/// The remedy for an error of the system; empty if the error explains itself.
fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE) => {
            "; raise the hard limit of open files (as root: `ulimit -Hn`, or LimitNOFILE= for a service), or ask for fewer \
             connections at one time"
        }
        Some(libc::ENFILE) => {
            "; raise the system's limit of open files (sysctl fs.file-max), or ask for fewer connections at one time"
        }
        _ => hint_of(error.kind()),
    }
}

fn hint_of(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::ConnectionRefused => "; nothing listens there",
        io::ErrorKind::NotFound => "; nothing has made this socket",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use crate::connections::TlsTrouble;

    use super::*;

    #[test]
    fn each_trouble_has_a_kind() {
        let not_opened = |fault, errno| Trouble::NotOpened(CloseReason::new(fault, errno));
        let sent = |bytes: &[u8], is_greeting| Trouble::malformed(Malformed("a reason"), bytes, is_greeting);
        let kind = Some(TroubleKind::Tls(TlsTrouble::Slow));
        let rows = [
            (not_opened(Fault::Refused, libc::ECONNREFUSED), TroubleKind::Refused),
            (not_opened(Fault::Refused, libc::ENOENT), TroubleKind::NoSocket),
            (not_opened(Fault::Timeout, 0), TroubleKind::NotTaken),
            (not_opened(Fault::Timeout, libc::ETIMEDOUT), TroubleKind::NotTaken),
            (not_opened(Fault::Closed, libc::EHOSTUNREACH), TroubleKind::Unreachable),
            (not_opened(Fault::Closed, libc::EMFILE), TroubleKind::Other),
            (Trouble::Lost(CloseReason::new(Fault::Closed, 0)), TroubleKind::Closed),
            (Trouble::Lost(CloseReason::new(Fault::Reset, libc::ECONNRESET)), TroubleKind::Reset),
            (
                Trouble::NotOpened(CloseReason { kind, ..CloseReason::new(Fault::Timeout, 0) }),
                TroubleKind::Tls(TlsTrouble::Slow),
            ),
            (sent(b"\x15\x03\x03", true), TroubleKind::SpeaksTls),
            (sent(b"HTTP/1.1 400", true), TroubleKind::SpeaksHttp),
            (sent(b"220 mail", true), TroubleKind::SpeaksOther),
            (sent(b"220 mail", false), TroubleKind::Other),
            (sent(b"ERROR Too many open connections", true), TroubleKind::Full),
            (sent(b"-DENIED Redis is running in protected mode", true), TroubleKind::ProtectedMode),
            (Trouble::TimedOut, TroubleKind::RequestTimedOut),
        ];
        for (trouble, kind) in rows {
            assert_eq!(trouble.kind(), kind, "{trouble}");
        }
        let full = Trouble::Lost(CloseReason::new(Fault::Closed, 0))
            .after([&b"ERR max number of clients reached"[..]].into_iter());
        assert_eq!(full.kind(), TroubleKind::Full);
    }

    #[test]
    fn a_wrong_source_is_told_from_one_without_a_free_port() {
        let of = |errno| Trouble::NotOpened(CloseReason::new(Fault::Closed, errno)).to_string();
        assert!(of(libc::EADDRINUSE).starts_with("no local port is free; --linger 0 gives"), "{}", of(98));
        assert_eq!(of(libc::EADDRNOTAVAIL), "the address of --source is not one of this machine");
    }

    /// The message of Redis in its protected mode, in short.
    const DENIED_LINE: &[u8] = b"-DENIED Redis is running in protected mode because protected mode is enabled and no password is \
                                 set for the default user. NOTE: You only need to do one of the above things in order for the \
                                 server to start accepting connections from the outside.\r\n";

    #[test]
    fn a_greeting_in_words_is_quoted_whole_and_other_bytes_by_their_beginning() {
        let said = |bytes: &[u8], is_greeting| {
            Trouble::malformed(Malformed("a reason"), bytes, is_greeting).to_string()
        };
        let greeting = b"220 mail.example.org ESMTP Postfix (Debian/GNU) at your service\r\n250 more\r\n";
        let words = "(a reason): \"220 mail.example.org ESMTP Postfix (Debian/GNU) at your service\"";
        assert!(said(greeting, true).ends_with(words), "{}", said(greeting, true));
        assert!(said(greeting, false).ends_with("ESMTP Postfix (Debi\""), "{}", said(greeting, false));
        assert!(said(&[0x81; 100], true).len() < 300, "{}", said(&[0x81; 100], true));
    }

    #[test]
    fn a_server_that_is_full_is_not_said_to_break_its_protocol() {
        let said =
            |bytes: &[u8]| Trouble::Malformed("a reply to no request", bytes.to_vec(), true).to_string();
        for words in ["ERROR Too many open connections\r\n", "-ERR max number of clients reached\r\n"] {
            let told = said(words.as_bytes());
            assert!(
                told.starts_with("the server takes no more connections (memcached -c, maxclients"),
                "{told}"
            );
            assert!(told.contains(words.trim_end()), "{told}");
        }
        let lost = || Trouble::Lost(CloseReason::new(Fault::Closed, 0));
        let errors = [&b"SERVER_ERROR busy"[..], b"ERROR Too many open connections"];
        let told = lost().after(errors.into_iter()).to_string();
        assert!(told.starts_with("the server takes no more connections (memcached -c"), "{told}");
        assert_eq!(lost().after(errors.into_iter().take(1)), lost());
        let decoded = lost().after([&b"ERR max number of clients reached"[..]].into_iter()).to_string();
        assert!(decoded.starts_with("the server takes no more connections (memcached -c"), "{decoded}");
        let denied = Trouble::malformed(Malformed("a reply to no request"), DENIED_LINE, true).to_string();
        assert!(denied.starts_with("the server refuses this client: it said \"-DENIED Redis is"), "{denied}");
        assert!(denied.ends_with("outside.\""), "{denied}");
        assert!(said(b"ERROR Too").starts_with("the server sent what the protocol does not allow (a reply"));
    }
}
