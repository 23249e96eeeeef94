//! Passwords in command lines and in commands of RESP servers: words in, the same words with `***` in place of passwords out.

use std::fmt;
use std::ops::Range;

/// Text in the place of a password, and of all that an anonymous result leaves out.
pub const HIDDEN: &str = "***";

/// Text that is printed nowhere: a password or a token.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret of this text.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text, for the peer that has to know it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    /// Leaves the text out.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(HIDDEN)
    }
}

/// Most levels of command lines within the words of command lines that are read. Deeper words are hidden whole.
const DEPTH_MAX: u32 = 8;

/// Options and settings of Redis and Valkey whose value is a password.
const SETTINGS: [&str; 5] =
    ["requirepass", "masterauth", "primaryauth", "tls-key-file-pass", "tls-client-key-file-pass"];

/// Other long options whose value is a password. `--pass` and longer beginnings of `--password` are too.
const OPTIONS: [&str; 2] = ["authenticate", "auth-pass"];

/// Variables whose value is a password.
#[rustfmt::skip]
const VARIABLES: [&str; 6] = [
    "REDISCLI_AUTH", "VALKEYCLI_AUTH", "REDIS_PASSWORD", "VALKEY_PASSWORD", "MEMCACHED_PASSWORD",
    "PUMMEL_PASSWORD",
];

/// Options of redis-cli that have a value, which is no command then.
#[rustfmt::skip]
const CLI_VALUES: [&str; 31] = [
    "-h", "-p", "-t", "-s", "-r", "-i", "-n", "-a", "-u", "-X", "-d", "-D", "--user", "--pass", "--sni",
    "--cacert", "--cacertdir", "--cert", "--key", "--tls-ciphers", "--tls-ciphersuites", "--pattern",
    "--quoted-pattern", "--count", "--pipe-timeout", "--lru-test", "--memkeys-samples",
    "--intrinsic-latency", "--rdb", "--functions-rdb", "--eval",
];

/// Options of redis-benchmark, of valkey-benchmark and of pummel in their place that have a value, in addition to those of redis-cli.
#[rustfmt::skip]
const BENCHMARK_VALUES: [&str; 21] = [
    "-c", "-P", "-k", "--threads", "--precision", "--seed", "--dbnum", "--duration", "--warmup", "--rps", "--rfr",
    "--num-functions", "--num-keys-in-fcall", "--dataset", "--maxdocs", "--json", "--hdr", "--report", "--timeout", "--clock",
    "--backend",
];

/// Options of mutilate's with one letter that have a value.
const MUTILATE_VALUES: &str = "sqtKVrmNuUPTcdiwWaplCQD";

/// The word in the form of a place that `bytes` begin with: a letter and what belongs to names and ranges, between two underscores on
/// each side.
pub(crate) fn place_at(bytes: &[u8]) -> Option<&[u8]> {
    let inner = bytes.strip_prefix(b"__")?;
    let is_of_place = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.:,@+-".contains(byte);
    let end = inner.windows(2).position(|two| two == b"__").filter(|end| *end > 0)?;
    (inner[0].is_ascii_alphabetic() && inner[..end].iter().all(is_of_place)).then(|| &bytes[..end + 4])
}

/// The words of a command line without passwords.
pub fn masked_words(words: &[String]) -> Vec<String> {
    let mut words = words.to_vec();
    mask_line(&mut words, 0);
    words
}

/// A command line, as a shell reads it, without passwords. What holds none stays as it is, to the byte.
pub fn masked_text(text: &str) -> String {
    masked(text, Syntax::Shell, 0)
}

/// A command of a RESP server, as `--command` takes it, without passwords.
pub fn masked_command(text: &str) -> String {
    masked(text, Syntax::Resp, 0)
}

/// Whether a command of a RESP server has `***` where [`masked_command`] puts it.
pub fn is_masked(command: &str) -> bool {
    command.contains(HIDDEN) && masked_command(&command.replace(HIDDEN, "x")).contains(HIDDEN)
}

/// The name of a command of a RESP server, with one `***` in place of all its arguments.
pub fn without_arguments(text: &str) -> String {
    let lines = lines_of(text, Syntax::Resp);
    match lines.first().map(Vec::as_slice) {
        Some([name, _, ..]) => format!("{} {HIDDEN}", &text[name.range.clone()]),
        _ => text.to_owned(),
    }
}

/// The rules by which a text is split into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Syntax {
    /// Quotes and backslashes anywhere; lines, `;`, `&`, `|` and parentheses end a command.
    Shell,
    /// Quotes anywhere, backslashes within them, and one command.
    Resp,
}

/// A word in a text.
#[derive(Debug)]
struct Word {
    /// The word's place in the text, with its quotes.
    range: Range<usize>,
    /// The word without its quotes.
    value: String,
}

/// The words of the commands in a text. A quote that is not closed reaches to the end.
fn lines_of(text: &str, syntax: Syntax) -> Vec<Vec<Word>> {
    let (mut lines, mut line) = (Vec::new(), Vec::new());
    let mut word: Option<Word> = None;
    let mut quote = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let is_shell = syntax == Syntax::Shell;
        let ends_line = is_shell && quote.is_none() && matches!(c, ';' | '|' | '&' | '(' | ')' | '`' | '\n');
        if ends_line || quote.is_none() && c.is_whitespace() {
            line.extend(word.take());
            if ends_line {
                lines.push(std::mem::take(&mut line));
            }
            continue;
        }
        let word = word.get_or_insert(Word { range: at..at, value: String::new() });
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('\\', Some('"')) => word.value.extend(chars.next().map(|(_, c)| c)),
            ('\\', None) if is_shell => word.value.extend(chars.next().map(|(_, c)| c)),
            ('\\', Some('\'')) if !is_shell && chars.peek().is_some_and(|(_, c)| *c == '\'') => {
                word.value.extend(chars.next().map(|(_, c)| c));
            }
            (c, _) => word.value.push(c),
        }
        word.range.end = chars.peek().map_or(text.len(), |(next, _)| *next);
    }
    line.extend(word);
    lines.push(line);
    lines
}

fn masked(text: &str, syntax: Syntax, depth: u32) -> String {
    if depth > DEPTH_MAX {
        return HIDDEN.to_owned();
    }
    let (mut out, mut told) = (String::new(), 0);
    for line in lines_of(text, syntax) {
        let mut words: Vec<String> = line.iter().map(|word| word.value.clone()).collect();
        match syntax {
            Syntax::Shell => mask_line(&mut words, depth),
            Syntax::Resp => {
                mask_resp(&mut words);
                words.iter_mut().for_each(|word| *word = without_uri_passwords(word));
            }
        }
        for (word, new) in line.iter().zip(words).filter(|(word, new)| word.value != *new) {
            out += &text[told..word.range.start];
            out += &quoted(new, &text[word.range.clone()]);
            told = word.range.end;
        }
    }
    out + &text[told..]
}

/// A word in the quotes of the one that it replaces.
fn quoted(word: String, replaced: &str) -> String {
    let has = |quote: char| replaced.len() > 1 && replaced.starts_with(quote) && replaced.ends_with(quote);
    if has('\'') && !word.contains('\'') {
        return format!("'{word}'");
    }
    match has('"') || has('\'') || word.contains(char::is_whitespace) {
        true => format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")),
        false => word,
    }
}

/// The programs whose options are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Other,
    /// redis-cli and its like, and load generators: `-a PASSWORD`.
    Client,
    /// redis-server and its like: `--user NAME >PASSWORD`.
    Server,
    Mutilate,
}

/// The program that word `at` of a command line names, and the number of words behind it that are its options.
fn program_at(words: &[String], at: usize) -> Option<(Program, usize)> {
    let name = words[at].rsplit('/').next().unwrap_or_default();
    let is = |families: &[&str], role: &str| {
        families.iter().any(|family| name.starts_with(&format!("{family}-{role}")))
    };
    let families = ["redis", "valkey", "keydb"];
    let behind = words.len() - at - 1;
    if is(&families, "cli") {
        return Some((Program::Client, command_at(&words[at + 1..], &[])));
    }
    if is(&families, "benchmark") {
        return Some((Program::Client, command_at(&words[at + 1..], &BENCHMARK_VALUES)));
    }
    if name.starts_with("memtier_benchmark") {
        return Some((Program::Client, behind));
    }
    if is(&families, "server") || is(&families, "sentinel") {
        return Some((Program::Server, behind));
    }
    let is_value = at > 0 && words[at - 1].starts_with('-');
    (name == "mutilate" && !is_value).then_some((Program::Mutilate, behind))
}

/// Index of the command among the words behind redis-cli.
fn command_at(words: &[String], more_values: &[&str]) -> usize {
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        let word = word.as_str();
        at += if CLI_VALUES.contains(&word) || more_values.contains(&word) { 2 } else { 1 };
    }
    at.min(words.len())
}

/// Hides the passwords in the words of one command line.
fn mask_line(words: &mut [String], depth: u32) {
    let given = words.to_vec();
    // What echo writes goes to a client, through a pipe.
    let is_echo = given.first().is_some_and(|name| name == "echo" || name == "printf");
    mask_resp(&mut words[usize::from(is_echo)..]);
    let (mut program, mut options_end) = (Program::Other, given.len());
    let mut at = 0;
    while at < given.len() {
        if let Some((known, options)) = program_at(&given, at) {
            (program, options_end) = (known, at + 1 + options);
            if known == Program::Client {
                mask_resp(&mut words[options_end..]);
            }
        } else if at < options_end {
            at += mask_option(&given, words, at, program, depth);
        }
        at += 1;
    }
    for (word, _) in words.iter_mut().zip(&given).filter(|(word, given)| word == given) {
        *word = masked_word(word, depth);
    }
}

/// Hides the password that option `at` has. Returns how many of the words behind it are its value.
fn mask_option(given: &[String], words: &mut [String], at: usize, program: Program, depth: u32) -> usize {
    let word = given[at].as_str();
    let next = given.get(at + 1);
    let Some(long) = word.strip_prefix("--") else {
        return mask_short(words, at, program);
    };
    let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
    if name == "command" {
        let masked = |text: &str| masked(text, Syntax::Resp, depth);
        match (value, next) {
            (Some(value), _) => words[at] = format!("--{name}={}", masked(value)),
            (None, Some(next)) => words[at + 1] = masked(next),
            (None, None) => {}
        }
        return usize::from(value.is_none());
    }
    if name == "user" && program == Program::Server {
        let rules = words[at + 1..].iter_mut().take_while(|word| !word.starts_with("--"));
        rules.for_each(|word| *word = without_acl_passwords(word));
        return 0;
    }
    // Of mutilate's options each beginning is accepted; others have names such as --path.
    let least = if program == Program::Mutilate { 1 } else { "pass".len() };
    let is_password = name.len() >= least && "password".starts_with(name);
    if !(is_password || SETTINGS.contains(&name.to_ascii_lowercase().as_str()) || OPTIONS.contains(&name)) {
        return 0;
    }
    if value.is_some() {
        words[at] = format!("--{name}={HIDDEN}");
        return 0;
    }
    if next.is_some() {
        words[at + 1] = HIDDEN.to_owned();
    }
    1
}

/// Masks the password of option `at` like [`mask_option`], where the option does not begin with `--`.
fn mask_short(words: &mut [String], at: usize, program: Program) -> usize {
    let word = words[at].clone();
    let mut hide_next = || words.get_mut(at + 1).into_iter().for_each(|next| HIDDEN.clone_into(next));
    if SETTINGS.contains(&word.to_ascii_lowercase().as_str()) && program != Program::Client {
        hide_next();
        return 1;
    }
    match (program, word.strip_prefix('-')) {
        (Program::Client, Some("a")) => {
            hide_next();
            1
        }
        (Program::Client, Some(letters)) if letters.starts_with('a') => {
            words[at] = format!("-a{HIDDEN}");
            0
        }
        (Program::Mutilate, Some(letters)) => {
            let Some(place) = letters.find(|letter| MUTILATE_VALUES.contains(letter)) else { return 0 };
            let (is_password, is_apart) = (letters[place..].starts_with('P'), place + 1 == letters.len());
            match (is_password, is_apart) {
                (true, true) => hide_next(),
                (true, false) => words[at] = format!("-{}P{HIDDEN}", &letters[..place]),
                (false, _) => {}
            }
            usize::from(is_apart)
        }
        _ => 0,
    }
}

/// Hides the passwords in the words of a command of a RESP server, if its name is one that has any.
fn mask_resp(words: &mut [String]) {
    let Some(name) = words.first().map(|name| name.to_ascii_uppercase()) else { return };
    let second = words.get(1).map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    match (name.as_str(), second.as_str()) {
        ("AUTH", _) => {
            let first = if words.len() > 2 { 2 } else { 1 };
            words[first..].iter_mut().for_each(hide);
        }
        ("HELLO", _) => hide_behind(words, 2, "AUTH", 2),
        ("CONFIG", "SET") => {
            for pair in words[2..].chunks_mut(2) {
                if let [name, value] = pair {
                    let is_secret = SETTINGS.contains(&name.to_ascii_lowercase().as_str());
                    Some(value).filter(|_| is_secret).into_iter().for_each(hide);
                }
            }
        }
        ("SENTINEL", "SET") => hide_behind(words, 3, "AUTH-PASS", 1),
        ("SENTINEL", "CONFIG") => hide_behind(words, 3, "SENTINEL-PASS", 1),
        ("ACL", "SETUSER") => {
            words.iter_mut().skip(3).for_each(|word| *word = without_acl_passwords(word));
        }
        ("MIGRATE", _) => {
            hide_behind(words, 6, "AUTH", 1);
            hide_behind(words, 6, "AUTH2", 2);
        }
        _ => {}
    }
}

/// Hides the word that stands `distance` words behind `option`, which is sought from word `first` on, up to the keys of MIGRATE.
fn hide_behind(words: &mut [String], first: usize, option: &str, distance: usize) {
    let options =
        words.iter().enumerate().skip(first).take_while(|(_, word)| !word.eq_ignore_ascii_case("KEYS"));
    let at = options.into_iter().find(|(_, word)| word.eq_ignore_ascii_case(option)).map(|(at, _)| at);
    at.and_then(|at| words.get_mut(at + distance)).into_iter().for_each(hide);
}

fn hide(word: &mut String) {
    // A place of a template of `--command` is filled by pummel, and no password.
    if place_at(word.as_bytes()).is_none_or(|place| place.len() < word.len()) {
        HIDDEN.clone_into(word);
    }
}

/// Rules of a user of Redis, with passwords and their hashes hidden: `>password`, `<password`, `#hash`, `!hash`.
fn without_acl_passwords(rules: &str) -> String {
    let hidden = |rule: &str| match rule.chars().next() {
        Some(sign @ ('>' | '<' | '#' | '!')) if rule.len() > 1 => {
            let mut rest = rule[1..].to_owned();
            hide(&mut rest);
            format!("{sign}{rest}")
        }
        _ => rule.to_owned(),
    };
    rules.split(' ').map(hidden).collect::<Vec<String>>().join(" ")
}

/// A word by itself: the value of a variable, an address with a password, a command line in one word.
fn masked_word(word: &str, depth: u32) -> String {
    let is_name =
        |name: &str| !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "'\"".contains(c));
    let (head, value) = match word.find('=').filter(|at| is_name(&word[..*at])) {
        Some(at) => word.split_at(at + 1),
        None => ("", word),
    };
    let is_variable = VARIABLES.iter().any(|name| {
        let before = head.strip_suffix('=').and_then(|head| head.strip_suffix(name));
        before.is_some_and(|before| !before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
    });
    if is_variable && !value.is_empty() {
        return format!("{head}{HIDDEN}");
    }
    let value = match value.contains(char::is_whitespace) {
        true => masked(value, Syntax::Shell, depth + 1),
        false => value.to_owned(),
    };
    without_uri_passwords(&(head.to_owned() + &value))
}

/// The word with `***` in place of the passwords of addresses in it such as `redis://user:password@host`.
fn without_uri_passwords(word: &str) -> String {
    let (mut out, mut rest) = (String::new(), word);
    while let Some(at) = rest.find("://") {
        let (before, tail) = rest.split_at(at + "://".len());
        out += before;
        let scheme = &before[..at];
        let is_redis = ["redis", "rediss", "valkey", "valkeys"].iter().any(|name| scheme.ends_with(name));
        // redis-cli takes all before the @, a slash too; elsewhere an @ may be a part of a path.
        let is_end = |c: char| c.is_whitespace() || "\"'".contains(c) || !is_redis && "/?#".contains(c);
        let authority = &tail[..tail.find(is_end).unwrap_or(tail.len())];
        rest = tail;
        let Some((user, _)) = authority.rsplit_once('@') else { continue };
        rest = &tail[user.len()..];
        out += &match user.split_once(':') {
            Some((name, password)) if !password.is_empty() => format!("{name}:{HIDDEN}"),
            None if is_redis && !user.is_empty() => HIDDEN.to_owned(),
            _ => user.to_owned(),
        };
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed_for_debugging() {
        let secret = Secret::new("S3CRET");
        assert_eq!((format!("{secret:?}").as_str(), secret.reveal()), ("***", "S3CRET"));
    }

    #[test]
    fn passwords_in_commands_of_resp_servers_are_hidden() {
        for (text, told) in [
            ("AUTH SECRET", "AUTH ***"),
            ("auth u SECRET", "auth u ***"),
            ("AUTH u 'SEC RET'", "AUTH u '***'"),
            ("AUTH u \"SEC\\\"RET;x\"", "AUTH u \"***\""),
            ("AUTH u SEC;RET|x", "AUTH u ***"),
            ("AUTH  u  SEC RET", "AUTH  u  *** ***"),
            ("HELLO 3 AUTH u SECRET SETNAME x", "HELLO 3 AUTH u *** SETNAME x"),
            ("CONFIG SET requirepass SECRET", "CONFIG SET requirepass ***"),
            ("config set maxmemory 5 MasterAuth SECRET", "config set maxmemory 5 MasterAuth ***"),
            (
                "ACL SETUSER bob on >SECRET <SECRET #5e4 !5e4 ~* +@all",
                "ACL SETUSER bob on >*** <*** #*** !*** ~* +@all",
            ),
            ("MIGRATE h 6379 k 0 5 COPY AUTH SECRET", "MIGRATE h 6379 k 0 5 COPY AUTH ***"),
            (
                "MIGRATE h 6379 \"\" 0 5 AUTH2 u SECRET KEYS auth b",
                "MIGRATE h 6379 \"\" 0 5 AUTH2 u *** KEYS auth b",
            ),
            ("SENTINEL SET m auth-pass SECRET", "SENTINEL SET m auth-pass ***"),
            ("SET k redis://u:SECRET@h:1/0", "SET k redis://u:***@h:1/0"),
        ] {
            assert_eq!(masked_command(text), told);
            assert_eq!(masked_command(told), told, "masked twice");
            assert!(is_masked(told) || told.contains("://"), "{told}");
        }
    }

    #[test]
    fn commands_without_passwords_stay() {
        for text in [
            "GET auth",
            "SET auth x",
            "MGET requirepass masterauth x",
            "CONFIG GET requirepass",
            "CONFIG SET maxmemory 5",
            "ACL GETUSER bob",
            "ACL SETUSER bob on ~* +@all",
            "HELLO 3",
            "MIGRATE h 6379 \"\" 0 5 KEYS auth b",
            "AUTH __key__ __value__",
            "KEYS ***",
            "EVAL \"return 'a'\" 0",
            "AUTH",
            "",
        ] {
            assert_eq!(masked_command(text), text);
            assert!(!is_masked(text), "{text}");
        }
    }

    #[test]
    fn passwords_in_command_lines_are_hidden() {
        for (text, told) in [
            ("redis-cli -a SECRET shutdown", "redis-cli -a *** shutdown"),
            ("/usr/bin/redis-cli -p 1 --pass 'SEC RET' ping", "/usr/bin/redis-cli -p 1 --pass '***' ping"),
            ("docker exec r valkey-cli -h x AUTH u SECRET", "docker exec r valkey-cli -h x AUTH u ***"),
            ("redis-cli -u redis://u:SEC/RET@h:1/0 ping", "redis-cli -u redis://u:***@h:1/0 ping"),
            ("redis-cli -u redis://SECRET@h ping", "redis-cli -u redis://***@h ping"),
            ("REDISCLI_AUTH=SECRET redis-cli ping", "REDISCLI_AUTH=*** redis-cli ping"),
            ("docker run -e REDIS_PASSWORD=SECRET r", "docker run -e REDIS_PASSWORD=*** r"),
            ("redis-server --port 1 --requirepass SECRET", "redis-server --port 1 --requirepass ***"),
            (
                "redis-server --masterauth=SECRET --masteruser u",
                "redis-server --masterauth=*** --masteruser u",
            ),
            ("redis-server --user bob on >SECRET ~* --port 1", "redis-server --user bob on >*** ~* --port 1"),
            ("redis-server --user \"bob on >SECRET\"", "redis-server --user \"bob on >***\""),
            ("redis-benchmark -c 5 -a SECRET -n 5", "redis-benchmark -c 5 -a *** -n 5"),
            (
                "pummel redis-benchmark --json r.json CONFIG SET requirepass SECRET",
                "pummel redis-benchmark --json r.json CONFIG SET requirepass ***",
            ),
            (
                "memtier_benchmark -aSECRET --authenticate=u:SECRET",
                "memtier_benchmark -a*** --authenticate=***",
            ),
            ("echo AUTH u SECRET | redis-cli", "echo AUTH u *** | redis-cli"),
            ("printf 'AUTH u SECRET' | nc h 1", "printf 'AUTH u ***' | nc h 1"),
            (
                "sh -c 'redis-cli -a SECRET x; redis-server --requirepass SECRET'",
                "sh -c 'redis-cli -a *** x; redis-server --requirepass ***'",
            ),
            ("echo requirepass SECRET | redis-server -", "echo requirepass *** | redis-server -"),
            ("redis-cli CONFIG SET requirepass SECRET&", "redis-cli CONFIG SET requirepass ***&"),
            ("pummel run --command 'AUTH u SEC;RET' -c 4", "pummel run --command 'AUTH u ***' -c 4"),
            ("--rate 5 --command=\"AUTH u SECRET\"", "--rate 5 \"--command=AUTH u ***\""),
            ("curl https://u:SECRET@h/a@b", "curl https://u:***@h/a@b"),
        ] {
            assert_eq!(masked_text(text), told);
            assert_eq!(masked_text(told), told, "masked twice");
        }
    }

    #[test]
    fn command_lines_without_passwords_stay() {
        for text in [
            "redis-cli GET auth",
            "redis-cli -n 2 SET auth x",
            "redis-cli SORT k -a x",
            "redis-cli MGET requirepass x",
            "redis-server --port 1 --masteruser u",
            "memcached -a 700 -l 127.0.0.1 -Y /etc/auth",
            "ls -a /tmp;  systemctl restart 'redis'",
            "curl https://h:80/a@b  http://u@h/",
            "run -s a --password-file f --path p",
            "it's not closed",
        ] {
            assert_eq!(masked_text(text), text);
        }
    }

    #[test]
    fn words_of_a_process_are_told_without_passwords() {
        for (line, told) in [
            ("mutilate|-s|a|-U|me|-P|SECRET|-T|4", "mutilate|-s|a|-U|me|-P|***|-T|4"),
            ("pummel|mutilate|-PSECRET", "pummel|mutilate|-P***"),
            ("mutilate|-BP|SECRET|-s|a", "mutilate|-BP|***|-s|a"),
            ("mutilate|--password|SECRET", "mutilate|--password|***"),
            ("mutilate|--pa=SECRET", "mutilate|--pa=***"),
            ("mutilate|-sPROD1:11211|-s|PROD2", "mutilate|-sPROD1:11211|-s|PROD2"),
            ("pummel|run|-sPROD1:11211|-P5", "pummel|run|-sPROD1:11211|-P5"),
            ("pummel|run|-s|mutilate|-PROD", "pummel|run|-s|mutilate|-PROD"),
            ("pummel|run|--command|AUTH u SEC;RET", "pummel|run|--command|AUTH u ***"),
            ("pummel|run|--command=AUTH u SECRET", "pummel|run|--command=AUTH u ***"),
            ("pummel|run|--command|SET auth x", "pummel|run|--command|SET auth x"),
            ("pummel|run|--restart|redis-cli -a SECRET x", "pummel|run|--restart|redis-cli -a *** x"),
            (
                "pummel|ab|--a-program=redis-server --requirepass SECRET",
                "pummel|ab|--a-program=redis-server --requirepass ***",
            ),
            ("pummel|ab|--a|--command 'AUTH u SECRET'", "pummel|ab|--a|--command 'AUTH u ***'"),
            ("pummel|run|--password-file|f|-c|4", "pummel|run|--password-file|f|-c|4"),
            ("pummel|run|--label|a=b c  d", "pummel|run|--label|a=b c  d"),
        ] {
            let words: Vec<String> = line.split('|').map(str::to_owned).collect();
            assert_eq!(masked_words(&words).join("|"), told);
        }
    }

    #[test]
    fn arguments_are_left_out_whole() {
        for (text, told) in [("SET k 'a b'", "SET ***"), ("PING", "PING"), ("SET ***", "SET ***"), ("", "")] {
            assert_eq!(without_arguments(text), told);
        }
    }

    #[test]
    fn command_lines_within_command_lines_have_an_end() {
        let within = |text: String| format!("sh -c \"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let deep = (0..DEPTH_MAX + 3).fold("redis-cli -a SECRET".to_owned(), |text, _| within(text));
        assert!(!masked_text(&deep).contains("SECRET"));
        let quotes = "\"' ".repeat(200) + "redis-cli -a SECRET";
        masked_text(&quotes);
    }
}
