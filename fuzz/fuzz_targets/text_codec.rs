//! Any bytes from a server, cut in any way, read the same with the text codec, and none make it panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pummel_logic::protocol::{Codec, contract, text::Text};

fuzz_target!(|data: &[u8]| contract::fuzz_decode(Text::new, data));
