//! Stored results from files, standard input and report pages.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use pummel_fronts::exit_status::Exit;
use pummel_report::stored::{ResultDocument, STORED_MAX_BYTES, json_of, read};
use pummel_report::visible::foreign;

use crate::stderr::say;

/// A stored result with the JSON that it was read from.
pub struct StoredResult {
    /// The JSON, unpacked.
    pub json: Vec<u8>,
    /// What the JSON holds.
    pub stored: ResultDocument,
}

/// Says that a file is no result, which is wrong usage.
pub fn refuse_file(path: &Path, why: &str) -> Exit {
    say(format_args!("error: '{}': {why}", foreign(&path.display().to_string())));
    Exit::Usage
}

/// Reads the result in a file: JSON, JSON packed by gzip, or a report page; `-` is standard input.
///
/// # Errors
/// Returns words that say what is wrong with the file, and what is expected.
pub fn load(path: &Path) -> Result<StoredResult, String> {
    let bytes = bytes_of(path).map_err(|error| error.to_string())?;
    let json = json_of(&bytes).map_err(|error| error.to_string())?;
    let stored = read(&json).map_err(|error| error.to_string())?;
    Ok(StoredResult { json, stored })
}

fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = STORED_MAX_BYTES + 1;
    if path.as_os_str() == "-" {
        io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(most).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > STORED_MAX_BYTES {
        return Err(io::Error::other(format!(
            "it holds more than {STORED_MAX_BYTES} bytes, and no result does"
        )));
    }
    Ok(bytes)
}
