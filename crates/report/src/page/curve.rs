//! Picture 1, the percentile curve: how long which share of the requests took, to the last nine that is known.

use maud::Markup;

use super::axis::{QuantileAxis, TimeAxis, round_time, time, title_below};
use super::svg::{Anchor, Layout, Picture};

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

const TOP: f64 = 28.0;
const BOTTOM: f64 = 304.0;

/// The picture; `None` where no line has a point.
pub fn draw(layout: Layout, name: &str, drawn: &CurvePicture, title: &str) -> Option<Markup> {
    let times = drawn.lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let ends = drawn.whiskers.iter().flat_map(|whisker| [Some(whisker.low_us), whisker.high_us]).flatten();
    let limits = drawn.goals.iter().map(|goal| goal.limit_us);
    let axis = TimeAxis::of(times.chain(limits).chain(ends), TOP, BOTTOM)?;
    let most = drawn.lines.iter().map(|line| line.count).fold(0.0, f64::max);
    let quantiles = QuantileAxis::of((layout.left, layout.right), most);
    let mut picture = Picture::new(layout, BOTTOM + 36.0);
    axis.draw(&mut picture, "time, logarithmic");
    quantiles.draw(&mut picture, TOP, BOTTOM);
    title_below(&mut picture, BOTTOM, "% of the requests within");
    if drawn.is_doubtful {
        picture.line("doubt", (layout.left - 1.0, TOP), (layout.left - 1.0, BOTTOM));
    }
    for line in &drawn.lines {
        let edge = |of: fn(&(f64, f64, f64)) -> f64| -> Vec<(f64, f64)> {
            line.band.iter().map(|point| (quantiles.at(point.0), axis.at(of(point)))).collect()
        };
        picture.area(&format!("band {}", line.class), &edge(|point| point.2), &edge(|point| point.1));
    }
    for whisker in &drawn.whiskers {
        let at = (quantiles.at(whisker.nines), axis.at(whisker.low_us));
        picture.interval("whisker", at, whisker.high_us.map(|us| axis.at(us)), TOP);
    }
    let mut names: Vec<(f64, &str, &str)> = Vec::new();
    // The first line is the thickest and lies below the others, which stay visible where they are on it.
    for (number, line) in drawn.lines.iter().enumerate() {
        draw_line(&mut picture, line, number == 0, &quantiles, &axis);
        if let Some((_, us)) = line.points.last() {
            names.push((axis.at(*us) + 4.0, line.class, &line.name));
        }
    }
    for goal in &drawn.goals {
        let (x, y) = (quantiles.at(goal.nines), axis.at(goal.limit_us));
        let class = if goal.is_met { "goal" } else { "goal missed" };
        picture.line(class, (x - 12.0, y), (x + 12.0, y));
        picture.line(class, (x, y), (x, y + 9.0));
        let words = format!("goal {}", time(goal.limit_us));
        picture.words(&format!("name {class}"), (x, y - 5.0), Anchor::Middle, &words);
    }
    picture.names(names);
    picture.columns(TOP, BOTTOM, &columns_of(&drawn.lines, &quantiles));
    let description = "Share of requests on the horizontal axis, each nine as wide as the next; time on a logarithmic vertical axis.";
    Some(picture.finish(name, title, description))
}

/// Height of a panel, and of a panel with what stands around it.
const PANEL: f64 = 110.0;
const PANEL_ROW: f64 = PANEL + 44.0;

/// Small pictures on equal axes, one for each line after the first, which is behind each of them; `None` where there is no other.
pub fn draw_panels(layout: Layout, name: &str, lines: &[CurveLine], title: &str) -> Option<Markup> {
    let (all, each) = lines.split_first().filter(|(_, each)| !each.is_empty())?;
    let columns = if layout.is_narrow() { 1 } else { 2 };
    let gap = layout.left + 24.0;
    let width = (layout.width - 16.0 - layout.left - gap * (columns - 1) as f64) / columns as f64;
    let mut picture = Picture::new(layout, PANEL_ROW * each.len().div_ceil(columns) as f64);
    let most = lines.iter().map(|line| line.count).fold(0.0, f64::max);
    let mut said = Vec::new();
    for (place, line) in each.iter().enumerate() {
        let left = layout.left + (place % columns) as f64 * (width + gap);
        let top = 22.0 + (place / columns) as f64 * PANEL_ROW;
        let times = lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
        let axis = TimeAxis::of(times, top, top + PANEL)?;
        let quantiles = QuantileAxis::of((left, left + width), most);
        quantiles.draw(&mut picture, top, top + PANEL);
        let (low, high) = axis.ends();
        for end in [low, high] {
            picture.words("tick", (left - 6.0, axis.at(end) + 4.0), Anchor::End, &round_time(end));
        }
        let behind = CurveLine { class: "others", ..all.clone() };
        draw_line(&mut picture, &behind, false, &quantiles, &axis);
        draw_line(&mut picture, line, true, &quantiles, &axis);
        picture.words("tick strong", (left, top - 6.0), Anchor::Start, &line.name);
        let pair = [line.clone(), all.clone()];
        let parts = columns_of(&pair, &quantiles).into_iter();
        said.extend(parts.map(|(x, width, words)| (x, width, (top, top + PANEL), words)));
    }
    picture.areas(&said);
    let description = "A panel for each operation on equal axes, as in the picture above; grey is the response of all requests.";
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
        picture.line(&format!("{class} dotted"), (end_x, peak), (end_x, y.top()));
    }
}

/// What the lines say at each of some shares.
fn columns_of(lines: &[CurveLine], axis: &QuantileAxis) -> Vec<(f64, f64, String)> {
    axis.columns(|nines, share| {
        let said = lines.iter().filter_map(|line| {
            let us = line.points.iter().rev().find(|point| point.0 <= nines)?.1;
            let is_beyond = line.points.last().is_some_and(|last| last.0 + 0.2 < nines);
            let more = if is_beyond { "more than " } else { "" };
            Some(format!("{} {more}{}", line.name, time(us)))
        });
        format!("{share} % within: {}", said.collect::<Vec<_>>().join(", "))
    })
}
