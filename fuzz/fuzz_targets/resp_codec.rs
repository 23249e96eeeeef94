//! Any bytes from a server, cut in any way, read the same with the RESP codecs, and none make them panic.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use pummel_logic::connection::outbox::Outbox;
use pummel_logic::protocol::resp::template::Template;
use pummel_logic::protocol::resp::{Resp, Resp2, Resp3};
use pummel_logic::protocol::{Codec, Keys, Op, Verb, contract};

fuzz_target!(|data: &[u8]| {
    contract::fuzz_decode(Resp2::new, data);
    contract::fuzz_decode(Resp3::new, data);
    contract::fuzz_decode(after_one_of_each::<2>, data);
    contract::fuzz_decode(after_one_of_each::<3>, data);
    contract::fuzz_decode(after_a_sequence::<2>, data);
    contract::fuzz_decode(after_a_sequence::<3>, data);
});

/// A codec that waits for one reply of each kind, and for two multi-gets.
fn after_one_of_each<const VERSION: u8>() -> Resp<VERSION> {
    let mut codec = Resp::new();
    let mut out = Outbox::default();
    let three = Op { keys: Keys::Many { bytes: b"abc", ends: &[1, 2, 3] }, ..Op::new(Verb::Get, b"") };
    let one = |verb| Op::new(verb, b"a");
    for op in [
        one(Verb::Get),
        three,
        one(Verb::Set),
        three,
        one(Verb::Incr),
        one(Verb::Delete),
        one(Verb::Touch),
        one(Verb::Append),
        one(Verb::Version),
    ] {
        codec.encode(&op, 0, &mut out).expect("these can be said");
    }
    codec.encode_command(&[b"COMMAND"], &mut out);
    codec
}

/// A codec that waits for the replies to a transaction with what goes before it, and for one to another command.
fn after_a_sequence<const VERSION: u8>() -> Resp<VERSION> {
    let texts = ["SET k v ; WATCH k ; GET k ; MULTI ; INCR k ; SET k v ; EXEC ; GET k", "MGET k l"];
    let templates = texts.map(|text| Template::parse(text).expect("a template"));
    let mut codec = Resp::with_commands(Arc::new(templates.to_vec()));
    for verb in [Verb::Command, Verb::Command2] {
        codec.encode(&Op::new(verb, b"k"), 0, &mut Outbox::default()).expect("these can be said");
    }
    codec
}
