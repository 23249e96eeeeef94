//! Names of results by their files.

/// Endings of the names of files with results.
const ENDINGS: [&str; 4] = [".gz", ".json", ".html", ".htm"];

/// The name of a file without its directory and its ending.
pub(super) fn bare(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    let bare = ENDINGS.into_iter().fold(name, |name, ending| name.strip_suffix(ending).unwrap_or(name));
    if bare.is_empty() { name } else { bare }
}
