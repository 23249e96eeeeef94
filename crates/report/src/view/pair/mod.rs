//! The view of sides that are compared: what each is, what is shown of them, how far that may be believed, and their figures.

mod differences;
mod doubts;
pub(in crate::view) mod figures;
mod headline;
pub(in crate::view) mod judged;
pub(in crate::view) mod result;
pub(in crate::view) mod sides;
mod word;

#[cfg(test)]
mod tests;

use pummel_measure::compare::Design;

use self::judged::judged;
use super::change::ChangeUnit;
use super::run::Wanted;
use super::several::{made_again, name_of, of_runs, outcomes, trust, unsteady, value, without_effect};
use super::{Line, Text, View};
use crate::comparison::{Comparison, Doubt, Order};
use crate::run_figures::{Metric, RunFigures};

pub use self::headline::Headline;
pub use self::word::Word;

/// The standard deviations that 95 of 100 differences of two equal runs stay within.
const NOISE_WIDTH: f64 = 1.96;

/// The view of the comparisons of one side or more with the first.
pub fn view(comparisons: &[Comparison], wanted: Wanted) -> View {
    let is_everything = wanted == Wanted::Everything;
    let runs: Vec<&RunFigures> = sides::all(comparisons).into_iter().flat_map(|side| &side.runs).collect();
    let mut lines = result::results(comparisons, &Headline::of(comparisons));
    comparisons.iter().for_each(|pair| lines.extend(result::further(pair)));
    lines.extend(differences::lines(comparisons, is_everything));
    lines.extend(outcomes(&runs));
    lines.extend(without_effect(sides::named(comparisons).map(|(name, side)| {
        let others = side.runs.iter().flat_map(|run| &run.other_outcomes);
        (others, format!(" of {name}"))
    })));
    lines.extend(made_again(made_again_in_all(comparisons)));
    lines.extend(trust(&runs, true));
    lines.extend(limit(comparisons));
    lines.extend(order(comparisons));
    lines.extend(noise(comparisons));
    // Where they are the reason that nothing is decided, they were told.
    let is_told = comparisons.iter().any(|pair| {
        let first = judged(pair).into_iter().next().filter(|first| first.word == Some(Word::NotDecided));
        first.is_some_and(|first| judged::doubts_of(pair, &first).iter().any(Doubt::leaves_intervals))
    });
    lines.extend(unsteady(&runs).filter(|_| !is_told));
    let tables = figures::tables(comparisons, is_everything);
    let notes = figures::notes(comparisons, &tables, is_everything);
    let tables = if runs.is_empty() { Vec::new() } else { tables };
    View { sides: sides::sides(comparisons), ran: sides::ran(comparisons), lines, tables, notes }
}

/// The result of two sides in a sentence, as a title has it.
pub fn title(pair: &Comparison) -> String {
    let comparisons = std::slice::from_ref(pair);
    result::result(pair, &Headline::of(comparisons)).words()
}

/// The comparisons in one line for scripts: the words, the judged figures, and the rate.
pub fn brief(comparisons: &[Comparison]) -> String {
    let words: Vec<&str> = Headline::of(comparisons).words.into_iter().map(Word::text).collect();
    let mut parts = Vec::new();
    for pair in comparisons {
        let shown = |metric: Metric| pair.row(metric).is_judged || metric == Metric::Rate;
        for row in pair.rows.iter().filter(|row| shown(row.metric)) {
            let [first, second] = pair.names.0;
            let [Some(a), Some(b)] = row.values else { continue };
            let unit = row.change.map(|change| (change, ChangeUnit::of(pair.design, change, row.ci)));
            let change = unit.map_or_else(String::new, |(change, unit)| {
                let ends = row.ci.map_or_else(String::new, |ends| format!(" ({})", unit.ends(ends)));
                format!(" {}{ends}", unit.cell(change))
            });
            let [a, b] = [a, b].map(|own| value(row.metric, own));
            parts.push(format!("{} {first} {a} {second} {b}{change}", name_of(row.metric)));
        }
    }
    if parts.is_empty() {
        parts.push("nothing is known of both sides".to_owned());
    }
    let figures = parts.join(", ");
    if words.is_empty() { figures } else { format!("{} {figures}", words.join(", ")) }
}

/// The failed runs of all comparisons that were made again.
fn made_again_in_all(comparisons: &[Comparison]) -> u32 {
    comparisons.iter().fold(0, |all, pair| all.saturating_add(pair.made_again))
}

/// The runs in which pummel itself was the limit, by sides; `None` where there was none.
fn limit(comparisons: &[Comparison]) -> Option<Line> {
    let names = comparisons.first().map(|pair| pair.names.0[0]).into_iter();
    let names = names.chain(comparisons.iter().map(|pair| pair.names.0[1]));
    let limited = names.zip(sides::all(comparisons)).filter_map(|(name, side)| {
        let some = side.generator_limited();
        (some > 0).then(|| format!("{} of {name}", of_runs(some, side.runs.len())))
    });
    let limited: Vec<String> = limited.collect();
    (!limited.is_empty())
        .then(|| Line::new("Limit", Text::plain(format!("pummel itself in {}", limited.join(", ")))))
}

/// Why runs in such an order may look different although the sides are equal: a line for each order, with the sides that it is of.
fn order(comparisons: &[Comparison]) -> Vec<Line> {
    let apart = || comparisons.iter().filter(|pair| pair.design == Design::Apart);
    let mut lines = Vec::new();
    for order in [Order::FirstBeforeSecond, Order::SecondBeforeFirst, Order::Other] {
        let others: Vec<&str> =
            apart().filter(|pair| pair.order == order).map(|pair| pair.names.0[1]).collect();
        let (Some(first), Some((last, before))) =
            (apart().next().map(|pair| pair.names.0[0]), others.split_last())
        else {
            continue;
        };
        let others =
            if before.is_empty() { (*last).to_owned() } else { format!("{} and {last}", before.join(", ")) };
        let words = match order {
            Order::Mixed | Order::FirstBeforeSecond => {
                format!("{first} ran before {others}: a slower hour would look the same")
            }
            Order::SecondBeforeFirst => {
                format!("{others} ran before {first}: a slower hour would look the same")
            }
            Order::Other => {
                format!(
                    "{first} did not alternate in mixed order with {others}: a slower hour may look the same"
                )
            }
        };
        let accepted = if apart().any(|pair| pair.accept_order) { ", which was accepted" } else { "" };
        let label = if lines.is_empty() { "Order" } else { "" };
        lines.push(Line::new(label, Text::plain(format!("{words}{accepted}"))));
    }
    lines
}

/// By how much two runs differ on this machine by themselves, where a calibration knows it and each side is one run.
fn noise(comparisons: &[Comparison]) -> Option<Line> {
    let [pair] = comparisons else { return None };
    if pair.design != Design::Apart || pair.runs() != 1 {
        return None;
    }
    let known = pair.rows.iter().filter_map(|row| Some((name_of(row.metric), row.noise?)));
    let each: Vec<String> = known
        .map(|(name, noise)| format!("{name} by +- {:.1} %", 100.0 * NOISE_WIDTH * 2.0_f64.sqrt() * noise))
        .collect();
    (!each.is_empty()).then(|| {
        Line::new(
            "Noise",
            Text::plain(format!("two runs of one thing differ on this machine: {}", each.join(", "))),
        )
    })
}
