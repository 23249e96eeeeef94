//! The arrival processes that a Plan can name, with the word and the description of each.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::dist::Dist;

/// The process that decides at which times the requests of a client are due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// The next when a slot is free: closed loop.
    Closed,
    /// At equal distances; clients are shifted against each other.
    Constant,
    /// At exponential gaps.
    Poisson,
    /// At gaps of this shape, scaled so that their mean fits the rate.
    Shape(Dist),
    /// At the times of the trace that is replayed.
    Trace,
    /// Bursts of so many requests at once, at equal distances; clients are shifted against each other as single requests would be.
    Bursts(u32),
}

/// The word of bursts, with their size behind it.
const BURSTS: &str = "bursts:";

/// Most requests of a burst.
pub const BURST_MAX: u32 = 1_000_000;

/// The open processes that have a word of their own on a command line.
const NAMED: [(&str, Arrivals); 3] = [
    ("poisson", Arrivals::Poisson),
    ("constant", Arrivals::Constant),
    ("uniform", Arrivals::Shape(Dist::Uniform { low: 0.0, high: 2.0 })),
];

impl Arrivals {
    /// The open process of that word; `None` for a word that is none of them.
    pub fn from_name(name: &str) -> Option<Arrivals> {
        let size = name.strip_prefix(BURSTS).and_then(|size| size.parse().ok());
        let named = NAMED.into_iter().find_map(|(word, arrivals)| (word == name).then_some(arrivals));
        named.or(size.map(Arrivals::Bursts))
    }

    /// The words of all open processes that have one, with commas between them.
    pub fn names() -> String {
        format!("{}, {BURSTS}N", NAMED.map(|(word, _)| word).join(", "))
    }
}

/// The words of reports.
impl fmt::Display for Arrivals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arrivals::Closed => out.write_str("closed loop"),
            Arrivals::Constant => out.write_str("constant gaps"),
            Arrivals::Poisson => out.write_str("poisson"),
            Arrivals::Shape(dist) => write!(out, "gaps {dist}"),
            Arrivals::Trace => out.write_str("as in the trace"),
            Arrivals::Bursts(size) => write!(out, "bursts of {size}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_process_is_found_by_its_word() {
        for (word, arrivals) in NAMED {
            assert_eq!(Arrivals::from_name(word), Some(arrivals));
        }
        assert_eq!(Arrivals::from_name("closed"), None);
        assert_eq!(Arrivals::from_name("bursts:20"), Some(Arrivals::Bursts(20)));
        assert_eq!([Arrivals::from_name("bursts"), Arrivals::from_name("bursts:x")], [None, None]);
        assert_eq!(Arrivals::names(), "poisson, constant, uniform, bursts:N");
        assert_eq!(Arrivals::Bursts(20).to_string(), "bursts of 20");
    }
}
