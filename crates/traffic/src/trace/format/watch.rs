//! Lines of memcached's `watch fetchers mutations deletions`, put back into their order and freed of the reads that memcached
//! makes for itself.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::quoted::percent_decoded;
use crate::trace::number::{whole, whole_32};
use crate::trace::row::{Found, Row, Sink, VALUE_MAX_BYTES, is_key};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{Nanos, SECOND};
use pummel_logic::workload::hash::hash_bytes;

/// Lines that wait for earlier ones: workers of memcached write theirs in any order.
const WINDOW: usize = 64 * 1_024;

/// Requests that wait for a store, which takes back the read before it.
const PENDING: usize = 1_024;

/// The reader of one log.
#[derive(Clone, Debug, Default)]
pub(in crate::trace) struct Watch {
    /// Lines by their number and their place in the file; `None` for those without a request.
    waiting: BTreeMap<(u64, u64), Option<Event>>,
    taken: u64,
    /// The number of the last line that left `waiting`.
    last_gid: Option<u64>,
    /// Requests in their order; `None` where a read was taken back.
    pending: VecDeque<Option<Event>>,
    /// Number of the first pending request, counted from the beginning.
    first_pending: u64,
    /// The last read of each connection that waits.
    last_reads: HashMap<u64, u64>,
    lost: u64,
    key: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Event {
    at_ns: Nanos,
    verb: Verb,
    key: Vec<u8>,
    value_bytes: Option<u32>,
    ttl_s: u32,
    /// The connection; a hash of the key where the log does not say it.
    owner: u64,
    client: Option<u64>,
    missed: bool,
}

impl Watch {
    /// Takes in a line.
    pub(super) fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Found {
        if line == b"OK" {
            return Found::Nothing;
        }
        let Some(fields) = Fields::of(line) else { return Found::Bad };
        if let Some(skipped) = fields.skipped {
            return Found::Lost(skipped);
        }
        let (event, found) = match self.event_of(&fields) {
            Ok(event) => (Some(event), Found::Rows),
            Err(found) => (None, found),
        };
        // The number of a line without a request is no gap.
        if event.is_some() || fields.gid.is_some() {
            let gid = fields.gid.unwrap_or(self.taken);
            self.taken += 1;
            self.waiting.insert((gid, self.taken), event);
        }
        while self.waiting.len() > WINDOW {
            self.settle_first(sink);
        }
        found
    }

    /// Hands over all waiting rows. Returns how many requests are known to be lost, by gaps in the numbers.
    pub(super) fn end(&mut self, sink: &mut Sink<'_>) -> u64 {
        while !self.waiting.is_empty() {
            self.settle_first(sink);
        }
        while !self.pending.is_empty() {
            self.release(sink);
        }
        std::mem::take(&mut self.lost)
    }

    /// The request of a line, or the kind of a line without one.
    fn event_of(&mut self, fields: &Fields<'_>) -> Result<Event, Found> {
        let at_ns = fields.at.and_then(time).ok_or(Found::Bad)?;
        match fields.kind.ok_or(Found::Bad)? {
            kind @ (b"item_get" | b"item_store" | b"deleted" | b"item_delete") => {
                self.event(at_ns, kind, fields).ok_or(Found::Bad)
            }
            _ => Err(Found::Skipped),
        }
    }

    fn event(&mut self, at_ns: Nanos, kind: &[u8], fields: &Fields<'_>) -> Option<Event> {
        percent_decoded(fields.key?, &mut self.key)?;
        if !is_key(&self.key) {
            return None;
        }
        let verb = match (kind, fields.cmd) {
            (b"item_get", _) => Verb::Get,
            (b"item_store", Some(b"add")) => Verb::Add,
            (b"item_store", Some(b"replace")) => Verb::Replace,
            (b"item_store", Some(b"append")) => Verb::Append,
            (b"item_store", Some(b"prepend")) => Verb::Prepend,
            (b"item_store", Some(b"cas")) => Verb::Cas,
            (b"item_store", Some(b"incr")) => Verb::Incr,
            (b"item_store", Some(b"decr")) => Verb::Decr,
            (b"item_store", _) => Verb::Set,
            _ => Verb::Delete,
        };
        let owner = fields.connection.unwrap_or_else(|| hash_bytes(&self.key));
        let missed = verb == Verb::Get && fields.status == Some(b"not_found");
        // A read logs the size of the whole item, and a store that of its value (`logger.c`).
        let value_bytes = fields.size.filter(|_| verb.stores()).map(|bytes| bytes.min(VALUE_MAX_BYTES));
        let ttl_s = if verb.stores() { fields.ttl } else { 0 };
        Some(Event {
            at_ns,
            verb,
            key: self.key.clone(),
            value_bytes,
            ttl_s,
            owner,
            client: fields.connection,
            missed,
        })
    }

    /// Passes on the line with the least number.
    fn settle_first(&mut self, sink: &mut Sink<'_>) {
        let Some(((gid, _), event)) = self.waiting.pop_first() else { return };
        if let Some(last) = self.last_gid {
            self.lost = self.lost.saturating_add(gid.saturating_sub(last).saturating_sub(1));
        }
        self.last_gid = Some(self.last_gid.map_or(gid, |last| last.max(gid)));
        let Some(event) = event else { return };
        let number = self.first_pending + self.pending.len() as u64;
        if event.verb == Verb::Get {
            self.last_reads.insert(event.owner, number);
        } else if let Some(read) = self.last_reads.remove(&event.owner) {
            // memcached looks an item up before it stores, deletes or touches it, and logs that too.
            let place = read.checked_sub(self.first_pending).map(|place| place as usize);
            if let Some(slot) = place.and_then(|place| self.pending.get_mut(place))
                && slot.as_ref().is_some_and(|read| read.key == event.key)
            {
                *slot = None;
            }
        }
        self.pending.push_back(Some(event));
        while self.pending.len() > PENDING {
            self.release(sink);
        }
    }

    /// Hands over the first request that waits.
    fn release(&mut self, sink: &mut Sink<'_>) {
        let Some(first) = self.pending.pop_front() else { return };
        let number = self.first_pending;
        self.first_pending += 1;
        let Some(event) = first else { return };
        if self.last_reads.get(&event.owner) == Some(&number) {
            self.last_reads.remove(&event.owner);
        }
        let Event { at_ns, verb, value_bytes, ttl_s, client, missed, .. } = event;
        sink(&Row { at_ns, verb, value_bytes, ttl_s, client, missed, ..Row::read(&event.key) });
    }
}

/// The fields of a line.
#[derive(Default)]
struct Fields<'a> {
    at: Option<&'a [u8]>,
    gid: Option<u64>,
    kind: Option<&'a [u8]>,
    key: Option<&'a [u8]>,
    status: Option<&'a [u8]>,
    cmd: Option<&'a [u8]>,
    ttl: u32,
    size: Option<u32>,
    connection: Option<u64>,
    skipped: Option<u64>,
}

impl<'a> Fields<'a> {
    fn of(line: &'a [u8]) -> Option<Fields<'a>> {
        let mut fields = Fields::default();
        for field in line.split(|&byte| byte == b' ').filter(|field| !field.is_empty()) {
            let field = field.strip_prefix(b"[").unwrap_or(field);
            let field = field.strip_suffix(b"]").unwrap_or(field);
            let equals = field.iter().position(|&byte| byte == b'=')?;
            let (name, value) = (&field[..equals], &field[equals + 1..]);
            match name {
                b"ts" => fields.at = Some(value),
                b"gid" => fields.gid = Some(whole(value)?),
                b"type" => fields.kind = Some(value),
                b"key" => fields.key = Some(value),
                b"status" => fields.status = Some(value),
                b"cmd" => fields.cmd = Some(value),
                b"ttl" => fields.ttl = whole_32(value).unwrap_or(0),
                b"size" => fields.size = Some(whole_32(value)?),
                b"cfd" => fields.connection = Some(whole(value)?),
                b"skipped" => fields.skipped = Some(whole(value)?),
                _ => {}
            }
        }
        Some(fields)
    }
}

/// A time of the log: the digits behind the dot are microseconds without leading zeros (`%lld.%d`).
fn time(text: &[u8]) -> Option<Nanos> {
    let dot = text.iter().position(|&byte| byte == b'.')?;
    let micros = whole(&text[dot + 1..]).filter(|micros| *micros < 1_000_000)?;
    whole(&text[..dot])?.checked_mul(SECOND)?.checked_add(micros * 1_000)
}
