//! Commands about strings: reading, storing, appending and counting.

use super::call::{Call, NOT_A_NUMBER, OVERFLOW, SYNTAX};
use super::request::signed;
use crate::contract::REPLY_MAX_BYTES;
use crate::store::Form;
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, NEVER, Nanos, SECOND};

pub(super) fn get(call: &mut Call<'_, '_, '_>) {
    let key = call.word(1);
    if call.stored(key, Form::Plain).is_ok() {
        let value = call.context.store.read(key, call.context.now).map(|item| item.value.clone());
        call.value(key, value);
    }
}

pub(super) fn mget(call: &mut Call<'_, '_, '_>) {
    call.head(b'*', call.words.count() - 1);
    for key in call.rest(1) {
        if call.reply.own_bytes() > REPLY_MAX_BYTES {
            call.reply.clear();
            return call.error("OOM the reply would not fit into memory");
        }
        let item = call.context.store.read(key, call.context.now);
        let value = item.filter(|item| item.form == Form::Plain).map(|item| item.value.clone());
        call.value(key, value);
    }
}

pub(super) fn getdel(call: &mut Call<'_, '_, '_>) {
    let key = call.word(1);
    if call.stored(key, Form::Plain).is_ok() {
        let now = call.context.now;
        let value = call.context.store.read(key, now).map(|item| item.value.clone());
        if value.is_some() {
            call.context.store.delete(key, None, now);
        }
        call.value(key, value);
    }
}

pub(super) fn getex(call: &mut Call<'_, '_, '_>) {
    let key = call.word(1);
    let Ok(options) = Options::read(call, 2, Options::GETEX) else { return };
    if call.stored(key, Form::Plain).is_err() {
        return;
    }
    let now = call.context.now;
    let store = &mut *call.context.store;
    let item = match options.expires {
        None if !options.persist => store.read(key, now),
        expires => store.read_and_touch_until(key, expires.unwrap_or(NEVER), now),
    };
    let value = item.map(|item| item.value.clone());
    call.value(key, value);
}

/// The words after the key, or after key and value.
#[derive(Debug, Default)]
struct Options {
    expires: Option<Nanos>,
    keep_expiry: bool,
    persist: bool,
    only_new: bool,
    only_present: bool,
    get: bool,
}

impl Options {
    const SET: &'static [&'static str] = &["EX", "PX", "EXAT", "PXAT", "KEEPTTL", "NX", "XX", "GET"];
    const GETEX: &'static [&'static str] = &["EX", "PX", "EXAT", "PXAT", "PERSIST"];

    /// Reads the options; writes an error for a wrong one.
    fn read(call: &mut Call<'_, '_, '_>, from: usize, allowed: &[&str]) -> Result<Options, ()> {
        let mut options = Options::default();
        let mut at = from;
        while at < call.words.count() {
            let Some(&word) = allowed.iter().find(|word| call.is(at, word)) else {
                call.error(SYNTAX);
                return Err(());
            };
            let timed = matches!(word, "EX" | "PX" | "EXAT" | "PXAT");
            let twice = (timed || matches!(word, "KEEPTTL" | "PERSIST"))
                && (options.expires.is_some() || options.keep_expiry || options.persist);
            if twice || (timed && at + 1 >= call.words.count()) {
                call.error(SYNTAX);
                return Err(());
            }
            match word {
                "KEEPTTL" => options.keep_expiry = true,
                "PERSIST" => options.persist = true,
                "NX" => options.only_new = true,
                "XX" => options.only_present = true,
                "GET" => options.get = true,
                _ => {
                    at += 1;
                    options.expires = Some(options_moment(call, word, at)?);
                }
            }
            at += 1;
        }
        if options.only_new && options.only_present {
            call.error(SYNTAX);
            return Err(());
        }
        Ok(options)
    }
}

fn options_moment(call: &mut Call<'_, '_, '_>, word: &str, at: usize) -> Result<Nanos, ()> {
    let unit_ns = if word.starts_with('P') { MILLISECOND } else { SECOND };
    let count = call.number(at);
    if count.is_some_and(|count| count <= 0) {
        let name = String::from_utf8_lossy(call.word(0)).to_lowercase();
        call.error(&format!("ERR invalid expire time in '{name}' command"));
        return Err(());
    }
    call.moment(count, unit_ns, word.ends_with("AT"))
}

pub(super) fn set(call: &mut Call<'_, '_, '_>) {
    let (key, value) = (call.word(1), call.word(2));
    let Ok(options) = Options::read(call, 3, Options::SET) else { return };
    let old = match options.get {
        true => call.stored(key, Form::Plain),
        false => Ok(call.context.store.peek(key, call.context.now).cloned()),
    };
    let Ok(old) = old else { return };
    let expires = match (options.expires, &old) {
        (Some(expires), _) => expires,
        (None, Some(old)) if options.keep_expiry => old.expires,
        _ => NEVER,
    };
    let holds = !(options.only_new && old.is_some() || options.only_present && old.is_none());
    if !holds {
        call.context.store.counts.cmd_set += 1;
    } else if call.write(key, value, Form::Plain, expires).is_err() {
        return;
    }
    match (options.get, holds) {
        (true, _) => call.value(key, old.map(|old| old.value)),
        (false, true) => call.ok(),
        (false, false) => call.null(),
    }
}

pub(super) fn setex(call: &mut Call<'_, '_, '_>) {
    let Ok(expires) = options_moment(call, "EX", 2) else { return };
    if call.write(call.word(1), call.word(3), Form::Plain, expires).is_ok() {
        call.ok();
    }
}

pub(super) fn setnx(call: &mut Call<'_, '_, '_>) {
    let key = call.word(1);
    if call.context.store.peek(key, call.context.now).is_some() {
        call.context.store.counts.cmd_set += 1;
        call.integer(0);
    } else if call.write(key, call.word(2), Form::Plain, NEVER).is_ok() {
        call.integer(1);
    }
}

pub(super) fn mset(call: &mut Call<'_, '_, '_>) {
    if call.words.count().is_multiple_of(2) {
        return call.error("ERR wrong number of arguments for 'mset' command");
    }
    for n in (1..call.words.count()).step_by(2) {
        if call.write(call.word(n), call.word(n + 1), Form::Plain, NEVER).is_err() {
            return;
        }
    }
    call.ok();
}

pub(super) fn append(call: &mut Call<'_, '_, '_>) {
    let key = call.word(1);
    let Ok(old) = call.stored(key, Form::Plain) else { return };
    let (value, expires) = match old {
        Some(old) => ([&old.value, call.word(2)].concat(), old.expires),
        None => (call.word(2).to_vec(), NEVER),
    };
    if call.write(key, &value, Form::Plain, expires).is_ok() {
        call.integer(value.len() as i64);
    }
}

pub(super) fn strlen(call: &mut Call<'_, '_, '_>) {
    if let Ok(item) = call.stored(call.word(1), Form::Plain) {
        call.integer(item.map_or(0, |item| item.value.len() as i64));
    }
}

pub(super) fn decrby(call: &mut Call<'_, '_, '_>) {
    if call.number(2) == Some(i64::MIN) {
        return call.error("ERR decrement would overflow");
    }
    count(call, Verb::Decr, call.number(2).map(|number| -number));
}

pub(super) fn count(call: &mut Call<'_, '_, '_>, verb: Verb, delta: Option<i64>) {
    let key = call.word(1);
    let Ok(old) = call.stored(key, Form::Plain) else { return };
    let number = old.as_ref().map_or(Some(0), |old| signed(&old.value));
    let (Some(number), Some(delta)) = (number, delta) else { return call.error(NOT_A_NUMBER) };
    *call.context.store.count_of(verb, old.is_some()) += 1;
    let Some(number) = number.checked_add(delta) else { return call.error(OVERFLOW) };
    let expires = old.map_or(NEVER, |old| old.expires);
    if call.keep(key, number.to_string().as_bytes(), Form::Plain, expires).is_ok() {
        call.integer(number);
    }
}
