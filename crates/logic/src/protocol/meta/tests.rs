//! The meta protocol's requests and replies, byte by byte and cut anywhere.

use super::*;
use crate::protocol::contract::{
    Seen, cut_in_turn, encoded, every_cut, fuzz_decode, fuzz_prefixes, read_from, sent,
};
use crate::protocol::{self, Fault, MetaAsk, Outcome};
use proptest::collection::vec;
use proptest::prelude::{Just, any, prop_assert_eq, prop_oneof, proptest};

fn request(op: &Op<'_>) -> Result<String, &'static str> {
    let (bytes, expect) = encoded::<Meta>(op, 7).map_err(|Refused(why)| why)?;
    assert_eq!(expect == Expect::Nothing, op.noreply);
    Ok(String::from_utf8(bytes).expect("these tests write ASCII"))
}

fn ends(tag: Option<Tag>, outcome: Outcome, message: &str) -> Seen {
    Seen::Reply { tag, outcome, message: message.as_bytes().to_vec() }
}

fn ended(outcome: Outcome) -> Vec<Seen> {
    vec![ends(Some(7), outcome, "")]
}

fn shows(key: &[u8], flags: u32, cas: u64, value: &[u8]) -> Vec<Seen> {
    let item = Seen::Item { tag: Some(7), key: key.to_vec(), size: value.len() as u64, cas, flags };
    if value.is_empty() { vec![item] } else { vec![item, Seen::Body(value.to_vec())] }
}

#[test]
fn a_connection_costs_few_bytes() {
    assert!(size_of::<Meta>() <= 48, "{}", size_of::<Meta>());
}

#[test]
fn reads_ask_for_what_their_verb_needs() {
    let read = |verb| Op { expiry_s: 60, ..Op::new(verb, b"key") };
    for (verb, line) in [
        (Verb::Get, "mg key v f Or7\r\n"),
        (Verb::Gets, "mg key v f c Or7\r\n"),
        (Verb::Gat, "mg key v f T60 Or7\r\n"),
        (Verb::Gats, "mg key v f c T60 Or7\r\n"),
    ] {
        assert_eq!(request(&read(verb)).as_deref(), Ok(line));
    }
    let meta = MetaAsk { vivify_s: Some(30), recache_s: Some(5), details: true, stale_s: None };
    let asked = request(&Op { meta, ..read(Verb::Get) });
    assert_eq!(asked.as_deref(), Ok("mg key v f N30 R5 t s h l Or7\r\n"));
}

#[test]
fn changes_carry_what_their_verb_needs() {
    let filled = |verb, noreply| Op {
        value: protocol::Value { own: b"own ", rest: protocol::Rest::Text { bytes: b"and shared", at: 5 } },
        flags: 4_294_967_295,
        expiry_s: -1,
        cas: u64::MAX,
        delta: 3,
        noreply,
        ..Op::new(verb, b"key")
    };
    let value = "own and shared\r\n";
    for (verb, line, letter, body) in [
        (Verb::Set, "ms key 14 F4294967295 T-1", 's', value),
        (Verb::Add, "ms key 14 ME F4294967295 T-1", 's', value),
        (Verb::Replace, "ms key 14 MR F4294967295 T-1", 's', value),
        (Verb::Append, "ms key 14 MA F4294967295 T-1", 's', value),
        (Verb::Prepend, "ms key 14 MP F4294967295 T-1", 's', value),
        (Verb::Cas, "ms key 14 C18446744073709551615 F4294967295 T-1", 's', value),
        (Verb::Delete, "md key", 'd', ""),
        (Verb::Touch, "mg key T-1", 't', ""),
    ] {
        assert_eq!(request(&filled(verb, false)), Ok(format!("{line} O{letter}7\r\n{body}")));
        assert_eq!(request(&filled(verb, true)), Ok(format!("{line} q Oq7\r\n{body}")));
    }
    assert_eq!(request(&filled(Verb::Incr, false)).as_deref(), Ok("ma key D3 v Oc7\r\n"));
    assert_eq!(request(&filled(Verb::Decr, false)).as_deref(), Ok("ma key MD D3 v Oc7\r\n"));
    assert_eq!(request(&filled(Verb::Decr, true)).as_deref(), Ok("ma key MD D3 q Oq7\r\n"));
    assert_eq!(request(&Op::new(Verb::Version, b"")).as_deref(), Ok("version\r\n"));
    assert_eq!(request(&Op::new(Verb::Set, b"k")).as_deref(), Ok("ms k 0 Os7\r\n\r\n"));
    let meta = MetaAsk { stale_s: Some(30), ..MetaAsk::default() };
    let stale = request(&Op { meta, ..Op::new(Verb::Delete, b"key") });
    assert_eq!(stale.as_deref(), Ok("md key I T30 Od7\r\n"));
}

#[test]
fn a_multi_get_is_quiet_reads_with_an_end_mark() {
    let keys = Keys::Many { bytes: b"onetwo three", ends: &[3, 6, 12] };
    let op = |verb| Op { keys, expiry_s: 9, ..Op::new(verb, b"") };
    let get = "mg one v f k q Op7\r\nmg two v f k q Op7\r\nmg IHRocmVl b v f k q Op7\r\nmn\r\n";
    assert_eq!(request(&op(Verb::Get)).as_deref(), Ok(get));
    let gats =
        "mg one v f k q c T9 Op7\r\nmg two v f k q c T9 Op7\r\nmg IHRocmVl b v f k q c T9 Op7\r\nmn\r\n";
    assert_eq!(request(&op(Verb::Gats)).as_deref(), Ok(gats));
}

#[test]
fn keys_that_text_cannot_carry_go_in_base64() {
    for (verb, line) in [
        (Verb::Get, "mg YSBi b v f Or7\r\n"),
        (Verb::Set, "ms YSBi 0 b Os7\r\n\r\n"),
        (Verb::Delete, "md YSBi b Od7\r\n"),
        (Verb::Incr, "ma YSBi b D0 v Oc7\r\n"),
        (Verb::Touch, "mg YSBi b T0 Ot7\r\n"),
    ] {
        assert_eq!(request(&Op::new(verb, b"a b")).as_deref(), Ok(line));
    }
    assert!(request(&Op::new(Verb::Get, &[0; 186])).is_ok());
    assert_eq!(every_cut(Meta::new, b"VA 1 f0 kYSBi b Or7\r\nv\r\n"), {
        let mut expected = shows(b"a b", 0, 0, b"v");
        expected.extend(ended(Outcome::Hit));
        expected
    });
}

#[test]
fn what_the_protocol_cannot_say_is_refused_and_nothing_is_written() {
    let many = |verb, bytes, ends| Op { keys: Keys::Many { bytes, ends }, ..Op::new(verb, b"") };
    for op in [
        Op::new(Verb::Get, b""),
        Op::new(Verb::Set, &[b'k'; 251]),
        Op::new(Verb::Get, &[0; 187]),
        Op::new(Verb::Delete, &[0; 251]),
        Op { noreply: true, ..Op::new(Verb::Get, b"k") },
        Op { noreply: true, ..Op::new(Verb::Version, b"k") },
        Op { noreply: true, ..many(Verb::Gats, b"k", &[1]) },
        Op { expiry_s: 1 << 32, ..Op::new(Verb::Set, b"k") },
        Op { expiry_s: 1 << 32, ..Op::new(Verb::Touch, b"k") },
        Op { expiry_s: 1 << 32, ..many(Verb::Gat, b"k", &[1]) },
        many(Verb::Get, b"", &[]),
        many(Verb::Get, b"k", &[1, 1]),
        many(Verb::Set, b"k", &[1]),
    ] {
        assert!(request(&op).is_err(), "{op:?}");
    }
}

#[test]
fn the_code_and_the_opaque_say_how_a_request_ended() {
    for (line, outcome) in [
        ("EN Or7", Outcome::Miss),
        ("HD Os7", Outcome::Stored),
        ("NS Os7", Outcome::NotStored),
        ("EX Os7", Outcome::Exists),
        ("NF Os7", Outcome::NotFound),
        ("HD Od7", Outcome::Deleted),
        ("NF Od7", Outcome::NotFound),
        ("EX Od7", Outcome::Exists),
        ("HD Ot7", Outcome::Touched),
        ("EN Ot7", Outcome::NotFound),
        ("NF Oc7", Outcome::NotFound),
        ("NS Oc7", Outcome::NotStored),
        ("EX Oc7", Outcome::Exists),
        ("HD t-1 s5 h1 l0 c99 f3 kkey Os7", Outcome::Stored),
        ("HD  Os7 ", Outcome::Stored),
        ("VA 2 Oc7\r\n42", Outcome::Number(42)),
        ("VA 20 t-1 c5 Oc7\r\n18446744073709551615", Outcome::Number(u64::MAX)),
    ] {
        assert_eq!(every_cut(Meta::new, format!("{line}\r\n").as_bytes()), ended(outcome), "{line}");
    }
}

#[test]
fn lines_without_an_opaque_answer_the_oldest_request() {
    for (line, outcome, message) in [
        ("EN", Outcome::Miss, ""),
        ("VERSION 1.6.18", Outcome::Ok, "1.6.18"),
        ("STORED", Outcome::Stored, ""),
        ("OK", Outcome::Ok, ""),
        ("ERROR", Outcome::Error(Fault::Protocol), "ERROR"),
        ("CLIENT_ERROR invalid flag", Outcome::Error(Fault::Client), "CLIENT_ERROR invalid flag"),
        ("SERVER_ERROR out of memory", Outcome::Error(Fault::Server), "SERVER_ERROR out of memory"),
    ] {
        let seen = every_cut(Meta::new, format!("{line}\r\n").as_bytes());
        assert_eq!(seen, vec![ends(None, outcome, message)]);
    }
}

#[test]
fn a_value_passes_between_its_item_and_its_reply() {
    let stream = b"VA 5 f3 c99 t-1 s5 h0 l10 Or7\r\nEN\r\nx\r\nVA 0 f0 Or7\r\n\r\n";
    let expected =
        [shows(b"", 3, 99, b"EN\r\nx"), ended(Outcome::Hit), shows(b"", 0, 0, b""), ended(Outcome::Hit)];
    assert_eq!(every_cut(Meta::new, stream), expected.concat());
}

#[test]
fn stale_won_and_recaching_are_ends_of_their_own() {
    for (flags, outcome) in [
        ("W", Outcome::Win),
        ("X", Outcome::Stale),
        ("Z", Outcome::Recaching),
        ("X W", Outcome::Win),
        ("Z X", Outcome::Stale),
    ] {
        let seen = every_cut(Meta::new, format!("VA 1 f0 Or7 {flags}\r\nv\r\n").as_bytes());
        assert_eq!(seen, [shows(b"", 0, 0, b"v"), ended(outcome)].concat(), "{flags}");
    }
    assert_eq!(every_cut(Meta::new, b"VA 0 f0 Or7 W\r\n\r\n"), ended(Outcome::Win), "a place is no item");
    assert_eq!(
        every_cut(Meta::new, b"VA 0 f0 Or7 Z\r\n\r\n"),
        ended(Outcome::Recaching),
        "a place is no item"
    );
}

fn after_two_multi_gets() -> Meta {
    let mut codec = Meta::new();
    let mut out = Outbox::default();
    let two = Op { keys: Keys::Many { bytes: b"ab", ends: &[1, 2] }, ..Op::new(Verb::Get, b"") };
    for (op, tag) in [Op::new(Verb::Set, b"a"), two, Op::new(Verb::Get, b"a"), two].into_iter().zip(6..) {
        codec.encode(&op, tag, &mut out).expect("the request can be written");
    }
    codec
}

#[test]
fn a_multi_get_ends_once_at_its_mark() {
    let first = |lines: &str| {
        let stream = format!("HD Os6\r\n{lines}MN\r\nEN Or8\r\nMN\r\n");
        let mut seen = every_cut(after_two_multi_gets, stream.as_bytes());
        assert_eq!(seen.remove(0), ends(Some(6), Outcome::Stored, ""));
        assert_eq!(seen.pop(), Some(ends(Some(9), Outcome::Miss, "")));
        assert_eq!(seen.pop(), Some(ends(Some(8), Outcome::Miss, "")));
        seen
    };
    let (a, b) = (shows(b"a", 0, 0, b"1"), shows(b"b", 2, 0, b""));
    assert_eq!(first(""), ended(Outcome::Miss));
    assert_eq!(first("VA 1 f0 ka Op7\r\n1\r\n"), [&a[..], &ended(Outcome::Hit)].concat());
    let both = "VA 1 f0 ka Op7\r\n1\r\nVA 0 f2 kb Op7\r\n\r\n";
    assert_eq!(first(both), [&a[..], &b, &ended(Outcome::Hit)].concat());
    assert_eq!(
        first("VA 0 f0 ka Op7 W\r\n\r\nVA 0 f2 kb Op7\r\n\r\n"),
        [&b[..], &ended(Outcome::Win)].concat()
    );

    let error = ends(Some(7), Outcome::Error(Fault::Server), "SERVER_ERROR x");
    assert_eq!(first("SERVER_ERROR x\r\nSERVER_ERROR y\r\n"), vec![error.clone()]);
    let broken = "VA 1 f0 ka Op7\r\n1\r\nSERVER_ERROR x\r\nVA 1 f2 kb Op7\r\n2\r\n";
    assert_eq!(
        first(broken),
        [&a[..], &[error]].concat(),
        "what follows an error, up to the mark, is dropped"
    );
}

#[test]
fn the_answers_to_quiet_requests_are_dropped() {
    let stream = b"NS Oq1\r\nEX Oq2\r\nNF Oq3\r\nHD Oq4\r\nEN Oq5\r\nVA 2 Oq6\r\n42\r\nHD Os7\r\n";
    assert_eq!(every_cut(Meta::new, stream), ended(Outcome::Stored));
}

/// A codec that has written stores without reply before a read, and between its reads.
fn after_quiet_stores(reads: u32) -> Meta {
    let (mut codec, mut out) = (Meta::new(), Outbox::default());
    for tag in 0..reads {
        let quiet = Op { noreply: true, ..Op::new(Verb::Set, b"q") };
        codec.encode(&quiet, 100 + tag, &mut out).expect("a store goes without reply");
        codec.encode(&Op::new(Verb::Get, b"k"), 7 + tag, &mut out).expect("a read has a reply");
    }
    codec
}

/// A codec that has received an error after quiet stores, and the question that it asks then.
fn after_an_error(reads: u32, stream: &[u8]) -> (Meta, Vec<u8>) {
    let mut codec = after_quiet_stores(reads);
    assert_eq!(read_from(&mut codec, &[stream]), vec![], "no error is reported before its request is known");
    let mut out = Outbox::default();
    codec.inquire(&mut out);
    let asked = sent(&out);
    codec.inquire(&mut out);
    assert_eq!(sent(&out), asked, "asked once");
    (codec, asked)
}

const BUSY: &str = "SERVER_ERROR busy";

fn busy() -> Seen {
    ends(None, Outcome::Error(Fault::Server), BUSY)
}

fn quietly_busy() -> Seen {
    Seen::QuietError(BUSY.into())
}

#[test]
fn an_error_is_that_of_a_request_without_reply_when_all_others_are_answered() {
    let error = b"SERVER_ERROR busy\r\n";
    assert_eq!(after_an_error(1, error).1, b"mn\r\n");
    for (replies, expected) in [
        ("VA 1 f0 Or7\r\nv\r\n", [shows(b"", 0, 0, b"v"), ended(Outcome::Hit)].concat()),
        ("EN\r\n", vec![ends(None, Outcome::Miss, "")]),
    ] {
        let seen = every_cut(|| after_an_error(1, error).0, format!("{replies}MN\r\nEN\r\n").as_bytes());
        let end = vec![quietly_busy(), ends(None, Outcome::Miss, "")];
        assert_eq!(seen, [expected, end].concat());
    }
}

#[test]
fn an_error_is_that_of_a_read_which_stays_unanswered() {
    let error = b"SERVER_ERROR busy\r\n";
    assert_eq!(every_cut(|| after_an_error(1, error).0, b"MN\r\n"), vec![busy()]);
    let second = "VA 1 f0 Or8\r\nv\r\nMN\r\n";
    let hit = [
        Seen::Item { tag: Some(8), key: vec![], size: 1, cas: 0, flags: 0 },
        Seen::Body(b"v".to_vec()),
        ends(Some(8), Outcome::Hit, ""),
    ];
    let seen = every_cut(|| after_an_error(2, error).0, second.as_bytes());
    assert_eq!(seen, [&hit[..], &[busy()]].concat());
    let seen = every_cut(|| after_an_error(2, error).0, format!("{BUSY}\r\n{second}").as_bytes());
    assert_eq!(seen, [&hit[..], &[busy(), quietly_busy()]].concat());
    let seen = every_cut(|| after_an_error(2, error).0, b"MN\r\n");
    assert!(matches!(seen[..], [Seen::Malformed(_)]), "two reads have no answer, and there was one error");
}

#[test]
fn where_only_one_kind_of_request_can_have_failed_nothing_is_asked() {
    let quiet_alone = || {
        let (mut codec, mut out) = (Meta::new(), Outbox::default());
        let quiet = Op { noreply: true, ..Op::new(Verb::Set, b"q") };
        codec.encode(&quiet, 3, &mut out).expect("a store goes without reply");
        codec
    };
    let stream = format!("{BUSY}\r\n{BUSY}\r\n");
    assert_eq!(every_cut(quiet_alone, stream.as_bytes()), vec![quietly_busy(), quietly_busy()]);
    let passed = || {
        let mut codec = after_quiet_stores(1);
        codec.encode(&Op::new(Verb::Get, b"k"), 8, &mut Outbox::default()).expect("it is a read");
        codec
    };
    let seen = every_cut(passed, format!("EN\r\n{BUSY}\r\n").as_bytes());
    assert_eq!(seen, vec![ends(None, Outcome::Miss, ""), busy()], "the server has passed the store");
}

#[test]
fn an_error_before_the_first_value_of_a_multi_get_is_that_of_the_request_without_reply() {
    let codec = || {
        let (mut codec, mut out) = (Meta::new(), Outbox::default());
        let quiet = Op { noreply: true, ..Op::new(Verb::Set, b"q") };
        let two = Op { keys: Keys::Many { bytes: b"ab", ends: &[1, 2] }, ..Op::new(Verb::Get, b"") };
        codec.encode(&quiet, 6, &mut out).expect("a store goes without reply");
        codec.encode(&two, 7, &mut out).expect("a read has a reply");
        codec
    };
    let value = "VA 1 f0 ka Op7\r\n1\r\n";
    let seen = every_cut(codec, format!("{BUSY}\r\n{value}MN\r\n").as_bytes());
    assert_eq!(seen, [vec![quietly_busy()], shows(b"a", 0, 0, b"1"), ended(Outcome::Hit)].concat());
    let seen = every_cut(codec, format!("{value}{BUSY}\r\nMN\r\n").as_bytes());
    let failed = vec![ends(Some(7), Outcome::Error(Fault::Server), BUSY)];
    assert_eq!(seen, [shows(b"a", 0, 0, b"1"), failed].concat());
}

#[test]
fn malformed_replies_end_the_stream_with_a_sentence() {
    for (stream, part) in [
        ("VA\r\n", "size"),
        ("VA x Or7\r\n", "size"),
        ("VA 4294967296 Or7\r\n", "size"),
        ("VA 1x Or7\r\n", "flag"),
        ("VA 1 f0\r\n", "opaque"),
        ("HD\r\n", "opaque"),
        ("HD Ox7\r\n", "not ours"),
        ("HD Os\r\n", "not ours"),
        ("HD Os4294967296\r\n", "not ours"),
        ("HD Or7\r\n", "does not fit"),
        ("EN Os7\r\n", "does not fit"),
        ("VA 1 Os7\r\n", "did not ask"),
        ("VA 1 ka Op7\r\n", "no multi-get in flight"),
        ("VA 1 k=? b Or7\r\n", "base64"),
        ("VA 1 fx Or7\r\n", "flag"),
        ("VA 1 cx Or7\r\n", "flag"),
        ("VA 1 tx Or7\r\n", "flag"),
        ("VA 1 f4294967296 Or7\r\n", "flag"),
        ("VA 1 y Or7\r\n", "flag"),
        ("VA 1 Or7 Wx\r\n", "flag"),
        ("VA 1 Or7\r\nxy\r\n", "not followed by CR LF"),
        ("VA 1 Oc7\r\n42\r\n", "as long"),
        ("VA 1 Oc7\r\nx\r\n", "64 bits"),
        ("VA 0 Oc7\r\n\r\n", "64 bits"),
        ("MN\r\n", "without a request"),
        ("END\r\n", "classic"),
        ("QQ\r\n", "does not know"),
        ("HD Os7\n", "bare line feed"),
        ("-ERR\r\n", "RESP"),
        ("HTTP/1.1 400\r\n", "HTTP"),
        ("\u{15}\u{3}", "TLS"),
    ] {
        match every_cut(Meta::new, stream.as_bytes()).pop() {
            Some(Seen::Malformed(why)) => assert!(why.contains(part), "{stream:?}: {why}"),
            other => panic!("{stream:?} was read as {other:?}"),
        }
    }
    assert!(matches!(every_cut(Meta::new, b"\x81")[..], [Seen::Malformed(why)] if why.contains("binary")));
}

#[test]
fn a_long_error_text_is_cut_off() {
    let stream = format!("SERVER_ERROR {}\r\nHD Os7\r\n", "x".repeat(5000));
    let expected = [vec![ends(None, Outcome::Error(Fault::Server), &stream[..2048])], ended(Outcome::Stored)];
    assert_eq!(read_from(&mut Meta::new(), &[stream.as_bytes()]), expected.concat());
    cut_in_turn(Meta::new, stream.as_bytes(), &[3, 200]);
}

#[test]
fn the_fuzz_target_holds_on_prefixes() {
    let stream =
        b"HD Os6\r\nVA 1 f0 ka Op7\r\n1\r\nVA 0 f2 kYQ== b Op7 W\r\n\r\nMN\r\nVA 2 c9 t-1 Or8 X\r\nhi\r\n\
        SERVER_ERROR x\r\nMN\r\nVA 2 Oc1\r\n42\r\nNF Oq1\r\n";
    fuzz_prefixes::<Meta>(&[stream]);
    for end in 0..=stream.len() {
        fuzz_decode(after_two_multi_gets, &[&b"\x03\x07\x00\x02"[..], &stream[..end]].concat());
    }
}

proptest! {
    #[test]
    fn any_items_read_the_same_for_any_cuts(
        items in vec(("[!-~]{1,250}", vec(any::<u8>(), 0..300), any::<u32>(), any::<u64>()), 0..5),
        lengths in vec(any::<u8>(), 1..6),
    ) {
        let mut stream = b"HD Os6\r\n".to_vec();
        let mut expected = vec![ends(Some(6), Outcome::Stored, "")];
        for (key, value, flags, cas) in &items {
            stream.extend(format!("VA {} f{flags} k{key} c{cas} Op7\r\n", value.len()).bytes());
            stream.extend([&value[..], b"\r\n"].concat());
            expected.extend(shows(key.as_bytes(), *flags, *cas, value));
        }
        stream.extend(b"MN\r\n");
        expected.extend(ended(if items.is_empty() { Outcome::Miss } else { Outcome::Hit }));
        prop_assert_eq!(read_from(&mut after_two_multi_gets(), &[&stream]), expected);
        cut_in_turn(after_two_multi_gets, &stream, &lengths);
    }

    #[test]
    fn no_bytes_make_it_panic(data: Vec<u8>) {
        fuzz_decode(Meta::new, &data);
    }

    #[test]
    fn no_words_of_the_protocol_in_any_order_make_it_panic(
        words in vec(prop_oneof![
            Just("VA "), Just("HD"), Just("EN"), Just("MN\r\n"), Just("0"), Just("2"), Just(" f0"), Just(" kYQ=="),
            Just(" b"), Just(" c1"), Just(" Or7"), Just(" Op7"), Just(" Oc7"), Just(" Oq7"), Just(" Os6"),
            Just("\r\n"), Just("\n"), Just("42\r\n"), Just("SERVER_ERROR "), Just(" W"),
        ], 0..24),
        lengths in vec(any::<u8>(), 0..7),
    ) {
        let mut data = vec![lengths.len() as u8];
        data.extend(lengths);
        data.extend(words.concat().bytes());
        fuzz_decode(Meta::new, &data);
        fuzz_decode(after_two_multi_gets, &data);
        fuzz_decode(|| after_quiet_stores(3), &data);
        fuzz_decode(|| after_an_error(2, b"SERVER_ERROR busy\r\n").0, &data);
    }
}
