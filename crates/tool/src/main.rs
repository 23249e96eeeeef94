//! The program: from the words of the command line to the part of pummel that they call.

<<<<<<< HEAD
use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use pummel_tool::cli::{Cli, Command, later};
use pummel_tool::demo::demo;
use pummel_tool::exit::{Exit, answer};
use pummel_tool::explain::explain;
use pummel_tool::front::{Edge, Format, Job, UsageError, native, saved};
use pummel_tool::pages::pages;

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

fn execute(job: Job) -> Exit {
    struct W;
    impl pummel_engine::run::Watch for W {}
    let m = pummel_engine::run::run(&job.plan, &mut W, &|| false).unwrap();
    println!("status {:?} {:?} load {:?} conns open {} failed {} lost {} re {} measured {} rss {} cpu u {} s {}", m.status, m.reason, m.load, m.connections.open, m.connections.failed, m.connections.lost, m.connections.reconnected, m.measured_ns, m.generator.peak_rss_bytes, m.generator.cpu_user_ns, m.generator.cpu_system_ns);
    let s = pummel_logic::measure::summary::Summary::of(&m, &job.plan);
    println!("{:#?}", s.totals);
    for (v, op) in m.groups[0].ops.iter() { 
        println!("{v:?} {:?}", op.counts);
        for sp in pummel_logic::measure::recorder::Span::ALL { let h = op.times.of(sp); println!("  {} p50 {} p99 {} max {:?}", sp.name(), h.quantile(0.5).unwrap_or(0), h.quantile(0.99).unwrap_or(0), h.quantile(1.0)); }
    }
    println!("{:?}", m.generator.turns);
    println!("{:?}", m.verify);
    Exit::Complete
}
=======
use std::process::ExitCode;

use clap::Parser;
use pummel_tool::serve::{ServeArgs, serve};

/// The command line.
#[derive(Parser)]
#[command(name = "pummel", version)]
enum Cli {
    Serve(ServeArgs),
}

fn main() -> ExitCode {
    let Cli::Serve(args) = Cli::parse();
    match serve(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
>>>>>>> host
