//! Errors that servers sent, as text that is safe to show, with a limit on how much of it is kept.

use std::collections::BTreeMap;

/// The number of different messages of servers that are kept.
pub const MESSAGES_KEPT: usize = 16;

/// Adds a message of a server to those that are kept.
pub(super) fn count_message(kept: &mut BTreeMap<String, u64>, message: &[u8], count: u64) {
    let text = printable(message);
    if let Some(present) = kept.get_mut(&text) {
        *present += count;
    } else if kept.len() < MESSAGES_KEPT {
        kept.insert(text, count);
    }
}

/// Bytes as text that does nothing to a terminal: bytes that are no text, and control characters, are replaced.
pub(super) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.replace(char::is_control, "\u{fffd}")
}
