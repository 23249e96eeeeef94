//! Keys that change: how long each record of the ranking keeps its key, and the text for it.

use std::fmt;
use std::str::FromStr;

use super::as_text::saved_as_text;
use crate::dist::{Dist, Range, Weighted};

/// The forms of a churn, as messages name them.
pub const CHURN_ACCEPTED: &str = "a time, a distribution of times, default (70 % of the records live 15 minutes and 30 % a \
                                  day), requests:LIFE with a life in requests of all clients, or share:SHARE with the records \
                                  that are replaced for each request, above 0 and at most 1";

/// Lives in seconds and their shares, of which 53 % of the records are left after ten minutes and 29 % after an hour: at Meta
/// half of the hottest tenth have left after ten minutes, and over two thirds after an hour (Berg et al., "The CacheLib Caching
/// Engine", OSDI 2020).
const DEFAULT_LIVES: [(u64, f64); 2] = [(900, 70.0), (86_400, 30.0)];

/// The least life, in seconds and in requests.
pub const LIFE_MIN: (f64, f64) = (0.001, 1.0);

/// The lives of the records' keys. At the end of its life a record gets another key, under which nothing was ever
/// stored; its popularity stays.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyChurn {
    /// The lives of the records, in seconds.
    Seconds(Dist),
    /// The lives of the records, in requests of all clients. A client takes the number of its own requests, multiplied by the
    /// number of clients, for that of all.
    Requests(Dist),
    /// Records that are replaced for each request on average, above 0 and at most 1: all records live equally many requests.
    Share(f64),
}

impl KeyChurn {
    /// The default lives.
    pub fn usual() -> KeyChurn {
        let ranges = DEFAULT_LIVES.map(|(life, weight)| Range { low: life, high: life, weight });
        let lives = Weighted::new(ranges.to_vec()).map_or(Dist::Fixed(900.0), Dist::Weighted);
        KeyChurn::Seconds(lives)
    }

    /// Whether lives are counted in requests, and not in time.
    pub fn counts_requests(&self) -> bool {
        !matches!(self, KeyChurn::Seconds(_))
    }
}

/// Text that is not a churn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChurnError(pub String);

impl fmt::Display for ChurnError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{CHURN_ACCEPTED}; not '{}'", self.0)
    }
}

impl std::error::Error for ChurnError {}

/// A distribution of seconds, `default`, `requests:DIST` or `share:SHARE`.
impl FromStr for KeyChurn {
    type Err = ChurnError;

    fn from_str(text: &str) -> Result<KeyChurn, ChurnError> {
        let wrong = || ChurnError(text.to_owned());
        let dist = |text: &str| text.parse::<Dist>().map_err(|_| wrong());
        match text.split_once(':') {
            None if text == "default" => Ok(KeyChurn::usual()),
            Some(("requests", lives)) => dist(lives).map(KeyChurn::Requests),
            Some(("share", share)) => share.parse().map(KeyChurn::Share).map_err(|_| wrong()),
            _ => dist(text).map(KeyChurn::Seconds),
        }
    }
}

/// The text that parses to the same churn.
impl fmt::Display for KeyChurn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyChurn::Seconds(lives) => write!(out, "{lives}"),
            KeyChurn::Requests(lives) => write!(out, "requests:{lives}"),
            KeyChurn::Share(share) => write!(out, "share:{share}"),
        }
    }
}

saved_as_text!(KeyChurn);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_churn_is_the_text_that_it_was_read_from() {
        for text in ["900", "exponential:60", "requests:1000000", "share:0.004", "weighted:1-2@3,4-5@6"] {
            let churn: KeyChurn = text.parse().expect("it is a churn");
            assert_eq!(churn.to_string(), text);
            assert_eq!(churn.counts_requests(), text.starts_with("requests") || text.starts_with("share"));
        }
        let usual: KeyChurn = "default".parse().expect("it is a churn");
        assert_eq!(usual.to_string(), "weighted:900-900@70,86400-86400@30");
        assert_eq!(usual.to_string().parse(), Ok(usual));
        for text in ["", "often", "requests:", "share:much", "requests:often"] {
            let error = text.parse::<KeyChurn>().expect_err("it is none");
            assert!(error.to_string().ends_with(&format!("not '{text}'")), "{error}");
        }
    }
}
