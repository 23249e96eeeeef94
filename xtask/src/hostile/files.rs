//! Mutants of results, plans, profiles and traces, and what every command does that reads them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use super::mutate::{Draws, NOWHERE, mutant};
use crate::coverage::servers::{Serve, program_of};

/// The most memory of a program that reads a mutant, in KiB of addresses.
const MEMORY_MAX_KIB: u64 = 1 << 20;

/// The longest time of a program that reads a mutant, in seconds.
const TIME_MAX_S: u64 = 30;

/// The status of `timeout -s KILL` when the time is over.
const KILLED: i32 = 137;

/// The status of a Rust program that panics.
const PANIC: i32 = 101;

/// The command lines that read a file of each kind. `FILE` is the mutant, `BASE` the file that it comes from, and `OUT` a new file.
const READERS: [(&str, &[&str]); 5] = [
    (
        "result",
        &[
            "show FILE",
            "show FILE --format markdown",
            "show FILE --format json",
            "show FILE --format csv",
            "show FILE --format hgrm",
            "report FILE -o OUT",
            "compare BASE FILE -o OUT",
            "compare FILE BASE --json OUT --worse p99:5%",
            "compare FILE",
            "audit BASE FILE --json OUT",
            "merge BASE FILE -o OUT",
            "merge BASE FILE --as-runs -o OUT",
        ],
    ),
    (
        "plan",
        &["run --plan FILE --json OUT", "run --plan FILE --repeat 2 --json OUT", "merge FILE BASE -o OUT"],
    ),
    (
        "profile",
        &[
            "workloads FILE",
            "explain run -s NOWHERE --workload FILE",
            "run -s NOWHERE --workload FILE --records 10 -t 100ms",
        ],
    ),
    (
        "suite",
        &[
            "suite FILE --print",
            "suite FILE -s NOWHERE --protocol text -t 20ms --timeout 50ms --records 5 --only a --rounds 1 --json OUT",
        ],
    ),
    (
        "trace",
        &[
            "trace stat FILE",
            "trace head FILE",
            "trace convert FILE -o OUT.ptr",
            "trace sample --share 0.5 FILE -o OUT.csv",
            "trace shard 1/2 FILE -o OUT.ptr",
            "fit FILE -o OUT",
            "run -s NOWHERE --trace FILE --pace fast -t 100ms",
        ],
    ),
];

/// A file from which mutants are made.
struct Base {
    kind: &'static str,
    path: PathBuf,
    bytes: Vec<u8>,
}

/// Outcome for a kind of files.
#[derive(Default)]
struct Row {
    mutants: u64,
    commands: u64,
    refused: u64,
    findings: u64,
}

/// Makes the mutants of these seeds and prints a table; says whether nothing was found.
pub fn run(root: &Path, seeds: Range<u64>, program: Option<&Path>) -> io::Result<bool> {
    let begin = Instant::now();
    let program = program_of(root, program)?;
    let program = fs::canonicalize(program)?;
    let folder = root.join("target").join("hostile-files");
    fs::create_dir_all(&folder)?;
    let bases = bases(root, &program, &folder)?;
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for seed in seeds {
        let base = &bases[Draws::of(seed ^ 0x5eed).below(bases.len())];
        let row = rows.entry(base.kind).or_default();
        row.mutants += 1;
        judge(&program, &folder, base, seed, row)?;
    }
    println!("{:<9} {:>8} {:>9} {:>8} {:>9}", "kind", "mutants", "commands", "refused", "findings");
    for (kind, Row { mutants, commands, refused, findings }) in &rows {
        println!("{kind:<9} {mutants:>8} {commands:>9} {refused:>8} {findings:>9}");
    }
    let findings: u64 = rows.values().map(|row| row.findings).sum();
    println!(
        "{} files, {} mutants, {findings} findings, {:.0} s",
        bases.len(),
        rows.values().map(|row| row.mutants).sum::<u64>(),
        begin.elapsed().as_secs_f64()
    );
    Ok(findings == 0)
}

/// Makes one mutant and lets every command read it. A mutant that makes one of them fail badly stays in the folder.
fn judge(program: &Path, folder: &Path, base: &Base, seed: u64, row: &mut Row) -> io::Result<()> {
    let ending = base.path.extension().map_or_else(String::new, |ending| format!(".{}", ending.display()));
    let file = folder.join(format!("mutant-{seed}{ending}"));
    fs::write(&file, mutant(&base.bytes, seed))?;
    let (_, readers) = READERS.iter().find(|(kind, _)| *kind == base.kind).expect("every kind has readers");
    let mut is_kept = false;
    for line in *readers {
        row.commands += 1;
        let ended = read(program, folder, base, &file, line)?;
        row.refused += u64::from(matches!(ended.status.code(), Some(1 | 2)));
        if let Some(what) = trouble(ended.status) {
            is_kept = true;
            row.findings += 1;
            let said = String::from_utf8_lossy(&ended.stderr);
            let said = said.lines().find(|line| line.contains("panicked")).unwrap_or_default();
            println!(
                "finding: {what}: --seed {seed}: {line} ({}, from {}) {said}",
                file.display(),
                base.path.display()
            );
        }
    }
    if !is_kept {
        fs::remove_file(&file)?;
    }
    Ok(())
}

/// Fault in the end of a command; `None` where it did its work or refused the file.
fn trouble(status: ExitStatus) -> Option<String> {
    match status.code() {
        Some(PANIC) => Some("a panic".to_owned()),
        Some(KILLED) => Some(format!("more than {TIME_MAX_S} s")),
        // A shell tells a signal by 128 and its number: an allocation beyond the limit aborts.
        Some(code) if code > 128 => Some(format!("signal {} (memory, or an abort)", code - 128)),
        Some(_) => None,
        None => Some(format!("{status}")),
    }
}

/// Runs a command of the program with its limits.
fn read(
    program: &Path,
    folder: &Path,
    base: &Base,
    file: &Path,
    line: &str,
) -> io::Result<std::process::Output> {
    let out = folder.join("out");
    let words = line.split_whitespace().map(|word| {
        word.replace("FILE", &file.display().to_string())
            .replace("BASE", &base.path.display().to_string())
            .replace("OUT", &out.display().to_string())
            .replace("NOWHERE", NOWHERE)
    });
    let limits = format!("ulimit -v {MEMORY_MAX_KIB}; exec timeout -s KILL {TIME_MAX_S} \"$@\"");
    Command::new("sh")
        .args(["-c", &limits, "sh"])
        .arg(program)
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
}

/// The files from which mutants are made: those of the tests, and new ones of the program.
fn bases(root: &Path, program: &Path, folder: &Path) -> io::Result<Vec<Base>> {
    let mut bases = Vec::new();
    let fixtures = root.join("crates/pummel/tests/fixtures/schema-1");
    for (kind, under) in [("plan", "plans"), ("result", "results")] {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(fixtures.join(under))?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        paths.sort();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml" || ending == "json"));
        bases.extend(paths.into_iter().map(|path| (kind, path)));
    }
    bases.extend(made(program, folder)?);
    bases
        .into_iter()
        .map(|(kind, path)| {
            let mut bytes = fs::read(&path)?;
            if kind == "plan" {
                bytes = nowhere(&String::from_utf8_lossy(&bytes)).into_bytes();
            }
            Ok(Base { kind, path, bytes })
        })
        .collect()
}

/// Files that the program makes now: results of every command, a profile, and traces.
fn made(program: &Path, folder: &Path) -> io::Result<Vec<(&'static str, PathBuf)>> {
    let server = Serve::start(program, "")?;
    let traces = [("trace.csv", twitter_rows()), ("kvcache.csv", kvcache_rows())];
    let [trace, other] = traces.map(|(name, rows)| (folder.join(name), rows));
    fs::write(&trace.0, &trace.1)?;
    fs::write(&other.0, &other.1)?;
    let trace = trace.0;
    let suite = folder.join("suite.toml");
    fs::write(&suite, SUITE)?;
    let mut made = vec![("trace", trace.clone()), ("trace", other.0), ("suite", suite)];
    for (kind, name, line) in [
        (
            "result",
            "run.json",
            "run -s ADDRESS -t 300ms --interval 50ms --records 100 --goal p99:1s --json PATH",
        ),
        ("result", "repeat.json", "run -s ADDRESS -t 100ms --records 100 --repeat 3 --json PATH"),
        ("result", "ab.json", "ab -s ADDRESS --b --depth=2 -t 100ms --records 100 --pairs 3 --json PATH"),
        ("result", "scan.json", "scan -s ADDRESS -t 100ms --records 100 --rates 1k:2k:1k --json PATH"),
        ("result", "compare.json", "compare FOLDER/run.json FOLDER/run.json FOLDER/run.json --json PATH"),
        ("result", "suite.json", "suite FOLDER/suite.toml -s ADDRESS -t 50ms --records 100 --json PATH"),
        ("result", "suites.json", "compare FOLDER/suite.json FOLDER/suite.json --json PATH"),
        ("plan", "plan.toml", "explain --plan PATH run -s ADDRESS -t 100ms --records 100"),
        ("trace", "trace.ptr", "trace convert TRACE -o PATH"),
        ("profile", "fit.toml", "fit TRACE -o PATH"),
    ] {
        let path = folder.join(name);
        let words = line.split_whitespace().map(|word| {
            word.replace("ADDRESS", &server.address)
                .replace("PATH", &path.display().to_string())
                .replace("FOLDER", &folder.display().to_string())
                .replace("TRACE", &trace.display().to_string())
        });
        let mut command = Command::new(program);
        let ended = command.args(words).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        if !path.is_file() {
            return Err(io::Error::other(format!("pummel {line} failed ({ended})")));
        }
        made.push((kind, path));
    }
    let profile = folder.join("profile.toml");
    let text = Command::new(program).args(["workloads", "twitter-52"]).output()?.stdout;
    fs::write(&profile, text)?;
    made.push(("profile", profile));
    Ok(made)
}

/// A suite with every field but a program, which would be started.
const SUITE: &str = "title = 'hostile'\nrounds = 2\n[defaults]\nconnections = 2\nwarmup = '0'\n\
    [[run]]\nname = 'a'\noptions = '--mix get:1'\nexpect = { hits = '>99%', p99 = '<1s', limit = '!generator', errors = 0 }\n\
    [[run]]\nname = 'b'\noptions = ['--mix', 'set:1']\nexpect = { steady = true, rate = '>1' }\n";

/// Rows of a trace in Twitter's layout: time, key, its length, the value's length, client, operation, TTL.
fn twitter_rows() -> String {
    let row = |n: u64| {
        let (key, op) = (n * n % 97, if n.is_multiple_of(3) { "set" } else { "get" });
        format!(
            "{},key{key:04},7,{},{},{op},{}\n",
            n / 20,
            50 + key * 7,
            n % 5,
            if op == "set" { 600 } else { 0 }
        )
    };
    (0..600).map(row).collect()
}

/// Rows of a trace in the layout of CacheLib's.
fn kvcache_rows() -> String {
    let row = |n: u64| {
        let (key, op) = (n * n % 89, if n.is_multiple_of(4) { "SET" } else { "GET" });
        format!("key{key:04},7,{op},{},{},{}\n", 40 + key * 5, 1 + n % 3, n % 7)
    };
    "key,key_size,op,size,op_count,cache_hits\n".to_owned() + &(0..400).map(row).collect::<String>()
}

/// A plan whose only server is not there.
fn nowhere(plan: &str) -> String {
    let is_toml = !plan.trim_start().starts_with('{');
    let mut lines = Vec::new();
    let mut in_servers = false;
    for line in plan.lines() {
        let bare = line.trim_start();
        let begins = bare.starts_with("servers = [") || bare.starts_with("\"servers\": [");
        if begins {
            let list = format!("[\"{NOWHERE}\"]");
            lines.push(if is_toml { format!("servers = {list}") } else { format!("\"servers\": {list},") });
        }
        in_servers |= begins;
        if !in_servers {
            lines.push(line.to_owned());
        }
        in_servers &= !bare.contains(']');
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_for_nowhere_has_no_other_server() {
        let list = format!("[\"{NOWHERE}\"]");
        assert_eq!(
            nowhere("schema = 1\nservers = [\"a:1\", \"b:2\"]\nseed = 1"),
            format!("schema = 1\nservers = {list}\nseed = 1\n")
        );
        assert_eq!(
            nowhere("{\n  \"servers\": [\n    \"a:1\"\n  ],\n  \"seed\": 1\n}"),
            format!("{{\n\"servers\": {list},\n  \"seed\": 1\n}}\n")
        );
    }
}
