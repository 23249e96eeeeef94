//! `cargo xtask bench`: what a request costs each client, beside the floor, on this machine.
//!
//! One server, pinned to one CPU; the clients, pinned to another, take turns in rounds, and ratios are taken within a
//! round, so that a machine that changes its pace changes it for all. Nothing is asserted here: it is no test.

mod child;
mod contender;
mod rows;
mod server;
mod table;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use contender::{Bench, Figures};
use rows::{Contender, Program, ROWS, Row};
use server::Server;
use table::Measured;

/// What `--help` prints.
pub const HELP: &str = "\
cargo xtask bench [OPTIONS]

Measures pummel beside the floor (the smallest program that does the same exchange) and, where it is installed,
memcaslap, against memcached on loopback. Needs two CPUs that are otherwise idle, memcached, setpriv and taskset.

  --rounds N       rounds for each row [9]
  --seconds N      seconds for each client in each round [5]
  --quick          3 rounds of 1 second: whether it works, not how fast it is
  --rows TEXT      only rows whose name contains TEXT
  --json FILE      also write every figure of every round to FILE
";

/// What the command line asks for.
#[derive(Debug, PartialEq)]
pub struct Options {
    rounds: u32,
    seconds: u32,
    rows: String,
    json: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments behind `bench`; the error says what is wrong with them.
    pub fn parse(arguments: &[&str]) -> Result<Options, String> {
        let mut options = Options { rounds: 9, seconds: 5, rows: String::new(), json: None };
        let mut rest = arguments.iter();
        while let Some(&name) = rest.next() {
            let mut value = || rest.next().copied().ok_or(format!("{name} needs a value"));
            match name {
                "--rounds" => options.rounds = count(name, value()?)?,
                "--seconds" => options.seconds = count(name, value()?)?,
                "--rows" => options.rows = value()?.to_owned(),
                "--json" => options.json = Some(PathBuf::from(value()?)),
                "--quick" => (options.rounds, options.seconds) = (3, 1),
                _ => return Err(format!("bench has no option {name}")),
            }
        }
        if options.chosen().next().is_none() {
            let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
            return Err(format!(
                "--rows {}: no row has that in its name; there are {}",
                options.rows,
                names.join("; ")
            ));
        }
        Ok(options)
    }

    fn chosen(&self) -> impl Iterator<Item = &'static Row> {
        ROWS.iter().filter(|row| row.name.contains(&self.rows))
    }
}

fn count(name: &str, value: &str) -> Result<u32, String> {
    let number = value.parse().ok().filter(|number| (1..=10_000).contains(number));
    number.ok_or(format!("{name} {value}: a whole number from 1 to 10000 is needed"))
}

/// Builds, measures and prints.
pub fn run(root: &Path, options: &Options) -> io::Result<()> {
    let version = Server::version()?;
    build(root)?;
    let scratch = Scratch::new()?;
    let cpus = child::allowed_cpus()?;
    let (server_cpu, client_cpu) = (cpus[0], *cpus.get(1).unwrap_or(&cpus[0]));
    if server_cpu == client_cpu {
        eprintln!("bench: there is only one CPU, which server and clients share; the figures say little.");
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from).join("release");
    let bench = Bench {
        floor: target.join("examples/floor"),
        pummel: target.join("pummel"),
        cpu: client_cpu,
        scratch: scratch.0.clone(),
    };
    println!("{version} -t 1 on CPU {server_cpu}, clients on CPU {client_cpu}; uniform popularity;");
    println!("{} rounds of {} s, medians with the range of the ratios.", options.rounds, options.seconds);
    let mut results = Vec::new();
    for row in options.chosen() {
        let measured = measure(&bench, row, options, server_cpu)?;
        let Row { name, connections, key_bytes, value_bytes, records, .. } = row;
        println!(
            "\n{name}: {connections} connections, {key_bytes}-byte keys, {value_bytes}-byte values, {records} records\n"
        );
        print!("{}", measured.markdown());
        results.push(measured.json());
    }
    if let Some(file) = &options.json {
        let result = json!({
            "server": version, "kernel": kernel()?, "rounds": options.rounds, "seconds": options.seconds, "rows": results,
        });
        fs::write(file, format!("{result:#}\n"))?;
    }
    Ok(())
}

fn measure(
    bench: &Bench,
    row: &'static Row,
    options: &Options,
    server_cpu: usize,
) -> io::Result<Measured<'static>> {
    let server = Server::start(server_cpu, row.connections, &bench.scratch)?;
    bench.load(row, server.port)?;
    let is_there = |contender: &&Contender| contender.program != Program::Memcaslap || has_memcaslap();
    let present = row.contenders.iter().filter(is_there);
    let mut lines: Vec<(&Contender, Vec<Figures>)> =
        present.map(|contender| (contender, Vec::new())).collect();
    for round in 1..=options.rounds {
        eprintln!("bench: {}, round {round} of {}", row.name, options.rounds);
        for (contender, figures) in &mut lines {
            // What another workload stores would crowd out the records of the row.
            let own_server = match contender.program.note() {
                Some(_) => Some(Server::start(server_cpu, row.connections, &bench.scratch)?),
                None => None,
            };
            let port = own_server.as_ref().map_or(server.port, |server| server.port);
            figures.push(bench.run(row, contender, port, options.seconds)?);
        }
    }
    Ok(Measured { row, lines })
}

fn build(root: &Path) -> io::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    for what in
        [["--package", "pummel", "--bin", "pummel"], ["--package", "pummel-engine", "--example", "floor"]]
    {
        let status =
            Command::new(&cargo).args(["build", "--release"]).args(what).current_dir(root).status()?;
        if !status.success() {
            return Err(io::Error::other(format!("cargo build {} failed", what.join(" "))));
        }
    }
    Ok(())
}

/// Whether a memcaslap is installed that is not pummel under that name.
fn has_memcaslap() -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    let found =
        std::env::split_paths(&path).map(|directory| directory.join("memcaslap")).find(|file| file.exists());
    found.and_then(|file| file.canonicalize().ok()).is_some_and(|file| !file.ends_with("pummel"))
}

fn kernel() -> io::Result<Value> {
    Ok(Value::from(fs::read_to_string("/proc/sys/kernel/osrelease")?.trim()))
}

/// A directory of this process, removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Scratch> {
        let path = std::env::temp_dir().join(format!("pummel-bench-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_defaults_and_bounds() {
        let options = Options::parse(&[]).unwrap();
        assert_eq!((options.rounds, options.seconds, options.chosen().count()), (9, 5, ROWS.len()));
        let options =
            Options::parse(&["--quick", "--rounds", "4", "--rows", "depth 16", "--json", "x"]).unwrap();
        assert_eq!((options.rounds, options.seconds, options.chosen().count()), (4, 1, 1));
        assert_eq!(options.json, Some(PathBuf::from("x")));
    }

    #[test]
    fn wrong_options_are_named() {
        for (arguments, words) in [
            (&["--rounds", "0"][..], "--rounds 0"),
            (&["--rounds"], "needs a value"),
            (&["--rows", "depth 17"], "depth 17"),
            (&["--speed"], "--speed"),
        ] {
            assert!(Options::parse(arguments).unwrap_err().contains(words), "{words}");
        }
    }

    #[test]
    fn the_first_line_of_every_row_is_the_floor() {
        assert!(ROWS.iter().all(|row| row.contenders[0].program == Program::Floor));
    }
}
