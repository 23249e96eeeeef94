//! What a command line wants written about its runs, and where to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf, absolute};

use crate::report::forms::{FORMS, Form};

/// What a run writes, and where to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    /// What goes to standard output at the end.
    pub format: Format,
    /// No progress on standard error.
    pub quiet: bool,
    /// The files of the result.
    pub files: ResultPaths,
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
pub struct ResultPaths(BTreeMap<&'static str, PathBuf>);

impl ResultPaths {
    /// Has a form written to a file.
    ///
    /// # Panics
    /// Panics when there is no form of this name.
    pub fn set(&mut self, name: &str, path: impl Into<PathBuf>) {
        let form = FORMS.iter().find(|form| form.name == name);
        let form = form.unwrap_or_else(|| panic!("{name} is the name of no form"));
        self.0.insert(form.name, path.into());
    }

    /// Has a form not written.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// The file of a form; `None` where it is not wanted.
    pub fn get(&self, name: &str) -> Option<&Path> {
        self.0.get(name).map(PathBuf::as_path)
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
                return Some((form, file, "the name of a file is accepted".to_owned()));
            }
            if !form.takes_stdout && file == Path::new("-") {
                let takers = FORMS.iter().filter(|form| form.takes_stdout).map(|form| form.flag());
                let takers = takers.collect::<Vec<_>>().join(" and ");
                return Some((form, file, format!("the name of a file is accepted; only {takers} takes -")));
            }
            // `f`, `./f` and the whole path are one file.
            let is_this = |seen: &Path| seen == file || absolute(seen).ok() == absolute(file).ok();
            if let Some((other, _)) = named[..index].iter().find(|(_, seen)| is_this(seen)) {
                let accepted = format!("a file of its own is accepted, and {} has this one", other.flag());
                return Some((form, file, accepted));
            }
        }
        None
    }
}
