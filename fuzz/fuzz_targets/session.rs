//! Any script of requests, sends, replies, stamps and closes ends every request of a connection exactly once.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pummel_logic::connection::script;
use pummel_logic::protocol::{binary::Binary, meta::Meta, text::Text};

fuzz_target!(|data: &[u8]| {
    script::play::<Text>(data);
    script::play::<Meta>(data);
    script::play::<Binary>(data);
});
