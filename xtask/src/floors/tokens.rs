//! A lexical reader of Rust: words and marks with their lines, without comments, strings and lifetimes.
//!
//! The tokeniser knows just enough of the language for the floors: what is a name, what is text that only looks like one, and
//! which tokens belong to tests.

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An identifier or keyword, without the `r#` of raw identifiers.
    Word(String),
    /// A number, string or character; what it says does not matter here.
    Literal,
    /// One punctuation character.
    Mark(char),
}

/// One token of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Line that it begins in, from 1.
    pub line: usize,
    /// Whether it belongs to an item that is only compiled for tests.
    pub in_test: bool,
}

impl Token {
    /// Whether this is the word `word`.
    pub fn is_word(&self, word: &str) -> bool {
        matches!(&self.kind, Kind::Word(own) if own == word)
    }

    /// Whether this is the mark `mark`.
    pub fn is_mark(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }

    /// The word, if it is one.
    pub fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }
}

/// The tokens of a source text, those of tests marked.
pub fn read(source: &str) -> Vec<Token> {
    let mut reader = Reader { rest: source.chars().collect(), at: 0, line: 1, tokens: Vec::new() };
    reader.run();
    mark_tests(&mut reader.tokens);
    reader.tokens
}

struct Reader {
    rest: Vec<char>,
    at: usize,
    line: usize,
    tokens: Vec<Token>,
}

impl Reader {
    fn run(&mut self) {
        while let Some(first) = self.peek(0) {
            match first {
                '/' if self.peek(1) == Some('/') => self.skip_line(),
                '/' if self.peek(1) == Some('*') => self.skip_block_comment(),
                '"' => self.take_string(0),
                '\'' => self.take_quote(),
                _ if first.is_alphabetic() || first == '_' => self.take_word(),
                _ if first.is_ascii_digit() => {
                    self.skip_while(|c| c.is_alphanumeric() || c == '_');
                    self.push(Kind::Literal);
                }
                _ if first.is_whitespace() => self.step(),
                _ => {
                    self.push(Kind::Mark(first));
                    self.step();
                }
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn step(&mut self) {
        if self.peek(0) == Some('\n') {
            self.line += 1;
        }
        self.at += 1;
    }

    fn push(&mut self, kind: Kind) {
        self.tokens.push(Token { kind, line: self.line, in_test: false });
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek(0).is_some_and(&wanted) {
            self.step();
        }
    }

    fn skip_line(&mut self) {
        self.skip_while(|c| c != '\n');
    }

    /// Block comments nest.
    fn skip_block_comment(&mut self) {
        let mut depth = 0;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => depth += 1,
                (Some('*'), Some('/')) => depth -= 1,
                (None, _) => return,
                _ => {
                    self.step();
                    continue;
                }
            }
            self.step();
            self.step();
            if depth == 0 {
                return;
            }
        }
    }

    /// A string that begins at the quotation mark; a raw one ends only at a mark followed by as many `hashes`.
    fn take_string(&mut self, hashes: usize) {
        self.push(Kind::Literal);
        self.step();
        self.skip_string(hashes, true);
    }

    fn skip_string(&mut self, hashes: usize, escapes: bool) {
        while let Some(c) = self.peek(0) {
            self.step();
            if c == '\\' && escapes {
                self.step();
            } else if c == '"' && (0..hashes).all(|n| self.peek(n) == Some('#')) {
                self.at += hashes;
                return;
            }
        }
    }

    /// A character or a lifetime.
    fn take_quote(&mut self) {
        let is_character = self.peek(1) == Some('\\') || self.peek(2) == Some('\'');
        self.step();
        if !is_character {
            return self.skip_while(|c| c.is_alphanumeric() || c == '_');
        }
        self.push(Kind::Literal);
        if self.peek(0) == Some('\\') {
            self.step();
        }
        self.step();
        self.skip_while(|c| c != '\'');
        self.step();
    }

    /// A word, or the prefix of a raw or byte string.
    fn take_word(&mut self) {
        let start = self.at;
        self.skip_while(|c| c.is_alphanumeric() || c == '_');
        let word: String = self.rest[start..self.at].iter().collect();
        let hashes = self.rest[self.at..].iter().take_while(|c| **c == '#').count();
        let quoted = self.peek(hashes) == Some('"');
        match word.as_str() {
            "r" | "br" | "cr" if quoted => {
                self.push(Kind::Literal);
                self.at += hashes + 1;
                self.skip_string(hashes, false);
            }
            "b" | "c" if quoted && hashes == 0 => self.take_string(0),
            "b" if self.peek(0) == Some('\'') => self.take_quote(),
            "r" if hashes == 1 => self.step(),
            _ => self.push(Kind::Word(word)),
        }
    }
}

/// Marks the items behind `#[cfg(test)]` and `#[test]`, or everything behind `#![cfg(test)]`.
fn mark_tests(tokens: &mut [Token]) {
    let mut at = 0;
    while at < tokens.len() {
        let Some(attribute) = Attribute::at(tokens, at) else {
            at += 1;
            continue;
        };
        if !attribute.for_tests {
            at = attribute.end;
            continue;
        }
        let end = if attribute.inner { tokens.len() } else { item_end(tokens, attribute.end) };
        for token in &mut tokens[at..end] {
            token.in_test = true;
        }
        at = end;
    }
}

struct Attribute {
    end: usize,
    inner: bool,
    for_tests: bool,
}

impl Attribute {
    fn at(tokens: &[Token], at: usize) -> Option<Attribute> {
        if !tokens[at].is_mark('#') {
            return None;
        }
        let inner = tokens.get(at + 1)?.is_mark('!');
        let open = at + 1 + usize::from(inner);
        if !tokens.get(open)?.is_mark('[') {
            return None;
        }
        let end = group_end(tokens, open);
        let inside = &tokens[open + 1..end];
        let says = |word| inside.iter().any(|token| token.is_word(word));
        let first = inside.first().and_then(Token::word);
        let for_tests = first == Some("test") || (first == Some("cfg") && says("test") && !says("not"));
        Some(Attribute { end, inner, for_tests })
    }
}

/// Index behind the item that begins at `at`: behind its braces, or behind its semicolon.
fn item_end(tokens: &[Token], mut at: usize) -> usize {
    while at < tokens.len() {
        match tokens[at].kind {
            Kind::Mark('{') => return group_end(tokens, at),
            Kind::Mark(';') => return at + 1,
            Kind::Mark('(' | '[') => at = group_end(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// Index behind the bracket that closes the one at `open`.
pub fn group_end(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Mark('(' | '[' | '{') => depth += 1,
            Kind::Mark(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<String> {
        read(source).iter().filter_map(|token| token.word().map(str::to_owned)).collect()
    }

    #[test]
    fn comments_and_strings_are_not_code() {
        assert_eq!(words("a // unsafe\n/* unsafe /* unsafe */ unsafe */ b"), ["a", "b"]);
        assert_eq!(words(r###"a "un\"safe" r#"un"safe"# br"unsafe\" b"unsafe" c"unsafe" b"###), ["a", "b"]);
    }

    #[test]
    fn characters_and_lifetimes_do_not_open_strings() {
        assert_eq!(words(r#"f::<'a>('"', '\'', b'"', '\u{41}', "x") g"#), ["f", "g"]);
    }

    #[test]
    fn raw_identifiers_lose_their_prefix() {
        assert_eq!(words("r#type"), ["type"]);
    }

    #[test]
    fn lines_are_counted_through_every_kind_of_text() {
        let tokens = read("a\n/* \n */ \"\n\\\n\" r\"\n\" // x\nb");
        assert_eq!(tokens.first().unwrap().line, 1);
        assert_eq!(tokens.last().unwrap().line, 7);
    }

    #[test]
    fn test_items_are_marked_and_nothing_behind_them() {
        let source = "fn a() {} #[cfg(test)] #[allow(x)] mod tests { fn b() {} } fn c() {} #[test] fn d() {}";
        let marked: Vec<_> = read(source).into_iter().filter(|token| token.in_test).collect();
        assert!(
            marked.iter().any(|token| token.is_word("b")) && marked.iter().any(|token| token.is_word("d"))
        );
        assert!(!marked.iter().any(|token| token.is_word("a") || token.is_word("c")));
    }

    #[test]
    fn code_that_tests_leave_out_is_no_test() {
        assert!(read("#[cfg(not(test))] fn a() {}").iter().all(|token| !token.in_test));
        assert!(read("#[cfg_attr(test, x)] fn a() {}").iter().all(|token| !token.in_test));
    }

    #[test]
    fn an_inner_attribute_marks_the_whole_file() {
        assert!(read("#![cfg(test)] fn a() {} fn b() {}").iter().all(|token| token.in_test));
    }
}
