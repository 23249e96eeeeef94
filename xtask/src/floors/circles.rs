//! Finds circles of files: files that name each other's items, directly or through others.
//!
//! An edge goes from the file that names an item to the file that defines it, through any number of re-exports. Modules,
//! `mod` lines and re-exports are no edges, and tests are left out. Three kinds of knowledge cannot be seen in the words of
//! a source, and are no edges here: a method or field of a type whose name does not stand there, what a macro makes, and a
//! path in a string, such as that of an attribute of serde.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::names::{File, Module};

/// The circles among the files of a crate, each as a finding with the edges that close it.
pub fn find(files: &[File]) -> Vec<String> {
    let edges = edges(files);
    let reached: Vec<HashSet<usize>> = (0..files.len()).map(|from| reached_from(from, &edges)).collect();
    let circle_of = |file: usize| -> BTreeSet<usize> {
        reached[file].iter().copied().filter(|other| reached[*other].contains(&file)).collect()
    };
    let mut circles: Vec<BTreeSet<usize>> =
        (0..files.len()).map(circle_of).filter(|circle| !circle.is_empty()).collect();
    circles.sort();
    circles.dedup();
    circles.iter().map(|circle| finding(files, circle, &edges)).collect()
}

/// The words for a circle: its files, then a line for each edge with the items that it is made of.
fn finding(files: &[File], circle: &BTreeSet<usize>, edges: &Edges) -> String {
    let names: Vec<&str> = circle.iter().map(|file| files[*file].path.as_str()).collect();
    let mut text = format!("circle of {} files: {}", names.len(), names.join(", "));
    for ((from, to), items) in
        edges.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to))
    {
        let items: Vec<String> = items.iter().map(|(name, line)| format!("{name} (line {line})")).collect();
        text += &format!("\n  {} -> {}: {}", files[*from].path, files[*to].path, items.join(", "));
    }
    text
}

/// Target of a path.
enum Found {
    Module(Module),
    /// An item other than a module, by the index of its file.
    Item(usize),
}

/// Every name of a crate.
#[derive(Default)]
struct Crate {
    modules: HashSet<Module>,
    /// Items by module and name, each with the index of its file.
    items: HashMap<(Module, String), usize>,
    /// Paths that imports stand for, by module and name.
    imports: HashMap<(Module, String), Vec<String>>,
}

/// Most imports that a path may lead through, so that imports of each other end.
const IMPORTS_MAX: usize = 32;

impl Crate {
    fn of(files: &[File]) -> Crate {
        let mut all = Crate { modules: HashSet::from([Vec::new()]), ..Crate::default() };
        for (index, File { names, .. }) in files.iter().enumerate() {
            all.modules.extend(names.modules.iter().cloned());
            all.items.extend(names.items.iter().map(|item| (item.clone(), index)));
            for path in &names.paths {
                if let Some(import) = &path.import {
                    all.imports.insert((path.scope.clone(), import.clone()), path.parts.clone());
                }
            }
        }
        all
    }

    /// Follows a path that stands in the module `scope`; `None` where it leads out of the crate or to nothing that
    /// has a name here.
    fn find(&self, scope: &[String], parts: &[String], imports: usize) -> Option<Found> {
        let is_absolute = parts.first().is_some_and(|part| part == "crate");
        let mut module = if is_absolute { Vec::new() } else { scope.to_vec() };
        let rest = &parts[usize::from(is_absolute)..];
        for (index, part) in rest.iter().enumerate() {
            let key = (module, part.clone());
            let item = self.items.get(&key).copied();
            let (mut inner, part) = key.clone();
            inner.push(part);
            let is_last = index + 1 == rest.len();
            module = match item {
                Some(file) if is_last || !self.modules.contains(&inner) => return Some(Found::Item(file)),
                _ if self.modules.contains(&inner) => inner,
                _ => {
                    let import = self.imports.get(&key).filter(|_| imports < IMPORTS_MAX)?;
                    // An import of a crate under its own name leads to itself.
                    match self.find(&key.0, import, imports + 1)? {
                        Found::Module(module) => module,
                        found @ Found::Item(_) => return Some(found),
                    }
                }
            };
        }
        Some(Found::Module(module))
    }
}

/// From one file to another, with the items that make the edge and the first line that names each.
type Edges = BTreeMap<(usize, usize), BTreeMap<String, usize>>;

fn edges(files: &[File]) -> Edges {
    let all = Crate::of(files);
    let mut edges = Edges::new();
    for (from, File { names, .. }) in files.iter().enumerate() {
        for path in &names.paths {
            let Some(Found::Item(to)) = all.find(&path.scope, &path.parts, 0) else { continue };
            let line = match &path.import {
                // A re-export is knowledge only where its own file uses it.
                Some(import) if path.is_exported => names.words.get(import).copied(),
                _ => Some(path.line),
            };
            if let Some(line) = line.filter(|_| to != from) {
                let name = path.parts.iter().filter(|part| *part != "crate").cloned().collect::<Vec<_>>();
                edges.entry((from, to)).or_default().entry(name.join("::")).or_insert(line);
            }
        }
    }
    edges
}

/// Every file that can be reached from one by at least one edge.
fn reached_from(from: usize, edges: &Edges) -> HashSet<usize> {
    let mut reached = HashSet::new();
    let mut waiting = vec![from];
    while let Some(file) = waiting.pop() {
        let next = edges.range((file, 0)..=(file, usize::MAX)).map(|((_, to), _)| *to);
        waiting.extend(next.filter(|to| reached.insert(*to)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::names::read;
    use crate::sources;

    /// The circles of a crate of these files of one line, each as its edges.
    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let texts = files.iter().map(|(name, text)| (format!("crates/logic/src/{name}"), (*text).to_owned()));
        let read = read(sources::of_texts("crates/logic", texts).unwrap()).unwrap();
        let edges = |circle: &String| {
            let short = circle.replace("crates/logic/src/", "").replace(" (line 1)", "").replace(',', "");
            short.lines().skip(1).map(|edge| edge.trim().to_owned()).collect()
        };
        find(&read).iter().map(edges).collect()
    }

    fn none(files: &[(&str, &str)]) {
        assert_eq!(circles(files), Vec::<Vec<String>>::new());
    }

    #[test]
    fn two_files_that_import_from_each_other_are_a_circle() {
        let files = [
            ("lib.rs", "pub mod a; pub mod b;"),
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            ("b.rs", "use crate::a::A; pub struct B(Box<A>);"),
        ];
        assert_eq!(circles(&files), [["a.rs -> b.rs: b::B", "b.rs -> a.rs: a::A"]]);
    }

    #[test]
    fn edges_in_one_direction_are_no_circle() {
        none(&[
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            ("b.rs", "pub struct B;"),
            ("c.rs", "fn f() { crate::a::A }"),
        ]);
    }

    #[test]
    fn a_circle_may_lead_through_several_files_and_another_may_stand_beside_it() {
        let files = [
            ("a.rs", "fn f() -> crate::b::B { g() }"),
            ("b.rs", "pub type B = u8; use super::c::h as i;"),
            ("c.rs", "pub fn h() { crate::a::f() }"),
            ("d.rs", "use super::e; pub const D: u8 = e::E;"),
            ("e.rs", "pub static mut E: u8 = crate::d::D + crate::a::f();"),
        ];
        let expected: [&[&str]; 2] = [
            &["a.rs -> b.rs: b::B", "b.rs -> c.rs: c::h", "c.rs -> a.rs: a::f"],
            &["d.rs -> e.rs: e::E", "e.rs -> d.rs: d::D"],
        ];
        assert_eq!(circles(&files), expected);
    }

    #[test]
    fn a_parent_and_its_child_are_a_circle_where_both_name_items() {
        let files = [
            ("a/mod.rs", "mod b; pub struct A; fn f() { b::g() }"),
            ("a/b.rs", "use super::A; pub fn g() -> A { A }"),
        ];
        assert_eq!(circles(&files), [["a/mod.rs -> a/b.rs: b::g", "a/b.rs -> a/mod.rs: a::A"]]);
    }

    #[test]
    fn re_exports_modules_and_tests_are_no_edges() {
        none(&[
            ("a/mod.rs", "pub mod b; pub use b::{B, C as D}; pub(crate) use self::b::g; pub struct A;"),
            ("a/b.rs", "use super::A; use crate::c; pub struct B(A); pub struct C; pub fn g() { c::d(); }"),
            ("c.rs", "pub fn d() {} #[cfg(test)] mod tests { use crate::a::A; }"),
        ]);
    }

    #[test]
    fn a_re_export_that_its_own_file_uses_is_an_edge() {
        let child = ("a/b.rs", "use super::A; pub struct B(A);");
        let edges = [["a/mod.rs -> a/b.rs: a::b::B", "a/b.rs -> a/mod.rs: a::A"]];
        assert_eq!(circles(&[("a/mod.rs", "pub use self::b::B; pub struct A; fn f(_: B) {}"), child]), edges);
        none(&[("a/mod.rs", "pub use self::b::B; pub struct A; fn f() { x::B; y.B() }"), child]);
    }

    #[test]
    fn an_item_is_followed_through_re_exports_to_the_file_that_defines_it() {
        let files = [
            ("lib.rs", "mod a; mod c; pub use a::B;"),
            ("a/mod.rs", "mod b; pub use b::B; pub const ONE: u8 = 1;"),
            ("a/b.rs", "use crate::c::C; pub enum B { One(C) }"),
            ("c.rs", "use crate::B as Other; pub struct C; fn f() { Other::One; }"),
        ];
        assert_eq!(circles(&files), [["a/b.rs -> c.rs: c::C", "c.rs -> a/b.rs: B Other::One"]]);
    }

    #[test]
    fn names_inside_bodies_are_no_items_and_inline_modules_have_their_own() {
        none(&[
            ("a.rs", "impl X { fn b() { fn inner() {} } } use crate::c::C; pub mod d { pub struct D; }"),
            ("c.rs", "pub struct C; fn f() { crate::a::inner(); crate::a::b(); }"),
        ]);
        let files = [
            ("a.rs", "pub mod d { use crate::c::C; pub struct D(C); } pub struct E;"),
            ("c.rs", "use crate::a::d::D; pub struct C;"),
        ];
        assert_eq!(circles(&files), [["a.rs -> c.rs: c::C", "c.rs -> a.rs: a::d::D"]]);
    }

    #[test]
    fn other_crates_and_imports_of_themselves_lead_nowhere() {
        none(&[
            ("a.rs", "use serde::b; use crate::b::f; use std; fn g() { serde::b::f(); std::b::f(); f() }"),
            ("b.rs", "pub fn f() {} use libm; fn g() { libm::a::g(); }"),
        ]);
    }

    #[test]
    fn a_program_beside_a_library_is_left_out() {
        none(&[
            ("lib.rs", "pub mod a; pub struct L;"),
            ("main.rs", "fn main() {}"),
            ("a.rs", "fn f() { crate::main(); }"),
        ]);
        let files =
            [("main.rs", "mod a; fn main() { a::f() } struct M;"), ("a.rs", "use crate::M; pub fn f() {}")];
        assert_eq!(circles(&files), [["main.rs -> a.rs: a::f", "a.rs -> main.rs: M"]]);
    }
}
