//! The form of a row among the command lines of other tools, and of what such a command line asks for.

use std::io;
use std::path::{Path, PathBuf};

use pummel_logic::plan::Plan;
use pummel_logic::secrets::Secret;

use crate::exit_status::Exit;
use crate::getopt::Choice;
use crate::job::{FrontInputs, Job};
use crate::mutilate;
use crate::style::Style;

/// A command line of another tool that pummel follows.
#[derive(Clone, Copy, Debug)]
pub struct Front {
    /// The name of the subcommand, and of the front in results and metrics. A link of this name follows the command line too.
    pub name: &'static str,
    /// Further names of links that follow the command line.
    pub links: &'static [&'static str],
    /// The sentence of `pummel --help`, without its full stop.
    pub about: &'static str,
    /// The options of the command line, for completions.
    pub options: &'static [Choice],
    /// The texts that `--help` prints, one below the other.
    pub help: &'static [&'static str],
    /// Reads the words behind the name of the program, which is how the errors of some tools begin.
    pub read: fn(&str, Vec<String>, &Machine<'_>) -> Request,
    /// The words and the exit status of something that cannot be done, such as text that cannot be printed.
    pub failure: fn(&str) -> (String, Exit),
}

impl Front {
    /// The names of links that follow the command line, the front's own first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.links.iter().copied())
    }
}

/// What a command line depends on beside its words.
pub struct Machine<'a> {
    /// Environment, files and chance.
    pub inputs: &'a FrontInputs,
    /// The home directory.
    pub home: Option<PathBuf>,
    /// CPUs that this process may run on.
    pub cpus: &'a [usize],
    /// Reads a file.
    pub open: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
}

/// What a command line asks for.
pub enum Request {
    /// A text, which this option asks for.
    Text(&'static str, Text),
    /// Nothing that can be done.
    Refused {
        /// The reason, without the name of the program.
        why: String,
        /// What is printed.
        texts: Vec<Text>,
        /// How the program ends.
        exit: Exit,
    },
    /// One run.
    Run(Box<dyn OneRun>),
    /// Runs one after the other, each with a report of its own.
    InTurn(RunsInTurn),
    /// Runs in the manner of mutilate: one, a search or a scan, with agents or without.
    Runs(Box<mutilate::Runs>),
    /// An agent in the manner of mutilate.
    Agent(mutilate::AgentOptions),
}

/// Runs that are made one after the other, up to the first that fails.
pub struct RunsInTurn {
    /// Texts before the first run.
    pub before: Vec<Text>,
    /// The runs.
    pub runs: Vec<Box<dyn OneRun>>,
    /// Whether the runs begin anew behind the last, until the user ends them.
    pub repeats: bool,
    /// A text behind the last run.
    pub after: Option<Text>,
    /// How the program ends where the user ended one of the runs.
    pub interrupted: Exit,
}

/// A text with its line ends, and the stream that it is printed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// To standard output.
    Output(String),
    /// To standard error.
    Error(String),
}

/// A run of a command line, and the words about it.
pub trait OneRun {
    /// What is run.
    fn job(&self) -> &Job;

    /// The file of the log; `None` where it goes to standard error.
    fn log(&self) -> Option<&Path> {
        None
    }

    /// The files that the words about the run are written to, with the options that name them. They are opened before anything is sent.
    fn own_files(&self) -> Vec<(&'static str, PathBuf)> {
        Vec::new()
    }

    /// The password of the plan's login, where the command line has it.
    fn password(&self) -> Option<Secret> {
        None
    }

    /// Refuses a run for which this machine has no memory, where the tool does. `memory` returns a reason as a clause.
    ///
    /// # Errors
    /// Returns the words of the tool.
    fn check_memory(&self, _memory: &dyn Fn(&Plan) -> Result<(), String>) -> Result<(), String> {
        Ok(())
    }

    /// The words about the run. `first_signal` returns the name of the signal that ended it.
    fn style(&self, first_signal: fn() -> Option<&'static str>) -> Box<dyn Style + '_>;
}
