//! `cargo xtask size`: lines of code, tests and comments by crate, and words of the documents.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::ops::AddAssign;
use std::path::Path;

use proc_macro2::{Span, TokenStream, TokenTree};

use crate::sources::{self, Source};

/// Lines of sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    /// Lines that are neither blank, comment nor test.
    code: usize,
    /// Lines of tests that are neither blank nor comment: test items, files declared for tests, and all outside `src`.
    tests: usize,
    /// Comments of both.
    comments: usize,
}

impl AddAssign for Lines {
    fn add_assign(&mut self, other: Lines) {
        self.code += other.code;
        self.tests += other.tests;
        self.comments += other.comments;
    }
}

impl Lines {
    /// The lines of one source.
    fn of(source: &Source) -> Lines {
        let texts: Vec<&str> = source.text.lines().collect();
        let all = lines_of(source.tokens.clone(), &texts);
        let is_code = source.is_shipped || source.path.ends_with("/build.rs");
        let code = if is_code { lines_of(source.code.clone(), &texts).len() } else { 0 };
        let written = texts.iter().filter(|text| !text.trim().is_empty()).count();
        Lines { code, tests: all.len() - code, comments: written - all.len() }
    }
}

/// The lines that are not blank and that a token stands in, by their index; documentation counts as comment.
fn lines_of(tokens: TokenStream, texts: &[&str]) -> BTreeSet<usize> {
    let is_comment = |tree: &TokenTree| {
        let start = tree.span().start();
        let opening: String = texts[start.line - 1].chars().skip(start.column).take(2).collect();
        matches!(opening.as_str(), "//" | "/*")
    };
    let mut lines = BTreeSet::new();
    let mut take = |span: Span| {
        let touched = span.start().line - 1..span.end().line;
        lines.extend(touched.filter(|line| !texts[*line].trim().is_empty()));
    };
    sources::for_each(tokens, &mut |tree| match tree {
        _ if is_comment(tree) => {}
        TokenTree::Group(group) => {
            take(group.span_open());
            take(group.span_close());
        }
        other => take(other.span()),
    });
    lines
}

/// Lines by crate, words by document, and what both are measured by.
struct Sizes {
    crates: Vec<(String, Lines)>,
    generated: usize,
    words: Vec<(&'static str, usize)>,
}

/// Most lines of code of crates together, by the ends of their directories.
const BARS: [(&str, &[&str], usize); 2] = [
    (
        "logic, measure, traffic, testserver, engine",
        &["/logic", "/measure", "/traffic", "/testserver", "/engine"],
        48_000,
    ),
    ("xtask", &["xtask", "xtask/proto", "xtask/schemas"], 5_500),
];

/// Most lines of code of everything in `crates`.
const CRATES_MAX: usize = 86_000;

/// Most words of the documents, without the changelog and the decisions.
const WORDS_MAX: usize = 52_000;

impl Sizes {
    fn of(root: &Path) -> io::Result<Sizes> {
        let mut directories = Vec::new();
        for entry in fs::read_dir(root.join("crates"))? {
            directories.push(format!("crates/{}", entry?.file_name().to_string_lossy()));
        }
        directories.sort();
        directories.extend(["xtask", "xtask/proto", "xtask/schemas", "fuzz"].map(str::to_owned));
        let mut crates = Vec::new();
        for directory in directories.iter().filter(|name| root.join(name).join("Cargo.toml").exists()) {
            let mut lines = Lines::default();
            for source in sources::read(root, directory)? {
                lines += Lines::of(&source);
            }
            crates.push((directory.clone(), lines));
        }
        let mut generated = 0;
        for file in generated_files(root)? {
            let text = fs::read_to_string(root.join(file))?;
            generated += text.lines().filter(|line| !line.trim().is_empty()).count();
        }
        Ok(Sizes { crates, generated, words: words(root)? })
    }

    fn code_of(&self, is_counted: impl Fn(&str) -> bool) -> usize {
        self.crates.iter().filter(|(name, _)| is_counted(name)).map(|(_, lines)| lines.code).sum()
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{:<20} {:>9} {:>9} {:>9}", "lines", "code", "tests", "comments")?;
        let mut sum = Lines::default();
        for (name, lines) in &self.crates {
            sum += *lines;
            row(out, name, *lines)?;
        }
        row(out, "all", sum)?;
        let generated = "generated Rust and JSON schemas";
        writeln!(out, "\n{:<44} {:>9}", generated, grouped(self.generated))?;
        for (name, ends, most) in BARS {
            let code = self.code_of(|crate_name| ends.iter().any(|end| crate_name.ends_with(end)));
            bar(out, &format!("code of {name}"), code, most)?;
        }
        bar(out, "code of all crates", self.code_of(|name| name.starts_with("crates/")), CRATES_MAX)?;
        writeln!(out)?;
        for (name, words) in &self.words {
            match *name {
                DOCUMENTS => bar(out, &format!("words of {name}"), *words, WORDS_MAX)?,
                _ => writeln!(out, "{:<56} {:>9}", format!("words of {name}"), grouped(*words))?,
            }
        }
        Ok(())
    }
}

fn row(out: &mut fmt::Formatter<'_>, name: &str, lines: Lines) -> fmt::Result {
    let figures = [lines.code, lines.tests, lines.comments].map(grouped);
    writeln!(out, "{name:<20} {:>9} {:>9} {:>9}", figures[0], figures[1], figures[2])
}

fn bar(out: &mut fmt::Formatter<'_>, name: &str, figure: usize, most: usize) -> fmt::Result {
    writeln!(out, "{name:<56} {:>9}, at most {}", grouped(figure), grouped(most))
}

/// The figure with a comma before every three digits.
fn grouped(figure: usize) -> String {
    match figure {
        0..1_000 => figure.to_string(),
        _ => format!("{},{:03}", grouped(figure / 1_000), figure % 1_000),
    }
}

/// The files that a program writes: the Rust of the agents' protocol, and the JSON schemas.
fn generated_files(root: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    if root.join("crates/fleet/proto").exists() {
        found = sources::files(root, "crates/fleet/proto", "rs")?;
    }
    let schemas = sources::files(root, "docs", "json")?;
    found.extend(schemas.into_iter().filter(|path| path.ends_with(".schema.json")));
    Ok(found)
}

const DOCUMENTS: &str = "README.md and docs";

/// The table of contents, which `cargo xtask schemas` makes.
const CONTENTS: &str = "docs/SUMMARY.md";

/// Words of a text, without the tables that `cargo xtask schemas` fills in.
fn written_words(text: &str) -> usize {
    let mut is_generated = false;
    let written = text.lines().filter(|line| {
        is_generated =
            (is_generated || line.starts_with("<!-- fields: ")) && *line != "<!-- end of fields -->";
        !is_generated && !line.starts_with("<!-- ")
    });
    written.map(|line| line.split_whitespace().count()).sum()
}

/// Words by document: those that users read, the decisions, the changelog.
fn words(root: &Path) -> io::Result<Vec<(&'static str, usize)>> {
    let count =
        |path: &str| -> io::Result<usize> { Ok(written_words(&fs::read_to_string(root.join(path))?)) };
    let (mut documents, mut decisions) = (count("README.md")?, 0);
    for path in sources::files(root, "docs", "md")?.into_iter().filter(|path| path != CONTENTS) {
        let part = if path.starts_with("docs/decisions/") { &mut decisions } else { &mut documents };
        *part += count(&path)?;
    }
    Ok(vec![(DOCUMENTS, documents), ("docs/decisions", decisions), ("CHANGELOG.md", count("CHANGELOG.md")?)])
}

/// Prints the sizes of the repository at `root`; always true.
///
/// # Errors
/// Returns an error when a file cannot be read, or a source is no Rust.
pub fn run(root: &Path) -> io::Result<bool> {
    print!("{}", Sizes::of(root)?);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Lines {
        let sources = sources::of_texts("crates/a", [(format!("crates/a/{path}"), text.to_owned())]);
        Lines::of(&sources.unwrap()[0])
    }

    #[test]
    fn comments_blanks_and_tests_are_no_code() {
        let text = "\
//! Lines of it.

/// Not a line of code,
/** nor this
 one. */
#[derive(Debug)] // Counts.
struct A {
    /// Field of it.
    a: u8,

    /* Block
       of three
    */
}

#[cfg(test)]
mod tests {
    // Comments of tests are comments.
    #[test]
    fn b() {}

}

fn c() {}
";
        assert_eq!(lines("src/lib.rs", text), Lines { code: 5, tests: 5, comments: 9 });
    }

    #[test]
    fn a_string_counts_on_each_line_that_has_text() {
        let text = "const A: &str = \"\n// No comment.\n\n  end\";\nconst B: &str = r#\"\n#[test]\n\"#;\n";
        assert_eq!(lines("src/a.rs", text), Lines { code: 6, tests: 0, comments: 0 });
    }

    #[test]
    fn files_outside_src_are_tests_but_for_the_build_script() {
        assert_eq!(lines("tests/a.rs", "fn a() {}\n"), Lines { tests: 1, ..Lines::default() });
        assert_eq!(lines("fuzz_targets/a.rs", "fn a() {}\n"), Lines { tests: 1, ..Lines::default() });
        assert_eq!(lines("build.rs", "fn main() {}\n"), Lines { code: 1, ..Lines::default() });
    }

    #[test]
    fn figures_have_a_comma_before_every_three_digits() {
        assert_eq!([0, 999, 1_000, 1_020_003].map(grouped), ["0", "999", "1,000", "1,020,003"]);
    }

    #[test]
    fn a_repository_is_counted_from_its_root() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let files = [
            ("crates/logic/Cargo.toml", ""),
            ("crates/logic/src/lib.rs", "#[cfg(test)]\nmod a;\n// B.\nstruct C;\n"),
            ("crates/logic/src/a.rs", "struct D;\nstruct E;\n"),
            ("crates/logic/target/f.rs", "struct F;\n"),
            ("crates/pummel/Cargo.toml", ""),
            ("crates/pummel/src/main.rs", "fn main() {}\n"),
            ("crates/fleet/proto/g.rs", "struct G;\n\nstruct H;\n"),
            ("xtask/Cargo.toml", ""),
            ("xtask/src/main.rs", "fn main() {}\n"),
            ("xtask/proto/Cargo.toml", ""),
            ("xtask/proto/src/main.rs", "fn main() {\n}\n"),
            ("docs/a.schema.json", "{\n}\n"),
            ("docs/A.md", "one\n<!-- fields: a.schema.json# -->\n| a | b |\n<!-- end of fields -->\ntwo"),
            ("docs/SUMMARY.md", "made from others"),
            ("docs/decisions/B.md", "three"),
            ("README.md", "# four\n"),
            ("CHANGELOG.md", "five\nsix seven\n"),
        ];
        for (path, text) in files {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        let sizes = Sizes::of(root).unwrap();
        let names: Vec<&str> = sizes.crates.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["crates/logic", "crates/pummel", "xtask", "xtask/proto"]);
        assert_eq!(sizes.crates[0].1, Lines { code: 1, tests: 4, comments: 1 });
        assert_eq!(sizes.crates[1].1, Lines { code: 1, ..Lines::default() });
        assert_eq!(sizes.generated, 4);
        assert_eq!(sizes.words.iter().map(|(_, words)| *words).collect::<Vec<_>>(), [4, 1, 3]);
        let text = sizes.to_string();
        assert!(text.contains("code of logic, measure, traffic, testserver, engine"), "{text}");
        assert!(
            text.lines().any(|line| line.starts_with("code of xtask ") && line.contains(" 3, at most 5,500"))
        );
    }
}
