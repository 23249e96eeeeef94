//! Operations of the meta commands on stored items beside those of the other dialects: vivify, recache, mark as stale.

use std::sync::Arc;

use super::item::{Marks, StoredItem};
use super::{Incoming, Store};
use pummel_logic::protocol::{Outcome, Verb};
use pummel_logic::time::{NEVER, Nanos, SECOND};

/// Effects that a meta read may have beside reading.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MetaReadOptions {
    /// The expiry in seconds of the empty item that the read makes where there is none.
    pub(crate) vivify_s: Option<i32>,
    /// The remaining time in seconds below which a reader of the item is asked to renew it.
    pub(crate) recache_s: Option<i32>,
    /// The expiry in seconds that the read sets.
    pub(crate) expiry_s: Option<i32>,
}

/// Result of a meta read.
#[derive(Clone, Debug)]
pub(crate) struct MetaRead {
    pub(crate) item: StoredItem,
    /// Whether the item had been read before.
    pub(crate) read_before: bool,
    /// Time at which the item was last read before this read, or else stored, in nanoseconds.
    pub(crate) last_read: Nanos,
    /// Whether this reader is asked to renew the item.
    pub(crate) won: bool,
    /// Whether another client was asked to renew the item.
    pub(crate) recaching: bool,
}

impl Store {
    /// Carries out mg.
    pub(crate) fn meta_read(&mut self, key: &[u8], ask: &MetaReadOptions, now: Nanos) -> Option<MetaRead> {
        let Some(place) = self.find(key, now) else {
            self.counts.cmd_get += 1;
            let Some(expiry_s) = ask.vivify_s else {
                self.counts.get_misses += 1;
                return None;
            };
            self.counts.get_hits += 1;
            let expires = self.expires_at(expiry_s, now);
            self.store(None, key, Arc::from(&b""[..]), 0, expires, now);
            let place = self.find(key, now)?;
            let item = self.item_mut(place);
            item.marks.token_sent = true;
            let item = item.clone();
            return Some(MetaRead { item, read_before: false, last_read: now, won: true, recaching: false });
        };
        match ask.expiry_s {
            None => {
                self.counts.cmd_get += 1;
                self.counts.get_hits += 1;
            }
            Some(expiry_s) => {
                self.counts.cmd_touch += 1;
                self.counts.touch_hits += 1;
                self.item_mut(place).expires = self.expires_at(expiry_s, now);
            }
        }
        let item = self.item_mut(place);
        let (read_before, last_read) = (item.marks.read, item.last_read);
        let soon = ask.recache_s.is_some_and(|span_s| {
            item.expires != NEVER && item.expires.saturating_sub(now) < span_s.max(0) as u64 * SECOND
        });
        let recaching = item.marks.token_sent;
        let won = !recaching && (item.marks.stale || soon);
        item.marks.token_sent |= won;
        let item = self.mark_read(place, now).clone();
        Some(MetaRead { item, read_before, last_read, won, recaching })
    }

    /// Carries out ms with a CAS unique that may be old. An item that is stored in place of a newer one is marked as
    /// stale and keeps the newer one's expiry.
    pub(crate) fn put_stale(&mut self, incoming: &Incoming<'_>, now: Nanos) -> Outcome {
        let older = self.peek(incoming.key, now).filter(|item| incoming.cas < item.cas);
        let Some(StoredItem { expires, marks, .. }) = older.cloned() else {
            return self.put(Verb::Cas, incoming, now);
        };
        self.counts.cmd_set += 1;
        self.counts.cas_hits += 1;
        let place = self.find(incoming.key, now);
        self.store(place, incoming.key, Arc::from(incoming.value), incoming.flags, expires, now);
        if let Some(place) = place {
            self.item_mut(place).marks =
                Marks { stale: true, token_sent: marks.token_sent, ..Marks::default() };
        }
        Outcome::Stored
    }

    /// Remembers that the key of an item came in base64.
    pub(crate) fn mark_key_encoded(&mut self, key: &[u8]) {
        if let Some(&place) = self.places.get(key) {
            self.item_mut(place as usize).marks.key_encoded = true;
        }
    }

    /// Marks an item as out of date: it is still read, and one of its readers is to renew it.
    pub(crate) fn invalidate(
        &mut self,
        key: &[u8],
        wanted: Option<u64>,
        expiry_s: Option<i32>,
        now: Nanos,
    ) -> Outcome {
        let Some(place) = self.find(key, now) else {
            self.counts.delete_misses += 1;
            return Outcome::NotFound;
        };
        if wanted.is_some_and(|wanted| wanted != self.item_mut(place).cas) {
            return Outcome::Exists;
        }
        let cas = self.next_cas();
        let expires = expiry_s.map(|expiry_s| self.expires_at(expiry_s, now));
        let item = self.item_mut(place);
        item.cas = cas;
        item.marks.stale = true;
        item.marks.token_sent = false;
        item.expires = expires.unwrap_or(item.expires);
        Outcome::Deleted
    }
}
