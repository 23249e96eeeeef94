//! Why runs of two suites are not judged: each reason once, with the runs that it is of.

use pummel_measure::words::{counted, percent, was};

use super::super::pair::Word;
use super::super::pair::judged::{judged, open_doubts};
use super::super::several::name_of;
use super::super::{Line, Text};
use super::facts::names_of;
use crate::comparison::{Comparison, Doubt, RunsOfSide, SuitesComparison};

/// A reason with the places of the runs that it is of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reason {
    /// The reason; its counts are those of all these runs.
    pub(super) doubt: Doubt,
    /// Places of the runs among the pairs.
    pub(super) places: Vec<usize>,
}

/// The reasons why figures are not decided, those of most runs first.
pub(super) fn all(suites: &SuitesComparison) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = Vec::new();
    for (place, pair) in suites.pairs.iter().enumerate() {
        for doubt in of_pair(&pair.comparison) {
            let joined = reasons.iter_mut().position(|known| join(&mut known.doubt, &doubt));
            match joined {
                Some(known) => reasons[known].places.push(place),
                None => reasons.push(Reason { doubt, places: vec![place] }),
            }
        }
    }
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.places.len()));
    reasons
}

/// The reasons of one pair of runs, each once.
fn of_pair(pair: &Comparison) -> Vec<Doubt> {
    let mut found: Vec<Doubt> = Vec::new();
    for own in judged(pair).iter().filter(|own| own.word == Some(Word::NotDecided)) {
        for doubt in open_doubts(pair, own) {
            if !found.contains(&doubt) {
                found.push(doubt);
            }
        }
    }
    found
}

/// Adds a reason to one of the same kind, figure and side; says whether they are.
fn join(known: &mut Doubt, next: &Doubt) -> bool {
    match (known, next) {
        (Doubt::NoAlternation, Doubt::NoAlternation) => true,
        (Doubt::FewRuns { runs, .. }, Doubt::FewRuns { runs: more, .. }) => {
            *runs = (*runs).min(*more);
            true
        }
        (Doubt::FewPairs { pairs: runs, needed, .. }, Doubt::FewPairs { pairs: more, needed: of, .. })
        | (
            Doubt::FewRunsForFigures { runs, needed, .. },
            Doubt::FewRunsForFigures { runs: more, needed: of, .. },
        ) => {
            (*runs, *needed) = ((*runs).min(*more), (*needed).max(*of));
            true
        }
        (Doubt::Incomplete(own), Doubt::Incomplete(other))
        | (Doubt::Failed(own), Doubt::Failed(other))
        | (Doubt::Unsteady(own), Doubt::Unsteady(other))
        | (Doubt::GeneratorLimited(own), Doubt::GeneratorLimited(other))
            if own.side == other.side =>
        {
            own.runs = own.runs.saturating_add(other.runs);
            own.of = own.of.saturating_add(other.of);
            true
        }
        (
            Doubt::LagInFigure { metric, side, runs, of, share },
            Doubt::LagInFigure { metric: figure, side: own, runs: more, of: more_of, share: other },
        ) if metric == figure && side == own => {
            (*runs, *of) = (runs.saturating_add(*more), of.saturating_add(*more_of));
            *share = [*share, *other].into_iter().flatten().reduce(f64::max);
            true
        }
        (Doubt::WrongValues { side }, Doubt::WrongValues { side: other }) => side == other,
        (Doubt::UnknownFigure { metric }, Doubt::UnknownFigure { metric: other }) => metric == other,
        (Doubt::Loads { options }, Doubt::Loads { options: more }) => {
            options.extend(more.iter().filter(|name| !options.contains(name)).cloned().collect::<Vec<_>>());
            true
        }
        _ => false,
    }
}

/// A reason in words, with the runs that it is of where it is not of all.
pub(super) fn words(suites: &SuitesComparison, reason: &Reason) -> String {
    let words = of_doubt(&reason.doubt);
    match reason.places.len() == suites.pairs.len() {
        true => words,
        false => {
            let names: Vec<&str> =
                reason.places.iter().map(|place| suites.pairs[*place].name.as_str()).collect();
            format!("{words} (in {})", names_of(&names))
        }
    }
}

fn of_doubt(doubt: &Doubt) -> String {
    match doubt {
        Doubt::FewRuns { runs: 0, .. } => "there is no round of each side".to_owned(),
        Doubt::FewRuns { runs, needed } => format!(
            "{} a side cannot show that a run differs: it takes {needed}",
            counted(*runs as u64, "round")
        ),
        Doubt::FewPairs { pairs, figures, needed } => format!(
            "{pairs} pairs of rounds can show no difference in any of {figures} judged figures: it takes {needed} pairs, or fewer figures"
        ),
        Doubt::FewRunsForFigures { runs, figures, needed } => format!(
            "{runs} rounds a side can show no difference in any of {figures} judged figures: it takes {needed}, or fewer figures"
        ),
        Doubt::NoAlternation => {
            "the rounds of A and B did not alternate in mixed order (--accept-order judges them anyway)"
                .to_owned()
        }
        Doubt::Incomplete(rounds) => of_side(rounds, "not complete"),
        Doubt::Failed(rounds) => of_side(rounds, "of errors or timeouts for the most part"),
        Doubt::Unsteady(rounds) => of_side(rounds, "not steady"),
        Doubt::GeneratorLimited(rounds) => {
            format!("pummel itself was the limit in {}", rounds_of(rounds))
        }
        Doubt::LagInFigure { metric, side, runs, of, share } => {
            let part = share.map_or_else(|| "a part".to_owned(), |share| format!("up to {}", percent(share)));
            let rounds = RunsOfSide { side: side.clone(), runs: *runs, of: *of };
            format!("pummel itself added {part} of {} in {}", name_of(*metric), rounds_of(&rounds))
        }
        Doubt::WrongValues { side } => format!("wrong values were found in rounds of {side}"),
        Doubt::Loads { options } => format!("the plans differ in {}", options.join(", ")),
        Doubt::UnknownFigure { metric } => format!("{} is not known in every round", name_of(*metric)),
    }
}

fn rounds_of(rounds: &RunsOfSide) -> String {
    format!("{} of {} of {}", rounds.runs, counted(rounds.of as u64, "round"), rounds.side)
}

fn of_side(rounds: &RunsOfSide, what: &str) -> String {
    format!("{} {} {what}", rounds_of(rounds), was(rounds.runs as u64))
}

/// The lines of the reasons that the result does not tell.
pub(super) fn lines(suites: &SuitesComparison, reasons: &[Reason]) -> Vec<Line> {
    let told = usize::from(super::headline::headline(suites).words.contains(&Word::NotDecided));
    let lines = reasons.iter().skip(told).enumerate();
    lines
        .map(|(place, reason)| {
            let label = if place == 0 { "Doubts" } else { "" };
            Line::new(label, Text::plain(words(suites, reason)))
        })
        .collect()
}

/// Whether a reason tells how many rounds were not steady.
pub(super) fn tell_of_unsteady(reasons: &[Reason]) -> bool {
    reasons.iter().any(|reason| reason.doubt.leaves_intervals())
}
