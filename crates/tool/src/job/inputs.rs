//! What a plan needs that is not in it, read where the plan is run.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use pummel_engine::run::Inputs;
use pummel_logic::plan::{Plan, Work};

use crate::compat::mutilate::{Reading, TraceForm, read_trace};

/// The first bytes of a file that gzip packed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The first bytes of a file that zstd packed.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// What a plan needs that is not in it: the requests that it replays. A sentence comes with it where lines of them are
/// left out.
///
/// # Errors
/// Returns an error that names the file when it cannot be read, or holds no request.
pub fn supplies_of(plan: &Plan) -> io::Result<(Inputs, Option<String>)> {
    let replays = plan.phases.iter().find_map(|phase| match &phase.work {
        Work::Replay(replay) => Some(replay),
        _ => None,
    });
    let Some(replay) = replays else { return Ok((Inputs::default(), None)) };
    let form = TraceForm::of(replay, &plan.data.key_prefix);
    let reading = open_trace(Path::new(&replay.path), &form).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot read '{}': {error}", replay.path.escape_debug()))
    })?;
    let notice = reading.notice(&replay.path, &form);
    Ok((Inputs { trace: Some(Arc::new(reading.trace)), ..Inputs::default() }, notice))
}

/// Reads a trace from a file. A file that zstd packed is unpacked, by its first bytes or because its name ends in `.zst`.
///
/// # Errors
/// Returns the system's error when the file cannot be read or unpacked, and [`io::ErrorKind::InvalidData`] when it holds no
/// request.
fn open_trace(path: &Path, form: &TraceForm<'_>) -> io::Result<Reading> {
    let mut file = BufReader::new(File::open(path)?);
    let first = file.fill_buf()?;
    if first.starts_with(&GZIP) {
        let why = "it is packed by gzip: a file that is not packed, or packed by zstd, is expected";
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    if first.starts_with(&ZSTD) || path.extension().is_some_and(|ending| ending == "zst") {
        let unpacked = ruzstd::decoding::StreamingDecoder::new(file).map_err(io::Error::other)?;
        return read_trace(BufReader::new(unpacked), form);
    }
    read_trace(file, form)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: TraceForm<'_> = TraceForm { format: 0, prefix: "", reads_only: false };

    #[test]
    fn packed_files_are_unpacked_and_missing_ones_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.zst");
        let packed = ruzstd::encoding::compress_to_vec(
            &b"a,1\nb,2\n"[..],
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        let other = folder.path().join("trace.csv");
        for path in [&path, &other] {
            std::fs::write(path, &packed).unwrap();
            assert_eq!(open_trace(path, &FORM).unwrap().trace.len(), 2);
        }
        std::fs::write(&path, "a,1\n").unwrap();
        assert!(open_trace(&path, &FORM).is_err());
        assert!(open_trace(&folder.path().join("none"), &FORM).is_err());
    }

    #[test]
    fn a_file_that_gzip_packed_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.csv.gz");
        std::fs::write(&path, [0x1f, 0x8b, 8, 0, b'\n']).unwrap();
        let why = open_trace(&path, &FORM).expect_err("it cannot be read").to_string();
        assert!(why.contains("gzip") && why.contains("zstd"), "{why}");
    }
}
