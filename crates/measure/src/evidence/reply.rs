//! Questions to a server for evidence, and the readers of its replies.

use super::facts::Facts;
use super::redis_lists::{SLOW_COMMANDS_MAX, reported_events, reported_histograms, reported_slow_commands};
use super::resp_value::{RespRead, RespValue};
use super::slots::{BY_CPU, BY_KEYS, reported_slots};
use crate::misses::usual_key;
use crate::words::printable;
use pummel_logic::plan::Protocol;

/// Most bytes of one reply; a longer one makes the reading fail.
pub const REPLY_MAX_BYTES: usize = 256 << 10;

/// Longest words of a refusal that are kept, in bytes.
const WORDS_MAX_BYTES: usize = 200;

/// Most values of an answer of nested lists, those within lists included.
const NESTED_VALUES_MAX: usize = 16_384;

/// Reason why a reply with more than the most facts is malformed.
const TOO_MANY: &str = "it has more statistics than any server";

/// The protocol that a server is asked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// memcached's text protocol.
    Text,
    /// memcached's binary protocol, which is all that a server with SASL speaks.
    Binary,
    /// RESP2 or RESP3.
    Resp,
}

/// A question to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The counters of memcached.
    Stats,
    /// The settings of memcached.
    Settings,
    /// All sections of a RESP server.
    Info,
    /// The sections that a RESP server shows by default, for one that does not know the others.
    InfoDefault,
    /// Number of threads of a RESP server that read and write.
    IoThreads,
    /// Settings of when a RESP server writes snapshots.
    Snapshots,
    /// Setting that makes a RESP server write every change to a file.
    AppendOnly,
    /// Number of slow commands that a RESP server remembers.
    SlowCommands,
    /// The newest slow commands of a RESP server.
    SlowLog,
    /// The latest events of a RESP server's own watch on its latency.
    LatencyEvents,
    /// The times of each command of a RESP server, as histograms.
    LatencyHistograms,
    /// The memory of memcached by classes of sizes.
    Slabs,
    /// The records of memcached by classes of sizes, and what each class lost.
    Items,
    /// The hash slots of a cluster's node that took the most CPU time.
    SlotsByCpu,
    /// The hash slots of a cluster's node that have the most keys.
    SlotsByKeys,
    /// Presence of the record that a load with the usual settings stores first.
    UsualRecord,
}

/// The occasion on which a question is asked. More is asked on the earlier ones of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Occasion {
    /// The first reading of a server.
    #[default]
    First,
    /// A reading before or after the measured phase.
    Ends,
    /// A reading within the measured phase, which must cost the server as little as possible.
    Within,
}

/// Name of the fact that a number alone is.
pub const NUMBER: &str = "number";

/// The beginning of what a server sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The reply is not complete.
    More,
    /// The reply is complete, and has this many bytes.
    Facts(Facts, usize),
    /// The server refused with these words; the reply has this many bytes.
    Refused(String, usize),
    /// The bytes are none of the dialect's, for this reason.
    Malformed(&'static str),
}

impl Dialect {
    /// The dialect in which the servers of a protocol are asked.
    pub fn of(protocol: Protocol) -> Dialect {
        match protocol {
            Protocol::Text | Protocol::Meta => Dialect::Text,
            Protocol::Binary => Dialect::Binary,
            Protocol::Resp2 | Protocol::Resp3 => Dialect::Resp,
        }
    }

    /// The questions of one reading, in their order; the last one asks for the counters.
    pub fn questions(self, occasion: Occasion) -> impl Iterator<Item = Question> {
        let asked = QUESTIONS.iter().filter(move |(_, last, of)| occasion <= *last && of.contains(&self));
        asked.map(|(question, ..)| *question)
    }
}

/// The dialects of memcached.
const MEMCACHED: &[Dialect] = &[Dialect::Text, Dialect::Binary];

/// The dialect of RESP servers.
const RESP: &[Dialect] = &[Dialect::Resp];

/// The questions of a reading in their order, each with the last occasion on which it is asked, and its dialects. Answers that do not
/// change in a run are asked for in the first reading alone.
const QUESTIONS: &[(Question, Occasion, &[Dialect])] = &[
    (Question::Settings, Occasion::First, MEMCACHED),
    (Question::IoThreads, Occasion::First, RESP),
    (Question::Snapshots, Occasion::First, RESP),
    (Question::AppendOnly, Occasion::First, RESP),
    (Question::UsualRecord, Occasion::First, &[Dialect::Text, Dialect::Resp]),
    (Question::Slabs, Occasion::Ends, MEMCACHED),
    (Question::Items, Occasion::Within, MEMCACHED),
    (Question::Stats, Occasion::Within, MEMCACHED),
    (Question::SlowCommands, Occasion::Within, RESP),
    (Question::SlowLog, Occasion::Ends, RESP),
    (Question::LatencyEvents, Occasion::Ends, RESP),
    (Question::LatencyHistograms, Occasion::Ends, RESP),
    (Question::SlotsByKeys, Occasion::Ends, RESP),
    (Question::SlotsByCpu, Occasion::Ends, RESP),
    (Question::Info, Occasion::Within, RESP),
];

impl Question {
    /// Adds the bytes of the question to `out`.
    pub fn write(self, dialect: Dialect, out: &mut Vec<u8>) {
        let (newest, by_cpu, by_keys) =
            (SLOW_COMMANDS_MAX.to_string(), BY_CPU.to_string(), BY_KEYS.to_string());
        let usual_key = if self == Question::UsualRecord { usual_key() } else { String::new() };
        let words: &[&str] = match self {
            Question::Stats => &["stats"],
            Question::Settings => &["stats", "settings"],
            Question::Info => &["INFO", "everything"],
            Question::InfoDefault => &["INFO"],
            Question::IoThreads => &["CONFIG", "GET", "io-threads"],
            Question::Snapshots => &["CONFIG", "GET", "save"],
            Question::AppendOnly => &["CONFIG", "GET", "appendonly"],
            Question::SlowCommands => &["SLOWLOG", "LEN"],
            Question::SlowLog => &["SLOWLOG", "GET", &newest],
            Question::LatencyEvents => &["LATENCY", "LATEST"],
            Question::LatencyHistograms => &["LATENCY", "HISTOGRAM"],
            Question::Slabs => &["stats", "slabs"],
            Question::Items => &["stats", "items"],
            Question::SlotsByCpu => {
                &["CLUSTER", "SLOT-STATS", "ORDERBY", "cpu-usec", "LIMIT", &by_cpu, "DESC"]
            }
            Question::SlotsByKeys => {
                &["CLUSTER", "SLOT-STATS", "ORDERBY", "key-count", "LIMIT", &by_keys, "DESC"]
            }
            // Neither counts as a read of the record, nor moves it in the order of evictions.
            Question::UsualRecord if dialect == Dialect::Text => &["me", &usual_key],
            Question::UsualRecord => &["EXISTS", &usual_key],
        };
        match dialect {
            Dialect::Text => out.extend(format!("{}\r\n", words.join(" ")).bytes()),
            Dialect::Resp => {
                out.extend(format!("*{}\r\n", words.len()).bytes());
                words.iter().for_each(|word| out.extend(format!("${}\r\n{word}\r\n", word.len()).bytes()));
            }
            Dialect::Binary => {
                let key = words.get(1).copied().unwrap_or_default().as_bytes();
                out.extend([binary::REQUEST, binary::STAT]);
                out.extend((key.len() as u16).to_be_bytes());
                out.extend([0; 4]);
                out.extend((key.len() as u32).to_be_bytes());
                out.extend([0; 12]);
                out.extend(key);
            }
        }
    }
}

/// Reads the reply to a question off the front of `bytes`, which may end anywhere. The caller keeps at most
/// [`REPLY_MAX_BYTES`] of a reply that is not complete.
pub fn read(question: Question, dialect: Dialect, bytes: &[u8]) -> Reply {
    match (dialect, question) {
        (Dialect::Text, Question::UsualRecord) => read_metadata(bytes),
        (Dialect::Text, _) => read_text(bytes),
        (Dialect::Binary, _) => read_binary(bytes),
        (Dialect::Resp, Question::SlowLog) => read_nested(bytes, reported_slow_commands),
        (Dialect::Resp, Question::LatencyEvents) => read_nested(bytes, reported_events),
        (Dialect::Resp, Question::LatencyHistograms) => read_nested(bytes, reported_histograms),
        (Dialect::Resp, Question::SlotsByCpu | Question::SlotsByKeys) => read_nested(bytes, reported_slots),
        (Dialect::Resp, _) => read_plain(bytes),
    }
}

/// Reads whether memcached holds one record: a line of its metadata (`ME`), or `EN`.
fn read_metadata(bytes: &[u8]) -> Reply {
    let mut rest = bytes;
    let Some(line) = line_of(&mut rest) else { return Reply::More };
    let taken = bytes.len() - rest.len();
    let is_there: &[u8] = match line {
        b"EN" => b"0",
        line if line.starts_with(b"ME ") => b"1",
        line => return Reply::Refused(words_of(line), taken),
    };
    Reply::Facts(number_alone(is_there), taken)
}

/// The words of a refusal, cut and without control characters.
fn words_of(line: &[u8]) -> String {
    printable(&line[..line.len().min(WORDS_MAX_BYTES)])
}

/// Takes a line off the front of `rest`, without its line end; `None` where it is not complete.
fn line_of<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|&byte| byte == b'\n')?;
    let line = &rest[..end];
    *rest = &rest[end + 1..];
    Some(line.strip_suffix(b"\r").unwrap_or(line))
}

fn read_text(bytes: &[u8]) -> Reply {
    let mut facts = Facts::default();
    let mut rest = bytes;
    while let Some(line) = line_of(&mut rest) {
        if line == b"END" {
            return Reply::Facts(facts, bytes.len() - rest.len());
        }
        let Some(fact) = line.strip_prefix(b"STAT ") else {
            let is_error = [&b"ERROR"[..], b"CLIENT_ERROR", b"SERVER_ERROR"]
                .iter()
                .any(|word| line.strip_prefix(*word).is_some_and(|tail| tail.is_empty() || tail[0] == b' '));
            return match is_error {
                true => Reply::Refused(words_of(line), bytes.len() - rest.len()),
                false => Reply::Malformed("a line of its statistics does not begin with STAT"),
            };
        };
        let blank = fact.iter().position(|&byte| byte == b' ').unwrap_or(fact.len());
        if !facts.add(&fact[..blank], fact.get(blank + 1..).unwrap_or_default()) {
            return Reply::Malformed(TOO_MANY);
        }
    }
    Reply::More
}

/// The binary protocol, as far as statistics need it (memcached's `protocol_binary.h`).
mod binary {
    pub const REQUEST: u8 = 0x80;
    pub const RESPONSE: u8 = 0x81;
    pub const STAT: u8 = 0x10;
    pub const HEADER_BYTES: usize = 24;
}

fn read_binary(bytes: &[u8]) -> Reply {
    let mut facts = Facts::default();
    let mut rest = bytes;
    while let Some((header, tail)) = rest.split_first_chunk::<{ binary::HEADER_BYTES }>() {
        if header[0] != binary::RESPONSE || header[1] != binary::STAT {
            return Reply::Malformed("a packet of its statistics is none");
        }
        let key_bytes = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let extra_bytes = usize::from(header[4]);
        let status = u16::from_be_bytes([header[6], header[7]]);
        let body_bytes = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
        if extra_bytes + key_bytes > body_bytes || body_bytes > REPLY_MAX_BYTES {
            return Reply::Malformed("a packet of its statistics has lengths that do not fit");
        }
        if tail.len() < body_bytes {
            return Reply::More;
        }
        let (body, next) = tail.split_at(body_bytes);
        rest = next;
        let (key, value) = body[extra_bytes..].split_at(key_bytes);
        if status != 0 {
            return Reply::Refused(words_of(value), bytes.len() - rest.len());
        }
        if key.is_empty() {
            return Reply::Facts(facts, bytes.len() - rest.len());
        }
        if !facts.add(key, value) {
            return Reply::Malformed(TOO_MANY);
        }
    }
    Reply::More
}

/// Reads an answer of nested lists, which `reported` turns into facts, or a refusal.
fn read_nested(bytes: &[u8], reported: fn(&RespValue<'_>) -> Facts) -> Reply {
    const NONE: &str = "what answers SLOWLOG, LATENCY or CLUSTER is no list";
    read_resp(bytes, NESTED_VALUES_MAX, NONE, |value| Ok(reported(value)))
}

/// Most values of a list of settings; it has names and values in turn.
const SETTING_VALUES_MAX: usize = 1 + 2 * 256;

/// Reads an answer that is a number, a text of lines, or a list of settings; or a refusal.
fn read_plain(bytes: &[u8]) -> Reply {
    const NONE: &str = "what answers INFO or CONFIG is no text";
    match bytes {
        [] | [b'-', ..] | [b':' | b'$' | b'=' | b'*' | b'%'] => {}
        // Nothing in place of a text or a list, as `$-1`, is none.
        [b':' | b'$' | b'=' | b'*' | b'%', digit, ..] if digit.is_ascii_digit() => {}
        _ => return Reply::Malformed(NONE),
    }
    read_resp(bytes, SETTING_VALUES_MAX, NONE, |value| match value {
        RespValue::Number(number) => Ok(number_alone(number.to_string().as_bytes())),
        RespValue::Text(text) => info_of(text).ok_or(TOO_MANY),
        RespValue::List(values) => settings_of(values).ok_or(NONE),
    })
}

/// Reads a refusal, or a value of at most `values_max` values, which `reported` turns into facts. Other bytes are malformed for the
/// reason `wrong`.
fn read_resp(
    bytes: &[u8],
    values_max: usize,
    wrong: &'static str,
    reported: impl Fn(&RespValue<'_>) -> Result<Facts, &'static str>,
) -> Reply {
    if bytes.first() == Some(&b'-') {
        let mut rest = &bytes[1..];
        return match line_of(&mut rest) {
            Some(words) => Reply::Refused(words_of(words), bytes.len() - rest.len()),
            None => Reply::More,
        };
    }
    match RespValue::read(bytes, values_max) {
        RespRead::More => Reply::More,
        RespRead::Wrong => Reply::Malformed(wrong),
        RespRead::Whole(value, len) => match reported(&value) {
            Ok(facts) => Reply::Facts(facts, len),
            Err(why) => Reply::Malformed(why),
        },
    }
}

/// The fact that a number alone is.
fn number_alone(digits: &[u8]) -> Facts {
    let mut facts = Facts::default();
    facts.add(NUMBER.as_bytes(), digits);
    facts
}

/// The facts of names and values in turn; `None` where one of them is no text.
fn settings_of(values: &[RespValue<'_>]) -> Option<Facts> {
    let mut facts = Facts::default();
    let texts = values.iter().map(RespValue::text).collect::<Option<Vec<&[u8]>>>()?;
    for pair in texts.chunks_exact(2) {
        facts.add(pair[0], pair[1]);
    }
    Some(facts)
}

/// The lines `name:value` of INFO; `None` where there are too many.
fn info_of(text: &[u8]) -> Option<Facts> {
    let mut facts = Facts::default();
    for line in text.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(colon) = line.iter().position(|&byte| byte == b':').filter(|_| line[0] != b'#') else {
            continue;
        };
        if !facts.add(&line[..colon], &line[colon + 1..]) {
            return None;
        }
    }
    Some(facts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::*;

    const DIALECTS: [Dialect; 3] = [Dialect::Text, Dialect::Binary, Dialect::Resp];

    fn packet(status: u16, key: &[u8], value: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x81, 0x10];
        packet.extend((key.len() as u16).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(status.to_be_bytes());
        packet.extend(((key.len() + value.len()) as u32).to_be_bytes());
        packet.extend([0; 12]);
        packet.extend_from_slice(key);
        packet.extend_from_slice(value);
        packet
    }

    /// Reply that `stream` holds; asserts that it is incomplete before its last byte.
    #[track_caller]
    fn whole(dialect: Dialect, stream: &[u8]) -> Reply {
        let read = |bytes| read(Question::Info, dialect, bytes);
        let reply = read(stream);
        for cut in 0..stream.len() {
            assert_eq!(read(&stream[..cut]), Reply::More, "cut at {cut}");
        }
        let (Reply::Facts(_, len) | Reply::Refused(_, len)) = &reply else { panic!("{reply:?}") };
        assert_eq!(*len, stream.len());
        let mut more = stream.to_vec();
        more.extend(b"END\r\n");
        assert_eq!(read(&more), reply, "what follows is left alone");
        reply
    }

    #[track_caller]
    fn facts(dialect: Dialect, stream: &[u8]) -> Facts {
        match whole(dialect, stream) {
            Reply::Facts(facts, _) => facts,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_record_is_looked_for_without_a_read_of_it() {
        let asked = |dialect| {
            let mut out = Vec::new();
            Question::UsualRecord.write(dialect, &mut out);
            String::from_utf8(out).expect("it is text")
        };
        let key = "0".repeat(30);
        assert_eq!(asked(Dialect::Text), format!("me {key}\r\n"));
        assert_eq!(asked(Dialect::Resp), format!("*2\r\n$6\r\nEXISTS\r\n$30\r\n{key}\r\n"));
        assert!(Dialect::Binary.questions(Occasion::First).all(|question| question != Question::UsualRecord));
        let read = |dialect, bytes: &[u8]| read(Question::UsualRecord, dialect, bytes);
        for (dialect, there, absent, error) in [
            (Dialect::Text, &b"ME 00 exp=-1 la=3 size=64\r\n"[..], &b"EN\r\n"[..], &b"ERROR\r\n"[..]),
            (Dialect::Resp, b":1\r\n", b":0\r\n", b"-MOVED 1 a:1\r\n"),
        ] {
            for (bytes, count) in [(there, 1), (absent, 0)] {
                let Reply::Facts(facts, taken) = read(dialect, bytes) else { panic!("{dialect:?}") };
                assert_eq!((facts.number(NUMBER), taken), (Some(count), bytes.len()));
                assert_eq!(read(dialect, &bytes[..bytes.len() - 1]), Reply::More);
            }
            assert!(matches!(read(dialect, error), Reply::Refused(_, taken) if taken == error.len()));
        }
    }

    #[test]
    fn statistics_are_names_with_values_in_every_dialect() {
        let binary = [packet(0, b"pid", b"7"), packet(0, b"version", b"1.6 x"), packet(0, b"", b"")].concat();
        let info = "# Server\r\npid:7\r\nversion:1.6 x\r\n\r\n";
        for (dialect, stream) in [
            (Dialect::Text, b"STAT pid 7\r\nSTAT version 1.6 x\r\nSTAT none\r\nEND\r\n".to_vec()),
            (Dialect::Binary, binary),
            (Dialect::Resp, format!("${}\r\n{info}\r\n", info.len()).into_bytes()),
            (Dialect::Resp, format!("={}\r\ntxt:{info}\r\n", info.len() + 4).into_bytes()),
            (Dialect::Resp, b"*4\r\n$3\r\npid\r\n$1\r\n7\r\n$7\r\nversion\r\n$5\r\n1.6 x\r\n".to_vec()),
            (Dialect::Resp, b"%2\r\n$3\r\npid\r\n$1\r\n7\r\n$7\r\nversion\r\n$5\r\n1.6 x\r\n".to_vec()),
        ] {
            let facts = facts(dialect, &stream);
            assert_eq!((facts.number("pid"), facts.text("version")), (Some(7), Some("1.6 x")));
        }
        assert!(facts(Dialect::Resp, b"*0\r\n").is_empty(), "a server without such a setting");
        assert!(facts(Dialect::Text, b"END\r\n").is_empty());
    }

    #[test]
    fn a_refusal_is_kept_in_the_words_of_the_server() {
        for (dialect, stream, words) in [
            (Dialect::Text, b"ERROR\r\n".to_vec(), "ERROR"),
            (Dialect::Text, b"CLIENT_ERROR unauthenticated\r\n".to_vec(), "CLIENT_ERROR unauthenticated"),
            (Dialect::Binary, packet(0x81, b"", b"Unknown command"), "Unknown command"),
            (Dialect::Resp, b"-NOPERM \x1b no\r\n".to_vec(), "NOPERM \u{fffd} no"),
        ] {
            let reply = whole(dialect, &stream);
            assert_eq!(reply, Reply::Refused(words.to_owned(), stream.len()));
        }
    }

    #[test]
    fn other_bytes_are_malformed() {
        for (dialect, stream) in [
            (Dialect::Text, &b"VALUE a 0 1\r\n"[..]),
            (Dialect::Text, b"ERRORS\r\n"),
            (Dialect::Binary, &[0x80; 24]),
            (Dialect::Binary, &packet(0, b"abc", b"")[..24].iter().map(|b| b | 0x80).collect::<Vec<u8>>()),
            (Dialect::Resp, b"+OK\r\n"),
            (Dialect::Resp, b"HTTP"),
            (Dialect::Resp, b"$-1\r\n"),
            (Dialect::Resp, b"$99999999999\r\n"),
            (Dialect::Resp, b"$1\r\nabc"),
            (Dialect::Resp, b"*1\r\n:7\r\n"),
            (Dialect::Resp, b"*-1\r\n"),
            (Dialect::Resp, b"*9999\r\n"),
        ] {
            assert!(matches!(read(Question::Info, dialect, stream), Reply::Malformed(_)), "{stream:?}");
        }
        let endless = b"STAT a 1\r\n".repeat(4);
        assert_eq!(
            read(Question::Stats, Dialect::Text, &endless),
            Reply::More,
            "the caller bounds what it keeps"
        );
        let many: String = (0..5000).map(|n| format!("STAT {n} 1\r\n")).collect();
        assert!(matches!(read(Question::Stats, Dialect::Text, many.as_bytes()), Reply::Malformed(_)));
    }

    #[test]
    fn a_number_alone_is_a_fact() {
        let read = |bytes| read(Question::SlowCommands, Dialect::Resp, bytes);
        assert_eq!(read(b":12"), Reply::More);
        let Reply::Facts(facts, taken) = read(b":12\r\n$") else { panic!("a whole reply") };
        assert_eq!((facts.number(NUMBER), taken), (Some(12), 5));
        assert!(matches!(read(b":x\r\n"), Reply::Malformed(_)));
    }

    #[test]
    fn answers_in_lists_are_facts_when_they_are_whole() {
        let log = b"*1\r\n*6\r\n:4\r\n:100\r\n:9000\r\n*1\r\n$3\r\nget\r\n$3\r\na:1\r\n$0\r\n\r\n";
        for cut in 0..log.len() {
            assert_eq!(read(Question::SlowLog, Dialect::Resp, &log[..cut]), Reply::More, "cut at {cut}");
        }
        let Reply::Facts(facts, taken) = read(Question::SlowLog, Dialect::Resp, log) else {
            panic!("it is whole")
        };
        assert_eq!((facts.text("slow_command_0"), taken), (Some("id=4,at=100,us=9000,name=get"), log.len()));
        let refused = read(Question::LatencyHistograms, Dialect::Resp, b"-ERR Unknown subcommand\r\n");
        assert!(matches!(refused, Reply::Refused(..)), "{refused:?}");
        let garbage = read(Question::LatencyEvents, Dialect::Resp, b"HTTP/1.1\r\n");
        assert!(matches!(garbage, Reply::Malformed(_)), "{garbage:?}");
    }

    #[test]
    fn questions_are_said_in_every_dialect() {
        let said = |question: Question, dialect| {
            let mut out = Vec::new();
            question.write(dialect, &mut out);
            out
        };
        assert_eq!(said(Question::Stats, Dialect::Text), b"stats\r\n");
        assert_eq!(said(Question::Settings, Dialect::Text), b"stats settings\r\n");
        assert_eq!(said(Question::Info, Dialect::Resp), b"*2\r\n$4\r\nINFO\r\n$10\r\neverything\r\n");
        let settings = said(Question::Settings, Dialect::Binary);
        assert_eq!((settings.len(), settings[1], settings[3], settings[11]), (32, 0x10, 8, 8));
        assert_eq!(&settings[24..], b"settings");
    }

    #[test]
    fn nothing_that_changes_a_server_is_ever_asked() {
        for dialect in DIALECTS {
            for occasion in [Occasion::First, Occasion::Ends, Occasion::Within] {
                let mut out = Vec::new();
                dialect.questions(occasion).for_each(|question| question.write(dialect, &mut out));
                let text = String::from_utf8_lossy(&out).to_lowercase();
                assert!(
                    !["reset", "conns", "set\r\n", "rewrite"].iter().any(|word| text.contains(word)),
                    "{text}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            head in 0..6usize,
        ) {
            let heads: [&[u8]; 6] = [b"", b"STAT ", b"$12\r\n", b"*2\r\n$1\r\n", b"\x81\x10\0\x02\0\0\0\0\0\0\0\x05", b"=9\r\n"];
            let stream = [heads[head], &bytes[..]].concat();
            for dialect in DIALECTS {
                for question in dialect.questions(Occasion::First) {
                    let (Reply::Facts(_, len) | Reply::Refused(_, len)) = read(question, dialect, &stream) else {
                        continue;
                    };
                    assert!(len <= stream.len());
                }
            }
        }
    }
}
