//! The order of modules inside a crate: which paths lead to a module that is not below.

use super::names::File;

/// Everything that a file names against the order of its crate's layers.
pub fn check(layers: &[&str], file: &File) -> Vec<String> {
    if layers.is_empty() || file.module.is_empty() {
        return Vec::new();
    }
    let Some((from, own_layer)) = place(layers, &file.module) else {
        let name = &file.module[0];
        return vec![format!(
            "{}:1: module `{name}` is new: xtask/src/floors/law.rs has to place it.",
            file.path
        )];
    };
    let of_crate = file.names.paths.iter().filter(|path| path.parts[0] == "crate");
    let against = of_crate.filter_map(|path| {
        let (to, layer) = place(layers, &path.parts[1..])?;
        let is_allowed = layer < own_layer || is_within(to, from);
        (!is_allowed).then(|| {
            let (file, text) = (&file.path, path.parts.join("::"));
            format!("{file}:{}: `{text}`: module `{from}` may not use `{to}`.", path.line)
        })
    });
    against.collect()
}

/// The longest name of the layers that a path from the crate's root begins with, and the number of its layer.
fn place<'a>(layers: &[&'a str], parts: &[String]) -> Option<(&'a str, usize)> {
    let path = parts.join("::");
    let names =
        layers.iter().enumerate().flat_map(|(layer, names)| names.split(' ').map(move |name| (name, layer)));
    names.filter(|(name, _)| is_within(&path, name)).max_by_key(|(name, _)| name.len())
}

/// Whether `path` is `base` or lies below it.
fn is_within(path: &str, base: &str) -> bool {
    path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use super::super::law::CRATES;
    use super::super::names::read;
    use super::*;
    use crate::sources;

    fn findings_in(files: &[(&str, &str)]) -> Vec<String> {
        let found = CRATES.iter().find(|own| files[0].0.starts_with(own.directory)).unwrap();
        let texts = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        let read = read(sources::of_texts(found.directory, texts).unwrap()).unwrap();
        read.iter().flat_map(|file| check(found.layers, file)).collect()
    }

    /// Asserts that the source has exactly one finding, in that line and with those words.
    fn caught(file: &str, text: &str, line: usize, words: &str) {
        let found = findings_in(&[(file, text)]);
        assert_eq!(found.len(), 1, "{file}: {text}: {found:?}");
        assert!(found[0].starts_with(&format!("{file}:{line}: ")) && found[0].contains(words), "{found:?}");
    }

    fn passes(file: &str, text: &str) {
        assert_eq!(findings_in(&[(file, text)]), Vec::<String>::new(), "{file}: {text}");
    }

    const TEXT: &str = "crates/logic/src/protocol/text.rs";
    const MIX: &str = "crates/logic/src/workload/mix.rs";

    #[test]
    fn an_import_against_the_order_of_modules_is_caught() {
        caught(TEXT, "use crate::connection::session::Session;", 1, "`protocol` may not use `connection`");
        caught(TEXT, "use super::super::workload::request::RequestMaker;", 1, "may not use `workload`");
        caught(TEXT, "\nfn f() { crate::client::Client::new() }", 2, "may not use `client`");
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
        caught(
            "crates/pummel/src/stderr.rs",
            "use crate::output::print;",
            1,
            "`stderr` may not use `output`",
        );
    }

    #[test]
    fn modules_of_one_layer_do_not_use_each_other() {
        caught(
            "crates/pummel/src/short_help.rs",
            "use crate::terminal::a;",
            1,
            "`short_help` may not use `terminal`",
        );
    }

    #[test]
    fn a_part_of_a_module_can_stand_lower_or_higher_than_the_whole() {
        passes("crates/logic/src/protocol/mod.rs", "use crate::connection::outbox::Outbox;");
        let whole = "use crate::connection::Action;";
        caught("crates/logic/src/protocol/mod.rs", whole, 1, "may not use `connection`");
        caught("crates/logic/src/connection/outbox.rs", "use super::Action;", 1, "may not use `connection`");
        passes("crates/logic/src/plan/validate/mod.rs", "use crate::workload::key; use super::Plan;");
    }

    #[test]
    fn imports_with_the_order_pass() {
        passes(TEXT, "use super::{Codec, Step}; use crate::connection::outbox::Outbox; use std::fmt;");
        passes(MIX, "use super::key; use crate::plan::Mix; use crate::rng::Stream;");
        passes("crates/logic/src/lib.rs", "pub use crate::client::Client; pub mod protocol;");
        passes("crates/traffic/src/fit.rs", "use crate::anything;");
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
    fn a_module_without_a_place_is_caught() {
        caught("crates/logic/src/extra.rs", "\n\nfn f() {}", 1, "module `extra` is new");
    }
}
