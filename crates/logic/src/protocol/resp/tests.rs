//! Requests and replies of the RESP codecs, byte for byte, and whatever a server may send instead.

use super::reply_shape::ReplyShape;
use super::*;
use crate::bodies::Bodies;
use crate::connection::outbox::{Room, Sources};
use crate::protocol::contract::{
    Seen, cut_in_turn, encoded, every_cut, fuzz_decode, fuzz_prefixes, read_from, reply, sent,
};
use crate::protocol::{Fault, PairList, PairValue, Pairs, Rest, Value, lines};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

/// A command as the specification writes it: an array of bulk strings.
fn command(words: &[&str]) -> String {
    let mut wire = format!("*{}\r\n", words.len());
    for word in words {
        wire += &format!("${}\r\n{word}\r\n", word.len());
    }
    wire
}

fn request(op: &Op<'_>) -> Result<String, &'static str> {
    let (bytes, expect) = encoded::<Resp2>(op, 7).map_err(|Refused(why)| why)?;
    assert_eq!(expect, Expect::Reply);
    assert_eq!(encoded::<Resp3>(op, 7), Ok((bytes.clone(), expect)), "requests are the same in both");
    Ok(String::from_utf8(bytes).expect("these tests write ASCII"))
}

fn asks(op: &Op<'_>, words: &[&str]) {
    assert_eq!(request(op), Ok(command(words)));
}

fn said(outcome: Outcome, message: &str) -> Seen {
    Seen::Reply { tag: None, outcome, message: message.as_bytes().to_vec() }
}

fn failed(fault: Fault, message: &str) -> Seen {
    said(Outcome::Error(fault), message)
}

fn shows(key: &str, value: &[u8]) -> Vec<Seen> {
    let (key, size) = (key.as_bytes().to_vec(), value.len() as u64);
    let item = Seen::Item { tag: None, key, size, cas: 0, flags: 0 };
    if value.is_empty() { vec![item] } else { vec![item, Seen::Body(value.to_vec())] }
}

/// Returns a codec that has written these requests.
fn after<const VERSION: u8>(ops: &[Op<'_>]) -> Resp<VERSION> {
    let mut codec =
        Resp::with_commands(Arc::new(vec![Template::parse("GETRANGE __key__ 0 9").expect("a command")]));
    let mut out = Outbox::default();
    for op in ops {
        codec.encode(op, 0, &mut out).expect("these can be said");
    }
    codec
}

/// Returns the steps that the reply to `op` makes, in every cut and in both versions.
fn answer(op: Op<'_>, stream: &str) -> Vec<Seen> {
    let seen = every_cut(|| after::<2>(&[op]), stream.as_bytes());
    assert_eq!(every_cut(|| after::<3>(&[op]), stream.as_bytes()), seen, "{stream:?}");
    seen
}

/// The sentence that a stream ends with.
fn complaint(seen: Vec<Seen>) -> &'static str {
    match seen.last() {
        Some(Seen::Malformed(why)) => why,
        _ => panic!("read as {seen:?}"),
    }
}

fn many<'a>(verb: Verb, bytes: &'a [u8], ends: &'a [u32]) -> Op<'a> {
    Op { keys: Keys::Many { bytes, ends }, ..Op::new(verb, b"") }
}

const THREE: &[u32] = &[1, 2, 3];

fn mget() -> Op<'static> {
    many(Verb::Get, b"abc", THREE)
}

fn op(verb: Verb) -> Op<'static> {
    Op::new(verb, b"key")
}

#[test]
fn a_connection_costs_few_bytes() {
    assert!(size_of::<Resp3>() <= 96, "{}", size_of::<Resp3>());
}

#[test]
fn a_request_is_an_array_of_bulk_strings() {
    let (bytes, _) = encoded::<Resp2>(&op(Verb::Get), 0).expect("a get can be said");
    assert_eq!(bytes, b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
    let mut out = Outbox::default();
    assert_eq!(after::<2>(&[]).encode(&Op::new(Verb::Command, b"mylist"), 0, &mut out), Ok(Expect::Reply));
    assert_eq!(sent(&out), b"*4\r\n$8\r\nGETRANGE\r\n$6\r\nmylist\r\n$1\r\n0\r\n$1\r\n9\r\n");
}

#[test]
fn every_verb_has_the_command_that_does_the_same() {
    let value = Value { own: b"own ", rest: Rest::Text { bytes: b"and shared", at: 5 } };
    let store = |verb| Op { value, ..op(verb) };
    let text = "own and shared";
    asks(&op(Verb::Get), &["GET", "key"]);
    asks(&mget(), &["MGET", "a", "b", "c"]);
    asks(&many(Verb::Get, b"a", &[1]), &["MGET", "a"]);
    asks(&store(Verb::Set), &["SET", "key", text]);
    asks(&store(Verb::Add), &["SET", "key", text, "NX"]);
    asks(&store(Verb::Replace), &["SET", "key", text, "XX"]);
    asks(&store(Verb::Append), &["APPEND", "key", text]);
    asks(&Op { delta: 9, ..op(Verb::Incr) }, &["INCRBY", "key", "9"]);
    asks(&Op { delta: 10, ..op(Verb::Decr) }, &["DECRBY", "key", "10"]);
    asks(&op(Verb::Delete), &["DEL", "key"]);
    asks(&op(Verb::Version), &["PING"]);
    asks(&op(Verb::Hget), &["HGET", "key", "field"]);
    asks(&store(Verb::Hset), &["HSET", "key", "field", text]);
    asks(&store(Verb::Mset), &["MSET", "key", text]);
    // All bytes of a body that shrinks so far are zeros.
    let bodies = Bodies::new(0, 16.0);
    let with_body = Value { own: b"own ", rest: Rest::Body { bodies: &bodies, seed: 7, len_bytes: 3 } };
    let list = PairList {
        bytes: b"ab".to_vec(),
        ends: vec![1, 2],
        values: vec![PairValue::of(&Value::plain(b"1")), PairValue::of(&with_body)],
    };
    let pairs = Pairs { list: &list, bodies: &bodies };
    let pairs = |verb| Op { keys: Keys::Pairs(pairs), ..Op::new(verb, b"") };
    asks(&pairs(Verb::Mset), &["MSET", "a", "1", "b", "own \0\0\0"]);
    asks(&pairs(Verb::Get), &["MGET", "a", "b"]);
}

#[test]
fn expiries_are_spans_dates_or_none() {
    let with = |verb, expiry_s| Op { expiry_s, value: Value::plain(b"v"), ..op(verb) };
    asks(&with(Verb::Set, 0), &["SET", "key", "v"]);
    asks(&with(Verb::Set, 60), &["SET", "key", "v", "EX", "60"]);
    asks(&with(Verb::Add, 60), &["SET", "key", "v", "EX", "60", "NX"]);
    asks(&with(Verb::Set, 2_592_000), &["SET", "key", "v", "EX", "2592000"]);
    asks(&with(Verb::Set, 2_592_001), &["SET", "key", "v", "EXAT", "2592001"]);
    asks(&with(Verb::Set, -1), &["SET", "key", "v", "EXAT", "1"]);
    asks(&with(Verb::Gat, 0), &["GETEX", "key", "PERSIST"]);
    asks(&with(Verb::Gat, 60), &["GETEX", "key", "EX", "60"]);
    asks(&with(Verb::Gat, -1), &["GETEX", "key", "EXAT", "1"]);
    asks(&with(Verb::Touch, 0), &["EXPIRE", "key", "3153600000"]);
    asks(&with(Verb::Touch, 60), &["EXPIRE", "key", "60"]);
    asks(&with(Verb::Touch, -5), &["EXPIREAT", "key", "1"]);
    asks(&with(Verb::Touch, 2_000_000_000), &["EXPIREAT", "key", "2000000000"]);
}

#[test]
fn any_bytes_are_a_key() {
    for key in [&b""[..], b"a b", b"a\r\n$3\r\n", &[0, 255], &[b'k'; 1000]] {
        let (bytes, _) = encoded::<Resp2>(&Op::new(Verb::Delete, key), 0).expect("any key can be said");
        let expected = [format!("*2\r\n$3\r\nDEL\r\n${}\r\n", key.len()).as_bytes(), key, b"\r\n"].concat();
        assert_eq!(bytes, expected);
    }
}

#[test]
fn a_large_shared_value_is_pointed_at_and_not_copied() {
    let block = vec![b'v'; 1 << 20];
    let op = Op {
        value: Value { own: b"own", rest: Rest::Text { bytes: &block[100..], at: 100 } },
        ..op(Verb::Set)
    };
    let mut out = Outbox::default();
    assert_eq!(Resp2::new().encode(&op, 0, &mut out), Ok(Expect::Reply));
    let mut parts = [std::io::IoSlice::new(&[]), std::io::IoSlice::new(&[]), std::io::IoSlice::new(&[])];
    let bodies = Bodies::new(0, 1.0);
    let (sources, mut room) = (Sources { text: &block, bodies: &bodies }, Room::default());
    assert_eq!(out.parts(sources, &mut room, &mut parts), 3);
    let head = format!("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n${}\r\nown", 3 + block.len() - 100);
    assert_eq!(&*parts[0], head.as_bytes());
    assert_eq!(parts[1].as_ptr(), block[100..].as_ptr());
    assert_eq!(&*parts[2], b"\r\n");
}

#[test]
fn what_resp_cannot_say_is_refused_with_the_reason_and_nothing_is_written() {
    for (op, part) in [
        (op(Verb::Prepend), "at the beginning"),
        (op(Verb::Cas), "CAS unique"),
        (op(Verb::Gets), "CAS unique"),
        (op(Verb::Gats), "CAS unique"),
        (many(Verb::Gets, b"a", &[1]), "CAS unique"),
        (many(Verb::Gat, b"a", &[1]), "GETEX"),
        (many(Verb::Hget, b"a", &[1]), "HGET"),
        (many(Verb::Delete, b"a", &[1]), "only get and mset"),
        (many(Verb::Get, b"", &[]), "at least one key"),
        (many(Verb::Mset, b"", &[]), "at least one key"),
        (many(Verb::Mset, b"ab", &[1, 2]), "one value for each"),
        (Op { noreply: true, ..op(Verb::Set) }, "without a reply"),
        (Op { flags: 1, ..op(Verb::Set) }, "flags"),
        (Op { flags: 1, ..op(Verb::Hset) }, "flags"),
        (Op { flags: 1, ..op(Verb::Mset) }, "flags"),
        (Op { flags: 1, ..op(Verb::Append) }, "flags"),
        (Op { delta: 1 << 63, ..op(Verb::Incr) }, "too large"),
        (Op { expiry_s: 1 << 32, ..op(Verb::Set) }, "32 bits"),
        (Op { expiry_s: 1 << 32, ..op(Verb::Gat) }, "32 bits"),
        (Op { expiry_s: 1 << 32, ..op(Verb::Touch) }, "32 bits"),
        (op(Verb::Command), "template"),
    ] {
        let why = request(&op).expect_err("this cannot be said");
        assert!(why.contains(part), "{op:?}: {why}");
    }
    let mut out = Outbox::default();
    let with_keys = Op { keys: mget().keys, ..op(Verb::Command) };
    assert!(after::<2>(&[]).encode(&with_keys, 0, &mut out).is_err());
    assert!(out.is_empty());
}

#[test]
fn what_only_resp_knows_is_refused_by_memcacheds_codecs() {
    use crate::protocol::{binary::Binary, binary::PlainBinary, meta::Meta, text::Text};
    for verb in Verb::ALL.into_iter().filter(|verb| verb.is_resp_only()) {
        let list = PairList {
            bytes: b"a".to_vec(),
            ends: vec![1],
            values: vec![PairValue::of(&Value::plain(b"v"))],
        };
        let bodies = Bodies::new(0, 1.0);
        let pairs = Pairs { list: &list, bodies: &bodies };
        let pairs = Op { keys: Keys::Pairs(pairs), ..op(verb) };
        for op in [op(verb), many(verb, b"a", &[1]), pairs] {
            assert!(encoded::<Text>(&op, 0).is_err(), "{verb:?}");
            assert!(encoded::<Meta>(&op, 0).is_err(), "{verb:?}");
            assert!(encoded::<Binary>(&op, 0).is_err(), "{verb:?}");
            assert!(encoded::<PlainBinary>(&op, 0).is_err(), "{verb:?}");
        }
    }
}

#[test]
fn what_was_asked_says_what_a_reply_means() {
    for (verb, stream, outcome) in [
        (Verb::Get, "$-1\r\n", Outcome::Miss),
        (Verb::Hget, "$-1\r\n", Outcome::Miss),
        (Verb::Gat, "$-1\r\n", Outcome::Miss),
        (Verb::Set, "+OK\r\n", Outcome::Stored),
        (Verb::Mset, "+OK\r\n", Outcome::Stored),
        (Verb::Add, "$-1\r\n", Outcome::NotStored),
        (Verb::Replace, "$-1\r\n", Outcome::NotStored),
        (Verb::Append, ":11\r\n", Outcome::Stored),
        (Verb::Hset, ":0\r\n", Outcome::Stored),
        (Verb::Hset, ":1\r\n", Outcome::Stored),
        (Verb::Delete, ":0\r\n", Outcome::NotFound),
        (Verb::Delete, ":1\r\n", Outcome::Deleted),
        (Verb::Touch, ":0\r\n", Outcome::NotFound),
        (Verb::Touch, ":1\r\n", Outcome::Touched),
        (Verb::Incr, ":9223372036854775807\r\n", Outcome::Number(i64::MAX as u64)),
        (Verb::Decr, ":0\r\n", Outcome::Number(0)),
        (Verb::Command, ":48293\r\n", Outcome::Number(48293)),
        (Verb::Command, "$-1\r\n", Outcome::NotFound),
        (Verb::Command, "*-1\r\n", Outcome::NotFound),
        (Verb::Command, "+OK\r\n", Outcome::Ok),
    ] {
        assert_eq!(answer(op(verb), stream), vec![reply(outcome)], "{verb:?} {stream:?}");
    }
    assert_eq!(answer(op(Verb::Version), "+PONG\r\n"), vec![said(Outcome::Ok, "PONG")]);
    assert_eq!(answer(op(Verb::Decr), ":-5\r\n"), vec![said(Outcome::Ok, "-5")]);
    let hit = [shows("", b"hello"), vec![reply(Outcome::Hit)]].concat();
    for verb in [Verb::Get, Verb::Hget, Verb::Gat] {
        assert_eq!(answer(op(verb), "$5\r\nhello\r\n"), hit);
    }
    let empty = [shows("", b""), vec![reply(Outcome::Hit)]].concat();
    assert_eq!(answer(op(Verb::Get), "$0\r\n\r\n"), empty);
    let ends = [shows("", b"+OK\r\n$-1\r\n"), vec![reply(Outcome::Hit)]].concat();
    assert_eq!(answer(op(Verb::Get), "$10\r\n+OK\r\n$-1\r\n\r\n"), ends, "a value may be any bytes");
    let null = every_cut(|| after::<3>(&[op(Verb::Get), op(Verb::Add)]), b"_\r\n_\r\n");
    assert_eq!(null, vec![reply(Outcome::Miss), reply(Outcome::NotStored)], "RESP3's null");
}

#[test]
fn replies_are_matched_to_requests_by_their_order() {
    let asked = || after::<2>(&[op(Verb::Delete), op(Verb::Touch), mget(), op(Verb::Incr), op(Verb::Get)]);
    let stream = b":1\r\n:1\r\n*3\r\n$-1\r\n$1\r\nx\r\n$0\r\n\r\n:7\r\n$1\r\ny\r\n";
    let expected = [
        vec![reply(Outcome::Deleted), reply(Outcome::Touched)],
        shows("b", b"x"),
        shows("c", b""),
        vec![reply(Outcome::Hit), reply(Outcome::Number(7))],
        shows("", b"y"),
        vec![reply(Outcome::Hit)],
    ];
    assert_eq!(every_cut(asked, stream), expected.concat());
}

#[test]
fn a_multi_get_is_a_hit_where_it_found_any() {
    let stream = "*3\r\n$-1\r\n$-1\r\n$-1\r\n";
    assert_eq!(answer(mget(), stream), vec![reply(Outcome::Miss)]);
    let first = answer(mget(), "*3\r\n$1\r\nx\r\n$-1\r\n$-1\r\n");
    assert_eq!(first, [shows("a", b"x"), vec![reply(Outcome::Hit)]].concat());
    let nulls = every_cut(|| after::<3>(&[mget()]), b"*3\r\n_\r\n_\r\n$1\r\nx\r\n");
    assert_eq!(nulls, [shows("c", b"x"), vec![reply(Outcome::Hit)]].concat());
}

#[test]
fn an_error_among_the_values_of_a_multi_get_ends_it_once() {
    let asked = || after::<3>(&[mget(), mget(), op(Verb::Delete)]);
    let whole = b"-CLUSTERDOWN The cluster is down\r\n*3\r\n$-1\r\n$-1\r\n$1\r\nx\r\n:1\r\n";
    let expected = [
        vec![failed(Fault::Down, "CLUSTERDOWN The cluster is down")],
        shows("c", b"x"),
        vec![reply(Outcome::Hit), reply(Outcome::Deleted)],
    ];
    assert_eq!(every_cut(asked, whole), expected.concat());
    for error in ["-ERR upstream failure\r\n", "!20\r\nERR upstream failure\r\n"] {
        let stream = format!("*3\r\n$1\r\nx\r\n{error}$1\r\ny\r\n*3\r\n{error}-ERR\r\n$1\r\ny\r\n:0\r\n");
        let ended = failed(Fault::Client, "ERR upstream failure");
        let expected = [shows("a", b"x"), vec![ended.clone(), ended, reply(Outcome::NotFound)]].concat();
        assert_eq!(every_cut(asked, stream.as_bytes()), expected);
    }
}

#[test]
fn errors_keep_the_words_of_the_server() {
    for (words, fault) in [
        ("WRONGTYPE Operation against a key holding the wrong kind of value", Fault::Client),
        ("MOVED 3999 127.0.0.1:6381", Fault::Moved),
        ("ASK 3999 127.0.0.1:6381", Fault::Moved),
        ("NOAUTH Authentication required.", Fault::Client),
        ("OOM command not allowed when used memory > 'maxmemory'.", Fault::Server),
        ("ERR unknown command 'asdf'", Fault::Protocol),
    ] {
        for verb in [Verb::Get, Verb::Set, Verb::Incr, Verb::Command] {
            let stream = format!("-{words}\r\n");
            assert_eq!(answer(op(verb), &stream), vec![failed(fault, words)]);
            let stream = format!("!{}\r\n{words}\r\n", words.len());
            let seen = every_cut(|| after::<3>(&[op(verb)]), stream.as_bytes());
            assert_eq!(seen, vec![failed(fault, words)]);
        }
    }
}

#[test]
fn a_long_error_text_is_cut_off_and_the_next_reply_is_found() {
    let words = format!("OOM {}", "x".repeat(5000));
    for stream in [format!("-{words}\r\n+OK\r\n"), format!("!{}\r\n{words}\r\n+OK\r\n", words.len())] {
        let asked = || after::<3>(&[op(Verb::Get), op(Verb::Set)]);
        let seen = read_from(&mut asked(), &[stream.as_bytes()]);
        let [Seen::Reply { outcome: Outcome::Error(Fault::Server), message, .. }, stored] = &seen[..] else {
            panic!("{seen:?}");
        };
        assert!(message.len() >= lines::LINE_MAX_BYTES - 1 && words.as_bytes().starts_with(message));
        assert_eq!(*stored, reply(Outcome::Stored));
        for length in [1, 2, 5, 100, 255] {
            cut_in_turn(asked, stream.as_bytes(), &[length]);
        }
    }
}

#[test]
fn every_type_of_the_specification_is_read_to_its_end() {
    // The examples of the specification; nothing was asked, so that they are read as the reply to any command.
    for (stream, outcome) in [
        (":0\r\n", Outcome::Number(0)),
        (":1000\r\n", Outcome::Number(1000)),
        (":+7\r\n", Outcome::Number(7)),
        ("+OK\r\n", Outcome::Ok),
        ("$5\r\nhello\r\n", Outcome::Ok),
        ("$0\r\n\r\n", Outcome::Ok),
        ("$-1\r\n", Outcome::NotFound),
        ("*0\r\n", Outcome::Ok),
        ("*-1\r\n", Outcome::NotFound),
        ("*2\r\n$5\r\nhello\r\n$5\r\nworld\r\n", Outcome::Ok),
        ("*3\r\n:1\r\n:2\r\n:3\r\n", Outcome::Ok),
        ("*5\r\n:1\r\n:2\r\n:3\r\n:4\r\n$5\r\nhello\r\n", Outcome::Ok),
        ("*2\r\n*3\r\n:1\r\n:2\r\n:3\r\n*2\r\n+Hello\r\n-World\r\n", Outcome::Ok),
        ("*3\r\n$5\r\nhello\r\n$-1\r\n$5\r\nworld\r\n", Outcome::Ok),
        ("*2\r\n*0\r\n*-1\r\n", Outcome::Ok),
    ] {
        let seen = every_cut(Resp2::new, format!("{stream}+next\r\n").as_bytes());
        assert_eq!(seen, vec![reply(outcome), said(Outcome::Ok, "next")], "{stream:?}");
    }
    for (stream, outcome) in [
        ("_\r\n", Outcome::NotFound),
        ("#t\r\n", Outcome::Ok),
        ("#f\r\n", Outcome::Ok),
        (",1.23\r\n", Outcome::Ok),
        (",-inf\r\n", Outcome::Ok),
        (",nan\r\n", Outcome::Ok),
        ("(3492890328409238509324850943850943825024385\r\n", Outcome::Ok),
        ("=15\r\ntxt:Some string\r\n", Outcome::Ok),
        ("%2\r\n+first\r\n:1\r\n+second\r\n:2\r\n", Outcome::Ok),
        ("%0\r\n", Outcome::Ok),
        ("~5\r\n+orange\r\n+apple\r\n#t\r\n:100\r\n:999\r\n", Outcome::Ok),
        (
            "|1\r\n+key-popularity\r\n%2\r\n$1\r\na\r\n,0.1923\r\n$1\r\nb\r\n,0.0012\r\n*2\r\n:2039123\r\n:9543892\r\n",
            Outcome::Ok,
        ),
        ("*3\r\n:1\r\n:2\r\n|1\r\n+ttl\r\n:3600\r\n:3\r\n", Outcome::Ok),
        ("*2\r\n!5\r\nERR x\r\n=5\r\ntxt:y\r\n", Outcome::Ok),
        (">4\r\n+pubsub\r\n+message\r\n+somechannel\r\n+this is the message\r\n:5\r\n", Outcome::Number(5)),
        (">0\r\n:5\r\n", Outcome::Number(5)),
    ] {
        let seen = every_cut(Resp3::new, format!("{stream}+next\r\n").as_bytes());
        assert_eq!(seen, vec![reply(outcome), said(Outcome::Ok, "next")], "{stream:?}");
    }
    let error = every_cut(Resp3::new, b"!21\r\nSYNTAX invalid syntax\r\n-ERR unknown command 'asdf'\r\n");
    let unknown = failed(Fault::Protocol, "ERR unknown command 'asdf'");
    assert_eq!(error, vec![failed(Fault::Server, "SYNTAX invalid syntax"), unknown]);
}

#[test]
fn pushes_and_attributes_may_come_before_any_reply() {
    let asked = || after::<3>(&[op(Verb::Get), mget(), op(Verb::Delete)]);
    let stream = b">2\r\n+invalidate\r\n*1\r\n$3\r\nkey\r\n|1\r\n+ttl\r\n:3600\r\n$2\r\nhi\r\n>1\r\n+x\r\n\
        *3\r\n|1\r\n+ttl\r\n*0\r\n$1\r\nx\r\n_\r\n|2\r\n+a\r\n+b\r\n+c\r\n$1\r\nd\r\n$1\r\ny\r\n>1\r\n_\r\n:1\r\n";
    let expected = [
        shows("", b"hi"),
        vec![reply(Outcome::Hit)],
        shows("a", b"x"),
        shows("c", b"y"),
        vec![reply(Outcome::Hit), reply(Outcome::Deleted)],
    ];
    assert_eq!(every_cut(asked, stream), expected.concat());
}

#[test]
fn pushes_are_told_by_their_names() {
    let asked = || after::<3>(&[op(Verb::Get), op(Verb::Delete)]);
    let long = "x".repeat(65);
    let stream = format!(
        ">2\r\n$10\r\ninvalidate\r\n*1\r\n$2\r\nk1\r\n$2\r\nhi\r\n>2\r\n$0\r\n\r\n_\r\n>2\r\n:1\r\n$4\r\nname\r\n\
         >1\r\n$65\r\n{long}\r\n>1\r\n|1\r\n$3\r\nkey\r\n:1\r\n$5\r\nnamed\r\n\
         >2\r\n$10\r\ninvalidate\r\n_\r\n:1\r\n"
    );
    let push = |name: &str| vec![Seen::Push(name.as_bytes().to_vec())];
    let expected = [
        push("invalidate"),
        shows("", b"hi"),
        vec![reply(Outcome::Hit)],
        push("invalidate"),
        vec![reply(Outcome::Deleted)],
    ];
    assert_eq!(every_cut(asked, stream.as_bytes()), expected.concat());
}

#[test]
fn nesting_costs_no_memory_however_deep_it_is() {
    let mut stream = "*1\r\n".repeat(100_000);
    stream += ":1\r\n+next\r\n";
    let seen = read_from(&mut Resp2::new(), &[stream.as_bytes()]);
    assert_eq!(seen, vec![reply(Outcome::Ok), said(Outcome::Ok, "next")]);
}

#[test]
fn a_body_passes_without_a_copy() {
    let stream = b"$5\r\nhello\r\n";
    let mut codec = after::<2>(&[op(Verb::Get)]);
    let mut input = &stream[..];
    assert!(matches!(codec.decode(&mut input), Ok(Step::Item { size: 5, .. })));
    let Ok(Step::Body(body)) = codec.decode(&mut input) else { panic!("no body") };
    assert_eq!(body.as_ptr(), stream[4..].as_ptr());
}

/// Returns the outcome of a command whose reply is this, in every cut and in one version.
fn found<const VERSION: u8>(text: &str, stream: &str) -> Outcome {
    let codec = || {
        let template = Template::parse(text).expect("a command");
        let mut codec = Resp::<VERSION>::with_commands(Arc::new(vec![template]));
        codec.encode(&op(Verb::Command), 0, &mut Outbox::default()).expect("it has no places");
        codec
    };
    match &every_cut(codec, stream.as_bytes())[..] {
        [Seen::Reply { outcome, .. }] => *outcome,
        other => panic!("{text} {stream:?}: {other:?}"),
    }
}

#[test]
fn the_reply_of_a_command_says_how_much_of_what_was_asked_for_was_there() {
    let of = |hits, of| Outcome::Found { hits, of };
    for (text, stream, outcome) in [
        ("LRANGE k 0 9", "*0\r\n", of(0, 1)),
        ("LRANGE k 0 9", "*2\r\n$1\r\na\r\n$-1\r\n", of(1, 1)),
        ("GETDEL k", "$-1\r\n", of(0, 1)),
        ("GETDEL k", "$0\r\n\r\n", of(1, 1)),
        ("LPOP k 2", "*-1\r\n", of(0, 1)),
        ("SCARD k", ":0\r\n", of(0, 1)),
        ("SCARD k", ":7\r\n", of(1, 1)),
        ("TTL k", ":-2\r\n", of(0, 1)),
        ("TTL k", ":-1\r\n", of(1, 1)),
        ("TYPE k", "+none\r\n", of(0, 1)),
        ("TYPE k", "+list\r\n", of(1, 1)),
        ("SET k v NX", "$-1\r\n", of(1, 1)),
        ("SET k v NX", "+OK\r\n", of(0, 1)),
        ("SETNX k v", ":0\r\n", of(1, 1)),
        ("EXISTS a b c", ":2\r\n", of(2, 3)),
        ("EXISTS a b c", ":9\r\n", of(3, 3)),
        ("DEL a", ":-1\r\n", of(0, 1)),
        ("MGET a b c", "*3\r\n$1\r\nx\r\n$-1\r\n$0\r\n\r\n", of(2, 3)),
        ("SMISMEMBER k a b", "*2\r\n:0\r\n:1\r\n", of(1, 2)),
        ("GEOPOS k", "*0\r\n", of(0, 1)),
        ("GEOPOS k a b c", "*3\r\n*-1\r\n*2\r\n$1\r\n1\r\n$-1\r\n*-1\r\n", of(1, 3)),
        ("HSCAN k 0", "*2\r\n$1\r\n0\r\n*0\r\n", of(0, 1)),
        ("HSCAN k 0", "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nf\r\n$-1\r\n", of(1, 1)),
        ("SSCAN k 0", "*0\r\n", of(0, 1)),
        ("GETRANGE k 0 1", "$0\r\n\r\n", Outcome::Ok),
        ("LLEN k", "-WRONGTYPE x\r\n", Outcome::Error(Fault::Client)),
    ] {
        assert_eq!(found::<2>(text, stream), outcome, "{text} {stream:?}");
        assert_eq!(found::<3>(text, stream), outcome, "{text} {stream:?}");
    }
    for (text, stream, outcome) in [
        ("SMEMBERS k", "~0\r\n", of(0, 1)),
        ("HGETALL k", "%1\r\n+a\r\n+b\r\n", of(1, 1)),
        ("GETDEL k", "_\r\n", of(0, 1)),
        ("ZMSCORE k a b", "*2\r\n_\r\n,1.5\r\n", of(1, 2)),
        ("MGET a b", "|1\r\n+x\r\n_\r\n*2\r\n|1\r\n+x\r\n_\r\n+a\r\n_\r\n", of(1, 2)),
        ("MGET a b", ">2\r\n$1\r\ni\r\n_\r\n*2\r\n_\r\n_\r\n", of(0, 2)),
    ] {
        let codec = || {
            let template = Template::parse(text).expect("a command");
            let mut codec = Resp::<3>::with_commands(Arc::new(vec![template]));
            codec.encode(&op(Verb::Command), 0, &mut Outbox::default()).expect("it has no places");
            codec
        };
        let last = every_cut(codec, stream.as_bytes()).pop();
        assert!(
            matches!(&last, Some(Seen::Reply { outcome: seen, .. }) if *seen == outcome),
            "{stream:?}: {last:?}"
        );
    }
}

#[test]
fn a_renewed_codec_keeps_its_template_and_owes_nothing() {
    let mut codec = after::<2>(&[op(Verb::Get), mget()]).renew();
    assert!(codec.asked.is_empty() && codec.uncommon.is_none());
    let mut out = Outbox::default();
    assert_eq!(codec.encode(&op(Verb::Command), 0, &mut out), Ok(Expect::Reply));
    assert_eq!(sent(&out), b"*4\r\n$8\r\nGETRANGE\r\n$3\r\nkey\r\n$1\r\n0\r\n$1\r\n9\r\n");
}

#[test]
fn replies_that_do_not_fit_end_the_stream_with_a_sentence() {
    for (verb, stream, part) in [
        (Verb::Get, ":1\r\n", "does not fit"),
        (Verb::Get, "+OK\r\n", "does not fit"),
        (Verb::Get, "*1\r\n", "does not fit"),
        (Verb::Set, ":1\r\n", "does not fit"),
        (Verb::Set, "+QUEUED\r\n", "does not fit"),
        (Verb::Delete, "+OK\r\n", "does not fit"),
        (Verb::Incr, "$1\r\n", "does not fit"),
        (Verb::Version, "$4\r\n", "does not fit"),
        (Verb::Get, "$\r\n", "no decimal"),
        (Verb::Get, "$-2\r\n", "no decimal"),
        (Verb::Get, "$x\r\n", "no decimal"),
        (Verb::Get, "$4294967296\r\n", "no decimal"),
        (Verb::Get, "$?\r\n", "pieces"),
        (Verb::Get, "$1\r\nxy\r\n", "not followed by CR LF"),
        (Verb::Get, "$1\r\nx\n", "not followed by CR LF"),
        (Verb::Get, "$1\n", "bare line feed"),
        (Verb::Incr, ":\r\n", "64 bits"),
        (Verb::Incr, ":9223372036854775808\r\n", "64 bits"),
        (Verb::Command, "*?\r\n", "pieces"),
        (Verb::Command, "*1\r\n$x\r\n", "no decimal"),
        (Verb::Command, "\r\n", "does not have there"),
    ] {
        let why = complaint(answer(op(verb), stream));
        assert!(why.contains(part), "{stream:?}: {why}");
    }
    for stream in ["*2\r\n", "*4\r\n", "*0\r\n"] {
        assert!(complaint(answer(mget(), stream)).contains("one value for each key"), "{stream:?}");
    }
    assert!(complaint(answer(mget(), "*3\r\n:1\r\n")).contains("does not fit"));
    for (stream, part) in [
        ("_x\r\n", "null"),
        ("#x\r\n", "form"),
        (",x\r\n", "form"),
        ("(x\r\n", "form"),
        ("%9223372036854775808\r\n", "no decimal"),
        ("*2\r\n%9223372036854775807\r\n", "more values"),
        ("*2\r\n*18446744073709551615\r\n", "more values"),
        ("|9223372036854775807\r\n*1\r\n|9223372036854775807\r\n", "more values"),
    ] {
        let why = complaint(every_cut(Resp3::new, stream.as_bytes()));
        assert!(why.contains(part), "{stream:?}: {why}");
    }
}

#[test]
fn another_dialect_is_named() {
    for (stream, name) in [
        (&b"ERROR\r\n"[..], "memcached's text"),
        (b"CLIENT_ERROR bad", "memcached's text"),
        (b"\x81\x00\x00\x00", "memcached's binary"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "TLS"),
        (b"HTTP/1.1 400 Bad Request\r\n", "HTTP"),
    ] {
        assert!(complaint(every_cut(Resp2::new, stream)).contains(name), "{stream:?}");
        assert!(complaint(every_cut(Resp3::new, stream)).contains(name), "{stream:?}");
    }
    for stream in
        ["_\r\n", "#t\r\n", ",1\r\n", "(1\r\n", "!1\r\n", "=1\r\n", "%1\r\n", "~1\r\n", ">1\r\n", "|1\r\n"]
    {
        assert!(complaint(every_cut(Resp2::new, stream.as_bytes())).contains("RESP3"), "{stream:?}");
    }
}

/// Returns a codec after the requests of the fuzz target.
fn asked_much() -> Resp3 {
    after(&[
        op(Verb::Get),
        mget(),
        op(Verb::Set),
        mget(),
        op(Verb::Incr),
        op(Verb::Command),
        op(Verb::Delete),
    ])
}

#[test]
fn the_fuzz_target_holds_on_prefixes() {
    let stream =
        b"$5\r\nhello\r\n*3\r\n$1\r\nx\r\n_\r\n-ERR x\r\n+OK\r\n*3\r\n$-1\r\n!5\r\nERR x\r\n:1\r\n:7\r\n\
        %1\r\n+a\r\n*2\r\n=5\r\ntxt:y\r\n,1.5\r\n:1\r\n";
    fuzz_prefixes::<Resp2>(&[stream]);
    fuzz_prefixes::<Resp3>(&[stream]);
    for end in 0..=stream.len() {
        fuzz_decode(asked_much, &[&b"\x03\x07\x00\x02"[..], &stream[..end]].concat());
    }
}

/// Any value of any type, nested a little.
fn any_value() -> impl Strategy<Value = Vec<u8>> {
    let scalar = prop_oneof![
        any::<i64>().prop_map(|number| format!(":{number}\r\n").into_bytes()),
        any::<f64>()
            .prop_filter("a number", |number| number.is_finite())
            .prop_map(|number| format!(",{number}\r\n").into_bytes()),
        "[ -~]{0,40}".prop_map(|text| format!("+{text}\r\n").into_bytes()),
        "[ -~]{0,40}".prop_map(|text| format!("-{text}\r\n").into_bytes()),
        Just(b"_\r\n".to_vec()),
        Just(b"#t\r\n".to_vec()),
        Just(b"$-1\r\n".to_vec()),
        ("[$!=]", vec(any::<u8>(), 0..60)).prop_map(|(kind, body)| {
            [format!("{kind}{}\r\n", body.len()).as_bytes(), &body, b"\r\n"].concat()
        }),
    ];
    scalar.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            ("[*~>]", vec(inner.clone(), 0..6)).prop_map(|(kind, values)| {
                [format!("{kind}{}\r\n", values.len()).into_bytes(), values.concat()].concat()
            }),
            ("[%]", vec((inner.clone(), inner.clone()), 0..3)).prop_map(|(kind, pairs)| {
                let values: Vec<u8> =
                    pairs.iter().flat_map(|(key, value)| [&key[..], value].concat()).collect();
                [format!("{kind}{}\r\n", pairs.len()).into_bytes(), values].concat()
            }),
            (inner.clone(), inner.clone(), inner).prop_map(|(key, value, of)| [
                &b"|1\r\n"[..],
                &key,
                &value,
                &of
            ]
            .concat()),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_is_one_reply_for_any_cuts(value in any_value(), lengths in vec(any::<u8>(), 1..6)) {
        // Within an array, so that a push is a value like others.
        let stream = [b"*1\r\n", &value[..], b"+next\r\n"].concat();
        let expected = vec![reply(Outcome::Ok), said(Outcome::Ok, "next")];
        prop_assert_eq!(read_from(&mut Resp3::new(), &[&stream]), expected);
        cut_in_turn(Resp3::new, &stream, &lengths);
    }

    #[test]
    fn any_values_of_a_multi_get_read_the_same_for_any_cuts(
        values in vec(any::<Option<Vec<u8>>>(), 3),
        lengths in vec(any::<u8>(), 1..6),
    ) {
        let mut stream = b"*3\r\n".to_vec();
        let mut expected = Vec::new();
        for (key, value) in ["a", "b", "c"].into_iter().zip(&values) {
            match value {
                None => stream.extend(b"$-1\r\n"),
                Some(value) => {
                    stream.extend([format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat());
                    expected.extend(shows(key, value));
                }
            }
        }
        let found = values.iter().any(Option::is_some);
        expected.push(reply(if found { Outcome::Hit } else { Outcome::Miss }));
        prop_assert_eq!(read_from(&mut after::<2>(&[mget()]), &[&stream]), expected);
        cut_in_turn(|| after::<2>(&[mget()]), &stream, &lengths);
    }

    #[test]
    fn no_bytes_make_it_panic(data: Vec<u8>) {
        fuzz_decode(Resp2::new, &data);
        fuzz_decode(Resp3::new, &data);
        fuzz_decode(asked_much, &data);
    }

    #[test]
    fn no_words_of_the_protocol_in_any_order_make_it_panic(
        words in vec(prop_oneof![
            Just("$0\r\n"), Just("$1\r\n"), Just("$-1\r\n"), Just("\r\n"), Just("x\r\n"), Just("*3\r\n"), Just("*0\r\n"),
            Just("*1\r\n"), Just("+OK\r\n"), Just("-ERR x\r\n"), Just(":1\r\n"), Just("_\r\n"), Just("!1\r\n"),
            Just("=1\r\n"), Just("%1\r\n"), Just("|1\r\n"), Just(">2\r\n"), Just("~2\r\n"), Just("#t\r\n"), Just("\n"),
            Just("*18446744073709551615\r\n"), Just("9"), Just("$"),
        ], 0..24),
        lengths in vec(any::<u8>(), 0..7),
    ) {
        let mut data = vec![lengths.len() as u8];
        data.extend(lengths);
        data.extend(words.concat().bytes());
        fuzz_decode(Resp3::new, &data);
        fuzz_decode(asked_much, &data);
    }
}

/// Replies of every kind: OK, another word, a number, null, an empty and a full string, an empty and a full list.
const REPLIES: [&str; 8] = [
    "+OK\r\n",
    "+none\r\n",
    ":0\r\n",
    "$-1\r\n",
    "$0\r\n\r\n",
    "$1\r\nx\r\n",
    "*0\r\n",
    "*2\r\n$1\r\nx\r\n:1\r\n",
];

#[test]
fn a_reply_of_another_shape_than_is_expected_is_a_miss_or_an_error() {
    let (hit, miss) = (reply(Outcome::Found { hits: 1, of: 1 }), reply(Outcome::Found { hits: 0, of: 1 }));
    let wrong = reply(Outcome::Error(Fault::Unexpected));
    let of = |letters: &str| letters.chars().map(|letter| letter == '+').collect::<Vec<bool>>();
    for (shape, good) in [
        (ReplyShape::Ok, of("+-------")),
        (ReplyShape::Int, of("--+-----")),
        (ReplyShape::Nonempty, of("+++--+-+")),
        (ReplyShape::Nil, of("---+----")),
    ] {
        for (stream, good) in REPLIES.iter().zip(good) {
            let expected = match (good, shape) {
                (true, ReplyShape::Nil) => reply(Outcome::Ok),
                (false, ReplyShape::Nil) => wrong.clone(),
                (true, _) => hit.clone(),
                (false, _) => miss.clone(),
            };
            let codec = || {
                // The table has another opinion of this command.
                let template = Template::parse("EXISTS a b").expect("a command").expecting(shape);
                let mut codec = Resp::<3>::with_commands(Arc::new(vec![template]));
                codec.encode(&op(Verb::Command), 0, &mut Outbox::default()).expect("it has no places");
                codec
            };
            let seen = every_cut(codec, stream.as_bytes());
            // A word stands beside the outcome as the message.
            let is_word = *stream == "+none\r\n" && shape != ReplyShape::Nil;
            let expected = if is_word {
                said(Outcome::Found { hits: u16::from(good), of: 1 }, "none")
            } else {
                expected
            };
            assert_eq!(seen, [expected], "{shape:?} {stream:?}");
        }
    }
    let told = |shape| Template::parse("EXISTS a b").expect("a command").expecting(shape).looked_up();
    assert_eq!(told(ReplyShape::Any), None);
    let template = Template::parse("GET k").expect("a command").expecting(ReplyShape::Nonempty);
    let mut codec = Resp::<3>::with_commands(Arc::new(vec![template]));
    codec.encode(&op(Verb::Command), 0, &mut Outbox::default()).expect("it has no places");
    assert_eq!(read_from(&mut codec, &[b"=4\r\ntxt:\r\n"]), [miss], "a verbatim string without text");
}

#[test]
fn keys_longer_than_their_field_and_one_byte_are_hashes() {
    let mut codec = Resp2::new().keeping_hashes(4).renew();
    let mut written = |op: &Op<'_>| {
        let mut out = Outbox::default();
        codec.encode(op, 0, &mut out).expect("it can be said");
        String::from_utf8(sent(&out)).expect("ASCII")
    };
    let value = Value::plain(b"v");
    assert_eq!(written(&Op::new(Verb::Get, b"012345")), command(&["HGET", "01", "2345"]));
    assert_eq!(
        written(&Op { value, ..Op::new(Verb::Set, b"012345") }),
        command(&["HSET", "01", "2345", "v"])
    );
    assert_eq!(written(&Op::new(Verb::Delete, b"012345")), command(&["HDEL", "01", "2345"]));
    assert_eq!(written(&Op::new(Verb::Get, b"01234")), command(&["GET", "01234"]));
    assert_eq!(written(&Op { value, ..Op::new(Verb::Set, b"01234") }), command(&["SET", "01234", "v"]));
    let stream = b"$1\r\nv\r\n:1\r\n:1\r\n$-1\r\n+OK\r\n";
    let outcomes = [Outcome::Hit, Outcome::Stored, Outcome::Deleted, Outcome::Miss, Outcome::Stored];
    let mut input = &stream[..];
    let mut seen = Vec::new();
    while let Ok(Step::Item { .. } | Step::Body(_) | Step::Reply { .. }) =
        codec.decode(&mut input).inspect(|step| {
            if let Step::Reply { outcome, .. } = step {
                seen.push(*outcome);
            }
        })
    {}
    assert_eq!(seen, outcomes);
}
