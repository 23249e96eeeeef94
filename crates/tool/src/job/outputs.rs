//! What a command line wants written about its runs, and where to.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf, absolute};

use crate::metrics::options::MetricsArgs;
use crate::report::forms::{FORMS, Form};
use crate::report::output::Output;
use crate::stderr::say;

/// The word for the file that GitHub Actions names.
const AUTO: &str = "auto";

/// The variable that names the summary of a job of GitHub Actions.
const SUMMARY_VARIABLE: &str = "GITHUB_STEP_SUMMARY";

/// What a run writes, and where to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    /// What goes to standard output at the end.
    pub format: ReportFormat,
    /// No progress on standard error.
    pub quiet: bool,
    /// The files of the result.
    pub files: ResultPaths,
    /// The metrics of the runs.
    pub metrics: MetricsArgs,
    /// A terminal shows the progress by a block of lines in place of one line for each interval.
    pub block: bool,
    /// A terminal shows the progress by a whole screen.
    pub live: bool,
    /// Keys of that screen change the rate.
    pub steer: bool,
}

impl Outputs {
    /// The outputs of each run of a series: no results, since the series writes them, but the metrics.
    #[must_use]
    pub fn of_series(&self) -> Outputs {
        Outputs { metrics: self.metrics.clone(), block: self.block, live: self.live, ..Outputs::default() }
    }
}

/// The form of the report of runs on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ReportFormat {
    /// For people.
    #[default]
    Text,
    /// For the page of a job or a comment.
    Markdown,
    /// For programs.
    Json,
}

/// The form of what goes to standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Checks that the file of a form can be written. `None` where the form has no file here: `auto` outside of GitHub Actions,
/// which is said.
///
/// # Errors
/// Returns the system's error when the file cannot be written; the message names the path.
pub fn open(form: &Form, path: &Path) -> io::Result<Option<Output>> {
    if !form.is_appended() {
        return Output::prepare(path).map(Some);
    }
    if path != Path::new(AUTO) {
        return Output::prepare_appended(path).map(Some);
    }
    match std::env::var_os(SUMMARY_VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => Output::prepare_appended(Path::new(&path)).map(Some),
        None => {
            say(format_args!(
                "note: {} auto: {SUMMARY_VARIABLE} is not set, no summary is written",
                form.flag()
            ));
            Ok(None)
        }
    }
}

/// The files that a result is written to, by the names of their forms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultPaths {
    forms: BTreeMap<&'static str, PathBuf>,
    /// The folder of the tables in Parquet.
    parquet: Option<PathBuf>,
}

impl ResultPaths {
    /// Has a form written to a file.
    ///
    /// # Panics
    /// Panics when there is no form of this name.
    pub fn set(&mut self, name: &str, path: impl Into<PathBuf>) {
        let form = FORMS.iter().find(|form| form.name == name);
        let form = form.unwrap_or_else(|| panic!("{name} is the name of no form"));
        self.forms.insert(form.name, path.into());
    }

    /// Has a form not written.
    pub fn remove(&mut self, name: &str) {
        self.forms.remove(name);
    }

    /// The file of a form; `None` where it is not wanted.
    pub fn get(&self, name: &str) -> Option<&Path> {
        self.forms.get(name).map(PathBuf::as_path)
    }

    /// Has the tables written as Parquet into a folder.
    pub fn set_parquet(&mut self, folder: impl Into<PathBuf>) {
        self.parquet = Some(folder.into());
    }

    /// The folder of the tables in Parquet; `None` where they are not wanted.
    pub fn parquet(&self) -> Option<&Path> {
        self.parquet.as_deref()
    }

    /// The forms that are wanted with their files, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Form, &Path)> {
        FORMS.iter().filter_map(|form| Some((*form, self.get(form.name)?)))
    }

    /// The first form whose file cannot be written beside the others, with the file and what is accepted instead; `None`
    /// where each result has a place of its own.
    pub fn conflict(&self) -> Option<(&'static Form, &Path, String)> {
        let named: Vec<(&'static Form, &Path)> = self.iter().collect();
        for (index, (form, file)) in named.iter().copied().enumerate() {
            if file.as_os_str().is_empty() {
                return Some((form, file, "expected the name of a file".to_owned()));
            }
            if !form.takes_stdout && file == Path::new("-") {
                let takers = FORMS.iter().filter(|form| form.takes_stdout).map(|form| form.flag());
                let takers = takers.collect::<Vec<_>>().join(" and ");
                return Some((form, file, format!("expected the name of a file; only {takers} takes -")));
            }
            // `f`, `./f` and the whole path are one file.
            let is_this = |seen: &Path| seen == file || absolute(seen).ok() == absolute(file).ok();
            if let Some((other, _)) = named[..index].iter().find(|(_, seen)| is_this(seen)) {
                let accepted =
                    format!("expected a separate file: {} already writes to this one", other.flag());
                return Some((form, file, accepted));
            }
        }
        None
    }
}
