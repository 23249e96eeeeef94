//! Stored results as the sides of a comparison.

use std::fmt;

use pummel_measure::compare::{Design, RUNS_MAX};

use super::difference_words::load_difference;
use super::side::{Side, SideSource};
use super::suites::{SUITE_RUNS_MAX, SuiteSide};
use crate::document::{Document, NotAResult};
use crate::run_figures::RunFigures;
use crate::stored::ResultDocument;
use crate::suite::{SuiteRun, is_whole};

/// A file with a result.
#[derive(Clone, Debug)]
pub struct StoredFile {
    /// Name of the file, for sentences.
    pub name: String,
    /// The result in the file.
    pub result: ResultDocument,
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
                if let Some(again) = again_in(&side.runs, &next.runs) {
                    return Err(NotASide::Mixed(format!("{}: the {again} is there twice", file.name)));
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
/// Returns [`NotASide`] for a comparison whose runs are no pairs, or that is not whole.
pub fn sides_of(file: &StoredFile) -> Result<Option<[Side; 2]>, NotASide> {
    let ResultDocument::Pair(pair) = &file.result else { return Ok(None) };
    let refused = |why: &str| Err(NotASide::File(file.name.clone(), why.to_owned()));
    match (pair.design, pair.runs()) {
        (Design::Apart, _) => {
            refused("a comparison of runs that were no pairs: compare the results themselves")
        }
        (Design::Paired, 0) => refused("no pair of runs was completed"),
        (Design::Paired, _) => Ok(Some(pair.sides.clone())),
    }
}

/// The two suites that these files are, those of each side with the rounds of all of them by the names of their runs; `None` where no
/// file is a suite.
///
/// # Errors
/// Returns [`NotASide`] for suites beside other results, for other than two sides, for runs of one name whose plans differ, and for too
/// many runs or rounds.
pub fn suite_sides(files: &[Vec<StoredFile>]) -> Result<Option<[SuiteSide; 2]>, NotASide> {
    let runs = |file: &StoredFile| (file.name.clone(), suite_runs(&file.result));
    let sides: Vec<Vec<(String, Option<SuiteRuns>)>> =
        files.iter().map(|side| side.iter().map(runs).collect()).collect();
    sides_of_suites(sides)
}

/// Runs of a suite by their names.
#[derive(Clone, Debug, Default)]
struct SuiteRuns {
    /// Runs with the figures of their complete rounds.
    made: Vec<(String, Side)>,
    /// Names of the runs without one.
    failed: Vec<String>,
}

/// The runs of a result by their names; `None` where it is no suite. Rounds that failed show nothing of what a comparison is about.
fn suite_runs(result: &ResultDocument) -> Option<SuiteRuns> {
    match result {
        ResultDocument::Suite(suite) => {
            let mut runs = SuiteRuns::default();
            for run in &suite.runs {
                match suite_run(run) {
                    Some(made) => runs.made.push(made),
                    None => runs.failed.push(run.name.clone()),
                }
            }
            Some(runs)
        }
        ResultDocument::Run(_)
        | ResultDocument::Series(_)
        | ResultDocument::Repeated(_)
        | ResultDocument::Pair(_)
        | ResultDocument::Comparison(_)
        | ResultDocument::Suites(_) => None,
    }
}

/// A run of a suite by its name, with the figures of its complete rounds; `None` where none was made.
fn suite_run(run: &SuiteRun) -> Option<(String, Side)> {
    let whole: Vec<&Document> = run.results.iter().filter(|result| is_whole(result)).collect();
    let last = whole.last()?;
    let runs = whole.iter().map(|result| RunFigures::of(result, result.seconds)).collect();
    let plan = last.plan.clone().with_labels(last.labels.clone());
    Some((run.name.clone(), Side::new(String::new(), &plan, SideSource::of(last), runs)))
}

/// The two suites of some sides, whose files have names and their runs where they are suites.
fn sides_of_suites(sides: Vec<Vec<(String, Option<SuiteRuns>)>>) -> Result<Option<[SuiteSide; 2]>, NotASide> {
    let all = || sides.iter().flatten();
    let Some((suite, _)) = all().find(|(_, runs)| runs.is_some()) else { return Ok(None) };
    if let Some((other, _)) = all().find(|(_, runs)| runs.is_none()) {
        let why = format!("a suite is compared with another suite, and {other} is none");
        return Err(NotASide::File(suite.clone(), why));
    }
    let count = sides.len();
    let Ok([first, second]) = <[Vec<(String, Option<SuiteRuns>)>; 2]>::try_from(sides) else {
        let missing = if count < 2 { "the other side is missing" } else { "more sides are not compared" };
        return Err(NotASide::Mixed(format!(
            "suites are compared two at a time: {missing}, as in `pummel compare A.json B.json`"
        )));
    };
    Ok(Some([pooled(first)?, pooled(second)?]))
}

/// The suites of one side as one: the rounds of each run stand together.
fn pooled(suites: Vec<(String, Option<SuiteRuns>)>) -> Result<SuiteSide, NotASide> {
    let names: Vec<&str> = suites.iter().map(|(name, _)| name.as_str()).collect();
    let label = names.join(", ");
    let mut runs: Vec<(String, Side)> = Vec::new();
    let mut failed: Vec<String> =
        suites.iter().flat_map(|(_, own)| own).flat_map(|own| own.failed.clone()).collect();
    for (file, (name, next)) in suites
        .into_iter()
        .flat_map(|(file, own)| own.into_iter().flat_map(|own| own.made).map(move |run| (file.clone(), run)))
    {
        match runs.iter_mut().find(|(known, _)| *known == name) {
            None => runs.push((name, Side { label: label.clone(), ..next })),
            Some((_, side)) => {
                if let Some(option) = load_difference(&side.plan, &next.plan) {
                    let why =
                        format!("its run {name:?} is not that of the other suites: they differ in {option}");
                    return Err(NotASide::File(file, why));
                }
                if let Some(again) = again_in(&side.runs, &next.runs) {
                    return Err(NotASide::File(file, format!("the {again} of {name:?} is there twice")));
                }
                side.runs.extend(next.runs);
            }
        }
    }
    failed.retain(|name| runs.iter().all(|(made, _)| made != name));
    if runs.len() > SUITE_RUNS_MAX {
        let count = runs.len();
        return Err(NotASide::Mixed(format!(
            "{label}: {count} runs; up to {SUITE_RUNS_MAX} of a suite are compared"
        )));
    }
    if let Some((name, side)) = runs.iter().find(|(_, side)| side.runs.len() > RUNS_MAX) {
        let count = side.runs.len();
        return Err(NotASide::Mixed(format!(
            "{label}: {count} rounds of {name:?}; up to {RUNS_MAX} of a run are compared"
        )));
    }
    Ok(SuiteSide { label, runs, failed })
}

/// The first run that is among those before it too, by its seed and its beginning: one run is no two, and would make a side look surer
/// than it is.
fn again_in(before: &[RunFigures], more: &[RunFigures]) -> Option<String> {
    let is_one = |one: &RunFigures, other: &RunFigures| {
        one.started_unix_s.is_some()
            && (one.started_unix_s, one.seed, one.requests)
                == (other.started_unix_s, other.seed, other.requests)
    };
    let again = more.iter().find(|run| before.iter().any(|known| is_one(known, run)))?;
    Some(format!("run with the seed {}", again.seed))
}

fn one_side(file: &StoredFile) -> Result<Side, NotASide> {
    let refused = |why: &str| Err(NotASide::File(file.name.clone(), why.to_owned()));
    match &file.result {
        ResultDocument::Run(result) => {
            let runs = vec![RunFigures::of(result, result.seconds)];
            let plan = result.plan.clone().with_labels(result.labels.clone());
            Ok(Side::new(String::new(), &plan, SideSource::of(result), runs))
        }
        ResultDocument::Repeated(repeated) if repeated.runs.is_empty() => refused("no run was completed"),
        ResultDocument::Repeated(repeated) => Ok(Side {
            label: String::new(),
            plan: repeated.plan.clone(),
            labels: repeated.labels.clone(),
            source: repeated.source.clone(),
            runs: repeated.runs.clone(),
        }),
        ResultDocument::Pair(_) => {
            refused("it compares two sides already: give it alone, as `pummel compare FILE`")
        }
        ResultDocument::Comparison(_) => {
            refused("it compares several results already: `pummel show` prints it")
        }
        ResultDocument::Suites(_) => refused("it compares two suites already: `pummel show` prints it"),
        ResultDocument::Suite(_) => refused("a suite is compared with another suite"),
        ResultDocument::Series(series) => {
            refused(&NotAResult::Another(Some(series.command.clone())).to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use pummel_measure::measurement::{Keep, Status};

    use super::*;
    use crate::comparison::{
        Claim, ClaimKind, Comparison, Comparisons, PairCommand, Question, SuitesComparison, json,
    };
    use crate::document::Document;
    use crate::example::Run;
    use crate::json::render;
    use crate::repetition::Repetition;
    use crate::run_figures::Metric;
    use crate::run_figures::tests::run_at;
    use crate::stored;

    fn file(name: &str, bytes: &[u8]) -> StoredFile {
        StoredFile { name: name.to_owned(), result: stored::read(bytes).expect("a result") }
    }

    fn single() -> Vec<u8> {
        Run::new(Keep::Figures).with_windows().report(|report| render(&Document::of(report)))
    }

    fn repeated() -> Vec<u8> {
        let mut repetition = Repetition::new(&Run::new(Keep::Figures).plan, Vec::new(), 2, Some(false));
        repetition.extend([run_at(1.0, 1.0), run_at(2.0, 1.1)], SideSource::default());
        render(&repetition)
    }

    /// A side of seven runs with so many connections, whose times have this scale.
    fn side(scale: f64, clients: u32) -> Side {
        let mut plan = Run::new(Keep::Figures).plan;
        plan.groups[0].clients = clients;
        plan.labels.insert("branch".to_owned(), "main".to_owned());
        let runs = (0..7)
            .map(|run| RunFigures { steady: None, ..run_at(f64::from(run), scale + 0.001 * f64::from(run)) });
        Side::new(format!("-c {clients}"), &plan, SideSource::default(), runs.collect())
    }

    #[test]
    fn results_of_runs_and_of_repeated_runs_make_a_side() {
        let side = side_of(&[file("a.json", &single()), file("b.json", &repeated())]).expect("a side");
        assert_eq!((side.runs.len(), side.label.as_str()), (3, "a.json, b.json"));
        assert!(side.runs[0].figure(Metric::Rate).expect("it is known").within.is_some());
    }

    #[test]
    fn the_pairs_of_a_stored_comparison_are_compared_again() {
        let pair = Comparison::of_pairs(PairCommand::Ab, [side(1.0, 1), side(2.0, 1)], &Question::default());
        let stored = file("ab.json", &json(&pair));
        assert_eq!(sides_of(&stored).expect("a result").expect("a comparison"), pair.sides);
        assert!(sides_of(&file("a.json", &single())).expect("a result").is_none());
        let alone = side_of(&[stored]).expect_err("two sides already").to_string();
        assert!(alone.contains("give it alone"), "{alone}");
        let runs = Comparison::of_results([side(1.0, 1), side(2.0, 1)], &Question::default());
        assert_eq!(runs.design, Design::Apart);
        let why = sides_of(&file("x.json", &json(&runs))).expect_err("no pairs").to_string();
        assert!(why.contains("compare the results themselves"), "{why}");
    }

    #[test]
    fn a_stored_comparison_is_read_as_it_was_written() {
        let claim = |metric, kind| Claim { metric, limit: 0.02, kind };
        let claims = vec![claim(Metric::P99, ClaimKind::Worse), claim(Metric::Rate, ClaimKind::Within)];
        for claims in [claims, Vec::new()] {
            let question = Question { claims, loads_may_differ: true, ..Question::default() };
            let made = Comparison::of_pairs(PairCommand::Ab, [side(1.0, 1), side(1.1, 4)], &question);
            let cut = made.clone().ended(9, Some("interrupted".to_owned()), true);
            assert_eq!(cut.status, Status::Interrupted);
            for made in [made, cut, Comparison::of_results([side(1.0, 1), side(1.1, 4)], &question)] {
                let bytes = json(&made);
                let Ok(ResultDocument::Pair(read)) = stored::read(&bytes) else { panic!("a pair") };
                assert_eq!(*read, made);
                assert_eq!(json(&read), bytes);
            }
        }
        let bare = [side(1.0, 1), side(1.1, 4)].map(|side| Side { runs: Vec::new(), ..side });
        let made = Comparison::of_pairs(PairCommand::Ab, bare, &Question::default());
        let stored = file("ab.json", &json(&made.ended(9, Some("nothing listens there".to_owned()), false)));
        let ResultDocument::Pair(read) = &stored.result else { panic!("a pair") };
        assert_eq!((read.runs(), read.reason.as_deref()), (0, Some("nothing listens there")));
        let why = sides_of(&stored).expect_err("nothing to compare").to_string();
        assert_eq!(why, "ab.json: no pair of runs was completed");
    }

    #[test]
    fn a_stored_comparison_of_several_results_is_read_as_it_was_written() {
        let pair = Comparison::of_results([side(1.0, 1), side(1.1, 1)], &Question::default());
        let made = Comparisons::of(vec![pair.clone(), pair]);
        let bytes = render(&made);
        let Ok(ResultDocument::Comparison(read)) = stored::read(&bytes) else { panic!("a comparison") };
        assert_eq!((&*read, render(&read)), (&made, bytes));
        assert!(stored::read(&render(&Comparisons::of(Vec::new()))).is_err(), "no comparison is none");
    }

    #[test]
    fn a_comparison_has_a_greatest_number_of_runs_and_known_names() {
        let mut pair = Comparison::of_results([side(1.0, 1), side(1.1, 1)], &Question::default());
        pair.sides[1].runs = vec![run_at(1.0, 1.0); RUNS_MAX + 1];
        assert!(stored::read(&json(&pair)).is_err_and(|why| why.to_string().contains("at most 50 runs")));
        let whole = Comparison::of_results([side(1.0, 1), side(1.1, 1)], &Question::default());
        let strange = String::from_utf8(json(&whole)).expect("UTF-8").replace("\"B\"", "\"\\u001b[2J\"");
        let why = stored::read(strange.as_bytes()).expect_err("a name that no side has").to_string();
        assert!(why.contains("no name of a side") && !why.contains('\u{1b}'), "{why}");
    }

    #[test]
    fn what_is_no_result_is_told() {
        for (bytes, words) in [
            (&b""[..], "not the JSON result"),
            (b"{}", "expected also `schema`, `status`, `plan`"),
            (b"[1]", "not the JSON result of a run: expected a JSON object in braces"),
            (b"schema = 1\nservers = ['a']\n[data]\nrecords = 1", "a plan, and not the result of a run"),
            (b"{\"schema\": 9}", "newer version"),
            (b"{\"schema\": 9, \"command\": \"repeat\"}", "newer version"),
            (b"{\"schema\": 1, \"command\": \"repeat\"}", "not the JSON result"),
            (b"{\"schema\": 1, \"command\": \"fly\"}", "pummel fly"),
        ] {
            let why = stored::read(bytes).expect_err("no result").to_string();
            assert!(why.contains(words), "{why}");
        }
        // Every prefix of a result is refused, and none makes the reader panic.
        for whole in [single(), repeated()] {
            for end in (0..whole.len() - 2).step_by(97) {
                assert!(stored::read(&whole[..end]).is_err(), "{end}");
            }
        }
    }

    #[test]
    fn runs_of_different_loads_are_no_side() {
        let mut other = Run::new(Keep::Figures);
        other.plan.groups[0].clients = 99;
        let other = other.report(|report| render(&Document::of(report)));
        let why = side_of(&[file("a", &single()), file("b", &other)]).expect_err("two loads").to_string();
        assert!(why.contains("--connections"), "{why}");
    }

    /// A suite of runs with these names, each of so many rounds.
    fn suite(names: &[&str], rounds: usize) -> Option<SuiteRuns> {
        suite_at(0.0, names, rounds)
    }

    /// A suite that began at this time.
    fn suite_at(from_s: f64, names: &[&str], rounds: usize) -> Option<SuiteRuns> {
        let run = |name: &&str| {
            let runs = (0..rounds).map(|round| run_at(from_s + round as f64, 1.0)).collect();
            ((*name).to_owned(), Side { runs, ..side(1.0, 1) })
        };
        Some(SuiteRuns { made: names.iter().map(run).collect(), failed: Vec::new() })
    }

    fn suites(sides: &[&[(&str, Option<SuiteRuns>)]]) -> Result<Option<[SuiteSide; 2]>, NotASide> {
        let named = |(name, runs): &(&str, Option<SuiteRuns>)| ((*name).to_owned(), runs.clone());
        sides_of_suites(sides.iter().map(|side| side.iter().map(named).collect()).collect())
    }

    #[test]
    fn suites_of_one_side_have_their_rounds_together() {
        let first = [("a1.json", suite(&["x", "y"], 2)), ("a2.json", suite_at(99.0, &["y", "z"], 3))];
        let [a, b] =
            suites(&[&first, &[("b.json", suite(&["x"], 4))]]).expect("suites").expect("two of them");
        let rounds: Vec<(&str, usize)> =
            a.runs.iter().map(|(name, side)| (name.as_str(), side.runs.len())).collect();
        assert_eq!((rounds, a.label.as_str()), (vec![("x", 2), ("y", 5), ("z", 3)], "a1.json, a2.json"));
        assert_eq!((b.runs.len(), b.runs[0].1.label.as_str()), (1, "b.json"));
    }

    #[test]
    fn a_run_that_failed_in_one_suite_is_told_apart_from_one_that_it_does_not_have() {
        let failing = SuiteRuns { failed: vec!["y".to_owned()], ..suite(&["x"], 6).unwrap_or_default() };
        let [a, b] = suites(&[&[("a.json", suite(&["x", "y", "z"], 6))], &[("b.json", Some(failing))]])
            .expect("suites")
            .expect("two of them");
        let gate = Claim { metric: Metric::Rate, limit: 0.5, kind: ClaimKind::Worse };
        let question = Question { claims: vec![gate], accept_order: true, ..Question::default() };
        let compared = SuitesComparison::of(a, b, &question);
        assert_eq!(compared.failed, [Vec::new(), vec!["y".to_owned()]]);
        assert_eq!(compared.only, [vec!["z".to_owned()], Vec::new()]);
        assert_eq!(crate::view::suites::headline(&compared).status, 1, "a gate of a run that failed");
        let title = crate::view::suites::title(&compared);
        assert!(title.contains("\"y\" failed"), "{title}");
    }

    #[test]
    fn what_is_no_pair_of_suites_is_told() {
        let plain = ("run.json", None);
        assert_eq!(suites(&[from_ref(&plain), from_ref(&plain)]), Ok(None));
        assert_eq!(suites(&[]), Ok(None));
        let one = ("a.json", suite(&["x"], 6));
        let other_load = {
            let mut runs = suite(&["x"], 6).unwrap_or_default();
            runs.made[0].1.plan.groups[0].clients = 9;
            ("c.json", Some(runs))
        };
        let names: Vec<String> = (0..=SUITE_RUNS_MAX).map(|name| name.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for (sides, words) in [
            (
                vec![vec![one.clone()], vec![plain]],
                "a.json: a suite is compared with another suite, and run.json is none",
            ),
            (vec![vec![one.clone()]], "two at a time: the other side is missing"),
            (vec![vec![one.clone()]; 3], "two at a time: more sides are not compared"),
            (vec![vec![one.clone(), other_load], vec![one.clone()]], "they differ in --connections"),
            (vec![vec![one.clone(), one.clone()], vec![one.clone()]], "of \"x\" is there twice"),
            (vec![vec![("b.json", suite(&["x"], 51))], vec![one.clone()]], "51 rounds of \"x\"; up to 50"),
            (vec![vec![one], vec![("b.json", suite(&names, 1))]], "b.json: 201 runs; up to 200 of a suite"),
        ] {
            let sides: Vec<&[_]> = sides.iter().map(Vec::as_slice).collect();
            let why = suites(&sides).expect_err("no two suites").to_string();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn a_comparison_of_suites_is_no_side() {
        let suite = |label: &str| SuiteSide {
            label: label.to_owned(),
            runs: suite(&["x"], 6).unwrap_or_default().made,
            failed: Vec::new(),
        };
        let compared = SuitesComparison::of(suite("a"), suite("b"), &Question::default());
        let stored = file("suites.json", &render(&compared));
        assert_eq!(sides_of(&stored), Ok(None));
        assert_eq!(suite_sides(&[vec![stored.clone()]]), Ok(None));
        let why = side_of(&[stored]).expect_err("two suites already").to_string();
        assert_eq!(why, "suites.json: it compares two suites already: `pummel show` prints it");
    }
}
