//! The changes of many runs, a row for each: the estimate with its interval beside the line of no change.

use maud::Markup;

use super::change::{ChangeScale, interval_text};
use super::svg::{Anchor, LETTER, Layout, Picture, cut_name};

/// The change of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForestRow {
    /// The name of the run, and of the figure where there are several.
    pub name: String,
    /// The change as a share of the first suite: 0.1 for 10 % more.
    pub change: f64,
    /// The change in words, as the table has it.
    pub words: String,
    /// The 95 % interval of the change; `None` where there is none.
    pub interval: Option<(f64, f64)>,
    /// Whether the run is shown to differ.
    pub is_different: bool,
}

const TOP: f64 = 14.0;

/// Room for the names on the left of a wide picture.
const NAMES: f64 = 200.0;

/// The area of the changes, and the heights of a row: the whole, and that of a name above its interval.
struct Area {
    left: f64,
    right: f64,
    row: f64,
    name: f64,
}

impl Area {
    /// On a screen names stand beside their intervals, and on a telephone above them.
    fn of(layout: Layout) -> Area {
        match layout.is_narrow() {
            true => Area { left: 8.0, right: layout.right, row: 36.0, name: 14.0 },
            false => Area { left: NAMES + 8.0, right: layout.right, row: 24.0, name: 0.0 },
        }
    }
}

/// The picture; `None` where there is no row.
pub fn draw(layout: Layout, name: &str, rows: &[ForestRow], title: &str) -> Option<Markup> {
    if rows.is_empty() {
        return None;
    }
    let ends = rows.iter().flat_map(|row| {
        let (low, high) = row.interval.unwrap_or((row.change, row.change));
        [row.change, low, high]
    });
    let scale = ChangeScale::of(ends);
    let area = Area::of(layout);
    let bottom = TOP + area.row * rows.len() as f64;
    let x = |share: f64| area.left + scale.at(share) * (area.right - area.left);
    let mut picture = Picture::new(layout, bottom + 40.0);
    scale.draw(&mut picture, (area.left, area.right), (TOP - 6.0, bottom));
    let room = (if layout.is_narrow() { layout.width - area.left } else { NAMES } / LETTER) as usize;
    let mut said = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        let top = TOP + area.row * place as f64;
        let y = top + area.name + (area.row - area.name) / 2.0;
        let class = if row.is_different { "tick strong" } else { "tick" };
        let shown = cut_name(&row.name, room);
        match layout.is_narrow() {
            true => picture.words(class, (area.left, top + area.name), Anchor::Start, &shown),
            false => picture.words(class, (area.left - 8.0, y + 4.0), Anchor::End, &shown),
        }
        let side = if row.is_different { "c2" } else { "c1" };
        if let Some((low, high)) = row.interval {
            picture.line(&format!("interval {side}"), (x(low), y), (x(high), y));
        }
        let dot = if row.interval.is_some() { format!("dot {side}") } else { "hollow p50".to_owned() };
        picture.dot(&dot, (x(row.change), y), 4.0);
        picture.words(class, (area.right + 8.0, y + 4.0), Anchor::Start, &row.words);
        let interval = interval_text(row.interval);
        let differs = if row.is_different { ", differs" } else { "" };
        let words = format!("{}: {}{differs}, {interval}", row.name, row.words);
        said.push((area.left, area.right - area.left, (top, top + area.row), words));
    }
    picture.areas(&said);
    let description =
        "A row for each run: the estimated change from the first suite to the second, with its interval.";
    Some(picture.finish(name, title, description))
}

#[cfg(test)]
mod tests {
    use super::super::change::change_text;
    use super::super::svg::{NARROW, WIDE};
    use super::*;

    fn row(name: &str, change: f64, interval: Option<(f64, f64)>, is_different: bool) -> ForestRow {
        ForestRow { name: name.to_owned(), change, words: change_text(change), interval, is_different }
    }

    #[test]
    fn each_run_has_a_row_with_its_interval_and_those_that_differ_another_class() {
        let rows = [
            row("reads", 0.01, Some((-0.02, 0.03)), false),
            row("reads, <TLS>", 0.11, Some((0.05, 0.18)), true),
            row("writes", -0.04, None, false),
        ];
        for layout in [WIDE, NARROW] {
            let drawn = draw(layout, "changes", &rows, "title").expect("a picture").into_string();
            assert_eq!(drawn.matches("class=\"interval c1\"").count(), 1, "{drawn}");
            assert_eq!(drawn.matches("class=\"interval c2\"").count(), 1, "{drawn}");
            assert_eq!(drawn.matches("class=\"hollow p50\"").count(), 1, "{drawn}");
            assert_eq!(drawn.matches("class=\"axis\"").count(), 1, "the line of no change: {drawn}");
            assert!(
                drawn.contains("reads, &lt;TLS&gt;: +11 %, differs, 95 % sure: +5 % to +18 %"),
                "{drawn}"
            );
            assert!(drawn.contains("writes: -4 %, no interval is known"), "{drawn}");
        }
        assert!(draw(WIDE, "changes", &[], "title").is_none());
    }

    #[test]
    fn a_long_name_leaves_room_for_its_change() {
        let long = row(&"w".repeat(300), 0.1, None, false);
        for layout in [WIDE, NARROW] {
            let drawn = draw(layout, "changes", std::slice::from_ref(&long), "title").expect("a picture");
            let drawn = drawn.into_string();
            let shown = drawn.matches("<text").count();
            assert!(shown > 2 && !drawn.contains(&format!(">{}<", "w".repeat(60))), "{drawn}");
        }
    }
}
