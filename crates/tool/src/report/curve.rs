//! Runs at several rates, side by side: as text, JSON and CSV.

use std::fmt::Write as _;

use pummel_logic::measure::recorder::Span;
use pummel_logic::measure::summary::{QUANTILES, Quantile, Summary, time_text};
use pummel_logic::plan::Goal;
use pummel_logic::time::MICROSECOND;
use serde_json::{Value, json};

use super::VERSION;

/// The layout of the JSON that this version writes.
const SCHEMA: u32 = 1;

/// Runs at several rates.
#[derive(Clone, Debug)]
pub struct Curve {
    /// `search` or `scan`.
    pub command: &'static str,
    /// What runs were held to.
    pub goals: Vec<Goal>,
    /// In the order in which they were made.
    pub points: Vec<Point>,
    /// What a search found, in requests per second.
    pub found: Option<f64>,
    /// Why there are no more runs, where some are missing.
    pub reason: Option<String>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Point {
    /// Why it was made: `peak`, `search`, `confirm` or `scan`.
    pub role: &'static str,
    /// Requests per second that were asked for; `None` in closed loop.
    pub asked: Option<f64>,
    /// What it showed.
    pub summary: Summary,
}

impl Point {
    /// Whether it met every goal.
    pub fn met(&self) -> bool {
        !self.summary.missed_a_goal()
    }

    fn quantiles(&self) -> &[Quantile] {
        &self.summary.totals.figures[Span::Response as usize].quantiles
    }
}

/// A line for each run, in the order of rates.
pub fn text(curve: &Curve) -> String {
    let mut text = format!("{:>12} {:>12}", "asked/s", "done/s");
    for (name, _) in QUANTILES {
        write!(text, " {name:>9}").expect("text can always be added to");
    }
    text += "  goal\n";
    for point in sorted(curve) {
        let asked = point.asked.map_or("closed".to_owned(), |asked| format!("{asked:.0}"));
        write!(text, "{asked:>12} {:>12.0}", point.summary.totals.rate).expect("text can always be added to");
        for quantile in point.quantiles() {
            let shown = match quantile {
                Quantile::Known(ns) => time_text(*ns),
                Quantile::Above(ns) => format!("> {}", time_text(*ns)),
                Quantile::Absent => "-".to_owned(),
            };
            write!(text, " {shown:>9}").expect("text can always be added to");
        }
        text += match (curve.goals.is_empty(), point.met()) {
            (true, _) => "  -\n",
            (false, true) => "  met\n",
            (false, false) => "  missed\n",
        };
    }
    if curve.command == "search" {
        text += &match curve.found {
            Some(rate) => {
                format!("\nThe goal is met at {rate:.0} requests per second, also in a run of its own.\n")
            }
            None => "\nNo rate was found that meets the goal.\n".to_owned(),
        };
    }
    if let Some(reason) = &curve.reason {
        text += &format!("\nNot complete: {reason}\n");
    }
    text
}

fn sorted(curve: &Curve) -> Vec<&Point> {
    let mut points: Vec<&Point> = curve.points.iter().collect();
    let place = |point: &Point| point.asked.unwrap_or(f64::INFINITY);
    points.sort_by(|one, other| place(one).total_cmp(&place(other)));
    points
}

/// The whole curve as JSON, runs in the order in which they were made.
pub fn json(curve: &Curve) -> Vec<u8> {
    let micros = |ns: u64| ns as f64 / MICROSECOND as f64;
    let known = |quantile: &Quantile| quantile.known().map(micros);
    let points: Vec<Value> = curve
        .points
        .iter()
        .map(|point| {
            let response: serde_json::Map<String, Value> = QUANTILES
                .iter()
                .zip(point.quantiles())
                .map(|((name, _), quantile)| ((*name).to_owned(), json!(known(quantile))))
                .collect();
            let met = (!curve.goals.is_empty()).then(|| point.met());
            json!({
                "role": point.role,
                "asked_rate": point.asked,
                "rate": point.summary.totals.rate,
                "seconds": point.summary.seconds,
                "requests": point.summary.totals.counts.requests(),
                "response_us": response,
                "met": met,
            })
        })
        .collect();
    let goals: Vec<Value> = curve
        .goals
        .iter()
        .map(|goal| json!({ "quantile": goal.quantile, "limit_us": micros(goal.limit_ns) }))
        .collect();
    let whole = json!({
        "schema": SCHEMA,
        "tool": { "name": "pummel", "version": VERSION },
        "command": curve.command,
        "goals": goals,
        "found_rate": curve.found,
        "reason": curve.reason,
        "runs": points,
    });
    let mut bytes = serde_json::to_vec_pretty(&whole).expect("it has only text keys");
    bytes.push(b'\n');
    bytes
}

/// The whole curve as CSV; times are microseconds, and empty where they are not known.
pub fn csv(curve: &Curve) -> Vec<u8> {
    let mut text = String::from("role,asked_rate,rate,met");
    for (name, _) in QUANTILES {
        text += &format!(",response_{name}_us");
    }
    text.push('\n');
    for point in &curve.points {
        let asked = point.asked.map_or(String::new(), |asked| asked.to_string());
        let met = if curve.goals.is_empty() { String::new() } else { point.met().to_string() };
        text += &format!("{},{asked},{},{met}", point.role, point.summary.totals.rate);
        for quantile in point.quantiles() {
            let shown =
                quantile.known().map_or(String::new(), |ns| (ns as f64 / MICROSECOND as f64).to_string());
            text += &format!(",{shown}");
        }
        text.push('\n');
    }
    text.into_bytes()
}
