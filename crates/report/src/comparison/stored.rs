//! Stored results as the sides of a comparison.

use std::collections::BTreeMap;
use std::fmt;

use pummel_logic::plan::{Labels, Plan};
use pummel_measure::compare::RUNS_MAX;
use pummel_measure::measurement::Status;
use serde::Deserialize;

use super::claim::{Claim, ClaimKind, ClaimResult, Outcome};
use super::difference_words::load_difference;
use super::result::{Comparison, Question};
use super::side::{Side, SideSource};
use crate::checked_json;
use crate::document::{Document, NotAResult, SCHEMA};
use crate::run_figures::{Metric, RunFigures};

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

/// The result of `run --repeat`.
#[derive(Clone, Debug, Deserialize)]
pub struct StoredRepetition {
    /// Plan of every run, except its seed.
    pub plan: Plan,
    /// The words of the command line; empty where they are not known.
    #[serde(default)]
    pub argv: Vec<String>,
    /// Names and values that the user gave the runs.
    #[serde(default)]
    pub labels: Labels,
    /// The last run's description of its servers and its machine.
    #[serde(default)]
    pub source: SideSource,
    /// In the order in which they were made.
    pub runs: Vec<RunFigures>,
    /// How many runs were asked for; absent of the result of an older version.
    #[serde(default)]
    pub asked: Option<u32>,
    /// Whether the server was restarted before each run; absent where that is not known.
    #[serde(default)]
    pub restarted: Option<bool>,
    /// How many runs failed and were made again.
    #[serde(default)]
    pub made_again: u32,
    /// Why runs are missing.
    #[serde(default)]
    pub reason: Option<String>,
    /// How the runs ended.
    #[serde(default)]
    pub status: Option<Status>,
}

/// Reads the JSON of repeated runs.
///
/// # Errors
/// Returns [`NotAResult`], which says what the bytes are instead, or where they are wrong.
pub fn stored_repetition(bytes: &[u8]) -> Result<StoredRepetition, NotAResult> {
    let malformed = |error: serde_json::Error| NotAResult::of_error(bytes, &error);
    let label: Label = serde_json::from_slice(bytes).map_err(malformed)?;
    match (label.schema, label.command.as_deref()) {
        (Some(schema), _) if schema > u64::from(SCHEMA) => Err(NotAResult::Newer(schema)),
        (Some(_), Some("repeat")) => checked_json::read(bytes).map_err(malformed),
        _ => Err(NotAResult::Another(label.command)),
    }
}

/// The result of `ab` or of `compare`, as far as a comparison reads it.
#[derive(Deserialize)]
struct StoredComparison {
    a: StoredSide,
    b: StoredSide,
    runs: Vec<StoredRun>,
    paired: bool,
    #[serde(default)]
    argv: Vec<String>,
    #[serde(default)]
    asked_pairs: Option<u32>,
    #[serde(default)]
    made_again: u32,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    status: Option<Status>,
    #[serde(default)]
    figures: BTreeMap<String, StoredFigure>,
    #[serde(default)]
    doubts: Vec<String>,
    #[serde(default)]
    claims: Vec<StoredClaim>,
}

#[derive(Deserialize)]
struct StoredFigure {
    #[serde(default)]
    judged: bool,
}

#[derive(Deserialize)]
struct StoredClaim {
    claim: String,
    metric: String,
    limit: f64,
    outcome: String,
    #[serde(default)]
    why: Option<String>,
}

impl StoredClaim {
    /// The claim and its outcome; `None` if its words are those of a newer version.
    fn result(self) -> Option<ClaimResult> {
        let kind = match self.claim.as_str() {
            "worse" => ClaimKind::Worse,
            "within" => ClaimKind::Within,
            _ => return None,
        };
        let outcome = match self.outcome.as_str() {
            "passed" => Outcome::Held,
            "failed" => Outcome::Violated,
            _ => Outcome::NotJudged(self.why.unwrap_or_default()),
        };
        let metric = Metric::from_name(&self.metric)?;
        Some(ClaimResult { claim: Claim { metric, limit: self.limit, kind }, outcome })
    }
}

#[derive(Deserialize)]
struct StoredSide {
    #[serde(default)]
    label: String,
    plan: Plan,
    #[serde(default)]
    labels: Labels,
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
    sides_in(file, stored, 1).map(Some)
}

/// Whether a file is the result of `ab`, whose sides may have different loads on purpose.
pub fn is_ab(file: &StoredFile) -> bool {
    label_of(file).is_ok_and(|label| label.command.as_deref() == Some("ab"))
}

/// The comparison in the JSON of `ab`, with the claims that it was held to.
///
/// # Errors
/// Returns [`NotASide`] for bytes that are no result of `ab`, and for one that is not whole.
pub fn stored_ab(file: &StoredFile) -> Result<Comparison, NotASide> {
    let label = label_of(file)?;
    if label.command.as_deref() != Some("ab") {
        let why = NotAResult::Another(label.command).to_string();
        return Err(NotASide::File(file.name.clone(), why));
    }
    let mut stored: StoredComparison = read(file)?;
    let judged = stored.figures.iter().filter(|(_, figure)| figure.judged);
    let metrics = judged.filter_map(|(name, _)| Metric::from_name(name)).collect();
    let claims = std::mem::take(&mut stored.claims).into_iter().filter_map(StoredClaim::result).collect();
    let (doubts, reason) = (std::mem::take(&mut stored.doubts), stored.reason.take());
    let argv = std::mem::take(&mut stored.argv);
    let (asked_pairs, interrupted) = (stored.asked_pairs, stored.status == Some(Status::Interrupted));
    let made_again = stored.made_again;
    let question = Question { metrics, loads_may_differ: true, ..Question::default() };
    let comparison = Comparison::of_pairs("ab", sides_in(file, stored, 0)?, &question);
    Ok(Comparison { claims, doubts, reason, argv, asked_pairs, interrupted, made_again, ..comparison })
}

/// The sides of a stored comparison, each of which has at least `runs_min` runs.
fn sides_in(file: &StoredFile, stored: StoredComparison, runs_min: usize) -> Result<[Side; 2], NotASide> {
    if !stored.paired {
        let why = "a comparison of runs that were no pairs: compare the results themselves".to_owned();
        return Err(NotASide::File(file.name.clone(), why));
    }
    let of_side = |name: &str| {
        let runs = stored.runs.iter().filter(|run| run.side == name);
        runs.map(|run| run.figures.clone()).collect::<Vec<RunFigures>>()
    };
    let runs = [of_side("a"), of_side("b")];
    if runs_min > 0 && runs.iter().all(Vec::is_empty) {
        return Err(NotASide::File(file.name.clone(), "no pair of runs was completed".to_owned()));
    }
    if runs.iter().any(|runs| runs.len() < runs_min || runs.len() > RUNS_MAX) {
        let why = format!("each side of a comparison has from {runs_min} to {RUNS_MAX} runs");
        return Err(NotASide::File(file.name.clone(), why));
    }
    let [first, second] = runs;
    let side = |stored: StoredSide, runs: Vec<RunFigures>| Side {
        label: stored.label,
        plan: stored.plan.with_labels(stored.labels),
        source: stored.source,
        runs,
    };
    Ok([side(stored.a, first), side(stored.b, second)])
}

fn one_side(file: &StoredFile) -> Result<Side, NotASide> {
    let label = label_of(file)?;
    match label.command.as_deref() {
        Some("repeat") => {
            let StoredRepetition { plan, labels, source, runs, .. } = read(file)?;
            if runs.is_empty() {
                return Err(NotASide::File(file.name.clone(), "no run was completed".to_owned()));
            }
            Ok(Side { label: String::new(), plan: plan.with_labels(labels), source, runs })
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
            let plan = result.plan.with_labels(result.labels);
            Ok(Side { label: String::new(), plan, source, runs })
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
    checked_json::read(&file.bytes).map_err(|error| {
        NotASide::File(file.name.clone(), NotAResult::of_error(&file.bytes, &error).to_string())
    })
}

#[cfg(test)]
mod tests {
    use pummel_measure::measurement::Keep;

    use super::*;
    use crate::comparison::{json, text};
    use crate::example::Run;
    use crate::json::render;
    use crate::repetition::{self, Repetition};
    use crate::run_figures::tests::run_at;

    fn file(name: &str, bytes: Vec<u8>) -> StoredFile {
        StoredFile { name: name.to_owned(), bytes }
    }

    fn single() -> Vec<u8> {
        Run::new(Keep::Figures).with_windows().report(|report| render(&Document::of(report)))
    }

    fn repeated() -> Vec<u8> {
        repetition::json(&Repetition {
            plan: Run::new(Keep::Figures).plan,
            argv: vec!["pummel".to_owned(), "run".to_owned()],
            asked: 2,
            restarted: Some(false),
            source: SideSource::default(),
            runs: vec![run_at(1.0, 1.0), run_at(2.0, 1.1)],
            reason: None,
            interrupted: false,
            made_again: 0,
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
        assert!(stored_ab(&file("a.json", single())).is_err());
        let alone = side_of(&[stored]).expect_err("two sides already").to_string();
        assert!(alone.contains("give it alone"), "{alone}");
    }

    #[test]
    fn a_stored_ab_is_shown_as_it_was_printed() {
        let plan = Run::new(Keep::Figures).plan;
        let side = |scale: f64, depth: u32| {
            let mut plan = plan.clone();
            plan.groups[0].clients = depth;
            Side {
                label: format!("-c {depth}"),
                plan,
                source: SideSource::default(),
                runs: (0..7)
                    .map(|run| RunFigures { steady: None, ..run_at(f64::from(run), scale) })
                    .collect(),
            }
        };
        let claim = |metric, kind| Claim { metric, limit: 0.02, kind };
        let claims = vec![claim(Metric::P99, ClaimKind::Worse), claim(Metric::Rate, ClaimKind::Within)];
        for claims in [claims, Vec::new()] {
            let question = Question { claims, loads_may_differ: true, ..Question::default() };
            let mut made = Comparison::of_pairs("ab", [side(1.0, 1), side(1.1, 4)], &question);
            made.asked_pairs = Some(9);
            made.reason = Some("interrupted".to_owned());
            made.interrupted = true;
            let read = stored_ab(&file("ab.json", json(&made))).expect("a result");
            assert_eq!(text(&read), text(&made));
            assert_eq!(json(&read), json(&made));
        }
        let [mut first, mut second] = [side(1.0, 1), side(1.1, 4)];
        (first.runs, second.runs) = (Vec::new(), Vec::new());
        let mut made = Comparison::of_pairs("ab", [first, second], &Question::default());
        (made.asked_pairs, made.reason) = (Some(9), Some("nothing listens there".to_owned()));
        let stored = file("ab.json", json(&made));
        let read = stored_ab(&stored).expect("a result without a run");
        assert_eq!(text(&read), text(&made));
        assert!(text(&read).contains("Not complete: 0 of 9 pairs: nothing listens there"), "{}", text(&read));
        let why = sides_of(&stored).expect_err("nothing to compare").to_string();
        assert_eq!(why, "ab.json: no pair of runs was completed");
    }

    #[test]
    fn what_is_no_result_is_told_by_name() {
        for (bytes, words) in [
            (&b""[..], "not the JSON result"),
            (b"{}", "expected also `schema`, `status`, `plan`"),
            (b"[1]", "not the JSON result of a run: expected a JSON object in braces"),
            (b"schema = 1\nservers = ['a']\n[data]\nrecords = 1", "a plan, and not the result of a run"),
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
        assert!(why.contains("--connections"), "{why}");
    }
}
