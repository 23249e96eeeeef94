//! What `--agents` says about agents that are yet to be started: by which system, and where.

use std::fmt;
use std::num::NonZeroU32;

/// Where agents are to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchSpec {
    /// `ssh://DESTINATION,...`: one on each of these hosts, by the system's `ssh`.
    Ssh(Vec<Destination>),
    /// `slurm://N`: one on each of this many nodes of the allocation that this process is in, by `srun`.
    Slurm(NonZeroU32),
}

/// A host as `ssh` takes it: a name of its configuration or of the network, with or without user and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// `HOST` or `USER@HOST`.
    pub host: String,
    /// Where it is not what the configuration says.
    pub port: Option<u16>,
}

impl fmt::Display for Destination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) if self.host.contains(':') => match self.host.rsplit_once('@') {
                Some((user, host)) => write!(out, "{user}@[{host}]:{port}"),
                None => write!(out, "[{}]:{port}", self.host),
            },
            Some(port) => write!(out, "{}:{port}", self.host),
            None => out.write_str(&self.host),
        }
    }
}

impl fmt::Display for LaunchSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchSpec::Ssh(hosts) => {
                let hosts: Vec<_> = hosts.iter().map(Destination::to_string).collect();
                write!(out, "ssh://{}", hosts.join(","))
            }
            LaunchSpec::Slurm(nodes) => write!(out, "slurm://{nodes}"),
        }
    }
}

impl LaunchSpec {
    /// Whether a value of `--agents` is of this kind, right or wrong.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with("ssh://") || text.starts_with("slurm://")
    }

    /// Reads a value of `--agents`.
    ///
    /// # Errors
    /// A sentence that says what is accepted instead.
    pub fn parse(text: &str) -> Result<LaunchSpec, String> {
        if let Some(hosts) = text.strip_prefix("ssh://") {
            return hosts.split(',').map(destination).collect::<Result<_, _>>().map(LaunchSpec::Ssh);
        }
        let nodes = text.strip_prefix("slurm://").and_then(|nodes| nodes.parse().ok());
        nodes.map(LaunchSpec::Slurm).ok_or_else(|| {
            "expected ssh://HOST,... with hosts as for ssh, or slurm://N with a number of nodes".to_owned()
        })
    }
}

fn destination(text: &str) -> Result<Destination, String> {
    // Once, so that `ssh://a,ssh://b` is understood too.
    let text = text.strip_prefix("ssh://").unwrap_or(text);
    let (user, place) = text.rsplit_once('@').map_or((None, text), |(user, place)| (Some(user), place));
    let (host, port) = host_and_port(place).ok_or_else(|| {
        format!("'{text}' is not a host: expected [USER@]HOST[:PORT], with IPv6 addresses as [ADDRESS]:PORT")
    })?;
    // What begins with a dash would be an option to ssh, and white space would part a word in its configuration.
    let is_name = |name: &str| {
        !name.is_empty() && !name.starts_with('-') && !name.contains(|c: char| c.is_whitespace() || c == '/')
    };
    if !is_name(host) || user.is_some_and(|user| !is_name(user)) {
        return Err(format!("'{text}' is not a host: expected [USER@]HOST[:PORT], separated by commas"));
    }
    let host = user.map_or_else(|| host.to_owned(), |user| format!("{user}@{host}"));
    Ok(Destination { host, port })
}

fn host_and_port(place: &str) -> Option<(&str, Option<u16>)> {
    let number = |port: &str| port.parse().ok().filter(|port| *port != 0);
    if let Some(rest) = place.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        if after.is_empty() {
            return Some((host, None));
        }
        return Some((host, Some(number(after.strip_prefix(':')?)?)));
    }
    match place.split_once(':') {
        None => Some((place, None)),
        // An IPv6 address without brackets.
        Some((_, rest)) if rest.contains(':') => Some((place, None)),
        Some((host, port)) => Some((host, Some(number(port)?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh(hosts: &[(&str, Option<u16>)]) -> LaunchSpec {
        let of = |(host, port): &(&str, Option<u16>)| Destination { host: (*host).to_owned(), port: *port };
        LaunchSpec::Ssh(hosts.iter().map(of).collect())
    }

    #[test]
    fn hosts_are_taken_as_ssh_takes_them() {
        let table = [
            ("ssh://a", ssh(&[("a", None)])),
            ("ssh://a,root@b:2222", ssh(&[("a", None), ("root@b", Some(2222))])),
            ("ssh://a,ssh://b", ssh(&[("a", None), ("b", None)])),
            ("ssh://[::1]:22,fe80::1", ssh(&[("::1", Some(22)), ("fe80::1", None)])),
            ("ssh://me@corp@gate,me@[::1]:22", ssh(&[("me@corp@gate", None), ("me@::1", Some(22))])),
            ("slurm://12", LaunchSpec::Slurm(NonZeroU32::new(12).expect("not 0"))),
        ];
        for (text, spec) in table {
            assert_eq!(LaunchSpec::parse(text), Ok(spec), "{text}");
            assert!(LaunchSpec::is_meant(text));
        }
    }

    #[test]
    fn a_destination_is_named_as_it_was_given() {
        for text in ["a", "root@b:2222", "[::1]:22", "me@[::1]:22", "fe80::1"] {
            assert_eq!(destination(text).map(|to| to.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        let wrong = [
            "ssh://",
            "ssh://a,",
            "ssh://,a",
            "ssh://-oProxyCommand=x",
            "ssh://a:0",
            "ssh://a:b",
            "ssh://a b",
            "ssh://-l@a",
            "ssh://@a",
            "ssh://[::1",
            "ssh://[::1]22",
            "ssh://a/b",
            "slurm://",
            "slurm://0",
            "slurm://-1",
            "slurm://two",
            "slurm://4294967296",
            "kubernetes://2",
        ];
        for text in wrong {
            let said = LaunchSpec::parse(text).expect_err(text);
            assert!(said.contains("expected "), "{text}: {said}");
        }
        assert!(!LaunchSpec::is_meant("host:5556"));
        assert!(!LaunchSpec::is_meant("dns:///agents:5556"));
    }
}
