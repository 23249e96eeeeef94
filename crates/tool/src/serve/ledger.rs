//! The truth file of the built-in server: what was really done, one line for each request and each fault.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use pummel_logic::server::truth::TRUTH_HEADER;
use pummel_logic::server::{Host, ServerFault};

use crate::serve::error::ServeError;

/// The truth file.
pub(super) struct Ledger {
    path: PathBuf,
    out: BufWriter<File>,
}

impl Ledger {
    pub(super) fn create(path: &Path, faults: &[ServerFault]) -> Result<Ledger, ServeError> {
        let wrap = |cause| ServeError::new(format!("cannot write the truth to {}", path.display()), cause);
        let mut out = BufWriter::with_capacity(1 << 18, File::create(path).map_err(wrap)?);
        out.write_all(TRUTH_HEADER.as_bytes()).map_err(wrap)?;
        for fault in faults {
            writeln!(out, "# asked for: --fault {fault}").map_err(wrap)?;
        }
        Ok(Ledger { path: path.to_owned(), out })
    }

    /// Writes what the server noted since the last time.
    pub(super) fn write(&mut self, host: &mut Host) -> Result<(), ServeError> {
        for note in host.take_notes() {
            writeln!(self.out, "{note}").map_err(|cause| self.failed(cause))?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), ServeError> {
        self.out.flush().map_err(|cause| self.failed(cause))
    }

    fn failed(&self, cause: io::Error) -> ServeError {
        ServeError::new(format!("cannot write the truth to {}", self.path.display()), cause)
    }
}
