//! What a plan needs that is not in it, read where the plan is run.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;

use pummel_engine::run::Inputs;
use pummel_logic::plan::{Plan, Replay, Work};
use pummel_logic::workload::trace::Trace;

use crate::compat::mutilate::{Reading, read_trace};
use crate::stderr::say;

/// What a plan needs that is not in it: the requests that it replays. Lines that are none are counted on standard error.
///
/// # Errors
/// Returns the system's error when they cannot be read; the message names the file.
pub fn supplies_of(plan: &Plan) -> io::Result<Inputs> {
    let Some(replay) = replay_of(plan) else { return Ok(Inputs::default()) };
    let file = File::open(&replay.path).map_err(|error| unreadable(replay, &error))?;
    let trace = trace_of(plan, replay, file, &|_| Ok(()))?;
    Ok(Inputs { trace: Some(Arc::new(trace)), ..Inputs::default() })
}

/// The recording that a plan replays.
pub fn replay_of(plan: &Plan) -> Option<&Replay> {
    plan.phases.iter().find_map(|phase| match &phase.work {
        Work::Replay(replay) => Some(replay),
        _ => None,
    })
}

/// The requests of a recording that a plan replays, read from its open file as long as `check` accepts what was read so far.
/// Lines that hold no request are counted on standard error.
///
/// # Errors
/// Returns the error of `check`, and the system's error when the file cannot be read or unpacked; the message names the file.
pub fn trace_of(
    plan: &Plan,
    replay: &Replay,
    file: File,
    check: &dyn Fn(&Trace) -> io::Result<()>,
) -> io::Result<Trace> {
    let is_packed = Path::new(&replay.path).extension().is_some_and(|ending| ending == "zst");
    let reading = read_file(file, is_packed, (replay.format, &plan.data.key_prefix), check)
        .map_err(|error| unreadable(replay, &error))?;
    if reading.bad_lines > 0 {
        say(format_args!(
            "{} lines of '{}' hold no request and are left out",
            reading.bad_lines,
            replay.path.escape_debug()
        ));
    }
    Ok(reading.trace)
}

fn unreadable(replay: &Replay, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot read '{}': {error}", replay.path))
}

/// Reads a trace of a format from a file, which may be packed by zstd.
fn read_file(
    file: File,
    is_packed: bool,
    (format, prefix): (u32, &str),
    check: &dyn Fn(&Trace) -> io::Result<()>,
) -> io::Result<Reading> {
    let file = BufReader::new(file);
    if is_packed {
        let unpacked = ruzstd::decoding::StreamingDecoder::new(file).map_err(io::Error::other)?;
        read_trace(BufReader::new(unpacked), format, prefix, check)
    } else {
        read_trace(file, format, prefix, check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::plan::{Phase, Stop};

    fn requests_of(path: &Path) -> io::Result<u64> {
        let replay = Replay { path: path.to_str().unwrap().to_owned(), format: 0, read_through_ns: None };
        let work = Work::Replay(replay);
        let phase = Phase { name: String::new(), work, stop: Stop::default(), recorded: true };
        let inputs = supplies_of(&Plan { phases: vec![phase], ..Plan::default() })?;
        Ok(inputs.trace.expect("it replays").len())
    }

    #[test]
    fn packed_files_are_unpacked_and_missing_ones_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.zst");
        let packed = ruzstd::encoding::compress_to_vec(
            &b"a,1\nb,2\n"[..],
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        std::fs::write(&path, packed).unwrap();
        assert_eq!(requests_of(&path).unwrap(), 2);
        std::fs::write(&path, "a,1\n").unwrap();
        assert!(requests_of(&path).is_err());
        let error = requests_of(&folder.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("none'"), "{error}");
    }
}
