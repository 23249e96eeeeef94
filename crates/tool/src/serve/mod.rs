//! `pummel serve`: the built-in server, for demos, for tests with faults and for calibration.

mod error;
mod ledger;
mod listen;
mod peer;
mod server;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use pummel_engine::backend::tls;
use pummel_engine::sys;
use pummel_logic::dist::{self, Dist, Spec};
use pummel_logic::server::{Dialect, Framing, Host, HostConfig, ServerFault, ServerLogin, Truth};
use pummel_logic::time::{MICROSECOND, MILLISECOND, Nanos, SECOND, from_seconds};
use rustls::ServerConfig;

pub use error::ServeError;
use ledger::Ledger;
use listen::Door;
pub use listen::Listen;
use peer::Peer;
pub use server::ServeWait;
use server::{Bounds, House, Server};

/// Serve a small memcached and Redis in one, with service times and faults of your choice
///
/// For demos, tests and calibration, not for data: it keeps everything in at most 64 MiB of memory, forgets what was not
/// asked for lately, and writes nothing to disk but the truth file. One thread. Ends on SIGINT and SIGTERM with status 0.
#[derive(Args, Clone, Debug)]
pub struct ServeArgs {
    /// Where to listen: ADDRESS:PORT, [IPV6]:PORT or /path/of/a/socket; port 0 is any free one. Repeatable. For each,
    /// the line `listening on ...` says on standard output what it became
    #[arg(long, value_name = "WHERE", default_value = "127.0.0.1:11211", allow_hyphen_values = true)]
    pub listen: Vec<Listen>,

    /// What is spoken: auto looks at the first byte of each connection, as memcached does
    #[arg(long, value_parser = dialects(), default_value = "auto")]
    pub protocol: Dialect,

    /// Speak memcached's UDP as well, on the same ports: a multi-get is answered by one stream cut into datagrams, as
    /// before memcached 1.6.0, or by datagrams of its own for each key, as since
    #[arg(long, value_enum, value_name = "HOW", conflicts_with_all = ["user", "tls_cert"])]
    pub udp_framing: Option<UdpFraming>,

    /// TLS on every connection: the server's certificate, and those that lead to its authority, in the PEM format
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// The private key of that certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Demand a certificate of every client, from one of the authorities in this file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_ca: Option<PathBuf>,

    /// Who may come in: SASL PLAIN in the binary protocol, a first set in text and meta, AUTH or HELLO in RESP
    #[arg(long, value_name = "NAME", requires = "password_file")]
    pub user: Option<String>,

    /// The password of that user: the first line of this file
    #[arg(long, value_name = "FILE", requires = "user")]
    pub password_file: Option<PathBuf>,

    /// Copy every value that is stored to this memcached, or other pummel serve, as servers do that replicate among
    /// themselves; two may be peers of each other. A reply is held until the peer has the copy, a peer that comes back
    /// gets all that is there, and nobody waits for one that is not there. Deletions, touches and flushes are not copied
    #[arg(long, value_name = "HOST:PORT", allow_hyphen_values = true)]
    pub peer: Option<String>,

    /// How long each reply is held after its request came: a time, or uniform:LO,HI, normal:MEAN,SD, exponential:MEAN,
    /// pareto:LOC,SCALE,SHAPE, gev:LOC,SCALE,SHAPE with times such as 5ms or 200us (a bare number is seconds), or
    /// file:PATH with one number of seconds a line. Default: not at all
    #[arg(long, value_name = "DIST", allow_hyphen_values = true)]
    pub service_time: Option<ServiceTime>,

    /// Seed of service times and faults
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true)]
    pub seed: u64,

    /// Write what was really done: one line for each request and each fault
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,

    /// Do something wrong: close-after=N, stall-after=N, garbage-after=N, half-reply-after=N, error-every=N, flip=N,
    /// wrong-key=N, mix=N (a reply in another dialect), ignore-expiry, early-expiry=SECONDS, refuse or slow-bytes; with
    /// --udp-framing also udp-drop=N, udp-reorder=N and udp-duplicate=N. Repeatable; N counts requests (for flip and
    /// wrong-key: values; for udp-...: datagrams) over the whole server
    #[arg(long, value_name = "KIND[=N]", allow_hyphen_values = true)]
    pub fault: Vec<ServerFault>,

    /// How to wait for requests and due replies: auto sleeps, and spins before a due reply; spin never sleeps, and takes
    /// a whole CPU for the truest times
    #[arg(long, value_enum, default_value = "auto")]
    pub wait: ServeWait,

    /// End after this time, such as 30 or 500ms
    #[arg(long, value_name = "TIME", value_parser = parse_span, allow_hyphen_values = true)]
    pub max_seconds: Option<Nanos>,

    /// End after this many requests, when what is owed is sent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), allow_hyphen_values = true)]
    pub max_requests: Option<u64>,
}

/// The parser of `--protocol`, which knows the dialects of the built-in server.
fn dialects() -> impl TypedValueParser<Value = Dialect> {
    let values = Dialect::words().map(|(word, about)| PossibleValue::new(word).help(about));
    PossibleValuesParser::new(values)
        .map(|name| Dialect::from_name(&name).expect("the parser accepts names of dialects only"))
}

/// How replies are put into datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UdpFraming {
    /// One stream, cut
    Stream,
    /// Datagrams of its own for each key
    PerKey,
}

impl From<UdpFraming> for Framing {
    fn from(framing: UdpFraming) -> Framing {
        match framing {
            UdpFraming::Stream => Framing::Stream,
            UdpFraming::PerKey => Framing::PerKey,
        }
    }
}

/// Serves until a bound is reached or a signal comes, and writes the truth.
///
/// # Errors
/// When it cannot listen, the truth file cannot be written, or the kernel refuses what a server needs.
pub fn serve(args: ServeArgs) -> Result<(), ServeError> {
    let service_time = args.service_time.clone().map(ServiceTime::load).transpose()?;
    let ledger = args.truth.as_deref().map(|path| Ledger::create(path, &args.fault)).transpose()?;
    let login = args.login()?;
    let house = args.open()?;
    let now = server::now();
    let host = Host::new(
        HostConfig {
            dialect: args.protocol,
            login,
            service_time,
            seed: args.seed,
            faults: args.fault,
            unix_ns_at_zero: server::unix_ns_at_zero(),
            truth: if ledger.is_some() { Truth::Kept } else { Truth::Dropped },
            ..HostConfig::default()
        },
        now,
    );
    let bounds = Bounds {
        end: args.max_seconds.map(|span_ns| now.saturating_add(span_ns)),
        requests_max: args.max_requests,
    };
    let server = Server::new(host, house, ledger, bounds, args.wait)?;
    for line in server.addresses() {
        announce(&line).map_err(|cause| ServeError::new("cannot say where the server listens", cause))?;
    }
    server.run()
}

impl ServeArgs {
    /// Why these options cannot be followed together, where each of them could be: the option, its value, and what is
    /// accepted.
    pub fn refusal(&self) -> Option<(&'static str, String, &'static str)> {
        let Some(framing) = self.udp_framing else {
            let fault = self.fault.iter().find(|fault| fault.is_of_datagrams())?;
            let accepted = "it befalls datagrams, which there are only with --udp-framing stream or per-key";
            return Some(("--fault", fault.to_string(), accepted));
        };
        if self.listen.iter().any(|listen| matches!(listen, Listen::Tcp(_))) {
            return None;
        }
        let framing = framing.to_possible_value()?.get_name().to_owned();
        let accepted =
            "UDP needs a port, so at least one --listen ADDRESS:PORT beside unix sockets is accepted";
        Some(("--udp-framing", framing, accepted))
    }

    fn login(&self) -> Result<Option<ServerLogin>, ServeError> {
        let (Some(user), Some(path)) = (&self.user, &self.password_file) else { return Ok(None) };
        let wrap =
            |cause| ServeError::new(format!("cannot read the password from {}", path.display()), cause);
        let text = fs::read_to_string(path).map_err(wrap)?;
        let password = text.lines().next().unwrap_or_default().as_bytes().to_vec();
        Ok(Some(ServerLogin { user: user.as_bytes().to_vec(), password }))
    }

    fn tls(&self) -> Result<Option<Arc<ServerConfig>>, ServeError> {
        let (Some(cert), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let ca = self.tls_ca.as_deref().map(Path::to_string_lossy);
        tls::server_config(&cert.to_string_lossy(), &key.to_string_lossy(), ca.as_deref())
            .map(Some)
            .map_err(|error| ServeError::new("cannot serve with TLS", io::Error::other(error)))
    }

    /// Opens everything where it listens.
    fn open(&self) -> Result<House, ServeError> {
        let peer = self.peer.as_deref().map(|name| Peer::find(name, server::now())).transpose()?;
        let mut house = House { doors: Vec::new(), windows: Vec::new(), tls: self.tls()?, peer };
        for listen in &self.listen {
            let Some(framing) = self.udp_framing else {
                house.doors.push(Door::open(listen)?);
                continue;
            };
            let (door, socket) = Door::open_with_udp(listen)?;
            house.doors.push(door);
            house.windows.extend(socket.map(|socket| (socket, framing.into())));
        }
        Ok(house)
    }
}

/// Tells whoever started the server where it is; at once, since they may wait for it.
fn announce(address: &str) -> io::Result<()> {
    sys::check_stdout()?;
    let mut out = io::stdout().lock();
    writeln!(out, "listening on {address}")?;
    out.flush()
}

/// The service time as it was typed: a distribution of seconds, or the file that holds one.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceTime(Spec);

impl ServiceTime {
    fn load(self) -> Result<Dist, ServeError> {
        let path = match self.0 {
            Spec::Ready(dist) => return Ok(dist),
            Spec::File(path) => path,
        };
        let wrap = |cause| ServeError::new(format!("cannot read service times from {path}"), cause);
        let text = fs::read_to_string(&path).map_err(wrap)?;
        Dist::from_lines(&path, &text).map_err(|cause| wrap(io::Error::other(cause)))
    }
}

impl std::str::FromStr for ServiceTime {
    type Err = String;

    fn from_str(text: &str) -> Result<ServiceTime, String> {
        const ACCEPTED: &str = "a time such as 5ms, or uniform:1ms,3ms, normal:MEAN,SD, exponential:200us, \
             pareto:LOC,SCALE,SHAPE, gev:LOC,SCALE,SHAPE or file:PATH is accepted";
        let bare = match text.split_once(':') {
            Some(("file", _)) => text.to_owned(),
            Some((name @ ("fixed" | "uniform" | "normal" | "exponential" | "pareto" | "gev"), numbers)) => {
                let numbers: Option<Vec<String>> = numbers.split(',').map(in_seconds).collect();
                format!("{name}:{}", numbers.ok_or(ACCEPTED)?.join(","))
            }
            Some(_) => return Err(ACCEPTED.to_owned()),
            None => in_seconds(text).ok_or(ACCEPTED)?,
        };
        bare.parse().map(ServiceTime).map_err(|error: dist::DistError| format!("{error}; {ACCEPTED}"))
    }
}

/// A number with or without a unit of time, as a bare number of seconds.
fn in_seconds(text: &str) -> Option<String> {
    let (number, scale_ns) = split_unit(text)?;
    if scale_ns == SECOND {
        return Some(number.to_owned());
    }
    let seconds = number.parse::<f64>().ok()? * (scale_ns as f64 / SECOND as f64);
    seconds.is_finite().then(|| format!("{seconds:.12}"))
}

fn split_unit(text: &str) -> Option<(&str, Nanos)> {
    let units = [("ns", 1), ("us", MICROSECOND), ("ms", MILLISECOND), ("s", SECOND), ("m", 60 * SECOND)];
    let (number, scale_ns) = units
        .into_iter()
        .find_map(|(unit, scale_ns)| text.strip_suffix(unit).map(|number| (number, scale_ns)))
        .unwrap_or((text, SECOND));
    let plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+');
    (number.bytes().all(plain) && number.parse::<f64>().is_ok()).then_some((number, scale_ns))
}

fn parse_span(text: &str) -> Result<Nanos, String> {
    let seconds = in_seconds(text).and_then(|number| number.parse::<f64>().ok());
    match seconds {
        Some(seconds) if seconds > 0.0 => Ok(from_seconds(seconds)),
        _ => Err("a time above 0 is accepted, such as 30, 30s or 500ms".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_times_are_read_with_units() {
        for (typed, bare) in [
            ("5ms", "0.005"),
            ("0.5", "0.5"),
            ("2s", "2"),
            ("fixed:10us", "0.00001"),
            ("uniform:1ms,3ms", "uniform:0.001,0.003"),
            ("exponential:200us", "exponential:0.0002"),
            ("normal:1ms,100us", "normal:0.001,0.0001"),
            ("pareto:1ms,2ms,0.3", "pareto:0.001,0.002,0.3"),
        ] {
            let expected: Dist = bare.parse().unwrap();
            let ServiceTime(Spec::Ready(dist)) = typed.parse().unwrap() else { panic!("{typed} is no file") };
            for u in [0.01, 0.5, 0.99] {
                let (ours, theirs) = (dist.quantile(u), expected.quantile(u));
                assert!((ours - theirs).abs() <= 1e-12 + theirs * 1e-9, "{typed}: {ours} and {theirs}");
            }
        }
    }

    #[test]
    fn wrong_service_times_are_refused_with_what_is_accepted() {
        for typed in [
            "",
            "x",
            "5 ms",
            "5min",
            "ms",
            "etc-value",
            "weighted:1-2@1",
            "uniform:1ms",
            "NaN",
            "inf",
            "1e3ms",
        ] {
            let error = typed.parse::<ServiceTime>().expect_err(typed);
            assert!(error.contains("uniform:1ms,3ms"), "{typed}: {error}");
        }
    }

    #[test]
    fn spans_have_units_and_are_above_zero() {
        assert_eq!(parse_span("30"), Ok(30 * SECOND));
        assert_eq!(parse_span("500ms"), Ok(SECOND / 2));
        assert_eq!(parse_span("1m"), Ok(60 * SECOND));
        for wrong in ["0", "-1", "soon", ""] {
            assert!(parse_span(wrong).is_err(), "{wrong}");
        }
    }
}
