//! Picture 2, the heat map: how long requests took while the run went on, with those that got no answer on top.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use maud::Markup;
use pummel_measure::histogram::Sketch;

use super::axis::{SecondsAxis, TimeAxis, time, together};
use super::svg::{Anchor, Layout, Picture, place};
use crate::numbers::grouped;

/// Steps of ink.
const STEPS: usize = 10;

/// Columns of a picture at most; more slices share columns.
pub const COLUMNS_MAX: usize = 240;

/// One slice of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatColumn {
    /// Beginning, in seconds.
    pub at_s: f64,
    /// Length, in seconds.
    pub seconds: f64,
    /// The times of the requests.
    pub sketch: Sketch,
    /// Requests without an answer.
    pub unanswered: u64,
}

/// Puts neighbours together until there are at most `most` columns.
pub fn merged(columns: &[HeatColumn], most: usize) -> Vec<HeatColumn> {
    together(columns, most, |all, more| {
        all.sketch.merge(&more.sketch);
        all.unanswered += more.unanswered;
        all.seconds = more.at_s + more.seconds - all.at_s;
    })
}

const TOP: f64 = 40.0;
const BOTTOM: f64 = 280.0;
const STRIP: f64 = 10.0;

/// The picture; `None` where no column has an answer.
pub fn draw(
    layout: Layout,
    name: &str,
    columns: &[HeatColumn],
    length_s: f64,
    title: &str,
) -> Option<Markup> {
    let columns = merged(columns, layout.columns(COLUMNS_MAX));
    let cells = || columns.iter().flat_map(|column| column.sketch.cells());
    let ends = cells().flat_map(|(low, high, _)| [low as f64 / 1e3, high as f64 / 1e3]);
    let axis = TimeAxis::of(ends, TOP, BOTTOM)?;
    let x = SecondsAxis::of(layout, length_s);
    let mut picture = Picture::new(layout, BOTTOM + 50.0);
    axis.draw(&mut picture, "time, logarithmic");
    let mut names = Vec::new();
    picture.over_time(x.length_s(), |picture| {
        let mut ink = BTreeMap::new();
        for column in &columns {
            ink_column(&mut ink, column, &x, &axis);
        }
        for ((step, tenths), Ink { drawing, .. }) in &ink {
            picture.broad_path(&format!("ink i{step}"), *tenths as f64 / 10.0, drawing);
        }
        for column in columns.iter().filter(|column| column.unanswered > 0) {
            let (left, right) = (x.at(column.at_s), x.at(column.at_s + column.seconds));
            picture.rect("unanswered", (left, TOP - STRIP - 4.0), ((right - left).max(0.8), STRIP));
        }
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
            let points: Vec<Option<(f64, f64)>> =
                columns.iter().map(|column| point_of(column, quantile, &x, &axis)).collect();
            // A line over a slice without a time would claim one.
            for piece in points.split(Option::is_none) {
                let line: Vec<(f64, f64)> = piece.iter().copied().flatten().collect();
                if let [only] = line.as_slice() {
                    picture.dot(&format!("dot {name}"), *only, 3.0);
                }
                picture.polyline(&format!("line {name}"), &line);
            }
            names.extend(points.iter().flatten().last().map(|last| (last.1 + 4.0, name, name)));
        }
        let said: Vec<(f64, f64, String)> = columns.iter().map(|column| words_of(column, &x)).collect();
        picture.columns(TOP - STRIP - 4.0, BOTTOM, &said);
    });
    let unanswered: u64 = columns.iter().map(|column| column.unanswered).sum();
    if unanswered > 0 {
        let words = format!("{} without an answer", grouped(unanswered));
        picture.words("tick", (layout.right, TOP - STRIP - 9.0), Anchor::End, &words);
    }
    picture.names(names);
    x.draw(&mut picture, BOTTOM);
    scale(&mut picture);
    let description = "Time since the start to the right, response time upwards, stronger in colour where more requests of a slice lie.";
    Some(picture.finish(name, title, description))
}

/// Draws the steps of ink with the shares that they stand for, below the picture.
fn scale(picture: &mut Picture) {
    const STEP: f64 = 13.0;
    let (left, top) = (picture.layout.left, BOTTOM + 28.0);
    for step in 1..=STEPS {
        picture.rect(&format!("inked i{step}"), (left + (step - 1) as f64 * STEP, top), (STEP, 9.0));
    }
    let words = if picture.layout.is_narrow() { "of an interval" } else { "of the requests of an interval" };
    picture.words("tick", (left - 6.0, top + 9.0), Anchor::End, "0.01 %");
    let end = left + STEPS as f64 * STEP + 6.0;
    picture.words("tick", (end, top + 9.0), Anchor::Start, &format!("100 % {words}"));
}

/// The upright lines of one step of ink and one width, each as broad as a column, which take fewer bytes than rectangles.
#[derive(Default)]
struct Ink {
    drawing: String,
    /// The end of the last line, in tenths.
    pen: (i64, i64),
}

impl Ink {
    /// Adds a line from `top` to `bottom`, all in tenths, as seen from the end of the last one.
    fn add(&mut self, x: i64, (top, bottom): (i64, i64)) {
        let begin = if self.drawing.is_empty() { "M" } else { "m" };
        let [dx, dy, height] =
            [x - self.pen.0, top - self.pen.1, bottom - top].map(|it| place(it as f64 / 10.0));
        let blank = if dy.starts_with('-') { "" } else { " " };
        write!(self.drawing, "{begin}{dx}{blank}{dy}v{height}").expect("a string takes everything");
        self.pen = (x, bottom);
    }
}

/// Adds the cells of a column to the lines of their steps of ink and of the column's width in tenths. Neighbours whose common
/// edge lies on the grid of tenths neither overlap nor leave a gap.
fn ink_column(ink: &mut BTreeMap<(usize, i64), Ink>, column: &HeatColumn, x: &SecondsAxis, y: &TimeAxis) {
    let tenths = |value: f64| (value * 10.0).round() as i64;
    let total = (column.sketch.count() + column.unanswered) as f64;
    let (left, right) = (tenths(x.at(column.at_s)), tenths(x.at(column.at_s + column.seconds)));
    let width = (right - left).max(8);
    let mut cells: Vec<(usize, (i64, i64))> = Vec::new();
    for (low, high, count) in column.sketch.cells() {
        // Ink is the logarithm of the share: a thousandth of the column is to be seen.
        let share = (count as f64 / total).max(1e-4);
        let step = ((share.log10() + 4.0) / 4.0 * STEPS as f64).ceil().clamp(1.0, STEPS as f64) as usize;
        let (top, bottom) = (tenths(y.at(high as f64 / 1e3)), tenths(y.at(low as f64 / 1e3)));
        match cells.last_mut() {
            Some((last, ends)) if *last == step && ends.0 == bottom => ends.0 = top,
            _ => cells.push((step, (top, bottom.max(top + 8)))),
        }
    }
    for (step, ends) in cells {
        ink.entry((step, width)).or_default().add(left + width / 2, ends);
    }
}

fn point_of(column: &HeatColumn, quantile: f64, x: &SecondsAxis, y: &TimeAxis) -> Option<(f64, f64)> {
    let ns = column.sketch.quantile(quantile, column.unanswered)?;
    Some((x.at(column.at_s + column.seconds / 2.0), y.at(ns as f64 / 1e3)))
}

fn words_of(column: &HeatColumn, x: &SecondsAxis) -> (f64, f64, String) {
    let at = |quantile| {
        let ns = column.sketch.quantile(quantile, column.unanswered);
        ns.map_or("not known".to_owned(), |ns| format!("about {}", time(ns as f64 / 1e3)))
    };
    let answered = column.sketch.count();
    let end = column.at_s + column.seconds;
    let mut words = format!("{:.1} to {end:.1} s: {} answered", column.at_s, grouped(answered));
    if answered > 0 {
        words += &format!(", p50 {}, p99 {}, longest {}", at(0.5), at(0.99), at(1.0));
    }
    if column.unanswered > 0 {
        words += &format!(", {} without an answer", grouped(column.unanswered));
    }
    let (left, right) = (x.at(column.at_s), x.at(end));
    (left, right - left, words)
}

#[cfg(test)]
mod tests {
    use super::super::svg::WIDE;
    use super::*;
    use pummel_measure::histogram::Histogram;

    /// A slice of one second whose requests took a millisecond.
    fn column(at_s: f64, answered: u64) -> HeatColumn {
        let mut histogram = Histogram::new();
        (0..answered).for_each(|_| histogram.record(1_000_000));
        let mut sketch = Sketch::default();
        sketch.add(&histogram);
        HeatColumn { at_s, seconds: 1.0, sketch, unanswered: 0 }
    }

    #[test]
    fn no_line_is_drawn_over_a_slice_in_which_nothing_was_answered() {
        let columns = [column(0.0, 10), column(1.0, 10), column(2.0, 0), column(3.0, 10)];
        let drawn = draw(WIDE, "heat", &columns, 4.0, "title").expect("a picture").into_string();
        for name in ["p50", "p99"] {
            assert_eq!(drawn.matches(&format!("class=\"line {name}\"")).count(), 1, "{drawn}");
            assert_eq!(drawn.matches(&format!("class=\"dot {name}\"")).count(), 1, "{drawn}");
        }
    }
}
