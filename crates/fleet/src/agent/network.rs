//! Networks of IP addresses, as `--allow-target` takes them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Addresses that begin with the same bits: `10.0.0.0/8`, `::1/128`, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// The error of a text that is no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotANetwork;

impl Network {
    /// The loopback networks.
    pub fn loopback() -> Vec<Network> {
        vec![
            Network { address: IpAddr::from([127, 0, 0, 0]), bits: 8 },
            Network { address: IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]), bits: 128 },
        ]
    }

    /// Every address there is.
    pub fn any() -> Vec<Network> {
        vec![
            Network { address: IpAddr::from([0; 4]), bits: 0 },
            Network { address: IpAddr::from([0u16; 8]), bits: 0 },
        ]
    }

    /// Whether the network contains an address. An IPv4 address in the form of IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.bits);
                (u32::from(network) ^ u32::from(address)).checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.bits);
                (u128::from(network) ^ u128::from(address)).checked_shr(shift).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Network, NotANetwork> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NotANetwork)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().ok().filter(|bits| *bits <= most).ok_or(NotANetwork)?
            }
            Some(_) => return Err(NotANetwork),
        };
        Ok(Network { address, bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}/{}", self.address, self.bits)
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
