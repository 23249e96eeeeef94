//! Pieces of a page around its pictures: headings, tables, names with words beside them.

use maud::{Markup, PreEscaped, html};
use pummel_logic::plan::Plan;

use super::svg::{WORDS_MAX, cut_name};
use crate::view::{Line, RowKind, Table, Tone, View};

/// Characters beyond which the words of a cell are a sentence.
const SENTENCE: usize = 36;

/// Class of a cell. Columns of words stand at the left, those of figures at the right.
fn class_of(cell: &str, are_words: bool) -> Option<&'static str> {
    // Sentences are broken; figures and names are not.
    match cell.chars().count() > SENTENCE {
        true => Some("words"),
        false => are_words.then_some("name"),
    }
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
pub fn table(names: &[&str], rows: &[Vec<String>]) -> Markup {
    let column = |at: usize| rows.iter().filter_map(move |row| row.get(at)).map(String::as_str);
    // The first column has the names of the rows, and stands at the left anyway.
    let are_words: Vec<bool> = (0..names.len()).map(|at| at > 0 && is_of_words(column(at))).collect();
    html! {
        div.wide { table {
            thead { tr {
                @for (name, are_words) in names.iter().zip(&are_words) { th class=[class_of(name, *are_words)] { (name) } }
            } }
            tbody {
                @for row in rows { tr {
                    @for (cell, are_words) in row.iter().zip(&are_words) {
                        td class=[class_of(cell, *are_words)] { (cut_name(cell, WORDS_MAX)) }
                    }
                } }
            }
        } }
    }
}

/// The tables of a view, and the sentences below them.
pub fn tables_of(view: &View) -> Markup {
    html! {
        @for own in &view.tables { (table_of(own)) }
        @for note in view.notes_beside(|_| true) { (how(&note.text)) }
    }
}

/// A table of a view. What is said of the figures of a row stands in a row of its own.
fn table_of(own: &Table) -> Markup {
    let class = |is_words: bool| is_words.then_some("name");
    html! {
        div.wide { table {
            thead { tr {
                th { (own.name) }
                @for column in &own.columns { th class=[class(column.is_words)] { (column.name) } }
            } }
            tbody {
                @for row in &own.rows { tr class=[(row.kind != RowKind::Figures).then_some("about")] {
                    td { (cut_name(&row.name, WORDS_MAX)) }
                    @for (cell, column) in row.cells.iter().zip(&own.columns) {
                        td class=[class(column.is_words)] { (cut_name(cell.text.trim(), WORDS_MAX)) @if cell.is_mostly_lag { "*" } }
                    }
                } }
            }
        } }
    }
}

/// A plan as JSON without passwords, on several lines, in an element with this id.
pub fn plan_text(plan: &Plan, id: &str) -> Markup {
    let plan = plan.told().with_labels(plan.labels.clone());
    let json = serde_json::to_string_pretty(&plan).expect("a plan has nothing that JSON has not");
    html! { pre id=(id) { (json) } }
}

/// Content that is open in print, and on demand elsewhere.
pub fn details(summary: &str, content: Markup) -> Markup {
    details_of(summary, content, false)
}

/// Content that is open in print, and elsewhere at once or on demand.
pub fn details_of(summary: &str, content: Markup, is_open: bool) -> Markup {
    html! { details open[is_open] { summary { (summary) } (content) } }
}

/// A section: its heading, and what stands below.
pub fn section(heading: &str, content: Markup) -> Markup {
    html! { h2 { (unbroken(&cut_name(heading, WORDS_MAX))) } (content) }
}

/// A sentence on how to read what stands above.
pub fn how(words: &str) -> Markup {
    html! { p.how { (unbroken(words)) } }
}

/// A picture with what its script says below it, and with how to read it.
pub fn figure(picture: &Markup, axis: &str, how: &str) -> Markup {
    html! {
        figure data-axis=(axis) {
            (picture)
            div.readout aria-live="polite" {}
            @if !how.is_empty() { figcaption.how { (unbroken(how)) } }
        }
    }
}

/// A picture with what stands around it.
pub struct Framed<'a> {
    /// What the picture says, as a heading.
    pub statement: String,
    /// The picture; `None` where there is nothing to show.
    pub picture: Option<Markup>,
    /// Why there is nothing, and what would show something.
    pub instead: &'a str,
    /// How to read the picture.
    pub how: String,
    /// The table of its numbers.
    pub numbers: Markup,
    /// Pictures with one axis have one cursor.
    pub axis: &'a str,
}

impl Framed<'_> {
    /// The heading, the picture and what stands around it.
    pub fn markup(self) -> Markup {
        section(
            &self.statement,
            match &self.picture {
                None => html! { p { (self.instead) } },
                Some(picture) => html! {
                    (figure(picture, self.axis, &self.how))
                    (details("The numbers", self.numbers))
                },
            },
        )
    }
}

/// Attributes of the marks of a page whose values name elements or axes.
const NAMING: [&str; 3] = [" id=\"", " aria-labelledby=\"", " data-axis=\""];

/// Marks as a part of a page on which others like them stand: each name that they give has the name of the part in front. A quote
/// in words is escaped, so that no words look like an attribute.
pub fn scoped(content: &Markup, part: &str) -> Markup {
    let mut text = String::with_capacity(content.0.len());
    let mut rest = content.0.as_str();
    let next = |rest: &str| NAMING.into_iter().filter_map(|name| Some((rest.find(name)?, name))).min();
    while let Some((at, name)) = next(rest) {
        let begin = at + name.len();
        let end = rest[begin..].find('"').map_or(rest.len(), |length| begin + length);
        let names = rest[begin..end].split(' ').filter(|one| !one.is_empty());
        let names: Vec<String> = names.map(|one| format!("{part}-{one}")).collect();
        text += &rest[..begin];
        text += &names.join(" ");
        rest = &rest[end..];
    }
    PreEscaped(text + rest)
}

/// Names with words beside them; nothing where there are none.
pub fn fields(fields: &[(&str, String)]) -> Markup {
    let each: Vec<_> = fields.iter().filter(|(_, words)| !words.is_empty()).collect();
    html! {
        @if !each.is_empty() {
            dl { @for (name, words) in each { dt { (name) } dd { (breakable(words)) } } }
        }
    }
}

/// Labelled lines of a view. Labels that are left out are those of the line above.
pub fn lines_of(lines: &[Line]) -> Markup {
    html! {
        @if !lines.is_empty() {
            dl { @for line in lines {
                @if !line.label.is_empty() { dt { (line.label) } }
                dd { @for span in &line.text.0 {
                    @let words = breakable(&unbroken(&span.words));
                    @match span.tone {
                        Tone::Plain | Tone::Dim => (words),
                        Tone::Figure => strong { (words) },
                        Tone::Alarm | Tone::Warning => strong.bad { (words) },
                    }
                } }
            } }
        }
    }
}

/// The labelled lines of a view but for those with some labels.
pub fn said(view: &View, without: &[&str]) -> Markup {
    let mut is_left_out = false;
    let mut lines = view.lines.clone();
    lines.retain(|line| {
        if !line.label.is_empty() {
            is_left_out = without.contains(&line.label);
        }
        !is_left_out
    });
    lines_of(&lines)
}

/// Words that may be a long list without blanks, such as that of the agents: each comma is a place for a new line, but for those of a
/// number.
fn breakable(words: &str) -> Markup {
    let pieces: Vec<&str> = words.split(',').collect();
    html! {
        @for (place, piece) in pieces.iter().enumerate() {
            @if place > 0 { "," @if !piece.starts_with(' ') && !groups_digits(pieces[place - 1], piece) { wbr; } }
            (piece)
        }
    }
}

/// Whether the comma between two pieces of a text groups the digits of a number, such as that of `1,000/s`.
fn groups_digits(before: &str, behind: &str) -> bool {
    let count = |digits: &mut dyn Iterator<Item = char>| digits.take_while(char::is_ascii_digit).count();
    (1..=3).contains(&count(&mut before.chars().rev())) && count(&mut behind.chars()) == 3
}

/// The signs and units that stay on the line of their number.
const UNITS: [&str; 5] = ["%", "ns", "us", "ms", "s"];

/// A sentence in which no line ends between a number and its unit. Command lines keep their blanks: they are copied.
pub fn unbroken(sentence: &str) -> String {
    let mut text = String::with_capacity(sentence.len());
    for (place, word) in sentence.split(' ').enumerate() {
        if place > 0 {
            let unit = word.trim_end_matches(|sign: char| sign.is_ascii_punctuation() && sign != '%');
            let is_of_number = UNITS.contains(&unit) && text.ends_with(|last: char| last.is_ascii_digit());
            text.push(if is_of_number { '\u{a0}' } else { ' ' });
        }
        text.push_str(word);
    }
    text
}

/// Begins a part of a text whose direction of writing is its own.
const FIRST_STRONG_ISOLATE: char = '\u{2068}';
/// Ends that part.
const POP_ISOLATE: char = '\u{2069}';

/// A page with control characters and marks that change the direction of writing shown by their numbers. Letters that are written
/// from right to left are isolated, so that they do not change the order of the figures beside them.
pub fn visible(page: &Markup) -> String {
    let PreEscaped(words) = page;
    let mut text = String::with_capacity(words.len());
    let mut is_isolated = false;
    for character in words.chars() {
        if is_isolated != is_from_right(character) {
            text.push(if is_isolated { POP_ISOLATE } else { FIRST_STRONG_ISOLATE });
            is_isolated = !is_isolated;
        }
        match is_unseen(character) {
            true => text.push_str(&format!("\\u{{{:x}}}", u32::from(character))),
            false => text.push(character),
        }
    }
    text
}

/// Whether a browser shows nothing for a character, or what it does to those beside it.
fn is_unseen(character: char) -> bool {
    character != '\n' && character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fffe}' | '\u{ffff}'
        )
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
        let drawn = table(&["", "result", "servers", "p99"], &rows).into_string();
        let head = "<th></th><th class=\"name\">result</th><th class=\"name\">servers</th><th>p99</th>";
        assert!(drawn.contains(head), "{drawn}");
        assert!(
            drawn.contains("<td class=\"name\">1.json</td>") && drawn.contains("<td>unknown</td>"),
            "{drawn}"
        );
    }

    #[test]
    fn a_line_does_not_end_between_a_number_and_its_unit() {
        let sentence = "12 % of p99 (3.5 ms), 8 pairs: x 2 in 4 s; 5 sides";
        let expected = "12\u{a0}% of p99 (3.5\u{a0}ms), 8 pairs: x 2 in 4\u{a0}s; 5 sides";
        assert_eq!(unbroken(sentence), expected);
    }

    #[test]
    fn a_list_breaks_at_its_commas_and_a_number_does_not() {
        let broken = |words: &str| breakable(words).into_string();
        assert_eq!(broken("cache1:21001,cache2:11211, a"), "cache1:21001,<wbr>cache2:11211, a");
        assert_eq!(broken("at 1,250,000/s"), "at 1,250,000/s");
    }

    #[test]
    fn what_is_not_seen_is_shown_by_its_number_and_letters_from_the_right_are_isolated() {
        let shown = |words: &str| visible(&html! { (words) });
        assert_eq!(shown("</b>\u{0}\u{202e}x\u{1b}"), "&lt;/b&gt;\\u{0}\\u{202e}x\\u{1b}");
        assert_eq!(shown("שלום:11211, a"), "\u{2068}שלום\u{2069}:11211, a");
    }
}
