//! Execution of one command: its words, the context of its answer, and the ways in which it is answered.

use std::sync::Arc;

use crate::context::Context;
use crate::owed::ReplyBuffer;
use crate::resp::request::signed;
use crate::store::{Form, StoredItem, item_len_bytes};
use pummel_logic::protocol::Keys;
use pummel_logic::time::{NEVER, Nanos};

pub(super) const SYNTAX: &str = "ERR syntax error";
pub(super) const NOT_A_NUMBER: &str = "ERR value is not an integer or out of range";
pub(super) const OVERFLOW: &str = "ERR increment or decrement would overflow";
pub(super) const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
pub(super) const TOO_LARGE: &str = "ERR string exceeds maximum allowed size";
pub(super) const WRONG_LOGIN: &str = "WRONGPASS invalid username-password pair or user is disabled.";

/// Writes an error with these words.
pub(super) fn error(words: &str, reply: &mut ReplyBuffer) {
    reply.push(b"-");
    reply.push(words.as_bytes());
    reply.push(b"\r\n");
}

/// A command that is being carried out.
pub(super) struct Call<'c, 'x, 'w> {
    pub(super) words: Keys<'w>,
    pub(super) context: &'c mut Context<'x>,
    pub(super) reply: &'c mut ReplyBuffer,
}

impl<'w> Call<'_, '_, 'w> {
    pub(super) fn word(&self, n: usize) -> &'w [u8] {
        self.words.key(n)
    }

    /// The words from number `from` on.
    pub(super) fn rest(&self, from: usize) -> impl Iterator<Item = &'w [u8]> + use<'w> {
        let words = self.words;
        (from..words.count()).map(move |n| words.key(n))
    }

    pub(super) fn is(&self, n: usize, word: &str) -> bool {
        n < self.words.count() && self.word(n).eq_ignore_ascii_case(word.as_bytes())
    }

    pub(super) fn number(&self, n: usize) -> Option<i64> {
        signed(self.word(n))
    }

    pub(super) fn error(&mut self, words: &str) {
        error(words, self.reply);
    }

    pub(super) fn status(&mut self, word: &str) {
        self.reply.push(b"+");
        self.reply.push(word.as_bytes());
        self.reply.push(b"\r\n");
    }

    pub(super) fn ok(&mut self) {
        self.status("OK");
    }

    pub(super) fn integer(&mut self, number: i64) {
        self.reply.push(format!(":{number}\r\n").as_bytes());
    }

    pub(super) fn null(&mut self) {
        self.reply.push(if self.context.session.resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    pub(super) fn head(&mut self, kind: u8, len: usize) {
        self.reply.push(&[kind]);
        self.reply.push_decimal(len as u64);
        self.reply.push(b"\r\n");
    }

    /// Writes the head of an array, or in RESP3 of a map, of this many pairs.
    pub(super) fn map(&mut self, pairs: usize) {
        match self.context.session.resp3 {
            true => self.head(b'%', pairs),
            false => self.head(b'*', pairs * 2),
        }
    }

    pub(super) fn bulk(&mut self, bytes: &[u8]) {
        self.head(b'$', bytes.len());
        self.reply.push(bytes);
        self.reply.push(b"\r\n");
    }

    /// Writes a text of several lines, verbatim in RESP3.
    pub(super) fn text(&mut self, text: &str) {
        if !self.context.session.resp3 {
            return self.bulk(text.as_bytes());
        }
        self.head(b'=', text.len() + 4);
        self.reply.push(b"txt:");
        self.reply.push(text.as_bytes());
        self.reply.push(b"\r\n");
    }

    /// Names and values of a map, as bulk strings.
    pub(super) fn pairs(&mut self, pairs: &[(&str, &str)]) {
        pairs.iter().flat_map(|(name, value)| [name, value]).for_each(|word| self.bulk(word.as_bytes()));
    }

    /// Writes a value, tampered with where a fault asks for it; or null.
    pub(super) fn value(&mut self, key: &[u8], value: Option<Arc<[u8]>>) {
        match value {
            Some(value) => {
                let value = self.context.faults.tamper(self.context.store, key, value);
                self.head(b'$', value.len());
                self.reply.push_value(value);
                self.reply.push(b"\r\n");
            }
            None => self.null(),
        }
    }

    /// The item under the key, if it has the form that the command needs; writes an error if it has another.
    pub(super) fn stored(&mut self, key: &[u8], form: Form) -> Result<Option<StoredItem>, ()> {
        match self.context.store.peek(key, self.context.now) {
            Some(item) if item.form != form => {
                self.error(WRONG_TYPE);
                Err(())
            }
            item => Ok(item.cloned()),
        }
    }

    /// Stores a value as a setting command does, or writes the error that forbids it.
    pub(super) fn write(&mut self, key: &[u8], value: &[u8], form: Form, expires: Nanos) -> Result<(), ()> {
        self.context.store.counts.cmd_set += 1;
        self.keep(key, value, form, expires)
    }

    /// Stores a value, or writes the error that forbids it.
    pub(super) fn keep(&mut self, key: &[u8], value: &[u8], form: Form, expires: Nanos) -> Result<(), ()> {
        if item_len_bytes(key.len(), 0, value.len()) > self.context.store.limits().item_max_bytes {
            self.context.store.counts.store_too_large += 1;
            self.error(TOO_LARGE);
            return Err(());
        }
        self.context.store.write(key, Arc::from(value), form, expires, self.context.now);
        Ok(())
    }

    /// The moment of an expiry of `count` units, from now or, for a date, since 1970; writes an error where there is no
    /// number.
    pub(super) fn moment(&mut self, count: Option<i64>, unit_ns: Nanos, date: bool) -> Result<Nanos, ()> {
        let Some(count) = count else {
            self.error(NOT_A_NUMBER);
            return Err(());
        };
        let Context { now, gauges, .. } = *self.context;
        let span_ns = i128::from(count) * i128::from(unit_ns);
        let start = if date { -i128::from(gauges.unix_ns_at_zero) } else { i128::from(now) };
        Ok((start + span_ns).clamp(i128::from(now), i128::from(NEVER) - 1) as Nanos)
    }
}
