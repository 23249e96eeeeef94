//! `-h`: a command's help on one screen, with the options that are used most. `--help` has everything.

use std::ffi::OsString;

use clap::Command;
use pummel_fronts::fronts::FRONTS;

/// The subcommands that `pummel -h` names.
const COMMANDS: &[&str] = &["run", "load", "search", "ab", "compare", "show", "report", "serve", "demo"];

/// The options that `-h` of a subcommand names, each with a sentence that fits on its line.
const OPTIONS: &[(&str, &str)] = &[
    ("server", "HOST, HOST:PORT, [IPV6]:PORT or /unix/path; several with commas"),
    ("time", "How long to measure [default: 10s]"),
    ("requests", "How many requests to measure"),
    ("connections", "Connections, over all servers and threads"),
    ("depth", "Most requests outstanding per connection"),
    ("threads", "Threads"),
    ("rate", "Requests per second: open loop; without it closed loop"),
    ("mix", "Operations and their weights [default: get:9,set:1]"),
    ("value_size", "Size of the values in bytes: a number or a distribution"),
    ("records", "How many records there are"),
    ("goal", "Exit with status 3 when this is missed, such as p99:1ms"),
    ("json", "Write the result to a file"),
];

/// The options that `-h` of `load` names.
const OPTIONS_OF_LOAD: &[(&str, &str)] = &[
    ("server", "HOST, HOST:PORT, [IPV6]:PORT or /unix/path; several with commas"),
    ("connections", "Connections, over all servers and threads"),
    ("depth", "Most requests outstanding per connection"),
    ("threads", "Threads"),
    ("mix", "Operations that will use the records"),
    ("value_size", "Size of the values in bytes: a number or a distribution"),
    ("records", "How many records there are"),
    ("json", "Write the result to a file"),
];

/// The options that `-h` of `search`, `curve` and `scan` names: these set the rates of their runs, and refuse `--rate`.
const OPTIONS_OF_SERIES: &[(&str, &str)] = &[
    ("server", "HOST, HOST:PORT, [IPV6]:PORT or /unix/path; several with commas"),
    ("time", "How long each run measures [default: 10s]"),
    ("connections", "Connections, over all servers and threads"),
    ("depth", "Most requests outstanding per connection"),
    ("threads", "Threads"),
    ("rates", "Lowest rate, highest rate and step, such as 10k:50k:10k"),
    ("over", "Levels of connections or threads instead of rates, such as connections:1:64"),
    ("mix", "Operations and their weights [default: get:9,set:1]"),
    ("value_size", "Size of the values in bytes: a number or a distribution"),
    ("records", "How many records there are"),
    ("goal", "A limit of the response time, such as p99:1ms"),
    ("json", "Write the result to a file"),
];

/// The options that `-h` of `pummel ab` names.
const OPTIONS_OF_AB: &[(&str, &str)] = &[
    ("server", "HOST, HOST:PORT, [IPV6]:PORT or /unix/path; several with commas"),
    ("versus", "Servers of side B; --server gives those of A"),
    ("a", "Options of side A, if the sides differ in options"),
    ("b", "Options of side B"),
    ("a_program", "Program to start as the server of A"),
    ("b_program", "Program to start as the server of B"),
    ("pairs", "How many pairs of runs"),
    ("worse", "Exit with status 3 when B is worse by more than this, such as p99:5%"),
    ("time", "How long each run measures [default: 10s]"),
    ("connections", "Connections, over all servers and threads"),
    ("rate", "Requests per second: open loop; without it closed loop"),
    ("json", "Write the result to a file"),
];

/// Options in `-h` of `pummel compare`.
const OPTIONS_OF_COMPARE: &[(&str, &str)] = &[
    ("sides", "Results of A, of B and so on; commas separate those of one side. Or one result of `ab`"),
    ("metric", "Figures to judge: p50, p90, p99, p99.9, rate, client-cpu, server-cpu"),
    ("worse", "Exit with status 3 when B is worse by more than this, such as p99:5%"),
    ("within", "Exit with status 3 unless B is better, or worse by less, such as p99:5%"),
    ("accept_order", "Also judge runs that did not alternate"),
    ("output", "Write the comparison as an HTML page"),
    ("json", "Write the comparison to a file"),
];

/// Options in `-h` of `pummel merge`.
const OPTIONS_OF_MERGE: &[(&str, &str)] = &[
    ("files", "Results of `pummel run` or `load`"),
    ("output", "File for the sum, as JSON [default: standard output]"),
    ("as_runs", "Keep the results separate, as repetitions for `pummel compare`"),
];

/// Options in `-h` of `pummel explain`.
const OPTIONS_OF_EXPLAIN: &[(&str, &str)] = &[
    ("front", "Which command line follows: run, load, or another tool's"),
    ("args", "The command line, as it would follow that name"),
    ("plan", "Save the plan to a file, for `pummel run --plan FILE`"),
    ("format", "Form of the plan on standard output: text (TOML) or json"),
];

/// Options in `-h` of `pummel fit`.
const OPTIONS_OF_FIT: &[(&str, &str)] = &[
    ("files", "The files of the trace, in order; - is standard input"),
    ("output", "Write the profile to a file, for --workload"),
    ("check", "Compare requests made from this profile with the trace; exit status 3 if they differ"),
    ("json", "Write all figures to a file"),
    ("rates", "Write the rate of each minute, for --rate file:FILE"),
];

/// The options that `-h` of `pummel serve` names.
const OPTIONS_OF_SERVE: &[(&str, &str)] = &[
    ("listen", "Address and port, or the path of a unix socket"),
    ("protocol", "The protocol; auto tells it by the first byte"),
    ("service_time", "How long each reply takes: a time or a distribution"),
    ("fault", "A fault, and how often it happens"),
    ("truth", "Write what was served, and when, to a file"),
    ("tls_cert", "Certificate: every connection is encrypted"),
    ("user", "User that clients must log in as"),
    ("max_seconds", "End after this time"),
];

/// The options that `-h` of `pummel agent` names.
const OPTIONS_OF_AGENT: &[(&str, &str)] = &[
    ("listen", "Where to wait for controllers"),
    ("token_file", "File with the token that controllers must know"),
    ("allow_target", "Networks that may receive load"),
    ("allow_file", "Directories whose files a plan may name"),
    ("tls_cert", "Certificate: every controller's connection is encrypted"),
    ("tls_key", "Its private key"),
    ("tls_ca", "Authorities of the controllers' certificates"),
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
    let name = command.get_name().to_owned();
    let (shown, example) = match name.as_str() {
        "run" => (OPTIONS, "pummel run -s 127.0.0.1".to_owned()),
        "load" => (OPTIONS_OF_LOAD, "pummel load -s 127.0.0.1".to_owned()),
        "search" => (OPTIONS_OF_SERIES, "pummel search -s 127.0.0.1 --goal p99:1ms -t 5s".to_owned()),
        "curve" => (OPTIONS_OF_SERIES, "pummel curve -s 127.0.0.1 -t 5s --csv curve.csv".to_owned()),
        "ab" => {
            (OPTIONS_OF_AB, "pummel ab -s 127.0.0.1:11211 --versus 127.0.0.1:11212 --pairs 10".to_owned())
        }
        "scan" => (OPTIONS_OF_SERIES, "pummel scan -s 127.0.0.1 --rates 10k:50k:10k -t 5s".to_owned()),
        "serve" => (
            OPTIONS_OF_SERVE,
            "pummel serve --listen 127.0.0.1:11311 --service-time exponential:100us".to_owned(),
        ),
        "compare" => (OPTIONS_OF_COMPARE, "pummel compare before.json after.json".to_owned()),
        "merge" => (OPTIONS_OF_MERGE, "pummel merge here.json there.json -o all.json".to_owned()),
        "fit" => (OPTIONS_OF_FIT, "pummel fit cluster52.0.zst -o mine.toml".to_owned()),
        "explain" => {
            (OPTIONS_OF_EXPLAIN, "pummel explain run -s 127.0.0.1 --rate 20k --plan plan.toml".to_owned())
        }
        "agent" => (OPTIONS_OF_AGENT, "pummel agent --listen 0.0.0.0:5556 --token-file token".to_owned()),
        _ => return command,
    };
    let ids: Vec<String> = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
    let command = ids.iter().fold(command, |command, id| {
        command.mut_arg(id, |arg| match shown.iter().find(|(known, _)| *known == id.as_str()) {
            Some((_, sentence)) => {
                let arg = arg.help(*sentence).help_heading(None::<&str>);
                match arg.get_action().takes_values() {
                    true => arg.hide_possible_values(true).hide_env(true),
                    false => arg,
                }
            }
            None => arg.hide(true),
        })
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
    fn every_option_of_the_tables_is_one() {
        let command = cli::command();
        let ids_of = |name: &str| -> Vec<String> {
            let sub = command.find_subcommand(name).expect("a subcommand");
            sub.get_arguments().map(|arg| arg.get_id().to_string()).collect()
        };
        let tables = [
            (OPTIONS, ids_of("run")),
            (OPTIONS_OF_LOAD, ids_of("load")),
            (OPTIONS_OF_SERIES, ids_of("scan")),
            (OPTIONS_OF_AB, ids_of("ab")),
            (OPTIONS_OF_COMPARE, ids_of("compare")),
            (OPTIONS_OF_MERGE, ids_of("merge")),
            (OPTIONS_OF_EXPLAIN, ids_of("explain")),
            (OPTIONS_OF_SERVE, ids_of("serve")),
        ];
        for (table, ids) in tables {
            for (id, _) in table {
                assert!(ids.iter().any(|known| known == id), "{id}");
            }
        }
    }
}
