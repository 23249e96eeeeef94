//! The words of the report about ends that were decided while a run went on.

use pummel_measure::uncertainty::quantile_name;

use super::page::Page;
use crate::document::{Document, UntilOutcome};
use crate::numbers::number;
use crate::words::unsteady;

/// Adds how the warm-up and the measurement ended, where that was decided while they went on.
pub(super) fn ends(page: &mut Page, document: &Document) {
    if let Some(warm_up) = &document.warmup {
        page.field("Warm-up", &unsteady::warm_up(warm_up));
    }
    if let Some(until) = &document.until {
        page.field("Until", &until_words(until));
    }
}

fn until_words(until: &UntilOutcome) -> String {
    let percent = |share: f64| format!("{} %", number(share * 100.0));
    let (name, asked) = (quantile_name(until.quantile), percent(until.asked));
    let known = until.half_width.map_or_else(
        || format!("how sure {name} is, is not known"),
        |half_width| format!("{name} +- {}", percent(half_width)),
    );
    match until.reached {
        true => format!("{known} ({asked} asked for)"),
        false => format!("{known}, {asked} WAS NOT REACHED"),
    }
}
