//! Counts, rates and names that several lines of the screen of a run rest on.

use pummel_logic::plan::{Plan, Work};
use pummel_logic::protocol::{Fault, Verb};

use crate::document::Document;
use crate::view::cells::share;

/// The share of the mean from which on a server has more than its part.
pub(super) const OUT_OF_BALANCE: f64 = 1.25;

/// The sum of counts of a stored result, which may be any numbers.
pub(super) fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// The requests that failed in one of these ways.
pub(super) fn faults(document: &Document, is_meant: impl Fn(Fault) -> bool) -> u64 {
    let kinds = Fault::ALL.into_iter().filter(|fault| is_meant(*fault));
    sum(kinds.flat_map(|fault| {
        document.ops.iter().filter_map(move |(_, op)| op.errors.get(fault.name()).copied())
    }))
}

/// The share of the requests that ended which made a run fail, and whether it is of those that got no reply in time.
pub(super) fn failed_share(document: &Document) -> (String, bool) {
    let totals = &document.totals;
    let late = faults(document, |fault| matches!(fault, Fault::Timeout | Fault::Abandoned));
    let is_late = late > totals.errors / 2;
    (share(if is_late { late } else { totals.errors }, totals.ended()), is_late)
}

/// Whether records are stored in the recorded phases, and nothing else is done.
pub(super) fn is_load(document: &Document) -> bool {
    is_load_plan(&document.plan)
}

/// Whether a plan stores records in its recorded phases, and does nothing else in them.
pub(super) fn is_load_plan(plan: &Plan) -> bool {
    let recorded = plan.phases.iter().filter(|phase| phase.recorded);
    let mut loads = recorded.map(|phase| matches!(phase.work, Work::Load(_))).peekable();
    loads.peek().is_some() && loads.all(|is_load| is_load)
}

/// Requests per second that were asked for; `None` in a closed loop, and where the rate changes.
pub(crate) fn asked_rate(document: &Document) -> Option<f64> {
    asked_rate_of(&document.plan).filter(|_| document.steered.is_none())
}

/// Requests per second that a plan asks for; `None` in a closed loop, and where the rate changes.
pub(in crate::view) fn asked_rate_of(plan: &Plan) -> Option<f64> {
    let is_constant = plan.changes.rate.is_none() && plan.changes.burst.is_none();
    let rates: Option<Vec<f64>> =
        plan.groups.iter().map(|group| group.rate.filter(|_| group.churn.is_none())).collect();
    rates.filter(|_| is_constant).map(|rates| rates.iter().sum()).filter(|asked| *asked > 0.0)
}

/// The name of an operation on the screen: the word of the user's own command stands for its requests.
pub(in crate::view) fn op_name(plan: &Plan, name: &str) -> String {
    const LONGEST: usize = 24;
    let word = plan.command.as_ref().filter(|_| name == Verb::Command.name());
    let word = word.and_then(|command| command.split_whitespace().next());
    word.map_or(name.to_owned(), |word| word.chars().take(LONGEST).collect::<String>().to_lowercase())
}
