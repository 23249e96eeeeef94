//! The forms of a result that are files: the table that options, checks, result files and series follow.

use crate::document::{CurveDocument, Document};
use crate::{csv, curve, hdr, json, junit, markdown, page};

/// A form of a result that is a file.
#[derive(Debug)]
pub struct Form {
    /// Its name, which is also its long option.
    pub name: &'static str,
    /// The sentence of `--help`, without its full stop.
    pub help: &'static str,
    /// Whether `-` names standard output.
    pub takes_stdout: bool,
    /// Whether the intervals have to keep their histograms for it.
    pub wants_histograms: bool,
    /// What is in the file, and when it is written.
    pub content: Content,
    /// The function that makes the file of a series of runs; absent where a series has none.
    pub series: Option<fn(&CurveDocument) -> Vec<u8>>,
}

/// What is in a file, and when it is written.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// The result, at the end.
    Final(fn(&Document) -> Vec<u8>),
    /// The result so far, again and again while a run goes on, and the whole result at the end.
    Checkpointed(fn(&Document) -> Vec<u8>),
    /// Every request as a line, while a run goes on.
    Requests,
    /// A function for text that is appended to a file when the run is over.
    Appended(fn(&Document) -> Vec<u8>),
}

/// All forms, in the order of `--help`.
pub static FORMS: &[&Form] = &[
    &Form {
        name: "json",
        help: "Write the result as JSON to a file, or with - to standard output instead of the text report",
        takes_stdout: true,
        wants_histograms: false,
        content: Content::Checkpointed(json::render),
        series: Some(curve::json),
    },
    &Form {
        name: "csv",
        help: "Write the intervals as CSV",
        takes_stdout: false,
        wants_histograms: false,
        content: Content::Final(csv::render),
        series: Some(curve::csv),
    },
    &Form {
        name: "hdr",
        help: "Write the histograms of all intervals as an HdrHistogram log",
        takes_stdout: false,
        wants_histograms: true,
        content: Content::Final(hdr::render),
        series: None,
    },
    &Form {
        name: "report",
        help: "Write the result as a self-contained HTML page with charts",
        takes_stdout: false,
        wants_histograms: false,
        content: Content::Final(page::render),
        series: Some(page::render_series),
    },
    &Form {
        name: "junit",
        help: "Write JUnit test cases: whether the run was complete, answered, correct, and met its goals",
        takes_stdout: false,
        wants_histograms: false,
        content: Content::Final(junit::render),
        series: None,
    },
    &Form {
        name: "summary",
        help: "Append the result as Markdown to a file, or with `auto` to the job summary of GitHub Actions \
               (GITHUB_STEP_SUMMARY)",
        takes_stdout: false,
        wants_histograms: false,
        content: Content::Appended(markdown::of_run),
        series: Some(curve::markdown),
    },
    &Form {
        name: "samples",
        help: "Write every single request: its times, operation, outcome, key and client",
        takes_stdout: false,
        wants_histograms: false,
        content: Content::Requests,
        series: None,
    },
];

impl Form {
    /// Its option, with dashes.
    pub fn flag(&self) -> String {
        format!("--{}", self.name)
    }

    /// Whether the form is appended to its file.
    pub fn is_appended(&self) -> bool {
        matches!(self.content, Content::Appended(_))
    }

    /// Whether its file is rewritten while a run goes on.
    pub fn is_checkpointed(&self) -> bool {
        matches!(self.content, Content::Checkpointed(_))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_form_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = FORMS.iter().map(|form| form.name).collect();
        assert_eq!(names.len(), FORMS.len());
        assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')));
    }
}
