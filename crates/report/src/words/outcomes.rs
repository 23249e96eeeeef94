//! The words for requests that were answered and stored or found nothing.

use pummel_measure::words::grouped;

use crate::document::OtherOutcomes;

/// The requests of an operation that stored or found nothing, such as `add: 5 of 20 not stored`, and what follows for its times; `name` is
/// what the operation is called.
pub fn other_outcomes(name: &str, others: &OtherOutcomes) -> String {
    let found_none = if others.is_command() { "answered with nil" } else { "without a record of their key" };
    let kinds = [
        (others.not_stored, "not stored"),
        (others.exists, "not stored, since another client had stored in between"),
        (others.not_found, found_none),
        (others.conflict, "not carried out, since another client had changed what they watch"),
    ];
    let answered = grouped(others.answered);
    let each = kinds.into_iter().filter(|(count, _)| *count > 0);
    let each = each.map(|(count, words)| format!("{} of {answered} {words}", grouped(count)));
    let counts = each.collect::<Vec<_>>().join(", ");
    let times = match others.is_nearly_all() {
        true if others.all() == others.answered => ": its times are those of requests that did nothing",
        true => ": nearly all of its times are those of requests that did nothing",
        false => "",
    };
    format!("{name}: {counts}{times}")
}
