//! The words of the report about a run that was not at one level.

use pummel_logic::measure::summary::Summary;

/// What changed in a run that was not at one level; `None` where nothing did.
pub(super) fn words(summary: &Summary) -> Option<String> {
    let change = summary.change()?;
    Some(format!(
        "not steady: {}. The figures are those of the whole run, and how sure they are is not known.",
        change.words()
    ))
}

/// What became of goals, for the first line: nothing where all were met.
pub(super) fn goal_words(summary: &Summary) -> &'static str {
    let is_any = |met: Option<bool>| summary.goals.iter().any(|goal| goal.met == met);
    match (is_any(Some(false)), is_any(None)) {
        (true, _) => ", GOAL MISSED",
        (false, true) => ", GOAL UNDECIDED: NOT STEADY",
        (false, false) => "",
    }
}

/// What became of one goal.
pub(super) fn met_words(met: Option<bool>) -> &'static str {
    match met {
        Some(true) => "met",
        Some(false) => "MISSED",
        None => "UNDECIDED, met on one side of the change only",
    }
}
