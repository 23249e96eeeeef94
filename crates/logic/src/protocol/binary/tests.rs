//! The binary protocol's requests and replies, byte by byte and cut anywhere.

use super::*;
use crate::protocol::contract::{
    Seen, cut_in_turn, encoded, every_cut, fuzz_decode, fuzz_prefixes, read_from,
};
use crate::protocol::{Fault, Keys, Rest, Value, Verb};
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert_eq, proptest};

const TAG: Tag = 0xdead_beef;

fn filled(verb: Verb, noreply: bool) -> Op<'static> {
    Op {
        value: Value { own: b"Wo", rest: Rest::Text { bytes: b"rld", at: 7 } },
        flags: 0xdead_beef,
        expiry_s: 0xe10,
        cas: 9,
        delta: 1,
        noreply,
        ..Op::new(verb, b"Hello")
    }
}

fn request<C: Codec>(op: &Op<'_>) -> Result<Vec<u8>, &'static str> {
    let (bytes, expect) = encoded::<C>(op, TAG).map_err(|Refused(why)| why)?;
    assert_eq!(expect == Expect::Nothing, op.noreply);
    Ok(bytes)
}

/// A packet as the document draws it: magic, opcode, status or zero, opaque, cas, then extras, key and value.
fn packet(magic: u8, opcode: u8, status: u16, opaque: u32, cas: u64, body: [&[u8]; 3]) -> Vec<u8> {
    let [extras, key, value] = body;
    let mut bytes = vec![magic, opcode, 0, key.len() as u8, extras.len() as u8, 0];
    bytes.extend(status.to_be_bytes());
    bytes.extend(((extras.len() + key.len() + value.len()) as u32).to_be_bytes());
    bytes.extend(opaque.to_be_bytes());
    bytes.extend(cas.to_be_bytes());
    bytes.extend([extras, key, value].concat());
    bytes
}

fn asks(opcode: u8, cas: u64, body: [&[u8]; 3]) -> Vec<u8> {
    packet(0x80, opcode, 0, TAG, cas, body)
}

fn answers(opcode: u8, status: u16, body: [&[u8]; 3]) -> Vec<u8> {
    packet(0x81, opcode, status, TAG, 0, body)
}

fn plain(opcode: u8, status: u16, body: [&[u8]; 3]) -> Vec<u8> {
    packet(0x81, opcode, status, 0, 0, body)
}

fn ends(tag: Option<Tag>, outcome: Outcome, message: &str) -> Seen {
    Seen::Reply { tag, outcome, message: message.as_bytes().to_vec() }
}

fn shows(tag: Option<Tag>, key: &[u8], flags: u32, value: &[u8]) -> Vec<Seen> {
    let item = Seen::Item { tag, key: key.to_vec(), size: value.len() as u64, cas: 0, flags };
    if value.is_empty() { vec![item] } else { vec![item, Seen::Body(value.to_vec())] }
}

#[test]
fn a_connection_costs_few_bytes() {
    assert!(size_of::<Binary>() <= 40, "{}", size_of::<Binary>());
    assert!(size_of::<PlainBinary>() <= 40, "{}", size_of::<PlainBinary>());
}

#[test]
fn the_documents_get_add_and_incr_are_written_byte_for_byte() {
    let get = [&[0x80, 0x00, 0, 5, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0][..], &[0; 8], b"Hello"].concat();
    assert_eq!(request::<PlainBinary>(&Op::new(Verb::Get, b"Hello")), Ok(get));

    let add_head = [0x80, 0x02, 0, 5, 8, 0, 0, 0, 0, 0, 0, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let add = [&add_head[..], &[0xde, 0xad, 0xbe, 0xef, 0, 0, 0x0e, 0x10], b"HelloWorld"].concat();
    assert_eq!(request::<PlainBinary>(&filled(Verb::Add, false)), Ok(add));

    // The document's example seeds 0 and expires; ours must not make an item, hence all ones.
    let incr_head = [0x80, 0x05, 0, 7, 0x14, 0, 0, 0, 0, 0, 0, 0x1b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let incr = [&incr_head[..], &[0, 0, 0, 0, 0, 0, 0, 1], &[0; 8], &[0xff; 4], b"counter"].concat();
    assert_eq!(request::<PlainBinary>(&Op { delta: 1, ..Op::new(Verb::Incr, b"counter") }), Ok(incr));
}

#[test]
fn every_verb_has_its_code_its_extras_and_its_quiet_form() {
    let stored = [0xde, 0xad, 0xbe, 0xef, 0, 0, 0x0e, 0x10];
    let counted = [&[0, 0, 0, 0, 0, 0, 0, 1][..], &[0; 8], &[0xff; 4]].concat();
    let touched = [0, 0, 0x0e, 0x10];
    for (verb, loud, quiet, cas, extras, value) in [
        (Verb::Get, 0x00, None, 0, &[][..], &b""[..]),
        (Verb::Gets, 0x00, None, 0, &[], b""),
        (Verb::Gat, 0x1d, None, 0, &touched, b""),
        (Verb::Gats, 0x1d, None, 0, &touched, b""),
        (Verb::Set, 0x01, Some(0x11), 0, &stored, b"World"),
        (Verb::Add, 0x02, Some(0x12), 0, &stored, b"World"),
        (Verb::Replace, 0x03, Some(0x13), 0, &stored, b"World"),
        (Verb::Cas, 0x01, Some(0x11), 9, &stored, b"World"),
        (Verb::Append, 0x0e, Some(0x19), 0, &[], b"World"),
        (Verb::Prepend, 0x0f, Some(0x1a), 0, &[], b"World"),
        (Verb::Incr, 0x05, Some(0x15), 0, &counted, b""),
        (Verb::Decr, 0x06, Some(0x16), 0, &counted, b""),
        (Verb::Delete, 0x04, Some(0x14), 0, &[], b""),
        (Verb::Touch, 0x1c, None, 0, &touched, b""),
    ] {
        assert_eq!(
            request::<Binary>(&filled(verb, false)),
            Ok(asks(loud, cas, [extras, b"Hello", value])),
            "{verb:?}"
        );
        let written = quiet.map(|quiet| asks(quiet, cas, [extras, b"Hello", value]));
        assert_eq!(request::<Binary>(&filled(verb, true)).ok(), written, "{verb:?} without reply");
    }
    assert_eq!(request::<Binary>(&filled(Verb::Version, false)), Ok(asks(0x0b, 0, [b"", b"", b""])));
    assert!(request::<Binary>(&filled(Verb::Version, true)).is_err());
}

#[test]
fn an_expiry_that_has_passed_stays_one_that_has_passed() {
    for (expiry_s, field) in [(0, 0), (-1, 2_592_001), (i64::MIN, 2_592_001), (4_294_967_295, u32::MAX)] {
        let written = request::<Binary>(&Op { expiry_s, ..Op::new(Verb::Touch, b"k") })
            .expect("the request can be written");
        assert_eq!(written[24..28], u32::to_be_bytes(field), "{expiry_s}");
    }
}

#[test]
fn a_multi_get_is_quiet_reads_and_a_noop_or_plain_gets() {
    let op = |verb| Op {
        keys: Keys::Many { bytes: b"onetwo", ends: &[3, 6] },
        expiry_s: 0xe10,
        ..Op::new(verb, b"")
    };
    let noop = asks(0x0a, 0, [b"", b"", b""]);
    let quiet = |code, extras| {
        [asks(code, 0, [extras, b"one", b""]), asks(code, 0, [extras, b"two", b""]), noop.clone()]
    };
    for (verb, code, extras) in [
        (Verb::Get, 0x0d, &b""[..]),
        (Verb::Gets, 0x0d, b""),
        (Verb::Gat, 0x24, &[0, 0, 0x0e, 0x10]),
        (Verb::Gats, 0x24, &[0, 0, 0x0e, 0x10]),
    ] {
        assert_eq!(request::<Binary>(&op(verb)), Ok(quiet(code, extras).concat()), "{verb:?}");
    }
    let get = |key: &[u8]| packet(0x80, 0x00, 0, 0, 0, [b"", key, b""]);
    assert_eq!(request::<PlainBinary>(&op(Verb::Get)), Ok([get(b"one"), get(b"two")].concat()));
}

#[test]
fn what_the_protocol_cannot_say_is_refused_and_nothing_is_written() {
    let many = |verb, bytes, ends| Op { keys: Keys::Many { bytes, ends }, ..Op::new(verb, b"") };
    for op in [
        Op::new(Verb::Get, b""),
        Op::new(Verb::Set, &[0; 251]),
        Op { noreply: true, ..Op::new(Verb::Get, b"k") },
        Op { noreply: true, ..Op::new(Verb::Touch, b"k") },
        Op { noreply: true, ..many(Verb::Gats, b"k", &[1]) },
        Op { expiry_s: 1 << 32, ..Op::new(Verb::Set, b"k") },
        Op { expiry_s: 1 << 32, ..Op::new(Verb::Gat, b"k") },
        Op { expiry_s: 1 << 32, ..many(Verb::Gat, b"k", &[1]) },
        Op { cas: 0, ..Op::new(Verb::Cas, b"k") },
        many(Verb::Get, b"", &[]),
        many(Verb::Get, b"k", &[1, 1]),
        many(Verb::Delete, b"k", &[1]),
    ] {
        assert!(request::<Binary>(&op).is_err(), "{op:?}");
        assert!(request::<PlainBinary>(&op).is_err(), "{op:?}");
    }
    assert!(request::<Binary>(&Op::new(Verb::Get, b"any \r\n\0 byte \xff")).is_ok());
}

#[test]
fn the_status_says_how_a_request_ended() {
    for (code, status, body, outcome, message) in [
        (0x00, 0x01, &b"Not found"[..], Outcome::Miss, ""),
        (0x1d, 0x01, b"Not found", Outcome::Miss, ""),
        (0x01, 0x00, b"", Outcome::Stored, ""),
        (0x02, 0x00, b"", Outcome::Stored, ""),
        (0x03, 0x00, b"", Outcome::Stored, ""),
        (0x0e, 0x00, b"", Outcome::Stored, ""),
        (0x0f, 0x00, b"", Outcome::Stored, ""),
        (0x01, 0x01, b"Not found", Outcome::NotFound, ""),
        (0x01, 0x02, b"Data exists for key.", Outcome::Exists, ""),
        (0x02, 0x02, b"Data exists for key.", Outcome::NotStored, ""),
        (0x03, 0x01, b"Not found", Outcome::NotStored, ""),
        (0x0e, 0x05, b"Not stored.", Outcome::NotStored, ""),
        (0x0f, 0x05, b"Not stored.", Outcome::NotStored, ""),
        (0x04, 0x00, b"", Outcome::Deleted, ""),
        (0x04, 0x01, b"Not found", Outcome::NotFound, ""),
        (0x05, 0x00, &[0, 0, 0, 0, 0, 0, 1, 2], Outcome::Number(258), ""),
        (0x06, 0x00, &[0xff; 8], Outcome::Number(u64::MAX), ""),
        (0x05, 0x01, b"Not found", Outcome::NotFound, ""),
        (0x05, 0x06, b"Non-numeric", Outcome::Error(Fault::Client), "Non-numeric"),
        (0x1c, 0x00, &[0, 0, 0, 0], Outcome::Touched, ""),
        (0x1c, 0x01, b"Not found", Outcome::NotFound, ""),
        (0x0b, 0x00, b"1.6.18", Outcome::Ok, "1.6.18"),
        (0x01, 0x03, b"Too large.", Outcome::Error(Fault::Server), "Too large."),
        (0x01, 0x04, b"Invalid arguments", Outcome::Error(Fault::Client), "Invalid arguments"),
        (0x00, 0x81, b"Unknown command", Outcome::Error(Fault::Protocol), "Unknown command"),
        (0x01, 0x82, b"Out of memory", Outcome::Error(Fault::Server), "Out of memory"),
        (0x00, 0x85, b"", Outcome::Error(Fault::Server), "Busy"),
        (0x00, 0x86, b"", Outcome::Error(Fault::Server), "Temporary failure"),
        (0x01, 0x86, b"later", Outcome::Error(Fault::Server), "Temporary failure"),
        (0x01, 0x82, b"", Outcome::Error(Fault::Server), "Out of memory"),
        (0x00, 0x77, b"", Outcome::Error(Fault::Protocol), ""),
        (0x00, 0x20, b"Auth failure.", Outcome::Error(Fault::Client), "Auth failure."),
        (0x21, 0x00, b"Authenticated", Outcome::Ok, "Authenticated"),
        (0x21, 0x20, b"Auth failure.", Outcome::Error(Fault::Client), "Auth failure."),
        (0x21, 0x21, b"", Outcome::Error(Fault::Client), ""),
    ] {
        let body = [&b""[..], b"", body];
        let tagged = every_cut(Binary::new, &answers(code, status, body));
        assert_eq!(tagged, vec![ends(Some(TAG), outcome, message)], "{code:#x} {status:#x}");
        let plain = every_cut(PlainBinary::new, &plain(code, status, body));
        assert_eq!(plain, vec![ends(None, outcome, message)], "{code:#x} {status:#x}");
    }
}

#[test]
fn a_value_passes_between_its_item_and_its_reply() {
    let flags = [0xde, 0xad, 0xbe, 0xef];
    let hit = answers(0x00, 0, [&flags, b"", b"World"]);
    let empty = answers(0x1d, 0, [&flags, b"", b""]);
    let mut expected = shows(Some(TAG), b"", 0xdead_beef, b"World");
    expected.push(ends(Some(TAG), Outcome::Hit, ""));
    expected.extend(shows(Some(TAG), b"", 0xdead_beef, b""));
    expected.push(ends(Some(TAG), Outcome::Hit, ""));
    assert_eq!(every_cut(Binary::new, &[hit, empty].concat()), expected);
}

#[test]
fn the_cas_unique_comes_with_every_item() {
    let stream = packet(0x81, 0x00, 0, TAG, 0x0102_0304_0506_0708, [&[0; 4], b"", b"v"]);
    let seen = every_cut(Binary::new, &stream);
    assert!(matches!(seen[0], Seen::Item { cas: 0x0102_0304_0506_0708, .. }), "{seen:?}");
}

#[test]
fn a_multi_get_ends_once_at_its_noop() {
    let item = |key: &[u8], value: &[u8]| answers(0x0d, 0, [&[0; 4], key, value]);
    let noop = answers(0x0a, 0, [b"", b"", b""]);
    let mut expected = shows(Some(TAG), b"one", 0, b"1");
    expected.extend(shows(Some(TAG), b"two", 0, b""));
    expected.extend([ends(Some(TAG), Outcome::Hit, ""), ends(Some(TAG), Outcome::Miss, "")]);
    let stream = [item(b"one", b"1"), item(b"two", b""), noop.clone(), noop.clone()].concat();
    assert_eq!(every_cut(Binary::new, &stream), expected);

    let error = answers(0x0d, 0x82, [b"", b"", b"Out of memory"]);
    let stream = [item(b"one", b"1"), error, item(b"two", b"22"), noop.clone(), noop].concat();
    let mut expected = shows(Some(TAG), b"one", 0, b"1");
    expected.push(ends(Some(TAG), Outcome::Error(Fault::Server), "Out of memory"));
    expected.push(ends(Some(TAG), Outcome::Miss, ""));
    assert_eq!(
        every_cut(Binary::new, &stream),
        expected,
        "what follows an error, up to the noop, is dropped"
    );
}

fn after_a_multi_get_of_three() -> PlainBinary {
    let mut codec = PlainBinary::new();
    let mut out = Outbox::default();
    let three = Op { keys: Keys::Many { bytes: b"abc", ends: &[1, 2, 3] }, ..Op::new(Verb::Get, b"") };
    for op in [Op::new(Verb::Set, b"a"), three, Op::new(Verb::Get, b"a")] {
        codec.encode(&op, TAG, &mut out).expect("the request can be written");
    }
    codec
}

#[test]
fn a_plain_multi_get_ends_once_with_its_last_reply() {
    let (set, miss) = (plain(0x01, 0, [b""; 3]), plain(0x00, 1, [b"", b"", b"Not found"]));
    let item = plain(0x00, 0, [&[0; 4], b"", b"v"]);
    let error = plain(0x00, 0x82, [b"", b"", b"Out of memory"]);
    let value = shows(None, b"", 0, b"v");
    let (stored, hit, missed) =
        (ends(None, Outcome::Stored, ""), ends(None, Outcome::Hit, ""), ends(None, Outcome::Miss, ""));
    let broken = ends(None, Outcome::Error(Fault::Server), "Out of memory");
    let read = |replies: [&Vec<u8>; 3]| {
        let stream = [&set, replies[0], replies[1], replies[2], &item].map(|bytes| &bytes[..]).concat();
        every_cut(after_a_multi_get_of_three, &stream)
    };
    let whole = |batch: &[&[Seen]]| {
        let around = [std::slice::from_ref(&stored), &batch.concat(), &value, std::slice::from_ref(&hit)];
        around.concat()
    };
    let absent = &[Seen::Absent][..];
    let [missed, hit, broken] = [&missed, &hit, &broken].map(std::slice::from_ref);
    assert_eq!(read([&miss, &miss, &miss]), whole(&[absent, absent, missed]));
    assert_eq!(read([&item, &miss, &miss]), whole(&[&value, absent, hit]));
    assert_eq!(read([&miss, &miss, &item]), whole(&[absent, absent, &value, hit]));
    assert_eq!(read([&item, &item, &item]), whole(&[&value, &value, &value, hit]));
    assert_eq!(read([&item, &error, &item]), whole(&[&value, broken]));
    assert_eq!(read([&error, &error, &error]), whole(&[broken]));
    assert_eq!(read([&miss, &miss, &error]), whole(&[absent, absent, broken]));
}

#[test]
fn an_unmet_condition_of_a_quiet_request_is_dropped() {
    for code in [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x19, 0x1a] {
        let stream =
            [answers(code, 2, [b"", b"", b"Data exists for key."]), answers(0x01, 0, [b""; 3])].concat();
        assert_eq!(every_cut(Binary::new, &stream), vec![ends(Some(TAG), Outcome::Stored, "")]);
        assert_eq!(every_cut(PlainBinary::new, &stream), vec![ends(None, Outcome::Stored, "")]);
    }
}

#[test]
fn an_error_of_a_quiet_request_is_reported_with_its_words() {
    let stream = [answers(0x11, 3, [b"", b"", b"Too large."]), answers(0x01, 0, [b""; 3])].concat();
    let told = Seen::QuietError(b"Too large.".to_vec());
    let expected = |tag| vec![told.clone(), ends(tag, Outcome::Stored, "")];
    assert_eq!(every_cut(Binary::new, &stream), expected(Some(TAG)));
    assert_eq!(every_cut(PlainBinary::new, &stream), expected(None));
}

#[test]
fn long_words_are_cut_off() {
    let stream = [answers(0x01, 0x82, [b"", b"", &[b'x'; 600]]), answers(0x01, 0, [b""; 3])].concat();
    let expected = vec![
        ends(Some(TAG), Outcome::Error(Fault::Server), &"x".repeat(512)),
        ends(Some(TAG), Outcome::Stored, ""),
    ];
    assert_eq!(read_from(&mut Binary::new(), &[&stream]), expected);
    cut_in_turn(Binary::new, &stream, &[7, 100]);
    cut_in_turn(Binary::new, &stream, &[1]);
}

#[test]
fn malformed_replies_end_the_stream_with_a_sentence() {
    let patched = |at: usize, byte: u8| {
        let mut bytes = answers(0x00, 0, [&[0; 4], b"", b"v"]);
        bytes[at] = byte;
        bytes
    };
    for (stream, part) in [
        (patched(3, 20), "contradict"),
        (patched(2, 20), "contradict"),
        (patched(4, 6), "contradict"),
        (patched(4, 3), "flags"),
        (patched(1, 0x0a + 0x30), "that was not sent"),
        (patched(1, 0x05), "eight bytes"),
        (patched(0, 0x80), "requests"),
        (b"ERROR\r\n".to_vec(), "text"),
        (b"-ERR\r\n".to_vec(), "RESP"),
        (vec![0x15, 3, 3, 0, 2], "TLS"),
        (vec![0], "magic"),
    ] {
        match every_cut(Binary::new, &stream).pop() {
            Some(Seen::Malformed(why)) => assert!(why.contains(part), "{why}"),
            other => panic!("{stream:?} was read as {other:?}"),
        }
    }
}

#[test]
fn the_fuzz_target_holds_on_prefixes() {
    let stream = [
        answers(0x0d, 0, [&[0; 4], b"one", b"value"]),
        answers(0x0d, 0x82, [b"", b"", b"Out of memory"]),
        answers(0x0a, 0, [b""; 3]),
        answers(0x00, 0, [&[0; 4], b"", b"v"]),
        answers(0x00, 1, [b"", b"", b"Not found"]),
    ]
    .concat();
    fuzz_prefixes::<Binary>(&[&stream]);
    fuzz_prefixes::<PlainBinary>(&[&stream]);
}

proptest! {
    #[test]
    fn any_items_read_the_same_for_any_cuts(
        items in vec((vec(any::<u8>(), 0..250), vec(any::<u8>(), 0..600), any::<u32>()), 0..5),
        lengths in vec(any::<u8>(), 1..6),
    ) {
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for (key, value, flags) in &items {
            stream.extend(answers(0x0d, 0, [&flags.to_be_bytes(), key, value]));
            expected.extend(shows(Some(TAG), key, *flags, value));
        }
        stream.extend(answers(0x0a, 0, [b""; 3]));
        expected.push(ends(Some(TAG), if items.is_empty() { Outcome::Miss } else { Outcome::Hit }, ""));
        prop_assert_eq!(read_from(&mut Binary::new(), &[&stream]), expected);
        cut_in_turn(Binary::new, &stream, &lengths);
    }

    #[test]
    fn no_bytes_make_it_panic(data: Vec<u8>) {
        fuzz_decode(Binary::new, &data);
        fuzz_decode(after_a_multi_get_of_three, &data);
    }

    #[test]
    fn no_packets_in_any_order_make_it_panic(
        packets in vec((0u8..0x26, 0u16..8, 0usize..30, 0usize..6, 0u32..3), 0..8),
        lengths in vec(any::<u8>(), 0..7),
    ) {
        let mut data = vec![lengths.len() as u8];
        data.extend(lengths);
        for (code, status, value_bytes, extras_bytes, opaque) in packets {
            let body: [&[u8]; 3] = [&[0; 6][..extras_bytes], b"", &[7; 30][..value_bytes]];
            data.extend(packet(0x81, code, status, opaque, 1, body));
        }
        fuzz_decode(Binary::new, &data);
        fuzz_decode(after_a_multi_get_of_three, &data);
    }
}
