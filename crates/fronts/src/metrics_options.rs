//! The options of metrics, as values of a command line.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

use clap::Args;
use pummel_logic::plan::address::server_at;
use pummel_logic::time::Nanos;

use crate::values;
use crate::values::ValueError;

/// Where the metrics of a run go while it goes on and when it is over.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsArgs {
    /// Serve metrics for Prometheus at http://ADDR:PORT/metrics while the command runs; a port alone listens on 127.0.0.1, and
    /// port 0 is any free port. docs/METRICS.md lists the names
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = listen, allow_hyphen_values = true)]
    pub metrics: Option<SocketAddr>,
    /// When the runs are over, wait up to this long for one more scrape of the final metrics
    #[arg(long, value_name = "TIME", default_value = "0s", hide_default_value = true, value_parser = values::time,
          requires = "metrics", allow_hyphen_values = true)]
    pub metrics_linger: Nanos,
    /// Push the final metrics to a Pushgateway when the runs are over, such as http://gateway:9091. Default group, unless the URL
    /// has one: /metrics/job/pummel
    #[arg(long, value_name = "URL", value_parser = push_target)]
    pub push_result: Option<PushTarget>,
}

impl MetricsArgs {
    /// Whether metrics are served or pushed.
    pub fn is_wanted(&self) -> bool {
        self.metrics.is_some() || self.push_result.is_some()
    }
}

/// The port of a URL without one.
const HTTP_PORT: u16 = 80;

/// The Pushgateway that results are sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushTarget {
    /// Host and port.
    pub authority: String,
    /// The path with the group of the Pushgateway that is replaced.
    pub path: String,
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

/// Reads an address to listen on; one without a host is of loopback.
///
/// # Errors
/// Returns [`ValueError`] for text that is neither an address nor a port.
pub fn listen(text: &str) -> Result<SocketAddr, ValueError> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let text =
        text.strip_prefix("localhost:").map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
    text.parse().map_err(|_| {
        ValueError("expected a port of 127.0.0.1, or an IP address with a port, such as 9464, 0.0.0.0:9464 or [::]:9464".to_owned())
    })
}

fn push_target(text: &str) -> Result<PushTarget, NotATarget> {
    text.parse()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_host_is_of_loopback() {
        for (text, address) in [
            ("9464", "127.0.0.1:9464"),
            (":9464", "127.0.0.1:9464"),
            ("localhost:1", "127.0.0.1:1"),
            ("0.0.0.0:0", "0.0.0.0:0"),
            ("[::1]:9464", "[::1]:9464"),
        ] {
            assert_eq!(
                listen(text).map(|address| address.to_string()).ok().as_deref(),
                Some(address),
                "{text}"
            );
        }
        for text in ["", "cache1:9464", "70000", "127.0.0.1"] {
            assert!(listen(text).is_err_and(|error| error.to_string().contains("9464")), "{text}");
        }
    }

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
