//! A file that is written piece by piece: it can be opened before a run begins, and keeps its old content until then.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::output::{destination, probe_room};

/// A file that is open for writing. The first write empties it; before that nothing of it is lost.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    file: File,
    /// Whether it is a file, not a device or a pipe, which have no content to lose.
    is_regular: bool,
    /// Whether opening made it.
    is_new: bool,
    /// Whether it was emptied to be written.
    is_begun: bool,
}

impl OutputFile {
    /// Opens the file, device or pipe that `path` names. Links are followed, also to a file that does not exist yet.
    /// Waits for the reader of a named pipe.
    ///
    /// # Errors
    /// Returns the system's error when it cannot be opened for writing, or when there is no room on its disk.
    pub fn open(path: &Path) -> io::Result<OutputFile> {
        let path = destination(path);
        let (file, is_new) = match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (OpenOptions::new().write(true).open(&path)?, false)
            }
            Err(error) => return Err(error),
        };
        let is_regular = file.metadata()?.is_file();
        let out = OutputFile { path, file, is_regular, is_new, is_begun: false };
        if is_regular {
            out.check_room()?;
        }
        Ok(out)
    }

    /// Whether it is a file, not a device or a pipe.
    pub fn is_regular(&self) -> bool {
        self.is_regular
    }

    fn check_room(&self) -> io::Result<()> {
        match probe_room(&self.path) {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) =>
            {
                Err(error)
            }
            // A file may be written in a directory that takes no other one.
            _ => Ok(()),
        }
    }

    /// Empties the file, the first time.
    fn begin(&mut self) -> io::Result<()> {
        if !self.is_begun && self.is_regular {
            self.file.set_len(0)?;
        }
        self.is_begun = true;
        Ok(())
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begin()?;
        self.file.write(bytes)
    }

    /// Empties a file that nothing was written to.
    fn flush(&mut self) -> io::Result<()> {
        self.begin()
    }
}

/// Removes a new file that nothing was written to.
impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.is_new && !self.is_begun {
            // An empty file that stays does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_keeps_its_content_until_the_first_write() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        fs::write(&path, "a long old text").unwrap();
        drop(OutputFile::open(&path).unwrap());
        let mut out = OutputFile::open(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"a long old text");
        for text in ["new ", "text"] {
            out.write_all(text.as_bytes()).unwrap();
        }
        out.flush().unwrap();
        drop(out);
        assert_eq!(fs::read(&path).unwrap(), b"new text");
        OutputFile::open(&path).unwrap().flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"", "nothing is the content of this run");
        assert_eq!(names(directory.path()), ["f"]);
    }

    #[test]
    fn a_new_file_stays_only_where_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("f"), directory.path().join("link"));
        std::os::unix::fs::symlink("f", &link).unwrap();
        drop(OutputFile::open(&link).unwrap());
        assert_eq!(names(directory.path()), ["link"]);
        OutputFile::open(&link).unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_device_is_written_in_place() {
        let mut out = OutputFile::open(Path::new("/dev/null")).unwrap();
        assert!(!out.is_regular());
        out.write_all(b"text").unwrap();
        out.flush().unwrap();
    }

    #[test]
    fn a_directory_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(OutputFile::open(directory.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }
}
