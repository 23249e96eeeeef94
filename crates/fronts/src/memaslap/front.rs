//! memaslap's row among the command lines of other tools.

use pummel_logic::plan::Plan;

use crate::exit_status::Exit;
use crate::front::{Front, Machine, OneRun, Request, Text};
use crate::job::Job;
use crate::memaslap::style::MemaslapStyle;
use crate::memaslap::{
    HELP, MemaslapCommand, MemaslapRun, NAME, OPTIONS, Refusal, VERSION, read, unallocated,
};
use crate::style::Style;

/// memaslap's command line. Debian's package calls the program memcaslap.
pub const FRONT: Front = Front {
    name: NAME,
    links: &["memcaslap"],
    about: "Accept the command line of memaslap and print its report",
    options: OPTIONS,
    help: &[HELP],
    read: request,
    failure: |words| (format!("{words}\n"), Exit::Failed),
};

/// What the words behind the program's name ask for.
fn request(program: &str, words: Vec<String>, machine: &Machine<'_>) -> Request {
    let refusal = match read(words.into_iter(), machine) {
        Ok(MemaslapCommand::Help) => return Request::Text("--help", Text::Output(HELP.to_owned())),
        Ok(MemaslapCommand::Version) => return Request::Text("--version", Text::Output(VERSION.to_owned())),
        Ok(MemaslapCommand::Run(run)) => return Request::Run(run),
        Err(refusal) => refusal,
    };
    let why = refusal.text().trim_end().to_owned();
    let texts = match refusal {
        Refusal::Words(text) => vec![Text::Error(format!("{program}: {text}\n"))],
        Refusal::Choice(text) => vec![Text::Error(format!("{text}\n"))],
        Refusal::WithHelp(text) => vec![Text::Error(format!("{text}\n")), Text::Output(HELP.to_owned())],
    };
    Request::Refused { why, texts, exit: Exit::Failed }
}

impl OneRun for MemaslapRun {
    fn job(&self) -> &Job {
        &self.job
    }

    fn check_memory(&self, memory: &dyn Fn(&Plan) -> Result<(), String>) -> Result<(), String> {
        memory(&self.job.plan).map_err(|why| unallocated(&why))
    }

    fn style(&self, first_signal: fn() -> Option<&'static str>) -> Box<dyn Style + '_> {
        Box::new(MemaslapStyle::new(self, first_signal))
    }
}
