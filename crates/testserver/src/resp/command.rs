//! The commands of the built-in server: their names, their numbers of words, and their functions.

use super::call::Call;
use super::{connection, hashes, keys, strings};
use pummel_logic::protocol::Verb;
use pummel_logic::time::{MILLISECOND, SECOND};

/// Command of the built-in server.
pub(super) struct RespCommand {
    /// The name in lower case.
    pub(super) name: &'static str,
    /// Number of words with the name, as COMMAND counts them: negative for a least number.
    pub(super) arity: i32,
    pub(super) run: fn(&mut Call<'_, '_, '_>),
}

const fn command(name: &'static str, arity: i32, run: fn(&mut Call<'_, '_, '_>)) -> RespCommand {
    RespCommand { name, arity, run }
}

const COMMANDS: &[RespCommand] = &[
    command("get", 2, strings::get),
    command("set", -3, strings::set),
    command("append", 3, strings::append),
    command("auth", -2, connection::auth),
    command("client", -2, connection::client),
    command("command", -1, connection::command),
    command("config", -2, connection::config),
    command("dbsize", 1, connection::dbsize),
    command("decr", 2, |call| strings::count(call, Verb::Decr, Some(-1))),
    command("decrby", 3, strings::decrby),
    command("del", -2, keys::del),
    command("echo", 2, connection::echo),
    command("exists", -2, keys::exists),
    command("expire", -3, |call| keys::expire(call, SECOND, false)),
    command("expireat", -3, |call| keys::expire(call, SECOND, true)),
    command("flushall", -1, connection::flush),
    command("flushdb", -1, connection::flush),
    command("getdel", 2, strings::getdel),
    command("getex", -2, strings::getex),
    command("hdel", -3, hashes::hdel),
    command("hello", -1, connection::hello),
    command("hget", 3, hashes::hget),
    command("hgetall", 2, hashes::hgetall),
    command("hset", -4, hashes::hset),
    command("incr", 2, |call| strings::count(call, Verb::Incr, Some(1))),
    command("incrby", 3, |call| strings::count(call, Verb::Incr, call.number(2))),
    command("info", -1, connection::info),
    command("mget", -2, strings::mget),
    command("mset", -3, strings::mset),
    command("persist", 2, keys::persist),
    command("pexpire", -3, |call| keys::expire(call, MILLISECOND, false)),
    command("pexpireat", -3, |call| keys::expire(call, MILLISECOND, true)),
    command("ping", -1, connection::ping),
    command("pttl", 2, |call| keys::remaining(call, MILLISECOND)),
    command("quit", -1, connection::quit),
    command("select", 2, connection::select),
    command("setex", 4, strings::setex),
    command("setnx", 3, strings::setnx),
    command("strlen", 2, strings::strlen),
    command("ttl", 2, |call| keys::remaining(call, SECOND)),
    command("type", 2, keys::kind_of),
    command("unlink", -2, keys::del),
];

/// The command of that name in upper or lower case, and its place in the table.
pub(super) fn find(word: &[u8]) -> Option<(usize, &'static RespCommand)> {
    COMMANDS.iter().enumerate().find(|(_, command)| command.name.as_bytes().eq_ignore_ascii_case(word))
}

impl RespCommand {
    /// Whether the command takes this number of words, its name included.
    pub(super) fn takes(&self, words: usize) -> bool {
        match self.arity {
            exactly @ 0.. => words == exactly as usize,
            at_least => words >= at_least.unsigned_abs() as usize,
        }
    }
}
