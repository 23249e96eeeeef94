//! A range of the hash slots of a cluster, and the text for it.

use std::fmt;
use std::str::FromStr;

use super::as_text::{TextError, saved_as_text};

/// The accepted text of a range of slots.
const ACCEPTED: &str = "expected a slot or a range of slots from 0 to 16383, such as 0-5460";

/// Neighbouring hash slots of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRange {
    /// The first slot.
    pub first: u16,
    /// The last slot.
    pub last: u16,
}

/// A range from text of the form `FIRST-LAST` or `SLOT`.
impl FromStr for SlotRange {
    type Err = TextError;

    fn from_str(text: &str) -> Result<SlotRange, TextError> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let slot = |text: &str| text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        match (slot(first), slot(last)) {
            (Some(first), Some(last)) => Ok(SlotRange { first, last }),
            _ => Err(TextError { given: text.to_owned(), accepted: ACCEPTED }),
        }
    }
}

/// The text that parses to the same range.
impl fmt::Display for SlotRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(out, "{}", self.first),
            false => write!(out, "{}-{}", self.first, self.last),
        }
    }
}

saved_as_text!(SlotRange);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_range_reads_as_the_same_range() {
        for (text, first, last) in [("0-5460", 0, 5_460), ("7", 7, 7), ("9-3", 9, 3), ("0-65535", 0, 65_535)]
        {
            let range: SlotRange = text.parse().expect("it is a range");
            assert_eq!(range, SlotRange { first, last });
            assert_eq!(range.to_string(), text);
        }
        for text in ["", "-", "1-", "-1", "+1-2", "1-2-3", "a-b", "0-65536", "0..5"] {
            let refused = text.parse::<SlotRange>().expect_err("it is no range");
            assert_eq!(refused.given, text);
        }
    }
}
