//! RESP from the server's side: commands are carried out and become replies.

use std::sync::Arc;

use super::command::{self, Command};
use super::{Asked, Request, hash, signed};
use crate::protocol::{Keys, Outcome, Verb};
use crate::server::owed::Reply;
use crate::server::store::{Form, Item, Match, item_len_bytes};
use crate::server::talk::Context;
use crate::server::text::{ASKED_FOR_ERROR, REPLY_MAX_BYTES, VERSION};
use crate::time::{MILLISECOND, NEVER, Nanos, SECOND};

/// What the server calls itself where Redis is asked for.
const REDIS_VERSION: &str = "7.0.15";

const DATABASES: i64 = 16;

const SYNTAX: &str = "ERR syntax error";
const NOT_A_NUMBER: &str = "ERR value is not an integer or out of range";
const OVERFLOW: &str = "ERR increment or decrement would overflow";
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const TOO_LARGE: &str = "ERR string exceeds maximum allowed size";
const SHUT_OUT: &str = "NOAUTH Authentication required.";
const WRONG_LOGIN: &str = "WRONGPASS invalid username-password pair or user is disabled.";

/// Carries out `request` and writes its reply.
pub(in crate::server) fn answer(request: &Request<'_>, context: &mut Context<'_>, reply: &mut Reply) {
    let words = match request.0 {
        Asked::Words(words) => words,
        Asked::TooLong => return error(TOO_LARGE, reply),
        Asked::Broken(why) => {
            context.session.leaving = true;
            return error(&format!("ERR Protocol error: {why}"), reply);
        }
    };
    let name = words.key(0);
    let Some(command) = command::find(name) else {
        let name = String::from_utf8_lossy(&name[..name.len().min(128)]);
        let shown: String = name.chars().filter(|letter| !letter.is_control()).collect();
        return error(&format!("ERR unknown command '{shown}', with args beginning with: "), reply);
    };
    if !command.takes(words.count()) {
        return error(&wrong_count(command), reply);
    }
    if context.is_shut_out() && !matches!(command.name, "auth" | "hello" | "quit") {
        return error(SHUT_OUT, reply);
    }
    context.calls.count(command);
    (command.run)(&mut Call { words, context, reply });
}

/// The answer to a request that was chosen to fail. Its first word is one that says that the server is at fault.
pub(in crate::server) fn fail(reply: &mut Reply) {
    error(&format!("TRYAGAIN {ASKED_FOR_ERROR}"), reply);
}

fn wrong_count(command: &Command) -> String {
    format!("ERR wrong number of arguments for '{}' command", command.name)
}

fn error(words: &str, reply: &mut Reply) {
    reply.push(b"-");
    reply.push(words.as_bytes());
    reply.push(b"\r\n");
}

/// A command on its way.
pub(in crate::server) struct Call<'c, 'x, 'w> {
    words: Keys<'w>,
    context: &'c mut Context<'x>,
    reply: &'c mut Reply,
}

impl<'w> Call<'_, '_, 'w> {
    fn word(&self, n: usize) -> &'w [u8] {
        self.words.key(n)
    }

    /// Words from this one on.
    fn rest(&self, from: usize) -> impl Iterator<Item = &'w [u8]> + use<'w> {
        let words = self.words;
        (from..words.count()).map(move |n| words.key(n))
    }

    fn is(&self, n: usize, word: &str) -> bool {
        n < self.words.count() && self.word(n).eq_ignore_ascii_case(word.as_bytes())
    }

    fn number(&self, n: usize) -> Option<i64> {
        signed(self.word(n))
    }

    fn error(&mut self, words: &str) {
        error(words, self.reply);
    }

    fn status(&mut self, word: &str) {
        self.reply.push(b"+");
        self.reply.push(word.as_bytes());
        self.reply.push(b"\r\n");
    }

    fn ok(&mut self) {
        self.status("OK");
    }

    fn integer(&mut self, number: i64) {
        self.reply.push(format!(":{number}\r\n").as_bytes());
    }

    fn null(&mut self) {
        self.reply.push(if self.context.session.resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    fn head(&mut self, kind: u8, len: usize) {
        self.reply.push(&[kind]);
        self.reply.push_decimal(len as u64);
        self.reply.push(b"\r\n");
    }

    /// An array, or in RESP3 a map, of this many pairs.
    fn map(&mut self, pairs: usize) {
        match self.context.session.resp3 {
            true => self.head(b'%', pairs),
            false => self.head(b'*', pairs * 2),
        }
    }

    fn bulk(&mut self, bytes: &[u8]) {
        self.head(b'$', bytes.len());
        self.reply.push(bytes);
        self.reply.push(b"\r\n");
    }

    fn shared(&mut self, value: Arc<[u8]>) {
        self.head(b'$', value.len());
        self.reply.push_value(value);
        self.reply.push(b"\r\n");
    }

    /// A value that is sent, tampered with where that was asked for; or null.
    fn value(&mut self, key: &[u8], value: Option<Arc<[u8]>>) {
        match value {
            Some(value) => {
                let value = self.context.faults.tamper(self.context.store, key, value);
                self.shared(value);
            }
            None => self.null(),
        }
    }

    /// What is stored under the key, if it is of the form that the command needs; says so if it is not.
    fn stored(&mut self, key: &[u8], form: Form) -> Result<Option<Item>, ()> {
        match self.context.store.peek(key, self.context.now) {
            Some(item) if item.form() != form => {
                self.error(WRONG_TYPE);
                Err(())
            }
            item => Ok(item.cloned()),
        }
    }

    /// Stores as a command that sets, or says why that cannot be.
    fn write(&mut self, key: &[u8], value: &[u8], form: Form, expires: Nanos) -> Result<(), ()> {
        self.context.store.counts.cmd_set += 1;
        self.keep(key, value, form, expires)
    }

    /// Stores, or says why that cannot be.
    fn keep(&mut self, key: &[u8], value: &[u8], form: Form, expires: Nanos) -> Result<(), ()> {
        if item_len_bytes(key.len(), 0, value.len()) > self.context.store.limits().item_max_bytes {
            self.context.store.counts.store_too_large += 1;
            self.error(TOO_LARGE);
            return Err(());
        }
        self.context.store.write(key, Arc::from(value), form, expires, self.context.now);
        Ok(())
    }

    /// The moment that an expiry of so many of these units means, from now or, for a date, since 1970; says so if it is
    /// none.
    fn moment(&mut self, count: Option<i64>, unit_ns: Nanos, date: bool) -> Result<Nanos, ()> {
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

pub(super) fn ping(call: &mut Call<'_, '_, '_>) {
    match call.words.count() {
        1 => call.status("PONG"),
        2 => call.bulk(call.word(1)),
        _ => call.error("ERR wrong number of arguments for 'ping' command"),
    }
}

pub(super) fn echo(call: &mut Call<'_, '_, '_>) {
    call.bulk(call.word(1));
}

pub(super) fn quit(call: &mut Call<'_, '_, '_>) {
    call.context.session.leaving = true;
    call.ok();
}

pub(super) fn auth(call: &mut Call<'_, '_, '_>) {
    let (user, password) = match call.words.count() {
        2 => (&b"default"[..], call.word(1)),
        3 => (call.word(1), call.word(2)),
        _ => return call.error(SYNTAX),
    };
    if call.context.login.is_none() && call.words.count() == 2 {
        call.error(
            "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
             configuration is correct?",
        );
    } else if call.context.login.is_none() && user == b"default" || call.context.try_login(user, password) {
        call.ok();
    } else {
        call.error(WRONG_LOGIN);
    }
}

pub(super) fn hello(call: &mut Call<'_, '_, '_>) {
    let mut resp3 = call.context.session.resp3;
    if call.words.count() > 1 {
        match call.number(1) {
            Some(version @ (2 | 3)) => resp3 = version == 3,
            Some(_) => return call.error("NOPROTO unsupported protocol version"),
            None => return call.error("ERR Protocol version is not an integer or out of range"),
        }
    }
    let mut at = 2;
    while at < call.words.count() {
        if call.is(at, "auth") && at + 2 < call.words.count() {
            let (user, password) = (call.word(at + 1), call.word(at + 2));
            let open = call.context.login.is_none() && user == b"default";
            if !open && !call.context.try_login(user, password) {
                return call.error(WRONG_LOGIN);
            }
            at += 3;
        } else if call.is(at, "setname") && at + 1 < call.words.count() {
            at += 2;
        } else {
            return call.error("ERR Syntax error in HELLO option");
        }
    }
    if call.context.is_shut_out() {
        return call.error(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
             <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the \
             same time",
        );
    }
    call.context.session.resp3 = resp3;
    call.map(7);
    for (name, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
        call.bulk(name.as_bytes());
        call.bulk(value.as_bytes());
    }
    call.bulk(b"proto");
    call.integer(if resp3 { 3 } else { 2 });
    call.bulk(b"id");
    call.integer(call.context.session.connection as i64);
    for (name, value) in [("mode", "standalone"), ("role", "master")] {
        call.bulk(name.as_bytes());
        call.bulk(value.as_bytes());
    }
    call.bulk(b"modules");
    call.head(b'*', 0);
}

pub(super) fn select(call: &mut Call<'_, '_, '_>) {
    match call.number(1) {
        Some(0..DATABASES) => call.ok(),
        Some(_) => call.error("ERR DB index is out of range"),
        None => call.error(NOT_A_NUMBER),
    }
}

pub(super) fn client(call: &mut Call<'_, '_, '_>) {
    match () {
        () if call.is(1, "id") => call.integer(call.context.session.connection as i64),
        () if call.is(1, "getname") => call.null(),
        () => call.ok(),
    }
}

pub(super) fn command(call: &mut Call<'_, '_, '_>) {
    if call.is(1, "docs") { call.map(0) } else { call.head(b'*', 0) }
}

/// What benchmarks ask for at their start.
pub(super) fn config(call: &mut Call<'_, '_, '_>) {
    if !call.is(1, "get") {
        return call.ok();
    }
    let known = [("save", ""), ("appendonly", "no"), ("maxmemory", "0")];
    let asked = |name: &str| call.rest(2).any(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let found: Vec<_> = known.into_iter().filter(|(name, _)| asked(name)).collect();
    call.map(found.len());
    for (name, value) in found {
        call.bulk(name.as_bytes());
        call.bulk(value.as_bytes());
    }
}

pub(super) fn dbsize(call: &mut Call<'_, '_, '_>) {
    call.integer(call.context.store.len() as i64);
}

pub(super) fn flush(call: &mut Call<'_, '_, '_>) {
    call.context.store.flush(0, call.context.now);
    call.ok();
}

pub(super) fn info(call: &mut Call<'_, '_, '_>) {
    let wants = |section: &str, by_itself: bool| {
        let said = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        match call.words.count() {
            1 => by_itself,
            _ => call.rest(1).any(|word| {
                said(word, section)
                    || said(word, "all")
                    || said(word, "everything")
                    || (by_itself && said(word, "default"))
            }),
        }
    };
    let Context { gauges, now, .. } = *call.context;
    let counts = call.context.store.counts;
    let mut text = String::new();
    let mut section = |name: &str, lines: String| {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        text.push_str(&format!("# {name}\r\n{lines}"));
    };
    if wants("server", true) {
        let uptime_s = now.saturating_sub(gauges.started) / SECOND;
        section(
            "Server",
            format!("redis_version:{REDIS_VERSION}\r\npummel:{VERSION}\r\nuptime_in_seconds:{uptime_s}\r\n"),
        );
    }
    if wants("clients", true) {
        section("Clients", format!("connected_clients:{}\r\n", gauges.connections));
    }
    if wants("stats", true) {
        section(
            "Stats",
            format!(
                "total_connections_received:{}\r\ntotal_commands_processed:{}\r\nkeyspace_hits:{}\r\nkeyspace_misses:{}\r\n",
                counts.total_connections.saturating_sub(1),
                gauges.requests,
                counts.get_hits,
                counts.get_misses
            ),
        );
    }
    if wants("commandstats", false) {
        let line = |(name, calls)| {
            format!(
                "cmdstat_{name}:calls={calls},usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=0\r\n"
            )
        };
        section("Commandstats", call.context.calls.all().map(line).collect());
    }
    if wants("keyspace", true) && !call.context.store.is_empty() {
        section("Keyspace", format!("db0:keys={},expires=0,avg_ttl=0\r\n", call.context.store.len()));
    }
    if call.context.session.resp3 {
        call.head(b'=', text.len() + 4);
        call.reply.push(b"txt:");
        call.reply.push(text.as_bytes());
        call.reply.push(b"\r\n");
    } else {
        call.bulk(text.as_bytes());
    }
}

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
        let value = item.filter(|item| item.form() == Form::Plain).map(|item| item.value.clone());
        call.value(key, value);
    }
}

pub(super) fn getdel(call: &mut Call<'_, '_, '_>) {
    let key = call.word(1);
    if call.stored(key, Form::Plain).is_ok() {
        let now = call.context.now;
        let value = call.context.store.read(key, now).map(|item| item.value.clone());
        if value.is_some() {
            call.context.store.delete(key, Match::Any, now);
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

    /// Reads them; what is wrong is said.
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

pub(super) fn incr(call: &mut Call<'_, '_, '_>) {
    count(call, Verb::Incr, Some(1));
}

pub(super) fn decr(call: &mut Call<'_, '_, '_>) {
    count(call, Verb::Decr, Some(-1));
}

pub(super) fn incrby(call: &mut Call<'_, '_, '_>) {
    count(call, Verb::Incr, call.number(2));
}

pub(super) fn decrby(call: &mut Call<'_, '_, '_>) {
    if call.number(2) == Some(i64::MIN) {
        return call.error("ERR decrement would overflow");
    }
    count(call, Verb::Decr, call.number(2).map(|number| -number));
}

fn count(call: &mut Call<'_, '_, '_>, verb: Verb, delta: Option<i64>) {
    let key = call.word(1);
    let Ok(old) = call.stored(key, Form::Plain) else { return };
    let number = old.as_ref().map_or(Some(0), |old| signed(&old.value));
    let (Some(number), Some(delta)) = (number, delta) else { return call.error(NOT_A_NUMBER) };
    let counts = &mut call.context.store.counts;
    *match (verb, &old) {
        (Verb::Incr, Some(_)) => &mut counts.incr_hits,
        (Verb::Incr, None) => &mut counts.incr_misses,
        (_, Some(_)) => &mut counts.decr_hits,
        (_, None) => &mut counts.decr_misses,
    } += 1;
    let Some(number) = number.checked_add(delta) else { return call.error(OVERFLOW) };
    let expires = old.map_or(NEVER, |old| old.expires);
    if call.keep(key, number.to_string().as_bytes(), Form::Plain, expires).is_ok() {
        call.integer(number);
    }
}

pub(super) fn del(call: &mut Call<'_, '_, '_>) {
    let now = call.context.now;
    let removed =
        call.rest(1).filter(|key| call.context.store.delete(key, Match::Any, now) == Outcome::Deleted);
    let removed = removed.count();
    call.integer(removed as i64);
}

pub(super) fn exists(call: &mut Call<'_, '_, '_>) {
    let now = call.context.now;
    let found = call.rest(1).filter(|key| call.context.store.peek(key, now).is_some()).count();
    call.integer(found as i64);
}

pub(super) fn kind_of(call: &mut Call<'_, '_, '_>) {
    let form = call.context.store.peek(call.word(1), call.context.now).map(Item::form);
    call.status(match form {
        None => "none",
        Some(Form::Plain) => "string",
        Some(Form::Hash) => "hash",
    });
}

pub(super) fn expire(call: &mut Call<'_, '_, '_>) {
    expire_in(call, SECOND, false);
}

pub(super) fn pexpire(call: &mut Call<'_, '_, '_>) {
    expire_in(call, MILLISECOND, false);
}

pub(super) fn expireat(call: &mut Call<'_, '_, '_>) {
    expire_in(call, SECOND, true);
}

pub(super) fn pexpireat(call: &mut Call<'_, '_, '_>) {
    expire_in(call, MILLISECOND, true);
}

fn expire_in(call: &mut Call<'_, '_, '_>, unit_ns: Nanos, date: bool) {
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

pub(super) fn ttl(call: &mut Call<'_, '_, '_>) {
    remaining(call, SECOND);
}

pub(super) fn pttl(call: &mut Call<'_, '_, '_>) {
    remaining(call, MILLISECOND);
}

/// Rounded to the nearest unit, as Redis does.
fn remaining(call: &mut Call<'_, '_, '_>, unit_ns: Nanos) {
    let now = call.context.now;
    let units = match call.context.store.peek(call.word(1), now).map(|item| item.expires) {
        None => -2,
        Some(NEVER) => -1,
        Some(expires) => ((expires - now + unit_ns / 2) / unit_ns) as i64,
    };
    call.integer(units);
}

pub(super) fn hset(call: &mut Call<'_, '_, '_>) {
    if !call.words.count().is_multiple_of(2) {
        return call.error("ERR wrong number of arguments for 'hset' command");
    }
    let key = call.word(1);
    let Ok(old) = call.stored(key, Form::Hash) else { return };
    let expires = old.as_ref().map_or(NEVER, |old| old.expires);
    let mut fields = old.map_or_else(Vec::new, |old| old.value.to_vec());
    let mut added = 0;
    for n in (2..call.words.count()).step_by(2) {
        let (changed, new) = hash::with(&fields, call.word(n), call.word(n + 1));
        fields = changed;
        added += i64::from(new);
    }
    if call.write(key, &fields, Form::Hash, expires).is_ok() {
        call.integer(added);
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
    let mut fields = item.value.to_vec();
    for field in call.rest(2) {
        fields = hash::without(&fields, field);
    }
    let removed = hash::pairs(&item.value).count() - hash::pairs(&fields).count();
    if fields.is_empty() {
        call.context.store.delete(key, Match::Any, call.context.now);
    } else if removed > 0 && call.keep(key, &fields, Form::Hash, item.expires).is_err() {
        return;
    }
    call.integer(removed as i64);
}
