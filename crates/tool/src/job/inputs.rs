//! What a plan needs that is not in it, read where the plan is run.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;

use pummel_engine::run::Inputs;
use pummel_logic::plan::{Plan, Work};

use crate::compat::mutilate::{Reading, read_trace};
use crate::stderr::say;

/// What a plan needs that is not in it: the requests that it replays. Lines that are none are counted on standard error.
///
/// # Errors
/// When they cannot be read; the message names the file.
pub fn supplies_of(plan: &Plan) -> io::Result<Inputs> {
    let replays = plan.phases.iter().find_map(|phase| match &phase.work {
        Work::Replay(replay) => Some(replay),
        _ => None,
    });
    let Some(replay) = replays else { return Ok(Inputs::default()) };
    let reading = open_trace(Path::new(&replay.path), replay.format, &plan.data.key_prefix)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot read '{}': {error}", replay.path)))?;
    if reading.bad_lines > 0 {
        say(format_args!(
            "{} lines of '{}' hold no request and are left out",
            reading.bad_lines,
            replay.path.escape_debug()
        ));
    }
    Ok(Inputs { trace: Some(Arc::new(reading.trace)), ..Inputs::default() })
}

/// Reads a trace from a file. A file whose name ends in `.zst` is unpacked.
///
/// # Errors
/// Returns the system's error when the file cannot be read or unpacked.
fn open_trace(path: &Path, format: u32, prefix: &str) -> io::Result<Reading> {
    let file = File::open(path)?;
    if path.extension().is_some_and(|ending| ending == "zst") {
        let unpacked =
            ruzstd::decoding::StreamingDecoder::new(BufReader::new(file)).map_err(io::Error::other)?;
        read_trace(BufReader::new(unpacked), format, prefix)
    } else {
        read_trace(BufReader::new(file), format, prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_files_are_unpacked_and_missing_ones_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.zst");
        let packed = ruzstd::encoding::compress_to_vec(
            &b"a,1\nb,2\n"[..],
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        std::fs::write(&path, packed).unwrap();
        assert_eq!(open_trace(&path, 0, "").unwrap().trace.len(), 2);
        std::fs::write(&path, "a,1\n").unwrap();
        assert!(open_trace(&path, 0, "").is_err());
        assert!(open_trace(&folder.path().join("none"), 0, "").is_err());
    }
}
