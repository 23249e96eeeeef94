//! The view of one run: what ran, what came of it, how far it may be believed, what the limit was, and the times.

mod cluster;
pub(in crate::view) mod counts;
mod headline;
mod judgement;
pub(in crate::view) mod notices;
pub(in crate::view) mod ran;
mod result;
mod times;

#[cfg(test)]
mod screens;
#[cfg(test)]
mod tests;

use super::{Line, Note, Text, View};
use crate::document::Document;

pub(crate) use self::cluster::{outages_of, tables as cluster_tables};
pub(crate) use self::counts::asked_rate;
pub(crate) use self::headline::exit_status;
pub use self::headline::{Headline, Word};
pub(crate) use self::notices::{MESSAGES_MAX, commonest_messages};
pub use self::times::Wanted;
pub(crate) use self::times::{has_intervals, too_few_stops};

/// The most lines of notices that stand between a result and its trust.
const NOTICES_MAX: usize = 5;

/// The view of a run; `wanted` says how much it has.
pub fn view(document: &Document, wanted: Wanted) -> View {
    let headline = Headline::of(document);
    let mut lines = vec![Line::new("Result", result::result(document, &headline))];
    let notices = notices::before_trust(document, &headline);
    lines.extend(if wanted == Wanted::Everything { notices } else { shortened(notices) });
    // A run that failed has few replies, which are no measurement.
    let is_load = counts::is_load(document);
    let is_measured = document.totals.completed > 0 && !headline.has(Word::Failed) && !is_load;
    if is_load {
        lines.extend(result::fullness(document));
    }
    if is_measured {
        lines.extend(judgement::trust(document));
    }
    if !is_load {
        lines.extend(judgement::limit(document));
    }
    if is_measured && !headline.has(Word::Overloaded) && document.stops.is_empty() {
        lines.extend(notices::unsteady(document));
    }
    // Everything has the seed anyway.
    if headline.is_in_capitals() && wanted != Wanted::Everything {
        lines.push(Line::new("Seed", Text::plain(document.plan.seed.to_string())));
    }
    // A load is no measurement: only who asks for times gets them.
    let has_times = is_measured || is_load && wanted != Wanted::Screen;
    let tables = if has_times { times::tables(document, wanted) } else { Vec::new() };
    let notes = match has_times {
        true => times::notes(document, wanted, &tables),
        false => result::few_replies(document).filter(|_| !is_load).map(Note::of).into_iter().collect(),
    };
    let of_cluster = if wanted == Wanted::Everything { cluster_tables(document) } else { Vec::new() };
    // The notes are about the times, and stand below them.
    let tables = of_cluster.into_iter().chain(tables).collect();
    View { ran: ran::ran(document), lines, tables, notes, ..View::default() }
}

/// The sentence behind `Result`.
pub fn result_words(document: &Document) -> String {
    result::result(document, &Headline::of(document)).words()
}

/// The first notices, and a line that says how many there are beyond.
fn shortened(mut notices: Vec<Line>) -> Vec<Line> {
    let more = notices.len().saturating_sub(NOTICES_MAX);
    if more > 0 {
        notices.truncate(NOTICES_MAX);
        notices.push(Line::new("", Text::plain(format!("and {more} more: -v"))));
    }
    notices
}

/// The result in one line for scripts: what is abnormal first, then the rate and the response of each operation.
pub fn brief(document: &Document) -> String {
    let headline = Headline::of(document);
    if counts::is_load(document) {
        return result::result(document, &headline).words();
    }
    let mut text = headline.brief(document);
    let ops = document
        .ops
        .iter()
        .filter(|(_, op)| op.completed > 0)
        .map(|(name, op)| times::brief(document, name, op));
    let ops = ops.collect::<Vec<_>>().join(", ");
    if ops.is_empty() {
        return if text.is_empty() { "nothing was answered".to_owned() } else { text };
    }
    if !text.is_empty() {
        // Words in capitals have figures behind them, and a comma keeps those of the operations apart.
        text.push_str(if headline.is_in_capitals() { ", " } else { " " });
    }
    text + &ops
}
