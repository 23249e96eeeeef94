//! Nodes of a cluster: their names, and the numbers that stand for them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv6Addr;

use crate::protocol::lines;

/// Index of a node in the [`NodeTable`].
pub type NodeNumber = u16;

/// The owner of a slot that no node serves.
pub const UNOWNED: NodeNumber = NodeNumber::MAX;

/// Longest name of a host (RFC 1035, section 2.3.4).
pub const HOST_MAX_BYTES: usize = 255;

/// Host and port of a node, which are its identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName {
    /// Name or address of the host. An IPv6 address has no brackets.
    pub host: String,
    /// Port for clients.
    pub port: u16,
}

impl NodeName {
    /// Reads `host:port`, `[v6]:port`, or `v6:port`, in which the last colon stands before the port.
    pub fn parse(text: &str) -> Option<NodeName> {
        let (host, port) = split_port(text)?;
        let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        is_host(host).then(|| NodeName { host: host.to_owned(), port })
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(to, "[{}]:{}", self.host, self.port)
        } else {
            write!(to, "{}:{}", self.host, self.port)
        }
    }
}

/// Splits text at its last colon into a host, which may be anything, and a port from 1 to 65535.
pub(super) fn split_port(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let port = lines::whole_decimal(port.as_bytes()).and_then(|port| u16::try_from(port).ok())?;
    (port != 0).then_some((host, port))
}

/// Whether text can be a host: a name, an IPv4 address, or an IPv6 address without brackets, with or without a zone.
pub(super) fn is_host(text: &str) -> bool {
    if text.is_empty() || text.len() > HOST_MAX_BYTES {
        return false;
    }
    let (address, zone) = text.split_once('%').unwrap_or((text, "0"));
    let is_plain =
        |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    match text.contains(':') {
        true => address.parse::<Ipv6Addr>().is_ok() && !zone.is_empty() && is_plain(zone),
        false => is_plain(text),
    }
}

/// The nodes that a run has seen. The table only grows, so that a number stands for one node as long as the run lasts.
#[derive(Clone, Debug)]
pub struct NodeTable {
    names: Vec<NodeName>,
    numbers: BTreeMap<NodeName, NodeNumber>,
    limit: usize,
}

impl NodeTable {
    /// An empty table for this many nodes, at most 65,535.
    pub fn new(limit: usize) -> NodeTable {
        NodeTable { names: Vec::new(), numbers: BTreeMap::new(), limit: limit.min(usize::from(UNOWNED)) }
    }

    /// Finds the number of a node, or gives it the next one; `None` when the table is full.
    pub fn number_of(&mut self, name: &NodeName) -> Option<NodeNumber> {
        if let Some(number) = self.find(name) {
            return Some(number);
        }
        if self.names.len() >= self.limit {
            return None;
        }
        let number = self.names.len() as NodeNumber;
        self.names.push(name.clone());
        self.numbers.insert(name.clone(), number);
        Some(number)
    }

    /// A copy of the table that takes no more nodes.
    pub fn full(&self) -> NodeTable {
        NodeTable { limit: self.names.len(), ..self.clone() }
    }

    /// The number of a node that is in the table.
    pub fn find(&self, name: &NodeName) -> Option<NodeNumber> {
        self.numbers.get(name).copied()
    }

    /// The name of a node.
    ///
    /// # Panics
    /// Panics for a number that this table has not given.
    pub fn name(&self, number: NodeNumber) -> &NodeName {
        &self.names[usize::from(number)]
    }

    /// Number of nodes in the table.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether the table has no node.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(host: &str, port: u16) -> NodeName {
        NodeName { host: host.to_owned(), port }
    }

    #[test]
    fn names_are_read_and_written() {
        for (text, host, written) in [
            ("127.0.0.1:7101", "127.0.0.1", "127.0.0.1:7101"),
            ("node-1.example_net:7101", "node-1.example_net", "node-1.example_net:7101"),
            ("[::1]:7101", "::1", "[::1]:7101"),
            ("::1:7101", "::1", "[::1]:7101"),
            ("2001:db8::7:7101", "2001:db8::7", "[2001:db8::7]:7101"),
            ("[fe80::1%eth0]:7101", "fe80::1%eth0", "[fe80::1%eth0]:7101"),
        ] {
            let node = NodeName::parse(text);
            assert_eq!(node, Some(name(host, 7101)), "{text}");
            let node = node.unwrap();
            assert_eq!(node.to_string(), written);
            assert_eq!(NodeName::parse(written), Some(node));
        }
    }

    #[test]
    fn text_that_names_no_node_is_none() {
        let long = format!("{}:1", "x".repeat(256));
        for text in [
            "", ":", "a", "a:", ":7101", "a:0", "a:65536", "a:+1", "a:-1", "a:1 ", "a b:1", "?:1", "a:b:1",
            "[::1]", "[]:1", "[::1:1", "::1]:1", "%:1", "::1%:1", "a%eth0:1", "ä:1", "a\0:1", &long,
        ] {
            assert_eq!(NodeName::parse(text), None, "{text:?}");
        }
        assert!(NodeName::parse(&long[1..]).is_some(), "255 bytes are a host");
    }

    #[test]
    fn a_node_keeps_its_number_and_a_full_table_takes_no_more() {
        let mut table = NodeTable::new(2);
        assert!(table.is_empty());
        let (a, b, c) = (name("a", 1), name("a", 2), name("b", 1));
        assert_eq!(table.find(&a), None);
        assert_eq!(
            [&a, &b, &a, &c, &b].map(|name| table.number_of(name)),
            [Some(0), Some(1), Some(0), None, Some(1)]
        );
        assert_eq!((table.len(), table.find(&b), table.find(&c)), (2, Some(1), None));
        assert_eq!((table.name(0), table.name(1)), (&a, &b));
        let mut full = NodeTable::new(9).full();
        assert_eq!((full.number_of(&a), full.len()), (None, 0));
    }

    #[test]
    fn no_node_has_the_number_of_unowned_slots() {
        let mut table = NodeTable::new(usize::MAX);
        let numbers = (1..=u16::MAX).map(|port| table.number_of(&name("a", port)));
        assert_eq!(numbers.last(), Some(Some(UNOWNED - 1)));
        assert_eq!(table.number_of(&name("b", 1)), None);
    }
}
