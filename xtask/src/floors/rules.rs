//! Checks one source against the law of its floor.

use std::collections::BTreeSet;

use proc_macro2::TokenTree;

use super::finding::Finding;
use super::law::{Floor, IMPURE};
use super::names::{Path, ReadSource};
use crate::sources;

/// Everything that is wrong in a source of the crate of a floor.
pub fn check(floor: &Floor, read: &ReadSource) -> Vec<Finding> {
    let check = Check { floor, read, is_root: read.source.module.is_empty() };
    let mut findings = check.globs();
    if read.source.is_shipped {
        findings.extend(check.module_order());
        findings.extend(check.impure());
        findings.extend(check.banned_paths());
        findings.extend(check.unsafe_code());
    }
    findings
}

struct Check<'a> {
    floor: &'a Floor,
    read: &'a ReadSource,
    is_root: bool,
}

impl Check<'_> {
    fn finding(&self, line: usize, sentence: String) -> Finding {
        Finding { file: self.read.source.path.clone(), line, sentence }
    }

    fn globs(&self) -> Vec<Finding> {
        let outside_tests = self.read.code.paths.iter().filter(|path| path.from_parent);
        let anywhere = self.read.all.paths.iter().filter(|path| !path.from_parent);
        let wrong = outside_tests.chain(anywhere).filter(|path| path.glob);
        let sentence = |path: &Path| {
            format!(
                "`use {}::*` hides what is used; name the items (only test modules may import `super::*`).",
                path.text()
            )
        };
        wrong.map(|path| self.finding(path.line, sentence(path))).collect()
    }

    /// Paths into a module of this crate that the table does not give to this module.
    fn module_order(&self) -> Vec<Finding> {
        if self.floor.modules.is_empty() || self.is_root || self.read.source.code.is_empty() {
            return Vec::new();
        }
        let Some((from, may_use)) = entry(self.floor, &self.read.source.module) else {
            let name = &self.read.source.module[0];
            let sentence = format!("module `{name}` is new: say in xtask/src/floors/law.rs what it may use.");
            return vec![self.finding(1, sentence)];
        };
        let mut findings = Vec::new();
        for path in self.read.code.paths.iter().filter(|path| path.parts[0] == "crate") {
            let Some((to, _)) = entry(self.floor, &path.parts[1..]) else { continue };
            if !is_within(to, from) && !may_use.iter().any(|lower| is_within(to, lower)) {
                let sentence = format!("`{}`: module `{from}` may not use `{to}`.", path.text());
                findings.push(self.finding(path.line, sentence));
            }
        }
        findings
    }

    /// Paths to files, the environment or a clock in a module of pure functions.
    fn impure(&self) -> Vec<Finding> {
        let row = entry(self.floor, &self.read.source.module).map(|(row, _)| row);
        if !row.is_some_and(|row| self.floor.pure.contains(&row)) {
            return Vec::new();
        }
        let found = self.read.code.paths.iter().filter_map(|path| {
            let text = standard(path);
            let (_, why) = IMPURE.iter().find(|(banned, _)| is_within(&text, banned))?;
            Some(self.finding(path.line, format!("`{text}` may not be used in a pure module: {why}.")))
        });
        found.collect()
    }

    fn banned_paths(&self) -> Vec<Finding> {
        let found = self.read.all.paths.iter().filter_map(|path| {
            let text = standard(path);
            if self.floor.allowed_paths.iter().any(|allowed| is_within(&text, allowed)) {
                return None;
            }
            // A bare or a glob import of what lies above a banned path would let it in by the back door.
            let opens = path.glob || text == "std";
            let reaches = |banned: &str| is_within(&text, banned) || (opens && is_within(banned, &text));
            let mut banned = self.floor.banned_paths.iter();
            let (_, why) = banned.find(|(banned, _)| reaches(banned) || names_last(&text, banned))?;
            Some(self.finding(path.line, format!("`{text}` may not be used in this crate: {why}.")))
        });
        found.collect()
    }

    /// Lines with `unsafe` outside the modules that may have it; that each has its argument is a lint of clippy.
    fn unsafe_code(&self) -> Vec<Finding> {
        let top = self.read.source.module.first();
        if top.is_some_and(|top| self.floor.unsafe_code.contains(&top.as_str())) {
            return Vec::new();
        }
        let mut lines = BTreeSet::new();
        sources::for_each(self.read.source.tokens.clone(), &mut |tree| {
            if matches!(tree, TokenTree::Ident(word) if word == "unsafe") {
                lines.insert(tree.span().start().line);
            }
        });
        let sentence = "`unsafe` is only allowed in the engine's `sys` and `backend`.";
        lines.into_iter().map(|line| self.finding(line, sentence.to_owned())).collect()
    }
}

/// The row of the module table for a path from the crate's root: the longest that fits.
fn entry(floor: &Floor, parts: &[String]) -> Option<(&'static str, &'static [&'static str])> {
    let text = parts.join("::");
    let fits = floor.modules.iter().filter(|(name, _)| is_within(&text, name));
    fits.max_by_key(|(name, _)| name.len()).copied()
}

/// The path with `core` and `alloc` under their name in `std`.
fn standard(path: &Path) -> String {
    let mut parts = path.parts.clone();
    if matches!(parts[0].as_str(), "core" | "alloc") {
        parts[0] = "std".to_owned();
    }
    parts.join("::")
}

/// Whether `path` is `base` or lies below it.
fn is_within(path: &str, base: &str) -> bool {
    path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Whether `path` names, through an imported module, the type that `banned` ends in (`time::Instant::now`).
fn names_last(path: &str, banned: &str) -> bool {
    let Some((module, last)) = banned.rsplit_once("::") else { return false };
    let Some((_, module)) = module.rsplit_once("::") else { return false };
    is_within(path, &format!("{module}::{last}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::law::FLOORS;

    fn findings_in(files: &[(&str, &str)]) -> Vec<String> {
        let floor = FLOORS.iter().find(|floor| files[0].0.starts_with(floor.directory)).unwrap();
        let texts = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        let read = ReadSource::all(sources::of_texts(floor.directory, texts).unwrap()).unwrap();
        read.iter().flat_map(|read| check(floor, read)).map(|finding| finding.to_string()).collect()
    }

    fn findings(file: &str, text: &str) -> Vec<String> {
        findings_in(&[(file, text)])
    }

    /// The source has exactly one finding, in that line and with those words.
    fn caught(file: &str, text: &str, line: usize, words: &str) {
        let found = findings(file, text);
        assert_eq!(found.len(), 1, "{file}: {text}: {found:?}");
        assert!(found[0].starts_with(&format!("{file}:{line}: ")) && found[0].contains(words), "{found:?}");
    }

    fn passes(file: &str, text: &str) {
        assert_eq!(findings(file, text), Vec::<String>::new(), "{file}: {text}");
    }

    const TEXT: &str = "crates/logic/src/protocol/text.rs";
    const MIX: &str = "crates/logic/src/workload/mix.rs";
    const WORKER: &str = "crates/engine/src/worker/mod.rs";
    const MAIN: &str = "crates/tool/src/main.rs";

    #[test]
    fn an_import_against_the_order_of_modules_is_caught() {
        caught(TEXT, "use crate::connection::session::Session;", 1, "`protocol` may not use `connection`");
        caught(TEXT, "use super::super::workload::request::RequestMaker;", 1, "may not use `workload`");
        caught(TEXT, "fn f() { crate::client::Client::new() }", 1, "may not use `client`");
        caught(
            "crates/logic/src/plan/mod.rs",
            "use crate::{time::Nanos, workload::key::KeyMaker};",
            1,
            "may not use `workload",
        );
        caught(
            "crates/engine/src/backend/mod.rs",
            "use crate::worker::Worker;",
            1,
            "`backend` may not use `worker`",
        );
        caught("crates/tool/src/values.rs", "use crate::report::json;", 1, "`values` may not use `report`");
    }

    #[test]
    fn a_file_a_clock_or_the_environment_in_a_front_is_caught() {
        let front = "crates/tool/src/compat/memaslap/style.rs";
        caught(front, "use std::fs::File;", 1, "pure module");
        caught(front, "fn f() { pummel_engine::clock::now() }", 1, "an event comes with its moment");
        caught("crates/tool/src/native/mod.rs", "fn f() { std::env::var(NAME) }", 1, "pure module");
        caught("crates/tool/src/native/saved.rs", "use std::fs;", 1, "pure module");
        caught("crates/tool/src/values.rs", "use std::fs;", 1, "pure module");
        passes("crates/tool/src/compat/memaslap/command.rs", "use std::fs;");
    }

    #[test]
    fn a_part_of_a_module_can_stand_lower_than_the_whole() {
        passes("crates/logic/src/protocol/mod.rs", "use crate::connection::outbox::Outbox;");
        caught(
            "crates/logic/src/protocol/mod.rs",
            "use crate::connection::Action;",
            1,
            "may not use `connection`",
        );
        caught("crates/logic/src/connection/outbox.rs", "use super::Action;", 1, "may not use `connection`");
    }

    #[test]
    fn imports_with_the_order_pass() {
        passes(TEXT, "use super::{Codec, Step}; use crate::connection::outbox::Outbox; use std::fmt;");
        passes(MIX, "use super::key; use crate::plan::Mix; use crate::rng::Stream;");
        passes("crates/logic/src/lib.rs", "pub use crate::client::Client; pub mod protocol;");
    }

    #[test]
    fn tests_may_look_at_any_module() {
        passes(TEXT, "#[cfg(test)] mod tests { use super::*; use crate::connection::session::Session; }");
        let files = [
            ("crates/logic/src/connection/mod.rs", "#[cfg(test)] mod tests;"),
            ("crates/logic/src/connection/tests.rs", "use super::*; use crate::client::Client;"),
        ];
        assert_eq!(findings_in(&files), Vec::<String>::new());
    }

    #[test]
    fn a_module_that_the_table_does_not_know_is_caught() {
        caught("crates/logic/src/extra.rs", "\n\nfn f() {}", 1, "module `extra` is new");
    }

    #[test]
    fn sockets_threads_files_and_clocks_are_caught_in_logic() {
        caught(TEXT, "use std::net::TcpStream;", 1, "sockets");
        caught(TEXT, "use std::{fmt, thread};", 1, "threads");
        caught(TEXT, "fn f() {\n ::std::fs::read(x) }", 2, "files");
        caught(TEXT, "use std::os::fd::RawFd;", 1, "operating system");
        caught(TEXT, "fn f() { std::env::var(x); }", 1, "environment");
        caught(TEXT, "use std::process;", 1, "processes");
        caught(TEXT, "use core::net::SocketAddr;", 1, "sockets");
        passes(TEXT, "use std::net::IpAddr;");
        caught(TEXT, "use std::time::{Duration, Instant};", 1, "never asked for");
        caught(TEXT, "use std::time; fn f() { time::SystemTime::now() }", 1, "never asked for");
        caught(TEXT, "use std::sync::Mutex;", 1, "between threads");
        caught(TEXT, "use std::sync::atomic::AtomicU64;", 1, "between threads");
        caught(TEXT, "use std::io::stdout;", 1, "never printed");
        caught(TEXT, "use std as s;", 1, "`std` may not be used");
        passes(
            TEXT,
            "use std::sync::Arc; use std::time::Duration; use std::io::Write; fn f() { std::sync::Arc::new(1) }",
        );
        passes(WORKER, "use std::net::TcpStream; use std::thread; use std::time::Instant;");
    }

    #[test]
    fn tests_of_logic_are_bound_by_the_same_bans() {
        caught(TEXT, "#[cfg(test)] mod tests { use std::thread; }", 1, "threads");
    }

    #[test]
    fn unsafe_is_caught_outside_the_io_module() {
        caught(TEXT, "fn f() { unsafe { g() } }", 1, "only allowed");
        caught(WORKER, "// SAFETY: none\nfn f() { unsafe { g() } }", 2, "only allowed");
        caught(MAIN, "unsafe fn f() {}", 1, "only allowed");
        passes("crates/logic/src/lib.rs", "#![forbid(unsafe_code)]");
        passes("crates/engine/src/backend/epoll.rs", "fn f() { unsafe { g() } }");
    }

    #[test]
    fn globs_are_caught_outside_tests() {
        caught(MIX, "use super::*;", 1, "hides");
        caught(MIX, "fn f() { use Verb::*; }", 1, "hides");
        caught(MIX, "#[cfg(test)] mod tests { use proptest::prelude::*; }", 1, "hides");
        caught("crates/tool/tests/run.rs", "use assert_cmd::*;", 1, "hides");
        passes(MIX, "#[cfg(test)] mod tests { use super::*; }");
    }
}
