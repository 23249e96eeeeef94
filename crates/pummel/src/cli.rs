//! The subcommands of the program, and the other names that it answers to.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use pummel_fronts::front::Front;
use pummel_fronts::fronts::FRONTS;
use pummel_fronts::job::UsageError;
use pummel_fronts::native::{LoadArgs, Typed};
use pummel_fronts::other_tools;
use pummel_fronts::values::nearest::nearest;

use crate::build_info::LONG_VERSION;
use crate::commands::ab::AbArgs;
#[cfg(feature = "agents")]
use crate::commands::agent::AgentArgs;
use crate::commands::audit::AuditArgs;
use crate::commands::calibrate::CalibrateArgs;
use crate::commands::compare::CompareArgs;
use crate::commands::curve::CurveArgs;
use crate::commands::demo::DemoArgs;
use crate::commands::explain::ExplainArgs;
use crate::commands::fit::FitArgs;
use crate::commands::man_pages::PagesArgs;
use crate::commands::merge::MergeArgs;
use crate::commands::page::PageArgs;
use crate::commands::repeat::RunCommandArgs;
use crate::commands::schema::SchemaArgs;
use crate::commands::search::SearchArgs;
use crate::commands::series::ScanArgs;
use crate::commands::show::ShowArgs;
use crate::commands::suite::SuiteArgs;
use crate::commands::table::TableArgs;
use crate::commands::trace::TraceCommandArgs;
use crate::commands::workloads::WorkloadsArgs;
use crate::serve::ServeArgs;
use crate::short_help::shortened;

/// Load generator and benchmark for memcached, Redis and Valkey
///
/// pummel sends requests to a server, as fast as it answers or at a rate of your choice, and reports how long they took.
/// A time counts from the moment the request was due, so it includes the time for which the request waited to be sent. The
/// report says so when its figures cannot be trusted.
#[derive(Parser, Debug)]
#[command(name = "pummel", version, long_version = LONG_VERSION, after_help = examples(), after_long_help = examples())]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program does.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Store the records, send the load, print the report
    Run(Box<RunCommandArgs>),
    /// Store the records, and nothing else
    Load(Box<Typed<LoadArgs>>),
    /// Find the greatest rate that meets a goal
    Search(Box<SearchArgs>),
    /// Measure at several rates, connections or threads
    Scan(Box<ScanArgs>),
    /// Compare two servers, builds or settings by alternating runs
    Ab(Box<AbArgs>),
    /// Make named runs in order, each with what it is expected to show
    Suite(Box<SuiteArgs>),
    /// Compare stored results: what differs, and whether that is more than chance
    Compare(CompareArgs),
    /// Audit stored results: whether each measures what its name says
    Audit(AuditArgs),
    /// Measure at rates chosen where the curve of the 99th percentile bends
    Curve(Box<CurveArgs>),
    /// Measure what pummel itself adds to the times on this machine (one to two minutes)
    Calibrate(CalibrateArgs),
    /// Run a small memcached and Redis server with chosen service times and faults
    ///
    /// For demos, tests and calibration, not for data: it keeps everything in at most 64 MiB of memory, evicts what was
    /// least recently used, and writes nothing to disk but the truth file. One thread. Ends on SIGINT and SIGTERM with
    /// status 0.
    Serve(Box<ServeArgs>),
    /// Turn reports of mutilate (pummel's or the original's) into one CSV table: latency against rate
    Table(TableArgs),
    /// List the named workloads, or print one as a profile
    Workloads(WorkloadsArgs),
    /// Inspect, convert, sample or split a trace of a production cache
    Trace(TraceCommandArgs),
    /// Derive a workload from a trace: mix, sizes, expiry, popularity, bursts and cache misses
    Fit(Box<FitArgs>),
    /// Print a stored result, as text, Markdown, JSON, CSV or a table of percentiles
    Show(ShowArgs),
    /// Make an HTML page with charts from a stored result
    Report(PageArgs),
    /// Add up results of runs that shared one load at the same time, or keep them as repetitions
    Merge(MergeArgs),
    /// Print the JSON schema of a result
    Schema(SchemaArgs),
    /// Demonstrate a closed and an open loop, against a server or the built-in one
    Demo(DemoArgs),
    /// Print or save the plan that a command line stands for
    Explain(ExplainArgs),
    /// Wait for a controller and send its load, as one of several machines
    #[cfg(feature = "agents")]
    Agent(Box<AgentArgs>),
    /// Write man pages and shell completions
    #[command(hide = true)]
    Pages(PagesArgs),
}

const EXAMPLES: &str = "\
Examples:
  10 s against the memcached on this machine:
    pummel run -s 127.0.0.1
  20,000 requests a second for a minute:
    pummel run -s 127.0.0.1 --rate 20k -t 1m
  All options, distributions, units and more examples:
    pummel run --help

{fronts}
Exit status (these command lines keep their originals'):
  0    complete
  1    failed or partial; the report says why, or standard error where nothing was measured
  2    wrong usage; nothing was sent
  3    a value was wrong, a goal was missed or undecided, --until was not reached, or the run had
       a fault that --fail-on names (or that could not be determined)
  130  interrupted (143: by SIGTERM, 129: by SIGHUP); the report is written";

fn examples() -> String {
    let link = |front: &Front| front.names().collect::<Vec<_>>().join(" or ");
    let line = |front: &Front| {
        let name = front.name;
        format!(
            "  The command line of {name} (a link named {} accepts it too):\n    pummel {name} --help\n",
            link(front)
        )
    };
    EXAMPLES.replace("{fronts}", &FRONTS.iter().map(line).collect::<String>())
}

/// The whole command line: the subcommands of pummel, and those that follow the command lines of other tools.
pub fn command() -> clap::Command {
    let fronts = FRONTS.iter().map(|front| {
        let about = format!("{}; see `pummel {} --help`", front.about, front.name);
        clap::Command::new(front.name).about(about).aliases(front.links).disable_help_flag(true)
    });
    Cli::command().subcommands(fronts)
}

/// What the words of a command line of pummel's own mean, the program's name first.
///
/// # Errors
/// Returns the parser's error for words that are no command line, and as the answer to `-h`, `--help` and `--version`.
pub fn parse(words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut command = shortened(command(), &words);
    if !cfg!(feature = "agents") && wants_agents(&words) {
        let message = "this build of pummel has no agents (pummel --version: features); 'make build' and packages have them";
        return Err(command.error(ErrorKind::InvalidSubcommand, message));
    }
    // Behind `explain` stands the command line of another command.
    let place = (1..words.len()).find(|place| words[*place] != "explain").unwrap_or(words.len());
    let name = words.get(place).and_then(|word| word.to_str());
    let subcommand = name.and_then(|name| command.find_subcommand(name));
    let has_server =
        subcommand.is_some_and(|sub| sub.get_arguments().any(|arg| arg.get_long() == Some("server")));
    if let Some(message) = other_tools::host_and_port(&words[place..]).filter(|_| has_server) {
        return Err(UsageError::Missing(message).into());
    }
    let mut matches = match command.try_get_matches_from_mut(&words) {
        Ok(matches) => matches,
        Err(error) => return Err(with_tip(error, &command, &words)),
    };
    // The errors are sentences of pummel's own, which a usage of the whole program would not explain.
    Cli::from_arg_matches_mut(&mut matches)
}

/// The parser's error with the subcommand or the option that the wrong word most probably stands for, where the parser itself
/// knows none, or only one that is spelled alike.
fn with_tip(mut error: clap::Error, command: &clap::Command, words: &[OsString]) -> clap::Error {
    let Some(name) = words.get(1).and_then(|word| word.to_str()) else { return error };
    if error.kind() == ErrorKind::InvalidSubcommand && error.get(ContextKind::SuggestedSubcommand).is_none() {
        let known = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(clap::Command::get_name);
        if let Some(near) = nearest(name, known).filter(|near| *near != name) {
            let near = ContextValue::Strings(vec![near.to_owned()]);
            error.insert(ContextKind::SuggestedSubcommand, near);
        }
    }
    let meant = other_tools::SUBCOMMANDS.iter().find(|(word, _)| *word == name);
    if let Some((_, meant)) = meant.filter(|_| error.kind() == ErrorKind::InvalidSubcommand) {
        error.remove(ContextKind::SuggestedSubcommand);
        let told = StyledStr::from(format!("'pummel {name}' is 'pummel {meant}' here"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![told]));
    }
    if error.kind() == ErrorKind::UnknownArgument && error.get(ContextKind::SuggestedArg).is_some() {
        // It would show the option that the parser holds to be alike.
        error.remove(ContextKind::Usage);
        error.remove(ContextKind::SuggestedArg);
    }
    if error.kind() == ErrorKind::UnknownArgument {
        // `-- --word` would be a server.
        error.remove(ContextKind::Suggested);
        match tip(&error, command.find_subcommand(name), words) {
            Some(Tip::OfAnotherTool(told)) => {
                let told = ContextValue::StyledStrs(vec![StyledStr::from(told)]);
                error.insert(ContextKind::Suggested, told);
            }
            Some(Tip::Alike(option)) => {
                error.insert(ContextKind::SuggestedArg, ContextValue::String(option));
            }
            None => {}
        }
    }
    error
}

/// What an unknown option probably stands for.
enum Tip {
    /// It is a word of another tool: what is to be typed instead.
    OfAnotherTool(String),
    /// It is spelled nearly like this option, which has its dashes.
    Alike(String),
}

/// What the unknown option of an error stands for, among those of a subcommand: by the words of other tools, else one that is
/// spelled nearly the same. The parser's own choice is no guide: it takes `--cluster` for `--cpus`.
fn tip(error: &clap::Error, subcommand: Option<&clap::Command>, words: &[OsString]) -> Option<Tip> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return None };
    let unknown = unknown.split('=').next()?;
    let shown = subcommand?.get_arguments().filter(|arg| !arg.is_hide_set());
    let known: Vec<String> = shown.filter_map(clap::Arg::get_long).map(|long| format!("--{long}")).collect();
    if let Some(told) = other_tools::meaning(unknown, words, &known) {
        return Some(Tip::OfAnotherTool(told));
    }
    let is_of_others = other_tools::OPTIONS.iter().any(|row| row.word == unknown);
    let unknown = unknown.strip_prefix("--").filter(|_| !is_of_others)?;
    let near = nearest(unknown, known.iter().map(|option| option.trim_start_matches('-')));
    near.map(|option| Tip::Alike(format!("--{option}")))
}

/// Whether words of a command line are about agents, which a build for a first look leaves out.
fn wants_agents(words: &[OsString]) -> bool {
    words.get(1).is_some_and(|word| word == "agent")
        || words.iter().any(|word| word.to_string_lossy().starts_with("--agents"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_about_agents_are_known_in_builds_without_them() {
        let wants = |line: &str| wants_agents(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(wants("pummel agent --listen 127.0.0.1:0"));
        assert!(wants("pummel run -s h --agents a,b"));
        assert!(wants("pummel run -s h --agents=ssh://a"));
        assert!(!wants("pummel run -s agent"));
    }

    #[test]
    fn every_word_of_another_tool_leads_to_a_word_of_pummel_and_is_none_itself() {
        let program = command();
        let run = program.find_subcommand("run").expect("a subcommand");
        let longs: Vec<String> =
            run.get_arguments().filter_map(clap::Arg::get_long).map(|long| format!("--{long}")).collect();
        let shorts: Vec<String> =
            run.get_arguments().filter_map(clap::Arg::get_short).map(|short| format!("-{short}")).collect();
        for row in other_tools::OPTIONS {
            let word = row.word.to_owned();
            assert!(longs.iter().any(|long| long == row.meant), "{row:?}");
            assert!(!longs.contains(&word) && !shorts.contains(&word), "{row:?}");
        }
        for (word, meant) in other_tools::SUBCOMMANDS {
            let is_one = |name: &str| program.get_subcommands().any(|sub| sub.get_name() == name);
            assert!(is_one(meant) && !is_one(word), "{word} {meant}");
        }
    }

    #[test]
    fn the_parser_is_sound() {
        command().debug_assert();
    }
}
