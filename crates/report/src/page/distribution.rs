//! Picture 10 on its switch: the distributions of several results, which show the body where the difference shows the tail.

use maud::Markup;

use super::axis::{TimeAcross, time, title_of};
use super::svg::{Anchor, Layout, Picture};

/// The distribution of one result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DistributionLine {
    /// The name at the end of the line.
    pub name: String,
    /// Its class.
    pub class: &'static str,
    /// Its points, in order: microseconds, and the share of the requests from 0 to 1 that took at most that long. Requests without an
    /// answer are in none of the shares.
    pub points: Vec<(f64, f64)>,
}

const TOP: f64 = 24.0;
const BOTTOM: f64 = 250.0;

/// Places at which the picture says its figures to the pointer.
const STEPS: u32 = 60;

/// The picture; `None` where no line has two points.
pub fn draw(layout: Layout, name: &str, lines: &[DistributionLine], title: &str) -> Option<Markup> {
    let lines: Vec<&DistributionLine> = lines.iter().filter(|line| line.points.len() > 1).collect();
    let x = TimeAcross::of(layout, lines.iter().flat_map(|line| line.points.iter().map(|point| point.0)))?;
    let y = |share: f64| BOTTOM - share.clamp(0.0, 1.0) * (BOTTOM - TOP);
    let mut picture = Picture::new(layout, BOTTOM + 30.0);
    x.draw(&mut picture, (TOP, BOTTOM));
    for tick in [0.0, 0.25, 0.5, 0.75, 1.0] {
        picture.line("grid", (layout.left, y(tick)), (layout.right, y(tick)));
        picture.words(
            "tick",
            (layout.left - 6.0, y(tick) + 4.0),
            Anchor::End,
            &format!("{:.0}", tick * 100.0),
        );
    }
    title_of(&mut picture, TOP, "% of the requests within");
    let mut names = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let points: Vec<(f64, f64)> = line.points.iter().map(|(us, share)| (x.at(*us), y(*share))).collect();
        let class =
            if number == 0 { format!("line thick {}", line.class) } else { format!("line {}", line.class) };
        picture.polyline(&class, &points);
        names.extend(points.last().map(|last| (last.1 + 4.0, line.class, line.name.as_str())));
    }
    picture.names(names);
    picture.columns(TOP, BOTTOM, &columns_of(layout, &lines, &x));
    let description = "Time on a logarithmic axis to the right, upwards the share of the requests that took at most that long.";
    Some(picture.finish(name, title, description))
}

/// The share of the requests of a line that took at most `us`, straight between its points; 0 before the first one.
fn share_at(line: &DistributionLine, us: f64) -> f64 {
    let Some(next) = line.points.iter().position(|point| point.0 > us) else {
        return line.points.last().map_or(0.0, |last| last.1);
    };
    let Some(before) = next.checked_sub(1).map(|place| line.points[place]) else { return 0.0 };
    let after = line.points[next];
    before.1 + (after.1 - before.1) * (us - before.0) / (after.0 - before.0)
}

/// What the lines say at each of some times.
fn columns_of(layout: Layout, lines: &[&DistributionLine], x: &TimeAcross) -> Vec<(f64, f64, String)> {
    let width = layout.across() / f64::from(STEPS);
    let column = |step: u32| {
        let us = x.time_at((f64::from(step) + 0.5) / f64::from(STEPS));
        let each: Vec<String> =
            lines.iter().map(|line| format!("{} {:.1} %", line.name, share_at(line, us) * 100.0)).collect();
        (layout.left + f64::from(step) * width, width, format!("within {}: {}", time(us), each.join(", ")))
    };
    (0..STEPS).map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::super::svg::WIDE;
    use super::*;

    fn line(points: &[(f64, f64)]) -> DistributionLine {
        DistributionLine { name: "A".to_owned(), class: "c1", points: points.to_vec() }
    }

    #[test]
    fn a_share_is_read_between_the_points_of_a_line() {
        let line = line(&[(10.0, 0.0), (20.0, 0.5), (40.0, 0.9)]);
        let read = [5.0, 10.0, 15.0, 30.0, 50.0].map(|us| (share_at(&line, us) * 100.0).round());
        assert_eq!(read, [0.0, 0.0, 25.0, 70.0, 90.0], "a tenth of the requests got no answer");
    }

    #[test]
    fn a_line_needs_two_points() {
        assert!(draw(WIDE, "cdf", &[line(&[(10.0, 0.5)])], "title").is_none());
        let drawn = draw(WIDE, "cdf", &[line(&[(10.0, 0.0), (1_000.0, 1.0)])], "title")
            .expect("a picture")
            .into_string();
        assert!(drawn.contains("class=\"line thick c1\"") && drawn.contains(">within "), "{drawn}");
        assert_eq!(drawn.matches("<title>").count(), STEPS as usize);
    }
}
