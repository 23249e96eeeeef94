//! The tests of redis-benchmark: their names, titles and commands, and the templates of commands of the user.

use pummel_logic::plan::Command;
use pummel_logic::protocol::resp::template::{literal, quoted};

use crate::user_commands::{before_place, named};

/// The name of the front in results, metrics and subcommands.
pub const NAME: &str = "redis-benchmark";

/// The name of the same command line for Valkey.
pub const VALKEY_NAME: &str = "valkey-benchmark";

/// The value of `-d`.
const DATA: &str = "__data__";

/// The score of `zadd`: 0, and a number that is drawn with `-r`.
const SCORE: &str = "__score__";

/// A number that is drawn with `-r`.
const DRAWN: &str = "__rand_int__";

/// A tag that decides the slot of a key, in commands for a cluster.
const TAG: &str = "{tag}";

/// The place of that tag: the key of a record between braces.
const TAG_PLACE: &str = "{__key__}";

/// Stands in a key of the suite where keys have a tag in a cluster.
const TEST_TAG: &str = "{}";

/// Longest value that stands in a template as it is. A longer one is that of a record, so that no plan holds it.
const LITERAL_MAX_BYTES: usize = 512;

/// Which of the two programs a command line is of: what they do by default differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// redis-benchmark.
    Redis,
    /// valkey-benchmark.
    Valkey,
}

impl Program {
    /// The program that is called by this name, whatever folder it is in.
    pub fn of_name(name: &str) -> Program {
        let file_name = name.rsplit('/').next().unwrap_or(name);
        if file_name == VALKEY_NAME { Program::Valkey } else { Program::Redis }
    }

    /// The name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Program::Redis => NAME,
            Program::Valkey => VALKEY_NAME,
        }
    }
}

/// A test of the suite.
#[derive(Debug)]
struct Row {
    /// The names that `-t` takes, that of the test alone first.
    names: &'static [&'static str],
    title: &'static str,
    /// The words of the command.
    words: &'static [&'static str],
    /// Only valkey-benchmark has the test.
    is_valkeys: bool,
}

const fn row(names: &'static [&'static str], title: &'static str, words: &'static [&'static str]) -> Row {
    Row { names, title, words, is_valkeys: false }
}

/// The names of the tests that need a list.
const RANGES: [&str; 5] = ["lrange", "lrange_100", "lrange_300", "lrange_500", "lrange_600"];

const KEY: &str = "key{}:__rand_int__";
const ELEMENT: &str = "element:__rand_int__";

/// The tests, in the order of the original.
const SUITE: [Row; 22] = [
    row(&["ping_inline", "ping"], "PING_INLINE", &["PING"]),
    row(&["ping_mbulk", "ping"], "PING_MBULK", &["PING"]),
    row(&["set"], "SET", &["SET", KEY, DATA]),
    row(&["get"], "GET", &["GET", KEY]),
    row(&["incr"], "INCR", &["INCR", "counter{}:__rand_int__"]),
    row(&["lpush"], "LPUSH", &["LPUSH", "mylist{}", DATA]),
    row(&["rpush"], "RPUSH", &["RPUSH", "mylist{}", DATA]),
    row(&["lpop"], "LPOP", &["LPOP", "mylist{}"]),
    row(&["rpop"], "RPOP", &["RPOP", "mylist{}"]),
    row(&["sadd"], "SADD", &["SADD", "myset{}", ELEMENT]),
    row(&["hset"], "HSET", &["HSET", "myhash{}", ELEMENT, DATA]),
    row(&["spop"], "SPOP", &["SPOP", "myset{}"]),
    row(&["zadd"], "ZADD", &["ZADD", "myzset{}", SCORE, ELEMENT]),
    row(&["zpopmin"], "ZPOPMIN", &["ZPOPMIN", "myzset{}"]),
    row(&RANGES, "LPUSH (needed to benchmark LRANGE)", &["LPUSH", "mylist{}", DATA]),
    row(&["lrange_100", "lrange"], "LRANGE_100 (first 100 elements)", &["LRANGE", "mylist{}", "0", "99"]),
    row(&["lrange_300", "lrange"], "LRANGE_300 (first 300 elements)", &["LRANGE", "mylist{}", "0", "299"]),
    row(&["lrange_500", "lrange"], "LRANGE_500 (first 500 elements)", &["LRANGE", "mylist{}", "0", "499"]),
    row(&["lrange_600", "lrange"], "LRANGE_600 (first 600 elements)", &["LRANGE", "mylist{}", "0", "599"]),
    row(
        &["mset"],
        "MSET (10 keys)",
        &[
            "MSET", KEY, DATA, KEY, DATA, KEY, DATA, KEY, DATA, KEY, DATA, KEY, DATA, KEY, DATA, KEY, DATA,
            KEY, DATA, KEY, DATA,
        ],
    ),
    Row {
        names: &["mget"],
        title: "MGET (10 keys)",
        words: &["MGET", KEY, KEY, KEY, KEY, KEY, KEY, KEY, KEY, KEY, KEY],
        is_valkeys: true,
    },
    row(&["xadd"], "XADD", &["XADD", "mystream{}", "*", "myfield", DATA]),
];

/// A test that is run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Test {
    /// The name, which files of results have in their names.
    pub name: String,
    /// The title in reports.
    pub title: String,
    /// The commands that each client asks in turns, with how often each is asked in its turn.
    pub commands: Vec<(u32, Command)>,
    /// Length of the value or of the command in bytes, as reports have it.
    pub payload_bytes: u64,
}

/// What fills the places of commands.
#[derive(Clone, Debug)]
pub(super) struct Fillings {
    /// `-r`; absent where nothing is replaced.
    keyspace: Option<i64>,
    /// The value, as it stands in templates.
    data: String,
    program: Program,
    /// Whether keys have tags.
    in_cluster: bool,
}

impl Fillings {
    /// What `-r`, `-d` and `--cluster` say.
    pub(super) fn new(keyspace: Option<i64>, size: usize, program: Program, in_cluster: bool) -> Fillings {
        let data = match size {
            0..=LITERAL_MAX_BYTES => fixed_bytes(size),
            _ => "__value__".to_owned(),
        };
        Fillings { keyspace, data, program, in_cluster }
    }

    /// A word with places where something is replaced, in the syntax of templates; `None` where text in front of a place would be
    /// taken for one.
    fn word(&self, word: &str) -> Option<String> {
        let (mut text, mut fixed, mut rest) = (String::new(), String::new(), word);
        while let Some(first) = rest.chars().next() {
            let Some((place, behind)) = self.place_at(rest) else {
                fixed.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            };
            text.extend([before_place(&std::mem::take(&mut fixed))?, place]);
            rest = behind;
        }
        text.push_str(&literal(&fixed));
        Some(text)
    }

    /// The place for what a text begins with, and what follows it; `None` where nothing is replaced there.
    fn place_at<'a>(&self, text: &'a str) -> Option<(String, &'a str)> {
        if let Some(behind) = text.strip_prefix(DRAWN) {
            return Some((self.drawn("")?, behind));
        }
        if let Some(behind) = text.strip_prefix(TAG).filter(|_| self.in_cluster) {
            return Some((TAG_PLACE.to_owned(), behind));
        }
        if self.program != Program::Valkey {
            return None;
        }
        if let Some(behind) = text.strip_prefix(DATA) {
            return Some((self.data.clone(), behind));
        }
        if let Some(field) = text.strip_prefix("__field:") {
            let end = field.find("__")?;
            return Some((format!("__field:{}__", &field[..end]), &field[end + 2..]));
        }
        const ORDINALS: [&str; 9] = ["1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th"];
        ORDINALS.iter().find_map(|ordinal| {
            let behind = text.strip_prefix("__rand_")?.strip_prefix(ordinal)?.strip_prefix("__")?;
            Some((self.drawn(&format!(".r{ordinal}"))?, behind))
        })
    }

    /// The place of twelve digits that are drawn, once for each name; `None` without `-r`.
    fn drawn(&self, name: &str) -> Option<String> {
        Some(match self.keyspace? {
            ..=0 => format!("{:012}", 0),
            keyspace => format!("__int{name}:{:012}-{:012}__", 0, keyspace - 1),
        })
    }

    /// The command of a test of the suite.
    fn of_row(&self, row: &Row) -> Command {
        let score = self.drawn("").unwrap_or_else(|| "0".to_owned());
        let words = row.words.iter().map(|word| match *word {
            DATA => self.data.clone(),
            SCORE => score.clone(),
            word => {
                let word = word.replace(TEST_TAG, if self.in_cluster { ":{tag}" } else { "" });
                self.word(&word).expect("no word of the suite has such text")
            }
        });
        Command {
            inline: row.names[0] == "ping_inline",
            ..Command::unnamed(&words.collect::<Vec<_>>().join(" "))
        }
    }

    /// The commands of the user that these words mean, with how often each is asked in its turn. The words are as the shell gave them.
    /// Of valkey-benchmark's, a `;` stands between two commands and a number in front of one says how often it is repeated.
    ///
    /// # Errors
    /// Returns the words for a command that cannot be had.
    pub(super) fn of_user(&self, words: &[String]) -> Result<Vec<(u32, Command)>, String> {
        let is_mark = |word: &String| self.program == Program::Valkey && word == ";";
        words.split(is_mark).map(|words| self.repeated(words)).collect()
    }

    fn repeated(&self, words: &[String]) -> Result<(u32, Command), String> {
        let count = match words {
            [first, ..]
                if self.program == Program::Valkey
                    && first.starts_with(|digit| ('1'..='9').contains(&digit)) =>
            {
                Some(first.parse::<u32>().map_err(|_| format!("'{first}' is no number of repetitions"))?)
            }
            _ => None,
        };
        let words = &words[usize::from(count.is_some())..];
        if words.is_empty() {
            return Err("a command needs at least one word".to_owned());
        }
        let word = |word: &String| {
            self.word(word).map(|word| quoted(&word)).ok_or_else(|| {
                format!(
                    "'{word}': the text in front of what is replaced looks like something that is replaced"
                )
            })
        };
        let words = words.iter().map(word).collect::<Result<Vec<_>, _>>()?;
        Ok((count.unwrap_or(1), Command::unnamed(&words.join(" "))))
    }
}

/// The tests of the suite that `-t` chooses, or all, as [`Program`] has them, and the words of `-t` that no test has.
pub(super) fn chosen(
    names: Option<&str>,
    size: u64,
    fillings: &Fillings,
    program: Program,
) -> (Vec<Test>, Vec<String>) {
    let asked: Option<Vec<&str>> = names.map(|names| names.split(',').collect());
    let is_chosen = |row: &Row| match &asked {
        None => !row.is_valkeys || program == Program::Valkey,
        Some(asked) => row.names.iter().any(|name| asked.contains(name)),
    };
    let test = |row: &Row| Test {
        name: row.names[0].to_owned(),
        title: row.title.to_owned(),
        commands: vec![(1, named(fillings.of_row(row), std::iter::empty()))],
        payload_bytes: size,
    };
    let tests = SUITE.iter().filter(|row| is_chosen(row)).map(test).collect();
    let is_known = |name: &str| SUITE.iter().any(|row| row.names.contains(&name));
    let unknown = asked.unwrap_or_default().into_iter().filter(|name| !is_known(name)).map(str::to_owned);
    (tests, unknown.collect())
}

/// The value of `-d` bytes: the bytes of the original, from its generator of constant multiplier and increment.
fn fixed_bytes(size: usize) -> String {
    const FIRST: u32 = 1_234;
    let next = |state: &u32| Some(state.wrapping_mul(1_103_515_245).wrapping_add(12_345));
    let states = std::iter::successors(Some(FIRST), next).skip(1).take(size);
    states.map(|state| char::from(b'0' + (state >> 16 & 63) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_bytes_of_the_original() {
        assert_eq!(fixed_bytes(12), "VXKeHogKgJ=[");
        assert_eq!(fixed_bytes(0), "");
        assert!(fixed_bytes(512).bytes().all(|byte| (b'0'..=b'o').contains(&byte)));
    }

    #[test]
    fn what_the_original_replaces_is_a_place_and_all_else_is_itself() {
        let word = |keyspace, program, word: &str| Fillings::new(keyspace, 3, program, false).word(word);
        let redis = |text: &str| word(Some(1_000), Program::Redis, text).expect("it can be had");
        assert_eq!(redis("k:__rand_int__x"), "k:__int:000000000000-000000000999__x");
        assert_eq!(redis("____rand_int__"), "____int:000000000000-000000000999__");
        for (text, same) in [
            ("__rand_1st__", r"\__rand_1st__"),
            ("a__data__b", r"a\__data__b"),
            ("__key__", r"\__key__"),
            ("{tag}", "{tag}"),
            ("__", "__"),
        ] {
            assert_eq!(redis(text), same);
        }
        assert_eq!(word(None, Program::Redis, "k__rand_int__").as_deref(), Some(r"k\__rand_int__"));
        assert_eq!(word(Some(0), Program::Redis, "k__rand_int__").as_deref(), Some("k000000000000"));
        assert_eq!(word(Some(9), Program::Redis, "__key__rand_int__").as_deref(), None);
        let valkey = |text: &str| word(Some(10), Program::Valkey, text).expect("it can be had");
        assert_eq!(valkey("<__data__>"), "<VXK>");
        assert_eq!(valkey("__rand_2nd__"), "__int.r2nd:000000000000-000000000009__");
        assert_eq!(valkey("__field:name__"), "__field:name__");
    }

    #[test]
    fn commands_of_the_user_are_read_as_each_program_reads_them() {
        let read = |program, line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let commands = Fillings::new(None, 3, program, false).of_user(&words);
            commands.map(|all| {
                all.into_iter().map(|(count, command)| (count, command.template)).collect::<Vec<_>>()
            })
        };
        let told = |count, template: &str| (count, template.to_owned());
        assert_eq!(read(Program::Redis, "3 a ; b"), Ok(vec![told(1, "3 a \";\" b")]));
        assert_eq!(
            read(Program::Valkey, "3 SET a b ; GET a"),
            Ok(vec![told(3, "SET a b"), told(1, "GET a")])
        );
        for line in ["SET a b ;", "3", "99999999999 a", "3 ; GET a"] {
            assert!(read(Program::Valkey, line).is_err(), "{line}");
        }
    }

    #[test]
    fn tests_are_chosen_by_their_names() {
        let titles = |names: Option<&str>, program| {
            let (tests, unknown) = chosen(names, 3, &Fillings::new(None, 3, program, false), program);
            (tests.into_iter().map(|test| test.title).collect::<Vec<_>>(), unknown)
        };
        let (all, _) = titles(None, Program::Redis);
        assert_eq!((all.len(), &all[0][..], &all[20][..]), (21, "PING_INLINE", "XADD"));
        assert_eq!(titles(None, Program::Valkey).0.len(), 22);
        assert_eq!(
            titles(Some("lrange_300,get,none, set"), Program::Redis),
            (
                ["GET", "LPUSH (needed to benchmark LRANGE)", "LRANGE_300 (first 300 elements)"]
                    .map(str::to_owned)
                    .to_vec(),
                vec!["none".to_owned(), " set".to_owned()]
            )
        );
        assert_eq!(titles(Some("ping"), Program::Redis).0, ["PING_INLINE", "PING_MBULK"]);
    }
}
