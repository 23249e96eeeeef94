//! Any bytes from a client, in any dialect and cut in any way, are answered the same, and none make the server panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pummel_testserver::fuzz_connection;

fuzz_target!(|data: &[u8]| {
    if let Some((&step, bytes)) = data.split_first() {
        fuzz_connection(bytes, usize::from(step));
    }
});
