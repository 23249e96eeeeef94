//! Picture 5: how response times grow with the rate, from the runs of a search or a scan.

use maud::Markup;

use super::axis::{SecondsAxis, TimeAxis, multiples, round_step, round_text, time, title_below};
use super::svg::{Anchor, LETTER, Layout, Picture, place};
use crate::numbers::{grouped, number};

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RatePoint {
    /// The rate that was asked for; `None` in closed loop.
    pub asked: Option<f64>,
    /// What a scan in closed loop changes, and how much of it the run had; `None` in other series.
    pub level: Option<(String, u32)>,
    /// 95 % intervals of the response times within the run, in microseconds, by the name of their quantile; no upper end
    /// where it is not known.
    pub intervals_us: Vec<(String, (f64, Option<f64>))>,
    /// Completed requests per second.
    pub rate: f64,
    /// Response times in microseconds by the name of their quantile; `None` where they are not known.
    pub response_us: Vec<(String, Option<f64>)>,
    /// Whether the goals were met; `None` without goals.
    pub is_met: Option<bool>,
    /// Whether requests were answered about as fast as they came.
    pub is_carried: bool,
    /// Whether the times are those of the server: lines break at other runs.
    pub is_trusted: bool,
}

/// Quantiles that are drawn, with their classes.
const DRAWN: [(&str, &str); 4] = [("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p99.9", "p999")];

/// What a run was held to, and what a search found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateMarks {
    /// Greatest response time that meets the goal, in microseconds.
    pub limits_us: Vec<f64>,
    /// The rate that was found.
    pub found: Option<f64>,
    /// The rates between which the limit lies; `None` where one of them is not known.
    pub between: Option<(f64, f64)>,
}

const TOP: f64 = 28.0;
const BOTTOM: f64 = 304.0;

/// The picture; `None` of fewer than two runs, and where no time is known.
pub fn draw(
    layout: Layout,
    name: &str,
    points: &[RatePoint],
    marks: &RateMarks,
    title: &str,
) -> Option<Markup> {
    if points.len() < 2 {
        return None;
    }
    let known = points.iter().flat_map(|point| {
        let ends =
            point.intervals_us.iter().flat_map(|(_, (low, high))| [Some(*low), *high].into_iter().flatten());
        point.response_us.iter().filter_map(|(_, us)| *us).chain(ends)
    });
    let y = TimeAxis::of(known.chain(marks.limits_us.iter().copied()), TOP, BOTTOM)?;
    let found = marks.found.into_iter().chain(marks.between.map(|(_, high)| high));
    let most = points.iter().map(|point| point.rate).chain(found).fold(0.0, f64::max);
    let x = RateScale(SecondsAxis::of(layout, most * 1.05));
    let mut picture = Picture::new(layout, BOTTOM + 36.0);
    y.draw(&mut picture, "time, logarithmic");
    x.draw(&mut picture, most * 1.05);
    if let Some((low, high)) = marks.between {
        picture.rect("between", (x.0.at(low), TOP), (x.0.at(high) - x.0.at(low), BOTTOM - TOP));
    }
    for limit in &marks.limits_us {
        picture.line("goal", (layout.left, y.at(*limit)), (layout.right, y.at(*limit)));
    }
    if let Some(found) = marks.found {
        picture.line("goal dashed", (x.0.at(found), TOP), (x.0.at(found), BOTTOM));
        let words = format!("found {}/s", grouped(found as u64));
        let has_room = x.0.at(found) - LETTER * words.len() as f64 > layout.left;
        let (aside, anchor) = if has_room { (-4.0, Anchor::End) } else { (4.0, Anchor::Start) };
        picture.words("name goal", (x.0.at(found) + aside, TOP + 10.0), anchor, &words);
    }
    for point in points.iter().filter(|point| point.asked.is_none() && point.level.is_none()) {
        picture.line("line dashed wait", (x.0.at(point.rate), TOP), (x.0.at(point.rate), BOTTOM));
        picture.words("tick", (x.0.at(point.rate) - 4.0, BOTTOM - 6.0), Anchor::End, "closed loop");
    }
    let mut sorted: Vec<&RatePoint> =
        points.iter().filter(|point| point.asked.is_some() || point.level.is_some()).collect();
    let place = |point: &RatePoint| {
        point.asked.unwrap_or_else(|| point.level.as_ref().map_or(0.0, |(_, level)| f64::from(*level)))
    };
    sorted.sort_by(|one, other| place(one).total_cmp(&place(other)));
    let ends = DRAWN.into_iter().filter_map(|drawn| draw_quantile(&mut picture, &sorted, drawn, &x, &y));
    let mut names: Vec<(f64, &str, &str)> = ends.collect();
    names.extend(marks.limits_us.iter().map(|limit| (y.at(*limit) + 4.0, "goal", "goal")));
    picture.names(names);
    let labelled = sorted.iter().filter_map(|point| Some((x.0.at(point.rate), point.level.as_ref()?.1)));
    let mut free = f64::NEG_INFINITY;
    for (at, level) in labelled {
        // A number is left out that would lie on the one before it.
        if (at - free).abs() >= 16.0 {
            picture.words("tick", (at, BOTTOM - 5.0), Anchor::Middle, &level.to_string());
            free = at;
        }
    }
    let said: Vec<(f64, f64, String)> =
        points.iter().map(|point| (x.0.at(point.rate) - 6.0, 12.0, words_of(point))).collect();
    picture.columns(TOP, BOTTOM, &said);
    let description = "Completed requests per second to the right, response time upwards.";
    Some(picture.finish(name, title, description))
}

fn draw_quantile(
    picture: &mut Picture,
    sorted: &[&RatePoint],
    (quantile, class): (&'static str, &'static str),
    x: &RateScale,
    y: &TimeAxis,
) -> Option<(f64, &'static str, &'static str)> {
    let known = |point: &RatePoint| point.response_us.iter().find(|(name, _)| name == quantile)?.1;
    let places: Vec<(&RatePoint, (f64, f64))> =
        sorted.iter().filter_map(|point| Some((*point, (x.0.at(point.rate), y.at(known(point)?))))).collect();
    // A line breaks at a point that is not trusted, since through it the line would claim a figure that is not known.
    for piece in places.split(|(point, _)| !point.is_trusted) {
        let line: Vec<(f64, f64)> = piece.iter().map(|(_, place)| *place).collect();
        picture.polyline(&format!("line {class}"), &line);
    }
    for (point, at) in &places {
        let interval = point.intervals_us.iter().find(|(name, _)| name == quantile);
        if let Some((_, (low, high))) = interval.filter(|_| point.is_trusted) {
            // Bars of quantiles stand beside each other, so that they do not cover each other.
            let place = DRAWN.iter().position(|(name, _)| *name == quantile).unwrap_or_default();
            let bar = at.0 + (place as f64 - 1.5) * 3.0;
            picture.interval(&format!("interval {class}"), (bar, y.at(*low)), high.map(|us| y.at(us)), TOP);
        }
        let class = if point.is_trusted { class.to_owned() } else { format!("{class} doubtful") };
        if !point.is_carried {
            let (left, right, top, bottom) = (at.0 - 4.0, at.0 + 4.0, at.1 - 4.0, at.1 + 4.0);
            let cross = format!(
                "M{} {}L{} {}M{} {}L{} {}",
                place(left),
                place(top),
                place(right),
                place(bottom),
                place(left),
                place(bottom),
                place(right),
                place(top)
            );
            picture.path(&format!("line {class}"), &cross);
        } else if point.is_met == Some(false) {
            picture.dot(&format!("hollow {class}"), *at, 4.0);
        } else {
            picture.dot(&format!("dot {class}"), *at, 4.0);
        }
    }
    places.last().map(|(_, last)| (last.1 + 4.0, class, quantile))
}

/// A linear axis of rates, to the right.
struct RateScale(SecondsAxis);

impl RateScale {
    fn draw(&self, picture: &mut Picture, most: f64) {
        let Layout { left, right, .. } = picture.layout;
        let ticks = picture.layout.fitting(6) as f64;
        for rate in multiples(round_step(most / ticks), 0.0, most) {
            let at = self.0.at(rate);
            picture.line("axis", (at, BOTTOM), (at, BOTTOM + 4.0));
            picture.words("tick", (at, BOTTOM + 17.0), Anchor::Middle, &round_text(rate));
        }
        picture.line("axis", (left, BOTTOM), (right, BOTTOM));
        title_below(picture, BOTTOM, "completed per second");
    }
}

fn words_of(point: &RatePoint) -> String {
    let asked = match (point.asked, &point.level) {
        (Some(asked), _) => format!("asked {}/s", number(asked)),
        (None, Some((what, level))) => format!("{level} {what}"),
        (None, None) => "closed loop".to_owned(),
    };
    let times = point.response_us.iter().map(|(name, us)| match us {
        Some(us) => format!("{name} {}", time(*us)),
        None => format!("{name} not known"),
    });
    let fate = match (point.is_carried, point.is_met) {
        (false, _) => ", not carried",
        (true, Some(true)) => ", goal met",
        (true, Some(false)) => ", goal missed",
        (true, None) => "",
    };
    format!("{asked}, completed {}/s: {}{fate}", number(point.rate), times.collect::<Vec<_>>().join(", "))
}
