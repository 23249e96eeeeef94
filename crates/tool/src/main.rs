//! The program: from the words of the command line to the part of pummel that they call.

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
