//! The sections of the page of a search or a scan.

use maud::{Markup, html};
use pummel_logic::plan::labels_text;

use super::axis::time;
use super::frame::{Framed, details, fields, plan_text, said, section, tables_of};
use super::svg::in_layouts;
use super::throughput::{self, RateMarks, RatePoint};
use super::words::{command_line, quantile_name};
use crate::document::CurveDocument;
use crate::numbers::number;
use crate::view::run::Wanted;
use crate::view::series::view;

/// What the marks of picture 5 mean, as far as it has them.
fn how_to_read_rates(points: &[RatePoint], marks: &RateMarks, over: Option<&str>) -> String {
    let has = |is: fn(&RatePoint) -> bool| points.iter().any(is);
    let marks = [
        (!marks.limits_us.is_empty(), "filled points are runs that met the goals, hollow ones missed them"),
        (marks.between.is_some(), "the limit lies in the shaded field"),
        (has(|point| !point.is_carried), "crosses are rates that were not carried"),
        (has(|point| !point.is_trusted), "pale points are partly pummel's own, and lines break there"),
        (
            has(|point| !point.intervals_us.is_empty()),
            "vertical bars are 95 % intervals within a run, of points that are not pale",
        ),
        (
            has(|point| point.intervals_us.iter().any(|(_, (_, high))| high.is_none())),
            "where a bar has an arrow no upper end is known",
        ),
    ];
    let marks: Vec<&str> =
        marks.into_iter().filter(|(is_there, _)| *is_there).map(|(_, words)| words).collect();
    let levels = over.map_or(String::new(), |what| format!(" The numbers above the axis count the {what}."));
    match marks.is_empty() {
        true => format!("How to read it: each point is a run.{levels}"),
        false => format!("How to read it: {}.{levels}", marks.join("; ")),
    }
}

/// p99 of the runs with the lowest and the highest rate that know it, of those that were asked for a rate.
fn statement_of_rates(points: &[RatePoint]) -> Option<String> {
    let p99 =
        |point: &RatePoint| point.response_us.iter().find(|(name, _)| name == "p99").and_then(|(_, us)| *us);
    let mut known: Vec<(f64, f64)> = points
        .iter()
        .filter(|point| point.asked.is_some())
        .filter_map(|point| Some((point.rate, p99(point)?)))
        .collect();
    known.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (first, last) = (known.first()?, known.last()?);
    (known.len() > 1 && number(first.0) != number(last.0)).then(|| {
        format!(
            "p99 {} at {} completed per second, {} at {}",
            time(first.1),
            number(first.0),
            time(last.1),
            number(last.0)
        )
    })
}

/// The sections of a search or a scan.
pub fn sections(document: &CurveDocument) -> Markup {
    // With a goal, the bars of other quantiles would cover those that decide.
    let judged: Vec<String> = document.goals.iter().map(|goal| quantile_name(goal.quantile)).collect();
    let points: Vec<RatePoint> = document
        .runs
        .iter()
        .map(|run| RatePoint {
            asked: run.asked_rate,
            level: run.level.as_ref().map(|level| (level.of.clone(), level.n)),
            intervals_us: run
                .response_ci_us
                .iter()
                .filter(|(name, _)| judged.is_empty() || judged.iter().any(|one| one == name))
                .filter_map(|(name, [low, high])| Some((name.to_owned(), ((*low)?, *high))))
                .collect(),
            rate: run.rate,
            response_us: run.times(),
            is_met: run.met,
            is_carried: run.carried,
            is_trusted: run.trust && run.limit != "generator",
        })
        .collect();
    let marks = RateMarks {
        limits_us: document.goals.iter().map(|goal| goal.limit_us).collect(),
        found: document.found_rate,
        between: document.search.as_ref().and_then(|search| search.low.zip(search.high)),
    };
    let over = document.runs.iter().find_map(|run| run.level.as_ref()).map(|level| level.of.as_str());
    let title = match over {
        Some("threads") => "Throughput and response times by number of threads",
        Some(_) => "Throughput and response times by number of connections",
        None => "How response times grow with the rate",
    };
    let statement = statement_of_rates(&points).unwrap_or_else(|| title.to_owned());
    let picture = in_layouts(|layout| throughput::draw(layout, "throughput", &points, &marks, title));
    let view = view(document, Wanted::Everything);
    let numbers = tables_of(&view);
    let drawn = picture.is_some();
    let framed = Framed {
        statement,
        picture,
        instead: "A picture needs two runs whose times are known.",
        how: how_to_read_rates(&points, &marks, over),
        numbers: numbers.clone(),
        axis: "",
    };
    html! {
        (said(&view, &["Result"]))
        (fields(&[("Labels", labels_text(&document.labels))]))
        (framed.markup())
        @if !drawn && !document.runs.is_empty() { (numbers) }
        (how_it_was_run(document))
    }
}

/// The command line and the plan of a series of runs; nothing where its result does not hold them.
fn how_it_was_run(document: &CurveDocument) -> Markup {
    let Some(plan) = &document.plan else { return Markup::default() };
    let version = format!("{} {}", document.tool.name, document.tool.version);
    let facts = fields(&[
        ("Command", command_line(&document.argv)),
        ("Servers", plan.servers.join(", ")),
        ("Made by", version.trim().to_owned()),
    ]);
    let plan = details("The plan of the first run", plan_text(plan, "plan"));
    section("How it was run", html! { (facts) (plan) })
}
