//! Numbers in the form of the sentences of reports, and messages of servers as text that is safe to show.

use std::collections::BTreeMap;

/// A count with commas between thousands.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with what it counts, in the plural where the count is not 1.
pub fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(count))
}

/// The verb `was` or `were` of a sentence whose subject is this many of several things.
pub fn was(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

/// A share of 1 in percent: whole percents from 1 on, one digit below, and `0 %` for nothing.
pub fn percent(share: f64) -> String {
    match share {
        share if share <= 0.0 => "0 %".to_owned(),
        share if share < 0.000_5 => "below 0.1 %".to_owned(),
        share if share < 0.009_95 => format!("{:.1} %", share * 100.0),
        share => format!("{:.0} %", share * 100.0),
    }
}

/// A rate in requests per second, rounded to three digits from 1,000 on.
pub fn rate_text(rate: f64) -> String {
    if rate < 10.0 {
        return format!("{rate:.1}/s");
    }
    let mut step = 1.0;
    while rate / step >= 1_000.0 {
        step *= 10.0;
    }
    format!("{}/s", grouped((libm::round(rate / step) * step) as u64))
}

/// The number of different messages of servers that are kept.
pub const MESSAGES_KEPT: usize = 16;

/// Adds a message of a server to those that are kept.
pub(crate) fn count_message(kept: &mut BTreeMap<String, u64>, message: &[u8], count: u64) {
    let text = printable(message);
    if let Some(present) = kept.get_mut(&text) {
        *present += count;
    } else if kept.len() < MESSAGES_KEPT {
        kept.insert(text, count);
    }
}

/// Adds the messages that another part of the run has kept.
pub(crate) fn merge_messages(kept: &mut BTreeMap<String, u64>, others: &BTreeMap<String, u64>) {
    others.iter().for_each(|(message, count)| count_message(kept, message.as_bytes(), *count));
}

/// Bytes as text that does nothing to a terminal: bytes that are no text, and control characters, are replaced.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_may_be() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([counted(1, "stall"), counted(2_000, "stall")], ["1 stall", "2,000 stalls"]);
        assert_eq!([was(0), was(1), was(2)], ["were", "was", "were"]);
        let shares = [0.0, 0.000_1, 0.003, 0.009_96, 0.126, 0.98, 1.0].map(percent);
        assert_eq!(shares, ["0 %", "below 0.1 %", "0.3 %", "1 %", "13 %", "98 %", "100 %"]);
        let rates = [2.52, 998.0, 20_004.0, 1_361_234.0].map(rate_text);
        assert_eq!(rates, ["2.5/s", "998/s", "20,000/s", "1,360,000/s"]);
    }
}
