//! The part with sockets: pummel against `pummel serve`, where each client with one connection is a queue M/M/1.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::bench::Site;

/// Clients, each with one connection and one request outstanding.
const CLIENTS: f64 = 80.0;

/// Mean of the held times, in seconds: long beside the way of a request and back.
const HELD_S: f64 = 0.004;

/// The quantiles that are counted, and the least share of runs whose interval has to contain the closed form.
const QUANTILES: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];
const LEAST: f64 = 0.9;

/// Counts runs at two loads and prints a table; says whether the intervals held often enough.
pub fn run(root: &Path, runs: u64, program: Option<&Path>) -> io::Result<bool> {
    let site = match program {
        Some(_) => None,
        None => Some(Site::prepare(root)?),
    };
    let program = program
        .map_or_else(|| site.as_ref().map(|site| site.pummel().to_owned()), |own| Some(own.to_owned()));
    let program = program.expect("one of the two is there");
    println!(
        "Of {runs} runs of 4 s with {CLIENTS} clients, those whose 95 % interval contains the closed form of M/M/1\n"
    );
    println!("| load | p50 | p99 |\n|---|---|---|");
    let mut good = true;
    for load in [0.5, 0.8] {
        let mut held = [0_u64; QUANTILES.len()];
        for seed in 0..runs {
            let result = measure(&program, load, seed)?;
            let holds = contained(&result).ok_or_else(|| io::Error::other("the result has no intervals"))?;
            held.iter_mut().zip(holds).for_each(|(held, holds)| *held += u64::from(holds));
        }
        println!("| {load} | {} | {} |", held[0], held[1]);
        good &= held.iter().all(|held| *held as f64 >= LEAST * runs as f64);
    }
    Ok(good)
}

/// Which intervals of a result contain the closed form. The unit is the measured mean of the service time, which has the
/// way of a request and back in it.
fn contained(result: &Value) -> Option<[bool; QUANTILES.len()]> {
    let number = |path: &str| result.pointer(path)?.as_f64();
    let unit_us = number("/totals/service_us/mean")?;
    let load = number("/totals/rate")? / CLIENTS * unit_us / 1e6;
    let mut holds = [false; QUANTILES.len()];
    for (holds, (name, quantile)) in holds.iter_mut().zip(QUANTILES) {
        let truth_us = -(1.0 - quantile).ln() * unit_us / (1.0 - load);
        let bounds = result.pointer(&format!("/totals/response_us/ci/{name}"))?.as_array()?;
        let low = bounds.first().and_then(Value::as_f64).unwrap_or(0.0);
        let high = bounds.get(1).and_then(Value::as_f64).unwrap_or(f64::INFINITY);
        *holds = low <= truth_us && truth_us <= high;
    }
    Some(holds)
}

/// One run against a server of its own; returns its JSON.
fn measure(program: &Path, load: f64, seed: u64) -> io::Result<Value> {
    let server = Serve::start(program, seed)?;
    let json = std::env::temp_dir().join(format!("pummel-coverage-{}.json", std::process::id()));
    let rate = CLIENTS * load / HELD_S;
    let line = format!(
        "run -s {} --no-load --records 1000 --mix get:1 -c {CLIENTS} --rate {rate} --arrivals poisson -t 4s --warmup 1s \
         --seed {seed} --quiet --no-evidence --json {}",
        server.address,
        json.display()
    );
    let ended = Command::new(program).args(line.split_whitespace()).stdout(Stdio::null()).status()?;
    if !ended.success() {
        return Err(io::Error::other(format!("pummel {line} failed")));
    }
    let result = fs::read_to_string(&json).and_then(|text| Ok(serde_json::from_str(&text)?));
    fs::remove_file(PathBuf::from(&json))?;
    result
}

/// `pummel serve`, which ends with this value.
struct Serve {
    process: Child,
    address: String,
}

impl Serve {
    fn start(program: &Path, seed: u64) -> io::Result<Serve> {
        let line = format!(
            "serve --listen 127.0.0.1:0 --service-time exponential:{HELD_S}s --seed {seed} --max-seconds 60"
        );
        let process = Command::new(program).args(line.split_whitespace()).stdout(Stdio::piped()).spawn()?;
        let mut server = Serve { process, address: String::new() };
        let out = server.process.stdout.take().expect("it is piped");
        let mut first = String::new();
        BufReader::new(out).read_line(&mut first)?;
        let address = first.trim_end().strip_prefix("listening on ");
        server.address = address.ok_or_else(|| io::Error::other("pummel serve does not listen"))?.to_owned();
        Ok(server)
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // Both fail only where the process is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_interval_holds_where_the_closed_form_lies_in_it() {
        // A load of 0.5 and a unit of 4 ms: the median is 4 ln 2 / 0.5 = 5.545 ms, p99 36.84 ms.
        let result = |p50: [f64; 2], p99: Value| {
            json!({"totals": {
                "rate": 10_000.0,
                "service_us": {"mean": 4_000.0},
                "response_us": {"ci": {"p50": p50, "p99": p99}},
            }})
        };
        assert_eq!(contained(&result([5_500.0, 5_600.0], json!([30_000.0, 40_000.0]))), Some([true, true]));
        assert_eq!(contained(&result([5_600.0, 5_700.0], json!([37_000.0, null]))), Some([false, false]));
        assert_eq!(contained(&result([5_500.0, 5_600.0], json!([36_000.0, null]))), Some([true, true]));
        assert_eq!(contained(&json!({})), None);
    }
}
