//! The tables of a result in a folder (`--parquet`): checked before a run, written when it is over.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use tempfile::NamedTempFile;

use crate::report::document::Document;
use crate::report::output::{Output, explained};
use crate::report::parquet::{GROUP_ROWS, TableFile, render};
use crate::report::tables::{SampleRows, Table, facts, histograms, intervals, no_samples};

/// The tables that are made from the result, by the names of their files.
const TABLES: [(&str, fn(&Document) -> Table); 2] = [("intervals", intervals), ("histograms", histograms)];

/// The name of the table of single requests.
const SAMPLES: &str = "samples";

/// The tables of a result.
#[derive(Debug)]
pub struct TableFiles {
    folder: PathBuf,
    outputs: Vec<(Output, fn(&Document) -> Table)>,
    /// The file of `--samples`, which also becomes a table.
    samples: Option<PathBuf>,
}

impl TableFiles {
    /// Checks that the tables can be written, and makes their folder. Requests in the file `samples` become a table too.
    ///
    /// # Errors
    /// Returns the system's error when a table cannot be written, and when `samples` is a pipe or a device, which cannot be
    /// read again; the message names the path.
    pub fn prepare(folder: &Path, samples: Option<&Path>) -> io::Result<TableFiles> {
        fs::create_dir_all(folder).map_err(|error| explained(folder, &error))?;
        if let Some(path) = samples.filter(|path| fs::metadata(path).is_ok_and(|it| !it.is_file())) {
            let why =
                format!("'{}': with --parquet, --samples takes a file: it is read again", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut outputs: Vec<(Output, fn(&Document) -> Table)> = Vec::new();
        for (name, make) in TABLES {
            outputs.push((Output::prepare(&path_of(folder, name))?, make));
        }
        Ok(TableFiles { folder: folder.to_owned(), outputs, samples: samples.map(Path::to_owned) })
    }

    /// Writes the tables.
    ///
    /// # Errors
    /// Returns the first error; the message names the path.
    pub fn finish(&self, document: &Document) -> io::Result<()> {
        let facts = facts(document);
        for (output, make) in &self.outputs {
            output.finish(&render(&make(document), &facts))?;
        }
        let Some(samples) = &self.samples else { return Ok(()) };
        let path = path_of(&self.folder, SAMPLES);
        self.write_samples(samples, &path, &facts).map_err(|error| explained(&path, &error))
    }

    /// Reads the requests again, and writes them beside their place, where they are moved when they are whole.
    fn write_samples(&self, samples: &Path, path: &Path, facts: &[(String, String)]) -> io::Result<()> {
        let lines = BufReader::new(File::open(samples)?).lines().skip(1);
        let mut rows = SampleRows::new(lines, GROUP_ROWS);
        let first = rows.next_table()?;
        let temporary = NamedTempFile::new_in(&self.folder)?;
        let out = temporary.reopen()?;
        let mut file =
            TableFile::begin(out, first.as_ref().unwrap_or(&no_samples()), facts).map_err(plain)?;
        let mut next = first;
        while let Some(table) = next {
            file.add(&table).map_err(plain)?;
            next = rows.next_table()?;
        }
        file.end().map_err(plain)?;
        temporary.persist(path).map(drop).map_err(|error| error.error)
    }
}

fn path_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.parquet"))
}

fn plain(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
