//! Any bytes from a server are read as a reply to `CLUSTER SLOTS` that can be, or refused, and none make the reader panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pummel_logic::cluster::contract;

fuzz_target!(|data: &[u8]| contract::fuzz_slots_reply(data));
