//! Commands about hashes.

use std::sync::Arc;

use super::call::Call;
use super::hash;
use crate::store::Form;
use pummel_logic::time::NEVER;

pub(super) fn hset(call: &mut Call<'_, '_, '_>) {
    if !call.words.count().is_multiple_of(2) {
        return call.error("ERR wrong number of arguments for 'hset' command");
    }
    let key = call.word(1);
    let Ok(old) = call.stored(key, Form::Hash) else { return };
    let expires = old.as_ref().map_or(NEVER, |old| old.expires);
    let stored = old.map(|old| old.value).unwrap_or_default();
    let fields = (2..call.words.count()).step_by(2).map(|n| (call.word(n), call.word(n + 1)));
    let (fields, added) = hash::with(&stored, fields);
    if call.write(key, &fields, Form::Hash, expires).is_ok() {
        call.integer(added as i64);
    }
}

pub(super) fn hget(call: &mut Call<'_, '_, '_>) {
    let key = call.word(1);
    let Ok(item) = call.stored(key, Form::Hash) else { return };
    let value = item.and_then(|item| hash::get(&item.value, call.word(2)).map(Arc::from));
    let counts = &mut call.context.store.counts;
    counts.cmd_get += 1;
    *if value.is_some() { &mut counts.get_hits } else { &mut counts.get_misses } += 1;
    call.value(key, value);
}

pub(super) fn hgetall(call: &mut Call<'_, '_, '_>) {
    let Ok(item) = call.stored(call.word(1), Form::Hash) else { return };
    let fields = item.map(|item| item.value).unwrap_or_default();
    call.map(hash::pairs(&fields).count());
    for (field, value) in hash::pairs(&fields) {
        call.bulk(field);
        call.bulk(value);
    }
}

pub(super) fn hdel(call: &mut Call<'_, '_, '_>) {
    let key = call.word(1);
    let Ok(Some(item)) = call.stored(key, Form::Hash) else {
        if call.reply.is_empty() {
            call.integer(0);
        }
        return;
    };
    let (fields, removed) = hash::without(&item.value, call.rest(2));
    if fields.is_empty() {
        call.context.store.delete(key, None, call.context.now);
    } else if removed > 0 && call.keep(key, &fields, Form::Hash, item.expires).is_err() {
        return;
    }
    call.integer(removed as i64);
}
