//! A view as Markdown, for the page of a job or a comment: its result as a headline, what else came out, tables and notes.

use crate::escaped::{Markdown, Text};
use crate::markdown::{Md, foreign, plain};
use crate::view::{Cell, Line, Row, RowKind, Side, Table, View};

/// The most bytes of a view.
const BYTES_MAX: usize = 8 * 1024;

/// The view as Markdown, at most 8 KB.
pub fn render(view: &View) -> String {
    of(view).shorten(BYTES_MAX).finish()
}

/// The whole view as Markdown.
fn of(view: &View) -> Md {
    let (first, others) = match view.lines.split_first() {
        Some((first, others)) => (Some(first), others),
        None => (None, &[][..]),
    };
    let headline = first.map_or_else(Md::default, |line| plain(&line.text.words()));
    let text = Md::of("### ").and(headline).mark("\n");
    let text = paragraph(text, view.sides.iter().map(side));
    let ran = view.ran.iter().map(|parts| plain(&parts.join(", ")));
    let text = paragraph(text, ran);
    let text = others.iter().fold(text, |text, own| text.and(line(own)));
    let text = if others.is_empty() { text } else { text.mark("\n") };
    let text = view.tables.iter().fold(text, |text, own| text.and(table(own)));
    let notes = view.notes.iter().map(|note| plain(&note.text));
    paragraph(text, notes)
}

/// The text with lines below it that are a list, where there are any.
fn paragraph(text: Md, lines: impl Iterator<Item = Md>) -> Md {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return text;
    }
    text.mark("\n").each(lines.map(|own| Md::of("- ").and(own)), "\n")
}

/// A side by its name.
fn side(side: &Side) -> Md {
    Md::of("**").words(side.name).mark("** ").and(foreign(&side.parts.join(", ")))
}

/// A labelled line, or one that goes on with those before it.
fn line(line: &Line) -> Md {
    let words = plain(&line.text.words());
    match line.label {
        "" => Md::of("\\\n").and(words),
        label => Md::of("\n\n**").words(label).mark("** ").and(words),
    }
}

/// A table; what is said of the figures of a row stands in a row of its own.
fn table(table: &Table) -> Md {
    let heading =
        std::iter::once(table.name.as_str()).chain(table.columns.iter().map(|column| column.name.as_str()));
    let of_names = Md::of(if table.has_figures_first { "|---:|" } else { "|---|" });
    let columns = table.columns.iter().map(|column| Md::of(if column.is_words { "---" } else { "---:" }));
    let rule = of_names.each(columns, "|").mark("\n");
    let rows = table.rows.iter().map(row);
    Md::of("\n").and(cells(heading.map(plain))).and(rule).each(rows, "")
}

fn row(row: &Row) -> Md {
    let name = match row.kind {
        RowKind::Figures => plain(&row.name),
        RowKind::Sureness | RowKind::About => Md::of("<sub>").and(plain(&row.name)).mark("</sub>"),
    };
    let figure = |cell: &Cell| {
        let text = plain(cell.text.trim());
        if cell.is_mostly_lag { text.words("*") } else { text }
    };
    cells(std::iter::once(name).chain(row.cells.iter().map(figure)))
}

fn cells(cells: impl Iterator<Item = Text<Markdown>>) -> Md {
    Md::of("|").each(cells.map(|cell| Md::of(" ").and(cell)), " |").mark("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Column, Note, Text as Words, Tone};

    #[test]
    fn a_view_has_a_headline_lines_tables_and_notes_and_its_words_have_no_meaning() {
        let column =
            |name: &str| Column { name: name.to_owned(), width: 9, narrow_width: 9, ..Column::default() };
        let marked = Cell { text: "2 us".to_owned(), is_mostly_lag: true };
        let view = View {
            sides: vec![Side { name: "A", parts: vec!["a|b <script>".to_owned(), "10/s".to_owned()] }],
            ran: vec![vec!["6 pairs".to_owned()]],
            lines: vec![
                Line::new("Result", Words::default().and(Tone::Alarm, "WORSE").and(Tone::Plain, ": *all*")),
                Line::new("Differs", Words::plain("--rate 1, 2")),
                Line::new("", Words::plain("--depth 1, 2")),
                Line::new("Trust", Words::plain("reliable")),
            ],
            tables: vec![Table {
                name: "response".to_owned(),
                has_figures_first: false,
                columns: vec![column("A"), column("B")],
                rows: vec![
                    Row {
                        name: "p99".to_owned(),
                        cells: vec![Cell::of("1 us"), marked],
                        kind: RowKind::Figures,
                    },
                    Row {
                        name: "95 % sure".to_owned(),
                        cells: vec![Cell::of("1..2")],
                        kind: RowKind::Sureness,
                    },
                ],
            }],
            notes: vec![Note::of("a note")],
        };
        let expected = "\
### WORSE: \\*all\\*

- **A** a\\|b &lt;script&gt;, 10/s

- 6 pairs


**Differs** --rate 1, 2\\
--depth 1, 2

**Trust** reliable

| response | A | B |
|---|---:|---:|
| p99 | 1 us | 2 us\\* |
| <sub>95 % sure</sub> | 1..2 |

- a note
";
        assert_eq!(render(&view), expected);
    }
}
