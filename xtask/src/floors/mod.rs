//! `cargo xtask floors`: reads every source and manifest and fails on what runs against the floors, where neither Cargo nor a
//! lint says it.

mod circles;
mod finding;
mod law;
mod manifest;
mod names;
mod rules;

use std::fs;
use std::io;
use std::path::Path;

use circles::Circle;
use finding::Finding;
use law::FLOORS;
use names::{Names, ReadSource};

use crate::sources::{self, Source};

/// Checks the whole repository at `root`; returns the findings and the number of files that were read.
///
/// # Errors
/// Returns an error when a file cannot be read, or is no Rust or TOML.
pub fn check(root: &Path) -> io::Result<(Vec<Finding>, usize)> {
    let mut findings = Vec::new();
    let mut count = 0;
    for floor in &FLOORS {
        let manifest = format!("{}/Cargo.toml", floor.directory);
        let text = fs::read_to_string(root.join(&manifest))?;
        findings.extend(manifest::check(floor, &manifest, &text).map_err(io::Error::other)?);
        let sources = ReadSource::all(sources::read(root, floor.directory)?)?;
        findings.extend(sources.iter().flat_map(|read| rules::check(floor, read)));
        findings.extend(circles_in(&sources).iter().map(Circle::finding));
        count += 1 + sources.len();
    }
    Ok((findings, count))
}

/// The circles among the sources of a crate. Only files that are shipped and are no tests are looked at, and of two roots only the
/// library's, because no file can name what is in the other.
fn circles_in(sources: &[ReadSource]) -> Vec<Circle> {
    let has_library = sources.iter().any(|read| read.source.path.ends_with("/src/lib.rs"));
    let counts = |source: &Source| {
        source.is_shipped
            && !source.code.is_empty()
            && !(has_library && source.path.ends_with("/src/main.rs"))
    };
    let counted = sources.iter().filter(|read| counts(&read.source));
    let files: Vec<(&str, &Names)> = counted.map(|read| (read.source.path.as_str(), &read.code)).collect();
    circles::find(&files)
}

/// Prints the circles of files of every crate and of this program, with the edges that close them. They are a report; the verdict
/// is that of [`check`].
///
/// # Errors
/// Returns an error when a file cannot be read or is no Rust.
pub fn print_circles(root: &Path) -> io::Result<()> {
    for directory in FLOORS.iter().map(|floor| floor.directory).chain(["xtask"]) {
        let circles = circles_in(&ReadSource::all(sources::read(root, directory)?)?);
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

/// Prints what is wrong; says whether nothing is.
///
/// # Errors
/// Returns an error when a file cannot be read, or is no Rust or TOML.
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let circles = circles_in(&ReadSource::all(sources::read(root, "xtask").unwrap()).unwrap());
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
        assert_eq!(circles.len(), FLOORS.len(), "{findings:?}");
        for (circle, directory) in circles.iter().zip(FLOORS.map(|floor| floor.directory)) {
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
