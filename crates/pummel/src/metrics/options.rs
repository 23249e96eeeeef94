//! The options of metrics, as values of a command line.

use std::net::{Ipv4Addr, SocketAddr};

use clap::Args;
use pummel_logic::time::Nanos;

use crate::metrics::push::{NotATarget, PushTarget};
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
}
