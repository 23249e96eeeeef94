//! How a master and its agents share connections and rate.

use pummel_logic::plan::validate::ValidPlan;
use pummel_logic::plan::{Arrivals, ClientPolicy, Depth, Group, Late};

use crate::c_numbers::strtol;
use crate::fleet;
use crate::fleet::AgentAddress;
use crate::launch_spec::LaunchSpec;
use crate::mutilate::dists::Form;
use crate::mutilate::options::{Options, Refusal, fatal};

/// Where agents listen unless they are told otherwise.
const PORT_OF_AGENTS: u16 = 5_556;

/// What `-A` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentOptions {
    /// `-p`.
    pub port: u16,
    /// What the agent decides itself.
    pub settings: ProcessSettings,
    /// `-B`.
    pub blocking: bool,
    /// `--affinity`: threads are pinned.
    pub pinned: bool,
    /// `-v`, as often as it is there.
    pub verbose: u32,
    /// `--quiet`.
    pub quiet: bool,
}

/// What an agent's own command line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessSettings {
    /// `-T`.
    pub threads: u32,
    /// `-l`: how many times the rate of others each of its connections has.
    pub weight: u32,
    /// `-C`, or 0.
    pub measure_connections: u32,
}

/// A run of several processes.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedPlan {
    /// The plan of all.
    pub plan: ValidPlan,
    /// The master's group and threads, unless it only leads.
    pub own: Option<(usize, u32)>,
    /// Group and threads of every agent; `None` where nothing is left for it.
    pub agents: Vec<Option<(usize, u32)>>,
}

/// Which groups there are, and whose they are.
pub(super) struct Groups {
    pub groups: Vec<Group>,
    pub own: Option<(usize, u32)>,
    pub agents: Vec<Option<(usize, u32)>>,
}

/// One process' share before rates are given.
struct Share {
    clients: u32,
    block: u32,
    weight: f64,
    threads: u32,
}

impl Share {
    /// Without `--roundrobin`, or with one thread, every thread opens the connections to every server; with it, each
    /// server has its thread, or each thread its server, whichever are more.
    fn of(options: &Options, servers: u32, settings: ProcessSettings) -> Share {
        let connections = match settings.measure_connections {
            0 => options.connections as u32,
            own => own,
        };
        let spread = options.roundrobin && settings.threads > 1;
        let count =
            if spread { servers.max(settings.threads) } else { servers.saturating_mul(settings.threads) };
        let clients = connections.saturating_mul(count);
        Share {
            clients,
            block: if spread { connections } else { 1 },
            weight: f64::from(clients) * f64::from(settings.weight),
            threads: settings.threads,
        }
    }
}

/// The master's settings.
fn own_settings(options: &Options) -> Option<ProcessSettings> {
    (options.threads > 0).then(|| ProcessSettings {
        threads: options.threads as u32,
        weight: options.lambda_mul.map_or(1, |weight| weight as u32),
        measure_connections: options.measure_connections.map_or(0, |count| count as u32),
    })
}

/// The clients of all processes. Their rates add up to `qps`, and the master's is `--measure_qps` where that is given
/// beside agents; a process whose share is 0 sends nothing.
pub(super) fn groups(
    options: &Options,
    servers: u32,
    qps: f64,
    agent_settings: &[ProcessSettings],
) -> Result<Groups, Refusal> {
    let own = own_settings(options).map(|settings| Share::of(options, servers, settings));
    let shares: Vec<Share> =
        agent_settings.iter().map(|settings| Share::of(options, servers, *settings)).collect();
    let measured =
        options.measure_qps.filter(|_| !agent_settings.is_empty() && own.is_some()).map(|rate| rate as f64);
    let mut all: f64 = shares.iter().map(|share| share.weight).sum();
    if measured.is_none() {
        all += own.as_ref().map_or(0.0, |own| own.weight);
    }
    let loading = (qps - measured.unwrap_or(0.0)).max(0.0);
    let mut groups = Vec::new();
    let mut add =
        |name: String, share: &Share, rate: Option<f64>, depth: i64, here: bool| -> Result<_, Refusal> {
            if rate == Some(0.0) || share.clients == 0 {
                return Ok(None);
            }
            groups.push(group(options, name, share, rate, depth, here)?);
            Ok(Some((groups.len() - 1, share.threads)))
        };
    let is_open = qps > 0.0;
    let own = match &own {
        None => None,
        Some(share) => {
            let part = measured.map(|rate| if is_open { rate.min(qps) } else { rate });
            let rate = part.or(is_open.then(|| qps * share.weight / all));
            let depth = options.measure_depth.filter(|_| !agent_settings.is_empty()).unwrap_or(options.depth);
            add("clients".to_owned(), share, rate, depth, !agent_settings.is_empty())?
        }
    };
    let mut agents = Vec::with_capacity(shares.len());
    for (number, share) in shares.iter().enumerate() {
        let rate = is_open.then(|| loading * share.weight / all);
        agents.push(add(format!("agent {}", number + 1), share, rate, options.depth, false)?);
    }
    Ok(Groups { groups, own, agents })
}

fn group(
    options: &Options,
    name: String,
    share: &Share,
    rate: Option<f64>,
    depth: i64,
    here: bool,
) -> Result<Group, Refusal> {
    let arrivals = match rate {
        Some(rate) => arrivals(options, f64::from(share.clients) / rate)?,
        None => Arrivals::Closed,
    };
    let late = options.skip && rate.is_some();
    Ok(Group {
        name,
        clients: share.clients,
        depth: Depth::Limit(depth as u32),
        arrivals,
        rate,
        churn: None,
        policy: ClientPolicy {
            block: share.block,
            late: if late { Late::Skipped } else { Late::Kept },
            spaced: options.moderate && rate.is_some(),
            successes_only: options.successful,
            whole: true,
            here,
            // The original's end is the end of -t.
            ends_on_time: rate.is_some(),
            same_draws: false,
        },
    })
}

/// The gaps between the requests of one connection, with this mean.
///
/// # Errors
/// Returns a [`Refusal`] when `-i` is no distribution, or none that can have this mean.
pub(super) fn arrivals(options: &Options, mean_s: f64) -> Result<Arrivals, Refusal> {
    let text = &options.iadist;
    Form::parse(text).and_then(|form| form.gaps(text, mean_s)).map_err(fatal)
}

/// The port of agents: `-p`.
pub(super) fn agent_port(options: &Options) -> Result<u16, Refusal> {
    let Some(text) = &options.agent_port else { return Ok(PORT_OF_AGENTS) };
    match strtol(text, 10) {
        (port @ 1..=65_535, "") => Ok(port as u16),
        _ => Err(fatal(format!("--agent_port must be a port from 1 to 65535, not '{text}'"))),
    }
}

/// The addresses of the agents: each has the common port, unless it names its own.
pub(super) fn agent_addresses(options: &Options) -> Result<Vec<AgentAddress>, Refusal> {
    let common = agent_port(options)?;
    let mut addresses: Vec<AgentAddress> = Vec::new();
    for text in &options.agents {
        let wrong = |why: String| fatal(format!("--agent '{text}': {why}"));
        if LaunchSpec::is_meant(text) {
            addresses.push(AgentAddress::Started(LaunchSpec::parse(text).map_err(wrong)?));
            continue;
        }
        let mut address = fleet::address(text).map_err(wrong)?;
        let names_port =
            text.trim_start_matches("dns:///").rsplit(']').next().is_some_and(|rest| rest.contains(':'));
        match &mut address {
            AgentAddress::Host { port, .. } | AgentAddress::Name { port, .. } if !names_port => {
                *port = common
            }
            _ => {}
        }
        if addresses.contains(&address) {
            return Err(wrong("it is there twice".to_owned()));
        }
        addresses.push(address);
    }
    Ok(addresses)
}

/// What `-A` means.
pub(super) fn agent(options: &Options) -> Result<AgentOptions, Refusal> {
    let settings = own_settings(options).ok_or_else(|| fatal("--threads must be >= 1"))?;
    Ok(AgentOptions {
        port: agent_port(options)?,
        settings,
        blocking: options.blocking,
        pinned: options.affinity && options.threads > 1,
        verbose: options.verbose,
        quiet: options.quiet,
    })
}
