//! The parts with sockets: pummel against `pummel serve`, where each client with one connection is a queue M/M/1, and two such
//! servers that differ by 1 %.

use std::io;
use std::path::Path;

use serde_json::Value;

use super::servers::{Serve, json_of, program_of};

/// Clients, each with one connection and one request outstanding.
const CLIENTS: f64 = 20.0;

/// Mean of the held times, in seconds: long beside the way of a request and back.
const HELD_S: f64 = 0.004;

/// The quantiles that are counted, and the least share of runs whose interval has to contain the closed form.
const QUANTILES: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];
const LEAST: f64 = 0.9;

/// Length of the measured phase, in seconds.
const LENGTH_S: f64 = 4.0;

/// The held time of the search's server, in seconds: one queue, which can do 2,000 requests per second.
const SEARCH_HELD_S: f64 = 0.0005;

/// Clients of a search, each with one connection. They are many, so that a request hardly ever waits for the one before it of its
/// client: the queue of the closed form takes every request when it is due.
const SEARCH_CLIENTS: u64 = 1_000;

/// The rate up to which the goal of the searches is met: at a load of 0.7 the p99 of M/D/1 is 7.486 services (Erlang's series).
const KNEE_LOAD: f64 = 0.7;

/// p99 of M/D/1 at [`KNEE_LOAD`], in services.
const KNEE_SERVICES: f64 = 7.486;

/// The least share of the searches whose interval has to contain the knee, and the greatest share that may promise more
/// than 2 % too much.
const SEARCHES_HELD: f64 = 0.9;
const SEARCHES_TOO_HIGH: f64 = 0.05;

/// The held times of two servers that are compared, in microseconds.
const PLANTED_US: [f64; 2] = [1_000.0, 1_010.0];

/// The least share of the comparisons that have to find the difference, and of those whose interval has to contain it.
const PLANTED_FOUND: f64 = 0.95;
const PLANTED_HELD: f64 = 0.9;

/// Counts runs at two loads, and searches, and prints a table of each; says whether the intervals held often enough.
///
/// `searches` is how many there are, and how many seconds each of their runs takes.
pub fn run(root: &Path, runs: u64, searches: (u64, u64), program: Option<&Path>) -> io::Result<bool> {
    let program = program_of(root, program)?;
    println!(
        "Of {runs} runs of 4 s with {CLIENTS} clients, those whose 95 % interval contains the closed form of M/M/1\n"
    );
    println!("| load | p50 | p99 | without intervals, since they were not steady |\n|---|---|---|---|");
    let mut good = true;
    for load in [0.5, 0.8] {
        let (mut held, mut unsteady) = ([0_u64; QUANTILES.len()], 0);
        for seed in 0..runs {
            let result = measure(&program, load, seed)?;
            // A run that is called unsteady has no intervals: by chance, or since the machine took time from one side.
            if result["steady"] == false {
                unsteady += 1;
                continue;
            }
            let holds = contained(&result).ok_or_else(|| io::Error::other("the result has no intervals"))?;
            held.iter_mut().zip(holds).for_each(|(held, holds)| *held += u64::from(holds));
        }
        println!("| {load} | {} | {} | {unsteady} |", held[0], held[1]);
        good &= held.iter().all(|held| *held as f64 >= LEAST * (runs - unsteady) as f64);
    }
    Ok(good & searched(&program, searches)?)
}

/// Compares two servers of which the second holds every request for 1 % longer, and prints each comparison; returns whether the
/// difference was found, and the true one lies in the interval, as often as promised.
pub fn planted(root: &Path, comparisons: u64, program: Option<&Path>) -> io::Result<bool> {
    let program = program_of(root, program)?;
    println!("| comparison | p50 of A, us | change | from | to | true | |\n|---|---|---|---|---|---|---|");
    let (mut found, mut held) = (0, 0);
    for seed in 0..comparisons {
        let result = compared(&program, seed)?;
        let number = |path: &str| {
            let number = result.pointer(&format!("/figures/p50/{path}")).and_then(Value::as_f64);
            number.ok_or_else(|| io::Error::other(format!("the comparison has no {path} of p50")))
        };
        let (a, change, low, high) = (number("a")?, number("change")?, number("ci/0")?, number("ci/1")?);
        let truth = (PLANTED_US[1] - PLANTED_US[0]) / a;
        let word = result.pointer("/figures/p50/word").and_then(Value::as_str).unwrap_or_default();
        found += u64::from(word == "differ");
        held += u64::from((low..=high).contains(&truth));
        let percent = |share: f64| format!("{:+.2} %", share * 100.0);
        println!(
            "| {seed} | {a:.0} | {} | {} | {} | {} | {word} |",
            percent(change),
            percent(low),
            percent(high),
            percent(truth)
        );
    }
    println!(
        "\nOf {comparisons} comparisons {found} find the difference, and {held} intervals contain the true one"
    );
    let all = comparisons as f64;
    Ok(found as f64 >= PLANTED_FOUND * all && held as f64 >= PLANTED_HELD * all)
}

/// One comparison of two servers of their own; returns its JSON.
fn compared(program: &Path, seed: u64) -> io::Result<Value> {
    let start = |held_us: f64| {
        Serve::start(program, &format!("--service-time {held_us}us --seed {seed} --max-seconds 600"))
    };
    let [first, second] = [start(PLANTED_US[0])?, start(PLANTED_US[1])?];
    let line = format!(
        "ab -s {} --versus {} --pairs 10 -t 3s --no-load --records 1000 --mix get:1 -c 20 --rate 2k --arrivals poisson --metric p50 \
         --seed {seed} --quiet --no-evidence",
        first.address, second.address
    );
    json_of(program, &line, &[0])
}

/// Searches for the knee of a server with one queue, and prints the result of each search; returns whether they are as
/// good as they promise.
fn searched(program: &Path, (searches, seconds): (u64, u64)) -> io::Result<bool> {
    if searches == 0 {
        return Ok(true);
    }
    println!("\n| search | found | from | to | knee |\n|---|---|---|---|---|");
    let (mut held, mut answered, mut too_high) = (0, 0, 0);
    for seed in 0..searches {
        let result = search(program, seed, seconds)?;
        let number = |path: &str| result.pointer(path).and_then(Value::as_f64);
        // The way there and back is a part of each service: the capacity that was seen has it.
        let capacity = number("/search/closed_loop_rate")
            .ok_or_else(|| io::Error::other("the result has no rate in closed loop"))?;
        let knee = KNEE_LOAD * capacity;
        let (found, low, high) = (number("/found_rate"), number("/search/low"), number("/search/high"));
        held += u64::from(low.zip(high).is_some_and(|(low, high)| (low..=high).contains(&knee)));
        answered += u64::from(found.is_some());
        too_high += u64::from(found.is_some_and(|found| found > 1.02 * knee));
        let text = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{rate:.1}"));
        println!("| {seed} | {} | {} | {} | {knee:.1} |", text(found), text(low), text(high));
    }
    println!(
        "\nOf {searches} searches {answered} have an answer; {held} intervals contain the knee, {too_high} answers are more than 2 % too high"
    );
    let all = searches as f64;
    Ok(held as f64 >= SEARCHES_HELD * all && too_high as f64 <= (SEARCHES_TOO_HIGH * all).max(1.0))
}

/// One search against a server of its own; returns its JSON.
fn search(program: &Path, seed: u64, seconds: u64) -> io::Result<Value> {
    let words = format!("--service-time {SEARCH_HELD_S}s --queue 1 --seed {seed} --max-seconds 600");
    let server = Serve::start(program, &words)?;
    let limit_us = KNEE_SERVICES * SEARCH_HELD_S * 1e6 + way_us(program, &server)?;
    let line = format!(
        "search -s {} --no-load --records 1000 --mix get:1 -c {SEARCH_CLIENTS} --arrivals poisson -t {seconds}s --goal p99:{limit_us:.0}us \
         --seed {seed} --quiet --no-evidence",
        server.address
    );
    // No rate is known to meet the goal: 3.
    json_of(program, &line, &[0, 3])
}

/// Time that the way to the server and back adds to the one for which a request is held, in microseconds: the queue does not have it.
fn way_us(program: &Path, server: &Serve) -> io::Result<f64> {
    let result = server.result(program, "-c 1 -n 1000")?;
    let mean_us = result.pointer("/totals/service_us/mean").and_then(Value::as_f64);
    Ok(mean_us.ok_or_else(|| io::Error::other("the result has no service time"))? - SEARCH_HELD_S * 1e6)
}

/// Says of each interval of a result whether it contains the closed form. A request occupies its connection for its lag and its
/// service time, which has the way to the server and back in it: the unit is the measured mean of their sum. What of it does not
/// vary makes waits shorter, by Pollaczek and Khinchine's formula.
fn contained(result: &Value) -> Option<[bool; QUANTILES.len()]> {
    let number = |path: &str| result.pointer(path)?.as_f64();
    let unit_us = number("/totals/service_us/mean")? + number("/totals/lag_us/mean")?;
    let load = number("/totals/requests")? / LENGTH_S / CLIENTS * unit_us / 1e6;
    let variation = (number("/totals/service_us/stddev")? / unit_us).powi(2);
    let mean_us = unit_us / (1.0 - load) * (1.0 - load * (1.0 - variation) / 2.0);
    let mut holds = [false; QUANTILES.len()];
    for (holds, (name, quantile)) in holds.iter_mut().zip(QUANTILES) {
        let truth_us = -(1.0 - quantile).ln() * mean_us;
        let bounds = result.pointer(&format!("/totals/response_us/ci/{name}"))?.as_array()?;
        let low = bounds.first().and_then(Value::as_f64).unwrap_or(0.0);
        let high = bounds.get(1).and_then(Value::as_f64).unwrap_or(f64::INFINITY);
        *holds = low <= truth_us && truth_us <= high;
    }
    Some(holds)
}

/// One run against a server of its own; returns its JSON.
fn measure(program: &Path, load: f64, seed: u64) -> io::Result<Value> {
    let words = format!("--service-time exponential:{HELD_S}s --seed {seed} --max-seconds 60");
    let server = Serve::start(program, &words)?;
    let rate = CLIENTS * load / HELD_S;
    // An empty queue with a load of 0.8 and services of 4 ms comes near its mean with a time constant of 0.36 s.
    let words =
        format!("-c {CLIENTS} --rate {rate} --arrivals poisson -t {LENGTH_S}s --warmup 3s --seed {seed}");
    server.result(program, &words)
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
                "requests": 10_000,
                "service_us": {"mean": 3_900.0, "stddev": 4_000.0},
                "lag_us": {"mean": 100.0},
                "response_us": {"ci": {"p50": p50, "p99": p99}},
            }})
        };
        assert_eq!(contained(&result([5_500.0, 5_600.0], json!([30_000.0, 40_000.0]))), Some([true, true]));
        assert_eq!(contained(&result([5_600.0, 5_700.0], json!([37_000.0, null]))), Some([false, false]));
        assert_eq!(contained(&result([5_500.0, 5_600.0], json!([36_000.0, null]))), Some([true, true]));
        assert_eq!(contained(&json!({})), None);
    }
}
