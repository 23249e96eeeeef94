//! Picture 8, the servers' own: what servers say of themselves while the run goes on, a row of panels for each.

use super::axis::{CountAxis, round_text};
use super::svg::{Anchor, LEFT, Picture, RIGHT};
use crate::numbers::number;

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
    /// The same figure as pummel saw it; empty where it sees none.
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

const COLUMNS: usize = 3;
const HEIGHT: f64 = 76.0;
const GAP: f64 = 44.0;
const ROW: f64 = HEIGHT + 30.0;
const HEADING: f64 = 22.0;

/// Height of a figure beside its line.
const FIGURE_HEIGHT: f64 = 11.0;

/// The picture over `length_s` seconds; `None` where no server tells anything.
pub fn draw(name: &str, servers: &[ServerPanels], length_s: f64, title: &str) -> Option<String> {
    let servers: Vec<&ServerPanels> =
        servers.iter().filter(|server| !server.figures.is_empty()).take(SERVERS_MAX).collect();
    if servers.is_empty() {
        return None;
    }
    let rows = |server: &ServerPanels| server.figures.len().div_ceil(COLUMNS);
    let height: f64 = servers.iter().map(|server| HEADING + ROW * rows(server) as f64).sum();
    let mut picture = Picture::new(height + 16.0);
    let width = (RIGHT + 70.0 - LEFT - GAP * (COLUMNS - 1) as f64) / COLUMNS as f64;
    let (mut top, mut said) = (0.0, Vec::new());
    for server in servers {
        picture.words("strong", (LEFT - 50.0, top + 14.0), Anchor::Start, &server.address);
        for (place, figure) in server.figures.iter().enumerate() {
            let left = LEFT + (place % COLUMNS) as f64 * (width + GAP);
            let above = top + HEADING + (place / COLUMNS) as f64 * ROW + 14.0;
            panel(&mut picture, figure, (left, above, width), length_s);
            said.push((left, width, (above, above + HEIGHT), words_of(server, figure)));
        }
        top += HEADING + ROW * rows(server) as f64;
    }
    picture.areas(&said);
    let description =
        "A row of panels for each server: figures that the server tells of itself over the time of the run.";
    Some(picture.finish(name, title, description))
}

fn panel(picture: &mut Picture, figure: &ServerFigure, (left, top, width): (f64, f64, f64), length_s: f64) {
    let bottom = top + HEIGHT - 14.0;
    let most = figure.points.iter().chain(&figure.ours).map(|point| point.1).fold(0.0, f64::max);
    // A limit far above the figure would press the figure flat.
    let limit = figure.limit.filter(|limit| *limit <= most * 4.0);
    let y = CountAxis::of(most.max(limit.unwrap_or(0.0)), top + 4.0, bottom);
    let x = |at_s: f64| left + (at_s / length_s.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0) * width;
    let line = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
        let each = points.len().div_ceil(POINTS_MAX).max(1);
        let mean = |chunk: &[(f64, f64)]| chunk.iter().map(|point| point.1).sum::<f64>() / chunk.len() as f64;
        points.chunks(each).map(|chunk| (x(chunk[0].0), y.at(mean(chunk)))).collect()
    };
    picture.words("tick strong", (left, top - 2.0), Anchor::Start, &figure.name);
    picture.line("axis", (left, bottom), (left + width, bottom));
    picture.line("grid", (left, y.at(most)), (left + width, y.at(most)));
    if most > 0.0 {
        picture.words("tick", (left - 4.0, y.at(most) + 4.0), Anchor::End, &short(most));
    }
    picture.words("tick", (left - 4.0, bottom + 1.0), Anchor::End, "0");
    if let Some(limit) = limit {
        picture.line("line dashed goal", (left, y.at(limit)), (left + width, y.at(limit)));
        if y.at(most) - y.at(limit) >= FIGURE_HEIGHT {
            picture.words("tick", (left - 4.0, y.at(limit) + 4.0), Anchor::End, &short(limit));
        }
    }
    let ours = line(&figure.ours);
    picture.polyline("line others", &ours);
    let own = line(&figure.points);
    picture.polyline("line response", &own);
    if let [only] = own.as_slice() {
        picture.dot("dot p50", *only, 2.5);
    }
    picture.words("tick", (left, bottom + 12.0), Anchor::Start, "0");
    picture.words("tick", (left + width, bottom + 12.0), Anchor::End, &format!("{} s", number(length_s)));
}

/// A figure with three digits, as an axis has it.
fn short(value: f64) -> String {
    let digits = 2 - value.abs().log10().floor().clamp(-6.0, 12.0) as i32;
    let scale = 10_f64.powi(digits);
    round_text((value * scale).round() / scale)
}

fn words_of(server: &ServerPanels, figure: &ServerFigure) -> String {
    let values = || figure.points.iter().map(|point| point.1);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let limit = figure.limit.map_or(String::new(), |limit| format!(", of {}", short(limit)));
    format!("{}: {} from {} to {}{limit}", server.address, figure.name, short(least), short(most))
}

#[cfg(test)]
mod tests {
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
        let near = draw("server", &[of(Some(2_000.0))], 2.0, "near").expect("a picture");
        let far = draw("server", &[of(Some(1e9))], 2.0, "far").expect("a picture");
        assert!(near.contains("dashed") && !far.contains("dashed"));
        assert!(far.contains("a:1: memory from 1,230 to 1,300, of 1G"), "{far}");
        assert_eq!(draw("server", &[ServerPanels::default()], 2.0, "none"), None);
    }
}
