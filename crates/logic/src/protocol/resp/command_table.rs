//! The table of the commands of Redis and Valkey: their keys, whether they write, and the meaning of replies about keys that do not exist.

/// The words of a command that are keys, by their number behind the command's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyWords {
    /// No word is a key.
    None,
    /// The words from the first to the last, each so many behind the one before it. A negative last word is counted from the end.
    Range(i8, i8, i8),
    /// The words behind one that says how many there are.
    Counted(i8),
    /// One word, and the words behind another one that says how many there are.
    AndCounted(i8, i8),
    /// The first half of the words behind `STREAMS`.
    Streams,
}

/// The access of a command, by the flags of Redis 8 (COMMAND: `readonly` and `write`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// The command reads.
    Read,
    /// The command writes, or may write.
    Write,
    /// The command has neither flag.
    Neither,
}

/// The form in which replies of a command tell of keys, or of elements, that do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tells {
    /// Replies say nothing of it.
    No,
    /// A null or an empty list says that nothing was found.
    Nothing,
    /// A null says that something was there.
    NotNothing,
    /// The number 0 says that nothing was found.
    Zero,
    /// The number 0 says that something was there.
    NotZero,
    /// The number -2 says that the key does not exist.
    MinusTwo,
    /// The word `none` says that the key does not exist.
    NoType,
    /// Each null of a list stands for one that was not found.
    EachNull,
    /// Each 0 of a list stands for one that was not found.
    EachZero,
    /// A number says how many of the command's keys were there.
    Count,
    /// An empty list behind the cursor of a scan says that nothing was found.
    Scan,
    /// The word `OK` says that something was there, and every other reply that nothing was.
    Ok,
    /// A number says that something was there, and every other reply that nothing was.
    Integer,
    /// A null, an empty string or an empty list says that nothing was found.
    NotEmpty,
    /// A null is what was expected, and every other reply is an error.
    Null,
}

/// The word of a command that says how long the server may wait before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// The last word, in seconds.
    Last,
    /// The last word, in milliseconds.
    LastMillis,
    /// The first word behind the name, in seconds.
    First,
    /// The word behind `BLOCK`, in milliseconds; without it the command does not wait.
    Block,
}

/// The row of one command.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandRow {
    /// The name in capital letters; with the second word where that decides.
    pub(super) name: &'static str,
    /// Number of words, the name among them; negative where there may be more.
    pub(super) arity: i8,
    pub(super) keys: KeyWords,
    pub(super) access: Access,
    pub(super) tells: Tells,
    /// Options that change what replies say: the first of them that the command has decides.
    options: &'static [(&'static str, Tells)],
    pub(super) wait: Option<Wait>,
    /// Whether the command, carried out twice, has the same effect and the same reply as once, unless a condition or an answer with
    /// the old value is asked for. All that only read are such commands.
    repeats: bool,
}

const fn row(name: &'static str, arity: i8, keys: KeyWords, access: Access, tells: Tells) -> CommandRow {
    CommandRow {
        name,
        arity,
        keys,
        access,
        tells,
        options: &[],
        wait: None,
        repeats: matches!(access, Access::Read),
    }
}

impl CommandRow {
    const fn with(self, options: &'static [(&'static str, Tells)]) -> CommandRow {
        CommandRow { options, ..self }
    }

    const fn repeatable(self) -> CommandRow {
        CommandRow { repeats: true, ..self }
    }

    const fn waiting(self, wait: Wait) -> CommandRow {
        CommandRow { wait: Some(wait), ..self }
    }

    /// The row of a command by its first words, in any case; `None` for a command that is not known.
    pub(super) fn of(name: &[u8], second: Option<&[u8]>) -> Option<&'static CommandRow> {
        let is = |row: &&CommandRow| match (row.name.split_once(' '), second) {
            (None, _) => name.eq_ignore_ascii_case(row.name.as_bytes()),
            (Some((first, other)), Some(second)) => {
                name.eq_ignore_ascii_case(first.as_bytes()) && second.eq_ignore_ascii_case(other.as_bytes())
            }
            (Some(_), None) => false,
        };
        COMMANDS.iter().find(is)
    }

    /// The form in which replies tell, where the command has these words behind its name.
    pub(super) fn tells_with(&self, mut has_word: impl FnMut(&str) -> bool) -> Tells {
        self.options.iter().find(|(word, _)| has_word(word)).map_or(self.tells, |(_, tells)| *tells)
    }

    /// Whether the command, with these words behind its name, can be carried out twice as well as once.
    pub(super) fn may_repeat(&self, mut has_word: impl FnMut(&str) -> bool) -> bool {
        let is_read = matches!(self.access, Access::Read);
        self.repeats && (is_read || !has_word("NX") && !has_word("GET"))
    }

    /// Whether the command carries out a script, whose commands a server counts too.
    pub(super) fn calls_others(&self) -> bool {
        SCRIPTED.contains(&self.name)
    }

    /// Whether the command reads keys that hold plain values, whatever else it may read.
    pub(super) fn reads_plain(&self) -> bool {
        self.access == Access::Read && PLAIN_READS.contains(&self.name)
    }

    /// Whether a command of so many words, its name among them, can be one of this row.
    pub(super) fn allows(&self, words: usize) -> bool {
        let least = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { words >= least } else { words == least }
    }

    /// The numbers of the words that are keys, among `words` of the command with its name; `word` is the text of a word, where it
    /// is the same in every request.
    pub(super) fn key_words<'a>(&self, words: usize, word: impl Fn(usize) -> Option<&'a [u8]>) -> Vec<usize> {
        let counted = |at: i8| {
            let at = usize::from(at.unsigned_abs());
            let count = word(at).and_then(|text| std::str::from_utf8(text).ok()?.parse::<usize>().ok());
            // Where the number of keys varies, any word behind it may be one.
            (at + 1..words).take(count.unwrap_or(words))
        };
        match self.keys {
            KeyWords::None => Vec::new(),
            KeyWords::Range(first, last, step) => {
                let last = if last < 0 { words as isize + isize::from(last) } else { isize::from(last) };
                let until = usize::try_from(last + 1).unwrap_or(0).min(words);
                (usize::from(first.unsigned_abs())..until)
                    .step_by(usize::from(step.unsigned_abs().max(1)))
                    .collect()
            }
            KeyWords::Counted(at) => counted(at).collect(),
            KeyWords::AndCounted(one, at) => {
                [usize::from(one.unsigned_abs())].into_iter().chain(counted(at)).collect()
            }
            KeyWords::Streams => {
                let is_word =
                    |at: &usize| word(*at).is_some_and(|text| text.eq_ignore_ascii_case(b"STREAMS"));
                let first = (1..words).find(is_word).map_or(words, |at| at + 1);
                (first..first + (words - first) / 2).collect()
            }
        }
    }
}

/// Reads of plain values, of keys of every type, and of whatever a script reads.
const PLAIN_READS: &[&str] = &[
    "BITCOUNT",
    "BITFIELD_RO",
    "BITPOS",
    "DUMP",
    "EVALSHA_RO",
    "EVAL_RO",
    "EXISTS",
    "EXPIRETIME",
    "FCALL_RO",
    "GET",
    "GETBIT",
    "GETRANGE",
    "KEYS",
    "LCS",
    "MEMORY USAGE",
    "MGET",
    "OBJECT ENCODING",
    "OBJECT FREQ",
    "OBJECT IDLETIME",
    "OBJECT REFCOUNT",
    "PEXPIRETIME",
    "PTTL",
    "RANDOMKEY",
    "SCAN",
    "STRLEN",
    "SUBSTR",
    "TOUCH",
    "TTL",
    "TYPE",
];

/// Commands that carry out scripts.
const SCRIPTED: &[&str] = &["EVAL", "EVALSHA", "EVALSHA_RO", "EVAL_RO", "FCALL", "FCALL_RO"];

/// Options that store what is found elsewhere and answer with its number.
const STORES: &[(&str, Tells)] = &[("STORE", Tells::Zero), ("STOREDIST", Tells::Zero)];

/// Conditions under which a command does nothing although the key is there.
const CONDITIONS: &[(&str, Tells)] =
    &[("NX", Tells::No), ("XX", Tells::No), ("GT", Tells::No), ("LT", Tells::No)];

/// The commands with keys, and those that wait. Replies to keys that do not exist were measured on Redis 7.0.15 and on Valkey, but for
/// those of newer versions, which say nothing here.
#[rustfmt::skip]
const COMMANDS: &[CommandRow] = &[
    row("APPEND", 3, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("BITCOUNT", -2, KeyWords::Range(1, 1, 1), Access::Read, Tells::No),
    row("BITFIELD", -2, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("BITFIELD_RO", -2, KeyWords::Range(1, 1, 1), Access::Read, Tells::No),
    row("BITOP", -4, KeyWords::Range(2, -1, 1), Access::Write, Tells::No),
    row("BITPOS", -3, KeyWords::Range(1, 1, 1), Access::Read, Tells::No),
    row("BLMOVE", 6, KeyWords::Range(1, 2, 1), Access::Write, Tells::Nothing).waiting(Wait::Last),
    row("BLMPOP", -5, KeyWords::Counted(2), Access::Write, Tells::Nothing).waiting(Wait::First),
    row("BLPOP", -3, KeyWords::Range(1, -2, 1), Access::Write, Tells::Nothing).waiting(Wait::Last),
    row("BRPOP", -3, KeyWords::Range(1, -2, 1), Access::Write, Tells::Nothing).waiting(Wait::Last),
    row("BRPOPLPUSH", 4, KeyWords::Range(1, 2, 1), Access::Write, Tells::Nothing).waiting(Wait::Last),
    row("BZMPOP", -5, KeyWords::Counted(2), Access::Write, Tells::Nothing).waiting(Wait::First),
    row("BZPOPMAX", -3, KeyWords::Range(1, -2, 1), Access::Write, Tells::Nothing).waiting(Wait::Last),
    row("BZPOPMIN", -3, KeyWords::Range(1, -2, 1), Access::Write, Tells::Nothing).waiting(Wait::Last),
    row("COPY", -3, KeyWords::Range(1, 2, 1), Access::Write, Tells::No),
    row("DECR", 2, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("DECRBY", 3, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("DEL", -2, KeyWords::Range(1, -1, 1), Access::Write, Tells::Count),
    row("DISCARD", 1, KeyWords::None, Access::Neither, Tells::No),
    row("DUMP", 2, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("EVAL", -3, KeyWords::Counted(2), Access::Neither, Tells::No),
    row("EVALSHA", -3, KeyWords::Counted(2), Access::Neither, Tells::No),
    row("EVALSHA_RO", -3, KeyWords::Counted(2), Access::Read, Tells::No),
    row("EVAL_RO", -3, KeyWords::Counted(2), Access::Read, Tells::No),
    row("EXISTS", -2, KeyWords::Range(1, -1, 1), Access::Read, Tells::Count),
    row("EXEC", 1, KeyWords::None, Access::Neither, Tells::No),
    row("EXPIRE", -3, KeyWords::Range(1, 1, 1), Access::Write, Tells::Zero).with(CONDITIONS),
    row("EXPIREAT", -3, KeyWords::Range(1, 1, 1), Access::Write, Tells::Zero).with(CONDITIONS),
    row("EXPIRETIME", 2, KeyWords::Range(1, 1, 1), Access::Read, Tells::MinusTwo),
    row("FCALL", -3, KeyWords::Counted(2), Access::Neither, Tells::No),
    row("FCALL_RO", -3, KeyWords::Counted(2), Access::Read, Tells::No),
    row("GEOADD", -5, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("GEODIST", -4, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("GEOHASH", -2, KeyWords::Range(1, 1, 1), Access::Read, Tells::EachNull),
    row("GEOPOS", -2, KeyWords::Range(1, 1, 1), Access::Read, Tells::EachNull),
    row("GEORADIUS", -6, KeyWords::Range(1, 1, 1), Access::Write, Tells::Nothing).with(STORES),
    row("GEORADIUSBYMEMBER", -5, KeyWords::Range(1, 1, 1), Access::Write, Tells::Nothing).with(STORES),
    row("GEORADIUSBYMEMBER_RO", -5, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("GEORADIUS_RO", -6, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("GEOSEARCH", -7, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("GEOSEARCHSTORE", -8, KeyWords::Range(1, 2, 1), Access::Write, Tells::Zero),
    row("GET", 2, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("GETBIT", 3, KeyWords::Range(1, 1, 1), Access::Read, Tells::No),
    row("GETDEL", 2, KeyWords::Range(1, 1, 1), Access::Write, Tells::Nothing),
    row("GETEX", -2, KeyWords::Range(1, 1, 1), Access::Write, Tells::Nothing),
    row("GETRANGE", 4, KeyWords::Range(1, 1, 1), Access::Read, Tells::No),
    row("GETSET", 3, KeyWords::Range(1, 1, 1), Access::Write, Tells::Nothing),
    row("HDEL", -3, KeyWords::Range(1, 1, 1), Access::Write, Tells::Zero),
    row("HEXISTS", 3, KeyWords::Range(1, 1, 1), Access::Read, Tells::Zero),
    row("HEXPIRETIME", -5, KeyWords::Range(1, 1, 1), Access::Read, Tells::No),
    row("HGET", 3, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("HGETALL", 2, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("HINCRBY", 4, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("HINCRBYFLOAT", 4, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("HKEYS", 2, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("HLEN", 2, KeyWords::Range(1, 1, 1), Access::Read, Tells::Zero),
    row("HMGET", -3, KeyWords::Range(1, 1, 1), Access::Read, Tells::EachNull),
    row("HMSET", -4, KeyWords::Range(1, 1, 1), Access::Write, Tells::No).repeatable(),
    row("HPEXPIRETIME", -5, KeyWords::Range(1, 1, 1), Access::Read, Tells::No),
    row("HPTTL", -5, KeyWords::Range(1, 1, 1), Access::Read, Tells::No),
    row("HRANDFIELD", -2, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("HSCAN", -3, KeyWords::Range(1, 1, 1), Access::Read, Tells::Scan),
    row("HSET", -4, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("HSETNX", 4, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("HSTRLEN", 3, KeyWords::Range(1, 1, 1), Access::Read, Tells::No),
    row("HTTL", -5, KeyWords::Range(1, 1, 1), Access::Read, Tells::No),
    row("HVALS", 2, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("INCR", 2, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("INCRBY", 3, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("INCRBYFLOAT", 3, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("KEYS", 2, KeyWords::None, Access::Read, Tells::No),
    row("LCS", -3, KeyWords::Range(1, 2, 1), Access::Read, Tells::No),
    row("LINDEX", 3, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("LINSERT", 5, KeyWords::Range(1, 1, 1), Access::Write, Tells::Zero),
    row("LLEN", 2, KeyWords::Range(1, 1, 1), Access::Read, Tells::Zero),
    row("LMOVE", 5, KeyWords::Range(1, 2, 1), Access::Write, Tells::Nothing),
    row("LMPOP", -4, KeyWords::Counted(1), Access::Write, Tells::Nothing),
    row("LPOP", -2, KeyWords::Range(1, 1, 1), Access::Write, Tells::Nothing),
    row("LPOS", -3, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("LPUSH", -3, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("LPUSHX", -3, KeyWords::Range(1, 1, 1), Access::Write, Tells::Zero),
    row("LRANGE", 4, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("LREM", 4, KeyWords::Range(1, 1, 1), Access::Write, Tells::Zero),
    row("LSET", 4, KeyWords::Range(1, 1, 1), Access::Write, Tells::No).repeatable(),
    row("LTRIM", 4, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("MEMORY USAGE", -3, KeyWords::Range(2, 2, 1), Access::Read, Tells::Nothing),
    row("MGET", -2, KeyWords::Range(1, -1, 1), Access::Read, Tells::EachNull),
    row("MOVE", 3, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("MSET", -3, KeyWords::Range(1, -1, 2), Access::Write, Tells::No).repeatable(),
    row("MSETNX", -3, KeyWords::Range(1, -1, 2), Access::Write, Tells::NotZero),
    row("MULTI", 1, KeyWords::None, Access::Neither, Tells::No),
    row("OBJECT ENCODING", 3, KeyWords::Range(2, 2, 1), Access::Read, Tells::Nothing),
    row("OBJECT FREQ", 3, KeyWords::Range(2, 2, 1), Access::Read, Tells::Nothing),
    row("OBJECT IDLETIME", 3, KeyWords::Range(2, 2, 1), Access::Read, Tells::Nothing),
    row("OBJECT REFCOUNT", 3, KeyWords::Range(2, 2, 1), Access::Read, Tells::Nothing),
    row("PERSIST", 2, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("PEXPIRE", -3, KeyWords::Range(1, 1, 1), Access::Write, Tells::Zero).with(CONDITIONS),
    row("PEXPIREAT", -3, KeyWords::Range(1, 1, 1), Access::Write, Tells::Zero).with(CONDITIONS),
    row("PEXPIRETIME", 2, KeyWords::Range(1, 1, 1), Access::Read, Tells::MinusTwo),
    row("PFADD", -2, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("PFCOUNT", -2, KeyWords::Range(1, -1, 1), Access::Read, Tells::No),
    row("PFMERGE", -2, KeyWords::Range(1, -1, 1), Access::Write, Tells::No),
    row("PSETEX", 4, KeyWords::Range(1, 1, 1), Access::Write, Tells::No).repeatable(),
    row("PTTL", 2, KeyWords::Range(1, 1, 1), Access::Read, Tells::MinusTwo),
    row("PUBLISH", 3, KeyWords::None, Access::Neither, Tells::No),
    row("RANDOMKEY", 1, KeyWords::None, Access::Read, Tells::No),
    row("RENAME", 3, KeyWords::Range(1, 2, 1), Access::Write, Tells::No),
    row("RENAMENX", 3, KeyWords::Range(1, 2, 1), Access::Write, Tells::No),
    row("RESTORE", -4, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("RPOP", -2, KeyWords::Range(1, 1, 1), Access::Write, Tells::Nothing),
    row("RPOPLPUSH", 3, KeyWords::Range(1, 2, 1), Access::Write, Tells::Nothing),
    row("RPUSH", -3, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("RPUSHX", -3, KeyWords::Range(1, 1, 1), Access::Write, Tells::Zero),
    row("SADD", -3, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("SCAN", -2, KeyWords::None, Access::Read, Tells::No),
    row("SCARD", 2, KeyWords::Range(1, 1, 1), Access::Read, Tells::Zero),
    row("SDIFF", -2, KeyWords::Range(1, -1, 1), Access::Read, Tells::Nothing),
    row("SDIFFSTORE", -3, KeyWords::Range(1, -1, 1), Access::Write, Tells::Zero),
    row("SET", -3, KeyWords::Range(1, 1, 1), Access::Write, Tells::No).with(&[("GET", Tells::Nothing), ("NX", Tells::NotNothing), ("XX", Tells::Nothing)]).repeatable(),
    row("SETBIT", 4, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("SETEX", 4, KeyWords::Range(1, 1, 1), Access::Write, Tells::No).repeatable(),
    row("SETNX", 3, KeyWords::Range(1, 1, 1), Access::Write, Tells::NotZero),
    row("SETRANGE", 4, KeyWords::Range(1, 1, 1), Access::Write, Tells::No).repeatable(),
    row("SINTER", -2, KeyWords::Range(1, -1, 1), Access::Read, Tells::Nothing),
    row("SINTERCARD", -3, KeyWords::Counted(1), Access::Read, Tells::Zero),
    row("SINTERSTORE", -3, KeyWords::Range(1, -1, 1), Access::Write, Tells::Zero),
    row("SISMEMBER", 3, KeyWords::Range(1, 1, 1), Access::Read, Tells::Zero),
    row("SMEMBERS", 2, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("SMISMEMBER", -3, KeyWords::Range(1, 1, 1), Access::Read, Tells::EachZero),
    row("SMOVE", 4, KeyWords::Range(1, 2, 1), Access::Write, Tells::Zero),
    row("SORT", -2, KeyWords::Range(1, 1, 1), Access::Write, Tells::Nothing).with(STORES),
    row("SORT_RO", -2, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("SPOP", -2, KeyWords::Range(1, 1, 1), Access::Write, Tells::Nothing),
    row("SPUBLISH", 3, KeyWords::Range(1, 1, 1), Access::Neither, Tells::No),
    row("SRANDMEMBER", -2, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("SREM", -3, KeyWords::Range(1, 1, 1), Access::Write, Tells::Zero),
    row("SSCAN", -3, KeyWords::Range(1, 1, 1), Access::Read, Tells::Scan),
    row("STRLEN", 2, KeyWords::Range(1, 1, 1), Access::Read, Tells::No),
    row("SUBSTR", 4, KeyWords::Range(1, 1, 1), Access::Read, Tells::No),
    row("SUNION", -2, KeyWords::Range(1, -1, 1), Access::Read, Tells::Nothing),
    row("SUNIONSTORE", -3, KeyWords::Range(1, -1, 1), Access::Write, Tells::Zero),
    row("TOUCH", -2, KeyWords::Range(1, -1, 1), Access::Read, Tells::Count),
    row("TTL", 2, KeyWords::Range(1, 1, 1), Access::Read, Tells::MinusTwo),
    row("TYPE", 2, KeyWords::Range(1, 1, 1), Access::Read, Tells::NoType),
    row("UNLINK", -2, KeyWords::Range(1, -1, 1), Access::Write, Tells::Count),
    row("UNWATCH", 1, KeyWords::None, Access::Neither, Tells::No),
    row("WAIT", 3, KeyWords::None, Access::Neither, Tells::No).waiting(Wait::LastMillis),
    row("WATCH", -2, KeyWords::Range(1, -1, 1), Access::Neither, Tells::No),
    row("XACK", -4, KeyWords::Range(1, 1, 1), Access::Write, Tells::Zero),
    row("XADD", -5, KeyWords::Range(1, 1, 1), Access::Write, Tells::No).with(&[("NOMKSTREAM", Tells::Nothing)]),
    row("XAUTOCLAIM", -6, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("XCLAIM", -6, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("XDEL", -3, KeyWords::Range(1, 1, 1), Access::Write, Tells::Zero),
    row("XGROUP CREATE", -5, KeyWords::Range(2, 2, 1), Access::Write, Tells::No),
    row("XINFO CONSUMERS", 4, KeyWords::Range(2, 2, 1), Access::Read, Tells::No),
    row("XINFO GROUPS", 3, KeyWords::Range(2, 2, 1), Access::Read, Tells::No),
    row("XINFO STREAM", -3, KeyWords::Range(2, 2, 1), Access::Read, Tells::No),
    row("XLEN", 2, KeyWords::Range(1, 1, 1), Access::Read, Tells::No),
    row("XPENDING", -3, KeyWords::Range(1, 1, 1), Access::Read, Tells::No),
    row("XRANGE", -4, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("XREAD", -4, KeyWords::Streams, Access::Read, Tells::Nothing).waiting(Wait::Block),
    row("XREADGROUP", -7, KeyWords::Streams, Access::Write, Tells::No).waiting(Wait::Block),
    row("XREVRANGE", -4, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("XSETID", -3, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("XTRIM", -4, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("ZADD", -4, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("ZCARD", 2, KeyWords::Range(1, 1, 1), Access::Read, Tells::Zero),
    row("ZCOUNT", 4, KeyWords::Range(1, 1, 1), Access::Read, Tells::Zero),
    row("ZDIFF", -3, KeyWords::Counted(1), Access::Read, Tells::Nothing),
    row("ZDIFFSTORE", -4, KeyWords::AndCounted(1, 2), Access::Write, Tells::Zero),
    row("ZINCRBY", 4, KeyWords::Range(1, 1, 1), Access::Write, Tells::No),
    row("ZINTER", -3, KeyWords::Counted(1), Access::Read, Tells::Nothing),
    row("ZINTERCARD", -3, KeyWords::Counted(1), Access::Read, Tells::Zero),
    row("ZINTERSTORE", -4, KeyWords::AndCounted(1, 2), Access::Write, Tells::Zero),
    row("ZLEXCOUNT", 4, KeyWords::Range(1, 1, 1), Access::Read, Tells::Zero),
    row("ZMPOP", -4, KeyWords::Counted(1), Access::Write, Tells::Nothing),
    row("ZMSCORE", -3, KeyWords::Range(1, 1, 1), Access::Read, Tells::EachNull),
    row("ZPOPMAX", -2, KeyWords::Range(1, 1, 1), Access::Write, Tells::Nothing),
    row("ZPOPMIN", -2, KeyWords::Range(1, 1, 1), Access::Write, Tells::Nothing),
    row("ZRANDMEMBER", -2, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("ZRANGE", -4, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("ZRANGEBYLEX", -4, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("ZRANGEBYSCORE", -4, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("ZRANGESTORE", -5, KeyWords::Range(1, 2, 1), Access::Write, Tells::Zero),
    row("ZRANK", 3, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("ZREM", -3, KeyWords::Range(1, 1, 1), Access::Write, Tells::Zero),
    row("ZREMRANGEBYLEX", 4, KeyWords::Range(1, 1, 1), Access::Write, Tells::Zero),
    row("ZREMRANGEBYRANK", 4, KeyWords::Range(1, 1, 1), Access::Write, Tells::Zero),
    row("ZREMRANGEBYSCORE", 4, KeyWords::Range(1, 1, 1), Access::Write, Tells::Zero),
    row("ZREVRANGE", -4, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("ZREVRANGEBYLEX", -4, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("ZREVRANGEBYSCORE", -4, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("ZREVRANK", 3, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("ZSCAN", -3, KeyWords::Range(1, 1, 1), Access::Read, Tells::Scan),
    row("ZSCORE", 3, KeyWords::Range(1, 1, 1), Access::Read, Tells::Nothing),
    row("ZUNION", -3, KeyWords::Counted(1), Access::Read, Tells::Nothing),
    row("ZUNIONSTORE", -4, KeyWords::AndCounted(1, 2), Access::Write, Tells::Zero),
];
