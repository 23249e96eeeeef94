//! The options of runs on several machines.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use pummel_logic::plan::{Arrivals, ClientPolicy, Depth, Group};
use pummel_logic::time::{Nanos, SECOND};

use crate::fleet;
use crate::fleet::{AgentAddress, Fleet, FleetTls};
use crate::job::UsageError;
use crate::values;

/// How many requests the measuring clients make in a second, unless it is said.
const MEASURE_RATE: f64 = 1_000.0;

/// How long agents are waited for by default.
const PATIENCE_NS: Nanos = 5 * SECOND;

/// Which machines send the load.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Agents")]
pub struct AgentsArgs {
    /// Agents that share the clients evenly, separated by commas: HOST, HOST:PORT, [IPV6]:PORT (port 5556 unless given), or
    /// dns:///NAME:PORT for one agent at each address of a name. Each runs `pummel agent` and uses --threads threads. Or agents
    /// that are started for this run and end with it: ssh://HOST,HOST by ssh, with its configuration, on hosts that need no
    /// pummel; slurm://N by srun, on N nodes of the current allocation. May be repeated
    #[arg(long, value_name = "AGENTS", value_parser = fleet::addresses)]
    pub agents: Vec<Vec<AgentAddress>>,
    /// How long to wait for all agents to answer. Default: 5s
    #[arg(long, value_name = "TIME", value_parser = values::time, allow_hyphen_values = true)]
    pub agents_timeout: Option<Nanos>,
    /// What the run does when an agent is lost; it is partial either way. Default: continue
    #[arg(long, value_enum)]
    pub on_agent_loss: Option<OnLoss>,
    /// File whose first line is the agents' token (their --token-file). Default: PUMMEL_AGENT_TOKEN_FILE, if set
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub agent_token_file: Option<PathBuf>,
    /// Authorities that must have issued the agents' certificates (PEM): with --agent-tls-cert and --agent-tls-key, the connections
    /// to agents are encrypted. Default: PUMMEL_AGENT_TLS_CA, PUMMEL_AGENT_TLS_CERT and PUMMEL_AGENT_TLS_KEY, if set
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub agent_tls_ca: Option<PathBuf>,
    /// Client certificate for the agents (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub agent_tls_cert: Option<PathBuf>,
    /// Private key of that certificate, unencrypted (PEM)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub agent_tls_key: Option<PathBuf>,
    /// Accept agents of another version or build of pummel that speak the same protocol. Otherwise all must be the same build.
    /// Default: PUMMEL_AGENT_ALLOW_VERSION_MISMATCH (1 or 0), if set
    #[arg(long)]
    pub allow_version_mismatch: bool,
}

/// Clients of this process, which measure while agents load.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Agents")]
pub struct MeasuringArgs {
    /// Connections from this machine in addition to those of the agents: a busy client machine does not disturb what they measure.
    /// The report shows them, the agents, and both together
    #[arg(long, value_name = "N", value_parser = values::count_cut, allow_hyphen_values = true)]
    pub measure_connections: Option<u32>,
    /// Requests per second of the measuring connections. Default: 1000
    #[arg(long, value_name = "RATE", value_parser = values::rate, allow_hyphen_values = true)]
    pub measure_rate: Option<f64>,
    /// Most requests outstanding on each measuring connection. Default: 1
    #[arg(long, value_name = "N", value_parser = values::count_cut, allow_hyphen_values = true)]
    pub measure_depth: Option<u32>,
}

/// What a run does that loses an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnLoss {
    /// Continue with the others
    Continue,
    /// Stop
    Stop,
}

/// The agents of a command line; `None` where it names none.
///
/// # Errors
/// Returns [`UsageError::Missing`] for options that do not go together, and [`UsageError::Value`] for an agent that is refused.
pub fn fleet(args: &AgentsArgs) -> Result<Option<Fleet>, UsageError> {
    if args.agents.is_empty() {
        return Ok(None);
    }
    let addresses = args.agents.concat();
    if let Some((address, _)) = addresses
        .iter()
        .enumerate()
        .map(|(at, address)| (address, at))
        .find(|(address, at)| addresses[..*at].contains(address))
    {
        return Err(UsageError::Value {
            flag: "--agents".to_owned(),
            value: address.name(),
            accepted: "each agent is accepted once".to_owned(),
        });
    }
    // Agents that are started for the run are known by the way they were started.
    if addresses.iter().all(|address| matches!(address, AgentAddress::Started(_))) {
        let told = [
            (args.agent_token_file.is_some(), "--agent-token-file"),
            (args.agent_tls_ca.is_some(), "--agent-tls-ca"),
            (args.agent_tls_cert.is_some(), "--agent-tls-cert"),
            (args.agent_tls_key.is_some(), "--agent-tls-key"),
        ];
        if let Some((_, flag)) = told.into_iter().find(|(is_given, _)| *is_given) {
            return Err(UsageError::Missing(format!(
                "'{flag}' is accepted only with agents that are running already, and not with ssh:// and slurm:// alone"
            )));
        }
    }
    let tls = match (&args.agent_tls_ca, &args.agent_tls_cert, &args.agent_tls_key) {
        (None, None, None) => None,
        (Some(ca), Some(cert), Some(key)) => {
            Some(FleetTls { ca: ca.clone(), cert: cert.clone(), key: key.clone() })
        }
        _ => {
            return Err(UsageError::Missing(
                "'--agent-tls-ca', '--agent-tls-cert' and '--agent-tls-key' are accepted only together"
                    .to_owned(),
            ));
        }
    };
    Ok(Some(Fleet {
        addresses,
        patience_ns: args.agents_timeout.unwrap_or(PATIENCE_NS),
        tls,
        token_file: args.agent_token_file.clone(),
        stop_on_loss: args.on_agent_loss == Some(OnLoss::Stop),
        allow_version_mismatch: args.allow_version_mismatch,
    }))
}

/// The group of clients that measure from the controller; `None` where none is asked for. `requests` is `--requests`.
///
/// # Errors
/// Returns [`UsageError::Missing`] for `--measure-connections` with `--requests`.
pub fn measuring(
    args: &MeasuringArgs,
    requests: Option<u64>,
    loading: &Group,
) -> Result<Option<Group>, UsageError> {
    let Some(clients) = args.measure_connections else { return Ok(None) };
    if requests.is_some() {
        return Err(UsageError::Missing(
            "'--measure-connections' is accepted with '--time' and not with '--requests': measuring clients run for as \
             long as the others load"
                .to_owned(),
        ));
    }
    Ok(Some(Group {
        name: "measuring".to_owned(),
        clients,
        depth: Depth::Limit(args.measure_depth.unwrap_or(1)),
        arrivals: match &loading.arrivals {
            Arrivals::Closed => Arrivals::Poisson,
            arrivals => arrivals.clone(),
        },
        rate: Some(args.measure_rate.unwrap_or(MEASURE_RATE)),
        churn: None,
        policy: ClientPolicy { here: true, ..ClientPolicy::default() },
    }))
}
