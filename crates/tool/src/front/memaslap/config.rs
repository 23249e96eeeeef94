//! memaslap's configuration file: lengths of keys and values, and how many commands are sets and gets.

use pummel_logic::plan::Lengths;

use crate::front::c_numbers::{strtod, strtol};

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

    /// The sample of the manual as it is rendered: indented, and with the ends of two comments on lines of their own.
    const SAMPLE: &str = "\
          #comments should start with '#'
          #key
          #start_len end_len proportion
          #proportion: indicates keys generated from one range accounts for the total
          generated keys
          #          16 100 0.8
          key
          128 128 1
          #value
          #proportion: indicates values generated from one range accounts for the
          total generated values
          value
          2048 2048 1
          #cmd
          #         0    0.5
          cmd
          0    0.1
          1.0 0.9
";

    /// A configuration in one line.
    fn shown(text: &str) -> String {
        let list = |ranges: &[Lengths]| {
            let shown = ranges.iter().map(|range| format!("{}-{}@{}", range.start, range.end, range.share));
            shown.collect::<Vec<_>>().join(",")
        };
        match parse(text) {
            Ok(config) => {
                let (keys, values) = (list(&config.keys), list(&config.values));
                format!("{keys} {values} {}:{} {}", config.set, config.get, config.remarks.len())
            }
            Err(NoConfiguration) => "none".to_owned(),
        }
    }

    #[test]
    fn every_file_that_the_original_takes_is_taken() {
        const VALUES: &str = "1024-1024@1";
        for (text, expected) in [
            (SAMPLE, "128-128@1 2048-2048@1 0.1:0.9 2"),
            ("", "none"),
            ("# only\n\n  # comments\n", "none"),
            ("junk\nmore junk\n", "none"),
            ("key\n16 16 1\n", &format!("16-16@1 {VALUES} 0.1:0.9 0")),
            ("key\n16 16 1", &format!("16-16@1 {VALUES} 0.1:0.9 0")),
            ("key\r\n16 20 1\r\n", &format!("16-20@1 {VALUES} 0.1:0.9 0")),
            ("keysizes here\n16 20 1 and a comment\n", &format!("16-20@1 {VALUES} 0.1:0.9 0")),
            ("  key\n\t16\t20\t1\n", &format!("16-20@1 {VALUES} 0.1:0.9 0")),
            (
                "key\n16 100 0.8\n101 200 0.1\n201 249 0.1\n",
                &format!("16-100@0.8,101-200@0.1,201-249@0.1 {VALUES} 0.1:0.9 0"),
            ),
            ("key\n16 16 .5\nkey\n20 20 5e-1\n", &format!("16-16@0.5,20-20@0.5 {VALUES} 0.1:0.9 0")),
            ("value\n1 1000 1\n", "64-64@1 1-1000@1 0.1:0.9 0"),
            ("value\n1 1000 0.5\n", "64-64@1 1-1000@0.5 0.1:0.9 1"),
            ("cmd\n0 0.5\n1 0.5\n", &format!("64-64@1 {VALUES} 0.5:0.5 0")),
            ("cmd\n1 0.9\n0 0.1\n", &format!("64-64@1 {VALUES} 0.1:0.9 0")),
            ("cmd\n0 1\n", &format!("64-64@1 {VALUES} 1:0 0")),
            ("cmd\n1 1\n", &format!("64-64@1 {VALUES} 0:1 0")),
            ("cmd\n0.0 0.3\n1.0 0.3\n", &format!("64-64@1 {VALUES} 0.3:0.3 0")),
            ("cmd\n0 0.1\n1 0.9\n2 0.5\n", &format!("64-64@1 {VALUES} 0.1:0.9 1")),
            ("cmd\n0 0.5\n1 0.5\nkey\n16 16 1\n", &format!("16-16@1 {VALUES} 0.5:0.5 0")),
            ("cmd\n", &format!("64-64@1 {VALUES} 0.1:0.9 0")),
            ("key\n16 16 1\noops\n20 20 1\nvalue\n9 9 1\n", "16-16@1 9-9@1 0.1:0.9 2"),
            ("key\n16 16\nvalue\n9 9 1\n", "64-64@1 9-9@1 0.1:0.9 1"),
            ("key\n-16 16 1\n", &format!("64-64@1 {VALUES} 0.1:0.9 1")),
            ("KEY\n16 16 1\nvalue\n9 9 1\n", "64-64@1 9-9@1 0.1:0.9 2"),
            ("key\n99999999999 16 1\n", &format!("4294967295-16@1 {VALUES} 0.1:0.9 0")),
        ] {
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }

    #[test]
    fn remarks_name_the_line() {
        let config = parse(SAMPLE).unwrap();
        assert!(config.remarks[0].starts_with("line 5: "), "{:?}", config.remarks);
        assert!(config.remarks[1].contains("total generated values"), "{:?}", config.remarks);
    }
}
