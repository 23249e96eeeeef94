//! The page of repeated runs: their figures, how far they differ, and each of them.

use maud::{Markup, html};
use pummel_logic::plan::labels_text;
use pummel_measure::evidence::provenance::Provenance;

use super::axis::known_time;
use super::frame::{Framed, details, fields, plan_text, said, section, table, tables_of};
use super::runs::{self, RunLine, RunPoint, RunScale};
use super::svg::{WORDS_MAX, cut_name, in_layouts};
use super::words::command_line;
use super::{Heading, PageOptions, data, sections};
use crate::VERSION;
use crate::comparison::SideSource;
use crate::document::ToolResult;
use crate::numbers::number;
use crate::repetition::{self, Repetition};
use crate::run_figures::{Metric, RunFigures};
use crate::view::repeated::{title, view};
use crate::view::run::Wanted;

/// Response times of each run that are drawn, with their classes.
const TIMES: [(Metric, &str); 4] =
    [(Metric::P50, "p50"), (Metric::P90, "p90"), (Metric::P99, "p99"), (Metric::P999, "p999")];
/// The page of repeated runs.
pub fn of_repetition(repetition: &Repetition, options: &PageOptions) -> Vec<u8> {
    let view = view(repetition, Wanted::Everything);
    // The first part is the program.
    let ran: Vec<String> = view.ran.iter().flatten().skip(1).cloned().collect();
    let heading = Heading { headline: title(repetition), subject: ran.join(", "), ..Heading::default() };
    let json = repetition::json(repetition);
    let body = html! {
        (heading.markup(options))
        (said(&view, &["Result"]))
        (fields(&[("Reason", repetition.reason.clone().unwrap_or_default())]))
        (tables_of(&view))
        @for (run, reason) in reasons(&repetition.runs) { p { "Run " (run) ": " (cut_name(reason, WORDS_MAX)) } }
        (times(&repetition.runs))
        (rates(&repetition.runs))
        (how_it_was_run(repetition))
        (sections::footer_of(data::of_json(&json, options.embed), sections::DataKind::Several))
        p.dim { "Drawn by pummel " (VERSION) "." }
    };
    heading.page(options, body)
}

/// The numbers of the runs that were not complete, with the reason.
fn reasons(runs: &[RunFigures]) -> impl Iterator<Item = (usize, &str)> {
    runs.iter().enumerate().filter_map(|(place, run)| Some((place + 1, run.reason.as_deref()?)))
}

/// The points of a figure of some runs.
pub fn line_of(name: &str, class: &'static str, runs: &[RunFigures], metric: Metric) -> RunLine {
    let point = |run: &RunFigures| {
        run.figure(metric).map(|figure| RunPoint { value: figure.value, within: figure.within })
    };
    RunLine { name: name.to_owned(), class, points: runs.iter().map(point).collect() }
}

fn times(runs: &[RunFigures]) -> Markup {
    let lines: Vec<RunLine> =
        TIMES.map(|(metric, class)| line_of(metric.name(), class, runs, metric)).to_vec();
    let statement = "Response times of each run";
    let rows: Vec<Vec<String>> = runs
        .iter()
        .enumerate()
        .map(|(number, run)| {
            let time = |(metric, _)| known_time(run.figure(metric).map(|one| one.value));
            std::iter::once((number + 1).to_string()).chain(TIMES.map(time)).collect()
        })
        .collect();
    Framed {
        statement: statement.to_owned(),
        picture: in_layouts(|layout| {
            runs::draw(layout, "times", &lines, RunScale::Times, ("run", statement))
        }),
        instead: "No run knows how long its requests took.",
        how: "How to read it: one place for each run, in the order in which they were made. Bars: 95 % intervals within the run, where they \
              are known."
            .to_owned(),
        numbers: table(&["run", "p50", "p90", "p99", "p99.9"], &rows),
        axis: "runs",
    }
    .markup()
}

fn rates(runs: &[RunFigures]) -> Markup {
    let lines = [line_of("completed", "c1", runs, Metric::Rate)];
    let statement = "Completed requests per second of each run";
    let rows: Vec<Vec<String>> =
        runs.iter().enumerate().map(|(at, run)| vec![(at + 1).to_string(), number(run.rate)]).collect();
    Framed {
        statement: statement.to_owned(),
        picture: in_layouts(|layout| {
            runs::draw(layout, "rates", &lines, RunScale::Rates, ("run", statement))
        }),
        instead: "No run was made.",
        how: "How to read it: the axis begins at 0. Bars: 95 % intervals within the run.".to_owned(),
        numbers: table(&["run", "per second"], &rows),
        axis: "runs",
    }
    .markup()
}

fn how_it_was_run(repetition: &Repetition) -> Markup {
    let SideSource { machine, servers, tool, .. } = &repetition.source;
    let software: Vec<String> =
        servers.iter().map(|server| format!("{} {}", server.software, server.version)).collect();
    let facts = fields(&[
        ("Command", command_line(&repetition.argv)),
        ("Servers", repetition.plan.servers.join(", ")),
        ("Software", software.join(", ")),
        ("Machine", machine.iter().map(Provenance::words).collect::<Vec<_>>().join("; ")),
        ("Labels", labels_text(&repetition.labels)),
        ("Made by", tool.as_ref().map_or_else(String::new, ToolResult::words)),
    ]);
    let plan = details("The plan of the first run", plan_text(&repetition.plan, "plan"));
    section("How it was run", html! { (facts) (plan) })
}
