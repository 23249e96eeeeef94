//! Picture 3: how many requests were due and answered while the run went on, and which errors came.

use super::axis::{CountAxis, SecondsAxis};
use super::heat::COLUMNS_MAX;
use super::svg::{Anchor, LEFT, Picture, RIGHT, WIDTH};
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

const TOP: f64 = 24.0;
const BOTTOM: f64 = 170.0;
const ERRORS_TOP: f64 = 206.0;
const ERRORS_BOTTOM: f64 = 276.0;

/// Colours of the kinds of errors.
const COLOURS: usize = 6;

/// Puts neighbours together until there are at most `most` columns.
pub fn merged(columns: &[RateColumn], most: usize) -> Vec<RateColumn> {
    let each = columns.len().div_ceil(most.max(1)).max(1);
    let together = columns.chunks(each).map(|chunk| {
        let mut all = chunk[0].clone();
        let due: Option<f64> = chunk.iter().map(|one| one.asked.map(|rate| rate * one.seconds)).sum();
        for more in &chunk[1..] {
            all.completed += more.completed;
            all.requests += more.requests;
            all.hits = (all.hits.0 + more.hits.0, all.hits.1 + more.hits.1);
            all.seconds = more.at_s + more.seconds - all.at_s;
            all.wrong.iter_mut().zip(&more.wrong).for_each(|(sum, (_, count))| sum.1 += count);
        }
        all.asked = due.filter(|_| all.seconds > 0.0).map(|due| due / all.seconds);
        all
    });
    together.collect()
}

/// The picture, `planned_s` long where the run was to be longer than it was; `None` where there are no columns.
/// `asked` is the rate that was asked for, and `parts` are the beginnings and names of the phases of the load.
pub fn draw(
    name: &str,
    columns: &[RateColumn],
    (length_s, planned_s): (f64, f64),
    asked: Option<f64>,
    parts: &[(f64, String)],
    title: &str,
) -> Option<String> {
    let columns = merged(columns, COLUMNS_MAX);
    if columns.is_empty() {
        return None;
    }
    let has_errors = columns.iter().any(|column| column.wrong.iter().any(|(_, count)| *count > 0));
    let height = if has_errors { ERRORS_BOTTOM } else { BOTTOM + 24.0 };
    let x = SecondsAxis::of(length_s.max(planned_s));
    let mut picture = Picture::new(height + 32.0);
    draw_parts(&mut picture, parts, &x);
    rates(&mut picture, &columns, &x, asked);
    if planned_s > length_s {
        let (from, to) = (x.at(length_s), x.at(planned_s));
        picture.rect("undefined", (from, TOP), (to - from, BOTTOM - TOP));
        let words = "ended before its time";
        if from + LETTER * words.len() as f64 <= RIGHT {
            picture.words("tick", (from + 4.0, TOP + 14.0), Anchor::Start, words);
        }
    }
    if has_errors {
        errors(&mut picture, &columns, &x);
        x.draw(&mut picture, ERRORS_BOTTOM);
    } else {
        x.draw(&mut picture, BOTTOM);
        picture.words(
            "tick",
            (LEFT, BOTTOM + 38.0),
            Anchor::Start,
            "No errors, and every request was answered.",
        );
    }
    let said: Vec<(f64, f64, String)> = columns.iter().map(|column| words_of(column, &x)).collect();
    picture.columns(TOP, height, &said);
    let description = "Time since the start to the right, requests per second upwards, errors by kind below.";
    Some(picture.finish(name, title, description))
}

/// Width of a letter of a name at most, about.
const LETTER: f64 = 7.0;

/// Draws where the phases begin, with their names as far as they do not cover each other.
fn draw_parts(picture: &mut Picture, parts: &[(f64, String)], x: &SecondsAxis) {
    let mut free = LEFT;
    for (at_s, words) in parts {
        let at = x.at(*at_s);
        if *at_s > 0.0 {
            picture.line("line dotted part", (at, TOP), (at, BOTTOM));
        }
        let end = at + 4.0 + LETTER * words.chars().count() as f64;
        if at >= free && end <= WIDTH {
            picture.words("tick", (at + 4.0, TOP - 8.0), Anchor::Start, words);
            free = end;
        }
    }
}

fn rates(picture: &mut Picture, columns: &[RateColumn], x: &SecondsAxis, asked: Option<f64>) {
    let per_second = |count: u64, column: &RateColumn| {
        if column.seconds > 0.0 { count as f64 / column.seconds } else { 0.0 }
    };
    let most = columns.iter().map(|column| per_second(column.requests, column)).fold(0.0, f64::max);
    let most_asked = columns.iter().filter_map(|column| column.asked).chain(asked).fold(0.0, f64::max);
    let y = CountAxis::of(most.max(most_asked), TOP, BOTTOM);
    y.draw(picture, "req/s");
    let middle = |column: &RateColumn| x.at(column.at_s + column.seconds / 2.0);
    let all: Vec<(f64, f64)> =
        columns.iter().map(|column| (middle(column), y.at(per_second(column.requests, column)))).collect();
    let done: Vec<(f64, f64)> =
        columns.iter().map(|column| (middle(column), y.at(per_second(column.completed, column)))).collect();
    let due: Option<Vec<(f64, f64)>> =
        columns.iter().map(|column| Some((middle(column), y.at(column.asked?)))).collect();
    picture.area("hatch", &all, &done);
    picture.polyline("line wait", &all);
    picture.polyline("line thick response", &done);
    if let [only] = done.as_slice() {
        picture.rect("bar", (LEFT, only.1), (RIGHT - LEFT, BOTTOM - only.1));
    }
    // On top, because it is thinner than the line that it is nearly always on.
    let mut names = Vec::new();
    if let Some(due) = due {
        picture.polyline("line dashed goal", &due);
        names.extend(due.last().map(|last| (last.1 + 4.0, "goal", "asked")));
    } else if let Some(asked) = asked {
        picture.line("line dashed goal", (LEFT, y.at(asked)), (RIGHT, y.at(asked)));
        names.push((y.at(asked) + 4.0, "goal", "asked"));
    }
    names.extend(done.last().map(|last| (last.1 + 4.0, "response", "completed")));
    picture.names(names);
}

fn errors(picture: &mut Picture, columns: &[RateColumn], x: &SecondsAxis) {
    let sum = |column: &RateColumn| column.wrong.iter().map(|(_, count)| count).sum::<u64>();
    let most = columns.iter().map(sum).max().unwrap_or(0);
    let y = CountAxis::of(most as f64, ERRORS_TOP, ERRORS_BOTTOM);
    y.draw(picture, "errors");
    let Some(first) = columns.first() else { return };
    let total = |kind: usize| columns.iter().map(|column| column.wrong[kind].1).sum::<u64>();
    // Only kinds that occur have a colour, so that no two of few have the same.
    let kinds: Vec<usize> = (0..first.wrong.len()).filter(|kind| total(*kind) > 0).collect();
    for column in columns {
        let (left, right) = (x.at(column.at_s), x.at(column.at_s + column.seconds));
        let mut below = 0_u64;
        for (colour, kind) in kinds.iter().enumerate() {
            let count = column.wrong[*kind].1;
            let (bottom, top) = (y.at(below as f64), y.at((below + count) as f64));
            picture.rect(
                &format!("e{}", colour % COLOURS),
                (left, top),
                ((right - left - 0.5).max(0.5), bottom - top),
            );
            below += count;
        }
    }
    let mut at = ERRORS_TOP + 4.0;
    for (colour, kind) in kinds.iter().enumerate() {
        picture.rect(&format!("e{}", colour % COLOURS), (RIGHT + 8.0, at - 8.0), (8.0, 8.0));
        picture.words("tick", (RIGHT + 20.0, at), Anchor::Start, &first.wrong[*kind].0);
        at += 13.0;
    }
}

fn words_of(column: &RateColumn, x: &SecondsAxis) -> (f64, f64, String) {
    let end = column.at_s + column.seconds;
    let rate = if column.seconds > 0.0 { column.completed as f64 / column.seconds } else { 0.0 };
    let mut words = format!("{:.1} to {end:.1} s: {}/s completed", column.at_s, number(rate));
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
