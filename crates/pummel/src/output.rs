//! Where a report goes: standard output, or a file that is complete at every moment.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf, absolute};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use pummel_engine::sys;
use pummel_report::forms::{Form, Writing};
use pummel_report::visible;
use tempfile::NamedTempFile;

use crate::stderr::say;

/// Standard output or a file for a report, checked before the load starts.
#[derive(Debug)]
pub struct Output {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Standard output.
    Standard,
    /// A device or a pipe: written to once, at the end.
    Special(PathBuf),
    /// A file, replaced at once by one that was written beside it.
    Regular(PathBuf),
    /// A file that keeps its contents, and gets the report at its end.
    Appended(PathBuf),
}

/// What is written piece by piece. A file has its old content until [`Pieces::complete`], and keeps it where that is not reached.
#[derive(Debug)]
pub struct Pieces {
    place: Place,
}

#[derive(Debug)]
enum Place {
    Standard(io::Stdout),
    /// A device or a pipe, or the end of a file.
    Open(File),
    /// A file beside the one that it replaces.
    Beside(NamedTempFile, PathBuf),
}

/// Links that are followed one after the other, as many as Linux follows.
const LINKS_MAX: usize = 40;

/// Random characters in the name of a temporary file.
const RANDOM_CHARACTERS: usize = 16;

/// Bytes that are written to see whether there is room on the disk.
const PROBE_BYTES: usize = 64 * 1024;

/// Bytes that are written at once to what may be read slowly.
const CHUNK_BYTES: usize = 64 * 1024;

/// Time between two looks at the progress of writing.
const LOOK: Duration = Duration::from_millis(50);

/// How long a report waits, after an interrupt, for a reader that takes nothing.
const STALL: Duration = Duration::from_secs(2);

impl Output {
    /// Checks that a report can be written to what `path` names; `-` is standard output. Changes nothing there.
    ///
    /// # Errors
    /// Returns the system's error when a report could not be written there now: no such directory, no permission, no
    /// room. The message names the path and what to do.
    pub fn prepare(path: &Path) -> io::Result<Output> {
        if path.as_os_str() == "-" {
            return Ok(Output { kind: Kind::Standard });
        }
        let kind = prepare(path).map_err(|error| explained(path, &error))?;
        Ok(Output { kind })
    }

    /// Checks that a report can be added to the end of the file that `path` names, which may not exist yet. Changes nothing there.
    ///
    /// # Errors
    /// Returns the system's error when a report could not be added there now, with the path and what to do.
    pub fn prepare_appended(path: &Path) -> io::Result<Output> {
        let check = || match fs::metadata(path) {
            Ok(present) if present.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(_) => OpenOptions::new().append(true).open(path).map(drop),
            Err(error) if error.kind() == io::ErrorKind::NotFound => probe_room(path),
            Err(error) => Err(error),
        };
        check().map_err(|error| explained(path, &error))?;
        Ok(Output { kind: Kind::Appended(path.to_owned()) })
    }

    /// Whether this is standard output.
    pub fn is_standard(&self) -> bool {
        matches!(self.kind, Kind::Standard)
    }

    /// Whether a report replaces the one that was written before.
    pub fn is_kept(&self) -> bool {
        matches!(self.kind, Kind::Regular(_))
    }

    /// Writes a report of what is known so far where it replaces the one before; does nothing elsewhere.
    ///
    /// # Errors
    /// Returns the system's error when it cannot be written; the file then has its old content.
    pub fn checkpoint(&self, report: &[u8]) -> io::Result<()> {
        match &self.kind {
            Kind::Regular(path) => replace(path, report).map_err(|error| explained(path, &error)),
            Kind::Standard | Kind::Special(_) | Kind::Appended(_) => Ok(()),
        }
    }

    /// Writes the final report.
    ///
    /// # Errors
    /// Returns the system's error when it cannot be written; a file then has its old content.
    pub fn finish(&self, report: &[u8]) -> io::Result<()> {
        match &self.kind {
            Kind::Standard => print(report),
            Kind::Special(path) => {
                let opened = path.clone();
                let open = move || OpenOptions::new().write(true).open(opened);
                patiently(open, report).map_err(|error| explained(path, &error))
            }
            Kind::Appended(path) => append(path, report).map_err(|error| explained(path, &error)),
            Kind::Regular(_) => self.checkpoint(report),
        }
    }

    /// Opens it for what is too long to be held in memory. Waits for the reader of a named pipe.
    ///
    /// # Errors
    /// Returns the system's error when it cannot be opened; the message does not name the path.
    pub fn begin(&self) -> io::Result<Pieces> {
        let place = match &self.kind {
            Kind::Standard => {
                sys::check_stdout()?;
                Place::Standard(io::stdout())
            }
            Kind::Special(path) => Place::Open(OpenOptions::new().write(true).open(path)?),
            Kind::Appended(path) => Place::Open(OpenOptions::new().append(true).create(true).open(path)?),
            Kind::Regular(path) => Place::Beside(temporary_for(path)?, path.clone()),
        };
        Ok(Pieces { place })
    }
}

impl Pieces {
    /// Ends what was written: a file takes its place.
    ///
    /// # Errors
    /// Returns the system's error when it cannot be written to its end or moved to its place; a file then has its old content.
    pub fn complete(mut self) -> io::Result<()> {
        self.flush()?;
        match self.place {
            Place::Standard(_) | Place::Open(_) => Ok(()),
            Place::Beside(temporary, path) => moved(temporary, &path),
        }
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.place {
            Place::Standard(out) => out.write(bytes),
            Place::Open(file) => file.write(bytes),
            Place::Beside(temporary, _) => temporary.as_file_mut().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.place {
            Place::Standard(out) => out.flush(),
            Place::Open(file) => file.flush(),
            Place::Beside(temporary, _) => temporary.as_file_mut().flush(),
        }
    }
}

fn prepare(path: &Path) -> io::Result<Kind> {
    let path = destination(path);
    match fs::metadata(&path) {
        Ok(present) if present.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        // What else is written there would stand behind this report, and the reader of a pipe would take it for a part of it. A
        // file that is moved over a file would end what standard output goes to.
        Ok(present) if is_standard_output(&present) => return Ok(Kind::Standard),
        Ok(present) if !present.is_file() => {
            // Writing nothing is enough for a device to say that it is full. A pipe is not opened: that would wait for
            // its reader.
            if !is_pipe(&present) {
                let written = OpenOptions::new().write(true).open(&path)?.write(&[])?;
                debug_assert_eq!(written, 0);
            }
            return Ok(Kind::Special(path));
        }
        // Moving another file over it would not need this permission, but a file without it is not meant to be written.
        Ok(_) => drop(OpenOptions::new().append(true).open(&path)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if path.file_name().is_none() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    probe_room(&path)?;
    Ok(Kind::Regular(path))
}

/// The path of what `path` names after all links, so that a link stays a link. A link may lead to a file that does not
/// exist yet.
pub(crate) fn destination(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        if fs::metadata(&path).is_ok() {
            // A pipe under /proc/self/fd is there and has no path of its own.
            return fs::canonicalize(&path).unwrap_or(path);
        }
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("/")).join(target);
    }
    path
}

/// Whether two paths name one file, through links also. Names of one device are different places, unless they are one path: nothing is
/// replaced there.
pub fn is_one_file(first: &Path, second: &Path) -> bool {
    let (place, identity) = (place_of(first), identity_of(first));
    first == second
        || place.is_some() && place == place_of(second)
        || identity.is_some() && identity == identity_of(second)
}

/// The whole path of what `path` names; where nothing is there yet, the path after all links.
fn place_of(path: &Path) -> Option<PathBuf> {
    if fs::metadata(path).is_ok() {
        return absolute(path).ok();
    }
    let path = absolute(destination(path)).ok()?;
    let resolved =
        path.parent().and_then(|folder| Some(fs::canonicalize(folder).ok()?.join(path.file_name()?)));
    Some(resolved.unwrap_or(path))
}

/// The device and the inode of a file or a pipe.
fn identity_of(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let present = fs::metadata(path).ok().filter(has_content)?;
    Some((present.dev(), present.ino()))
}

/// Checks that a new file in the directory of `path` has room.
///
/// # Errors
/// Returns the system's error when no file can be made there or some 64 KB cannot be written to it.
pub(crate) fn probe_room(path: &Path) -> io::Result<()> {
    let mut probe = temporary_beside(path)?;
    probe.as_file_mut().write_all(&[0; PROBE_BYTES])?;
    probe.close()
}

/// Replaces a file by one with this content. The old file is there until the new one is complete.
fn replace(path: &Path, report: &[u8]) -> io::Result<()> {
    let mut temporary = temporary_for(path)?;
    temporary.as_file_mut().write_all(report)?;
    moved(temporary, path)
}

/// Makes a file beside the one that it will replace, with what belongs to that one.
fn temporary_for(path: &Path) -> io::Result<NamedTempFile> {
    let temporary = temporary_beside(path)?;
    if let Ok(present) = fs::symlink_metadata(path)
        && present.is_file()
    {
        take_over_permissions(temporary.as_file(), &present)?;
    }
    Ok(temporary)
}

/// Moves a file that is complete to its place.
fn moved(temporary: NamedTempFile, path: &Path) -> io::Result<()> {
    temporary.persist(path).map(drop).map_err(|error| error.error)
}

/// Appends a report to a file, after an empty line.
fn append(path: &Path, report: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    let gap: &[u8] = if file.metadata()?.len() > 0 { b"\n" } else { b"" };
    file.write_all(&[gap, report].concat())
}

/// Makes a file with an unpredictable name in the directory of `path`, which is removed when it is dropped. A name that
/// is taken, by a link also, is never opened: the flag O_EXCL of open(2).
fn temporary_beside(path: &Path) -> io::Result<NamedTempFile> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    tempfile::Builder::new()
        .prefix(".pummel-")
        .suffix(".tmp")
        .rand_bytes(RANDOM_CHARACTERS)
        .make_in(directory.unwrap_or(Path::new(".")), |name| {
            OpenOptions::new().write(true).create_new(true).open(name)
        })
}

/// Gives a new file the owner, the group and the permissions of the one that it will replace.
fn take_over_permissions(new: &File, old: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let made = new.metadata()?;
    if (made.uid(), made.gid()) != (old.uid(), old.gid()) {
        // Only the superuser may give files away; the report matters more than its owner.
        let _ = fchown(new, Some(old.uid()), Some(old.gid()));
    }
    new.set_permissions(old.permissions())
}

/// Whether a report for `path` goes to standard output: `-`, and `/dev/stdout` with `>> FILE` or before `|`.
pub fn names_standard_output(path: &Path) -> bool {
    path.as_os_str() == "-" || fs::metadata(path).is_ok_and(|present| is_standard_output(&present))
}

/// Whether a file or a pipe is what standard output goes to, as that of `/dev/stdout` with `>> FILE` or before `|`.
fn is_standard_output(file: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let standard = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    has_content(file)
        && standard
            .and_then(|standard| standard.metadata())
            .is_ok_and(|standard| (standard.dev(), standard.ino()) == (file.dev(), file.ino()))
}

/// Whether what is written stays there until it is read, as in a file or a pipe.
fn has_content(metadata: &fs::Metadata) -> bool {
    metadata.is_file() || is_pipe(metadata)
}

fn is_pipe(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    metadata.file_type().is_fifo()
}

/// Writes a report to standard output, with control characters made visible.
///
/// # Errors
/// Returns the system's error when standard output is closed, its reader is gone, or there is no room.
pub fn print(report: &[u8]) -> io::Result<()> {
    write_out(&visible::report(report))
}

/// Prints text as a layout of terminals drew it: its words are printable, and its sequences are its own.
///
/// # Errors
/// Returns the errors of [`print`].
pub fn print_screen(text: &str) -> io::Result<()> {
    write_out(text.as_bytes())
}

fn write_out(bytes: &[u8]) -> io::Result<()> {
    let open = || {
        sys::check_stdout()?;
        Ok(io::stdout())
    };
    patiently(open, bytes)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
}

/// Opens a pipe or a device and writes to it, however long its reader takes; after an interrupt no longer than two seconds
/// while the reader takes nothing.
///
/// # Errors
/// Returns the system's error when it cannot be opened or written, and one of the kind `TimedOut` when it is given up.
pub fn patiently<W: Write>(
    open: impl FnOnce() -> io::Result<W> + Send + 'static,
    report: &[u8],
) -> io::Result<()> {
    let (bytes, (told, heard)) = (report.to_vec(), mpsc::channel());
    let write = move || {
        let write = || {
            let mut out = open()?;
            for chunk in bytes.chunks(CHUNK_BYTES) {
                out.write_all(chunk)?;
                // The wait for it may have been given up.
                let _ = told.send(None);
            }
            out.flush()
        };
        let result = write();
        let _ = told.send(Some(result));
    };
    thread::Builder::new().name("report".to_owned()).spawn(write)?;
    let mut since = Instant::now();
    loop {
        match heard.recv_timeout(LOOK) {
            Ok(Some(result)) => return result,
            Ok(None) => since = Instant::now(),
            Err(_) if sys::interrupts() > 0 && since.elapsed() >= STALL => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "what reads it does not take it"));
            }
            Err(_) => {}
        }
    }
}

/// Adds the path, and what can be done, to an error.
pub fn explained(path: &Path, error: &io::Error) -> io::Error {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "; its directory has to exist",
        io::ErrorKind::PermissionDenied => "; write permission is needed for the file and for its directory",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; make room or choose another disk",
        io::ErrorKind::FileTooLarge => "; raise the limit of file sizes (ulimit -f)",
        io::ErrorKind::IsADirectory => "; a file is needed",
        _ => "",
    };
    io::Error::new(error.kind(), format!("cannot write '{}': {error}{hint}", path.display()))
}

/// The word for the file that GitHub Actions names.
const AUTO: &str = "auto";

/// The variable that names the summary of a job of GitHub Actions.
const SUMMARY_VARIABLE: &str = "GITHUB_STEP_SUMMARY";

/// Checks that the file of a form can be written. `None` if the form has no file here: `auto` outside of GitHub
/// Actions, which is reported.
///
/// # Errors
/// Returns the system's error when the file cannot be written; the message names the path.
pub fn open_form(form: &Form, path: &Path) -> io::Result<Option<Output>> {
    if form.writing != Writing::Appended {
        return Output::prepare(path).map(Some);
    }
    if path != Path::new(AUTO) {
        return Output::prepare_appended(path).map(Some);
    }
    match std::env::var_os(SUMMARY_VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => Output::prepare_appended(Path::new(&path)).map(Some),
        None => {
            say(format_args!(
                "note: {} auto: {SUMMARY_VARIABLE} is not set, no summary is written",
                form.flag()
            ));
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn names(directory: &Path) -> Vec<OsString> {
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn one_file_is_known_by_all_of_its_names() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "text").unwrap();
        fs::write(at("other"), "text").unwrap();
        fs::hard_link(at("file"), at("hard")).unwrap();
        for (target, link) in [("file", "link"), ("new", "ahead"), (".", "folder")] {
            std::os::unix::fs::symlink(target, at(link)).unwrap();
        }
        for (first, second) in [
            ("file", "file"),
            ("file", "./file"),
            ("file", "link"),
            ("file", "hard"),
            ("file", "folder/file"),
            ("new", "./new"),
            ("new", "ahead"),
            ("new", "folder/new"),
        ] {
            assert!(is_one_file(&at(first), &at(second)), "{first} {second}");
            assert!(is_one_file(&at(second), &at(first)), "{second} {first}");
        }
        for (first, second) in [("file", "other"), ("file", "new"), ("new", "newer")] {
            assert!(!is_one_file(&at(first), &at(second)), "{first} {second}");
        }
        std::os::unix::fs::symlink("/dev/null", at("null")).unwrap();
        assert!(!is_one_file(Path::new("/dev/null"), &at("null")), "a device keeps both");
    }

    #[test]
    fn preparing_changes_nothing_and_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.json");
        Output::prepare(&path).unwrap();
        assert!(names(directory.path()).is_empty());
        fs::write(&path, "old").unwrap();
        Output::prepare(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["r.json"]);
    }

    #[test]
    fn every_checkpoint_replaces_the_one_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.json");
        let output = Output::prepare(&path).unwrap();
        for report in ["a long first report", "short", ""] {
            output.checkpoint(report.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), report);
        }
        output.finish(b"the end").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"the end");
        assert_eq!(names(directory.path()), ["r.json"]);
    }

    #[test]
    fn a_link_stays_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (directory.path().join("target"), directory.path().join("link"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        Output::prepare(&link).unwrap().finish(b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn a_link_that_leads_to_no_file_yet_stays_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (directory.path().join("target"), directory.path().join("link"));
        std::os::unix::fs::symlink("target", &link).unwrap();
        Output::prepare(&link).unwrap().finish(b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn a_link_with_the_name_of_a_temporary_file_leads_nowhere() {
        let directory = tempfile::tempdir().unwrap();
        let victim = directory.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        // This name was predictable once.
        let guessed = directory.path().join(format!(".r.json.{}.tmp", std::process::id()));
        std::os::unix::fs::symlink(&victim, &guessed).unwrap();
        let output = Output::prepare(&directory.path().join("r.json")).unwrap();
        output.checkpoint(b"so far").unwrap();
        output.finish(b"all").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert!(fs::symlink_metadata(&guessed).unwrap().is_symlink());
    }

    #[test]
    fn a_file_keeps_its_permissions_and_a_new_one_has_those_of_any_new_file() {
        let directory = tempfile::tempdir().unwrap();
        let mode = |name: &str| fs::metadata(directory.path().join(name)).unwrap().permissions().mode();
        let write = |name: &str| {
            Output::prepare(&directory.path().join(name)).unwrap().finish(b"report").unwrap();
            mode(name)
        };
        fs::write(directory.path().join("usual"), "").unwrap();
        assert_eq!(write("new"), mode("usual"));
        fs::set_permissions(directory.path().join("new"), fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(write("new") & 0o7777, 0o640);
    }

    #[test]
    fn a_name_as_long_as_names_may_be_is_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let name = "n".repeat(255);
        Output::prepare(&directory.path().join(&name)).unwrap().finish(b"report").unwrap();
        assert_eq!(names(directory.path()), [name.as_str()]);
    }

    #[test]
    fn a_report_that_cannot_be_moved_to_its_place_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.json");
        let output = Output::prepare(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(output.finish(b"report").is_err());
        assert_eq!(names(directory.path()), ["r.json"]);
    }

    #[test]
    fn what_is_written_piece_by_piece_takes_its_place_when_it_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.csv");
        fs::write(&path, "old").unwrap();
        let output = Output::prepare(&path).unwrap();
        let mut given_up = output.begin().unwrap();
        given_up.write_all(b"half of it").unwrap();
        drop(given_up);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let mut pieces = output.begin().unwrap();
        for piece in ["new ", "text"] {
            pieces.write_all(piece.as_bytes()).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"old");
        }
        pieces.complete().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new text");
        assert_eq!(names(directory.path()), ["t.csv"]);
        Output::prepare(Path::new("/dev/null")).unwrap().begin().unwrap().complete().unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_missing_directory_is_said_before_anything_is_measured() {
        let directory = tempfile::tempdir().unwrap();
        let error = Output::prepare(&directory.path().join("none/r.json")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("none/r.json"), "{error}");
        assert!(error.to_string().contains("directory has to exist"), "{error}");
    }

    #[test]
    fn a_directory_is_no_place_for_a_report() {
        let directory = tempfile::tempdir().unwrap();
        for path in [directory.path().to_owned(), directory.path().join("..")] {
            assert_eq!(Output::prepare(&path).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        }
    }

    #[test]
    fn a_full_device_is_refused_and_an_endless_one_is_written_to_in_place() {
        let error = Output::prepare(Path::new("/dev/full")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let output = Output::prepare(Path::new("/dev/null")).unwrap();
        output.checkpoint(b"so far").unwrap();
        output.finish(b"all").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_report_that_is_added_leaves_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("summary.md");
        for report in ["first\n", "second\n"] {
            let output = Output::prepare_appended(&path).unwrap();
            output.checkpoint(b"so far").unwrap();
            output.finish(report.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "first\n\nsecond\n");
        assert_eq!(names(directory.path()), ["summary.md"]);
        let error = Output::prepare_appended(&directory.path().join("none/s.md")).unwrap_err();
        assert!(error.to_string().contains("directory has to exist"), "{error}");
        assert!(Output::prepare_appended(directory.path()).is_err());
    }

    #[test]
    fn a_dash_is_standard_output() {
        assert!(Output::prepare(Path::new("-")).unwrap().is_standard());
    }
}
