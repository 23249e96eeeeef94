//! Any bytes from a server, cut in any way, read the same with the codec of every protocol, and none make it panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pummel_logic::plan::{CodecOptions, Protocol, WithCodec};
use pummel_logic::protocol::{Codec, contract};

fuzz_target!(|data: &[u8]| {
    for protocol in Protocol::ALL {
        protocol.with_codec(CodecOptions::default(), ReadsEqually(data));
    }
});

/// Bytes that read the same however they are cut.
struct ReadsEqually<'a>(&'a [u8]);

impl WithCodec for ReadsEqually<'_> {
    type Output = ();

    fn with_codec<C: Codec + Sync>(self, codec: C) {
        contract::fuzz_decode(|| codec.renew(), self.0);
    }
}
