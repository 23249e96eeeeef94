//! The files of an agent's machine that a plan may name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pummel_logic::plan::{Plan, Work};

/// Most bytes of a file with a password, certificates or a key.
const SMALL_FILE_MAX_BYTES: u64 = 1 << 20;

/// The directories below which an agent reads files that a plan names; none: it reads no such file.
#[derive(Clone, Debug, Default)]
pub struct AllowedFiles {
    /// Absolute paths without links.
    directories: Vec<PathBuf>,
}

impl AllowedFiles {
    /// Files below these directories.
    ///
    /// # Errors
    /// Returns the first path that is no directory or cannot be reached, and why.
    pub fn below(directories: &[PathBuf]) -> Result<AllowedFiles, (PathBuf, String)> {
        let resolved = directories.iter().map(|path| {
            let directory = path.canonicalize().map_err(|error| (path.clone(), error.to_string()))?;
            if directory.is_dir() { Ok(directory) } else { Err((path.clone(), "it is none".to_owned())) }
        });
        Ok(AllowedFiles { directories: resolved.collect::<Result<_, _>>()? })
    }

    /// Checks every file that a plan names, and puts the path without links in the place of each, so that a link that is
    /// changed afterwards leads nowhere else. Returns the number of bytes of the recording that is replayed, 0 where there
    /// is none.
    ///
    /// # Errors
    /// Returns which file is not read, and why. The text does not say whether a file outside the allowed directories
    /// exists.
    pub fn admit(&self, plan: &mut Plan) -> Result<u64, String> {
        let tls = plan.tls.iter_mut().flat_map(|tls| [&mut tls.ca, &mut tls.cert, &mut tls.key]);
        let password = plan.login.iter_mut().map(|login| &mut login.password_file);
        for path in tls.chain(password).flatten() {
            let (resolved, bytes) = self.resolve(path)?;
            if bytes > SMALL_FILE_MAX_BYTES {
                return Err(format!(
                    "the file '{path}' has {bytes} bytes: up to {SMALL_FILE_MAX_BYTES} are read of a password, \
                     certificates or a key"
                ));
            }
            *path = resolved;
        }
        let mut recording_bytes = 0;
        for phase in &mut plan.phases {
            if let Work::Replay(replay) = &mut phase.work {
                let (resolved, bytes) = self.resolve(&replay.path)?;
                replay.path = resolved;
                recording_bytes = recording_bytes.max(bytes);
            }
        }
        Ok(recording_bytes)
    }

    /// The path without links of a file that may be read, and the file's length in bytes.
    fn resolve(&self, named: &str) -> Result<(String, u64), String> {
        let path = Path::new(named);
        let unreadable = |error: io::Error| format!("the file '{named}' cannot be read: {error}");
        let resolved = match path.canonicalize() {
            Ok(resolved) if self.contains(&resolved) => resolved,
            Err(error) if self.contains_parent_of(path) => return Err(unreadable(error)),
            Ok(_) | Err(_) => return Err(self.refusal(named)),
        };
        let metadata = fs::metadata(&resolved).map_err(unreadable)?;
        // Opening a pipe waits for its writer, which may never come.
        if !metadata.is_file() {
            return Err(format!("'{named}' is no regular file"));
        }
        let text = resolved.into_os_string().into_string();
        let text = text.map_err(|_| format!("the path of '{named}' without links is no UTF-8"))?;
        Ok((text, metadata.len()))
    }

    fn contains(&self, resolved: &Path) -> bool {
        self.directories.iter().any(|directory| resolved.starts_with(directory))
    }

    fn contains_parent_of(&self, path: &Path) -> bool {
        let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
        parent.is_some_and(|parent| self.contains(&parent))
    }

    fn refusal(&self, named: &str) -> String {
        if self.directories.is_empty() {
            return format!(
                "the plan names a file of the agent's machine ({named}), and an agent without --allow-file reads none"
            );
        }
        format!(
            "the plan names a file of the agent's machine ({named}) that is not below a directory of its --allow-file"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

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
            fs::write(directory.join("file"), "x").expect("written");
        }
        symlink(outside.join("file"), inside.join("out")).expect("a link");
        symlink(inside.join("file"), outside.join("in")).expect("a link");
        let files = AllowedFiles::below(std::slice::from_ref(&inside)).expect("a directory");
        let admit = |files: &AllowedFiles, path: PathBuf| {
            let mut plan = plan_with_password(&path);
            files.admit(&mut plan).map(|_| plan.login.and_then(|login| login.password_file))
        };
        let resolved = inside.join("file").canonicalize().expect("there");
        for good in [inside.join("file"), inside.join("../in/file"), outside.join("in")] {
            assert_eq!(admit(&files, good), Ok(resolved.to_str().map(str::to_owned)));
        }
        for bad in [outside.join("file"), inside.join("out"), inside.join("../out/file"), outside.join("no")]
        {
            let why = admit(&files, bad.clone()).expect_err("outside");
            assert!(why.contains("--allow-file"), "{bad:?}: {why}");
            let why = admit(&AllowedFiles::default(), bad).expect_err("nothing is allowed");
            assert!(why.contains("--allow-file"), "{why}");
        }
        assert!(admit(&files, inside.join("no")).expect_err("absent").contains("cannot be read"));
        assert!(admit(&files, inside.clone()).expect_err("a directory").contains("no regular file"));
    }

    #[test]
    fn every_file_that_a_plan_can_name_is_looked_at() {
        let refused = |change: &dyn Fn(&mut Plan, String)| {
            let mut plan = Plan::default();
            change(&mut plan, "/x".to_owned());
            AllowedFiles::default().admit(&mut plan).is_err()
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
