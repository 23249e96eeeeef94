//! The links of the pages: to files that are there, and to headings that they have.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Faults in the links of a page.
pub fn broken(root: &Path, page: &str) -> Vec<String> {
    let text = fs::read_to_string(root.join(page)).expect("the page is there");
    let folder = Path::new(page).parent().expect("a file has a folder");
    let mut wrong = Vec::new();
    for (line, target) in targets(&text) {
        if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
        let path = if file.is_empty() { root.join(page) } else { root.join(folder).join(file) };
        if !path.exists() {
            wrong.push(format!("{page}:{line}: there is no {target}"));
        } else if !heading.is_empty() && !headings(&path).contains(heading) {
            wrong.push(format!("{page}:{line}: {file} has no heading #{heading}"));
        }
    }
    wrong
}

/// The pages that the table of contents names.
pub fn contents(root: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(root.join("docs/SUMMARY.md")).expect("the table of contents");
    targets(&text).into_iter().map(|(_, target)| format!("docs/{target}")).collect()
}

/// The targets of `[text](target)` outside of code, with their lines.
fn targets(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut is_code) = (Vec::new(), false);
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            let prose: String = line.split('`').step_by(2).collect();
            let ends = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            found.extend(ends.map(|(target, _)| (index + 1, target.to_owned())));
        }
    }
    found
}

/// The names that GitHub and mdbook give to the headings of a page.
fn headings(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter(|line| line.starts_with('#'));
    lines.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

#[test]
fn a_link_is_broken_by_a_file_or_a_heading_that_is_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("docs")).expect("a folder");
    fs::write(folder.path().join("docs/a.md"), "# What is `it`?\n").expect("it is written");
    let page = "[good](a.md#what-is-it) [bad](b.md) [worse](a.md#it)\n```\n[code](c.md)\n```\n[far](https://a.example)\n";
    fs::write(folder.path().join("docs/page.md"), page).expect("it is written");
    let wrong = broken(folder.path(), "docs/page.md");
    assert_eq!(wrong, ["docs/page.md:1: there is no b.md", "docs/page.md:1: a.md has no heading #it"]);
}
