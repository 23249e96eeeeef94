//! Commands about scripts: they are kept by their names, and calls of those that are kept are answered without carrying anything out.

use super::call::{Call, NOT_A_NUMBER};
use crate::resp::request::signed;
use pummel_logic::protocol::Keys;

const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";

/// Number of the keys of a call of a script; `None` where it says none that there can be.
pub(super) fn key_count(words: Keys<'_>) -> Option<usize> {
    let count = usize::try_from(signed(words.key(2))?).ok()?;
    (words.count().checked_sub(3)? >= count).then_some(count)
}

pub(super) fn script(call: &mut Call<'_, '_, '_>) {
    match call.words.count() {
        3 if call.is(1, "load") => match call.context.scripts.load(call.word(2)) {
            Some(name) => call.bulk(name.as_bytes()),
            None => call.error("OOM too many scripts"),
        },
        3.. if call.is(1, "exists") => {
            call.head(b'*', call.words.count() - 2);
            call.rest(2).for_each(|name| {
                let is_kept = call.context.scripts.has(name);
                call.integer(is_kept.into());
            });
        }
        2 | 3 if call.is(1, "flush") => {
            call.context.scripts.flush();
            call.ok();
        }
        _ => call.error("ERR unknown subcommand or wrong number of arguments. Try SCRIPT LOAD."),
    }
}

/// Keeps a script, and answers as to one that is kept.
pub(super) fn eval(call: &mut Call<'_, '_, '_>) {
    match call.context.scripts.load(call.word(1)) {
        Some(_) => answer(call),
        None => call.error("OOM too many scripts"),
    }
}

pub(super) fn evalsha(call: &mut Call<'_, '_, '_>) {
    if call.context.scripts.has(call.word(1)) { answer(call) } else { call.error(NO_SCRIPT) }
}

/// Answers a call of a script with the number of its keys.
fn answer(call: &mut Call<'_, '_, '_>) {
    match key_count(call.words) {
        Some(keys) => call.integer(keys as i64),
        None => call.error(NOT_A_NUMBER),
    }
}
