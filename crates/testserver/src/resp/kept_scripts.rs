//! The scripts that a node keeps, by their names.

use std::collections::HashSet;

use pummel_logic::plan::script_name;

/// Most scripts that a node keeps.
const SCRIPTS_MAX: usize = 1_000;

/// The names of the scripts that a node has.
#[derive(Debug, Default)]
pub(crate) struct Scripts(HashSet<String>);

impl Scripts {
    /// Keeps a script. Returns its name; `None` where there are too many already.
    pub(super) fn load(&mut self, text: &[u8]) -> Option<String> {
        let name = script_name(text);
        if !self.0.contains(&name) && self.0.len() >= SCRIPTS_MAX {
            return None;
        }
        self.0.insert(name.clone());
        Some(name)
    }

    /// Whether a script of this name is kept; its digits may be large.
    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.0.contains(&String::from_utf8_lossy(name).to_ascii_lowercase())
    }

    /// Forgets all scripts.
    pub(super) fn flush(&mut self) {
        self.0.clear();
    }
}
