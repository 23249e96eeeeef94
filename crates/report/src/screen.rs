//! The layout of a view for a terminal: lines that fit its width, columns that give way, and few colours.

use std::borrow::Cow;

use crate::view::{Column, Line, Row, RowKind, Side, Span, Table, Text, Tone, View};
use crate::visible;

/// The width of text for a reader that has none of its own.
pub const WIDTH: usize = 80;

/// The least and the greatest width of text.
const WIDTHS: (usize, usize) = (48, 120);

/// The column at which the text of a labelled line begins.
const TEXT_COLUMN: usize = 9;

/// The column at which what a side is begins.
const SIDE_COLUMN: usize = 3;

/// What stands between parts that are beside each other.
const GAP: &str = "   ";

/// The least width of a column of names.
const NAME_WIDTH: usize = 8;

/// The least width of a column of names that are figures.
const FIGURE_NAME_WIDTH: usize = 9;

/// Blanks before a column of words.
const WORDS_GAP: usize = 3;

/// The sequences that a terminal understands of those that set colours and emphasis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// No sequence at all: pipes, files, terminals that understand none.
    #[default]
    None,
    /// Bold and dim, which are no colours.
    Emphasis,
    /// Emphasis, red and yellow.
    All,
}

/// The options that tell more, by the command that prints the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hints {
    /// None: pipes, files, texts that have everything.
    #[default]
    None,
    /// Those of a run.
    OfRun,
    /// Those of a stored result.
    OfStored,
    /// Those of several runs.
    OfRuns,
    /// Those of a comparison of stored results.
    OfCompared,
    /// Those of a stored result of several runs.
    OfStoredRuns,
}

impl Hints {
    fn text(self) -> Option<&'static str> {
        match self {
            Hints::None => None,
            Hints::OfRun => {
                Some("more: --times (service, wait, lag)   -v (everything)   --report FILE (charts)")
            }
            Hints::OfStored => Some("more: --times (service, wait, lag)   -v (everything)"),
            Hints::OfRuns => Some("more: -v (everything)   --report FILE (charts)"),
            Hints::OfCompared => Some("more: -v (everything)   -o FILE (charts)"),
            Hints::OfStoredRuns => Some("more: -v (everything)"),
        }
    }
}

/// What text is drawn on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Characters of a line.
    pub width: usize,
    /// The sequences of colours and emphasis.
    pub colours: Colours,
    /// Options that tell more, which a last line names.
    pub hints: Hints,
}

impl Default for Paper {
    fn default() -> Paper {
        Paper { width: WIDTH, colours: Colours::None, hints: Hints::None }
    }
}

impl Paper {
    /// Paper as wide as a terminal, within what can be read.
    pub fn of_width(width: usize) -> Paper {
        Paper { width: width.clamp(WIDTHS.0, WIDTHS.1), ..Paper::default() }
    }
}

/// Text of a view, with a line end after each line.
pub fn draw(view: &View, paper: Paper) -> String {
    let mut page = Page { paper, text: String::new() };
    view.sides.iter().for_each(|side| page.side(side));
    page.ran(&view.ran, view.sides.is_empty());
    if !view.lines.is_empty() {
        page.line(&[]);
    }
    view.lines.iter().for_each(|line| page.labelled(line));
    for table in &view.tables {
        page.line(&[]);
        page.table(table);
    }
    if view.tables.is_empty() && !view.notes.is_empty() {
        page.line(&[]);
    }
    let tone = if view.tables.is_empty() { Tone::Plain } else { Tone::Dim };
    page.notes(&notes_shown(view, paper.width), tone);
    if let Some(hints) = paper.hints.text() {
        page.line(&[]);
        match length(hints) <= paper.width {
            true => page.line(&[Span { words: hints.to_owned(), tone: Tone::Dim }]),
            false => page.wrapped(&Text::default().and(Tone::Dim, hints), 0, ""),
        }
    }
    page.text
}

/// The sentences that stand below the tables: of those about columns the ones whose columns have room.
fn notes_shown(view: &View, width: usize) -> Vec<String> {
    let shown: Vec<&str> = view
        .tables
        .iter()
        .flat_map(|table| {
            let columns = TableLayout::of(table, width).columns;
            columns.into_iter().map(|(place, _)| table.columns[place].name.as_str())
        })
        .collect();
    view.notes_beside(|name| shown.contains(&name)).map(|note| note.text.clone()).collect()
}

/// Pieces of one word, or of words that a line break must not part.
type Word = Vec<Span>;

struct Page {
    paper: Paper,
    text: String,
}

impl Page {
    fn line(&mut self, spans: &[Span]) {
        for span in spans {
            let words = visible::words(&span.words);
            match self.sequence(span.tone, &words) {
                Some(sequence) => {
                    self.text.push_str("\u{1b}[");
                    self.text.push_str(sequence);
                    self.text.push('m');
                    self.text.push_str(&words);
                    self.text.push_str("\u{1b}[0m");
                }
                None => self.text.push_str(&words),
            }
        }
        let end = self.text.trim_end_matches(' ').len();
        self.text.truncate(end);
        self.text.push('\n');
    }

    /// The numbers of the sequence for a tone; `None` for words without emphasis.
    fn sequence(&self, tone: Tone, words: &str) -> Option<&'static str> {
        let is_in_capitals = words.chars().any(char::is_alphabetic) && !words.chars().any(char::is_lowercase);
        match (self.paper.colours, tone) {
            (Colours::None, _) | (_, Tone::Plain) => None,
            (_, Tone::Figure) => Some("1"),
            (_, Tone::Dim) => Some("2"),
            (Colours::Emphasis, _) => is_in_capitals.then_some("1"),
            (Colours::All, Tone::Alarm) => Some(if is_in_capitals { "1;31" } else { "31" }),
            (Colours::All, Tone::Warning) => Some(if is_in_capitals { "1;33" } else { "33" }),
        }
    }

    /// The name of a side, and what it is.
    fn side(&mut self, side: &Side) {
        let name = format!("{:<SIDE_COLUMN$}", side.name);
        let shown = side.parts.join(GAP);
        match length(&name) + length(&shown) <= self.paper.width {
            true => self.line(&[Span { words: name + &shown, tone: Tone::Plain }]),
            false => self.wrapped(&Text::plain(shown), SIDE_COLUMN, &name),
        }
    }

    /// The lines on what ran. A last part for which there is no room goes to the end of the next line.
    fn ran(&mut self, lines: &[Vec<String>], has_heading: bool) {
        let mut left_over = None;
        for (place, parts) in lines.iter().enumerate() {
            let is_last = place + 1 == lines.len();
            let mut shown = parts.join(GAP);
            if !is_last && parts.len() > 2 && length(&shown) > self.paper.width {
                shown = parts[..parts.len() - 1].join(GAP);
                left_over = parts.last().cloned();
            }
            if is_last && let Some(part) = left_over.take() {
                shown = format!("{shown}; {part}");
            }
            let tone = if place == 0 && has_heading { Tone::Plain } else { Tone::Dim };
            match length(&shown) <= self.paper.width {
                true => self.line(&[Span { words: shown, tone }]),
                false => self.wrapped(&Text::default().and(tone, shown), 0, ""),
            }
        }
    }

    fn labelled(&mut self, line: &Line) {
        let label = Span { words: format!("{:<TEXT_COLUMN$}", line.label), tone: line.tone };
        self.wrapped_behind(label, &line.text, TEXT_COLUMN);
    }

    fn notes(&mut self, notes: &[String], tone: Tone) {
        let mut joined: Vec<String> = Vec::new();
        for note in notes {
            match joined.last_mut() {
                Some(last) if length(last) + 2 + length(note) <= self.paper.width => {
                    last.push_str(". ");
                    last.push_str(note);
                }
                _ => joined.push(note.clone()),
            }
        }
        joined.into_iter().for_each(|note| self.wrapped(&Text::default().and(tone, note), 0, ""));
    }

    /// Text from the first column on, whose further lines are indented.
    fn wrapped(&mut self, text: &Text, indent: usize, first: &str) {
        self.wrapped_behind(Span { words: first.to_owned(), tone: Tone::Plain }, text, indent);
    }

    fn wrapped_behind(&mut self, first: Span, text: &Text, indent: usize) {
        let mut used = length(&first.words);
        let mut line = vec![first];
        let mut is_begun = false;
        for word in words(text) {
            let size: usize = word.iter().map(|span| length(&span.words)).sum();
            if is_begun && used + 1 + size > self.paper.width {
                self.line(&line);
                line = vec![Span { words: " ".repeat(indent), tone: Tone::Plain }];
                (used, is_begun) = (indent, false);
            }
            if is_begun {
                // The blank has the tone of the words on both sides, so that emphasis is one piece.
                let tone = if line.last().map(|span| span.tone) == word.first().map(|span| span.tone) {
                    word[0].tone
                } else {
                    Tone::Plain
                };
                push(&mut line, Span { words: " ".to_owned(), tone });
                used += 1;
            }
            word.into_iter().for_each(|span| push(&mut line, span));
            (used, is_begun) = (used + size, true);
        }
        self.line(&line);
    }

    fn table(&mut self, table: &Table) {
        let whole = TableLayout::of(table, self.paper.width);
        for (place, layout) in whole.blocks(table, self.paper.width).into_iter().enumerate() {
            if place > 0 {
                self.line(&[]);
            }
            self.block(table, &layout);
        }
    }

    fn block(&mut self, table: &Table, layout: &TableLayout) {
        let heading = layout.columns.iter().map(|(place, _)| (table.columns[*place].name.as_str(), false));
        let heading = layout.line(table, &table.name, heading, Tone::Plain);
        self.line(&heading);
        for row in &table.rows {
            let tone = if row.kind == RowKind::Sureness { Tone::Dim } else { Tone::Plain };
            let cells = layout.columns.iter().filter_map(|(place, _)| row.cells.get(*place));
            let cells = cells.map(|cell| (cell.text.as_str(), cell.is_mostly_lag));
            let line = layout.line(table, &layout.name(row), cells, tone);
            self.line(&line);
        }
    }
}

/// Adds a span, to the one before it where both have one tone.
fn push(line: &mut Vec<Span>, span: Span) {
    match line.last_mut() {
        Some(last) if last.tone == span.tone => last.words.push_str(&span.words),
        _ => line.push(span),
    }
}

/// The number of characters of a text; each is as wide as the others.
fn length(text: &str) -> usize {
    text.chars().count()
}

/// Units, and words like units, that a line break does not part from their number.
const UNITS: [&str; 21] = [
    "%", "us", "ms", "s", "ns", "h", "min", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "req/s",
    "keys/s", "bytes", "x", "CPUs", "CPU",
];

/// The words of a text, those that belong together as one.
fn words(text: &Text) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut is_begun = false;
    for span in &text.0 {
        for (place, piece) in span.words.split(' ').enumerate() {
            is_begun &= place == 0;
            if piece.is_empty() {
                continue;
            }
            let piece = Span { words: piece.to_owned(), tone: span.tone };
            match words.last_mut().filter(|_| is_begun) {
                Some(word) => word.push(piece),
                None => words.push(vec![piece]),
            }
            is_begun = true;
        }
        is_begun &= !span.words.ends_with(' ');
    }
    glued(words)
}

/// The words, with numbers and their units in one, what compares them and short options with their numbers, and what is equal in one.
fn glued(words: Vec<Word>) -> Vec<Word> {
    let mut all: Vec<Word> = Vec::new();
    // What stands on both sides of an equals sign is one statement.
    let is_sign = |word: &Word| word.last().is_some_and(|span| span.words == "=");
    for word in words {
        let is_unit = word.first().is_some_and(|span| {
            let bare = span.words.trim_end_matches([',', ';', '.', ')', ':']);
            UNITS.contains(&bare)
        });
        let has_number =
            |last: &Word| last.last().is_some_and(|span| span.words.ends_with(|c: char| c.is_ascii_digit()));
        let is_number = word.first().is_some_and(|span| span.words.starts_with(|c: char| c.is_ascii_digit()));
        let is_before_number = |last: &Word| {
            last.last().is_some_and(|span| {
                let option = span.words.strip_prefix('-');
                span.words == "<=" || option.is_some_and(|name| name.len() == 1 && name.is_ascii())
            })
        };
        match all.last_mut() {
            Some(last)
                if is_unit && has_number(last)
                    || is_number && is_before_number(last)
                    || is_sign(&word)
                    || is_sign(last) =>
            {
                let tone = match (last.last(), word.first()) {
                    (Some(one), Some(other)) if one.tone == other.tone => one.tone,
                    _ => Tone::Plain,
                };
                last.push(Span { words: " ".to_owned(), tone });
                last.extend(word);
            }
            _ => all.push(word),
        }
    }
    all
}

/// The columns of a table that have room, with their widths.
struct TableLayout {
    name_width: usize,
    is_narrow: bool,
    /// Places of the columns that are shown, with their widths.
    columns: Vec<(usize, usize)>,
}

impl TableLayout {
    fn of(table: &Table, width: usize) -> TableLayout {
        let mut order: Vec<(u8, usize)> = table
            .columns
            .iter()
            .enumerate()
            .filter_map(|(place, column)| column.gives_way.map(|when| (when, place)))
            .collect();
        order.sort_unstable();
        let mut gone: Vec<usize> = Vec::new();
        loop {
            for is_narrow in [false, true] {
                let layout = TableLayout::with(table, &gone, is_narrow);
                if layout.width(table) <= width {
                    return layout;
                }
            }
            // Columns with one place in the order say one thing, and go together.
            match order.get(gone.len()).map(|(when, _)| *when) {
                Some(next) => {
                    let leaving = order[gone.len()..].iter().take_while(|(when, _)| *when == next);
                    gone = gone.iter().copied().chain(leaving.map(|(_, place)| *place)).collect();
                }
                None => return TableLayout::with(table, &gone, true),
            }
        }
    }

    /// The layout in pieces that have room, one below the other: columns that do not give way are never lost.
    fn blocks(self, table: &Table, width: usize) -> Vec<TableLayout> {
        if self.width(table) <= width || self.columns.is_empty() {
            return vec![self];
        }
        let mut blocks: Vec<TableLayout> = Vec::new();
        // A mark may stand behind the last column of each.
        let mut used = 1;
        for column in self.columns {
            used += column.1;
            match blocks.last_mut() {
                Some(block) if self.name_width + used <= width => block.columns.push(column),
                _ => {
                    used = 1 + column.1;
                    let (name_width, is_narrow) = (self.name_width, self.is_narrow);
                    blocks.push(TableLayout { name_width, is_narrow, columns: vec![column] });
                }
            }
        }
        blocks
    }

    fn with(table: &Table, gone: &[usize], is_narrow: bool) -> TableLayout {
        let shown = table.columns.iter().enumerate().filter(|(place, _)| !gone.contains(place));
        let columns: Vec<(usize, usize)> =
            shown.map(|(place, column)| (place, column_width(table, place, column, is_narrow))).collect();
        let figures = table.rows.iter().filter(|row| row.kind == RowKind::Figures);
        let longest = figures.map(|row| length(&row.name)).chain([length(&table.name)]).max().unwrap_or(0);
        let least = if table.has_figures_first { FIGURE_NAME_WIDTH } else { NAME_WIDTH };
        let layout = TableLayout { name_width: longest.max(least), is_narrow, columns };
        let first = layout.columns.first().map(|(place, _)| *place);
        // The name of a row that says something of another reaches into the first column as far as that is empty.
        let needed = |row: &Row| {
            let (first, (_, width)) = first.zip(layout.columns.first())?;
            let cell = row.cells.get(first).map_or(0, |cell| length(&cell.text));
            (cell > 0).then(|| (length(&layout.name(row)) + 1 + cell).saturating_sub(*width))
        };
        let about = table.rows.iter().filter(|row| row.kind != RowKind::Figures);
        let names = about.filter_map(needed).max().unwrap_or(0);
        TableLayout { name_width: layout.name_width.max(names), ..layout }
    }

    /// The width of the whole table, with the mark behind its last column.
    fn width(&self, table: &Table) -> usize {
        let last = self.columns.last().map(|(place, _)| *place);
        let is_marked =
            |row: &Row| last.is_some_and(|last| row.cells.get(last).is_some_and(|cell| cell.is_mostly_lag));
        let mark = usize::from(table.rows.iter().any(is_marked));
        self.name_width + self.columns.iter().map(|(_, width)| width).sum::<usize>() + mark
    }

    /// The first cell of a row.
    fn name(&self, row: &Row) -> String {
        match (row.kind, self.is_narrow) {
            (RowKind::Figures, _) => row.name.clone(),
            (RowKind::Sureness | RowKind::About, false) => format!("  {}", row.name),
            (RowKind::Sureness, true) => row.name.replacen(" %", "%", 1),
            (RowKind::About, true) => row.name.clone(),
        }
    }

    fn line<'a>(
        &self,
        table: &Table,
        name: &str,
        cells: impl Iterator<Item = (&'a str, bool)>,
        tone: Tone,
    ) -> Vec<Span> {
        let name = visible::words(name);
        let name = match table.has_figures_first {
            true => format!("{name:>width$}", width = self.name_width),
            false => name.into_owned(),
        };
        let mut used = length(&name);
        let mut spans = vec![Span { words: name, tone }];
        let mut end = self.name_width;
        for ((text, is_marked), (place, width)) in cells.zip(&self.columns) {
            let begin = end;
            end += width;
            let text: Cow<'_, str> = visible::words(text);
            if text.is_empty() {
                continue;
            }
            let gap = match table.columns[*place].is_words {
                true => (begin + WORDS_GAP).saturating_sub(used).max(1),
                false => end.saturating_sub(used + length(&text)).max(1),
            };
            push(&mut spans, Span { words: " ".repeat(gap), tone });
            let cell = if is_marked { Tone::Warning } else { tone };
            let mark = if is_marked { "*" } else { "" };
            used += gap + length(&text) + mark.len();
            push(&mut spans, Span { words: format!("{text}{mark}"), tone: cell });
        }
        spans
    }
}

/// The width of a column: what its cells need, with a blank before them.
fn column_width(table: &Table, place: usize, column: &Column, is_narrow: bool) -> usize {
    let cells = table.rows.iter().filter_map(|row| row.cells.get(place)).map(|cell| length(&cell.text));
    let longest = cells.chain([length(&column.name)]).max().unwrap_or(0);
    let least = if is_narrow { column.narrow_width } else { column.width };
    least.max(longest + if column.is_words { WORDS_GAP } else { 1 })
}
