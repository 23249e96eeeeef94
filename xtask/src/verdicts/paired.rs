//! The cost of evidence and stamps: runs with and without them, by turns.

use std::io;

use serde_json::Value;

use super::scenario::Scenario;
use super::stage::{Stage, Theatre};
use crate::spread::Spread;

/// Two sides of a comparison.
#[derive(Debug)]
pub struct Comparison {
    /// The feature that one side has and the other lacks.
    what: &'static str,
    /// Words of `pummel run` with the feature.
    with: &'static str,
    /// Words of `pummel run` without the feature.
    without: &'static str,
    /// The loads that are compared.
    loads: &'static [&'static str],
    /// The greatest median ratio of the CPU time of a request; `None`: every figure of both sides has to be within the
    /// spread of the rounds.
    bar: Option<f64>,
}

/// Evidence, which must change nothing.
pub const EVIDENCE: Comparison = Comparison {
    what: "evidence",
    with: "",
    without: "--no-evidence",
    loads: &["-c 50", "-c 50 -d 16", "-c 50 --rate 10k"],
    bar: None,
};

/// Transmit stamps of one request in 64.
pub const STAMPS: Comparison = Comparison {
    what: "--stamps tx:64",
    with: "--stamps tx:64",
    without: "",
    loads: &["-c 50", "-c 50 -d 16"],
    bar: Some(1.02),
};

/// The figures that are compared, and where a result has them; the first one is that of the bar.
const FIGURES: [(&str, &str); 3] = [
    ("CPU us per request", "/generator/cpu_us_per_request"),
    ("p50 us", "/totals/response_us/p50"),
    ("p99 us", "/totals/response_us/p99"),
];

/// A figure of runs of both sides, by rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    with: Vec<f64>,
    without: Vec<f64>,
}

impl Pairs {
    /// Adds the figure of a run of one side.
    pub(super) fn push(&mut self, has_it: bool, value: f64) {
        if has_it { &mut self.with } else { &mut self.without }.push(value);
    }

    /// The difference between the sides in each round.
    pub(super) fn differences(&self) -> Vec<f64> {
        self.with.iter().zip(&self.without).map(|(one, other)| one - other).collect()
    }

    /// One side by the other, of each round.
    pub(super) fn ratios(&self) -> Vec<f64> {
        self.with.iter().zip(&self.without).map(|(one, other)| one / other).collect()
    }

    /// Whether 1 lies between the least and the greatest ratio.
    pub(super) fn is_within(&self) -> bool {
        let Spread { min, max, .. } = Spread::of(self.ratios());
        (min..=max).contains(&1.0)
    }

    /// Judges whether the figure is good enough, with the words for that.
    fn judged(&self, bar: Option<f64>) -> (bool, String) {
        let ratios = self.ratios();
        match bar {
            None => (self.is_within(), if self.is_within() { "within" } else { "OUTSIDE" }.to_owned()),
            Some(bar) => {
                let good = ratios.iter().filter(|ratio| **ratio <= bar).count();
                let is_good = Spread::of(ratios.iter().copied()).median <= bar;
                let word = if is_good { "" } else { " ABOVE" };
                (is_good, format!("{good} of {} rounds up to {bar}{word}", ratios.len()))
            }
        }
    }

    /// The cells of a row: the median of both sides and of their comparison, and the least and greatest of it.
    pub(super) fn cells(&self, compared: Vec<f64>, digits: usize) -> String {
        let [with, without] = [&self.with, &self.without].map(|side| Spread::of(side.iter().copied()).median);
        let Spread { median, min, max } = Spread::of(compared);
        format!("{with:.2} | {without:.2} | {median:.digits$} | {min:.digits$} .. {max:.digits$}")
    }
}

/// Measures and prints; false when a figure is not good enough, and when the time left nothing to compare.
pub fn run(theatre: &Theatre, comparison: &Comparison, rounds: usize, seconds: f64) -> io::Result<bool> {
    let Comparison { what, with, without, loads, bar } = comparison;
    println!("\nWith {what} and without in turns, {rounds} rounds of {seconds} s, memcached -t 1.\n");
    println!("| load | figure | with | without | ratio | of all rounds | |");
    println!("|---|---|---|---|---|---|---|");
    let scenario = Scenario::quiet("--records 10k");
    let stage = Stage::set(theatre, &scenario)?;
    let mut good = true;
    for load in *loads {
        let mut figures = vec![Pairs::default(); FIGURES.len()];
        for round in 0..rounds {
            if theatre.is_over() {
                break;
            }
            // Who begins takes turns, so that a machine that changes its pace favours neither.
            for has_it in [round % 2 == 0, round % 2 == 1] {
                let result =
                    stage.run_words(&format!("{load} {}", if has_it { with } else { without }), seconds)?;
                for ((name, path), pairs) in FIGURES.iter().zip(&mut figures) {
                    pairs.push(has_it, figure(&result, name, path)?);
                }
            }
        }
        for (number, ((name, _), pairs)) in FIGURES.iter().zip(&figures).enumerate() {
            let (is_good, words) = pairs.judged(*bar);
            // A bar is that of the CPU time alone.
            let is_judged = bar.is_none() || number == 0;
            let words = if is_judged { &words } else { "" };
            println!("| {load} | {name} | {} | {words} |", pairs.cells(pairs.ratios(), 3));
            good &= is_good || !is_judged;
        }
    }
    Ok(good)
}

pub(super) fn figure(result: &Value, name: &str, path: &str) -> io::Result<f64> {
    let found = result.pointer(path).and_then(Value::as_f64);
    found.ok_or_else(|| io::Error::other(format!("the result has no {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_rounds() {
        let pairs = Pairs { with: vec![2.0, 5.5, 4.0], without: vec![2.0, 5.0, 5.0] };
        assert!(pairs.is_within());
        assert_eq!(pairs.judged(None), (true, "within".to_owned()));
        assert_eq!(pairs.cells(pairs.ratios(), 3), "4.00 | 5.00 | 1.000 | 0.800 .. 1.100");
        let dearer = Pairs { with: vec![2.1, 3.1], without: vec![2.0, 3.0] };
        assert_eq!(dearer.judged(None), (false, "OUTSIDE".to_owned()));
        assert!(!Pairs::default().is_within(), "nothing was compared");
    }

    #[test]
    fn a_bar_is_that_of_the_median_ratio() {
        let pairs = Pairs { with: vec![1.01, 1.01, 1.05], without: vec![1.0; 3] };
        assert_eq!(pairs.judged(Some(1.02)), (true, "2 of 3 rounds up to 1.02".to_owned()));
        let dearer = Pairs { with: vec![1.01, 1.03, 1.05], without: vec![1.0; 3] };
        assert_eq!(dearer.judged(Some(1.02)), (false, "1 of 3 rounds up to 1.02 ABOVE".to_owned()));
        assert!(!Pairs::default().judged(Some(1.02)).0, "nothing was compared");
    }
}
