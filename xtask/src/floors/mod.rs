//! `cargo xtask floors`: reads every source and manifest and fails on what runs against the floors.

mod law;
mod manifest;
mod paths;
mod source;
mod tokens;

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use law::{FLOORS, Floor};

/// Something that the law forbids.
#[derive(Debug)]
pub struct Finding {
    /// Path of the file from the root of the repository.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub sentence: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.file, self.line, self.sentence)
    }
}

/// Where a source stands.
struct Place {
    /// Path from the root of the repository.
    file: String,
    /// Module path in its crate; empty for the crate's root and for what is not part of the crate.
    module: Vec<String>,
    /// Whether it is part of the crate, and not one of its examples, benches or tests.
    is_shipped: bool,
    /// Whether it is only compiled for tests.
    is_test: bool,
}

impl Place {
    fn of(floor: &Floor, file: &str) -> Place {
        let inside = file.strip_prefix(floor.directory).unwrap_or(file).trim_start_matches('/');
        let shipped = inside.strip_prefix("src/");
        let path = shipped.unwrap_or_default().trim_end_matches(".rs");
        let mut module: Vec<String> =
            path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        if module.last().is_some_and(|last| last == "mod") || matches!(path, "lib" | "main") {
            module.pop();
        }
        Place { file: file.to_owned(), module, is_shipped: shipped.is_some(), is_test: false }
    }
}

/// Checks the whole repository at `root`; returns the findings and the number of files that were read.
pub fn check(root: &Path) -> io::Result<(Vec<Finding>, usize)> {
    let mut findings = Vec::new();
    let mut count = 0;
    for floor in &FLOORS {
        let manifest = format!("{}/Cargo.toml", floor.directory);
        findings.extend(manifest::check(floor, &manifest, &fs::read_to_string(root.join(&manifest))?));
        let mut files = Vec::new();
        sources(root, floor.directory, &mut files)?;
        let texts: Vec<String> =
            files.iter().map(|file| fs::read_to_string(root.join(file))).collect::<Result<_, _>>()?;
        let mut places: Vec<Place> = files.iter().map(|file| Place::of(floor, file)).collect();
        mark_test_files(&mut places, &texts);
        for (place, text) in places.iter().zip(&texts) {
            findings.extend(source::check(floor, place, text));
        }
        count += 1 + files.len();
    }
    Ok((findings, count))
}

/// Marks the files of modules that another file declares for tests alone.
fn mark_test_files(places: &mut [Place], texts: &[String]) {
    let mut for_tests = Vec::new();
    for (place, text) in places.iter().zip(texts).filter(|(place, _)| place.is_shipped) {
        let names = source::test_modules(text);
        for_tests.extend(names.into_iter().map(|name| [&place.module[..], &[name]].concat()));
    }
    for place in places.iter_mut().filter(|place| place.is_shipped) {
        place.is_test |= for_tests.iter().any(|module| place.module.starts_with(module));
    }
}

/// Prints what is wrong; says whether nothing is.
pub fn run(root: &Path) -> io::Result<bool> {
    let (findings, count) = check(root)?;
    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => println!("floors: {count} files, nothing runs against the floors"),
        1 => println!("floors: {count} files, 1 finding"),
        wrong => println!("floors: {count} files, {wrong} findings"),
    }
    Ok(findings.is_empty())
}

fn sources(root: &Path, directory: &str, files: &mut Vec<String>) -> io::Result<()> {
    let mut names: Vec<_> = fs::read_dir(root.join(directory))?.collect::<Result<_, _>>()?;
    names.sort_by_key(fs::DirEntry::file_name);
    for entry in names {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{directory}/{name}");
        if entry.file_type()?.is_dir() {
            if name != "target" {
                sources(root, &path, files)?;
            }
        } else if name.ends_with(".rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(file: &str) -> String {
        Place::of(&FLOORS[0], file).module.join("::")
    }

    #[test]
    fn a_file_knows_its_module() {
        assert_eq!(module("crates/logic/src/lib.rs"), "");
        assert_eq!(module("crates/logic/src/plan.rs"), "plan");
        assert_eq!(module("crates/logic/src/wire/mod.rs"), "wire");
        assert_eq!(module("crates/logic/src/wire/text.rs"), "wire::text");
        assert_eq!(module("crates/logic/benches/draws.rs"), "");
    }

    #[test]
    fn files_are_tests_where_they_are_declared_for_tests() {
        let files = ["wire/mod.rs", "wire/contract.rs", "wire/text.rs", "wire/contract/cuts.rs"];
        let mut places = files.map(|file| Place::of(&FLOORS[0], &format!("crates/logic/src/{file}")));
        let mut texts = files.map(|_| String::new());
        texts[0] = "#[cfg(any(test, fuzzing))]\npub mod contract;\npub mod text;\n".to_owned();
        mark_test_files(&mut places, &texts);
        assert_eq!(places.map(|place| place.is_test), [false, true, false, true]);
    }

    #[test]
    fn a_broken_tree_is_found_from_its_root() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for floor in &FLOORS {
            fs::create_dir_all(root.join(floor.directory).join("src/wire")).unwrap();
            fs::write(root.join(floor.directory).join("Cargo.toml"), "[dependencies]\n").unwrap();
        }
        fs::write(root.join("crates/logic/src/wire/text.rs"), "//! Text.\nuse std::net::TcpStream;\n")
            .unwrap();
        fs::write(root.join("crates/logic/Cargo.toml"), "[dependencies]\npummel-engine.workspace = true\n")
            .unwrap();
        let (findings, count) = check(root).unwrap();
        let found: Vec<_> = findings.iter().map(|finding| (finding.file.as_str(), finding.line)).collect();
        assert_eq!(found, [("crates/logic/Cargo.toml", 2), ("crates/logic/src/wire/text.rs", 2)]);
        assert_eq!(count, 4);
    }
}
