//! The words of a command line that one option carries, such as `--a "-d 16 --mix get:1"`.

/// Cuts text into words at blanks. Quotes keep blanks together, and a backslash keeps the next character as it is, but for
/// single quotes, as in a shell. `None` where a quote is not closed, or a backslash is the last character.
pub fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some('\''), letter) => word.get_or_insert_default().push(letter),
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (_, '\\') => word.get_or_insert_default().push(letters.next()?),
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_as_in_a_shell() {
        let split = |text: &str| split(text).map(|words| words.join("|"));
        for (text, words) in [
            ("", Some("")),
            ("  -d 16\t--mix  get:1 ", Some("-d|16|--mix|get:1")),
            ("--command 'LPUSH __key__ x' -t 1s", Some("--command|LPUSH __key__ x|-t|1s")),
            (r#"a"b c"d "" 'it"s' "it's" \" "\"""#, Some(r#"ab cd||it"s|it's|"|""#)),
            (r"'a\b' a\ b", Some(r"a\b|a b")),
            ("'open", None),
            ("\"open", None),
            ("end\\", None),
        ] {
            assert_eq!(split(text).as_deref(), words, "{text}");
        }
    }
}
