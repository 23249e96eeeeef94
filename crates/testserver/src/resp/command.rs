//! The commands of the built-in server: their names, their numbers of words, and their functions.

use super::call::Call;
use super::{cluster, connection, hashes, keys, scripts, strings, transaction};
use pummel_logic::protocol::{Keys, Verb};
use pummel_logic::time::{MILLISECOND, SECOND};

/// Command of the built-in server.
pub(super) struct RespCommand {
    /// The name in lower case.
    pub(super) name: &'static str,
    /// Number of words with the name, as COMMAND counts them: negative for a least number.
    pub(super) arity: i32,
    keys: KeyWords,
    pub(super) run: fn(&mut Call<'_, '_, '_>),
}

/// The words of a command that are keys.
#[derive(Clone, Copy, Debug)]
enum KeyWords {
    None,
    /// The first word after the name.
    First,
    /// All words after the name.
    All,
    /// The first word after the name, the third one and so on.
    EveryOther,
    /// The words behind the second word after the name, as many as that says.
    Counted,
}

use KeyWords::{All, Counted, EveryOther, First, None};

const fn command(
    name: &'static str,
    arity: i32,
    keys: KeyWords,
    run: fn(&mut Call<'_, '_, '_>),
) -> RespCommand {
    RespCommand { name, arity, keys, run }
}

const COMMANDS: &[RespCommand] = &[
    command("get", 2, First, strings::get),
    command("set", -3, First, strings::set),
    command("append", 3, First, strings::append),
    command("asking", 1, None, cluster::asking),
    command("auth", -2, None, connection::auth),
    command("client", -2, None, connection::client),
    command("cluster", -2, None, cluster::cluster),
    command("command", -1, None, connection::command),
    command("config", -2, None, connection::config),
    command("dbsize", 1, None, connection::dbsize),
    command("decr", 2, First, |call| strings::count(call, Verb::Decr, Some(-1))),
    command("decrby", 3, First, strings::decrby),
    command("del", -2, All, keys::del),
    command("discard", 1, None, transaction::discard),
    command("echo", 2, None, connection::echo),
    command("eval", -3, Counted, scripts::eval),
    command("evalsha", -3, Counted, scripts::evalsha),
    command("exec", 1, None, transaction::exec_alone),
    command("exists", -2, All, keys::exists),
    command("expire", -3, First, |call| keys::expire(call, SECOND, false)),
    command("expireat", -3, First, |call| keys::expire(call, SECOND, true)),
    command("flushall", -1, None, connection::flush),
    command("flushdb", -1, None, connection::flush),
    command("getdel", 2, First, strings::getdel),
    command("getex", -2, First, strings::getex),
    command("hdel", -3, First, hashes::hdel),
    command("hello", -1, None, connection::hello),
    command("hget", 3, First, hashes::hget),
    command("hgetall", 2, First, hashes::hgetall),
    command("hset", -4, First, hashes::hset),
    command("incr", 2, First, |call| strings::count(call, Verb::Incr, Some(1))),
    command("incrby", 3, First, |call| strings::count(call, Verb::Incr, call.number(2))),
    command("info", -1, None, connection::info),
    command("mget", -2, All, strings::mget),
    command("mset", -3, EveryOther, strings::mset),
    command("multi", 1, None, |call| transaction::multi(call, false)),
    command("persist", 2, First, keys::persist),
    command("pexpire", -3, First, |call| keys::expire(call, MILLISECOND, false)),
    command("pexpireat", -3, First, |call| keys::expire(call, MILLISECOND, true)),
    command("ping", -1, None, connection::ping),
    command("pttl", 2, First, |call| keys::remaining(call, MILLISECOND)),
    command("quit", -1, None, connection::quit),
    command("readonly", 1, None, |call| cluster::read_only(call, true)),
    command("readwrite", 1, None, |call| cluster::read_only(call, false)),
    command("script", -2, None, scripts::script),
    command("select", 2, None, connection::select),
    command("setex", 4, First, strings::setex),
    command("setnx", 3, First, strings::setnx),
    command("strlen", 2, First, strings::strlen),
    command("ttl", 2, First, |call| keys::remaining(call, SECOND)),
    command("type", 2, First, keys::kind_of),
    command("unlink", -2, All, keys::del),
    command("unwatch", 1, None, transaction::unwatch),
    command("watch", -2, All, transaction::watch),
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

    /// Whether the command reads keys and changes nothing.
    pub(super) fn reads(&self) -> bool {
        const READS: [&str; 9] =
            ["exists", "get", "hget", "hgetall", "mget", "pttl", "strlen", "ttl", "type"];
        READS.contains(&self.name)
    }

    /// The keys among the words of a call.
    pub(super) fn keys<'w>(&self, words: Keys<'w>) -> impl Iterator<Item = &'w [u8]> + Clone + use<'w> {
        let count = words.count();
        let (places, step) = match self.keys {
            None => (0..0, 1),
            First => (1..count.min(2), 1),
            All => (1..count, 1),
            EveryOther => (1..count, 2),
            Counted => (3..scripts::key_count(words).map_or(3, |keys| 3 + keys), 1),
        };
        places.step_by(step).map(move |place| words.key(place))
    }
}
