//! A result that is merged with others, and the reasons to refuse it.

use std::fmt;

use pummel_logic::plan::Labels;

use crate::document::Document;

/// A result with the name of its file.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The name of the file.
    pub name: &'a str,
    /// The result.
    pub document: &'a Document,
}

/// The reason why results are not merged: a sentence without its full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotMerged(pub String);

impl fmt::Display for NotMerged {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for NotMerged {}

/// The labels that all parts have with one value.
pub fn labels_of(parts: &[Part<'_>]) -> Labels {
    let mut labels = parts[0].document.labels.clone();
    labels.retain(|name, value| parts.iter().all(|part| part.document.labels.get(name) == Some(value)));
    labels
}
