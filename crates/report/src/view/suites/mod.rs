//! The view of two suites that are compared: which runs differ, why others are not judged, and a row for each run.

mod doubts;
mod facts;
mod headline;
mod result;
mod table;

#[cfg(test)]
mod tests;

use super::View;
use super::run::Wanted;
use super::several::{outcomes, trust, unsteady};
use crate::comparison::SuitesComparison;
use crate::run_figures::RunFigures;

pub use self::headline::headline;
pub(crate) use self::table::{change_unit, is_different};

/// The view of two suites.
pub fn view(suites: &SuitesComparison, wanted: Wanted) -> View {
    let is_everything = wanted == Wanted::Everything;
    let doubts = doubts::all(suites);
    let rounds: Vec<&RunFigures> =
        suites.pairs.iter().flat_map(|pair| &pair.comparison.sides).flat_map(|side| &side.runs).collect();
    let mut lines = vec![result::line(suites, &doubts)];
    lines.extend(facts::moved(suites));
    lines.extend(doubts::lines(suites, &doubts));
    lines.extend(facts::only(suites, is_everything));
    lines.extend(facts::differences(suites, is_everything));
    lines.extend(outcomes(&rounds));
    lines.extend(trust(&rounds, true));
    lines.extend(facts::limit(suites));
    lines.extend(facts::order(suites));
    lines.extend(unsteady(&rounds).filter(|_| !doubts::tell_of_unsteady(&doubts)));
    let tables = table::tables(suites, is_everything);
    let notes = table::notes(suites, &tables);
    View { sides: facts::sides(suites), ran: facts::ran(suites), lines, tables, notes }
}

/// The result of two suites in a sentence, as a title has it.
pub fn title(suites: &SuitesComparison) -> String {
    result::line(suites, &doubts::all(suites)).text.words()
}

/// The result of two suites in one line for scripts.
pub fn brief(suites: &SuitesComparison) -> String {
    title(suites)
}
