//! What differs between sides besides their figures.

use super::sides::all;
use crate::comparison::{Comparison, DifferenceWords, PairCommand};
use crate::view::{Line, Text};

/// Differences that stand on the screen.
const DIFFERENCES_SHOWN_MAX: usize = 4;

/// A fact that differs, with its value on each side.
#[derive(Clone, Debug)]
struct Differing {
    name: String,
    values: Vec<String>,
    is_of_the_load: bool,
}

/// The facts that differ between any side and the first, those of the load first.
fn differing(comparisons: &[Comparison], is_told: impl Fn(&DifferenceWords) -> bool) -> Vec<Differing> {
    let sides = all(comparisons).len();
    let mut found: Vec<Differing> = Vec::new();
    for (place, pair) in comparisons.iter().enumerate() {
        for words in
            pair.difference_words().into_iter().filter(|words| words.field != "plan.seed" && is_told(words))
        {
            let [first, own] = words.values;
            let known = match found.iter().position(|known| known.name == words.name) {
                Some(known) => known,
                None => {
                    let values = vec![first; sides];
                    found.push(Differing { name: words.name, values, is_of_the_load: words.is_of_the_load });
                    found.len() - 1
                }
            };
            found[known].values[place + 1] = own;
        }
    }
    found.sort_by_key(|one| !one.is_of_the_load);
    found
}

/// The lines behind `Differs`: all facts where everything is wanted, else the first of those that the lines of the sides do not
/// tell.
pub(super) fn lines(comparisons: &[Comparison], is_everything: bool) -> Vec<Line> {
    // Sides of an experiment differ in their plans and programs by what they are named after.
    let is_told = |words: &DifferenceWords| {
        let is_of_experiment = comparisons.iter().any(|pair| pair.command == PairCommand::Ab);
        is_everything
            || !is_of_experiment
            || !(words.field.starts_with("plan.") || words.field.starts_with("program"))
    };
    let all = differing(comparisons, is_told);
    if all.is_empty() {
        return Vec::new();
    }
    let words = |one: &Differing| format!("{} {}", one.name, one.values.join(", "));
    if is_everything {
        let lines = all.iter().enumerate();
        return lines
            .map(|(place, one)| Line::new(if place == 0 { LABEL } else { "" }, Text::plain(words(one))))
            .collect();
    }
    let mut parts: Vec<String> = all.iter().take(DIFFERENCES_SHOWN_MAX).map(words).collect();
    let more = all.len().saturating_sub(DIFFERENCES_SHOWN_MAX);
    if more > 0 {
        parts.push(format!("and {more} more: -v"));
    }
    vec![Line::new(LABEL, Text::plain(parts.join("; ")))]
}

/// The label of the lines.
const LABEL: &str = "Differs";
