//! The part `misbehaving`: pummel against `pummel serve` that gets slower at half time, and against one that is stopped now and then.

use std::io;
use std::path::Path;
use std::process::{Child, Command};

use serde_json::Value;

use super::servers::{Serve, program_of};

/// Length of the measured phase of a run whose server gets slower, and of its warm-up, in seconds.
const STEP_LENGTH_S: f64 = 10.0;
const STEP_WARMUP_S: f64 = 3.0;

/// Factor of the service times at half time.
const STEP: f64 = 1.3;

/// Distance from the step that the moment may have that the result names, in seconds, and the least share of runs that name it so.
const STEP_WITHIN_S: f64 = 1.0;
const STEPS_FOUND: f64 = 0.95;

/// Time for which the server is stopped, for which it goes on in the mean, and for which a run is measured, in seconds.
const FROZEN_S: f64 = 0.05;
const BETWEEN_S: f64 = 2.95;
const FREEZES_LENGTH_S: f64 = 10.0;

/// The least share of runs that call p99.9 not known from above.
const FREEZES_OPEN: f64 = 0.75;

/// Makes `runs` runs of each kind and prints what was found; returns whether it was found often enough.
pub fn run(root: &Path, runs: u64, program: Option<&Path>) -> io::Result<bool> {
    let program = program_of(root, program)?;
    Ok(steps(&program, runs)? & freezes(&program, runs)?)
}

/// A server whose service times grow by 30 % at half time: the run has to be called unsteady, and the moment named.
fn steps(program: &Path, runs: u64) -> io::Result<bool> {
    println!("| run | changed at, s | p50 before, us | p50 after, us |\n|---|---|---|---|");
    let mut found = 0;
    for seed in 0..runs {
        let after_s = STEP_WARMUP_S + STEP_LENGTH_S / 2.0;
        let words = format!(
            "--service-time exponential:4ms --service-drift step:{STEP},{after_s}s --seed {seed} --max-seconds 60"
        );
        let server = Serve::start(program, &words)?;
        let words = format!(
            "-c 20 --rate 2500 --arrivals poisson -t {STEP_LENGTH_S}s --warmup {STEP_WARMUP_S}s --seed {seed} --protocol text"
        );
        let result = server.result(program, &words)?;
        found += u64::from(names_the_step(&result));
        let change =
            |field: &str| result["change"][field].as_f64().map_or("-".to_owned(), |x| format!("{x:.1}"));
        println!("| {seed} | {} | {} | {} |", change("at_s"), change("before"), change("after"));
    }
    println!("\nOf {runs} runs {found} name the step within a second of {} s\n", STEP_LENGTH_S / 2.0);
    Ok(found as f64 >= STEPS_FOUND * runs as f64)
}

fn names_the_step(result: &Value) -> bool {
    let at_s = result.pointer("/change/at_s").and_then(Value::as_f64);
    result["steady"] == false && at_s.is_some_and(|at_s| (at_s - STEP_LENGTH_S / 2.0).abs() <= STEP_WITHIN_S)
}

/// A server that is stopped for 50 ms once in 3 s: mostly a run of 10 s may not say how slow p99.9 can be, and where it does and
/// saw a freeze, its bound may not lie below half of one.
fn freezes(program: &Path, runs: u64) -> io::Result<bool> {
    println!("| run | p99.9, us | from | to | greatest |\n|---|---|---|---|---|");
    let (mut open, mut wrong) = (0, 0);
    for seed in 0..runs {
        let server = Serve::start(program, "--service-time 1ms --max-seconds 60")?;
        let words = format!(
            "-c 20 --rate 2k --arrivals poisson -t {FREEZES_LENGTH_S}s --seed {seed} --protocol text"
        );
        let mut stops = stop_now_and_then(server.id(), seed)?;
        let result = server.result(program, &words);
        // It has ended where the run took long, and is then only waited for.
        let _ = stops.kill();
        stops.wait()?;
        let seen = Tail::of(&result?);
        open += u64::from(seen.high_us.is_none());
        wrong += u64::from(seen.is_wrong());
        let text = |us: Option<f64>| us.map_or("-".to_owned(), |us| format!("{us:.0}"));
        println!(
            "| {seed} | {} | {} | {} | {} |",
            text(seen.quantile_us),
            text(seen.low_us),
            text(seen.high_us),
            text(seen.max_us)
        );
    }
    println!(
        "\nOf {runs} runs {open} do not know p99.9 from above; {wrong} that saw a freeze have a bound below half of one"
    );
    Ok(open as f64 >= FREEZES_OPEN * runs as f64 && wrong == 0)
}

/// Figures of p99.9 in a result, in microseconds.
struct Tail {
    quantile_us: Option<f64>,
    low_us: Option<f64>,
    high_us: Option<f64>,
    max_us: Option<f64>,
}

impl Tail {
    fn of(result: &Value) -> Tail {
        let number =
            |path: &str| result.pointer(&format!("/totals/response_us/{path}")).and_then(Value::as_f64);
        Tail {
            quantile_us: number("p99.9"),
            low_us: number("ci/p99.9/0"),
            high_us: number("ci/p99.9/1"),
            max_us: number("max"),
        }
    }

    /// Whether a freeze was seen, and the bound lies below half of one all the same.
    fn is_wrong(&self) -> bool {
        let half_us = FROZEN_S * 1e6 / 2.0;
        self.max_us.is_some_and(|max| max > half_us) && self.high_us.is_some_and(|high| high < half_us)
    }
}

/// Stops a process now and then, by a shell that ends after 20 s at most and lets it go on in the end.
fn stop_now_and_then(process: u32, seed: u64) -> io::Result<Child> {
    let mut script = String::new();
    let mut at_s = 0.0;
    for number in 0.. {
        let gap_s = -(1.0 - unit(seed, number)).ln() * BETWEEN_S;
        at_s += gap_s + FROZEN_S;
        if at_s > 2.0 * FREEZES_LENGTH_S {
            break;
        }
        script += &format!(
            "sleep {gap_s:.3}; kill -STOP {process}; sleep {FROZEN_S}; kill -CONT {process} || exit 0\n"
        );
    }
    Command::new("sh").args(["-c", &script]).spawn()
}

/// A number from 0 to below 1, from Steele, Lea and Flood's SplitMix64.
fn unit(seed: u64, number: u64) -> f64 {
    let mut bits = (seed << 32).wrapping_add(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)) as f64 / 2_f64.powi(64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_step_counts_where_it_is_named_within_a_second() {
        let result = |steady: bool, at_s: f64| json!({"steady": steady, "change": {"at_s": at_s}});
        assert!(names_the_step(&result(false, 5.9)) && names_the_step(&result(false, 4.1)));
        assert!(!names_the_step(&result(false, 6.1)) && !names_the_step(&result(true, 5.0)));
        assert!(!names_the_step(&json!({"steady": true})));
    }

    #[test]
    fn a_bound_below_half_of_a_freeze_is_wrong_where_one_was_seen() {
        let tail = |max: f64, high: Value| {
            Tail::of(
                &json!({"totals": {"response_us": {"max": max, "p99.9": 900.0, "ci": {"p99.9": [800.0, high]}}}}),
            )
        };
        assert!(tail(50_000.0, json!(1_000.0)).is_wrong());
        assert!(!tail(50_000.0, json!(null)).is_wrong() && !tail(50_000.0, json!(48_000.0)).is_wrong());
        assert!(!tail(3_000.0, json!(1_000.0)).is_wrong());
    }

    #[test]
    fn drawn_numbers_spread_evenly() {
        let mean = (0..1_000).map(|number| unit(7, number)).sum::<f64>() / 1_000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
    }
}
