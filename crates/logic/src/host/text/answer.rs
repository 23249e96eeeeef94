//! memcached's text protocol from the server's side: requests are carried out and become replies.

use super::{BAD_CHUNK, BAD_EXPIRY, BAD_FORMAT, Command, ERROR};
use crate::host::fault::Faults;
use crate::host::owed::Reply;
use crate::host::store::{Item, KEY_MAX_BYTES, Store};
use crate::time::{Nanos, SECOND};
use crate::wire::{Outcome, Verb};

/// What the server calls itself: the version of memcached whose behaviour it has, and who it is.
pub const VERSION: &str = "1.6.18-pummel";

/// A reply may take so much memory beside the values that are stored anyway; memcached too has a bound there.
const REPLY_MAX_BYTES: usize = 32 << 20;

const NOT_A_NUMBER: &str = "CLIENT_ERROR cannot increment or decrement non-numeric value";
const TOO_MUCH: &str = "SERVER_ERROR out of memory writing get response";
const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";
/// The answer of [`Fault::ErrorEvery`](crate::host::fault::Fault::ErrorEvery).
const ASKED_FOR_ERROR: &[u8] = b"SERVER_ERROR this request was chosen to fail\r\n";

/// Figures of `stats` that the store does not know.
#[derive(Clone, Copy, Debug)]
pub(in crate::host) struct Gauges {
    pub(in crate::host) started: Nanos,
    pub(in crate::host) unix_ns_at_zero: u64,
    pub(in crate::host) connections: u64,
}

/// Carries out `command` and writes its reply, also where it asked for none.
pub(in crate::host) fn answer(
    command: &Command<'_>,
    store: &mut Store,
    faults: &mut Faults,
    gauges: Gauges,
    now: Nanos,
    reply: &mut Reply,
) {
    let outcome = match *command {
        Command::Read { verb, expiry_s, keys } => {
            return read(verb, expiry_s, keys, store, faults, now, reply);
        }
        Command::Stats { topic } => return stats(topic, store, gauges, now, reply),
        Command::Quit => return,
        Command::Say(line) => return say(line, reply),
        Command::Version => {
            reply.push(b"VERSION ");
            return say(VERSION, reply);
        }
        Command::Spoiled => {
            store.put_spoiled();
            return say(BAD_CHUNK, reply);
        }
        Command::TooLarge { verb, key } => {
            store.put_too_large(verb, key, now);
            return say(TOO_LARGE, reply);
        }
        Command::Count { verb, key, delta } => match store.count(verb, key, delta, now) {
            Outcome::NotStored => return say(NOT_A_NUMBER, reply),
            outcome => outcome,
        },
        Command::Store { verb, incoming } => store.put(verb, &incoming, now),
        Command::Delete { key } => store.delete(key, now),
        Command::Touch { key, expiry_s } => store.touch(key, expiry_s, now),
        Command::Flush { delay_s: None } => {
            store.flush_refused();
            return say(BAD_EXPIRY, reply);
        }
        Command::Flush { delay_s: Some(delay_s) } => {
            store.flush(delay_s, now);
            Outcome::Ok
        }
    };
    match outcome {
        Outcome::Number(number) => {
            reply.push_decimal(number);
            reply.push(b"\r\n");
        }
        outcome => say(word_of(outcome), reply),
    }
}

/// The answer to a request that was chosen to fail.
pub(in crate::host) fn fail(reply: &mut Reply) {
    reply.push(ASKED_FOR_ERROR);
}

fn say(line: &str, reply: &mut Reply) {
    reply.push(line.as_bytes());
    reply.push(b"\r\n");
}

fn word_of(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Stored => "STORED",
        Outcome::NotStored => "NOT_STORED",
        Outcome::Exists => "EXISTS",
        Outcome::NotFound => "NOT_FOUND",
        Outcome::Deleted => "DELETED",
        Outcome::Touched => "TOUCHED",
        Outcome::Ok => "OK",
        Outcome::Hit
        | Outcome::Miss
        | Outcome::Number(_)
        | Outcome::Stale
        | Outcome::Win
        | Outcome::Recaching
        | Outcome::Error(_) => {
            unreachable!("the store does not answer a change with {outcome:?}")
        }
    }
}

fn read(
    verb: Verb,
    expiry_s: i32,
    keys: &[u8],
    store: &mut Store,
    faults: &mut Faults,
    now: Nanos,
    reply: &mut Reply,
) {
    for key in keys.split(|&byte| byte == b' ').filter(|key| !key.is_empty()) {
        if key.len() > KEY_MAX_BYTES {
            reply.clear();
            return say(BAD_FORMAT, reply);
        }
        if reply.own_bytes() > REPLY_MAX_BYTES {
            reply.clear();
            return say(TOO_MUCH, reply);
        }
        let item = match verb {
            Verb::Get | Verb::Gets => store.read(key, now),
            _ => store.read_and_touch(key, expiry_s, now),
        };
        let Some(Item { value, flags, cas, .. }) = item.cloned() else { continue };
        let value = faults.tamper(store, key, value);
        reply.push(b"VALUE ");
        reply.push(key);
        reply.push(b" ");
        reply.push_decimal(u64::from(flags));
        reply.push(b" ");
        reply.push_decimal(value.len() as u64);
        if matches!(verb, Verb::Gets | Verb::Gats) {
            reply.push(b" ");
            reply.push_decimal(cas);
        }
        reply.push(b"\r\n");
        reply.push_value(value);
        reply.push(b"\r\n");
    }
    reply.push(b"END\r\n");
}

fn stats(topic: &[u8], store: &mut Store, gauges: Gauges, now: Nanos, reply: &mut Reply) {
    match topic {
        b"" => general_stats(store, gauges, now, reply),
        b"reset" => {
            store.reset_counts();
            say("RESET", reply);
        }
        b"settings" => {
            for (name, number) in [
                ("maxbytes", store.limits().memory_max_bytes),
                ("item_size_max", store.limits().item_max_bytes),
                ("num_threads", 1),
            ] {
                stat(name, number as u64, reply);
            }
            say("END", reply);
        }
        b"items" | b"slabs" | b"sizes" | b"conns" | b"extstore" | b"proxy" => say("END", reply),
        _ => say(ERROR, reply),
    }
}

fn stat(name: &str, number: u64, reply: &mut Reply) {
    reply.push(b"STAT ");
    reply.push(name.as_bytes());
    reply.push(b" ");
    reply.push_decimal(number);
    reply.push(b"\r\n");
}

/// The figures of memcached's `stats` that this server has, under memcached's names and in memcached's order.
fn general_stats(store: &Store, gauges: Gauges, now: Nanos, reply: &mut Reply) {
    let counts = store.counts;
    stat("uptime", now.saturating_sub(gauges.started) / SECOND, reply);
    stat("time", gauges.unix_ns_at_zero.saturating_add(now) / SECOND, reply);
    reply.push(b"STAT version ");
    say(VERSION, reply);
    for (name, number) in [
        ("pointer_size", u64::from(usize::BITS)),
        ("curr_connections", gauges.connections),
        ("total_connections", counts.total_connections),
        ("cmd_get", counts.cmd_get),
        ("cmd_set", counts.cmd_set),
        ("cmd_flush", counts.cmd_flush),
        ("cmd_touch", counts.cmd_touch),
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
    ] {
        stat(name, number, reply);
    }
    say("END", reply);
}
