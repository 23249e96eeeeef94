//! The start-up of pummel: the time from its start to its first request, whatever the number of records.

use std::io;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::child::Child;
use super::contender::Bench;
use super::rows::Backend;
use super::tap::Tap;
use crate::spread::Spread;

/// Name in which `--rows` looks for its argument.
pub const NAME: &str = "start-up to first request";

/// The most that it may take, in milliseconds.
const BUDGET_MS: f64 = 50.0;

/// One line of the table: pummel with a number of records.
#[derive(Clone, Copy)]
pub struct Line {
    /// Name of the line.
    pub name: &'static str,
    /// The kernel interface of the run.
    pub backend: Backend,
    records: &'static str,
}

/// Lines of the table.
pub const LINES: &[Line] = &[
    Line { name: "pummel epoll, 10^4 records", backend: Backend::Epoll, records: "10k" },
    Line { name: "pummel epoll, 10^9 records", backend: Backend::Epoll, records: "1g" },
    Line { name: "pummel uring, 10^4 records", backend: Backend::Uring, records: "10k" },
    Line { name: "pummel uring, 10^9 records", backend: Backend::Uring, records: "1g" },
];

/// Milliseconds from before the process is made (setpriv and taskset come first) to the first byte of a request at a
/// listener, looked for every 0.1 ms.
pub fn measure(bench: &Bench, program: &Path, line: &Line) -> io::Result<f64> {
    let mut tap = Tap::new()?;
    let words = format!(
        "run --quiet --no-load --server 127.0.0.1:{} --threads 1 --connections 50 --mix get:1 --records {} --protocol text --no-evidence \
         --no-baseline --time 10s --backend {}",
        tap.port,
        line.records,
        line.backend.name()
    );
    let begin = Instant::now();
    let mut client =
        Child::start(program, words.split_whitespace(), bench.cpu, &[], &bench.scratch.join("start-up"))?;
    let (at, _) = tap.first_byte(&mut client)?;
    Ok((at - begin).as_secs_f64() * 1e3)
}

/// The times of every round, by line.
pub struct Measured {
    /// The programs that took part, each with the result of every round in milliseconds.
    pub lines: Vec<(Line, Vec<f64>)>,
}

impl Measured {
    /// The table in Markdown.
    pub fn markdown(&self) -> String {
        let mut text = "| client | start-up in ms, median (range) | at most |\n|---|---|---|\n".to_owned();
        for (line, rounds) in &self.lines {
            let Spread { median, min, max } = Spread::of(rounds.iter().copied());
            let kept = if median <= BUDGET_MS { "kept" } else { "MISSED" };
            text += &format!("| {} | {median:.1} ({min:.1}-{max:.1}) | {BUDGET_MS}: {kept} |\n", line.name);
        }
        text
    }

    /// The table as data.
    pub fn json(&self) -> Value {
        let line = |(line, rounds): &(Line, Vec<f64>)| {
            json!({
                "client": line.name, "rounds": rounds,
                "start_up_ms": Spread::of(rounds.iter().copied()),
            })
        };
        json!({"name": NAME, "clients": self.lines.iter().map(line).collect::<Vec<Value>>()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_takes_too_long_is_said() {
        let lines = vec![(LINES[0], vec![6.0, 5.0, 9.0]), (LINES[1], vec![60.0; 3])];
        let measured = Measured { lines };
        let text = measured.markdown();
        assert!(text.contains("10^4 records | 6.0 (5.0-9.0) | 50: kept |"), "{text}");
        assert!(text.contains("10^9 records | 60.0 (60.0-60.0) | 50: MISSED |"), "{text}");
        assert_eq!(measured.json().pointer("/clients/0/rounds/2").unwrap(), 9.0);
    }
}
