//! What stands around pictures: headings, tables, names with words beside them.

use pummel_logic::plan::Plan;

use super::svg::escaped;

/// Characters beyond which the words of a cell are a sentence.
const SENTENCE: usize = 36;

/// Cells of a row, escaped. Columns of words stand at the left, those of figures at the right.
fn cells<'a>(kind: &str, words: impl Iterator<Item = &'a str>, are_words: &[bool]) -> String {
    let mut text = String::new();
    for (column, words) in words.enumerate() {
        // Sentences are broken; figures and names are not.
        let class = match (words.chars().count() > SENTENCE, are_words.get(column)) {
            (true, _) => " class=\"words\"",
            (false, Some(true)) => " class=\"name\"",
            (false, _) => "",
        };
        text += &format!("<{kind}{class}>{}</{kind}>", escaped(words));
    }
    text
}

/// Whether more cells of a column are words than figures. A blank and a dash are neither, and what has a colon is an address.
fn is_of_words<'a>(column: impl Iterator<Item = &'a str>) -> bool {
    let (mut words, mut figures) = (0, 0);
    for cell in column.filter(|cell| !["", "-"].contains(cell)) {
        let is_figure = cell.starts_with(|first: char| first.is_ascii_digit() || "+-<>".contains(first));
        if is_figure && !cell.contains(':') { figures += 1 } else { words += 1 }
    }
    words > figures
}

/// A table: a row of names, and rows of cells.
pub fn table(names: &[&str], rows: &[Vec<String>]) -> String {
    let column = |at: usize| rows.iter().filter_map(move |row| row.get(at)).map(String::as_str);
    // The first column has the names of the rows, and stands at the left anyway.
    let are_words: Vec<bool> = (0..names.len()).map(|at| at > 0 && is_of_words(column(at))).collect();
    let head = cells("th", names.iter().copied(), &are_words);
    let mut body = String::new();
    for row in rows {
        body += &format!("<tr>{}</tr>\n", cells("td", row.iter().map(String::as_str), &are_words));
    }
    format!(
        "<div class=\"wide\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n"
    )
}

/// A plan as JSON without passwords, on several lines, in an element with this id.
pub fn plan_text(plan: &Plan, id: &str) -> String {
    let plan = plan.told().with_labels(plan.labels.clone());
    let json = serde_json::to_string_pretty(&plan).expect("a plan has nothing that JSON has not");
    format!("<pre id=\"{id}\">{}</pre>\n", long(&json).replace("\\u{a}", "\n"))
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
    let items: String = each
        .map(|(name, words)| format!("<dt>{}</dt><dd>{}</dd>\n", escaped(name), breakable(words)))
        .collect();
    if items.is_empty() { String::new() } else { format!("<dl>\n{items}</dl>\n") }
}

/// Words that may be a long list without blanks, such as that of the agents: each comma is a place for a new line.
fn breakable(words: &str) -> String {
    let pieces: Vec<String> = words.split(',').map(long).collect();
    pieces.join(",<wbr/>").replace(",<wbr/> ", ", ")
}

/// Words of this program, which may be longer than those of others: escaped in pieces.
pub fn long(words: &str) -> String {
    let all: Vec<char> = words.chars().collect();
    all.chunks(100).map(|piece| escaped(&piece.iter().collect::<String>())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_words_stand_at_the_left_and_those_of_figures_at_the_right() {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = [
            row(["A", "a.json", "127.0.0.1:11211", "1.91 ms (1.71 ms .. 2.12 ms)"]),
            row(["B", "1.json", "cache2:11211", "unknown"]),
            row(["C", "c.json", "-", "> 2.00 s"]),
        ];
        let drawn = table(&["", "result", "servers", "p99"], &rows);
        assert!(
            drawn.contains(
                "<th></th><th class=\"name\">result</th><th class=\"name\">servers</th><th>p99</th>"
            ),
            "{drawn}"
        );
        assert!(
            drawn.contains("<td class=\"name\">1.json</td>") && drawn.contains("<td>unknown</td>"),
            "{drawn}"
        );
    }
}
