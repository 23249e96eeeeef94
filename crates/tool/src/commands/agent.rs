//! The command line of `pummel agent`.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use pummel_engine::sys;
use pummel_logic::time::Nanos;

use crate::agent::listener;
use crate::agent::listener::Token;
use crate::agent::policy::{Network, NotANetwork};
use crate::agent::service::{Guard, Own, Post, serve};
use crate::commands::agent_cert;
use crate::commands::agent_cert::CertArgs;
use crate::exit_status::{Exit, answer};
use crate::job::UsageError;
use crate::launch::{Leash, first_line};
use crate::stderr::say;
use crate::values;

/// Options of `pummel agent`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub struct AgentArgs {
    /// What else to do.
    #[command(subcommand)]
    pub command: Option<AgentCommand>,
    /// What an agent is told.
    #[command(flatten)]
    pub post: PostArgs,
}

/// What there is beside waiting for a controller.
#[derive(Subcommand, Clone, Debug)]
pub enum AgentCommand {
    /// Make certificates for tests: an authority, and one certificate for agents and one for controllers
    Cert(CertArgs),
}

/// What an agent is told.
#[derive(Args, Clone, Debug)]
pub struct PostArgs {
    /// Where to listen; port 0 is any that is free. The line `listening on ADDR:PORT` on standard output says where
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:5556", allow_hyphen_values = true)]
    pub listen: SocketAddr,
    /// Serve only controllers that know the first line of this file; `-` is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
    /// End when standard input ends; with a time, also when nothing came through it for so long. For those who start
    /// agents and may be gone without a word
    #[arg(long, value_name = "SILENCE", num_args = 0..=1, require_equals = true, value_parser = values::time)]
    pub exit_with_stdin: Option<Option<Nanos>>,
    /// Certificate of this agent, then those that lead to its authority (PEM): with --tls-key and --tls-ca, everything is
    /// encrypted and only controllers with a certificate are served
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tls_cert: Option<PathBuf>,
    /// Private key of that certificate, not encrypted (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tls_key: Option<PathBuf>,
    /// Authorities that the certificates of controllers have to be from (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tls_ca: Option<PathBuf>,
    /// Send load only to servers in this network; may be repeated. Default: the loopback addresses, and with a token or
    /// TLS any
    #[arg(long, value_name = "CIDR", value_parser = network, value_delimiter = ',')]
    pub allow_target: Vec<Network>,
}

/// How long standard input may be silent, where its end is the agent's end: for ever, or for so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeashLen(Option<Duration>);

impl PostArgs {
    fn leash(&self) -> Option<LeashLen> {
        self.exit_with_stdin.map(|silence| LeashLen(silence.map(Duration::from_nanos)))
    }
}

fn network(text: &str) -> Result<Network, NotANetwork> {
    text.parse()
}

const EXAMPLES: &str = "\
An agent runs its part of a plan when a controller asks for it (`pummel run --agents`), one run at a time. It listens on \
the loopback address unless told otherwise; beyond that it wants a token or TLS, since an open agent would be a weapon in \
anybody's hands.

Examples:
  On four machines, with a word that all of them know:
    pummel agent --listen 0.0.0.0:5556 --token-file /etc/pummel/token
  On a fifth:
    pummel run -s cache1 --agents m1,m2,m3,m4 --agent-token-file /etc/pummel/token -c 400 --rate 1m
  Certificates for a test, with the names of the machines:
    pummel agent cert --directory certs --name m1 --name m2

Exit status:
  0    ended by SIGINT or SIGTERM
  1    it cannot listen
  2    the command line cannot be followed";

/// Follows a command line.
pub fn agent(args: &AgentArgs) -> Exit {
    match &args.command {
        Some(AgentCommand::Cert(args)) => agent_cert::cert(args),
        None => match post_of(&args.post) {
            Ok(post) => stand(post, args.post.leash()),
            Err(error) => answer(&error.into()),
        },
    }
}

/// Serves until the process is interrupted, or its leash says that nobody needs it any more.
pub fn stand(post: Post, leash: Option<LeashLen>) -> Exit {
    let interrupts: &'static AtomicU32 = match sys::on_interrupt() {
        Ok(interrupts) => interrupts,
        Err(error) => {
            say(format_args!("error: signals cannot be handled: {error}"));
            return Exit::Failed;
        }
    };
    if let Some(LeashLen(silence)) = leash {
        thread::spawn(move || {
            match Leash::wait(io::stdin(), silence) {
                Leash::Closed => {}
                // Nobody may know of the agent any more: its log says why it is gone.
                silent @ Leash::Silent(_) => say(format_args!("the agent ends: {silent}")),
            }
            interrupts.fetch_add(1, Ordering::Relaxed);
        });
    }
    match serve(post, interrupts) {
        Ok(()) => Exit::Complete,
        Err(error) => {
            say(format_args!("error: {error}"));
            Exit::Failed
        }
    }
}

fn post_of(args: &PostArgs) -> Result<Post, UsageError> {
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
    guarded(args.listen, Guard { tls, token, targets: args.allow_target.clone() }, Own::default())
}

/// An agent at an address, if it may stand there with such a guard.
///
/// # Errors
/// When it would be open to anybody beyond this machine.
pub fn guarded(listen: SocketAddr, mut guard: Guard, own: Own) -> Result<Post, UsageError> {
    let knows_callers = guard.tls.is_some() || guard.token.is_some();
    if !knows_callers && !is_loopback(listen.ip()) {
        return Err(UsageError::Value {
            flag: "--listen".to_owned(),
            value: listen.to_string(),
            accepted: "beyond the loopback addresses, one of --token-file and --tls-cert with --tls-key and --tls-ca has \
                       to be there: an open agent would send load wherever anybody wants"
                .to_owned(),
        });
    }
    if guard.targets.is_empty() {
        guard.targets = if knows_callers { Network::any() } else { Network::loopback() };
    }
    Ok(Post { listen, guard, own })
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
