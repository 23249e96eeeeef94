//! What stands around pictures: headings, tables, names with words beside them.

use super::svg::escaped;

/// Characters beyond which the words of a cell are a sentence.
const SENTENCE: usize = 36;

/// Cells of a row, escaped.
fn cells<'a>(kind: &str, words: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for words in words {
        // Sentences are broken, and stand at the left; figures are not, and stand at the right.
        let class = if words.chars().count() > SENTENCE { " class=\"words\"" } else { "" };
        text += &format!("<{kind}{class}>{}</{kind}>", escaped(words));
    }
    text
}

/// A table: a row of names, and rows of cells.
pub fn table(names: &[&str], rows: &[Vec<String>]) -> String {
    let head = cells("th", names.iter().copied());
    let mut body = String::new();
    for row in rows {
        body += &format!("<tr>{}</tr>\n", cells("td", row.iter().map(String::as_str)));
    }
    format!(
        "<div class=\"wide\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n"
    )
}

/// Content that is open in print, and on demand elsewhere.
pub fn details(summary: &str, content: &str) -> String {
    format!("<details><summary>{}</summary>\n{content}</details>\n", escaped(summary))
}

/// What stands around a picture.
pub struct Framed<'a> {
    /// What the picture says, as a heading.
    pub statement: String,
    /// The picture; `None` where there is nothing to show.
    pub picture: Option<String>,
    /// Why there is nothing, and what would show something.
    pub instead: &'a str,
    /// How to read the picture.
    pub how: String,
    /// The table of its numbers.
    pub numbers: String,
    /// Pictures with one axis have one cursor.
    pub axis: &'a str,
}

impl Framed<'_> {
    /// The heading, the picture and what stands around it.
    pub fn text(self) -> String {
        let heading = format!("<h2>{}</h2>\n", escaped(&self.statement));
        let Some(picture) = self.picture else {
            return format!("{heading}<p>{}</p>\n", long(self.instead));
        };
        format!(
            "{heading}<figure class=\"wide\" data-axis=\"{}\">\n{picture}<div class=\"readout\" aria-live=\"polite\"></div>\n\
             <figcaption class=\"how\">{}</figcaption>\n</figure>\n{}",
            self.axis,
            long(&self.how),
            details("The numbers", &self.numbers)
        )
    }
}

/// Names with words beside them; nothing where there are none.
pub fn fields(fields: &[(&str, String)]) -> String {
    let each = fields.iter().filter(|(_, words)| !words.is_empty());
    let items: String =
        each.map(|(name, words)| format!("<dt>{}</dt><dd>{}</dd>\n", escaped(name), long(words))).collect();
    if items.is_empty() { String::new() } else { format!("<dl>\n{items}</dl>\n") }
}

/// Words of this program, which may be longer than those of others: escaped in pieces.
pub fn long(words: &str) -> String {
    let all: Vec<char> = words.chars().collect();
    all.chunks(100).map(|piece| escaped(&piece.iter().collect::<String>())).collect()
}
