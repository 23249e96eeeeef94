//! Names of results by their files.

/// Endings of the names of files with results.
const ENDINGS: [&str; 4] = [".gz", ".json", ".html", ".htm"];

/// Characters that stand between a name and its number.
const SEPARATORS: [char; 6] = ['-', '_', '.', ' ', '#', ','];

/// The name of a file without its directory and its ending.
pub(super) fn bare(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    let bare = ENDINGS.into_iter().fold(name, |name, ending| name.strip_suffix(ending).unwrap_or(name));
    if bare.is_empty() { name } else { bare }
}

/// The name of a result without its directory, its ending and the number at its end.
pub(super) fn stem_of(name: &str) -> &str {
    bare(name).trim_end_matches(|letter: char| letter.is_ascii_digit()).trim_end_matches(SEPARATORS)
}
