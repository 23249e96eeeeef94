//! Where calibrations are kept: one file for each key in the user's folder of states.

use std::fs;
use std::io;
use std::path::PathBuf;

use pummel_engine::sys;
use pummel_logic::rng::mix;
use pummel_measure::calibration::{Calibrated, Calibration};
use pummel_report::VERSION;

/// A key of this machine, its kernel, its CPUs that are allowed, this version and this backend: 16 hexadecimal digits. What
/// the kernel does not tell is left out.
pub fn key(backend: &str) -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find(|line| line.starts_with("model name")).unwrap_or_default();
    let parts = [
        fs::read_to_string("/etc/machine-id").unwrap_or_default(),
        sys::kernel_release().unwrap_or_default(),
        model.to_owned(),
        sys::allowed_cpus().map(|cpus| format!("{cpus:?}")).unwrap_or_default(),
        VERSION.to_owned(),
        backend.to_owned(),
    ];
    let words: Vec<u64> = parts.join("\n").bytes().map(u64::from).collect();
    format!("{:016x}", mix(&words))
}

/// `$XDG_STATE_HOME/pummel/calibration`, or the same below `~/.local/state`. `None` where neither variable is set.
fn folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The XDG base directory specification: a path that is not absolute is ignored.
    let state = set("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(set("HOME")?.join(".local/state")))?;
    Some(state.join("pummel/calibration"))
}

/// Stores a calibration under its key. Returns the file.
///
/// # Errors
/// Returns the error of the file system, and `NotFound` where no folder is known.
pub fn store(figures: &Calibration) -> io::Result<PathBuf> {
    let missing =
        || io::Error::new(io::ErrorKind::NotFound, "neither XDG_STATE_HOME nor HOME says where to store it");
    let folder = folder().ok_or_else(missing)?;
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{}.json", figures.key));
    // A reader sees the old file or the new one, whole.
    let fresh = folder.join(format!("{}.{}.new", figures.key, std::process::id()));
    fs::write(&fresh, serde_json::to_vec_pretty(figures)?)?;
    fs::rename(&fresh, &path)?;
    Ok(path)
}

/// What the store has for a result of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// A calibration that holds.
    Valid(Box<Calibrated>),
    /// There are calibrations, none of which is of this key and young enough.
    Stale,
    /// There is none at all.
    None,
}

/// The calibration for results that this process makes with a backend at `unix_s`, in seconds since 1970.
pub fn load(backend: &str, unix_s: u64) -> Stored {
    let Some(folder) = folder() else { return Stored::None };
    let key = key(backend);
    let read = fs::read(folder.join(format!("{key}.json")));
    let figures = read.ok().and_then(|bytes| serde_json::from_slice::<Calibration>(&bytes).ok());
    match figures.and_then(|figures| figures.at(&key, unix_s)) {
        Some(calibrated) => Stored::Valid(Box::new(calibrated)),
        None if fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some()) => Stored::Stale,
        None => Stored::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_differs_with_the_backend_and_not_from_time_to_time() {
        assert_eq!(key("epoll"), key("epoll"));
        assert_ne!(key("epoll"), key("uring"));
        assert_eq!(key("epoll").len(), 16);
    }
}
