//! `pummel mcperf`: follows its command line.

use std::ffi::OsString;

use crate::job::driver::{Extras, drive};
use crate::job::outlets::FrontFiles;
use crate::stderr;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::mcperf::style::McperfStyle;
use pummel_fronts::mcperf::{McperfCommand, McperfRun, Refusal, help, read};

/// Follows a command line; `words` stand behind the program's name.
pub fn mcperf(words: &[OsString]) -> Exit {
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    match read(words) {
        Ok(McperfCommand::Help) => tell(&format!("{}{}{}", help::version(), help::USAGE, help::STATUSES)),
        Ok(McperfCommand::Version) => tell(&help::version()),
        Ok(McperfCommand::Run(asked)) => run(&asked),
        Err(Refusal(why)) => {
            tell(&format!("mcperf: {why}\n{}", help::USAGE));
            Exit::Failed
        }
    }
}

/// All that mcperf prints goes to standard error.
fn tell(text: &str) -> Exit {
    stderr::write(text.to_owned());
    Exit::Complete
}

fn run(asked: &McperfRun) -> Exit {
    let McperfRun { job, display } = asked;
    let files = FrontFiles { log: display.log.clone(), samples: None };
    drive(job, &Extras { files, ..Extras::default() }, &mut McperfStyle::new(display, &job.plan))
}
