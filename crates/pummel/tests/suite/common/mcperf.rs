//! Runs of `pummel mcperf`, and the figures of its report.

use super::{Ended, Memcached, Running};

/// Runs `pummel mcperf` with these words against a server on this port of 127.0.0.1.
pub fn mcperf(port: &str, words: &str) -> Ended {
    Running::start(&format!("mcperf -s 127.0.0.1 -p {port} -v 0 {words}")).end().expect(0)
}

pub fn port_of(server: &Memcached) -> &str {
    server.name.rsplit_once(':').expect("it has a port").1
}

/// The line of a report that begins so.
#[track_caller]
pub fn line<'t>(text: &'t str, start: &str) -> &'t str {
    text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{text}"))
}

/// The number behind a word of a report, in the first line that begins so and has that word.
#[track_caller]
pub fn number(text: &str, start: &str, word: &str) -> f64 {
    let lines = text.lines().filter(|line| line.starts_with(start));
    let found = lines.flat_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let at = words.iter().position(|other| *other == word)?;
        words.get(at + 1)?.trim_start_matches('(').parse().ok()
    });
    found.into_iter().next().unwrap_or_else(|| panic!("{start} {word}: {text}"))
}

/// The kinds of responses that there were.
pub fn kinds(text: &str) -> Vec<(String, u64)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("Response type: "));
    let words: Vec<&str> = lines.flat_map(|line| line.split(' ')).collect();
    let pairs = words.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].parse().expect("a count")));
    pairs.filter(|(_, count)| *count > 0).collect()
}
