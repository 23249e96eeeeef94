//! The words of a page: its headline, and the statements above its pictures.

use pummel_logic::measure::measurement::Status;
use pummel_logic::measure::recorder::Span;

use super::anatomy::{Band, ENOUGH};
use super::axis::Unit;
use super::heat::HeatColumn;
use super::series::unanswered;
use crate::report::document::{CurveDocument, Document, Figure};
use crate::report::numbers::{grouped, number};

/// Servers that a headline names at most.
const SERVERS_NAMED: usize = 3;

/// The one sentence of a run.
pub fn headline(document: &Document, unit: Unit) -> String {
    let servers = &document.plan.servers;
    let who =
        if servers.len() > SERVERS_NAMED { format!("{} servers", servers.len()) } else { servers.join(", ") };
    if document.totals.completed == 0 {
        return format!("{who} completed no request.");
    }
    let response = document.totals.times.of_span(Span::Response);
    let times = ["p99", "p99.9"].map(|name| match response.at(name) {
        Figure::Known(us) => format!("{name} {}", unit.text(us)),
        Figure::Above(us) => format!("{name} more than {}", unit.text(us)),
        Figure::Absent => format!("{name} not known"),
    });
    let limit = document
        .verdict
        .as_ref()
        .map_or(String::new(), |verdict| format!("; {}", limit_words(&verdict.limit)));
    format!("{who} answered {} req/s; {}{limit}.", number(document.totals.rate), times.join(", "))
}

fn limit_words(limit: &str) -> String {
    match limit {
        "nobody" => "nobody was the limit".to_owned(),
        "unknown" => "what limited it is not known".to_owned(),
        "connections" => "the number of connections was the limit".to_owned(),
        "others" => "other clients were the limit".to_owned(),
        other => format!("the {other} was the limit"),
    }
}

/// Short marks below the headline: words, and whether each is good; `None` for what is neither.
pub fn badges(document: &Document) -> Vec<(String, Option<bool>)> {
    let status = match document.status {
        Status::Complete => ("complete".to_owned(), Some(true)),
        Status::Partial => ("partial".to_owned(), Some(false)),
        Status::Interrupted => ("interrupted".to_owned(), Some(false)),
    };
    let mut badges = vec![status, (format!("{:.1} s measured", document.seconds), None)];
    if let Some(trust) = document.trust.as_ref().filter(|_| document.totals.completed > 0) {
        let words = if trust.ok { "times may be believed" } else { "times are partly the generator's own" };
        badges.push((words.to_owned(), Some(trust.ok)));
    }
    if document.steady == Some(false) {
        badges.push(("not steady".to_owned(), Some(false)));
    }
    for goal in &document.goals {
        let name = (goal.quantile * 1e8).round() / 1e6;
        let fate = match goal.met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "undecided",
        };
        let words = format!("goal p{name} within {} us: {fate}", number(goal.limit_us));
        badges.push((words, Some(goal.met == Some(true))));
    }
    let verify = &document.verify;
    if verify.checked > 0 || document.plan.verify > 0.0 {
        let wrong = verify.failed + verify.stale;
        badges.push(match wrong {
            0 => (format!("{} values right", grouped(verify.checked)), Some(true)),
            wrong => (format!("{} values wrong or stale", grouped(wrong)), Some(false)),
        });
    }
    let errors = document.totals.errors;
    if errors > 0 {
        badges.push((format!("{} errors", grouped(errors)), Some(false)));
    }
    badges
}

/// The statement above picture 1.
pub fn of_curve(document: &Document, unit: Unit) -> String {
    let response = document.totals.times.of_span(Span::Response);
    let known = ["p99.99", "p99.9", "p99", "p95", "p90", "p50"];
    let enough = |name: &str| {
        let share = name.trim_start_matches('p').parse::<f64>().unwrap_or(100.0) / 100.0;
        document.totals.completed as f64 * (1.0 - share) >= ENOUGH as f64
    };
    let told = known.iter().find_map(|name| {
        let us = response.at(name).known().filter(|_| enough(name))?;
        Some(format!("{} % of the requests within {}", name.trim_start_matches('p'), unit.text(us)))
    });
    told.unwrap_or_else(|| {
        let words = if unanswered(document) > 0 {
            "Too many requests got no answer to know how long half of them took"
        } else {
            "Too few requests were answered to know how long half of them took"
        };
        words.to_owned()
    })
}

/// The statement above picture 2.
pub fn of_heat(columns: &[HeatColumn], unit: Unit) -> String {
    let p99 = columns.iter().filter_map(|column| {
        Some((column.sketch.quantile(0.99, column.unanswered)? as f64 / 1e3, column.at_s))
    });
    let worst = p99.clone().reduce(|one, other| if other.0 > one.0 { other } else { one });
    let best = p99.clone().reduce(|one, other| if other.0 < one.0 { other } else { one });
    match (best, worst) {
        (Some((low, _)), Some((high, at))) if columns.len() > 1 => {
            format!(
                "p99 of the intervals from about {} to {}, the worst at {at:.1} s",
                unit.text(low),
                unit.text(high)
            )
        }
        (_, Some((high, _))) => format!("p99 about {}", unit.text(high)),
        _ => "In no interval were enough requests answered to know p99".to_owned(),
    }
}

/// The statement above picture 3.
pub fn of_rate(document: &Document) -> String {
    let totals = &document.totals;
    let silent = unanswered(document);
    let mut words =
        format!("{} of {} requests completed", grouped(totals.completed), grouped(totals.requests));
    if totals.errors > 0 {
        words += &format!(", {} failed", grouped(totals.errors));
    }
    if silent > 0 {
        words += &format!(", {} without an answer", grouped(silent));
    }
    words
}

/// The statement above picture 4.
pub fn of_bands(bands: &[Band]) -> String {
    let slow = bands.iter().rev().find(|band| band.count >= ENOUGH && band.response_us() > 0.0);
    let Some(slow) = slow else { return "Too few requests to say whose the time was".to_owned() };
    let parts = [("wait", slow.wait_us), ("lag", slow.lag_us), ("service", slow.service_us)];
    let most = parts.into_iter().reduce(|one, other| if other.1 > one.1 { other } else { one });
    let (name, us) = most.unwrap_or(("service", slow.service_us));
    format!("Of the requests {}, {:.0} % of the time was {name}", slow.name, 100.0 * us / slow.response_us())
}

/// The one sentence of a search or a scan.
pub fn curve_headline(curve: &CurveDocument) -> String {
    let runs = curve.runs.len();
    match (curve.command.as_str(), curve.found_rate) {
        ("search", Some(rate)) => {
            format!("The goal is met at {} requests per second ({runs} runs).", grouped(rate as u64))
        }
        ("search", None) => format!("No rate was found that meets the goal ({runs} runs)."),
        _ => format!("Response times at {runs} rates."),
    }
}
