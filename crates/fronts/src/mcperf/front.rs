//! mcperf's row among the command lines of other tools.

use std::path::Path;

use crate::exit_status::Exit;
use crate::front::{Front, Machine, OneRun, Request, Text};
use crate::job::Job;
use crate::mcperf::style::McperfStyle;
use crate::mcperf::{McperfCommand, McperfRun, NAME, Refusal, help, options, read};
use crate::style::Style;

/// mcperf's command line.
pub const FRONT: Front = Front {
    name: NAME,
    links: &[],
    about: "Accept the command line of mcperf (twemperf) and print its report",
    options: &options::CHOICES,
    help: &[help::USAGE, help::STATUSES],
    read: request,
    failure: |words| (format!("mcperf: {words}\n"), Exit::Failed),
};

/// What the words behind the program's name ask for. All that mcperf prints goes to standard error.
fn request(_program: &str, words: Vec<String>, _machine: &Machine<'_>) -> Request {
    match read(words.into_iter()) {
        Ok(McperfCommand::Help) => {
            Request::Text("--help", Text::Error([&help::version(), help::USAGE, help::STATUSES].concat()))
        }
        Ok(McperfCommand::Version) => Request::Text("--version", Text::Error(help::version())),
        Ok(McperfCommand::Run(run)) => Request::Run(run),
        Err(Refusal(why)) => {
            let text = format!("mcperf: {why}\n{}", help::USAGE);
            Request::Refused { why, texts: vec![Text::Error(text)], exit: Exit::Failed }
        }
    }
}

impl OneRun for McperfRun {
    fn job(&self) -> &Job {
        &self.job
    }

    fn log(&self) -> Option<&Path> {
        self.display.log.as_deref()
    }

    fn style(&self, _first_signal: fn() -> Option<&'static str>) -> Box<dyn Style + '_> {
        Box::new(McperfStyle::new(&self.display, &self.job.plan))
    }
}
