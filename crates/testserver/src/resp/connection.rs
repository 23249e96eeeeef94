//! Commands about the connection and the server: login, handshake, databases, configuration, INFO.

use super::call::{Call, NOT_A_NUMBER, SYNTAX, WRONG_LOGIN};
use crate::context::Context;
use crate::contract::VERSION;
use pummel_logic::time::SECOND;

/// The version that the server reports to clients of Redis.
const REDIS_VERSION: &str = "7.0.15";

const DATABASES: i64 = 16;

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
    call.context.session.is_closing = true;
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
    if call.context.needs_login() {
        return call.error(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
             <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the \
             same time",
        );
    }
    call.context.session.resp3 = resp3;
    call.map(7);
    call.pairs(&[("server", "redis"), ("version", REDIS_VERSION)]);
    call.bulk(b"proto");
    call.integer(if resp3 { 3 } else { 2 });
    call.bulk(b"id");
    call.integer(call.context.session.connection as i64);
    call.pairs(&[("mode", mode(call.context)), ("role", role(call.context))]);
    call.bulk(b"modules");
    call.head(b'*', 0);
}

/// Mode of the server, as Redis names it.
fn mode(context: &Context<'_>) -> &'static str {
    if context.cluster.is_some() { "cluster" } else { "standalone" }
}

/// Role of the node that the connection is to, as Redis names it.
fn role(context: &Context<'_>) -> &'static str {
    let is_replica = context.cluster.is_some_and(|cluster| cluster.is_replica(context.session.node));
    if is_replica { "replica" } else { "master" }
}

pub(super) fn select(call: &mut Call<'_, '_, '_>) {
    match call.number(1) {
        Some(1..) if call.context.cluster.is_some() => {
            call.error("ERR SELECT is not allowed in cluster mode")
        }
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

/// Answers CONFIG, which benchmarks send at their start.
pub(super) fn config(call: &mut Call<'_, '_, '_>) {
    if !call.is(1, "get") {
        return call.ok();
    }
    let known = [("save", ""), ("appendonly", "no"), ("maxmemory", "0")];
    let asked = |name: &str| call.rest(2).any(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let found: Vec<_> = known.into_iter().filter(|(name, _)| asked(name)).collect();
    call.map(found.len());
    call.pairs(&found);
}

pub(super) fn dbsize(call: &mut Call<'_, '_, '_>) {
    call.integer(call.context.store.len() as i64);
}

pub(super) fn flush(call: &mut Call<'_, '_, '_>) {
    if role(call.context) == "replica" {
        return call.error("READONLY You can't write against a read only replica.");
    }
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
    let mode = mode(call.context);
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
            format!(
                "redis_version:{REDIS_VERSION}\r\npummel:{VERSION}\r\nredis_mode:{mode}\r\nuptime_in_seconds:{uptime_s}\r\n"
            ),
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
    if wants("cluster", true) {
        let is_enabled = u8::from(call.context.cluster.is_some());
        section("Cluster", format!("cluster_enabled:{is_enabled}\r\n"));
    }
    if wants("keyspace", true) && !call.context.store.is_empty() {
        section("Keyspace", format!("db0:keys={},expires=0,avg_ttl=0\r\n", call.context.store.len()));
    }
    call.text(&text);
}
