//! The page of repeated runs: their figures, how far they differ, and each of them.

use maud::{Markup, html};
use pummel_logic::plan::labels_text;
use pummel_measure::evidence::provenance::Provenance;
use pummel_measure::measurement::Status;
use pummel_measure::outcome::RunOutcome;
use pummel_measure::words::counted;

use super::axis::{known_time, time};
use super::frame::{Framed, details, fields, how, plan_text, said, section, table};
use super::runs::{self, RunLine, RunPoint, RunScale};
use super::svg::{WORDS_MAX, cut_name, in_layouts};
use super::words::command_line;
use super::{Heading, PageOptions, data, sections};
use crate::VERSION;
use crate::comparison::SideSource;
use crate::document::ToolResult;
use crate::numbers::{grouped, number};
use crate::repetition::{self, RepeatedFigure, Repetition};
use crate::run_figures::{Metric, RunFigures, judged_by_default};
use crate::view::repeated::view;
use crate::view::run::Wanted;

/// Response times of each run that are drawn, with their classes.
const TIMES: [(Metric, &str); 4] =
    [(Metric::P50, "p50"), (Metric::P90, "p90"), (Metric::P99, "p99"), (Metric::P999, "p999")];

/// The page of repeated runs, as `run --repeat --report` writes it.
pub fn render(repetition: &Repetition) -> Vec<u8> {
    of_repetition(repetition, &PageOptions::default())
}

/// The page of repeated runs.
pub fn of_repetition(repetition: &Repetition, options: &PageOptions) -> Vec<u8> {
    let heading = Heading {
        headline: headline(repetition, &repetition.figures),
        badges: badges(repetition),
        ..Heading::default()
    };
    let json = repetition::json(repetition);
    let body = html! {
        (heading.markup(options))
        (answers(repetition))
        (medians(repetition, &repetition.figures))
        (times(&repetition.runs))
        (rates(&repetition.runs))
        (each_run(&repetition.runs))
        (how_it_was_run(repetition))
        (sections::footer_of(data::of_json(&json, options.embed), sections::DataKind::Several))
        p.dim { "Drawn by pummel " (VERSION) "." }
    };
    heading.page(options, body)
}

/// The one sentence, which is the title too, with the word for an outcome that more than half of the runs had.
fn headline(repetition: &Repetition, figures: &[RepeatedFigure]) -> String {
    let is_frequent = |outcome: &RunOutcome| {
        let some = repetition.runs.iter().filter(|run| run.outcome == *outcome).count();
        2 * some > repetition.runs.len()
    };
    let outcome = [RunOutcome::Failed, RunOutcome::Overloaded].into_iter().find(is_frequent);
    let word = outcome.and_then(RunOutcome::headline).map_or_else(String::new, |word| format!("{word}: "));
    word + &figure_words(repetition, figures)
}

/// The judged figure, or another one that every run knows.
fn figure_words(repetition: &Repetition, figures: &[RepeatedFigure]) -> String {
    let runs = counted(repetition.runs.len() as u64, "run");
    let who = repetition.plan.servers.join(", ");
    let judged = judged_by_default(&repetition.plan);
    let told = figures.iter().find(|figure| figure.metric == judged).or_else(|| figures.first());
    let Some(told) = told else { return format!("{runs} of {who}.") };
    let text = |value: f64| told.metric.text(value);
    let name = told.metric.name();
    match told.interval {
        Some((low, high)) => {
            format!("{runs} of {who}: median {name} {} ({} to {}).", text(told.median), text(low), text(high))
        }
        None => {
            format!("{runs} of {who}: {name} {} to {}.", text(told.range.0), text(told.range.1))
        }
    }
}

fn badges(repetition: &Repetition) -> Vec<(String, Option<bool>)> {
    let mut badges = vec![match repetition.status {
        Status::Complete => ("complete".to_owned(), Some(true)),
        Status::Partial => ("partial".to_owned(), Some(false)),
        Status::Interrupted => ("interrupted".to_owned(), Some(false)),
    }];
    match repetition.restarted {
        Some(true) => badges.push(("server restarted before each run".to_owned(), None)),
        Some(false) => badges.push(("server not restarted".to_owned(), None)),
        None => {}
    }
    let (missed, judged) = repetition.missed();
    if judged > 0 {
        let words = match missed {
            0 => format!("goals met in {judged} of {judged} runs"),
            missed => format!("a goal missed in {missed} of {judged} runs"),
        };
        badges.push((words, Some(missed == 0)));
    }
    let wrong = repetition.wrong_values();
    if wrong > 0 {
        badges.push((format!("{} wrong values", grouped(wrong)), Some(false)));
    }
    let all = repetition.runs.len();
    for outcome in [RunOutcome::Failed, RunOutcome::Overloaded] {
        let some = repetition.runs.iter().filter(|run| run.outcome == outcome).count();
        if let Some(word) = outcome.headline().filter(|_| some > 0) {
            badges.push((format!("{word} in {some} of {all} runs"), Some(false)));
        }
    }
    let doubtful = repetition.runs.iter().filter(|run| run.trust == Some(false)).count();
    if doubtful > 0 {
        let words = format!("part of the times added by pummel in {doubtful} of {all} runs");
        badges.push((words, Some(false)));
    }
    badges
}

/// What the text report says in sentences.
fn answers(repetition: &Repetition) -> Markup {
    let mut limits: Vec<&str> = repetition.runs.iter().map(|run| run.limit.as_str()).collect();
    limits.sort_unstable();
    let counts = limits.chunk_by(|one, other| one == other).filter(|same| !same[0].is_empty());
    let limit: Vec<String> = counts
        .map(|same| format!("{} in {} of {} runs", same[0], same.len(), repetition.runs.len()))
        .collect();
    html! {
        (fields(&[("Reason", repetition.reason.clone().unwrap_or_default()), ("Limit", limit.join(", "))]))
        (said(&view(repetition, Wanted::Screen), &["Result", "Limit"]))
    }
}

fn medians(repetition: &Repetition, figures: &[RepeatedFigure]) -> Markup {
    if figures.is_empty() {
        return html! { p { "There is no figure that every run knows." } };
    }
    let has_interval = figures.iter().any(|figure| figure.interval.is_some());
    let rows: Vec<Vec<String>> = figures
        .iter()
        .map(|figure| {
            let (low, high) = figure.interval.unwrap_or(figure.range);
            let between = figure.spread.map(|spread| format!("{:.1} %", spread.between * 100.0));
            let within = figure.spread.and_then(|spread| spread.within);
            vec![
                figure.metric.name().to_owned(),
                figure.metric.text(figure.median),
                figure.metric.text(low),
                figure.metric.text(high),
                between.unwrap_or_else(|| "-".to_owned()),
                within.map_or("-".to_owned(), |within| format!("{:.1} %", within * 100.0)),
            ]
        })
        .collect();
    let (low, high) = if has_interval { ("from", "to") } else { ("least", "greatest") };
    let runs = counted(repetition.runs.len() as u64, "run");
    let words = match has_interval {
        true => format!("From and to: the 95 % interval of the median of {runs}."),
        false => format!("Least and greatest of {runs}; six or more have a 95 % interval of the median."),
    };
    let names = ["", "median", low, high, "runs differ by", "chance within a run"];
    section("Medians of all runs", html! { (table(&names, &rows)) (how(&words)) })
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

fn each_run(runs: &[RunFigures]) -> Markup {
    let rows: Vec<Vec<String>> = runs
        .iter()
        .enumerate()
        .map(|(number_of_run, run)| {
            let cell = |(metric, _)| match (run.figure(metric), run.bound(metric)) {
                (Some(figure), _) => time(figure.value),
                (None, Some(bound)) => format!("> {}", time(bound)),
                (None, None) => "-".to_owned(),
            };
            let outcome = run.outcome.headline().map_or_else(String::new, |word| format!(", {word}"));
            let status = format!("{}{outcome}", status_word(run.status));
            let mut cells = vec![(number_of_run + 1).to_string(), status];
            cells.extend([grouped(run.requests), number(run.rate)]);
            cells.extend(TIMES.map(cell));
            cells.push(run.limit.clone());
            cells.push(run.met.map_or("-", |met| if met { "met" } else { "missed" }).to_owned());
            cells.push(run.seed.to_string());
            cells
        })
        .collect();
    let names =
        ["run", "status", "due", "per second", "p50", "p90", "p99", "p99.9", "limit", "goals", "seed"];
    let reasons = runs.iter().enumerate().filter_map(|(at, run)| Some((at + 1, run.reason.as_deref()?)));
    section(
        "Every run",
        html! {
            (table(&names, &rows))
            @for (run, reason) in reasons { p { "Run " (run) ": " (cut_name(reason, WORDS_MAX)) } }
        },
    )
}

fn status_word(status: Status) -> &'static str {
    match status {
        Status::Complete => "complete",
        Status::Partial => "partial",
        Status::Interrupted => "interrupted",
    }
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
