//! Errors by which a node of a cluster sends a request elsewhere, or asks for it again later.

use super::nodes::{self, NodeName};
use crate::client::route::crc16::SLOTS;
use crate::protocol::lines;

/// An error reply after which a client of a cluster does not simply fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// Another node serves the slot from now on.
    Moved {
        /// The slot of the request.
        slot: u16,
        /// The node that serves the slot; `None` where the server does not know its host.
        node: Option<NodeName>,
    },
    /// Another node may have the key, because its slot is on the way there. The request follows `ASKING`.
    Ask {
        /// The slot of the request.
        slot: u16,
        /// The node that the slot moves to; `None` where the server does not know its host.
        node: Option<NodeName>,
    },
    /// The keys of the request are on both sides of a migration.
    TryAgain,
    /// The cluster is down, or no node serves the slot.
    ClusterDown,
    /// The master of the replica that was asked is down.
    MasterDown,
    /// The server loads its data.
    Loading,
    /// The node that was asked to write is a replica.
    ReadOnly,
    /// The keys of the request belong to several slots, which is the fault of the request.
    CrossSlot,
}

/// Reads the message of an error, as it comes behind the `-` of its line. `asked` is the node that sent it, whose host is meant
/// where the message leaves the host out. `None`: the error is none of a cluster, or is not of its form.
pub fn read_redirect(message: &[u8], asked: &NodeName) -> Option<Redirect> {
    let end = message.iter().position(|&byte| byte == b' ').unwrap_or(message.len());
    let (word, rest) = message.split_at(end);
    match word {
        b"MOVED" => place(rest, asked).map(|(slot, node)| Redirect::Moved { slot, node }),
        b"ASK" => place(rest, asked).map(|(slot, node)| Redirect::Ask { slot, node }),
        b"TRYAGAIN" => Some(Redirect::TryAgain),
        b"CLUSTERDOWN" => Some(Redirect::ClusterDown),
        b"MASTERDOWN" => Some(Redirect::MasterDown),
        b"LOADING" => Some(Redirect::Loading),
        b"READONLY" => Some(Redirect::ReadOnly),
        b"CROSSSLOT" => Some(Redirect::CrossSlot),
        _ => None,
    }
}

/// Reads ` 3999 127.0.0.1:6381`: a slot and the node for it.
fn place(text: &[u8], asked: &NodeName) -> Option<(u16, Option<NodeName>)> {
    let (slot, endpoint) = std::str::from_utf8(text).ok()?.strip_prefix(' ')?.split_once(' ')?;
    let slot = lines::whole_decimal(slot.as_bytes()).filter(|&slot| slot < SLOTS as u64)? as u16;
    let node = match nodes::split_port(endpoint)? {
        ("?", _) => None,
        ("", port) => Some(NodeName { host: asked.host.clone(), port }),
        _ => Some(NodeName::parse(endpoint)?),
    };
    Some((slot, node))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &str) -> Option<Redirect> {
        read_redirect(message.as_bytes(), &NodeName { host: "10.0.0.9".to_owned(), port: 7109 })
    }

    fn node(host: &str, port: u16) -> Option<NodeName> {
        Some(NodeName { host: host.to_owned(), port })
    }

    #[test]
    fn a_slot_and_its_node_are_read() {
        for (words, slot, node) in [
            ("12182 127.0.0.1:7103", 12_182, node("127.0.0.1", 7103)),
            ("0 node7101.local:7101", 0, node("node7101.local", 7101)),
            ("16383 2001:db8::7:7101", 16_383, node("2001:db8::7", 7101)),
            ("1 [::1]:7101", 1, node("::1", 7101)),
            ("3300 :7101", 3_300, node("10.0.0.9", 7101)),
            ("3300 ?:7101", 3_300, None),
        ] {
            assert_eq!(
                read(&format!("MOVED {words}")),
                Some(Redirect::Moved { slot, node: node.clone() }),
                "{words}"
            );
            assert_eq!(read(&format!("ASK {words}")), Some(Redirect::Ask { slot, node }), "{words}");
        }
    }

    #[test]
    fn other_errors_of_a_cluster_are_known_by_their_first_word() {
        for (message, expected) in [
            ("TRYAGAIN Multiple keys request during rehashing of slot", Redirect::TryAgain),
            ("CLUSTERDOWN The cluster is down", Redirect::ClusterDown),
            ("CLUSTERDOWN Hash slot not served", Redirect::ClusterDown),
            ("CLUSTERDOWN", Redirect::ClusterDown),
            (
                "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
                Redirect::MasterDown,
            ),
            ("LOADING Redis is loading the dataset in memory", Redirect::Loading),
            ("READONLY You can't write against a read only replica.", Redirect::ReadOnly),
            ("CROSSSLOT Keys in request don't hash to the same slot", Redirect::CrossSlot),
        ] {
            assert_eq!(read(message), Some(expected), "{message}");
        }
    }

    #[test]
    fn other_errors_and_halves_of_lines_are_none() {
        for message in [
            "",
            " ",
            "ERR unknown command",
            "CLUSTERDOWNS",
            "-MOVED 1 a:1",
            "moved 1 a:1",
            "MOVED",
            "MOVED ",
            "MOVED 1",
            "MOVED 1 ",
            "MOVED 1 a",
            "MOVED 1 a:",
            "MOVED 1 :",
            "MOVED 1 ?",
            "MOVED  1 a:1",
            "MOVED 1  a:1",
            "MOVED 1 a:1 ",
            "MOVED 1 a:1 b",
            "MOVED 16384 a:1",
            "MOVED -1 a:1",
            "MOVED 18446744073709551617 a:1",
            "MOVED x a:1",
            "MOVED 1 a:0",
            "MOVED 1 ?:0",
            "MOVED 1 :0",
            "MOVED 1 a:65537",
            "MOVED 1 a:+1",
            "MOVED 1 a\r\n:1",
            "MOVED 1 a:b:1",
        ] {
            assert_eq!(read(message), None, "{message:?}");
        }
        assert_eq!(read_redirect(b"MOVED 1 \xff:1", &NodeName { host: "a".to_owned(), port: 1 }), None);
    }
}
