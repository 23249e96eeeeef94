//! The files of an agent's machine that a plan may name.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use pummel_logic::plan::{Plan, Work};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

/// Most bytes of a file with a password, certificates or a key.
const SMALL_FILE_MAX_BYTES: u64 = 1 << 20;

/// The directories below which an agent reads files that a plan names, and single files; none: it reads no such file.
#[derive(Clone, Debug, Default)]
pub struct AllowedFiles {
    directories: Vec<AllowedDirectory>,
}

#[derive(Clone, Debug)]
struct AllowedDirectory {
    /// Absolute, without links.
    path: PathBuf,
    /// The directory itself, whatever is at its path later.
    directory: Arc<OwnedFd>,
    /// The only file of the directory that is read; `None` where all below it are.
    only: Option<OsString>,
}

/// The paths of the files that a plan names, each once, with what it is: a file with a password, certificates or a key, a
/// recording, a trace or a dataset.
fn files_of(plan: &Plan) -> impl Iterator<Item = (&String, FileUse)> {
    let tls = plan.tls.iter().flat_map(|tls| [&tls.ca, &tls.cert, &tls.key]);
    let password = plan.login.iter().map(|login| &login.password_file);
    let small = tls.chain(password).flatten().map(|path| (path, FileUse::Small));
    let recordings = plan.phases.iter().filter_map(|phase| match &phase.work {
        Work::Replay(replay) => Some((&replay.path, FileUse::Recording)),
        _ => None,
    });
    let dataset = plan.dataset.iter().map(|dataset| (&dataset.path, FileUse::Dataset));
    let traces = plan.trace().into_iter().flat_map(|replay| &replay.paths).map(|path| (path, FileUse::Trace));
    small.chain(recordings).chain(traces).chain(dataset)
}

/// Purpose for which a plan's file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileUse {
    Small,
    Recording,
    Trace,
    Dataset,
}

/// The paths of the files that a plan names, in the order of their names, each once.
pub fn named_by(plan: &Plan) -> BTreeSet<String> {
    files_of(plan).map(|(path, _)| path.clone()).collect()
}

/// The files that a plan names, read or open: what is at their paths later does not matter any more.
#[derive(Default)]
pub struct PlanFiles {
    /// Contents of the files with a password, certificates or a key, by their paths in the plan.
    pub contents: HashMap<String, Vec<u8>>,
    /// The recording that is replayed.
    pub recording: Option<File>,
    /// The files of the trace that is replayed while it is read, by their paths in the plan.
    pub trace: Vec<(String, File)>,
    /// The file of the dataset.
    pub dataset: Option<File>,
}

/// A file below an allowed directory.
#[derive(Debug)]
struct ResolvedFile<'a> {
    directory: &'a AllowedDirectory,
    /// From the directory to the file, without links.
    path: PathBuf,
}

impl AllowedFiles {
    /// Files below these directories, and those of these paths that are files themselves.
    ///
    /// # Errors
    /// Returns the first path that is neither a directory nor a file or cannot be reached, and why.
    pub fn below(paths: &[PathBuf]) -> Result<AllowedFiles, (PathBuf, String)> {
        let open = |path: &PathBuf| {
            let resolved = path.canonicalize()?;
            let (path, only) = match (resolved.is_file(), resolved.parent(), resolved.file_name()) {
                (true, Some(parent), Some(name)) => (parent.to_owned(), Some(name.to_owned())),
                _ => (resolved, None),
            };
            let directory = rustix::fs::open(&path, STEP, Mode::empty())?;
            Ok(AllowedDirectory { path, directory: Arc::new(directory), only })
        };
        let opened =
            paths.iter().map(|path| open(path).map_err(|error: io::Error| (path.clone(), error.to_string())));
        Ok(AllowedFiles { directories: opened.collect::<Result<_, _>>()? })
    }

    /// Opens every file that a plan names, and reads those with a password, certificates or a key. Each is opened once and
    /// without following a link, so that a file that is changed meanwhile leads nowhere else.
    ///
    /// # Errors
    /// Returns which file is not read, and why. The text does not say whether a file outside the allowed directories
    /// exists.
    pub fn open(&self, plan: &Plan) -> Result<PlanFiles, String> {
        let mut files = PlanFiles::default();
        for (path, file_use) in files_of(plan) {
            let file = self.resolve(path)?.open(path)?;
            match file_use {
                FileUse::Small => {
                    files.contents.insert(path.clone(), read_small(path, file)?);
                }
                // A run replays the first recording of its plan.
                FileUse::Recording => {
                    files.recording.get_or_insert(file);
                }
                FileUse::Trace => files.trace.push((path.clone(), file)),
                FileUse::Dataset => files.dataset = Some(file),
            }
        }
        Ok(files)
    }

    /// Path of a file that may be read, after all links.
    fn resolve(&self, named: &str) -> Result<ResolvedFile<'_>, String> {
        let path = Path::new(named);
        match path.canonicalize() {
            Ok(resolved) => self.below_directory(&resolved).ok_or_else(|| self.refusal(named)),
            Err(error) if self.contains_parent_of(path) => Err(unreadable(named, &error)),
            Err(_) => Err(self.refusal(named)),
        }
    }

    fn below_directory(&self, resolved: &Path) -> Option<ResolvedFile<'_>> {
        self.directories.iter().find_map(|directory| {
            let path = resolved.strip_prefix(&directory.path).ok()?.to_owned();
            let is_meant = directory.only.as_ref().is_none_or(|only| path.as_os_str() == only);
            is_meant.then_some(ResolvedFile { directory, path })
        })
    }

    fn contains_parent_of(&self, path: &Path) -> bool {
        let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
        parent.is_some_and(|parent| self.below_directory(&parent).is_some())
    }

    fn refusal(&self, named: &str) -> String {
        if self.directories.is_empty() {
            return format!(
                "the plan names a file of the agent's machine ({named}), and an agent without --allow-file reads none"
            );
        }
        format!(
            "the plan names a file of the agent's machine ({named}) that is not below a directory of its --allow-file, nor a \
             file of it"
        )
    }
}

/// Flags with which a directory on the way to a file is opened.
const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Flags with which a file is opened: opening a pipe would wait for its writer, which may never come.
const LAST_STEP: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

impl ResolvedFile<'_> {
    /// Opens the file, step by step from its directory. A step leads only downwards, since no link is followed.
    fn open(&self, named: &str) -> Result<File, String> {
        let file = self.walk().map_err(|errno| match errno {
            Errno::LOOP | Errno::NOTDIR => format!("the file '{named}' was changed while it was opened"),
            errno => unreadable(named, &errno.into()),
        })?;
        let metadata = file.metadata().map_err(|error| unreadable(named, &error))?;
        if metadata.is_file() { Ok(file) } else { Err(format!("'{named}' is no regular file")) }
    }

    fn walk(&self) -> rustix::io::Result<File> {
        let mut directory = None;
        let at = |directory: &Option<OwnedFd>, name: &OsStr, how| match directory {
            Some(directory) => openat(directory, name, how, Mode::empty()),
            None => openat(self.directory.directory.as_fd(), name, how, Mode::empty()),
        };
        let mut names = self.path.components().peekable();
        while let Some(name) = names.next() {
            // A path without links has names only.
            let Component::Normal(name) = name else { return Err(Errno::NOTDIR) };
            if names.peek().is_none() {
                return at(&directory, name, LAST_STEP).map(File::from);
            }
            directory = Some(at(&directory, name, STEP)?);
        }
        // The file is the directory itself.
        Err(Errno::ISDIR)
    }
}

fn unreadable(named: &str, error: &io::Error) -> String {
    format!("the file '{named}' cannot be read: {error}")
}

/// Reads a file with a password, certificates or a key.
fn read_small(named: &str, file: File) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let mut most = file.take(SMALL_FILE_MAX_BYTES + 1);
    most.read_to_end(&mut content).map_err(|error| unreadable(named, &error))?;
    if content.len() as u64 > SMALL_FILE_MAX_BYTES {
        return Err(format!(
            "the file '{named}' is too long: up to {SMALL_FILE_MAX_BYTES} bytes are read of a password, certificates or a key"
        ));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use pummel_logic::plan::{Login, Phase, Replay, Stop, TlsOptions};

    fn plan_with_password(path: &Path) -> Plan {
        let password_file = Some(path.to_str().expect("UTF-8").to_owned());
        Plan { login: Some(Login { user: "u".to_owned(), password_file }), ..Plan::default() }
    }

    #[test]
    fn only_regular_files_below_an_allowed_directory_are_admitted() {
        let folder = tempfile::tempdir().expect("a folder");
        let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
        for directory in [&inside, &outside] {
            fs::create_dir(directory).expect("a folder");
            fs::write(directory.join("file"), directory.file_name().expect("a name").as_encoded_bytes())
                .expect("written");
        }
        symlink(outside.join("file"), inside.join("out")).expect("a link");
        symlink(inside.join("file"), outside.join("in")).expect("a link");
        let files = AllowedFiles::below(std::slice::from_ref(&inside)).expect("a directory");
        let admit = |files: &AllowedFiles, path: PathBuf| {
            let opened = files.open(&plan_with_password(&path))?;
            Ok::<_, String>(opened.contents[path.to_str().expect("UTF-8")].clone())
        };
        for good in [inside.join("file"), inside.join("../in/file"), outside.join("in")] {
            assert_eq!(admit(&files, good), Ok(b"in".to_vec()));
        }
        for bad in [outside.join("file"), inside.join("out"), inside.join("../out/file"), outside.join("no")]
        {
            let why = admit(&files, bad.clone()).expect_err("outside");
            assert!(why.contains("--allow-file"), "{bad:?}: {why}");
            let why = admit(&AllowedFiles::default(), bad).expect_err("nothing is allowed");
            assert!(why.contains("--allow-file"), "{why}");
        }
        assert!(admit(&files, inside.join("no")).expect_err("absent").contains("cannot be read"));
        fs::create_dir(inside.join("deeper")).expect("a folder");
        for directory in [inside.clone(), inside.join("deeper")] {
            let why = admit(&files, directory).expect_err("a directory");
            assert!(why.contains("no regular file") || why.contains("directory"), "{why}");
        }
        fs::write(inside.join("long"), vec![b'x'; SMALL_FILE_MAX_BYTES as usize + 1]).expect("written");
        assert!(admit(&files, inside.join("long")).expect_err("too long").contains("too long"));
    }

    #[test]
    fn a_single_file_can_be_allowed_and_nothing_beside_it() {
        let (_folder, inside, outside) = folders();
        let (file, beside) = (inside.join("d/file"), inside.join("d/beside"));
        fs::write(&beside, "beside").expect("written");
        let files = AllowedFiles::below(std::slice::from_ref(&file)).expect("a file");
        let admit = |path: &Path| files.open(&plan_with_password(path)).map(|_| ());
        assert_eq!(admit(&file), Ok(()));
        for bad in [&beside, &outside.join("file"), &inside.join("d"), &inside.join("d/none")] {
            let why = admit(bad).expect_err("another file");
            assert!(why.contains("--allow-file"), "{bad:?}: {why}");
        }
        fs::remove_file(&file).expect("it is there");
        assert!(admit(&file).is_err(), "it is gone");
        symlink(&beside, &file).expect("a link");
        assert!(admit(&file).is_err(), "it leads elsewhere");
    }

    #[test]
    fn the_files_of_a_plan_are_named_once() {
        let path = || Some("a".to_owned());
        let tls =
            Some(TlsOptions { ca: path(), cert: Some("b".to_owned()), key: path(), ..TlsOptions::default() });
        let login = Some(Login { user: String::new(), password_file: path() });
        let named = named_by(&Plan { tls, login, ..Plan::default() });
        assert_eq!(named.into_iter().collect::<Vec<_>>(), ["a", "b"]);
        assert!(named_by(&Plan::default()).is_empty());
    }

    /// A folder with an allowed directory `in`, where `in/d/file` is, and a secret that is outside of it at `out/file`.
    fn folders() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
        fs::create_dir_all(inside.join("d")).expect("a folder");
        fs::create_dir(&outside).expect("a folder");
        fs::write(inside.join("d/file"), "good").expect("written");
        fs::write(outside.join("file"), "secret").expect("written");
        (folder, inside, outside)
    }

    #[test]
    fn a_file_that_is_changed_before_it_is_opened_leads_nowhere_else() {
        let (_folder, inside, outside) = folders();
        let (directory, path) = (inside.join("d"), inside.join("d/file"));
        let named = path.to_str().expect("UTF-8");
        let files = AllowedFiles::below(std::slice::from_ref(&inside)).expect("a directory");
        let resolved = files.resolve(named).expect("it is below");
        fs::remove_file(&path).expect("it is there");
        symlink(outside.join("file"), &path).expect("a link");
        assert!(resolved.open(named).expect_err("a link").contains("changed"));
        fs::remove_file(&path).expect("it is there");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RWXU, 0)
            .expect("a pipe");
        assert!(resolved.open(named).expect_err("a pipe").contains("no regular file"));
        fs::remove_file(&path).expect("it is there");
        fs::remove_dir(&directory).expect("it is empty");
        symlink(&outside, &directory).expect("a link");
        assert!(resolved.open(named).expect_err("a link on the way").contains("changed"));
        fs::rename(&inside, inside.with_extension("moved")).expect("it is there");
        symlink(&outside, &inside).expect("a link");
        fs::create_dir(outside.join("d")).expect("a folder");
        fs::write(outside.join("d/file"), "secret").expect("written");
        assert!(resolved.open(named).is_err(), "the allowed directory itself");
    }

    #[test]
    fn a_file_that_is_swapped_again_and_again_is_read_from_the_allowed_directory_or_not_at_all() {
        let (_folder, inside, outside) = folders();
        let files = AllowedFiles::below(std::slice::from_ref(&inside)).expect("a directory");
        let (link, other) = (inside.join("link"), inside.join("other"));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let swapping = scope.spawn(|| {
                let mut swaps = 0u64;
                while !is_over.load(Ordering::Relaxed) {
                    for target in [inside.join("d/file"), outside.join("file")] {
                        symlink(target, &other).expect("a link");
                        fs::rename(&other, &link).expect("it takes its place");
                        swaps += 1;
                    }
                }
                swaps
            });
            let plan = plan_with_password(&link);
            let (mut good, mut refused) = (0, 0);
            while good < 100 || refused < 100 {
                match files.open(&plan) {
                    Ok(opened) => {
                        assert!(opened.contents.values().all(|content| content == b"good"));
                        good += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
            is_over.store(true, Ordering::Relaxed);
            assert!(swapping.join().expect("it ends") > 0);
        });
    }

    #[test]
    fn every_file_that_a_plan_can_name_is_looked_at() {
        let refused = |change: &dyn Fn(&mut Plan, String)| {
            let mut plan = Plan::default();
            change(&mut plan, "/x".to_owned());
            AllowedFiles::default().open(&plan).is_err()
        };
        let tls = |plan: &mut Plan, options: TlsOptions| plan.tls = Some(options);
        assert!(refused(&|plan, path| tls(plan, TlsOptions { ca: Some(path), ..TlsOptions::default() })));
        assert!(refused(&|plan, path| tls(plan, TlsOptions { cert: Some(path), ..TlsOptions::default() })));
        assert!(refused(&|plan, path| tls(plan, TlsOptions { key: Some(path), ..TlsOptions::default() })));
        assert!(refused(
            &|plan, path| plan.login = Some(Login { user: String::new(), password_file: Some(path) })
        ));
        assert!(refused(&|plan, path| {
            let work = Work::Replay(Replay { path, format: 0, read_through_ns: None, reads_only: false });
            plan.phases.push(Phase { name: String::new(), work, stop: Stop::default(), recorded: true });
        }));
    }
}
