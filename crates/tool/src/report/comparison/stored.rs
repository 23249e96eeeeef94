//! Stored results as the sides of a comparison.

use std::fmt;

use pummel_logic::measure::compare::RUNS_MAX;
use pummel_logic::plan::Plan;
use serde::Deserialize;

use super::side::{Side, SideSource, load_difference};
use crate::report::document::{Document, NotAResult, SCHEMA};
use crate::report::run_figures::RunFigures;

/// A file with a result: its name, and what is in it.
#[derive(Clone, Debug)]
pub struct StoredFile {
    /// Its name, for sentences.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// Why files are no side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotASide {
    /// A file is no result that can be compared: its name, and why.
    File(String, String),
    /// The results of one side do not belong together, in a sentence.
    Mixed(String),
}

impl fmt::Display for NotASide {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotASide::File(name, why) => write!(out, "{name}: {why}"),
            NotASide::Mixed(why) => out.write_str(why),
        }
    }
}

/// The result of `run --repeat`, as far as a comparison reads it.
#[derive(Deserialize)]
struct StoredRepetition {
    plan: Plan,
    #[serde(default)]
    source: SideSource,
    runs: Vec<RunFigures>,
}

/// The result of `ab` or of `compare`, as far as a comparison reads it.
#[derive(Deserialize)]
struct StoredComparison {
    a: StoredSide,
    b: StoredSide,
    runs: Vec<StoredRun>,
    paired: bool,
}

#[derive(Deserialize)]
struct StoredSide {
    #[serde(default)]
    label: String,
    plan: Plan,
    #[serde(default)]
    source: SideSource,
}

#[derive(Deserialize)]
struct StoredRun {
    side: String,
    #[serde(flatten)]
    figures: RunFigures,
}

/// What a file is, by the fields that tell.
#[derive(Deserialize)]
struct Label {
    #[serde(default)]
    schema: Option<u64>,
    #[serde(default)]
    command: Option<String>,
}

/// The side that these files make together: results of `run` and of `run --repeat`.
///
/// # Errors
/// Returns [`NotASide`] for a file that is no such result, for files whose plans differ, and for too many runs.
pub fn side_of(files: &[StoredFile]) -> Result<Side, NotASide> {
    let mut side: Option<Side> = None;
    for file in files {
        let next = one_side(file)?;
        match &mut side {
            None => side = Some(next),
            Some(side) => {
                if let Some(name) = load_difference(&side.plan, &next.plan) {
                    return Err(NotASide::Mixed(format!(
                        "{} and {} are not runs of one side: their plans differ in {name}",
                        files[0].name, file.name
                    )));
                }
                side.runs.extend(next.runs);
            }
        }
    }
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let side = side.ok_or_else(|| NotASide::Mixed("a side without files".to_owned()))?;
    if side.runs.len() > RUNS_MAX {
        let runs = side.runs.len();
        return Err(NotASide::Mixed(format!(
            "{}: {runs} runs; up to {RUNS_MAX} a side are compared",
            names.join(", ")
        )));
    }
    Ok(Side { label: names.join(", "), ..side })
}

/// The two sides of a stored comparison whose runs are pairs; `None` where the file is another result.
///
/// # Errors
/// Returns [`NotASide`] for a file that is no result, or a comparison that is not whole.
pub fn sides_of(file: &StoredFile) -> Result<Option<[Side; 2]>, NotASide> {
    let label = label_of(file)?;
    if !matches!(label.command.as_deref(), Some("ab" | "compare")) {
        return Ok(None);
    }
    let stored: StoredComparison = read(file)?;
    if !stored.paired {
        let why = "a comparison of runs that were no pairs: compare the results themselves".to_owned();
        return Err(NotASide::File(file.name.clone(), why));
    }
    let of_side = |name: &str| {
        let runs = stored.runs.iter().filter(|run| run.side == name);
        runs.map(|run| run.figures.clone()).collect::<Vec<RunFigures>>()
    };
    let runs = [of_side("a"), of_side("b")];
    if runs.iter().any(|runs| runs.is_empty() || runs.len() > RUNS_MAX) {
        let why = format!("each side of a comparison has from 1 to {RUNS_MAX} runs");
        return Err(NotASide::File(file.name.clone(), why));
    }
    let [first, second] = runs;
    let side = |stored: StoredSide, runs: Vec<RunFigures>| Side {
        label: stored.label,
        plan: stored.plan,
        source: stored.source,
        runs,
    };
    Ok(Some([side(stored.a, first), side(stored.b, second)]))
}

fn one_side(file: &StoredFile) -> Result<Side, NotASide> {
    let label = label_of(file)?;
    match label.command.as_deref() {
        Some("repeat") => {
            let StoredRepetition { plan, source, runs } = read(file)?;
            if runs.is_empty() {
                return Err(NotASide::File(file.name.clone(), "no run was completed".to_owned()));
            }
            Ok(Side { label: String::new(), plan, source, runs })
        }
        Some("ab" | "compare") => {
            let why = "it compares two sides already: give it alone, as `pummel compare FILE`".to_owned();
            Err(NotASide::File(file.name.clone(), why))
        }
        _ => {
            let refused = |why: NotAResult| NotASide::File(file.name.clone(), why.to_string());
            let result = Document::read(&file.bytes).map_err(refused)?;
            let source = SideSource::of(&result);
            let runs = vec![RunFigures::of(&result, result.seconds)];
            Ok(Side { label: String::new(), plan: result.plan, source, runs })
        }
    }
}

fn label_of(file: &StoredFile) -> Result<Label, NotASide> {
    let refused = |why: String| NotASide::File(file.name.clone(), why);
    let label: Label = read(file)?;
    match label.schema {
        Some(schema) if schema > u64::from(SCHEMA) => Err(refused(NotAResult::Newer(schema).to_string())),
        _ => Ok(label),
    }
}

fn read<'a, T: Deserialize<'a>>(file: &'a StoredFile) -> Result<T, NotASide> {
    serde_json::from_slice(&file.bytes).map_err(|error| {
        NotASide::File(file.name.clone(), NotAResult::Malformed(error.to_string()).to_string())
    })
}

#[cfg(test)]
mod tests {
    use pummel_logic::measure::measurement::Keep;

    use super::*;
    use crate::report::comparison::{Comparison, Question, json};
    use crate::report::example::Run;
    use crate::report::json::render;
    use crate::report::repetition::{self, Repetition};
    use crate::report::run_figures::Metric;
    use crate::report::run_figures::tests::run_at;

    fn file(name: &str, bytes: Vec<u8>) -> StoredFile {
        StoredFile { name: name.to_owned(), bytes }
    }

    fn single() -> Vec<u8> {
        Run::new(Keep::Figures).with_windows().report(|report| render(&Document::of(report)))
    }

    fn repeated() -> Vec<u8> {
        repetition::json(&Repetition {
            plan: Run::new(Keep::Figures).plan,
            asked: 2,
            restarted: false,
            source: SideSource::default(),
            runs: vec![run_at(1.0, 1.0), run_at(2.0, 1.1)],
            reason: None,
            interrupted: false,
        })
    }

    #[test]
    fn results_of_runs_and_of_repeated_runs_make_a_side() {
        let side = side_of(&[file("a.json", single()), file("b.json", repeated())]).expect("a side");
        assert_eq!((side.runs.len(), side.label.as_str()), (3, "a.json, b.json"));
        assert!(side.runs[0].figure(Metric::Rate).expect("it is known").within.is_some());
    }

    #[test]
    fn a_stored_comparison_is_read_as_it_was() {
        let plan = Run::new(Keep::Figures).plan;
        let side = |scale: f64| Side {
            label: format!("times {scale}"),
            plan: plan.clone(),
            source: SideSource::default(),
            runs: (0..6).map(|run| run_at(f64::from(run), scale)).collect(),
        };
        let stored = json(&Comparison::of_pairs("ab", [side(1.0), side(2.0)], &Question::default()));
        let stored = file("ab.json", stored);
        let [first, second] = sides_of(&stored).expect("a result").expect("a comparison");
        assert_eq!((first.runs, second.runs), (side(1.0).runs, side(2.0).runs));
        assert_eq!((first.label.as_str(), second.label.as_str()), ("times 1", "times 2"));
        assert!(sides_of(&file("a.json", single())).expect("a result").is_none());
        let alone = side_of(&[stored]).expect_err("two sides already").to_string();
        assert!(alone.contains("give it alone"), "{alone}");
    }

    #[test]
    fn what_is_no_result_is_told_by_name() {
        for (bytes, words) in [
            (&b""[..], "not the JSON result"),
            (b"{}", "no field `schema`"),
            (b"[1]", "not the JSON result"),
            (b"{\"schema\": 9}", "newer version"),
            (b"{\"schema\": 1, \"command\": \"repeat\"}", "not the JSON result"),
            (b"{\"schema\": 1, \"command\": \"scan\"}", "pummel scan"),
        ] {
            let why = side_of(&[file("x.json", bytes.to_vec())]).expect_err("no result").to_string();
            assert!(why.starts_with("x.json: ") && why.contains(words), "{why}");
        }
        // Every prefix of a result is refused, and none makes the reader panic.
        for whole in [single(), repeated()] {
            for end in (0..whole.len() - 2).step_by(97) {
                assert!(side_of(&[file("x", whole[..end].to_vec())]).is_err(), "{end}");
            }
        }
    }

    #[test]
    fn runs_of_different_loads_are_no_side() {
        let mut other = Run::new(Keep::Figures);
        other.plan.groups[0].clients = 99;
        let other = other.report(|report| render(&Document::of(report)));
        let why = side_of(&[file("a", single()), file("b", other)]).expect_err("two loads").to_string();
        assert!(why.contains("plan.groups.0.clients"), "{why}");
    }
}
