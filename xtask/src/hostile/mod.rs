//! `cargo xtask hostile`: the hostile simulation and the plans that are drawn at random, with more seeds than the tests take, or a
//! single run of either, and mutants of files.

mod files;
mod mutate;

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

pub const HELP: &str = "\
Usage: cargo xtask hostile [OPTIONS]

Runs pummel over a simulated network against servers that misbehave, in every pair of features, and says what does not
hold of a run though it has to: accounts add up, the run ends in time with little memory, no verdict without proof,
never a panic. Then it runs plans that are drawn at random, of all kinds of phases, clients and requests, on a simulated
network whose servers behave: whatever is valid runs, and the same holds of it. The runs are those of
crates/engine/tests/hostile, optimised.

The part `files` makes mutants of results, plans, profiles and traces, and lets every command read them that reads such a
file, with 1 GiB of memory and 30 s: it does its work or refuses the file, and never panics, hangs or aborts. No mutant
names a server that is there. A mutant that was found stays in target/hostile-files.

Options:
  --part NAME       this part alone: pairs (of features, with misbehaviours), plans (drawn at random), files (mutants)
  --seeds N         seeds of each pair and misbehaviour, and mutants of files [default: 1000]
  --seed N          this seed alone: a run or a mutant that was found
  --program FILE    the pummel that reads the mutants [default: a release build]
  --pair ONE,OTHER  these two features alone: handshake, churn, windows, servers, tls, udp, reconnect, verify,
                    multi-get, read-through, noreply, phases, settle, until, unstored, changes, dependent, trace,
                    key-churn, events, evictions
  --fault NAME      this misbehaviour alone: refused, closed, garbage, error, extra, repeated, silence, half, fields,
                    tail
  --plans N         plans that are drawn at random [default: 10000]
  --plan N          the plan of this seed alone: a run that was found
  -h, --help        this text

Exit status: 0 nothing was found, 1 something was, 2 the command line is wrong.
";

/// Which runs are made.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// Names of environment variables of the test program, and their values.
    variables: Vec<(&'static str, String)>,
    /// The beginnings of the names of the tests that make the runs; empty where none is simulated.
    tests: Vec<&'static str>,
    /// The mutants of files; absent where none are made.
    files: Option<files::Options>,
}

/// A part of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Pairs,
    Plans,
    Files,
}

impl Part {
    const NAMED: [(&str, Part); 3] = [("pairs", Part::Pairs), ("plans", Part::Plans), ("files", Part::Files)];

    fn parse(word: &str) -> Result<Part, String> {
        let named = Part::NAMED.iter().find(|(name, _)| *name == word);
        named.map(|(_, part)| *part).ok_or_else(|| format!("there is no part `{word}`: pairs, plans, files"))
    }
}

/// The beginnings of the names of the tests of each part.
const PAIRS: &str = "pairs_";
const PLANS: &str = "plans_";

impl Options {
    /// Reads the command line.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn parse(words: &[&str]) -> Result<Options, String> {
        let mut variables =
            vec![("PUMMEL_HOSTILE_SEEDS", "1000".to_owned()), ("PUMMEL_HOSTILE_PLANS", "10000".to_owned())];
        let mut mutants = files::Options { mutants: 1000, alone: None, program: None };
        let (mut asked, mut implied) = (None, None);
        let mut words = words.iter();
        while let Some(option) = words.next() {
            let name = match *option {
                "--part" | "--program" => "",
                "--seeds" => "PUMMEL_HOSTILE_SEEDS",
                "--seed" => "PUMMEL_HOSTILE_SEED",
                "--pair" => "PUMMEL_HOSTILE_PAIR",
                "--fault" => "PUMMEL_HOSTILE_FAULT",
                "--plans" => "PUMMEL_HOSTILE_PLANS",
                "--plan" => "PUMMEL_HOSTILE_PLAN",
                other => return Err(format!("`hostile` does not take this: {other}")),
            };
            let value = words.next().ok_or_else(|| format!("{option} needs a value"))?;
            let number =
                || value.parse::<u64>().map_err(|_| format!("{option} needs a whole number and not {value}"));
            match *option {
                "--part" => asked = Some(Part::parse(value)?),
                "--program" => mutants.program = Some(PathBuf::from(value)),
                "--seeds" => mutants.mutants = number()?,
                "--seed" => mutants.alone = Some(number()?),
                "--plans" => drop(number()?),
                "--plan" => {
                    number()?;
                    implied = Some(Part::Plans);
                }
                // A pair and a misbehaviour are those of runs.
                _ => implied = Some(Part::Pairs),
            }
            if !name.is_empty() {
                variables.push((name, (*value).to_owned()));
            }
        }
        let part = asked.or(implied);
        let tests = match part {
            Some(Part::Pairs) => vec![PAIRS],
            Some(Part::Plans) => vec![PLANS],
            Some(Part::Files) => Vec::new(),
            // A plan has an option of its own for the seed of one.
            None if mutants.alone.is_some() => vec![PAIRS],
            None => vec![PAIRS, PLANS],
        };
        let files = matches!(part, None | Some(Part::Files)).then_some(mutants);
        Ok(Options { variables, tests, files })
    }
}

/// The figures of a pair and a misbehaviour, as a line of the test program gives them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    pair: String,
    fault: String,
    runs: u64,
    struck: u64,
    findings: u64,
}

impl Row {
    /// Reads `pair=P fault=F runs=N struck=N findings=N`.
    fn parse(line: &str) -> Option<Row> {
        let mut row = Row::default();
        for word in line.split_whitespace() {
            let (name, value) = word.split_once('=')?;
            match name {
                "pair" => row.pair = value.to_owned(),
                "fault" => row.fault = value.to_owned(),
                "runs" => row.runs = value.parse().ok()?,
                "struck" => row.struck = value.parse().ok()?,
                "findings" => row.findings = value.parse().ok()?,
                _ => return None,
            }
        }
        (!row.pair.is_empty() && !row.fault.is_empty()).then_some(row)
    }
}

/// Runs the parts and prints their tables; says whether nothing was found.
pub fn run(root: &Path, options: &Options) -> io::Result<bool> {
    let mut is_good = true;
    if !options.tests.is_empty() {
        is_good &= simulate(root, options)?;
    }
    if let Some(mutants) = &options.files {
        is_good &= files::run(root, mutants)?;
    }
    Ok(is_good)
}

fn simulate(root: &Path, options: &Options) -> io::Result<bool> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let begin = Instant::now();
    let mut child = Command::new(cargo)
        .args(["test", "--release", "--package", "pummel-engine", "--test", "hostile", "--", "--nocapture"])
        .args(&options.tests)
        .envs(options.variables.iter().map(|(name, value)| (name, value)))
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut rows = Vec::new();
    let mut findings = Vec::new();
    let mut plans = None;
    for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
        let line = line?;
        // What the test program itself says of a test may stand in front of the line.
        if let Some((_, finding)) = line.split_once("hostile finding: ") {
            findings.push(finding.to_owned());
        } else if let Some((_, counts)) = line.split_once("hostile plans: ") {
            plans = Some(counts.to_owned());
        } else if let Some(row) = line.split_once("hostile: ").and_then(|(_, row)| Row::parse(row)) {
            rows.push(row);
        }
    }
    let passed = child.wait()?.success();
    if !rows.is_empty() {
        print!("{}", table(&rows));
    }
    for finding in &findings {
        println!("finding: {finding}");
    }
    let sum = |of: fn(&Row) -> u64| rows.iter().map(of).sum::<u64>();
    println!(
        "{} pairs and misbehaviours, {} runs, {} with a server that misbehaved, {} findings, {:.0} s",
        rows.len(),
        sum(|row| row.runs),
        sum(|row| row.struck),
        findings.len(),
        begin.elapsed().as_secs_f64()
    );
    if let Some(counts) = &plans {
        println!("plans that were drawn at random until so many were valid: {counts}");
    }
    if rows.is_empty() && plans.is_none() {
        println!(
            "Nothing was run: no pair has these two features (docs: crates/engine/tests/hostile/features.rs)."
        );
    }
    Ok(passed && !(rows.is_empty() && plans.is_none()))
}

/// The rows in columns, by pair and misbehaviour.
fn table(rows: &[Row]) -> String {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| (&row.pair, &row.fault));
    let mut text =
        format!("{:<26} {:<10} {:>8} {:>8} {:>9}\n", "pair", "fault", "runs", "struck", "findings");
    for row in rows {
        let Row { pair, fault, runs, struck, findings } = row;
        text += &format!("{pair:<26} {fault:<10} {runs:>8} {struck:>8} {findings:>9}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_variables_of_the_test_program() {
        let options =
            Options::parse(&["--pair", "churn,handshake", "--fault", "silence", "--seed", "17"]).unwrap();
        let words: Vec<String> =
            options.variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            words,
            [
                "PUMMEL_HOSTILE_SEEDS=1000",
                "PUMMEL_HOSTILE_PLANS=10000",
                "PUMMEL_HOSTILE_PAIR=churn,handshake",
                "PUMMEL_HOSTILE_FAULT=silence",
                "PUMMEL_HOSTILE_SEED=17"
            ]
        );
        assert_eq!(options.files, None, "a pair is one of runs");
        assert_eq!(Options::parse(&["--seed", "x"]).unwrap_err(), "--seed needs a whole number and not x");
        assert_eq!(options.tests, [PAIRS]);
        assert_eq!(Options::parse(&[]).unwrap().tests, [PAIRS, PLANS]);
        assert_eq!(Options::parse(&["--part", "plans", "--plans", "7"]).unwrap().tests, [PLANS]);
        assert_eq!(Options::parse(&["--plan", "7"]).unwrap().tests, [PLANS]);
        assert_eq!(Options::parse(&["--fault"]).unwrap_err(), "--fault needs a value");
    }

    #[test]
    fn parts_are_chosen_by_name() {
        let all = Options::parse(&["--seeds", "10"]).unwrap();
        assert!(!all.tests.is_empty() && all.files.is_some_and(|files| files.mutants == 10));
        let files = Options::parse(&["--part", "files", "--seed", "3", "--program", "p"]).unwrap();
        let alone = files::Options { mutants: 1000, alone: Some(3), program: Some(PathBuf::from("p")) };
        assert_eq!((files.tests.is_empty(), files.files), (true, Some(alone)));
        assert_eq!(Options::parse(&["--part", "plans"]).unwrap().files, None);
        assert!(Options::parse(&["--part", "x"]).unwrap_err().contains("there is no part `x`"));
    }

    #[test]
    fn lines_of_the_test_program_become_rows() {
        let line = "pair=churn,verify fault=half runs=20 struck=19 findings=1";
        let row = Row::parse(line).unwrap();
        assert_eq!((row.runs, row.struck, row.findings), (20, 19, 1));
        assert!(
            table(&[row]).ends_with("churn,verify               half             20       19         1\n")
        );
        assert_eq!(Row::parse("pair=churn,verify and more"), None);
    }
}
