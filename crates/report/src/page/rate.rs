//! Picture 3: how many requests were due and answered while the run went on, and which errors came.

use maud::Markup;

use super::axis::{CountAxis, SecondsAxis, together};
use super::heat::COLUMNS_MAX;
use super::svg::{Anchor, LETTER, Layout, Picture};
use crate::numbers::{grouped, number};

/// One slice of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateColumn {
    /// Beginning, in seconds.
    pub at_s: f64,
    /// Length, in seconds.
    pub seconds: f64,
    /// Requests per second that were due by the plan; `None` where the load does not change.
    pub asked: Option<f64>,
    /// Requests that were completed.
    pub completed: u64,
    /// Requests that were completed or failed.
    pub requests: u64,
    /// What went wrong, by kind, in the order of kinds.
    pub wrong: Vec<(String, u64)>,
    /// Keys that reads found, and those that they looked for.
    pub hits: (u64, u64),
}

impl RateColumn {
    /// Rate of the slice at which it has this many requests.
    pub fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }
}

const TOP: f64 = 42.0;
const BOTTOM: f64 = 188.0;
const ERRORS_TOP: f64 = 224.0;
const ERRORS_BOTTOM: f64 = 294.0;

/// Colours of the kinds of errors.
const COLOURS: usize = 6;

/// Puts neighbours together until there are at most `most` columns.
pub fn merged(columns: &[RateColumn], most: usize) -> Vec<RateColumn> {
    together(columns, most, |all, more| {
        let due = all.asked.zip(more.asked).map(|(own, other)| own * all.seconds + other * more.seconds);
        all.completed += more.completed;
        all.requests += more.requests;
        all.hits = (all.hits.0 + more.hits.0, all.hits.1 + more.hits.1);
        all.seconds = more.at_s + more.seconds - all.at_s;
        all.wrong.iter_mut().zip(&more.wrong).for_each(|(sum, (_, count))| sum.1 += count);
        all.asked = due.filter(|_| all.seconds > 0.0).map(|due| due / all.seconds);
    })
}

/// The names and the beginnings of the phases of a load, the rate that was asked for, and how long the run was to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RatePlan {
    /// Requests per second that all clients were asked for; `None` where some were not given a rate.
    pub asked: Option<f64>,
    /// Beginnings and names of the phases.
    pub parts: Vec<(f64, String)>,
    /// Length in seconds of a run that was to be longer than it was, else 0.
    pub planned_s: f64,
}

/// The picture; `None` where there are no columns.
pub fn draw(
    layout: Layout,
    name: &str,
    columns: &[RateColumn],
    length_s: f64,
    plan: &RatePlan,
    title: &str,
) -> Option<Markup> {
    let columns = merged(columns, layout.columns(COLUMNS_MAX));
    let first = columns.first()?;
    let total = |kind: usize| columns.iter().map(|column| column.wrong[kind].1).sum::<u64>();
    // Only kinds that occur have a colour, so that no two of few have the same.
    let kinds: Vec<usize> = (0..first.wrong.len()).filter(|kind| total(*kind) > 0).collect();
    let bottom = if kinds.is_empty() { BOTTOM } else { ERRORS_BOTTOM };
    let x = SecondsAxis::of(layout, length_s.max(plan.planned_s));
    let mut picture = Picture::new(layout, bottom + if kinds.is_empty() { 44.0 } else { 32.0 });
    let most = columns.iter().map(|column| column.per_second(column.requests)).fold(0.0, f64::max);
    let most_asked = columns.iter().filter_map(|column| column.asked).chain(plan.asked).fold(0.0, f64::max);
    let y = CountAxis::of(most.max(most_asked), TOP, BOTTOM);
    y.draw(&mut picture, "requests per second");
    part_names(&mut picture, &plan.parts, &x);
    let mut names = Vec::new();
    picture.over_time(x.length_s(), |picture| {
        for (at_s, _) in plan.parts.iter().filter(|(at_s, _)| *at_s > 0.0) {
            picture.line("line dotted part", (x.at(*at_s), TOP), (x.at(*at_s), BOTTOM));
        }
        names = rates(picture, &columns, (&x, &y), plan.asked);
        if plan.planned_s > length_s {
            let (from, to) = (x.at(length_s), x.at(plan.planned_s));
            picture.rect("undefined", (from, TOP), (to - from, BOTTOM - TOP));
        }
        errors(picture, &columns, &kinds, &x);
        let said: Vec<(f64, f64, String)> = columns.iter().map(|column| words_of(column, &x)).collect();
        picture.columns(TOP, bottom, &said);
    });
    let (from, words) = (x.at(length_s), "ended before its time");
    if plan.planned_s > length_s && from + LETTER * words.len() as f64 <= layout.right {
        picture.words("tick when", (from + 4.0, TOP + 14.0), Anchor::Start, words);
    }
    if kinds.is_empty() {
        let words = "No errors, and every request was answered.";
        picture.words("tick", (layout.left, BOTTOM + 38.0), Anchor::Start, words);
    } else {
        error_axis(&columns).draw(&mut picture, "errors in each interval");
    }
    for (colour, kind) in kinds.iter().enumerate() {
        let at = ERRORS_TOP + 4.0 + 13.0 * colour as f64;
        picture.rect(&format!("e{}", colour % COLOURS), (layout.right + 8.0, at - 8.0), (8.0, 8.0));
        picture.words("tick", (layout.right + 20.0, at), Anchor::Start, &first.wrong[*kind].0);
    }
    picture.names(names);
    x.draw(&mut picture, bottom);
    let description = "Time since the start to the right, requests per second upwards, errors by kind below.";
    Some(picture.finish(name, title, description))
}

/// Draws the names of the phases as far as they do not cover each other.
fn part_names(picture: &mut Picture, parts: &[(f64, String)], x: &SecondsAxis) {
    let mut free = picture.layout.left;
    for (at_s, words) in parts {
        let at = x.at(*at_s);
        let end = at + 4.0 + LETTER * words.chars().count() as f64;
        if at >= free && end <= picture.layout.width {
            picture.words("tick when", (at + 4.0, TOP - 24.0), Anchor::Start, words);
            free = end;
        }
    }
}

/// Draws what was due and what was answered, and gives the names of the lines.
fn rates(
    picture: &mut Picture,
    columns: &[RateColumn],
    (x, y): (&SecondsAxis, &CountAxis),
    asked: Option<f64>,
) -> Vec<(f64, &'static str, &'static str)> {
    let Layout { left, right, .. } = picture.layout;
    let middle = |column: &RateColumn| x.at(column.at_s + column.seconds / 2.0);
    let at = |count: fn(&RateColumn) -> u64| -> Vec<(f64, f64)> {
        columns.iter().map(|column| (middle(column), y.at(column.per_second(count(column))))).collect()
    };
    let (all, done) = (at(|column| column.requests), at(|column| column.completed));
    let due: Option<Vec<(f64, f64)>> =
        columns.iter().map(|column| Some((middle(column), y.at(column.asked?)))).collect();
    picture.area("hatch", &all, &done);
    picture.polyline("line wait", &all);
    picture.polyline("line thick response", &done);
    if let [only] = done.as_slice() {
        picture.rect("bar", (left, only.1), (right - left, BOTTOM - only.1));
    }
    // On top, because it is thinner than the line that it is nearly always on.
    let mut names = Vec::new();
    if let Some(due) = due {
        picture.polyline("line dashed goal", &due);
        names.extend(due.last().map(|last| (last.1 + 4.0, "goal", "asked")));
    } else if let Some(asked) = asked {
        picture.line("line dashed goal", (left, y.at(asked)), (right, y.at(asked)));
        names.push((y.at(asked) + 4.0, "goal", "asked"));
    }
    names.extend(done.last().map(|last| (last.1 + 4.0, "response", "completed")));
    names
}

fn error_axis(columns: &[RateColumn]) -> CountAxis {
    let sum = |column: &RateColumn| column.wrong.iter().map(|(_, count)| count).sum::<u64>();
    CountAxis::of(columns.iter().map(sum).max().unwrap_or(0) as f64, ERRORS_TOP, ERRORS_BOTTOM)
}

fn errors(picture: &mut Picture, columns: &[RateColumn], kinds: &[usize], x: &SecondsAxis) {
    let y = error_axis(columns);
    for column in columns {
        let (left, right) = (x.at(column.at_s), x.at(column.at_s + column.seconds));
        let mut below = 0_u64;
        for (colour, kind) in kinds.iter().enumerate() {
            let count = column.wrong[*kind].1;
            let (bottom, top) = (y.at(below as f64), y.at((below + count) as f64));
            let size = ((right - left - 0.5).max(0.5), bottom - top);
            picture.rect(&format!("e{}", colour % COLOURS), (left, top), size);
            below += count;
        }
    }
}

fn words_of(column: &RateColumn, x: &SecondsAxis) -> (f64, f64, String) {
    let end = column.at_s + column.seconds;
    let rate = number(column.per_second(column.completed));
    let mut words = format!("{:.1} to {end:.1} s: {rate}/s completed", column.at_s);
    let not_completed = column.requests - column.completed.min(column.requests);
    if not_completed > 0 {
        words += &format!(", {} not", grouped(not_completed));
    }
    for (name, count) in column.wrong.iter().filter(|(_, count)| *count > 0) {
        words += &format!(", {} {name}", grouped(*count));
    }
    if column.hits.1 > 0 {
        words += &format!(", {:.1} % hits", 100.0 * column.hits.0 as f64 / column.hits.1 as f64);
    }
    let (left, right) = (x.at(column.at_s), x.at(end));
    (left, right - left, words)
}
