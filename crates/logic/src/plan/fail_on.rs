//! The faults, other than missed goals, that make a complete run count as failed.

use std::fmt;
use std::str::FromStr;

use super::as_text::saved_as_text;

/// Parts of a whole in which the share of [`FailOn::Outcomes`] is kept.
const PARTS: f64 = 1e6;

/// The beginning of the words of [`FailOn::Outcomes`].
const OUTCOMES: &str = "outcomes";

/// A fault that makes a run count as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailOn {
    /// The generator was the limit.
    Limited,
    /// The times may not be believed.
    Untrusted,
    /// A request failed or got no answer.
    Errors,
    /// The run was not at one level from its beginning to its end.
    Unsteady,
    /// More requests were due than were answered, and their backlog grew to the end.
    Overloaded,
    /// A write that was acknowledged was not there when the keys were read back.
    Lost,
    /// More than this share, in millionths, of the answered requests that may store or find nothing did so.
    Outcomes(u32),
}

impl FailOn {
    /// All faults without a value, in the order of help texts.
    pub const ALL: [FailOn; 6] = [
        FailOn::Limited,
        FailOn::Untrusted,
        FailOn::Errors,
        FailOn::Unsteady,
        FailOn::Overloaded,
        FailOn::Lost,
    ];

    /// The forms that command lines accept, in the order of help texts.
    pub const ACCEPTED: [&str; 7] =
        ["limited", "untrusted", "errors", "unsteady", "overloaded", "lost", "outcomes:SHARE"];

    /// The name of the fault on command lines, in Plans and in reports, without its value.
    pub fn name(self) -> &'static str {
        match self {
            FailOn::Limited => "limited",
            FailOn::Untrusted => "untrusted",
            FailOn::Errors => "errors",
            FailOn::Unsteady => "unsteady",
            FailOn::Overloaded => "overloaded",
            FailOn::Lost => "lost",
            FailOn::Outcomes(_) => OUTCOMES,
        }
    }

    /// The fault that these words name, such as `errors` or `outcomes:5%`; `None` if there is none. A share is at least 0 and less
    /// than 1, with six digits at most.
    pub fn from_words(words: &str) -> Option<FailOn> {
        if let Some(share) = words.strip_prefix(OUTCOMES).and_then(|rest| rest.strip_prefix(':')) {
            return share_of(share).map(FailOn::Outcomes);
        }
        FailOn::ALL.into_iter().find(|fail_on| fail_on.name() == words)
    }
}

/// A share as `5%` or `0.05`, in millionths.
fn share_of(text: &str) -> Option<u32> {
    let (digits, whole) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 100.0));
    let is_plain = digits.starts_with(|first: char| first.is_ascii_digit())
        && digits.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    let share = digits.parse::<f64>().ok().filter(|_| is_plain)? / whole;
    let parts = (share * PARTS).round();
    let is_exact = (share * PARTS - parts).abs() < 1e-3;
    (is_exact && (0.0..PARTS).contains(&parts)).then_some(parts as u32)
}

impl fmt::Display for FailOn {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailOn::Outcomes(parts) => write!(to, "{OUTCOMES}:{}%", f64::from(*parts) / (PARTS / 100.0)),
            plain => to.write_str(plain.name()),
        }
    }
}

impl FromStr for FailOn {
    type Err = String;

    fn from_str(words: &str) -> Result<FailOn, String> {
        let accepted = || format!("expected one of {}", FailOn::ACCEPTED.join(", "));
        FailOn::from_words(words).ok_or_else(accepted)
    }
}

saved_as_text!(FailOn);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_read_as_it_is_written() {
        for (words, fault) in [
            ("errors", FailOn::Errors),
            ("outcomes:5%", FailOn::Outcomes(50_000)),
            ("outcomes:0.05", FailOn::Outcomes(50_000)),
            ("outcomes:0", FailOn::Outcomes(0)),
            ("outcomes:0.0001%", FailOn::Outcomes(1)),
        ] {
            assert_eq!(FailOn::from_words(words), Some(fault), "{words}");
            assert_eq!(FailOn::from_words(&fault.to_string()), Some(fault), "{fault}");
        }
        for words in
            ["", "outcomes", "outcomes:", "outcomes:100%", "outcomes:-1", "outcomes:nan", "outcomes:1e-9"]
        {
            assert_eq!(FailOn::from_words(words), None, "{words}");
        }
        let json = serde_json::to_string(&[FailOn::Limited, FailOn::Outcomes(50_000)]).expect("JSON");
        assert_eq!(json, r#"["limited","outcomes:5%"]"#);
    }
}
