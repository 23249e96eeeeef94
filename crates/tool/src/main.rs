//! The program: from the words of the command line to the part of pummel that they call.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use pummel_tool::aside::say;
use pummel_tool::cli::{Cli, Command, later};
use pummel_tool::demo::demo;
use pummel_tool::execute::execute;
use pummel_tool::exit::{Exit, answer};
use pummel_tool::explain::explain;
use pummel_tool::front::{Edge, Job, UsageError, native};
use pummel_tool::pages::pages;
use pummel_tool::serve::{ServeArgs, serve};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(error) = later(&words) {
        return answer(&error.into()).into();
    }
    let exit = match Cli::try_parse_from(words) {
        Ok(cli) => follow(cli.command, &Edge::of_process()),
        Err(error) => answer(&error),
    };
    exit.into()
}

fn follow(command: Command, edge: &Edge) -> Exit {
    match command {
        Command::Run(args) => execute_if_good(native::run(&args, edge)),
        Command::Load(args) => execute_if_good(native::load(&args, edge)),
        Command::Serve(args) => serve_until_told(args),
        Command::Demo(args) => demo(&args, edge, execute),
        Command::Explain(args) => explain(&args, edge),
        Command::Pages(args) => pages(&args),
    }
}

fn execute_if_good(job: Result<Job, UsageError>) -> Exit {
    match job {
        Ok(job) => execute(job),
        Err(error) => answer(&error.into()),
    }
}

fn serve_until_told(args: ServeArgs) -> Exit {
    match serve(args) {
        Ok(()) => Exit::Complete,
        Err(error) => {
            say(format_args!("error: {error}"));
            Exit::Failed
        }
    }
}
