//! The commands that the built-in server knows: their names, how many words they take, how often they were called.

use super::answer::{self, Call};

/// A command.
pub(in crate::server) struct Command {
    /// In lower case.
    pub(super) name: &'static str,
    /// Number of words with the name, as COMMAND counts them: negative for at least so many.
    pub(super) arity: i32,
    pub(super) run: fn(&mut Call<'_, '_, '_>),
}

const fn command(name: &'static str, arity: i32, run: fn(&mut Call<'_, '_, '_>)) -> Command {
    Command { name, arity, run }
}

const COMMANDS: &[Command] = &[
    command("get", 2, answer::get),
    command("set", -3, answer::set),
    command("append", 3, answer::append),
    command("auth", -2, answer::auth),
    command("client", -2, answer::client),
    command("command", -1, answer::command),
    command("config", -2, answer::config),
    command("dbsize", 1, answer::dbsize),
    command("decr", 2, answer::decr),
    command("decrby", 3, answer::decrby),
    command("del", -2, answer::del),
    command("echo", 2, answer::echo),
    command("exists", -2, answer::exists),
    command("expire", -3, answer::expire),
    command("expireat", -3, answer::expireat),
    command("flushall", -1, answer::flush),
    command("flushdb", -1, answer::flush),
    command("getdel", 2, answer::getdel),
    command("getex", -2, answer::getex),
    command("hdel", -3, answer::hdel),
    command("hello", -1, answer::hello),
    command("hget", 3, answer::hget),
    command("hgetall", 2, answer::hgetall),
    command("hset", -4, answer::hset),
    command("incr", 2, answer::incr),
    command("incrby", 3, answer::incrby),
    command("info", -1, answer::info),
    command("mget", -2, answer::mget),
    command("mset", -3, answer::mset),
    command("persist", 2, answer::persist),
    command("pexpire", -3, answer::pexpire),
    command("pexpireat", -3, answer::pexpireat),
    command("ping", -1, answer::ping),
    command("pttl", 2, answer::pttl),
    command("quit", -1, answer::quit),
    command("select", 2, answer::select),
    command("setex", 4, answer::setex),
    command("setnx", 3, answer::setnx),
    command("strlen", 2, answer::strlen),
    command("ttl", 2, answer::ttl),
    command("type", 2, answer::kind_of),
    command("unlink", -2, answer::del),
];

/// The command of that name, whatever its case.
pub(super) fn find(word: &[u8]) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(word))
}

impl Command {
    /// Whether it takes so many words, its name included.
    pub(super) fn takes(&self, words: usize) -> bool {
        match self.arity {
            exactly @ 0.. => words == exactly as usize,
            at_least => words >= at_least.unsigned_abs() as usize,
        }
    }
}

/// How often each command was carried out, as INFO commandstats says it.
#[derive(Debug)]
pub(in crate::server) struct Calls([u64; COMMANDS.len()]);

impl Default for Calls {
    fn default() -> Calls {
        Calls([0; COMMANDS.len()])
    }
}

impl Calls {
    pub(super) fn count(&mut self, command: &Command) {
        if let Some(place) = COMMANDS.iter().position(|known| known.name == command.name) {
            self.0[place] += 1;
        }
    }

    /// Those that were called.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        COMMANDS.iter().map(|command| command.name).zip(self.0).filter(|(_, calls)| *calls > 0)
    }
}
