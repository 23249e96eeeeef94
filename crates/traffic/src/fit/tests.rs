//! Tests with traces that are made from known numbers, fitted, made again from the fit, and fitted again.

use super::*;
use pummel_logic::dist::Dist;
use pummel_logic::plan::{Burst, Data, Mix, Popularity, Style, ValueClass};

/// Requests, and records, of a test.
const REQUESTS: u64 = 150_000;
const RECORDS: u64 = 4_000;

fn data(records: u64, value_size: &str) -> Data {
    Data {
        records,
        seed: 0,
        key_prefix: String::new(),
        key_size: "weighted:16-30@1".parse().expect("a distribution"),
        value_size: value_size.parse().expect("a distribution"),
        expiry_s: "weighted:3600-3600@7,0-0@3".parse().expect("a distribution"),
        value_classes: Vec::new(),
        value_compress: 1.0,
        value_filler: None,
        key_tag: None,
        slots: Vec::new(),
        first_key: 0,
        style: Style::default(),
    }
}

fn mix_of(popularity: &str, ops: &[(Verb, f64)]) -> Mix {
    Mix { popularity: popularity.parse().expect("a popularity"), ..Mix::of(ops) }
}

const OPS: [(Verb, f64); 3] = [(Verb::Get, 0.9), (Verb::Set, 0.08), (Verb::Delete, 0.02)];

fn load<'a>(data: &'a Data, mix: &'a Mix) -> Load<'a> {
    Load { data, mix, rate: Some(2_000.0), is_even: false, burst: None, resolution_ns: 1 }
}

fn fitted(load: &Load<'_>, requests: u64, seed: u64) -> Fit {
    fitted_with(Fitter::default(), load, requests, seed)
}

fn fitted_with(mut fitter: Fitter, load: &Load<'_>, requests: u64, seed: u64) -> Fit {
    let made = generate(load, requests, seed, &mut |row| {
        fitter.take(row);
        true
    });
    assert!(made.expect("it can be made") >= requests);
    fitter.end()
}

/// The records, the operations and the bursts of a fit.
fn again(fit: &Fit) -> (Data, Mix, Option<Burst>) {
    let records = fit.records();
    let dist = |counts: &ValueCounts| counts.dist().unwrap_or(Dist::Fixed(0.0));
    let table = fit.spread.records.table(records);
    let points: Vec<String> = table.iter().map(|(rank, share)| format!("{rank}={share}")).collect();
    let data = Data {
        records,
        key_size: dist(&fit.key_bytes),
        value_size: dist(&fit.value_bytes),
        expiry_s: dist(&fit.ttl_s),
        ..data(records, "1")
    };
    let mix = Mix {
        fresh: fit.fresh(),
        churn: fit.key_churn(),
        read_through_ns: fit.fills_misses().then_some(0),
        ..mix_of(&format!("ranks:{}", points.join(",")), &fit.mix())
    };
    (data, mix, fit.arrivals.burst.map(|burst| Burst::States(burst.states)))
}

/// Makes as many requests as a fit has, from the fit, and compares both.
fn compared(fit: &Fit) -> Comparison {
    let (data, mix, burst) = again(fit);
    let load =
        Load { rate: fit.arrivals.rate, burst, resolution_ns: fit.resolution_ns as u32, ..load(&data, &mix) };
    let requests = fit.requests - fit.fills();
    Comparison::of(fit, &fitted(&load, requests, 77))
}

fn assert_alike(fit: &Fit) {
    let comparison = compared(fit);
    let beyond: Vec<&Compared> = comparison.beyond().collect();
    assert!(beyond.is_empty(), "{beyond:#?}");
    assert!(comparison.rows.len() > 20, "{comparison:#?}");
}

#[test]
fn what_was_fitted_is_made_again() {
    for popularity in ["zipf:0.7", "zipf:0.99", "zipf:1.2", "uniform"] {
        let (data, mix) = (data(RECORDS, "pareto:0,178,0.348"), mix_of(popularity, &OPS));
        assert_alike(&fitted(&load(&data, &mix), REQUESTS, 1));
    }
}

#[test]
fn exponents_and_hit_ratios_are_those_of_the_workload() {
    for exponent in [0.7, 0.99, 1.2] {
        let (data, mix) = (data(RECORDS, "200"), mix_of(&format!("zipf:{exponent}"), &OPS));
        let fit = fitted(&load(&data, &mix), REQUESTS, 2);
        let (zipf, _) = fit.spread.zipf.expect("many ranks");
        assert!((zipf.exponent - exponent).abs() < 0.02, "{exponent}: {zipf:?}");
        assert!(zipf.distance < ZIPF_DISTANCE_MAX, "{zipf:?}");
        assert!((fit.records() as f64 / RECORDS as f64 - 1.0).abs() < 0.05, "{exponent}: {}", fit.records());
        assert!(fit.fresh() < 0.002, "{exponent}: {}", fit.fresh());
        assert_eq!((fit.sampled, fit.requests, fit.samples.len()), (1.0, REQUESTS, 0));
    }
}

#[test]
fn bursts_come_again() {
    let (data, mix) = (data(RECORDS, "200"), mix_of("zipf:0.9", &OPS));
    let burst = Burst::States(pummel_logic::plan::BurstStates {
        factor: 4.0,
        on_ns: 20_000_000,
        off_ns: 120_000_000,
    });
    let load = Load { burst: Some(burst), rate: Some(1_000.0), ..load(&data, &mix) };
    let fit = fitted(&load, REQUESTS, 3);
    let found = fit.arrivals.burst.expect("bursts");
    assert!((found.states.factor / 4.0 - 1.0).abs() < 0.25, "{found:?}");
    let (data, mix, burst) = again(&fit);
    let again = fitted(&Load { data: &data, mix: &mix, burst, ..load.clone() }, REQUESTS, 4);
    for (window_s, most) in [(0.16, 0.15), (0.32, 0.2)] {
        let (one, two) = (fit.arrivals.idc(window_s), again.arrivals.idc(window_s));
        let (one, two) = (one.expect("windows"), two.expect("windows"));
        assert!((two / one - 1.0).abs() < most, "{window_s} s: {one} {two}");
    }
}

#[test]
fn keys_that_are_asked_for_once_are_fresh_keys() {
    let data = data(RECORDS, "200");
    let mix = Mix { fresh: 0.1, ..mix_of("zipf:0.8", &[(Verb::Get, 1.0)]) };
    let fit = fitted(&load(&data, &mix), REQUESTS, 5);
    assert!((fit.fresh() - 0.1).abs() < 0.005, "{}", fit.fresh());
    assert!((fit.records() as f64 / RECORDS as f64 - 1.0).abs() < 0.1, "{}", fit.records());
    assert!(fit.one_hit() > 0.7 && fit.compulsory() > 0.1, "{} {}", fit.one_hit(), fit.compulsory());
    assert_alike(&fit);
}

#[test]
fn rare_keys_are_no_fresh_keys() {
    // Of 150,000 records most are asked for once, and some twice.
    let (data, mix) = (data(150_000, "200"), mix_of("uniform", &[(Verb::Get, 1.0)]));
    let fit = fitted(&load(&data, &mix), 60_000, 5);
    assert!(fit.one_hit() > 0.7, "{}", fit.one_hit());
    assert!(fit.fresh() == 0.0 && fit.fresh_most() > 0.0, "{} {}", fit.fresh(), fit.fresh_most());
    assert!((fit.records() as f64 / 150_000.0 - 1.0).abs() < 0.4, "{}", fit.records());
    assert_alike(&fit);
}

/// Makes ten minutes in which keys live for two minutes.
#[test]
fn keys_that_change_come_again_as_lives_of_records() {
    let data = Data { key_size: Dist::Fixed(20.0), ..data(2_000, "200") };
    let churn = Some("requests:weighted:30000-30000@80,1000000-1000000@20".parse().expect("a churn"));
    let mix = Mix { churn, ..mix_of("zipf:0.9", &OPS) };
    let load = Load { rate: Some(250.0), ..load(&data, &mix) };
    let fit = fitted(&load, REQUESTS, 11);
    // 0.8 (1 - x / 120) + 0.2 (1 - x / 4,000) is 0.5 at 74 s.
    let half_life_s = fit.churn.half_life_s.expect("keys change");
    assert!((half_life_s / 74.4 - 1.0).abs() < 0.2, "{half_life_s}");
    assert!((fit.records() as f64 / 2_000.0 - 1.0).abs() < 0.15, "{} of {} keys", fit.records(), fit.keys);
    assert!(fit.keys > 5_000.0, "{}", fit.keys);
    assert_alike(&fit);
    // Keys that stay are another workload.
    let stays = Mix { churn: None, ..again(&fit).1 };
    let data = again(&fit).0;
    let other = fitted(&Load { data: &data, mix: &stays, rate: Some(250.0), ..load.clone() }, REQUESTS, 12);
    let comparison = Comparison::of(&fit, &other);
    let beyond: Vec<&str> = comparison.beyond().map(|row| row.what.as_str()).collect();
    assert!(
        beyond.contains(&"different keys") && beyond.iter().any(|what| what.starts_with("hit ratio")),
        "{beyond:?}"
    );
}

#[test]
fn misses_that_are_filled_are_no_operations_of_the_mix() {
    let data = data(RECORDS, "200");
    let mix = Mix {
        read_through_ns: Some(0),
        fresh: 0.05,
        ..mix_of("zipf:0.9", &[(Verb::Get, 0.95), (Verb::Delete, 0.05)])
    };
    let fit = fitted(&load(&data, &mix), REQUESTS, 6);
    assert!(fit.fills_misses() && fit.fills() == fit.missed && fit.fills() > 5_000, "{}", fit.fills());
    assert_eq!(fit.requests - fit.fills(), REQUESTS);
    assert!(fit.mix().iter().all(|(verb, _)| *verb != Verb::Set), "{:?}", fit.mix());
    assert_alike(&fit);
}

#[test]
fn no_more_requests_are_made_than_are_wanted() {
    let data = data(RECORDS, "200");
    let mix = Mix { read_through_ns: Some(0), ..mix_of("zipf:0.9", &[(Verb::Get, 0.5), (Verb::Cas, 0.5)]) };
    let mut rows = 0;
    let made = generate(&load(&data, &mix), 4_000_000_000, 1, &mut |_| {
        rows += 1;
        rows < 1_000
    });
    assert!(made.is_ok_and(|made| (300..1_000).contains(&made)) && rows < 1_005, "{rows}");
}

#[test]
fn the_first_requests_of_a_profile_are_compared_by_what_does_not_depend_on_their_number() {
    let (data, mix) = (data(10 * RECORDS, "200"), mix_of("zipf:0.9", &OPS));
    let load = load(&data, &mix);
    let (all, some) = (fitted(&load, REQUESTS, 20), fitted(&load, REQUESTS / 4, 21));
    assert!(Comparison::of(&all, &some).beyond().any(|row| row.what == "different keys"));
    let comparison = Comparison::of_first(&all, &some);
    assert!(comparison.rows.len() >= 9 && comparison.beyond().count() == 0, "{comparison:#?}");
    let other = mix_of("zipf:1.2", &OPS);
    let other = fitted(&Load { mix: &other, ..load.clone() }, REQUESTS / 4, 22);
    assert!(Comparison::of_first(&all, &other).beyond().count() >= 2);
}

#[test]
fn a_cas_reads_first() {
    let (data, mix) = (data(RECORDS, "200"), mix_of("zipf:0.9", &[(Verb::Get, 0.8), (Verb::Cas, 0.2)]));
    let fit = fitted(&load(&data, &mix), 120_000, 7);
    let share = |verb: Verb| fit.mix().iter().find(|(of, _)| *of == verb).map_or(0.0, |(_, share)| *share);
    assert!((share(Verb::Cas) - 0.2).abs() < 0.006 && share(Verb::Gets) == 0.0, "{:?}", fit.mix());
    let comparison = compared(&fit);
    let shares = comparison.beyond().filter(|row| row.what.starts_with("share of"));
    assert_eq!(shares.count(), 0, "{comparison:#?}");
}

#[test]
fn popular_records_have_lengths_of_their_own() {
    let class =
        |until: f64, size: &str| ValueClass { until, value_size: size.parse().expect("a distribution") };
    let data = Data {
        value_classes: vec![class(0.01, "50"), class(0.1, "uniform:100,200")],
        ..data(RECORDS, "1000")
    };
    let mix = mix_of("zipf:0.9", &OPS);
    let fit = fitted(&load(&data, &mix), REQUESTS, 8);
    assert!(fit.sizes_differ());
    let medians: Vec<u64> = fit.class_bytes.iter().map(|class| class.quantile(0.5)).collect();
    assert_eq!((medians[0], medians[2], medians[3]), (50, 1_000, 1_000));
    assert!((130..170).contains(&medians[1]), "{medians:?}");
    let even = Data { value_classes: Vec::new(), ..data };
    assert!(!fitted(&load(&even, &mix), REQUESTS, 8).sizes_differ());
}

#[test]
fn a_sample_of_the_keys_says_nearly_what_all_say() {
    let (data, mix) = (data(40_000, "uniform:10,1000"), mix_of("zipf:0.9", &OPS));
    let load = load(&data, &mix);
    let all = fitted(&load, REQUESTS, 9);
    let some = fitted_with(Fitter::with_keys_max(4_096), &load, REQUESTS, 9);
    assert!(some.sampled <= 0.25 && all.sampled == 1.0, "{}", some.sampled);
    assert!((some.keys / all.keys - 1.0).abs() < 0.05, "{} {}", some.keys, all.keys);
    for keys in [1.0, 10.0, 1_000.0] {
        let (one, two) = (all.spread.seen.top(keys), some.spread.seen.top(keys));
        assert!((one - two).abs() < 0.01, "{keys}: {one} {two}");
    }
    for objects in [400.0, 4_000.0] {
        let (one, two) =
            (all.hit_ratio(objects).expect("lookups"), some.hit_ratio(objects).expect("lookups"));
        assert!(one.1 == 0.0 && two.1 > 0.0, "{one:?} {two:?}");
        assert!((one.0 - two.0).abs() < 0.04, "{objects}: {one:?} {two:?}");
    }
    assert!(all.value_bytes.distance(&some.value_bytes) < 0.04);
}

/// Keys that are asked for equally often are far more than the table of popular keys holds, so that each of them is dropped
/// from it and comes again.
#[test]
fn a_sample_stands_for_all_keys_where_none_is_popular() {
    for times in [2, 5, 20] {
        let records = 150_000;
        let mut order: Vec<u64> = (0..records * times).collect();
        order.sort_unstable_by_key(|number| scramble(*number));
        let mut fitter = Fitter::with_keys_max(4_096);
        for number in order {
            let key = (number % records).to_le_bytes();
            fitter.take(&Row { value_bytes: Some(100), ..Row::read(&key) });
        }
        let fit = fitter.end();
        assert!(fit.sampled < 0.05, "{}", fit.sampled);
        let (seen, records) = (fit.spread.seen.keys(), records as f64);
        assert!((seen / records - 1.0).abs() < 0.05, "{times} requests of each key: {seen}");
        let found = fit.records() as f64;
        assert!(times < 20 || (found / records - 1.0).abs() < 0.05, "{times} requests of each key: {found}");
    }
}

fn fit_of(rows: &[Row<'_>]) -> Fit {
    let mut fitter = Fitter::default();
    rows.iter().for_each(|row| fitter.take(row));
    fitter.end()
}

#[test]
fn hardly_any_rows_are_fitted_too() {
    let none = fit_of(&[]);
    assert_eq!((none.requests, none.keys, none.records(), none.mix().len()), (0, 0.0, 1, 0));
    let one = fit_of(&[Row::read(b"a")]);
    assert_eq!((one.requests, one.keys, one.records()), (1, 1.0, 1));
    assert_eq!(one.spread.records.table(1).last(), Some(&(1, 1.0)));
    assert!((0.0..=1.0).contains(&one.fresh()) && one.arrivals.rate.is_none());
    let many = Row { count: u32::MAX, value_bytes: Some(u32::MAX - 1), ..Row::read(b"a") };
    let same = fit_of(&[many, many, Row { at_ns: 1, ..many }]);
    assert_eq!((same.keys, same.requests), (1.0, 3 * u64::from(u32::MAX)));
    assert_eq!(same.hit_ratio(1.0).map(|(share, _)| share > 0.999), Some(true));
}

/// Programs write 2.0 as 2, so the first times of a file may be whole where the others have fractions.
#[test]
fn a_few_whole_times_among_exact_ones_do_not_make_a_trace_of_whole_seconds() {
    let rows = |whole: u64| {
        let (mut fitter, mut stat) = (Fitter::default(), Stat::default());
        for number in 0..20_000u64 {
            let at_ns = number * 10_000_000 + 3_000;
            let row = Row { at_ns, ..Row::read(b"k") };
            let row = if number < whole {
                Row { at_ns: at_ns / SECOND * SECOND, ..row }.within_second()
            } else {
                row
            };
            fitter.take(&row);
            stat.take(&row);
        }
        (fitter.end(), stat)
    };
    for (whole, is_whole, first_window_s) in
        [(0, false, 0.01), (1, false, 0.01), (150, false, 0.01), (19_900, true, 1.0)]
    {
        let (fit, stat) = rows(whole);
        assert_eq!(
            (fit.arrivals.whole_seconds, stat.whole_seconds()),
            (is_whole, is_whole),
            "{whole} whole times"
        );
        assert_eq!(fit.resolution_ns, if is_whole { SECOND } else { 1 }, "{whole} whole times");
        let windows: Vec<f64> = fit.arrivals.dispersions.iter().map(|one| one.window_s).collect();
        assert_eq!(windows[0], first_window_s, "{whole} whole times");
        assert!(!is_whole || windows.iter().all(|window_s| window_s.fract() == 0.0), "{windows:?}");
    }
}

#[test]
fn rows_of_one_whole_second_take_that_second_in_a_fit_as_in_a_summary() {
    let row = Row { at_ns: 5 * SECOND, ..Row::read(b"k") };
    assert_eq!(fit_of(&[row.within_second(), row.within_second()]).arrivals.rate, Some(2.0));
    let none = Row::read(b"k").within_second();
    assert_eq!(fit_of(&[none, none]).arrivals.rate, None, "a format without times");
    let mut stat = Stat::default();
    stat.take(&none);
    assert_eq!(stat.length_ns(), None);
    stat = Stat::default();
    stat.take(&row.within_second());
    assert_eq!(stat.length_ns(), Some(SECOND));
    assert_eq!(fit_of(&[row, row]).arrivals.rate, None, "exact times that are all the same");
}

#[test]
fn times_that_go_backwards_or_leap_are_no_trouble() {
    let at = |at_ns: u64| Row { at_ns, ..Row::read(b"k") };
    let fit = fit_of(&[at(5 * SECOND), at(SECOND), at(6 * SECOND), at(u64::MAX), at(0)]);
    assert_eq!((fit.out_of_order, fit.requests), (2, 5));
    assert_eq!(fit.span_ns, u64::MAX - 5 * SECOND);
    assert!(fit.arrivals.rates.len() <= 44_640);
}

#[test]
fn keys_that_never_come_again_have_no_hits() {
    let keys: Vec<[u8; 8]> = (0..50_000u64).map(u64::to_le_bytes).collect();
    let rows: Vec<Row<'_>> = keys.iter().map(|key| Row { value_bytes: Some(10), ..Row::read(key) }).collect();
    let fit = fit_of(&rows);
    assert_eq!((fit.one_hit(), fit.compulsory()), (1.0, 1.0));
    assert_eq!(fit.hit_ratio(1e6).map(|(share, _)| share), Some(0.0));
    assert!(fit.fresh() > 0.9, "{}", fit.fresh());
    assert_eq!(fit.mix(), [(Verb::Get, 1.0)]);
}

#[test]
fn bad_popularities_are_no_trouble_for_the_table() {
    let counts = ["ranks:1=1", "ranks:1=0.5,2=1", "hot:0.1,0.99"];
    for popularity in counts {
        let (data, mix) = (data(3, "10"), mix_of(popularity, &[(Verb::Get, 1.0)]));
        let fit = fitted(&load(&data, &mix), 1_000, 1);
        let table = fit.spread.records.table(fit.records());
        assert_eq!(table.last().map(|last| last.1), Some(1.0), "{popularity}: {table:?}");
        let (_, mix, _) = again(&fit);
        assert!(matches!(mix.popularity, Popularity::Ranks(_)));
    }
}
