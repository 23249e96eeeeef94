//! A page of text: lines, names with words beside them, tables.

use std::fmt::Write as _;

/// Where the words beside a name begin.
const INDENT: usize = 13;
/// The text of a report, which grows line by line.
pub(super) struct Page {
    pub(super) text: String,
    width: usize,
}

impl Page {
    /// A page without lines, for words of this width.
    pub(super) fn of_width(width: usize) -> Page {
        Page { text: String::new(), width }
    }

    /// Adds a line.
    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// A name with words beside it, broken into lines.
    pub(super) fn field(&mut self, name: &str, words: &str) {
        let mut line = format!("{name:<INDENT$}");
        let mut empty = true;
        for word in words.split(' ') {
            if !empty && line.chars().count() + 1 + word.chars().count() > self.width {
                self.line(&line);
                line = " ".repeat(INDENT);
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        self.line(&line);
    }

    /// Rows of cells in columns; the first `left` columns begin at the left, the others end at the right.
    pub(super) fn table(&mut self, rows: &[Vec<String>], left: usize) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width =
            |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
        for row in rows {
            let mut line = String::new();
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let gap = if at == 0 { "" } else { "  " };
                let written = if at < left {
                    write!(line, "{gap}{cell:<width$}")
                } else {
                    write!(line, "{gap}{cell:>width$}")
                };
                written.expect("a string takes everything");
            }
            self.line(&line);
        }
    }
}
