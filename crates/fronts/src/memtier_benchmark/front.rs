//! memtier_benchmark's row among the command lines of other tools.

use std::path::PathBuf;

use pummel_logic::secrets::Secret;

use crate::exit_status::Exit;
use crate::front::{Front, Machine, OneRun, Request, RunsInTurn, Text};
use crate::job::Job;
use crate::memtier_benchmark::style::MemtierStyle;
use crate::memtier_benchmark::{MemtierCommand, MemtierRun, NAME, Refusal, help, options, read};
use crate::style::Style;

/// The command line of memtier_benchmark.
pub const FRONT: Front = Front {
    name: NAME,
    links: &[],
    about: "Accept the command line of memtier_benchmark and print its reports",
    options: &options::CHOICES,
    help: &[help::USAGE, help::STATUSES, help::EXAMPLES],
    read: request,
    failure: |words| (format!("{NAME}: error: {words}\n"), Exit::Failed),
};

/// What the words behind the program's name ask for.
fn request(_program: &str, words: Vec<String>, machine: &Machine<'_>) -> Request {
    let usage = || Text::Output([help::USAGE, help::EXAMPLES].concat());
    match read(words.into_iter(), machine.inputs, machine.open) {
        Ok(MemtierCommand::Version) => Request::Text("--version", Text::Output(help::version())),
        Ok(MemtierCommand::Runs { runs, head, warnings }) => {
            let runs = runs.into_iter().map(|run| Box::new(run) as Box<dyn OneRun>).collect();
            let before = [Text::Output(head), Text::Error(warnings)];
            let is_said =
                |text: &Text| !matches!(text, Text::Output(words) | Text::Error(words) if words.is_empty());
            let before = before.into_iter().filter(is_said).collect();
            Request::InTurn(RunsInTurn {
                before,
                runs,
                repeats: false,
                after: None,
                interrupted: Exit::Complete,
            })
        }
        Err(Refusal::Help) => {
            // The original ends with the status of a mistake here.
            let why = "the help was asked for".to_owned();
            Request::Refused { why, texts: vec![usage()], exit: Exit::Usage }
        }
        Err(Refusal::Usage(why)) => {
            let texts = vec![Text::Error(format!("{why}\n")), usage()];
            Request::Refused { why, texts, exit: Exit::Usage }
        }
        Err(Refusal::Configuration(why)) => {
            let texts = vec![Text::Error(format!("{why}\n"))];
            Request::Refused { why, texts, exit: Exit::Failed }
        }
    }
}

impl OneRun for MemtierRun {
    fn job(&self) -> &Job {
        &self.job
    }

    fn own_files(&self) -> Vec<(&'static str, PathBuf)> {
        let options = &self.display.options;
        let named = [("--json-out-file", &options.json_out_file), ("--out-file", &options.out_file)];
        named.into_iter().filter_map(|(flag, path)| Some((flag, PathBuf::from(path.as_deref()?)))).collect()
    }

    fn password(&self) -> Option<Secret> {
        self.password.clone()
    }

    fn style(&self, _first_signal: fn() -> Option<&'static str>) -> Box<dyn Style + '_> {
        Box::new(MemtierStyle::new(self))
    }
}
