//! Pieces of SVG and HTML text: escaped words, numbers without digits that say nothing, shapes by class.

use std::fmt::Write as _;

/// Characters of foreign words that are shown at most.
const WORDS_MAX: usize = 200;

/// Height of a line of names.
const NAME_HEIGHT: f64 = 13.0;

/// Width of every picture, in its own units.
pub const WIDTH: f64 = 720.0;
/// Left end of the area that holds the data.
pub const LEFT: f64 = 62.0;
/// Right end of the area that holds the data; the names of lines stand behind it.
pub const RIGHT: f64 = 640.0;

/// Begins a part of a text whose direction of writing is its own.
const FIRST_STRONG_ISOLATE: char = '\u{2068}';
/// Ends that part.
const POP_ISOLATE: char = '\u{2069}';

/// Words of a peer or a user as text of HTML and SVG: escaped, cut at 200 characters, with control characters and marks that
/// change the direction of writing shown by their numbers. Letters that are written from right to left are isolated, so that
/// they do not change the order of the figures beside them.
pub fn escaped(words: &str) -> String {
    let mut text = String::with_capacity(words.len());
    let mut is_isolated = false;
    for (at, character) in words.chars().enumerate() {
        if is_isolated != is_from_right(character) {
            text.push(if is_isolated { POP_ISOLATE } else { FIRST_STRONG_ISOLATE });
            is_isolated = !is_isolated;
        }
        if at == WORDS_MAX {
            text.push('…');
            break;
        }
        match character {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' => text.push_str("&quot;"),
            '\'' => text.push_str("&#39;"),
            '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                add(&mut text, format_args!("\\u{{{:x}}}", u32::from(character)));
            }
            control if control.is_control() => {
                add(&mut text, format_args!("\\u{{{:x}}}", u32::from(control)));
            }
            plain => text.push(plain),
        }
    }
    if is_isolated {
        text.push(POP_ISOLATE);
    }
    text
}

/// Whether a letter is of a script that is written from right to left (the blocks of Unicode whose letters are R or AL).
fn is_from_right(character: char) -> bool {
    matches!(character,
        '\u{590}'..='\u{8ff}'
        | '\u{fb1d}'..='\u{fdff}'
        | '\u{fe70}'..='\u{fefe}'
        | '\u{10800}'..='\u{10fff}'
        | '\u{1e800}'..='\u{1efff}')
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

/// Adds formatted text.
pub fn add(text: &mut String, words: std::fmt::Arguments<'_>) {
    text.write_fmt(words).expect("a string takes everything");
}

/// A picture that grows shape by shape.
#[derive(Clone, Debug)]
pub struct Picture {
    height: f64,
    /// Attributes by which the script reads the time at a height; empty where there is no axis of times.
    axis: String,
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
    pub fn new(height: f64) -> Picture {
        Picture { height, axis: String::new(), body: String::new() }
    }

    /// Notes the logarithmic axis of the picture: its least and greatest figure, the heights of its upper and lower end, and its
    /// unit.
    pub fn note_axis(&mut self, figures: (f64, f64), (top, bottom): (f64, f64), unit: &str) {
        let (low, high) = figures;
        self.axis = format!(
            " data-low=\"{low}\" data-high=\"{high}\" data-top=\"{top}\" data-bottom=\"{bottom}\" data-unit=\"{unit}\""
        );
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x1, y1, x2, y2) = (place(from.0), place(from.1), place(to.0), place(to.1));
        add(&mut self.body, format_args!("<path class=\"{class}\" d=\"M{x1} {y1}L{x2} {y2}\"/>\n"));
    }

    /// A rectangle by its corner, width and height; nothing where it has no area.
    pub fn rect(&mut self, class: &str, corner: (f64, f64), size: (f64, f64)) {
        if size.0 > 0.0 && size.1 > 0.0 {
            let (x, y, width, height) = (place(corner.0), place(corner.1), place(size.0), place(size.1));
            add(
                &mut self.body,
                format_args!(
                    "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>\n"
                ),
            );
        }
    }

    /// A line through points; nothing of fewer than two.
    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        if points.len() > 1 {
            let path = path_of(points);
            add(&mut self.body, format_args!("<path class=\"{class}\" d=\"{path}\"/>\n"));
        }
    }

    /// The area between the points and back over `back`.
    pub fn area(&mut self, class: &str, points: &[(f64, f64)], back: &[(f64, f64)]) {
        if points.len() > 1 {
            let all: Vec<(f64, f64)> = points.iter().chain(back.iter().rev()).copied().collect();
            let path = path_of(&all);
            add(&mut self.body, format_args!("<path class=\"{class}\" d=\"{path}Z\"/>\n"));
        }
    }

    /// A path of its own drawing words.
    pub fn path(&mut self, class: &str, drawing: &str) {
        if !drawing.is_empty() {
            add(&mut self.body, format_args!("<path class=\"{class}\" d=\"{drawing}\"/>\n"));
        }
    }

    /// A small circle.
    pub fn dot(&mut self, class: &str, at: (f64, f64), radius: f64) {
        let (x, y, radius) = (place(at.0), place(at.1), place(radius));
        add(
            &mut self.body,
            format_args!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>\n"),
        );
    }

    /// Words, which are escaped.
    pub fn words(&mut self, class: &str, at: (f64, f64), anchor: Anchor, words: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (x, y, words) = (place(at.0), place(at.1), escaped(words));
        add(
            &mut self.body,
            format_args!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{words}</text>\n"),
        );
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
        for (y, class, words) in names {
            let y = (y - up).max(lowest + NAME_HEIGHT).max(NAME_HEIGHT);
            self.words(&format!("name {class}"), (RIGHT + 8.0, y), Anchor::Start, words);
            lowest = y;
        }
    }

    /// Columns that say what stands under the pointer: left end, width and words of each.
    pub fn columns(&mut self, top: f64, bottom: f64, columns: &[(f64, f64, String)]) {
        if columns.is_empty() {
            return;
        }
        self.body.push_str("<g class=\"hits\">\n");
        for (x, width, words) in columns {
            let (x, y, words) = (place(*x), place(top), escaped(words));
            let (width, height) = (place(width.max(0.1)), place(bottom - top));
            add(
                &mut self.body,
                format_args!(
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"><title>{words}</title></rect>\n"
                ),
            );
        }
        self.body.push_str("</g>\n");
        let (top, bottom) = (place(top), place(bottom));
        add(&mut self.body, format_args!("<path class=\"cursor\" d=\"M0 {top}V{bottom}\"/>\n"));
        if !self.axis.is_empty() {
            add(&mut self.body, format_args!("<path class=\"cursor level\" d=\"M{LEFT} 0H{RIGHT}\"/>\n"));
        }
    }

    /// Areas that say what stands under the pointer: left end, width, upper and lower end, and words of each.
    pub fn areas(&mut self, areas: &[(f64, f64, (f64, f64), String)]) {
        self.body.push_str("<g class=\"areas\">\n");
        for (x, width, (top, bottom), words) in areas {
            let (x, y, words) = (place(*x), place(*top), escaped(words));
            let (width, height) = (place(*width), place(bottom - top));
            add(
                &mut self.body,
                format_args!(
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"><title>{words}</title></rect>\n"
                ),
            );
        }
        self.body.push_str("</g>\n");
    }

    /// The whole picture, with its title and its description for those who do not see it.
    pub fn finish(self, name: &str, title: &str, description: &str) -> String {
        let (title, description) = (escaped(title), escaped(description));
        format!(
            "<svg viewBox=\"0 0 {} {}\"{} role=\"img\" aria-labelledby=\"{name}-t {name}-d\" xmlns=\"http://www.w3.org/2000/svg\">\n\
             <title id=\"{name}-t\">{title}</title>\n<desc id=\"{name}-d\">{description}</desc>\n{}</svg>\n",
            place(WIDTH),
            place(self.height),
            self.axis,
            self.body
        )
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
        add(&mut path, format_args!("{} {}", place(dx), place(dy)));
        last = now;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_words_are_text_and_nothing_else() {
        assert_eq!(
            escaped("</script><b a='\"'>&\u{0}\u{202e}x"),
            "&lt;/script&gt;&lt;b a=&#39;&quot;&#39;&gt;&amp;\\u{0}\\u{202e}x"
        );
        assert_eq!(escaped("שלום:11211, a"), "\u{2068}שלום\u{2069}:11211, a");
        assert_eq!(escaped(&"ש".repeat(300)).chars().next_back(), Some(POP_ISOLATE));
        assert_eq!(escaped(&"x".repeat(300)).chars().count(), WORDS_MAX + 1);
    }

    #[test]
    fn coordinates_have_one_digit_at_most() {
        assert_eq!([0.0, 1.04, -1.06, 10.0, f64::NAN].map(place), ["0", "1", "-1.1", "10", "0"]);
        assert_eq!(path_of(&[(1.0, 2.0), (3.5, 1.0), (4.0, 1.0)]), "M1 2l2.5 -1 0.5 0");
    }
}
