//! The words of a page: its headline, and the statements above its pictures.

use pummel_measure::measurement::Status;
use pummel_measure::recorder::Span;

use super::anatomy::{Band, ENOUGH};
use super::axis::time;
use super::heat::HeatColumn;
use super::picture_data::unanswered;
use super::svg::cut_name;
use crate::document::{Document, FailOnAnswer, Figure, OpResult};
use crate::numbers::grouped;

/// Servers that a headline names at most.
const SERVERS_NAMED: usize = 3;

/// Characters of a server's name in a headline at most.
const SERVER_CHARS_MAX: usize = 48;

/// The servers of a run, and how long it measured.
pub fn subject(document: &Document) -> String {
    let servers = &document.plan.servers;
    let who = match (&document.cluster, servers.len()) {
        (Some(cluster), _) => cluster.words(),
        (None, many) if many > SERVERS_NAMED => format!("{many} servers"),
        _ => servers.iter().map(|name| cut_name(name, SERVER_CHARS_MAX)).collect::<Vec<_>>().join(", "),
    };
    format!("{who}, {} measured", time(document.seconds * 1e6))
}

/// A figure of a table.
pub fn figure(figure: Figure) -> String {
    match figure {
        Figure::Known(us) => time(us),
        Figure::Above(us) => format!("> {}", time(us)),
        Figure::Absent => "-".to_owned(),
    }
}

/// The name of a quantile, such as `p99.9`.
pub fn quantile_name(quantile: f64) -> String {
    format!("p{}", (quantile * 1e8).round() / 1e6)
}

/// The limit in a word or two.
pub fn limit_name(limit: &str) -> String {
    match limit {
        "none" => "none reached".to_owned(),
        "unknown" => "not known".to_owned(),
        "others" => "other clients".to_owned(),
        other => other.to_owned(),
    }
}

/// Short marks below the headline: words, and whether each is good; `None` for what is neither.
pub fn badges(document: &Document) -> Vec<(String, Option<bool>)> {
    let status = match document.status {
        Status::Complete => ("complete".to_owned(), Some(true)),
        Status::Partial => ("partial".to_owned(), Some(false)),
        Status::Interrupted => ("interrupted".to_owned(), Some(false)),
    };
    let mut badges = vec![status];
    if let Some(trust) = document.trust.as_ref().filter(|_| document.totals.completed > 0) {
        let words = match (trust.ok, trust.mostly_lag.is_empty()) {
            (true, true) => "times are reliable",
            (true, false) => "times up to p99 are reliable",
            (false, _) => "part of the times was added by pummel",
        };
        badges.push((words.to_owned(), Some(trust.ok)));
    }
    if document.steady == Some(false) {
        badges.push(("not steady".to_owned(), Some(false)));
    }
    for (on, answer) in document.failures() {
        let name = on.name();
        let words = match answer {
            FailOnAnswer::Unknown(_) => format!("{name}: not judged"),
            _ => format!("FAILED on {name}"),
        };
        badges.push((words, Some(false)));
    }
    let verify = &document.verify;
    if verify.checked > 0 || document.plan.verify > 0.0 {
        let wrong = verify.failed + verify.stale;
        badges.push(match wrong {
            0 => (format!("{} values right", grouped(verify.checked)), Some(true)),
            wrong => (format!("{} values wrong or stale", grouped(wrong)), Some(false)),
        });
    }
    badges
}

/// The statement above picture 1.
pub fn of_curve(document: &Document) -> String {
    let response = document.totals.times.of_span(Span::Response);
    let known = ["p99.99", "p99.9", "p99", "p95", "p90", "p50"];
    let enough = |name: &str| {
        let share = name.trim_start_matches('p').parse::<f64>().unwrap_or(100.0) / 100.0;
        document.totals.completed as f64 * (1.0 - share) >= ENOUGH as f64
    };
    let told = known.iter().find_map(|name| {
        let us = response.at(name).known().filter(|_| enough(name))?;
        Some(format!("{} % of the requests within {}", name.trim_start_matches('p'), time(us)))
    });
    told.unwrap_or_else(|| {
        let words = if document.totals.completed == 0 {
            "No response times"
        } else if unanswered(document) > 0 {
            "Too many requests got no answer to know how long half of them took"
        } else {
            "Too few requests were answered to know how long half of them took"
        };
        words.to_owned()
    })
}

/// The statement above picture 2.
pub fn of_heat(columns: &[HeatColumn]) -> String {
    let p99 = |column: &HeatColumn| Some(column.sketch.quantile(0.99, column.unanswered)? as f64 / 1e3);
    let known: Vec<(f64, f64)> =
        columns.iter().filter_map(|column| Some((p99(column)?, column.at_s))).collect();
    let best = known.iter().copied().reduce(|one, other| if other.0 < one.0 { other } else { one });
    let worst = known.iter().copied().reduce(|one, other| if other.0 > one.0 { other } else { one });
    let words = match (best, worst) {
        (Some((low, _)), Some((high, at))) if known.len() > 1 => {
            format!("p99 of each interval: about {} to {}, the longest at {at:.1} s", time(low), time(high))
        }
        (_, Some((high, at))) if columns.len() > 1 => {
            format!("p99 about {} in the interval at {at:.1} s", time(high))
        }
        (_, Some((high, _))) => format!("p99 about {}", time(high)),
        _ => return "In no interval were enough requests answered to know p99".to_owned(),
    };
    match unknown_at(columns).as_slice() {
        [] => words,
        [at] => format!("{words}; too many without an answer to know it at {at:.1} s"),
        [first, more @ ..] => {
            let count = more.len() + 1;
            format!(
                "{words}; too many without an answer to know it in {count} intervals, the first at {first:.1} s"
            )
        }
    }
}

/// The beginnings, in seconds, of the slices whose p99 lies among requests without an answer.
fn unknown_at(columns: &[HeatColumn]) -> Vec<f64> {
    let is_unknown = |column: &&HeatColumn| {
        column.unanswered > 0 && column.sketch.quantile(0.99, column.unanswered).is_none()
    };
    columns.iter().filter(is_unknown).map(|column| column.at_s).collect()
}

/// The statement above picture 3.
pub fn of_rate(document: &Document) -> String {
    let totals = &document.totals;
    if totals.requests == 0 {
        return "No request was due".to_owned();
    }
    if totals.completed == totals.requests {
        return format!("All {} requests completed", grouped(totals.completed));
    }
    let sum = |of: fn(&OpResult) -> u64| document.ops.iter().map(|(_, op)| of(op)).sum::<u64>();
    let rest = [
        (totals.errors, "failed"),
        (sum(|op| op.unfinished), "unfinished at the end"),
        (sum(|op| op.unsent), "never sent"),
    ];
    let rest = rest.into_iter().filter(|(count, _)| *count > 0);
    let each: String = rest.map(|(count, fate)| format!(", {} {fate}", grouped(count))).collect();
    format!("{} of {} requests completed{each}", grouped(totals.completed), grouped(totals.requests))
}

/// The statement above picture 4.
pub fn of_bands(bands: &[Band]) -> String {
    let slow = bands.iter().rev().find(|band| band.count >= ENOUGH && band.response_us() > 0.0);
    let Some(slow) = slow else { return "Too few requests to say what response times consist of".to_owned() };
    let parts = [("wait", slow.wait_us), ("lag", slow.lag_us), ("service", slow.service_us)];
    let most = parts.into_iter().reduce(|one, other| if other.1 > one.1 { other } else { one });
    let (name, us) = most.unwrap_or(("service", slow.service_us));
    let share = 100.0 * us / slow.response_us();
    format!("Requests {}: {share:.0} % of the response time is {name}", slow.name)
}

/// Words of a command line as a shell takes them.
pub fn command_line(argv: &[String]) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-+=:,./@%".contains(letter);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    argv.iter().map(quoted).collect::<Vec<String>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_can_be_given_to_a_shell() {
        let words =
            |argv: &[&str]| command_line(&argv.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            words(&["pummel", "run", "--rate", "20k", "--goal=p99:1ms"]),
            "pummel run --rate 20k --goal=p99:1ms"
        );
        assert_eq!(
            words(&["a", "--label", "x=<b> $HOME", "it's", ""]),
            "a --label 'x=<b> $HOME' 'it'\\''s' ''"
        );
    }

    use pummel_measure::histogram::{Histogram, Sketch};

    /// A slice of one second with requests of a millisecond and requests without an answer.
    fn column(at_s: f64, answered: u64, unanswered: u64) -> HeatColumn {
        let mut histogram = Histogram::new();
        (0..answered).for_each(|_| histogram.record(1_000_000));
        let mut sketch = Sketch::default();
        sketch.add(&histogram);
        HeatColumn { at_s, seconds: 1.0, sketch, unanswered }
    }

    #[test]
    fn intervals_whose_p99_is_not_known_are_named_as_the_worst() {
        let said = |columns: &[HeatColumn]| of_heat(columns);
        let all_known = [column(0.0, 10, 0), column(1.0, 10, 0), column(2.0, 0, 0)];
        assert!(said(&all_known).ends_with(", the longest at 0.0 s"), "{}", said(&all_known));
        let one = [column(0.0, 10, 0), column(1.0, 10, 0), column(4.0, 10, 5)];
        let words = said(&one);
        assert!(
            words.ends_with("the longest at 0.0 s; too many without an answer to know it at 4.0 s"),
            "{words}"
        );
        let words = said(&[column(0.0, 10, 0), column(3.0, 0, 9), column(4.0, 10, 5)]);
        let end = " in the interval at 0.0 s; too many without an answer to know it in 2 intervals, the first at 3.0 s";
        assert!(words.starts_with("p99 about 1.0") && words.ends_with(end), "{words}");
        assert_eq!(said(&[column(0.0, 0, 9)]), "In no interval were enough requests answered to know p99");
    }
}
