//! `cargo xtask prose`: doc comments have to name their thing first, so that each stands alone on a generated page.

use std::fs;
use std::io;
use std::path::Path;

use crate::sources;

/// The folders whose sources are read, of crates all but build products and generated code.
const FOLDERS: [&str; 10] = [
    "crates/logic",
    "crates/measure",
    "crates/traffic",
    "crates/testserver",
    "crates/engine",
    "crates/fleet/src",
    "crates/pummel/tests",
    "xtask",
    "xtask/proto",
    "fuzz",
];

/// Beginnings of sentences that need their neighbours to be understood.
const BEGINNINGS: [&str; 10] =
    ["What", "Which", "How", "Who", "Where", "That of", "Those of", "So many", "It", "As"];

/// Fewest words of a doc comment.
const WORDS_MIN: usize = 3;

/// Lists the doc comments that do not name their thing first; says whether there are none.
pub fn run(root: &Path) -> io::Result<bool> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        files.extend(sources::files(root, folder, "rs")?);
    }
    let mut count = 0;
    for file in &files {
        for (line, text) in unnamed(&fs::read_to_string(root.join(file))?) {
            eprintln!("{file}:{line}: {text}");
            count += 1;
        }
    }
    println!("prose: {} files, {count} doc comments that do not name their thing first", files.len());
    Ok(count == 0)
}

/// The doc comments of a source that do not name their thing first, with the numbers of their first lines.
fn unnamed(source: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let comment: Vec<&str> = lines[at..].iter().map_while(|line| doc_text(line)).collect();
        let behind = at + comment.len().max(1);
        let text = comment.join(" ");
        if !comment.is_empty() && (is_short(&text) || begins_badly(&text, &lines[behind..])) {
            found.push((at + 1, text.trim().to_owned()));
        }
        at = behind;
    }
    found
}

/// The text of a line of a doc comment.
fn doc_text(line: &str) -> Option<&str> {
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
}

fn is_short(text: &str) -> bool {
    text.split_whitespace().count() < WORDS_MIN
}

/// Whether a comment begins with a word that names nothing. `behind` has the lines behind the comment.
fn begins_badly(text: &str, behind: &[&str]) -> bool {
    let begins = |words: &str| {
        let rest = text.trim_start().strip_prefix(words);
        rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    BEGINNINGS.iter().any(|words| begins(words)) || begins("Whether") && !is_of_bool(behind)
}

/// Whether the item at the beginning of these lines is a bool, a function that returns one, or a test.
fn is_of_bool(lines: &[&str]) -> bool {
    let (attributes, item) = lines.split_at(lines.iter().take_while(|line| line.starts_with("#[")).count());
    let is_function = item.first().is_some_and(|line| line.contains("fn "));
    let text = item.join(" ");
    let mut depth = 0;
    let outside_of_parentheses = text.chars().filter(|letter| {
        depth += i32::from(*letter == '(') - i32::from(*letter == ')');
        depth == 0
    });
    let goes_on = |letter: &char| !matches!(letter, '{' | ';' | '=') && (is_function || *letter != ',');
    let head: String = outside_of_parentheses.take_while(goes_on).collect();
    let kind = head.split_once(if is_function { "->" } else { ":" }).map_or("", |(_, kind)| kind);
    let is_bool = kind.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == "bool");
    is_bool || attributes.contains(&"#[test]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(source: &str) -> Vec<usize> {
        unnamed(source).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn comments_that_name_their_thing_first_are_not_listed() {
        let source = "//! The phases of a run.\n\n/// Index of the phase.\npub phase: usize,\n// What it is.\nlet it = 1;\n";
        assert!(lines_of(source).is_empty());
        assert!(
            lines_of("/// Item of a reply.\nreply: Item,\n/// Assigns a phase.\nfn assign();\n").is_empty()
        );
    }

    #[test]
    fn each_beginning_that_names_nothing_is_listed() {
        for beginning in BEGINNINGS {
            assert_eq!(
                lines_of(&format!("mod a;\n\n    /// {beginning} a client of it.\n    x: u8,\n")),
                [3]
            );
        }
        assert_eq!(lines_of("//! What is sent: requests.\n"), [1]);
    }

    #[test]
    fn comments_of_fewer_than_three_words_are_listed() {
        assert_eq!(
            lines_of("/// The phase.\nphase: u8,\n/// Index of\n/// phases.\nn: u8,\n///\nx: u8,\n"),
            [1, 6]
        );
    }

    #[test]
    fn whether_is_for_what_is_true_or_false() {
        let bools = [
            "pub is_open: bool,",
            "#[serde(default)]\nis_open: Option<bool>,",
            "const OPEN: bool = true;",
            "fn is_open(&self, at: &[u64; 2]) -> bool { at[0] > 0 }\nfn next(&self) -> u8 {",
            "fn is_open(\n    &self,\n    at: u64,\n) -> io::Result<bool>\nwhere\n    Self: Sized;",
            "#[test]\nfn servers_open() {",
        ];
        let others = [
            "pub state: State,\npub is_open: bool,",
            "enum State {\n    Open(bool),\n}",
            "fn check(is_open: bool) -> Result<(), Error> {",
            "fn check(is_open: impl Fn(u8) -> bool);",
        ];
        let listed = |item: &str| lines_of(&format!("/// Whether a server is open.\n{item}\n"));
        bools.iter().for_each(|item| assert!(listed(item).is_empty(), "{item}"));
        others.iter().for_each(|item| assert_eq!(listed(item), [1], "{item}"));
    }
}
