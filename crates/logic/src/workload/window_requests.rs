//! The requests of clients with windows (memaslap), and what their answers counted and their checks found.

use crate::protocol::{Keys, Op, Rest, Value, Verb};
use crate::workload::window::{EXPIRY_S, Finding, WindowCounts, WindowMaker};

/// Makes the requests of one worker's clients with windows.
#[derive(Debug)]
pub struct WindowRequests {
    maker: WindowMaker,
    /// The keys of the request that is being made, one after the other.
    keys: Vec<u8>,
    /// End of each of the keys, in bytes.
    ends: Vec<u32>,
    /// Counts since they were last taken.
    pub(crate) counts: WindowCounts,
    /// Checks that failed since the findings were last taken, where failed checks are reported in full.
    pub(crate) findings: Vec<Finding>,
}

impl WindowRequests {
    /// Requests for the objects of this maker.
    pub(crate) fn new(maker: WindowMaker) -> WindowRequests {
        WindowRequests {
            maker,
            keys: Vec::new(),
            ends: Vec::new(),
            counts: WindowCounts::default(),
            findings: Vec::new(),
        }
    }

    /// The text that values are ranges of.
    #[inline]
    pub(crate) fn text_of_values(&self) -> &[u8] {
        self.maker.table()
    }

    /// Takes what was counted since the last call.
    pub fn take_counts(&mut self) -> WindowCounts {
        std::mem::take(&mut self.counts)
    }

    /// Takes the checks that failed since the last call, where failed checks are reported in full.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    /// Counts bytes that were sent or received for a request with this verb; counts nothing without a verb.
    #[inline(never)]
    pub fn count_bytes(&mut self, verb: Option<Verb>, bytes: usize) {
        match verb {
            Some(Verb::Set) => self.counts.set_bytes += bytes as u64,
            Some(_) => self.counts.get_bytes += bytes as u64,
            None => {}
        }
    }

    /// Begins a request, whose keys follow.
    pub(crate) fn begin_keys(&mut self) {
        self.keys.clear();
        self.ends.clear();
    }

    /// A set of the object in `slot`, with key number `number`. `key_at` and `value_at` are places in the table.
    pub(crate) fn set(&mut self, slot: u32, number: u64, key_at: u32, value_at: u32) -> Op<'_> {
        self.begin_keys();
        self.add_key(slot, number, key_at);
        let bytes = self.maker.text(value_at, self.value_bytes(slot) as usize);
        let value = Value { own: &[], rest: Rest::Text { bytes, at: value_at as usize } };
        let expiry_s = if self.expires(slot) { EXPIRY_S.into() } else { 0 };
        Op { value, expiry_s, ..Op::new(Verb::Set, &self.keys) }
    }

    /// Adds the key of an object to the request.
    #[inline]
    pub(crate) fn add_key(&mut self, slot: u32, number: u64, key_at: u32) {
        let (prefix, suffix) = self.maker.key_parts(slot, number, key_at);
        self.keys.extend_from_slice(&prefix.to_le_bytes());
        self.keys.extend_from_slice(suffix);
        self.ends.push(self.keys.len() as u32);
    }

    /// A get of the keys that were added.
    pub(crate) fn get(&self) -> Op<'_> {
        match self.ends.as_slice() {
            [_] => Op::new(Verb::Get, &self.keys),
            ends => Op { keys: Keys::Many { bytes: &self.keys, ends }, ..Op::new(Verb::Get, &[]) },
        }
    }

    /// Whether the server sent the key of this object. A protocol that does not repeat keys sends an empty one.
    pub(crate) fn is_key(&self, slot: u32, number: u64, key_at: u32, sent: &[u8]) -> bool {
        let (prefix, suffix) = self.maker.key_parts(slot, number, key_at);
        sent.is_empty() || sent.strip_prefix(&prefix.to_le_bytes()) == Some(suffix)
    }

    /// The number in front of an object's key, and the rest of the key.
    #[inline]
    pub(crate) fn key_parts(&self, slot: u32, number: u64, key_at: u32) -> (u64, Vec<u8>) {
        let (prefix, suffix) = self.maker.key_parts(slot, number, key_at);
        (prefix, suffix.to_vec())
    }

    /// Length of an object's value in bytes.
    pub(crate) fn value_bytes(&self, slot: u32) -> u32 {
        self.maker.slots()[slot as usize].value_bytes
    }

    /// Bytes of the table of characters.
    pub(crate) fn text(&self, at: u32, len_bytes: usize) -> &[u8] {
        self.maker.text(at, len_bytes)
    }

    /// Whether an object is set to expire.
    pub(crate) fn expires(&self, slot: u32) -> bool {
        self.maker.slots()[slot as usize].expires
    }

    /// Counts the bytes of a completed set of the object in `slot`.
    pub(crate) fn count_object(&mut self, slot: u32) {
        let place = self.maker.slots()[slot as usize];
        self.counts.object_bytes += u64::from(place.value_bytes) + u64::from(place.key_bytes);
    }
}
