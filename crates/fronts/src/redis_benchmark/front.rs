//! redis-benchmark's row among the command lines of other tools.

use pummel_logic::secrets::Secret;

use crate::exit_status::Exit;
use crate::front::{Front, Machine, OneRun, Request, RunsInTurn, Text};
use crate::job::Job;
use crate::redis_benchmark::style::BenchmarkStyle;
use crate::redis_benchmark::suite::Program;
use crate::redis_benchmark::{
    BenchmarkCommand, BenchmarkRun, NAME, Refusal, VALKEY_NAME, help, options, read,
};
use crate::style::Style;

/// The command line of redis-benchmark and of valkey-benchmark.
pub const FRONT: Front = Front {
    name: NAME,
    links: &[VALKEY_NAME],
    about: "Accept the command line of redis-benchmark and valkey-benchmark and print its reports",
    options: &options::CHOICES,
    help: &[help::USAGE, help::STATUSES, help::EXAMPLES],
    read: request,
    failure: |words| (format!("{words}\n"), Exit::Failed),
};

/// What the words behind the program's name ask for.
fn request(program: &str, words: Vec<String>, machine: &Machine<'_>) -> Request {
    let program = Program::of_name(program);
    let usage = || Text::Output([help::USAGE, help::EXAMPLES].concat());
    match read(program, words, machine.inputs) {
        Ok(BenchmarkCommand::Help) => Request::Text("--help", usage()),
        Ok(BenchmarkCommand::Version) => Request::Text("--version", Text::Output(help::version(program))),
        Ok(BenchmarkCommand::Tests { runs, repeats, remarks, epilogue }) => {
            let runs = runs.into_iter().map(|run| Box::new(run) as Box<dyn OneRun>).collect();
            let before = remarks.into_iter().map(|words| Text::Error(format!("WARNING: {words}\n")));
            let after = epilogue.map(|text| Text::Output(text.to_owned()));
            Request::InTurn(RunsInTurn {
                before: before.collect(),
                runs,
                repeats,
                after,
                interrupted: Exit::Interrupted,
            })
        }
        Err(Refusal::Unknown(word)) => {
            let why = format!("Invalid option \"{word}\" or option argument missing");
            let texts = vec![Text::Output(format!("{why}\n\n")), usage()];
            Request::Refused { why, texts, exit: Exit::Failed }
        }
        Err(Refusal::Words(why)) => {
            let texts = vec![Text::Error(format!("{why}\n"))];
            Request::Refused { why, texts, exit: Exit::Failed }
        }
    }
}

impl OneRun for BenchmarkRun {
    fn job(&self) -> &Job {
        &self.job
    }

    fn password(&self) -> Option<Secret> {
        self.password.clone()
    }

    fn style(&self, _first_signal: fn() -> Option<&'static str>) -> Box<dyn Style + '_> {
        Box::new(BenchmarkStyle::new(&self.display, &self.job.plan, self.is_first()))
    }
}
