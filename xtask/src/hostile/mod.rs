//! `cargo xtask hostile`: the hostile simulation and the plans that are drawn at random, with more seeds than the tests take, or a
//! single run of either, and mutants of files.

mod files;
mod mutate;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ValueEnum;

use crate::programs;

/// Parts of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Simulated runs in every pair of features, against servers that misbehave.
    Pairs,
    /// Simulated runs of plans that are drawn at random, against servers that behave.
    Plans,
    /// Mutants of results, plans, profiles and traces, which every command reads that reads such a file.
    Files,
}

/// Runs pummel against servers that misbehave, and lets it read files that are wrong.
///
/// What has to hold of every simulated run: accounts add up, the run ends in time with little memory, no verdict without proof, never
/// a panic. The runs are those of crates/engine/tests/hostile, optimised, with more seeds than the tests take. Whatever reads a
/// mutant has 1 GiB of memory and 30 s: it does its work or refuses the file, and never panics, hangs or aborts. No mutant names a
/// server that is there. A mutant that was found stays in target/hostile-files. Exit status 1 when something was found.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// One part of the program [default: all, or that of the other options].
    #[arg(long)]
    part: Option<Part>,
    /// Seeds of each pair and misbehaviour, and mutants of files.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// This seed alone: a run or a mutant that was found.
    #[arg(long)]
    seed: Option<u64>,
    /// The pummel that reads the mutants [default: a release build].
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// These two features alone: handshake, churn, windows, servers, tls, udp, reconnect, verify, multi-get, read-through,
    /// noreply, phases, settle, until, unstored, changes, dependent, trace, key-churn, events, evictions.
    #[arg(long, value_name = "ONE,OTHER")]
    pair: Option<String>,
    /// This misbehaviour alone: refused, closed, garbage, error, extra, repeated, silence, half, fields, tail.
    #[arg(long, value_name = "NAME")]
    fault: Option<String>,
    /// Plans that are drawn at random.
    #[arg(long, default_value_t = 10_000)]
    plans: u64,
    /// The plan of this seed alone: a run that was found.
    #[arg(long)]
    plan: Option<u64>,
}

impl Options {
    /// Whether a part is asked for, by its name or by an option that only it has.
    fn has(&self, part: Part) -> bool {
        let implied = if self.plan.is_some() {
            Some(Part::Plans)
        } else {
            self.pair.as_ref().or(self.fault.as_ref()).map(|_| Part::Pairs)
        };
        match self.part.or(implied) {
            Some(asked) => part == asked,
            // A plan has an option of its own for the seed of one.
            None => part != Part::Plans || self.seed.is_none(),
        }
    }

    /// The beginnings of the names of the tests that make the runs; none where nothing is simulated.
    fn tests(&self) -> Vec<&'static str> {
        let named = [(Part::Pairs, "pairs_"), (Part::Plans, "plans_")];
        named.into_iter().filter(|(part, _)| self.has(*part)).map(|(_, tests)| tests).collect()
    }

    /// The environment variables of the test program.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        let variables = [
            ("PUMMEL_HOSTILE_SEEDS", number(Some(self.seeds))),
            ("PUMMEL_HOSTILE_SEED", number(self.seed)),
            ("PUMMEL_HOSTILE_PAIR", self.pair.clone()),
            ("PUMMEL_HOSTILE_FAULT", self.fault.clone()),
            ("PUMMEL_HOSTILE_PLANS", number(Some(self.plans))),
            ("PUMMEL_HOSTILE_PLAN", number(self.plan)),
        ];
        variables.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
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
    if !options.tests().is_empty() {
        is_good &= simulate(root, options)?;
    }
    if options.has(Part::Files) {
        let seeds = options.seed.map_or(0..options.seeds, |seed| seed..seed + 1);
        is_good &= files::run(root, seeds, options.program.as_deref())?;
    }
    Ok(is_good)
}

fn simulate(root: &Path, options: &Options) -> io::Result<bool> {
    let begin = Instant::now();
    let (lines, passed) =
        programs::test(root, ["pummel-engine", "hostile"], &options.tests(), &options.variables())?;
    let mut rows = Vec::new();
    let mut findings = Vec::new();
    let mut plans = None;
    for line in &lines {
        // What the test program itself says of a test may stand in front of the line.
        if let Some((_, finding)) = line.split_once("hostile finding: ") {
            findings.push(finding.to_owned());
        } else if let Some((_, counts)) = line.split_once("hostile plans: ") {
            plans = Some(counts.to_owned());
        } else if let Some(row) = line.split_once("hostile: ").and_then(|(_, row)| Row::parse(row)) {
            rows.push(row);
        }
    }
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
    use crate::tests::{options, refusal};

    #[test]
    fn options_become_variables_of_the_test_program() {
        let own: Options = options("--pair churn,handshake --fault silence --seed 17");
        let words: Vec<String> =
            own.variables().iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            words,
            [
                "PUMMEL_HOSTILE_SEEDS=1000",
                "PUMMEL_HOSTILE_SEED=17",
                "PUMMEL_HOSTILE_PAIR=churn,handshake",
                "PUMMEL_HOSTILE_FAULT=silence",
                "PUMMEL_HOSTILE_PLANS=10000",
            ]
        );
    }

    #[test]
    fn parts_are_chosen_by_name_or_by_an_option_of_theirs() {
        let chosen = |line: &str| {
            let own: Options = options(line);
            (own.tests(), own.has(Part::Files))
        };
        assert_eq!(chosen("--seeds 10"), (vec!["pairs_", "plans_"], true));
        assert_eq!(chosen("--seed 3"), (vec!["pairs_"], true));
        assert_eq!(chosen("--pair a,b"), (vec!["pairs_"], false));
        assert_eq!(chosen("--plan 7"), (vec!["plans_"], false));
        assert_eq!(chosen("--part plans --plans 7"), (vec!["plans_"], false));
        assert_eq!(chosen("--part files --seed 3"), (vec![], true));
        assert!(refusal::<Options>("--part x").contains("pairs, plans, files"));
        assert!(refusal::<Options>("--seed x").contains("--seed"));
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
