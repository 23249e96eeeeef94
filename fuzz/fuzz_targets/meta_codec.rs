//! Any bytes from a server, cut in any way, read the same with the meta codec, and none make it panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pummel_logic::connection::outbox::Outbox;
use pummel_logic::protocol::meta::Meta;
use pummel_logic::protocol::{Codec, Keys, Op, Verb, contract};

fuzz_target!(|data: &[u8]| {
    contract::fuzz_decode(Meta::new, data);
    contract::fuzz_decode(after_multi_gets, data);
});

/// A codec that waits for a single reply, then for two multi-gets.
fn after_multi_gets() -> Meta {
    let mut codec = Meta::new();
    let mut out = Outbox::default();
    let two = Keys::Many { bytes: b"ab", ends: &[1, 2] };
    for (keys, tag) in [Keys::One(b"a"), two, two].into_iter().zip(1..) {
        codec.encode(&Op { keys, ..Op::new(Verb::Get, b"") }, tag, &mut out).expect("these can be said");
    }
    codec
}
