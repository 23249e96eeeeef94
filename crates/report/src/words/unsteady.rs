//! The words for runs that were not at one level, and for warm-ups whose end was found while they ran.

use pummel_logic::plan::{Plan, Work};
use pummel_logic::time::{Nanos, seconds};
use pummel_measure::measurement::WarmUpEnd;
use pummel_measure::summary::time_text;
use pummel_measure::words::{percent, rate_text};

use crate::document::merged::MergedResult;
use crate::document::steadiness::{ChangePlace, ChangeResult, ChangedFigure, WarmUpResult};

/// The consequence of a change: no figure of the run has an interval.
const NO_INTERVALS: &str = "no intervals";

/// The longest time in seconds that is called the first second.
const FIRST_SECOND: f64 = 1.05;

/// Time in seconds for which clients warmed up by plan; `None` where the end of the warm-up was found while it ran.
pub fn warm_up_s(plan: &Plan) -> Option<f64> {
    let of_requests = plan.phases.iter().take_while(|phase| !phase.recorded);
    let times =
        of_requests.filter(|phase| !matches!(phase.work, Work::Load(_))).map(|phase| phase.stop.time_ns);
    let sum = times.map(|time_ns| time_ns.unwrap_or(0)).fold(0, Nanos::saturating_add);
    (!plan.adaptive.ends_warm_up()).then(|| seconds(sum))
}

/// A change in a run whose clients warmed up for `warm_up_s`, as the text behind the label `Unsteady`.
pub fn change(change: &ChangeResult, warm_up_s: Option<f64>) -> String {
    let at = format!("{:.1} s", change.at_s);
    let (before, after) = (value_text(change, change.before), value_text(change, change.after));
    let (when, then) = match (change.kind, warm_up_s) {
        (ChangePlace::Beginning, Some(warm_up_s)) => {
            let longer = format!("--warmup {}s", (warm_up_s + 2.0 * change.at_s).ceil().max(1.0));
            let is_second = (0.95..FIRST_SECOND).contains(&change.at_s);
            (if is_second { "in the first second".to_owned() } else { format!("in the first {at}") }, longer)
        }
        _ => (format!("before {at}"), NO_INTERVALS.to_owned()),
    };
    match change.figure {
        ChangedFigure::P50 => format!("p50 was {before} {when} and {after} after: {then}"),
        ChangedFigure::Rate => format!("{before} {when} and {after} after: {then}"),
        ChangedFigure::HitShare => format!("{before} hits {when} and {after} after: {then}"),
        ChangedFigure::Other if change.says.is_empty() => format!("a figure changed at {at}: {NO_INTERVALS}"),
        ChangedFigure::Other => change.says.clone(),
    }
}

/// A side of a change.
fn value_text(change: &ChangeResult, value: Option<f64>) -> String {
    match (change.figure, value) {
        (_, None) => "not known".to_owned(),
        (ChangedFigure::P50, Some(us)) => time_text((us * 1e3).round() as Nanos),
        (ChangedFigure::Rate, Some(rate)) => rate_text(rate),
        (ChangedFigure::HitShare | ChangedFigure::Other, Some(share)) => percent(share),
    }
}

/// A warm-up that ended before the load had settled, as the text behind the label `Unsteady`.
pub fn unsettled() -> String {
    format!("the warm-up was over before the load had settled: {NO_INTERVALS}")
}

/// A server that did this for a part of the run, as the text behind the label `Unsteady`.
pub fn saved(address: &str, says: &str) -> String {
    format!("{address} {says}: {NO_INTERVALS}")
}

/// The parts of a sum that were not steady, as the text behind the label `Unsteady`.
pub fn merged(parts: &[MergedResult]) -> String {
    let unsteady: Vec<&MergedResult> = parts.iter().filter(|part| part.steady == Some(false)).collect();
    let Some(first) = unsteady.first() else { return "a result of the sum was not steady".to_owned() };
    let text = match &first.change {
        Some(own) => format!("{}: {}", first.file, change(own, None)),
        None => first.file.clone(),
    };
    match unsteady.len() {
        1 => text,
        count => format!("{count} of {} results, {text}", parts.len()),
    }
}

/// The end of a warm-up, behind its name.
pub fn warm_up(warm_up: &WarmUpResult) -> String {
    let took = warm_up.seconds;
    match (warm_up.until.unwrap_or_default(), warm_up.settled) {
        _ if warm_up.cut_short => format!("cut short after {took:.1} s, when the run was ended"),
        (WarmUpEnd::Settled, true) => format!("settled after {took:.1} s"),
        (WarmUpEnd::Settled, false) => format!("over after {took:.1} s, and the load had not settled"),
        (WarmUpEnd::Eviction, true) => format!("over after {took:.1} s, when a server had evicted a record"),
        (WarmUpEnd::Eviction, false) => {
            format!("over after {took:.1} s, and no server was seen to have evicted a record")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::plan::{Mix, Phase, Settle, Stop};
    use pummel_logic::protocol::Verb;
    use pummel_logic::time::SECOND;

    fn changed(
        figure: ChangedFigure,
        kind: ChangePlace,
        at_s: f64,
        before: Option<f64>,
        after: Option<f64>,
    ) -> ChangeResult {
        ChangeResult { figure, kind, at_s, before, after, says: String::new() }
    }

    #[test]
    fn a_change_is_its_figure_on_both_sides_of_a_moment() {
        let (step, beginning) = (ChangePlace::Step, ChangePlace::Beginning);
        let p50 = |kind, at_s, before, after| changed(ChangedFigure::P50, kind, at_s, Some(before), after);
        let hits = |before, after| changed(ChangedFigure::HitShare, step, 0.5, Some(before), Some(after));
        let rows = [
            (
                p50(step, 6.8, 31.9, Some(25.7)),
                "p50 was 31.9 us before 6.8 s and 25.7 us after: no intervals",
            ),
            (
                p50(beginning, 1.0, 20.9, Some(14.0)),
                "p50 was 20.9 us in the first second and 14.0 us after: --warmup 2s",
            ),
            (
                p50(beginning, 0.75, 20.8, Some(14.7)),
                "p50 was 20.8 us in the first 0.8 s and 14.7 us after: --warmup 2s",
            ),
            (p50(step, 4.0, 31.9, None), "p50 was 31.9 us before 4.0 s and not known after: no intervals"),
            (hits(0.24, 0.65), "24 % hits before 0.5 s and 65 % after: no intervals"),
            (
                changed(ChangedFigure::Rate, step, 2.0, Some(118_297.0), Some(95_000.0)),
                "118,000/s before 2.0 s and 95,000/s after: no intervals",
            ),
            (
                changed(ChangedFigure::Other, step, 2.0, Some(1.0), None),
                "a figure changed at 2.0 s: no intervals",
            ),
        ];
        for (fact, expected) in rows {
            assert_eq!(change(&fact, Some(0.0)), expected);
        }
        let slow = p50(beginning, 1.0, 20.9, Some(14.0));
        assert!(change(&slow, Some(3.0)).ends_with(": --warmup 5s"), "longer than it was");
        assert!(change(&slow, None).ends_with("20.9 us before 1.0 s and 14.0 us after: no intervals"));
        let later = ChangeResult { says: "the moon rose".to_owned(), ..ChangeResult::default() };
        assert_eq!(change(&later, None), "the moon rose", "a figure of another version");
    }

    #[test]
    fn a_warm_up_by_plan_has_a_time_and_one_that_settles_has_none() {
        let phase = |name: &str, time_s: u64, recorded| Phase {
            name: name.to_owned(),
            work: Work::Mix(Mix::of(&[(Verb::Get, 1.0)])),
            stop: Stop { time_ns: Some(time_s * SECOND), requests: None },
            recorded,
        };
        let mut plan =
            Plan { phases: vec![phase("warmup", 2, false), phase("measure", 10, true)], ..Plan::default() };
        assert_eq!(warm_up_s(&plan), Some(2.0));
        plan.phases.remove(0);
        assert_eq!(warm_up_s(&plan), Some(0.0));
        plan.adaptive.settle = Some(Settle::before(Some(SECOND)));
        assert_eq!(warm_up_s(&plan), None);
    }

    #[test]
    fn parts_of_a_sum_are_counted_and_the_first_is_explained() {
        let part = |file: &str, change: Option<ChangeResult>| MergedResult {
            file: file.to_owned(),
            steady: Some(change.is_none()),
            change,
            ..MergedResult::default()
        };
        let slower = || Some(changed(ChangedFigure::P50, ChangePlace::Step, 6.2, Some(180.0), Some(121.0)));
        let words = "b.json: p50 was 180 us before 6.2 s and 121 us after: no intervals";
        assert_eq!(merged(&[part("a.json", None), part("b.json", slower())]), words);
        let all = [part("b.json", slower()), part("c.json", slower()), part("a.json", None)];
        assert_eq!(merged(&all), format!("2 of 3 results, {words}"));
        assert_eq!(merged(&[]), "a result of the sum was not steady");
    }

    #[test]
    fn the_end_of_a_warm_up_has_its_reason() {
        let end =
            |until, settled, cut_short| warm_up(&WarmUpResult { seconds: 2.04, settled, cut_short, until });
        assert_eq!(end(None, true, false), "settled after 2.0 s");
        assert_eq!(end(None, false, false), "over after 2.0 s, and the load had not settled");
        assert_eq!(end(None, false, true), "cut short after 2.0 s, when the run was ended");
        let evicted = end(Some(WarmUpEnd::Eviction), true, false);
        assert_eq!(evicted, "over after 2.0 s, when a server had evicted a record");
    }
}
