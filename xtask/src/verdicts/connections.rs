//! The time that reading the connections of a run takes: TCP's figures of 10,000 connections, by a thread that is not a
//! worker.

use std::io;

use super::scenario::{Scenario, Server};
use super::stage::{Stage, Theatre};

/// The connections of a run.
const CONNECTIONS: u64 = 10_000;

/// The longest time that a reading of them may take, in seconds.
const READING_MAX_S: f64 = 0.05;

/// Measures and prints; false when fewer than `need` of `runs` readings were short enough.
pub fn run(theatre: &Theatre, runs: usize, need: usize) -> io::Result<bool> {
    let server = Server::Memcached("-t 1 -m 256 -c 12000".to_owned());
    let scenario = Scenario { server, ..Scenario::default() };
    let stage = Stage::set(theatre, &scenario)?;
    let mut taken = Vec::new();
    for _ in 0..runs {
        let result = stage.run_words(&format!("-c {CONNECTIONS} --rate 5k"), 2.0)?;
        let read = result.pointer("/evidence/machines/0/connections/read").and_then(|read| read.as_u64());
        let reading_s = result.pointer("/evidence/machines/0/reading_s").and_then(|taken| taken.as_f64());
        let (Some(read), Some(reading_s)) = (read, reading_s) else {
            return Err(io::Error::other("the result does not tell how long its connections took to read"));
        };
        if read != CONNECTIONS {
            return Err(io::Error::other(format!("{read} of {CONNECTIONS} connections were read")));
        }
        taken.push(reading_s);
    }
    let good = taken.iter().filter(|taken| **taken < READING_MAX_S).count();
    let times: Vec<String> = taken.iter().map(|taken| format!("{:.1}", taken * 1e3)).collect();
    println!(
        "\n{CONNECTIONS} connections: the longer reading of a run took {} ms; below {:.0} ms in {good} of {runs} runs.",
        times.join(", "),
        READING_MAX_S * 1e3
    );
    Ok(good >= need)
}
