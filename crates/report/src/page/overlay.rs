//! Rates of several results over one another, each from its own start.

use maud::Markup;

use super::axis::{CountAxis, SecondsAxis};
use super::heat::COLUMNS_MAX;
use super::rate::{RateColumn, merged};
use super::svg::{Anchor, Layout, Picture};
use crate::numbers::number;

/// The rate of one result over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateLine {
    /// The name at the end of the line.
    pub name: String,
    /// Its class.
    pub class: &'static str,
    /// Its slices.
    pub columns: Vec<RateColumn>,
}

const TOP: f64 = 24.0;
const BOTTOM: f64 = 190.0;
const ERRORS_HEIGHT: f64 = 14.0;

/// Height of the words above the strips of errors.
const CAPTION_HEIGHT: f64 = 18.0;

/// The picture; `None` where no line has a slice. Below the rates is a strip for each result in which requests went wrong.
pub fn draw(layout: Layout, name: &str, lines: &[RateLine], title: &str) -> Option<Markup> {
    let columns_max = layout.columns(COLUMNS_MAX);
    let lines: Vec<RateLine> = lines
        .iter()
        .map(|line| RateLine { columns: merged(&line.columns, columns_max), ..line.clone() })
        .filter(|line| !line.columns.is_empty())
        .collect();
    let end = |column: &RateColumn| column.at_s + column.seconds;
    let length_s = lines.iter().filter_map(|line| line.columns.last().map(end)).reduce(f64::max)?;
    let most = lines.iter().flat_map(|line| line.columns.iter().map(per_second)).fold(0.0, f64::max);
    let faulty: Vec<&RateLine> =
        lines.iter().filter(|line| line.columns.iter().any(|column| wrong(column) > 0)).collect();
    let strips = if faulty.is_empty() { BOTTOM } else { BOTTOM + CAPTION_HEIGHT };
    let bottom = strips + ERRORS_HEIGHT * faulty.len() as f64;
    let (x, y) = (SecondsAxis::of(layout, length_s), CountAxis::of(most, TOP, BOTTOM));
    let mut picture = Picture::new(layout, bottom + 30.0);
    y.draw(&mut picture, "completed per second");
    if !faulty.is_empty() {
        picture.words("tick", (layout.left, strips - 3.0), Anchor::Start, "Errors, no answer:");
    }
    for (number, line) in faulty.iter().enumerate() {
        let top = strips + ERRORS_HEIGHT * number as f64 + 3.0;
        picture.words("tick", (layout.left - 6.0, top + 9.0), Anchor::End, &line.name);
    }
    let mut ends = Vec::new();
    picture.over_time(x.length_s(), |picture| {
        for (number, line) in lines.iter().enumerate() {
            let at =
                |column: &RateColumn| (x.at(column.at_s + column.seconds / 2.0), y.at(per_second(column)));
            let points: Vec<(f64, f64)> = line.columns.iter().map(at).collect();
            let thick = if number == 0 { "thick " } else { "" };
            let class = format!("line {thick}{}", line.class);
            if let ([only], [column]) = (points.as_slice(), line.columns.as_slice()) {
                picture.line(&class, (x.at(column.at_s), only.1), (x.at(end(column)), only.1));
            }
            picture.polyline(&class, &points);
            ends.extend(points.last().map(|last| (last.1 + 4.0, line.class, line.name.as_str())));
        }
        for (number, line) in faulty.iter().enumerate() {
            let top = strips + ERRORS_HEIGHT * number as f64 + 3.0;
            for column in line.columns.iter().filter(|column| wrong(column) > 0) {
                let (left, right) = (x.at(column.at_s), x.at(end(column)));
                picture.rect("e0", (left, top), ((right - left).max(0.8), ERRORS_HEIGHT - 5.0));
            }
        }
        picture.columns(TOP, bottom, &said(&lines, length_s, &x));
    });
    x.draw(&mut picture, bottom);
    picture.names(ends);
    let description =
        "Time since the start of each result to the right, completed requests per second upwards.";
    Some(picture.finish(name, title, description))
}

fn per_second(column: &RateColumn) -> f64 {
    column.per_second(column.completed)
}

fn wrong(column: &RateColumn) -> u64 {
    column.wrong.iter().map(|(_, count)| count).sum()
}

/// What the lines say at each of some moments.
fn said(lines: &[RateLine], length_s: f64, x: &SecondsAxis) -> Vec<(f64, f64, String)> {
    let steps = lines.iter().map(|line| line.columns.len()).max().unwrap_or(1).clamp(1, COLUMNS_MAX);
    let width_s = length_s / steps as f64;
    let column = |step: usize| {
        let at_s = (step as f64 + 0.5) * width_s;
        let each = lines.iter().filter_map(|line| {
            let column = line
                .columns
                .iter()
                .find(|column| (column.at_s..column.at_s + column.seconds).contains(&at_s))?;
            Some(format!("{} {}/s", line.name, number(per_second(column))))
        });
        let words = format!("{at_s:.1} s: {}", each.collect::<Vec<_>>().join(", "));
        (x.at(at_s - width_s / 2.0), x.at(at_s + width_s / 2.0) - x.at(at_s - width_s / 2.0), words)
    };
    (0..steps).map(column).collect()
}
