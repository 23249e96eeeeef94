//! The words of a command as the user types it, by the rules of Redis' command line.

/// Why a text has no words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordsError {
    /// A quote is not closed.
    Open,
    /// A closing quote is not followed by a blank.
    Glued,
}

/// A word without its quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) bytes: Vec<u8>,
    /// A part of the word was in quotes.
    is_quoted: bool,
}

impl Word {
    /// Whether the word is this mark, which means itself in quotes.
    pub(super) fn is_mark(&self, mark: &str) -> bool {
        !self.is_quoted && self.bytes == mark.as_bytes()
    }
}

/// Splits at blanks, and takes quotes off. A quote may open in the midst of a word: `a"b c"` is one word.
pub(super) fn split(mut text: &[u8]) -> Result<Vec<Word>, WordsError> {
    let mut words = Vec::new();
    loop {
        text = text.trim_ascii_start();
        if text.is_empty() {
            return Ok(words);
        }
        let mut word = Word::default();
        while let Some((&first, after)) = text.split_first() {
            match first {
                b'"' | b'\'' => {
                    word.is_quoted = true;
                    text = unquote(first, after, &mut word.bytes)?;
                    if text.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
                        return Err(WordsError::Glued);
                    }
                }
                byte if byte.is_ascii_whitespace() => break,
                byte => {
                    word.bytes.push(byte);
                    text = after;
                }
            }
        }
        words.push(word);
    }
}

/// The text from which [`split`] reads this word: the word itself, in double quotes where it needs them.
pub fn quoted(word: &str) -> String {
    let needs = |letter: char| letter.is_whitespace() || letter.is_control() || "\"'".contains(letter);
    // A `;` or `;;` alone separates commands.
    if !word.is_empty() && !word.contains(needs) && !word.bytes().all(|byte| byte == b';') {
        return word.to_owned();
    }
    let mut text = String::from('"');
    for letter in word.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            letter if letter.is_ascii_control() => text.push_str(&format!("\\x{:02x}", letter as u32)),
            letter => text.push(letter),
        }
    }
    text.push('"');
    text
}

/// Reads up to the closing quote, and returns what follows it. In double quotes `\n`, `\r`, `\t`, `\a`, `\b` and `\xHH` stand for
/// a byte and any other character after a backslash for itself; in single quotes only `\'` does.
fn unquote<'a>(quote: u8, mut text: &'a [u8], word: &mut Vec<u8>) -> Result<&'a [u8], WordsError> {
    loop {
        let (byte, rest) = match (quote, text) {
            (_, []) => return Err(WordsError::Open),
            (_, [byte, rest @ ..]) if *byte == quote => return Ok(rest),
            (b'"', [b'\\', b'x', high, low, rest @ ..]) if hex(*high).zip(hex(*low)).is_some() => {
                (hex(*high).unwrap_or(0) << 4 | hex(*low).unwrap_or(0), rest)
            }
            (b'"', [b'\\', byte, rest @ ..]) => (escaped(*byte), rest),
            (b'\'', [b'\\', b'\'', rest @ ..]) => (b'\'', rest),
            (_, [byte, rest @ ..]) => (*byte, rest),
        };
        word.push(byte);
        text = rest;
    }
}

fn escaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 0x07,
        b'b' => 0x08,
        byte => byte,
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_from_its_quoted_text() {
        let all: String = ('\0'..='\u{ff}').collect();
        for word in [
            "a",
            "",
            "a b",
            ";",
            ";;",
            "a;b",
            r"a\b",
            r"a \b",
            "\"",
            "'",
            "a'b\"c",
            "\n",
            "é x",
            r"\__key__",
            &all,
        ] {
            let read = split(format!("x {} y", quoted(word)).as_bytes()).expect("it is quoted");
            assert_eq!(read.len(), 3, "{word:?}");
            assert_eq!(String::from_utf8_lossy(&read[1].bytes), word);
            assert!(!read[1].is_mark(";") && !read[1].is_mark(";;"), "{word:?}");
        }
    }

    #[test]
    fn quotes_are_those_of_redis_command_line() {
        for (text, words) in [
            (r#"ECHO "a b""#, vec!["ECHO", "a b"]),
            (r#"a"b c"  d"#, vec!["ab c", "d"]),
            (r"a'b c'", vec!["ab c"]),
            (r#""a\n\r\t\"\\\x41\q""#, vec!["a\n\r\t\"\\Aq"]),
            (r"'a\n \'b\''", vec![r"a\n 'b'"]),
            (r#""\x4""#, vec!["x4"]),
            (r#"SET a "" "#, vec!["SET", "a", ""]),
            (r"a\n", vec![r"a\n"]),
            ("  ", vec![]),
        ] {
            let expected: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
            let split =
                split(text.as_bytes()).map(|words| words.into_iter().map(|word| word.bytes).collect());
            assert_eq!(split, Ok(expected), "{text}");
        }
        let marks: Vec<bool> =
            split(br#"; ";" ';' a; ;; ;"""#).expect("words").iter().map(|word| word.is_mark(";")).collect();
        assert_eq!(marks, [true, false, false, false, false, false]);
        for (text, error) in [
            ("GET \"a", WordsError::Open),
            ("GET 'a\\'", WordsError::Open),
            ("GET \"a\"b", WordsError::Glued),
            ("GET x'a'b", WordsError::Glued),
        ] {
            assert_eq!(split(text.as_bytes()), Err(error), "{text}");
        }
    }
}
