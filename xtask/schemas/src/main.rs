//! `cargo xtask schemas`: the JSON schemas of results and plans and the tables of their fields in the documents, made from the types, and the
//! table of contents of the book, made from the page of all pages.

#![forbid(unsafe_code)]

mod contents;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use pummel_report::schema::schemas;
use serde_json::Value;

/// The pages whose tables of fields are made.
const TOLD: [&str; 2] = ["RESULTS.md", "PLAN.md"];

/// The page that names all pages.
const PAGES: &str = "README.md";

/// The table of contents of the book.
const CONTENTS: &str = "SUMMARY.md";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let is_check = match words[..] {
        [] => false,
        ["--check"] => true,
        _ => {
            eprintln!("schemas: expected no argument, or --check, found: {}", words.join(" "));
            return ExitCode::from(2);
        }
    };
    match made(&folder()).and_then(|made| finish(&folder(), &made, is_check)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("schemas: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The folder of the documents.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The names and the contents of the files that are made.
fn made(folder: &Path) -> io::Result<Vec<(String, String)>> {
    let schemas: Vec<(String, Value)> =
        schemas().into_iter().map(|(name, schema)| (format!("{name}.schema.json"), schema)).collect();
    let mut made = Vec::new();
    for name in TOLD {
        made.push((name.to_owned(), table::filled(&fs::read_to_string(folder.join(name))?, &schemas)?));
    }
    let contents = contents::contents(&fs::read_to_string(folder.join(PAGES))?, &decisions(folder)?);
    let texts = schemas.iter().map(|(name, schema)| (name.clone(), format!("{schema:#}\n")));
    made.extend(texts.chain([(CONTENTS.to_owned(), contents)]));
    Ok(made)
}

/// The decisions by path and title, in their order.
fn decisions(folder: &Path) -> io::Result<Vec<(String, String)>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder.join("decisions"))? {
        names.push(format!("decisions/{}", entry?.file_name().to_string_lossy()));
    }
    names.sort();
    let titled = |name: String| {
        let text = fs::read_to_string(folder.join(&name))?;
        let title = text.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned();
        Ok((name, title))
    };
    names.into_iter().map(titled).collect()
}

/// Writes the files, or says which of them are not as they would be written; returns whether all is well.
fn finish(folder: &Path, made: &[(String, String)], is_check: bool) -> io::Result<bool> {
    let mut is_well = true;
    for (name, text) in made {
        let path = folder.join(name);
        if fs::read_to_string(&path).ok().as_ref() == Some(text) {
            continue;
        }
        if is_check {
            is_well = false;
            eprintln!("docs/{name} is not what it is made from: `cargo xtask schemas` writes it");
        } else {
            fs::write(&path, text)?;
        }
    }
    Ok(is_well)
}
