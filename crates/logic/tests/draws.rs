//! Tests of the project's own distributions against two libraries: `statrs` gives quantiles, `rand_distr` gives
//! samples.
//!
//! Every sample has a fixed seed, so a test gives the same verdict on every machine and at every time.

use pummel_logic::dist::{Dist, ETC_ARRIVAL, ETC_HEAD, ETC_KEY};
use pummel_logic::plan::Popularity;
use pummel_logic::rng::Stream;
use pummel_logic::workload::popularity::Chooser;
use rand::SeedableRng;
use rand::distr::Distribution;
use rand::rngs::StdRng;
use statrs::distribution::{ChiSquared, ContinuousCDF, Exp, Gumbel, Normal, Pareto, Uniform, Weibull};

const SEED: u64 = 20_261;

/// Number of values in a sample.
const DRAWS: usize = 100_000;

/// Shares at which quantiles are compared: the middle and both ends, as far as 1 in a million.
const SHARES: [f64; 13] =
    [1e-6, 1e-4, 0.01, 0.05, 0.2, 0.4, 0.5, 0.6, 0.8, 0.95, 0.99, 1.0 - 1e-4, 1.0 - 1e-6];

/// Asserts that the quantiles of `ours` and of an oracle differ by no more than a billionth of their size, or of `scale`
/// where they are near 0.
#[track_caller]
fn check_quantiles(ours: &Dist, scale: f64, oracle: impl Fn(f64) -> f64) {
    for share in SHARES {
        let (own, expected) = (ours.quantile(share), oracle(share));
        let size = expected.abs().max(scale);
        assert!(
            (own - expected).abs() <= 1e-9 * size,
            "{ours:?} at {share}: {own}, and the oracle says {expected}"
        );
    }
}

#[test]
fn quantiles_of_the_uniform_distribution_are_those_of_the_library() {
    for (low, high) in [(0.0, 1.0), (-5.0, 5.0), (10.0, 1e6)] {
        let oracle = Uniform::new(low, high).unwrap();
        check_quantiles(&Dist::Uniform { low, high }, high - low, |share| oracle.inverse_cdf(share));
    }
}

#[test]
fn quantiles_of_the_normal_distribution_are_those_of_the_library() {
    for (mean, sd) in [(0.0, 1.0), (200.0, 30.0), (-1.0, 1e-3)] {
        let oracle = Normal::new(mean, sd).unwrap();
        check_quantiles(&Dist::Normal { mean, sd }, sd, |share| oracle.inverse_cdf(share));
    }
}

#[test]
fn quantiles_of_the_exponential_distribution_are_those_of_the_library() {
    for mean in [1.0, 2.5e-4, 1e6] {
        let oracle = Exp::new(1.0 / mean).unwrap();
        check_quantiles(&Dist::Exponential { mean }, mean, |share| oracle.inverse_cdf(share));
    }
}

/// The library's Pareto distribution begins at its scale `begin`; it is the generalised one whose shape is the inverse of
/// the library's, whose scale is `begin` times that, and whose location is `begin`.
#[test]
fn quantiles_of_the_pareto_distribution_are_those_of_the_library() {
    for (begin, shape) in [(1.0, 0.5), (214.476 / 0.348_238, 0.348_238), (3.0, 1.5)] {
        let ours = Dist::Pareto { loc: begin, scale: begin * shape, shape };
        let oracle = Pareto::new(begin, 1.0 / shape).unwrap();
        check_quantiles(&ours, begin, |share| oracle.inverse_cdf(share));
    }
    let ours = Dist::Pareto { loc: 7.0, scale: 2.0, shape: 0.0 };
    let oracle = Exp::new(0.5).unwrap();
    check_quantiles(&ours, 2.0, |share| 7.0 + oracle.inverse_cdf(share));
}

/// With shape 0 the generalised extreme value distribution is the library's Gumbel distribution. With a negative shape it
/// is the library's Weibull distribution, mirrored at the upper end. A positive shape has the Fréchet distribution's
/// formula, loc + scale ((-ln u)^-shape - 1) / shape.
#[test]
fn quantiles_of_the_extreme_value_distribution_are_those_of_the_library() {
    let (loc, scale) = (30.0, 8.0);
    let gumbel = Gumbel::new(loc, scale).unwrap();
    check_quantiles(&Dist::Gev { loc, scale, shape: 0.0 }, scale, |share| gumbel.inverse_cdf(share));
    for steepness in [0.05, 0.3, 1.0, 2.0] {
        let weibull = Weibull::new(1.0 / steepness, scale / steepness).unwrap();
        let mirrored = |share: f64| loc + scale / steepness - weibull.inverse_cdf(1.0 - share);
        check_quantiles(&Dist::Gev { loc, scale, shape: -steepness }, scale / steepness, mirrored);
        let frechet = |share: f64| loc + scale * ((-share.ln()).powf(-steepness) - 1.0) / steepness;
        check_quantiles(&Dist::Gev { loc, scale, shape: steepness }, scale / steepness, frechet);
    }
    let Dist::Gev { loc, scale, shape } = ETC_KEY else { panic!("ETC keys have this distribution") };
    check_quantiles(&Dist::EtcKey, scale, |share| loc + scale * ((-share.ln()).powf(-shape) - 1.0) / shape);
}

/// The values of a distribution of ours for [`DRAWS`] numbers of one stream, in ascending order.
fn drawn(dist: &Dist) -> Vec<f64> {
    let stream = Stream::from_seed(SEED);
    ascending((0..DRAWS as u64).map(|i| dist.draw(stream.draw(i))))
}

/// Draws [`DRAWS`] values of a distribution of the library, in ascending order.
fn sampled(dist: &impl Distribution<f64>) -> Vec<f64> {
    ascending(dist.sample_iter(StdRng::seed_from_u64(SEED)).take(DRAWS))
}

fn ascending(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The greatest distance between the distribution functions of two samples in ascending order, which hold equally many
/// values (Kolmogorov and Smirnov).
fn distance(one: &[f64], other: &[f64]) -> f64 {
    assert_eq!(one.len(), other.len());
    let (mut i, mut j, mut greatest) = (0, 0, 0_usize);
    while i < one.len() && j < other.len() {
        let value = one[i].min(other[j]);
        i += one[i..].iter().take_while(|&&own| own <= value).count();
        j += other[j..].iter().take_while(|&&own| own <= value).count();
        greatest = greatest.max(i.abs_diff(j));
    }
    greatest as f64 / one.len() as f64
}

/// The distance that two samples of one distribution exceed once in 10,000 times: sqrt(-ln(share / 2) / values).
fn distance_max() -> f64 {
    (-(1e-4_f64 / 2.0).ln() / DRAWS as f64).sqrt()
}

#[track_caller]
fn check_sample(ours: &Dist, theirs: &impl Distribution<f64>) {
    let found = distance(&drawn(ours), &sampled(theirs));
    assert!(found <= distance_max(), "{ours:?}: the samples are {found} apart");
}

#[test]
fn draws_spread_as_the_samples_of_the_library() {
    let normal = rand_distr::Normal::new(200.0, 30.0).unwrap();
    check_sample(&Dist::Normal { mean: 200.0, sd: 30.0 }, &normal);
    check_sample(&Dist::Exponential { mean: 4.0 }, &rand_distr::Exp::new(0.25).unwrap());
    check_sample(&Dist::Uniform { low: 0.0, high: 1.0 }, &rand::distr::StandardUniform);
    let pareto = rand_distr::Pareto::new(3.0, 2.0).unwrap();
    check_sample(&Dist::Pareto { loc: 3.0, scale: 1.5, shape: 0.5 }, &pareto);
    let gumbel = rand_distr::Gumbel::new(30.0, 8.0).unwrap();
    check_sample(&Dist::Gev { loc: 30.0, scale: 8.0, shape: 0.0 }, &gumbel);
    // With a positive shape: the Fréchet distribution from loc - scale / shape on, of scale / shape and 1 / shape.
    let frechet = rand_distr::Frechet::new(30.0 - 8.0 / 0.25, 8.0 / 0.25, 4.0).unwrap();
    check_sample(&Dist::Gev { loc: 30.0, scale: 8.0, shape: 0.25 }, &frechet);
}

#[test]
fn a_sample_of_another_distribution_is_told_apart() {
    let near = rand_distr::Normal::new(200.0, 33.0).unwrap();
    let found = distance(&drawn(&Dist::Normal { mean: 200.0, sd: 30.0 }), &sampled(&near));
    assert!(found > distance_max(), "a deviation that is a tenth too large is {found} apart");
}

#[test]
fn means_are_those_of_the_draws() {
    for dist in [
        Dist::Uniform { low: 10.0, high: 30.0 },
        Dist::Normal { mean: 200.0, sd: 30.0 },
        Dist::Exponential { mean: 4.0 },
        Dist::Pareto { loc: 15.0, scale: 200.0, shape: 0.2 },
        Dist::Gev { loc: 30.0, scale: 8.0, shape: -0.2 },
        Dist::Gev { loc: 30.0, scale: 8.0, shape: 0.0 },
        Dist::EtcKey,
        Dist::EtcValue,
        ETC_ARRIVAL,
        "weighted:1-100@0.1,1000-2048@0.9".parse().unwrap(),
    ] {
        let values = drawn(&dist);
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
        let bound = 5.0 * deviation / count.sqrt();
        assert!((dist.mean() - mean).abs() <= bound, "{dist:?}: {} and not {mean}", dist.mean());
    }
}

/// Means of what is left of distributions that are cut off at 0, by numerical integration of 1 - F, or by the closed form of a tail that is too heavy for that.
#[test]
fn means_of_what_is_cut_off_at_0_are_exact_where_hardly_anything_is_left_too() {
    for (dist, mean) in [
        ("uniform:-1,2", 0.666_666_666_666_667),
        ("uniform:-9,1", 0.05),
        ("normal:1,2", 1.395_593_114_802_61),
        ("normal:100,30", 100.003_362_336_569),
        ("normal:-3,1", 3.821_543_170_477_24e-4),
        ("normal:-5,1", 5.346_165_533_832_81e-8),
        ("pareto:-1,1,0.5", 4.0 / 3.0),
        ("pareto:-10,2,0", 0.013_475_893_998_171),
        ("pareto:-3,1,-0.25", 0.000_781_25),
        ("pareto:-100,30,0.95", 556.584_092_034_608),
        ("gev:-2,1,0", 0.130_890_661_833_818),
        ("gev:1,2,0", 2.315_224_561_596_13),
        ("gev:100,1,0", 100.577_215_664_902),
        ("gev:-5,1,0.1", 0.028_784_289_310_041),
        ("gev:-3,1,0.9", 8.558_768_972_824_06),
        ("gev:5,8,0.7", 27.887_703_951_458_9),
        ("gev:-1,2,-0.3", 0.650_850_369_957_975),
        ("gev:30,8,-0.2", 33.273_250_364_713_7),
        ("gev:1,1,-200", 0.643_235_524_147_901),
    ] {
        let found = dist.parse::<Dist>().expect("a distribution").mean_from_zero();
        assert!((found / mean - 1.0).abs() < 1e-9, "{dist}: {found:e} and not {mean:e}");
    }
}

#[test]
fn what_is_never_above_0_has_no_mean_that_a_factor_could_scale() {
    for dist in [
        "fixed:-100",
        "uniform:-9,-1",
        "uniform:-1,0",
        "normal:-1,0",
        "normal:-100,1",
        "pareto:-10,1,-0.5",
        "gev:-10,1,-0.5",
    ] {
        let dist: Dist = dist.parse().expect("a distribution");
        assert_eq!((dist.mean_from_zero(), dist.factor_to_mean(1e6)), (0.0, None), "{dist}");
    }
    let infinite: Dist = "gev:-1,1,1".parse().expect("a distribution");
    assert_eq!((infinite.mean_from_zero(), infinite.factor_to_mean(1e6)), (f64::INFINITY, None));
}

/// Likelihood of counts that differ from `expected` at least as much as `counts` (Pearson); neighbours are put together
/// until each class expects at least 10.
fn likelihood(counts: &[u64], expected: &[f64]) -> f64 {
    assert_eq!(counts.len(), expected.len());
    let (mut distance, mut classes) = (0.0, 0_u32);
    let (mut count, mut expectation) = (0.0, 0.0);
    let mut left: f64 = expected.iter().sum();
    for (own, share) in counts.iter().zip(expected) {
        count += *own as f64;
        expectation += share;
        left -= share;
        let is_last = left < 10.0 && left > 1e-6;
        if expectation >= 10.0 && !is_last {
            distance += (count - expectation).powi(2) / expectation;
            classes += 1;
            (count, expectation) = (0.0, 0.0);
        }
    }
    if expectation > 0.0 {
        distance += (count - expectation).powi(2) / expectation;
        classes += 1;
    }
    let chi_squared = ChiSquared::new(f64::from(classes - 1)).unwrap();
    chi_squared.sf(distance)
}

/// Number of times that each of `records` records is chosen in [`DRAWS`] choices.
fn chosen(popularity: &Popularity, records: u64) -> Vec<u64> {
    let chooser = Chooser::new(popularity, records, 0, 1);
    let stream = Stream::from_seed(SEED);
    let mut counts = vec![0; records as usize];
    (0..DRAWS as u64).for_each(|i| counts[chooser.choose(&stream, i) as usize] += 1);
    counts
}

/// Expected number of times that Zipf's law chooses each of `records` records in [`DRAWS`] choices.
fn zipf(records: u64, exponent: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=records).map(|rank| (rank as f64).powf(-exponent)).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total * DRAWS as f64).collect()
}

#[test]
fn zipf_chooses_records_as_often_as_its_law_says() {
    for exponent in [0.0, 0.5, 0.99, 1.0, 1.2, 2.0, 3.0, 4.0, 5.0] {
        for records in [2, 10, 1_000, 100_000] {
            let counts = chosen(&Popularity::Zipf { exponent }, records);
            let likelihood = likelihood(&counts, &zipf(records, exponent));
            assert!(likelihood > 1e-4, "zipf:{exponent} over {records} records: {likelihood}");
        }
    }
}

#[test]
fn zipf_with_a_great_exponent_ends_and_stays_in_its_law_over_any_number_of_records() {
    let records = 1 << 40;
    let (chooser, stream) =
        (Chooser::new(&Popularity::Zipf { exponent: 5.0 }, records, 0, 1), Stream::from_seed(SEED));
    let mut counts = [0_u64; 4];
    for i in 0..DRAWS as u64 {
        let record = chooser.choose(&stream, i);
        counts[(record as usize).min(3)] += 1;
    }
    // The sum of rank^-5 over all ranks.
    let zeta = 1.036_927_755_143_37;
    let law = [1, 2, 3].map(|rank| f64::from(rank).powi(-5) / zeta);
    let expected = [law[0], law[1], law[2], 1.0 - law.iter().sum::<f64>()].map(|share| share * DRAWS as f64);
    assert!(likelihood(&counts, &expected) > 1e-4, "{counts:?}, expected {expected:?}");
}

#[test]
fn zipf_with_another_exponent_is_told_apart() {
    let counts = chosen(&Popularity::Zipf { exponent: 0.99 }, 1_000);
    assert!(likelihood(&counts, &zipf(1_000, 1.1)) < 1e-4);
}

#[test]
fn zipf_spreads_as_the_samples_of_the_library() {
    for exponent in [0.5, 0.99, 1.0, 2.0] {
        let records = 1_000;
        let ours = chosen(&Popularity::Zipf { exponent }, records);
        let theirs = rand_distr::Zipf::new(records as f64, exponent).unwrap();
        let ranks = theirs.sample_iter(StdRng::seed_from_u64(SEED)).take(DRAWS);
        let theirs = ascending(ranks);
        let ranks =
            ours.iter().zip(1_u32..).flat_map(|(&count, rank)| (0..count).map(move |_| f64::from(rank)));
        let found = distance(&ascending(ranks), &theirs);
        assert!(found <= distance_max(), "zipf:{exponent}: the samples are {found} apart");
    }
}

#[test]
fn hot_and_uniform_records_are_chosen_as_often_as_asked_for() {
    let even = vec![DRAWS as f64 / 100.0; 100];
    assert!(likelihood(&chosen(&Popularity::Uniform, 100), &even) > 1e-4);
    let counts = chosen(&Popularity::Hot { keys: 0.2, requests: 0.9 }, 100);
    let of = |record: usize| if record < 20 { 0.9 / 20.0 } else { 0.1 / 80.0 };
    let expected: Vec<f64> = (0..100).map(|record| of(record) * DRAWS as f64).collect();
    assert!(likelihood(&counts, &expected) > 1e-4);
}

#[test]
fn small_values_of_the_etc_pool_have_the_shares_of_its_table() {
    let mut counts = vec![0; ETC_HEAD.len() + 1];
    for value in drawn(&Dist::EtcValue) {
        counts[if value < 15.0 { value as usize } else { 15 }] += 1;
    }
    let mut expected: Vec<f64> = ETC_HEAD.iter().map(|share| share * DRAWS as f64).collect();
    expected.push(DRAWS as f64 - expected.iter().sum::<f64>());
    assert!(likelihood(&counts, &expected) > 1e-4);
}
