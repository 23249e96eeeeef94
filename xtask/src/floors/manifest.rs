//! Checks the dependencies in a crate's Cargo.toml against the floors.

use toml::{Table, Value};

use super::finding::Finding;
use super::law::{FLOORS, Floor};

/// Every dependency in the manifest `text`, of any kind, that this floor may not have.
///
/// # Errors
/// Returns an error when the text is no TOML.
pub fn check(floor: &Floor, file: &str, text: &str) -> Result<Vec<Finding>, toml::de::Error> {
    let mut names = Vec::new();
    dependencies(&text.parse()?, &mut names);
    let wrong = names.into_iter().filter(|name| !may_depend(floor, name)).map(|name| {
        let line = text.lines().position(|line| line.contains(&name)).map_or(1, |index| index + 1);
        let sentence = format!("{} may not depend on `{name}`: it belongs to another floor.", floor.package);
        Finding { file: file.to_owned(), line, sentence }
    });
    Ok(wrong.collect())
}

/// Takes the packages in the tables of dependencies, also in those of a target.
fn dependencies(table: &Table, names: &mut Vec<String>) {
    for (key, value) in table {
        match value.as_table() {
            Some(inner) if key.ends_with("dependencies") => names.extend(inner.iter().map(package)),
            Some(inner) => dependencies(inner, names),
            None => {}
        }
    }
}

/// The package behind a dependency, which may have another name.
fn package((name, dependency): (&String, &Value)) -> String {
    dependency.get("package").and_then(Value::as_str).unwrap_or(name).to_owned()
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
        check(floor, "Cargo.toml", text).unwrap().iter().map(|finding| finding.line).collect()
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
