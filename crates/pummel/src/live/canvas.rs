//! A grid of characters with their inks: the contents of a screen, independent of any terminal.

/// The ink of a character: the kind of time that it shows, or how much of it there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ink {
    /// The terminal's own colour.
    #[default]
    Plain,
    /// Emphasised text.
    Bold,
    /// Background text.
    Dim,
    /// Headings and selected items.
    Reverse,
    /// Service times.
    Service,
    /// Waiting times, and warnings.
    Wait,
    /// Lag.
    Lag,
    /// Reaction times.
    Reaction,
    /// Goals that are met.
    Good,
    /// A share of the requests of a column, from 0 for few to 9 for most.
    Heat(u8),
}

/// A grid of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canvas {
    width: usize,
    height: usize,
    cells: Vec<(char, Ink)>,
}

impl Canvas {
    /// An empty grid.
    pub fn new(width: usize, height: usize) -> Canvas {
        Canvas { width, height, cells: vec![(' ', Ink::Plain); width * height] }
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Writes text from a place on; text beyond the edge is cut off. Returns the column after it.
    pub fn put(&mut self, x: usize, y: usize, text: &str, ink: Ink) -> usize {
        let mut at = x;
        for character in text.chars() {
            if at < self.width && y < self.height {
                self.cells[y * self.width + at] = (character, ink);
            }
            at += 1;
        }
        at
    }

    /// Writes text that ends before column `end`.
    pub fn put_right(&mut self, end: usize, y: usize, text: &str, ink: Ink) {
        let length = text.chars().count();
        let (x, skipped) = (end.saturating_sub(length), length.saturating_sub(end));
        let kept: String = text.chars().skip(skipped).collect();
        self.put(x, y, &kept, ink);
    }

    /// Writes a heading with a rule through the columns from `x` up to `end`.
    pub fn heading(&mut self, (x, end): (usize, usize), y: usize, left: &str, right: &str) {
        self.put(x, y, &"-".repeat(end.saturating_sub(x)), Ink::Dim);
        if !left.is_empty() {
            self.put(x + 3, y, &format!(" {left} "), Ink::Bold);
        }
        if !right.is_empty() {
            self.put_right(end.saturating_sub(3), y, &format!(" {right} "), Ink::Dim);
        }
    }

    /// The cell at a place.
    pub fn cell(&self, x: usize, y: usize) -> (char, Ink) {
        self.cells[y * self.width + x]
    }

    /// The rows as text, without blanks at their ends.
    pub fn text(&self) -> String {
        let rows = self.cells.chunks(self.width.max(1)).take(self.height);
        let rows = rows.map(|row| row.iter().map(|(character, _)| *character).collect::<String>());
        rows.map(|row| row.trim_end().to_owned() + "\n").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out() {
        let mut canvas = Canvas::new(10, 2);
        assert_eq!(canvas.put(8, 0, "abcdef", Ink::Plain), 14);
        canvas.put_right(5, 1, "0123456789", Ink::Plain);
        canvas.put(0, 7, "below", Ink::Plain);
        assert_eq!(canvas.text(), "        ab\n56789\n");
        canvas.heading((0, 10), 0, "a", "");
        assert_eq!(canvas.text(), "--- a ----\n56789\n");
        assert_eq!(Canvas::new(0, 0).text(), "");
    }
}
