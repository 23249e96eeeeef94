//! The files that options name, and the places of results beside them.

use pummel_logic::plan::Plan;

use crate::job::UsageError;
use crate::native::Typed;
use crate::native::workloads::is_built_in;
use crate::outputs::{InputFile, Outputs, PathFacts, files_of};

/// Options whose values are files; `--workload` takes names too.
const FILES: &[&str] = &["--plan", "--phases", "--workload"];

/// Options whose values are files behind `file:` or `cachelib:`.
const VALUES_IN_FILES: &[&str] = &[
    "--rate",
    "--arrivals",
    "--read-through",
    "--popularity",
    "--key-size",
    "--value-size",
    "--ttl",
    "--missing-size",
];

/// The file that the value of an option such as `--phases` names; `None` where it names none.
pub fn file_of<'a>(flag: &str, value: &'a str) -> Option<&'a str> {
    match flag {
        "--workload" => Some(value).filter(|name| !is_built_in(name)),
        _ if FILES.contains(&flag) => Some(value),
        _ if VALUES_IN_FILES.contains(&flag) => {
            value.strip_prefix("file:").or_else(|| value.strip_prefix("cachelib:"))
        }
        _ => None,
    }
}

impl<A> Typed<A> {
    /// Refuses a result whose place is that of another result, or of a file that these options or their plan name.
    ///
    /// # Errors
    /// Returns [`UsageError::Value`] for the first result that has no place of its own.
    pub fn check_places(&self, outputs: &Outputs, plan: &Plan, paths: PathFacts) -> Result<(), UsageError> {
        let flags = FILES.iter().chain(VALUES_IN_FILES);
        let named =
            flags.filter_map(|flag| Some(InputFile::of_option(flag, file_of(flag, self.word(flag)?)?)));
        let inputs: Vec<InputFile<'_>> = named.chain(files_of(plan)).collect();
        match outputs.files.conflict(outputs.format, &inputs, paths) {
            None => Ok(()),
            Some((form, file, accepted)) => {
                let (flag, value) = (form.flag(), file.display().to_string());
                Err(UsageError::Value { flag, value, accepted })
            }
        }
    }
}
