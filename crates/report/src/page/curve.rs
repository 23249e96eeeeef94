//! Picture 1, the percentile curve: how long which share of the requests took, to the last nine that is known.

use super::axis::{QuantileAxis, TimeAxis, Unit};
use super::svg::{LEFT, Picture};

/// Requests beyond a quantile from which on it is more than chance.
const ENOUGH: f64 = 10.0;

/// One line of the picture.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveLine {
    /// The name at the end of the line.
    pub name: String,
    /// Its class: whose time it is.
    pub class: &'static str,
    /// Its points: nines, that is -log10(1 - quantile), and microseconds, in order.
    pub points: Vec<(f64, f64)>,
    /// Number of requests, those without an answer among them.
    pub count: f64,
    /// Whether the line ends among requests without an answer.
    pub is_open: bool,
    /// How sure the line is: nines, and the ends in microseconds where both are known.
    pub band: Vec<(f64, f64, f64)>,
}

impl CurveLine {
    /// The nines up to which enough requests lie beyond each point.
    pub fn known_nines(&self) -> f64 {
        (self.count / ENOUGH).max(1.0).log10()
    }
}

/// Something that a run was held to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GoalMark {
    /// The quantile as nines.
    pub nines: f64,
    /// The limit in microseconds.
    pub limit_us: f64,
    /// Whether it was met.
    pub is_met: bool,
}

/// The interval of a quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Whisker {
    /// The quantile as nines.
    pub nines: f64,
    /// The lower end in microseconds.
    pub low_us: f64,
    /// The upper end in microseconds; `None` where it is not known.
    pub high_us: Option<f64>,
}

/// What is drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CurvePicture {
    /// The lines; the first is the thick one.
    pub lines: Vec<CurveLine>,
    /// What the run was held to.
    pub goals: Vec<GoalMark>,
    /// How sure quantiles of the first line are.
    pub whiskers: Vec<Whisker>,
    /// Whether times are partly the generator's own.
    pub is_doubtful: bool,
}

const TOP: f64 = 24.0;
const BOTTOM: f64 = 300.0;

/// The picture; `None` where no line has a point.
pub fn draw(name: &str, drawn: &CurvePicture, unit: Unit, title: &str) -> Option<String> {
    let times = drawn.lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let limits = drawn.goals.iter().map(|goal| goal.limit_us);
    let axis = TimeAxis::of(times.chain(limits), TOP, BOTTOM)?;
    let most = drawn.lines.iter().map(|line| line.count).fold(0.0, f64::max);
    let quantiles = QuantileAxis::of(most);
    let mut picture = Picture::new(BOTTOM + 30.0);
    axis.draw(&mut picture, unit);
    quantiles.draw(&mut picture, TOP, BOTTOM);
    if drawn.is_doubtful {
        picture.line("doubt", (LEFT - 1.0, TOP), (LEFT - 1.0, BOTTOM));
    }
    for line in &drawn.lines {
        let edge = |of: fn(&(f64, f64, f64)) -> f64| -> Vec<(f64, f64)> {
            line.band.iter().map(|point| (quantiles.at(point.0), axis.at(of(point)))).collect()
        };
        picture.area(&format!("band {}", line.class), &edge(|point| point.2), &edge(|point| point.1));
    }
    let mut names: Vec<(f64, &str, &str)> = Vec::new();
    for (number, line) in drawn.lines.iter().enumerate().rev() {
        draw_line(&mut picture, line, number == 0, &quantiles, &axis);
        if let Some((_, us)) = line.points.last() {
            names.push((axis.at(*us) + 4.0, line.class, &line.name));
        }
    }
    for whisker in &drawn.whiskers {
        let x = quantiles.at(whisker.nines);
        let high = whisker.high_us.map_or(TOP, |us| axis.at(us));
        picture.line("whisker", (x, axis.at(whisker.low_us)), (x, high));
    }
    for goal in &drawn.goals {
        let (x, y) = (quantiles.at(goal.nines), axis.at(goal.limit_us));
        let class = if goal.is_met { "goal" } else { "goal missed" };
        picture.line(class, (x - 12.0, y), (x + 12.0, y));
        picture.line(class, (x, y), (x, y + 9.0));
    }
    picture.names(names);
    picture.columns(TOP, BOTTOM, &columns_of(drawn, &quantiles, unit));
    let description = "Share of requests on the horizontal axis, each nine as wide as the next; time on a logarithmic vertical axis.";
    Some(picture.finish(name, title, description))
}

fn draw_line(picture: &mut Picture, line: &CurveLine, is_first: bool, x: &QuantileAxis, y: &TimeAxis) {
    let known = line.known_nines();
    let at = |point: &(f64, f64)| (x.at(point.0), y.at(point.1));
    let class = if is_first { format!("line thick {}", line.class) } else { format!("line {}", line.class) };
    let sure: Vec<(f64, f64)> = line.points.iter().filter(|point| point.0 <= known).map(at).collect();
    let rest: Vec<(f64, f64)> = line.points.iter().skip(sure.len().saturating_sub(1)).map(at).collect();
    picture.polyline(&class, &sure);
    picture.polyline(&format!("{class} dotted"), &rest);
    if let Some((end_x, end_y)) = line.points.last().map(at).filter(|_| line.is_open) {
        let (left, right, peak) = (end_x - 5.0, end_x + 5.0, end_y - 9.0);
        picture.polyline(&class, &[(left, end_y), (right, end_y), (end_x, peak), (left, end_y)]);
        picture.line(&format!("{class} dotted"), (end_x, peak), (end_x, TOP));
    }
}

/// What the lines say at each of some shares.
fn columns_of(drawn: &CurvePicture, axis: &QuantileAxis, unit: Unit) -> Vec<(f64, f64, String)> {
    axis.columns(|nines, share| {
        let said = drawn.lines.iter().filter_map(|line| {
            let us = line.points.iter().rev().find(|point| point.0 <= nines)?.1;
            let is_beyond = line.points.last().is_some_and(|last| last.0 + 0.2 < nines);
            let more = if is_beyond { "more than " } else { "" };
            Some(format!("{} {more}{}", line.name, unit.text(us)))
        });
        format!("{share} % within: {}", said.collect::<Vec<_>>().join(", "))
    })
}
