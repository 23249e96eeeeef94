//! `--push-result`: the final metrics, put to a Pushgateway once.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

use pummel_logic::plan::address::server_at;

use crate::metrics::families::result_families;
use crate::metrics::http::Encoding;
use crate::metrics::server::process_figures;
use crate::metrics::text::{self, Dialect};
use crate::snapshot::Snapshot;

/// The port of a URL without one.
const HTTP_PORT: u16 = 80;

/// How long connecting, writing and each read may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Most bytes that are read of an answer.
const ANSWER_MAX_BYTES: u64 = 4 << 10;

/// The Pushgateway that results are sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushTarget {
    /// Host and port.
    authority: String,
    /// The path with the group of the Pushgateway that is replaced.
    path: String,
}

/// A URL that results cannot be pushed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotATarget;

impl fmt::Display for NotATarget {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("expected the URL of a Pushgateway, such as http://gateway:9091 or http://gateway:9091/metrics/job/nightly")
    }
}

impl std::error::Error for NotATarget {}

impl FromStr for PushTarget {
    type Err = NotATarget;

    fn from_str(text: &str) -> Result<PushTarget, NotATarget> {
        let rest = text.strip_prefix("http://").ok_or(NotATarget)?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain(rest) || rest.contains(['?', '#']) {
            return Err(NotATarget);
        }
        let authority = server_at(authority, HTTP_PORT).map_err(|_| NotATarget)?;
        let base = path.trim_end_matches('/');
        let path = match (base.is_empty(), base.contains("metrics/job/")) {
            (_, true) => format!("/{base}"),
            (true, _) => "/metrics/job/pummel".to_owned(),
            (false, _) => format!("/{base}/metrics/job/pummel"),
        };
        Ok(PushTarget { authority, path })
    }
}

/// Pushes the metrics of a job that is over.
///
/// # Errors
/// Returns the system's error, and one with the first line of the answer when the gateway did not take them.
pub fn push(target: &PushTarget, snapshot: &Snapshot) -> io::Result<()> {
    put(target, snapshot).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("--push-result: http://{}{}: {error}", target.authority, target.path),
        )
    })
}

fn put(target: &PushTarget, snapshot: &Snapshot) -> io::Result<()> {
    let body = text::render(&result_families(snapshot, &process_figures()), Dialect::Classic);
    let mut last = io::Error::other("the name has no address");
    for address in target.authority.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return send(stream, target, &body),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn send(mut stream: TcpStream, target: &PushTarget, body: &str) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = format!(
        "PUT {} HTTP/1.1\r\nHost: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        target.path,
        target.authority,
        Encoding::Text(Dialect::Classic).content_type(),
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut answer = Vec::new();
    let read = stream.take(ANSWER_MAX_BYTES).read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    let line = text.lines().next().unwrap_or_default();
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1));
    match status {
        Some(status) if status.starts_with('2') => Ok(()),
        Some(_) => Err(io::Error::other(format!("it answered: {}", crate::stderr::visible(line)))),
        None => Err(read.err().unwrap_or_else(|| io::Error::other("it did not answer with HTTP"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_group_gets_the_group_of_pummel() {
        let target = |text: &str| {
            text.parse::<PushTarget>().map(|target| format!("{}{}", target.authority, target.path))
        };
        assert_eq!(target("http://gw:9091"), Ok("gw:9091/metrics/job/pummel".to_owned()));
        assert_eq!(target("http://gw/push/"), Ok("gw:80/push/metrics/job/pummel".to_owned()));
        assert_eq!(
            target("http://[::1]:9091/metrics/job/n/i/2"),
            Ok("[::1]:9091/metrics/job/n/i/2".to_owned())
        );
        for wrong in [
            "",
            "gw:9091",
            "https://gw",
            "http://",
            "http://a b",
            "http://u:p@gw",
            "http://gw/?x",
            "http://gw/\r\nX: y",
            "http://gw:99999",
            "http://gw:0/push",
            "http://gw:",
            "http://:9091",
            "http://gw:http",
            "http://::1",
            "http://[::1",
        ] {
            assert_eq!(target(wrong), Err(NotATarget), "{wrong}");
        }
    }
}
