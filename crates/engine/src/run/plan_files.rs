//! Files that a plan names, read where the plan is run: recordings, traces and datasets.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use pummel_logic::plan::{Dataset, Plan, Replay, TraceReplay, Work};
use pummel_logic::workload::dataset::PackedRows;
use pummel_logic::workload::trace::Trace;
use pummel_traffic::recording::{Reading, TraceForm, read_trace};
use pummel_traffic::unpacked::Unpacked;

use crate::run::dataset::dataset_rows;
use crate::run::trace_files::{FilesByPath, STDIN};
use crate::run::{Inputs, TraceFiles};

/// The first bytes of a file that gzip packed.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The first bytes of a file that zstd packed.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The inputs of a plan that are not in it: the requests that it replays, and the rows of its dataset. A sentence comes with them where
/// lines of the requests are left out.
///
/// # Errors
/// Returns an error that names the file when it cannot be read or unpacked, or holds no request, or no row with the columns that commands
/// name.
pub fn inputs_of(plan: &Plan) -> io::Result<(Inputs, Option<String>)> {
    let rows = plan.dataset.as_ref().map(|dataset| rows_of(plan, dataset)).transpose()?;
    let inputs = Inputs { rows, ..Inputs::default() };
    if let Some(replay) = plan.trace() {
        return Ok((Inputs { files: Some(files_of(replay)?), ..inputs }, None));
    }
    let Some(replay) = replay_of(plan) else { return Ok((inputs, None)) };
    let file = File::open(&replay.path).map_err(|error| unreadable(replay, &error))?;
    let (trace, notice) = trace_of(plan, replay, file, &|_| Ok(()))?;
    Ok((Inputs { trace: Some(Arc::new(trace)), ..inputs }, notice))
}

/// The rows of a plan's dataset, read from its path.
fn rows_of(plan: &Plan, dataset: &Dataset) -> io::Result<PackedRows> {
    let unread = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot read '{}': {error}", dataset.path.escape_debug()))
    };
    dataset_rows(plan, dataset, File::open(&dataset.path).map_err(unread)?, &|| Ok(()))
}

/// The files of a trace, which are there and can be opened; their formats are found when they are read.
fn files_of(replay: &TraceReplay) -> io::Result<Arc<dyn TraceFiles>> {
    for path in replay.paths.iter().filter(|path| *path != STDIN) {
        let unread = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot read '{}': {error}", path.escape_debug()))
        };
        let file = File::open(path).map_err(unread)?;
        if file.metadata().map_err(unread)?.is_dir() {
            return Err(unread(io::ErrorKind::IsADirectory.into()));
        }
    }
    Ok(Arc::new(FilesByPath(replay.paths.clone())))
}

/// The recording that a plan replays.
pub fn replay_of(plan: &Plan) -> Option<&Replay> {
    plan.phases.iter().find_map(|phase| match &phase.work {
        Work::Replay(replay) => Some(replay),
        _ => None,
    })
}

/// The requests of a recording that a plan replays, read from its open file as long as `check` accepts what was read so far.
/// A sentence comes with them where lines are left out.
///
/// # Errors
/// Returns the error of `check`, and an error that names the file when it cannot be read or unpacked, or holds no request.
pub fn trace_of(
    plan: &Plan,
    replay: &Replay,
    file: File,
    check: &dyn Fn(&Trace) -> io::Result<()>,
) -> io::Result<(Trace, Option<String>)> {
    let form = TraceForm::of(replay, &plan.data.key_prefix);
    let is_packed = Path::new(&replay.path).extension().is_some_and(|ending| ending == "zst");
    let reading = read_file(file, is_packed, &form, check).map_err(|error| unreadable(replay, &error))?;
    let notice = reading.notice(&replay.path, &form);
    Ok((reading.trace, notice))
}

fn unreadable(replay: &Replay, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot read '{}': {error}", replay.path.escape_debug()))
}

/// Reads a recording from a file. One that zstd packed is unpacked, by its first bytes or because its name says so.
fn read_file(
    file: File,
    is_packed: bool,
    form: &TraceForm<'_>,
    check: &dyn Fn(&Trace) -> io::Result<()>,
) -> io::Result<Reading> {
    let mut file = BufReader::new(file);
    let first = file.fill_buf()?;
    if first.starts_with(&GZIP) {
        let why = "it is packed by gzip: a file that is not packed, or packed by zstd, is expected";
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    if first.starts_with(&ZSTD) || is_packed {
        return read_trace(BufReader::new(Unpacked::new(file)), form, check);
    }
    read_trace(file, form, check)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::plan::{Phase, Stop};

    fn requests_of(path: &Path) -> io::Result<u64> {
        let path = path.to_str().unwrap().to_owned();
        let work = Work::Replay(Replay { path, format: 0, read_through_ns: None, reads_only: false });
        let phase = Phase { name: String::new(), work, stop: Stop::default(), recorded: true };
        let (inputs, _) = inputs_of(&Plan { phases: vec![phase], ..Plan::default() })?;
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
        let other = folder.path().join("trace.csv");
        for path in [&path, &other] {
            std::fs::write(path, &packed).unwrap();
            assert_eq!(requests_of(path).unwrap(), 2);
        }
        std::fs::write(&path, "a,1\n").unwrap();
        assert!(requests_of(&path).is_err());
        let error = requests_of(&folder.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("none'"), "{error}");
    }

    #[test]
    fn a_file_that_gzip_packed_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.csv.gz");
        std::fs::write(&path, [0x1f, 0x8b, 8, 0, b'\n']).unwrap();
        let why = requests_of(&path).expect_err("it cannot be read").to_string();
        assert!(why.contains("gzip") && why.contains("zstd"), "{why}");
    }
}
