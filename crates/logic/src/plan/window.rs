//! The part of a Plan that is memaslap's: objects in a window of each client, and the sockets that it reaches them by.

use serde::{Deserialize, Serialize};

use super::absent::is_default;
use crate::protocol::udp::Frame;

/// Setting and getting objects of a window that each client has of its own and that moves on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Seed of texts, lengths, and of where the keys begin: runs side by side need different ones.
    pub seed: u64,
    /// Objects of each client.
    pub objects: u32,
    /// Lengths of keys.
    pub keys: Vec<Lengths>,
    /// Lengths of values.
    pub values: Vec<Lengths>,
    /// Weight of sets.
    pub set: f64,
    /// Weight of gets.
    pub get: f64,
    /// Keys of each get, 1 or more.
    pub multiget: u32,
    /// Share of sets that store another value under a key that is there.
    #[serde(default)]
    pub overwrite: f64,
    /// Share of gets whose value is checked.
    #[serde(default)]
    pub verify: f64,
    /// Share of objects that are set to expire, and whose expiry is checked.
    #[serde(default)]
    pub expire: f64,
    /// Whether the finding of each failed check is reported.
    #[serde(default)]
    pub verbose: bool,
    /// Every object is set once, and nothing else is done.
    #[serde(default)]
    pub preset: bool,
    /// The sockets that clients share.
    pub pool: Pool,
}

/// Lengths in bytes, drawn evenly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Lengths {
    /// The least length.
    pub start: u32,
    /// The greatest length.
    pub end: u32,
    /// Share of the objects, by weight.
    pub share: f64,
}

/// The sockets of each client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Number of sockets, which requests take in turn; where there is replication, the number to each server.
    pub sockets: u32,
    /// Number of neighbouring clients that share one server; the servers are dealt to such blocks in turn.
    pub block: u32,
    /// Whether there is one more socket, by UDP, which gets take; sets take the others.
    #[serde(default, skip_serializing_if = "is_default")]
    pub datagrams: bool,
    /// Every client talks to all servers, which replicate among themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication: Option<Replication>,
}

/// Servers that replicate among themselves: a set goes to one of the first, a get to another one than took the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Replication {
    /// Number of servers that are written to, the first ones of the Plan.
    pub writers: u32,
}

impl Window {
    /// The longest get in a datagram, with the frame in front of it, in bytes.
    pub fn longest_get_bytes(&self) -> usize {
        let key = longest(&self.keys);
        Frame::LEN_BYTES + "get".len() + self.multiget as usize * (1 + key) + "\r\n".len()
    }

    /// The longest set in a datagram, with the frame in front of it, in bytes.
    pub fn longest_set_bytes(&self) -> usize {
        let (key, value) = (longest(&self.keys), longest(&self.values));
        let expiry = if self.expire > 0.0 { " 60" } else { " 0" };
        let words = "set ".len() + key + " 0".len() + expiry.len() + " ".len() + value.to_string().len();
        Frame::LEN_BYTES + words + "\r\n".len() + value + "\r\n".len()
    }
}

/// The greatest length of all ranges.
fn longest(ranges: &[Lengths]) -> usize {
    ranges.iter().map(|range| range.end as usize).max().unwrap_or(0)
}

impl Pool {
    /// The number of sockets of each client, where the Plan has `servers` servers.
    pub fn lanes(&self, servers: usize) -> usize {
        let sockets = self.sockets as usize + usize::from(self.datagrams);
        if self.replication.is_some() { sockets * servers } else { sockets }
    }

    /// The servers that the sockets of client `number` go to.
    pub fn servers_of(&self, number: u64, servers: usize) -> Vec<u32> {
        let lanes = self.lanes(servers);
        match self.replication {
            Some(_) => (0..lanes).map(|lane| (lane % servers) as u32).collect(),
            None => vec![(number / u64::from(self.block) % servers as u64) as u32; lanes],
        }
    }
}
