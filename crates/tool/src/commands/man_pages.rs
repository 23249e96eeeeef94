//! Man pages and shell completions, made from the same description of the options as the parser.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::compat;
use crate::compat::getopt::{Choice, Takes};
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
    let mut command = command.disable_help_subcommand(true);
    command.build();
    page(command, folder)
}

/// The page of a command and those of its subcommands.
fn page(mut command: Command, folder: &Path) -> io::Result<()> {
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set()).cloned();
    shown.collect::<Vec<_>>().into_iter().try_for_each(|sub| page(sub, folder))?;
    let usage = command.render_usage().to_string();
    let page = Man::new(command);
    let mut text = Vec::new();
    page.render(&mut text)?;
    fs::write(folder.join(page.get_filename()), with_synopsis(&String::from_utf8_lossy(&text), &usage))
}

/// A page whose synopsis is the usage of its command. A list of all options, which stands there otherwise, is read by
/// no person, and the section on options has it.
fn with_synopsis(page: &str, usage: &str) -> String {
    let usage = usage.trim_start_matches("Usage:").trim();
    let usage = usage.replace('\\', "\\\\").replace('-', "\\-");
    let mut lines = Vec::new();
    let mut is_synopsis = false;
    for line in page.lines() {
        if line.starts_with(".SH ") {
            is_synopsis = line == ".SH SYNOPSIS";
            lines.push(line);
            if is_synopsis {
                lines.push(&usage);
            }
        } else if !is_synopsis {
            lines.push(line);
        }
    }
    lines.join("\n") + "\n"
}

/// The completions of pummel, and of the names under which it follows the command lines of other tools.
fn completions(command: Command, folder: &Path) -> io::Result<()> {
    let fronts = compat::NAMES.map(|(name, choices)| (name, front(name, choices)));
    for (name, mut command) in [("pummel", command)].into_iter().chain(fronts) {
        for shell in SHELLS {
            clap_complete::generate_to(shell, &mut command, name, folder)?;
        }
    }
    Ok(())
}

/// The options of a tool's command line as far as completions need them.
fn front(name: &'static str, choices: &[Choice]) -> Command {
    let options = choices.iter().map(|choice| {
        let name = choice.long.or_else(|| letter(choice.short?)).expect("an option has a name");
        let arg = Arg::new(name).action(match choice.takes {
            Takes::Nothing => ArgAction::SetTrue,
            Takes::Value | Takes::Maybe => ArgAction::Set,
        });
        let arg = match choice.takes {
            Takes::Maybe => arg.num_args(0..=1).require_equals(true),
            Takes::Nothing | Takes::Value => arg,
        };
        let arg = choice.short.map_or(arg.clone(), |short| arg.short(short));
        choice.long.map_or(arg.clone(), |long| arg.long(long))
    });
    Command::new(name).disable_help_flag(true).disable_version_flag(true).args(options)
}

/// The name of an option that has a short name alone.
fn letter(short: char) -> Option<&'static str> {
    const LETTERS: &str = "?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let at = LETTERS.find(short)?;
    Some(&LETTERS[at..=at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_synopsis_of_a_page_is_the_usage() {
        let page = ".TH run 1\n.SH SYNOPSIS\n\\fBrun\\fR [\\-\\-a] [\\-\\-b]\n.SH OPTIONS\n.TP\n\\-\\-a\n";
        let expected =
            ".TH run 1\n.SH SYNOPSIS\npummel run [OPTIONS] \\-s <SERVER>\n.SH OPTIONS\n.TP\n\\-\\-a\n";
        assert_eq!(with_synopsis(page, "Usage: pummel run [OPTIONS] -s <SERVER>"), expected);
    }

    #[test]
    fn every_front_has_completions_with_its_options() {
        let folder = tempfile::tempdir().unwrap();
        completions(Command::new("pummel"), folder.path()).unwrap();
        for (name, option) in [
            ("mcperf", "num-conns"),
            ("memaslap", "win_size"),
            ("memcaslap", "win_size"),
            ("mutilate", "keysize"),
        ] {
            for file in [format!("{name}.bash"), format!("_{name}"), format!("{name}.fish")] {
                let script = fs::read_to_string(folder.path().join(&file))
                    .unwrap_or_else(|error| panic!("{file}: {error}"));
                assert!(script.contains(option), "{file} has no {option}");
            }
        }
    }
}
