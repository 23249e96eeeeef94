//! The view of a result: what it says, as data that every layout draws.
//!
//! A view is made once from a document. It holds finished words and cells, and says of each what it is; it knows no width, no colour
//! and no markup.

pub mod cells;
pub mod change;
pub mod pair;
pub mod repeated;
pub mod run;
pub mod series;
pub(crate) mod several;
pub mod suite;
pub mod suites;

/// The tone of some words: whether a reader has to look there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Words without emphasis.
    #[default]
    Plain,
    /// The figure of a result.
    Figure,
    /// A failure.
    Alarm,
    /// A doubt.
    Warning,
    /// An explanation, which a reader who knows it passes over.
    Dim,
}

/// Words of one tone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The words, with the blanks between them and their neighbours.
    pub words: String,
    /// Their tone.
    pub tone: Tone,
}

/// Words of several tones, in one sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(pub Vec<Span>);

impl Text {
    /// Words without emphasis.
    pub fn plain(words: impl Into<String>) -> Text {
        Text::default().and(Tone::Plain, words)
    }

    /// The text with more words behind it.
    pub fn and(mut self, tone: Tone, words: impl Into<String>) -> Text {
        let words = words.into();
        if !words.is_empty() {
            self.0.push(Span { words, tone });
        }
        self
    }

    /// The words alone.
    pub fn words(&self) -> String {
        self.0.iter().map(|span| span.words.as_str()).collect()
    }
}

/// A labelled line, such as `Result` or `Trust`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The label, of at most 8 letters; empty for a further line below the same label.
    pub label: &'static str,
    /// The tone of the label.
    pub tone: Tone,
    /// The text behind it.
    pub text: Text,
}

impl Line {
    /// A line whose label has no emphasis.
    pub fn new(label: &'static str, text: Text) -> Line {
        Line { label, tone: Tone::Plain, text }
    }

    /// A line whose label is a warning.
    pub fn warning(label: &'static str, words: impl Into<String>) -> Line {
        Line { label, tone: Tone::Warning, text: Text::plain(words) }
    }
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// The text; empty where there is nothing to say.
    pub text: String,
    /// Whether half of the figure or more is the generator's own delay.
    pub is_mostly_lag: bool,
}

impl Cell {
    /// A cell of this text.
    pub fn of(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), is_mostly_lag: false }
    }
}

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// Characters that the column has at least, with the blanks before its cells.
    pub width: usize,
    /// Characters that the column has at least where there is little room.
    pub narrow_width: usize,
    /// The place in the order in which columns give way where there is too little room; absent for those that stay.
    pub gives_way: Option<u8>,
    /// Whether the cells are words, which begin below each other; figures end below each other.
    pub is_words: bool,
}

/// What a row of a table has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowKind {
    /// Figures.
    #[default]
    Figures,
    /// The intervals of the figures of the row above.
    Sureness,
    /// Something else that is said of the figures above, by a name that is set in.
    About,
}

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The first cell.
    pub name: String,
    /// The other cells, one for each column.
    pub cells: Vec<Cell>,
    /// What the row has.
    pub kind: RowKind,
}

/// A table, with a first column of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The heading of the names.
    pub name: String,
    /// Whether the names are figures, which end below each other; words begin below each other.
    pub has_figures_first: bool,
    /// The columns behind the names.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A sentence below the tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// The sentence, without its full stop.
    pub text: String,
    /// Headings of the columns that it is about, one of which has to be shown for it to stand; empty where it is about none.
    pub columns: Vec<String>,
    /// Whether it stands only where no other sentence of this kind stands before it.
    pub is_alternative: bool,
}

impl Note {
    /// A sentence that is about no column.
    pub fn of(text: impl Into<String>) -> Note {
        Note { text: text.into(), ..Note::default() }
    }
}

/// One of several sides that a result compares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// The name of the side, a letter.
    pub name: &'static str,
    /// What the side is, as parts that stand beside each other where there is room.
    pub parts: Vec<String>,
}

/// What a result says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The sides that are compared; empty for a result of one thing.
    pub sides: Vec<Side>,
    /// The lines on what ran, each as parts that stand beside each other where there is room.
    pub ran: Vec<Vec<String>>,
    /// What came out.
    pub lines: Vec<Line>,
    /// The tables.
    pub tables: Vec<Table>,
    /// Sentences below the tables.
    pub notes: Vec<Note>,
}

impl View {
    /// The notes that stand where the columns with some headings are shown: one of several alternatives, and none about columns that
    /// gave way.
    pub fn notes_beside<'a>(
        &'a self,
        is_shown: impl Fn(&str) -> bool + 'a,
    ) -> impl Iterator<Item = &'a Note> {
        let mut has_alternative = false;
        self.notes.iter().filter(move |note| {
            let stands = note.columns.is_empty() || note.columns.iter().any(|name| is_shown(name));
            let is_second = note.is_alternative && has_alternative;
            has_alternative |= stands && note.is_alternative;
            stands && !is_second
        })
    }
}
