//! What evidence costs: runs with and without it in turns.

use std::io;

use serde_json::Value;

use super::network::Way;
use super::scenario::{Scenario, Server};
use super::stage::{Stage, Theatre};

/// The loads that are compared.
const LOADS: [&str; 3] = ["-c 50", "-c 50 -d 16", "-c 50 --rate 10k"];

/// The figures that are compared, and where a result has them.
const FIGURES: [(&str, &str); 3] = [
    ("CPU us per request", "/generator/cpu_us_per_request"),
    ("p50 us", "/totals/response_us/p50"),
    ("p99 us", "/totals/response_us/p99"),
];

/// A figure of runs with evidence and of those without, by rounds.
#[derive(Clone, Debug, Default)]
struct Pairs {
    with: Vec<f64>,
    without: Vec<f64>,
}

impl Pairs {
    /// With evidence by without it, of each round, in ascending order.
    fn ratios(&self) -> Vec<f64> {
        let mut ratios: Vec<f64> =
            self.with.iter().zip(&self.without).map(|(one, other)| one / other).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    }

    /// Whether 1 lies between the least and the greatest ratio.
    fn is_within(&self) -> bool {
        let ratios = self.ratios();
        ratios.first() <= Some(&1.0) && ratios.last() >= Some(&1.0)
    }

    fn line(&self, load: &str, figure: &str) -> String {
        let ratios = self.ratios();
        format!(
            "| {load} | {figure} | {:.2} | {:.2} | {:.3} | {:.3} .. {:.3} | {} |",
            median(&self.with),
            median(&self.without),
            median(&ratios),
            ratios.first().unwrap_or(&f64::NAN),
            ratios.last().unwrap_or(&f64::NAN),
            if self.is_within() { "within" } else { "OUTSIDE" },
        )
    }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count => (values[(count - 1) / 2] + values[count / 2]) / 2.0,
    }
}

/// Measures and prints; false when a figure of all rounds lies on one side.
pub fn run(theatre: &Theatre, rounds: usize, seconds: f64) -> io::Result<bool> {
    println!("With evidence and without in turns, {rounds} rounds of {seconds} s, memcached -t 1.\n");
    println!("| load | figure | with | without | ratio | of all rounds | |");
    println!("|---|---|---|---|---|---|---|");
    let scenario = Scenario {
        row: "",
        limit: "",
        staged: "",
        way: Way::Loopback,
        server: Server::Memcached("-t 1 -m 256"),
        disturbances: &[],
        words: "--records 10k",
        loads: &[],
    };
    let stage = Stage::set(theatre, &scenario)?;
    let mut good = true;
    for load in LOADS {
        let mut figures = vec![Pairs::default(); FIGURES.len()];
        for round in 0..rounds {
            // Who begins takes turns, so that a machine that changes its pace favours neither.
            for has_evidence in [round % 2 == 0, round % 2 == 1] {
                let words = if has_evidence { load.to_owned() } else { format!("{load} --no-evidence") };
                let result = stage.run_words(&words, seconds)?;
                for ((name, path), pairs) in FIGURES.iter().zip(&mut figures) {
                    let side = if has_evidence { &mut pairs.with } else { &mut pairs.without };
                    side.push(figure(&result, name, path)?);
                }
            }
        }
        for ((name, _), pairs) in FIGURES.iter().zip(&figures) {
            println!("{}", pairs.line(load, name));
            good &= pairs.is_within();
        }
    }
    Ok(good)
}

fn figure(result: &Value, name: &str, path: &str) -> io::Result<f64> {
    let found = result.pointer(path).and_then(Value::as_f64);
    found.ok_or_else(|| io::Error::other(format!("the result has no {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_rounds() {
        let pairs = Pairs { with: vec![2.0, 5.5, 4.0], without: vec![2.0, 5.0, 5.0] };
        assert_eq!(pairs.ratios(), [0.8, 1.0, 1.1]);
        assert!(pairs.is_within());
        assert_eq!(
            pairs.line("-c 1", "p50 us"),
            "| -c 1 | p50 us | 4.00 | 5.00 | 1.000 | 0.800 .. 1.100 | within |"
        );
        let dearer = Pairs { with: vec![2.1, 3.1], without: vec![2.0, 3.0] };
        assert!(!dearer.is_within() && dearer.line("", "").ends_with("OUTSIDE |"));
    }
}
