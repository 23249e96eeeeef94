//! All findings: of each result, where one kind of facts in several runs is one, and of all results together.

use super::examined::Examined;
use super::fact::Fact;
use super::finding::{Finding, FoundRuns, Grade};
use super::{rules, together};
use crate::words::findings as words;

/// All findings, of each result in order and then of all together. `is_suite`: whether the notes about what no run covers are wanted.
pub fn findings(runs: &[Examined<'_>], is_suite: bool) -> Vec<Finding> {
    let results: Vec<&[Examined<'_>]> = runs.chunk_by(|one, next| one.name == next.name).collect();
    let mut all: Vec<Finding> = results.iter().flat_map(|result| of_result(result)).collect();
    let firsts: Vec<&Examined<'_>> = results.iter().filter_map(|result| result.first()).collect();
    let mut together = together::differing(&firsts);
    if is_suite {
        together.extend(together::not_covered(runs));
    }
    all.extend(together.into_iter().map(|(grade, fact)| Finding {
        run: None,
        grade,
        runs: None,
        says: words::says(&fact),
        fact: Some(fact),
    }));
    all
}

/// The findings of the runs of one result, those of one kind together.
fn of_result(runs: &[Examined<'_>]) -> Vec<Finding> {
    let mut kinds: Vec<(Grade, Vec<(usize, Fact)>)> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        for (grade, fact) in rules::facts_of(run) {
            let is_alike = |(own, facts): &(Grade, Vec<(usize, Fact)>)| {
                *own == grade && facts.first().is_some_and(|(_, first)| are_alike(first, &fact))
            };
            match kinds.iter_mut().find(|kind| is_alike(kind)) {
                Some((_, facts)) => facts.push((place, fact)),
                None => kinds.push((grade, vec![(place, fact)])),
            }
        }
    }
    // A busy minute spoils some of several runs, and the medians of all do not rest on those.
    for (grade, facts) in &mut kinds {
        let is_of_few = 2 * facts.len() <= runs.len();
        if is_of_few && facts.iter().all(|(_, fact)| fact.is_of_one_moment()) {
            *grade = Grade::Note;
        }
    }
    // Findings before notes.
    kinds.sort_by_key(|(grade, _)| *grade);
    let name = runs.first().map(|run| run.name.clone());
    kinds.into_iter().filter_map(|(grade, facts)| of_kind(name.clone(), grade, facts, runs.len())).collect()
}

/// Whether facts of two runs are of one kind and about one part of a run.
fn are_alike(one: &Fact, other: &Fact) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other) && one.subject() == other.subject()
}

/// The finding of facts of one kind by the places of their runs, of which the result has `all`.
fn of_kind(run: Option<String>, grade: Grade, facts: Vec<(usize, Fact)>, all: usize) -> Option<Finding> {
    let found = facts.len();
    let is_same = found == all && facts.windows(2).all(|pair| pair[0].1 == pair[1].1);
    let (first, fact) = facts.into_iter().next()?;
    let runs = (!is_same).then_some(FoundRuns { found, all, first: first + 1 });
    let own = words::says(&fact);
    let says =
        runs.map_or_else(|| own.clone(), |runs| words::in_runs(&own, runs.found, runs.all, runs.first));
    Some(Finding { run, grade, runs, fact: Some(fact), says })
}
