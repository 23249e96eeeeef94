//! Man pages and shell completions, made from the same description of the options as the parser.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit_status::Exit;
use crate::stderr::say;

/// Shells that completions are made for.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Options of `pummel pages`.
#[derive(Args, Clone, Debug)]
pub struct PagesArgs {
    /// Folder for the man pages, made if it is missing
    #[arg(long, value_name = "DIR", required_unless_present = "completions")]
    pub man: Option<PathBuf>,
    /// Folder for the completions of bash, zsh and fish, made if it is missing
    #[arg(long, value_name = "DIR")]
    pub completions: Option<PathBuf>,
}

/// Writes the pages of `command`, the whole command line, that are asked for.
pub fn pages(args: &PagesArgs, command: &Command) -> Exit {
    type Write = fn(Command, &Path) -> io::Result<()>;
    let written = [(&args.man, man as Write), (&args.completions, completions)]
        .into_iter()
        .filter_map(|(folder, write)| Some((folder.as_ref()?, write)))
        .try_for_each(|(folder, write)| {
            fs::create_dir_all(folder)
                .and_then(|()| write(command.clone(), folder))
                .map_err(|error| (folder, error))
        });
    match written {
        Ok(()) => Exit::Complete,
        Err((folder, error)) => {
            say(format_args!("error: pages cannot be written to '{}': {error}", folder.display()));
            Exit::Failed
        }
    }
}

/// `pummel.1` and one page for each subcommand, `pummel-run.1` and so on.
fn man(command: Command, folder: &Path) -> io::Result<()> {
    clap_mangen::generate_to(command.disable_help_subcommand(true), folder)
}

fn completions(mut command: Command, folder: &Path) -> io::Result<()> {
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut command, "pummel", folder)?;
    }
    Ok(())
}
