//! Picture 8, the servers' own: what servers say of themselves while the run goes on, a strip for each figure.

use maud::Markup;

use super::axis::{CountAxis, SecondsAxis, round_text};
use super::svg::{Anchor, Layout, Picture};

/// Servers that are drawn at most.
pub const SERVERS_MAX: usize = 8;

/// Points of a line at most.
const POINTS_MAX: usize = 120;

/// One figure of a server over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerFigure {
    /// What it is, with its unit.
    pub name: String,
    /// Its values: middle of the slice in seconds, and the figure.
    pub points: Vec<(f64, f64)>,
    /// The figure of the strip by pummel's own count; empty where it has none.
    pub ours: Vec<(f64, f64)>,
    /// The value that it cannot exceed; `None` where there is none.
    pub limit: Option<f64>,
}

/// One server with its figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerPanels {
    /// Address of the server.
    pub address: String,
    /// The figures that the server tells.
    pub figures: Vec<ServerFigure>,
}

/// Classes of the lines of servers, in order.
const CLASSES: [&str; SERVERS_MAX] = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];

const HEIGHT: f64 = 52.0;
const ROW: f64 = HEIGHT + 24.0;
const LEGEND_ROW: f64 = 16.0;

/// Height of a figure beside its line.
const FIGURE_HEIGHT: f64 = 11.0;

/// The picture over `length_s` seconds; `None` where no server tells anything. Its strips have the axis of the other pictures over
/// time, a strip for each figure, a line in it for each server.
pub fn draw(
    layout: Layout,
    name: &str,
    servers: &[ServerPanels],
    length_s: f64,
    title: &str,
) -> Option<Markup> {
    let told = servers.iter().filter(|server| !server.figures.is_empty()).take(SERVERS_MAX);
    let servers: Vec<(&ServerPanels, &str)> = told.zip(CLASSES).collect();
    let mut names: Vec<&str> = Vec::new();
    for figure in servers.iter().flat_map(|(server, _)| &server.figures) {
        if !names.contains(&figure.name.as_str()) {
            names.push(&figure.name);
        }
    }
    servers.first()?;
    let x = SecondsAxis::of(layout, length_s);
    let first = LEGEND_ROW * servers.len() as f64 + 26.0;
    let bottom = first + ROW * names.len() as f64 - (ROW - HEIGHT);
    let mut picture = Picture::new(layout, bottom + 30.0);
    for (place, (server, class)) in servers.iter().enumerate() {
        let y = LEGEND_ROW * place as f64 + 10.0;
        picture.line(&format!("line {class}"), (layout.left, y), (layout.left + 24.0, y));
        picture.words(
            &format!("name {class}"),
            (layout.left + 30.0, y + 4.0),
            Anchor::Start,
            &server.address,
        );
    }
    for (place, name) in names.iter().enumerate() {
        let top = first + ROW * place as f64;
        let figures: Vec<(&ServerFigure, &str)> = servers
            .iter()
            .filter_map(|(server, class)| {
                Some((server.figures.iter().find(|figure| figure.name == *name)?, *class))
            })
            .collect();
        strip(&mut picture, &figures, top, &x);
    }
    picture.over_time(x.length_s(), |picture| picture.columns(first, bottom, &said(&servers, &x)));
    x.draw(&mut picture, bottom);
    let description = "A strip for each figure that servers tell of themselves, over the time of the run; a line for each server.";
    Some(picture.finish(name, title, description))
}

/// One figure of all servers.
fn strip(picture: &mut Picture, figures: &[(&ServerFigure, &str)], top: f64, x: &SecondsAxis) {
    let bottom = top + HEIGHT;
    let Layout { left, right, .. } = picture.layout;
    let values = figures.iter().flat_map(|(figure, _)| figure.points.iter().chain(&figure.ours));
    let most = values.map(|point| point.1).fold(0.0, f64::max);
    // A limit far above the figure would press the figure flat.
    let limit = figures.iter().filter_map(|(figure, _)| figure.limit).reduce(f64::min);
    let limit = limit.filter(|limit| *limit <= most * 4.0);
    let y = CountAxis::of(most.max(limit.unwrap_or(0.0)), top, bottom);
    if let Some((first, _)) = figures.first() {
        picture.words("tick strong", (left, top - 5.0), Anchor::Start, &first.name);
    }
    picture.line("axis", (left, bottom), (right, bottom));
    picture.line("grid", (left, y.at(most)), (right, y.at(most)));
    picture.words("tick", (left - 4.0, bottom + 1.0), Anchor::End, "0");
    let mut marks = vec![most];
    marks.extend(limit.filter(|limit| y.at(most) - y.at(*limit) >= FIGURE_HEIGHT));
    for value in marks.into_iter().filter(|value| *value > 0.0) {
        picture.words("tick", (left - 4.0, y.at(value) + 4.0), Anchor::End, &short(value));
    }
    let line = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
        let each = points.len().div_ceil(POINTS_MAX).max(1);
        let mean = |chunk: &[(f64, f64)]| chunk.iter().map(|point| point.1).sum::<f64>() / chunk.len() as f64;
        points.chunks(each).map(|chunk| (x.at(chunk[0].0), y.at(mean(chunk)))).collect()
    };
    picture.over_time(x.length_s(), |picture| {
        if let Some(limit) = limit {
            picture.line("line dashed goal", (left, y.at(limit)), (right, y.at(limit)));
        }
        for (figure, class) in figures {
            picture.polyline("line others", &line(&figure.ours));
            let own = line(&figure.points);
            picture.polyline(&format!("line {class}"), &own);
            if let [only] = own.as_slice() {
                picture.dot(&format!("dot {class}"), *only, 2.5);
            }
        }
    });
}

/// A figure with three digits, as an axis has it.
fn short(value: f64) -> String {
    let digits = 2 - value.abs().log10().floor().clamp(-6.0, 12.0) as i32;
    let scale = 10_f64.powi(digits);
    round_text((value * scale).round() / scale)
}

/// What the servers tell at each of the moments that they told it.
fn said(servers: &[(&ServerPanels, &str)], x: &SecondsAxis) -> Vec<(f64, f64, String)> {
    let all = || servers.iter().flat_map(|(server, _)| &server.figures);
    let mut moments: Vec<f64> = all().flat_map(|figure| figure.points.iter().map(|point| point.0)).collect();
    moments.sort_by(f64::total_cmp);
    let each = moments.len().div_ceil(POINTS_MAX * all().count().max(1)).max(1);
    moments.dedup_by(|one, other| (*one - *other).abs() < 1e-3);
    let moments: Vec<f64> = moments.into_iter().step_by(each).collect();
    let width_s = x.length_s() / moments.len().max(1) as f64;
    let column = |at_s: f64| {
        let words = servers.iter().map(|(server, _)| {
            let figures = server.figures.iter().filter_map(|figure| {
                let (_, value) = figure.points.iter().find(|point| (point.0 - at_s).abs() < width_s)?;
                let limit = figure.limit.map_or(String::new(), |limit| format!(" of {}", short(limit)));
                Some(format!("{} {}{limit}", figure.name, short(*value)))
            });
            format!("{}: {}", server.address, figures.collect::<Vec<_>>().join("; "))
        });
        let words = format!("{at_s:.1} s, {}", words.collect::<Vec<_>>().join(" | "));
        let (left, right) = (x.at(at_s - width_s / 2.0), x.at(at_s + width_s / 2.0));
        (left, right - left, words)
    };
    moments.into_iter().map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::super::svg::WIDE;
    use super::*;

    #[test]
    fn every_figure_has_a_panel_and_a_far_limit_is_left_out() {
        let figure = |limit: Option<f64>| ServerFigure {
            name: "memory".to_owned(),
            points: vec![(0.5, 1_234.0), (1.5, 1_300.0)],
            ours: Vec::new(),
            limit,
        };
        let of = |limit| ServerPanels { address: "a:1".to_owned(), figures: vec![figure(limit)] };
        let near = draw(WIDE, "server", &[of(Some(2_000.0))], 2.0, "near").expect("a picture").into_string();
        let far = draw(WIDE, "server", &[of(Some(1e9))], 2.0, "far").expect("a picture").into_string();
        assert!(near.contains("dashed") && !far.contains("dashed"));
        assert!(far.contains("0.5 s, a:1: memory 1,230 of 1G"), "{far}");
        assert!(draw(WIDE, "server", &[ServerPanels::default()], 2.0, "none").is_none());
    }
}
