//! Events at a moment of a measured phase: a key becomes hot, or records are lost.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::as_text::{TextError, saved_as_text};
use crate::time::Nanos;

/// Most events of a plan.
pub const EVENTS_MAX: usize = 64;

/// Most records that one event makes the servers lose.
pub const LOST_MAX: u64 = 10_000;

/// An event at a moment of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Moment of the event, in nanoseconds from the beginning of the measured phase.
    pub at_ns: Nanos,
    /// Kind of the event.
    pub what: EventKind,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// A share of the requests for plain records is for one key, whatever else their popularity is.
    Hot(FlashCrowd),
    /// Records are deleted: each by one request, on every server that has it.
    Delete(RankRange),
    /// Records are given an expiry that has passed: each by one request, on every server that has it.
    Expire(RankRange),
}

/// A hot key, whose share of the requests rises linearly from 0, stays constant, and falls to 0 again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FlashCrowd {
    /// The key that gets hot.
    pub key: HotKey,
    /// The key's greatest share of the requests, above 0 and at most 1. The other keys share the rest as before.
    pub share: f64,
    /// Time in which the share rises, in nanoseconds.
    #[serde(default)]
    pub rise_ns: Nanos,
    /// Time for which the share stays, in nanoseconds.
    pub hold_ns: Nanos,
    /// Time in which the share falls, in nanoseconds.
    #[serde(default)]
    pub fall_ns: Nanos,
}

impl FlashCrowd {
    /// The share of the requests so many nanoseconds after the event began.
    pub fn share_at(&self, since_ns: Nanos) -> f64 {
        let falls_from = self.rise_ns.saturating_add(self.hold_ns);
        if since_ns < self.rise_ns {
            self.share * since_ns as f64 / self.rise_ns as f64
        } else if since_ns < falls_from {
            self.share
        } else if since_ns < self.length_ns() {
            self.share * (self.length_ns() - since_ns) as f64 / self.fall_ns as f64
        } else {
            0.0
        }
    }

    /// Time for which the key is hot, in nanoseconds.
    pub fn length_ns(&self) -> Nanos {
        self.rise_ns.saturating_add(self.hold_ns).saturating_add(self.fall_ns)
    }
}

/// The key of a flash crowd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HotKey {
    /// A new key, under which nothing is stored: a different one in every run.
    New,
    /// The key of the record of this rank, counted from 0.
    Rank(u64),
}

/// Records by their ranks, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankRange {
    /// The first, counted from 0.
    pub first: u64,
    /// The last, at least the first.
    pub last: u64,
}

impl RankRange {
    /// Number of records.
    pub fn records(self) -> u64 {
        self.last - self.first + 1
    }
}

/// `new`, or `rank:R`.
impl FromStr for HotKey {
    type Err = TextError;

    fn from_str(text: &str) -> Result<HotKey, TextError> {
        let rank = || text.strip_prefix("rank:")?.parse().ok().map(HotKey::Rank);
        let found = if text == "new" { Some(HotKey::New) } else { rank() };
        let accepted = "expected new, or rank:R with the rank of a record, counted from 0";
        found.ok_or_else(|| TextError { given: text.to_owned(), accepted })
    }
}

/// `rank:R`, or `rank:FIRST-LAST`.
impl FromStr for RankRange {
    type Err = TextError;

    fn from_str(text: &str) -> Result<RankRange, TextError> {
        let found = text.strip_prefix("rank:").and_then(|ranks| {
            let (first, last) = ranks.split_once('-').unwrap_or((ranks, ranks));
            let range = RankRange { first: first.parse().ok()?, last: last.parse().ok()? };
            (range.first <= range.last).then_some(range)
        });
        let accepted = "expected rank:R or rank:FIRST-LAST with ranks of records, counted from 0";
        found.ok_or_else(|| TextError { given: text.to_owned(), accepted })
    }
}

impl fmt::Display for HotKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HotKey::New => out.write_str("new"),
            HotKey::Rank(rank) => write!(out, "rank:{rank}"),
        }
    }
}

impl fmt::Display for RankRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            return write!(out, "rank:{}", self.first);
        }
        write!(out, "rank:{}-{}", self.first, self.last)
    }
}

saved_as_text!(HotKey, RankRange);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_ranges_are_the_texts_that_they_were_read_from() {
        for text in ["new", "rank:0", "rank:17"] {
            assert_eq!(text.parse::<HotKey>().map(|key| key.to_string()).as_deref(), Ok(text));
        }
        for text in ["rank:0-9", "rank:3"] {
            assert_eq!(text.parse::<RankRange>().map(|range| range.to_string()).as_deref(), Ok(text));
        }
        for text in ["", "old", "rank:", "rank:-1", "rank:9-0", "rank:0-", "rank:a"] {
            assert!(text.parse::<HotKey>().is_err() && text.parse::<RankRange>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_share_of_a_crowd_rises_holds_and_falls_in_straight_lines() {
        let crowd = FlashCrowd { key: HotKey::New, share: 0.4, rise_ns: 20, hold_ns: 200, fall_ns: 100 };
        let shares =
            [(0, 0.0), (5, 0.1), (20, 0.4), (219, 0.4), (220, 0.4), (270, 0.2), (320, 0.0), (u64::MAX, 0.0)];
        for (since_ns, share) in shares {
            assert!((crowd.share_at(since_ns) - share).abs() < 1e-12, "{since_ns}");
        }
        let sudden = FlashCrowd { rise_ns: 0, fall_ns: 0, ..crowd };
        assert_eq!([0, 199, 200].map(|since_ns| sudden.share_at(since_ns)), [0.4, 0.4, 0.0]);
    }
}
