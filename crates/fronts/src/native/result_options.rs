//! Options of the result: its files, and its additional contents.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use pummel_logic::plan::{FailOn, LABEL_ACCEPTED, Labels, is_label};
use pummel_report::forms::FORMS;

use crate::job::UsageError;
use crate::outputs::ResultPaths;
use crate::values::ValueError;
use crate::values::nearest::hint;

/// Options for the additional contents of a result.
#[derive(Args, Clone, Debug, Default)]
pub struct ResultArgs {
    /// Attach a name and a value to the result, such as branch=main; may be repeated. Results, pages and metrics show them
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label, allow_hyphen_values = true)]
    pub labels: Vec<(String, String)>,
    /// Exit with status 3 if the run was `limited` (by the generator), `untrusted` (its times cannot be believed), `unsteady` or
    /// `overloaded` (its backlog grew to the end), had `errors` (requests that failed or got no answer) or `lost` acknowledged writes
    /// (--audit), or if more than the share of `outcomes:SHARE` (such as 5%) of the answered requests that may store or find nothing
    /// did so (add, replace, append, prepend, cas, incr, decr, delete, touch, and nil of --command), or if that cannot be determined;
    /// several may be given, separated by commas. Their test cases in --junit fail too
    #[arg(long, value_name = "WHAT,...", value_parser = fail_on)]
    pub fail_on: Vec<FailOnList>,
}

/// The value of one `--fail-on`.
#[derive(Clone, Debug, PartialEq)]
pub struct FailOnList(Vec<FailOn>);

fn fail_on(text: &str) -> Result<FailOnList, ValueError> {
    let accepted = |name: &str| {
        let names = FailOn::ACCEPTED;
        ValueError(format!("expected {}{}", names.join(", "), hint(name, names)))
    };
    text.split(',')
        .map(|name| FailOn::from_words(name).ok_or_else(|| accepted(name)))
        .collect::<Result<_, _>>()
        .map(FailOnList)
}

fn label(text: &str) -> Result<(String, String), ValueError> {
    let parts = text.split_once('=').filter(|(name, value)| is_label(name, value));
    let (name, value) = parts.ok_or_else(|| ValueError(LABEL_ACCEPTED.to_owned()))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The option of the tables in Parquet.
const PARQUET: &str = "parquet";

/// The help of `--parquet`.
const PARQUET_HELP: &str = "Write the intervals and histograms, and with --samples every request, as Parquet tables into a directory \
                            (only in builds with the feature parquet)";

/// The options of all forms of results that are files.
#[derive(Clone, Debug, Default)]
pub struct ResultFileArgs(pub ResultPaths);

impl FromArgMatches for ResultFileArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut paths = ResultPaths::default();
        for form in FORMS {
            if let Some(path) = matches.get_one::<PathBuf>(form.name) {
                paths.set(form.name, path.clone());
            }
        }
        if let Some(folder) = matches.get_one::<PathBuf>(PARQUET) {
            paths.set_parquet(folder.clone());
        }
        Ok(ResultFileArgs(paths))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ResultFileArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ResultFileArgs {
    fn augment_args(command: Command) -> Command {
        let folder = Arg::new(PARQUET).long(PARQUET).value_name("DIR").help(PARQUET_HELP);
        let command = FORMS.iter().fold(command, |command, form| {
            let option = Arg::new(form.name).long(form.name).value_name("FILE").help(form.help);
            command.arg(option.value_parser(value_parser!(PathBuf)))
        });
        command.arg(folder.value_parser(value_parser!(PathBuf)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        ResultFileArgs::augment_args(command)
    }
}

impl ResultArgs {
    /// The faults that `--fail-on` names, each once.
    pub fn fail_on(&self) -> Vec<FailOn> {
        let all: BTreeSet<FailOn> = self.fail_on.iter().flat_map(|list| list.0.iter().copied()).collect();
        all.into_iter().collect()
    }

    /// The labels by name.
    ///
    /// # Errors
    /// Returns [`UsageError::Value`] for a name that stands twice.
    pub fn labels(&self) -> Result<Labels, UsageError> {
        let mut labels = Labels::new();
        for (name, value) in &self.labels {
            if labels.insert(name.clone(), value.clone()).is_some() {
                return Err(UsageError::Value {
                    flag: "--label".to_owned(),
                    value: format!("{name}={value}"),
                    accepted: "each name is accepted once".to_owned(),
                });
            }
        }
        Ok(labels)
    }
}
