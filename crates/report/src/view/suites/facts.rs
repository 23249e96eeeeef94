//! Facts about two suites beside their figures: the sides, the rounds, their order, what differs, and the runs that one alone has.

use pummel_measure::compare::Design;
use pummel_measure::words::counted;

use super::super::pair::sides::run_length;
use super::super::several::{name_of, of_runs};
use super::super::{Line, Side, Text};
use crate::comparison::{Comparison, Order, SharedShift, SuitesComparison};
use crate::view::change::ChangeUnit;
use crate::visible::cut_name;

/// Names that stand on a line.
const NAMES_MAX: usize = 3;

/// Letters of the name of a run in a sentence.
const NAME_CHARS_MAX: usize = 40;

/// Differences that stand on the screen.
const DIFFERENCES_MAX: usize = 4;

/// The name of a run in a sentence.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", cut_name(name, NAME_CHARS_MAX))
}

/// The names of some runs in a sentence; of many the first.
pub(super) fn names_of(names: &[&str]) -> String {
    let shown = names.iter().take(NAMES_MAX).map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {}", counted_more(more)),
    }
}

fn counted_more(count: usize) -> String {
    format!("{count} more {}", if count == 1 { "run" } else { "runs" })
}

/// The two suites.
pub(super) fn sides(suites: &SuitesComparison) -> Vec<Side> {
    let side = |place: usize, name: &'static str| {
        let runs = suites.pairs.len() + suites.only[place].len();
        let mut servers: Vec<String> =
            suites.pairs.iter().map(|pair| pair.comparison.sides[place].plan.servers.join(", ")).collect();
        servers.dedup();
        let server = match servers.as_slice() {
            [one] => format!(", {one}"),
            _ => String::new(),
        };
        Side {
            name,
            parts: vec![suites.labels[place].clone(), format!("{}{server}", counted(runs as u64, "run"))],
        }
    };
    vec![side(0, "A"), side(1, "B")]
}

/// The line on how often was measured.
pub(super) fn ran(suites: &SuitesComparison) -> Vec<Vec<String>> {
    let comparisons = || suites.pairs.iter().map(|pair| &pair.comparison);
    let counts = || comparisons().flat_map(|pair| pair.sides.iter().map(|side| side.runs.len()));
    let (Some(least), Some(most)) = (counts().min(), counts().max()) else { return Vec::new() };
    let rounds = match least == most {
        true => counted(most as u64, "round"),
        false => format!("{least} to {most} rounds"),
    };
    let mut lengths: Vec<String> = comparisons()
        .map(|pair| run_length(&pair.sides[0].plan, pair.sides.iter().flat_map(|side| &side.runs)))
        .collect();
    lengths.dedup();
    let length = match lengths.as_slice() {
        [one] => one.as_str(),
        _ => "",
    };
    vec![vec![format!(
        "{} in both suites, {rounds} a side{length}",
        counted(suites.pairs.len() as u64, "run")
    )]]
}

/// The change that most runs have in common.
pub(super) fn moved(suites: &SuitesComparison) -> Option<Line> {
    let SharedShift { metric, runs, of, changes: (least, greatest) } = suites.shared_shift?;
    let unit = |change: f64| ChangeUnit::of(Design::Paired, change, Some((least, greatest)));
    let [from, to] = if least.abs() <= greatest.abs() { [least, greatest] } else { [greatest, least] };
    let by = match [unit(from).cell(from), unit(to).cell(to)] {
        [one, other] if one == other => one,
        // The unit stands once.
        [one, other] => match (one.strip_suffix(" %"), other.ends_with(" %")) {
            (Some(number), true) => format!("{number} to {other}"),
            _ => format!("{one} to {other}"),
        },
    };
    Some(Line::new(
        "Moved",
        Text::plain(format!(
            "{runs} of {of} runs moved together, {} by {by}: the machine or the whole server may have changed, rather than what one run is about",
            name_of(metric)
        )),
    ))
}

/// The runs that only one suite has, and those of which no round is complete.
pub(super) fn only(suites: &SuitesComparison, is_everything: bool) -> Vec<Line> {
    let line = |label: &'static str, names: &[String]| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let words = match is_everything {
            true => names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "),
            false => names_of(&names),
        };
        (!names.is_empty()).then(|| Line::warning(label, format!("{words}: not compared")))
    };
    let [first, second] = &suites.only;
    let [failed, also_failed] = &suites.failed;
    let lines = [
        line("Only A", first),
        line("Only B", second),
        line("Failed A", failed),
        line("Failed B", also_failed),
    ];
    lines.into_iter().flatten().collect()
}

/// The facts that differ between the suites, the load first, with the runs that they are of where they are not of all.
pub(super) fn differences(suites: &SuitesComparison, is_everything: bool) -> Vec<Line> {
    let mut found: Vec<(String, bool, Vec<&str>)> = Vec::new();
    for pair in &suites.pairs {
        for words in pair.comparison.difference_words().into_iter().filter(|words| words.field != "plan.seed")
        {
            let fact = format!("{} {}", words.name, words.values.join(", "));
            match found.iter_mut().find(|(known, ..)| *known == fact) {
                Some((_, _, names)) => names.push(&pair.name),
                None => found.push((fact, words.is_of_the_load, vec![&pair.name])),
            }
        }
    }
    found.sort_by_key(|(_, is_of_the_load, names)| (!is_of_the_load, std::cmp::Reverse(names.len())));
    let words = |(fact, _, names): &(String, bool, Vec<&str>)| match names.len() == suites.pairs.len() {
        true => fact.clone(),
        false => format!("{fact} (in {})", names_of(names)),
    };
    let label = |place: usize| if place == 0 { "Differs" } else { "" };
    if is_everything {
        let lines = found.iter().enumerate();
        return lines.map(|(place, one)| Line::new(label(place), Text::plain(words(one)))).collect();
    }
    let mut parts: Vec<String> = found.iter().take(DIFFERENCES_MAX).map(words).collect();
    let more = found.len().saturating_sub(DIFFERENCES_MAX);
    if more > 0 {
        parts.push(format!("and {more} more: -v"));
    }
    let line = (!parts.is_empty()).then(|| Line::new(label(0), Text::plain(parts.join("; "))));
    line.into_iter().collect()
}

/// The rounds in which pummel itself was the limit.
pub(super) fn limit(suites: &SuitesComparison) -> Option<Line> {
    let limited = [0, 1].into_iter().zip(["A", "B"]).filter_map(|(place, name)| {
        let sides = || suites.pairs.iter().map(|pair| &pair.comparison.sides[place]);
        let some: usize = sides().map(|side| side.generator_limited()).sum();
        let all: usize = sides().map(|side| side.runs.len()).sum();
        (some > 0).then(|| format!("{} of {name}", of_runs(some, all)))
    });
    let limited: Vec<String> = limited.collect();
    (!limited.is_empty())
        .then(|| Line::new("Limit", Text::plain(format!("pummel itself in {}", limited.join(", ")))))
}

/// Why the order of the rounds may look like a difference.
pub(super) fn order(suites: &SuitesComparison) -> Option<Line> {
    let apart: Vec<&Comparison> = suites
        .pairs
        .iter()
        .map(|pair| &pair.comparison)
        .filter(|pair| pair.design == Design::Apart)
        .collect();
    let first = apart.first()?;
    let words = match first.order {
        order if apart.iter().any(|pair| pair.order != order) => None,
        Order::FirstBeforeSecond => Some("A ran before B: a slower hour would look the same"),
        Order::SecondBeforeFirst => Some("B ran before A: a slower hour would look the same"),
        Order::Mixed | Order::Other => None,
    };
    let words = words.unwrap_or("A did not alternate in mixed order with B: a slower hour may look the same");
    let accepted = if first.accept_order { ", which was accepted" } else { "" };
    Some(Line::new("Order", Text::plain(format!("{words}{accepted}"))))
}
