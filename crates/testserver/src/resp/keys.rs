//! Commands about keys: deleting, asking for them, and when they expire.

use super::call::Call;
use crate::store::Form;
use pummel_logic::protocol::Outcome;
use pummel_logic::time::{NEVER, Nanos};

pub(super) fn del(call: &mut Call<'_, '_, '_>) {
    let now = call.context.now;
    let removed = call.rest(1).filter(|key| call.context.store.delete(key, None, now) == Outcome::Deleted);
    let removed = removed.count();
    call.integer(removed as i64);
}

pub(super) fn exists(call: &mut Call<'_, '_, '_>) {
    let now = call.context.now;
    let found = call.rest(1).filter(|key| call.context.store.peek(key, now).is_some()).count();
    call.integer(found as i64);
}

pub(super) fn kind_of(call: &mut Call<'_, '_, '_>) {
    let form = call.context.store.peek(call.word(1), call.context.now).map(|item| item.form);
    call.status(match form {
        None => "none",
        Some(Form::Plain) => "string",
        Some(Form::Hash) => "hash",
    });
}

pub(super) fn expire(call: &mut Call<'_, '_, '_>, unit_ns: Nanos, date: bool) {
    if call.words.count() > 3 {
        return call.error("ERR Unsupported option");
    }
    let Ok(expires) = call.moment(call.number(2), unit_ns, date) else { return };
    let found = call.context.store.read_and_touch_until(call.word(1), expires, call.context.now).is_some();
    call.integer(i64::from(found));
}

pub(super) fn persist(call: &mut Call<'_, '_, '_>) {
    let (key, now) = (call.word(1), call.context.now);
    let expires = call.context.store.peek(key, now).is_some_and(|item| item.expires != NEVER);
    if expires {
        call.context.store.set_expiry(key, 0, now);
    }
    call.integer(i64::from(expires));
}

/// Writes the remaining time, rounded to the nearest unit as in Redis.
pub(super) fn remaining(call: &mut Call<'_, '_, '_>, unit_ns: Nanos) {
    let now = call.context.now;
    let units = match call.context.store.peek(call.word(1), now).map(|item| item.expires) {
        None => -2,
        Some(NEVER) => -1,
        // With the fault `ignore-expiry`, there are items whose time is over.
        Some(expires) => (expires.saturating_sub(now).saturating_add(unit_ns / 2) / unit_ns) as i64,
    };
    call.integer(units);
}
