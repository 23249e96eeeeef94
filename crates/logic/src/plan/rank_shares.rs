//! Shares of the requests that the most popular records get, and the text for them.

use std::fmt;
use std::str::FromStr;

/// Most points of one list.
const POINTS_MAX: usize = 64;

/// Shares of the requests at some numbers of most popular records. Between two points the share rises with the logarithm of
/// the number; up to the first one all records are equally popular; what is left behind the last one belongs to all other
/// records.
#[derive(Clone, Debug, PartialEq)]
pub struct RankShares {
    points: Vec<RankShare>,
}

/// The share of the requests that so many most popular records get together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankShare {
    /// The number of records.
    pub ranks: RankCount,
    /// Share of the requests, 0 to 1.
    pub share: f64,
}

/// A number of records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RankCount {
    /// A fixed number, 1 or more.
    Records(u64),
    /// A share of all records, above 0 and at most 1.
    Share(f64),
}

impl RankCount {
    /// The number of so many records, at least 1 and at most all of them.
    pub fn of(self, records: u64) -> u64 {
        match self {
            RankCount::Records(count) => count.clamp(1, records),
            RankCount::Share(share) => (libm::round(share * records as f64) as u64).clamp(1, records),
        }
    }
}

impl RankShares {
    /// The points, in rising order; at least one.
    pub fn points(&self) -> &[RankShare] {
        &self.points
    }
}

/// `RANKS=SHARE,...`, where RANKS is a number or ends in `%`.
impl FromStr for RankShares {
    type Err = ();

    fn from_str(text: &str) -> Result<RankShares, ()> {
        let points: Option<Vec<RankShare>> = text.split(',').map(point).collect();
        let points = points.filter(|points| points.len() <= POINTS_MAX).ok_or(())?;
        let rises = points
            .windows(2)
            .all(|pair| pair[0].share <= pair[1].share && rises(pair[0].ranks, pair[1].ranks));
        if rises { Ok(RankShares { points }) } else { Err(()) }
    }
}

/// Whether two numbers rise; a number and a share can be compared only where the number of records is known.
fn rises(before: RankCount, after: RankCount) -> bool {
    match (before, after) {
        (RankCount::Records(before), RankCount::Records(after)) => before < after,
        (RankCount::Share(before), RankCount::Share(after)) => before < after,
        (RankCount::Records(_), RankCount::Share(_)) => true,
        (RankCount::Share(_), RankCount::Records(_)) => false,
    }
}

fn point(text: &str) -> Option<RankShare> {
    let (ranks, share) = text.split_once('=')?;
    let ranks = match ranks.strip_suffix('%') {
        Some(percent) => {
            let percent: f64 = percent.parse().ok()?;
            (percent > 0.0 && percent <= 100.0).then_some(RankCount::Share(percent / 100.0))?
        }
        None => ranks.parse().ok().filter(|&count: &u64| count >= 1).map(RankCount::Records)?,
    };
    let share: f64 = share.parse().ok()?;
    (0.0..=1.0).contains(&share).then_some(RankShare { ranks, share })
}

/// The text that parses to the same shares.
impl fmt::Display for RankShares {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, point) in self.points.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match point.ranks {
                RankCount::Records(count) => write!(out, "{comma}{count}={}", point.share)?,
                RankCount::Share(share) => {
                    let percent = libm::round(share * 1e13) / 1e11;
                    write!(out, "{comma}{percent}%={}", point.share)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_shares_reads_as_the_same_shares() {
        for text in ["1%=0.55,50%=0.99,100%=1", "1=0.066,10=0.195,50%=0.9", "0.1%=0.3", "7=1", "33.3%=0.5"] {
            let read: RankShares = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
            assert_eq!(read.to_string().parse::<RankShares>(), Ok(read));
        }
    }

    #[test]
    fn shares_that_fall_and_ranks_that_do_not_rise_are_refused() {
        let refused = [
            "",
            "1",
            "1=",
            "=1",
            "0=0.1",
            "1=1.1",
            "1=-0.1",
            "101%=1",
            "0%=1",
            "10=0.5,5=0.6",
            "1=0.5,2=0.4",
        ];
        for text in refused.into_iter().chain(["1=nan", "10%=0.1,10=0.2", "5%=0.1,5%=0.2", "1=0.1,,2=0.2"]) {
            assert!(text.parse::<RankShares>().is_err(), "{text:?}");
        }
        let many: Vec<String> = (1..=65).map(|rank| format!("{rank}=0.5")).collect();
        assert!(many.join(",").parse::<RankShares>().is_err());
    }
}
