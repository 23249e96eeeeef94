//! The program: from the words of the command line to the part of pummel that they call.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::process::ExitCode;

use pummel_engine::sys;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::fronts::front_of;
use pummel_fronts::job::{FrontInputs, UsageError};
use pummel_tool::cli::{self, Command, parse};
use pummel_tool::commands::ab::ab;
#[cfg(feature = "agents")]
use pummel_tool::commands::agent::agent;
use pummel_tool::commands::audit::audit;
use pummel_tool::commands::calibrate::calibrate;
use pummel_tool::commands::compare::compare;
use pummel_tool::commands::compatible;
use pummel_tool::commands::curve::curve;
use pummel_tool::commands::demo::{self, demo};
use pummel_tool::commands::explain::explain;
use pummel_tool::commands::fit::fit;
use pummel_tool::commands::man_pages::pages;
use pummel_tool::commands::merge::merge;
use pummel_tool::commands::page::report;
use pummel_tool::commands::repeat;
use pummel_tool::commands::schema::schema;
use pummel_tool::commands::search::search;
use pummel_tool::commands::series::scan;
use pummel_tool::commands::show::show;
use pummel_tool::commands::single;
use pummel_tool::commands::suite::suite;
use pummel_tool::commands::table::table;
use pummel_tool::commands::trace::trace;
use pummel_tool::commands::workloads::workloads;
use pummel_tool::front_inputs;
use pummel_tool::parser_answer::answer;
use pummel_tool::serve::{ServeArgs, serve};
use pummel_tool::stderr::{say, settle};

fn main() -> ExitCode {
    // Without the handler a limit of file sizes ends a run in the middle, and that is no reason not to run.
    let _ = sys::report_file_size_limit();
    let exit = follow_words(std::env::args_os().collect());
    settle();
    if exit == Exit::Interrupted {
        // The reports are written. A shell then sees the signal, and a loop of its script ends.
        sys::end_by_first_signal();
    }
    exit.into()
}

fn follow_words(words: Vec<OsString>) -> Exit {
    let inputs = front_inputs::of_process();
    if let Some((front, program, words)) = front_of(&words) {
        return compatible::follow(front, &program, words, &inputs);
    }
    match parse(words) {
        Ok(cli) => follow(cli.command, &inputs),
        Err(error) => answer(&error),
    }
}

fn follow(command: Command, inputs: &FrontInputs) -> Exit {
    match command {
        Command::Run(args) => repeat::run(&args, inputs),
        Command::Load(args) => single::follow(&args, inputs),
        Command::Search(args) => search(&args, inputs),
        Command::Scan(args) => scan(&args, inputs),
        Command::Ab(args) => ab(&args, inputs),
        Command::Suite(args) => suite(&args, inputs),
        Command::Compare(args) => compare(&args),
        Command::Audit(args) => audit(&args),
        Command::Curve(args) => curve(&args, inputs),
        Command::Calibrate(args) => calibrate(&args, inputs),
        Command::Serve(args) => serve_until_told(*args, inputs),
        Command::Table(args) => table(&args),
        Command::Workloads(args) => workloads(&args, inputs),
        Command::Trace(args) => trace(&args),
        Command::Fit(args) => fit(&args, inputs),
        Command::Show(args) => show(&args),
        Command::Report(args) => report(&args),
        Command::Merge(args) => merge(&args),
        Command::Schema(args) => schema(args),
        Command::Demo(args) => demo(&args, inputs, demo::execute),
        Command::Explain(args) => explain(&args, inputs),
        #[cfg(feature = "agents")]
        Command::Agent(args) => agent(&args),
        Command::Pages(args) => pages(&args, &cli::command()),
    }
}

fn serve_until_told(args: ServeArgs, inputs: &FrontInputs) -> Exit {
    if let Some((flag, value, accepted)) = args.refusal() {
        let (flag, accepted) = (flag.to_owned(), accepted.to_owned());
        return answer(&UsageError::Value { flag, value, accepted }.into());
    }
    let service_time = match args.service_time.as_ref().map(|dist| dist.read(inputs.read_text)).transpose() {
        Ok(service_time) => service_time,
        Err(error) => {
            let value = args.service_time.map(|dist| dist.to_string()).unwrap_or_default();
            let (flag, accepted) = ("--service-time <DIST>".to_owned(), error.to_string());
            return answer(&UsageError::Value { flag, value, accepted }.into());
        }
    };
    match serve(args, service_time) {
        Ok(()) => Exit::Complete,
        Err(error) => {
            say(format_args!("error: {error}"));
            Exit::Failed
        }
    }
}
