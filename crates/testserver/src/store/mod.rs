//! The store of the built-in server: values under keys, with memcached's rules for expiry, CAS uniques and counters.

mod counts;
mod item;
mod meta;
mod number;
mod recency;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use pummel_logic::protocol::{Outcome, Verb};
use pummel_logic::rng::below;
use pummel_logic::time::{NEVER, Nanos, SECOND};

pub use self::counts::StoreCounts;
pub(super) use self::item::{Form, item_len_bytes};
pub use self::item::{KEY_MAX_BYTES, StoredItem};
pub(super) use self::meta::{MetaRead, MetaReadOptions};
use self::recency::Recency;

/// Greatest expiry time that is a span; greater ones are points in unix time (`protocol.txt`, "Expiration times").
const RELATIVE_MAX_S: i32 = 60 * 60 * 24 * 30;

/// Bounds of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest item (key, value and memcached's overhead) in bytes.
    pub item_max_bytes: usize,
    /// Size of all items together, in bytes; beyond that, items that were not asked for lately are evicted.
    pub memory_max_bytes: usize,
    /// Most items; beyond that, the item that was not used for the longest time is evicted. `None` for any number.
    pub items_max: Option<usize>,
}

impl Default for Limits {
    /// memcached's own defaults: 1 MiB and 64 MiB.
    fn default() -> Limits {
        Limits { item_max_bytes: 1 << 20, memory_max_bytes: 64 << 20, items_max: None }
    }
}

/// Way in which expiry times are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpiryPolicy {
    /// Items expire at their time.
    #[default]
    Kept,
    /// Items never expire.
    Ignored,
    /// Items expire this number of nanoseconds before their time.
    Early(Nanos),
}

/// A command for which an item was treated as living or expired against its expiry time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lapse {
    /// The item's key.
    pub key: Vec<u8>,
    /// The item's expiry time in nanoseconds.
    pub expires: Nanos,
}

/// The arguments of a storing command.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// Key of the item.
    pub key: &'a [u8],
    /// The flags stored beside the value.
    pub flags: u32,
    /// The expiry in seconds, as the client wrote it.
    pub expiry_s: i32,
    /// The CAS unique that `cas` compares with.
    pub cas: u64,
    /// Value of the item.
    pub value: &'a [u8],
}

/// Values under keys.
#[derive(Debug)]
pub struct Store {
    limits: Limits,
    policy: ExpiryPolicy,
    unix_ns_at_zero: u64,
    items: Vec<Option<StoredItem>>,
    places: HashMap<Arc<[u8]>, u32, BuildHasherDefault<DefaultHasher>>,
    free: Vec<u32>,
    /// The order of use, where the number of items has a limit.
    recency: Option<Recency>,
    /// Index at which the search for an item to evict continues.
    hand: usize,
    len_bytes: usize,
    last_cas: u64,
    /// CAS unique up to which items were flushed.
    flushed_cas: u64,
    /// Time at which a delayed `flush_all` takes effect, in nanoseconds.
    flush_due: Nanos,
    lapses: Vec<Lapse>,
    /// The keys of `lapses`: a command that looks for an item several times is one lapse.
    lapsed: HashSet<Arc<[u8]>, BuildHasherDefault<DefaultHasher>>,
    /// Keys under which an item was stored, where changes are recorded.
    changes: Option<Vec<Arc<[u8]>>>,
    /// Counters of the server.
    pub counts: StoreCounts,
}

impl Store {
    /// An empty store. `unix_ns_at_zero` is the unix time, in nanoseconds, at time 0 of the clock that `now` is read
    /// from; it gives absolute expiry times their meaning.
    pub fn new(limits: Limits, policy: ExpiryPolicy, unix_ns_at_zero: u64) -> Store {
        Store {
            limits,
            policy,
            unix_ns_at_zero,
            items: Vec::new(),
            places: HashMap::default(),
            free: Vec::new(),
            recency: limits.items_max.map(|_| Recency::new()),
            hand: 0,
            len_bytes: 0,
            last_cas: 0,
            flushed_cas: 0,
            flush_due: NEVER,
            lapses: Vec::new(),
            lapsed: HashSet::default(),
            changes: None,
            counts: StoreCounts::default(),
        }
    }

    /// Number of items, those included that expired and were not asked for since.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Size of all items, as memcached counts it.
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// The limits of the store.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether an item of this shape is within the limit.
    pub fn fits(&self, key_len: usize, flags: u32, value_len: usize) -> bool {
        item_len_bytes(key_len, flags, value_len) <= self.limits.item_max_bytes
    }

    /// Carries out get and gets.
    pub fn read(&mut self, key: &[u8], now: Nanos) -> Option<&StoredItem> {
        self.counts.cmd_get += 1;
        match self.find(key, now) {
            Some(place) => {
                self.counts.get_hits += 1;
                Some(self.mark_read(place, now))
            }
            None => {
                self.counts.get_misses += 1;
                None
            }
        }
    }

    /// Carries out gat and gats, and the part of touch before its answer.
    pub fn read_and_touch(&mut self, key: &[u8], expiry_s: i32, now: Nanos) -> Option<&StoredItem> {
        self.counts.cmd_touch += 1;
        let Some(place) = self.find(key, now) else {
            self.counts.touch_misses += 1;
            return None;
        };
        self.counts.touch_hits += 1;
        self.item_mut(place).expires = self.expires_at(expiry_s, now);
        Some(self.mark_read(place, now))
    }

    /// Reads and touches as [`Store::read_and_touch`] does, with a moment of expiry.
    pub(super) fn read_and_touch_until(
        &mut self,
        key: &[u8],
        expires: Nanos,
        now: Nanos,
    ) -> Option<&StoredItem> {
        self.read_and_touch(key, 0, now)?;
        let place = self.find(key, now)?;
        let item = self.item_mut(place);
        item.expires = expires;
        Some(item)
    }

    /// The living item of a key; no counter changes.
    pub(super) fn peek(&mut self, key: &[u8], now: Nanos) -> Option<&StoredItem> {
        let place = self.find(key, now)?;
        self.items[place].as_ref()
    }

    /// Carries out touch.
    pub fn touch(&mut self, key: &[u8], expiry_s: i32, now: Nanos) -> Outcome {
        match self.read_and_touch(key, expiry_s, now) {
            Some(_) => Outcome::Touched,
            None => Outcome::NotFound,
        }
    }

    /// Carries out set, add, replace, append, prepend and cas.
    pub fn put(&mut self, verb: Verb, incoming: &Incoming<'_>, now: Nanos) -> Outcome {
        self.counts.cmd_set += 1;
        let place = self.find(incoming.key, now);
        match (verb, place) {
            (Verb::Cas, None) => {
                self.counts.cas_misses += 1;
                Outcome::NotFound
            }
            (Verb::Cas, Some(place)) if self.item_mut(place).cas != incoming.cas => {
                self.counts.cas_badval += 1;
                Outcome::Exists
            }
            (Verb::Add, Some(_)) | (Verb::Replace | Verb::Append | Verb::Prepend, None) => Outcome::NotStored,
            (Verb::Append | Verb::Prepend, Some(place)) => self.extend(verb, place, incoming.value, now),
            (_, place) => {
                if verb == Verb::Cas {
                    self.counts.cas_hits += 1;
                }
                let expires = self.expires_at(incoming.expiry_s, now);
                self.store(place, incoming.key, Arc::from(incoming.value), incoming.flags, expires, now);
                Outcome::Stored
            }
        }
    }

    /// Stores the value of a RESP command in place of any other, without counting a command.
    pub(super) fn write(&mut self, key: &[u8], value: Arc<[u8]>, form: Form, expires: Nanos, now: Nanos) {
        let place = self.find(key, now);
        self.store(place, key, value, 0, expires, now);
        if let Some(place) = self.find(key, now) {
            self.item_mut(place).form = form;
        }
    }

    /// The CAS unique that was given out last.
    pub(super) fn last_cas(&self) -> u64 {
        self.last_cas
    }

    /// Sets an expiry without counting. Returns whether there is such an item.
    pub(super) fn set_expiry(&mut self, key: &[u8], expiry_s: i32, now: Nanos) -> bool {
        let expires = self.expires_at(expiry_s, now);
        self.find(key, now).map(|place| self.item_mut(place).expires = expires).is_some()
    }

    /// Counts a storing command whose item is too large. `set` then removes the old item, as memcached does, so that no
    /// client reads a value that its writer believes replaced.
    pub fn put_too_large(&mut self, verb: Verb, key: &[u8], now: Nanos) {
        self.counts.store_too_large += 1;
        self.forget_replaced(verb, key, now);
    }

    /// Removes the item that a too large `set` would have replaced, without counting; memcached's binary protocol does
    /// not count it.
    pub(super) fn forget_replaced(&mut self, verb: Verb, key: &[u8], now: Nanos) {
        if verb == Verb::Set
            && let Some(place) = self.find(key, now)
        {
            self.remove(place);
        }
    }

    /// Removes the living item of a key, which another store gets; no command is counted.
    pub(super) fn take_out(&mut self, key: &[u8], now: Nanos) -> Option<StoredItem> {
        let place = self.find(key, now)?;
        let item = self.items[place].clone();
        self.remove(place);
        item
    }

    /// Carries out delete.
    pub(super) fn delete(&mut self, key: &[u8], wanted: Option<u64>, now: Nanos) -> Outcome {
        match self.find(key, now) {
            // The dialects of memcached count this case differently.
            Some(place) if wanted.is_some_and(|wanted| wanted != self.item_mut(place).cas) => Outcome::Exists,
            Some(place) => {
                self.counts.delete_hits += 1;
                self.remove(place);
                Outcome::Deleted
            }
            None => {
                self.counts.delete_misses += 1;
                Outcome::NotFound
            }
        }
    }

    /// Carries out flush_all, at once or after a delay; a later call replaces one that still waits.
    pub fn flush(&mut self, delay_s: i32, now: Nanos) {
        self.counts.cmd_flush += 1;
        if delay_s > 0 {
            self.flush_due = self.expires_at(delay_s, now);
        } else {
            self.flush_due = NEVER;
            self.flushed_cas = self.next_cas();
        }
    }

    /// Some item whose key is not `key`, chosen by `chance`; `None` when there is no other.
    pub fn other_than(&self, key: &[u8], chance: u64) -> Option<&StoredItem> {
        let start = below(chance, self.items.len().max(1) as u64) as usize;
        let (before, after) = self.items.split_at(start);
        after.iter().chain(before).flatten().find(|item| &*item.key != key)
    }

    /// Begins to record the keys under which items are stored.
    pub(super) fn keep_changes(&mut self) {
        self.changes.get_or_insert_default();
    }

    /// Takes the keys under which items were stored since the last call.
    pub(super) fn take_changes(&mut self) -> Vec<Arc<[u8]>> {
        self.changes.as_mut().map_or(Vec::new(), std::mem::take)
    }

    /// The item under this key, whether it is living or expired.
    pub(super) fn stored(&self, key: &[u8]) -> Option<&StoredItem> {
        self.items[*self.places.get(key)? as usize].as_ref()
    }

    /// All living items.
    pub(super) fn living(&self, now: Nanos) -> impl Iterator<Item = &StoredItem> {
        let flushed_cas = self.flushed_cas;
        self.items.iter().flatten().filter(move |item| item.cas > flushed_cas && item.expires > now)
    }

    /// Takes the moments at which expiry was not kept since the last call, one for each key.
    pub fn take_lapses(&mut self) -> Vec<Lapse> {
        self.lapsed.clear();
        std::mem::take(&mut self.lapses)
    }

    /// The index of the living item of this key. An expired item is removed, unless it expired too early: every command
    /// that misses such an item is recorded.
    fn find(&mut self, key: &[u8], now: Nanos) -> Option<usize> {
        self.flush_if_due(now);
        let place = *self.places.get(key)? as usize;
        let flushed_cas = self.flushed_cas;
        let policy = self.policy;
        let item = self.item_mut(place);
        if item.cas <= flushed_cas {
            self.counts.get_flushed += 1;
            self.remove(place);
            return None;
        }
        let ought = item.expires <= now;
        let does = match policy {
            ExpiryPolicy::Kept => ought,
            ExpiryPolicy::Ignored => false,
            ExpiryPolicy::Early(early) => item.expires != NEVER && item.expires.saturating_sub(early) <= now,
        };
        item.used = true;
        if does != ought {
            let (expires, lapsed) = (item.expires, item.key.clone());
            if self.lapsed.insert(lapsed) {
                self.lapses.push(Lapse { key: key.to_vec(), expires });
            }
        }
        if does {
            self.counts.get_expired += 1;
            if ought {
                self.remove(place);
            }
            return None;
        }
        if let Some(recency) = &mut self.recency {
            recency.renew(place);
        }
        Some(place)
    }

    fn flush_if_due(&mut self, now: Nanos) {
        if self.flush_due <= now {
            self.flush_due = NEVER;
            self.flushed_cas = self.last_cas;
        }
    }

    /// Carries out append and prepend, which keep the flags and the expiry of the item.
    fn extend(&mut self, verb: Verb, place: usize, piece: &[u8], now: Nanos) -> Outcome {
        let item = self.item_mut(place);
        let (key, flags, expires) = (item.key.clone(), item.flags, item.expires);
        let old = item.value.clone();
        if !self.fits(key.len(), flags, old.len() + piece.len()) {
            return Outcome::NotStored;
        }
        let value = if verb == Verb::Append { [&*old, piece].concat() } else { [piece, &*old].concat() };
        self.store(Some(place), &key, Arc::from(value), flags, expires, now);
        Outcome::Stored
    }

    fn note_change(&mut self, key: Arc<[u8]>) {
        if let Some(changes) = &mut self.changes {
            changes.push(key);
        }
    }

    fn store(
        &mut self,
        place: Option<usize>,
        key: &[u8],
        value: Arc<[u8]>,
        flags: u32,
        expires: Nanos,
        now: Nanos,
    ) {
        self.counts.total_items += 1;
        let cas = self.next_cas();
        if let Some(place) = place {
            let item = self.item_mut(place);
            let old_len = item.len_bytes();
            *item = StoredItem::new(item.key.clone(), value, flags, cas, expires, now);
            item.used = true;
            let (new_len, key) = (item.len_bytes(), item.key.clone());
            self.len_bytes = self.len_bytes - old_len + new_len;
            self.note_change(key);
        } else {
            if let Some(&dead) = self.places.get(key) {
                self.remove(dead as usize);
            }
            let key: Arc<[u8]> = Arc::from(key);
            let item = StoredItem::new(key.clone(), value, flags, cas, expires, now);
            self.len_bytes += item.len_bytes();
            let place = match self.free.pop() {
                Some(place) => place,
                None => {
                    self.items.push(None);
                    (self.items.len() - 1) as u32
                }
            };
            self.items[place as usize] = Some(item);
            if let Some(recency) = &mut self.recency {
                recency.add(place as usize);
            }
            self.note_change(key.clone());
            self.places.insert(key, place);
        }
        self.evict(cas);
    }

    fn next_cas(&mut self) -> u64 {
        self.last_cas += 1;
        self.last_cas
    }

    /// Evicts the items that were not used for the longest time, where there are more than there may be, and others where they
    /// take more memory than they may, by the second-chance rule: the search passes over items that were used since its last visit, and
    /// removes the first that was not. The item with the CAS unique `newest` stays.
    fn evict(&mut self, newest: u64) {
        let items_max = self.limits.items_max.unwrap_or(usize::MAX).max(1);
        while self.places.len() > items_max
            && let Some(oldest) = self.recency.as_ref().and_then(Recency::oldest)
        {
            self.counts.evictions += 1;
            self.remove(oldest);
        }
        while self.len_bytes > self.limits.memory_max_bytes && self.places.len() > 1 {
            let place = self.hand % self.items.len();
            self.hand = place + 1;
            match &mut self.items[place] {
                Some(item) if item.cas == newest => {}
                Some(item) if item.used => item.used = false,
                Some(_) => {
                    self.counts.evictions += 1;
                    self.remove(place);
                }
                None => {}
            }
        }
    }

    fn mark_read(&mut self, place: usize, now: Nanos) -> &StoredItem {
        let item = self.item_mut(place);
        item.marks.read = true;
        item.last_read = now;
        item
    }

    fn remove(&mut self, place: usize) {
        let item = self.items[place].take().expect("the index names only places that hold an item");
        self.places.remove(&item.key);
        if let Some(recency) = &mut self.recency {
            recency.remove(place);
        }
        self.free.push(place as u32);
        self.len_bytes -= item.len_bytes();
    }

    fn item_mut(&mut self, place: usize) -> &mut StoredItem {
        self.items[place].as_mut().expect("the index names only places that hold an item")
    }

    /// The expiry time in nanoseconds by `protocol.txt`, "Expiration times": 0 is never, a negative number is at once,
    /// up to 30 days count from now, larger numbers are unix time.
    pub(super) fn expires_at(&self, expiry_s: i32, now: Nanos) -> Nanos {
        match expiry_s {
            0 => NEVER,
            i32::MIN..=-1 => now,
            1..=RELATIVE_MAX_S => now + expiry_s as u64 * SECOND,
            _ => (expiry_s as u64 * SECOND).saturating_sub(self.unix_ns_at_zero).max(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIX_NS: u64 = 1_800_000_000 * SECOND;

    fn store() -> Store {
        Store::new(Limits::default(), ExpiryPolicy::Kept, UNIX_NS)
    }

    fn put(store: &mut Store, verb: Verb, key: &str, value: &str, expiry_s: i32, now: Nanos) -> Outcome {
        let incoming = Incoming { key: key.as_bytes(), flags: 0, expiry_s, cas: 0, value: value.as_bytes() };
        store.put(verb, &incoming, now)
    }

    fn value(store: &mut Store, key: &str, now: Nanos) -> Option<String> {
        store.read(key.as_bytes(), now).map(|item| String::from_utf8(item.value.to_vec()).unwrap())
    }

    #[test]
    fn an_item_lives_until_its_expiry_and_not_longer() {
        let mut store = store();
        put(&mut store, Verb::Set, "relative", "x", 10, 5 * SECOND);
        put(&mut store, Verb::Set, "absolute", "x", 1_800_000_010, 0);
        put(&mut store, Verb::Set, "past", "x", 1_700_000_000, 0);
        put(&mut store, Verb::Set, "negative", "x", -1, 0);
        put(&mut store, Verb::Set, "always", "x", 0, 0);
        assert!(value(&mut store, "past", 0).is_none());
        assert!(value(&mut store, "negative", 0).is_none());
        assert!(value(&mut store, "absolute", 10 * SECOND - 1).is_some());
        assert!(value(&mut store, "absolute", 10 * SECOND).is_none());
        assert!(value(&mut store, "relative", 15 * SECOND - 1).is_some());
        assert!(value(&mut store, "relative", 15 * SECOND).is_none());
        assert!(value(&mut store, "always", NEVER - 1).is_some());
        assert_eq!(store.counts.get_expired, 4);
        assert_eq!(store.len(), 1);
    }

    #[test]
    fn a_touch_moves_the_expiry() {
        let mut store = store();
        put(&mut store, Verb::Set, "a", "x", 1, 0);
        assert_eq!(store.touch(b"a", 100, 0), Outcome::Touched);
        assert!(value(&mut store, "a", 50 * SECOND).is_some());
        assert!(store.read_and_touch(b"a", 1, 50 * SECOND).is_some());
        assert!(value(&mut store, "a", 60 * SECOND).is_none());
    }

    #[test]
    fn expiry_that_is_not_kept_is_reported() {
        let mut early = Store::new(Limits::default(), ExpiryPolicy::Early(3 * SECOND), 0);
        put(&mut early, Verb::Set, "a", "x", 10, 0);
        put(&mut early, Verb::Set, "b", "x", 0, 0);
        assert!(value(&mut early, "a", 7 * SECOND - 1).is_some());
        assert!(value(&mut early, "a", 7 * SECOND).is_none());
        assert!(value(&mut early, "b", 7 * SECOND).is_some());
        assert_eq!(early.take_lapses(), [Lapse { key: b"a".to_vec(), expires: 10 * SECOND }]);
        assert!(value(&mut early, "a", 8 * SECOND).is_none());
        assert_eq!(early.take_lapses().len(), 1, "whoever misses it misses it too early");
        put(&mut early, Verb::Add, "a", "y", 10, 8 * SECOND);
        assert_eq!((value(&mut early, "a", 9 * SECOND).as_deref(), early.len()), (Some("y"), 2));
        early.take_lapses();
        assert!(value(&mut early, "a", 18 * SECOND).is_none(), "in time");
        assert_eq!((early.take_lapses().len(), early.len()), (0, 1));

        let mut never = Store::new(Limits::default(), ExpiryPolicy::Ignored, 0);
        put(&mut never, Verb::Set, "a", "x", 10, 0);
        assert!(value(&mut never, "a", 9 * SECOND).is_some());
        assert_eq!(never.take_lapses().len(), 0);
        assert!(value(&mut never, "a", 11 * SECOND).is_some());
        assert_eq!(never.take_lapses().len(), 1);
    }

    #[test]
    fn a_flush_takes_what_is_there_and_a_delayed_one_what_is_there_then() {
        let mut store = store();
        put(&mut store, Verb::Set, "a", "x", 0, 0);
        store.flush(0, 0);
        put(&mut store, Verb::Set, "b", "x", 0, 0);
        assert!(value(&mut store, "a", 0).is_none());
        assert!(value(&mut store, "b", 0).is_some());
        store.flush(2, 0);
        put(&mut store, Verb::Set, "c", "x", 0, SECOND);
        assert!(value(&mut store, "b", 2 * SECOND - 1).is_some());
        put(&mut store, Verb::Set, "d", "x", 0, 2 * SECOND);
        for (key, alive) in [("b", false), ("c", false), ("d", true)] {
            assert_eq!(value(&mut store, key, 2 * SECOND).is_some(), alive, "{key}");
        }
    }

    #[test]
    fn memory_stays_within_its_bound_and_what_is_used_stays() {
        let limits = Limits { memory_max_bytes: 100_000, ..Limits::default() };
        let mut store = Store::new(limits, ExpiryPolicy::Kept, 0);
        put(&mut store, Verb::Set, "used", "x", 0, 0);
        for number in 0..1000 {
            put(&mut store, Verb::Set, &format!("key{number}"), &"y".repeat(1000), 0, 0);
            assert!(store.len_bytes() <= 100_000);
            assert!(value(&mut store, "used", 0).is_some(), "after {number} others");
            assert!(store.places.contains_key(format!("key{number}").as_bytes()), "the newest is there");
        }
        assert!(store.counts.evictions > 800);
        assert_eq!(store.counts.evictions as usize + store.len(), 1001);
    }

    #[test]
    fn another_item_is_found_wherever_the_search_begins() {
        let mut store = store();
        assert!(store.other_than(b"a", 0).is_none());
        put(&mut store, Verb::Set, "a", "x", 0, 0);
        assert!(store.other_than(b"a", 7).is_none());
        put(&mut store, Verb::Set, "b", "y", 0, 0);
        for chance in [0, 1 << 62, 1 << 63, u64::MAX] {
            assert_eq!(&*store.other_than(b"a", chance).unwrap().value, b"y");
            assert_eq!(&*store.other_than(b"b", chance).unwrap().value, b"x");
        }
    }
}
