//! The Rust sources of a crate: where each stands, and its tokens with and without those of tests.

use std::fs;
use std::io;
use std::path::Path;

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

/// One source of a crate.
pub struct Source {
    /// Path from the root of the repository.
    pub path: String,
    /// Module path in its crate; empty for the crate's root and for files outside `src`.
    pub module: Vec<String>,
    /// Whether it stands in the crate's `src`, and not among its examples, benches or tests.
    pub is_shipped: bool,
    /// The text of the file.
    pub text: String,
    /// Every token of the file.
    pub tokens: TokenStream,
    /// The tokens without those that are only compiled for tests; none in a file that is only for tests.
    pub code: TokenStream,
}

impl Source {
    /// Reads the text of the file at `path` of the crate in `directory`, and the names of modules in files of their own that it
    /// declares for tests alone.
    fn read(directory: &str, path: String, text: String) -> io::Result<(Source, Vec<String>)> {
        let inside = path.strip_prefix(directory).unwrap_or(&path).trim_start_matches('/');
        let in_src = inside.strip_prefix("src/");
        let stem = in_src.unwrap_or_default().trim_end_matches(".rs");
        let mut module: Vec<String> =
            stem.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        if module.last().is_some_and(|last| last == "mod") || matches!(stem, "lib" | "main") {
            module.pop();
        }
        let is_shipped = in_src.is_some();
        let tokens: TokenStream =
            text.parse().map_err(|error| io::Error::other(format!("{path}: {error}")))?;
        let mut test_modules = Vec::new();
        let code = without_tests(tokens.clone(), &mut test_modules);
        Ok((Source { path, module, is_shipped, text, tokens, code }, test_modules))
    }
}

/// Reads the sources of the crate in `directory`, in the order of their paths.
///
/// # Errors
/// Returns an error when a directory or a file cannot be read, or is no Rust.
pub fn read(root: &Path, directory: &str) -> io::Result<Vec<Source>> {
    let paths = files(root, directory, "rs")?;
    let texts = paths.into_iter().map(|path| Ok((fs::read_to_string(root.join(&path))?, path)));
    let texts: Vec<(String, String)> = texts.collect::<io::Result<_>>()?;
    of_texts(directory, texts.into_iter().map(|(text, path)| (path, text)))
}

/// Reads sources of the crate in `directory` from their paths and texts.
///
/// # Errors
/// Returns an error when a text is no Rust.
pub fn of_texts(
    directory: &str,
    texts: impl IntoIterator<Item = (String, String)>,
) -> io::Result<Vec<Source>> {
    let (mut sources, mut for_tests) = (Vec::new(), Vec::new());
    for (path, text) in texts {
        let (source, names) = Source::read(directory, path, text)?;
        for_tests.extend(names.into_iter().map(|name| [&source.module[..], &[name]].concat()));
        sources.push(source);
    }
    for source in &mut sources {
        if source.is_shipped && for_tests.iter().any(|module| source.module.starts_with(module)) {
            source.code = TokenStream::new();
        }
    }
    Ok(sources)
}

/// The files below `directory` whose names end in `extension`, in the order of their paths. Folders with a manifest of their own
/// are other crates and are left out, as are build products and generated Rust.
///
/// # Errors
/// Returns an error when a directory cannot be read.
pub fn files(root: &Path, directory: &str, extension: &str) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut entries: Vec<_> = fs::read_dir(root.join(directory))?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{directory}/{name}");
        if entry.file_type()?.is_dir() {
            let is_ours =
                !matches!(name.as_str(), "target" | "proto") && !entry.path().join("Cargo.toml").exists();
            if is_ours {
                found.extend(files(root, &path, extension)?);
            }
        } else if name.rsplit_once('.').is_some_and(|(_, end)| end == extension) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Calls `visit` with every token, groups before what they hold.
pub fn for_each(tokens: TokenStream, visit: &mut dyn FnMut(&TokenTree)) {
    for tree in tokens {
        visit(&tree);
        if let TokenTree::Group(group) = tree {
            for_each(group.stream(), visit);
        }
    }
}

/// The tokens without those of items, fields and statements behind `#[cfg(test)]` and `#[test]`; `modules` takes the names of the
/// modules among them that are files of their own.
fn without_tests(tokens: TokenStream, modules: &mut Vec<String>) -> TokenStream {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut kept = Vec::new();
    let mut at = 0;
    while at < trees.len() {
        if is_test_attribute(&trees[at..], true) {
            return TokenStream::new();
        }
        if is_test_attribute(&trees[at..], false) {
            while let [.., mark, TokenTree::Group(_)] = &kept[..]
                && is_mark(Some(mark), '#')
            {
                kept.truncate(kept.len() - 2);
            }
            let end = at + item_len(&trees[at..]);
            modules.extend(trees[at..end].windows(3).filter_map(declared_module));
            at = end;
            continue;
        }
        kept.push(match &trees[at] {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), without_tests(group.stream(), modules));
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            other => other.clone(),
        });
        at += 1;
    }
    kept.into_iter().collect()
}

fn is_mark(tree: Option<&TokenTree>, mark: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

fn word(tree: &TokenTree) -> Option<&Ident> {
    match tree {
        TokenTree::Ident(ident) => Some(ident),
        _ => None,
    }
}

/// Whether an attribute begins here that compiles what it belongs to for tests alone; an inner one belongs to what it stands in.
fn is_test_attribute(trees: &[TokenTree], inner: bool) -> bool {
    let open = 1 + usize::from(inner);
    let begins = is_mark(trees.first(), '#') && (!inner || is_mark(trees.get(1), '!'));
    let Some(TokenTree::Group(group)) = trees.get(open).filter(|_| begins) else { return false };
    let first = group.stream().into_iter().next();
    let is = |name: &str| first.as_ref().and_then(word).is_some_and(|first| first == name);
    let mut words = Vec::new();
    for_each(group.stream(), &mut |tree| words.extend(word(tree).map(Ident::to_string)));
    let says = |name: &str| words.iter().any(|word| word == name);
    is("test") || is("cfg") && says("test") && !says("not")
}

/// Number of trees of the item, field or statement that begins here: to its braces, its semicolon or, if it has no keyword of an
/// item, its comma.
fn item_len(trees: &[TokenTree]) -> usize {
    const KEYWORDS: [&str; 12] = [
        "const",
        "enum",
        "extern",
        "fn",
        "impl",
        "let",
        "macro_rules",
        "mod",
        "static",
        "struct",
        "trait",
        "type",
    ];
    let mut is_item = false;
    for (at, tree) in trees.iter().enumerate() {
        let behind = at + 1;
        match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                return behind + usize::from(is_mark(trees.get(behind), ';'));
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => return behind,
            TokenTree::Punct(punct) if punct.as_char() == ',' && !is_item => return behind,
            TokenTree::Ident(ident) => is_item |= KEYWORDS.iter().any(|keyword| ident == keyword),
            _ => {}
        }
    }
    trees.len()
}

/// The name in `mod name;`.
fn declared_module(three: &[TokenTree]) -> Option<String> {
    let is_declared = word(&three[0]).is_some_and(|word| word == "mod") && is_mark(three.get(2), ';');
    word(&three[1]).filter(|_| is_declared).map(Ident::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(file: &str, text: &str) -> Source {
        let path = format!("crates/logic/{file}");
        of_texts("crates/logic", [(path, text.to_owned())]).unwrap().remove(0)
    }

    fn code(text: &str) -> String {
        source("src/lib.rs", text).code.to_string()
    }

    #[test]
    fn a_file_knows_its_module() {
        let module = |file: &str| source(file, "").module.join("::");
        assert_eq!(module("src/lib.rs"), "");
        assert_eq!(module("src/plan.rs"), "plan");
        assert_eq!(module("src/wire/mod.rs"), "wire");
        assert_eq!(module("src/wire/text.rs"), "wire::text");
        assert_eq!(module("benches/draws.rs"), "");
        assert!(source("src/plan.rs", "").is_shipped && !source("benches/draws.rs", "").is_shipped);
    }

    #[test]
    fn files_are_tests_where_they_are_declared_for_tests() {
        let declaring = "#[cfg(any(test, fuzzing))]\npub mod contract;\npub mod text;";
        let files = [
            ("wire/mod.rs", declaring),
            ("wire/contract.rs", "struct A;"),
            ("wire/text.rs", "struct A;"),
            ("wire/contract/cuts.rs", "struct A;"),
        ];
        let texts = files.map(|(file, text)| (format!("crates/logic/src/{file}"), text.to_owned()));
        let code = of_texts("crates/logic", texts).unwrap();
        assert_eq!(
            code.iter().map(|source| source.code.is_empty()).collect::<Vec<_>>(),
            [false, true, false, true]
        );
    }

    #[test]
    fn test_items_are_left_out_and_nothing_behind_them() {
        let source = "#![allow(y)] fn a() {} /// B.\n #[cfg(test)] #[allow(x)] mod tests { fn b() {} } fn c() {} #[test] fn d<A, B>() {}";
        assert_eq!(code(source), code("#![allow(y)] fn a() {} fn c() {}"));
        assert_eq!(code("mod a { #[cfg(test)] use b::{c, d}; fn e() {} }"), code("mod a { fn e() {} }"));
        assert_eq!(code("struct A { #[cfg(test)] b: u8, c: u8 }"), code("struct A { c: u8 }"));
    }

    #[test]
    fn code_that_tests_leave_out_is_no_test() {
        for text in
            ["#[cfg(not(test))] fn a() {}", "#[cfg_attr(test, x)] fn a() {}", "/// A test.\nfn a() {}"]
        {
            assert_eq!(code(text), source("src/lib.rs", text).tokens.to_string());
        }
    }

    #[test]
    fn an_inner_attribute_leaves_the_whole_file_out() {
        assert!(code("#![cfg(test)] fn a() {} fn b() {}").is_empty());
    }

    #[test]
    fn a_text_that_is_no_rust_is_an_error_with_its_file() {
        let wrong = of_texts("a", [("a/src/b.rs".to_owned(), "fn f() {".to_owned())]);
        assert!(wrong.is_err_and(|error| error.to_string().starts_with("a/src/b.rs: ")));
    }
}
