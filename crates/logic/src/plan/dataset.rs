//! The file whose rows fill places of commands, and the order of its rows.

use serde::{Deserialize, Serialize};

crate::words! {
    /// The order in which the requests of a client take the rows of a dataset.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[derive(Default)]
    pub enum DatasetOrder {
        /// One row after the other, from a row of the client's own on: the clients' first rows are spread over the file. Behind the last
        /// row comes the first.
        #[default]
        File = "file",
        /// A row for each request by itself, drawn from the seed.
        Random = "random",
    }
}

/// The form of a file of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatasetForm {
    /// Columns between commas, with quotes; the first line has their names.
    Csv,
    /// Columns between tabs, without quotes; the first line has their names.
    Tsv,
    /// A JSON object on each line, whose keys are the names of the columns.
    JsonLines,
}

/// The file whose rows fill the places `__field:NAME__` of commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Dataset {
    /// Path of the file, whose ending says its form; it is read where the run takes place.
    pub path: String,
    /// Order in which the requests of a client take the rows.
    pub order: DatasetOrder,
}

/// Endings of packed files, which stand behind that of the form.
const PACKED: [&str; 2] = [".gz", ".zst"];

impl Dataset {
    /// The endings of files with rows, in words.
    pub const ENDINGS: &str = ".csv, .tsv or .jsonl, with .gz or .zst behind it where the file is packed";

    /// The form of the file by its ending; `None` for another one.
    pub fn form(&self) -> Option<DatasetForm> {
        let path = self.path.to_ascii_lowercase();
        let plain = PACKED.iter().find_map(|ending| path.strip_suffix(ending)).unwrap_or(&path);
        match plain.rsplit_once('.')?.1 {
            "csv" => Some(DatasetForm::Csv),
            "tsv" => Some(DatasetForm::Tsv),
            "jsonl" | "ndjson" => Some(DatasetForm::JsonLines),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_of_a_file_says_its_form() {
        for (path, form) in [
            ("a.csv", Some(DatasetForm::Csv)),
            ("/data/A.CSV.gz", Some(DatasetForm::Csv)),
            ("b.tsv.zst", Some(DatasetForm::Tsv)),
            ("c.x.jsonl", Some(DatasetForm::JsonLines)),
            ("c.ndjson", Some(DatasetForm::JsonLines)),
            ("csv", None),
            ("a.csv.bz2", None),
            ("a.json", None),
            ("-", None),
            ("", None),
        ] {
            let dataset = Dataset { path: path.to_owned(), order: DatasetOrder::File };
            assert_eq!(dataset.form(), form, "{path}");
        }
    }
}
