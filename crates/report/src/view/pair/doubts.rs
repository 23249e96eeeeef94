//! Doubts about two sides in words.

use pummel_measure::compare::Design;
use pummel_measure::words::{counted, percent, was};

use crate::comparison::{Comparison, Doubt, PairCommand, RunsOfSide};
use crate::run_figures::Metric;
use crate::view::several::name_of;

/// The doubts as one sentence without its end.
pub(super) fn words(pair: &Comparison, doubts: &[Doubt]) -> String {
    let mut parts: Vec<String> = doubts.iter().filter_map(|doubt| of_one(pair, doubt)).collect();
    parts.extend(limited(doubts));
    parts.extend(unsteady(pair, doubts));
    parts.join("; ")
}

/// A doubt that is not told together with others of its kind.
fn of_one(pair: &Comparison, doubt: &Doubt) -> Option<String> {
    Some(match doubt {
        Doubt::FewRuns { runs, needed } => few_runs(pair, *runs, *needed),
        Doubt::FewPairs { pairs, figures, needed } => format!(
            "{pairs} pairs can show no difference in any of {figures} judged figures: it takes {needed} pairs, or fewer figures"
        ),
        Doubt::FewRunsForFigures { runs, figures, needed } => format!(
            "{runs} runs a side can show no difference in any of {figures} judged figures: it takes {needed}, or fewer figures"
        ),
        Doubt::NoAlternation => {
            let [first, second] = pair.names.0;
            format!(
                "the runs of {first} and {second} did not alternate in mixed order (--accept-order judges them anyway)"
            )
        }
        Doubt::Incomplete(runs) => of_side(runs, "not complete (pummel show says why)"),
        Doubt::Failed(runs) => of_side(runs, "of errors or timeouts for the most part"),
        Doubt::WrongValues { side } => format!("wrong values were found in runs of {side}"),
        Doubt::Loads { options } => format!("the plans differ in {}", options.join(", ")),
        Doubt::UnknownFigure { metric } => {
            let row = pair.row(*metric);
            let missing = row.unknown.iter().fold(0, |all: usize, one| all.saturating_add(*one));
            let runs: usize = pair.sides.iter().map(|side| side.runs.len()).sum();
            format!("{} is not known in {missing} of {}", name_of(*metric), counted(runs as u64, "run"))
        }
        Doubt::LagInFigure { metric, side, runs, of, share } => {
            let runs = RunsOfSide { side: side.clone(), runs: *runs, of: *of };
            lag(*metric, &runs, *share)
        }
        Doubt::Unsteady(_) | Doubt::GeneratorLimited(_) => return None,
    })
}

fn few_runs(pair: &Comparison, runs: usize, needed: usize) -> String {
    let many = runs as u64;
    match (pair.design, pair.command) {
        (_, _) if runs == 0 => "there is no run of each side".to_owned(),
        (Design::Apart, _) if runs == 1 => {
            "one run a side cannot show that the systems differ (pummel ab can)".to_owned()
        }
        (Design::Apart, _) => {
            format!("{} a side cannot show that the systems differ: it takes {needed}", counted(many, "run"))
        }
        (Design::Paired, PairCommand::Ab) => format!(
            "{} cannot show that the sides differ: it takes {needed} (--pairs {needed})",
            counted(many, "pair")
        ),
        (Design::Paired, PairCommand::Compare) => {
            format!("{} cannot show that the sides differ: it takes {needed}", counted(many, "pair"))
        }
    }
}

/// The part of a time that pummel itself added.
fn lag(metric: Metric, runs: &RunsOfSide, share: Option<f64>) -> String {
    let up_to = if runs.of == 1 { "" } else { "up to " };
    let part = share.map_or_else(|| "a part".to_owned(), |share| format!("{up_to}{}", percent(share)));
    let some = if runs.of == 1 { String::new() } else { format!(" in {}", some(runs)) };
    format!("pummel itself added {part} of {}'s {}{some}", runs.side, name_of(metric))
}

/// The sides of which pummel itself was the limit; a line of its own has the runs.
fn limited(doubts: &[Doubt]) -> Option<String> {
    let side = |doubt: &Doubt| match doubt {
        Doubt::GeneratorLimited(runs) => Some(runs.side.clone()),
        _ => None,
    };
    let sides: Vec<String> = doubts.iter().filter_map(side).collect();
    (!sides.is_empty()).then(|| format!("pummel itself was the limit of {}", sides.join(" and ")))
}

/// The runs of both sides that were not steady.
fn unsteady(pair: &Comparison, doubts: &[Doubt]) -> Option<String> {
    let mut some = 0_usize;
    doubts.iter().for_each(|doubt| {
        if let Doubt::Unsteady(runs) = doubt {
            some = some.saturating_add(runs.runs);
        }
    });
    let all: usize = pair.sides.iter().map(|side| side.runs.len()).sum();
    (some > 0).then(|| format!("{some} of {} {} not steady", counted(all as u64, "run"), was(some as u64)))
}

/// Some of the runs of a side.
fn some(runs: &RunsOfSide) -> String {
    match (runs.runs, runs.of) {
        (1, 1) => "the run".to_owned(),
        (some, all) => format!("{some} of {all} runs"),
    }
}

fn of_side(runs: &RunsOfSide, what: &str) -> String {
    format!("{} of {} {} {what}", some(runs), runs.side, was(runs.runs as u64))
}
