//! Something that is said of a place in a source or manifest.

use std::fmt;

/// Something that the law forbids.
#[derive(Debug)]
pub struct Finding {
    /// Path of the file from the root of the repository.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Sentence that says what is wrong there.
    pub sentence: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.file, self.line, self.sentence)
    }
}
