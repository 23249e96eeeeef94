//! Text in a language of marks, whose parts are fixed marks and escaped words: words that were not escaped do not compile.

use std::marker::PhantomData;

use crate::visible::{MARK, is_hidden};

/// A language of marks, by how it writes a character of plain words.
pub trait Language {
    /// Adds a character of words, so that it means nothing but itself.
    fn add(text: &mut String, character: char);
}

/// Markdown, and the HTML that may stand in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Markdown;

/// XML 1.0, which has no way to write most control characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Xml;

impl Language for Markdown {
    fn add(text: &mut String, character: char) {
        match character {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '|' | '~' | '@' => {
                text.extend(['\\', character]);
            }
            control if control.is_control() => text.push(' '),
            hidden if is_hidden(hidden) => text.push(MARK),
            plain => text.push(plain),
        }
    }
}

impl Language for Xml {
    fn add(text: &mut String, character: char) {
        match character {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' => text.push_str("&quot;"),
            '\n' | '\t' => text.push(' '),
            '\u{fffe}' | '\u{ffff}' => text.push(MARK),
            hidden if is_hidden(hidden) => text.push(MARK),
            plain => text.push(plain),
        }
    }
}

/// Text that grows by marks, which are written in the program, and by words, which are escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<L> {
    text: String,
    language: PhantomData<L>,
}

impl<L> Default for Text<L> {
    fn default() -> Text<L> {
        Text { text: String::new(), language: PhantomData }
    }
}

impl<L: Language> Text<L> {
    /// Text that begins with a mark.
    pub fn of(mark: &'static str) -> Text<L> {
        Text::default().mark(mark)
    }

    /// Adds a mark of the language.
    pub fn mark(mut self, mark: &'static str) -> Text<L> {
        self.text.push_str(mark);
        self
    }

    /// Adds words.
    pub fn words(self, words: &str) -> Text<L> {
        self.cut(words, usize::MAX)
    }

    /// Adds words of at most this many characters. Beyond them an ellipsis stands for the rest.
    pub fn cut(mut self, words: &str, chars_max: usize) -> Text<L> {
        for (place, character) in words.chars().enumerate() {
            if place == chars_max {
                self.text.push('…');
                break;
            }
            L::add(&mut self.text, character);
        }
        self
    }

    /// Adds other text of the language.
    pub fn and(mut self, other: Text<L>) -> Text<L> {
        self.text.push_str(&other.text);
        self
    }

    /// Adds several texts, with a mark after each.
    pub fn each(self, texts: impl IntoIterator<Item = Text<L>>, mark: &'static str) -> Text<L> {
        texts.into_iter().fold(self, |text, other| text.and(other).mark(mark))
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Leaves of the text what fits into this many bytes, with an ellipsis where it was cut.
    pub fn shorten(mut self, bytes_max: usize) -> Text<L> {
        if self.text.len() > bytes_max {
            let end = (0..=bytes_max - 4).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or(0);
            self.text.truncate(end);
            self.text.push_str("…\n");
        }
        self
    }

    /// The finished text.
    pub fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "<b>&|`*\u{1b}[2J\u{202e}]]>\"\n";

    #[test]
    fn words_are_text_in_every_language_and_marks_stay() {
        let markdown = Text::<Markdown>::of("**").words(HOSTILE).mark("**").finish();
        assert_eq!(markdown, "**&lt;b&gt;&amp;\\|\\`\\* \\[2J\u{fffd}\\]\\]&gt;\" **");
        let xml = Text::<Xml>::of("<a>").words(HOSTILE).mark("</a>").finish();
        assert_eq!(xml, "<a>&lt;b&gt;&amp;|`*\u{fffd}[2J\u{fffd}]]&gt;&quot; </a>");
    }

    #[test]
    fn words_are_cut_by_characters_and_texts_by_bytes() {
        assert_eq!(Text::<Markdown>::default().cut(&"<".repeat(9), 3).finish(), "&lt;&lt;&lt;…");
        assert_eq!(Text::<Xml>::default().words("äääääää").shorten(9).finish(), "ää…\n");
    }
}
