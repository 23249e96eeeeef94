//! The forms of a result that are files: the table that options, checks, result files and series follow.

use pummel_logic::plan::Plan;
use pummel_measure::failed_keys::FailedKeys;

use crate::document::Document;
use crate::stored::ResultDocument;
use crate::suite::SuiteDocument;
use crate::{failed_keys, hdr, junit, layouts};

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
    /// Times at which the file is written.
    pub writing: Writing,
    /// The function that makes its bytes.
    pub render: Render,
}

/// Times at which a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// At the end.
    Final,
    /// Again and again while a run goes on and after each run of a series, and at the end.
    Checkpointed,
    /// At the end, behind the old content of the file.
    Appended,
}

/// A pure function from a result to the bytes of its file.
#[derive(Clone, Copy, Debug)]
pub enum Render {
    /// A form of the result of one run alone.
    OfRun(fn(&Document) -> Vec<u8>),
    /// A form of the result of one run or of a suite.
    OfRunOrSuite(fn(&Document) -> Vec<u8>, fn(&SuiteDocument) -> Vec<u8>),
    /// A form of the result of one run or of a series of runs.
    OfAny(fn(&ResultDocument) -> Vec<u8>),
    /// A form of one run that has every request as a line, which is written while the run goes on.
    OfRequests,
    /// A form of the keys of requests that failed, of a run that keeps them.
    OfFailedKeys(fn(&FailedKeys, &Plan) -> Vec<u8>),
}

/// All forms, in the order of `--help`.
pub static FORMS: &[&Form] = &[
    &Form {
        name: "json",
        help: "Write the result as JSON to a file, or with - to standard output",
        takes_stdout: true,
        wants_histograms: false,
        writing: Writing::Checkpointed,
        render: Render::OfAny(layouts::json_of),
    },
    &Form {
        name: "csv",
        help: "Write the intervals as CSV",
        takes_stdout: false,
        wants_histograms: false,
        writing: Writing::Final,
        render: Render::OfAny(|result| layouts::csv_of(result).unwrap_or_default()),
    },
    &Form {
        name: "hdr",
        help: "Write the histograms of all intervals as an HdrHistogram log",
        takes_stdout: false,
        wants_histograms: true,
        writing: Writing::Final,
        render: Render::OfRun(hdr::render),
    },
    &Form {
        name: "report",
        help: "Write the result as a self-contained HTML page with charts",
        takes_stdout: false,
        wants_histograms: false,
        writing: Writing::Final,
        render: Render::OfAny(layouts::new_page_of),
    },
    &Form {
        name: "junit",
        help: "Write JUnit test cases: whether the run was complete, answered, correct, and met its goals",
        takes_stdout: false,
        wants_histograms: false,
        writing: Writing::Final,
        render: Render::OfRunOrSuite(junit::render, junit::render_suite),
    },
    &Form {
        name: "summary",
        help: "Append the result as Markdown to a file, or with `auto` to the job summary of GitHub Actions \
               (GITHUB_STEP_SUMMARY)",
        takes_stdout: false,
        wants_histograms: false,
        writing: Writing::Appended,
        render: Render::OfAny(layouts::markdown_of),
    },
    &Form {
        name: "samples",
        help: "Write every single request: its times, operation, outcome, key and client",
        takes_stdout: false,
        wants_histograms: false,
        writing: Writing::Final,
        render: Render::OfRequests,
    },
    &Form {
        name: "failed-keys",
        help: "Write the keys of requests that failed, each with its operation, phase and reason, as CSV: the first 10,000",
        takes_stdout: false,
        wants_histograms: false,
        writing: Writing::Final,
        render: Render::OfFailedKeys(failed_keys::render),
    },
];

impl Form {
    /// Its option, with dashes.
    pub fn flag(&self) -> String {
        format!("--{}", self.name)
    }

    /// Whether the result of a series of runs has it.
    pub fn is_of_series(&self) -> bool {
        matches!(self.render, Render::OfAny(_))
    }

    /// Whether the result of a suite has it.
    pub fn is_of_suites(&self) -> bool {
        matches!(self.render, Render::OfAny(_) | Render::OfRunOrSuite(..))
    }

    /// Its bytes for a result; `None` if they are written request by request, or the result is of several runs and has no such form.
    pub fn bytes_of(&self, result: &ResultDocument) -> Option<Vec<u8>> {
        match (self.render, result) {
            (Render::OfAny(render), result) => Some(render(result)),
            (Render::OfRun(render) | Render::OfRunOrSuite(render, _), ResultDocument::Run(run)) => {
                Some(render(run))
            }
            (Render::OfRunOrSuite(_, render), ResultDocument::Suite(suite)) => Some(render(suite)),
            (Render::OfFailedKeys(render), ResultDocument::Run(run)) => {
                run.failed_keys.as_ref().map(|failed| render(failed, &run.plan))
            }
            (
                Render::OfRun(_) | Render::OfRunOrSuite(..) | Render::OfRequests | Render::OfFailedKeys(_),
                _,
            ) => None,
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
