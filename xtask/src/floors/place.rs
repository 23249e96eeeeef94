//! Where a source stands, and what is said of a place in it.

use std::fmt;

use super::law::Floor;

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
pub struct Place {
    /// Path from the root of the repository.
    pub file: String,
    /// Module path in its crate; empty for the crate's root and for what is not part of the crate.
    pub module: Vec<String>,
    /// Whether it is part of the crate, and not one of its examples, benches or tests.
    pub is_shipped: bool,
    /// Whether it is only compiled for tests.
    pub is_test: bool,
}

impl Place {
    /// The place of a file in the crate of a floor.
    pub fn of(floor: &Floor, file: &str) -> Place {
        Place::inside(floor.directory, file)
    }

    /// The place of a file in the crate in `directory`.
    pub fn inside(directory: &str, file: &str) -> Place {
        let inside = file.strip_prefix(directory).unwrap_or(file).trim_start_matches('/');
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
