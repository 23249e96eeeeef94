//! Files in TOML and JSON that people write: what is wrong in such a file is said on one line.

use serde::de::{DeserializeOwned, IgnoredAny};

use crate::values::nearest;

/// Letters of a line that are shown with an error.
const LINE_LETTERS_MAX: usize = 60;

/// Reads a value from TOML.
///
/// # Errors
/// Returns words on one line: the line, the column, what stands on that line, what is wrong there, and the known field that is
/// most like one that is not known.
pub fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| {
        let words = hinted(error.message()).replace('\n', "; ");
        match error.span() {
            Some(span) => format!("{}: {words}", place_of(text, span.start)),
            None => words,
        }
    })
}

/// Reads a value from JSON, where it is an object.
///
/// # Errors
/// Returns words on one line: what is wrong, its line and its column, and the known field that is most like one that is not
/// known.
pub fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    // From bytes, as results are read, so that a plan's types are compiled for one reader.
    let bytes = text.as_bytes();
    serde_json::from_slice(bytes).map_err(|error| {
        let is_object = bytes.trim_ascii_start().starts_with(b"{");
        match !is_object && serde_json::from_slice::<IgnoredAny>(bytes).is_ok() {
            true => "expected a JSON object in braces".to_owned(),
            false => hinted(&error.to_string()),
        }
    })
}

/// The line and the column of a byte, both counted from 1, and the beginning of the line, which has the name of the field.
fn place_of(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let above = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let line = text.lines().nth(above).unwrap_or_default().trim();
    let mut letters = line.chars().filter(|letter| !letter.is_control());
    let mut shown: String = letters.by_ref().take(LINE_LETTERS_MAX).collect();
    if letters.next().is_some() {
        shown.push_str("...");
    }
    let shown = if shown.is_empty() { shown } else { format!(" (`{shown}`)") };
    format!("line {}, column {column}{shown}", above + 1)
}

/// An error of serde, in which an unknown field is followed by the known one that is most like it.
fn hinted(message: &str) -> String {
    let parts = message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
    let Some((typed, expected)) = parts else { return message.to_owned() };
    // The known fields stand in backquotes, and other words before, between and after them.
    let known = expected.split('`').skip(1).step_by(2);
    format!("unknown field `{typed}`{}{expected}", nearest::hint(typed, known))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Written {
        depth: u32,
        #[serde(default)]
        name: String,
    }

    #[test]
    fn what_is_wrong_is_said_on_one_line_with_its_place() {
        assert_eq!(from_toml("depth = 3\nname = 'x'"), Ok(Written { depth: 3, name: "x".to_owned() }));
        assert_eq!(from_json("{\"depth\": 3}"), Ok(Written { depth: 3, name: String::new() }));
        for (text, words) in [
            ("", "line 1, column 1: missing field `depth`"),
            (
                "depth = 3\nname = 4",
                "line 2, column 8 (`name = 4`): invalid type: integer `4`, expected a string",
            ),
            (
                "depth = 3\ndpeth = 4",
                "line 2, column 1 (`dpeth = 4`): unknown field `dpeth` (did you mean 'depth'?), expected",
            ),
            ("depth = 3\ndrain = 4", "line 2, column 1 (`drain = 4`): unknown field `drain`, expected"),
            ("name = 'é'\ndepth =", "line 2, column 8 (`depth =`): "),
        ] {
            let error = from_toml::<Written>(text).expect_err(text);
            assert!(error.starts_with(words) && !error.contains('\n'), "{text}: {error}");
        }
        for (text, words) in [
            ("[]", "expected a JSON object in braces"),
            ("3", "expected a JSON object in braces"),
            ("", "EOF while parsing"),
            (
                "{\"dpeth\": 1}",
                "unknown field `dpeth` (did you mean 'depth'?), expected `depth` or `name` at line 1",
            ),
        ] {
            let error = from_json::<Written>(text).expect_err(text);
            assert!(error.starts_with(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_place_is_told_by_its_line_and_column_and_what_stands_there() {
        assert_eq!(place_of("", 0), "line 1, column 1");
        assert_eq!(place_of("é = 1\nxy", 4), "line 1, column 4 (`é = 1`)");
        assert_eq!(place_of("a\n", 2), "line 2, column 1");
        assert_eq!(place_of("a\n  b\tc", 99), "line 2, column 6 (`bc`)");
        let long = "x".repeat(LINE_LETTERS_MAX + 1);
        assert_eq!(place_of(&long, 0), format!("line 1, column 1 (`{}...`)", &long[1..]));
    }
}
