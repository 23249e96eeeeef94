//! Checks one source file against the law of its floor.

use super::law::{FLOORS, Floor, IMPURE};
use super::paths::{self, Path};
use super::place::{Finding, Place};
use super::tokens::{self, Token};

/// Everything that is wrong in the source `text` at `place`.
pub fn check(floor: &Floor, place: &Place, text: &str) -> Vec<Finding> {
    let mut tokens = tokens::read(text);
    if place.is_test {
        tokens.iter_mut().for_each(|token| token.in_test = true);
    }
    let paths = paths::find(&tokens, &place.module);
    let check = Check { floor, place, tokens: &tokens, paths: &paths, lines: text.lines().collect() };
    let mut findings = check.globs();
    if place.is_shipped {
        findings.extend(check.other_floors());
        findings.extend(check.module_order());
        findings.extend(check.impure());
        findings.extend(check.banned_paths());
        findings.extend(check.banned_macros());
        findings.extend(check.unsafe_code());
        findings.extend(check.peer_data());
    }
    findings
}

/// The modules in files of their own that the source `text` declares for tests alone.
pub fn test_modules(text: &str) -> Vec<String> {
    let tokens = tokens::read(text);
    let declared = tokens
        .windows(3)
        .filter(|three| three[0].is_word("mod") && three[2].is_mark(';') && three[0].in_test);
    declared.filter_map(|three| three[1].word().map(str::to_owned)).collect()
}

struct Check<'a> {
    floor: &'a Floor,
    place: &'a Place,
    tokens: &'a [Token],
    paths: &'a [Path],
    lines: Vec<&'a str>,
}

impl Check<'_> {
    fn finding(&self, line: usize, sentence: String) -> Finding {
        Finding { file: self.place.file.clone(), line, sentence }
    }

    fn globs(&self) -> Vec<Finding> {
        let bad = |path: &&Path| path.glob && !(path.from_parent && path.in_test);
        let wrong = self.paths.iter().filter(bad);
        let sentence = |path: &Path| {
            format!(
                "`use {}::*` hides what is used; name the items (only test modules may import `super::*`).",
                path.text()
            )
        };
        wrong.map(|path| self.finding(path.line, sentence(path))).collect()
    }

    /// Paths into a crate of a higher floor.
    fn other_floors(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for path in self.paths {
            let Some(other) = FLOORS.iter().find(|other| path.parts[0] == other.package.replace('-', "_"))
            else {
                continue;
            };
            if other.package != self.floor.package && !self.floor.below.contains(&other.package) {
                findings.push(self.finding(
                    path.line,
                    format!(
                        "`{}` reaches up: {} may not know {}.",
                        path.text(),
                        self.floor.package,
                        other.package
                    ),
                ));
            }
        }
        findings
    }

    /// Paths into a module of this crate that the table does not give to this module.
    fn module_order(&self) -> Vec<Finding> {
        let modules = self.floor.modules;
        if modules.is_empty() || self.place.module.is_empty() || self.place.is_test {
            return Vec::new();
        }
        let Some((from, may_use)) = entry(self.floor, &self.place.module) else {
            let name = &self.place.module[0];
            let sentence = format!("module `{name}` is new: say in xtask/src/floors/law.rs what it may use.");
            return vec![self.finding(1, sentence)];
        };
        let mut findings = Vec::new();
        for path in self.paths.iter().filter(|path| !path.in_test && path.parts[0] == "crate") {
            let Some((to, _)) = entry(self.floor, &path.parts[1..]) else { continue };
            if !is_within(to, from) && !may_use.iter().any(|lower| is_within(to, lower)) {
                findings.push(
                    self.finding(
                        path.line,
                        format!("`{}`: module `{from}` may not use `{to}`.", path.text()),
                    ),
                );
            }
        }
        findings
    }

    /// Paths to files, the environment or a clock in a module of pure functions.
    fn impure(&self) -> Vec<Finding> {
        let row = entry(self.floor, &self.place.module).map(|(row, _)| row);
        if self.place.is_test || !row.is_some_and(|row| self.floor.pure.contains(&row)) {
            return Vec::new();
        }
        let paths = self.paths.iter().filter(|path| !path.in_test);
        let found = paths.filter_map(|path| {
            let text = standard(path);
            let (_, why) = IMPURE.iter().find(|(banned, _)| is_within(&text, banned))?;
            Some(self.finding(path.line, format!("`{text}` may not be used in a pure module: {why}.")))
        });
        found.collect()
    }

    fn banned_paths(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for path in self.paths {
            let text = standard(path);
            if self.floor.allowed_paths.iter().any(|allowed| is_within(&text, allowed)) {
                continue;
            }
            // A bare or a glob import of what lies above a banned path would let it in by the back door.
            let opens = path.glob || text == "std";
            let reaches = |banned: &str| is_within(&text, banned) || (opens && is_within(banned, &text));
            let hit = self
                .floor
                .banned_paths
                .iter()
                .find(|(banned, _)| reaches(banned) || names_last(&text, banned));
            if let Some((_, why)) = hit {
                findings
                    .push(self.finding(path.line, format!("`{text}` may not be used in this crate: {why}.")));
            }
        }
        findings
    }

    fn banned_macros(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for pair in self.tokens.windows(2) {
            let Some(word) = pair[0].word() else { continue };
            if pair[1].is_mark('!') && self.floor.banned_macros.contains(&word) {
                findings.push(self.finding(
                    pair[0].line,
                    format!("`{word}!` prints; this crate returns what it has to say."),
                ));
            }
        }
        findings
    }

    fn unsafe_code(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let allowed =
            self.place.module.first().is_some_and(|top| self.floor.unsafe_code.contains(&top.as_str()));
        for (at, token) in self.tokens.iter().enumerate().filter(|(_, token)| token.is_word("unsafe")) {
            let begins = |mark: &Token| mark.is_mark('{') || mark.is_word("impl");
            if !allowed {
                let sentence = "`unsafe` is only allowed in the engine's io module.".to_owned();
                findings.push(self.finding(token.line, sentence));
            } else if self.tokens.get(at + 1).is_some_and(begins) && !self.is_argued(token.line) {
                let sentence =
                    "`unsafe` without a `SAFETY` comment above it that says why it is sound.".to_owned();
                findings.push(self.finding(token.line, sentence));
            }
        }
        findings
    }

    /// Whether a comment with the word SAFETY stands on this line or above the statement that it belongs to.
    fn is_argued(&self, line: usize) -> bool {
        let is_aside = |text: &str| text.starts_with("//") || text.starts_with("#[");
        let ends_before = |text: &str| text.is_empty() || text.ends_with([';', '{', '}']);
        let says = |text: &str| text.split_once("//").is_some_and(|(_, comment)| comment.contains("SAFETY"));
        let above = self.lines[..line - 1].iter().rev().map(|text| text.trim());
        says(self.lines[line - 1])
            || above
                .take_while(|text| is_aside(text) || !ends_before(text))
                .any(|text| text.starts_with("//") && says(text))
    }

    fn peer_data(&self) -> Vec<Finding> {
        let reads_peer = |top: &String| self.floor.peer_data.contains(&top.as_str());
        if !self.place.module.first().is_some_and(reads_peer) {
            return Vec::new();
        }
        let mut findings = Vec::new();
        for three in self.tokens.windows(3).filter(|three| three[0].is_mark('.') && three[2].is_mark('(')) {
            let Some(word @ ("unwrap" | "expect")) = three[1].word() else { continue };
            if !three[1].in_test {
                let sentence = format!(
                    "`.{word}()` where a peer's bytes are read: make it an outcome, or assert before it."
                );
                findings.push(self.finding(three[1].line, sentence));
            }
        }
        findings
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

    fn findings(file: &str, text: &str) -> Vec<String> {
        let floor = FLOORS.iter().find(|floor| file.starts_with(floor.directory)).unwrap();
        let place = Place::of(floor, file);
        check(floor, &place, text).iter().map(Finding::to_string).collect()
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
    const EPOLL: &str = "crates/engine/src/backend/epoll.rs";
    const WORKER: &str = "crates/engine/src/worker/mod.rs";
    const MAIN: &str = "crates/tool/src/main.rs";

    #[test]
    fn an_import_of_a_higher_crate_is_caught() {
        caught(TEXT, "\nuse pummel_engine::backend::ConnId;", 2, "reaches up");
        caught(WORKER, "fn f() { pummel::main() }", 1, "reaches up");
        passes(WORKER, "use pummel_logic::plan::Plan;");
        passes(MAIN, "use pummel_engine::run; use pummel_logic::plan::Plan;");
    }

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
        let place = Place { is_test: true, ..Place::of(&FLOORS[0], "crates/logic/src/connection/tests.rs") };
        assert!(
            check(&FLOORS[0], &place, "use super::*; use crate::client::Client; fn f() { a.unwrap() }")
                .is_empty()
        );
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
    fn printing_is_caught_below_the_top_floor() {
        caught(TEXT, "fn f() { println!() }", 1, "`println!` prints");
        caught(MIX, "fn f() { dbg!(1) }", 1, "`dbg!` prints");
        caught(WORKER, "fn f() { eprintln!() }", 1, "`eprintln!` prints");
        passes(TEXT, "// println!()\nfn f() { \"println!()\"; write!(out, x) }");
        passes(MAIN, "fn f() { println!() }");
    }

    #[test]
    fn unsafe_is_caught_outside_the_io_module() {
        caught(TEXT, "fn f() { unsafe { g() } }", 1, "only allowed");
        caught(WORKER, "// SAFETY: none\nfn f() { unsafe { g() } }", 2, "only allowed");
        caught(MAIN, "unsafe fn f() {}", 1, "only allowed");
        passes("crates/logic/src/lib.rs", "#![forbid(unsafe_code)]");
    }

    #[test]
    fn unsafe_in_the_io_module_needs_its_argument() {
        caught(EPOLL, "fn f() {\n    // Why not.\n    unsafe { g() };\n}", 3, "SAFETY");
        caught(
            EPOLL,
            "// SAFETY: of something else.\nstatic A: u8 = 0;\nunsafe impl Send for B {}",
            3,
            "SAFETY",
        );
        passes(
            EPOLL,
            "fn f() {\n    // SAFETY: `g` takes nothing,\n    // and gives nothing.\n    unsafe { g() };\n}",
        );
        passes(EPOLL, "fn f() {\n    // SAFETY: sound.\n    let taken =\n        unsafe { g() };\n}");
        passes(
            EPOLL,
            "// SAFETY: it has no threads.\n#[allow(x)]\nunsafe impl Send for B {}\nunsafe fn h() {}",
        );
    }

    #[test]
    fn unwrapping_what_a_peer_sent_is_caught() {
        caught(TEXT, "fn f() {\n a.b()\n .unwrap() }", 3, ".unwrap()");
        caught("crates/logic/src/connection/session.rs", "fn f() { a.expect(\"b\") }", 1, ".expect()");
        passes(TEXT, "fn f() { a.unwrap_or(1) } #[cfg(test)] mod tests { fn g() { a.unwrap() } }");
        passes(MIX, "fn f() { a.unwrap() }");
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
