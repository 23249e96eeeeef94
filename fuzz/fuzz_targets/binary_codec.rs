//! Any bytes from a server, cut in any way, read the same with the binary codecs, and none make them panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pummel_logic::connection::outbox::Outbox;
use pummel_logic::protocol::binary::{Binary, PlainBinary};
use pummel_logic::protocol::{Codec, Keys, Op, Verb, contract};

fuzz_target!(|data: &[u8]| {
    contract::fuzz_decode(Binary::new, data);
    contract::fuzz_decode(after_multi_gets, data);
});

/// A codec that waits for a single reply, then for two and three in a row.
fn after_multi_gets() -> PlainBinary {
    let mut codec = PlainBinary::new();
    let mut out = Outbox::default();
    for keys in [
        Keys::One(b"a"),
        Keys::Many { bytes: b"ab", ends: &[1, 2] },
        Keys::Many { bytes: b"abc", ends: &[1, 2, 3] },
    ] {
        codec.encode(&Op { keys, ..Op::new(Verb::Get, b"") }, 0, &mut out).expect("these can be said");
    }
    codec
}
