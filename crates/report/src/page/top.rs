//! The top of the page of a run: tiles of its most important figures, and its goals.

use maud::{Markup, html};
use pummel_measure::outcome::RunOutcome;
use pummel_measure::recorder::Span;

use super::axis::time;
use super::frame::unbroken;
use super::picture_data;
use super::words::{figure, limit_name, quantile_name};
use crate::document::{Document, Figure};
use crate::numbers::{grouped, number};
use crate::view::run::asked_rate;

/// Least use of a resource, in percent, with which the tile of a limit names it.
const NEAR_FULL_PERCENT: f64 = 80.0;

/// One figure with its name, and what stands below it.
struct Tile {
    name: &'static str,
    value: String,
    note: String,
    is_bad: bool,
}

/// The rate, the median and the tail, hits, errors and the limit.
pub fn tiles(document: &Document) -> Markup {
    let tiles: Vec<Tile> = [
        Some(rate(document)),
        Some(quantile(document, "p50")),
        Some(quantile(document, "p99")),
        hits(document),
        Some(errors(document)),
        limit(document),
    ]
    .into_iter()
    .flatten()
    .collect();
    html! {
        ul.tiles { @for tile in tiles {
            li class=[tile.is_bad.then_some("bad")] {
                span.dim { (tile.name) }
                strong { (tile.value) }
                span.dim { (unbroken(&tile.note)) }
            }
        } }
    }
}

fn rate(document: &Document) -> Tile {
    let ends = document.totals.rate_ci.map(|[low, high]| format!("{}..{}", number(low), number(high)));
    let note = match asked_rate(document) {
        Some(asked) => format!("of {} asked", number(asked)),
        None => ends.unwrap_or_default(),
    };
    Tile { name: "req/s", value: number(document.totals.rate), note, is_bad: false }
}

fn quantile(document: &Document, name: &'static str) -> Tile {
    let response = document.totals.times.of_span(Span::Response);
    let ends = picture_data::interval_of(document, name).and_then(|[low, high]| Some((low?, high)));
    let note = ends.map_or(String::new(), |(low, high)| {
        format!("{} .. {}", time(low), high.map_or(String::new(), time)).trim_end().to_owned()
    });
    let is_lag = document.trust.as_ref().is_some_and(|trust| trust.mostly_lag.iter().any(|one| one == name));
    let is_of_few = document.outcome == RunOutcome::Failed;
    let note = match (is_of_few, is_lag) {
        (true, _) => "of the few that were answered".to_owned(),
        (false, true) => "mostly pummel's own delay".to_owned(),
        (false, false) => note,
    };
    Tile { name, value: figure(response.at(name)), note, is_bad: is_lag || is_of_few }
}

fn hits(document: &Document) -> Option<Tile> {
    let (found, keys) = picture_data::looked_up(document);
    let value = format!("{:.1} %", 100.0 * found as f64 / keys as f64);
    let note = format!("of {} keys", grouped(keys));
    (keys > 0).then_some(Tile { name: "hits", value, note, is_bad: false })
}

fn errors(document: &Document) -> Tile {
    let (errors, unanswered) = (document.totals.errors, picture_data::unanswered(document));
    let value = if errors == 0 { "none".to_owned() } else { grouped(errors) };
    let note = match unanswered {
        0 if document.totals.requests == 0 => String::new(),
        0 => "every request was answered".to_owned(),
        some => format!("{} without an answer", grouped(some)),
    };
    let note = if errors > 0 && unanswered == 0 { String::new() } else { note };
    Tile { name: "errors", value, note, is_bad: errors + unanswered > 0 }
}

fn limit(document: &Document) -> Option<Tile> {
    let verdict = document.verdict.as_ref()?;
    let limit = document.limit()?;
    let most = verdict.headroom.iter().max_by(|one, other| one.used_percent.total_cmp(&other.used_percent));
    // Beside a limit that was reached, a resource with much room left would read as that limit.
    let most = most.filter(|used| limit == "none" || used.used_percent >= NEAR_FULL_PERCENT);
    let note =
        most.map_or(String::new(), |used| format!("{} {:.0} % used", used.resource, used.used_percent));
    Some(Tile { name: "limit", value: limit_name(limit), note, is_bad: limit == "generator" })
}

/// What the run was held to, with what it reached; nothing of a run without goals.
pub fn goals(document: &Document) -> Markup {
    let fate = |met: Option<bool>| match met {
        Some(true) => ("good", "met"),
        Some(false) => ("bad", "missed"),
        None => ("bad", "undecided"),
    };
    html! {
        @if !document.goals.is_empty() {
            div.wide { table.goals {
                thead { tr { th { "goal" } th { "at most" } th { "reached" } th.name { "" } th.name { "" } } }
                tbody { @for goal in &document.goals {
                    tr {
                        td { (quantile_name(goal.quantile)) }
                        td { (time(goal.limit_us)) }
                        td { (figure(match (goal.reached_us, goal.above_us) {
                            (Some(us), _) => Figure::Known(us),
                            (None, Some(us)) => Figure::Above(us),
                            (None, None) => Figure::Absent,
                        })) }
                        @let (class, words) = fate(goal.met);
                        td class=(format!("name {class}")) { (words) }
                        td.words { @if !goal.trust { "partly added by pummel" } }
                    }
                } }
            } }
        }
    }
}
