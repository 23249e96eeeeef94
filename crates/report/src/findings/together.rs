//! The rules for several results: differences between results with names alike, and loads that no run has.

use super::examined::Examined;
use super::fact::{Differing, Fact};
use super::finding::Grade;
use super::names::bare;
use super::rules::{has_one_connection, values_are_drawn};
use crate::comparison::{Difference, DifferenceWords, Side, differences, words_of_all};

/// Bytes from which on a value is large.
const LARGE_VALUE: u64 = 10 << 10;

/// What results with names alike differ in, a fact for each name that several have. `firsts` are the first runs of the results.
pub(super) fn differing(firsts: &[&Examined<'_>]) -> Vec<(Grade, Fact)> {
    let mut facts = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    for first in firsts {
        let stem = first.stem();
        if stem.is_empty() || told.contains(&stem) {
            continue;
        }
        told.push(stem);
        let group: Vec<&&Examined<'_>> =
            firsts.iter().filter(|run| run.plan.is_some() && run.stem() == stem).collect();
        facts.extend(differing_group(&group));
    }
    facts
}

/// What results of one name differ in, each compared with the first.
fn differing_group(group: &[&&Examined<'_>]) -> Option<(Grade, Fact)> {
    let (first, others) = group.split_first()?;
    let mut results = vec![first.name.clone()];
    let mut differ: Vec<Differing> = Vec::new();
    for other in others {
        let found = differences_of(first, other);
        if found.is_empty() {
            continue;
        }
        results.push(other.name.clone());
        for DifferenceWords { name, values: [own, value], .. } in found {
            match differ.iter_mut().find(|known| known.name == name) {
                Some(known) if !known.values.contains(&value) => known.values.push(value),
                Some(_) => {}
                None => differ.push(Differing { name, values: vec![own, value] }),
            }
        }
    }
    (!differ.is_empty()).then_some((Grade::Finding, Fact::ResultsDiffer { results, differ }))
}

/// What two results differ in that decides what they measure, and that their names do not say.
fn differences_of(first: &Examined<'_>, other: &Examined<'_>) -> Vec<DifferenceWords> {
    let (Some(plan), Some(other_plan)) = (first.plan, other.plan) else { return Vec::new() };
    let side = |run: &Examined<'_>, plan| Side::new(String::new(), plan, run.source(), Vec::new());
    let found: Vec<Difference> =
        differences(&[side(first, plan), side(other, other_plan)]).into_iter().filter(counts).collect();
    let numbers = [number_of(&first.name), number_of(&other.name)];
    let mut words = words_of_all(&found, [plan, other_plan]);
    words.retain(|words| !is_told(numbers, &words.values));
    words
}

/// Whether a difference makes another load, or is one of servers or machines.
fn counts(difference: &Difference) -> bool {
    let mut steps = difference.name.split('.');
    match steps.next() {
        Some("plan") => difference.is_of_the_load,
        Some("server") => true,
        // The build of pummel is no part of the machine.
        Some("machine") => !steps.any(|step| step == "build" || step == "agent"),
        _ => false,
    }
}

/// Whether the numbers at the end of two names are the values that differ, so that the names say it.
fn is_told(numbers: [&str; 2], values: &[String; 2]) -> bool {
    let is_one = |(number, value): (&str, &String)| {
        let digits: String = value.chars().filter(char::is_ascii_digit).collect();
        !number.is_empty() && digits == number
    };
    numbers[0] != numbers[1] && numbers.into_iter().zip(values).all(is_one)
}

/// The number at the end of the name of a result; empty where there is none.
fn number_of(name: &str) -> &str {
    let name = bare(name);
    &name[name.trim_end_matches(|letter: char| letter.is_ascii_digit()).len()..]
}

/// Loads that no run has. Nothing is said where a run is not known well enough.
pub(super) fn not_covered(runs: &[Examined<'_>]) -> Vec<(Grade, Fact)> {
    let none = |is_known_without: &dyn Fn(&Examined<'_>) -> bool| runs.iter().all(is_known_without);
    if runs.is_empty() {
        return Vec::new();
    }
    let mut facts = Vec::new();
    if none(&|run| run.plan.is_some_and(|plan| plan.tls.is_none())) {
        facts.push(Fact::NoTls);
    }
    let has_small_values = |run: &Examined<'_>| {
        run.plan
            .filter(|plan| values_are_drawn(plan))
            .is_some_and(|plan| plan.data.value_sizes().all(|size| size.support().1 < LARGE_VALUE as f64))
    };
    if none(&has_small_values) {
        facts.push(Fact::NoLargeValues { from: LARGE_VALUE });
    }
    if none(&|run| has_one_connection(run) == Some(true)) {
        facts.push(Fact::NoConcurrency);
    }
    facts.into_iter().map(|fact| (Grade::Note, fact)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::names::stem_of;
    use super::*;

    #[test]
    fn names_are_alike_without_directory_ending_and_number() {
        for (name, stem, number) in [
            ("a1", "a", "1"),
            ("x/y/reads-12.json.gz", "reads", "12"),
            ("reads.html", "reads", ""),
            ("reads, TLS", "reads, TLS", ""),
            ("ab: A", "ab: A", ""),
            ("2026", "", "2026"),
            ("", "", ""),
        ] {
            assert_eq!((stem_of(name), number_of(name)), (stem, number), "{name}");
        }
        let values = ["50", "1,000"].map(str::to_owned);
        assert!(is_told(["50", "1000"], &values));
        assert!(!is_told(["1", "2"], &values) && !is_told(["", ""], &["a", "b"].map(str::to_owned)));
    }
}
