//! Networks of IP addresses, as `--allow-target` takes them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Addresses that begin with the same bits: `10.0.0.0/8`, `::1/128`, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

/// The error of a text that is no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotANetwork;

impl Network {
    /// The loopback networks.
    pub fn loopback() -> Vec<Network> {
        let networks = [
            Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8).into(),
            IpAddr::from(Ipv6Addr::LOCALHOST).into(),
        ];
        networks.map(Network).into()
    }

    /// Every address there is.
    pub fn any() -> Vec<Network> {
        [Ipv4Net::default().into(), Ipv6Net::default().into()].map(Network).into()
    }

    /// Whether the network contains an address. An IPv4 address in the form of IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Network, NotANetwork> {
        let one = || text.parse().map(|address: IpAddr| address.into());
        text.parse().or_else(|_| one()).map(Network).map_err(|_| NotANetwork)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(to)
    }
}

impl fmt::Display for NotANetwork {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("expected a network such as 10.0.0.0/8, fd00::/8 or 10.1.2.3")
    }
}

impl std::error::Error for NotANetwork {}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(network: &str, address: &str) -> bool {
        network.parse::<Network>().unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn networks_hold_the_addresses_with_their_bits() {
        assert!(contains("10.0.0.0/8", "10.255.0.1"));
        assert!(!contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("10.1.2.3", "10.1.2.3"));
        assert!(!contains("10.1.2.3", "10.1.2.2"));
        assert!(contains("0.0.0.0/0", "8.8.8.8"));
        assert!(!contains("0.0.0.0/0", "::1"));
        assert!(contains("::/0", "fe80::1"));
        assert!(contains("fd00::/8", "fdab::1"));
        assert!(contains("127.0.0.0/8", "::ffff:127.0.0.1"));
        assert!(!contains("::/0", "::ffff:8.8.8.8"), "an address of IPv4 is one in every form");
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in ["", "x", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/+8", "10.0.0/8", "/8"] {
            assert_eq!(text.parse::<Network>(), Err(NotANetwork), "{text}");
        }
    }
}
