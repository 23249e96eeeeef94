//! `cargo xtask sbom`: what the program is made of, as a CycloneDX list of its crates.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use crate::programs::{cargo, said_by};

/// The package whose crates are listed.
const PROGRAM: &str = "pummel";

/// The platform of the binary that is released.
const TARGET: &str = "x86_64-unknown-linux-musl";

/// Writes the list of the crates in the released binary to a file.
///
/// # Errors
/// Returns an error when cargo does not describe the workspace, and when the file cannot be written.
pub fn run(root: &Path, to: &Path) -> io::Result<bool> {
    let words = ["metadata", "--format-version", "1", "--locked", "--filter-platform", TARGET];
    let metadata: Value = serde_json::from_str(&said_by(cargo(root).args(words))?)?;
    let list = list(&metadata).ok_or_else(|| io::Error::other("cargo describes no package pummel"))?;
    fs::write(to, serde_json::to_string_pretty(&list)? + "\n")?;
    Ok(true)
}

/// The CycloneDX document of what `cargo metadata` describes; `None` where it has no program. Crates that only tests or
/// build scripts use are left out.
fn list(metadata: &Value) -> Option<Value> {
    let packages = metadata["packages"].as_array()?;
    let nodes = metadata["resolve"]["nodes"].as_array()?;
    let program = packages.iter().find(|package| package["name"] == PROGRAM)?;
    let mut reached = BTreeSet::new();
    let mut open = vec![program["id"].as_str()?];
    while let Some(id) = open.pop() {
        if !reached.insert(id) {
            continue;
        }
        let node = nodes.iter().find(|node| node["id"] == id)?;
        let is_normal = |dep: &&Value| {
            dep["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        };
        open.extend(node["deps"].as_array()?.iter().filter(is_normal).filter_map(|dep| dep["pkg"].as_str()));
    }
    let parts = packages.iter().filter(|package| {
        let id = package["id"].as_str().unwrap_or_default();
        reached.contains(id) && package["id"] != program["id"]
    });
    Some(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": component(program, "application") },
        "components": parts.map(|package| component(package, "library")).collect::<Vec<_>>(),
    }))
}

fn component(package: &Value, kind: &str) -> Value {
    let text = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
    let mut component = json!({
        "type": kind,
        "name": text("name"),
        "version": text("version"),
        "purl": format!("pkg:cargo/{}@{}", text("name"), text("version")),
    });
    // Older manifests separate licenses by a slash, which is no license expression.
    if let Some(license) = package["license"].as_str() {
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_what_the_program_is_made_of_and_not_what_tests_use() {
        let package =
            |name: &str| json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0"});
        let dep = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let node = |name: &str, deps: Vec<Value>| json!({"id": name, "deps": deps});
        let packages = ["pummel", "used", "deeper", "tested", "other"].map(package);
        let metadata = json!({
            "packages": packages,
            "resolve": { "nodes": [
                node("pummel", vec![dep("used", Value::Null), dep("tested", json!("dev"))]),
                node("used", vec![dep("deeper", Value::Null)]),
                node("deeper", vec![]), node("tested", vec![]), node("other", vec![]),
            ]},
        });
        let list = list(&metadata).unwrap();
        let names: Vec<&str> = list["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["used", "deeper"]);
        assert_eq!(list["metadata"]["component"]["name"], "pummel");
        assert_eq!(list["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(list["components"][0]["purl"], "pkg:cargo/used@1.0.0");
    }

    #[test]
    fn a_workspace_without_the_program_has_no_list() {
        assert_eq!(list(&json!({"packages": [], "resolve": {"nodes": []}})), None);
    }
}
