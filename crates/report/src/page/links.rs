//! Picture 7, the connections: how many were open while the run went on, and which were lost, came back or failed.

use maud::Markup;

use super::axis::{CountAxis, SecondsAxis, together};
use super::heat::COLUMNS_MAX;
use super::svg::{Anchor, Layout, Picture};
use crate::numbers::grouped;

/// The connections in one slice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkColumn {
    /// Beginning, in seconds.
    pub at_s: f64,
    /// Length, in seconds.
    pub seconds: f64,
    /// Connections that were open at the end.
    pub open: u64,
    /// What became of connections, in the order of [`TICKS`].
    pub ticks: [u64; 5],
}

/// What the ticks count, with their classes.
pub const TICKS: [(&str, &str); 5] =
    [("lost", "e0"), ("reopened", "e4"), ("failed", "e1"), ("came", "e2"), ("ended", "e5")];

const TOP: f64 = 24.0;
const BOTTOM: f64 = 150.0;
const ROW: f64 = 14.0;

/// Puts neighbours together until there are at most `most` columns.
pub fn merged(columns: &[LinkColumn], most: usize) -> Vec<LinkColumn> {
    together(columns, most, |all, more| {
        all.seconds = more.at_s + more.seconds - all.at_s;
        all.open = more.open;
        all.ticks.iter_mut().zip(more.ticks).for_each(|(sum, more)| *sum += more);
    })
}

/// The picture, in which `asked` connections were wanted; `None` where there are no columns.
pub fn draw(layout: Layout, name: &str, columns: &[LinkColumn], asked: u64, title: &str) -> Option<Markup> {
    let columns = merged(columns, layout.columns(COLUMNS_MAX));
    let last = columns.last()?;
    let x = SecondsAxis::of(layout, last.at_s + last.seconds);
    let most = columns.iter().map(|column| column.open).max()?.max(asked);
    let y = CountAxis::of(most as f64, TOP, BOTTOM);
    let shown: Vec<usize> =
        (0..TICKS.len()).filter(|kind| columns.iter().any(|column| column.ticks[*kind] > 0)).collect();
    let bottom = BOTTOM + ROW * shown.len() as f64 + 4.0;
    let mut picture = Picture::new(layout, bottom + 30.0);
    y.draw(&mut picture, "open connections");
    if asked > 0 {
        picture.line(
            "line dashed goal",
            (layout.left, y.at(asked as f64)),
            (layout.right, y.at(asked as f64)),
        );
        picture.words("name goal", (layout.right + 8.0, y.at(asked as f64) + 4.0), Anchor::Start, "asked");
    }
    let steps: Vec<(f64, f64)> = columns
        .iter()
        .flat_map(|column| {
            let height = y.at(column.open as f64);
            [(x.at(column.at_s), height), (x.at(column.at_s + column.seconds), height)]
        })
        .collect();
    let mut marks = Vec::new();
    for (row, kind) in shown.iter().enumerate() {
        let (words, class) = TICKS[*kind];
        let top = BOTTOM + 6.0 + ROW * row as f64;
        let all: u64 = columns.iter().map(|column| column.ticks[*kind]).sum();
        picture.words("tick", (layout.left - 6.0, top + 9.0), Anchor::End, words);
        picture.words("tick", (layout.right + 8.0, top + 9.0), Anchor::Start, &grouped(all));
        marks.push((class, *kind, top));
    }
    x.draw(&mut picture, bottom);
    picture.over_time(x.length_s(), |picture| {
        picture.polyline("line thick response", &steps);
        for (class, kind, top) in marks {
            for column in columns.iter().filter(|column| column.ticks[kind] > 0) {
                let (left, right) = (x.at(column.at_s), x.at(column.at_s + column.seconds));
                picture.rect(class, (left, top), ((right - left - 0.5).clamp(1.0, 8.0), ROW - 4.0));
            }
        }
        let said: Vec<(f64, f64, String)> = columns.iter().map(|column| words_of(column, &x)).collect();
        picture.columns(TOP, bottom, &said);
    });
    let description = "Time since the start to the right, open connections upwards; below, a row of marks for what became of connections.";
    Some(picture.finish(name, title, description))
}

fn words_of(column: &LinkColumn, x: &SecondsAxis) -> (f64, f64, String) {
    let end = column.at_s + column.seconds;
    let mut words = format!("{:.1} to {end:.1} s: {} open", column.at_s, grouped(column.open));
    for ((name, _), count) in TICKS.iter().zip(column.ticks).filter(|(_, count)| *count > 0) {
        words += &format!(", {} {name}", grouped(count));
    }
    (x.at(column.at_s), x.at(end) - x.at(column.at_s), words)
}

#[cfg(test)]
mod tests {
    use super::super::svg::WIDE;
    use super::*;

    #[test]
    fn losses_are_marks_and_open_connections_are_steps() {
        let column = |at: u64, open: u64, lost: u64| LinkColumn {
            at_s: at as f64,
            seconds: 1.0,
            open,
            ticks: [lost, 0, 0, 0, 0],
        };
        let columns = [column(0, 10, 0), column(1, 8, 2), column(2, 10, 0)];
        let drawn = draw(WIDE, "connections", &columns, 10, "connections").expect("a picture").into_string();
        assert_eq!(drawn.matches("class=\"e0\"").count(), 1);
        assert!(drawn.contains("1.0 to 2.0 s: 8 open, 2 lost") && drawn.contains(">asked<"), "{drawn}");
        let one = merged(&columns, 1);
        assert_eq!((one.len(), one[0].open, one[0].ticks[0], one[0].seconds), (1, 10, 2, 3.0));
        assert!(draw(WIDE, "connections", &[], 10, "none").is_none());
    }
}
