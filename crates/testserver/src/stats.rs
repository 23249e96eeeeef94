//! The figures of `stats` in the two protocols of memcached.

use super::context::Context;
use super::contract::VERSION;
use pummel_logic::time::SECOND;

/// The figures of memcached's `stats` that this server has, under memcached's names and in memcached's order.
pub(super) fn figures(context: &Context<'_>) -> Vec<(&'static str, String)> {
    let Context { gauges, now, .. } = *context;
    let store = &*context.store;
    let mut figures = vec![
        ("uptime", (now.saturating_sub(gauges.started) / SECOND).to_string()),
        ("time", (gauges.unix_ns_at_zero.saturating_add(now) / SECOND).to_string()),
        ("version", VERSION.to_owned()),
    ];
    let before = [("pointer_size", u64::from(usize::BITS)), ("curr_connections", gauges.connections)];
    let behind = [
        ("limit_maxbytes", store.limits().memory_max_bytes as u64),
        ("threads", 1),
        ("bytes", store.len_bytes() as u64),
        ("curr_items", store.len() as u64),
    ];
    let numbers = before.into_iter().chain(store.counts.named()).chain(behind);
    figures.extend(numbers.map(|(name, number)| (name, number.to_string())));
    figures
}
