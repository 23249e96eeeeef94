//! Commands about transactions: what they watch, their beginning, and their end without effect.

use super::call::Call;
use super::queue::Queue;

/// Begins a transaction.
pub(super) fn multi(call: &mut Call<'_, '_, '_>, is_asking: bool) {
    let transaction = &mut call.context.session.transaction;
    if transaction.queue.is_some() {
        return call.error("ERR MULTI calls can not be nested");
    }
    transaction.queue = Some(Queue { is_asking, ..Queue::default() });
    call.ok();
}

pub(super) fn discard(call: &mut Call<'_, '_, '_>) {
    match std::mem::take(&mut call.context.session.transaction).queue {
        Some(_) => call.ok(),
        None => call.error("ERR DISCARD without MULTI"),
    }
}

pub(super) fn watch(call: &mut Call<'_, '_, '_>) {
    if call.context.session.transaction.queue.is_some() {
        return call.error("ERR WATCH inside MULTI is not allowed");
    }
    for key in call.rest(1) {
        let version = version_of(call, key);
        let watched = &mut call.context.session.transaction.watched;
        if !watched.iter().any(|(known, _)| known == key) {
            watched.push((key.to_vec(), version));
        }
    }
    call.ok();
}

pub(super) fn unwatch(call: &mut Call<'_, '_, '_>) {
    call.context.session.transaction.watched.clear();
    call.ok();
}

/// Refuses EXEC where there is no transaction.
pub(super) fn exec_alone(call: &mut Call<'_, '_, '_>) {
    call.error("ERR EXEC without MULTI");
}

/// The CAS unique of a key; 0 for one that does not exist.
pub(super) fn version_of(call: &mut Call<'_, '_, '_>, key: &[u8]) -> u64 {
    let now = call.context.now;
    call.context.store.peek(key, now).map_or(0, |item| item.cas)
}
