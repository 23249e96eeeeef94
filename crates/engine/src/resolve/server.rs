//! The resolved servers of a Plan, and the addresses to connect from.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use pummel_logic::plan::Transport;

use crate::backend::Target;
use crate::resolve::error::ConnectError;
use crate::sys::{self, Address};

/// The addresses to connect from. The connections of each server use them in turn; without any, the kernel chooses
/// one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    addresses: Vec<IpAddr>,
}

impl Sources {
    /// Parses the source addresses of a Plan.
    ///
    /// # Errors
    /// Returns [`ConnectError::SourceForm`] for the first text that is not an IP address.
    pub fn parse(texts: &[String]) -> Result<Sources, ConnectError> {
        let parse = |text: &String| text.parse().map_err(|_| ConnectError::SourceForm(text.clone()));
        Ok(Sources { addresses: texts.iter().map(parse).collect::<Result<_, _>>()? })
    }

    /// Whether a source has the same address family as `address`; true without sources.
    fn reaches(&self, address: &SocketAddr) -> bool {
        self.addresses.is_empty() || self.of_kind(address).next().is_some()
    }

    fn of_kind(&self, address: &SocketAddr) -> impl Iterator<Item = IpAddr> {
        let v4 = address.is_ipv4();
        self.addresses.iter().copied().filter(move |source| source.is_ipv4() == v4)
    }

    /// The source for the connection with index `rank` among those of a server, to this `address`; `None` without
    /// sources. Port 0 leaves the port to the kernel.
    fn pick(&self, rank: u64, address: &SocketAddr) -> Option<SocketAddr> {
        let count = self.of_kind(address).count() as u64;
        let index = rank.checked_rem(count)?;
        self.of_kind(address).nth(index as usize).map(|source| SocketAddr::new(source, 0))
    }
}

/// A server of the Plan with its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    name: String,
    address: ServerAddress,
    sources: Sources,
    loading: Transport,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ServerAddress {
    /// Addresses for TCP and UDP, at least one.
    Tcp(Vec<SocketAddr>),
    Unix(PathBuf),
    /// Name and addresses of a node that has joined its cluster, once it has.
    Joined(Arc<OnceLock<(String, Vec<SocketAddr>)>>),
}

impl Server {
    /// Resolves the name of a server in the Plan. A host name is resolved once; the call takes as long as the name
    /// service of the system needs. Addresses of a family without a source are left out.
    ///
    /// # Errors
    /// Returns [`ConnectError::ServerForm`] for a name that is neither HOST:PORT nor a path,
    /// [`ConnectError::SocketPath`] for a path that is too long or otherwise no path of a unix socket,
    /// [`ConnectError::Unresolved`] when the name service finds no address, and [`ConnectError::SourceKind`] when no
    /// address has the family of a source.
    pub fn resolve(name: &str, sources: &Sources) -> Result<Server, ConnectError> {
        let server = || name.to_string();
        let address = if name.starts_with('/') {
            Address::unix(Path::new(name)).map_err(|_| ConnectError::SocketPath(server()))?;
            ServerAddress::Unix(PathBuf::from(name))
        } else {
            let (host, port) = split(name).ok_or_else(|| ConnectError::ServerForm(server()))?;
            let found = (host, port)
                .to_socket_addrs()
                .map_err(|error| ConnectError::Unresolved { server: server(), error })?;
            let mut addresses: Vec<SocketAddr> = Vec::new();
            for address in found {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            if addresses.is_empty() {
                let error = io::Error::new(io::ErrorKind::NotFound, "it has no address");
                return Err(ConnectError::Unresolved { server: server(), error });
            }
            addresses.retain(|address| sources.reaches(address));
            if addresses.is_empty() {
                return Err(ConnectError::SourceKind(server()));
            }
            ServerAddress::Tcp(addresses)
        };
        Ok(Server { name: server(), address, sources: sources.clone(), loading: Transport::Stream })
    }

    /// A place for a node that may join the cluster: nothing is known of it until [`Server::join`].
    pub fn vacant(sources: &Sources) -> Server {
        let address = ServerAddress::Joined(Arc::default());
        Server { name: String::new(), address, sources: sources.clone(), loading: Transport::Stream }
    }

    /// Gives the vacant place to the node of this name, for all copies of the server. Returns false where the place is taken, and
    /// where the name has no address that can be reached and that `permits` returns true for.
    pub fn join(&self, name: &str, permits: &dyn Fn(IpAddr) -> bool) -> bool {
        let ServerAddress::Joined(place) = &self.address else { return false };
        let Ok(found) = Server::resolve(name, &self.sources) else { return false };
        match found.address {
            ServerAddress::Tcp(addresses) if addresses.iter().all(|address| permits(address.ip())) => {
                place.set((name.to_owned(), addresses)).is_ok()
            }
            _ => false,
        }
    }

    /// Returns the server with this transport for loading records.
    pub fn loaded_by(self, loading: Transport) -> Server {
        Server { loading, ..self }
    }

    /// The transport over which records are loaded.
    pub fn loading(&self) -> Transport {
        self.loading
    }

    /// The server's name in the Plan, or that of the node that has joined; empty for a vacant place.
    pub fn name(&self) -> &str {
        match &self.address {
            ServerAddress::Joined(place) => place.get().map_or("", |(name, _)| name),
            ServerAddress::Tcp(_) | ServerAddress::Unix(_) => &self.name,
        }
    }

    /// The host in the server's name, without brackets; `None` for a unix socket.
    pub fn host(&self) -> Option<&str> {
        split(self.name()).map(|(host, _)| host).filter(|_| !self.is_unix())
    }

    /// The path of the server's unix socket; `None` for other servers.
    pub fn unix_path(&self) -> Option<&Path> {
        match &self.address {
            ServerAddress::Tcp(_) | ServerAddress::Joined(_) => None,
            ServerAddress::Unix(path) => Some(path),
        }
    }

    /// Whether the server is reached by a unix socket. The kernel has no receive stamps for these.
    pub fn is_unix(&self) -> bool {
        self.unix_path().is_some()
    }

    /// Whether the server is on this machine: all its resolved addresses are loopback addresses or addresses of this
    /// machine, or it has a unix socket. The server's name is ignored. A vacant place is nowhere.
    pub fn is_local(&self) -> bool {
        let addresses = self.socket_addresses();
        (self.is_unix() || !addresses.is_empty())
            && addresses.iter().all(|address| sys::is_own_address(address.ip()))
    }

    /// Checks that `allows` returns true for all addresses of the server. A unix socket counts as 127.0.0.1.
    ///
    /// # Errors
    /// Returns the first address that is not allowed; `None` for a unix socket when 127.0.0.1 is not allowed.
    pub fn permitted(&self, allows: impl Fn(IpAddr) -> bool) -> Result<(), Option<IpAddr>> {
        match &self.address {
            ServerAddress::Unix(_) if allows(Ipv4Addr::LOCALHOST.into()) => Ok(()),
            ServerAddress::Unix(_) => Err(None),
            ServerAddress::Tcp(_) | ServerAddress::Joined(_) => {
                let refused =
                    self.socket_addresses().iter().map(|address| address.ip()).find(|ip| !allows(*ip));
                refused.map_or(Ok(()), |ip| Err(Some(ip)))
            }
        }
    }

    /// The addresses for TCP and UDP, in the order in which they are tried; empty for a unix socket.
    pub fn socket_addresses(&self) -> &[SocketAddr] {
        match &self.address {
            ServerAddress::Tcp(addresses) => addresses,
            ServerAddress::Unix(_) => &[],
            ServerAddress::Joined(place) => place.get().map_or(&[], |(_, addresses)| addresses),
        }
    }

    /// Number of addresses to try. A server cannot be reached if this many attempts in a row were refused.
    pub fn addresses(&self) -> usize {
        self.socket_addresses().len().max(1)
    }

    /// The target of attempt number `attempt` of the server's connection with index `rank`, over this transport.
    pub fn target_over(&self, transport: Transport, rank: u64, attempt: usize) -> Target {
        match (transport, self.target(rank, attempt)) {
            (Transport::Udp, Target::Tcp { address, source }) => Target::Udp { address, source },
            (_, target) => target,
        }
    }

    /// The target of attempt number `attempt` of the server's connection with index `rank`. Attempts take the
    /// addresses in turn: a caller begins with 0, adds 1 after a refusal, and keeps a number that worked. The
    /// connections take the sources in turn.
    ///
    /// # Panics
    /// Panics for a vacant place.
    pub fn target(&self, rank: u64, attempt: usize) -> Target {
        match &self.address {
            ServerAddress::Tcp(_) | ServerAddress::Joined(_) => {
                let addresses = self.socket_addresses();
                let address = addresses[attempt % addresses.len()];
                Target::Tcp { address, source: self.sources.pick(rank, &address) }
            }
            ServerAddress::Unix(path) => Target::Unix(path.clone()),
        }
    }
}

/// Splits `host:port` and `[v6]:port`; `None` for other forms. An IPv6 address without brackets is refused, because
/// its last group could be a port.
fn split(name: &str) -> Option<(&str, u16)> {
    let (host, port) = name.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').filter(|v6| v6.contains(':'))?,
        None if host.contains([':', ']']) => return None,
        None => host,
    };
    let digits_only = port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|&port| port != 0 && digits_only)?;
    (!host.is_empty()).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn without_source(name: &str) -> Result<Server, ConnectError> {
        Server::resolve(name, &Sources::default())
    }

    fn sources(texts: &[&str]) -> Sources {
        Sources::parse(&texts.iter().map(|text| text.to_string()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn every_form_of_a_server_leads_to_its_target() {
        for (name, target) in [
            ("127.0.0.1:11211", Target::Tcp { address: address("127.0.0.1:11211"), source: None }),
            ("[::1]:1", Target::Tcp { address: address("[::1]:1"), source: None }),
            ("/run/memcached.sock", Target::Unix("/run/memcached.sock".into())),
        ] {
            let server = without_source(name).unwrap();
            assert_eq!(server.target(0, 0), target);
            assert_eq!(server.name(), name);
            assert_eq!(server.addresses(), 1);
        }
    }

    #[test]
    fn other_forms_are_refused_with_what_is_accepted() {
        for name in
            ["", "localhost", ":11211", "host:", "host:0", "host:65536", "host:+80", "::1:11211", "[::1]"]
        {
            let error = without_source(name).unwrap_err();
            assert!(matches!(error, ConnectError::ServerForm(_)), "{name}: {error}");
            assert!(error.to_string().contains("HOST:PORT"));
        }
        for name in ["[host]:80", "[::1:80", "::1]:80", "[]:80"] {
            assert!(matches!(without_source(name), Err(ConnectError::ServerForm(_))), "{name}");
        }
    }

    #[test]
    fn a_path_that_is_too_long_for_a_socket_is_refused() {
        let name = format!("/{}", "x".repeat(200));
        assert!(matches!(without_source(&name), Err(ConnectError::SocketPath(_))));
    }

    #[test]
    fn addresses_of_a_name_are_tried_in_turn() {
        let addresses = vec![address("[::1]:7"), address("127.0.0.1:7")];
        let server = Server {
            name: "localhost:7".to_string(),
            address: ServerAddress::Tcp(addresses.clone()),
            sources: Sources::default(),
            loading: Transport::Stream,
        };
        for attempt in 0..4 {
            let expected = Target::Tcp { address: addresses[attempt % 2], source: None };
            assert_eq!(server.target(5, attempt), expected);
        }
    }

    #[test]
    fn a_server_is_local_by_its_address_and_not_by_its_name() {
        let server = |name: &str, addresses: &[&str]| Server {
            name: name.to_owned(),
            address: ServerAddress::Tcp(addresses.iter().map(|text| address(text)).collect()),
            sources: Sources::default(),
            loading: Transport::Stream,
        };
        // The addresses of documents belong to no machine.
        assert!(!server("127.x.example:7", &["192.0.2.1:7"]).is_local());
        assert!(!server("localhost:7", &["192.0.2.1:7"]).is_local());
        assert!(server("cache.example:7", &["127.0.0.5:7"]).is_local());
        assert!(!server("cache.example:7", &["127.0.0.5:7", "192.0.2.1:7"]).is_local());
        assert!(without_source("localhost:7").unwrap().is_local());
        assert!(without_source("/run/memcached.sock").unwrap().is_local());
        // Connecting a socket of UDP sends nothing, and finds the address of the card, if the machine has one.
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        if socket.connect("192.0.2.1:7").is_ok() {
            let own = socket.local_addr().unwrap().ip();
            assert!(without_source(&format!("{own}:7")).unwrap().is_local(), "{own}");
        }
    }

    #[test]
    fn the_connections_of_a_server_take_the_sources_in_turn() {
        let sources = sources(&["127.0.0.1", "::1", "127.0.0.2"]);
        let server = Server::resolve("127.0.0.1:7", &sources).unwrap();
        let source_of = |rank| match server.target(rank, 0) {
            Target::Tcp { source, .. } => source.unwrap().to_string(),
            other => unreachable!("the server is at an internet address: {other:?}"),
        };
        assert_eq!([0, 1, 2].map(source_of), ["127.0.0.1:0", "127.0.0.2:0", "127.0.0.1:0"]);
    }

    #[test]
    fn a_source_of_the_other_kind_is_refused() {
        let error = Server::resolve("127.0.0.1:7", &sources(&["::1"])).unwrap_err();
        assert!(matches!(error, ConnectError::SourceKind(_)));
        assert!(Sources::parse(&["eth0".to_string()]).unwrap_err().to_string().contains("\"eth0\""));
    }
}
