//! The cache's counts of the replies to one worker's clients.

use crate::protocol::Verb;
use crate::rng::Stream;
use crate::time::{NEVER, Nanos, SECOND};
use crate::workload::cache_account::CacheAccount;
use crate::workload::cache_counts::{CacheCounts, MissCause};
use crate::workload::key::Space;
use crate::workload::own_stores::KeyState;
use crate::workload::request::RequestMaker;
use crate::workload::unstored::{is_absent, is_never_loaded};

/// A key of a request, and where the request went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedKey<'a> {
    /// Index of the key.
    pub(crate) key: u64,
    /// Number of the server in the Plan.
    pub(crate) server: u32,
    /// The client's stream of operations.
    pub(crate) ops: &'a Stream,
    /// Number of the draw that the request comes from.
    pub(crate) index: u64,
    /// The random bits of the length of a write, where every write draws its own.
    pub(crate) size_bits: u64,
}

impl RequestMaker {
    /// Whether the replies of this phase are counted for the account of the cache.
    #[inline]
    pub(crate) fn counts_cache(&self) -> bool {
        self.checks.counts_cache
    }

    /// Removes the counts of the answers that were handled since the last call.
    pub fn take_cache_counts(&mut self) -> CacheCounts {
        self.cache.as_mut().map_or_else(CacheCounts::default, |account| std::mem::take(&mut account.noted))
    }

    /// Counts bytes of values that a read found.
    pub(crate) fn count_hit_bytes(&mut self, bytes: u64) {
        self.account().noted.hit_bytes += bytes;
    }

    /// Records that a read found a key.
    pub(crate) fn handle_found(&mut self, server: u32, key: u64) {
        if is_never_loaded(key) {
            self.account().stores.handle_found(server, key);
        }
    }

    /// Counts a key that a read missed whose reply arrived at `arrived`.
    pub(crate) fn count_miss(&mut self, asked: AskedKey<'_>, arrived: Nanos) {
        let bytes = self.stored_bytes(asked.key, asked.size_bits);
        let is_fresh = self.task.is_fresh(asked.key, asked.ops, asked.index);
        let account = self.account();
        let cause = match account.stores.known(asked.server, asked.key) {
            _ if is_absent(asked.key) => MissCause::Absent,
            _ if is_fresh => MissCause::FirstTouch,
            KeyState::Until(until) if until <= arrived => MissCause::Expired,
            KeyState::Unseen if is_never_loaded(asked.key) => MissCause::FirstTouch,
            KeyState::Until(_) | KeyState::Unseen | KeyState::Unknown => MissCause::Other,
        };
        account.noted.miss(cause, bytes);
    }

    /// Counts a store of a missed key that was completed; `is_duplicate` says that the key was stored by then.
    pub(crate) fn count_fill(&mut self, is_duplicate: bool) {
        let noted = &mut self.account().noted;
        noted.fills += 1;
        noted.duplicate_fills += u64::from(is_duplicate);
    }

    /// Records that a key was stored; it lives until `until`.
    pub(crate) fn handle_stored(&mut self, asked: AskedKey<'_>, until: Nanos) {
        let bytes = self.stored_bytes(asked.key, asked.size_bits);
        let is_fresh = self.task.is_fresh(asked.key, asked.ops, asked.index);
        let account = self.account();
        account.noted.stored_bytes += bytes;
        let AskedKey { server, key, .. } = asked;
        if is_fresh {
            // A fresh key is not read again.
        } else if until == NEVER && !is_never_loaded(key) {
            account.stores.handle_changed(server, key, until);
        } else {
            account.stores.handle_stored(server, key, until);
        }
    }

    /// Records that an existing key was given another expiry; it lives until `until`.
    pub(crate) fn handle_renewed(&mut self, server: u32, key: u64, until: Nanos) {
        let stores = &mut self.account().stores;
        match until {
            NEVER => stores.handle_changed(server, key, until),
            _ => stores.handle_stored(server, key, until),
        }
    }

    /// Records that a key was deleted: a later miss of it is not due to its expiry.
    pub(crate) fn handle_deleted(&mut self, server: u32, key: u64) {
        self.account().stores.handle_changed(server, key, NEVER);
    }

    /// The earliest expiry of a key to which a request of this verb gave an expiry at `sent`, by the bits from which
    /// the expiry was drawn.
    pub(crate) fn lives_until(&mut self, verb: Verb, sent: Nanos, expiry_bits: u64) -> Nanos {
        match self.records.expiry_of(verb, expiry_bits) {
            0 => NEVER,
            expiry_s => {
                let life_ns = u64::try_from(expiry_s).unwrap_or(0).saturating_mul(SECOND);
                sent.saturating_add(life_ns).saturating_sub(self.account().early_ns)
            }
        }
    }

    /// Bytes of the value that a store of a key has.
    fn stored_bytes(&self, key: u64, size_bits: u64) -> u64 {
        let values = &self.records.values;
        match values.drawn_len(size_bits) {
            Some(len) => len as u64,
            None if self.records.spaces.space(key) == Space::Counters => values.counter_len() as u64,
            None => values.len_of(key) as u64,
        }
    }

    fn account(&mut self) -> &mut CacheAccount {
        let Some(account) = &mut self.cache else { unreachable!("only phases with an account count") };
        account
    }
}
