//! The expected share of the records that a number of draws asks for.

use pummel_logic::plan::Popularity;

/// Ranks of Zipf's law that are added one by one.
const RANKS_ALONE: u64 = 1_000;

/// Most records of which a share is computed.
const RECORDS_MAX: u64 = 1 << 40;

/// Growth of the stretches of ranks behind those, whose ranks are taken for equally popular.
const STRETCH: f64 = 1.02;

/// The expected share of `records` records that this many draws ask for, from 0 to 1; `None` for a popularity of which it is not computed.
pub(super) fn asked_share(popularity: &Popularity, records: u64, draws: u64) -> Option<f64> {
    // A plan has no more; beyond them, numbers of records are not told apart.
    if records == 0 || records > RECORDS_MAX {
        return None;
    }
    let (all, draws) = (records as f64, draws as f64);
    let share = match popularity {
        Popularity::Uniform => drawn(1.0 / all, draws),
        Popularity::Sequential => draws / all,
        Popularity::Hot { keys, requests } => {
            let hot = (keys * all).ceil().clamp(1.0, all);
            let cold = all - hot;
            let requests = if cold > 0.0 { *requests } else { 1.0 };
            let of_cold = if cold > 0.0 { cold * drawn((1.0 - requests) / cold, draws) } else { 0.0 };
            (hot * drawn(requests / hot, draws) + of_cold) / all
        }
        Popularity::Zipf { exponent } => zipf(*exponent, records, draws),
        _ => return None,
    };
    share.is_finite().then(|| share.clamp(0.0, 1.0))
}

/// Chance that draws of which each asks for a record with this chance ask for it.
fn drawn(chance: f64, draws: f64) -> f64 {
    -(draws * (-chance).ln_1p()).exp_m1()
}

/// The expected share for Zipf's law.
fn zipf(exponent: f64, records: u64, draws: f64) -> f64 {
    let stretches = stretches(records);
    let weight = |middle: f64| middle.powf(-exponent);
    let sum: f64 = stretches.iter().map(|(middle, ranks)| ranks * weight(*middle)).sum();
    let asked = stretches.iter().map(|(middle, ranks)| ranks * drawn(weight(*middle) / sum, draws));
    asked.sum::<f64>() / records as f64
}

/// The ranks from 1 on in stretches: the middle of each, and its number of ranks.
fn stretches(records: u64) -> Vec<(f64, f64)> {
    let mut all: Vec<(f64, f64)> = (1..=records.min(RANKS_ALONE)).map(|rank| (rank as f64, 1.0)).collect();
    let mut from = RANKS_ALONE as f64 + 1.0;
    let last = records as f64;
    while from <= last {
        let to = (from * STRETCH).floor().max(from).min(last);
        all.push(((from + to) / 2.0, to - from + 1.0));
        from = to + 1.0;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_near(share: Option<f64>, expected: f64) {
        let share = share.expect("it is computed");
        assert!((share - expected).abs() < 0.01, "{share} is not {expected}");
    }

    #[test]
    fn as_many_draws_as_records_ask_for_63_percent_of_them_where_all_are_equally_popular() {
        is_near(asked_share(&Popularity::Uniform, 1_000_000, 1_000_000), 0.632);
        is_near(asked_share(&Popularity::Zipf { exponent: 0.0 }, 1_000_000, 1_000_000), 0.632);
        is_near(asked_share(&Popularity::Sequential, 1_000, 250), 0.25);
        is_near(asked_share(&Popularity::Sequential, 1_000, 2_500), 1.0);
        assert_eq!(asked_share(&Popularity::Uniform, 0, 9), None);
        assert_eq!(asked_share(&Popularity::Uniform, 1, 1), Some(1.0));
        assert_eq!(asked_share(&Popularity::Ycsb, 1_000, 9), None);
    }

    #[test]
    fn popularities_that_concentrate_ask_for_fewer() {
        // By adding up all ranks of 100,000.
        let exact = |exponent: f64, records: u64, draws: f64| {
            let weights: Vec<f64> = (1..=records).map(|rank| (rank as f64).powf(-exponent)).collect();
            let sum: f64 = weights.iter().sum();
            weights.iter().map(|weight| drawn(weight / sum, draws)).sum::<f64>() / records as f64
        };
        for exponent in [0.5, 0.99, 1.2, 3.0] {
            let share = asked_share(&Popularity::Zipf { exponent }, 100_000, 100_000);
            is_near(share, exact(exponent, 100_000, 100_000.0));
        }
        is_near(asked_share(&Popularity::Hot { keys: 0.1, requests: 1.0 }, 10_000, 100_000), 0.1);
        is_near(asked_share(&Popularity::Hot { keys: 1.0, requests: 0.5 }, 10_000, 10_000), 0.632);
    }

    #[test]
    fn wild_numbers_give_a_share_or_none() {
        let hot = Popularity::Hot { keys: f64::NAN, requests: f64::INFINITY };
        let zipf = Popularity::Zipf { exponent: f64::NAN };
        for popularity in [Popularity::Uniform, Popularity::Zipf { exponent: 5.0 }, hot, zipf] {
            for (records, draws) in [(u64::MAX, u64::MAX), (1, 0), (1 << 40, 1), (0, u64::MAX)] {
                let share = asked_share(&popularity, records, draws);
                assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)), "{popularity} {share:?}");
            }
        }
    }
}
