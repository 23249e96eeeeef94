//! Agents in the manner of mutilate (`-A`).

use std::net::{Ipv4Addr, SocketAddr};

use pummel_engine::sys;
use pummel_fleet::agent::files::AllowedFiles;
use pummel_fleet::agent::limits::Limits;
use pummel_fleet::agent::listener;
use pummel_fleet::agent::network::Network;
use pummel_fleet::agent::overrides::{LocalOverrides, OrderLog};
use pummel_fleet::agent::policy::AccessPolicy;
use pummel_fleet::agent::service::{AgentConfig, serve};
use pummel_fronts::agent_variables::{self, AgentVariables, ServingVariables};
use pummel_fronts::exit_status::Exit;
use pummel_fronts::mutilate::AgentOptions;
use pummel_fronts::mutilate::style::{FATAL, line};
use pummel_fronts::values;
use pummel_logic::plan::share::ProcessShare;
use pummel_logic::plan::{Group, Plan};

use crate::commands::agent::guarded as guarded_config;
use crate::job::provenance::PROGRAM;
use crate::stderr::say;

/// `-A`: waits for a master. It listens beyond the loopback addresses only with a token or TLS, by which it knows its peers.
pub fn agent(asked: &AgentOptions, cpus: &[usize]) -> Exit {
    let served = agent_config(asked, cpus).and_then(|config| {
        let interrupts =
            sys::on_interrupt().map_err(|error| format!("signals cannot be handled: {error}"))?;
        serve(config, PROGRAM, interrupts).map_err(|error| error.to_string())
    });
    match served {
        Ok(()) => Exit::Complete,
        Err(error) => {
            say(line(error));
            FATAL
        }
    }
}

/// What an agent does by its command line and the variables of its environment.
///
/// # Errors
/// Returns the variable whose value cannot be used, with the reason.
fn agent_config(asked: &AgentOptions, cpus: &[usize]) -> Result<AgentConfig, String> {
    let variables = AgentVariables::read(|name| std::env::var_os(name))?;
    let serving = variables.serving;
    let tls = variables.tls.map(|files| listener::secure(&files.cert, &files.key, &files.ca)).transpose()?;
    let token = variables
        .token_file
        .map(|path| listener::Token::read(&path).map_err(|why| format!("PUMMEL_AGENT_TOKEN_FILE: {why}")))
        .transpose()?;
    let guarded = tls.is_some() || token.is_some();
    let listen = match &serving.listen {
        Some(text) => listen_address(text, asked.port)?,
        None if guarded => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), asked.port),
        None => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), asked.port),
    };
    if !guarded && !listen.ip().to_canonical().is_loopback() {
        return Err(format!(
            "PUMMEL_AGENT_LISTEN: {listen} is not a loopback address, so PUMMEL_AGENT_TOKEN_FILE has to name a file with a token that \
             master and agents share: an open agent would send load wherever any peer wants"
        ));
    }
    if !guarded {
        say(line(format_args!(
            "listening on the loopback address only; to listen on all, set PUMMEL_AGENT_TOKEN_FILE to a file with a token that \
             master and agents share"
        )));
    }
    let overrides = LocalOverrides {
        threads: asked.settings.threads,
        weight: asked.settings.weight,
        measure_connections: asked.settings.measure_connections,
        blocking: asked.blocking,
        cpus: if asked.pinned { cpus.to_vec() } else { Vec::new() },
    };
    let files = AllowedFiles::below(serving.directory.as_slice())
        .map_err(|(path, error)| format!("PUMMEL_ALLOW_FILE: {}: {error}", path.display()))?;
    let targets = serving.targets.as_deref().map_or(Ok(Vec::new()), networks)?;
    let limits = limits(&serving)?;
    let option_names = &agent_variables::OF_AGENTS;
    let policy = AccessPolicy { tls, token, targets, files, limits, option_names };
    let config = guarded_config(listen, policy, overrides).map_err(|error| error.to_string())?;
    Ok(AgentConfig {
        snapshot: None,
        on_order: (asked.verbose > 0 && !asked.quiet).then_some(OrderLog(order_lines)),
        ..config
    })
}

/// What a plan may take of an agent's machine.
///
/// # Errors
/// Returns the variable whose value cannot be read, with what is accepted.
fn limits(serving: &ServingVariables) -> Result<Limits, String> {
    let count = |name: &str, text: &Option<String>| {
        let read = text.as_deref().map(values::count).transpose();
        read.map_err(|why| format!("{name}: '{}': {why}", text.as_deref().unwrap_or_default()))
    };
    let usual = Limits::default();
    Ok(Limits {
        memory_bytes: count("PUMMEL_AGENT_MAX_MEMORY", &serving.memory)?.unwrap_or(usual.memory_bytes),
        connections: count("PUMMEL_AGENT_MAX_CONNECTIONS", &serving.connections)?,
    })
}

/// Where an agent listens: an address with a port, or with the port of `-p`.
fn listen_address(text: &str, port: u16) -> Result<SocketAddr, String> {
    let with_own_port =
        || text.trim_matches(['[', ']']).parse().map(|address| SocketAddr::new(address, port));
    text.parse().or_else(|_| with_own_port()).map_err(|_| {
        format!("PUMMEL_AGENT_LISTEN: '{text}' is no address: ADDRESS or ADDRESS:PORT is expected, such as 0.0.0.0 or [::]:5556")
    })
}

fn networks(text: &str) -> Result<Vec<Network>, String> {
    let network = |part: &str| {
        part.trim().parse().map_err(|_| {
            format!(
                "PUMMEL_ALLOW_TARGET: '{part}' is no network: ADDRESS/BITS is expected, such as 10.0.0.0/8"
            )
        })
    };
    text.split(',').map(network).collect()
}

/// What an agent says of an order with `-v`: its servers, and its part of the rate.
fn order_lines(plan: &Plan, share: &ProcessShare, weight: u32) -> Vec<String> {
    let mut lines: Vec<String> =
        plan.servers.iter().map(|server| line(format_args!("Got server = {server}"))).collect();
    let is_own = |clients: &std::ops::Range<u64>| !clients.is_empty();
    let own =
        plan.groups.iter().zip(&share.clients).find(|(_, clients)| is_own(clients)).map(|(group, _)| group);
    if let Some(Group { rate: Some(rate), clients, .. }) = own {
        let agents = plan.groups.iter().filter(|group| !group.policy.here);
        let qps: f64 = agents.filter_map(|group| group.rate).sum();
        let lambda = rate / f64::from(*clients);
        let denom = (qps * f64::from(weight) / lambda).round();
        lines.push(line(format_args!("lambda_denom = {denom:.0}, lambda = {lambda:.6}, qps = {qps:.0}")));
    }
    lines
}
