//! The agents of a command line: their addresses, and what a controller shows to them.

use std::path::PathBuf;

use pummel_logic::time::Nanos;

use crate::launch_spec::LaunchSpec;

/// The port of an agent, where none is named.
pub const AGENT_PORT: u16 = 5556;

/// The agents of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// Their addresses; at least one.
    pub addresses: Vec<AgentAddress>,
    /// How long to wait until all of them answer.
    pub patience_ns: Nanos,
    /// Files of TLS; `None` where messages are not encrypted.
    pub tls: Option<FleetTls>,
    /// File with the token that they ask for.
    pub token_file: Option<PathBuf>,
    /// The run ends when one of them is lost.
    pub stop_on_loss: bool,
    /// Agents of other builds of pummel are accepted, as long as they have the same protocol.
    pub allow_version_mismatch: bool,
}

impl Fleet {
    /// The words by which messages name the agents before they are reached, one for each. Agents of `slurm://` have none yet.
    pub fn agent_names(&self) -> Vec<String> {
        self.addresses.iter().flat_map(AgentAddress::agent_names).collect()
    }
}

/// The address of agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentAddress {
    /// One, at the first address of a host that answers.
    Host {
        /// Name or address; IPv6 without brackets.
        host: String,
        /// Port.
        port: u16,
    },
    /// One at each address of a name.
    Name {
        /// The name.
        host: String,
        /// Port.
        port: u16,
    },
    /// No address yet: the agents are started for the run.
    Started(LaunchSpec),
}

/// Reads a list of agents, or of hosts to start agents on.
///
/// # Errors
/// Returns what is accepted.
pub fn addresses(text: &str) -> Result<Vec<AgentAddress>, String> {
    if LaunchSpec::is_meant(text) {
        return LaunchSpec::parse(text).map(|spec| vec![AgentAddress::Started(spec)]);
    }
    let there: Result<_, String> = text.split(',').map(address).collect();
    there.map_err(|accepted| format!("{accepted}; ssh://HOST,... and slurm://N start agents for the run"))
}

/// Files of TLS between a controller and its agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetTls {
    /// Authorities that the agents' certificates have to be from.
    pub ca: PathBuf,
    /// Certificate of the controller.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Reads one item of a list of agents.
///
/// # Errors
/// Returns what is accepted.
pub fn address(text: &str) -> Result<AgentAddress, String> {
    const ACCEPTED: &str = "expected HOST, HOST:PORT, [IPV6]:PORT or dns:///NAME:PORT";
    if let Some(name) = text.strip_prefix("dns:///") {
        let (host, port) = host_and_port(name).ok_or(ACCEPTED)?;
        return Ok(AgentAddress::Name { host, port });
    }
    if text.contains('/') {
        return Err(ACCEPTED.to_owned());
    }
    let (host, port) = host_and_port(text).ok_or(ACCEPTED)?;
    Ok(AgentAddress::Host { host, port })
}

fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            match behind {
                "" => (host, None),
                behind => (host, Some(behind.strip_prefix(':')?)),
            }
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
    if host.is_empty() || !host.chars().all(is_name) {
        return None;
    }
    let port = match port {
        None => AGENT_PORT,
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            port.parse().ok().filter(|port| *port != 0)?
        }
        Some(_) => return None,
    };
    Some((host.to_owned(), port))
}

impl AgentAddress {
    /// The text that it is read from.
    pub fn name(&self) -> String {
        match self {
            AgentAddress::Host { host, port } => with_port(host, *port),
            AgentAddress::Name { host, port } => format!("dns:///{}", with_port(host, *port)),
            AgentAddress::Started(spec) => spec.to_string(),
        }
    }

    fn agent_names(&self) -> Vec<String> {
        match self {
            AgentAddress::Host { host, port } | AgentAddress::Name { host, port } => {
                vec![with_port(host, *port)]
            }
            AgentAddress::Started(LaunchSpec::Ssh(hosts)) => hosts.iter().map(ToString::to_string).collect(),
            AgentAddress::Started(LaunchSpec::Slurm(_)) => Vec::new(),
        }
    }
}

/// A host and a port as one word, with brackets around an IPv6 address.
pub fn with_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_read_in_every_form() {
        for (text, name) in [
            ("a", "a:5556"),
            ("a:1", "a:1"),
            ("10.0.0.1:7000", "10.0.0.1:7000"),
            ("[::1]:7000", "[::1]:7000"),
            ("[::1]", "[::1]:5556"),
            ("dns:///agents.bench.svc:5556", "dns:///agents.bench.svc:5556"),
            ("dns:///agents", "dns:///agents:5556"),
        ] {
            assert_eq!(address(text).map(|address| address.name()), Ok(name.to_owned()), "{text}");
        }
    }

    #[test]
    fn agents_to_be_started_are_a_list_of_their_own() {
        let started = |text: &str| LaunchSpec::parse(text).map(|spec| vec![AgentAddress::Started(spec)]);
        for text in ["ssh://a,b:22,me@c", "slurm://8"] {
            assert_eq!(addresses(text), started(text));
            assert_eq!(addresses(text).map(|addresses| addresses[0].name()), Ok(text.to_owned()));
        }
        assert_eq!(addresses("a,b:1").map(|addresses| addresses.len()), Ok(2));
        for text in ["a,ssh://b", "slurm://x", "a,"] {
            assert!(addresses(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_agent_is_refused() {
        for text in
            ["", ":1", "a:", "a:0", "a:99999", "a:+1", "::1", "[x]:1", "[::1]x", "dns:///", "http://a", "a b"]
        {
            assert!(address(text).is_err(), "{text}");
        }
    }
}
