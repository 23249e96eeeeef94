//! The words of the report about a run that was not at one level.

use pummel_logic::measure::summary::Summary;
use pummel_logic::measure::uncertainty::UntilResult;
use pummel_logic::measure::uncertainty::steadiness::Steadiness;
use pummel_logic::time::seconds;

use super::page::Page;
use crate::report::Report;
use crate::report::numbers::number;

/// What changed in a run that was not at one level; `None` where nothing did.
pub(super) fn words(summary: &Summary) -> Option<String> {
    let what = match summary.steadiness.as_ref()? {
        Steadiness::Steady => return None,
        Steadiness::Unsettled => "the warm-up was over before the load had settled".to_owned(),
        Steadiness::Unsteady(change) => change.words(),
    };
    Some(format!(
        "not steady: {what}. The figures are those of the whole run, and how sure they are is not known."
    ))
}

/// Adds how the warm-up and the measurement ended, where that was decided while they went on.
pub(super) fn ends(page: &mut Page, report: &Report<'_>) {
    if let Some(warm_up) = report.measurement.warm_up {
        let took = seconds(warm_up.elapsed_ns);
        page.field(
            "Warm-up",
            &match warm_up.settled {
                true => format!("settled after {took:.1} s"),
                false => format!("over after {took:.1} s, and the load had not settled"),
            },
        );
    }
    if let Some(until) = &report.summary.until {
        page.field("Until", &until_words(until));
    }
}

fn until_words(result: &UntilResult) -> String {
    let percent = |share: f64| format!("{} %", number(share * 100.0));
    let (name, asked) = (result.name(), percent(result.until.half_width));
    let known = result.half_width.map_or_else(
        || format!("how sure {name} is, is not known"),
        |half_width| format!("{name} +- {}", percent(half_width)),
    );
    match result.is_reached {
        true => format!("{known} ({asked} asked for)"),
        false => format!("{known}, {asked} WAS NOT REACHED"),
    }
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
