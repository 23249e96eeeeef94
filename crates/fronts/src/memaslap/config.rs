//! memaslap's configuration file: lengths of keys and values, and how many commands are sets and gets.

use pummel_logic::plan::Lengths;

use crate::c_numbers::{strtod, strtol};

/// How far the shares of a list may be from 1 together without a word.
const SUM_SLACK: f64 = 0.001;

/// What a file says, or what holds without one.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Lengths of keys.
    pub keys: Vec<Lengths>,
    /// Lengths of values.
    pub values: Vec<Lengths>,
    /// Share of sets.
    pub set: f64,
    /// Share of gets.
    pub get: f64,
    /// What is to be said of the file: number of the line, and words.
    pub remarks: Vec<String>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            keys: vec![Lengths { start: 64, end: 64, share: 1.0 }],
            values: vec![Lengths { start: 1_024, end: 1_024, share: 1.0 }],
            set: 0.1,
            get: 0.9,
            remarks: Vec::new(),
        }
    }
}

/// A file that says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoConfiguration;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Key,
    Value,
    Cmd,
}

/// Reads a file. Sections stand in any order and more than once; one that is missing is as if there were no file. A line
/// that is no data of its section ends it.
///
/// # Errors
/// When there is no section at all.
pub fn parse(text: &str) -> Result<Config, NoConfiguration> {
    let (mut keys, mut values, mut commands) = (Vec::new(), Vec::new(), [None; 2]);
    let mut remarks = Vec::new();
    let (mut section, mut any) = (None, false);
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(found) = header(line) {
            (section, any) = (Some(found), true);
            continue;
        }
        let taken = match section {
            Some(Section::Key) => lengths(line).map(|range| keys.push(range)),
            Some(Section::Value) => lengths(line).map(|range| values.push(range)),
            Some(Section::Cmd) => command(line).map(|(kind, share)| match commands.get_mut(kind) {
                Some(command) => *command = Some(share),
                None => remarks.push(format!("line {}: there is no command of type {kind}", at + 1)),
            }),
            None => None,
        };
        if taken.is_none() {
            section = None;
            remarks.push(format!("line {}: neither a section nor its data: '{line}'", at + 1));
        }
    }
    if !any {
        return Err(NoConfiguration);
    }
    let mut config = Config { remarks, ..Config::default() };
    if !keys.is_empty() {
        config.keys = keys;
    }
    if !values.is_empty() {
        config.values = values;
    }
    if let [set, get] = commands
        && (set.is_some() || get.is_some())
    {
        (config.set, config.get) = (set.unwrap_or(0.0), get.unwrap_or(0.0));
    }
    for (name, list) in [("keys", &config.keys), ("values", &config.values)] {
        let sum: f64 = list.iter().map(|range| range.share).sum();
        if (sum - 1.0).abs() > SUM_SLACK {
            config.remarks.push(format!("the proportions of {name} sum to {sum}, and are taken as weights"));
        }
    }
    Ok(config)
}

fn header(line: &str) -> Option<Section> {
    let sections = [("key", Section::Key), ("value", Section::Value), ("cmd", Section::Cmd)];
    sections.into_iter().find(|(name, _)| line.starts_with(name)).map(|(_, section)| section)
}

/// Two whole numbers and a share; whatever follows is a comment.
fn lengths(line: &str) -> Option<Lengths> {
    let (start, rest) = whole(line)?;
    let (end, rest) = whole(rest)?;
    let (share, after) = strtod(rest);
    (after.len() < rest.len()).then_some(Lengths { start, end, share })
}

fn whole(text: &str) -> Option<(u32, &str)> {
    let (number, rest) = strtol(text, 10);
    let fits = rest.len() < text.len() && !text.trim_start().starts_with('-');
    // What is too large here is too large for every limit.
    fits.then(|| (u32::try_from(number).unwrap_or(u32::MAX), rest))
}

/// A type, which may be written as `1.0`, and a share.
fn command(line: &str) -> Option<(usize, f64)> {
    let (kind, rest) = strtod(line);
    let (share, after) = strtod(rest);
    let is_kind = kind >= 0.0 && kind.fract() == 0.0 && rest.starts_with(char::is_whitespace);
    (is_kind && after.len() < rest.len()).then_some((kind as usize, share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_name_the_line() {
        let config = parse("key\n\n16 16 1\n# no\ngenerated keys\ncmd\n0 1\n7 1\n").unwrap();
        assert_eq!(
            config.remarks,
            [
                "line 5: neither a section nor its data: 'generated keys'",
                "line 8: there is no command of type 7"
            ]
        );
    }
}
