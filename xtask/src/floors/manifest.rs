//! Checks the dependencies in a crate's Cargo.toml against the floors.

use super::law::{FLOORS, Floor};
use super::place::Finding;

/// Every dependency in the manifest `text`, of any kind, that this floor may not have.
///
/// Reads the lines of the manifest, not TOML in full: tables `[dependencies]`, `[target.x.dev-dependencies]` and
/// `[dependencies.name]`, with keys such as `name = ...`, `name.workspace = true` and `"name" = ...`.
pub fn check(floor: &Floor, file: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut table = Table::Other;
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let mut names: Vec<String> = Vec::new();
        if let Some(header) = line.strip_prefix('[') {
            table = Table::of(header.trim_end_matches(']'));
            names.extend(table.own_name());
        } else if table == Table::Dependencies {
            names.extend(key(line));
        }
        if table != Table::Other {
            names.extend(renamed(line));
        }
        for name in names.iter().filter(|name| !may_depend(floor, name)) {
            let sentence =
                format!("{} may not depend on `{name}`: it belongs to another floor.", floor.package);
            findings.push(Finding { file: file.to_owned(), line: index + 1, sentence });
        }
    }
    findings
}

#[derive(PartialEq)]
enum Table {
    /// Names of dependencies are its keys.
    Dependencies,
    /// The section describes the dependency of this name.
    Dependency(String),
    Other,
}

impl Table {
    fn of(header: &str) -> Table {
        let mut parts = header.split('.').rev().map(unquoted);
        let (last, before) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if last.ends_with("dependencies") {
            Table::Dependencies
        } else if before.ends_with("dependencies") {
            Table::Dependency(last.to_owned())
        } else {
            Table::Other
        }
    }

    fn own_name(&self) -> Option<String> {
        match self {
            Table::Dependency(name) => Some(name.clone()),
            _ => None,
        }
    }
}

fn key(line: &str) -> Option<String> {
    let (left, _) = line.split_once('=')?;
    let name = unquoted(left.split('.').next().unwrap_or_default());
    (!name.is_empty()).then(|| name.to_owned())
}

/// The package behind a dependency under another name: `package = "name"`.
fn renamed(line: &str) -> Option<String> {
    let (_, behind) = line.split_once("package")?;
    let value = behind.trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')?;
    value.split('"').next().map(str::to_owned)
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}

fn may_depend(floor: &Floor, name: &str) -> bool {
    let of_workspace = FLOORS.iter().any(|other| other.package == name);
    !floor.foreign.contains(&name) && (!of_workspace || floor.below.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(package: &str, text: &str) -> Vec<usize> {
        let floor = FLOORS.iter().find(|floor| floor.package == package).unwrap();
        check(floor, "Cargo.toml", text).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn an_edge_that_runs_up_is_caught_in_every_form() {
        assert_eq!(
            lines("pummel-logic", "[dependencies]\nserde = \"1\"\npummel-engine.workspace = true"),
            [3]
        );
        assert_eq!(lines("pummel-engine", "[dev-dependencies]\n\"pummel\" = { path = \"../tool\" }"), [2]);
        assert_eq!(lines("pummel-engine", "[build-dependencies.pummel]\npath = \"../tool\""), [1]);
        assert_eq!(
            lines("pummel-logic", "[dependencies]\nlow = { package = \"pummel-engine\", path = \"x\" }"),
            [2]
        );
        assert_eq!(lines("pummel-logic", "[target.'cfg(unix)'.dependencies]\nlibc = \"0.2\""), [2]);
    }

    #[test]
    fn edges_that_run_down_pass() {
        let tool = "[dependencies]\npummel-logic.workspace = true\npummel-engine.workspace = true";
        assert!(lines("pummel", tool).is_empty());
        let engine = "[dependencies]\nlibc = \"0.2\" # clap = 1\npummel-logic = { path = \"x\" }";
        assert!(lines("pummel-engine", engine).is_empty());
    }

    #[test]
    fn other_tables_are_not_dependencies() {
        assert!(lines("pummel-logic", "[package]\nname = \"pummel\"\n[features]\nclap = []").is_empty());
    }
}
