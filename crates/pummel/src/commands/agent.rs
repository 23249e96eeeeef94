//! The command line of `pummel agent`.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use pummel_engine::{clock, sys};
use pummel_fleet::agent::files::AllowedFiles;
use pummel_fleet::agent::limits::Limits;
use pummel_fleet::agent::listener;
use pummel_fleet::agent::listener::Token;
use pummel_fleet::agent::network::{Network, NotANetwork};
use pummel_fleet::agent::overrides::LocalOverrides;
use pummel_fleet::agent::policy::AccessPolicy;
use pummel_fleet::agent::service::{AgentConfig, serve};
use pummel_fleet::launch::{Watchdog, first_line};
use pummel_fronts::exit_status::{Exit, STATUSES_WITHOUT_RUN};
use pummel_fronts::job::UsageError;
use pummel_fronts::metrics_options;
use pummel_fronts::native;
use pummel_fronts::values::{self, ValueError};
use pummel_logic::time::{Nanos, SECOND};
use pummel_report::snapshot::{Identity, Role, SharedSnapshot};

use crate::commands::agent_cert;
use crate::commands::agent_cert::CertArgs;
use crate::job::provenance::PROGRAM;
use crate::metrics::server::MetricsServer;
use crate::parser_answer::answer;
use crate::stderr::say;

/// Options of `pummel agent`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub struct AgentArgs {
    /// What to do in place of waiting for a controller.
    #[command(subcommand)]
    pub command: Option<AgentCommand>,
    /// What an agent is told.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// What `pummel agent` does beside waiting for a controller.
#[derive(Subcommand, Clone, Debug)]
pub enum AgentCommand {
    /// Make test certificates: an authority, one certificate for agents and one for controllers
    #[command(after_long_help = STATUSES_WITHOUT_RUN)]
    Cert(CertArgs),
}

/// What an agent is told.
#[derive(Args, Clone, Debug)]
pub struct ServeArgs {
    /// Where to wait for controllers
    ///
    /// Port 0 is any free port. The line `listening on ADDR:PORT` on standard output says which
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:5556", value_parser = listen, allow_hyphen_values = true)]
    pub listen: SocketAddr,
    /// Serve only controllers that know the token, the first line of this file; `-` is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
    /// End when standard input ends; with a time, also when nothing has come through it for that long. For programs that start
    /// agents and may die without notice
    #[arg(long, value_name = "SILENCE", num_args = 0..=1, require_equals = true, value_parser = values::time)]
    pub exit_with_stdin: Option<Option<Nanos>>,
    /// Certificate of this agent: every controller's connection is encrypted
    ///
    /// The certificate is followed by its intermediate certificates (PEM). With --tls-key and --tls-ca, everything is encrypted and
    /// only controllers with a certificate are served
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<PathBuf>,
    /// Private key of that certificate, unencrypted (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tls_key: Option<PathBuf>,
    /// Authorities that must have issued the controllers' certificates (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tls_ca: Option<PathBuf>,
    /// Networks that may receive load
    ///
    /// May be repeated. Default: loopback addresses only; with a token or TLS, any
    #[arg(long, value_name = "CIDR", value_parser = network, value_delimiter = ',')]
    pub allow_target: Vec<Network>,
    /// Directories whose files a plan may name
    ///
    /// Files that a plan names (passwords, certificates, traces) are read only below these directories, or a file by its own path;
    /// may be repeated. Default: none are read
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub allow_file: Vec<PathBuf>,
    /// Refuse plans whose part on this agent may need more memory. Default: half of this machine's, up to 16GiB
    #[arg(long, value_name = "SIZE", value_parser = values::count_above_zero, allow_hyphen_values = true)]
    pub max_memory: Option<u64>,
    /// Refuse plans with more connections on this agent. Default: as many as the limit of open files allows
    #[arg(long, value_name = "N", value_parser = values::count_above_zero, allow_hyphen_values = true)]
    pub max_connections: Option<u64>,
    /// Serve the metrics of this agent's part for Prometheus at http://ADDR:PORT/metrics; a port alone listens on 127.0.0.1
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = metrics_options::listen, allow_hyphen_values = true)]
    pub metrics: Option<SocketAddr>,
}

/// The longest silence of a standard input whose end is the agent's end; `None` where silence may last for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputSilence(Option<Duration>);

impl ServeArgs {
    /// The watch over standard input; `None` where the agent does not end with it.
    fn input_silence(&self) -> Option<InputSilence> {
        self.exit_with_stdin.map(|silence| InputSilence(silence.map(Duration::from_nanos)))
    }
}

/// An address to listen on: an IP address with a port, or a port of 127.0.0.1 alone.
fn listen(text: &str) -> Result<SocketAddr, ValueError> {
    let accepted =
        "expected an IP address with a port, or a port of 127.0.0.1, such as 0.0.0.0:5556, [::]:0 or 5556";
    metrics_options::listen(text).map_err(|_| ValueError(accepted.to_owned()))
}

fn network(text: &str) -> Result<Network, NotANetwork> {
    text.parse()
}

const EXAMPLES: &str = "\
An agent runs its part of a plan when a controller asks for it (`pummel run --agents`), one run at a time. By default it listens \
on the loopback address; on other addresses it requires a token or TLS, since an open agent could be used to attack any server.

Examples:
  On four machines, with a shared token:
    pummel agent --listen 0.0.0.0:5556 --token-file /etc/pummel/token
  On a fifth:
    pummel run -s cache1 --agents m1,m2,m3,m4 --agent-token-file /etc/pummel/token -c 400 --rate 1m
  Certificates for a test, with the names of the machines:
    pummel agent cert --directory certs --name m1 --name m2

Exit status:
  0    ended by SIGINT or SIGTERM
  1    it cannot listen
  2    wrong usage";

/// Follows a command line of `pummel agent`.
pub fn agent(args: &AgentArgs) -> Exit {
    match &args.command {
        Some(AgentCommand::Cert(args)) => agent_cert::cert(args),
        None => match config_of(&args.serve) {
            Ok(config) => match with_metrics(config, args.serve.metrics) {
                Ok((config, _server)) => serve_until_unneeded(config, args.serve.input_silence()),
                Err(error) => {
                    say(format_args!("error: {error}"));
                    Exit::Failed
                }
            },
            Err(error) => answer(&error.into()),
        },
    }
}

/// The configuration with the state that its metrics show, and the thread that serves them, if an address is given for
/// it.
fn with_metrics(
    config: AgentConfig,
    listen: Option<SocketAddr>,
) -> io::Result<(AgentConfig, Option<MetricsServer>)> {
    let Some(listen) = listen else { return Ok((config, None)) };
    let run = format!("agent {} {}", config.listen, clock::wall() / SECOND);
    let snapshot = SharedSnapshot::new(Identity { run, role: Role::Agent, front: native::FRONT });
    snapshot.lock().keeps_ops = true;
    let server = MetricsServer::start(listen, snapshot.clone(), None)?;
    say(format_args!("metrics at http://{}/metrics", server.address()));
    Ok((AgentConfig { snapshot: Some(snapshot), ..config }, Some(server)))
}

/// Serves until the process is interrupted, or standard input ends or is silent for too long where that is its end.
fn serve_until_unneeded(config: AgentConfig, input_silence: Option<InputSilence>) -> Exit {
    let interrupts: &'static AtomicU32 = match sys::on_interrupt() {
        Ok(interrupts) => interrupts,
        Err(error) => {
            say(format_args!("error: signals cannot be handled: {error}"));
            return Exit::Failed;
        }
    };
    if let Some(InputSilence(silence)) = input_silence {
        thread::spawn(move || {
            match Watchdog::wait(io::stdin(), silence) {
                Watchdog::Closed => {}
                // The controller may be gone, so that only the agent's log can say why the agent is.
                silent @ Watchdog::Silent(_) => say(format_args!("the agent ends: {silent}")),
            }
            interrupts.fetch_add(1, Ordering::Relaxed);
        });
    }
    match serve(config, PROGRAM, interrupts) {
        Ok(()) => Exit::Complete,
        Err(error) => {
            say(format_args!("error: {error}"));
            Exit::Failed
        }
    }
}

fn config_of(args: &ServeArgs) -> Result<AgentConfig, UsageError> {
    let value = |flag: &str, file: &Option<PathBuf>, accepted: String| UsageError::Value {
        flag: flag.to_owned(),
        value: file.as_ref().map_or_else(String::new, |file| file.display().to_string()),
        accepted,
    };
    let tls = match (&args.tls_cert, &args.tls_key, &args.tls_ca) {
        (None, None, None) => None,
        (Some(cert), Some(key), Some(ca)) => Some(
            listener::secure(cert, key, ca).map_err(|error| value("--tls-cert", &args.tls_cert, error))?,
        ),
        _ => {
            return Err(UsageError::Missing(
                "'--tls-cert', '--tls-key' and '--tls-ca' are accepted only together: an agent shows its certificate, \
                 and asks controllers for theirs"
                    .to_owned(),
            ));
        }
    };
    let token = args.token_file.as_deref().map(|path| match path.to_str() {
        Some("-") => first_line(io::stdin().lock()).map_err(|error| error.to_string()).and_then(|line| {
            Token::of(&line).map_err(|why| format!("the first line of standard input {why}"))
        }),
        _ => Token::read(path),
    });
    let token = token.transpose();
    let token = token.map_err(|error| value("--token-file", &args.token_file, error))?;
    let files = AllowedFiles::below(&args.allow_file).map_err(|(path, error)| {
        value("--allow-file", &Some(path), format!("a directory or a file is expected: {error}"))
    })?;
    let usual = Limits::default();
    let limits = Limits {
        memory_bytes: args.max_memory.unwrap_or(usual.memory_bytes),
        connections: args.max_connections,
    };
    let targets = args.allow_target.clone();
    let policy = AccessPolicy { tls, token, targets, files, limits, ..AccessPolicy::default() };
    guarded(args.listen, policy, LocalOverrides::default())
}

/// The configuration of an agent at an address, with the networks that it sends load to where its policy names none.
///
/// # Errors
/// Returns [`UsageError::Value`] when the address is beyond this machine and controllers need neither token nor certificate.
pub fn guarded(
    listen: SocketAddr,
    mut policy: AccessPolicy,
    overrides: LocalOverrides,
) -> Result<AgentConfig, UsageError> {
    if !policy.knows_callers() && !is_loopback(listen.ip()) {
        return Err(UsageError::Value {
            flag: "--listen".to_owned(),
            value: listen.to_string(),
            accepted: "an address beyond loopback requires --token-file, or --tls-cert with --tls-key and --tls-ca: an open \
                       agent would send load wherever any peer asks"
                .to_owned(),
        });
    }
    if policy.targets.is_empty() {
        policy.targets = if policy.knows_callers() { Network::any() } else { Network::loopback() };
    }
    Ok(AgentConfig { listen, policy, overrides, on_order: None, snapshot: None })
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
