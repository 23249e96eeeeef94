//! Picture 10, the difference: by how much other results take longer than the first, for each share of the requests.

use std::f64::consts::LOG10_2;

use maud::Markup;

use super::axis::{QuantileAxis, title_below, title_of};
use super::change::{ChangeScale, change_text};
use super::curve::CurveLine;
use super::svg::{Anchor, Layout, Picture, WIDE};

/// The differences of one result from the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DifferenceLine {
    /// The name at the end of the line.
    pub name: String,
    /// Its class.
    pub class: &'static str,
    /// Its points: nines, that is -log10(1 - quantile), and the difference as a share of the first result: 0.1 for 10 % more.
    pub points: Vec<(f64, f64)>,
    /// The nines up to which enough requests lie beyond each point.
    pub known_nines: f64,
    /// How sure the line is: nines, and the ends as shares.
    pub band: Vec<(f64, f64, f64)>,
}

const TOP: f64 = 28.0;
const BOTTOM: f64 = 254.0;

impl DifferenceLine {
    /// The difference of a line from the first one, at the points of the line where both are known. The band reaches between
    /// the outer ends of both.
    pub fn of(first: &CurveLine, other: &CurveLine) -> DifferenceLine {
        let points =
            other.points.iter().filter_map(|(nines, us)| Some((*nines, us / at(first, *nines)? - 1.0)));
        let band = other.band.iter().filter_map(|(nines, low, high)| {
            let (_, from, to) = first.band.iter().find(|own| (own.0 - nines).abs() < 1e-6)?;
            (*from > 0.0 && *to > 0.0).then(|| (*nines, low / to - 1.0, high / from - 1.0))
        });
        DifferenceLine {
            name: other.name.clone(),
            class: other.class,
            points: points.collect(),
            known_nines: first.known_nines().min(other.known_nines()),
            band: band.collect(),
        }
    }
}

/// The time of a line at a place between its points, on a logarithmic scale; `None` outside of them.
pub fn at(line: &CurveLine, nines: f64) -> Option<f64> {
    let next = line.points.iter().position(|point| point.0 >= nines - 1e-9)?;
    let (right, high) = line.points[next];
    if right - nines < 1e-9 {
        return Some(high);
    }
    let (left, low) = *line.points.get(next.checked_sub(1)?)?;
    let share = (nines - left) / (right - left);
    Some((low.ln() * (1.0 - share) + high.ln() * share).exp())
}

/// The scale of the shares that are sure.
fn scale_of(lines: &[DifferenceLine]) -> ChangeScale {
    ChangeScale::of(lines.iter().flat_map(|line| {
        // The fastest requests may differ by many times, and would press all others flat.
        let is_sure = move |nines: f64| nines >= LOG10_2 && nines <= line.known_nines;
        let points = line.points.iter().filter(move |point| is_sure(point.0)).map(|point| point.1);
        let ends = line.band.iter().filter(move |point| is_sure(point.0));
        points.chain(ends.flat_map(|(_, low, high)| [*low, *high]))
    }))
}

/// The pieces of a line that lie between the ends of an axis; where the line leaves the axis, a piece ends at its edge.
fn inside((low, high): (f64, f64), points: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut is_open = false;
    for pair in points.windows(2) {
        let [from, to] = [pair[0], pair[1]];
        let rise = to.1 - from.1;
        // The part of the way from one point to the next that lies between both edges.
        let (enters, leaves) = match rise {
            0.0 if (low..=high).contains(&from.1) => (0.0, 1.0),
            0.0 => (1.0, 0.0),
            rise => {
                let [one, other] = [low, high].map(|edge| (edge - from.1) / rise);
                (one.min(other).max(0.0), one.max(other).min(1.0))
            }
        };
        if enters >= leaves || !rise.is_finite() {
            is_open = false;
            continue;
        }
        let at = |part: f64| (from.0 + (to.0 - from.0) * part, from.1 + rise * part);
        if !is_open {
            pieces.push(vec![at(enters)]);
        }
        pieces.last_mut().expect("a piece was begun").push(at(leaves));
        is_open = leaves >= 1.0;
    }
    pieces
}

fn axis_of(layout: Layout, lines: &[DifferenceLine]) -> QuantileAxis {
    let last = lines.iter().filter_map(|line| Some(line.points.last()?.0)).fold(1.0, f64::max);
    QuantileAxis::of((layout.left, layout.right), 10_f64.powf(last))
}

/// The nines from which on the picture is grey: beyond them no line has enough requests. `None` where the picture has no grey part.
pub fn grey_from(lines: &[DifferenceLine]) -> Option<f64> {
    let lines: Vec<DifferenceLine> = lines.iter().filter(|line| line.points.len() > 1).cloned().collect();
    let known = lines.iter().map(|line| line.known_nines).fold(0.0, f64::max);
    (known < axis_of(WIDE, &lines).nines()).then_some(known)
}

/// The picture; `None` where no line has two points.
pub fn draw(layout: Layout, name: &str, lines: &[DifferenceLine], title: &str) -> Option<Markup> {
    let lines: Vec<DifferenceLine> = lines.iter().filter(|line| line.points.len() > 1).cloned().collect();
    if lines.is_empty() {
        return None;
    }
    let Layout { left, right, .. } = layout;
    let x = axis_of(layout, &lines);
    let scale = scale_of(&lines);
    let y = |share: f64| BOTTOM - scale.at(share) * (BOTTOM - TOP);
    let mut picture = Picture::new(layout, BOTTOM + 36.0);
    x.draw(&mut picture, TOP, BOTTOM);
    title_below(&mut picture, BOTTOM, "% of the requests within");
    for (share, words) in scale.ticks(6.0) {
        picture.line(if share == 0.0 { "axis" } else { "grid" }, (left, y(share)), (right, y(share)));
        picture.words("tick", (left - 6.0, y(share) + 4.0), Anchor::End, &words);
    }
    title_of(&mut picture, TOP, scale.title());
    if let Some(known) = grey_from(&lines) {
        let from = x.at(known);
        picture.rect("undefined", (from, TOP), (right - from, BOTTOM - TOP));
    }
    for line in &lines {
        let edge = |of: fn(&(f64, f64, f64)) -> f64| -> Vec<(f64, f64)> {
            line.band.iter().map(|point| (x.at(point.0), y(of(point)))).collect()
        };
        picture.area(&format!("band {}", line.class), &edge(|point| point.2), &edge(|point| point.1));
    }
    for line in &lines {
        draw_line(&mut picture, line, &x, &scale);
    }
    let ends = lines
        .iter()
        .filter_map(|line| Some((y(line.points.last()?.1) + 4.0, line.class, line.name.as_str())));
    picture.names(ends.collect());
    picture.columns(TOP, BOTTOM, &columns_of(&lines, &x));
    let description = "Share of requests on the horizontal axis, each nine as wide as the next; upwards by how much longer the response took than \
                       that of the first result.";
    Some(picture.finish(name, title, description))
}

fn draw_line(picture: &mut Picture, line: &DifferenceLine, x: &QuantileAxis, scale: &ChangeScale) {
    let (low, high) = scale.ends;
    let at = |point: &(f64, f64)| (x.at(point.0), BOTTOM - (point.1 - low) / (high - low) * (BOTTOM - TOP));
    let points: Vec<(f64, f64)> =
        line.points.iter().map(|(nines, share)| (*nines, scale.value(*share))).collect();
    let sure = points.iter().filter(|point| point.0 <= line.known_nines).count();
    let (first, rest) = (&points[..sure], &points[sure.saturating_sub(1)..]);
    for (class, points) in
        [(format!("line thick {}", line.class), first), (format!("line {} dotted", line.class), rest)]
    {
        for piece in inside(scale.ends, points) {
            picture.polyline(&class, &piece.iter().map(at).collect::<Vec<_>>());
        }
    }
}

/// What the lines say at each of some shares.
fn columns_of(lines: &[DifferenceLine], axis: &QuantileAxis) -> Vec<(f64, f64, String)> {
    axis.columns(|nines, share| {
        let said = lines.iter().filter_map(|line| {
            let difference = line.points.iter().rev().find(|point| point.0 <= nines)?.1;
            Some(format!("{} {}", line.name, change_text(difference)))
        });
        format!("{share} % of the requests: {}", said.collect::<Vec<_>>().join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, points: &[(f64, f64)]) -> CurveLine {
        CurveLine {
            name: name.to_owned(),
            class: "c1",
            points: points.to_vec(),
            count: 1e4,
            is_open: false,
            band: points.iter().map(|(nines, us)| (*nines, us * 0.9, us * 1.1)).collect(),
        }
    }

    #[test]
    fn a_difference_is_taken_where_both_lines_are() {
        let first = line("A", &[(0.0, 10.0), (1.0, 100.0), (2.0, 1_000.0)]);
        let other = line("B", &[(0.0, 20.0), (0.5, 31.622_776_6), (2.0, 500.0), (3.0, 900.0)]);
        let difference = DifferenceLine::of(&first, &other);
        let rounded: Vec<(f64, f64)> =
            difference.points.iter().map(|(nines, share)| (*nines, (share * 1e6).round() / 1e6)).collect();
        assert_eq!(rounded, [(0.0, 1.0), (0.5, 0.0), (2.0, -0.5)]);
        let (_, low, high) = difference.band[1];
        assert!((low - (450.0 / 1_100.0 - 1.0)).abs() < 1e-9 && (high - (550.0 / 900.0 - 1.0)).abs() < 1e-9);
        assert_eq!(difference.known_nines, 3.0);
    }

    #[test]
    fn a_line_is_drawn_only_where_the_axis_has_it() {
        let axis = (-0.5, 0.5);
        let pieces = inside(axis, &[(0.0, -1.5), (1.0, 0.5), (2.0, 0.5), (3.0, 1.5), (4.0, 0.0)]);
        let first = vec![(0.5, -0.5), (1.0, 0.5), (2.0, 0.5)];
        let second = vec![(3.0 + 2.0 / 3.0, 0.5), (4.0, 0.0)];
        assert_eq!(pieces.len(), 2, "{pieces:?}");
        assert_eq!(pieces[0], first);
        let is_near = |(one, other): (&(f64, f64), &(f64, f64))| {
            (one.0 - other.0).abs() < 1e-9 && (one.1 - other.1).abs() < 1e-9
        };
        assert!(pieces[1].len() == 2 && pieces[1].iter().zip(&second).all(is_near), "{pieces:?}");
        assert!(inside(axis, &[(0.0, -0.9), (1.0, -0.9), (2.0, -0.6)]).is_empty(), "all of it is below");
        assert_eq!(inside(axis, &[(0.0, 0.0), (1.0, 0.0)]), [vec![(0.0, 0.0), (1.0, 0.0)]]);
    }

    #[test]
    fn a_picture_is_grey_only_beyond_what_is_known() {
        let difference = |known_nines: f64| DifferenceLine {
            points: vec![(0.0, 0.1), (3.0, 0.1)],
            known_nines,
            ..DifferenceLine::default()
        };
        assert_eq!(grey_from(&[difference(2.0)]), Some(2.0));
        assert_eq!(grey_from(&[difference(2.0), difference(9.0)]), None);
        let drawn = |known: f64| {
            draw(WIDE, "difference", &[difference(known)], "title").expect("a picture").into_string()
        };
        assert!(drawn(2.0).contains("class=\"undefined\"") && !drawn(9.0).contains("class=\"undefined\""));
    }

    #[test]
    fn equal_lines_lie_on_the_axis_and_one_point_is_no_picture() {
        let one = line("A", &[(0.0, 10.0), (1.0, 20.0)]);
        let drawn = draw(WIDE, "difference", &[DifferenceLine::of(&one, &one)], "equal")
            .expect("a picture")
            .into_string();
        assert!(drawn.contains(">+10<") && drawn.contains(">-10<"), "{drawn}");
        let point = line("B", &[(0.0, 10.0)]);
        assert!(draw(WIDE, "difference", &[DifferenceLine::of(&one, &point)], "one").is_none());
    }
}
