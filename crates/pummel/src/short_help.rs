//! `-h`: a command's help on one screen, with the options that are used most. `--help` has everything.

use std::ffi::OsString;

use clap::Command;
use pummel_fronts::fronts::FRONTS;

/// The subcommands that `pummel -h` names.
const COMMANDS: &[&str] = &["run", "load", "search", "ab", "suite", "compare", "show", "serve", "demo"];

/// A subcommand with a help on one screen: the ids of the options in it, and an example.
type ShortHelp = (&'static str, &'static [&'static str], &'static str);

/// The options of series, which set the rates of their runs, and refuse `--rate`.
const OF_SERIES: &[&str] = &[
    "server",
    "time",
    "connections",
    "depth",
    "threads",
    "rates",
    "over",
    "mix",
    "value_size",
    "records",
    "goal",
    "json",
];

/// The subcommands with a help on one screen. The sentence of an option is the first paragraph of its help.
const SHORT_HELPS: &[ShortHelp] = &[
    (
        "run",
        &[
            "server",
            "time",
            "requests",
            "connections",
            "depth",
            "threads",
            "rate",
            "mix",
            "value_size",
            "records",
            "goal",
            "json",
        ],
        "pummel run -s 127.0.0.1",
    ),
    (
        "load",
        &["server", "connections", "depth", "threads", "mix", "value_size", "records", "json"],
        "pummel load -s 127.0.0.1",
    ),
    ("search", OF_SERIES, "pummel search -s 127.0.0.1 --goal p99:1ms -t 5s"),
    ("curve", OF_SERIES, "pummel curve -s 127.0.0.1 -t 5s --csv curve.csv"),
    ("scan", OF_SERIES, "pummel scan -s 127.0.0.1 --rates 10k:50k:10k -t 5s"),
    (
        "ab",
        &[
            "server",
            "versus",
            "a",
            "b",
            "a_program",
            "b_program",
            "pairs",
            "worse",
            "time",
            "connections",
            "rate",
            "json",
        ],
        "pummel ab -s 127.0.0.1:11211 --versus 127.0.0.1:11212 --pairs 10",
    ),
    (
        "suite",
        &["suite", "list", "print", "only", "program", "resume", "server", "time", "json", "junit"],
        "pummel suite our-cache.toml -s 127.0.0.1 --json today.json",
    ),
    (
        "compare",
        &["sides", "metric", "worse", "within", "accept_order", "output", "json"],
        "pummel compare before.json after.json",
    ),
    ("audit", &["files", "format", "json", "quiet"], "pummel audit result.json"),
    ("merge", &["files", "output", "as_runs"], "pummel merge here.json there.json -o all.json"),
    (
        "explain",
        &["front", "args", "plan", "format"],
        "pummel explain run -s 127.0.0.1 --rate 20k --plan plan.toml",
    ),
    ("fit", &["files", "output", "check", "json", "rates"], "pummel fit cluster52.0.zst -o mine.toml"),
    (
        "serve",
        &["listen", "protocol", "service_time", "fault", "truth", "tls_cert", "user", "max_seconds"],
        "pummel serve --listen 127.0.0.1:11311 --service-time exponential:100us",
    ),
    (
        "agent",
        &["listen", "token_file", "allow_target", "allow_file", "tls_cert", "tls_key", "tls_ca"],
        "pummel agent --listen 0.0.0.0:5556 --token-file token",
    ),
];

/// The command line with the help of `-h`, where one of its words is `-h`; unchanged otherwise.
pub fn shortened(command: Command, words: &[OsString]) -> Command {
    let asks = words.iter().take_while(|word| *word != "--").any(|word| word == "-h");
    if !asks {
        return command;
    }
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let command = names.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |sub| {
            let is_shown = COMMANDS.contains(&name.as_str()) && !sub.is_hide_set();
            of_subcommand(sub).hide(!is_shown)
        })
    });
    let fronts: Vec<&str> = FRONTS.iter().map(|front| front.name).collect();
    command.disable_help_subcommand(true).after_help(format!(
        "Try it:\n  pummel demo\n  pummel run -s 127.0.0.1\n\nMore commands, and {}: pummel --help",
        fronts.join(", ")
    ))
}

fn of_subcommand(command: Command) -> Command {
    let Some((name, shown, example)) = SHORT_HELPS.iter().find(|(name, ..)| *name == command.get_name())
    else {
        return command;
    };
    let command = command.mut_args(|arg| {
        if !shown.contains(&arg.get_id().as_str()) {
            return arg.hide_short_help(true);
        }
        let arg = arg.help_heading(None::<&str>);
        match arg.get_action().takes_values() {
            true => arg.hide_possible_values(true).hide_env(true),
            false => arg,
        }
    });
    command.after_help(format!("Example:\n  {example}\n\nAll options: pummel {name} --help"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    fn is_front(name: &str) -> bool {
        FRONTS.iter().any(|front| front.name == name)
    }

    fn help(words: &[&str]) -> String {
        let words: Vec<OsString> = ["pummel"].iter().chain(words).map(OsString::from).collect();
        let error = shortened(cli::command(), &words).term_width(100).try_get_matches_from(words);
        error.expect_err("help is an answer, not a match").to_string()
    }

    #[test]
    fn every_short_help_fits_on_one_screen() {
        // The command lines of other tools have the help of their originals.
        let program = cli::command();
        let names = program.get_subcommands().filter(|sub| !sub.is_hide_set()).map(Command::get_name);
        let names = names.filter(|name| !is_front(name));
        for command in std::iter::once(vec![]).chain(names.map(|name| vec![name])) {
            let text = help(&[&command[..], &["-h"]].concat());
            assert!(text.lines().count() <= 24, "{} lines:\n{text}", text.lines().count());
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
            let has_more = help(&[&command[..], &["--help"]].concat()).len() > text.len();
            assert!(!has_more || text.contains("--help"), "{text}");
        }
    }

    #[test]
    fn every_example_of_a_short_help_is_a_command_line_that_is_accepted() {
        let names: Vec<String> =
            cli::command().get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
        let mut count = 0;
        // The command lines of other tools have the help of their originals.
        for name in names.iter().filter(|name| !is_front(name)) {
            let text = help(&[name, "-h"]);
            let Some((_, after)) = text.split_once("\nExample:\n  ") else { continue };
            let example = after.lines().next().expect("an example");
            // The examples of longer helps are lines of a shell.
            if !example.starts_with("pummel ") || example.contains(['<', '>', '|', '&', ';', '\'']) {
                continue;
            }
            let parsed = cli::command().try_get_matches_from(example.split_whitespace());
            assert!(parsed.is_ok(), "{example}: {}", parsed.expect_err("it is refused"));
            count += 1;
        }
        assert!(count >= 10, "{count} examples");
    }

    #[test]
    fn every_long_help_has_the_exit_statuses() {
        let program = cli::command();
        let mut count = 0;
        // The command lines of other tools have the help of their originals.
        for command in program.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let name = command.get_name();
            if is_front(name) {
                continue;
            }
            let below = command.get_subcommands().map(|sub| vec![name, sub.get_name()]);
            for words in std::iter::once(vec![name]).chain(below) {
                let text = help(&[&words[..], &["--help"]].concat());
                assert!(text.contains("\nExit status:\n  0    "), "{words:?}: {text}");
                count += 1;
            }
        }
        assert!(count >= 20, "{count} helps");
    }

    #[test]
    fn series_name_no_rate_which_they_refuse() {
        for command in ["search", "curve", "scan"] {
            let text = help(&[command, "-h"]);
            assert!(!text.contains("--rate ") && text.contains("--server"), "{text}");
        }
        assert!(help(&["run", "-h"]).contains("--rate "));
    }

    #[test]
    fn the_short_help_of_run_has_ten_options_that_the_long_one_has_too() {
        let (short, long) = (help(&["run", "-h"]), help(&["run", "--help"]));
        let option =
            |line: &str| line.split_whitespace().find(|word| word.starts_with("--")).map(str::to_owned);
        let shown: Vec<String> =
            short.lines().filter(|line| line.starts_with("  ")).filter_map(option).collect();
        assert!(shown.len() >= 10, "{shown:?}");
        for option in &shown {
            assert!(long.contains(option.as_str()), "{option}");
        }
        assert!(long.lines().count() > 150 && long.contains("--popularity"), "{long}");
    }

    #[test]
    fn every_option_of_a_short_help_is_one() {
        let program = cli::command();
        let ids_of = |name: &str| -> Vec<String> {
            let command = program.find_subcommand(name).expect("a subcommand");
            command.get_arguments().map(|arg| arg.get_id().to_string()).collect()
        };
        for (name, shown, _) in
            SHORT_HELPS.iter().filter(|(name, ..)| cfg!(feature = "agents") || *name != "agent")
        {
            // Of the options of all series, each series has its own.
            let ids = if std::ptr::eq(*shown, OF_SERIES) { ids_of("scan") } else { ids_of(name) };
            let without: Vec<&&str> =
                shown.iter().filter(|id| !ids.iter().any(|known| known == *id)).collect();
            assert!(without.is_empty(), "{name}: {without:?}");
        }
    }
}
