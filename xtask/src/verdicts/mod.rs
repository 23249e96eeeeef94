//! `cargo xtask verdicts`: whether the limit that a run names is the one that was staged, with real servers.

mod connections;
mod paired;
mod scenario;
mod scenes;
mod stage;
mod watched;
mod witness;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use scenario::{Load, PLAIN, Scenario, one};
use scenes::{IDLE, UNSTAGED, scenes};
use stage::{Said, Stage, Theatre};

use crate::bench::Site;

/// What `--help` prints.
pub const HELP: &str = "\
cargo xtask verdicts [OPTIONS]

Stages the rows of the table of limits, with real servers on this machine, runs pummel against each, and compares the row
and the limit of the result with what was staged. Exit status 1 when a load has fewer right verdicts than it needs. Needs two
CPUs that are otherwise idle, memcached, redis-server, bash, setpriv and taskset; and root with iproute2 for the scenarios that
have a network or a control group of their own, and python3 for those with a program beside the server. Witnesses outside pummel
(`--list` names them) say whether a staging counts; a run that does not count is made once more. docs/EVIDENCE.md says how each row is staged, and what cannot be.

  --part NAME        rows; idle: servers with nothing to do, where no run may accuse; evidence: what evidence costs, by runs
                     with and without it in turns; stamps: the same of `--stamps tx:64`, which may cost 2 % of the CPU time of
                     a request; watched: what --metrics and --live cost, 0.5 % of one CPU and 3 MB at most (needs script);
                     connections: how long 10,000 connections take to read, 50 ms at most; all [rows and idle]
  --row TEXT         only rows with TEXT in their name, in how they are staged or in their load
  --runs N           runs of each load at most, until it is decided [3]; rounds of each pair [6]
  --minutes N        what is not begun after this time is left out and counts as wrong [15]
  --need N           how many of them have to be right [a majority]
  --idle N           idle runs [50]
  --seconds N        seconds of each run [1]
  --pummel FILE      this program, instead of an optimised build
  --figures          also prints the figures that every wrong verdict was judged by
  --list             prints the scenarios and runs nothing
";

/// The part of the program that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    RowsAndIdle,
    Rows,
    Idle,
    Evidence,
    Stamps,
    Watched,
    Connections,
    All,
}

impl Part {
    /// The words of the command line.
    const NAMED: [(&str, Part); 7] = [
        ("rows", Part::Rows),
        ("idle", Part::Idle),
        ("evidence", Part::Evidence),
        ("stamps", Part::Stamps),
        ("watched", Part::Watched),
        ("connections", Part::Connections),
        ("all", Part::All),
    ];

    /// Whether this part is asked for by `asked`.
    fn is_in(self, asked: Part) -> bool {
        match asked {
            Part::All => true,
            Part::RowsAndIdle => matches!(self, Part::Rows | Part::Idle),
            other => self == other,
        }
    }
}

/// Time after which no more runs are begun.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    fn after(minutes: f64) -> Deadline {
        Deadline(Instant::now() + Duration::from_secs_f64(60.0 * minutes))
    }

    /// Whether it is over.
    pub fn is_over(self) -> bool {
        Instant::now() >= self.0
    }
}

/// What the command line asks for.
#[derive(Debug, PartialEq)]
pub struct Options {
    part: Part,
    row: String,
    runs: Option<usize>,
    need: Option<usize>,
    idle: usize,
    seconds: f64,
    minutes: f64,
    pummel: Option<PathBuf>,
    has_figures: bool,
    lists: bool,
}

impl Options {
    /// Reads the arguments behind `verdicts`; the error says what is wrong with them.
    pub fn parse(arguments: &[&str]) -> Result<Options, String> {
        let mut options = Options {
            part: Part::RowsAndIdle,
            row: String::new(),
            runs: None,
            need: None,
            idle: 50,
            seconds: 1.0,
            minutes: 15.0,
            pummel: None,
            has_figures: false,
            lists: false,
        };
        let mut rest = arguments.iter();
        while let Some(&name) = rest.next() {
            let mut value = || rest.next().copied().ok_or(format!("{name} needs a value"));
            match name {
                "--part" => options.part = part(value()?)?,
                "--row" => options.row = value()?.to_owned(),
                "--runs" => options.runs = Some(count(name, value()?)?),
                "--need" => options.need = Some(count(name, value()?)?),
                "--idle" => options.idle = count(name, value()?)?,
                "--seconds" => options.seconds = within(name, value()?, (0.1, 60.0))?,
                "--minutes" => options.minutes = within(name, value()?, (0.1, 600.0))?,
                "--pummel" => options.pummel = Some(PathBuf::from(value()?)),
                "--figures" => options.has_figures = true,
                "--list" => options.lists = true,
                _ => return Err(format!("verdicts has no option {name}")),
            }
        }
        if options.need() > options.runs() {
            return Err(format!("--need {}: there are {} runs", options.need(), options.runs()));
        }
        if options.chosen().next().is_none() {
            return Err(format!("--row {}: no scenario has that (`--list` lists them)", options.row));
        }
        Ok(options)
    }

    fn runs(&self) -> usize {
        self.runs.unwrap_or(if matches!(self.part, Part::Evidence | Part::Stamps | Part::Watched) {
            6
        } else {
            3
        })
    }

    /// The rounds of each pair.
    fn rounds(&self) -> usize {
        self.runs.unwrap_or(6)
    }

    fn need(&self) -> usize {
        self.need.unwrap_or(self.runs() / 2 + 1)
    }

    /// The scenarios that are asked for, each with its loads.
    fn chosen(&self) -> impl Iterator<Item = (&'static Scenario, Vec<&'static Load>)> {
        let all = scenes().map(|scenario| {
            let is_all = scenario.name().contains(&self.row) || scenario.staged.contains(&self.row);
            let loads = scenario.loads.iter();
            (scenario, loads.filter(|load| is_all || load.name().contains(&self.row)).collect())
        });
        all.filter(|(_, loads): &(_, Vec<_>)| !loads.is_empty())
    }
}

fn part(value: &str) -> Result<Part, String> {
    let found = Part::NAMED.iter().find(|(name, _)| *name == value);
    found.map(|(_, part)| *part).ok_or_else(|| {
        let names: Vec<&str> = Part::NAMED.iter().map(|(name, _)| *name).collect();
        format!("--part {value}: there are {}", names.join(", "))
    })
}

fn count(name: &str, value: &str) -> Result<usize, String> {
    let number = value.parse().ok().filter(|number| (1..=1_000).contains(number));
    number.ok_or(format!("{name} {value}: a whole number from 1 to 1000 is needed"))
}

fn within(name: &str, value: &str, (least, most): (f64, f64)) -> Result<f64, String> {
    let number = value.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or(format!("{name} {value}: a number from {least} to {most} is needed"))
}

/// Stages, runs, compares and prints; false when a verdict was wrong too often.
pub fn run(root: &Path, options: &Options) -> io::Result<bool> {
    if options.lists {
        // A reader that has read enough, as `head`, is no failure.
        return list(options).map(|()| true).or_else(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Ok(true),
            _ => Err(error),
        });
    }
    let site = Site::of(root, options.pummel.as_deref())?;
    let theatre = Theatre {
        pummel: site.pummel().to_owned(),
        cpus: [site.server_cpu(), site.client_cpu()],
        scratch: site.scratch().to_owned(),
    };
    theatre.stay_beside_server()?;
    println!("The server on CPU {}, the generator on CPU {}.", theatre.cpus[0], theatre.cpus[1]);
    let mut good = true;
    let deadline = Deadline::after(options.minutes);
    // What is short comes first, so that a slow machine leaves out rows and nothing else.
    for (part, comparison) in [(Part::Evidence, &paired::EVIDENCE), (Part::Stamps, &paired::STAMPS)] {
        if part.is_in(options.part) {
            good &= paired::run(&theatre, comparison, options.rounds(), (options.seconds, deadline))?;
        }
    }
    if Part::Watched.is_in(options.part) {
        if !watched::has_terminals() {
            return Err(io::Error::other("script (bsdutils) is needed for runs in a terminal of their own"));
        }
        good &= watched::run(&theatre, options.rounds(), (options.seconds, deadline))?;
    }
    if Part::Connections.is_in(options.part) {
        good &= connections::run(&theatre, options.runs(), options.need())?;
    }
    if Part::Idle.is_in(options.part) {
        good &= idle(&theatre, options, deadline)?;
    }
    if Part::Rows.is_in(options.part) {
        good &= rows(&theatre, options, deadline);
    }
    Ok(good)
}

/// Writes the scenarios, their witnesses and loads to standard output.
fn list(options: &Options) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (scenario, loads) in options.chosen() {
        let kind = if scenario.is_neighbour() { "neighbour, " } else { "" };
        writeln!(out, "{kind}{}: {}", scenario.name(), scenario.staged)?;
        for witness in scenario.witnesses {
            writeln!(out, "    witness: {}", witness.words())?;
        }
        for load in loads {
            writeln!(out, "    {}", load.name())?;
        }
    }
    for unstaged in UNSTAGED {
        writeln!(out, "not staged: {} ({})", unstaged.row, unstaged.why)?;
    }
    Ok(())
}

/// All scenarios that are asked for; false when a row did not hold often enough, or could not be staged.
fn rows(theatre: &Theatre, options: &Options, deadline: Deadline) -> bool {
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
    for (scenario, loads) in options.chosen() {
        for load in loads {
            let (row, staged, name) = (scenario.name(), scenario.staged, load.name());
            if deadline.is_over() {
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
    for unstaged in UNSTAGED {
        println!("Not staged: {}: {}.", unstaged.row, unstaged.why);
    }
    for complaint in &wrong {
        println!("{complaint}");
    }
    held == all
}

/// What became of the runs of a load.
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
            let said = Said::of(&result).ok_or_else(|| io::Error::other("the result has no verdict"))?;
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

    /// What the wrong verdicts said.
    fn complaints(&self, scenario: &Scenario, load: &str, options: &Options) -> Vec<String> {
        let figures = |said: &Said| match options.has_figures {
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

/// How often an idle run is made again that the hypervisor disturbed.
const STOLEN_RUNS_MAX: usize = 3;

/// Runs against idle servers; false when one of them accused anybody.
fn idle(theatre: &Theatre, options: &Options, deadline: Deadline) -> io::Result<bool> {
    let begin = Instant::now();
    let (mut wrong, mut made, mut stolen) = (Vec::new(), 0, 0);
    for (number, (server, words)) in IDLE.iter().enumerate() {
        let scenario = Scenario { row: "none", limit: "none", staged: "nothing", server: *server, ..PLAIN };
        let stage = Stage::set(theatre, &scenario)?;
        let share = options.idle / IDLE.len() + usize::from(number < options.idle % IDLE.len());
        for _ in 0..share {
            if deadline.is_over() {
                break;
            }
            made += 1;
            let run = || -> io::Result<Said> {
                let result = stage.run(&one(words), options.seconds)?;
                Said::of(&result).ok_or_else(|| io::Error::other("the result has no verdict"))
            };
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
    use serde_json::json;

    #[test]
    fn options_have_defaults_and_bounds() {
        let options = Options::parse(&[]).unwrap();
        assert_eq!(
            (options.runs(), options.need(), options.idle, options.part),
            (3, 2, 50, Part::RowsAndIdle)
        );
        let options = Options::parse(&["--row", "server-cpu", "--runs", "5", "--seconds", "0.5"]).unwrap();
        assert_eq!((options.runs(), options.need(), options.chosen().count()), (5, 3, 2));
        assert_eq!(Options::parse(&["--part", "evidence"]).unwrap().runs(), 6);
        let all = Options::parse(&["--part", "all", "--minutes", "2"]).unwrap();
        assert_eq!((all.runs(), all.rounds(), all.minutes), (3, 6, 2.0));
        assert!(Part::NAMED.iter().all(|(_, part)| part.is_in(Part::All)));
        assert!(Part::Idle.is_in(Part::RowsAndIdle) && !Part::Stamps.is_in(Part::RowsAndIdle));
        let agents: Vec<_> = Options::parse(&["--row", "2 agents"]).unwrap().chosen().collect();
        assert!(agents.iter().all(|(_, loads)| loads.iter().all(|load| load.agents == 2)), "{agents:?}");
        for (arguments, words) in [
            (&["--part", "paired"][..], "rows, idle, evidence, stamps, watched, connections, all"),
            (&["--row", "nonsense"], "no scenario"),
            (&["--runs", "0"], "from 1 to 1000"),
            (&["--need", "4"], "there are 3 runs"),
            (&["--seconds", "0"], "from 0.1 to 60"),
            (&["--idle"], "needs a value"),
            (&["--speed"], "no option --speed"),
        ] {
            assert!(Options::parse(arguments).unwrap_err().contains(words), "{words}");
        }
    }

    #[test]
    fn a_verdict_is_read_from_a_result() {
        let result = json!({"verdict": {
            "limit": "server", "row": "server-cpu", "says": "The CPU.", "evidence": [{"says": "busy 3 %"}]
        }});
        let said = Said::of(&result).unwrap();
        assert_eq!(
            (said.limit.as_str(), said.row.as_str(), said.says.as_str()),
            ("server", "server-cpu", "The CPU.")
        );
        assert_eq!(said.evidence, ["busy 3 %"]);
        assert_eq!(Said::of(&json!({"verdict": {"limit": "server"}})), None);
    }
}
