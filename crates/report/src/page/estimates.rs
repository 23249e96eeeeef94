//! The estimated changes of two sides, a row for each figure: what the pairs or the runs say, with their intervals.

use maud::Markup;

use super::change::{ChangeScale, interval_text};
use super::svg::{Anchor, Layout, Picture};

/// The change of one figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The name of the figure.
    pub name: String,
    /// The change as a share of the first side: 0.1 for 10 % more.
    pub change: f64,
    /// The change in words, as the table has it.
    pub words: String,
    /// The 95 % interval of the change; `None` where there is none.
    pub interval: Option<(f64, f64)>,
    /// Whether the figure is judged.
    pub is_judged: bool,
}

const TOP: f64 = 12.0;
const ROW: f64 = 24.0;

/// The picture; `None` where there is no estimate.
pub fn draw(layout: Layout, name: &str, estimates: &[Estimate], title: &str) -> Option<Markup> {
    if estimates.is_empty() {
        return None;
    }
    let ends = estimates.iter().flat_map(|estimate| {
        let (low, high) = estimate.interval.unwrap_or((estimate.change, estimate.change));
        [estimate.change, low, high]
    });
    let scale = ChangeScale::of(ends);
    let bottom = TOP + ROW * estimates.len() as f64;
    let (left, right) = (layout.left + 36.0, layout.right);
    let x = |share: f64| left + scale.at(share) * (right - left);
    let mut picture = Picture::new(layout, bottom + 40.0);
    scale.draw(&mut picture, (left, right), (TOP - 6.0, bottom));
    let mut said = Vec::new();
    for (row, estimate) in estimates.iter().enumerate() {
        let y = TOP + ROW * (row as f64 + 0.5);
        let class = if estimate.is_judged { "tick strong" } else { "tick" };
        picture.words(class, (left - 8.0, y + 4.0), Anchor::End, &estimate.name);
        if let Some((low, high)) = estimate.interval {
            picture.line("interval c1", (x(low), y), (x(high), y));
        }
        let dot = if estimate.interval.is_some() { "dot c1" } else { "hollow p50" };
        picture.dot(dot, (x(estimate.change), y), 4.0);
        picture.words(class, (right + 8.0, y + 4.0), Anchor::Start, &estimate.words);
        let interval = interval_text(estimate.interval);
        let words = format!("{}: {}, {interval}", estimate.name, estimate.words);
        said.push((left, right - left, (y - ROW / 2.0, y + ROW / 2.0), words));
    }
    picture.areas(&said);
    let description =
        "A row for each figure: the estimated change from the first side to the second, with its interval.";
    Some(picture.finish(name, title, description))
}

#[cfg(test)]
mod tests {
    use super::super::svg::WIDE;
    use super::*;

    #[test]
    fn each_figure_has_its_change_with_its_interval() {
        let estimate = |name: &str, interval| Estimate {
            name: name.to_owned(),
            change: -0.003,
            words: "-0.3 %".to_owned(),
            interval,
            is_judged: true,
        };
        let estimates = [estimate("p99", Some((-0.12, 0.82))), estimate("p50", None)];
        let drawn = draw(WIDE, "estimates", &estimates, "title").expect("a picture").into_string();
        assert!(drawn.contains("p99: -0.3 %, 95 % sure: -12 % to +82 %"), "{drawn}");
        assert!(drawn.contains("p50: -0.3 %, no interval is known"), "{drawn}");
        assert_eq!(drawn.matches("class=\"interval c1\"").count(), 1);
        assert!(draw(WIDE, "estimates", &[], "title").is_none());
    }
}
