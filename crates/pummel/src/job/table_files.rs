//! The tables of a result in a folder (`--parquet`): checked before a run, written when it is over.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use pummel_report::document::Document;
use pummel_report::parquet::{GROUP_ROWS, TableFile, render};
use pummel_report::tables::{SampleRows, Table, facts, histograms, intervals, no_samples};

use crate::output::{Output, explained};

/// The tables that are made from the result, by the names of their files.
const TABLES: [(&str, fn(&Document) -> Table); 2] = [("intervals", intervals), ("histograms", histograms)];

/// The name of the table of single requests.
const SAMPLES: &str = "samples";

/// The tables of a result.
#[derive(Debug)]
pub struct TableFiles {
    outputs: Vec<(Output, fn(&Document) -> Table)>,
    samples: Option<SamplesTable>,
}

/// The file of `--samples`, which also becomes a table.
#[derive(Debug)]
struct SamplesTable {
    file: PathBuf,
    path: PathBuf,
    output: Output,
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
        let samples_table = |file: &Path| -> io::Result<SamplesTable> {
            let path = path_of(folder, SAMPLES);
            Ok(SamplesTable { file: file.to_owned(), output: Output::prepare(&path)?, path })
        };
        let samples = samples.map(samples_table).transpose()?;
        Ok(TableFiles { outputs, samples })
    }

    /// Writes the tables. Where no measured phase of the run `has_begun`, the file of samples is that of an earlier run or is not there,
    /// and the table of requests is empty.
    ///
    /// # Errors
    /// Returns the first error; the message names the path.
    pub fn finish(&self, document: &Document, has_begun: bool) -> io::Result<()> {
        let facts = facts(document);
        for (output, make) in &self.outputs {
            output.finish(&render(&make(document), &facts))?;
        }
        let Some(samples) = &self.samples else { return Ok(()) };
        samples.write(&facts, has_begun).map_err(|error| explained(&samples.path, &error))
    }
}

impl SamplesTable {
    /// Reads the requests again if there are any, and writes them piece by piece, since they are too many for the memory.
    fn write(&self, facts: &[(String, String)], has_begun: bool) -> io::Result<()> {
        let file = has_begun.then(|| File::open(&self.file)).transpose()?;
        let lines = file.into_iter().flat_map(|file| BufReader::new(file).lines().skip(1));
        let mut rows = SampleRows::new(lines, GROUP_ROWS);
        let first = rows.next_table()?;
        let out = self.output.begin()?;
        let mut file =
            TableFile::begin(out, first.as_ref().unwrap_or(&no_samples()), facts).map_err(plain)?;
        let mut next = first;
        while let Some(table) = next {
            file.add(&table).map_err(plain)?;
            next = rows.next_table()?;
        }
        file.end().map_err(plain)?.complete()
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

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use pummel_measure::measurement::Keep;

    use super::*;
    use pummel_report::example::Run;

    #[test]
    fn requests_of_an_earlier_run_are_none_of_a_run_that_measured_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let samples = folder.path().join("s.csv");
        let row = "due,ready,sent,arrived,read,op,outcome,key,client,group\n5,5,6,9,9,get,hit,1,2,0\n";
        for (old, has_begun, rows) in [(None, false, 0), (Some(row), false, 0), (Some(row), true, 1)] {
            if let Some(old) = old {
                fs::write(&samples, old).expect("written");
            }
            let tables = TableFiles::prepare(folder.path(), Some(&samples)).expect("it can be written");
            Run::new(Keep::Figures)
                .document(|document| tables.finish(document, has_begun))
                .expect("the tables are written");
            let file = File::open(path_of(folder.path(), SAMPLES)).expect("it is there");
            let table = SerializedFileReader::new(file).expect("a file of Parquet");
            assert_eq!(table.metadata().file_metadata().num_rows(), rows, "{old:?} {has_begun}");
        }
    }
}
