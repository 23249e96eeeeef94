//! A view as Markdown, for the page of a job or a comment: its result as a headline, what else came out, tables and notes.

use crate::document::Document;
use crate::escaped::{Markdown, Text};
use crate::numbers::number;
use crate::view::run::{self, Wanted};
use crate::view::{Cell, Line, Row, RowKind, Side, Table, View};
use crate::words::baseline::baseline_words;

/// The most bytes of a summary.
const BYTES_MAX: usize = 8 * 1024;

/// Characters of words between two marks that are shown at most.
const WORDS_CHARS_MAX: usize = 2_000;

/// Steps of a sparkline.
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Columns of a sparkline at most.
const COLUMNS_MAX: usize = 40;

/// Text of Markdown, whose words are escaped.
type Md = Text<Markdown>;

/// The view as Markdown, at most 8 KB.
pub fn render(view: &View) -> Vec<u8> {
    of(view).shorten(BYTES_MAX).finish().into_bytes()
}

/// The summary of a run, at most 8 KB: its screen, the requests over time, and the five times of all operations folded with the seed, where
/// there is room for them.
pub fn of_run(document: &Document) -> Vec<u8> {
    let screen = run::view(document, Wanted::Screen);
    let outages = run::outages_of(document);
    let text = outages.iter().fold(of(&screen), |text, own| text.and(table(own))).and(sparkline(document));
    let times = run::view(document, Wanted::Times).tables;
    let details = times.iter().fold(Md::default(), |text, own| text.and(table(own)));
    // A run with a word in capitals has its seed on the screen.
    let details = match screen.lines.iter().any(|line| line.label == "Seed") {
        true => details,
        false => details.mark("\nSeed ").words(&document.plan.seed.to_string()).mark("\n"),
    };
    let details = match &document.baseline {
        Some(baseline) => details.mark("\nBaseline ").words(&baseline_words(baseline)).mark("\n"),
        None => details,
    };
    let details = match details.len() {
        0 => details,
        _ => Md::of("\n<details><summary>More of this run</summary>\n").and(details).mark("\n</details>\n"),
    };
    let text = if text.len() + details.len() <= BYTES_MAX { text.and(details) } else { text };
    text.shorten(BYTES_MAX).finish().into_bytes()
}

/// Words in which no mark of Markdown and HTML has a meaning, in one line. Beyond 2,000 characters an ellipsis stands for the rest.
fn plain(words: &str) -> Md {
    Md::default().cut(words, WORDS_CHARS_MAX)
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
    // A line without a label goes on with the one before it, but for the one behind the headline.
    let marks = others.iter().enumerate().map(|(place, line)| match (line.label, place) {
        (_, 0) => "\n",
        ("", _) => "\\\n",
        _ => "\n\n",
    });
    let text = marks.zip(others).fold(text, |text, (mark, own)| text.mark(mark).and(line(own)));
    let text = if others.is_empty() { text } else { text.mark("\n") };
    let text = view.tables.iter().fold(text, |text, own| text.and(table(own)));
    let notes = view.notes_beside(|_| true).map(|note| plain(&note.text));
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
    Md::of("**").words(side.name).mark("** ").and(plain(&side.parts.join(", ")))
}

/// The words of a line behind its label, where it has one.
fn line(line: &Line) -> Md {
    let label = match line.label {
        "" => Md::default(),
        label => Md::of("**").words(label).mark("** "),
    };
    label.and(plain(&line.text.words()))
}

/// A table; what is said of the figures of a row stands in a row of its own.
fn table(table: &Table) -> Md {
    let heading =
        std::iter::once(table.name.as_str()).chain(table.columns.iter().map(|column| column.name.as_str()));
    let of_names = Md::of(if table.has_figures_first { "|---:|" } else { "|---|" });
    let columns = table.columns.iter().map(|column| Md::of(if column.is_words { "---" } else { "---:" }));
    let rule = of_names.each(columns, "|").mark("\n");
    let rows = table.rows.iter().map(row);
    Md::of("\n").and(row_of(heading.map(plain))).and(rule).each(rows, "")
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
    row_of(std::iter::once(name).chain(row.cells.iter().map(figure)))
}

fn row_of(cells: impl Iterator<Item = Text<Markdown>>) -> Md {
    Md::of("|").each(cells.map(|cell| Md::of(" ").and(cell)), " |").mark("\n")
}

/// Completed requests over time, as one line of bars.
fn sparkline(document: &Document) -> Md {
    let intervals = &document.intervals;
    if intervals.len() < 2 {
        return Md::default();
    }
    let each = intervals.len().div_ceil(COLUMNS_MAX);
    let rates: Vec<f64> = intervals
        .chunks(each)
        .map(|chunk| {
            let (sum, length) = chunk
                .iter()
                .fold((0.0, 0.0), |all, one| (all.0 + one.rate * one.seconds, all.1 + one.seconds));
            if length > 0.0 { sum / length } else { 0.0 }
        })
        .collect();
    let most = rates.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return Md::default();
    }
    let step = |rate: &f64| STEPS[((rate / most * 8.0).ceil() as usize).clamp(1, STEPS.len()) - 1];
    let bars: String = rates.iter().map(step).collect();
    let text = Md::of("\nCompleted per second, 0 to ").words(&number(most));
    text.mark(": `").words(&bars).mark("`\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::Run;
    use crate::view::{Column, Note, Text as Words, Tone};
    use pummel_logic::plan::Goal;
    use pummel_logic::time::MILLISECOND;
    use pummel_measure::measurement::{Keep, Status};

    fn text(document: &Document) -> String {
        String::from_utf8(of_run(document)).unwrap()
    }

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
            notes: ["a note", "another in its place"]
                .map(|note| Note { is_alternative: true, ..Note::of(note) })
                .to_vec(),
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
        assert_eq!(String::from_utf8(render(&view)).unwrap(), expected);
        let results = ["Result", "", "Trust"].map(|label| Line::new(label, Words::plain("words")));
        let several = View { lines: results.to_vec(), ..View::default() };
        let expected = "### words\n\nwords\n\n**Trust** words\n";
        assert_eq!(String::from_utf8(render(&several)).unwrap(), expected);
    }

    #[test]
    fn a_summary_of_a_run_is_its_screen_with_requests_over_time_and_the_five_times() {
        let mut run = Run::new(Keep::Figures);
        run.plan.goals = vec![Goal { quantile: 0.99, limit_ns: MILLISECOND / 100 }];
        let plain = String::from_utf8(of_run(&Run::new(Keep::Figures).document(Clone::clone))).unwrap();
        assert!(plain.ends_with("\nSeed 42\n\n</details>\n"), "{plain}");
        let text = run.document(text);
        assert!(
            text.starts_with("### GOAL MISSED. 1,000 req/s of 1,000 asked; 94.4 % hits, no errors\n\n- "),
            "{text}"
        );
        assert!(text.contains("**Limit** none reached: every request was answered as it came"), "{text}");
        assert!(text.contains("\n| get | 900 | 62.4 us |"), "{text}");
        assert!(text.contains("\nCompleted per second, 0 to 1,000: `██`\n"), "{text}");
        assert!(text.contains("<details>") && text.contains("\n| reaction | "), "{text}");
    }

    #[test]
    fn a_run_that_measured_and_stored_nothing_has_its_reason_and_no_table() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        document.status = Status::Partial;
        document.reason = Some("none of 10 records was stored".to_owned());
        document.totals.requests = 0;
        document.totals.completed = 0;
        document.load = None;
        let text = text(&document);
        assert!(text.starts_with("### ") && text.contains("none of 10 records was stored"), "{text}");
        assert!(!text.contains("|---") && text.matches("Seed").count() == 1, "{text}");
        assert!(!text.contains("<details>"), "there is nothing to fold: {text}");
    }

    #[test]
    fn a_summary_is_bounded_and_foreign_words_are_text() {
        let mut document = Run::new(Keep::Figures).document(Clone::clone);
        document.error_messages =
            (0..100).map(|i| (format!("<b>|*{i}\n# x {}", "y".repeat(5_000)), i)).collect();
        document.noreply_errors = Some(100);
        document.plan.servers = vec!["s".repeat(90); 500];
        let text = text(&document);
        assert!(text.len() <= BYTES_MAX, "{}", text.len());
        assert!(!text.contains("<b>") && text.contains("&lt;b&gt;\\|\\*99 \\# x"), "{text}");
        assert!(text.contains("yyy…") && text.contains("\nand 2 more: -v\n"), "{text}");
        assert!(text.contains("500 servers, sss"), "{text}");
        assert_eq!(plain(&"x".repeat(2_000)).finish(), "x".repeat(2_000));
        assert_eq!(plain(&"<".repeat(2_001)).finish(), "&lt;".repeat(2_000) + "…");
    }
}
