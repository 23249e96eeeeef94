//! Numbers of equally popular records with the weights of their requests, and the text for them.

use std::fmt;
use std::str::FromStr;

/// Most buckets of one list.
const BUCKETS_MAX: usize = 65_536;

/// Most records of all buckets together.
const RECORDS_MAX: u64 = 1 << 40;

/// Buckets of equally popular records, the most popular ones first as far as their source has it so.
#[derive(Clone, Debug, PartialEq)]
pub struct BucketShares {
    buckets: Vec<BucketShare>,
}

/// Records that are equally popular.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BucketShare {
    /// Number of records, 1 or more.
    pub records: u64,
    /// Weight of the requests for all of them together, 0 or more.
    pub weight: f64,
}

impl BucketShares {
    /// The buckets, of which one at least has a weight above 0.
    pub fn buckets(&self) -> &[BucketShare] {
        &self.buckets
    }

    /// Number of the records in all buckets.
    pub fn records(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.records).sum()
    }

    /// Returns these buckets; `None` for more than 65,536 of them, and where a number, a weight or the sum of either
    /// is out of range.
    pub fn new(buckets: Vec<BucketShare>) -> Option<BucketShares> {
        let weight: f64 = buckets.iter().map(|bucket| bucket.weight).sum();
        let records = buckets.iter().try_fold(0u64, |sum, bucket| sum.checked_add(bucket.records))?;
        let is_bucket = |bucket: &BucketShare| bucket.records > 0 && bucket.weight >= 0.0;
        let is_sound = buckets.len() <= BUCKETS_MAX && buckets.iter().all(is_bucket);
        let is_sound = is_sound && records <= RECORDS_MAX && weight > 0.0 && weight.is_finite();
        is_sound.then_some(BucketShares { buckets })
    }
}

/// Buckets from text of the form `RECORDS@WEIGHT,...`.
impl FromStr for BucketShares {
    type Err = ();

    fn from_str(text: &str) -> Result<BucketShares, ()> {
        let bucket = |text: &str| {
            let (records, weight) = text.split_once('@')?;
            Some(BucketShare { records: records.parse().ok()?, weight: weight.parse().ok()? })
        };
        let buckets: Option<Vec<BucketShare>> = text.split(',').map(bucket).collect();
        buckets.and_then(BucketShares::new).ok_or(())
    }
}

/// The text that parses to the same buckets.
impl fmt::Display for BucketShares {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, bucket) in self.buckets.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(out, "{comma}{}@{}", bucket.records, bucket.weight)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_buckets_reads_as_the_same_buckets() {
        for text in ["1@66,9@129.5,90@0", "7@1"] {
            let read: BucketShares = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
            assert_eq!(
                read.records(),
                text.split(',')
                    .map(|one| one.split_once('@').unwrap().0.parse::<u64>().unwrap())
                    .sum::<u64>()
            );
        }
        let refused = [
            "",
            "1",
            "0@1",
            "1@-1",
            "1@0",
            "1@nan",
            "1@inf",
            "1@1,",
            "x@1",
            "1.5@1",
            "18446744073709551615@1",
        ];
        for text in refused.into_iter().chain(["1@1e308,1@1e308", "18446744073709551615@1,1@1"]) {
            assert!(text.parse::<BucketShares>().is_err(), "{text:?}");
        }
    }
}
