//! `cargo xtask verdicts`: whether the limit that a run names is the one that was staged, with real servers.

mod connections;
mod paired;
mod scenario;
mod stage;
mod watched;
mod witness;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::ValueEnum;

use scenario::{Idle, Load, Said, Scenario, Scenes};
use stage::{Stage, Theatre};

use crate::bench::Site;

/// Parts of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Staged rows, three runs of each load.
    Rows,
    /// Servers with nothing to do, where no run may accuse.
    Idle,
    /// The cost of evidence, by runs with and without it in turns.
    Evidence,
    /// The cost of `--stamps tx:64`, in the same way: at most 2 % of the CPU time of a request.
    Stamps,
    /// The cost of --metrics and --live: at most 0.5 % of one CPU and 3 MB (needs script).
    Watched,
    /// The time that 10,000 connections take to read: at most 50 ms.
    Connections,
    /// All of these parts.
    All,
}

/// Compares the limit that runs name with the one that was staged, with real servers.
///
/// Stages the rows of the table of limits on this machine, runs pummel against each, and compares the row and the limit of the
/// result with what was staged. Exit status 1 when a load has fewer right verdicts than it needs. Needs two CPUs that are otherwise
/// idle, memcached, redis-server, bash, setpriv and taskset; and root with iproute2 for the scenarios that have a network or a
/// control group of their own, and python3 for those with a program beside the server. Witnesses outside pummel (`--list` names
/// them) say whether a staging counts; a run that does not count is made once more. docs/decisions/0016-staged-verdicts.md says how each row is staged,
/// and what cannot be.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// One part of the program [default: rows and idle].
    #[arg(long)]
    part: Option<Part>,
    /// Only rows with TEXT in their name, in how they are staged or in their load.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, value_parser = known_row)]
    row: String,
    /// Runs of each load at most, until it is decided [default: 3]; rounds of each pair [default: 6].
    #[arg(long, value_parser = count)]
    runs: Option<usize>,
    /// Minutes after which nothing is begun; what is left out counts as wrong.
    #[arg(long, default_value = "15", value_parser = positive)]
    minutes: f64,
    /// Runs of a load that have to be right [default: a majority].
    #[arg(long, value_parser = count)]
    need: Option<usize>,
    /// Number of idle runs.
    #[arg(long, value_name = "RUNS", default_value = "50", value_parser = count)]
    idle: usize,
    /// Seconds of each run.
    #[arg(long, default_value = "1", value_parser = positive)]
    seconds: f64,
    /// This program, instead of an optimised build.
    #[arg(long, value_name = "FILE")]
    pummel: Option<PathBuf>,
    /// Also prints the figures that every wrong verdict was judged by.
    #[arg(long)]
    figures: bool,
    /// Prints the scenarios and runs nothing.
    #[arg(long)]
    list: bool,
}

impl Options {
    /// Whether a part is asked for.
    fn has(&self, part: Part) -> bool {
        match self.part {
            Some(Part::All) => true,
            None => matches!(part, Part::Rows | Part::Idle),
            Some(asked) => part == asked,
        }
    }

    fn runs(&self) -> usize {
        let is_paired = matches!(self.part, Some(Part::Evidence | Part::Stamps | Part::Watched));
        self.runs.unwrap_or(if is_paired { 6 } else { 3 })
    }

    /// The rounds of each pair.
    fn rounds(&self) -> usize {
        self.runs.unwrap_or(6)
    }

    fn need(&self) -> usize {
        self.need.unwrap_or(self.runs() / 2 + 1)
    }
}

fn count(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=1_000).contains(number));
    number.ok_or_else(|| "a whole number from 1 to 1000 is needed".to_owned())
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.1..=600.0).contains(number));
    number.ok_or_else(|| "a number from 0.1 to 600 is needed".to_owned())
}

/// The text of `--row`, which some scenario has to have.
fn known_row(text: &str) -> Result<String, String> {
    let scenes = Scenes::read().map_err(|error| error.to_string())?;
    let is_known = chosen(&scenes, text).next().is_some();
    is_known.then(|| text.to_owned()).ok_or_else(|| "no scenario has that (`--list` lists them)".to_owned())
}

/// The scenarios with a text, each with its loads.
fn chosen<'a>(scenes: &'a Scenes, text: &str) -> impl Iterator<Item = (&'a Scenario, Vec<&'a Load>)> {
    let with_loads = scenes.scenarios.iter().map(move |scenario| {
        let is_all = scenario.name().contains(text) || scenario.staged.contains(text);
        let loads = scenario.loads.iter().filter(|load| is_all || load.name().contains(text));
        (scenario, loads.collect::<Vec<&Load>>())
    });
    with_loads.filter(|(_, loads)| !loads.is_empty())
}

/// Stages, runs, compares and prints; false when a verdict was wrong too often.
pub fn run(root: &Path, options: &Options) -> io::Result<bool> {
    let scenes = Scenes::read()?;
    if options.list {
        // A reader that has read enough, as `head`, is no failure.
        return list(options, &scenes).map(|()| true).or_else(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Ok(true),
            _ => Err(error),
        });
    }
    if options.need() > options.runs() {
        return Err(io::Error::other(format!(
            "--need {}: there are {} runs",
            options.need(),
            options.runs()
        )));
    }
    let site = Site::of(root, options.pummel.as_deref())?;
    let theatre = Theatre {
        pummel: site.pummel().to_owned(),
        cpus: [site.server_cpu(), site.client_cpu()],
        scratch: site.scratch().to_owned(),
        ends: Instant::now() + Duration::from_secs_f64(60.0 * options.minutes),
    };
    theatre.stay_beside_server()?;
    println!("The server on CPU {}, the generator on CPU {}.", theatre.cpus[0], theatre.cpus[1]);
    let mut good = true;
    // What is short comes first, so that a slow machine leaves out rows and nothing else.
    for (part, comparison) in [(Part::Evidence, &paired::EVIDENCE), (Part::Stamps, &paired::STAMPS)] {
        if options.has(part) {
            good &= paired::run(&theatre, comparison, options.rounds(), options.seconds)?;
        }
    }
    if options.has(Part::Watched) {
        good &= watched::run(&theatre, options.rounds(), options.seconds)?;
    }
    if options.has(Part::Connections) {
        good &= connections::run(&theatre, options.runs(), options.need())?;
    }
    if options.has(Part::Idle) {
        good &= idle(&theatre, options, &scenes.idle)?;
    }
    if options.has(Part::Rows) {
        good &= rows(&theatre, options, &scenes);
    }
    Ok(good)
}

/// Writes the scenarios, their witnesses and loads to standard output.
fn list(options: &Options, scenes: &Scenes) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (scenario, loads) in chosen(scenes, &options.row) {
        let kind = if scenario.is_neighbour() { "neighbour, " } else { "" };
        writeln!(out, "{kind}{}: {}", scenario.name(), scenario.staged)?;
        for witness in &scenario.witnesses {
            writeln!(out, "    witness: {}", witness.words())?;
        }
        for load in loads {
            writeln!(out, "    {}", load.name())?;
        }
    }
    for unstaged in &scenes.unstaged {
        writeln!(out, "not staged: {} ({})", unstaged.row, unstaged.why)?;
    }
    Ok(())
}

/// All scenarios that are asked for; false when a row did not hold often enough, or could not be staged.
fn rows(theatre: &Theatre, options: &Options, scenes: &Scenes) -> bool {
    println!(
        "\nAt most {} runs of {} s each, {} of them have to be right; a load that is decided has no more runs.\n",
        options.runs(),
        options.seconds,
        options.need()
    );
    println!("| row | staged by | load | right | the sentence |");
    println!("|---|---|---|---|---|");
    let begin = Instant::now();
    let (mut held, mut all, mut wrong) = (0, 0, Vec::new());
    for (scenario, loads) in chosen(scenes, &options.row) {
        for load in loads {
            let (row, staged, name) = (scenario.name(), &scenario.staged, load.name());
            if theatre.is_over() {
                all += 1;
                wrong.push(format!("{row} ({staged}; {name}) was not begun: the time was over (--minutes)"));
                continue;
            }
            let tried = Tried::of(theatre, scenario, load, options);
            all += 1;
            match tried {
                Err(why) => {
                    println!("| {row} | {staged} | {name} | not staged | {why} |");
                    wrong.push(format!("{row} ({staged}; {name}) could not be staged: {why}"));
                }
                Ok(tried) => {
                    println!("| {row} | {staged} | {name} | {} | {} |", tried.share(), tried.sentence());
                    held += usize::from(tried.right >= options.need());
                    wrong.extend(tried.complaints(scenario, &name, options));
                }
            }
        }
    }
    println!("\n{held} of {all} loads end as they were staged; {:.0} s.", begin.elapsed().as_secs_f64());
    for unstaged in &scenes.unstaged {
        println!("Not staged: {}: {}.", unstaged.row, unstaged.why);
    }
    for complaint in &wrong {
        println!("{complaint}");
    }
    held == all
}

/// Outcome of the runs of a load.
#[derive(Default)]
struct Tried {
    right: usize,
    all: Vec<Said>,
    wrong: Vec<Said>,
    /// Why runs did not count: what a witness saw that is not what was staged.
    unseen: Vec<String>,
    sentence: String,
}

impl Tried {
    fn of(theatre: &Theatre, scenario: &Scenario, load: &Load, options: &Options) -> io::Result<Tried> {
        let mut tried = Tried::default();
        // A run whose staging does not count is made once more, as often as there are runs.
        while tried.all.len() < options.runs() && tried.unseen.len() < options.runs() {
            // A server that began to misbehave goes on with it: each run has a server of its own.
            let stage = Stage::set(theatre, scenario)?;
            let before = witness::Reading::of(&stage)?;
            let result = stage.run(load, options.seconds.max(scenario.seconds_min))?;
            if let Some(why) = before.denial(&stage)? {
                tried.unseen.push(why);
                continue;
            }
            let said = Said::of(&result)?;
            if scenario.accepts(&said) {
                tried.right += 1;
                tried.sentence.clone_from(&said.says);
            } else {
                tried.wrong.push(said.clone());
            }
            tried.all.push(said);
            if tried.right >= options.need() || tried.wrong.len() > options.runs() - options.need() {
                break;
            }
        }
        Ok(tried)
    }

    fn share(&self) -> String {
        format!("{} of {}", self.right, self.all.len())
    }

    /// The sentence of the last right verdict, or of the last one.
    fn sentence(&self) -> &str {
        match (self.right, self.all.last()) {
            (0, Some(said)) => &said.says,
            _ => &self.sentence,
        }
    }

    /// Words of the wrong verdicts.
    fn complaints(&self, scenario: &Scenario, load: &str, options: &Options) -> Vec<String> {
        let figures = |said: &Said| match options.figures {
            true => format!(" [{}]", said.evidence.join("; ")),
            false => String::new(),
        };
        let place = format!("{} ({}; {load})", scenario.name(), scenario.staged);
        let trust = |said: &Said| match scenario.never_says.is_empty() && scenario.says.is_empty() {
            true => String::new(),
            false => format!(" {}", said.trust),
        };
        let wrong = |said: &Said| {
            format!("{place}: {} instead: {}{}{}", said.row, said.says, trust(said), figures(said))
        };
        let unseen = |why: &String| format!("{place}: the staging does not count: {why}");
        self.wrong.iter().map(wrong).chain(self.unseen.iter().map(unseen)).collect()
    }
}

/// Number of times that an idle run is made again that the hypervisor disturbed.
const STOLEN_RUNS_MAX: usize = 3;

/// Runs against idle servers; false when one of them accused anybody.
fn idle(theatre: &Theatre, options: &Options, lines: &[Idle]) -> io::Result<bool> {
    let begin = Instant::now();
    let (mut wrong, mut made, mut stolen) = (Vec::new(), 0, 0);
    for (number, Idle { server, words }) in lines.iter().enumerate() {
        let scenario = Scenario { server: server.clone(), ..Scenario::default() };
        let stage = Stage::set(theatre, &scenario)?;
        let share = options.idle / lines.len() + usize::from(number < options.idle % lines.len());
        for _ in 0..share {
            if theatre.is_over() {
                break;
            }
            made += 1;
            let run = || Said::of(&stage.run_words(words, options.seconds)?);
            let mut said = run()?;
            // A hypervisor that takes the CPU away is accused rightly, and says nothing of a quiet machine.
            for _ in 0..STOLEN_RUNS_MAX {
                if !said.says.contains("hypervisor") {
                    break;
                }
                stolen += 1;
                said = run()?;
            }
            if said.limit != "none" {
                wrong.push(format!("{words}: {}: {} [{}]", said.row, said.says, said.evidence.join("; ")));
            }
        }
    }
    println!(
        "\nIdle servers: {} of {} runs name no limit, {} were made again beside a hypervisor that took CPU; \
         {:.0} s.",
        made - wrong.len(),
        made,
        stolen,
        begin.elapsed().as_secs_f64()
    );
    for complaint in &wrong {
        println!("{complaint}");
    }
    if made < options.idle {
        println!(
            "{} of {} runs were not begun: the time was over (--minutes).",
            options.idle - made,
            options.idle
        );
    }
    Ok(wrong.is_empty() && made == options.idle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{options, refusal};

    #[test]
    fn options_have_defaults_and_bounds() {
        let own: Options = options("");
        assert_eq!((own.runs(), own.need(), own.rounds(), own.idle), (3, 2, 6, 50));
        assert!(own.has(Part::Rows) && own.has(Part::Idle) && !own.has(Part::Stamps));
        let own: Options = options("--row server-cpu --runs 5 --seconds 0.5");
        let scenes = Scenes::read().unwrap();
        assert_eq!((own.runs(), own.need(), chosen(&scenes, &own.row).count()), (5, 3, 2));
        assert_eq!(options::<Options>("--part evidence").runs(), 6);
        let all: Options = options("--part all --minutes 2");
        assert_eq!((all.runs(), all.rounds(), all.minutes, all.has(Part::Watched)), (3, 6, 2.0, true));
        assert!(chosen(&scenes, "2 agents").all(|(_, loads)| loads.iter().all(|load| load.agents == 2)));
        for (line, words) in [
            ("--part paired", "rows, idle, evidence, stamps, watched, connections, all"),
            ("--row nonsense", "no scenario"),
            ("--runs 0", "from 1 to 1000"),
            ("--seconds 0", "from 0.1 to 600"),
            ("--idle", "a value is required"),
        ] {
            assert!(refusal::<Options>(line).contains(words), "{line}");
        }
    }
}
