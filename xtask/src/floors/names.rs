//! The names in a source: its items, its imports and the paths in its code, resolved against its own module.

use std::collections::HashMap;
use std::io;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{Item, UseTree, Visibility};

use crate::sources::Source;

/// A module, by the path from the crate's root.
pub type Module = Vec<String>;

/// Everything that a source names outside its tests.
#[derive(Default)]
pub struct Names {
    /// Paths of two parts and more, and all imports.
    pub paths: Vec<Path>,
    /// Items that are no modules, each with the module that it stands in.
    pub items: Vec<(Module, String)>,
    /// Module of the file, and those inside it.
    pub modules: Vec<Module>,
    /// Words by which something in scope is named, each with the first line that it stands in.
    pub words: HashMap<String, usize>,
}

/// A shipped file of a crate.
pub struct File {
    /// Path from the root of the repository.
    pub path: String,
    /// Module path in its crate; empty for the crate's root.
    pub module: Module,
    /// Names in its code.
    pub names: Names,
}

/// A path that a source names.
pub struct Path {
    /// The parts of the path; a path that begins with `crate` is resolved and has neither `self` nor `super`.
    pub parts: Vec<String>,
    /// Line of its last part.
    pub line: usize,
    /// The module that names it, which may stand inside the file's own.
    pub scope: Module,
    /// Name that a `use` brings into its module; `None` for a path that stands in code.
    pub import: Option<String>,
    /// Whether it is a re-export: `pub use`, `pub(crate) use`.
    pub is_exported: bool,
}

/// Reads what the sources of a crate name. Files that are not shipped or are tests are left out, and of two roots all but the
/// library's, because no file can name what is in the other.
///
/// # Errors
/// Returns an error when a source is no Rust.
pub fn read(sources: Vec<Source>) -> io::Result<Vec<File>> {
    let has_library = sources.iter().any(|source| source.path.ends_with("/src/lib.rs"));
    let is_read = |source: &Source| {
        let is_program = has_library && source.path.ends_with("/src/main.rs");
        source.is_shipped && !source.code.is_empty() && !is_program
    };
    let read = sources.into_iter().filter(is_read).map(|Source { path, module, code, .. }| {
        let names = names_in(code, &module).map_err(|error| io::Error::other(format!("{path}: {error}")))?;
        Ok(File { path, module, names })
    });
    read.collect()
}

/// Reads the names in the tokens of a source that stands in `module`.
fn names_in(tokens: TokenStream, module: &[String]) -> syn::Result<Names> {
    let mut reader = Reader { module: module.to_vec(), names: Names::default() };
    reader.visit_file(&syn::parse2(tokens)?);
    Ok(reader.names)
}

struct Reader {
    module: Module,
    names: Names,
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_file(&mut self, file: &'ast syn::File) {
        self.take_items(&file.items);
        visit::visit_file(self, file);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if let Some((_, items)) = &item.content {
            self.module.push(word(&item.ident));
            self.take_items(items);
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_exported = !matches!(item.vis, Visibility::Inherited);
        self.take_tree(&item.tree, &mut Vec::new(), is_exported);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts = path.segments.iter().map(|segment| word(&segment.ident)).collect();
        self.take_path(parts, path.segments.last().map_or(1, |last| line(&last.ident)));
        visit::visit_path(self, path);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.take_path(vec![word(&pattern.ident)], line(&pattern.ident));
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.take_tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }

    fn visit_meta_list(&mut self, attribute: &'ast syn::MetaList) {
        self.take_tokens(attribute.tokens.clone());
    }
}

impl Reader {
    /// Notes a module and its items.
    fn take_items(&mut self, items: &[Item]) {
        self.names.modules.push(self.module.clone());
        let named = items.iter().filter_map(name);
        self.names.items.extend(named.map(|name| (self.module.clone(), word(name))));
    }

    /// Takes one tree of a `use`, with the parts before it.
    fn take_tree(&mut self, tree: &UseTree, parts: &mut Vec<String>, is_exported: bool) {
        match tree {
            UseTree::Path(path) => {
                parts.push(word(&path.ident));
                self.take_tree(&path.tree, parts, is_exported);
                parts.pop();
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.take_tree(tree, parts, is_exported));
            }
            UseTree::Name(name) => self.take_import(parts, &name.ident, None, is_exported),
            UseTree::Rename(name) => self.take_import(parts, &name.ident, Some(&name.rename), is_exported),
            // Lints allow none but those of test modules.
            UseTree::Glob(_) => {}
        }
    }

    fn take_import(&mut self, before: &[String], last: &Ident, renamed: Option<&Ident>, is_exported: bool) {
        let parts = [before, &[word(last)]].concat();
        let own_name = parts.iter().rfind(|part| *part != "self").cloned();
        let import = renamed.map(word).or(own_name);
        let path = self.path(parts, line(last));
        self.names.paths.push(Path { import, is_exported, ..path });
    }

    /// Takes the paths among tokens that have no grammar: those of a macro's call, and those of an attribute.
    fn take_tokens(&mut self, tokens: TokenStream) {
        let (mut parts, mut last_line) = (Vec::new(), 0);
        let mut marks = String::new();
        for tree in tokens {
            match &tree {
                TokenTree::Punct(mark) => {
                    marks.push(mark.as_char());
                    continue;
                }
                // A field or a method.
                TokenTree::Ident(_) if marks.ends_with('.') => {}
                TokenTree::Ident(ident) => {
                    if marks != "::" {
                        self.take_path(std::mem::take(&mut parts), last_line);
                    }
                    parts.push(word(ident));
                    last_line = line(ident);
                }
                TokenTree::Group(group) => self.take_tokens(group.stream()),
                TokenTree::Literal(_) => {}
            }
            marks.clear();
        }
        self.take_path(parts, last_line);
    }

    /// Notes a path in code.
    fn take_path(&mut self, parts: Vec<String>, line: usize) {
        if let Some(first) = parts.first() {
            self.names.words.entry(first.clone()).or_insert(line);
        }
        if parts.len() > 1 {
            let path = self.path(parts, line);
            self.names.paths.push(path);
        }
    }

    /// The path of these parts from the crate's root, without `self::` and `super::`.
    fn path(&self, mut parts: Vec<String>, line: usize) -> Path {
        if parts.len() > 1 && parts.last().is_some_and(|last| last == "self") {
            parts.pop();
        }
        if parts.first().is_some_and(|first| matches!(first.as_str(), "self" | "super")) {
            let ups = parts.iter().take_while(|part| matches!(part.as_str(), "self" | "super")).count();
            let levels = parts[..ups].iter().filter(|part| *part == "super").count();
            let base = &self.module[..self.module.len().saturating_sub(levels)];
            parts = [&["crate".to_owned()], base, &parts[ups..]].concat();
        }
        Path { parts, line, scope: self.module.clone(), import: None, is_exported: false }
    }
}

fn word(ident: &Ident) -> String {
    ident.unraw().to_string()
}

fn line(ident: &Ident) -> usize {
    ident.span().start().line
}

/// The name of an item that is no module.
fn name(item: &Item) -> Option<&Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Macro(item) => item.ident.as_ref(),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Names {
        names_in(text.parse().unwrap(), &["wire".to_owned(), "text".to_owned()]).unwrap()
    }

    fn text_of(path: &Path) -> String {
        path.parts.join("::")
    }

    fn paths(text: &str) -> Vec<String> {
        names(text).paths.iter().map(text_of).collect()
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
    fn paths_in_macros_and_attributes_are_found() {
        let text = "#[arg(parser = a::b)] struct A; fn f() { g!(x, c::d(::e::f), h.i, \"j::k\") }";
        assert_eq!(paths(text), ["a::b", "e::f", "c::d"]);
    }

    #[test]
    fn parents_are_resolved_inside_inline_modules_and_behind_them() {
        assert_eq!(
            paths("mod a { mod b { use super::x; } use super::y; } use super::z; use self::w;"),
            ["crate::wire::text::a::x", "crate::wire::text::y", "crate::wire::z", "crate::wire::text::w"]
        );
    }

    #[test]
    fn an_import_has_the_name_that_its_module_uses() {
        let text = "use a::{b::{self, c as d}, e}; pub use f::g; pub(crate) use h; mod i { use j::k as _; } fn x() { l::m() }";
        let found = names(text).paths;
        let imports: Vec<_> =
            found.iter().map(|path| (text_of(path), path.import.as_deref(), path.is_exported)).collect();
        let expected = [
            ("a::b", Some("b"), false),
            ("a::b::c", Some("d"), false),
            ("a::e", Some("e"), false),
            ("f::g", Some("g"), true),
            ("h", Some("h"), true),
            ("j::k", Some("_"), false),
            ("l::m", None, false),
        ];
        assert_eq!(imports, expected.map(|(path, name, exported)| (path.to_owned(), name, exported)));
        assert_eq!(found[5].scope, ["wire", "text", "i"]);
    }

    #[test]
    fn lines_and_raw_names_are_those_of_the_source() {
        let found = names("\nfn f() {\n  r#type::\n  r#fn() }").paths;
        assert_eq!((text_of(&found[0]).as_str(), found[0].line), ("type::fn", 4));
    }

    #[test]
    fn a_captured_lifetime_is_no_import() {
        assert!(paths("fn f<'a>(a: &'a u8) -> impl Sized + use<'a> {}").is_empty());
    }
}
