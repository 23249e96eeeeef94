//! memcached's text protocol from the server's side: requests are carried out and become replies.

use super::request::{BAD_EXPIRY, Command};
use crate::context::Context;
use crate::contract::{ASKED_FOR_ERROR, REPLY_MAX_BYTES, VERSION};
use crate::lines::{BAD_CHUNK, BAD_FORMAT, ERROR, NOT_A_NUMBER, TOO_LARGE, say};
use crate::meta;
use crate::owed::ReplyBuffer;
use crate::stats::figures;
use crate::store::{KEY_MAX_BYTES, StoreCounts, StoredItem};
use pummel_logic::protocol::{Outcome, Verb};

const TOO_MUCH: &str = "SERVER_ERROR out of memory writing get response";

const SHUT_OUT: &str = "CLIENT_ERROR unauthenticated";
const WRONG_LOGIN: &str = "CLIENT_ERROR authentication failure";

/// Carries out `command` and writes its reply, even where the request asked for none.
pub(crate) fn answer(command: &Command<'_>, context: &mut Context<'_>, reply: &mut ReplyBuffer) {
    if context.needs_login() {
        return say(login(command, context), reply);
    }
    let now = context.now;
    let store = &mut *context.store;
    let outcome = match *command {
        Command::Read { verb, expiry_s, keys } => {
            return read(verb, expiry_s, keys, context, reply);
        }
        Command::Stats(topic) => return stats(topic, context, reply),
        Command::Meta { meta, line, payload } => return meta::answer(meta, line, payload, context, reply),
        Command::Quit => {
            context.session.is_closing = true;
            return;
        }
        Command::Say(line) => return say(line, reply),
        Command::Version => {
            reply.push(b"VERSION ");
            return say(VERSION, reply);
        }
        Command::Spoiled => {
            store.counts.cmd_set += 1;
            return say(BAD_CHUNK, reply);
        }
        Command::TooLarge { verb, key } => {
            store.put_too_large(verb, key, now);
            return say(TOO_LARGE, reply);
        }
        Command::Count { verb, key, delta } => match store.count(verb, key, delta, None, now) {
            Outcome::NotStored => return say(NOT_A_NUMBER, reply),
            outcome => outcome,
        },
        Command::Store { verb, incoming } => store.put(verb, &incoming, now),
        Command::Delete(key) => store.delete(key, None, now),
        Command::Touch { key, expiry_s } => store.touch(key, expiry_s, now),
        Command::Flush(None) => {
            store.counts.cmd_flush += 1;
            return say(BAD_EXPIRY, reply);
        }
        Command::Flush(Some(delay_s)) => {
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

/// Writes the answer to a request that was chosen to fail.
pub(crate) fn fail(reply: &mut ReplyBuffer) {
    reply.push(b"SERVER_ERROR ");
    say(ASKED_FOR_ERROR, reply);
}

/// Answers a connection that has to log in by the value of a set (`protocol.txt`, "Authentication").
fn login(command: &Command<'_>, context: &mut Context<'_>) -> &'static str {
    match command {
        Command::Store { verb: Verb::Set, incoming } => {
            let space = incoming.value.iter().position(|&byte| byte == b' ');
            let (user, password) = incoming.value.split_at(space.unwrap_or(incoming.value.len()));
            match context.try_login(user, password.get(1..).unwrap_or_default()) {
                true => "STORED",
                false => WRONG_LOGIN,
            }
        }
        Command::Quit => {
            context.session.is_closing = true;
            SHUT_OUT
        }
        _ => SHUT_OUT,
    }
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
        | Outcome::Found { .. }
        | Outcome::Conflict
        | Outcome::Failed { .. }
        | Outcome::Error(_) => {
            unreachable!("the store does not answer a change with {outcome:?}")
        }
    }
}

fn read(verb: Verb, expiry_s: i32, keys: &[u8], context: &mut Context<'_>, reply: &mut ReplyBuffer) {
    let now = context.now;
    let store = &mut *context.store;
    let mut found_last = true;
    let keys = keys.split(|&byte| byte == b' ').filter(|key| !key.is_empty());
    for (n, key) in keys.enumerate() {
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
        found_last = n == 0 || item.is_some();
        let Some(StoredItem { value, flags, cas, .. }) = item.cloned() else { continue };
        let value = context.faults.tamper(store, key, value);
        if n > 0 {
            reply.begin_part();
        }
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
    if !found_last {
        reply.begin_part();
    }
    reply.push(b"END\r\n");
}

fn stats(topic: &[u8], context: &mut Context<'_>, reply: &mut ReplyBuffer) {
    let limits = context.store.limits();
    match topic {
        b"" => {
            for (name, figure) in figures(context) {
                stat(name, &figure, reply);
            }
            say("END", reply);
        }
        b"reset" => {
            context.store.counts = StoreCounts::default();
            say("RESET", reply);
        }
        b"settings" => {
            for (name, number) in [
                ("maxbytes", limits.memory_max_bytes),
                ("item_size_max", limits.item_max_bytes),
                ("num_threads", 1),
            ] {
                stat(name, &number.to_string(), reply);
            }
            say("END", reply);
        }
        b"items" | b"slabs" | b"sizes" | b"conns" | b"extstore" | b"proxy" => say("END", reply),
        _ => say(ERROR, reply),
    }
}

fn stat(name: &str, figure: &str, reply: &mut ReplyBuffer) {
    for word in ["STAT ", name, " "] {
        reply.push(word.as_bytes());
    }
    say(figure, reply);
}
