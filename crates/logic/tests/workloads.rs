//! Draws of the popularities of named workloads against their closed forms, without a server.

use pummel_logic::dist::Dist;
use pummel_logic::plan::Popularity;
use pummel_logic::rng::Stream;
use pummel_logic::workload::popularity::{Chooser, ycsb_hash};
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Ranks that are hashed one by one; all behind them spread evenly.
const RANKS_HASHED: u64 = 1_000_000;

/// Sum of rank^-0.99 over all ranks of YCSB.
const ZETA: f64 = 26.469_028_201_783_02;

fn chooser(text: &str, records: u64) -> Chooser {
    Chooser::new(&text.parse::<Popularity>().unwrap(), records, 0, 1)
}

/// Draws against the folded law, in which the hashes of the first million ranks stand for themselves and the rest is even.
#[test]
fn ycsbs_law_over_1000_records_passes_a_chi_square_test() {
    let records = 1_000;
    let mut expected = vec![0.0; records as usize];
    let mut hashed = 0.0;
    for rank in 0..RANKS_HASHED {
        let share = ((rank + 1) as f64).powf(-0.99) / ZETA;
        expected[(ycsb_hash(rank) % records) as usize] += share;
        hashed += share;
    }
    expected.iter_mut().for_each(|share| *share += (1.0 - hashed) / records as f64);
    let law = ChiSquared::new(records as f64 - 1.0).unwrap();
    for seed in 1..=3 {
        let draws = 300_000;
        let (chooser, stream) = (chooser("ycsb", records), Stream::from_seed(seed));
        let mut counts = vec![0u32; records as usize];
        (0..draws).for_each(|i| counts[chooser.choose(&stream, i) as usize] += 1);
        let each = counts.iter().zip(&expected).map(|(&count, share)| {
            let expected = share * draws as f64;
            (f64::from(count) - expected).powi(2) / expected
        });
        let p = 1.0 - law.cdf(each.sum());
        assert!(p > 0.001, "seed {seed}: p = {p}");
    }
}

/// A popularity, a number of records, and ranks with the shares of the requests below them.
type Case<'a> = (&'a str, u64, &'a [(u64, f64)]);

/// The shares of the requests at some ranks of the tables of production caches.
#[test]
fn tables_of_ranks_give_the_shares_that_they_state() {
    let kvcache =
        "ranks:1=0.066,10=0.195,100=0.294,1000=0.409,10000=0.565,100000=0.721,1000000=0.863,50%=0.967";
    let cdn = "ranks:1=0.002,10=0.005,100=0.014,1000=0.035,10000=0.071,100000=0.157,1000000=0.418,50%=0.698";
    let cases: [Case<'_>; 3] = [
        (kvcache, 10_483_642, &[(1, 0.066), (1_000, 0.409), (100_000, 0.721), (5_241_821, 0.967)]),
        (cdn, 7_489_207, &[(10, 0.005), (10_000, 0.071), (1_000_000, 0.418), (3_744_604, 0.698)]),
        ("ranks:1%=0.55,50%=0.99,100%=1", 1_000_000, &[(10_000, 0.55), (500_000, 0.99)]),
    ];
    let draws = 400_000;
    for (text, records, points) in cases {
        let (chooser, stream) = (chooser(text, records), Stream::from_seed(1));
        let mut below = vec![0u32; points.len()];
        for i in 0..draws {
            let record = chooser.choose(&stream, i);
            assert!(record < records);
            points.iter().zip(&mut below).for_each(|((rank, _), count)| *count += u32::from(record < *rank));
        }
        for ((rank, share), count) in points.iter().zip(below) {
            let found = f64::from(count) / draws as f64;
            let sd = (share * (1.0 - share) / draws as f64).sqrt();
            assert!((found - share).abs() < 5.0 * sd, "{text}: {found} of the requests below rank {rank}");
        }
    }
}

/// The mean and the squared coefficient of variation of ETC's gaps at some hours, from their closed forms.
#[test]
fn gaps_of_an_hour_have_the_mean_and_the_variation_of_the_published_table() {
    for (hour, scale, shape) in [(0, 16.2868, 0.155_280), (7, 19.5114, 0.202_396), (15, 15.2904, 0.094_286)] {
        let gaps: Dist = format!("etc-arrival:{hour}").parse().unwrap();
        let stream = Stream::from_seed(hour);
        let draws = 1_000_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for i in 0..draws {
            let gap = gaps.draw(stream.draw(i));
            sum += gap;
            squares += gap * gap;
        }
        let mean = sum / draws as f64;
        let variation = (squares / draws as f64 - mean * mean) / (mean * mean);
        let (expected_mean, expected_variation) = (scale / (1.0 - shape), 1.0 / (1.0 - 2.0 * shape));
        assert!((mean / expected_mean - 1.0).abs() < 0.01, "hour {hour}: {mean}, expected {expected_mean}");
        assert!(
            (variation / expected_variation - 1.0).abs() < 0.03,
            "hour {hour}: {variation}, expected {expected_variation}"
        );
    }
    for wrong in ["etc-arrival:24", "etc-arrival:-1", "etc-arrival:", "etc-arrival:x", "etc-arrival:1.5"] {
        assert!(wrong.parse::<Dist>().is_err(), "{wrong}");
    }
}

/// A file of CacheLib's as the plan keeps it: 2,000 buckets and more, some of which are drawn together.
#[test]
fn buckets_of_a_production_cache_give_the_shares_that_they_state() {
    let weight = |bucket: u64| 1e6 / (bucket + 1) as f64;
    let size = |bucket: u64| 1 + bucket * bucket / 1_000;
    let buckets = 3_000;
    let text: Vec<String> =
        (0..buckets).map(|bucket| format!("{}@{}", size(bucket), weight(bucket))).collect();
    let text = format!("buckets:{}", text.join(","));
    let total: f64 = (0..buckets).map(weight).sum();
    let records: u64 = (0..buckets).map(size).sum();
    let (chooser, stream) = (chooser(&text, records), Stream::from_seed(2));
    let draws = 300_000;
    let chosen: Vec<u64> = (0..draws).map(|i| chooser.choose(&stream, i)).collect();
    // Two buckets are drawn together, so that the shares are those of an even number of them.
    for until in [2, 10, 100, 1_000, 2_000] {
        let rank: u64 = (0..until).map(size).sum();
        let share = (0..until).map(weight).sum::<f64>() / total;
        let found = chosen.iter().filter(|record| **record < rank).count() as f64 / draws as f64;
        let sd = (share * (1.0 - share) / draws as f64).sqrt();
        assert!(
            (found - share).abs() < 5.0 * sd,
            "{found} of the requests below rank {rank}, expected {share}"
        );
    }
    assert!(chosen.iter().all(|record| *record < records));
}
