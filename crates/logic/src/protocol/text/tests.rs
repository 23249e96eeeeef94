//! Requests and replies of the text codec, byte for byte, and whatever a server may send instead.

use super::*;
use crate::bodies::Bodies;
use crate::connection::outbox::{Room, Sources};
use crate::protocol::contract::{
    Seen, cut_in_turn, encoded, every_cut, fuzz_decode, fuzz_prefixes, read, reply,
};
use crate::protocol::lines::LINE_MAX_BYTES;
use crate::protocol::{Fault, Keys};
use crate::protocol::{Rest, Value};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

fn request(op: &Op<'_>) -> Result<String, &'static str> {
    let (bytes, expect) = encoded::<Text>(op, 7).map_err(|Refused(why)| why)?;
    assert_eq!(expect == Expect::Nothing, op.noreply);
    Ok(String::from_utf8(bytes).expect("these tests write ASCII"))
}

fn many<'a>(verb: Verb, bytes: &'a [u8], ends: &'a [u32]) -> Op<'a> {
    Op { keys: Keys::Many { bytes, ends }, ..Op::new(verb, b"") }
}

fn item_seen(key: &str, flags: u32, cas: u64, body: &[u8]) -> Vec<Seen> {
    let item = Seen::Item { tag: None, key: key.as_bytes().to_vec(), size: body.len() as u64, cas, flags };
    if body.is_empty() { vec![item] } else { vec![item, Seen::Body(body.to_vec())] }
}

fn said(outcome: Outcome, message: &str) -> Seen {
    Seen::Reply { tag: None, outcome, message: message.as_bytes().to_vec() }
}

/// The sentence that reading `stream` ends with.
fn complaint(stream: &[u8]) -> &'static str {
    match every_cut(Text::new, stream).pop() {
        Some(Seen::Malformed(why)) => why,
        other => panic!("{stream:?} was read as {other:?}"),
    }
}

#[test]
fn a_connection_costs_few_bytes() {
    assert!(size_of::<Text>() <= 24, "{}", size_of::<Text>());
}

#[test]
fn reads_are_one_line_with_their_keys() {
    let touching = |op: Op<'static>, expiry_s| Op { expiry_s, ..op };
    for (op, line) in [
        (Op::new(Verb::Get, b"key"), "get key\r\n"),
        (Op::new(Verb::Gets, b"key"), "gets key\r\n"),
        (touching(Op::new(Verb::Gat, b"key"), 60), "gat 60 key\r\n"),
        (touching(Op::new(Verb::Gats, b"key"), -1), "gats -1 key\r\n"),
        (many(Verb::Get, b"onetwothree", &[3, 6, 11]), "get one two three\r\n"),
        (many(Verb::Gets, b"one", &[3]), "gets one\r\n"),
        (touching(many(Verb::Gat, b"onetwo", &[3, 6]), 0), "gat 0 one two\r\n"),
        (touching(many(Verb::Gats, b"onetwo", &[3, 6]), 9), "gats 9 one two\r\n"),
    ] {
        assert_eq!(request(&op).as_deref(), Ok(line));
    }
}

#[test]
fn changes_carry_what_their_verb_needs() {
    let filled = |verb, noreply| Op {
        value: Value { own: b"own ", rest: Rest::Text { bytes: b"and shared", at: 5 } },
        flags: 4_294_967_295,
        expiry_s: 86_400,
        cas: u64::MAX,
        delta: 18_446_744_073_709_551_615,
        noreply,
        ..Op::new(verb, b"key")
    };
    for (verb, line, body) in [
        (Verb::Set, "set key 4294967295 86400 14", "own and shared\r\n"),
        (Verb::Add, "add key 4294967295 86400 14", "own and shared\r\n"),
        (Verb::Replace, "replace key 4294967295 86400 14", "own and shared\r\n"),
        (Verb::Append, "append key 4294967295 86400 14", "own and shared\r\n"),
        (Verb::Prepend, "prepend key 4294967295 86400 14", "own and shared\r\n"),
        (Verb::Cas, "cas key 4294967295 86400 14 18446744073709551615", "own and shared\r\n"),
        (Verb::Incr, "incr key 18446744073709551615", ""),
        (Verb::Decr, "decr key 18446744073709551615", ""),
        (Verb::Delete, "delete key", ""),
        (Verb::Touch, "touch key 86400", ""),
    ] {
        assert_eq!(request(&filled(verb, false)), Ok(format!("{line}\r\n{body}")));
        assert_eq!(request(&filled(verb, true)), Ok(format!("{line} noreply\r\n{body}")));
    }
    assert_eq!(request(&Op::new(Verb::Version, b"")).as_deref(), Ok("version\r\n"));
    assert_eq!(request(&Op::new(Verb::Set, b"k")).as_deref(), Ok("set k 0 0 0\r\n\r\n"), "an empty value");
}

#[test]
fn bogus_sets_are_stores_by_another_word_and_nothing_else_changes() {
    let encoded = |op: &Op<'_>, mut codec: Text| {
        let mut out = Outbox::default();
        codec.encode(op, 0, &mut out).unwrap();
        String::from_utf8(out.plain().unwrap().to_vec()).unwrap()
    };
    let set = Op { value: Value::plain(b"0"), ..Op::new(Verb::Set, b"key") };
    assert_eq!(encoded(&set, Text::with_bogus_sets()), "xxx key 0 0 1 \r\n0\r\n");
    let quiet = Op { noreply: true, ..set };
    assert_eq!(encoded(&quiet, Text::with_bogus_sets().renew()), "xxx key 0 0 1 noreply\r\n0\r\n");
    for verb in [Verb::Get, Verb::Delete, Verb::Add, Verb::Incr] {
        let op = Op::new(verb, b"key");
        assert_eq!(encoded(&op, Text::with_bogus_sets()), encoded(&op, Text::with_blanks()));
    }
}

#[test]
fn a_large_shared_value_is_pointed_at_and_not_copied() {
    let block = vec![b'v'; 1 << 20];
    let op = Op {
        value: Value { own: b"own", rest: Rest::Text { bytes: &block[100..], at: 100 } },
        ..Op::new(Verb::Set, b"key")
    };
    let mut out = Outbox::default();
    assert_eq!(Text::new().encode(&op, 0, &mut out), Ok(Expect::Reply));
    let mut parts = [std::io::IoSlice::new(&[]), std::io::IoSlice::new(&[]), std::io::IoSlice::new(&[])];
    let bodies = Bodies::new(0, 1.0);
    let (sources, mut room) = (Sources { text: &block, bodies: &bodies }, Room::default());
    assert_eq!(out.parts(sources, &mut room, &mut parts), 3);
    assert_eq!(&*parts[0], format!("set key 0 0 {}\r\nown", 3 + block.len() - 100).as_bytes());
    assert_eq!(parts[1].as_ptr(), block[100..].as_ptr());
    assert_eq!(&*parts[2], b"\r\n");
}

#[test]
fn what_the_protocol_cannot_say_is_refused_and_nothing_is_written() {
    let long_key = [b'k'; 251];
    let noreply = |verb| Op { noreply: true, ..Op::new(verb, b"key") };
    let late = |verb| Op { expiry_s: 1 << 32, ..Op::new(verb, b"key") };
    let early = |verb| Op { expiry_s: -(1 << 31) - 1, ..Op::new(verb, b"key") };
    let long_gat = [b'k'; 2048];
    let long_ends: Vec<u32> = (1..=16).map(|n| n * 128).collect();
    for op in [
        Op::new(Verb::Get, b""),
        Op::new(Verb::Set, b""),
        Op::new(Verb::Get, &long_key),
        Op::new(Verb::Delete, &long_key),
        Op::new(Verb::Get, b"a b"),
        Op::new(Verb::Set, b"a\r\nflush_all"),
        Op::new(Verb::Incr, b"tab\t"),
        Op::new(Verb::Touch, b"nul\0"),
        Op::new(Verb::Touch, b"low\x0f"),
        noreply(Verb::Get),
        noreply(Verb::Gets),
        noreply(Verb::Gat),
        noreply(Verb::Gats),
        noreply(Verb::Version),
        late(Verb::Set),
        early(Verb::Cas),
        late(Verb::Touch),
        late(Verb::Gat),
        Op { expiry_s: 1 << 32, ..many(Verb::Gats, b"key", &[3]) },
        many(Verb::Get, b"", &[]),
        many(Verb::Get, b"onetwo", &[3, 3, 6]),
        many(Verb::Get, b"one two", &[3, 7]),
        many(Verb::Delete, b"onetwo", &[3, 6]),
        many(Verb::Set, b"one", &[3]),
        many(Verb::Gat, &long_gat, &long_ends),
    ] {
        assert!(request(&op).is_err(), "{op:?}");
    }
    assert!(request(&Op::new(Verb::Get, &long_key[1..])).is_ok(), "250 bytes are allowed");
    assert!(request(&Op::new(Verb::Get, "schlüssel".as_bytes())).is_ok(), "bytes above 127 are allowed");
    assert!(request(&many(Verb::Get, &long_gat, &long_ends)).is_ok(), "only get may be of any length");
    assert!(request(&Op { expiry_s: 1 << 32, ..Op::new(Verb::Incr, b"key") }).is_ok(), "incr has no expiry");
}

#[test]
fn every_reply_of_the_document_is_read() {
    for (line, outcome) in [
        ("END", Outcome::Miss),
        ("STORED", Outcome::Stored),
        ("NOT_STORED", Outcome::NotStored),
        ("EXISTS", Outcome::Exists),
        ("NOT_FOUND", Outcome::NotFound),
        ("DELETED", Outcome::Deleted),
        ("TOUCHED", Outcome::Touched),
        ("OK", Outcome::Ok),
        ("RESET", Outcome::Ok),
        ("0", Outcome::Number(0)),
        ("18446744073709551615", Outcome::Number(u64::MAX)),
        ("99  ", Outcome::Number(99)),
    ] {
        let stream = format!("{line}\r\n");
        assert_eq!(every_cut(Text::new, stream.as_bytes()), vec![reply(outcome)], "{line}");
    }
    assert_eq!(every_cut(Text::new, b"VERSION 1.6.18\r\n"), vec![said(Outcome::Ok, "1.6.18")]);
}

#[test]
fn errors_keep_the_words_of_the_server() {
    for (line, fault) in [
        ("ERROR", Fault::Protocol),
        ("ERROR cannot pipeline other commands before watch", Fault::Protocol),
        ("CLIENT_ERROR bad data chunk", Fault::Client),
        ("CLIENT_ERROR", Fault::Client),
        ("SERVER_ERROR object too large for cache", Fault::Server),
        ("SERVER_ERROR out of memory storing object", Fault::Server),
        ("SERVER_ERROR: shutdown not enabled", Fault::Server),
        ("BUSY currently processing", Fault::Server),
        ("BADCLASS invalid src or dst class id", Fault::Client),
        ("NOSPARE source class has no spare pages", Fault::Server),
        ("NOTFULL", Fault::Server),
        ("UNSAFE", Fault::Server),
        ("SAME", Fault::Client),
    ] {
        let stream = format!("{line}\r\nEND\r\n");
        let expected = vec![said(Outcome::Error(fault), line), reply(Outcome::Miss)];
        assert_eq!(every_cut(Text::new, stream.as_bytes()), expected);
    }
}

#[test]
fn items_are_shown_before_the_reply_that_they_make_a_hit() {
    let stream = b"VALUE key 32 10\r\nabc\r\nEND\r\n\r\nVALUE other 0 0 77\r\n\r\nEND\r\nEND\r\n";
    let mut expected = item_seen("key", 32, 0, b"abc\r\nEND\r\n");
    expected.extend(item_seen("other", 0, 77, b""));
    expected.extend([reply(Outcome::Hit), reply(Outcome::Miss)]);
    assert_eq!(every_cut(Text::new, stream), expected);
}

#[test]
fn a_read_may_end_in_an_error_after_items() {
    let stream = b"VALUE key 0 1\r\nx\r\nSERVER_ERROR out of memory writing get response\r\nEND\r\n";
    let mut expected = item_seen("key", 0, 0, b"x");
    let message = "SERVER_ERROR out of memory writing get response";
    expected.extend([said(Outcome::Error(Fault::Server), message), reply(Outcome::Miss)]);
    assert_eq!(every_cut(Text::new, stream), expected);
}

#[test]
fn a_body_passes_without_a_copy() {
    let stream = b"VALUE key 0 5\r\nhello\r\nEND\r\n";
    let mut codec = Text::new();
    let mut input = &stream[..];
    assert!(matches!(codec.decode(&mut input), Ok(Step::Item { size: 5, .. })));
    let Ok(Step::Body(body)) = codec.decode(&mut input) else { panic!("no body") };
    assert_eq!(body.as_ptr(), stream[15..].as_ptr());
}

#[test]
fn a_long_error_text_is_cut_off_and_the_next_reply_is_found() {
    let line = format!("SERVER_ERROR {}", "x".repeat(10_000));
    let stream = format!("{line}\r\nSTORED\r\n");
    let message = &line[..LINE_MAX_BYTES];
    let expected = vec![said(Outcome::Error(Fault::Server), message), reply(Outcome::Stored)];
    assert_eq!(read::<Text>(stream.as_bytes()), expected);
    for length in [1, 2, 5, 100, 255] {
        cut_in_turn(Text::new, stream.as_bytes(), &[length]);
    }
}

#[test]
fn malformed_replies_end_the_stream_with_a_sentence() {
    let long_key = format!("VALUE {} 0 1\r\n", "k".repeat(251));
    for (stream, part) in [
        (&b"VALUE\r\n"[..], "VALUE line"),
        (b"VALUE key\r\n", "VALUE line"),
        (b"VALUE key 0\r\n", "VALUE line"),
        (b"VALUE  0 1\r\n", "VALUE line"),
        (b"VALUE key  0 1\r\n", "VALUE line"),
        (b"VALUE key 0 1 \r\n", "VALUE line"),
        (b"VALUE key 0 1 2 3\r\n", "VALUE line"),
        (b"VALUE key 0 -1\r\n", "VALUE line"),
        (b"VALUE key x 1\r\n", "VALUE line"),
        (b"VALUE key 0 1x\r\n", "VALUE line"),
        (b"VALUE key 4294967296 1\r\n", "VALUE line"),
        (b"VALUE key 0 4294967296\r\n", "VALUE line"),
        (b"VALUE key 0 1 18446744073709551616\r\n", "VALUE line"),
        (b"VALUE k\0y 0 1\r\n", "VALUE line"),
        (b"VALUE key 0 1\rx\r\n", "VALUE line"),
        (long_key.as_bytes(), "VALUE line"),
        (b"VALUE key 0 1\r\nxy\r\n", "not followed by CR LF"),
        (b"VALUE key 0 1\r\nx\n\r\n", "not followed by CR LF"),
        (b"VALUE key 0 1\r\nx\ry\r\n", "not followed by CR LF"),
        (b"VALUE key 0 0\r\n\r\nSTORED\r\n", "not followed by END"),
        (b"VALUE key 0 0\r\n\r\n5\r\n", "not followed by END"),
        (b"STORED\n", "bare line feed"),
        (b"STORED \r\n", "more words"),
        (b"END OF\r\n", "more words"),
        (b"VERSION\r\n", "no version"),
        (b"12x\r\n", "64 bits"),
        (b"18446744073709551616\r\n", "64 bits"),
        (b"12 x\r\n", "followed by words"),
        (b"WHATEVER\r\n", "does not know"),
        (b"STAT pid 1\r\n", "statistics"),
        (b"\r\n", "does not have there"),
        (b"stored\r\n", "does not have there"),
    ] {
        let why = complaint(stream);
        assert!(why.contains(part), "{stream:?}: {why}");
    }
}

#[test]
fn another_dialect_is_named() {
    for (stream, name) in [
        (&b"-ERR unknown command\r\n"[..], "RESP"),
        (b"+OK\r\n", "RESP"),
        (b"$-1\r\n", "RESP"),
        (b"*0\r\n", "RESP"),
        (b"\x81\x00\x00\x00", "binary"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "TLS"),
        (b"HTTP/1.1 400 Bad Request\r\n", "HTTP"),
        (b"HD\r\n", "meta"),
        (b"VA 2 f0\r\n", "meta"),
        (b"EN\r\n", "meta"),
    ] {
        let why = complaint(stream);
        assert!(why.contains(name), "{stream:?}: {why}");
    }
}

#[test]
fn the_fuzz_target_holds_on_prefixes() {
    fuzz_prefixes::<Text>(&[
        b"VALUE key 1 5 9\r\nhello\r\nVALUE k 0 0\r\n\r\nEND\r\nEND\r\nSTORED\r\n12\r\n",
        b"VERSION 1\r\nSERVER_ERROR out of memory\r\nNOT_FOUND\r\nERROR\r\n-ERR\r\n",
    ]);
}

fn any_reply() -> impl Strategy<Value = (Vec<u8>, Vec<Seen>)> {
    let key = "[!-~]{1,250}";
    let items = vec((key, any::<u32>(), any::<Option<u64>>(), vec(any::<u8>(), 0..300)), 0..4);
    let read = items.prop_map(|items| {
        let mut stream = Vec::new();
        let mut seen = Vec::new();
        for (key, flags, cas, body) in &items {
            let cas_text = cas.map_or(String::new(), |cas| format!(" {cas}"));
            stream.extend(format!("VALUE {key} {flags} {}{cas_text}\r\n", body.len()).bytes());
            stream.extend([&body[..], b"\r\n"].concat());
            seen.extend(item_seen(key, *flags, cas.unwrap_or(0), body));
        }
        stream.extend(b"END\r\n");
        seen.push(reply(if items.is_empty() { Outcome::Miss } else { Outcome::Hit }));
        (stream, seen)
    });
    let number =
        any::<u64>().prop_map(|n| (format!("{n}\r\n").into_bytes(), vec![reply(Outcome::Number(n))]));
    let error = "SERVER_ERROR [ -~]{0,2500}".prop_map(|line| {
        let kept = &line[..line.len().min(LINE_MAX_BYTES)];
        let seen = vec![said(Outcome::Error(Fault::Server), kept)];
        (format!("{line}\r\n").into_bytes(), seen)
    });
    let stored = Just((b"STORED\r\n".to_vec(), vec![reply(Outcome::Stored)]));
    prop_oneof![4 => read, 1 => number, 1 => error, 1 => stored]
}

proptest! {
    #[test]
    fn any_stream_of_replies_reads_the_same_for_any_cuts(
        replies in vec(any_reply(), 0..6),
        lengths in vec(any::<u8>(), 1..6),
    ) {
        let stream: Vec<u8> = replies.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let expected: Vec<Seen> = replies.into_iter().flat_map(|(_, seen)| seen).collect();
        prop_assert_eq!(read::<Text>(&stream), expected);
        cut_in_turn(Text::new, &stream, &lengths);
    }

    #[test]
    fn no_bytes_make_it_panic(data: Vec<u8>) {
        fuzz_decode(Text::new, &data);
    }

    #[test]
    fn no_words_of_the_protocol_in_any_order_make_it_panic(
        words in vec(prop_oneof![
            Just("VALUE "), Just("key "), Just("0 "), Just("3"), Just("\r\n"), Just("END\r\n"), Just("END"),
            Just("\n"), Just("\r"), Just("abc\r\n"), Just("SERVER_ERROR "), Just("STORED\r\n"), Just("VERSION "),
        ], 0..20),
        lengths in vec(any::<u8>(), 0..7),
    ) {
        let mut data = vec![lengths.len() as u8];
        data.extend(lengths);
        data.extend(words.concat().bytes());
        fuzz_decode(Text::new, &data);
    }

    #[test]
    fn a_key_is_taken_or_refused_and_never_changes_the_shape_of_a_request(key: Vec<u8>) {
        if let Ok((bytes, _)) = encoded::<Text>(&Op::new(Verb::Delete, &key), 0) {
            prop_assert_eq!(bytes, [b"delete ", &key[..], b"\r\n"].concat());
            prop_assert_eq!(key.iter().filter(|&&byte| byte < 0x10 || byte == b' ').count(), 0);
        } else {
            let plain = !key.is_empty() && key.len() <= 250 && key.iter().all(|&byte| byte >= 0x10 && byte != b' ');
            prop_assert_eq!(plain, false);
        }
    }
}
