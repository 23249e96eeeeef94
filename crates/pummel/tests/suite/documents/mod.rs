//! The pages of the project: every command in them is followed, every option that they name is one, every link leads somewhere.

mod commands;
mod links;
mod stage;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use pummel_tool::cli::{self, parse};

use commands::{Typed, false_words, of_page};
use stage::{Scene, Stage};

/// Pages at a time. Most of the time a run waits.
const SCENES: usize = 4;

/// Commands that take their time, whatever their options say, and have a test of their own: `cli.rs` and
/// `calibrate.rs`.
const ELSEWHERE: [&str; 2] = ["demo", "calibrate"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages, by their paths below the root. What changed is told of versions that are past.
fn pages() -> Vec<String> {
    let mut found: Vec<String> = ["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(str::to_owned).into();
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a folder of pages") {
            let path = format!("{folder}/{}", entry.expect("an entry").file_name().to_string_lossy());
            match root().join(&path).is_dir() {
                true => folders.push(path),
                false if path.ends_with(".md") => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

fn text_of(page: &str) -> String {
    fs::read_to_string(root().join(page)).expect("the page is there")
}

/// Follows the commands of a page in their order, in a folder of the page's own.
fn follow(page: &str, stage: &mut Stage, followed: &Mutex<BTreeSet<String>>) -> Vec<String> {
    let (typed, mut complaints) = of_page(page, &text_of(page));
    let mut scene = Scene::new(stage);
    for command in typed {
        if !command.is_ours() {
            let wrong = false_words(&command, &root());
            complaints.extend(wrong.iter().map(|what| format!("{}: there is no {what}", command.place)));
            continue;
        }
        if let Err(why) = follow_one(&command, &mut scene) {
            complaints.push(format!("{}: {why}", command.place));
        }
        followed.lock().expect("no page panics").insert(command.place);
    }
    complaints
}

fn follow_one(command: &Typed, scene: &mut Scene) -> Result<(), String> {
    let subcommand = command.words.get(1).map(String::as_str).unwrap_or_default();
    // The stage has no cluster: such a command is read, and asks nobody.
    let is_of_cluster = command.words.iter().any(|word| word == "--cluster");
    if ELSEWHERE.contains(&subcommand) || is_of_cluster {
        let words = command.words.iter().map(Into::into).collect();
        return parse(words).map(|_| ()).map_err(|error| error.to_string());
    }
    scene.follow(command)
}

#[test]
fn every_command_of_every_page_runs() {
    let waiting = Mutex::new(pages());
    let (complaints, followed) = (Mutex::new(Vec::new()), Mutex::new(BTreeSet::new()));
    thread::scope(|scope| {
        for _ in 0..SCENES {
            scope.spawn(|| {
                let mut stage = Stage::default();
                loop {
                    let Some(page) = waiting.lock().expect("no page panics").pop() else { return };
                    let wrong = follow(&page, &mut stage, &followed);
                    complaints.lock().expect("no page panics").extend(wrong);
                }
            });
        }
    });
    let complaints = complaints.into_inner().expect("no page panics");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let count = followed.into_inner().expect("no page panics").len();
    assert!(count > 100, "{count} commands were found in all pages: the search for them is broken");
}

#[test]
fn every_option_that_a_page_names_with_its_command_is_one() {
    let program = cli::command();
    let mut complaints = Vec::new();
    for page in pages() {
        let text = text_of(&page);
        // Code inside of a line; blocks are followed as a whole.
        let spans = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
        for span in spans.filter(|span| span.starts_with("pummel ")) {
            let mut words = span.split_whitespace().skip(1);
            let Some(name) = words.next().filter(|name| !name.starts_with('-')) else { continue };
            let Some(command) = program.find_subcommand(name) else {
                complaints.push(format!("{page}: `{span}`: there is no such command"));
                continue;
            };
            if ["mutilate", "memaslap", "mcperf", "redis-benchmark", "memtier_benchmark"].contains(&name) {
                continue;
            }
            let nested = words.clone().find_map(|word| command.find_subcommand(word));
            let command = nested.unwrap_or(command);
            let options = words.filter_map(|word| word.trim_start_matches('[').strip_prefix("--"));
            let options = options.map(|word| word.split(['=', '[', ']']).next().unwrap_or_default());
            for option in options.filter(|option| !option.is_empty() && *option != "help") {
                if !command.get_arguments().any(|arg| arg.get_long() == Some(option)) {
                    complaints.push(format!("{page}: `{span}`: {name} has no --{option}"));
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_link_leads_somewhere_and_every_page_is_in_the_table_of_contents() {
    let mut complaints: Vec<String> = pages().iter().flat_map(|page| links::broken(&root(), page)).collect();
    let contents = links::contents(&root());
    let missing =
        pages().into_iter().filter(|page| page.starts_with("docs/") && !page.ends_with("SUMMARY.md"));
    let missing = missing.filter(|page| !contents.contains(page));
    complaints.extend(missing.map(|page| format!("{page} is not in docs/SUMMARY.md")));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
