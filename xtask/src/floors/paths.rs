//! Finds the paths in a source: what it imports and what it names in full, resolved against its own module.

use super::tokens::{Kind, Token};

/// A path that a source names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The parts of the path; a path that begins with `crate` is resolved and has neither `self` nor `super`.
    pub parts: Vec<String>,
    /// Line of its last part.
    pub line: usize,
    /// Whether it is a `use` that ends in `*`.
    pub glob: bool,
    /// Whether it was written as `super::*`.
    pub from_parent: bool,
    /// Whether a test names it.
    pub in_test: bool,
    /// The module that names it, which may stand inside the file's own.
    pub scope: Vec<String>,
    /// What a `use` calls it; `None` for a path that stands in code.
    pub import: Option<Import>,
}

/// The name that a `use` brings into its module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The name: the last part of the path, or what stands behind `as`.
    pub name: String,
    /// Whether the `use` is a re-export: `pub use`, `pub(crate) use`.
    pub is_exported: bool,
}

impl Path {
    /// The path as it would be written.
    pub fn text(&self) -> String {
        self.parts.join("::")
    }
}

/// All paths of two parts and more, and all imports; `module` is where the source stands in its crate.
pub fn find(tokens: &[Token], module: &[String]) -> Vec<Path> {
    let mut finder = Finder {
        tokens,
        at: 0,
        depth: 0,
        is_exported: false,
        module: module.to_vec(),
        inline: Vec::new(),
        found: Vec::new(),
    };
    finder.run();
    finder.found
}

struct Finder<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    /// Whether the `use` that is being read is a re-export.
    is_exported: bool,
    module: Vec<String>,
    /// Depth of braces outside each inline module that is open.
    inline: Vec<usize>,
    found: Vec<Path>,
}

impl Finder<'_> {
    fn run(&mut self) {
        while let Some(token) = self.tokens.get(self.at) {
            match &token.kind {
                Kind::Mark('{') => self.depth += 1,
                Kind::Mark('}') => self.leave_brace(),
                Kind::Word(word) if word == "mod" && self.mark(2, '{') => self.enter_module(),
                Kind::Word(word) if word == "use" && !self.mark(1, '<') => {
                    self.is_exported = is_exported(&self.tokens[..self.at]);
                    self.at += 1;
                    self.skip_separator();
                    self.take_tree(Vec::new());
                }
                Kind::Word(_) => self.take_path(),
                _ => {}
            }
            self.at += 1;
        }
    }

    fn mark(&self, ahead: usize, mark: char) -> bool {
        self.tokens.get(self.at + ahead).is_some_and(|token| token.is_mark(mark))
    }

    fn word(&self) -> Option<String> {
        self.tokens.get(self.at)?.word().map(str::to_owned)
    }

    fn enter_module(&mut self) {
        self.at += 1;
        if let Some(name) = self.word() {
            self.module.push(name);
            self.inline.push(self.depth);
        }
    }

    fn leave_brace(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if self.inline.last() == Some(&self.depth) {
            self.inline.pop();
            self.module.pop();
        }
    }

    /// Whether a `::` stands here; steps over it.
    fn skip_separator(&mut self) -> bool {
        let here = self.mark(0, ':') && self.mark(1, ':');
        if here {
            self.at += 2;
        }
        here
    }

    /// One tree of a `use`, with what stood before it; leaves `at` on the token behind it.
    fn take_tree(&mut self, mut parts: Vec<String>) {
        loop {
            if self.mark(0, '{') {
                return self.take_branches(&parts);
            }
            if self.mark(0, '*') {
                self.keep(&parts, true, Some("*".to_owned()));
                self.at += 1;
                return;
            }
            let Some(word) = self.word() else { return };
            parts.push(word);
            self.at += 1;
            if !self.skip_separator() {
                break;
            }
        }
        let is_renamed = self.word().as_deref() == Some("as");
        let name = match is_renamed {
            true => self.tokens.get(self.at + 1).and_then(Token::word).map(str::to_owned),
            false => parts.iter().rfind(|part| *part != "self").cloned(),
        };
        self.at -= 1;
        self.keep(&parts, false, name);
        self.at += if is_renamed { 3 } else { 1 };
    }

    fn take_branches(&mut self, parts: &[String]) {
        self.at += 1;
        while self.at < self.tokens.len() && !self.mark(0, '}') {
            if self.mark(0, ',') {
                self.at += 1;
                continue;
            }
            let before = self.at;
            self.take_tree(parts.to_vec());
            if self.at == before {
                self.at += 1;
            }
        }
        self.at += 1;
    }

    /// A path in an expression, a type or a macro; leaves `at` on its last token.
    fn take_path(&mut self) {
        let mut parts = vec![self.word().expect("only called on a word")];
        while self.mark(1, ':') && self.mark(2, ':') {
            let Some(word) = self.tokens.get(self.at + 3).and_then(Token::word) else { break };
            parts.push(word.to_owned());
            self.at += 3;
        }
        if parts.len() > 1 {
            self.keep(&parts, false, None);
        }
    }

    /// Notes a path; `name` is what a `use` calls it.
    fn keep(&mut self, parts: &[String], glob: bool, name: Option<String>) {
        let token = &self.tokens[self.at];
        let mut parts = parts.to_vec();
        if parts.len() > 1 && parts.last().is_some_and(|last| last == "self") {
            parts.pop();
        }
        let from_parent = parts == ["super"];
        let parts = self.resolve(parts);
        let (line, in_test, scope) = (token.line, token.in_test, self.module.clone());
        let import = name.map(|name| Import { name, is_exported: self.is_exported });
        self.found.push(Path { parts, line, glob, from_parent, in_test, scope, import });
    }

    /// Turns `self::` and `super::` into the path from the crate's root.
    fn resolve(&self, mut parts: Vec<String>) -> Vec<String> {
        if !matches!(parts[0].as_str(), "self" | "super") {
            return parts;
        }
        let mut base = self.module.clone();
        while parts.first().is_some_and(|part| part == "self" || part == "super") {
            if parts.remove(0) == "super" {
                base.pop();
            }
        }
        let mut resolved = vec!["crate".to_owned()];
        resolved.append(&mut base);
        resolved.append(&mut parts);
        resolved
    }
}

/// Whether the item whose keyword follows `before` is exported in some way.
fn is_exported(before: &[Token]) -> bool {
    let behind_pub = |tokens: &[Token]| tokens.last().is_some_and(|token| token.is_word("pub"));
    if !before.last().is_some_and(|token| token.is_mark(')')) {
        return behind_pub(before);
    }
    before.iter().rposition(|token| token.is_mark('(')).is_some_and(|open| behind_pub(&before[..open]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::tokens;

    fn paths(source: &str) -> Vec<String> {
        let module = ["wire".to_owned(), "text".to_owned()];
        find(&tokens::read(source), &module).iter().map(Path::text).collect()
    }

    #[test]
    fn a_tree_of_imports_is_spelt_out() {
        assert_eq!(
            paths("use std::{io::{self, Write as _}, net::TcpStream as T, fmt}; use libm;"),
            ["std::io", "std::io::Write", "std::net::TcpStream", "std::fmt", "libm"]
        );
    }

    #[test]
    fn paths_without_an_import_are_found() {
        assert_eq!(
            paths("fn f(a: ::std::net::IpAddr) { std::thread::spawn(g::<u8>) }"),
            ["std::net::IpAddr", "std::thread::spawn"]
        );
    }

    #[test]
    fn parents_are_resolved_inside_inline_modules_and_behind_them() {
        assert_eq!(
            paths("mod a { mod b { use super::x; } use super::y; } use super::z; use self::w;"),
            ["crate::wire::text::a::x", "crate::wire::text::y", "crate::wire::z", "crate::wire::text::w"]
        );
    }

    #[test]
    fn a_glob_is_seen_in_a_tree() {
        let found = find(&tokens::read("use a::{b::*, c};"), &[]);
        assert_eq!(found.iter().filter(|path| path.glob).map(Path::text).collect::<Vec<_>>(), ["a::b"]);
    }

    #[test]
    fn an_import_has_the_name_that_its_module_uses() {
        let source =
            "use a::{b::{self, c as d}, e}; pub use f::g; pub(crate) use h; mod i { use j::k as _; } l::m();";
        let found = find(&tokens::read(source), &[]);
        let names: Vec<_> = found
            .iter()
            .map(|path| {
                (path.text(), path.import.as_ref().map(|import| (import.name.as_str(), import.is_exported)))
            })
            .collect();
        let expected = [
            ("a::b", Some(("b", false))),
            ("a::b::c", Some(("d", false))),
            ("a::e", Some(("e", false))),
            ("f::g", Some(("g", true))),
            ("h", Some(("h", true))),
            ("j::k", Some(("_", false))),
            ("l::m", None),
        ];
        assert_eq!(names, expected.map(|(path, import)| (path.to_owned(), import)));
        assert_eq!(found[5].scope, ["i"]);
    }

    #[test]
    fn a_captured_lifetime_is_no_import() {
        assert!(paths("fn f<'a>(a: &'a u8) -> impl Sized + use<'a> {}").is_empty());
    }
}
