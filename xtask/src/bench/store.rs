//! The file of results: written after every round, so that an interrupted table can be gone on with.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Results by row, in a file where one was asked for.
pub struct Store {
    file: Option<PathBuf>,
    /// Record of what was measured with what: results of something else cannot be gone on with.
    head: Value,
    /// One object for each row, with its name; those of the file that are not asked for now stay in it.
    rows: Vec<Value>,
}

impl Store {
    /// Without results, and without a file where `file` is `None`.
    pub fn new(file: Option<&Path>, head: Value) -> Store {
        Store { file: file.map(Path::to_owned), head, rows: Vec::new() }
    }

    /// With the results that are in `file`, if it exists; the error says what was measured otherwise there.
    pub fn resume(file: &Path, head: Value) -> io::Result<Store> {
        let mut store = Store::new(Some(file), head);
        if file.exists() {
            let kept: Value = serde_json::from_str(&fs::read_to_string(file)?)
                .map_err(|error| wrong(file, &format!("no result of this benchmark: {error}")))?;
            for (name, value) in store.head.as_object().into_iter().flatten() {
                if kept[name] != *value {
                    return Err(wrong(file, &format!("it has {name} {}, this is {value}", kept[name])));
                }
            }
            store.rows = kept["rows"].as_array().cloned().unwrap_or_default();
        }
        Ok(store)
    }

    /// The rounds of each client that are there already, when the row was measured with exactly these clients.
    pub fn rounds<T: DeserializeOwned>(&self, row: &str, clients: &[&str]) -> Option<Vec<Vec<T>>> {
        let kept = self.rows.iter().find(|kept| kept["name"] == row)?;
        let lines = kept["clients"].as_array()?;
        let names: Vec<&str> = lines.iter().filter_map(|line| line["client"].as_str()).collect();
        if names != clients {
            return None;
        }
        let rounds = |line: &Value| serde_json::from_value(line["rounds"].clone()).ok();
        let lines: Vec<Vec<T>> = lines.iter().map(rounds).collect::<Option<_>>()?;
        lines.windows(2).all(|pair| pair[0].len() == pair[1].len()).then_some(lines)
    }

    /// Takes the results of a row, in place of older ones of it, and writes the file.
    pub fn put(&mut self, row: Value) -> io::Result<()> {
        match self.rows.iter_mut().find(|kept| kept["name"] == row["name"]) {
            Some(kept) => *kept = row,
            None => self.rows.push(row),
        }
        let Some(file) = &self.file else { return Ok(()) };
        let mut whole = self.head.clone();
        whole["rows"] = json!(self.rows);
        // Beside its place first, so that an interruption leaves the older one whole.
        let beside = file.with_extension("new");
        fs::write(&beside, format!("{whole:#}\n"))?;
        fs::rename(&beside, file)
    }
}

fn wrong(file: &Path, why: &str) -> io::Error {
    io::Error::other(format!("--resume {}: {why}; take another file or remove it", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, rounds: &[f64]) -> Value {
        json!({"name": name, "clients": [{"client": "a", "rounds": rounds}, {"client": "b", "rounds": rounds}]})
    }

    fn kept(store: &Store, row: &str, clients: &[&str]) -> Option<Vec<Vec<f64>>> {
        store.rounds(row, clients)
    }

    #[test]
    fn what_was_put_is_there_after_an_interruption() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("bench.json");
        let mut store = Store::resume(&file, json!({"seconds": 3})).unwrap();
        assert_eq!(kept(&store, "x", &["a", "b"]), None);
        store.put(row("x", &[1.0])).unwrap();
        store.put(row("y", &[7.0])).unwrap();
        store.put(row("x", &[1.0, 2.0])).unwrap();
        let store = Store::resume(&file, json!({"seconds": 3})).unwrap();
        assert_eq!(kept(&store, "x", &["a", "b"]), Some(vec![vec![1.0, 2.0]; 2]));
        assert_eq!(kept(&store, "y", &["a", "b"]), Some(vec![vec![7.0]; 2]));
    }

    #[test]
    fn rounds_of_other_clients_and_broken_rounds_are_measured_again() {
        let mut store = Store::new(None, json!({}));
        store.put(row("x", &[1.0])).unwrap();
        assert_eq!(kept(&store, "x", &["a"]), None);
        assert_eq!(kept(&store, "x", &["a", "c"]), None);
        let mut uneven = row("x", &[1.0]);
        uneven["clients"][1]["rounds"] = json!([]);
        store.put(uneven).unwrap();
        assert_eq!(kept(&store, "x", &["a", "b"]), None);
        store.put(json!({"name": "x", "clients": [{"client": "a", "rounds": ["fast"]}]})).unwrap();
        assert_eq!(kept(&store, "x", &["a"]), None);
    }

    #[test]
    fn results_of_something_else_are_not_gone_on_with() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("bench.json");
        Store::resume(&file, json!({"seconds": 3})).unwrap().put(row("x", &[1.0])).unwrap();
        let error = Store::resume(&file, json!({"seconds": 1})).err().unwrap().to_string();
        assert!(error.contains("seconds 3, this is 1"), "{error}");
        fs::write(&file, "{").unwrap();
        assert!(Store::resume(&file, json!({"seconds": 3})).is_err());
    }
}
