//! What was compared: the sides, how many runs they have, and the load.

use pummel_logic::plan::Plan;
use pummel_measure::compare::{Design, median};
use pummel_measure::measurement::Status;
use pummel_measure::words::counted;

use crate::comparison::{Comparison, PairCommand, SIDE_NAMES, Side as RunsOfSide};
use crate::run_figures::RunFigures;
use crate::view::Side;
use crate::view::cells::{plain, seconds};
use crate::view::run::ran::pace;

/// The sides, the first one in front.
pub(super) fn all(comparisons: &[Comparison]) -> Vec<&RunsOfSide> {
    let first = comparisons.first().map(|pair| &pair.sides[0]);
    first.into_iter().chain(comparisons.iter().map(|pair| &pair.sides[1])).collect()
}

/// The sides with their names.
pub(super) fn named(comparisons: &[Comparison]) -> impl Iterator<Item = (&'static str, &RunsOfSide)> {
    let first = comparisons.first().map(|pair| pair.names.0[0]);
    let names = first.into_iter().chain(comparisons.iter().map(|pair| pair.names.0[1]));
    names.zip(all(comparisons))
}

/// The lines that name the sides.
pub(super) fn sides(comparisons: &[Comparison]) -> Vec<Side> {
    let Some(first) = comparisons.first() else { return Vec::new() };
    let side = |(name, side): (&'static str, &RunsOfSide)| {
        let servers = side.plan.servers.join(", ");
        let parts = match first.command {
            PairCommand::Ab => vec![side.name()],
            // A stored experiment names its sides by what tells them apart.
            PairCommand::Compare if side.name() == servers => {
                vec![format!("{servers}, {}", load(&side.plan))]
            }
            PairCommand::Compare => vec![side.name(), format!("{servers}, {}", load(&side.plan))],
        };
        Side { name, parts }
    };
    named(comparisons).map(side).collect()
}

/// When the clients of a plan send.
fn load(plan: &Plan) -> String {
    let groups = plan.groups.iter().enumerate().map(|(index, group)| pace(plan, index, group));
    let mut paces: Vec<String> = groups.collect();
    paces.dedup();
    paces.join(" and ")
}

/// The line on how often was measured; none where each side is one stored run.
pub(super) fn ran(comparisons: &[Comparison]) -> Vec<Vec<String>> {
    let Some(first) = comparisons.first() else { return Vec::new() };
    let sides = all(comparisons);
    let runs = || sides.iter().flat_map(|side| &side.runs);
    if first.design == Design::Apart && sides.iter().all(|side| side.runs.len() == 1) {
        return Vec::new();
    }
    let each = run_length(&first.sides[0].plan, runs());
    let many = match comparisons {
        [pair] if pair.design == Design::Paired => {
            let order = if pair.command == PairCommand::Ab { "random" } else { "mixed" };
            format!("{}{each} in {order} order", runs_made(pair))
        }
        [pair] => {
            let [first, second] = pair.sides.each_ref().map(|side| side.runs.len() as u64);
            let runs =
                if first == second { counted(first, "run") } else { format!("{first} and {second} runs") };
            let of_each = if first == second { " a side" } else { "" };
            format!("{runs}{of_each}{each}")
        }
        _ => {
            let counts: Vec<String> = sides.iter().map(|side| side.runs.len().to_string()).collect();
            let names = &SIDE_NAMES[..counts.len()];
            let is_same = counts.iter().all(|count| *count == counts[0]);
            match is_same {
                true => format!("{} a side{each}", counted(sides[0].runs.len() as u64, "run")),
                false => {
                    let each_side = names.iter().zip(&counts).map(|(name, count)| format!("{name} {count}"));
                    format!("runs: {}", each_side.collect::<Vec<_>>().join(", "))
                }
            }
        }
    };
    // The loads of stored results stand with them.
    let loads: Vec<String> = first.sides.iter().map(|side| load(&side.plan)).collect();
    let is_told = first.command == PairCommand::Ab && loads[0] == loads[1];
    vec![vec![if is_told { format!("{many}, {}", loads[0]) } else { many }]]
}

/// The pairs that were made, of those that were asked for where some are missing.
pub(super) fn runs_made(pair: &Comparison) -> String {
    let made = pair.runs();
    match pair.asked_pairs {
        Some(asked) if pair.status != Status::Complete || made < asked as usize => {
            format!("{made} of {asked} pairs")
        }
        _ => counted(made as u64, "pair"),
    }
}

/// How long the runs of a plan are, such as ` of 3 s`: as they were asked for, or as they were; empty where that is not known.
pub(in crate::view) fn run_length<'a>(plan: &Plan, runs: impl Iterator<Item = &'a RunFigures>) -> String {
    let asked = plan.phases.iter().find(|phase| phase.recorded).and_then(|phase| phase.stop.time_ns);
    let known = match asked {
        Some(ns) => Some(format!("{} s", plain(ns as f64 / 1e9))),
        None => run_seconds(runs).map(seconds),
    };
    known.map_or_else(String::new, |length| format!(" of {length}"))
}

/// The usual length of some runs in seconds.
pub(super) fn run_seconds<'a>(runs: impl Iterator<Item = &'a RunFigures>) -> Option<f64> {
    median(&runs.map(|run| run.seconds).collect::<Vec<f64>>()).filter(|seconds| *seconds > 0.0)
}
