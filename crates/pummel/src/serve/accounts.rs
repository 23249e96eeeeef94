//! The truth file of the built-in server: what was really done, one line for each request and each fault.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use pummel_testserver::truth::TRUTH_HEADER;
use pummel_testserver::{Server, ServerFault};

use crate::job::output_file::OutputFile;
use crate::serve::error::ServeError;

/// The truth file. What it held before stays until the server serves.
pub(super) struct Accounts {
    path: PathBuf,
    /// The first lines, as long as nothing was written.
    head: String,
    out: BufWriter<OutputFile>,
}

impl Accounts {
    pub(super) fn create(path: &Path, faults: &[ServerFault]) -> Result<Accounts, ServeError> {
        let wrap = |cause| ServeError::new(format!("cannot write the truth to {}", path.display()), cause);
        let out = BufWriter::with_capacity(1 << 18, OutputFile::open(path).map_err(wrap)?);
        let asked: String = faults.iter().map(|fault| format!("# asked for: --fault {fault}\n")).collect();
        Ok(Accounts { path: path.to_owned(), head: format!("{TRUTH_HEADER}{asked}"), out })
    }

    /// Writes what the server noted since the last time.
    pub(super) fn write(&mut self, server: &mut Server) -> Result<(), ServeError> {
        self.begin()?;
        for note in server.take_notes() {
            writeln!(self.out, "{note}").map_err(|cause| self.failed(cause))?;
        }
        Ok(())
    }

    /// Writes the first lines, the first time.
    fn begin(&mut self) -> Result<(), ServeError> {
        let head = std::mem::take(&mut self.head);
        self.out.write_all(head.as_bytes()).map_err(|cause| self.failed(cause))
    }

    pub(super) fn finish(mut self) -> Result<(), ServeError> {
        self.begin()?;
        self.out.flush().map_err(|cause| self.failed(cause))
    }

    fn failed(&self, cause: io::Error) -> ServeError {
        ServeError::new(format!("cannot write the truth to {}", self.path.display()), cause)
    }
}
