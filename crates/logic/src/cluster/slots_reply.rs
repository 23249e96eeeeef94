//! The reply to `CLUSTER SLOTS` in RESP2 and RESP3: ranges of slots with the nodes that serve them.

use std::fmt;

use super::nodes::{self, HOST_MAX_BYTES, NodeName};
use super::values::{Stop, Value, Values, malformed};
use crate::client::route::crc16::SLOTS;

/// Most ranges in a reply: each has a slot of its own.
const RANGES_MAX: u64 = SLOTS as u64;

/// Most nodes in a range.
const RANGE_NODES_MAX: u64 = 1_000;

/// Most nodes in a reply, each counted as often as it is named: a master and 15 replicas for every slot.
const NODES_MAX: u32 = 16 * SLOTS as u32;

/// A node as a reply names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSeen {
    /// Host and port to connect to.
    pub name: NodeName,
    /// Identity of the node in its cluster, for reports; empty where the server gives none.
    pub id: String,
}

/// Neighbouring slots that the same nodes serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotRange {
    /// The first slot of the range.
    pub first: u16,
    /// The last slot of the range, at least the first one and below [`SLOTS`].
    pub last: u16,
    /// The node that serves writes; `None` where no usable name of it is given.
    pub master: Option<NodeSeen>,
    /// The replicas of the master that have usable names.
    pub replicas: Vec<NodeSeen>,
}

/// The ranges of slots that a node lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotsReply {
    /// The ranges in the order of the reply. They need not cover all slots.
    pub ranges: Vec<SlotRange>,
    /// Number of nodes in the ranges that have no usable name.
    pub unusable: u32,
}

/// A reply to `CLUSTER SLOTS` that lists no ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotsError {
    /// The reply is not of its form, for this reason.
    Malformed(&'static str),
    /// The server belongs to no cluster.
    NotACluster,
    /// The server refused the command, in these words.
    Refused(String),
}

impl fmt::Display for SlotsError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SlotsError::Malformed(why) => write!(to, "the reply to CLUSTER SLOTS is malformed: {why}"),
            SlotsError::NotACluster => {
                to.write_str("the server has no cluster support, or has it switched off")
            }
            SlotsError::Refused(words) => write!(to, "the server refused CLUSTER SLOTS: {words}"),
        }
    }
}

impl std::error::Error for SlotsError {}

/// Reads the reply to `CLUSTER SLOTS` that `bytes` begin with, and returns it with the number of bytes that it takes; `None` when it
/// goes on behind them. Push messages before it are dropped. The caller bounds the number of bytes.
///
/// `asked` is the node that replied: its host is meant where the reply leaves out the host of a node. With `prefers_ip`, a node is
/// named by the address in its metadata where they have one.
///
/// # Errors
/// Returns [`SlotsError`] for an error reply, and for a reply that is not of its form.
pub fn read_slots_reply(
    bytes: &[u8],
    asked: &NodeName,
    prefers_ip: bool,
) -> Result<Option<(SlotsReply, usize)>, SlotsError> {
    let (values, reply) = (Values { rest: bytes }, SlotsReply::default());
    let mut reader = Reader { values, asked, prefers_ip, reply, nodes: 0 };
    match reader.reply() {
        Ok(None) => Ok(Some((reader.reply, bytes.len() - reader.values.rest.len()))),
        Ok(Some(refusal)) => Err(refusal),
        Err(Stop::Need) => Ok(None),
        Err(Stop::Malformed(why)) => Err(SlotsError::Malformed(why)),
    }
}

struct Reader<'a> {
    values: Values<'a>,
    asked: &'a NodeName,
    prefers_ip: bool,
    reply: SlotsReply,
    /// Number of nodes that were read.
    nodes: u32,
}

impl<'a> Reader<'a> {
    /// Reads the whole reply; returns the error that it is, where it is one.
    fn reply(&mut self) -> Result<Option<SlotsError>, Stop> {
        loop {
            match self.values.take(0)? {
                value @ Value::Push(_) => self.values.skip(value, 0)?,
                Value::Error(words) => return Ok(Some(refusal(words))),
                Value::List(ranges) if ranges > RANGES_MAX => {
                    return malformed("it has more ranges than there are slots");
                }
                Value::List(ranges) => return self.ranges(ranges).map(|()| None),
                _ => return malformed("it is no array"),
            }
        }
    }

    fn ranges(&mut self, ranges: u64) -> Result<(), Stop> {
        for _ in 0..ranges {
            let Value::List(elements) = self.values.take(1)? else { return malformed("a range is no array") };
            if !(3..=2 + RANGE_NODES_MAX).contains(&elements) {
                return malformed("a range has no node, or more than 1,000");
            }
            let range = self.range(elements)?;
            self.reply.ranges.push(range);
        }
        Ok(())
    }

    fn range(&mut self, elements: u64) -> Result<SlotRange, Stop> {
        let (first, last) = (self.slot()?, self.slot()?);
        if first > last {
            return malformed("the first slot of a range is behind the last one");
        }
        let Value::List(values) = self.values.take(2)? else { return malformed("a range has no master") };
        let master = self.node(values)?;
        let mut replicas = Vec::new();
        for _ in 3..elements {
            match self.values.take(2)? {
                Value::List(values) => replicas.extend(self.node(values)?),
                unknown => self.values.skip(unknown, 2)?,
            }
        }
        Ok(SlotRange { first, last, master, replicas })
    }

    fn slot(&mut self) -> Result<u16, Stop> {
        match self.values.take(2)? {
            Value::Integer(slot) if (0..SLOTS as i64).contains(&slot) => Ok(slot as u16),
            _ => malformed("a range has no slots from 0 to 16383"),
        }
    }

    /// Reads a node of this many values: endpoint, port, and on newer servers identity and metadata. `None`: the node has no usable
    /// name.
    fn node(&mut self, values: u64) -> Result<Option<NodeSeen>, Stop> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return malformed("it names too many nodes");
        }
        if values < 2 {
            return malformed("a node has no endpoint and port");
        }
        let endpoint = match self.values.take(3)? {
            Value::Text(text) if text.len() <= HOST_MAX_BYTES => text,
            Value::Null => b"",
            _ => return malformed("the endpoint of a node is no host"),
        };
        let port = match self.values.take(3)? {
            Value::Integer(port) => u16::try_from(port).ok(),
            _ => None,
        };
        let Some(port) = port else { return malformed("the port of a node is none") };
        let (mut id, mut ip) = (String::new(), None);
        for place in 2..values {
            match (place, self.values.take(3)?) {
                (2, Value::Text(text)) if text.len() <= HOST_MAX_BYTES => {
                    id = String::from_utf8_lossy(text).into_owned()
                }
                (3, Value::List(values) | Value::Map(values)) => ip = self.ip_of_metadata(values)?,
                (_, unknown) => self.values.skip(unknown, 3)?,
            }
        }
        let host = self.host(endpoint, ip).filter(|_| port != 0);
        self.reply.unusable += u32::from(host.is_none());
        Ok(host.map(|host| NodeSeen { name: NodeName { host: host.to_owned(), port }, id }))
    }

    /// The host to connect to, of a node with this endpoint and this address in its metadata.
    fn host(&self, endpoint: &'a [u8], ip: Option<&'a str>) -> Option<&'a str> {
        match endpoint {
            _ if self.prefers_ip && ip.is_some() => ip,
            b"" => Some(&self.asked.host),
            b"?" => ip,
            _ => std::str::from_utf8(endpoint).ok().filter(|host| nodes::is_host(host)),
        }
    }

    /// Reads the metadata of a node, keys and values in turn, and returns its address.
    fn ip_of_metadata(&mut self, values: u64) -> Result<Option<&'a str>, Stop> {
        let mut ip = None;
        for _ in 0..values / 2 {
            let key = self.values.take(4)?;
            self.values.skip(key, 4)?;
            let value = self.values.take(4)?;
            self.values.skip(value, 4)?;
            if let (Value::Text(b"ip"), Value::Text(text)) = (key, value) {
                ip = std::str::from_utf8(text).ok().filter(|text| nodes::is_host(text));
            }
        }
        match values.is_multiple_of(2) {
            true => Ok(ip),
            false => malformed("the metadata of a node have a key without value"),
        }
    }
}

/// The meaning of an error reply.
fn refusal(words: &[u8]) -> SlotsError {
    let says = |beginning: &[u8]| words.starts_with(beginning);
    // The last one is Dragonfly's.
    match says(b"ERR This instance has cluster support disabled")
        || says(b"ERR unknown command")
        || says(b"ERR Cluster is disabled")
    {
        true => SlotsError::NotACluster,
        false => SlotsError::Refused(String::from_utf8_lossy(words).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "e7d1eecce10fd6bb5eb35b9f99a514335d9ba9ca";

    fn asked() -> NodeName {
        NodeName { host: "10.0.0.9".to_owned(), port: 7109 }
    }

    /// Reads a whole reply, behind which another one follows, after it was found to need every byte.
    fn read(text: &str, prefers_ip: bool) -> Result<SlotsReply, SlotsError> {
        let stream = format!("{text}+OK\r\n");
        let whole = read_slots_reply(stream.as_bytes(), &asked(), prefers_ip)?;
        for cut in 0..text.len() {
            assert_eq!(
                read_slots_reply(&text.as_bytes()[..cut], &asked(), prefers_ip),
                Ok(None),
                "cut at {cut}"
            );
        }
        let (reply, used) = whole.expect("the reply is whole");
        assert_eq!(used, text.len());
        Ok(reply)
    }

    fn why(text: &str) -> &'static str {
        match read_slots_reply(text.as_bytes(), &asked(), false) {
            Err(SlotsError::Malformed(why)) => why,
            other => panic!("{text:?} gives {other:?}"),
        }
    }

    fn bulk(text: &str) -> String {
        format!("${}\r\n{text}\r\n", text.len())
    }

    fn seen(host: &str, port: u16, id: &str) -> NodeSeen {
        NodeSeen { name: NodeName { host: host.to_owned(), port }, id: id.to_owned() }
    }

    /// A range of one slot with one node.
    fn with_node(node: &str) -> String {
        format!("*1\r\n*3\r\n:7\r\n:7\r\n{node}")
    }

    /// The node that is read, if it is usable, and the number of unusable ones.
    fn node_of(node: &str, prefers_ip: bool) -> (Option<NodeSeen>, u32) {
        let mut reply = read(&with_node(node), prefers_ip).expect("it is well-formed");
        (reply.ranges.remove(0).master, reply.unusable)
    }

    #[test]
    fn ranges_are_read_with_their_nodes_in_both_versions() {
        for metadata in ["*0\r\n", "%0\r\n"] {
            let node = |port| format!("*4\r\n{}:{port}\r\n{}{metadata}", bulk("127.0.0.1"), bulk(ID));
            let ranges = [
                format!("*4\r\n:0\r\n:5460\r\n{}{}", node(7101), node(7105)),
                format!("*3\r\n:5461\r\n:16383\r\n{}", node(7102)),
            ];
            let push = ">2\r\n+invalidate\r\n*1\r\n+k1\r\n";
            let reply = read(&format!("{push}*2\r\n{}", ranges.concat()), false).unwrap();
            let node = |port| seen("127.0.0.1", port, ID);
            let expected = [
                SlotRange { first: 0, last: 5460, master: Some(node(7101)), replicas: vec![node(7105)] },
                SlotRange { first: 5461, last: 16_383, master: Some(node(7102)), replicas: vec![] },
            ];
            assert_eq!(reply, SlotsReply { ranges: expected.to_vec(), unusable: 0 });
        }
        assert_eq!(read("*0\r\n", false), Ok(SlotsReply::default()), "a cluster that is not created yet");
    }

    #[test]
    fn endpoints_are_names_addresses_or_left_to_the_client() {
        let named = |host: &str| (Some(seen(host, 7101, ID)), 0);
        let with =
            |endpoint: &str, metadata: &str| format!("*4\r\n{endpoint}:7101\r\n{}{metadata}", bulk(ID));
        let resp2 = format!("*4\r\n{}{}{}{}", bulk("hostname"), bulk("a"), bulk("ip"), bulk("127.0.0.1"));
        let resp3 =
            format!("%2\r\n{}%1\r\n+x\r\n*1\r\n#t\r\n{}{}", bulk("new"), bulk("ip"), bulk("127.0.0.1"));
        for metadata in [resp2, resp3] {
            for (endpoint, host) in [
                (bulk("10.0.0.1"), "10.0.0.1"),
                (bulk("node7101.local"), "node7101.local"),
                (bulk("2001:db8::7"), "2001:db8::7"),
                (bulk("?"), "127.0.0.1"),
                (bulk(""), "10.0.0.9"),
                ("$-1\r\n".to_owned(), "10.0.0.9"),
                ("_\r\n".to_owned(), "10.0.0.9"),
            ] {
                assert_eq!(node_of(&with(&endpoint, &metadata), false), named(host), "{endpoint}");
                assert_eq!(node_of(&with(&endpoint, &metadata), true), named("127.0.0.1"), "{endpoint}");
            }
        }
        for prefers_ip in [false, true] {
            assert_eq!(node_of(&with(&bulk("a"), "*0\r\n"), prefers_ip), named("a"));
            assert_eq!(node_of(&with("_\r\n", "%0\r\n"), prefers_ip), named("10.0.0.9"));
            for endpoint in ["?", "a b", "a:b"] {
                assert_eq!(node_of(&with(&bulk(endpoint), "*0\r\n"), prefers_ip), (None, 1), "{endpoint}");
            }
        }
        let no_address = format!("*2\r\n{}{}", bulk("ip"), bulk(""));
        assert_eq!(node_of(&with(&bulk("?"), &no_address), true), (None, 1));
    }

    #[test]
    fn old_servers_name_host_and_port_and_newer_ones_may_say_more() {
        let old = format!("*2\r\n{}:7101\r\n", bulk("a"));
        assert_eq!(node_of(&old, true), (Some(seen("a", 7101, "")), 0));
        let newer = format!("*6\r\n{}:7101\r\n_\r\n$-1\r\n*2\r\n:1\r\n%1\r\n+x\r\n,1.5\r\n#t\r\n", bulk("a"));
        assert_eq!(node_of(&newer, false), (Some(seen("a", 7101, "")), 0));
        let no_port = format!("*2\r\n{}:0\r\n", bulk("a"));
        assert_eq!(node_of(&no_port, false), (None, 1));
        let range = format!("*1\r\n*6\r\n:1\r\n:2\r\n{old}%1\r\n+new\r\n*1\r\n:1\r\n{no_port}{old}");
        let reply = read(&range, false).unwrap();
        assert_eq!(
            (reply.ranges[0].replicas.len(), reply.unusable),
            (1, 1),
            "the unknown element is skipped"
        );
    }

    #[test]
    fn errors_say_whether_there_is_a_cluster() {
        for words in [
            "ERR This instance has cluster support disabled",
            "ERR unknown command 'CLUSTER', with args beginning with: 'SLOTS' ",
            "ERR unknown command `CLUSTER`, with args beginning with: `SLOTS`, ",
            "ERR Cluster is disabled. Use --cluster_mode=yes to enable.",
        ] {
            assert_eq!(read(&format!("-{words}\r\n"), false), Err(SlotsError::NotACluster), "{words}");
            assert_eq!(
                read(&format!("!{}\r\n{words}\r\n", words.len()), false),
                Err(SlotsError::NotACluster)
            );
        }
        let refused = read("-NOPERM this user has no permissions\r\n", false).unwrap_err();
        assert_eq!(refused, SlotsError::Refused("NOPERM this user has no permissions".to_owned()));
        assert_eq!(
            refused.to_string(),
            "the server refused CLUSTER SLOTS: NOPERM this user has no permissions"
        );
    }

    #[test]
    fn replies_of_another_form_are_malformed() {
        let node = format!("*2\r\n{}:1\r\n", bulk("a"));
        for (text, expected) in [
            ("+OK\r\n".to_owned(), "it is no array"),
            ("*-1\r\n".to_owned(), "it is no array"),
            ("*1\r\n:1\r\n".to_owned(), "a range is no array"),
            ("*1\r\n*2\r\n".to_owned(), "a range has no node, or more than 1,000"),
            (format!("*1\r\n*3\r\n:5\r\n:4\r\n{node}"), "the first slot of a range is behind the last one"),
            (format!("*1\r\n*3\r\n:0\r\n:16384\r\n{node}"), "a range has no slots from 0 to 16383"),
            (format!("*1\r\n*3\r\n:-1\r\n:4\r\n{node}"), "a range has no slots from 0 to 16383"),
            (format!("*1\r\n*3\r\n+1\r\n:4\r\n{node}"), "a range has no slots from 0 to 16383"),
            ("*1\r\n*3\r\n:0\r\n:1\r\n:2\r\n".to_owned(), "a range has no master"),
            (with_node("*1\r\n+a\r\n"), "a node has no endpoint and port"),
            (with_node("*2\r\n:1\r\n:1\r\n"), "the endpoint of a node is no host"),
            (with_node("*2\r\n+a\r\n:65536\r\n"), "the port of a node is none"),
            (with_node("*2\r\n+a\r\n:-1\r\n"), "the port of a node is none"),
            (with_node("*2\r\n+a\r\n+1\r\n"), "the port of a node is none"),
            (
                with_node("*4\r\n+a\r\n:1\r\n+id\r\n*1\r\n+ip\r\n*0\r\n:1\r\n"),
                "the metadata of a node have a key without value",
            ),
            ("HTTP/1.1 400 Bad Request\r\n".to_owned(), "the reply is not one of RESP (Redis, Valkey)"),
        ] {
            assert_eq!(why(&text), expected, "{text}");
        }
    }

    #[test]
    fn sizes_have_limits() {
        assert_eq!(why("*16385\r\n"), "it has more ranges than there are slots");
        assert_eq!(why("*1\r\n*1003\r\n"), "a range has no node, or more than 1,000");
        assert_eq!(read_slots_reply(b"*16384\r\n*1002\r\n", &asked(), false), Ok(None));
        let host = |len| with_node(&format!("*2\r\n{}:1\r\n", bulk(&"x".repeat(len))));
        assert_eq!(why(&host(256)), "the endpoint of a node is no host");
        assert!(read(&host(255), false).is_ok());
        let nested = |depth: usize| {
            with_node(&format!("*5\r\n+a\r\n:1\r\n+id\r\n*0\r\n{}:1\r\n", "*1\r\n".repeat(depth)))
        };
        assert_eq!(why(&nested(6)), "the values of the reply are nested too deeply");
        assert!(read(&nested(5), false).is_ok());
        let range = format!("*1002\r\n:0\r\n:0\r\n{}", "*2\r\n_\r\n:1\r\n".repeat(1_000));
        assert_eq!(why(&format!("*263\r\n{}", range.repeat(263))), "it names too many nodes");
        let whole = format!("*262\r\n{}", range.repeat(262));
        assert_eq!(read_slots_reply(whole.as_bytes(), &asked(), false).unwrap().unwrap().1, whole.len());
    }
}
