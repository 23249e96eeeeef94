//! Control characters are made visible here, in all text that a terminal or a log gets: of a peer, of a file, of a command line.

use std::borrow::Cow;

/// Stands in text for a character that would not be seen.
pub const MARK: char = char::REPLACEMENT_CHARACTER;

/// Moves the cursor to the first place and clears the screen. memaslap's statistics begin with it, as the original's do.
pub const CLEAR_SCREEN: &str = "\u{1b}[1;1H\u{1b}[2J";

/// What a page of HTML begins with. A page has its own rules for what it shows.
const PAGE: &[u8] = b"<!doctype html>";

/// The first bytes of reports that are no text: data packed by gzip, and Parquet.
const BINARY: [&[u8]; 2] = [b"\x1f\x8b", b"PAR1"];

/// Whether a character speaks to a terminal, turns the direction of a line, or ends it for some readers: C0, DEL and C1, and the
/// marks, embeddings, overrides and isolates of Unicode's bidirectional text (UAX 9).
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character is hidden that is not part of the layout of text.
fn is_hidden_in_text(character: char) -> bool {
    is_hidden(character) && !matches!(character, '\n' | '\t')
}

/// Words that become a part of a line: every hidden character is a mark.
pub fn words(words: &str) -> Cow<'_, str> {
    marked(words, is_hidden)
}

/// Text of lines: every hidden character but tabs and the ends of lines is a mark.
pub fn text(text: &str) -> Cow<'_, str> {
    match text.strip_prefix(CLEAR_SCREEN) {
        Some(rest) if rest.contains(is_hidden_in_text) => {
            Cow::Owned(format!("{CLEAR_SCREEN}{}", marked(rest, is_hidden_in_text)))
        }
        Some(_) => Cow::Borrowed(text),
        None => marked(text, is_hidden_in_text),
    }
}

/// A report as standard output gets it. In JSON a hidden character is written as its escape, which is the same JSON, and in all
/// other text, that with bytes that are no text too, as a mark. Packed data, tables in Parquet and pages stay as they are.
pub fn report(report: &[u8]) -> Cow<'_, [u8]> {
    if BINARY.iter().any(|begin| report.starts_with(begin)) || report.starts_with(PAGE) {
        return Cow::Borrowed(report);
    }
    let words = String::from_utf8_lossy(report);
    let is_shown = matches!(words, Cow::Borrowed(_)) && !words.contains(is_hidden_in_text);
    if is_shown {
        return Cow::Borrowed(report);
    }
    let is_json = words.trim_ascii_start().starts_with('{')
        && serde_json::from_str::<serde::de::IgnoredAny>(&words).is_ok();
    match is_json {
        true => Cow::Owned(escaped_json(&words).into_bytes()),
        false => Cow::Owned(text(&words).into_owned().into_bytes()),
    }
}

fn marked(words: &str, is_hidden: fn(char) -> bool) -> Cow<'_, str> {
    match words.contains(is_hidden) {
        true => Cow::Owned(words.chars().map(|c| if is_hidden(c) { MARK } else { c }).collect()),
        false => Cow::Borrowed(words),
    }
}

/// JSON with the escapes of hidden characters. Those that JSON has unescaped stand in its texts, except for the ends of lines, of
/// which the return of the cursor is left out.
fn escaped_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len() + json.len() / 8);
    for character in json.chars().filter(|character| *character != '\r') {
        match is_hidden_in_text(character) {
            // All of them are below U+10000.
            true => escaped.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => escaped.push(character),
        }
    }
    escaped
}

/// A name of at most `chars_max` characters, of which the last is a mark where the name is cut off.
pub fn cut_name(name: &str, chars_max: usize) -> String {
    match name.chars().count() <= chars_max {
        true => name.to_owned(),
        false => name.chars().take(chars_max - 1).chain(['\u{2026}']).collect(),
    }
}

/// Most characters of another machine's words that are written.
const FOREIGN_CHARS_MAX: usize = 1_000;

/// The words of another machine as they may be written to a terminal or a log: without control characters, by which they could
/// be lines of their own or speak to the terminal, and without what is beyond 1,000 characters.
pub fn foreign(words: &str) -> String {
    let marked = |c: char| if is_hidden(c) { MARK } else { c };
    let mut text: String = words.chars().map(marked).take(FOREIGN_CHARS_MAX).collect();
    if words.chars().nth(FOREIGN_CHARS_MAX).is_some() {
        text.push_str(" ...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIDDEN: &str =
        "\0\u{7}\u{8}\r\u{1b}\u{7f}\u{85}\u{9b}\u{61c}\u{200e}\u{200f}\u{2028}\u{202e}\u{2066}\u{2069}";

    #[test]
    fn hidden_characters_are_marks_and_all_others_stay() {
        let marks: String = HIDDEN.chars().map(|_| MARK).collect();
        assert_eq!(words(HIDDEN), marks);
        assert_eq!(text(HIDDEN), marks);
        let plain = "p99 ≤ 5 µs, größer, 日本, עברית, e\u{301}";
        assert!(matches!(words(plain), Cow::Borrowed(_)));
        assert_eq!((words("a\tb\n"), text("a\tb\n")), ("a\u{fffd}b\u{fffd}".into(), "a\tb\n".into()));
        assert_eq!(text("1.6\u{1b}[31m"), "1.6\u{fffd}[31m");
    }

    #[test]
    fn the_screen_is_cleared_only_by_what_begins_a_text() {
        let own = format!("{CLEAR_SCREEN}\nGet Statistics\n");
        assert_eq!(text(&own), own);
        let foreign = text(&format!("{own}{CLEAR_SCREEN}")).into_owned();
        assert_eq!(foreign, format!("{own}\u{fffd}[1;1H\u{fffd}[2J"));
    }

    #[test]
    fn json_keeps_its_meaning() {
        let json = "{\n  \"version\": \"7\u{9b}31m\u{7f}\u{202e} \\u001b\"\r\n}\n";
        let shown = report(json.as_bytes()).into_owned();
        let shown = String::from_utf8(shown).expect("text");
        assert!(shown.contains("7\\u009b31m\\u007f\\u202e \\u001b"), "{shown}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(value(&shown), value(json));
        let text = "{ is how a text may begin\u{1b}";
        assert_eq!(report(text.as_bytes()).as_ref(), "{ is how a text may begin\u{fffd}".as_bytes());
    }

    #[test]
    fn bytes_that_are_no_text_do_not_let_others_through() {
        let json = b"{\"plan\": 1, \"x\": \"\xff\xc2\x9b31m\"}";
        let shown = String::from_utf8(report(json).into_owned()).expect("text");
        assert_eq!(shown, "{\"plan\": 1, \"x\": \"\u{fffd}\\u009b31m\"}");
        assert_eq!(report(b"a\xff\x1b[2J").as_ref(), "a\u{fffd}\u{fffd}[2J".as_bytes());
    }

    #[test]
    fn what_is_no_text_stays_as_it_is() {
        for bytes in [&b"PAR1\xff\x1b"[..], b"<!doctype html>\xe2\x81\xa8a\xe2\x81\xa9", b"a,b\n1,2\n"] {
            assert!(matches!(report(bytes), Cow::Borrowed(_)));
        }
    }

    #[test]
    fn the_words_of_another_machine_are_one_line_of_so_many_characters() {
        assert_eq!(
            foreign("no file 'a\nrefused 10.0.0.1: \u{1b}[2J'"),
            "no file 'a\u{fffd}refused 10.0.0.1: \u{fffd}[2J'"
        );
        let cut = foreign(&"x".repeat(FOREIGN_CHARS_MAX + 1));
        assert_eq!(cut.len(), FOREIGN_CHARS_MAX + " ...".len());
    }
}
