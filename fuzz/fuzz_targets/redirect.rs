//! Any message of an error is read as a redirect that can be, or as none, and none make the reader panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pummel_logic::cluster::contract;

fuzz_target!(|data: &[u8]| contract::fuzz_redirect(data));
