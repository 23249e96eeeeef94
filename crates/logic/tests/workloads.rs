//! Draws of the popularities of named workloads against their closed forms, without a server.

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
