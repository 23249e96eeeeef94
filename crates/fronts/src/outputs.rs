//! What a command line wants written about its runs, and where to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pummel_logic::plan::{FileRole, Plan};
use pummel_report::forms::{FORMS, Form};

use crate::metrics_options::MetricsArgs;
use crate::screen_options::ScreenArgs;

/// What the system says about paths. Results may not have the place of another result or of a file that is read.
#[derive(Clone, Copy, Debug)]
pub struct PathFacts {
    /// Whether two paths name one file, through links also.
    pub is_one_file: fn(&Path, &Path) -> bool,
    /// Whether a path names a file, and neither a device nor a pipe.
    pub is_file: fn(&Path) -> bool,
    /// Whether a report for a path goes to standard output.
    pub is_standard_output: fn(&Path) -> bool,
}

#[cfg(any(test, feature = "testing"))]
impl PathFacts {
    /// What a machine without files says.
    pub const WITHOUT_FILES: PathFacts = PathFacts {
        is_one_file: |first, second| first == second,
        is_file: |_| false,
        is_standard_output: |path| path == Path::new("-"),
    };
}

/// What a run writes, and where to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    /// What goes to standard output at the end.
    pub format: ReportFormat,
    /// One line of text on standard output, and no progress on standard error.
    pub quiet: bool,
    /// The text for people.
    pub screen: ScreenArgs,
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

impl ReportFormat {
    /// The options that choose this form for standard output; `None` for the text, which gives way to a result there.
    fn options(self) -> Option<&'static str> {
        match self {
            ReportFormat::Text => None,
            ReportFormat::Markdown => Some("--format markdown"),
            ReportFormat::Json => Some("--format json or --json -"),
        }
    }
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

    /// Requests the tables as Parquet in a folder.
    pub fn set_parquet(&mut self, folder: impl Into<PathBuf>) {
        self.parquet = Some(folder.into());
    }

    /// The folder of the tables in Parquet; `None` where they are not wanted.
    pub fn parquet(&self) -> Option<&Path> {
        self.parquet.as_deref()
    }

    /// The files of one of several runs: with its name before the ending of each.
    #[must_use]
    pub fn of_part(&self, run: &str) -> ResultPaths {
        let mut of_part = ResultPaths::default();
        self.iter().for_each(|(form, path)| of_part.set(form.name, file_of_part(path, run)));
        of_part
    }

    /// The forms that are wanted with their files, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Form, &Path)> {
        FORMS.iter().filter_map(|form| Some((*form, self.get(form.name)?)))
    }

    /// The first form whose file cannot be written beside the others, beside the report of this format on standard output and beside
    /// the files that are read, with the file and what is accepted instead; `None` where each result has a place of its own.
    pub fn conflict(
        &self,
        format: ReportFormat,
        inputs: &[InputFile<'_>],
        paths: PathFacts,
    ) -> Option<(&'static Form, &Path, String)> {
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
            if let Some(options) = format.options().filter(|_| (paths.is_standard_output)(file)) {
                let accepted =
                    format!("expected a file with {options}: only one of them can have standard output");
                return Some((form, file, accepted));
            }
            let others = named[..index].iter().map(|(form, file)| (form.flag(), *file));
            if let Some(accepted) = taken(file, others, inputs, paths) {
                return Some((form, file, accepted));
            }
        }
        None
    }
}

/// A file that a command reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile<'a> {
    path: &'a Path,
    /// What the file is to the command, such as `the result`.
    role: String,
}

impl<'a> InputFile<'a> {
    /// A file that is read as what `role` says, such as `the result`.
    pub fn new(role: &str, path: &'a (impl AsRef<Path> + ?Sized)) -> InputFile<'a> {
        InputFile { path: path.as_ref(), role: role.to_owned() }
    }

    /// A file that an option names.
    pub fn of_option(flag: &str, path: &'a (impl AsRef<Path> + ?Sized)) -> InputFile<'a> {
        InputFile::new(&format!("the file of {flag}"), path)
    }
}

/// The files that a run of a plan reads.
pub fn files_of(plan: &Plan) -> Vec<InputFile<'_>> {
    let file = |(role, path)| match role {
        FileRole::Trace => InputFile::of_option("--trace", path),
        FileRole::Fill => InputFile::of_option("--fill", path),
        FileRole::Recording => InputFile::new("the recording", path),
        FileRole::Dataset => InputFile::of_option("--dataset", path),
        FileRole::Script => InputFile::of_option("--script", path),
        FileRole::Password => InputFile::of_option("--password-file", path),
        FileRole::TlsCa => InputFile::of_option("--tls-ca", path),
        FileRole::TlsCert => InputFile::of_option("--tls-cert", path),
        FileRole::TlsKey => InputFile::of_option("--tls-key", path),
    };
    plan.files().into_iter().map(file).collect()
}

/// What is accepted in place of an output `file` that is the place of one of the `others`, which their options name, or one of the
/// files that are read; `None` where it is a place of its own.
pub fn taken<'a>(
    file: &Path,
    others: impl IntoIterator<Item = (String, &'a Path)>,
    inputs: &[InputFile<'_>],
    paths: PathFacts,
) -> Option<String> {
    let is_this = |other: &Path| {
        (paths.is_one_file)(other, file)
            || (paths.is_standard_output)(other) && (paths.is_standard_output)(file)
    };
    if let Some((flag, _)) = others.into_iter().find(|(_, other)| is_this(other)) {
        return Some(format!("expected a separate file: {flag} already writes to this one"));
    }
    // As an input, - is standard input; and a device or a pipe has nothing to lose.
    let is_read = |input: &&InputFile<'_>| {
        let is_file = input.path != Path::new("-") && (paths.is_file)(input.path);
        is_file && file != Path::new("-") && (paths.is_one_file)(input.path, file)
    };
    let input = inputs.iter().find(is_read)?;
    Some(format!("expected a separate file: it is read as {}", input.role))
}

/// The name of a result's file for one of several runs: that of the run stands before its ending.
fn file_of_part(path: &Path, run: &str) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = match name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) {
        Some((stem, ending)) => format!("{stem}.{run}.{ending}"),
        None => format!("{name}.{run}"),
    };
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::{Login, Phase, Stop, TlsOptions, TracePace, TraceReplay, Work};

    use super::*;

    #[test]
    fn a_result_has_neither_the_place_of_another_one_nor_that_of_what_is_read() {
        let facts = PathFacts {
            is_one_file: |first, second| {
                let target = |path: &Path| {
                    path.file_name().map(|name| {
                        name.to_str()
                            .map_or("", |name| if name == "link" { "t.csv" } else { name })
                            .to_owned()
                    })
                };
                target(first) == target(second)
            },
            is_file: |path| path.ends_with("t.csv"),
            ..PathFacts::WITHOUT_FILES
        };
        let at = |name: &str| Path::new("/folder").join(name);
        let trace = at("t.csv");
        let inputs = [InputFile::of_option("--trace", &trace)];
        let conflict = |forms: &[(&'static str, &str)]| {
            let mut paths = ResultPaths::default();
            forms.iter().for_each(|(name, file)| paths.set(name, at(file)));
            let conflict = paths.conflict(ReportFormat::Text, &inputs, facts);
            conflict.map(|(form, file, accepted)| (form.name, file.to_owned(), accepted))
        };
        assert_eq!(conflict(&[("json", "r.json"), ("csv", "r.csv")]), None);
        let read = "expected a separate file: it is read as the file of --trace".to_owned();
        assert_eq!(conflict(&[("csv", "t.csv")]), Some(("csv", at("t.csv"), read.clone())));
        assert_eq!(conflict(&[("samples", "link")]), Some(("samples", at("link"), read)));
        let written = "expected a separate file: --json already writes to this one".to_owned();
        assert_eq!(conflict(&[("json", "new"), ("csv", "./new")]), Some(("csv", at("./new"), written)));
    }

    #[test]
    fn standard_output_has_one_report_by_whatever_name() {
        let mut paths = ResultPaths::default();
        paths.set("json", "-");
        assert!(paths.conflict(ReportFormat::Text, &[], PathFacts::WITHOUT_FILES).is_none());
        for format in [ReportFormat::Markdown, ReportFormat::Json] {
            let (form, file, accepted) =
                paths.conflict(format, &[], PathFacts::WITHOUT_FILES).expect("both have standard output");
            assert_eq!((form.name, file), ("json", Path::new("-")));
            let options = format.options().expect("it is in the place of the text");
            assert!(accepted.starts_with(&format!("expected a file with {options}: ")), "{accepted}");
        }
        let read = [InputFile::new("the result", "-")];
        assert_eq!(taken(Path::new("-"), [], &read, PathFacts::WITHOUT_FILES), None, "two streams");
    }

    #[test]
    fn a_plan_names_the_files_that_it_reads() {
        let paths = vec!["a".to_owned(), "b".to_owned()];
        let replay = TraceReplay::of(paths, TracePace::Fast, 1);
        let work = Work::Trace(Box::new(replay));
        let file = |name: &str| Some(name.to_owned());
        let plan = Plan {
            login: Some(Login { user: "u".to_owned(), password_file: file("p") }),
            tls: Some(TlsOptions { ca: file("c"), key: file("k"), ..TlsOptions::default() }),
            phases: vec![Phase { name: "measure".to_owned(), work, stop: Stop::default(), recorded: true }],
            ..Plan::default()
        };
        let named = [
            ("--trace", "a"),
            ("--trace", "b"),
            ("--password-file", "p"),
            ("--tls-ca", "c"),
            ("--tls-key", "k"),
        ];
        assert_eq!(files_of(&plan), named.map(|(flag, path)| InputFile::of_option(flag, path)));
    }
}
