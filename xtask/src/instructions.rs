//! `cargo xtask instructions`: how many instructions a request costs the worker, counted by callgrind.
//!
//! A count does not depend on how busy the machine is, so that builds of different days can be compared. A run of few
//! requests is taken from a run of more with the same seed: what starting, loading and reporting cost cancels out.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench::server::{Kind, Server};
use crate::programs::{build, release, said_by};

/// Requests by which the longer run of a row is longer, at least.
const REQUESTS_MIN: u64 = 100_000;

/// Number of times by which the longer run fills all slots more than the shorter one, so that how replies came together at the
/// beginning of each, which differs from run to run, is a small part of what is counted.
const ROUNDS_MIN: u64 = 5;

/// One situation in which a request is counted.
struct Row {
    name: &'static str,
    connections: u32,
    depth: u32,
    /// Options that make it an open loop; none: closed.
    pace: &'static [&'static str],
}

/// The pace of the open loops is one that a program keeps up with while each of its instructions is counted.
const OPEN: &[&str] = &["--rate", "4k"];

const ROWS: [Row; 6] = [
    Row { name: "closed, depth 1, 50 connections", connections: 50, depth: 1, pace: &[] },
    Row { name: "closed, depth 16, 50 connections", connections: 50, depth: 16, pace: &[] },
    Row { name: "closed, depth 1, 10,000 connections", connections: 10_000, depth: 1, pace: &[] },
    Row { name: "closed, depth 16, 10,000 connections", connections: 10_000, depth: 16, pace: &[] },
    Row { name: "open, depth 1, 50 connections", connections: 50, depth: 1, pace: OPEN },
    Row { name: "open, depth 1, 10,000 connections", connections: 10_000, depth: 1, pace: OPEN },
];

/// Counts the instructions that a request costs the worker's thread, by callgrind.
///
/// Closed and open loops, at depths 1 and 16, with 50 and 10,000 connections: gets over text, 30-byte keys, 200-byte values,
/// against memcached on loopback. Needs valgrind and memcached. Closed loops at 10,000 connections need `ulimit -n` of 10,100 or
/// more.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Counts this build of pummel; several times for several columns [default: the release build].
    #[arg(long = "binary", value_name = "FILE")]
    binaries: Vec<PathBuf>,
    /// Only rows whose name contains TEXT.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, value_parser = known_row)]
    rows: String,
    /// Further options for `pummel run`, separated by spaces.
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    extra: String,
}

/// The text of `--rows`, which the name of some row has to contain.
fn known_row(text: &str) -> Result<String, String> {
    let names = ROWS.map(|row| row.name);
    let is_known = names.iter().any(|name| name.contains(text));
    is_known
        .then(|| text.to_owned())
        .ok_or_else(|| format!("no row has that in its name; there are {}", names.join("; ")))
}

/// Counts every row and prints a table; false when a row could not be counted.
pub fn run(root: &Path, options: &Options) -> io::Result<bool> {
    let scratch = root.join("target/instructions");
    fs::create_dir_all(&scratch)?;
    let binaries = match options.binaries.is_empty() {
        true => {
            build(root, ["pummel", "--bin", "pummel"])?;
            vec![release(root).join("pummel")]
        }
        false => options.binaries.iter().map(fs::canonicalize).collect::<io::Result<_>>()?,
    };
    println!("{}; instructions of the worker's thread for a request", Kind::Memcached.version()?);
    println!(
        "\n| | {} |",
        binaries.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" | ")
    );
    println!("|---|{}", "---|".repeat(binaries.len()));
    let mut is_whole = true;
    for row in ROWS.iter().filter(|row| row.name.contains(&options.rows)) {
        let server = Server::start(Kind::Memcached, 0, row.connections, &scratch)?;
        print!("| {} |", row.name);
        for binary in &binaries {
            match count(row, binary, &server, &options.extra, &scratch) {
                Ok(instructions) => print!(" {instructions:.0} |"),
                Err(error) => {
                    is_whole = false;
                    print!(" not counted: {error} |");
                }
            }
        }
        println!();
    }
    Ok(is_whole)
}

/// Instructions of the busiest thread for each request that the longer run makes more.
fn count(row: &Row, binary: &Path, server: &Server, extra: &str, scratch: &Path) -> io::Result<f64> {
    let slots = u64::from(row.connections) * u64::from(row.depth);
    let (few, more) = ((2 * slots).max(20_000), (ROUNDS_MIN * slots).max(REQUESTS_MIN));
    let mut totals = Vec::new();
    for requests in [few, few + more] {
        server.wait_until_left()?;
        totals.push(busiest_thread(row, requests, binary, server.port, extra, scratch)?);
    }
    Ok((totals[1] as f64 - totals[0] as f64) / more as f64)
}

fn busiest_thread(
    row: &Row,
    requests: u64,
    binary: &Path,
    port: u16,
    extra: &str,
    scratch: &Path,
) -> io::Result<u64> {
    let directory = scratch.join("counts");
    match fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::create_dir(&directory)?,
    }
    said_by(
        Command::new("valgrind")
            .args(["-q", "--tool=callgrind", "--separate-threads=yes"])
            .arg(format!("--callgrind-out-file={}", directory.join("thread").display()))
            .arg(binary)
            .args(["run", "-s", &format!("127.0.0.1:{port}"), "-c", &row.connections.to_string()])
            .args([
                "-d",
                &row.depth.to_string(),
                "-n",
                &requests.to_string(),
                "--seed",
                "1",
                "--mix",
                "get:1",
            ])
            .args(["--interval", "1000s", "--wait", "block", "--timeout", "60s", "--backend", "epoll"])
            .args(row.pace)
            .args(extra.split_whitespace()),
    )?;
    let mut threads = BTreeMap::new();
    for entry in fs::read_dir(&directory)? {
        let path = entry?.path();
        threads.insert(total(&fs::read_to_string(&path)?).unwrap_or(0), path);
    }
    let (most, _) = threads.pop_last().ok_or_else(|| io::Error::other("callgrind wrote no file"))?;
    Ok(most)
}

/// The sum of a thread's instructions, as callgrind writes it down: `totals: N`, or `summary: N`.
fn total(file: &str) -> Option<u64> {
    let line =
        file.lines().rev().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
    line?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{options, refusal};

    #[test]
    fn the_sum_of_a_thread_is_read() {
        assert_eq!(total("version: 1\nevents: Ir\nsummary: 7\nfn=(1)\n1 7\ntotals: 1234\n"), Some(1_234));
        assert_eq!(total("events: Ir\nsummary: 7\n"), Some(7));
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn builds_and_rows_are_chosen() {
        let own: Options = options("--binary a --binary b --rows open --extra --udp");
        assert_eq!(
            (own.binaries, own.extra.as_str()),
            (vec![PathBuf::from("a"), PathBuf::from("b")], "--udp")
        );
        assert!(refusal::<Options>("--rows sideways").contains("closed, depth 1, 50 connections"));
    }
}
