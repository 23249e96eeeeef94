//! Pictures in SVG, drawn shape by shape in two layouts; words in them are escaped as everywhere on a page.

pub use crate::visible::cut_name;
use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};

/// Characters of foreign words that are shown at most.
pub const WORDS_MAX: usize = 200;

/// Height of a line of names.
const NAME_HEIGHT: f64 = 13.0;

/// Width of a letter of a name at most, about.
pub const LETTER: f64 = 7.0;

/// Where the pieces of every picture lie, in its own units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// The end of the ids in a picture, so that no id is there twice.
    suffix: &'static str,
    /// Width of the picture.
    pub width: f64,
    /// Left end of the area that holds the data.
    pub left: f64,
    /// Right end of the area that holds the data; the names of lines stand behind it.
    pub right: f64,
}

/// The layout of screens and of paper.
pub const WIDE: Layout = Layout { suffix: "", width: 720.0, left: 62.0, right: 640.0 };

/// The layout of telephones.
pub const NARROW: Layout = Layout { suffix: "-narrow", width: 372.0, left: 50.0, right: 298.0 };

impl Layout {
    /// Width of the area that holds the data.
    pub fn across(self) -> f64 {
        self.right - self.left
    }

    /// Whether the layout is that of telephones.
    pub fn is_narrow(self) -> bool {
        self == NARROW
    }

    /// Ticks or runs that fit where so many fit on a screen.
    pub fn fitting(self, wide: usize) -> usize {
        if self.is_narrow() { wide / 2 } else { wide }
    }

    /// Columns of data where a screen has so many. The data of telephones are coarser, so that a page stays small.
    pub fn columns(self, wide: usize) -> usize {
        if self.is_narrow() { wide / 4 } else { wide }
    }
}

/// A picture in both layouts, of which the page shows the one that fits; `None` where there is nothing to draw.
pub fn in_layouts(draw: impl Fn(Layout) -> Option<Markup>) -> Option<Markup> {
    let (wide, narrow) = (draw(WIDE)?, draw(NARROW)?);
    Some(html! { div.broad { (wide) } div.narrow { (narrow) } })
}

/// A coordinate in tenths, without a zero at its end; 0 for what is no number.
pub fn place(value: f64) -> String {
    let tenths = if value.is_finite() { (value * 10.0).round() as i64 } else { 0 };
    let (sign, size) = (if tenths < 0 { "-" } else { "" }, tenths.unsigned_abs());
    match size % 10 {
        0 => format!("{sign}{}", size / 10),
        tenth => format!("{sign}{}.{tenth}", size / 10),
    }
}

/// A picture that grows shape by shape.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Where the pieces lie.
    pub layout: Layout,
    height: f64,
    /// The logarithmic axis of times, by which the script reads the time at a height: both ends, and their heights.
    times: Option<[f64; 4]>,
    /// Length of the axis of seconds, which the script enlarges.
    seconds: Option<f64>,
    body: String,
}

/// Where text stands beside its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The text begins there.
    Start,
    /// The text has its middle there.
    Middle,
    /// The text ends there.
    End,
}

impl Picture {
    /// An empty picture of this height.
    pub fn new(layout: Layout, height: f64) -> Picture {
        Picture { layout, height, times: None, seconds: None, body: String::new() }
    }

    fn add(&mut self, piece: Markup) {
        self.body += &piece.into_string();
        self.body.push('\n');
    }

    /// Notes the logarithmic axis of the picture: its least and greatest time in microseconds, and the heights of its upper and
    /// lower end.
    pub fn note_times(&mut self, (low, high): (f64, f64), (top, bottom): (f64, f64)) {
        self.times = Some([low, high, top, bottom]);
    }

    /// Draws in an area that the script enlarges: seconds from 0 to `length_s` to the right.
    pub fn over_time(&mut self, length_s: f64, draw: impl FnOnce(&mut Picture)) {
        self.seconds = Some(length_s);
        let Layout { left, .. } = self.layout;
        let (across, height) = (self.layout.across(), self.height);
        let mut inside = Picture { body: String::new(), ..self.clone() };
        draw(&mut inside);
        self.times = inside.times;
        let view = format!("{} 0 {} {}", place(left), place(across), place(height));
        self.add(html! {
            svg.plot x=(place(left)) y="0" width=(place(across)) height=(place(height)) viewBox=(view) preserveAspectRatio="none" {
                (PreEscaped(inside.body))
            }
        });
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x1, y1, x2, y2) = (place(from.0), place(from.1), place(to.0), place(to.1));
        self.path(class, &format!("M{x1} {y1}L{x2} {y2}"));
    }

    /// A rectangle by its corner, width and height; nothing where it has no area.
    pub fn rect(&mut self, class: &str, corner: (f64, f64), size: (f64, f64)) {
        if size.0 > 0.0 && size.1 > 0.0 {
            let (x, y, width, height) = (place(corner.0), place(corner.1), place(size.0), place(size.1));
            self.add(html! { rect class=(class) x=(x) y=(y) width=(width) height=(height) {} });
        }
    }

    /// A line through points; nothing of fewer than two.
    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        if points.len() > 1 {
            self.path(class, &path_of(points));
        }
    }

    /// The area between the points and back over `back`.
    pub fn area(&mut self, class: &str, points: &[(f64, f64)], back: &[(f64, f64)]) {
        if points.len() > 1 {
            let all: Vec<(f64, f64)> = points.iter().chain(back.iter().rev()).copied().collect();
            self.path(class, &(path_of(&all) + "Z"));
        }
    }

    /// A path of its own drawing words.
    pub fn path(&mut self, class: &str, drawing: &str) {
        if !drawing.is_empty() {
            self.add(html! { path class=(class) d=(drawing) {} });
        }
    }

    /// A path of its own drawing words and width.
    pub fn broad_path(&mut self, class: &str, width: f64, drawing: &str) {
        self.add(html! { path class=(class) stroke-width=(place(width)) d=(drawing) {} });
    }

    /// A bar of an interval upwards from `low`; open at its top, with an arrow there, where no upper end is known.
    pub fn interval(&mut self, class: &str, (x, low): (f64, f64), high: Option<f64>, top: f64) {
        self.line(class, (x, low), (x, high.unwrap_or(top + 6.0)));
        if high.is_none() {
            let (left, right, at) = (place(x - 4.0), place(x + 4.0), place(top + 7.0));
            let (x, peak) = (place(x), place(top));
            self.path(&format!("open {class}"), &format!("M{left} {at}L{x} {peak}L{right} {at}Z"));
        }
    }

    /// A small circle.
    pub fn dot(&mut self, class: &str, at: (f64, f64), radius: f64) {
        self.add(html! { circle class=(class) cx=(place(at.0)) cy=(place(at.1)) r=(place(radius)) {} });
    }

    /// Words, at most [`WORDS_MAX`] characters of them.
    pub fn words(&mut self, class: &str, at: (f64, f64), anchor: Anchor, words: &str) {
        let anchor = match anchor {
            Anchor::Start => None,
            Anchor::Middle => Some("middle"),
            Anchor::End => Some("end"),
        };
        self.add(html! {
            text class=(class) x=(place(at.0)) y=(place(at.1)) text-anchor=[anchor] { (cut_name(words, WORDS_MAX)) }
        });
    }

    /// Names of lines at their ends: the height of each, its class and its words, moved apart where they would cover each
    /// other.
    pub fn names(&mut self, mut names: Vec<(f64, &str, &str)>) {
        names.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut lowest = f64::NEG_INFINITY;
        let overflow = |names: &[(f64, &str, &str)], height: f64| {
            // What would fall below the picture pushes all names up.
            let end = names.iter().fold(f64::NEG_INFINITY, |lowest, name| name.0.max(lowest + NAME_HEIGHT));
            (end - height + 4.0).max(0.0)
        };
        let up = overflow(&names, self.height);
        let room = ((self.layout.width - self.layout.right - 8.0) / LETTER + 1.0) as usize;
        for (y, class, words) in names {
            let y = (y - up).max(lowest + NAME_HEIGHT).max(NAME_HEIGHT);
            let at = (self.layout.right + 8.0, y);
            self.words(&format!("name {class}"), at, Anchor::Start, &cut_name(words, room));
            lowest = y;
        }
    }

    /// Columns that say what stands under the pointer: left end, width and words of each.
    pub fn columns(&mut self, top: f64, bottom: f64, columns: &[(f64, f64, String)]) {
        if columns.is_empty() {
            return;
        }
        let areas = columns.iter().map(|(x, width, words)| (*x, width.max(0.1), (top, bottom), words));
        self.hits("hits", areas);
        self.path("cursor", &format!("M0 {}V{}", place(top), place(bottom)));
        if self.times.is_some() {
            let (left, right) = (place(self.layout.left), place(self.layout.right));
            self.path("cursor level", &format!("M{left} 0H{right}"));
        }
    }

    /// Areas that say what stands under the pointer: left end, width, upper and lower end, and words of each.
    pub fn areas(&mut self, areas: &[(f64, f64, (f64, f64), String)]) {
        self.hits("areas", areas.iter().map(|(x, width, height, words)| (*x, *width, *height, words)));
    }

    fn hits<'a>(&mut self, class: &str, areas: impl Iterator<Item = (f64, f64, (f64, f64), &'a String)>) {
        self.add(html! {
            g class=(class) {
                @for (x, width, (top, bottom), words) in areas {
                    rect x=(place(x)) y=(place(top)) width=(place(width)) height=(place(bottom - top)) {
                        title { (cut_name(words, 2 * WORDS_MAX)) }
                    }
                }
            }
        });
    }

    /// The whole picture, with its title and its description for those who do not see it.
    pub fn finish(self, name: &str, title: &str, description: &str) -> Markup {
        let Layout { suffix, width, left, right } = self.layout;
        let [title_id, words_id] = ["t", "d"].map(|end| format!("{name}-{end}{suffix}"));
        let [low, high, top, bottom] = [0, 1, 2, 3].map(|at| self.times.map(|ends| format!("{}", ends[at])));
        html! {
            svg viewBox=(format!("0 0 {} {}", place(width), place(self.height))) data-low=[low] data-high=[high] data-top=[top]
                data-bottom=[bottom] data-left=(place(left)) data-right=(place(right)) data-seconds=[self.seconds] role="img"
                aria-labelledby=(format!("{title_id} {words_id}")) xmlns="http://www.w3.org/2000/svg" {
                title id=(title_id) { (cut_name(title, WORDS_MAX)) }
                desc id=(words_id) { (description) }
                (PreEscaped(self.body))
            }
        }
    }
}

/// Points as the words of a path, each from the one before it, in tenths.
fn path_of(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    let mut last = (0_i64, 0_i64);
    for (number, (x, y)) in points.iter().enumerate() {
        let tenths = |value: f64| if value.is_finite() { (value * 10.0).round() as i64 } else { 0 };
        let now = (tenths(*x), tenths(*y));
        let (dx, dy) = ((now.0 - last.0) as f64 / 10.0, (now.1 - last.1) as f64 / 10.0);
        path.push_str(match number {
            0 => "M",
            1 => "l",
            _ => " ",
        });
        write!(path, "{} {}", place(dx), place(dy)).expect("a string takes everything");
        last = now;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_classes_are_text() {
        let mut picture = Picture::new(WIDE, 10.0);
        picture.words("a\"b", (0.0, 0.0), Anchor::Start, "</text><b>");
        let drawn = picture.finish("x", "<title>", "words").into_string();
        assert!(
            drawn.contains("class=\"a&quot;b\"") && drawn.contains(">&lt;/text&gt;&lt;b&gt;<"),
            "{drawn}"
        );
        assert!(drawn.contains("&lt;title&gt;"), "{drawn}");
    }

    #[test]
    fn coordinates_have_one_digit_at_most() {
        assert_eq!([0.0, 1.04, -1.06, 10.0, f64::NAN].map(place), ["0", "1", "-1.1", "10", "0"]);
        assert_eq!(path_of(&[(1.0, 2.0), (3.5, 1.0), (4.0, 1.0)]), "M1 2l2.5 -1 0.5 0");
    }

    #[test]
    fn an_interval_without_an_upper_end_has_an_arrow() {
        let drawn = |high: Option<f64>| {
            let mut picture = Picture::new(WIDE, 100.0);
            picture.interval("interval", (50.0, 90.0), high, 24.0);
            picture.finish("x", "", "").into_string()
        };
        assert!(!drawn(Some(60.0)).contains("class=\"open interval\""));
        assert!(drawn(None).contains("class=\"open interval\""));
    }

    #[test]
    fn both_layouts_have_ids_of_their_own() {
        let both = in_layouts(|layout| Some(Picture::new(layout, 10.0).finish("x", "", ""))).expect("drawn");
        let both = both.into_string();
        assert!(both.contains("id=\"x-t\"") && both.contains("id=\"x-t-narrow\""), "{both}");
    }
}
