//! `pummel serve`: the built-in server, for demos, for tests with faults and for calibration.

mod accounts;
pub mod child;
mod cluster_options;
mod error;
mod fault_options;
mod listen;
mod peer;
mod server;

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use pummel_engine::backend::tls;
use pummel_engine::sys;
use pummel_fronts::values::{self, UnreadDist, ValueError};
use pummel_logic::dist::Dist;
use pummel_logic::time::Nanos;
use pummel_testserver::{
    ClusterConfig, Dialect, Framing, Limits, QUEUE_SERVERS_MAX, Server, ServerConfig, ServerFault,
    ServerLogin, ServiceDrift, Truth,
};

use accounts::Accounts;
use cluster_options::ClusterArgs;
pub use error::ServeError;
pub use listen::Listen;
use listen::Listener;
use peer::Peer;
pub use server::ServeWait;
use server::{Bounds, Listeners, SocketServer};

/// Run a small memcached and Redis server with chosen service times and faults
///
/// For demos, tests and calibration, not for data: it keeps everything in at most 64 MiB of memory, evicts what was least
/// recently used, and writes nothing to disk but the truth file. One thread. Ends on SIGINT and SIGTERM with status 0.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = STATUSES)]
pub struct ServeArgs {
    /// Where to listen: ADDRESS:PORT, [IPV6]:PORT or /path/of/a/socket
    ///
    /// Port 0 is any free port. May be repeated. For each, a line `listening on ...` on standard output gives the actual address
    #[arg(long, value_name = "WHERE", default_value = "127.0.0.1:11211", allow_hyphen_values = true)]
    pub listen: Vec<Listen>,

    /// The protocol; auto looks at the first byte of each connection, as memcached does
    #[arg(long, value_parser = dialects(), default_value = "auto")]
    pub protocol: Dialect,

    /// Also serve memcached's UDP on the same ports. A multi-get is answered by one stream cut into datagrams, as before memcached
    /// 1.6.0, or by separate datagrams for each key, as since then
    #[arg(long, value_enum, value_name = "HOW", conflicts_with_all = ["user", "tls_cert"])]
    pub udp_framing: Option<UdpFraming>,

    /// Certificate: every connection is encrypted
    ///
    /// The certificate is followed by its intermediate certificates (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Require a certificate of every client, issued by an authority in this file (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_ca: Option<PathBuf>,

    /// User that clients must log in as
    ///
    /// By SASL PLAIN in the binary protocol, by a first set in text and meta, by AUTH or HELLO
    /// in RESP
    #[arg(long, value_name = "NAME", requires = "password_file")]
    pub user: Option<String>,

    /// File whose first line is the user's password
    #[arg(long, value_name = "FILE", requires = "user")]
    pub password_file: Option<PathBuf>,

    /// Copy every stored value to this memcached or other pummel serve, as replicating servers do; two may be peers of each other.
    /// A reply is held until the peer has the copy. No reply waits for an unreachable peer; one that comes back gets copies of all
    /// items. Deletions, touches and flushes are not copied
    #[arg(long, value_name = "HOST:PORT", allow_hyphen_values = true)]
    pub peer: Option<String>,

    /// How long each reply takes: a time or a distribution
    ///
    /// Each reply is held for this long after its request arrived: a time, or uniform:LO,HI, normal:MEAN,SD, exponential:MEAN,
    /// pareto:LOC,SCALE,SHAPE, gev:LOC,SCALE,SHAPE with times such as 5ms or 200us (a bare number is seconds),
    /// weighted:LO-HI@P,... with whole seconds, or file:PATH with one number of seconds per line. Default: not at all
    #[arg(long, value_name = "DIST", value_parser = values::dist_of_waits, allow_hyphen_values = true)]
    pub service_time: Option<UnreadDist>,

    /// Queue the requests of all connections, in order of arrival, for K parallel servers: each reply takes its wait for a server
    /// plus its service time. With Poisson arrivals this is the M/G/K queue of the textbooks. Default: connections do not wait for
    /// each other
    #[arg(long, value_name = "K", value_parser = queue_servers, requires = "service_time", allow_hyphen_values = true)]
    pub queue: Option<u32>,

    /// Keep at most N items: each further one evicts the least recently used. Default: as many as fit into 64 MiB
    #[arg(long, value_name = "N", value_parser = values::count_above_zero, allow_hyphen_values = true)]
    pub items: Option<u64>,

    /// Change service times over time, counted from the first request: step:FACTOR,AFTER multiplies them by FACTOR from AFTER on;
    /// decay:FACTOR,TAU starts at FACTOR times the drawn times and decays to them with the time constant TAU
    #[arg(long, value_name = "SHAPE", value_parser = fault_options::service_drift, requires = "service_time", allow_hyphen_values = true)]
    pub service_drift: Option<ServiceDrift>,

    /// Seed of service times and faults
    #[arg(long, value_name = "N", default_value = "0", value_parser = values::count, allow_hyphen_values = true)]
    pub seed: u64,

    /// Write what was served, and when, to a file
    ///
    /// One line for each request and each fault
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,

    /// Inject a fault, and say how often it happens
    ///
    /// close-after=N, stall-after=N, garbage-after=N, half-reply-after=N, error-every=N, flip=N,
    /// wrong-key=N, mix=N (a reply in another dialect), ignore-expiry, early-expiry=TIME, refuse or slow-bytes; with
    /// --udp-framing also udp-drop=N, udp-reorder=N and udp-duplicate=N. May be repeated; N counts requests (for flip and
    /// wrong-key: values; for udp-...: datagrams) over the whole server
    #[arg(long, value_name = "KIND[=N]", value_parser = fault_options::fault, allow_hyphen_values = true)]
    pub fault: Vec<ServerFault>,

    /// How to wait for requests and due replies: auto sleeps, and spins shortly before a due reply; spin never sleeps, and uses
    /// a whole CPU for the most exact times
    #[arg(long, value_enum, default_value = "auto")]
    pub wait: ServeWait,

    /// End after this time, such as 30 or 500ms
    #[arg(long, value_name = "TIME", value_parser = values::time_above_zero, allow_hyphen_values = true)]
    pub max_seconds: Option<Nanos>,

    /// End after this many requests, once their replies are sent
    #[arg(long, value_name = "N", value_parser = values::count_above_zero, allow_hyphen_values = true)]
    pub max_requests: Option<u64>,

    /// The cluster that the server is.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

const STATUSES: &str = "\
Exit status:
  0    ended by SIGINT, SIGTERM, --max-seconds or --max-requests
  1    it cannot serve; standard error says why
  2    wrong usage";

/// The parser of `--protocol`, which knows the dialects of the built-in server.
fn dialects() -> impl TypedValueParser<Value = Dialect> {
    let values = Dialect::words().map(|(word, about)| PossibleValue::new(word).help(about));
    PossibleValuesParser::new(values)
        .map(|name| Dialect::from_name(&name).expect("the parser accepts names of dialects only"))
}

/// A number of parallel servers.
fn queue_servers(text: &str) -> Result<u32, ValueError> {
    let servers = values::count_u32(text).ok().filter(|servers| (1..=QUEUE_SERVERS_MAX).contains(servers));
    let accepted =
        || format!("expected a whole number of servers from 1 to {QUEUE_SERVERS_MAX}, such as 1 or 4");
    servers.ok_or_else(|| ValueError(accepted()))
}

/// How replies are put into datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UdpFraming {
    /// One stream, cut
    Stream,
    /// Separate datagrams for each key
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

/// Serves until a bound is reached or a signal comes, and writes the truth. Replies are held for `service_time`, the
/// distribution that `args.service_time` names, in seconds.
///
/// # Errors
/// When it cannot listen, the truth file cannot be written, or the kernel refuses what a server needs.
pub fn serve(args: ServeArgs, service_time: Option<Dist>) -> Result<(), ServeError> {
    let accounts = args.truth.as_deref().map(|path| Accounts::create(path, &args.fault)).transpose()?;
    let login = args.login()?;
    let listeners = args.open()?;
    let cluster = args.cluster_of(&listeners)?;
    let now = server::now();
    let server = Server::new(
        ServerConfig {
            dialect: if cluster.is_some() { Dialect::Resp } else { args.protocol },
            login,
            service_time,
            service_drift: args.service_drift,
            queue_servers: args.queue,
            seed: args.seed,
            limits: Limits { items_max: args.items.map(|items| items as usize), ..Limits::default() },
            faults: args.fault,
            unix_ns_at_zero: server::unix_ns_at_zero(),
            truth: if accounts.is_some() { Truth::Kept } else { Truth::Dropped },
            cluster,
        },
        now,
    );
    let bounds = Bounds {
        end: args.max_seconds.map(|span_ns| now.saturating_add(span_ns)),
        requests_max: args.max_requests,
    };
    let server = SocketServer::new(server, listeners, accounts, bounds, args.wait)?;
    announce(&server.addresses())
        .map_err(|cause| ServeError::new("cannot say where the server listens", cause))?;
    server.run()
}

impl ServeArgs {
    /// Why these options cannot be followed together, where each of them could be: the option, its value, and what is
    /// accepted.
    pub fn refusal(&self) -> Option<(&'static str, String, &'static str)> {
        if let Some(refusal) = self.cluster.refusal(&self.listen) {
            return Some(refusal);
        }
        if self.cluster.cluster.is_some() && !matches!(self.protocol, Dialect::Auto | Dialect::Resp) {
            let word = if self.protocol == Dialect::Binary { "binary" } else { "text" };
            let accepted = "nodes of a cluster speak RESP: with --cluster expected auto or resp";
            return Some(("--protocol", word.to_owned(), accepted));
        }
        let Some(framing) = self.udp_framing else {
            let fault = self.fault.iter().find(|fault| fault.is_of_datagrams())?;
            let accepted = "it befalls datagrams, which there are only with --udp-framing stream or per-key";
            return Some(("--fault", fault.to_string(), accepted));
        };
        if self.listen.iter().any(|listen| matches!(listen, Listen::Tcp(_))) {
            return None;
        }
        let framing = framing.to_possible_value()?.get_name().to_owned();
        let accepted = "UDP needs a port: expected at least one --listen ADDRESS:PORT";
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

    fn tls(&self) -> Result<Option<Arc<rustls::ServerConfig>>, ServeError> {
        let (Some(cert), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let ca = self.tls_ca.as_deref().map(Path::to_string_lossy);
        tls::server_config(&cert.to_string_lossy(), &key.to_string_lossy(), ca.as_deref())
            .map(Some)
            .map_err(|error| ServeError::new("cannot serve with TLS", io::Error::other(error)))
    }

    /// The cluster of the nodes that listen there, where there is to be one.
    fn cluster_of(&self, listeners: &Listeners) -> Result<Option<ClusterConfig>, ServeError> {
        let (Some(_), Some(first)) = (self.cluster.cluster, self.listen.first()) else { return Ok(None) };
        let addresses: io::Result<Vec<SocketAddr>> =
            listeners.tcp.iter().filter_map(Listener::socket_address).collect();
        let addresses =
            addresses.map_err(|cause| ServeError::new("cannot tell where the nodes listen", cause))?;
        Ok(Some(self.cluster.config(first, &addresses)))
    }

    /// Opens everything where it listens.
    fn open(&self) -> Result<Listeners, ServeError> {
        let peer = self.peer.as_deref().map(|name| Peer::find(name, server::now())).transpose()?;
        let mut listeners = Listeners { tcp: Vec::new(), udp: Vec::new(), tls: self.tls()?, peer };
        let places = match (self.cluster.nodes(), &*self.listen) {
            (Some(nodes), [first]) => self.cluster.places(nodes, first),
            _ => self.listen.clone(),
        };
        for listen in &places {
            let Some(framing) = self.udp_framing else {
                listeners.tcp.push(Listener::open(listen)?);
                continue;
            };
            let (listener, socket) = Listener::open_with_udp(listen)?;
            listeners.tcp.push(listener);
            listeners.udp.extend(socket.map(|socket| (socket, framing.into())));
        }
        Ok(listeners)
    }
}

/// Prints the addresses at once, and all together: the program that started the server may wait for the first one alone.
fn announce(addresses: &[String]) -> io::Result<()> {
    sys::check_stdout()?;
    let lines: String = addresses.iter().map(|address| format!("listening on {address}\n")).collect();
    let mut out = io::stdout().lock();
    out.write_all(lines.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use pummel_testserver::CountedFault;

    use super::*;
    use pummel_fronts::native::RunArgs;

    /// The options of `pummel serve` and those of `pummel run` that take values of the same kinds.
    #[derive(Parser)]
    struct Server {
        #[command(flatten)]
        args: ServeArgs,
    }

    #[derive(Parser)]
    struct Client {
        #[command(flatten)]
        args: RunArgs,
    }

    /// The value that an option has of this text; none where it is refused.
    fn read<P: Parser, T>(option: &str, text: &str, value: impl FnOnce(P) -> T) -> Option<T> {
        P::try_parse_from(["pummel", option, text]).ok().map(value)
    }

    /// Forms of values, of which each option takes some.
    const FORMS: [&str; 40] = [
        "0",
        "1",
        "10000",
        "10k",
        "10K",
        "1.5m",
        "1g",
        "4KiB",
        "0.5GiB",
        "1.5",
        "0.1s",
        "250ms",
        "2.5us",
        "7ns",
        "2m",
        "1h",
        "30s",
        "5min",
        "1e3",
        "1e3ms",
        "+5",
        "-1",
        "-1s",
        "",
        "k",
        "ms",
        "1 k",
        "1_000",
        ".5",
        "1.",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999h",
        "inf",
        "nan",
        "soon",
        "0ms",
        "1.5ns",
        "10kb",
        "1m30s",
    ];

    #[test]
    fn counts_and_times_are_read_as_those_of_the_load() {
        let mut taken = 0;
        for text in FORMS {
            let count = read("-n", text, |client: Client| client.args.pace.requests).flatten();
            let seed = read("--seed", text, |server: Server| server.args.seed);
            assert_eq!(seed, count, "{text}");
            let above_zero = |value: &u64| *value > 0;
            let requests = read("--max-requests", text, |server: Server| server.args.max_requests).flatten();
            assert_eq!(requests, count.filter(above_zero), "{text}");
            let fault = read("--fault", &format!("flip={text}"), |server: Server| server.args.fault);
            assert_eq!(
                fault,
                count.filter(above_zero).map(|count| vec![CountedFault::Flip.at(count)]),
                "{text}"
            );
            let time = read("-t", text, |client: Client| client.args.pace.time).flatten();
            let seconds = read("--max-seconds", text, |server: Server| server.args.max_seconds).flatten();
            assert_eq!(seconds, time.filter(above_zero), "{text}");
            taken += u32::from(count.is_some()) + u32::from(time.is_some());
        }
        assert!(taken > 20, "{taken}");
    }

    #[test]
    fn service_times_are_read_as_distributions_of_the_load() {
        let more = [
            "fixed:10us",
            "uniform:1ms,3ms",
            "uniform:3ms,1ms",
            "uniform:1ms",
            "exponential:200us",
            "normal:1ms,100us",
            "normal:-1ms,1",
            "pareto:1ms,2ms,0.3",
            "gev:1ms,2ms,0.3",
            "weighted:1ms-2ms@1",
            "etc-value",
            "file:/nonexistent/times",
            "fancy:1",
            "exponential:1k",
        ];
        let mut taken = 0;
        for text in FORMS.into_iter().chain(more) {
            let ttl = read("--ttl", text, |client: Client| client.args.data.ttl);
            let time = read("--service-time", text, |server: Server| server.args.service_time).flatten();
            // An expiry may lie in the past, and no reply is held for less than no time.
            assert_eq!(time, ttl.filter(|_| !text.starts_with('-')), "{text}");
            taken += u32::from(time.is_some());
        }
        assert!(taken > 15, "{taken}");
    }
}
