//! The figures of `stats` in the two protocols of memcached.

use super::context::Context;
use super::contract::VERSION;
use pummel_logic::time::SECOND;

/// The figures of memcached's `stats` that this server has, under memcached's names and in memcached's order.
pub(super) fn figures(context: &Context<'_>) -> Vec<(&'static str, String)> {
    let Context { gauges, now, .. } = *context;
    let store = &*context.store;
    let counts = store.counts;
    let mut figures = vec![
        ("uptime", (now.saturating_sub(gauges.started) / SECOND).to_string()),
        ("time", (gauges.unix_ns_at_zero.saturating_add(now) / SECOND).to_string()),
        ("version", VERSION.to_owned()),
    ];
    let numbers = [
        ("pointer_size", u64::from(usize::BITS)),
        ("curr_connections", gauges.connections),
        ("total_connections", counts.total_connections),
        ("cmd_get", counts.cmd_get),
        ("cmd_set", counts.cmd_set),
        ("cmd_flush", counts.cmd_flush),
        ("cmd_touch", counts.cmd_touch),
        ("cmd_meta", counts.cmd_meta),
        ("get_hits", counts.get_hits),
        ("get_misses", counts.get_misses),
        ("get_expired", counts.get_expired),
        ("get_flushed", counts.get_flushed),
        ("delete_misses", counts.delete_misses),
        ("delete_hits", counts.delete_hits),
        ("incr_misses", counts.incr_misses),
        ("incr_hits", counts.incr_hits),
        ("decr_misses", counts.decr_misses),
        ("decr_hits", counts.decr_hits),
        ("cas_misses", counts.cas_misses),
        ("cas_hits", counts.cas_hits),
        ("cas_badval", counts.cas_badval),
        ("touch_hits", counts.touch_hits),
        ("touch_misses", counts.touch_misses),
        ("store_too_large", counts.store_too_large),
        ("bytes_read", counts.bytes_read),
        ("bytes_written", counts.bytes_written),
        ("limit_maxbytes", store.limits().memory_max_bytes as u64),
        ("threads", 1),
        ("bytes", store.len_bytes() as u64),
        ("curr_items", store.len() as u64),
        ("total_items", counts.total_items),
        ("evictions", counts.evictions),
    ];
    figures.extend(numbers.map(|(name, number)| (name, number.to_string())));
    figures
}
