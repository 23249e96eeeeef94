//! `cargo xtask floors`: what neither Cargo nor a lint says of the crates: the order of modules inside each, and that no files name
//! each other's items in a circle.

mod circles;
mod law;
mod names;
mod order;

use std::io;
use std::path::Path;

use law::CRATES;

use crate::sources;

/// Prints what is wrong; says whether nothing is.
///
/// # Errors
/// Returns an error when a file cannot be read, or is no Rust.
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

/// Checks the whole repository at `root`; returns the findings and the number of files that were read.
fn check(root: &Path) -> io::Result<(Vec<String>, usize)> {
    let mut findings = Vec::new();
    let mut count = 0;
    for own in &CRATES {
        let files = names::read(sources::read(root, own.directory)?)?;
        findings.extend(files.iter().flat_map(|file| order::check(own.layers, file)));
        findings.extend(circles::find(&files));
        count += files.len();
    }
    Ok((findings, count))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn findings_of_every_crate_are_found_from_the_root() {
        let root = tempfile::tempdir().unwrap();
        for own in &CRATES {
            let source = root.path().join(own.directory).join("src");
            fs::create_dir_all(&source).unwrap();
            fs::write(source.join("plan.rs"), "pub struct Plan(crate::time::Time);\n").unwrap();
            fs::write(source.join("time.rs"), "pub fn f(_: crate::plan::Plan) {}\npub struct Time;\n")
                .unwrap();
            fs::write(source.join("lib.rs"), "#[cfg(test)] mod c;").unwrap();
            fs::write(source.join("c.rs"), "pub fn h() { crate::plan::f() }").unwrap();
        }
        let (findings, count) = check(root.path()).unwrap();
        assert_eq!(count, 2 * CRATES.len());
        let with = |words: &str| findings.iter().filter(|finding| finding.contains(words)).count();
        assert_eq!(
            (with("circle of 2 files"), with("may not use `plan`"), with("is new")),
            (CRATES.len(), 1, 6),
            "{findings:?}"
        );
    }
}
