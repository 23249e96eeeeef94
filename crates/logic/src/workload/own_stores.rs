//! One worker's knowledge of the keys that it stored or found: until when each of them lives.
//!
//! The table has a limit. A key that found no place in it is unknown, and so is every other key that is not there from then on.

use crate::rng::mix;
use crate::time::{NEVER, Nanos};

/// Places of the table, each of 16 bytes, which is what `plan::memory` counts for it.
const PLACES: usize = 1 << 19;

/// Most keys in the table: with more, looking for one that is not there takes long.
const KEYS_MAX: usize = PLACES / 4 * 3;

/// The first number of a server that has no place in the table beside a key.
const SERVERS_END: u32 = 1 << 10;

/// Bits of the number of a key, of which the greatest is below 10^16.
const KEY_BITS: u32 = 54;

/// The knowledge about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyState {
    /// The worker has stored or found the key, and it was not to expire before this time, in nanoseconds; [`NEVER`] where no
    /// end of its life is known.
    Until(Nanos),
    /// The worker has neither stored nor found the key.
    Unseen,
    /// The table had no place for all keys, and this one is not there.
    Unknown,
}

/// The keys that one worker stored or found.
#[derive(Debug)]
pub(crate) struct OwnStores {
    /// The key and its server, 0 if the place is free, and the end of the key's life.
    places: Box<[(u64, Nanos)]>,
    keys: usize,
    /// A key was left out.
    is_full: bool,
}

impl OwnStores {
    /// A table without keys.
    pub(crate) fn new() -> OwnStores {
        OwnStores { places: vec![(0, 0); PLACES].into(), keys: 0, is_full: false }
    }

    /// Notes that the worker stored a key, whose life ends at `until`.
    pub(crate) fn handle_stored(&mut self, server: u32, key: u64, until: Nanos) {
        if let Some(place) = self.take(server, key) {
            place.1 = until;
        }
    }

    /// Notes that a key was found; a known end of its life stays known.
    pub(crate) fn handle_found(&mut self, server: u32, key: u64) {
        if self.known(server, key) == KeyState::Unseen {
            self.handle_stored(server, key, NEVER);
        }
    }

    /// Records that the life of a key ends at another time, if the key is known.
    pub(crate) fn handle_changed(&mut self, server: u32, key: u64, until: Nanos) {
        if matches!(self.known(server, key), KeyState::Until(_)) {
            self.handle_stored(server, key, until);
        }
    }

    /// The knowledge about a key.
    pub(crate) fn known(&self, server: u32, key: u64) -> KeyState {
        let absent = if self.is_full { KeyState::Unknown } else { KeyState::Unseen };
        let Some(name) = name_of(server, key) else { return KeyState::Unknown };
        match self.places[self.place_of(name)] {
            (found, until) if found == name => KeyState::Until(until),
            _ => absent,
        }
    }

    /// The place of a key, a new one where there is room for it.
    fn take(&mut self, server: u32, key: u64) -> Option<&mut (u64, Nanos)> {
        let name = name_of(server, key)?;
        let at = self.place_of(name);
        if self.places[at].0 != name {
            if self.keys == KEYS_MAX {
                self.is_full = true;
                return None;
            }
            self.keys += 1;
            self.places[at].0 = name;
        }
        Some(&mut self.places[at])
    }

    /// The place of a key, or the free place that it would take.
    fn place_of(&self, name: u64) -> usize {
        let mut at = mix(&[name]) as usize % PLACES;
        while self.places[at].0 != name && self.places[at].0 != 0 {
            at = (at + 1) % PLACES;
        }
        at
    }
}

/// A key on a server as one number above 0; `None` where the number has no room for both.
fn name_of(server: u32, key: u64) -> Option<u64> {
    let fits = server < SERVERS_END - 1 && key < 1 << KEY_BITS;
    fits.then(|| u64::from(server + 1) << KEY_BITS | key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_on_the_server_that_it_was_stored_on() {
        let mut stores = OwnStores::new();
        assert_eq!(stores.known(0, 7), KeyState::Unseen);
        stores.handle_changed(0, 7, 5);
        assert_eq!(stores.known(0, 7), KeyState::Unseen, "only what is known changes");
        stores.handle_stored(0, 7, 100);
        assert_eq!((stores.known(0, 7), stores.known(1, 7)), (KeyState::Until(100), KeyState::Unseen));
        stores.handle_found(0, 7);
        assert_eq!(stores.known(0, 7), KeyState::Until(100));
        stores.handle_changed(0, 7, 300);
        stores.handle_found(1, 7);
        assert_eq!((stores.known(0, 7), stores.known(1, 7)), (KeyState::Until(300), KeyState::Until(NEVER)));
        assert_eq!(stores.known(SERVERS_END, 7), KeyState::Unknown);
        stores.handle_stored(SERVERS_END, 7, 1);
    }

    #[test]
    fn a_full_table_keeps_what_it_has_and_says_that_it_does_not_know_the_rest() {
        let mut stores = OwnStores::new();
        let most = KEYS_MAX as u64;
        (0..most).for_each(|key| stores.handle_stored(0, key, key));
        assert_eq!(stores.known(0, most), KeyState::Unseen);
        stores.handle_stored(0, most, 1);
        assert_eq!(stores.known(0, most), KeyState::Unknown);
        assert!((0..most).step_by(997).all(|key| stores.known(0, key) == KeyState::Until(key)));
        stores.handle_stored(0, 5, 1);
        assert_eq!(stores.known(0, 5), KeyState::Until(1));
    }
}
