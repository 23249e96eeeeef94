//! Man pages and shell completions, made from the same description of the options as the parser.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Args, Command, ValueHint};
use clap_complete::Shell;
use clap_mangen::Man;
use pummel_fronts::exit_status::Exit;
use pummel_fronts::front::Front;
use pummel_fronts::fronts::FRONTS;
use pummel_fronts::getopt::Takes;

use crate::commands::explain::known_fronts;
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
    let mut command = with_fronts(command, described).disable_help_subcommand(true);
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
    let fronts = FRONTS.iter().flat_map(|row| row.names().map(|name| (name, front(row).name(name))));
    for (name, mut command) in [("pummel", offered(command))].into_iter().chain(fronts) {
        for shell in SHELLS {
            let path = clap_complete::generate_to(shell, &mut command, name, folder)?;
            if shell == Shell::Bash {
                let script = fs::read_to_string(&path)?;
                fs::write(&path, with_files(&script, &command, name))?;
            }
        }
    }
    Ok(())
}

/// A script of bash in which words without a dash are completed as files, where a command takes files. The generator offers the
/// options there, and with nothing to offer bash completes files by itself.
fn with_files(script: &str, command: &Command, path: &str) -> String {
    const OFFERED: &str = "COMPREPLY=( $(compgen -W \"${opts}\" -- \"${cur}\") )";
    let takes_files = |arg: &Arg| arg.is_positional() && arg.get_value_hint() == ValueHint::FilePath;
    let mut made = script.to_owned();
    if command.get_arguments().any(takes_files)
        && let Some(begin) = made.find(&format!("\n        {path})\n"))
        && let Some(length) = made[begin..].find("\n            ;;\n")
    {
        let block = made[begin..begin + length].to_owned();
        let block = match block.rsplit_once(OFFERED) {
            Some((before, after)) => format!("{before}COMPREPLY=(){after}"),
            None => block,
        };
        let condition = block.lines().find(|line| line.contains("${cur} == -* || ${COMP_CWORD} -eq"));
        let changed = match condition.map(str::to_owned) {
            Some(condition) => block.replace(&condition, "            if [[ ${cur} == -* ]] ; then"),
            None => block,
        };
        made.replace_range(begin..begin + length, &changed);
    }
    let subcommands = command.get_subcommands();
    subcommands.fold(made, |made, sub| with_files(&made, sub, &format!("{path}__subcmd__{}", sub.get_name())))
}

/// The command line of pummel as completions offer it: without hidden subcommands, and with the options of the command lines
/// that stand behind the name of a subcommand.
fn offered(command: Command) -> Command {
    let command = with_fronts(command, front);
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(|sub| match sub.get_name() {
        "explain" => explained(sub, &command),
        _ => sub.clone(),
    });
    Command::new("pummel")
        .version(env!("CARGO_PKG_VERSION"))
        .args(command.get_arguments().cloned())
        .subcommands(shown)
}

/// `pummel explain` as completions offer it: with the command lines that it takes in place of words of any kind.
fn explained(explain: &Command, program: &Command) -> Command {
    let options = explain.get_arguments().filter(|arg| !arg.is_positional()).cloned();
    let lines = known_fronts().filter_map(|name| program.find_subcommand(name)).cloned();
    let made = Command::new("explain").disable_help_subcommand(true).args(options).subcommands(lines);
    with_about(made, explain)
}

/// A command line in which `made` stands for each subcommand that follows the command line of another tool.
fn with_fronts(command: Command, made: fn(&Front) -> Command) -> Command {
    command.mut_subcommands(|sub| match FRONTS.iter().find(|front| front.name == sub.get_name()) {
        Some(front) => with_about(made(front), &sub),
        None => sub,
    })
}

/// A command with the sentence that describes another one.
fn with_about(command: Command, described: &Command) -> Command {
    match described.get_about() {
        Some(about) => command.about(about.clone()),
        None => command,
    }
}

/// A tool's command line as a page describes it: by the text of its help.
fn described(front: &Front) -> Command {
    Command::new(front.name)
        .override_usage(format!("pummel {} [OPTIONS]", front.name))
        .disable_help_flag(true)
        .disable_version_flag(true)
        .after_long_help(front.help.concat())
}

/// The options of a tool's command line as far as completions need them.
fn front(front: &Front) -> Command {
    let options = front.options.iter().map(|choice| {
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
    Command::new(front.name).disable_help_flag(true).disable_version_flag(true).args(options)
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
    use crate::cli;

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

    #[test]
    fn subcommands_complete_the_options_of_the_command_lines_behind_them() {
        let folder = tempfile::tempdir().unwrap();
        completions(cli::command(), folder.path()).unwrap();
        let script = fs::read_to_string(folder.path().join("pummel.bash")).unwrap();
        let words_of = |path: &str| -> Vec<&str> {
            let begin = format!("{})", path.replace(' ', "__subcmd__"));
            let line = script.lines().skip_while(|line| line.trim() != begin).nth(1);
            let line = line.unwrap_or_else(|| panic!("{path} completes nothing"));
            line.trim().trim_start_matches("opts=\"").trim_end_matches('"').split(' ').collect()
        };
        for (path, word) in [
            ("pummel", "--version"),
            ("pummel", "explain"),
            ("pummel mutilate", "--keysize"),
            ("pummel mcperf", "--num-conns"),
            ("pummel memaslap", "--win_size"),
            ("pummel explain", "--plan"),
            ("pummel explain", "run"),
            ("pummel explain run", "--rate"),
            ("pummel explain mutilate", "--keysize"),
        ] {
            assert!(words_of(path).contains(&word), "{path} does not complete {word}");
        }
        assert!(!words_of("pummel").contains(&"pages"), "a hidden command is completed");
    }

    #[test]
    fn words_of_commands_that_take_files_are_completed_as_files() {
        let folder = tempfile::tempdir().unwrap();
        completions(cli::command(), folder.path()).unwrap();
        let bash = folder.path().join("pummel.bash");
        let completed = |words: &str| -> Vec<String> {
            let line = format!(
                "source '{}'; COMP_WORDS=({words} ''); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
                 _pummel pummel '' \"${{COMP_WORDS[COMP_CWORD - 1]}}\"; echo \"${{COMPREPLY[*]}}\"",
                bash.display()
            );
            let output = std::process::Command::new("bash").args(["-c", &line]).output().unwrap();
            assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
        };
        for words in [
            "pummel show",
            "pummel show --op get",
            "pummel report",
            "pummel compare a.json",
            "pummel audit",
            "pummel merge",
            "pummel table",
            "pummel fit",
            "pummel trace stat",
        ] {
            // Nothing of its own: then bash completes files.
            assert_eq!(completed(words), Vec::<String>::new(), "{words}");
        }
        assert!(completed("pummel show --format").contains(&"markdown".to_owned()));
        assert!(completed("pummel run").contains(&"--rate".to_owned()));
        assert!(completed("pummel").contains(&"show".to_owned()));
        let script = fs::read_to_string(&bash).unwrap();
        assert!(
            script.contains("complete -F _pummel -o nosort -o bashdefault -o default pummel"),
            "{script}"
        );
    }

    #[test]
    fn the_page_of_a_front_has_the_text_of_its_help() {
        let folder = tempfile::tempdir().unwrap();
        man(cli::command(), folder.path()).unwrap();
        for (name, option) in
            [("mcperf", "\\-\\-num\\-conns"), ("memaslap", "\\-\\-win_size"), ("mutilate", "\\-\\-keysize")]
        {
            let page = fs::read_to_string(folder.path().join(format!("pummel-{name}.1"))).unwrap();
            assert!(page.contains(&format!(".SH SYNOPSIS\npummel {name} [OPTIONS]\n")), "{page}");
            assert!(page.contains(option) && page.contains("Exit status:"), "{page}");
        }
    }
}
