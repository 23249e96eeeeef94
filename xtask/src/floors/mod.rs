//! `cargo xtask floors`: reads every source and manifest and fails on what runs against the floors.

mod circles;
mod law;
mod manifest;
mod paths;
mod place;
mod source;
mod tokens;

use std::fs;
use std::io;
use std::path::Path;

use circles::Circle;
use law::{FLOORS, WITHOUT_CIRCLES};
use place::{Finding, Place};

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
    for directory in WITHOUT_CIRCLES {
        findings.extend(circles_in(root, directory)?.iter().map(Circle::finding));
    }
    Ok((findings, count))
}

/// The crates whose files may not know each other in circles, by their directories.
const CRATES: [&str; 7] = [
    "crates/logic",
    "crates/measure",
    "crates/traffic",
    "crates/testserver",
    "crates/engine",
    "crates/tool",
    "xtask",
];

/// The circles of files in one crate of the repository at `root`.
///
/// # Errors
/// Returns an error when a directory or a source of the crate cannot be read.
fn circles_in(root: &Path, directory: &str) -> io::Result<Vec<Circle>> {
    let mut files = Vec::new();
    sources(root, &format!("{directory}/src"), &mut files)?;
    let texts: Vec<String> =
        files.iter().map(|file| fs::read_to_string(root.join(file))).collect::<Result<_, _>>()?;
    let mut places: Vec<Place> = files.iter().map(|file| Place::inside(directory, file)).collect();
    mark_test_files(&mut places, &texts);
    let files: Vec<(&Place, &str)> = places.iter().zip(texts.iter().map(String::as_str)).collect();
    Ok(circles::find(&files))
}

/// Prints the circles of files of every crate, with the edges that close them. They are a report; the
/// verdict is that of [`check`], for the crates in [`WITHOUT_CIRCLES`].
///
/// # Errors
/// Returns an error when a directory or a source cannot be read.
pub fn print_circles(root: &Path) -> io::Result<()> {
    for directory in CRATES {
        let circles = circles_in(root, directory)?;
        match circles.len() {
            0 => println!("{directory}: no circle of files"),
            1 => println!("{directory}: 1 circle of files"),
            count => println!("{directory}: {count} circles of files"),
        }
        for circle in circles {
            println!("{circle}");
        }
    }
    Ok(())
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

/// Adds the paths of the Rust sources in a directory of the repository, in order, but for generated ones.
///
/// # Errors
/// Returns an error when a directory cannot be read.
pub fn sources(root: &Path, directory: &str, files: &mut Vec<String>) -> io::Result<()> {
    let mut names: Vec<_> = fs::read_dir(root.join(directory))?.collect::<Result<_, _>>()?;
    names.sort_by_key(fs::DirEntry::file_name);
    for entry in names {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{directory}/{name}");
        if entry.file_type()?.is_dir() {
            // Generated code keeps to no law of the house.
            if name != "target" && name != "proto" {
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
    fn circles_are_found_from_the_root_and_test_files_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let write = |name: &str, text: &str| {
            let path = root.join("xtask/src").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("main.rs", "mod a; mod b; #[cfg(test)] mod c;");
        write("a/mod.rs", "use crate::b::g; pub fn f() { g() }");
        write("b.rs", "pub fn g() { crate::a::f() }");
        write("c.rs", "pub fn h() { crate::a::f(); crate::b::g() }");
        let circles = circles_in(root, "xtask").unwrap();
        let files: Vec<Vec<_>> = circles.iter().map(|circle| circle.files().into_iter().collect()).collect();
        assert_eq!(files, [["xtask/src/a/mod.rs", "xtask/src/b.rs"]]);
    }

    #[test]
    fn a_circle_is_a_finding_where_the_law_allows_none() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for floor in &FLOORS {
            let source = root.join(floor.directory).join("src");
            fs::create_dir_all(&source).unwrap();
            fs::write(root.join(floor.directory).join("Cargo.toml"), "[dependencies]\n").unwrap();
            fs::write(source.join("plan.rs"), "//! Plans.\npub struct Plan(crate::time::Time);\n").unwrap();
            fs::write(
                source.join("time.rs"),
                "//! Times.\npub fn f(_: crate::plan::Plan) {}\npub struct Time;\n",
            )
            .unwrap();
        }
        let (findings, _) = check(root).unwrap();
        let circles: Vec<_> = findings.iter().filter(|finding| finding.sentence.contains("circle")).collect();
        assert_eq!(circles.len(), WITHOUT_CIRCLES.len(), "{findings:?}");
        for (circle, directory) in circles.iter().zip(WITHOUT_CIRCLES) {
            assert_eq!((circle.file.as_str(), circle.line), (format!("{directory}/src/plan.rs").as_str(), 2));
            assert!(circle.sentence.contains(&format!("{directory}/src/time.rs")), "{circle}");
        }
    }

    #[test]
    fn a_broken_tree_is_found_from_its_root() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for floor in &FLOORS {
            fs::create_dir_all(root.join(floor.directory).join("src/protocol")).unwrap();
            fs::write(root.join(floor.directory).join("Cargo.toml"), "[dependencies]\n").unwrap();
        }
        fs::write(root.join("crates/logic/src/protocol/text.rs"), "//! Text.\nuse std::net::TcpStream;\n")
            .unwrap();
        fs::write(root.join("crates/logic/Cargo.toml"), "[dependencies]\npummel-engine.workspace = true\n")
            .unwrap();
        let (findings, count) = check(root).unwrap();
        let found: Vec<_> = findings.iter().map(|finding| (finding.file.as_str(), finding.line)).collect();
        assert_eq!(found, [("crates/logic/Cargo.toml", 2), ("crates/logic/src/protocol/text.rs", 2)]);
        assert_eq!(count, FLOORS.len() + 1);
    }
}
