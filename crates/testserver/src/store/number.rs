//! Incr and decr: decimal numbers in stored values.

use std::sync::Arc;

use super::Store;
use crate::lines::unsigned;
use pummel_logic::protocol::{Outcome, Verb};
use pummel_logic::time::Nanos;

impl Store {
    /// Carries out incr and decr. Returns [`Outcome::NotStored`] when the value is not a number.
    pub(crate) fn count(
        &mut self,
        verb: Verb,
        key: &[u8],
        delta: u64,
        wanted: Option<u64>,
        now: Nanos,
    ) -> Outcome {
        let Some(place) = self.find(key, now) else {
            *self.count_of(verb, false) += 1;
            return Outcome::NotFound;
        };
        let item = self.item_mut(place);
        if wanted.is_some_and(|wanted| wanted != item.cas) {
            return Outcome::Exists;
        }
        let Some(number) = leading_number(&item.value) else { return Outcome::NotStored };
        let (flags, expires, len) = (item.flags, item.expires, item.value.len());
        *self.count_of(verb, true) += 1;
        let number = match verb {
            Verb::Incr => number.wrapping_add(delta),
            _ => number.saturating_sub(delta),
        };
        // A number that became shorter keeps the value's length: memcached writes it in place and pads it with spaces.
        let mut text = number.to_string().into_bytes();
        text.resize(text.len().max(len), b' ');
        if text.len() == len {
            let cas = self.next_cas();
            let item = self.item_mut(place);
            item.value = Arc::from(text);
            item.cas = cas;
            let key = item.key.clone();
            self.note_change(key);
        } else {
            self.store(Some(place), key, Arc::from(text), flags, expires, now);
        }
        Outcome::Number(number)
    }

    /// Carries out incr and decr, which make an item with the value `initial` where there is none.
    #[allow(clippy::too_many_arguments, reason = "each is a field of the one request that asks for this")]
    pub(crate) fn count_or_make(
        &mut self,
        verb: Verb,
        key: &[u8],
        delta: u64,
        wanted: Option<u64>,
        initial: u64,
        expiry_s: i32,
        now: Nanos,
    ) -> Outcome {
        if self.find(key, now).is_some() {
            return self.count(verb, key, delta, wanted, now);
        }
        let expires = self.expires_at(expiry_s, now);
        self.store(None, key, Arc::from(initial.to_string().as_bytes()), 0, expires, now);
        Outcome::Number(initial)
    }

    pub(crate) fn count_of(&mut self, verb: Verb, hit: bool) -> &mut u64 {
        match (verb, hit) {
            (Verb::Incr, true) => &mut self.counts.incr_hits,
            (Verb::Incr, false) => &mut self.counts.incr_misses,
            (_, true) => &mut self.counts.decr_hits,
            (_, false) => &mut self.counts.decr_misses,
        }
    }
}

/// The number that memcached reads in a value: after white space and a sign, up to white space or the end.
fn leading_number(value: &[u8]) -> Option<u64> {
    let space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = value.iter().position(|byte| !space(byte))?;
    value[start..].split(space).next().and_then(unsigned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_values_are_read_as_memcached_reads_them() {
        for (text, number) in [
            ("0", Some(0)),
            ("  7", Some(7)),
            ("12 ab", Some(12)),
            ("+5", Some(5)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("", None),
            ("   ", None),
            ("-5", None),
            ("12ab", None),
            ("+", None),
        ] {
            assert_eq!(leading_number(text.as_bytes()), number, "{text:?}");
        }
    }
}
