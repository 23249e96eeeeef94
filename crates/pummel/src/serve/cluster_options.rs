//! The options of `serve` that make it a cluster of several nodes, and change that cluster with time.

use std::net::{IpAddr, SocketAddr};

use clap::{Args, ValueEnum};
use pummel_fronts::values::{ValueError, count_within, time};
use pummel_logic::client::route::crc16::SLOTS;
use pummel_logic::time::{Nanos, seconds};
use pummel_testserver::{CLUSTER_NODES_MAX, ClusterConfig, ClusterFault, Endpoint, NodeAddress};

use super::listen::Listen;

/// The host name of nodes that listen at an address without one.
const HOST_NAME: &str = "localhost";

/// A cluster of several nodes, and its changes with time.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// Be a Redis cluster of N nodes in this one process: each listens at a port of its own, from that of --listen on (port 0: at
    /// free ones), and has its own items, 64 MiB at most. Slots are dealt out as by redis-cli --cluster create
    #[arg(long, value_name = "N", value_parser = nodes, conflicts_with_all = ["udp_framing", "peer"], allow_hyphen_values = true)]
    pub cluster: Option<usize>,

    /// Give each node N replicas, which answer reads after READONLY and everything else with MOVED. They listen behind the masters,
    /// first one of each
    #[arg(long, value_name = "N", value_parser = replicas, requires = "cluster", allow_hyphen_values = true)]
    pub replicas: Option<usize>,

    /// At this time after the start slot SLOT begins to move to the next node, key by key: ASK for absent keys, TRYAGAIN for keys
    /// on both sides; a second later it has moved, and MOVED. May be repeated
    #[arg(long, value_name = "SLOT@TIME", value_parser = migration, requires = "cluster", allow_hyphen_values = true)]
    pub migrate: Vec<ClusterFault>,

    /// At this time after the start node N, counted from 1, gives its slots and its items to its first replica, whose replica it
    /// becomes, or without one to the next node, and answers MOVED. May be repeated
    #[arg(long, value_name = "N@TIME", value_parser = demotion, requires = "cluster", allow_hyphen_values = true)]
    pub demote: Vec<ClusterFault>,

    /// At this time after the start node N, counted from 1, closes its port and its connections. A second later its first replica,
    /// or without one the next node, has its slots and its items; until then the others answer MOVED to the dead node. May be
    /// repeated
    #[arg(long, value_name = "N@TIME", value_parser = death, requires = "cluster", allow_hyphen_values = true)]
    pub kill: Vec<ClusterFault>,

    /// Between these times after the start all nodes answer CLUSTERDOWN to commands with keys. May be repeated
    #[arg(long, value_name = "TIME..TIME", value_parser = down, requires = "cluster", allow_hyphen_values = true)]
    pub clusterdown: Vec<ClusterFault>,

    /// How CLUSTER SLOTS, MOVED and ASK name the nodes
    #[arg(long, value_enum, value_name = "FORM", default_value = "ip", requires = "cluster")]
    pub endpoint: EndpointForm,
}

/// How the nodes of a cluster are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EndpointForm {
    /// By their addresses
    #[default]
    Ip,
    /// By the host name of --listen, or else localhost
    Name,
    /// By a question mark, as where the host name is not set
    #[value(name = "?")]
    Unset,
    /// By an empty word, which means the host that was asked
    Empty,
    /// By null, which means the same
    Null,
}

/// A number of nodes.
fn nodes(text: &str) -> Result<usize, ValueError> {
    let accepted = || ValueError(format!("expected a number of nodes from 1 to {CLUSTER_NODES_MAX}"));
    count_within(text, 1, CLUSTER_NODES_MAX.into()).map(|nodes| nodes as usize).map_err(|_| accepted())
}

/// A number of replicas of each master.
fn replicas(text: &str) -> Result<usize, ValueError> {
    let most = CLUSTER_NODES_MAX - 1;
    let accepted = || ValueError(format!("expected a number of replicas of each node from 0 to {most}"));
    count_within(text, 0, most.into()).map(|replicas| replicas as usize).map_err(|_| accepted())
}

/// A number up to `most` and a time, joined by an at sign.
fn number_and_time(text: &str, least: u64, most: u64) -> Option<(u64, Nanos)> {
    let (number, at) = text.split_once('@')?;
    Some((count_within(number, least, most).ok()?, time(at).ok()?))
}

/// A migration, `SLOT@TIME`.
fn migration(text: &str) -> Result<ClusterFault, ValueError> {
    let accepted = || ValueError("expected a slot from 0 to 16383 and a time, such as 866@2s".to_owned());
    let (slot, at_ns) = number_and_time(text, 0, SLOTS as u64 - 1).ok_or_else(accepted)?;
    Ok(ClusterFault::Migrate { slot: slot as u16, at_ns })
}

/// The demotion of a node, `N@TIME`.
fn demotion(text: &str) -> Result<ClusterFault, ValueError> {
    node_and_time(text).map(|(node, at_ns)| ClusterFault::Demote { node, at_ns })
}

/// The death of a node, `N@TIME`.
fn death(text: &str) -> Result<ClusterFault, ValueError> {
    node_and_time(text).map(|(node, at_ns)| ClusterFault::Kill { node, at_ns })
}

fn node_and_time(text: &str) -> Result<(usize, Nanos), ValueError> {
    let accepted = || ValueError("expected a node, counted from 1, and a time, such as 1@2s".to_owned());
    let (node, at_ns) = number_and_time(text, 1, CLUSTER_NODES_MAX.into()).ok_or_else(accepted)?;
    Ok((node as usize - 1, at_ns))
}

/// A span of time in which the cluster is down, `TIME..TIME`.
fn down(text: &str) -> Result<ClusterFault, ValueError> {
    let span = text.split_once("..").and_then(|(from, until)| Some((time(from).ok()?, time(until).ok()?)));
    let accepted = || ValueError("expected two times, the later one last, such as 2s..3s".to_owned());
    let (from_ns, until_ns) = span.filter(|(from, until)| from < until).ok_or_else(accepted)?;
    Ok(ClusterFault::Down { from_ns, until_ns })
}

impl ClusterArgs {
    /// Number of nodes with all replicas; `None` where there is to be no cluster.
    pub(super) fn nodes(&self) -> Option<usize> {
        Some(self.cluster? * (1 + self.replicas.unwrap_or(0)))
    }

    /// Why these options cannot be followed together: the option, its value, and what is accepted.
    pub(super) fn refusal(&self, listen: &[Listen]) -> Option<(&'static str, String, &'static str)> {
        let nodes = self.nodes()?;
        if nodes > CLUSTER_NODES_MAX as usize {
            let accepted = "expected at most 64 nodes with all replicas";
            return Some(("--replicas", self.replicas.unwrap_or(0).to_string(), accepted));
        }
        match listen {
            [Listen::Tcp(address)] if last_port(address, nodes).is_some() => {}
            [Listen::Tcp(address)] => {
                let accepted =
                    "with --cluster expected a port that those of the other nodes follow, or port 0";
                return Some(("--listen", address.clone(), accepted));
            }
            _ => {
                let listen: Vec<String> = listen.iter().map(Listen::to_string).collect();
                let accepted = "with --cluster expected one ADDRESS:PORT, the first node's";
                return Some(("--listen", listen.join(" "), accepted));
            }
        }
        let accepted = "expected at least 2 nodes, one of which takes the slots";
        let changes = [&self.migrate, &self.demote, &self.kill];
        if nodes == 1 && changes.iter().any(|faults| !faults.is_empty()) {
            return Some(("--cluster", nodes.to_string(), accepted));
        }
        let accepted = "expected a node of the cluster, counted from 1, and a time";
        self.demote.iter().chain(&self.kill).find_map(|fault| match *fault {
            ClusterFault::Demote { node, at_ns } if node >= nodes => {
                Some(("--demote", format!("{}@{}s", node + 1, seconds(at_ns)), accepted))
            }
            ClusterFault::Kill { node, at_ns } if node >= nodes => {
                Some(("--kill", format!("{}@{}s", node + 1, seconds(at_ns)), accepted))
            }
            _ => None,
        })
    }

    /// Where each node listens.
    pub(super) fn places(&self, nodes: usize, listen: &Listen) -> Vec<Listen> {
        let Listen::Tcp(address) = listen else { return vec![listen.clone()] };
        let Some((host, port)) = host_and_port(address) else { return vec![listen.clone()] };
        let ports = (0..nodes as u16).map(|node| if port == 0 { 0 } else { port.saturating_add(node) });
        ports.map(|port| Listen::Tcp(format!("{host}:{port}"))).collect()
    }

    /// The cluster whose nodes listen at these addresses; `listen` is the address that was asked for.
    pub(super) fn config(&self, listen: &Listen, addresses: &[SocketAddr]) -> ClusterConfig {
        let address =
            |address: &SocketAddr| NodeAddress { ip: address.ip().to_string(), port: address.port() };
        let faults = [&self.migrate, &self.demote, &self.kill, &self.clusterdown];
        ClusterConfig {
            nodes: addresses.iter().map(address).collect(),
            masters: self.cluster.unwrap_or(addresses.len()),
            endpoint: match self.endpoint {
                EndpointForm::Ip => Endpoint::Ip,
                EndpointForm::Name => Endpoint::Name(host_name(listen)),
                EndpointForm::Unset => Endpoint::Unset,
                EndpointForm::Empty => Endpoint::Empty,
                EndpointForm::Null => Endpoint::Null,
            },
            faults: faults.into_iter().flatten().copied().collect(),
        }
    }
}

fn host_and_port(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    Some((host, port.parse().ok()?))
}

/// The port of the last of these nodes, the first of which listens at `address`.
fn last_port(address: &str, nodes: usize) -> Option<u16> {
    match host_and_port(address)? {
        (_, 0) => Some(0),
        (_, port) => port.checked_add(nodes as u16 - 1),
    }
}

/// The host of the address, where it is a name.
fn host_name(listen: &Listen) -> String {
    let text = listen.to_string();
    let host = host_and_port(&text).map_or(HOST_NAME, |(host, _)| host);
    let is_name = !host.starts_with('[') && host.parse::<IpAddr>().is_err();
    if is_name { host.to_owned() } else { HOST_NAME.to_owned() }
}

#[cfg(test)]
mod tests {
    use pummel_logic::time::{MILLISECOND, SECOND};

    use super::*;

    #[test]
    fn changes_have_numbers_and_times() {
        assert_eq!(migration("866@2"), Ok(ClusterFault::Migrate { slot: 866, at_ns: 2 * SECOND }));
        assert_eq!(migration("16383@0"), Ok(ClusterFault::Migrate { slot: 16_383, at_ns: 0 }));
        assert_eq!(demotion("1@250ms"), Ok(ClusterFault::Demote { node: 0, at_ns: 250 * MILLISECOND }));
        assert_eq!(death("64@1s"), Ok(ClusterFault::Kill { node: 63, at_ns: SECOND }));
        let span = ClusterFault::Down { from_ns: SECOND, until_ns: 1_500 * MILLISECOND };
        assert_eq!(down("1s..1.5s"), Ok(span));
        for text in ["", "@", "1", "1@", "@1s", "16384@1s", "-1@1s", "1@-1s", "1@1s@1s", "1@soon"] {
            assert!(migration(text).is_err_and(|error| error.to_string().contains("866@2s")), "{text}");
        }
        for text in ["", "0@1s", "65@1s", "1", "1@x"] {
            assert!(demotion(text).is_err() && death(text).is_err(), "{text}");
        }
        for text in ["", "..", "1s", "1s..", "..1s", "2s..1s", "1s..1s", "1s..2s..3s"] {
            assert!(down(text).is_err_and(|error| error.to_string().contains("2s..3s")), "{text}");
        }
        assert_eq!(
            ["1", "64", "0", "65", "x"].map(|text| nodes(text).ok()),
            [Some(1), Some(64), None, None, None]
        );
    }

    fn listen(text: &str) -> Listen {
        text.parse().expect("it is a place")
    }

    #[test]
    fn nodes_listen_at_neighbouring_ports_or_at_free_ones() {
        let args = ClusterArgs { cluster: Some(3), ..ClusterArgs::default() };
        for (first, all) in [
            ("127.0.0.1:7000", ["127.0.0.1:7000", "127.0.0.1:7001", "127.0.0.1:7002"]),
            ("[::1]:0", ["[::1]:0", "[::1]:0", "[::1]:0"]),
        ] {
            assert_eq!(args.places(3, &listen(first)), all.map(listen));
        }
    }

    #[test]
    fn places_and_nodes_that_no_cluster_can_have_are_refused() {
        let args = |cluster| ClusterArgs { cluster, ..ClusterArgs::default() };
        let flag = |args: &ClusterArgs, places: &[&str]| {
            let places: Vec<Listen> = places.iter().map(|place| listen(place)).collect();
            args.refusal(&places).map(|(flag, ..)| flag)
        };
        assert_eq!(flag(&args(None), &["/tmp/a", "/tmp/b"]), None);
        assert_eq!(flag(&args(Some(3)), &["127.0.0.1:65533"]), None);
        assert_eq!(flag(&args(Some(3)), &["127.0.0.1:65534"]), Some("--listen"));
        assert_eq!(flag(&args(Some(3)), &["/tmp/a"]), Some("--listen"));
        assert_eq!(flag(&args(Some(3)), &["127.0.0.1:0", "127.0.0.1:0"]), Some("--listen"));
        let kill =
            |cluster, text| ClusterArgs { kill: vec![death(text).expect("it is one")], ..args(cluster) };
        assert_eq!(flag(&kill(Some(1), "1@1s"), &["127.0.0.1:0"]), Some("--cluster"));
        assert_eq!(flag(&kill(Some(3), "3@1s"), &["127.0.0.1:0"]), None);
        assert_eq!(flag(&kill(Some(3), "4@1s"), &["127.0.0.1:0"]), Some("--kill"));
        let demote = ClusterArgs { demote: vec![demotion("4@1s").expect("it is one")], ..args(Some(3)) };
        assert_eq!(flag(&demote, &["127.0.0.1:0"]), Some("--demote"));
    }

    #[test]
    fn nodes_are_named_by_the_host_that_was_typed_or_else_localhost() {
        for (typed, name) in
            [("node.example:0", "node.example"), ("127.0.0.1:0", "localhost"), ("[::1]:7000", "localhost")]
        {
            assert_eq!(host_name(&listen(typed)), name);
        }
    }
}
