//! Why TLS failed, in words that say what to change on the server, in the certificate or on the command line.

use pummel_logic::protocol::Fault;
use pummel_measure::connections::{TlsTrouble, TroubleKind};
use pummel_measure::trouble::CloseReason;
use rustls::{AlertDescription, CertificateError, Error};

/// Most first bytes that are shown of a reply that is not TLS.
const SHOWN_BYTES: usize = 40;

/// The kinds of TLS records, from `change_cipher_spec` to `heartbeat` (RFC 8446, section 5.1).
const RECORD_KINDS: std::ops::RangeInclusive<u8> = 20..=24;

/// The reason when a handshake took longer than the timeout.
pub(super) const SILENCE: &str =
    "the server took the connection and did not complete the TLS handshake in time";

/// The end of TLS on a connection that was still open.
#[derive(Debug)]
pub(super) enum Ending {
    /// The server ended TLS in order.
    Orderly,
    /// The server sent invalid messages, or an alert.
    Failed(Error),
    /// The keys may encrypt no more bytes, and the protocol's version has no way to agree on new ones.
    Spent,
}

impl Ending {
    /// The reason of the connection's end. `in_handshake` says that it was in the handshake; `first` is the server's first
    /// bytes, or empty.
    pub(super) fn reason(&self, in_handshake: bool, first: &[u8]) -> CloseReason {
        let (words, kind) = match self {
            Ending::Orderly if !in_handshake => return CloseReason::new(Fault::Closed, 0),
            Ending::Orderly => return interrupted(CloseReason::new(Fault::Closed, 0)),
            Ending::Spent => {
                let words = "the keys of a TLS 1.2 connection to the server were used up".to_owned();
                (words, TlsTrouble::Other)
            }
            Ending::Failed(error) => (of_error(error, in_handshake, first), kind_of(error, first)),
        };
        CloseReason {
            words: Some(words.into()),
            kind: Some(TroubleKind::Tls(kind)),
            ..CloseReason::new(Fault::Protocol, 0)
        }
    }
}

/// The reason when a connection ends before its handshake does.
pub(super) fn interrupted(reason: CloseReason) -> CloseReason {
    let words = match reason.fault {
        Fault::Closed if reason.errno == 0 => "the server closed the connection in the TLS handshake",
        Fault::Reset => "the server reset the connection in the TLS handshake",
        _ => return reason,
    };
    CloseReason { words: Some(words.into()), kind: Some(TroubleKind::Tls(TlsTrouble::CutOff)), ..reason }
}

/// Whether an error is about first bytes that are no record of TLS.
fn is_not_tls(error: &Error, first: &[u8]) -> bool {
    matches!(error, Error::InvalidMessage(_))
        && first.first().is_some_and(|kind| !RECORD_KINDS.contains(kind))
}

/// Kind of an error of TLS; `first` is the server's first bytes, or empty.
fn kind_of(error: &Error, first: &[u8]) -> TlsTrouble {
    match error {
        error if is_not_tls(error, first) => TlsTrouble::NotSpoken,
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => TlsTrouble::WrongName,
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            TlsTrouble::Untrusted
        }
        Error::InvalidCertificate(wrong) if is_authority(wrong) => TlsTrouble::Untrusted,
        Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::HandshakeFailure,
        ) => TlsTrouble::ClientCertificate,
        _ => TlsTrouble::Other,
    }
}

fn of_error(error: &Error, in_handshake: bool, first: &[u8]) -> String {
    match error {
        error if is_not_tls(error, first) => {
            let shown = &first[..first.len().min(SHOWN_BYTES)];
            format!("the server does not speak TLS: it answered \"{}\"", shown.escape_ascii())
        }
        Error::InvalidCertificate(wrong) => of_certificate(wrong),
        Error::AlertReceived(alert) => of_alert(*alert, in_handshake),
        Error::PeerIncompatible(why) => {
            format!("the server and this client have no version or cipher of TLS in common ({why:?})")
        }
        Error::NoCertificatesPresented => "the server showed no certificate".to_owned(),
        error => format!("TLS with the server failed: {error}"),
    }
}

fn of_certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names = match presented.as_slice() {
                [] => "it holds no name at all (no subjectAltName)".to_owned(),
                names => format!(
                    "it is for {}",
                    names.iter().map(|name| name_of(name)).collect::<Vec<_>>().join(", ")
                ),
            };
            format!("the server's certificate is not valid for the name '{}': {names}", expected.to_str())
        }
        CertificateError::NotValidForName => {
            "the server's certificate is not valid for the name that was asked for".to_owned()
        }
        CertificateError::Expired => "the server's certificate has expired".to_owned(),
        CertificateError::ExpiredContext { time, not_after } => {
            let ago = days(time.as_secs().saturating_sub(not_after.as_secs()));
            format!("the server's certificate has expired {ago} ago")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet".to_owned()
        }
        CertificateError::UnknownIssuer => {
            "the server's certificate was signed by an authority that is not trusted here".to_owned()
        }
        CertificateError::BadSignature => {
            "the server's certificate was not signed by the authority that it names".to_owned()
        }
        CertificateError::Revoked => "the server's certificate was revoked".to_owned(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the server's certificate is not one for servers".to_owned()
        }
        error if is_authority(error) => {
            "the server's certificate is itself that of an authority (CA:TRUE), and is trusted only where the file of \
             trusted authorities holds this very certificate"
                .to_owned()
        }
        error => format!("the server's certificate is not accepted: {error}"),
    }
}

/// Whether the error is that a server shows the certificate of an authority. The library reports it only by its text.
pub(super) fn is_authority(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity"))
}

/// A name as the library shows it, `DnsName("x")` or `IpAddress(x)`, without its wrapping.
fn name_of(shown: &str) -> &str {
    let inner = shown.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(shown);
    inner.trim_matches('"')
}

fn of_alert(alert: AlertDescription, in_handshake: bool) -> String {
    let what = match alert {
        AlertDescription::CertificateRequired => "it wants a certificate of the client".to_owned(),
        AlertDescription::UnknownCA => {
            "it does not trust the authority of the client's certificate".to_owned()
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateRevoked => {
            format!("it does not accept the client's certificate ({alert:?})")
        }
        AlertDescription::CertificateExpired => "the client's certificate has expired".to_owned(),
        AlertDescription::ProtocolVersion => {
            "it speaks no version of TLS that this client does (1.2 and 1.3)".to_owned()
        }
        AlertDescription::HandshakeFailure => {
            "it has no cipher in common with this client, or wants a certificate of it (HandshakeFailure)"
                .to_owned()
        }
        AlertDescription::UnrecognisedName => "it does not know the name that it was asked for by".to_owned(),
        alert => format!("{alert:?}"),
    };
    match in_handshake {
        true => format!("the server refused the TLS handshake: {what}"),
        false => format!("the server ended TLS: {what}"),
    }
}

fn days(seconds: u64) -> String {
    match seconds / 86_400 {
        0 => "less than a day".to_owned(),
        1 => "a day".to_owned(),
        days => format!("{days} days"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::InvalidMessage;

    #[test]
    fn an_answer_that_is_not_tls_is_shown() {
        let failed = Ending::Failed(Error::InvalidMessage(InvalidMessage::InvalidContentType));
        let reason = failed.reason(true, b"ERROR\r\n");
        assert_eq!(
            reason.words.as_deref(),
            Some("the server does not speak TLS: it answered \"ERROR\\r\\n\"")
        );
        assert_eq!(reason.fault, Fault::Protocol);
        // A record of TLS with something else wrong in it is no such answer.
        let words = failed.reason(true, b"\x16\x03\x03").words.unwrap();
        assert!(words.starts_with("TLS with the server failed"), "{words}");
    }

    #[test]
    fn an_orderly_end_is_like_that_of_a_plain_connection() {
        assert_eq!(Ending::Orderly.reason(false, b""), CloseReason::new(Fault::Closed, 0));
        assert!(Ending::Orderly.reason(true, b"").words.is_some());
        let timeout = CloseReason::new(Fault::Timeout, 110);
        assert_eq!(interrupted(timeout.clone()), timeout);
    }

    #[test]
    fn what_the_server_says_of_our_certificate_is_said_on() {
        let words = |alert, in_handshake| {
            Ending::Failed(Error::AlertReceived(alert)).reason(in_handshake, b"").words.unwrap()
        };
        assert_eq!(
            &*words(AlertDescription::CertificateRequired, false),
            "the server ended TLS: it wants a certificate of the client"
        );
        assert!(words(AlertDescription::UnknownCA, true).contains("authority of the client's certificate"));
    }
}
