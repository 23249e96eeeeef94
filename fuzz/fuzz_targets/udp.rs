//! Any script of requests and datagrams ends every request over UDP exactly once, and no datagram breaks anything.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pummel_logic::connection::script;
use pummel_logic::protocol::text::Text;

fuzz_target!(|data: &[u8]| script::play_datagrams::<Text>(data));
