//! The view of runs at several rates or levels: what ran, what they show together, how far they may be believed, and a table of them.

mod details;
mod headline;
mod judgement;
mod notices;
mod ran;
mod result;
mod rows;
mod search;
mod table;

#[cfg(test)]
mod tests;

use super::run::Wanted;
use super::{Line, View};
use crate::document::CurveDocument;

pub use self::headline::{SeriesHeadline, SeriesWord};

/// The view of a series; `wanted` says how much it has.
pub fn view(curve: &CurveDocument, wanted: Wanted) -> View {
    let headline = SeriesHeadline::of(curve);
    let mut lines = vec![Line::new("Result", result::result(curve, &headline))];
    lines.extend(notices::before_trust(curve, &headline));
    // Runs of which the search says that they tell nothing of the server have no times to be believed.
    let table = table::table(curve, wanted);
    lines.extend(judgement::trust(curve).filter(|_| table.is_some()));
    lines.extend(judgement::limit(curve));
    lines.extend(notices::unsteady(curve).filter(|_| table.is_some()));
    if wanted == Wanted::Everything {
        lines.extend(details::lines(curve));
    }
    let notes = table::notes(curve, wanted, table.as_ref());
    View { ran: ran::ran(curve), lines, tables: table.into_iter().collect(), notes, ..View::default() }
}

/// The result of a series in one line for scripts.
pub fn brief(curve: &CurveDocument) -> String {
    result::brief(curve, &SeriesHeadline::of(curve))
}

/// The one sentence of a series, and what it is of, for a page.
pub fn heading(curve: &CurveDocument) -> [String; 2] {
    let ran = ran::ran(curve).into_iter().next().unwrap_or_default();
    // The first part is the program.
    [
        result::result(curve, &SeriesHeadline::of(curve)).words(),
        ran.into_iter().skip(1).collect::<Vec<_>>().join(", "),
    ]
}
