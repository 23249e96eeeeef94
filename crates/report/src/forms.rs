//! The forms of a result that are files: the table that options, checks, result files and series follow.

use crate::document::Document;
use crate::stored::ResultDocument;
use crate::{hdr, junit, layouts};

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
}

/// What is in a file, and when it is written.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// The result, at the end.
    Final(Render),
    /// The result so far, again and again while a run goes on and after each run of a series, and the whole result at the end.
    Checkpointed(Render),
    /// Every request as a line, while a run goes on.
    Requests,
    /// Text that is appended to a file at the end.
    Appended(Render),
}

/// A pure function from a result to the bytes of its file.
#[derive(Clone, Copy, Debug)]
pub enum Render {
    /// A form of the result of one run alone.
    OfRun(fn(&Document) -> Vec<u8>),
    /// A form of the result of one run or of a series of runs.
    OfAny(fn(&ResultDocument) -> Vec<u8>),
}

/// All forms, in the order of `--help`.
pub static FORMS: &[&Form] = &[
    &Form {
        name: "json",
        help: "Write the result as JSON to a file, or with - to standard output instead of the text report",
        takes_stdout: true,
        wants_histograms: false,
        content: Content::Checkpointed(Render::OfAny(layouts::json_of)),
    },
    &Form {
        name: "csv",
        help: "Write the intervals as CSV",
        takes_stdout: false,
        wants_histograms: false,
        content: Content::Final(Render::OfAny(|result| layouts::csv_of(result).unwrap_or_default())),
    },
    &Form {
        name: "hdr",
        help: "Write the histograms of all intervals as an HdrHistogram log",
        takes_stdout: false,
        wants_histograms: true,
        content: Content::Final(Render::OfRun(hdr::render)),
    },
    &Form {
        name: "report",
        help: "Write the result as a self-contained HTML page with charts",
        takes_stdout: false,
        wants_histograms: false,
        content: Content::Final(Render::OfAny(layouts::new_page_of)),
    },
    &Form {
        name: "junit",
        help: "Write JUnit test cases: whether the run was complete, answered, correct, and met its goals",
        takes_stdout: false,
        wants_histograms: false,
        content: Content::Final(Render::OfRun(junit::render)),
    },
    &Form {
        name: "summary",
        help: "Append the result as Markdown to a file, or with `auto` to the job summary of GitHub Actions \
               (GITHUB_STEP_SUMMARY)",
        takes_stdout: false,
        wants_histograms: false,
        content: Content::Appended(Render::OfAny(layouts::markdown_of)),
    },
    &Form {
        name: "samples",
        help: "Write every single request: its times, operation, outcome, key and client",
        takes_stdout: false,
        wants_histograms: false,
        content: Content::Requests,
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

    /// Whether its file is rewritten before the end.
    pub fn is_checkpointed(&self) -> bool {
        matches!(self.content, Content::Checkpointed(_))
    }

    /// Whether the result of a series of runs has it.
    pub fn is_of_series(&self) -> bool {
        matches!(self.render(), Some(Render::OfAny(_)))
    }

    /// Its bytes for a result; `None` if they are written request by request, or the result is of several runs and has no such form.
    pub fn bytes_of(&self, result: &ResultDocument) -> Option<Vec<u8>> {
        match (self.render()?, result) {
            (Render::OfAny(render), result) => Some(render(result)),
            (Render::OfRun(render), ResultDocument::Run(run)) => Some(render(run)),
            (Render::OfRun(_), _) => None,
        }
    }

    fn render(&self) -> Option<Render> {
        match self.content {
            Content::Final(render) | Content::Checkpointed(render) | Content::Appended(render) => {
                Some(render)
            }
            Content::Requests => None,
        }
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
