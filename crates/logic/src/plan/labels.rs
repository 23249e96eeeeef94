//! Labels of a run: names and values from the user by which its result is found and distinguished.

use std::collections::BTreeMap;

/// The labels of a run, by name.
pub type Labels = BTreeMap<String, String>;

/// Most labels of a run.
pub const LABELS_MAX: usize = 32;

/// Longest name of a label, in bytes.
const NAME_MAX_BYTES: usize = 64;

/// Longest value of a label, in bytes.
const VALUE_MAX_BYTES: usize = 256;

/// The accepted form of a label, for error messages.
pub const LABEL_ACCEPTED: &str = "expected NAME=VALUE, NAME being up to 64 letters, digits and _ with no digit first, and \
                                  VALUE up to 256 bytes without control characters";

/// Whether a label can be part of a result, of a page and of the metrics of Prometheus, which narrows its name.
pub fn is_label(name: &str, value: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_name = name.len() <= NAME_MAX_BYTES
        && name.bytes().all(is_word)
        && name.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    is_name && value.len() <= VALUE_MAX_BYTES && !value.chars().any(char::is_control)
}

/// Labels as `name=value`, separated in a list; empty without labels.
pub fn labels_text(labels: &Labels) -> String {
    labels.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_that_metrics_can_have_and_a_value_is_one_line() {
        let longest = ("n".repeat(64), "v".repeat(256));
        for (name, value) in
            [("branch", "main"), ("_a1", ""), ("B", "ä = b, \"c\""), (&longest.0, &longest.1)]
        {
            assert!(is_label(name, value), "{name}={value}");
        }
        let long = ("n".repeat(65), "v".repeat(257));
        for (name, value) in
            [("", "x"), ("1a", "x"), ("a-b", "x"), ("ä", "x"), ("a", "x\ny"), (&long.0, "x"), ("a", &long.1)]
        {
            assert!(!is_label(name, value), "{name}={value}");
        }
    }
}
