//! Tests of traces that are made from known numbers and fitted: the fit has these numbers, and the requests that are
//! made from the fit have the same fit.
//!
//! The tests make 200,000 requests of each workload. `cargo xtask coverage --part fit` makes 10,000,000 of each through the same
//! functions, and reads the lines that begin with `fit:`.

use std::fs;

use pummel_logic::dist::Dist;
use pummel_logic::plan::{Burst, BurstStates, Data, Mix, Style};
use pummel_logic::protocol::Verb;
use pummel_logic::time::MILLISECOND;
use pummel_traffic::fit::{Bound, Comparison, Fit, Fitter, Load, ValueCounts, generate};

/// Requests of a workload where nothing else is asked for, and requests of a record.
const REQUESTS: u64 = 200_000;
const REQUESTS_OF_RECORD: u64 = 100;

/// Length of each workload, in seconds of its own time.
const SPAN_S: f64 = 4_000.0;

/// Greatest distances of figures from the truth.
const ALPHA: f64 = 0.02;
const HIT_RATIO: f64 = 0.01;
const DISPERSION: f64 = 0.15;
const HALF_LIFE: f64 = 0.2;
const RECORDS_WITH_LIVES: f64 = 0.2;

/// Memory of the whole process at most, in bytes: that of a fit is at most 256 MiB.
const MEMORY_MAX_BYTES: u64 = 320 << 20;

/// Workload of which requests are made.
struct Made {
    data: Data,
    mix: Mix,
    burst: Option<Burst>,
    requests: u64,
}

impl Made {
    fn of(requests: u64, popularity: &str) -> Made {
        let fixed = |text: &str| text.parse::<Dist>().expect("a distribution");
        let data = Data {
            records: requests / REQUESTS_OF_RECORD,
            seed: 0,
            key_prefix: String::new(),
            key_size: fixed("20"),
            value_size: fixed("pareto:0,178,0.348"),
            expiry_s: fixed("0"),
            value_classes: Vec::new(),
            value_compress: 1.0,
            value_filler: None,
            key_tag: None,
            slots: Vec::new(),
            first_key: 0,
            style: Style::default(),
        };
        let mix =
            Mix { popularity: popularity.parse().expect("a popularity"), ..Mix::of(&[(Verb::Get, 1.0)]) };
        Made { data, mix, burst: None, requests }
    }

    /// The rate, in requests per second.
    fn rate(&self) -> f64 {
        self.requests as f64 / SPAN_S
    }

    /// Makes the requests, and fits them while they are made.
    fn fit(&self, seed: u64) -> Fit {
        let load = Load {
            data: &self.data,
            mix: &self.mix,
            rate: Some(self.rate()),
            is_even: false,
            burst: self.burst,
            resolution_ns: 1,
        };
        let mut fitter = Fitter::default();
        let made = generate(&load, self.requests, seed, &mut |row| {
            fitter.take(row);
            true
        });
        assert!(made.expect("it can be made") >= self.requests);
        fitter.end()
    }

    /// Workload with the figures of a fit.
    fn again(&self, fit: &Fit) -> Made {
        let dist = |counts: &ValueCounts| counts.dist().unwrap_or(Dist::Fixed(0.0));
        let records = fit.records();
        let table = fit.spread.records.table(records);
        let points: Vec<String> = table.iter().map(|(rank, share)| format!("{rank}={share}")).collect();
        let data = Data {
            records,
            key_size: dist(&fit.key_bytes),
            value_size: dist(&fit.value_bytes),
            ..self.data.clone()
        };
        let mix = Mix {
            popularity: format!("ranks:{}", points.join(",")).parse().expect("a popularity"),
            fresh: fit.fresh(),
            churn: fit.key_churn(),
            ..Mix::of(&fit.mix())
        };
        let burst = fit.arrivals.burst.map(|burst| Burst::States(burst.states));
        Made { data, mix, burst, requests: fit.requests }
    }
}

fn requests() -> u64 {
    let asked = std::env::var("PUMMEL_COVERAGE_ROWS").ok().and_then(|rows| rows.parse().ok());
    asked.unwrap_or(REQUESTS)
}

/// Prints the figure of a fit beside the truth, and fails where it is too far off.
fn holds(workload: &str, what: &str, found: f64, truth: f64, off: f64, most: f64) {
    println!("fit: {workload}: {what} {found:.4}, truth {truth:.4}, off {off:+.4} of {most}");
    assert!(off.abs() <= most, "{workload}: {what} {found} and not {truth}");
}

/// Fits requests that are made from a fit, compares both, and prints how many figures are beyond their bounds.
fn comes_again(workload: &str, made: &Made, fit: &Fit) {
    let comparison = Comparison::of(fit, &made.again(fit).fit(77));
    let beyond: Vec<_> = comparison.beyond().collect();
    let bounded = comparison.rows.iter().filter(|row| row.bound != Bound::None).count();
    println!(
        "fit: {workload}: {} of {bounded} figures of the fit of its fit beyond their bounds",
        beyond.len()
    );
    assert!(beyond.is_empty(), "{workload}: {beyond:#?}");
}

/// The share of the requests that hit in an LRU cache of `objects` of the records of a zipf law (Che, Tung and Wang,
/// 2002), after the first request for each record.
fn che(exponent: f64, records: u64, objects: f64) -> f64 {
    let weights: Vec<f64> = (1..=records).map(|rank| (rank as f64).powf(-exponent)).collect();
    let sum: f64 = weights.iter().sum();
    let held = |time: f64| weights.iter().map(|weight| -(-weight / sum * time).exp_m1()).sum::<f64>();
    let (mut low, mut high) = (0.0, 1e4 * records as f64);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if held(middle) < objects { low = middle } else { high = middle }
    }
    weights.iter().map(|weight| weight / sum * -(-weight / sum * low).exp_m1()).sum()
}

#[test]
fn exponents_and_hits_of_lru_are_those_of_the_workload() {
    for exponent in [0.7, 0.99, 1.2] {
        let (name, made) = (format!("zipf:{exponent}"), Made::of(requests(), &format!("zipf:{exponent}")));
        let fit = made.fit(1);
        let (zipf, _) = fit.spread.zipf.expect("many ranks");
        holds(&name, "alpha", zipf.exponent, exponent, zipf.exponent - exponent, ALPHA);
        for share in [0.03, 0.1, 0.3] {
            let objects = share * made.data.records as f64;
            let truth = che(exponent, made.data.records, objects);
            // The cache is empty at the beginning, which the law does not know.
            let empty = objects / made.requests as f64;
            let (found, _) = fit.hit_ratio(objects).expect("it reads");
            let what = format!("hits of LRU of {} %", 100.0 * share);
            holds(&name, &what, found, truth, found - truth, HIT_RATIO + empty);
        }
        comes_again(&name, &made, &fit);
    }
    memory();
}

#[test]
fn half_lives_of_keys_are_those_of_the_workload() {
    let made = Made::of(requests(), "zipf:0.9");
    // 15 minutes, in requests: half of the keys have left after half of a life.
    let life = (900.0 * made.rate()) as u64;
    let churn = Some(format!("requests:{life}").parse().expect("a churn"));
    let made = Made { mix: Mix { churn, ..made.mix.clone() }, ..made };
    let fit = made.fit(2);
    let found = fit.churn.half_life_s.expect("keys change");
    holds("churn of 15m", "half-life", found, 450.0, found / 450.0 - 1.0, HALF_LIFE);
    let (records, truth) = (fit.records() as f64, made.data.records as f64);
    holds("churn of 15m", "records", records, truth, records / truth - 1.0, RECORDS_WITH_LIVES);
    comes_again("churn of 15m", &made, &fit);
    memory();
}

#[test]
fn dispersions_of_bursts_are_those_of_the_workload() {
    let states = BurstStates { factor: 5.0, on_ns: 500 * MILLISECOND, off_ns: 4_500 * MILLISECOND };
    let made = Made { burst: Some(Burst::States(states)), ..Made::of(requests(), "zipf:0.9") };
    let fit = made.fit(3);
    // 1 + 2 (a - b)^2 p (1 - p) / (h m) x [1 - (1 - e^(-h t)) / (h t)] for the rates a and b, the share p of the time that it is
    // on, the sum h of the rates at which states are left, and the mean rate m.
    let (p, h, m) = (states.share(), 1.0 / 0.5 + 1.0 / 4.5, made.rate());
    let (a, b) = (m * states.factor, m * states.factor_off());
    for window_s in [0.64, 5.12] {
        let reached = 1.0 + f64::exp_m1(-h * window_s) / (h * window_s);
        let truth = 1.0 + 2.0 * (a - b).powi(2) * p * (1.0 - p) / (h * m) * reached;
        let found = fit.arrivals.idc(window_s).expect("there are windows");
        holds("bursts", &format!("IDC at {window_s} s"), found, truth, found / truth - 1.0, DISPERSION);
    }
    let found = fit.arrivals.burst.expect("bursts").states.factor;
    holds("bursts", "factor", found, 5.0, found / 5.0 - 1.0, DISPERSION);
    memory();
}

/// Prints the most memory that the process had so far, and fails where that is too much.
fn memory() {
    let status = fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    let peak: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    println!("fit: {} requests of each; memory at most {} MiB", requests(), peak >> 10);
    assert!(peak << 10 <= MEMORY_MAX_BYTES, "{peak} kB");
}
