//! A popularity that is known at some ranks: a table of buckets of equally popular records, drawn from with two numbers.

use crate::plan::{BucketShares, RankShares};
use crate::rng;

/// Most buckets of a table, so that it stays in a processor's cache.
const BUCKETS_MAX: usize = 2_048;

/// Buckets of records with their shares of the requests, as an alias table (Walker 1977, made in Vose's way, 1991): a column
/// belongs to its own bucket up to its limit, and to another bucket above it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ranks {
    buckets: Vec<Bucket>,
    columns: Vec<Column>,
}

/// Records that are equally popular.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bucket {
    first: u64,
    records: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Column {
    /// Fractions below this one belong to the column's own bucket.
    limit: u64,
    /// The bucket of all other fractions.
    other: u32,
}

impl Ranks {
    /// The table of `records` records, where the most popular ones have these shares.
    pub(super) fn new(shares: &RankShares, records: u64) -> Ranks {
        let (buckets, weights): (Vec<Bucket>, Vec<f64>) = buckets(shares, records).into_iter().unzip();
        let columns = columns(&weights);
        Ranks { buckets, columns }
    }

    /// The table of `records` records in these buckets of equally popular ones. Neighbouring buckets are merged if
    /// there are too many. If the buckets have more records than `records`, the last records get the rest; records
    /// beyond all buckets get nothing.
    pub(super) fn of_buckets(shares: &BucketShares, records: u64) -> Ranks {
        let together = shares.buckets().len().div_ceil(BUCKETS_MAX);
        let total: f64 = shares.buckets().iter().map(|bucket| bucket.weight).sum();
        let (mut buckets, mut weights) = (Vec::new(), Vec::new());
        let (mut first, mut left) = (0, 1.0);
        for group in shares.buckets().chunks(together) {
            let size: u64 = group.iter().map(|bucket| bucket.records).sum();
            let weight = group.iter().map(|bucket| bucket.weight).sum::<f64>() / total;
            let is_cut = first + size >= records;
            buckets.push(Bucket { first, records: if is_cut { records - first } else { size } });
            weights.push(if is_cut { left } else { weight });
            if is_cut {
                break;
            }
            (first, left) = (first + size, (left - weight).max(0.0));
        }
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= sum);
        let columns = columns(&weights);
        Ranks { buckets, columns }
    }

    /// The record of two independent draws of 64 bits.
    #[inline]
    pub(super) fn record(&self, column_bits: u64, place_bits: u64) -> u64 {
        let product = u128::from(column_bits) * self.columns.len() as u128;
        let at = (product >> 64) as usize;
        let column = self.columns[at];
        let bucket = self.buckets[if (product as u64) < column.limit { at } else { column.other as usize }];
        bucket.first + rng::below(place_bits, bucket.records)
    }
}

/// Buckets in the order of their ranks, with their shares of the requests, which add up to 1.
fn buckets(shares: &RankShares, records: u64) -> Vec<(Bucket, f64)> {
    let points = points(shares, records);
    let steps = (BUCKETS_MAX / points.len()).max(1);
    let mut buckets = Vec::with_capacity(BUCKETS_MAX);
    let (mut rank, mut share) = (0, 0.0);
    for (until, share_until) in points {
        // Below the first point nothing is known but the sum, and a logarithm of 0 has no meaning.
        let parts = if rank == 0 { 1 } else { steps };
        let (before, share_before) = (rank, share);
        for part in 1..=parts {
            let end = edge(before, until, part, parts);
            if end <= rank {
                continue;
            }
            let reached = if end == until {
                share_until
            } else {
                share_before + (share_until - share_before) * log_place(before, until, end)
            };
            buckets.push((Bucket { first: rank, records: end - rank }, (reached - share).max(0.0)));
            (rank, share) = (end, reached);
        }
    }
    buckets
}

/// Numbers of records with the shares of the requests for the most popular ones, rising, up to all records. Points that so
/// few records have no room for are left out.
fn points(shares: &RankShares, records: u64) -> Vec<(u64, f64)> {
    let mut points: Vec<(u64, f64)> = Vec::with_capacity(shares.points().len() + 1);
    for point in shares.points() {
        let rank = point.ranks.of(records);
        match points.last_mut() {
            Some(last) if last.0 >= rank => last.1 = last.1.max(point.share),
            _ => points.push((rank, point.share)),
        }
    }
    match points.last_mut() {
        // Whatever share is left belongs to the records behind the last point.
        Some(last) if last.0 >= records => last.1 = 1.0,
        _ => points.push((records, 1.0)),
    }
    points
}

/// The last rank of part `part` of `parts` between two ranks, at equal distances of the logarithm.
fn edge(before: u64, until: u64, part: usize, parts: usize) -> u64 {
    if part == parts {
        return until;
    }
    let (low, high) = (before as f64, until as f64);
    let edge = low * libm::pow(high / low, part as f64 / parts as f64);
    (libm::round(edge) as u64).clamp(before, until)
}

/// Place of a rank between two others, from 0 to 1, by its logarithm.
fn log_place(before: u64, until: u64, rank: u64) -> f64 {
    let low = before as f64;
    libm::log(rank as f64 / low) / libm::log(until as f64 / low)
}

/// The columns of an alias table for these weights, which add up to 1.
fn columns(weights: &[f64]) -> Vec<Column> {
    let count = weights.len();
    let mut heights: Vec<f64> = weights.iter().map(|weight| weight * count as f64).collect();
    let (mut low, mut high): (Vec<usize>, Vec<usize>) = (0..count).partition(|&at| heights[at] < 1.0);
    let mut columns: Vec<Column> =
        (0..count).map(|at| Column { limit: u64::MAX, other: at as u32 }).collect();
    while let (Some(small), Some(&large)) = (low.pop(), high.last()) {
        columns[small] = Column { limit: (heights[small] * u64::MAX as f64) as u64, other: large as u32 };
        heights[large] -= 1.0 - heights[small];
        if heights[large] < 1.0 {
            high.pop();
            low.push(large);
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    fn shares(text: &str) -> RankShares {
        text.parse().unwrap()
    }

    /// The share of the requests for the records below each rank, of `draws` draws.
    fn seen(ranks: &Ranks, records: u64, below: &[u64], draws: u64) -> Vec<f64> {
        let stream = Stream::from_seed(11);
        let mut counts = vec![0u64; below.len()];
        for i in 0..draws {
            let record = ranks.record(stream.draw(i), stream.draw_sub(i, 1));
            assert!(record < records, "record {record} of {records}");
            below.iter().zip(&mut counts).for_each(|(&rank, count)| *count += u64::from(record < rank));
        }
        counts.iter().map(|&count| count as f64 / draws as f64).collect()
    }

    #[test]
    fn the_most_popular_records_get_their_shares() {
        let records = 1_000_000;
        let ranks = Ranks::new(&shares("1%=0.55,50%=0.99,100%=1"), records);
        let below = [10_000, 70_711, 500_000, 1_000_000];
        let expected = [0.55, 0.55 + 0.44 * (7.0711f64.ln() / 50f64.ln()), 0.99, 1.0];
        for (found, expected) in seen(&ranks, records, &below, 400_000).into_iter().zip(expected) {
            assert!((found - expected).abs() < 0.005, "{found}, expected {expected}");
        }
    }

    #[test]
    fn single_ranks_get_their_shares_as_a_table_says() {
        let table =
            "1=0.066,10=0.195,100=0.294,1000=0.409,10000=0.565,100000=0.721,1000000=0.863,5241821=0.967";
        let records = 10_483_642;
        let ranks = Ranks::new(&shares(table), records);
        let below = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 5_241_821];
        let expected = [0.066, 0.195, 0.294, 0.409, 0.565, 0.721, 0.863, 0.967];
        for (found, expected) in seen(&ranks, records, &below, 400_000).into_iter().zip(expected) {
            assert!((found - expected).abs() < 0.005, "{found}, expected {expected}");
        }
    }

    #[test]
    fn weights_add_up_and_buckets_hold_every_record_once_however_few_there_are() {
        for records in [1, 2, 3, 10, 999, 12_345, 1 << 40] {
            for text in ["1%=0.55,50%=0.99,100%=1", "1=0.1,10=0.2,100=0.3", "100%=1", "50%=1"] {
                let made = buckets(&shares(text), records);
                let sum: f64 = made.iter().map(|(_, share)| share).sum();
                assert!((sum - 1.0).abs() < 1e-9, "{text} of {records}: {sum}");
                assert!(made.len() <= BUCKETS_MAX + 64);
                let mut next = 0;
                for (bucket, _) in &made {
                    assert_eq!(bucket.first, next);
                    next += bucket.records;
                }
                assert_eq!(next, records, "{text}");
            }
        }
    }

    #[test]
    fn buckets_get_their_weights_and_are_cut_where_there_are_fewer_records() {
        let seen_of = |text: &str, records: u64, below: &[u64]| {
            let table = Ranks::of_buckets(&text.parse().unwrap(), records);
            seen(&table, records, below, 200_000)
        };
        let many: Vec<String> = (0..5_000).map(|_| "2@1".to_owned()).collect();
        for (text, records, below, expected) in [
            ("1@60,9@30,90@10", 100, [1, 10, 100], [0.6, 0.9, 1.0]),
            ("1@60,9@30,90@10", 1_000, [1, 10, 100], [0.6, 0.9, 1.0]),
            ("1@60,9@30,90@10", 5, [1, 3, 5], [0.6, 0.8, 1.0]),
            (&*many.join(","), 10_000, [1_000, 5_000, 10_000], [0.1, 0.5, 1.0]),
        ] {
            for (found, expected) in seen_of(text, records, &below).into_iter().zip(expected) {
                assert!((found - expected).abs() < 0.006, "{records}: {found}, expected {expected}");
            }
        }
    }

    #[test]
    fn columns_give_each_bucket_its_weight() {
        let weights = [0.5, 0.125, 0.25, 0.1, 0.025];
        let columns = columns(&weights);
        let mut found = [0.0; 5];
        for (at, column) in columns.iter().enumerate() {
            let own = column.limit as f64 / u64::MAX as f64;
            found[at] += own / 5.0;
            found[column.other as usize] += (1.0 - own) / 5.0;
        }
        for (found, expected) in found.into_iter().zip(weights) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
    }
}
